/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ucx.c - what arrives over UCX, judged without UCX: the callback for
 * active messages is called by hand, with what no rank sends and with what UCX
 * delivers out of order; and who gets which of the process's workers.
 */
#include "tests/support/suite.h"
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <check.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define ME 1
#define SIZE 3
#define PEER 2

#define NUMBER ((uint64_t)7 << 32) /* of the communicator, at place 0 */

static struct ucx *comms[1];
static struct ucx_worker worker = {.comms = comms, .n_comms = 1};
static struct ucx_seat seats[SIZE];
static struct ucx ucx;
static struct ucx_peer *peers[COLL__CHANNELS * SIZE];
static int n_warnings;

static void count_warnings(enum coll_log_level level, const char *part,
                           const char *text, void *arg)
{
    (void)arg;
    n_warnings += level == COLL_LOG_WARN && !strcmp(part, "ucx") &&
                  strstr(text, "check that every rank") != NULL;
}

/* How many have been said; no call hands them over here. */
static int warnings(void)
{
    coll__log_deliver();
    return n_warnings;
}

static void set_up(void)
{
    coll__log_deliver(); /* what is left of the test before */
    ucx = (struct ucx){.base = {.rank = ME, .size = SIZE},
                       .worker = &worker,
                       .number = NUMBER,
                       .seats = seats,
                       .n_lanes = COLL__CHANNELS * SIZE,
                       .peers = peers};
    comms[0] = &ucx;
    worker.caller = &ucx;
    coll_set_log_handler(count_warnings, NULL);
    n_warnings = 0;
}

static void tear_down(void)
{
    for (int r = 0; r < COLL__CHANNELS * SIZE; r++) {
        for (unsigned i = 0; peers[r] && i < UCX_WINDOW; i++)
            free(peers[r]->in[i].copy);
        free(peers[r]);
        peers[r] = NULL;
    }
}

/* Have a message of n bytes, all `fill`, arrive. */
static void arrive(struct ucx_wire wire, size_t n, int fill)
{
    ucp_am_recv_param_t param = {0};
    void *bytes = malloc(n + 1);

    memset(bytes, fill, n + 1);
    ck_assert_int_eq(
        coll__ucx_arrived(&worker, &wire, sizeof(wire), bytes, n, &param),
        UCS_OK);
    free(bytes);
}

static struct ucx_wire data_wire(uint64_t seq, uint64_t len)
{
    return (struct ucx_wire){
        .kind = UCX_DATA, .lane = PEER, .to = NUMBER, .seq = seq, .len = len};
}

static struct coll__xfer receive(void *buf, size_t len)
{
    return (struct coll__xfer){
        .status = COLL_IN_PROGRESS, .peer = PEER, .buf = buf, .len = len};
}

static void post(struct coll__xfer *xfer)
{
    struct ucx_peer *peer = coll__ucx_peer(&ucx, PEER);

    coll__ucx_queue_put(&peer->recvs, xfer);
    coll__ucx_pull(peer);
}

/* Whatever came before, an honest message arrives. */
static void expect_delivery(uint64_t seq)
{
    unsigned char got[8] = {0};
    struct coll__xfer xfer = receive(got, sizeof(got));

    post(&xfer);
    arrive(data_wire(seq, sizeof(got)), sizeof(got), 'x');
    ck_assert_int_eq(xfer.status, COLL_OK);
    ck_assert_mem_eq(got, "xxxxxxxx", 8);
}

START_TEST(a_message_of_no_other_rank_is_dropped)
{
    static const int32_t sources[] = {
        -1, COLL__CHANNELS * SIZE, ME, SIZE + ME, INT_MIN, INT_MAX};

    for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
        struct ucx_wire wire = data_wire(0, 8);

        wire.lane = sources[i];
        arrive(wire, 8, 0);
        ck_assert_int_eq(warnings(), (int)i + 1);
    }
    for (int r = 0; r < COLL__CHANNELS * SIZE; r++)
        ck_assert_ptr_null(peers[r]);
    expect_delivery(0);
}
END_TEST

START_TEST(a_message_of_another_length_than_it_says_is_dropped)
{
    static const struct {
        uint64_t offset, len;
        size_t n;
    } lies[] = {
        {0, 8, 7},
        {0, 8, 0},
        {0, 0, 1},
        {8, 16, 8},                    /* no segment begins there */
        {UCX_SEGMENT, 8, 8},           /* beyond the end */
        {UCX_SEGMENT, UCX_SEGMENT, 0}, /* at the end */
        {0, UINT64_MAX, 8},
        {UINT64_MAX - UCX_SEGMENT + 1, UINT64_MAX, 8},
        {0, UCX_SEGMENT + 1, UCX_SEGMENT + 1}, /* should be two */
    };

    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct ucx_wire wire = data_wire(0, lies[i].len);

        wire.offset = lies[i].offset;
        arrive(wire, lies[i].n, 0);
        ck_assert_int_eq(warnings(), (int)i + 1);
    }
    expect_delivery(0);
}
END_TEST

START_TEST(a_header_of_another_size_or_kind_is_dropped)
{
    ucp_am_recv_param_t param = {0};
    struct {
        struct ucx_wire wire;
        char more[8];
    } long_header = {.wire = data_wire(0, 8)};
    struct ucx_wire wire = data_wire(0, 8);

    coll__ucx_arrived(&worker, NULL, 0, "12345678", 8, &param);
    coll__ucx_arrived(&worker, &wire, sizeof(wire) - 1, "12345678", 8, &param);
    coll__ucx_arrived(&worker, &long_header, sizeof(wire) + 8, "12345678", 8,
                      &param);
    wire.kind = UCX_BYE + 1;
    arrive(wire, 8, 0);
    wire.kind = UCX_ACK; /* which has no data */
    arrive(wire, 8, 0);
    ck_assert_int_eq(warnings(), 5);
    expect_delivery(0);
}
END_TEST

START_TEST(a_message_beyond_the_credits_is_dropped)
{
    struct ucx_wire wire = data_wire(UCX_WINDOW, 8);

    arrive(wire, 8, 0);
    arrive(data_wire(UINT64_MAX, 8), 8, 0);
    ck_assert_int_eq(warnings(), 2);
    arrive(data_wire(UCX_WINDOW - 1, 8), 8, 0);
    ck_assert_int_eq(warnings(), 2);
    arrive(data_wire(UCX_WINDOW - 1, 8), 8, 0); /* twice */
    ck_assert_int_eq(warnings(), 3);
    expect_delivery(0);
    arrive(data_wire(0, 8), 8, 0); /* again, when it was taken */
    ck_assert_int_eq(warnings(), 4);
}
END_TEST

START_TEST(credit_for_what_was_never_sent_is_refused)
{
    struct ucx_wire wire = {
        .kind = UCX_ACK, .lane = PEER, .to = NUMBER, .taken = 1};

    arrive(wire, 0, 0);
    ck_assert_int_eq(warnings(), 1);
    ck_assert_uint_eq(peers[PEER]->acked, 0);
    expect_delivery(0);
}
END_TEST

START_TEST(an_acknowledgement_that_was_overtaken_changes_nothing)
{
    struct ucx_peer *peer = coll__ucx_peer(&ucx, PEER);
    struct ucx_wire wire = {
        .kind = UCX_ACK, .lane = PEER, .to = NUMBER, .taken = 3};

    peer->sent = 4;
    for (int i = 0; i < 4; i++)
        peer->out[i].n = 100;
    peer->in_flight = 400;
    arrive(wire, 0, 0);
    ck_assert_uint_eq(peer->acked, 3);
    ck_assert_uint_eq(peer->in_flight, 100);
    wire.taken = 2;
    arrive(wire, 0, 0);
    ck_assert_uint_eq(peer->acked, 3);
    ck_assert_uint_eq(peer->in_flight, 100);
    ck_assert_int_eq(warnings(), 0);
}
END_TEST

/* _i: the order in which three messages arrive.  The receives are posted
 * before, between, and after. */
START_TEST(receives_match_by_number_whatever_the_order_of_arrival)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (int n_early = 0; n_early <= 3; n_early++) {
        unsigned char got[3][4] = {{0}};
        struct coll__xfer xfers[3];

        for (int k = 0; k < 3; k++)
            xfers[k] = receive(got[k], sizeof(got[k]));
        for (int k = 0; k < n_early; k++)
            post(&xfers[k]);
        for (int i = 0; i < 3; i++)
            arrive(
                data_wire(3 * (uint64_t)n_early + (uint64_t)orders[_i][i], 4),
                4, 'a' + orders[_i][i]);
        for (int k = n_early; k < 3; k++)
            post(&xfers[k]);
        coll__ucx_pull(peers[PEER]);
        for (int k = 0; k < 3; k++) {
            ck_assert_int_eq(xfers[k].status, COLL_OK);
            ck_assert_int_eq(got[k][0], 'a' + k);
            ck_assert_int_eq(got[k][3], 'a' + k);
        }
    }
    ck_assert_uint_eq(peers[PEER]->taken, 12);
}
END_TEST

START_TEST(the_rest_of_a_mismatched_message_is_dropped)
{
    unsigned char got[4] = {0};
    struct coll__xfer wrong = receive(got, 4), right = receive(got, 4);
    struct ucx_wire wire = data_wire(0, UCX_SEGMENT + 9);

    post(&wrong);
    arrive(wire, UCX_SEGMENT, 'a');
    ck_assert_int_eq(wrong.status, COLL_ERR_MISMATCH);
    ck_assert_uint_eq(wrong.got_len, UCX_SEGMENT + 9);
    wire.seq = 1;
    wire.offset = UCX_SEGMENT;
    arrive(wire, 9, 'b');
    post(&right);
    arrive(data_wire(2, 4), 4, 'c');
    coll__ucx_pull(peers[PEER]);
    ck_assert_int_eq(right.status, COLL_OK);
    ck_assert_mem_eq(got, "cccc", 4);
    ck_assert_uint_eq(peers[PEER]->taken, 3);
}
END_TEST

START_TEST(what_came_before_the_peer_was_lost_can_be_received)
{
    unsigned char got[4] = {0};
    struct coll__xfer first = receive(got, 4), second = receive(got, 4);

    arrive(data_wire(0, 4), 4, 'a');
    coll__ucx_lose(peers[PEER], COLL_ERR_PEER);
    post(&first);
    ck_assert_int_eq(first.status, COLL_OK);
    ck_assert_mem_eq(got, "aaaa", 4);
    post(&second);
    coll__ucx_spoil(peers[PEER], &peers[PEER]->recvs);
    ck_assert_int_eq(second.status, COLL_ERR_PEER);
}
END_TEST

/* ---- workers --------------------------------------------------------------- */

/* Have a communicator of this rank alone at the process's worker. */
static struct ucx *come(const struct coll__rails *rails)
{
    struct ucx *come = calloc(1, sizeof(*come));

    ck_assert_ptr_nonnull(come);
    come->base = (struct coll__tp){.rank = 0, .size = 1};
    come->rails = rails;
    ck_assert_int_eq(coll__ucx_worker_get(come, 0), COLL_OK);
    return come;
}

static void go(struct ucx *gone)
{
    struct ucx_worker *left = gone->worker;

    ck_assert_int_eq(coll__ucx_forget(gone), 1);
    coll__ucx_free(gone);
    coll__ucx_worker_put(left, 1);
}

/* Its peers are told that the worker ends: a communicator that another thread
 * opens meanwhile would keep it, and they would wait for a farewell. */
START_TEST(nobody_joins_a_worker_that_its_last_communicator_leaves)
{
    struct coll__rails rails = {.n = 0};
    struct ucx *first = come(&rails), *second = come(&rails), *third;

    ck_assert_ptr_eq(second->worker, first->worker);
    ck_assert(!coll__ucx_worker_retire_last(second->worker));
    go(second);
    ck_assert(coll__ucx_worker_retire_last(first->worker));
    ck_assert(!coll__ucx_worker_exists(0, rails.devices));
    third = come(&rails);
    ck_assert_ptr_ne(third->worker, first->worker);
    go(first);
    ck_assert(coll__ucx_worker_exists(0, rails.devices));
    go(third);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ucx");
    TCase *tcase = suite_case(suite, "arrival", 20);
    TCase *workers = suite_case(suite, "workers", 20);

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_message_of_no_other_rank_is_dropped);
    tcase_add_test(tcase, a_message_of_another_length_than_it_says_is_dropped);
    tcase_add_test(tcase, a_header_of_another_size_or_kind_is_dropped);
    tcase_add_test(tcase, a_message_beyond_the_credits_is_dropped);
    tcase_add_test(tcase, credit_for_what_was_never_sent_is_refused);
    tcase_add_test(tcase,
                   an_acknowledgement_that_was_overtaken_changes_nothing);
    tcase_add_loop_test(
        tcase, receives_match_by_number_whatever_the_order_of_arrival, 0, 6);
    tcase_add_test(tcase, the_rest_of_a_mismatched_message_is_dropped);
    tcase_add_test(tcase, what_came_before_the_peer_was_lost_can_be_received);
    tcase_add_test(workers,
                   nobody_joins_a_worker_that_its_last_communicator_leaves);
    return suite_run(suite);
}
