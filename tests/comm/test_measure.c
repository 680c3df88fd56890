/* SPDX-License-Identifier: BSD-3-Clause */
/* test_measure.c - timing messages between two hosts over a wire that this test
 * makes: what comes out is no faster than the wire, it ends when the wire, the
 * peer or the patience does, and the peer is told the end.
 */
#include "lib/comm/comm.h"
#include "lib/comm/prices.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum trouble { NONE, BREAKS, PEER_DIES, SILENT, REFUSES };

#define BOTH_WAYS ((int64_t)1 << 40) /* as in measure.c */
#define IN_A_ROW ((int64_t)1 << 41)

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
    double now = coll__now();

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
    if ((is_time && wire->trouble >= PEER_DIES && wire->trouble <= SILENT) ||
        coll__now() < wire->due)
        return 0;
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

/* latency, s; bandwidth, bytes a second; the longest message that is due */
static const struct {
    double alpha, speed;
    int64_t longest;
} wires[] = {{10e-6, 10e9, 1 << 20},
             {30e-6, 1e9, 1 << 20},
             {50e-6, 100e6, 64 << 10},
             {1e-3, 10e6, 64 << 10}};

/* A machine that is busy makes it longer, never shorter, but for half a step of
 * rounding. */
START_TEST(what_comes_out_is_no_faster_than_the_wire)
{
    struct wire wire = {.alpha = wires[_i].alpha, .beta = 1 / wires[_i].speed};
    struct coll__measured measured = {0};
    double halves;

    ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
    ck_assert_msg(measured.alpha >= wire.alpha / 1.2, "%g s", measured.alpha);
    ck_assert_msg(measured.beta > 0, "%g s a byte", measured.beta);
    ck_assert(measured.both >= 1);
    halves = 2 * log2(measured.alpha / 0.5e-6);
    ck_assert(fabs(halves - round(halves)) < 1e-6);
    ck_assert_int_ge(wire.longest, 64 << 10);
    ck_assert_int_le(wire.longest, wires[_i].longest);
    ck_assert_int_eq(wire.n_ends, 1);
    ck_assert_int_le(wire.n_rounds, 5 * 11 + 1);
    ck_assert_ptr_null(comm.links.trial);
}
END_TEST

/* Slow enough that a busy machine does not blur it; where it does, it makes each of the
 * two longer, and once in a few tries it does not. */
START_TEST(both_ways_share_what_is_half_duplex)
{
    double beta = INFINITY, share = INFINITY, times;

    for (int i = 0; i < 4; i++) {
        struct wire wire = {.alpha = 50e-6, .beta = 1 / 20e6, .is_half = _i};
        struct coll__measured measured = {0};

        ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
        beta = fmin(beta, measured.beta);
        share = fmin(share, measured.beta * measured.both);
    }
    times = share / beta;
    ck_assert_msg(fabs(times - (_i ? 2 : 1)) < 0.45, "%g times", times);
}
END_TEST

/* Noise makes both longer: once in a few tries it does not. */
START_TEST(the_next_message_follows_after_the_gap)
{
    static const double gaps[] = {2e-6, 20e-6, 50e-6};
    double gap = INFINITY;

    for (int i = 0; i < 4; i++) {
        struct wire wire = {.alpha = 50e-6, .beta = 1e-9, .gap = gaps[_i]};
        struct coll__measured measured = {0};

        ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
        ck_assert(measured.gap <= measured.alpha * 1.01);
        gap = fmin(gap, measured.gap);
    }
    ck_assert_msg(gap >= gaps[_i] / 1.2, "%g s", gap);
    ck_assert_msg(gap <= 2 * fmax(gaps[_i], 50e-6 / 16), "%g s", gap);
}
END_TEST

/* Those that take 20 ms are enough. */
START_TEST(a_slow_wire_takes_few_rounds)
{
    struct wire wire = {.alpha = 15e-3, .beta = 1e-9};
    struct coll__measured measured = {0};

    ck_assert_int_eq(measure(&wire, &measured), COLL_OK);
    ck_assert_int_le(wire.n_rounds, 4 * 3 + 1);
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

/* In the first round, the second and in one with a long message. */
START_TEST(whatever_happens_it_ends)
{
    static const int rounds[] = {0, 1, 14};

    for (size_t i = 0; i < ARRAY_LEN(rounds); i++) {
        struct wire wire = {.alpha = 1e-6,
                            .beta = 1e-10,
                            .trouble = troubles[_i].trouble,
                            .trouble_at = rounds[i]};
        struct coll__measured measured = {-1, -1, -1, -1};
        int rc = measure(&wire, &measured);

        if (wire.n_rounds <= wire.trouble_at) { /* busy: fewer rounds */
            ck_assert_int_eq(rc, COLL_OK);
            continue;
        }
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
    TCase *tc = tcase_create("wire");
    SRunner *runner;
    int n_failed;

    tcase_add_loop_test(tc, what_comes_out_is_no_faster_than_the_wire, 0,
                        (int)ARRAY_LEN(wires));
    tcase_add_loop_test(tc, both_ways_share_what_is_half_duplex, 0, 2);
    tcase_add_loop_test(tc, the_next_message_follows_after_the_gap, 0, 3);
    tcase_add_test(tc, a_slow_wire_takes_few_rounds);
    tcase_add_loop_test(tc, whatever_happens_it_ends, 0,
                        (int)ARRAY_LEN(troubles));
    tcase_set_timeout(tc, 20);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed != 0;
}
