/* SPDX-License-Identifier: BSD-3-Clause */
/* conform.h - a group of ranks that share a transport, for tests/transports/conform.c.
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
#define NO_DEADLINE 1e5         /* s: a deadline that no test lives to see */
#define WAIT_SECONDS 60.0 /* for any one thing; a sanitizer's pace included */

struct world;

/* One rank, as its test body sees it. */
struct rank {
    struct world *world;
    int me, size;
    struct coll__tp *tp;
    int n_peers, peers[MAX_RANKS]; /* whom the transport reaches */
    int index;                     /* of the test's own variation */
    int channel;                   /* of what it posts */
    int is_process;
    int n_meetings; /* of conform_meet() */
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

/* Every rank is on a host of its own, whatever the scenario says. */
extern int conform_is_spread;

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

/* The same, and move meanwhile what the others wait for. */
void conform_meet(struct rank *rank);

/* Open the transport on this rank (the harness does so before the body, unless
 * is_opened_by_body); a status. */
int conform_open(struct rank *rank);

/* Stop here if another rank has failed. */
void conform_check(struct rank *rank);

/* The rank that may end as it likes; -1: none. */
int conform_victim(const struct rank *rank);

/* Poll once, giving way to the other ranks. */
void conform_poll(struct rank *rank);

/* Poll for that long. */
void conform_poll_for(struct rank *rank, double seconds);

/* Poll until none of the transfers is in progress, within WAIT_SECONDS. */
void conform_wait(struct rank *rank, const struct coll__xfer *xfers, int n);

/* ---- conform_data.c: payloads are a function of (source, destination, message
 * k), so that a byte in a wrong place shows ---- */

struct coll__signature conform_sig_of(unsigned k, size_t len);

/* Buffers of messages: the longer ones by coll_mem_alloc() if in regions, as long
 * as there is a file descriptor left; zeroed. */
extern int conform_in_regions;
void *conform_alloc(size_t len);
void conform_free(void *bytes);

/* Return len bytes of the message, to be released by conform_free(). */
void *conform_new_payload(size_t len, int src, int dst, unsigned k);

/* Start message k to, or from, the peer; its buffer is the test's to free. */
void conform_post_send(struct rank *rank, struct coll__xfer *xfer, int peer,
                       unsigned k, size_t len);
void conform_post_recv(struct rank *rank, struct coll__xfer *xfer, int peer,
                       unsigned k, size_t len);

/* Wait for n sends, and n receives of the messages first, first + 1, ...; judge
 * them and free their buffers. */
void conform_finish(struct rank *rank, struct coll__xfer *sends,
                    struct coll__xfer *recvs, int n, unsigned first);
void conform_expect_payload(struct rank *rank, const struct coll__xfer *xfer,
                            unsigned k);

coll__reduce_fn conform_sum_i32, conform_sum_f64;

/* Start message k of `count` elements, f64 if xfer reduces these, else i32;
 * a receive has elements of its own in its buffer, of an odd k elsewhere. */
void conform_post_elements(struct rank *rank, struct coll__xfer *xfer,
                           size_t count, int is_recv, unsigned k);

/* The receive holds what the peer sent, on top of its own if it reduces. */
void conform_expect_elements(struct rank *rank, const struct coll__xfer *xfer,
                             int is_f64);

/* ---- conform_share.c: bodies of tests ---- */

/* All send everybody the same bytes; one takes nothing until the others have
 * theirs. */
void conform_share(struct rank *rank);

/* What comes in goes on to the next ranks. */
void conform_onward(struct rank *rank);

/* put() and take(), as many ahead as there is room for. */
void conform_put(struct rank *rank);

/* ---- conform_channel.c ---- */

/* Messages of each channel in an order of their own. */
void conform_channels(struct rank *rank);

/* What nobody takes on one channel holds up none of the others. */
void conform_pass_by(struct rank *rank);
void conform_show(struct rank *rank);

/* What takes long on one channel keeps nothing short on the first one waiting. */
void conform_overtake(struct rank *rank);

/* Two ranks have one connection, whoever calls first; rank->index says who. */
#define N_CALLERS 3
void conform_call(struct rank *rank);

/* ---- conform_rails.c ---- */

/* Long messages go by all rails, of which there are N_RAILS. */
#define N_RAILS 3
void conform_rails(struct rank *rank);

/* ---- conform_sleep.c ---- */

/* Where a bell is a file, what has come and nobody wants yet does not go on ringing
 * it. */
void conform_sleep_beside(struct rank *rank);

/* A message wakes who has had long ones before. */
#define N_WAKES 4
void conform_wake_behind(struct rank *rank);

/* The same where the kernel is asked about many. */
void conform_many_behind(struct rank *rank);

/* ---- conform_script.c ---- */

/* Each rank plays its scripts at its own random pace and in its own order;
 * rank->index is the seed. */
void conform_script(struct rank *rank);

/* ---- conform_end.c ---- */

/* Close while much is under way, as after an abort: on all ranks together, or
 * on rank 0 while the others do not even poll.  rank->index says how. */
enum conform_abandon {
    AT_ONCE,
    SOON,
    ONE_POSTS_HALF,
    ONE_LEAVES_FIRST,
    N_ABANDON
};
void conform_abandon(struct rank *rank);

/* Rank 0 dies; the others, which are in touch with it, learn of it. */
void conform_outlive(struct rank *rank);

/* Rank 0 of two dies rank->index polls after its first transfers began. */
void conform_die_young(struct rank *rank);

/* UCX fails on rank 1 alone: all must learn of it, none may hang. */
void conform_fail_to_open(struct rank *rank);

#endif
