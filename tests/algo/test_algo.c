/* SPDX-License-Identifier: BSD-3-Clause */
/* test_algo.c - what a proof does not say: how many messages and bytes each
 * rank sends, as the head of each algorithm's file promises, and that all ranks
 * price an algorithm alike. */
#include "lib/proof/prove.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

#define MAX_RANKS 33
#define COUNT 3 /* elements of a block */

struct sent {
    int messages, far; /* far: to another host */
    size_t blocks;
};

/* What one rank sends, on hosts of two ranks that take turns. */
static struct sent sends_of(enum coll_collective collective, const char *name,
                            int p, int rank)
{
    const struct coll__algo *algo = coll__algo_find(collective, name);
    struct coll__problem pb = {.collective = collective,
                               .type = COLL_I32,
                               .nranks = p,
                               .rank = rank,
                               .count = COUNT};
    struct coll__plan plan;
    struct coll__view view;
    struct sent sent = {0};
    int host[MAX_RANKS];

    for (int r = 0; r < p; r++)
        host[r] = r % ((p + 1) / 2);
    ck_assert_int_eq(
        coll__view_init(&view, p, 2, (const int *const[]){host}), COLL_OK);
    pb.view = &view;
    ck_assert_ptr_nonnull(algo);
    ck_assert_int_eq(coll__plan_build(algo, &pb, 0, &plan), COLL_OK);
    for (int i = 0; i < plan.n_steps; i++)
        if (plan.steps[i].kind == STEP_SEND) {
            sent.messages++;
            sent.far += host[plan.steps[i].peer] != host[rank];
            sent.blocks += plan.steps[i].src.len / (COUNT * sizeof(int));
        }
    coll__plan_fini(&plan);
    coll__view_fini(&view);
    return sent;
}

static struct sent sends_in_all(enum coll_collective collective,
                                const char *name, int p)
{
    struct sent all = {0};

    for (int r = 0; r < p; r++) {
        struct sent one = sends_of(collective, name, p, r);

        all.messages += one.messages;
        all.far += one.far;
        all.blocks += one.blocks;
    }
    return all;
}

/* _i: the number of ranks, in all that follow. */
START_TEST(bruck_and_pat_send_a_message_a_round)
{
    for (int r = 0; r < _i; r++) {
        struct sent bruck = sends_of(COLL_ALLGATHER, "bruck", _i, r);
        struct sent pat = sends_of(COLL_ALLGATHER, "pat", _i, r);
        struct sent all = sends_of(COLL_ALLTOALL, "bruck", _i, r);

        ck_assert_int_eq(bruck.messages, log2_up(_i));
        ck_assert_int_eq(pat.messages, log2_up(_i));
        ck_assert_int_eq(all.messages, log2_up(_i));
        ck_assert_uint_eq(bruck.blocks, (size_t)_i - 1);
        ck_assert_uint_eq(pat.blocks, (size_t)_i - 1);
        ck_assert_uint_le(all.blocks, (size_t)(_i / 2 * log2_up(_i)));
    }
}
END_TEST

START_TEST(direct_and_pairwise_send_each_block_once)
{
    for (int r = 0; r < _i; r++) {
        struct sent direct = sends_of(COLL_ALLTOALL, "direct", _i, r);
        struct sent pairwise = sends_of(COLL_ALLTOALL, "pairwise", _i, r);
        struct sent gather = sends_of(COLL_ALLGATHER, "direct", _i, r);

        ck_assert_int_eq(direct.messages, _i - 1);
        ck_assert_int_eq(pairwise.messages, _i - 1);
        ck_assert_int_eq(gather.messages, _i - 1);
        ck_assert_uint_eq(direct.blocks, (size_t)_i - 1);
        ck_assert_uint_eq(pairwise.blocks, (size_t)_i - 1);
        ck_assert_uint_eq(gather.blocks, (size_t)_i - 1);
    }
}
END_TEST

START_TEST(trees_send_one_message_for_each_rank_but_the_root)
{
    ck_assert_int_eq(sends_in_all(COLL_GATHER, "binomial", _i).messages,
                     _i - 1);
    ck_assert_int_eq(sends_in_all(COLL_SCATTER, "binomial", _i).messages,
                     _i - 1);
    ck_assert_int_eq(sends_in_all(COLL_BARRIER, "binomial", _i).messages,
                     2 * (_i - 1));
    ck_assert_int_le(sends_of(COLL_SCATTER, "binomial", _i, 0).messages,
                     log2_up(_i));
    ck_assert_uint_eq(sends_of(COLL_SCATTER, "binomial", _i, 0).blocks,
                      (size_t)_i - 1);
}
END_TEST

/* Each host lets each block of the ring in and out once, though neighbours in
 * rank are on different hosts; the leaders' barrier is log2(hosts) each. */
START_TEST(scattered_ranks_cross_hosts_no_more_than_they_must)
{
    int hosts = (_i + 1) / 2, crossings = hosts > 1 ? hosts * (_i - 1) : 0;

    ck_assert_int_eq(sends_in_all(COLL_ALLGATHER, "ring", _i).far, crossings);
    ck_assert_int_eq(sends_in_all(COLL_BARRIER, "hierarchical", _i).far,
                     hosts * log2_up(hosts));
}
END_TEST

/* ---- what all ranks must agree on ------------------------------------------ */

/* Ranks may differ in place, in their place, and in the counts that each knows
 * alone. */
static void compare_ranks(const struct coll__algo *algo,
                          const struct coll__trial *t)
{
    struct coll__cast cast;
    const char *refusal;
    double cost = 0;

    ck_assert_int_eq(coll__cast_init(&cast, t), COLL_OK);
    refusal = coll__algo_refuses(algo, &cast.pbs[0]);
    if (!refusal)
        cost = algo->cost(&cast.pbs[0]);
    ck_assert(cost >= 0 && cost < 1e6);
    for (int r = 1; r < t->nranks; r++) {
        ck_assert_ptr_eq(coll__algo_refuses(algo, &cast.pbs[r]), refusal);
        ck_assert_msg(refusal || memcmp(&cost, &(double){algo->cost(
                                                   &cast.pbs[r])},
                                        sizeof(cost)) == 0,
                      "%s %s, p %d count %zu seed %u: rank %d's price differs",
                      coll_collective_name(t->collective), algo->name,
                      t->nranks, t->count, t->seed, r);
    }
    coll__cast_fini(&cast);
}

/* A rank that priced or refused otherwise would choose another algorithm. */
START_TEST(all_ranks_get_the_same_price_and_the_same_refusal)
{
    struct coll__view views[COLL__N_VIEWS];
    struct coll__trial t;

    ck_assert_int_eq(coll__views_init(views, _i), COLL_OK);
    for (int a = 0; coll__algos[a]; a++)
        for (int k = 0; k < COLL_N_COLLECTIVES; k++)
            for (int i = 0;
                 coll__algos[a]->serves & 1u << k &&
                 coll__trial_at(i, (enum coll_collective)k, _i, views, &t);
                 i++)
                for (int v = 0; v < COLL__N_VIEWS; v++) {
                    t.view = &views[v];
                    compare_ranks(coll__algos[a], &t);
                }
    coll__views_fini(views);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("algo");
    TCase *ranks = tcase_create("ranks");
    TCase *sends = tcase_create("sends");

    tcase_add_loop_test(sends, bruck_and_pat_send_a_message_a_round, 2,
                        MAX_RANKS + 1);
    tcase_add_loop_test(sends, direct_and_pairwise_send_each_block_once, 2,
                        MAX_RANKS + 1);
    tcase_add_loop_test(sends,
                        trees_send_one_message_for_each_rank_but_the_root, 2,
                        MAX_RANKS + 1);
    tcase_add_loop_test(sends,
                        scattered_ranks_cross_hosts_no_more_than_they_must, 2,
                        MAX_RANKS + 1);
    tcase_set_timeout(ranks, 60);
    tcase_add_loop_test(ranks,
                        all_ranks_get_the_same_price_and_the_same_refusal, 1,
                        MAX_RANKS / 2 + 1);
    suite_add_tcase(suite, sends);
    suite_add_tcase(suite, ranks);
    return suite_run(suite);
}
