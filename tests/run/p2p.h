/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.h - ranks that send each other messages, for the tests of that. */
#ifndef COLL_TESTS_P2P_H
#define COLL_TESTS_P2P_H

#include "tests/support/world.h"

#include <check.h>
#include <stdlib.h>

#define DEADLINE 40

/* A send to a peer, or a receive from it. */
static inline struct coll_args args_of(enum coll_collective kind, uint32_t *x,
                                       size_t count, int peer)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = kind,
                              .type = COLL_U32,
                              .root = peer,
                              .in = kind == COLL_SEND ? x : NULL,
                              .out = kind == COLL_RECV ? x : NULL,
                              .count = count};
}

/* Run it on so many ranks: by shared memory, or by the network. */
static inline void run(int size, world_fn *fn, int by)
{
    ck_assert_int_eq(world_fork_by(size, fn, by, DEADLINE), 0);
}

#endif
