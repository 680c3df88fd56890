/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pairs.c - what two ranks take for a reduce-scatter and an allgather: one exchange
 * of a block each way, half of what an allreduce moves, whatever the links cost.
 */
#include "lib/algo/algo.h"
#include "lib/price/select.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>

#define CHUNK ((size_t)128 << 10)
#define LARGEST ((size_t)256 << 20)

/* What two ranks may have between them. */
static const struct {
    const char *name;
    struct coll__level prices;
} links[] = {
    {"shared memory",
     {.alpha = 0.2e-6, .beta = 0.2e-9, .gap = 50e-9, .once = 0.1e-9}},
    {"a shared core", {.alpha = 2.4e-6, .beta = 0.4e-9, .gap = 50e-9}},
    {"sockets of one machine",
     {.alpha = 8e-6, .beta = 0.3e-9, .gap = 3e-6, .both = 2}},
    {"Ethernet of 1 Gbit",
     {.alpha = 30e-6, .beta = 8e-9, .gap = 5e-6, .share = 8e-9}},
    {"InfiniBand of 200 Gbit",
     {.alpha = 1.5e-6, .beta = 0.04e-9, .gap = 0.2e-6, .share = 0.04e-9}},
};

static const enum coll_collective halves[] = {COLL_REDUCE_SCATTER,
                                              COLL_ALLGATHER};

/* Sum the bytes that a rank sends (or receives) in a plan; and no message waits for one
 * of the other direction. */
static size_t count_bytes(const struct coll__plan *plan, int is_sent)
{
    size_t sum = 0;

    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        int is_recv = coll__step_is_recv(step->kind);

        if (step->peer < 0 || is_sent == is_recv)
            continue;
        sum += is_recv ? step->dst.len : step->src.len;
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
            const struct coll__step *next = &plan->steps[plan->after[e]];

            ck_assert(next->peer < 0 ||
                      coll__step_is_recv(next->kind) == is_recv);
        }
    }
    return sum;
}

static void check(const struct coll__view *view,
                  enum coll_collective collective, size_t count,
                  const char *link)
{
    for (int rank = 0; rank < 2; rank++) {
        struct coll__problem pb = {.collective = collective,
                                   .type = COLL_F32,
                                   .nranks = 2,
                                   .rank = rank,
                                   .count = count,
                                   .view = view};
        size_t len = count * sizeof(float);
        struct coll__candidate first = {0};
        struct coll__plan plan;

        ck_assert_int_ge(coll__algo_candidates(&pb, "", &first, 1), 1);
        ck_assert_int_eq(coll__plan_build(first.algo, &pb, CHUNK, &plan),
                         COLL_OK);
        ck_assert_msg(count_bytes(&plan, 1) == len &&
                          count_bytes(&plan, 0) == len,
                      "%s of %zu bytes by %s (%s): %zu sent, %zu received",
                      coll_collective_name(collective), len, first.algo->name,
                      link, count_bytes(&plan, 1), count_bytes(&plan, 0));
        ck_assert_msg(len > CHUNK || plan.n_steps <= 3, "%d steps",
                      plan.n_steps);
        coll__plan_fini(&plan);
    }
}

START_TEST(two_ranks_exchange_a_block_once)
{
    struct coll__view view;

    coll__view_flat(&view, 2, &links[_i].prices, 0.1e-9, CHUNK);
    for (size_t k = 0; k < ARRAY_LEN(halves); k++)
        for (size_t len = sizeof(float); len <= LARGEST; len *= 4)
            check(&view, halves[k], len / sizeof(float), links[_i].name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pairs");

    tcase_add_loop_test(suite_case(suite, "pairs", 60),
                        two_ranks_exchange_a_block_once, 0,
                        (int)ARRAY_LEN(links));
    return suite_run(suite);
}
