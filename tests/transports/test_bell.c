/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bell.c - ranks that share memory sleep until something comes.
 *
 * They sleep without an end: a wake-up that is lost hangs until Check's time is
 * over.
 */
#include "lib/exec/sleep.h"
#include "lib/util/fence.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"
#include "tests/transports/conform.h"
#include "tests/support/patience.h"
#include "tests/support/forbid.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define CELL (128 * KIB)
#define LINES 32 /* of a fifo */
#define FOR_EVER 1e6
#define PAUSE 300 /* us */

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int n_left(const struct coll__xfer *xfers, int n)
{
    int left = 0;

    for (int i = 0; i < n; i++)
        left += xfers[i].status == COLL_IN_PROGRESS;
    return left;
}

/* Until none of them is under way, sleep whenever nothing moves; how often it
 * was not for ever, since not all would ring. */
static int sleep_through(struct rank *rank, const struct coll__xfer *xfers,
                         int n)
{
    struct coll__sleep sleep;
    int n_unsure = 0;

    while (n_left(xfers, n)) {
        coll__sleep_arm(&sleep, &rank->tp, 1);
        if (rank->tp->ops->poll(rank->tp))
            continue;
        n_unsure += !sleep.is_sure;
        coll__sleep(&sleep, sleep.is_sure ? FOR_EVER : COLL__NAP);
    }
    return n_unsure;
}

static void run(int size, int are_processes, int index,
                void (*body)(struct rank *))
{
    conform_run(&(struct scenario){.transport = coll__transport_find("shm"),
                                   .size = size,
                                   .are_processes = are_processes,
                                   .index = index,
                                   .victim = -1,
                                   .body = body});
}

/* ---- each kind of publication ---------------------------------------------- */

static const struct kind {
    const char *what;
    size_t len;
    int n; /* messages */
    int is_fetched, is_in_region;
} kinds[] = {
    {"a line alone", 0, 1, 0, 0},
    {"bytes in the line", 8, 1, 0, 0},
    {"a slot", 3 * KIB, 1, 0, 0},
    {"a cell", 100 * KIB, 1, 0, 0},
    {"more than all cells", 40 * CELL, 1, 0, 0},
    {"more than all lines", 8, 3 * LINES, 0, 0},
    {"bytes to be fetched", 300 * KIB, 1, 1, 0},
    {"bytes in a region", 300 * KIB, 1, 0, 1},
};

/* Rank 0 sends when rank 1 sleeps, or rank 1 takes when rank 0 does. */
static void wake_by(struct rank *rank, int is_receiver_asleep)
{
    const struct kind *kind = &kinds[rank->index];
    struct coll__xfer *xfers = calloc((size_t)kind->n, sizeof(*xfers));

    if ((rank->me == 0) == is_receiver_asleep)
        usleep(20000);
    for (int k = 0; k < kind->n; k++) {
        if (rank->me == 0)
            conform_post_send(rank, &xfers[k], 1, (unsigned)k, kind->len);
        else
            conform_post_recv(rank, &xfers[k], 0, (unsigned)k, kind->len);
    }
    EXPECT(rank, !sleep_through(rank, xfers, kind->n));
    for (int k = 0; k < kind->n; k++) {
        if (rank->me == 1)
            conform_expect_payload(rank, &xfers[k], (unsigned)k);
        conform_free(xfers[k].buf);
    }
    free(xfers);
    conform_barrier(rank);
}

static void wake_both_ways(struct rank *rank)
{
    wake_by(rank, 1);
    wake_by(rank, 0);
}

/* _i: a kind, for threads and for processes. */
START_TEST(everything_that_is_published_wakes)
{
    const struct kind *kind = &kinds[_i / 2];

    setenv("COLL_CMA", kind->is_fetched ? "auto" : "off", 1);
    coll__limit_assume(LIMIT_CMA_MAX, 1 << 30);
    coll__limit_assume(LIMIT_MEM_MIN, 0);
    conform_in_regions = kind->is_in_region;
    run(2, _i % 2, _i / 2, wake_both_ways);
}
END_TEST

/* ---- a cell that no message frees ---------------------------------------------- */

#define N_CELLS 3 /* one for each peer, and one more */

/* Send message k to rank 1 or 2, which get the same bytes. */
static void send_same(struct rank *rank, struct coll__xfer *xfer, int to,
                      unsigned k)
{
    const size_t len = 4 * KIB;

    *xfer = (struct coll__xfer){.peer = to,
                                .channel = rank->channel,
                                .len = len,
                                .bytes.name = k + 1,
                                .buf = conform_new_payload(len, 0, 1, k),
                                .sig = conform_sig_of(k, len)};
    rank->tp->ops->send(rank->tp, xfer);
}

/* Rank 2 keeps all cells of rank 0, which sends one message more to rank 1: it
 * goes in pieces after a while, which no bell announces. */
static void keep_out(struct rank *rank)
{
    struct coll__xfer to[2][N_CELLS + 1];
    int n[2] = {N_CELLS + 1, N_CELLS};

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < n[i] && rank->me == 0; k++)
            send_same(rank, &to[i][k], i + 1, (unsigned)k);
    conform_barrier(rank);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < n[i] && rank->me == i + 1; k++)
            conform_post_recv(rank, &to[i][k], 0, (unsigned)k, 4 * KIB);
        if (rank->me == 0 || rank->me == i + 1)
            sleep_through(rank, to[i], n[i]);
        conform_barrier(rank);
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < n[i]; k++)
            if (rank->me == 0 || rank->me == i + 1)
                conform_free(to[i][k].buf);
}

START_TEST(who_is_kept_out_looks_by_itself)
{
    coll__limit_assume(LIMIT_SHM_SLOT, 64);
    coll__limit_assume(LIMIT_SHM_CELL, 4 << 10);
    coll__limit_assume(LIMIT_SHM_CELLS, 1);
    setenv("COLL_CMA", "off", 1);
    run(3, _i, 0, keep_out);
}
END_TEST

/* ---- no wake-up is lost ------------------------------------------------------- */

#define ROUNDS 400
#define MOST 4

/* To and from all, in a random order of lengths, with random pauses: who comes
 * early sleeps. */
static void stress(struct rank *rank)
{
    static const size_t lens[] = {0, 8, 700, 5 * KIB, CELL + 1};
    unsigned mine = (unsigned)(rank->index * 8 + rank->me), all = 7;
    struct coll__xfer xfers[2 * MOST];

    for (unsigned k = 0; k < (unsigned)part_of(ROUNDS); k++) {
        size_t len = lens[next_random(&all) % ARRAY_LEN(lens)];
        int n = 0;

        if (next_random(&mine) % 2)
            usleep(next_random(&mine) % PAUSE);
        for (int i = 0; i < rank->n_peers; i++) {
            conform_post_send(rank, &xfers[n++], rank->peers[i], k, len);
            conform_post_recv(rank, &xfers[n++], rank->peers[i], k, len);
        }
        sleep_through(rank, xfers, n);
        for (int x = 0; x < n; x++) {
            if (x % 2)
                conform_expect_payload(rank, &xfers[x], k);
            conform_free(xfers[x].buf);
        }
    }
}

START_TEST(no_wake_up_is_lost) { run(2 + _i / 2, _i % 2, _i, stress); }
END_TEST

/* ---- neither misses the other ------------------------------------------------ */

#define MEETINGS 40000
#define MEET_SECONDS 10 /* on a busy machine fewer have to do */

/* Where two threads meet, as close to each other as can be. */
static atomic_int n_came;
static atomic_int is_enough; /* set by rank 0 between two meetings */

static void meet(struct rank *rank, int round)
{
    int looks = 0;

    atomic_fetch_add(&n_came, 1);
    while (atomic_load(&n_came) < 2 * round)
        if (++looks % 4096 == 0) {
            conform_check(rank);
            sched_yield();
        }
}

/* One puts a message, the other one arms its bell and looks, at the same moment:
 * either the message is seen, or the bell rings. */
static void cross(struct rank *rank)
{
    const struct coll__transport *ops = rank->tp->ops;
    double end = coll__now() + MEET_SECONDS;
    unsigned char byte = 0;
    int round = 0;

    for (int i = 0; i < MEETINGS && !atomic_load(&is_enough); i++) {
        struct coll__xfer xfer = {.peer = !rank->me, .len = 1, .buf = &byte};
        struct coll__bell bell = {.fd = -1};
        int rc = COLL_OK;

        meet(rank, ++round);
        if (rank->me == 0) {
            EXPECT(rank, ops->put(rank->tp, &xfer));
            if (coll__now() > end)
                atomic_store(&is_enough, 1);
        } else {
            EXPECT(rank, ops->arm(rank->tp, &bell) == 1);
            rc = ops->take(rank->tp, &xfer);
        }
        meet(rank, ++round);
        if (rc == COLL_IN_PROGRESS) {
            EXPECT(rank, atomic_load(bell.word) != bell.value, "in round %d",
                   i);
            EXPECT(rank, ops->take(rank->tp, &xfer) == COLL_OK);
        } else if (rank->me == 1) {
            atomic_store(bell.word, 0); /* as if somebody had rung */
        }
    }
}

START_TEST(either_the_message_is_seen_or_the_bell_rings)
{
    run(2, 0, 0, cross);
}
END_TEST

/* ---- what the bell says ----------------------------------------------------- */

/* A bell that has not rung is armed again without a system call: the fence would
 * fail now, and that would show. */
static void arm_twice(struct rank *rank)
{
    struct coll__bell bell = {.fd = -1}, again = {.fd = -1};
    const struct coll__transport *ops = rank->tp->ops;

    EXPECT(rank, ops->arm(rank->tp, &bell) == 1);
    EXPECT(rank, bell.word && bell.fd == -1);
    EXPECT(rank, atomic_load(bell.word) == bell.value);
    conform_barrier(rank);
    EXPECT(rank, !forbid_fences());
    EXPECT(rank, ops->arm(rank->tp, &again) == 1);
    EXPECT(rank, again.word == bell.word && again.value == bell.value);
    conform_barrier(rank);
}

START_TEST(what_has_not_rung_is_armed_for_nothing) { run(3, 1, 0, arm_twice); }
END_TEST

/* Without the fence of all a message may come in silence: the rank says so, looks
 * by itself, and gets everything all the same. */
static void do_without_fence(struct rank *rank)
{
    struct coll__bell bell = {.fd = -1};
    struct coll__sleep sleep;
    struct coll__xfer send, recv;
    int peer = !rank->me;

    if (rank->me == 0)
        EXPECT(rank, !forbid_fences());
    EXPECT(rank, conform_open(rank) == COLL_OK, "%s", coll_last_error());
    EXPECT(rank, rank->tp->ops->arm(rank->tp, &bell) == 0);
    for (unsigned k = 0; k < 50; k++) {
        conform_post_send(rank, &send, peer, k, 8);
        conform_post_recv(rank, &recv, peer, k, 8);
        while (recv.status == COLL_IN_PROGRESS) {
            coll__sleep_arm(&sleep, &rank->tp, 1);
            EXPECT(rank, !sleep.is_sure);
            if (!rank->tp->ops->poll(rank->tp))
                coll__sleep(&sleep, COLL__NAP);
        }
        conform_finish(rank, &send, &recv, 1, k);
    }
}

START_TEST(without_a_fence_ranks_look_by_themselves)
{
    conform_run(&(struct scenario){.transport = coll__transport_find("shm"),
                                   .size = 2,
                                   .are_processes = 1,
                                   .is_opened_by_body = 1,
                                   .victim = -1,
                                   .body = do_without_fence});
}
END_TEST

/* One of several ranks is alone on its host. */
static void arm_alone(struct rank *rank)
{
    struct coll__bell bell = {.fd = -1};

    EXPECT(rank, rank->n_peers == 0);
    EXPECT(rank, rank->tp->ops->arm(rank->tp, &bell) == 1);
    EXPECT(rank, !bell.word && bell.fd == -1);
}

START_TEST(a_rank_alone_has_nothing_to_hear)
{
    conform_run(&(struct scenario){.transport = coll__transport_find("shm"),
                                   .size = 2,
                                   .is_spread = 1,
                                   .victim = -1,
                                   .body = arm_alone});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bell");
    TCase *c = tcase_create("bell");

    if (coll__fence_join()) {
        puts("skipped: this kernel has no membarrier of all processes");
        return 77;
    }
    tcase_set_timeout(c, WAIT_SECONDS);
    tcase_add_loop_test(c, everything_that_is_published_wakes, 0,
                        2 * ARRAY_LEN(kinds));
    tcase_add_loop_test(c, who_is_kept_out_looks_by_itself, 0, 2);
    tcase_add_loop_test(c, no_wake_up_is_lost, 0, 2 * (MOST - 1));
    tcase_add_test(c, either_the_message_is_seen_or_the_bell_rings);
    tcase_add_test(c, what_has_not_rung_is_armed_for_nothing);
    tcase_add_test(c, without_a_fence_ranks_look_by_themselves);
    tcase_add_test(c, a_rank_alone_has_nothing_to_hear);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
