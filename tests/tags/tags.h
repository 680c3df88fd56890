/* SPDX-License-Identifier: BSD-3-Clause */
/* tags.h - ranks that send each other messages with tags, for the tests of that. */
#ifndef COLL_TESTS_TAGS_H
#define COLL_TESTS_TAGS_H

#include "tests/support/world.h"

#include <check.h>
#include <stdlib.h>

#define DEADLINE 60

/* Element i of the message with that number from one rank to another. */
static inline uint32_t tags_element(int from, int to, int n, size_t i)
{
    return (uint32_t)(i * 2654435761u) ^
           ((uint32_t)from << 24 | (uint32_t)to << 16 | (uint32_t)n);
}

static inline void tags_fill(uint32_t *x, size_t count, int from, int to, int n)
{
    for (size_t i = 0; i < count; i++)
        x[i] = tags_element(from, to, n, i);
}

static inline int tags_are(const uint32_t *x, size_t count, int from, int to,
                           int n)
{
    for (size_t i = 0; i < count; i++)
        if (x[i] != tags_element(from, to, n, i))
            return 0;
    return 1;
}

static inline struct coll_args tags_send(const void *x, size_t count, int peer,
                                         int tag)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_SEND_TAGGED,
                              .type = COLL_U32,
                              .root = peer,
                              .in = x,
                              .count = count,
                              .tag = tag};
}

static inline struct coll_args tags_recv(void *x, size_t count, int peer,
                                         int tag,
                                         struct coll_recv_status *status)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_RECV_TAGGED,
                              .type = COLL_U32,
                              .root = peer,
                              .out = x,
                              .count = count,
                              .status = status,
                              .tag = tag};
}

/* Run it on so many ranks: by shared memory, or by the network. */
static inline void run(int size, world_fn *fn, int by)
{
    ck_assert_int_eq(world_fork_by(size, fn, by, DEADLINE), 0);
}

#endif
