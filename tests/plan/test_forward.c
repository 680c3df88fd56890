/* SPDX-License-Identifier: BSD-3-Clause */
/* test_forward.c - copies that nobody needs: what the pass drops, what it must
 * leave, and that random plans do the same as before and wait for no more.
 */
#include "lib/algo/algo.h"
#include "lib/plan/flow.h"
#include "lib/proof/proof.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static struct coll__span in(size_t off, size_t len)
{
    return (struct coll__span){BUF_IN, off, len};
}

static struct coll__span out(size_t off, size_t len)
{
    return (struct coll__span){BUF_OUT, off, len};
}

static struct coll__span tmp(size_t off, size_t len)
{
    return (struct coll__span){BUF_TMP, off, len};
}

static void plan_recv_reduce(struct coll__plan *plan, int peer,
                             struct coll__span dst, struct coll__span src)
{
    coll__plan_add(plan, &(struct coll__step){.kind = STEP_RECV_REDUCE,
                                              .peer = peer,
                                              .dst = dst,
                                              .src = src});
}

static int n_copies(const struct coll__plan *plan)
{
    int n = 0;

    for (int i = 0; i < plan->n_steps; i++)
        n += plan->steps[i].kind == STEP_COPY;
    return n;
}

static void expect_src(const struct coll__plan *plan, int i,
                       struct coll__span want)
{
    ck_assert_int_lt(i, plan->n_steps);
    ck_assert_msg(coll__same_span(&plan->steps[i].src, &want),
                  "step %d reads %d[%zu,+%zu)", i, plan->steps[i].src.buf,
                  plan->steps[i].src.off, plan->steps[i].src.len);
}

/* ---- the algorithms ------------------------------------------------------- */

/* n_copies: of the last rank.  One_shot keeps to the canonical tree: over 3
 * ranks the last one adds the sum of two messages to its own operand, in
 * place. */
static const struct {
    enum coll_collective collective;
    const char *name;
    int nranks, n_steps, n_copies; /* n_steps: of rank 0 */
} algorithms[] = {
    {COLL_ALLREDUCE, "one_shot", 3, 4, 1},
    {COLL_ALLREDUCE, "one_shot", 4, 7, 0},
    {COLL_ALLREDUCE, "two_shot", 3, 8, 0},
    {COLL_ALLREDUCE, "two_shot", 4, 12, 0},
    {COLL_ALLREDUCE, "ring", 3, 8, 0},
    {COLL_ALLREDUCE, "recursive_doubling", 2, 2, 0},
    {COLL_ALLREDUCE, "recursive_doubling", 4, 5, 0},
    {COLL_REDUCE_SCATTER, "direct", 3, 4, 0},
    {COLL_REDUCE_SCATTER, "direct", 4, 6, 0},
}; /* of blocks that are long enough to be added as they come */

START_TEST(no_copy_remains_where_in_will_do)
{
    struct coll__problem pb = {.collective = algorithms[_i].collective,
                               .type = COLL_I32,
                               .nranks = algorithms[_i].nranks,
                               .count = 12 * 16384};
    const struct coll__algo *algo =
        coll__algo_find(pb.collective, algorithms[_i].name);

    for (pb.rank = 0; pb.rank < pb.nranks; pb.rank++) {
        int is_last = pb.rank == pb.nranks - 1;
        struct coll__plan plan;

        ck_assert_int_eq(coll__plan_build(algo, &pb, 0, &plan), COLL_OK);
        ck_assert_int_eq(n_copies(&plan),
                         is_last ? algorithms[_i].n_copies : 0);
        if (!pb.rank)
            ck_assert_int_eq(plan.n_steps, algorithms[_i].n_steps);
        coll__plan_fini(&plan);
    }
}
END_TEST

/* ---- by hand -------------------------------------------------------------- */

/* Run one pass alone. */
static void run_pass(int (*pass)(struct coll__plan *, struct coll__flow *),
                     struct coll__plan *plan)
{
    struct coll__flow flow = {0};

    ck_assert_int_eq(pass(plan, &flow), COLL_OK);
    coll__flow_fini(&flow);
}

static void forward(struct coll__plan *plan)
{
    run_pass(coll__pass_forward, plan);
}

static void absorb(struct coll__plan *plan)
{
    run_pass(coll__pass_absorb, plan);
}

/* Cut the steps to pieces of 64 bytes. */
static void split(struct coll__plan *plan, int band)
{
    struct coll__flow flow = {0};

    ck_assert_int_eq(coll__pass_split(plan, &flow, 64, band), COLL_OK);
}

START_TEST(parts_of_a_copy_are_read_from_parts_of_its_source)
{
    struct coll__plan plan = {0};

    plan_copy(&plan, tmp(64, 32), in(8, 32));
    plan_send(&plan, 1, tmp(72, 8));
    plan_recv_reduce(&plan, 2, out(0, 16), tmp(80, 16));
    plan_reduce(&plan, out(0, 16), tmp(64, 16));
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 3);
    ck_assert_uint_eq(plan.tmp_len, 0);
    expect_src(&plan, 0, in(16, 8));
    expect_src(&plan, 1, in(24, 16));
    expect_src(&plan, 2, in(8, 16));
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(what_lies_partly_outside_a_copy_stays)
{
    struct coll__plan plan = {0};

    plan_recv(&plan, 2, tmp(0, 8));
    plan_copy(&plan, tmp(8, 8), in(0, 8));
    plan_copy(&plan, tmp(16, 8), in(8, 8));
    plan_send(&plan, 1, tmp(0, 16));
    plan_send(&plan, 1, tmp(8, 16)); /* in two copies, though all from IN */
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 5);
    expect_src(&plan, 3, tmp(0, 16));
    expect_src(&plan, 4, tmp(8, 16));
    coll__plan_fini(&plan);
}
END_TEST

/* The copy is there so that the receive need not wait for the send. */
START_TEST(a_copy_of_what_is_written_again_stays)
{
    struct coll__plan plan = {0};

    plan_copy(&plan, tmp(0, 8), out(0, 8));
    plan_send(&plan, 1, tmp(0, 8));
    plan_recv(&plan, 1, out(0, 8));
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 3);
    expect_src(&plan, 1, tmp(0, 8));
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(what_was_written_over_a_copy_is_read_there)
{
    struct coll__plan plan = {0};

    plan_copy(&plan, out(0, 16), in(0, 16));
    plan_recv(&plan, 2, out(4, 4));
    plan_send(&plan, 1, out(0, 8));
    plan_send(&plan, 1, out(8, 8));
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 4); /* the caller reads the rest */
    expect_src(&plan, 2, out(0, 8));
    expect_src(&plan, 3, in(8, 8));
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(a_result_that_is_a_copy_stays)
{
    struct coll__plan plan = {0};

    plan_copy(&plan, tmp(0, 8), in(0, 8));
    plan_copy(&plan, out(0, 8), tmp(0, 8));
    plan_copy(&plan, out(8, 0), in(8, 0)); /* nothing */
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 1);
    expect_src(&plan, 0, in(0, 8));
    ck_assert_int_eq(plan.steps[0].dst.buf, BUF_OUT);
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(what_is_combined_or_divided_in_place_is_copied_first)
{
    struct coll__plan plan = {0};

    plan_copy(&plan, out(0, 8), in(0, 8));
    plan_reduce(&plan, out(0, 8), in(8, 8));
    plan_copy(&plan, out(8, 8), in(0, 8));
    coll__plan_add(
        &plan,
        &(struct coll__step){.kind = STEP_SCALE, .peer = -1, .dst = out(8, 8)});
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 4);
    coll__plan_fini(&plan);
}
END_TEST

/* Who uses the copy is to wait for the receive, though no byte moves. */
START_TEST(an_order_of_steps_stays)
{
    struct coll__plan plan = {0};

    plan_recv(&plan, 2, out(0, 8));
    plan_copy(&plan, tmp(0, 8), in(0, 8));
    plan_order(&plan, tmp(0, 8), out(0, 8));
    plan_send(&plan, 1, tmp(0, 8));
    forward(&plan);
    ck_assert_int_eq(plan.n_steps, 4);
    expect_src(&plan, 3, tmp(0, 8));
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(split_cuts_the_operand_too)
{
    struct coll__plan plan = {0};

    plan_recv_reduce(&plan, 1, out(0, 200), in(300, 200));
    split(&plan, 0);
    ck_assert_int_eq(plan.n_steps, 4);
    for (int i = 0; i < 4; i++) {
        size_t len = i < 3 ? 64 : 8;

        ck_assert_uint_eq(plan.steps[i].dst.off, 64 * (size_t)i);
        ck_assert_uint_eq(plan.steps[i].dst.len, len);
        expect_src(&plan, i, in(300 + 64 * (size_t)i, len));
    }
    coll__plan_fini(&plan);
}
END_TEST

/* Two pieces of each step, then the next two. */
START_TEST(bands_go_through_all_steps_in_turn)
{
    static const size_t offs[] = {0,   64,   1000, 1064, 128,
                                  192, 1128, 1192, 256,  1256};
    struct coll__plan plan = {0};

    plan_send(&plan, 1, out(0, 300));
    plan_send(&plan, 1, out(1000, 300));
    split(&plan, 2);
    ck_assert_int_eq(plan.n_steps, 10);
    for (int i = 0; i < plan.n_steps; i++) {
        ck_assert_uint_eq(plan.steps[i].src.off, offs[i]);
        ck_assert_uint_eq(plan.steps[i].src.len, i < 8 ? 64 : 44);
    }
    coll__plan_fini(&plan);
}
END_TEST

/* A copy that nobody waits for is not cut; one that shares bytes with a message, or
 * copies what another step leaves, is. */
START_TEST(bands_leave_a_copy_apart_whole)
{
    for (int shares = 0; shares < 4; shares++) {
        struct coll__plan plan = {0};

        plan_recv(&plan, 1, out(0, 300));
        if (shares == 3)
            plan_copy(&plan, out(1000, 300), out(0, 300));
        else
            plan_copy(&plan, out(1000, 300), in(1000, 300));
        if (shares == 1)
            plan_send(&plan, 1, out(1236, 64));
        else if (shares == 2)
            plan_recv(&plan, 1, out(950, 51));
        split(&plan, 2);
        ck_assert_int_eq(n_copies(&plan), shares ? 5 : 1);
        ck_assert_int_eq(plan.n_steps, 5 + n_copies(&plan) + (shares % 3 != 0));
        coll__plan_fini(&plan);
    }
}
END_TEST

/* ---- what comes is reduced as it is taken --------------------------------- */

/* op(what comes, in), and the other way round. */
START_TEST(a_recv_absorbs_what_nobody_writes)
{
    for (int is_left = 0; is_left < 2; is_left++) {
        struct coll__plan plan = {0};

        plan_recv(&plan, 1, out(0, 8));
        if (is_left)
            plan_reduce_left(&plan, out(0, 8), in(16, 8));
        else
            plan_reduce(&plan, out(0, 8), in(16, 8));
        absorb(&plan);
        ck_assert_int_eq(plan.n_steps, 1);
        ck_assert_int_eq(plan.steps[0].kind, STEP_RECV_REDUCE);
        ck_assert_int_eq(plan.steps[0].peer, 1);
        ck_assert_int_eq(plan.steps[0].src_first, !is_left);
        expect_src(&plan, 0, in(16, 8));
        coll__plan_fini(&plan);
    }
}
END_TEST

/* Else it would wait for who writes there, as the RECV does not; nor can it have a
 * part of what came, nor what came before another message. */
START_TEST(a_recv_absorbs_nothing_else)
{
    struct coll__plan plan = {0};

    plan_recv(&plan, 1, out(0, 8));
    plan_reduce(&plan, out(0, 8), tmp(0, 8)); /* written below */
    plan_recv(&plan, 1, out(16, 8));
    plan_reduce(&plan, out(16, 4), in(0, 4));
    plan_recv(&plan, 1, out(32, 8));
    plan_recv(&plan, 1, tmp(0, 8));
    plan_reduce(&plan, out(32, 8), in(0, 8));
    absorb(&plan);
    ck_assert_int_eq(plan.n_steps, 7);
    for (int i = 0; i < plan.n_steps; i++)
        ck_assert_int_ne(plan.steps[i].kind, STEP_RECV_REDUCE);
    coll__plan_fini(&plan);
}
END_TEST

/* ---- a plan file ---------------------------------------------------------- */

#define HEAD "coll_plan 1\ncollective allreduce\ntype i32\nranks 2\ncount 4\n"
#define RANK(r, peer, with)                                                    \
    "rank " #r "\n0 send peer " #peer " in[0,16)\n"                            \
    "1 recv_reduce peer " #peer " out[0,16)" with "\n"

static int judge(const char *text, char *why, size_t len)
{
    struct coll__plans plans;
    int rc = coll__plans_parse("x.plan", text, strlen(text), &plans);

    ck_assert_msg(rc == COLL_OK, "%s", coll_last_error());
    rc = coll__plans_check(&plans, 2, why, len);
    coll__plans_fini(&plans);
    return rc;
}

/* Without "with" it combines in place; then somebody must have copied. */
START_TEST(a_recv_reduce_names_its_operand_or_has_its_place)
{
    char why[256] = "";

    ck_assert_msg(judge(HEAD RANK(0, 1, " with in[0,16) left")
                            RANK(1, 0, " with in[0,16)"),
                        why, sizeof(why)) == COLL_OK,
                  "%s", why);
    ck_assert_int_eq(judge(HEAD RANK(0, 1, " with in[0,16)") RANK(1, 0, ""),
                           why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_str_eq(why, "rank 1 step 1 reads bytes that nobody wrote");
    ck_assert_int_eq(judge(HEAD RANK(0, 1, " with in[0,16)")
                               RANK(1, 0, " with out[0,16)"),
                           why, sizeof(why)),
                     COLL_ERR_INVALID);
}
END_TEST

/* ---- random plans, run before and after ----------------------------------- */

#define BYTES 24
#define N_STEPS 30

static struct coll__span random_span(unsigned *seed, int can_be_in)
{
    size_t off = (size_t)rand_r(seed) % BYTES;

    return (struct coll__span){
        (enum coll__buf)(rand_r(seed) % (can_be_in ? 3 : 2) + !can_be_in), off,
        (size_t)rand_r(seed) % min_size(7, BYTES - off + 1)};
}

static int lie_apart(const struct coll__span *a, const struct coll__span *b)
{
    return a->buf != b->buf || a->off + a->len <= b->off ||
           b->off + b->len <= a->off;
}

static int may_be(const struct coll__step *step)
{
    if (!coll__step_reads_src(step->kind) || !coll__step_writes_dst(step->kind))
        return 1;
    return lie_apart(&step->src, &step->dst) ||
           (step->kind == STEP_RECV_REDUCE &&
            coll__same_span(&step->src, &step->dst));
}

/* Many copies, and readers of parts of what was written last.  Each step has a
 * name of its own for a peer, not a valid one. */
static void random_plan(struct coll__plan *plan, unsigned seed)
{
    *plan = (struct coll__plan){0};
    while (plan->n_steps < N_STEPS) {
        struct coll__step step = {.peer = -100 - plan->n_steps};
        const struct coll__step *before =
            &plan->steps[plan->n_steps ? rand_r(&seed) % plan->n_steps : 0];

        step.kind = rand_r(&seed) % 2
                        ? STEP_COPY
                        : (enum coll__step_kind)(rand_r(&seed) % N_STEP_KINDS);
        step.dst = random_span(&seed, step.kind == STEP_ORDER);
        step.src = random_span(&seed, 1);
        if (plan->n_steps && rand_r(&seed) % 2 && before->dst.len) {
            step.src = before->dst;
            step.src.off += (size_t)rand_r(&seed) % 2;
            step.src.len -= step.src.off - before->dst.off;
        }
        if (coll__step_reads_src(step.kind))
            step.dst.len = step.src.len = min_size(step.dst.len, step.src.len);
        if (step.kind == STEP_RECV_REDUCE && rand_r(&seed) % 2)
            step.src = step.dst;
        if (may_be(&step))
            coll__plan_add(plan, &step);
    }
    ck_assert_int_eq(plan->status, COLL_OK);
}

/* What a plan does: its results and what it sends, in this order. */
struct trace {
    unsigned char mem[N_BUFS][BYTES], sent[N_STEPS * BYTES];
    size_t n_sent;
};

static unsigned char message_byte(const struct coll__step *step, size_t i)
{
    return (unsigned char)(step->peer * 37 + (int)i * 11);
}

/* Neither commutes nor associates. */
static unsigned char op(unsigned char a, unsigned char b)
{
    return (unsigned char)(3 * a + 5 * b + 1);
}

static unsigned char new_byte(const struct coll__step *step, size_t i,
                              unsigned char dst, unsigned char src)
{
    switch (step->kind) {
    case STEP_COPY:
        return src;
    case STEP_REDUCE:
        return op(dst, src);
    case STEP_SCALE:
        return (unsigned char)(dst * 7 + 3);
    case STEP_RECV:
        return message_byte(step, i);
    case STEP_RECV_REDUCE:
        return op(src, message_byte(step, i));
    default:
        return dst;
    }
}

static void run(const struct coll__plan *plan, struct trace *t)
{
    *t = (struct trace){0};
    for (size_t i = 0; i < sizeof(t->mem); i++)
        t->mem[i / BYTES][i % BYTES] = (unsigned char)(i * 101 + 7);
    for (int s = 0; s < plan->n_steps; s++) {
        const struct coll__step *step = &plan->steps[s];
        unsigned char *dst = t->mem[step->dst.buf] + step->dst.off;
        const unsigned char *src = t->mem[step->src.buf] + step->src.off;

        for (size_t i = 0; i < step->src.len && step->kind == STEP_SEND; i++)
            t->sent[t->n_sent++] = src[i];
        for (size_t i = 0; i < step->dst.len && step->kind != STEP_SEND; i++)
            dst[i] = new_byte(step, i, dst[i],
                              coll__step_reads_src(step->kind) ? src[i] : 0);
    }
}

/* waits[a][b]: step b waits for step a, maybe by way of others; by names. */
static void find_waits(struct coll__plan *plan, char waits[N_STEPS][N_STEPS])
{
    memset(waits, 0, N_STEPS * N_STEPS);
    ck_assert_int_eq(coll__plan_link(plan), COLL_OK);
    for (int i = plan->n_steps - 1; i >= 0; i--)
        for (int e = plan->first_after[i]; e < plan->first_after[i + 1]; e++) {
            int a = -100 - plan->steps[i].peer;
            int b = -100 - plan->steps[plan->after[e]].peer;

            waits[a][b] = 1;
            for (int c = 0; c < N_STEPS; c++)
                waits[a][c] |= waits[b][c];
        }
}

/* _i: the seed. */
START_TEST(random_plans_do_the_same_and_wait_for_no_more)
{
    char before[N_STEPS][N_STEPS], after[N_STEPS][N_STEPS];
    int n_dropped = 0;

    for (unsigned seed = 0; seed < 300; seed++) {
        struct coll__plan plan, same;
        struct trace want, got;

        random_plan(&same, seed + 1000 * (unsigned)_i);
        run(&same, &want);
        find_waits(&same, before);
        random_plan(&plan, seed + 1000 * (unsigned)_i);
        forward(&plan);
        n_dropped += N_STEPS - plan.n_steps;
        run(&plan, &got);
        find_waits(&plan, after);
        ck_assert_uint_eq(got.n_sent, want.n_sent);
        ck_assert_mem_eq(got.sent, want.sent, want.n_sent);
        ck_assert_mem_eq(got.mem[BUF_OUT], want.mem[BUF_OUT], BYTES);
        for (int i = 0; i < N_STEPS * N_STEPS; i++)
            ck_assert_int_le(after[i / N_STEPS][i % N_STEPS],
                             before[i / N_STEPS][i % N_STEPS]);
        coll__plan_fini(&plan);
        coll__plan_fini(&same);
    }
    ck_assert_int_gt(n_dropped, 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forward");
    TCase *tcase = tcase_create("forward");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, no_copy_remains_where_in_will_do, 0,
                        (int)ARRAY_LEN(algorithms));
    tcase_add_test(tcase, parts_of_a_copy_are_read_from_parts_of_its_source);
    tcase_add_test(tcase, what_lies_partly_outside_a_copy_stays);
    tcase_add_test(tcase, a_copy_of_what_is_written_again_stays);
    tcase_add_test(tcase, what_was_written_over_a_copy_is_read_there);
    tcase_add_test(tcase, a_result_that_is_a_copy_stays);
    tcase_add_test(tcase, what_is_combined_or_divided_in_place_is_copied_first);
    tcase_add_test(tcase, an_order_of_steps_stays);
    tcase_add_test(tcase, split_cuts_the_operand_too);
    tcase_add_test(tcase, bands_go_through_all_steps_in_turn);
    tcase_add_test(tcase, bands_leave_a_copy_apart_whole);
    tcase_add_test(tcase, a_recv_absorbs_what_nobody_writes);
    tcase_add_test(tcase, a_recv_absorbs_nothing_else);
    tcase_add_test(tcase, a_recv_reduce_names_its_operand_or_has_its_place);
    tcase_add_loop_test(tcase, random_plans_do_the_same_and_wait_for_no_more, 0,
                        5);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
