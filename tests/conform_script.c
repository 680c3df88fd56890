/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_script.c - random scripts: messages of any length in any order. */
#include "tests/conform.h"

#include <stdlib.h>

#define SCRIPT 60 /* messages from one rank to another */

/* The k-th message from src to dst: both of them know it by the seed. */
struct line {
    size_t count; /* of i32 */
    int is_sum;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static struct line line_of(unsigned seed, int src, int dst, int k)
{
    uint32_t x = seed * 7919u + (uint32_t)((src * 8 + dst) * SCRIPT + k);
    uint32_t shape;

    next_random(&x);
    shape = next_random(&x) % 10;
    return (struct line){.count = next_random(&x) % (shape < 5   ? 20
                                                     : shape < 9 ? 20000
                                                                 : 300000),
                         .is_sum = next_random(&x) % 2};
}

struct script {
    struct coll__xfer xfers[SCRIPT];
    int n_posted;
};

static void post_line(struct rank *rank, struct script *script, int peer,
                      int is_recv)
{
    int k = script->n_posted++;
    struct line line = is_recv
                           ? line_of((unsigned)rank->index, peer, rank->me, k)
                           : line_of((unsigned)rank->index, rank->me, peer, k);

    script->xfers[k] = (struct coll__xfer){
        .peer = peer,
        .may_fetch = 1,
        .reduce = line.is_sum ? conform_sum_i32 : NULL};
    conform_post_elements(rank, &script->xfers[k], line.count, is_recv,
                          (unsigned)k);
}

static void finish_script(struct rank *rank, struct script *script, int is_recv)
{
    conform_wait(rank, script->xfers, script->n_posted);
    for (int k = 0; k < script->n_posted; k++) {
        EXPECT(rank, script->xfers[k].status == COLL_OK, "line %d: %s", k,
               coll_strerror(script->xfers[k].status));
        if (is_recv)
            conform_expect_elements(rank, &script->xfers[k], 0);
        conform_free(script->xfers[k].buf);
    }
}

void conform_script(struct rank *rank)
{
    struct script *scripts = calloc(2 * MAX_RANKS, sizeof(*scripts));
    uint32_t random = (uint32_t)(rank->index * 100 + rank->me);
    int n_left = 2 * rank->n_peers * SCRIPT;

    while (n_left) {
        uint32_t which = next_random(&random) % (2u * (unsigned)rank->n_peers);
        uint32_t n = next_random(&random) % 5;

        for (; n && scripts[which].n_posted < SCRIPT; n--, n_left--)
            post_line(rank, &scripts[which], rank->peers[which / 2], which & 1);
        if (next_random(&random) % 3)
            conform_poll(rank);
    }
    for (int i = 0; i < 2 * rank->n_peers; i++)
        finish_script(rank, &scripts[i], i & 1);
    free(scripts);
}
