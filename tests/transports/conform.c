/* SPDX-License-Identifier: BSD-3-Clause */
/* conform.c - one suite over every transport: what transport.h promises.
 *
 * Each case runs over every transport that this machine has, with the ranks as
 * threads and as processes, of 1 to 5 ranks; or over RDMA between hosts (conform_far.h).
 * A rank exchanges with all whom its transport reaches, at once and both ways.
 */
#include "tests/transports/conform_far.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MANY 3000
#define IN_FLIGHT 84

/* The longest go the way of the one before, and take the thread sanitizer minutes. */
static size_t few(void)
{
    return IS_THREAD_SANITIZED || getenv("TEST_QUICK") ? 1 : 0;
}

static const size_t sizes[] = {
    0, 1, 7, 24, 32, 33, 4 * KIB - 1, 64 * KIB + 13, MIB + 1, 5 * MIB};
/* TEST_LONG tries them all; else the first of them are, in quick variants fewer.  The
 * thread sanitizer sees threads alone. */
static const struct {
    int size, are_processes;
} worlds[] = {{3, 0}, {1, 0}, {2, 1}, {5, 0}, {3, 1}, {2, 0}, {1, 1}, {5, 1}};

/* ---- the cases ---------------------------------------------------------- */

/* A size after the other; the receive first, the send first, or the send so
 * early that it arrives before the receive. */
static void exchange_every_size(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];
    unsigned k = 0;

    for (size_t s = 0; s < ARRAY_LEN(sizes) - few(); s++)
        for (int order = 0; order < 3; order++, k++) {
            for (int i = 0; order == 0 && i < rank->n_peers; i++)
                conform_post_recv(rank, &recvs[i], rank->peers[i], k, sizes[s]);
            for (int i = 0; i < rank->n_peers; i++)
                conform_post_send(rank, &sends[i], rank->peers[i], k, sizes[s]);
            if (order == 2)
                conform_poll_for(rank, 0.005);
            for (int i = 0; order > 0 && i < rank->n_peers; i++)
                conform_post_recv(rank, &recvs[i], rank->peers[i], k, sizes[s]);
            for (int i = 0; i < rank->n_peers; i++)
                conform_finish(rank, &sends[i], &recvs[i], 1, k);
        }
}

/* Small and large ones by turns, all under way at once, with each peer. */
static void keep_order(struct rank *rank)
{
    static const size_t mixed[] = {8, 0, 300 * KIB, 1, 9 * KIB, 70 * KIB, 33};
    struct coll__xfer(*sends)[IN_FLIGHT] = calloc(MAX_RANKS, sizeof(*sends));
    struct coll__xfer(*recvs)[IN_FLIGHT] = calloc(MAX_RANKS, sizeof(*recvs));

    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < IN_FLIGHT; k++)
            conform_post_send(rank, &sends[i][k], rank->peers[i], k,
                              mixed[k % ARRAY_LEN(mixed)]);
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < IN_FLIGHT; k++)
            conform_post_recv(rank, &recvs[i][k], rank->peers[i], k,
                              mixed[k % ARRAY_LEN(mixed)]);
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, sends[i], recvs[i], IN_FLIGHT, 0);
    free(sends);
    free(recvs);
}

static size_t bytes_done(const struct coll__xfer *sends, int n)
{
    size_t bytes = 0;

    for (int i = 0; i < n; i++)
        bytes += sends[i].status == COLL_IN_PROGRESS ? 0 : sends[i].len;
    return bytes;
}

static int n_done(const struct coll__xfer *sends, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += sends[i].status != COLL_IN_PROGRESS;
    return count;
}

/* Nobody receives at first: only so many sends may complete.  Then all do. */
static void outrun(struct rank *rank, int n, size_t len, int most)
{
    struct coll__xfer *sends[MAX_RANKS], *recvs[MAX_RANKS];

    for (int i = 0; i < rank->n_peers; i++) {
        sends[i] = calloc((size_t)n, sizeof(**sends));
        recvs[i] = calloc((size_t)n, sizeof(**recvs));
        for (int k = 0; k < n; k++)
            conform_post_send(rank, &sends[i][k], rank->peers[i], (unsigned)k,
                              len ? len : (size_t)k % 41);
    }
    conform_poll_for(rank, 0.2);
    for (int i = 0; i < rank->n_peers; i++) {
        EXPECT(rank, n_done(sends[i], n) <= most,
               "%d sends completed that nobody received", n_done(sends[i], n));
        EXPECT(rank, bytes_done(sends[i], n) <= 8 * MIB,
               "%zu bytes left that nobody received", bytes_done(sends[i], n));
    }
    conform_barrier(rank); /* nobody receives before all have counted */
    for (int i = 0; i < rank->n_peers; i++)
        for (int k = 0; k < n; k++)
            conform_post_recv(rank, &recvs[i][k], rank->peers[i], (unsigned)k,
                              len ? len : (size_t)k % 41);
    for (int i = 0; i < rank->n_peers; i++) {
        conform_finish(rank, sends[i], recvs[i], n, 0);
        free(sends[i]);
        free(recvs[i]);
    }
}

/* Sockets hold bytes: those of a message's head, too. */
static void outrun_by_messages(struct rank *rank)
{
    int is_by_bytes = !strcmp(rank->tp->ops->name, "tcp");

    if (!is_by_bytes)
        outrun(rank, MANY, 0, 1024);
    else if (rank->size == 2)
        outrun(rank, 100 * MANY, 0, (int)(8 * MIB / 40));
}

/* With 5 ranks it would take 400 MB, and show nothing new. */
static void outrun_by_bytes(struct rank *rank)
{
    if (rank->size <= 3)
        outrun(rank, 40, 256 * KIB, 40);
}

/* ---- reductions --------------------------------------------------------- */

static void reduce_once(struct rank *rank, size_t count, int variant)
{
    int is_f64 = variant & 1, is_recv_first = variant >> 1 & 1;
    struct coll__xfer xfers[2][MAX_RANKS], *sends = xfers[0], *recvs = xfers[1];

    for (int turn = 0; turn < 2; turn++) {
        int is_recv = turn != is_recv_first;

        for (int i = 0; i < rank->n_peers; i++) {
            xfers[is_recv][i] = (struct coll__xfer){
                .peer = rank->peers[i],
                .channel = rank->channel,
                .bytes.is_exchange = 1,
                .reduce = is_f64 ? conform_sum_f64 : conform_sum_i32};
            conform_post_elements(rank, &xfers[is_recv][i], count, is_recv,
                                  (unsigned)variant >> 2);
        }
        if (turn == 0)
            conform_poll_for(rank, 0.002);
    }
    conform_wait(rank, recvs, rank->n_peers);
    conform_wait(rank, sends, rank->n_peers);
    for (int i = 0; i < rank->n_peers; i++) {
        conform_expect_elements(rank, &recvs[i], is_f64);
        conform_free(sends[i].buf);
        conform_free(recvs[i].buf);
    }
}

static void reduce_on_receive(struct rank *rank)
{
    static const size_t counts[] = {0, 1, 3, 5, 1000, 4097, 70001, 300001};

    for (size_t c = 0; c < ARRAY_LEN(counts) - few(); c++)
        for (int variant = 0; variant < 8; variant++)
            reduce_once(rank, counts[c], variant);
}

/* ---- mismatch, peek, reach ---------------------------------------------- */

/* What is sent where the receive expects conform_sig_of(1, 64) and 64 bytes. */
static const struct {
    struct coll__signature sig;
    size_t len;
} wrongs[] = {
    {{.seq = 2, .op = 3, .root = 1, .count = 64}, 64},
    {{.seq = 1, .op = 4, .root = 1, .count = 64}, 64},
    {{.seq = 1, .op = 3, .root = 2, .count = 64}, 64},
    {{.seq = 1, .op = 3, .root = 1, .count = 65}, 64},
    {{.seq = 1, .collective = 1, .op = 3, .root = 1, .count = 64}, 64},
    {{.seq = 1, .op = 3, .root = 1, .count = 64}, 63},
    {{.seq = 1, .op = 3, .root = 1, .count = 64}, 0},
    {{.seq = 1, .op = 3, .root = 1, .count = 64}, 100 * KIB},
    {{.seq = 1, .op = 3, .root = 1, .count = 64}, 3 * MIB},
};

/* rank->index chooses what is wrong and, by its parity, who comes first. */
static void disagree(struct rank *rank)
{
    const size_t w = (size_t)rank->index / 2;
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];

    for (int i = 0; i < rank->n_peers; i++) {
        sends[i] =
            (struct coll__xfer){.peer = rank->peers[i],
                                .channel = rank->channel,
                                .len = wrongs[w].len,
                                .bytes.is_exchange = 1,
                                .buf = conform_new_payload(
                                    wrongs[w].len, rank->me, rank->peers[i], 1),
                                .sig = wrongs[w].sig};
        if (rank->index % 2)
            conform_post_recv(rank, &recvs[i], rank->peers[i], 1, 64);
        rank->tp->ops->send(rank->tp, &sends[i]);
    }
    conform_poll_for(rank, 0.005);
    for (int i = 0; !(rank->index % 2) && i < rank->n_peers; i++)
        conform_post_recv(rank, &recvs[i], rank->peers[i], 1, 64);
    conform_wait(rank, recvs, rank->n_peers);
    for (int i = 0; i < rank->n_peers; i++) {
        EXPECT(rank, recvs[i].status == COLL_ERR_MISMATCH, "%s",
               coll_strerror(recvs[i].status));
        EXPECT(rank, recvs[i].got_len == wrongs[w].len, "%zu came",
               (size_t)recvs[i].got_len);
        EXPECT(rank,
               !memcmp(&recvs[i].got, &wrongs[w].sig, sizeof(recvs[i].got)));
    }
    conform_meet(rank); /* the others' may not have gone yet */
    conform_poll_for(rank, 0.005);
    conform_barrier(rank);
    rank->tp->ops->close(rank->tp, 0); /* as a failed communicator would */
    conform_barrier(rank);
    for (int i = 0; i < rank->n_peers; i++) {
        conform_free(sends[i].buf);
        conform_free(recvs[i].buf);
    }
}

/* What arrived and nobody took shows; what was taken shows no more. */
static void peek_at_peers(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];
    struct coll__tp *tp = rank->tp;
    struct coll__signature sig, want = conform_sig_of(5, 48);
    double deadline = coll__now() + patient(WAIT_SECONDS);

    for (int i = 0; i < rank->n_peers; i++)
        EXPECT(rank, !tp->ops->peek(tp, rank->peers[i], rank->channel, &sig));
    conform_barrier(rank);
    for (int i = 0; i < rank->n_peers; i++)
        conform_post_send(rank, &sends[i], rank->peers[i], 5, 48);
    for (int i = 0; i < rank->n_peers; i++) {
        while (!tp->ops->peek(tp, rank->peers[i], rank->channel, &sig)) {
            EXPECT(rank, coll__now() < deadline, "the message did not show");
            conform_poll(rank);
        }
        EXPECT(rank, !memcmp(&sig, &want, sizeof(sig)));
    }
    for (int i = 0; i < rank->n_peers; i++)
        conform_post_recv(rank, &recvs[i], rank->peers[i], 5, 48);
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, &sends[i], &recvs[i], 1, 5);
    for (int i = 0; i < rank->n_peers; i++)
        EXPECT(rank, !tp->ops->peek(tp, rank->peers[i], rank->channel, &sig));
}

/* Whom the transport is for; a new transport states it here. */
static int is_for(const char *transport, int me, int peer, int is_same_host)
{
    if (!strcmp(transport, "self"))
        return me == peer;
    if (!strcmp(transport, "shm"))
        return me != peer && is_same_host;
    return me != peer;
}

static void expect_reach(struct rank *rank, int is_same_host)
{
    struct coll__tp *tp = rank->tp;

    for (int r = 0; r < rank->size; r++) {
        struct coll__link link = {.alpha = -1, .beta = -1};
        int rc = tp->ops->reaches(tp, r, &link);

        if (!is_for(tp->ops->name, rank->me, r, is_same_host)) {
            EXPECT(rank, rc == COLL_ERR_PEER, "rank %d is in reach", r);
            continue;
        }
        EXPECT(rank, rc == COLL_OK, "rank %d is out of reach", r);
        EXPECT(rank, link.alpha > 0 && link.alpha < 1, "%g s", link.alpha);
        EXPECT(rank, link.beta > 0 && link.beta < 1e-6, "%g s", link.beta);
    }
}

static void reach_neighbours(struct rank *rank) { expect_reach(rank, 1); }

static void reach_far(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];

    expect_reach(rank, 0);
    for (int i = 0; i < rank->n_peers; i++) {
        conform_post_send(rank, &sends[i], rank->peers[i], 7, 1000);
        conform_post_recv(rank, &recvs[i], rank->peers[i], 7, 1000);
    }
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, &sends[i], &recvs[i], 1, 7);
}

/* ---- all cases over all transports -------------------------------------- */

#define STRIDE 1000 /* loop indices of each transport */

static int n_worlds(void)
{
    if (conform_far.size)
        return 1;
    if (!getenv("TEST_QUICK"))
        return getenv("TEST_LONG") ? (int)ARRAY_LEN(worlds) : 5;
    return IS_THREAD_SANITIZED ? 2 : 3;
}

/* Decode Check's loop index: the transport, the ranks, and the variant. */
static void run(int i, struct scenario scenario)
{
    int n = n_worlds(), rest = i % STRIDE;

    scenario.transport = coll__transports[i / STRIDE];
    scenario.are_processes = worlds[rest % n].are_processes;
    scenario.size = worlds[rest % n].size;
    scenario.index = rest / n;
    conform_run(&scenario);
}

#define CASE(name, ...)                                                        \
    START_TEST(name)                                                           \
    {                                                                          \
        run(_i, (struct scenario){.victim = -1, __VA_ARGS__});                 \
    }                                                                          \
    END_TEST

CASE(every_size_arrives_in_any_order_of_posting, .body = exchange_every_size)
CASE(order_is_kept_with_many_in_flight, .body = keep_order)
CASE(many_unreceived_messages_hold_the_sender_up, .body = outrun_by_messages)
CASE(many_unreceived_bytes_hold_the_sender_up, .body = outrun_by_bytes)
CASE(a_receive_reduces_whatever_the_length, .body = reduce_on_receive)

/* Two ranks will do, for what can be wrong in many ways. */
START_TEST(a_mismatch_shows_what_came)
{
    conform_run(&(struct scenario){.transport = coll__transports[_i / STRIDE],
                                   .are_processes = _i % 2,
                                   .size = 2,
                                   .index = _i % STRIDE / 2,
                                   .is_closed_by_body = 1,
                                   .victim = -1,
                                   .body = disagree});
}
END_TEST

CASE(the_same_bytes_reach_all_past_one_that_waits, .body = conform_share)
CASE(what_goes_onward_arrives, .body = conform_onward)
CASE(what_is_put_ahead_is_taken_in_order, .body = conform_put)
CASE(peek_shows_what_nobody_took, .body = peek_at_peers)
CASE(what_nobody_wants_lets_a_rank_sleep, .body = conform_sleep_beside)
CASE(a_message_wakes_behind_long_ones, .body = conform_wake_behind)
CASE(many_are_heard_behind_long_ones, .body = conform_many_behind)
CASE(neighbours_are_in_reach_or_not, .body = reach_neighbours)
CASE(other_hosts_are_in_reach_or_not, .body = reach_far, .is_spread = 1)
CASE(closing_amid_transfers_is_clean, .body = conform_abandon,
     .is_closed_by_body = 1)
CASE(closing_unused_is_clean, .body = conform_check)
CASE(channels_have_orders_of_their_own, .body = conform_channels)
CASE(receives_may_wait_until_peek_shows_their_message, .body = conform_show)
CASE(what_nobody_takes_holds_up_no_other_channel, .body = conform_pass_by)
CASE(what_takes_long_is_passed_on_the_first_channel, .body = conform_overtake)
CASE(random_scripts_end_well, .body = conform_script)
CASE(two_ranks_share_a_connection_whoever_calls, .body = conform_call)
CASE(a_long_message_goes_by_all_rails, .body = conform_rails)

/* Check's loop index holds the transport and the number of ranks. */
static void run_processes_of(int i, struct scenario scenario)
{
    scenario.transport = coll__transports[i / STRIDE];
    scenario.are_processes = 1;
    scenario.size = i % STRIDE;
    scenario.is_closed_by_body = 1;
    conform_run(&scenario);
}

START_TEST(a_dead_peer_ends_its_transfers)
{
    run_processes_of(_i,
                     (struct scenario){.victim = 0, .body = conform_outlive});
}
END_TEST

START_TEST(a_peer_may_die_at_any_moment)
{
    conform_run(&(struct scenario){.transport = coll__transports[_i / STRIDE],
                                   .size = 2,
                                   .are_processes = 1,
                                   .index = _i % STRIDE,
                                   .is_closed_by_body = 1,
                                   .victim = 0,
                                   .body = conform_die_young});
}
END_TEST

START_TEST(random_scripts_end_well_when_connected_at_first_use)
{
    coll__limit_assume(LIMIT_UCX_MESH, 0);
    run(_i, (struct scenario){.victim = -1, .body = conform_script});
}
END_TEST

START_TEST(a_failure_to_open_on_one_rank_is_everybodys)
{
    run_processes_of(_i, (struct scenario){.victim = -1,
                                           .is_opened_by_body = 1,
                                           .body = conform_fail_to_open});
}
END_TEST

static void add_case(TCase *tcase, const TTest *test, int transport,
                     int n_variants)
{
    int first = transport * STRIDE;

    tcase_add_loop_test(tcase, test, first, first + n_variants * n_worlds());
}

/* The other transports hear of a death from the control connections. */
static void add_death_cases(TCase *tcase, int transport, int is_quick)
{
    int first = transport * STRIDE;

    tcase_add_loop_test(tcase, a_dead_peer_ends_its_transfers, first + 2,
                        first + (conform_far.size ? 3 : 4));
    tcase_add_loop_test(tcase, a_peer_may_die_at_any_moment, first,
                        first + (is_quick ? 6 : 40));
}

static void add_ucx_cases(TCase *tcase, int transport)
{
    int first = transport * STRIDE;

    if (!conform_far.size) /* for RDMA alone such a rank does without */
        tcase_add_loop_test(tcase, a_failure_to_open_on_one_rank_is_everybodys,
                            first + 2, first + 4);
    add_case(tcase, random_scripts_end_well_when_connected_at_first_use,
             transport, 1);
}

/* Every buffer in a region, for transports that read there. */
static void use_regions(void)
{
    conform_in_regions = 1;
    coll__limit_assume(LIMIT_MEM_MIN, 0);
}

/* Every byte encrypted. */
static void seal(void) { setenv("COLL_NET_ENCRYPT", "1", 1); }

/* Long messages go by several connections. */
static void add_rails(void)
{
    conform_is_spread = 1;
    coll__limit_assume(LIMIT_TCP_RAILS, N_RAILS);
}

static void seal_rails(void)
{
    seal();
    add_rails();
}

static TCase *cases_of(int transport, const char *case_name,
                       void (*set_up)(void))
{
    /* a transport that goes another way has its variants tried on its own one */
    int is_quick = getenv("TEST_QUICK") || set_up;
    const char *name = coll__transports[transport]->name;
    TCase *tcase = tcase_create(case_name);

    if (set_up)
        tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_set_timeout(tcase, 5 * WAIT_SECONDS);
    add_case(tcase, every_size_arrives_in_any_order_of_posting, transport, 1);
    add_case(tcase, order_is_kept_with_many_in_flight, transport, 1);
    add_case(tcase, many_unreceived_messages_hold_the_sender_up, transport, 1);
    add_case(tcase, many_unreceived_bytes_hold_the_sender_up, transport, 1);
    add_case(tcase, a_receive_reduces_whatever_the_length, transport, 1);
    tcase_add_loop_test(tcase, a_mismatch_shows_what_came, transport * STRIDE,
                        transport * STRIDE +
                            (is_quick ? 1 : 4) * (int)ARRAY_LEN(wrongs));
    add_case(tcase, the_same_bytes_reach_all_past_one_that_waits, transport, 1);
    add_case(tcase, what_goes_onward_arrives, transport, 1);
    add_case(tcase, what_is_put_ahead_is_taken_in_order, transport, 1);
    add_case(tcase, peek_shows_what_nobody_took, transport, 1);
    add_case(tcase, what_nobody_wants_lets_a_rank_sleep, transport, 1);
    add_case(tcase, a_message_wakes_behind_long_ones, transport, N_WAKES);
    if (!conform_far.size)
        add_case(tcase, neighbours_are_in_reach_or_not, transport, 1);
    add_case(tcase, other_hosts_are_in_reach_or_not, transport, 1);
    add_case(tcase, closing_amid_transfers_is_clean, transport,
             is_quick ? 1 : N_ABANDON);
    add_case(tcase, closing_unused_is_clean, transport, 1);
    add_case(tcase, channels_have_orders_of_their_own, transport, 1);
    add_case(tcase, receives_may_wait_until_peek_shows_their_message, transport,
             1);
    add_case(tcase, what_nobody_takes_holds_up_no_other_channel, transport, 1);
    add_case(tcase, what_takes_long_is_passed_on_the_first_channel, transport,
             1);
    add_case(tcase, random_scripts_end_well, transport, is_quick ? 1 : 4);
    if (!strcmp(name, "ucx") || !strcmp(name, "tcp"))
        add_death_cases(tcase, transport, is_quick);
    if (set_up == add_rails || set_up == seal_rails)
        add_case(tcase, a_long_message_goes_by_all_rails, transport, 1);
    if (!strcmp(name, "tcp"))
        add_case(tcase, many_are_heard_behind_long_ones, transport, 1);
    if (!strcmp(name, "tcp"))
        add_case(tcase, two_ranks_share_a_connection_whoever_calls, transport,
                 N_CALLERS);
    if (!strcmp(name, "ucx"))
        add_ucx_cases(tcase, transport);
    return tcase;
}

/* Ask in a process of its own, since UCX does not survive a fork. */
static int is_usable(const struct coll__transport *transport)
{
    char why[256] = "";
    int status;
    pid_t pid;

    if (conform_far.size && strcmp(transport->name, "ucx"))
        return 0;
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        status = transport->usable(why, sizeof(why));
        if (status != COLL_OK)
            printf("conform: %s left out: %s\n", transport->name, why);
        exit(status != COLL_OK);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

/* UCX's memory hooks run after ThreadSanitizer has let go of an ending thread,
 * and UCX reads this when it is loaded. */
static void without_memory_hooks(char **argv)
{
    if (getenv("UCX_MEM_MMAP_HOOK_MODE"))
        return;
    setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
    execv("/proc/self/exe", argv);
    perror("conform: cannot start again");
    exit(1);
}

int main(int argc, char **argv)
{
    Suite *suite = suite_create("conform");

    if (!conform_far_args(argc, argv))
        return 2;
    if (IS_THREAD_SANITIZED)
        without_memory_hooks(argv);
    for (int t = 0; coll__transports[t]; t++)
        if (is_usable(coll__transports[t])) {
            const char *name = coll__transports[t]->name;

            suite_add_tcase(suite, cases_of(t, name, NULL));
            if (!strcmp(name, "shm"))
                suite_add_tcase(suite, cases_of(t, "regions", use_regions));
            if (strcmp(name, "tcp") != 0)
                continue;
            suite_add_tcase(suite, cases_of(t, "sealed", seal));
            suite_add_tcase(suite, cases_of(t, "rails", add_rails));
            suite_add_tcase(suite, cases_of(t, "sealed rails", seal_rails));
        }
    return suite_run(suite);
}
