/* SPDX-License-Identifier: BSD-3-Clause */
/* conform.h - a group of ranks that share a transport, for tests/conform.c.
 *
 * The ranks are threads of one process or forked processes; the way is the same
 * for both: one anonymous shared mapping holds a barrier and a board on which
 * allgather() writes.  Whatever fails is written there too and stops every
 * rank; conform_run() then fails the Check test with that sentence.
 */
#ifndef COLL_TESTS_CONFORM_H
#define COLL_TESTS_CONFORM_H

#include "transports/transport.h"

#define MAX_RANKS 5
#define WAIT_SECONDS 60.0 /* for any one thing; a sanitizer's pace included */

struct world;

/* One rank, as its test body sees it. */
struct rank {
    struct world *world;
    int me, size;
    struct coll__tp *tp;
    int n_peers, peers[MAX_RANKS]; /* whom the transport reaches */
    int index;                     /* of the test's own variation */
    int is_process;
};

struct scenario {
    const struct coll__transport *transport;
    int size, are_processes;
    int is_spread; /* every rank on a host of its own */
    int index;
    int is_closed_by_body, is_abrupt; /* how the transport is closed */
    int is_opened_by_body;
    int victim; /* this rank may end as it likes; -1: none */
    void (*body)(struct rank *rank);
};

/* Run the scenario; ck_abort() when a rank failed, ended badly or hung. */
void conform_run(const struct scenario *scenario);

/* Stop all ranks with this sentence, unless the condition holds. */
#define EXPECT(rank, condition, ...)                                           \
    do {                                                                       \
        if (!(condition))                                                      \
            conform_fail(rank, __FILE__, __LINE__,                             \
                         #condition " " __VA_ARGS__);                          \
    } while (0)

void conform_fail(struct rank *rank, const char *file, int line,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* Wait for all ranks. */
void conform_barrier(struct rank *rank);

/* Open the transport on this rank (the harness does so before the body, unless
 * is_opened_by_body); a status. */
int conform_open(struct rank *rank);

/* Stop here if another rank has failed. */
void conform_check(struct rank *rank);

/* Poll once, giving way to the other ranks. */
void conform_poll(struct rank *rank);

/* Poll for that long. */
void conform_poll_for(struct rank *rank, double seconds);

/* Poll until none of the transfers is in progress, within WAIT_SECONDS. */
void conform_wait(struct rank *rank, const struct coll__xfer *xfers, int n);

#endif
