/* SPDX-License-Identifier: BSD-3-Clause */
/* test_measure.c - timing messages between two hosts over a wire and by a clock that
 * are the test's: what comes out is what the wire is, it ends when the wire, the peer
 * or the patience does, and the peer is told the end.
 *
 * The linker gives clock_gettime() to what is here (local.mk).  The clock stands
 * still but for polls: one that finds a message under way sets it to the arrival.
 */
#include "tests/support/suite.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/prices.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum trouble { NONE, BREAKS, PEER_DIES, SILENT, REFUSES };

#define BOTH_WAYS ((int64_t)1 << 40) /* as in measure.c */
#define IN_A_ROW ((int64_t)1 << 41)

static double now = 1000;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)((now - (double)time->tv_sec) * 1e9);
    return 0;
}

/* A wire with an honest peer at its end: what is received comes when all that
 * was sent has arrived and the answer has come back.  Half duplex: what comes waits
 * for what goes. */
struct wire {
    struct coll__tp base; /* first, so that the two pointers are equal */
    struct coll_comm *comm;
    double alpha, beta, gap;
    int is_half;
    enum trouble trouble;
    int trouble_at; /* the round in which it comes */
    double due;
    struct coll__xfer *recv;
    int n_rounds, n_ends;
    int64_t longest, promised; /* promised: by the last order, 0 none */
    int64_t awaited;           /* that is to come meanwhile, 0 none */
    int64_t row;               /* short messages that are to follow */
};

static int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

static void wire_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct wire *wire = (struct wire *)tp;
    int64_t order = -1;

    xfer->status = COLL_OK;
    if (wire->row) {
        ck_assert_uint_eq(xfer->len, sizeof(order));
        wire->row--;
        wire->due += wire->gap;
    } else if (wire->promised) {
        ck_assert_int_eq((int64_t)xfer->len, wire->promised);
        wire->promised = 0;
    } else {
        ck_assert_uint_eq(xfer->len, sizeof(order));
        memcpy(&order, xfer->buf, sizeof(order));
        wire->n_ends += order < 0;
        wire->n_rounds++;
        wire->row = order > IN_A_ROW ? order - IN_A_ROW : 0;
        wire->promised = order > 0 && !wire->row ? order & ~BOTH_WAYS : 0;
        wire->awaited =
            wire->promised && order > BOTH_WAYS ? wire->promised : 0;
        wire->longest = max_i64(wire->promised, wire->longest);
        wire->due = now + 2 * wire->alpha;
    }
    wire->due += (double)xfer->len * wire->beta;
}

static void wire_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct wire *wire = (struct wire *)tp;

    if (wire->awaited) { /* before as much is sent */
        ck_assert_int_eq((int64_t)xfer->len, wire->awaited);
        wire->due += wire->is_half ? (double)xfer->len * wire->beta : 0;
        wire->awaited = 0;
    } else {
        ck_assert_uint_eq(xfer->len, sizeof(int64_t));
        ck_assert_int_eq(wire->promised + wire->row,
                         0); /* all of it was sent */
    }
    xfer->status = COLL_IN_PROGRESS;
    wire->recv = xfer;
}

static int wire_poll(struct coll__tp *tp)
{
    struct wire *wire = (struct wire *)tp;
    int is_time = wire->n_rounds > wire->trouble_at;

    if (!wire->recv)
        return 0;
    if (is_time && wire->trouble == BREAKS)
        return COLL_ERR_TRANSPORT;
    if (is_time && wire->trouble == PEER_DIES)
        coll__comm_set_failure(wire->comm, COLL_ERR_PEER, "rank 1 died");
    if (is_time && wire->trouble >= PEER_DIES && wire->trouble <= SILENT) {
        now += 1e-3;
        return 0;
    }
    now = fmax(now, wire->due);
    wire->recv->status =
        is_time && wire->trouble == REFUSES ? COLL_ERR_PEER : COLL_OK;
    wire->recv = NULL;
    return 1;
}

static const struct coll__transport fake = {
    .name = "fake", .send = wire_send, .recv = wire_recv, .poll = wire_poll};

static struct coll__peer peers[2];
static struct coll__tp *to[2];
static struct coll_comm comm;

/* Measure over that wire; the communicator may keep what is under way. */
static int measure(struct wire *wire, struct coll__measured *measured)
{
    comm = (struct coll_comm){.size = 2,
                              .n_hosts = 2,
                              .peers = peers,
                              .timeout = wire->trouble == SILENT ? 0.3 : 15};
    pthread_mutex_init(&comm.failure.lock, NULL);
    for (int r = 0; r < 2; r++)
        peers[r] = (struct coll__peer){
            .host = r, .local_size = 1, .local_cores = 1, .n_cores = 1};
    comm.links.routes.to = to;
    to[1] = &wire->base;
    wire->base.ops = &fake;
    wire->comm = &comm;
    return coll__comm_measure(&comm, 0, 1, measured);
}

/* As much as `value`, which is rounded to half powers of two. */
static int is_about(double measured, double value)
{
    return fabs(log2(measured / value)) < 0.26;
}

/* latency, s; bandwidth, bytes a second; the longest message that is due */
static const struct {
    double alpha, speed;
    int64_t longest;
} wires[] = {{10e-6, 10e9, 1 << 20},
             {30e-6, 1e9, 1 << 20},
             {50e-6, 100e6, 64 << 10},
             {1e-3, 10e6, 64 << 10}};

START_TEST(what_comes_out_is_what_the_wire_is)
{
    struct wire wire = {.alpha = wires[_i].alpha, .beta = 1 / wires[_i].speed};
    struct coll__measured measured = {0};
    double halves;

    ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
    ck_assert_msg(is_about(measured.alpha, wire.alpha), "%g s", measured.alpha);
    ck_assert_msg(is_about(measured.beta, wire.beta), "%g s a byte",
                  measured.beta);
    ck_assert_msg(measured.both == 1, "%g times", measured.both);
    halves = 2 * log2(measured.alpha / 0.5e-6);
    ck_assert(fabs(halves - round(halves)) < 1e-6);
    ck_assert_int_eq(wire.longest, wires[_i].longest);
    ck_assert_int_eq(wire.n_ends, 1);
    ck_assert_int_le(wire.n_rounds, 5 * 11 + 1);
    ck_assert_ptr_null(comm.links.trial);
}
END_TEST

START_TEST(both_ways_share_what_is_half_duplex)
{
    struct wire wire = {.alpha = 50e-6, .beta = 1 / 20e6, .is_half = _i};
    struct coll__measured measured = {0};

    ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
    ck_assert_msg(is_about(measured.both, _i ? 2 : 1), "%g times",
                  measured.both);
}
END_TEST

/* No less than a 16th of the latency. */
START_TEST(the_next_message_follows_after_the_gap)
{
    static const double gaps[] = {2e-6, 20e-6, 50e-6};
    struct wire wire = {.alpha = 50e-6, .beta = 1e-9, .gap = gaps[_i]};
    struct coll__measured measured = {0};

    ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
    ck_assert(measured.gap <= measured.alpha * 1.01);
    ck_assert_msg(is_about(measured.gap, fmax(gaps[_i], measured.alpha / 16)),
                  "%g s", measured.gap);
}
END_TEST

/* One that takes 20 ms is enough, after the first. */
START_TEST(a_slow_wire_takes_few_rounds)
{
    struct wire wire = {.alpha = 15e-3, .beta = 1e-9};
    struct coll__measured measured = {0};

    ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
    ck_assert_int_eq(wire.n_rounds, 4 * 2 + 1);
    ck_assert_int_eq(wire.longest, 64 << 10);
    ck_assert(measured.alpha <= 10e-3 * 1.2); /* no network is slower */
}
END_TEST

static const struct {
    enum trouble trouble;
    int status;
    const char *words;
} troubles[] = {{BREAKS, COLL_ERR_TRANSPORT, ""},
                {PEER_DIES, COLL_ERR_PEER, "rank 1 died"},
                {SILENT, COLL_ERR_TIMEOUT, "could not exchange a message"},
                {REFUSES, COLL_ERR_PEER, "could not exchange a message"}};

/* In the first round, the second, in one with a row and one with a long message. */
START_TEST(whatever_happens_it_ends)
{
    static const int rounds[] = {0, 1, 14, 25};

    for (size_t i = 0; i < ARRAY_LEN(rounds); i++) {
        struct wire wire = {.alpha = 1e-6,
                            .beta = 1e-10,
                            .trouble = troubles[_i].trouble,
                            .trouble_at = rounds[i]};
        struct coll__measured measured = {-1, -1, -1, -1};
        int rc = measure(&wire, &measured);

        ck_assert_int_eq(rc, troubles[_i].status);
        ck_assert_ptr_nonnull(strstr(coll_last_error(), troubles[_i].words));
        ck_assert(measured.alpha < 0 && measured.beta < 0);
        ck_assert_ptr_nonnull(comm.links.trial); /* until the wire is closed */
        free(comm.links.trial);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measure");
    TCase *tc = suite_case(suite, "wire", 20);

    tcase_add_loop_test(tc, what_comes_out_is_what_the_wire_is, 0,
                        (int)ARRAY_LEN(wires));
    tcase_add_loop_test(tc, both_ways_share_what_is_half_duplex, 0, 2);
    tcase_add_loop_test(tc, the_next_message_follows_after_the_gap, 0, 3);
    tcase_add_test(tc, a_slow_wire_takes_few_rounds);
    tcase_add_loop_test(tc, whatever_happens_it_ends, 0,
                        (int)ARRAY_LEN(troubles));
    return suite_run(suite);
}
