/* SPDX-License-Identifier: BSD-3-Clause */
/* test_flow.c - what overlaps what, against a plain look at every pair. */
#include "lib/algo/algo.h"
#include "lib/plan/flow.h"
#include "lib/plan/intern.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define N_STEPS 40

static struct coll__span random_span(unsigned *seed, size_t limit)
{
    struct coll__span span = {(enum coll__buf)(rand_r(seed) % N_BUFS), 0, 0};

    span.off = (size_t)rand_r(seed) % limit * 4;
    span.len = (size_t)rand_r(seed) % 4 * 4;
    return span;
}

/* Steps of all kinds, some of them on empty spans. */
static void random_plan(struct coll__plan *plan, unsigned seed)
{
    size_t limit = seed % 3 ? 12 : (size_t)1 << 55;

    *plan = (struct coll__plan){0};
    for (int i = 0; i < N_STEPS; i++) {
        struct coll__step step = {
            .kind = (enum coll__step_kind)(rand_r(&seed) % N_STEP_KINDS)};

        step.peer = coll__step_is_recv(step.kind) || step.kind == STEP_SEND
                        ? rand_r(&seed) % 3
                        : -1;
        step.src = random_span(&seed, limit);
        step.dst = random_span(&seed, limit);
        if (i && rand_r(&seed) % 2)
            step.src = plan->steps[i - 1].dst;
        step.dst.len = coll__step_reads_src(step.kind) ? step.src.len
                                                       : step.dst.len;
        coll__plan_add(plan, &step);
    }
    ck_assert_int_eq(plan->status, COLL_OK);
}

static int spans_meet(const struct coll__span *a, const struct coll__span *b)
{
    return a->len && b->len && a->buf == b->buf && a->off < b->off + b->len &&
           b->off < a->off + a->len;
}

static int segments_meet(struct coll__segments a, struct coll__segments b)
{
    return a.from < b.to && b.from < a.to;
}

static void check_meetings(const struct coll__plan *plan,
                           const struct coll__flow *flow)
{
    for (int i = 0; i < plan->n_steps; i++)
        for (int j = 0; j < plan->n_steps; j++) {
            const struct coll__step *a = &plan->steps[i], *b = &plan->steps[j];

            if (!coll__step_writes_dst(a->kind) ||
                !coll__step_reads_src(b->kind))
                continue;
            ck_assert_int_eq(spans_meet(&a->dst, &b->src),
                             segments_meet(flow->touches[i].dst,
                                           flow->touches[j].src));
            ck_assert_int_le(flow->touches[j].src.to, flow->n_segments);
        }
}

START_TEST(segments_meet_where_spans_meet)
{
    struct coll__plan plan;
    struct coll__flow flow = {0};

    random_plan(&plan, (unsigned)_i);
    ck_assert_int_eq(coll__flow_need(&flow, &plan), COLL_OK);
    check_meetings(&plan, &flow);
    coll__flow_fini(&flow);
    coll__plan_fini(&plan);
}
END_TEST

/* Copies of blocks, each read whole or, where _i is 1, in part. */
START_TEST(passes_keep_a_flow_true_or_forget_it)
{
    struct coll__plan plan = {0};
    struct coll__flow flow = {0};
    size_t part = _i ? 4 : 8;

    for (size_t b = 0; b < 20; b++) {
        struct coll__span out = {BUF_OUT, 8 * b, 8}, tmp = {BUF_TMP, 8 * b, 8};
        struct coll__span old = {BUF_OUT, 160 + 8 * b, 8};

        plan_recv(&plan, 1, old);
        plan_copy(&plan, out, old);
        plan_send(&plan, 1, (struct coll__span){BUF_OUT, 8 * b, part});
        plan_recv(&plan, 1, tmp);
        plan_reduce(&plan, old, tmp);
        plan_copy(&plan, tmp, old);
        plan_send(&plan, 1, (struct coll__span){BUF_TMP, 8 * b, part});
    }
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(coll__pass_forward(&plan, &flow), COLL_OK);
        ck_assert_int_eq(flow.touches != NULL, !_i || round);
        if (flow.touches)
            check_meetings(&plan, &flow);
        ck_assert_int_eq(coll__pass_fuse(&plan, &flow), COLL_OK);
        check_meetings(&plan, &flow);
    }
    ck_assert_int_lt(plan.n_steps, 140);
    ck_assert_int_eq(coll__flow_link(&flow, &plan), COLL_OK);
    coll__flow_fini(&flow);
    coll__plan_fini(&plan);
}
END_TEST

/* Must step j > i wait for step i? */
static int is_hazard(const struct coll__step *i, const struct coll__step *j)
{
    int wi = coll__step_writes_dst(i->kind), wj = coll__step_writes_dst(j->kind);
    int ri = coll__step_reads_src(i->kind), rj = coll__step_reads_src(j->kind);

    return (wi && wj && spans_meet(&i->dst, &j->dst)) ||
           (wi && rj && spans_meet(&i->dst, &j->src)) ||
           (ri && wj && spans_meet(&i->src, &j->dst));
}

/* waits[i][j]: an edge, or edges one after the other, lead from i to j. */
static void follow_edges(const struct coll__plan *plan,
                         char waits[N_STEPS][N_STEPS])
{
    memset(waits, 0, N_STEPS * N_STEPS);
    for (int i = N_STEPS - 1; i >= 0; i--)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
            int j = plan->after[e];

            ck_assert_int_gt(j, i);
            ck_assert_msg(is_hazard(&plan->steps[i], &plan->steps[j]),
                          "step %d waits for step %d in vain", j, i);
            waits[i][j] = 1;
            for (int k = j; k < N_STEPS; k++)
                waits[i][k] |= waits[j][k];
        }
}

START_TEST(edges_are_the_hazards_of_all_pairs)
{
    char waits[N_STEPS][N_STEPS];
    struct coll__plan plan;

    random_plan(&plan, (unsigned)_i);
    ck_assert_int_eq(coll__plan_link(&plan), COLL_OK);
    follow_edges(&plan, waits);
    for (int i = 0; i < N_STEPS; i++)
        for (int j = i + 1; j < N_STEPS; j++)
            ck_assert_msg(waits[i][j] ||
                              !is_hazard(&plan.steps[i], &plan.steps[j]),
                          "step %d does not wait for step %d", j, i);
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(numbers_are_given_in_order_of_appearance)
{
    struct coll__numbers numbers;

    ck_assert_int_eq(coll__numbers_init(&numbers, 0), COLL_OK);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++)
            ck_assert_int_eq(
                coll__number(&numbers, (uint64_t)i * 0x1000100000001u), i);
    ck_assert_int_eq(numbers.n, 5000);
    coll__numbers_fini(&numbers);
}
END_TEST

/* The pass alone. */
static void fuse(struct coll__plan *plan)
{
    struct coll__flow flow = {0};

    ck_assert_int_eq(coll__pass_fuse(plan, &flow), COLL_OK);
    coll__flow_fini(&flow);
}

/* Receives from all peers first, all reductions then; one peer's two messages
 * stay in order. */
START_TEST(fuse_looks_past_the_messages_of_other_peers)
{
    struct coll__plan plan = {0};
    int n = 1000, n_fused = 0;

    for (int i = 0; i < n; i++)
        plan_recv(&plan, i == n - 1 ? 0 : i,
                  (struct coll__span){BUF_TMP, (size_t)i * 8, 8});
    for (int i = 0; i < n; i++)
        plan_reduce(&plan, (struct coll__span){BUF_OUT, (size_t)i * 8, 8},
                    (struct coll__span){BUF_TMP, (size_t)i * 8, 8});
    fuse(&plan);
    for (int i = 0; i < plan.n_steps; i++)
        n_fused += plan.steps[i].kind == STEP_RECV_REDUCE;
    ck_assert_int_eq(plan.n_steps, n + 1); /* peer 0's first stays apart */
    ck_assert_int_eq(n_fused, n - 1);
    ck_assert_int_eq(plan.steps[0].kind, STEP_RECV);
    ck_assert_int_eq(plan.steps[0].peer, 0);
    coll__plan_fini(&plan);
}
END_TEST

/* Long and short steps in turn, so that pieces are made in the same array. */
START_TEST(split_keeps_the_order_of_the_steps)
{
    static const size_t lens[] = {0, 64, 300, 1000, 128, 129, 4};
    struct coll__plan plan = {0};
    size_t off = 0;
    int n = 0;

    for (int i = 0; i < 50; i++) {
        size_t len = lens[i % 7];

        plan_recv(&plan, i, (struct coll__span){BUF_OUT, off, len});
        off += len;
    }
    ck_assert_int_eq(coll__pass_split(&plan, &(struct coll__flow){0}, 128, 0),
                     COLL_OK);
    off = 0;
    for (int i = 0; i < 50; i++)
        for (size_t end = off + lens[i % 7], once = 1; once || off < end; n++) {
            const struct coll__step *step = &plan.steps[n];

            ck_assert_int_lt(n, plan.n_steps);
            ck_assert_int_eq(step->peer, i);
            ck_assert_uint_eq(step->dst.off, off);
            ck_assert_uint_eq(step->dst.len, min_size(128, end - off));
            off += step->dst.len;
            once = 0;
        }
    ck_assert_int_eq(n, plan.n_steps);
    coll__plan_fini(&plan);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flow");
    TCase *cases = tcase_create("flow");

    tcase_add_loop_test(cases, segments_meet_where_spans_meet, 0, 50);
    tcase_add_loop_test(cases, passes_keep_a_flow_true_or_forget_it, 0, 2);
    tcase_add_loop_test(cases, edges_are_the_hazards_of_all_pairs, 0, 50);
    tcase_add_test(cases, numbers_are_given_in_order_of_appearance);
    tcase_add_test(cases, fuse_looks_past_the_messages_of_other_peers);
    tcase_add_test(cases, split_keeps_the_order_of_the_steps);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
