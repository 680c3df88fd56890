/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sim.c - the closed forms against the simulation that they describe, and
 * the simulation against what can be told by hand. */
#include "tests/sim/sim_fixture.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANY_SIZE ((double)(1ull << 30)) /* bytes, the largest here */

/* ---- closed forms -------------------------------------------------------- */

/* Why a form is further off than 10 % for some size and number of ranks. */
enum reason {
    OVERLAP, /* messages near COLL__EAGER, or over links of several speeds:
              * rounds of some ranks overlap with the next ones of others */
    ODD,     /* 3, 5 or 13 ranks: the one rank without a partner is ahead, or
              * one message more meets others on its way */
    CHAIN,   /* long operands that are added one after the other wait for each
              * other, and do not share the way as the form has it */
    MEET,    /* trees and rounds meet on links that each form takes to be its
              * own, or pass them by */
    EMPTY,   /* fewer elements than ranks: blocks of no bytes are left out */
    LEVELS   /* a level begins before the last rank is through the one before,
              * and its messages share links with those */
};

struct exception {
    enum coll_collective collective;
    const char *algo;
    double flat, hosts; /* on one level; on hosts of 8 ranks */
    enum reason reason;
};

static const struct exception exceptions[] = {
    {COLL_ALLGATHER, "bruck", 0.10, 0.20, OVERLAP},
    {COLL_ALLGATHER, "hierarchical", 0.10, 0.15, LEVELS},
    {COLL_ALLGATHER, "pat", 0.15, 0.15, OVERLAP},
    {COLL_ALLGATHER, "recursive_doubling", 0.35, 0.20, OVERLAP},
    {COLL_ALLREDUCE, "hierarchical", 0.10, 0.20, LEVELS},
    {COLL_ALLREDUCE, "knomial", 0.15, 0.10, ODD},
    {COLL_ALLREDUCE, "one_shot", 0.20, 0.10, ODD},
    {COLL_ALLREDUCE, "pat", 0.35, 0.20, EMPTY},
    {COLL_ALLREDUCE, "rabenseifner", 0.50, 0.10, EMPTY},
    {COLL_ALLREDUCE, "recursive_doubling", 0.10, 0.25, OVERLAP},
    {COLL_ALLREDUCE, "two_shot", 0.30, 0.25, CHAIN},
    {COLL_ALLTOALL, "bruck", 0.15, 0.20, OVERLAP},
    {COLL_ALLTOALL, "hierarchical", 0.10, 0.20, OVERLAP},
    {COLL_ALLTOALL, "pairwise", 0.10, 0.45, OVERLAP},
    {COLL_BROADCAST, "double_tree", 0.15, 0.15, MEET},
    {COLL_EXSCAN, "recursive_doubling", 0.15, 0.35, OVERLAP},
    {COLL_GATHER, "binomial", 0.20, 0.10, ODD},
    {COLL_REDUCE, "direct", 0.25, 0.25, CHAIN},
    {COLL_REDUCE, "double_tree", 0.10, 0.15, MEET},
    {COLL_REDUCE, "hierarchical", 0.10, 0.20, LEVELS},
    {COLL_REDUCE, "knomial", 0.20, 0.10, ODD},
    {COLL_REDUCE, "rabenseifner", 0.35, 0.15, EMPTY}, /* hosts: MEET */
    {COLL_REDUCE_SCATTER, "direct", 0.30, 0.25, CHAIN},
    {COLL_REDUCE_SCATTER, "halving", 0.50, 0.25, ODD},
    {COLL_REDUCE_SCATTER, "hierarchical", 0.10, 0.20, OVERLAP},
    {COLL_REDUCE_SCATTER, "pat", 0.10, 0.15, OVERLAP},
    {COLL_SCAN, "recursive_doubling", 0.15, 0.30, OVERLAP},
};

static double allowed(enum coll_collective collective, const char *algo,
                      int is_flat)
{
    for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
        if (exceptions[i].collective == collective &&
            !strcmp(exceptions[i].algo, algo))
            return is_flat ? exceptions[i].flat : exceptions[i].hosts;
    return 0.10;
}

static int is_simulated(enum coll_collective collective)
{
    switch (collective) {
    case COLL_ALLREDUCE:
    case COLL_BROADCAST:
    case COLL_REDUCE:
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
    case COLL_GATHER:
    case COLL_SCATTER:
    case COLL_BARRIER:
    case COLL_SCAN:
    case COLL_EXSCAN:
        return 1;
    default: /* ranks differ, or there is one message only */
        return 0;
    }
}

/* The form and the simulation differ by no more than that; say whether they
 * differ by 10 % at most. */
static int agree(const struct machine *m, const struct coll__algo *algo,
                 const struct coll__problem *pb, double bound)
{
    double form = algo->cost(pb), sim = simulate(m, algo, pb).seconds;
    double off = fabs(form - sim) / sim;

    ck_assert_msg(off <= bound,
                  "%s %s, %d ranks, %zu bytes: form %g s, simulation %g s",
                  coll_collective_name(pb->collective), algo->name, pb->nranks,
                  coll__problem_bytes(pb), form, sim);
    return off <= 0.10;
}

static void all_agree(const char *file, int nranks, int is_flat)
{
    struct machine m;
    int n = 0, n_good = 0;

    machine_init(&m, file, nranks, 0);
    for (int k = 0; k < COLL_N_COLLECTIVES; k++)
        for (int a = 0; coll__algos[a] && is_simulated(k); a++)
            for (double bytes = 8; bytes <= ANY_SIZE; bytes *= 8) {
                enum coll_collective collective = (enum coll_collective)k;
                struct coll__problem pb = problem(&m, collective, bytes);

                if (coll__algo_refuses(coll__algos[a], &pb))
                    continue;
                n++;
                n_good += agree(&m, coll__algos[a], &pb,
                                allowed(collective, coll__algos[a]->name,
                                        is_flat));
            }
    machine_fini(&m);
    ck_assert_msg(n_good >= 0.9 * n, "%d of %d within 10 %%", n_good, n);
}

static const int flat_ranks[] = {2, 3, 4, 5, 8, 13, 16, 31, 32, 64};
static const int host_ranks[] = {16, 24, 32, 64};

START_TEST(forms_agree_with_the_simulation_on_one_switch)
{
    all_agree("flat.topo", flat_ranks[_i], 1);
}
END_TEST

START_TEST(forms_agree_with_the_simulation_on_hosts_of_eight)
{
    all_agree("hosts8.topo", host_ranks[_i], 0);
}
END_TEST

/* Rings in pieces are what large messages take: they keep to the 10 %, too. */
START_TEST(forms_agree_on_rings_and_chains_in_chunks)
{
    struct machine m;

    machine_init(&m, _i ? "hosts8.topo" : "flat.topo", 32, DEFAULT_CHUNK);
    for (double bytes = 8; bytes <= ANY_SIZE; bytes *= 8) {
        struct coll__problem pb = problem(&m, COLL_BROADCAST, bytes);

        agree(&m, coll__algo_find(COLL_BROADCAST, "chain"), &pb, 0.10);
        pb = problem(&m, COLL_ALLGATHER, bytes);
        agree(&m, coll__algo_find(COLL_ALLGATHER, "ring"), &pb, 0.10);
        pb = problem(&m, COLL_ALLREDUCE, bytes);
        agree(&m, coll__algo_find(COLL_ALLREDUCE, "ring"), &pb, 0.10);
        pb = problem(&m, COLL_SCAN, bytes);
        agree(&m, coll__algo_find(COLL_SCAN, "chain"), &pb, 0.10);
        pb = problem(&m, COLL_EXSCAN, bytes);
        agree(&m, coll__algo_find(COLL_EXSCAN, "chain"), &pb, 0.10);
    }
    machine_fini(&m);
}
END_TEST

/* ---- choices ------------------------------------------------------------- */

/* The algorithm that the forms choose is within 10 % of the one that is best in
 * the simulation: they cross over where it does. */
static void choose(const struct machine *m, double bytes)
{
    static const char *const names[] = {"ring", "double_tree", "hierarchical"};
    struct coll__problem pb = problem(m, COLL_ALLREDUCE, bytes);
    double best = HUGE_VAL, chosen = 0, least = HUGE_VAL;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct coll__algo *algo =
            coll__algo_find(COLL_ALLREDUCE, names[i]);
        double sim, form;

        if (!algo || coll__algo_refuses(algo, &pb))
            continue;
        sim = simulate(m, algo, &pb).seconds;
        form = algo->cost(&pb);
        if (form < least)
            chosen = sim;
        least = form < least ? form : least;
        best = sim < best ? sim : best;
    }
    ck_assert_msg(chosen <= 1.10 * best, "%g bytes: chosen %g s, best %g s",
                  bytes, chosen, best);
}

START_TEST(forms_choose_what_the_simulation_finds_best)
{
    struct machine m;

    machine_init(&m, "hosts8.topo", 64, _i ? DEFAULT_CHUNK : 0);
    for (double bytes = 8; bytes <= ANY_SIZE; bytes *= 4)
        choose(&m, bytes);
    machine_fini(&m);
}
END_TEST

/* ---- by hand ------------------------------------------------------------- */

START_TEST(a_message_alone_takes_its_latencies_and_its_slowest_link)
{
    const double alpha = 600e-9 + 2 * (50e-9 + 150e-9) + 2 * 300e-9;
    struct machine m;

    machine_init(&m, "flat.topo", 2, 0);
    for (double bytes = 8; bytes <= ANY_SIZE; bytes *= 8) {
        struct coll__problem pb = problem(&m, COLL_BROADCAST, bytes);
        struct coll__sim_result got =
            simulate(&m, coll__algo_find(COLL_BROADCAST, "binomial"), &pb);

        ck_assert_double_eq_tol(got.seconds / (alpha + bytes / 25e9), 1, 1e-9);
        ck_assert_int_eq(got.n_messages, 1);
        ck_assert_double_eq(got.bytes, bytes);
    }
    machine_fini(&m);
}
END_TEST

/* 15 messages from one rank, in order: 100 ns apart, or as their bytes are. */
START_TEST(messages_of_one_rank_leave_a_gap_or_their_bytes_apart)
{
    struct machine m;

    machine_init(&m, "flat.topo", 16, 0);
    for (double bytes = 64; bytes <= 1 << 20; bytes *= 128) {
        const struct coll__algo *direct = coll__algo_find(COLL_SCATTER,
                                                          "direct");
        struct coll__problem pb = problem(&m, COLL_SCATTER, 16 * bytes);
        double each = bytes / 25e9, apart = each > 100e-9 ? each : 100e-9;

        ck_assert_double_eq_tol(simulate(&m, direct, &pb).seconds /
                                    (1.6e-6 + 14 * apart + each),
                                1, 0.02);
    }
    machine_fini(&m);
}
END_TEST

START_TEST(the_same_simulation_gives_the_same_result)
{
    struct machine m;
    struct coll__problem pb;
    const struct coll__algo *ring = coll__algo_find(COLL_ALLREDUCE, "ring");
    struct coll__sim_result one, two;

    machine_init(&m, "hosts8.topo", 24, DEFAULT_CHUNK);
    pb = problem(&m, COLL_ALLREDUCE, 1e7);
    one = simulate(&m, ring, &pb);
    two = simulate(&m, ring, &pb);
    ck_assert_mem_eq(&one, &two, sizeof(one));
    ck_assert_int_ge(one.busiest, 0);
    ck_assert_double_lt(one.busy, one.seconds);
    machine_fini(&m);
}
END_TEST

/* Everyone receives first, and a long message needs both sides. */
static int build_stuck(const struct coll__problem *pb, struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);

    plan_recv(plan, 1 - pb->rank, out);
    plan_send(plan, 1 - pb->rank, out);
    return plan_status(plan);
}

static int build_unequal(const struct coll__problem *pb,
                         struct coll__plan *plan)
{
    struct coll__span out = coll__whole(pb, BUF_OUT);

    out.len -= (size_t)pb->rank;
    if (pb->rank)
        plan_recv(plan, 0, out);
    else
        plan_send(plan, 1, out);
    return plan_status(plan);
}

START_TEST(plans_that_cannot_end_are_refused)
{
    static const struct coll__algo stuck = {.name = "stuck",
                                            .build = build_stuck};
    static const struct coll__algo unequal = {.name = "unequal",
                                              .build = build_unequal};
    struct coll__sim_result result;
    struct coll__problem pb;
    struct machine m;

    machine_init(&m, "flat.topo", 2, 0);
    pb = problem(&m, COLL_ALLREDUCE, 1 << 20);
    ck_assert_int_eq(
        coll__sim_run(&stuck, &pb, m.fabric, PLACE_BLOCK, &result),
        COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "wait for ever"));
    ck_assert_int_eq(
        coll__sim_run(&unequal, &pb, m.fabric, PLACE_BLOCK, &result),
        COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "rank 0 sends"));
    pb.nranks = 65;
    ck_assert_int_eq(
        coll__sim_run(&stuck, &pb, m.fabric, PLACE_BLOCK, &result),
        COLL_ERR_INVALID);
    machine_fini(&m);
}
END_TEST

/* ---- large machines ------------------------------------------------------ */

static void large(int nranks, enum coll_collective collective,
                  const char *name, double bytes)
{
    struct coll__problem pb;
    struct machine m;

    machine_init(&m, "fattree.topo", nranks, 0);
    pb = problem(&m, collective, bytes);
    agree(&m, coll__algo_find(collective, name), &pb, 0.10);
    machine_fini(&m);
}

START_TEST(a_ring_of_1024_ranks_agrees)
{
    large(1024, COLL_ALLREDUCE, "ring", 8);
    large(1024, COLL_ALLREDUCE, "ring", 64 << 20);
}
END_TEST

START_TEST(doubling_over_16384_ranks_agrees)
{
    large(16384, COLL_ALLREDUCE, "recursive_doubling", 8);
    large(16384, COLL_BROADCAST, "binomial", 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim");
    TCase *forms = tcase_create("forms"), *rest = tcase_create("rest");
    int is_quick = getenv("TEST_QUICK") != NULL;

    tcase_set_timeout(forms, 300);
    tcase_add_loop_test(forms, forms_agree_with_the_simulation_on_one_switch, 0,
                        is_quick ? 4 : ARRAY_LEN(flat_ranks));
    tcase_add_loop_test(forms,
                        forms_agree_with_the_simulation_on_hosts_of_eight, 0,
                        is_quick ? 1 : ARRAY_LEN(host_ranks));
    if (!is_quick) {
        tcase_add_loop_test(forms, forms_agree_on_rings_and_chains_in_chunks, 0,
                            2);
        tcase_add_loop_test(forms, forms_choose_what_the_simulation_finds_best,
                            0, 2);
        tcase_add_test(forms, a_ring_of_1024_ranks_agrees);
        tcase_add_test(forms, doubling_over_16384_ranks_agrees);
    }
    tcase_add_test(rest,
                   a_message_alone_takes_its_latencies_and_its_slowest_link);
    tcase_add_test(rest,
                   messages_of_one_rank_leave_a_gap_or_their_bytes_apart);
    tcase_add_test(rest, the_same_simulation_gives_the_same_result);
    tcase_add_test(rest, plans_that_cannot_end_are_refused);
    suite_add_tcase(suite, forms);
    suite_add_tcase(suite, rest);
    return suite_run(suite);
}
