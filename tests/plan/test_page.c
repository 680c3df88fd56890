/* SPDX-License-Identifier: BSD-3-Clause */
/* test_page.c - a set of plan files: which calls one of its pages serves, and
 * what cannot be opened. */
#include "lib/proof/plan_set.h"
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/util/util.h"
#include "lib/type/signature.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- a page fits calls in place and out of place --------------------------- */

/* Every rank's plan from a page, for ranks that work in place as they like. */
static void fits(const struct coll__plan_set *set, struct coll__cast *cast,
                 int p)
{
    struct coll__plans got = {.pbs = cast->pbs};
    char why[256] = "";

    got.plans = calloc((size_t)p, sizeof(*got.plans));
    for (int r = 0; r < p; r++)
        ck_assert_int_eq(coll__plan_set_find(set, &cast->pbs[r], &got.plans[r]),
                         COLL_OK);
    ck_assert_msg(coll__plans_check(&got, 2, why, sizeof(why)) == COLL_OK,
                  "%s: %s", coll_collective_name(cast->pbs[0].collective), why);
    for (int r = 0; r < p; r++)
        coll__plan_fini(&got.plans[r]);
    free(got.plans);
}

static int is_fixed(enum coll_collective collective)
{
    return !coll__has_in_counts(collective) &&
           !coll__has_out_counts(collective);
}

/* _i: the collective. */
START_TEST(a_page_serves_calls_in_place_or_not)
{
    enum coll_collective collective = coll__of_all(_i);
    struct coll__view view;
    int n_fitted = 0, n_served = 0;

    ck_assert_int_eq(coll__view_init(&view, 5, 1, NULL), COLL_OK);
    for (int a = 0; coll__algos[a] && is_fixed(collective); a++) {
        struct coll__trial t = {.collective = collective,
                                .type = COLL_I32,
                                .nranks = 5,
                                .root = 3,
                                .count = 7,
                                .view = &view};

        if (!(coll__algos[a]->serves & 1u << collective))
            continue;
        n_served++;
        for (t.seed = 1; t.seed < 9; t.seed++) {
            struct coll__trial other = t;
            struct coll__cast cast;
            struct coll__plans page;
            struct coll__plan_set set = {.pages = &page, .n_pages = 1};

            ck_assert_int_eq(coll__cast_init(&cast, &t), COLL_OK);
            if (coll__plans_build(&page, coll__algos[a], cast.pbs, 0)) {
                coll__cast_fini(&cast);
                continue;
            }
            coll__cast_fini(&cast);
            other.seed += 100;
            ck_assert_int_eq(coll__cast_init(&cast, &other), COLL_OK);
            fits(&set, &cast, 5);
            n_fitted++;
            coll__cast_fini(&cast);
            coll__plans_fini(&page);
        }
    }
    ck_assert_int_eq(n_fitted > 0, n_served > 0);
    coll__view_fini(&view);
}
END_TEST

static const char by_hand[] =
    "coll_plan 1\ncollective allreduce\ntype i32\nranks 2\ncount 4\n"
    "edges listed\n"
    "rank 0 tmp 16\n0 copy out[0,16) from in[0,16)\n"
    "1 send peer 1 in[0,16)\n2 recv peer 1 tmp[0,16)\n"
    "3 reduce out[0,16) from tmp[0,16) waits for 0 2\n"
    "rank 1 tmp 16\n0 copy out[0,16) from in[0,16)\n"
    "1 send peer 0 in[0,16)\n2 recv peer 0 tmp[0,16)\n"
    "3 reduce out[0,16) from tmp[0,16) waits for 0 2\n";

START_TEST(a_page_serves_its_own_problem_only)
{
    struct coll__plans page;
    struct coll__plan_set set = {.pages = &page, .n_pages = 1};
    struct coll__problem pb;
    struct coll__plan plan;

    ck_assert_int_eq(
        coll__plans_parse("x.plan", by_hand, strlen(by_hand), &page), COLL_OK);
    pb = page.pbs[1];
    pb.type = COLL_F32; /* as large */
    pb.op = COLL_MAX;
    ck_assert_int_eq(coll__plan_set_find(&set, &pb, &plan), COLL_OK);
    coll__plan_fini(&plan);
    pb.count = 5;
    ck_assert_int_eq(coll__plan_set_find(&set, &pb, &plan),
                     COLL_ERR_UNSUPPORTED);
    pb = page.pbs[1];
    pb.type = COLL_F64;
    ck_assert_int_eq(coll__plan_set_find(&set, &pb, &plan),
                     COLL_ERR_UNSUPPORTED);
    pb = page.pbs[1];
    pb.op = COLL_AVG; /* nobody divides */
    ck_assert_int_eq(coll__plan_set_find(&set, &pb, &plan),
                     COLL_ERR_UNSUPPORTED);
    pb = page.pbs[1];
    pb.order = ORDER_CANONICAL; /* not promised */
    ck_assert_int_eq(coll__plan_set_find(&set, &pb, &plan),
                     COLL_ERR_UNSUPPORTED);
    coll__plans_fini(&page);
}
END_TEST

/* ---- files ----------------------------------------------------------------- */

START_TEST(a_book_that_cannot_be_read_is_refused)
{
    struct coll__plan_set set;

    ck_assert_int_eq(coll__plan_set_open(&set, ""), COLL_OK);
    ck_assert_uint_eq(set.hash, 0);
    coll__plan_set_close(&set);
    ck_assert_int_eq(coll__plan_set_open(&set, "/nonexistent.plan"),
                     COLL_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "/nonexistent.plan"));
    ck_assert_int_eq(coll__plan_set_open(&set, "/"), COLL_ERR_SYSTEM);
    ck_assert_int_eq(coll__plan_set_open(&set, "/dev/null"), COLL_ERR_SYSTEM);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("page");
    TCase *tcase = tcase_create("page");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_page_serves_calls_in_place_or_not, 0,
                        COLL__N_OF_ALL);
    tcase_add_test(tcase, a_page_serves_its_own_problem_only);
    tcase_add_test(tcase, a_book_that_cannot_be_read_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
