/* SPDX-License-Identifier: BSD-3-Clause */
/* test_edges.c - no edge of any plan can be lost unseen: not by luck, in some
 * order of events, but because each hazard is looked up. */
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/type/signature.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Is there a way along the edges from step i to step j?  Edges go forward. */
static int leads_to(const struct coll__plan *plan, int i, int j)
{
    char *seen = calloc((size_t)plan->n_steps, 1);
    int found;

    ck_assert_ptr_nonnull(seen);
    seen[i] = 1;
    for (int at = i; at < j; at++)
        for (int e = plan->first_after[at];
             seen[at] && e < plan->first_after[at + 1]; e++)
            seen[plan->after[e]] = 1;
    found = seen[j];
    free(seen);
    return found;
}

/* Take out edge e, which begins at step i; its end. */
static int take_out(struct coll__plan *plan, int i, int e)
{
    int to = plan->after[e];

    plan->n_deps[to]--;
    memmove(plan->after + e, plan->after + e + 1,
            (size_t)(plan->first_after[plan->n_steps] - e - 1) * sizeof(int));
    for (int k = i + 1; k <= plan->n_steps; k++)
        plan->first_after[k]--;
    return to;
}

static void put_back(struct coll__plan *plan, int i, int e, int to)
{
    memmove(plan->after + e + 1, plan->after + e,
            (size_t)(plan->first_after[plan->n_steps] - e) * sizeof(int));
    plan->after[e] = to;
    for (int k = i + 1; k <= plan->n_steps; k++)
        plan->first_after[k]++;
    plan->n_deps[to]++;
}

/* Lose each edge in turn; the number of those that no other way replaces. */
static int lose_each(struct coll__plans *plans, int rank)
{
    struct coll__plan *plan = &plans->plans[rank];
    char why[256] = "";
    int n_lost = 0;

    for (int i = 0; i < plan->n_steps; i++)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
            int to = take_out(plan, i, e);

            if (!leads_to(plan, i, to)) {
                ck_assert_msg(coll__plans_check(plans, 0, why, sizeof(why)) ==
                                      COLL_ERR_INVALID &&
                                  strstr(why, "does not wait for"),
                              "%s, p %d: rank %d's edge from %d to %d",
                              plans->algorithm, plans->pbs[0].nranks, rank, i,
                              to);
                n_lost++;
            }
            put_back(plan, i, e, to);
        }
    return n_lost;
}

static int lose_all(const struct coll__algo *algo,
                    const struct coll__trial *trial)
{
    struct coll__plans plans;
    struct coll__cast cast;
    char why[256] = "";
    int n_lost = 0;

    ck_assert_int_eq(coll__cast_init(&cast, trial), COLL_OK);
    if (!coll__algo_refuses(algo, &cast.pbs[0])) {
        ck_assert_int_eq(coll__plans_build(&plans, algo, cast.pbs,
                                           trial->chunk), COLL_OK);
        plans.has_edges = 1; /* to be judged by what they list */
        for (int r = 0; r < trial->nranks; r++)
            n_lost += lose_each(&plans, r);
        ck_assert_msg(coll__plans_check(&plans, 1, why, sizeof(why)) == COLL_OK,
                      "%s: %s", algo->name, why);
        coll__plans_fini(&plans);
    }
    coll__cast_fini(&cast);
    return n_lost;
}

START_TEST(no_edge_is_lost_unseen)
{
    struct coll__view views[COLL__N_VIEWS];
    int n_lost = 0;

    ck_assert_int_eq(coll__views_init(views, _i), COLL_OK);
    for (int a = 0; coll__algos[a]; a++)
        for (int k = 0; k < COLL_N_COLLECTIVES; k++) {
            int is_barrier = k == COLL_BARRIER; /* its token is a byte */
            struct coll__trial trial = {
                .collective = (enum coll_collective)k,
                .type = is_barrier ? COLL_U8 : COLL_I32,
                .op = is_barrier ? COLL_MAX : COLL_SUM,
                .nranks = _i,
                .count = is_barrier ? 1 : (size_t)_i + 1,
                .view = &views[1]};

            if (coll__algos[a]->serves & 1u << k && !coll__is_p2p(trial.collective))
                n_lost += lose_all(coll__algos[a], &trial);
        }
    coll__views_fini(views);
    ck_assert_int_gt(n_lost, 800);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("edges");
    TCase *tcase = tcase_create("edges");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, no_edge_is_lost_unseen, 5, 7);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
