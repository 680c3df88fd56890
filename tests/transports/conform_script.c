/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_script.c - random scripts: messages of any length in any order, on all
 * channels. */
#include "tests/transports/conform.h"

#include <stdlib.h>

#define SCRIPT 20 /* messages of a channel from one rank to another */

/* The k-th message of a lane: both of its ends know it by the seed. */
struct line {
    size_t count; /* of i32 */
    int is_sum;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static struct line line_of(unsigned seed, int src, int dst, unsigned number)
{
    uint32_t x = seed * 7919u + (uint32_t)(src * 8 + dst) * 1000u + number;
    uint32_t shape;

    next_random(&x);
    shape = next_random(&x) % 10;
    return (struct line){.count = next_random(&x) % (shape < 5   ? 20
                                                     : shape < 9 ? 20000
                                                                 : 300000),
                         .is_sum = next_random(&x) % 2};
}

struct script {
    int peer, is_recv, channel;
    struct coll__xfer xfers[SCRIPT];
    int n_posted;
};

/* A message's number says its channel, too. */
static void post_line(struct rank *rank, struct script *script)
{
    int src = script->is_recv ? script->peer : rank->me;
    int dst = script->is_recv ? rank->me : script->peer;
    struct coll__xfer *xfer = &script->xfers[script->n_posted];
    unsigned number = (unsigned)(script->channel * SCRIPT + script->n_posted++);
    struct line line = line_of((unsigned)rank->index, src, dst, number);

    *xfer = (struct coll__xfer){.peer = script->peer,
                                .channel = script->channel,
                                .bytes.is_exchange = 1,
                                .reduce = line.is_sum ? conform_sum_i32 : NULL};
    conform_post_elements(rank, xfer, line.count, script->is_recv, number);
}

static void finish_script(struct rank *rank, struct script *script)
{
    conform_wait(rank, script->xfers, script->n_posted);
    for (int k = 0; k < script->n_posted; k++) {
        EXPECT(rank, script->xfers[k].status == COLL_OK, "line %d: %s", k,
               coll_strerror(script->xfers[k].status));
        if (script->is_recv)
            conform_expect_elements(rank, &script->xfers[k], 0);
        conform_free(script->xfers[k].buf);
    }
}

/* One for each channel, to and from each peer. */
static int make_scripts(const struct rank *rank, struct script **scripts)
{
    int n = 0;

    *scripts = calloc((size_t)(2 * COLL__CHANNELS * rank->n_peers) + 1,
                      sizeof(**scripts));
    for (int i = 0; i < rank->n_peers; i++)
        for (int c = 0; c < COLL__CHANNELS; c++)
            for (int is_recv = 0; is_recv < 2; is_recv++, n++) {
                (*scripts)[n].peer = rank->peers[i];
                (*scripts)[n].channel = c;
                (*scripts)[n].is_recv = is_recv;
            }
    return n;
}

void conform_script(struct rank *rank)
{
    uint32_t random = (uint32_t)(rank->index * 100 + rank->me);
    struct script *scripts;
    int n_scripts = make_scripts(rank, &scripts), n_left = n_scripts * SCRIPT;

    while (n_left) {
        struct script *script =
            &scripts[next_random(&random) % (uint32_t)n_scripts];
        uint32_t n = next_random(&random) % 5;

        for (; n && script->n_posted < SCRIPT; n--, n_left--)
            post_line(rank, script);
        if (next_random(&random) % 3)
            conform_poll(rank);
    }
    for (int i = 0; i < n_scripts; i++)
        finish_script(rank, &scripts[i]);
    free(scripts);
}
