/* SPDX-License-Identifier: BSD-3-Clause */
/* test_slots.c - how many messages must have room between two ranks, for plans
 * that are run as listed: by the proof, and by ranks that go on at random. */
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MOST 9 /* ranks */

/* ---- another way to find out --------------------------------------------------- */

/* One step of a rank, if it can be done; messages under way are counted. */
static int try_step(const struct coll__step *step, int rank, int n_slots,
                    int under_way[MOST][MOST])
{
    int *n;

    if (step->kind != STEP_SEND && !coll__step_is_recv(step->kind))
        return 1;
    n = step->kind == STEP_SEND ? &under_way[rank][step->peer]
                                : &under_way[step->peer][rank];
    if (step->kind == STEP_SEND ? *n == n_slots : !*n)
        return 0;
    *n += step->kind == STEP_SEND ? 1 : -1;
    return 1;
}

/* Ranks drawn at random go on by a step, until none can: do all come to an end? */
static int comes_to_an_end(const struct coll__plan *plans, int nranks,
                           int n_slots, unsigned seed)
{
    int under_way[MOST][MOST] = {{0}}, at[MOST] = {0}, n_stuck = 0, r;

    while (n_stuck < 40 * nranks) { /* surely each was drawn by then */
        r = rand_r(&seed) % nranks;
        if (at[r] < plans[r].n_steps &&
            try_step(&plans[r].steps[at[r]], r, n_slots, under_way)) {
            at[r]++;
            n_stuck = 0;
        } else {
            n_stuck++;
        }
    }
    for (r = 0; r < nranks && at[r] == plans[r].n_steps; r++)
        ;
    return r == nranks;
}

/* ---- every algorithm ------------------------------------------------------------ */

static void agree(const struct coll__plan *plans, int nranks,
                  const char *algorithm)
{
    char why[256] = "";
    int least;

    ck_assert_int_eq(coll__plans_slots(plans, nranks, &least), COLL_OK);
    for (int k = max_int(1, least - 2); k <= least + 2; k++) {
        int rc = coll__plans_run_as_listed(plans, nranks, k, why, sizeof(why));

        ck_assert_msg(rc == (k < least ? COLL_ERR_INVALID : COLL_OK),
                      "%s of %d ranks, %d slots, of %d: %s", algorithm, nranks,
                      k, least, why);
        ck_assert_msg(
            comes_to_an_end(plans, nranks, k, (unsigned)k) == (k >= least),
            "%s of %d ranks does not need %d slots", algorithm, nranks, least);
    }
}

static void try_trials(const struct coll__algo *algo,
                       enum coll_collective collective, int nranks)
{
    struct coll__view views[COLL__N_VIEWS];
    struct coll__trial trial;

    ck_assert_int_eq(coll__views_init(views, nranks), COLL_OK);
    for (int i = 0; coll__trial_at(i, collective, nranks, views, &trial);
         i += 3) {
        struct coll__plans plans;
        struct coll__cast cast;

        ck_assert_int_eq(coll__cast_init(&cast, &trial), COLL_OK);
        if (!coll__algo_refuses(algo, &cast.pbs[0])) {
            ck_assert_int_eq(
                coll__plans_build(&plans, algo, cast.pbs, trial.chunk),
                COLL_OK);
            agree(plans.plans, nranks, algo->name);
            coll__plans_fini(&plans);
        }
        coll__cast_fini(&cast);
    }
    coll__views_fini(views);
}

/* _i: the algorithm. */
START_TEST(the_proof_and_ranks_at_random_agree)
{
    static const int sizes[] = {1, 2, 3, 5, 8, MOST};

    for (int c = 0; c < COLL_N_COLLECTIVES; c++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
            if (coll__algos[_i]->serves & (1u << c))
                try_trials(coll__algos[_i], (enum coll_collective)c, sizes[s]);
}
END_TEST

/* ---- plans that nobody builds ----------------------------------------------------- */

/* Two ranks, each of which sends n messages and then receives as many. */
static int slots_of_exchange(int n)
{
    struct coll__step steps[2][64] = {{{0}}};
    struct coll__plan plans[2] = {{.steps = steps[0], .n_steps = 2 * n},
                                  {.steps = steps[1], .n_steps = 2 * n}};
    int least;

    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 2 * n; i++) {
            steps[r][i].kind = i < n ? STEP_SEND : STEP_RECV;
            steps[r][i].peer = 1 - r;
        }
    ck_assert_int_eq(coll__plans_slots(plans, 2, &least), COLL_OK);
    return least;
}

START_TEST(an_exchange_needs_a_slot_for_each_message)
{
    for (int n = 1; n <= 32; n++)
        ck_assert_int_eq(slots_of_exchange(n), n);
}
END_TEST

/* Each waits for the other first: no slots help. */
START_TEST(what_never_ends_is_found)
{
    struct coll__step steps[2][2] = {
        {{.kind = STEP_RECV, .peer = 1}, {.kind = STEP_SEND, .peer = 1}},
        {{.kind = STEP_RECV, .peer = 0}, {.kind = STEP_SEND, .peer = 0}}};
    struct coll__plan plans[2] = {{.steps = steps[0], .n_steps = 2},
                                  {.steps = steps[1], .n_steps = 2}};
    char why[256] = "";
    int least;

    ck_assert_int_eq(coll__plans_slots(plans, 2, &least), COLL_ERR_INVALID);
    ck_assert_int_eq(
        coll__plans_run_as_listed(plans, 2, COLL__ANY_SLOTS, why, sizeof(why)),
        COLL_ERR_INVALID);
    ck_assert_str_eq(why, "as listed, rank 0 waits for ever at step 0");
    ck_assert_int_eq(coll__plans_run_as_listed(plans, 2, 3, why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(why, "with 3 messages under way"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slots");
    TCase *c = tcase_create("slots");
    int n = 0;

    while (coll__algos[n])
        n++;
    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, the_proof_and_ranks_at_random_agree, 0, n);
    tcase_add_test(c, an_exchange_needs_a_slot_for_each_message);
    tcase_add_test(c, what_never_ends_is_found);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
