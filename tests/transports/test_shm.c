/* SPDX-License-Identifier: BSD-3-Clause */
/* test_shm.c - shared memory with cells, slots and offers of every size, and
 * what conform.c does not see from the outside.
 */
#include "tests/transports/conform.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SLOT (4 * KIB) /* as the limits are by default */
#define CELL (128 * KIB)
#define FETCH (64 * KIB)

/* ---- sizes of the segment's parts ----------------------------------------- */

#define NEVER ((size_t)1 << 30) /* CMA, for the messages below */

static const struct {
    size_t slot, cell, cells, cma_min;
} layouts[] = {
    {SLOT, CELL, 0, FETCH},
    {64, 64, 1, NEVER},
    {64, 16 * MIB, 1, NEVER},
    {64 * KIB, 64, 1, 65 * KIB},
    {64 * KIB, 64 * KIB, 3, NEVER},
    {KIB, 192, 32767, NEVER},
    {64, KIB, 2, 0},
};

#define N_WAYS 3

static size_t longest = 2 * CELL + 1; /* of the messages below */

/* Single copy by CMA, in regions, or none.  Return 0 where CMA is for messages longer
 * than any below, and so the way is the one without: TEST_LONG takes it. */
static int set_layout(int i)
{
    int l = i / N_WAYS, way = i % N_WAYS;

    if (way == 1 && layouts[l].cma_min == NEVER && !getenv("TEST_LONG"))
        return 0;
    if (l > 0)
        longest = FETCH + 1; /* in many pieces */
    coll__limit_assume(LIMIT_SHM_SLOT, layouts[l].slot);
    coll__limit_assume(LIMIT_SHM_CELL, layouts[l].cell);
    coll__limit_assume(LIMIT_SHM_CELLS, layouts[l].cells);
    coll__limit_assume(LIMIT_CMA_MIN, layouts[l].cma_min);
    coll__limit_assume(LIMIT_CMA_MAX, NEVER);
    setenv("COLL_CMA", way == 1 ? "auto" : "off", 1);
    coll__limit_assume(LIMIT_MEM_MIN, 0);
    conform_in_regions = way == 2;
    return 1;
}

static void run_as(int size, int are_processes, int index,
                   void (*body)(struct rank *))
{
    conform_run(&(struct scenario){.transport = coll__transport_find("shm"),
                                   .size = size,
                                   .are_processes = are_processes,
                                   .index = index,
                                   .victim = -1,
                                   .body = body});
}

static void run(int size, int are_processes, void (*body)(struct rank *))
{
    run_as(size, are_processes, 0, body);
}

/* ---- at the borders ------------------------------------------------------- */

static const size_t borders[] = {
    0,         1,        23,       24,       25,           63,          64,
    65,        87,       88,       89,       191,          192,         193,
    1023,      1024,     SLOT - 1, SLOT,     SLOT + 1,     FETCH - 1,   FETCH,
    FETCH + 1, CELL - 1, CELL,     CELL + 1, 2 * CELL - 1, 2 * CELL + 1};

/* All sizes under way at once, to and from all. */
static void exchange_borders(struct rank *rank)
{
    unsigned n = 0;
    struct coll__xfer(*sends)[ARRAY_LEN(borders)] =
        calloc(MAX_RANKS, sizeof(*sends));
    struct coll__xfer(*recvs)[ARRAY_LEN(borders)] =
        calloc(MAX_RANKS, sizeof(*recvs));

    while (n < ARRAY_LEN(borders) && borders[n] <= longest)
        n++;
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < n; k++) {
            conform_post_send(rank, &sends[i][k], rank->peers[i], k,
                              borders[k]);
            conform_post_recv(rank, &recvs[i][k], rank->peers[i], k,
                              borders[k]);
        }
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, sends[i], recvs[i], (int)n, 0);
    free(sends);
    free(recvs);
}

/* f64 reduced from within a line, a slot, a cell, from elsewhere. */
static void reduce_borders(struct rank *rank)
{
    for (size_t b = 0; b < ARRAY_LEN(borders) && borders[b] <= longest; b++)
        for (int i = 0; i < rank->n_peers; i++) {
            struct coll__xfer recv = {.peer = rank->peers[i],
                                      .channel = rank->channel,
                                      .reduce = conform_sum_f64};
            struct coll__xfer send = recv;

            conform_post_elements(rank, &recv, borders[b] / 8, 1, (unsigned)b);
            conform_post_elements(rank, &send, borders[b] / 8, 0, (unsigned)b);
            conform_wait(rank, &recv, 1);
            conform_wait(rank, &send, 1);
            conform_expect_elements(rank, &recv, 1);
            conform_free(recv.buf);
            conform_free(send.buf);
        }
}

static void all_bodies(struct rank *rank)
{
    exchange_borders(rank);
    reduce_borders(rank);
    conform_share(rank);
    conform_barrier(rank);
    conform_onward(rank);
    conform_barrier(rank);
    conform_put(rank);
}

START_TEST(any_layout_carries_any_size)
{
    if (set_layout(_i / 2))
        run(_i % 2 ? 5 : 3, _i % 2, all_bodies);
}
END_TEST

/* ---- put and take behind others ------------------------------------------- */

/* With something queued that is larger than all cells. */
static void put_behind(struct rank *rank)
{
    const size_t len = 40 * CELL;
    int peer = !rank->me;
    unsigned char byte = 7, got = 0;
    struct coll__xfer send, recv;
    struct coll__xfer one = {
        .peer = peer, .channel = rank->channel, .len = 1, .buf = &byte};

    conform_post_send(rank, &send, peer, 1, len);
    EXPECT(rank, send.status == COLL_IN_PROGRESS);
    EXPECT(rank, !rank->tp->ops->put(rank->tp, &one));
    conform_barrier(rank);
    conform_post_recv(rank, &recv, peer, 1, len);
    while (recv.status == COLL_IN_PROGRESS) {
        struct coll__xfer early = {
            .peer = peer, .channel = rank->channel, .len = 1, .buf = &got};

        EXPECT(rank, rank->tp->ops->take(rank->tp, &early) == COLL_IN_PROGRESS);
        conform_poll(rank);
    }
    conform_finish(rank, &send, &recv, 1, 1);
    EXPECT(rank, rank->tp->ops->put(rank->tp, &one));
    one.buf = &got;
    while (rank->tp->ops->take(rank->tp, &one) == COLL_IN_PROGRESS)
        conform_poll(rank);
    EXPECT(rank, one.status == COLL_OK && got == 7);
}

START_TEST(nothing_is_put_or_taken_before_what_waits)
{
    setenv("COLL_CMA", "off", 1);
    run(2, _i, put_behind);
}
END_TEST

/* ---- beside other channels ------------------------------------------------- */

#define BUSY 40 /* messages: more than there are cells and lines */

static int pipes[2][2]; /* to rank 0, to rank 1: go on */

static void let_go(int to)
{
    ck_assert_int_eq(write(pipes[to][1], "", 1), 1);
}

static void await_leave(int me)
{
    char byte;

    ck_assert_int_eq(read(pipes[me][0], &byte, 1), 1);
}

static void post_busy(struct rank *rank, struct coll__xfer *xfers, int is_recv)
{
    conform_in_regions = 0;
    rank->channel = 1;
    for (unsigned k = 0; k < BUSY; k++)
        (is_recv ? conform_post_recv : conform_post_send)(rank, &xfers[k],
                                                          !rank->me, k, CELL);
}

static void judge(struct rank *rank, struct coll__xfer *xfers, unsigned n)
{
    conform_wait(rank, xfers, (int)n);
    for (unsigned k = 0; k < n; k++) {
        if (rank->me)
            conform_expect_payload(rank, &xfers[k], k);
        conform_free(xfers[k].buf);
    }
}

/* Rank 0 has one message in a cell and offers another one on one channel, and
 * has taken what there is of cells on another.  Looking for a cell it finds that
 * both messages were taken: poll() says so, since a caller looks then alone. */
static void find_taken(struct rank *rank)
{
    struct coll__xfer aside[2], busy[BUSY];
    int is_recv = rank->me == 1, is_offered;

    rank->channel = 2;
    if (is_recv) {
        await_leave(1);
        for (unsigned k = 0; k < 2; k++)
            conform_post_recv(rank, &aside[k], 0, k, CELL);
        conform_wait(rank, aside, 2);
        let_go(0);
    } else {
        conform_post_send(rank, &aside[0], 1, 0, CELL);
        conform_in_regions = 1;
        conform_post_send(rank, &aside[1], 1, 1, CELL);
        post_busy(rank, busy, 0);
        conform_poll_for(rank, 0.001);
        is_offered = aside[1].status == COLL_IN_PROGRESS;
        let_go(1);
        await_leave(0);
        EXPECT(rank, !is_offered || rank->tp->ops->poll(rank->tp) > 0);
        EXPECT(rank, aside[1].status == COLL_OK);
    }
    conform_barrier(rank);
    if (is_recv)
        post_busy(rank, busy, 1);
    judge(rank, aside, 2);
    judge(rank, busy, BUSY);
}

START_TEST(what_was_taken_is_said_whoever_finds_it)
{
    setenv("COLL_CMA", "off", 1);
    coll__limit_assume(LIMIT_MEM_MIN, 0);
    ck_assert(!pipe(pipes[0]) && !pipe(pipes[1]));
    run(2, 1, find_taken);
}
END_TEST

#define STREAM 60 /* messages to each of two ranks */
#define FEW_POLLS 10

/* Rank 0 has much to send to two ranks that take it at once; and there is a
 * message for it, on the same channel or another one. */
static void hear_amid(struct rank *rank)
{
    struct coll__xfer stream[2][STREAM], one;
    int n_to = rank->me ? 1 : 2, n_polls = 0;

    rank->channel = 1;
    for (unsigned k = 0; k < STREAM; k++)
        for (int i = 0; i < n_to; i++)
            (rank->me ? conform_post_recv : conform_post_send)(
                rank, &stream[i][k], rank->me ? 0 : i + 1, k, CELL);
    rank->channel = rank->index;
    if (rank->me == 1) {
        await_leave(1);
        conform_post_send(rank, &one, 0, 0, 8);
        let_go(0);
    } else if (rank->me == 0) {
        conform_post_recv(rank, &one, 1, 0, 8);
        let_go(1);
        await_leave(0);
        while (one.status == COLL_IN_PROGRESS) {
            EXPECT(rank, ++n_polls < FEW_POLLS);
            rank->tp->ops->poll(rank->tp);
            usleep(5000);
        }
        conform_expect_payload(rank, &one, 0);
    }
    for (int i = 0; i < n_to; i++)
        judge(rank, stream[i], STREAM);
    if (rank->me < 2)
        conform_free(one.buf);
}

/* _i: the channel of that message. */
START_TEST(what_has_come_is_taken_amid_a_stream_of_sends)
{
    setenv("COLL_CMA", "off", 1);
    ck_assert(!pipe(pipes[0]) && !pipe(pipes[1]));
    run_as(3, 1, _i, hear_amid);
}
END_TEST

/* ---- offers that are taken back ------------------------------------------- */

/* Rank 0 offers, closes and spoils its bytes; rank 1 receives at any time: the
 * message is whole, or it did not come. */
static void withdraw(struct rank *rank)
{
    const size_t len = 3000 * KIB;
    struct coll__xfer xfer;

    if (rank->me == 0) {
        conform_post_send(rank, &xfer, 1, 1, len);
        conform_barrier(rank);
        rank->tp->ops->close(rank->tp, 0);
        memset(xfer.buf, 0, len);
        conform_free(xfer.buf);
        conform_barrier(rank);
        return;
    }
    conform_barrier(rank);
    usleep((unsigned)rank->index * 40);
    conform_post_recv(rank, &xfer, 0, 1, len);
    conform_poll_for(rank, 0.002);
    if (xfer.status == COLL_OK)
        conform_expect_payload(rank, &xfer, 1);
    else
        EXPECT(rank,
               xfer.status == COLL_IN_PROGRESS || xfer.status == COLL_ERR_PEER,
               "%s", coll_strerror(xfer.status));
    conform_barrier(rank);
    rank->tp->ops->close(rank->tp, 0);
    conform_free(xfer.buf);
}

START_TEST(an_offer_taken_back_is_whole_or_not_there)
{
    conform_in_regions = _i / 2 % 2;
    conform_run(&(struct scenario){.transport = coll__transport_find("shm"),
                                   .size = 2,
                                   .are_processes = _i % 2,
                                   .index = _i / 4,
                                   .is_closed_by_body = 1,
                                   .victim = -1,
                                   .body = withdraw});
}
END_TEST

/* ---- what ranks publish ------------------------------------------------------ */

static void publish(struct rank *rank)
{
    atomic_int **published = rank->tp->published;

    conform_barrier(rank);
    for (int r = 0; r < rank->size; r++)
        EXPECT(rank, atomic_load(published[r]) == 0);
    conform_barrier(rank);
    atomic_store(published[rank->me], 10 + rank->me);
    conform_barrier(rank);
    for (int r = 0; r < rank->size; r++)
        EXPECT(rank, atomic_load(published[r]) == 10 + r);
    exchange_borders(rank); /* nobody's bell was touched */
}

/* _i: ranks are processes. */
START_TEST(all_ranks_read_what_each_publishes) { run(3, _i, publish); }
END_TEST

/* ---- several segments ------------------------------------------------------ */

#define SEGMENTS 3

/* The same ranks with several segments, in use by turns. */
static void use_several(struct rank *rank)
{
    struct coll__tp *tps[SEGMENTS];

    tps[0] = rank->tp;
    for (int t = 1; t < SEGMENTS; t++) {
        EXPECT(rank, conform_open(rank) == COLL_OK, "%s", coll_last_error());
        tps[t] = rank->tp;
    }
    for (int turn = 0; turn < 3 * SEGMENTS; turn++) {
        rank->tp = tps[turn % SEGMENTS];
        exchange_borders(rank);
    }
    conform_barrier(rank);
    for (int t = SEGMENTS - 1; t > 0; t--)
        tps[t]->ops->close(tps[t], 1);
    rank->tp = tps[0];
    exchange_borders(rank); /* the others' end did not touch this one */
}

START_TEST(several_segments_do_not_mix) { run(3, _i, use_several); }
END_TEST

/* A child that comes and goes takes nothing away. */
static void fork_amid(struct rank *rank)
{
    struct coll__tp *first = rank->tp;
    int status;
    pid_t pid;

    exchange_borders(rank);
    pid = fork();
    if (pid == 0)
        _exit(0);
    EXPECT(rank, pid > 0 && waitpid(pid, &status, 0) == pid && !status);
    exchange_borders(rank);
    EXPECT(rank, conform_open(rank) == COLL_OK, "%s", coll_last_error());
    exchange_borders(rank);
    conform_barrier(rank);
    rank->tp->ops->close(rank->tp, 1);
    rank->tp = first;
}

START_TEST(a_fork_takes_nothing_away) { run(3, 1, fork_amid); }
END_TEST

int main(void)
{
    Suite *suite = suite_create("shm");
    TCase *c = tcase_create("shm");
    int n_layouts = getenv("TEST_QUICK") ? 2 : (int)ARRAY_LEN(layouts);

    tcase_set_timeout(c, 5 * WAIT_SECONDS);
    tcase_add_loop_test(c, any_layout_carries_any_size, 0,
                        2 * N_WAYS * n_layouts);
    tcase_add_loop_test(c, nothing_is_put_or_taken_before_what_waits, 0, 2);
    tcase_add_loop_test(c, what_has_come_is_taken_amid_a_stream_of_sends, 0,
                        COLL__CHANNELS);
    tcase_add_test(c, what_was_taken_is_said_whoever_finds_it);
    tcase_add_loop_test(c, an_offer_taken_back_is_whole_or_not_there, 0,
                        part_of(80));
    tcase_add_loop_test(c, all_ranks_read_what_each_publishes, 0, 2);
    tcase_add_loop_test(c, several_segments_do_not_mix, 0, 2);
    tcase_add_test(c, a_fork_takes_nothing_away);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
