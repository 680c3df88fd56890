/* SPDX-License-Identifier: BSD-3-Clause */
/* test_mutation.c - the check catches what it must: a plan without one of its
 * steps, with a wrong peer, block, kind or operand, or without a kind of
 * hazard.  Every algorithm is spoilt in every place, so this also proves that
 * no step of any plan is superfluous.
 */
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 9
#define SEEDS 8 /* orders of events that a fault may hide from */

struct group {
    struct coll__cast cast;
    struct coll__plan plans[MAX_RANKS];
    int p;
};

/* Build all ranks' plans; 0 when the algorithm refuses the problem. */
static int group_init(struct group *g, const struct coll__algo *algo,
                      const struct coll__trial *trial)
{
    *g = (struct group){.p = trial->nranks};
    ck_assert_int_eq(coll__cast_init(&g->cast, trial), COLL_OK);
    if (coll__algo_refuses(algo, &g->cast.pbs[0])) {
        coll__cast_fini(&g->cast);
        return 0;
    }
    for (int r = 0; r < g->p; r++)
        ck_assert_int_eq(coll__plan_build(algo, &g->cast.pbs[r], trial->chunk,
                                          &g->plans[r]),
                         COLL_OK);
    return 1;
}

static void group_fini(struct group *g)
{
    for (int r = 0; r < g->p; r++)
        coll__plan_fini(&g->plans[r]);
    coll__cast_fini(&g->cast);
}

/* Is the fault found, in one of several orders of events? */
static int is_caught(const struct group *g)
{
    char why[256] = "";

    for (unsigned seed = 0; seed < SEEDS; seed++)
        if (coll__plan_check(g->cast.pbs, g->plans, seed, why, sizeof(why))) {
            ck_assert_str_ne(why, "");
            return 1;
        }
    return 0;
}

static void link_again(struct coll__plan *plan)
{
    coll__plan_unlink(plan);
    ck_assert_int_eq(coll__plan_link(plan), COLL_OK);
}

/* A copy of a plan's steps, not linked. */
static struct coll__plan copy_of(const struct coll__plan *plan)
{
    struct coll__plan copy = {.algorithm = plan->algorithm};

    for (int i = 0; i < plan->n_steps; i++)
        coll__plan_add(&copy, &plan->steps[i]);
    copy.tmp_len = plan->tmp_len;
    return copy;
}

/* ---- faults in one step --------------------------------------------------- */

static size_t len_of(const struct coll__step *step)
{
    return coll__step_writes_dst(step->kind) ? step->dst.len : step->src.len;
}

static int is_message(const struct coll__step *step)
{
    return step->peer >= 0;
}

/* Each spoils step i and says whether that makes a fault. */
typedef int spoil_fn(const struct group *g, int rank, struct coll__plan *plan,
                     int i);

static int lose(const struct group *g, int rank, struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];

    (void)g, (void)rank;
    if (step->kind == STEP_ORDER || (!len_of(step) && !is_message(step)))
        return 0; /* no data: only slower, or nothing at all */
    memmove(step, step + 1,
            (size_t)(plan->n_steps - i - 1) * sizeof(*step));
    plan->n_steps--;
    return 1;
}

static int take_wrong_peer(const struct group *g, int rank,
                           struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];

    if (!is_message(step) || g->p < 3)
        return 0;
    do
        step->peer = (step->peer + 1) % g->p;
    while (step->peer == rank);
    return 1;
}

/* A span that begins an element elsewhere, within its buffer. */
static struct coll__span shifted(struct coll__span span, size_t size)
{
    span.off = span.off >= size ? span.off - size : span.off + size;
    return span;
}

static int take_wrong_block(const struct group *g, int rank,
                            struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];
    struct coll__span *span =
        coll__step_reads_src(step->kind) ? &step->src : &step->dst;
    size_t size = coll_type_size(g->cast.pbs[rank].type);

    if (!span->len || step->kind == STEP_ORDER)
        return 0;
    if (step->kind == STEP_RECV_REDUCE)
        step->src = step->dst = shifted(step->dst, size);
    else
        *span = shifted(*span, size);
    return 1;
}

/* Combine what comes with something else than the rank's own part. */
static int take_wrong_operand(const struct group *g, int rank,
                              struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];

    if (!step->src.len || step->kind != STEP_RECV_REDUCE)
        return 0;
    step->src = shifted(step->src, coll_type_size(g->cast.pbs[rank].type));
    return 1;
}

/* Combine in place where the plan does not; then nobody has copied. */
static int take_operand_in_place(const struct group *g, int rank,
                                 struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];

    (void)g, (void)rank;
    if (!step->src.len || step->kind != STEP_RECV_REDUCE ||
        coll__same_span(&step->src, &step->dst))
        return 0;
    step->src = step->dst;
    return 1;
}

static int store_instead(const struct group *g, int rank,
                         struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];

    (void)g, (void)rank;
    if (!len_of(step) ||
        (step->kind != STEP_REDUCE && step->kind != STEP_RECV_REDUCE))
        return 0;
    step->kind = step->kind == STEP_REDUCE ? STEP_COPY : STEP_RECV;
    return 1;
}

static int swap_operands(const struct group *g, int rank,
                         struct coll__plan *plan, int i)
{
    struct coll__step *step = &plan->steps[i];

    if (step->kind != STEP_REDUCE || !step->dst.len ||
        g->cast.pbs[rank].order != ORDER_RANKS)
        return 0;
    step->src_first = !step->src_first;
    return 1;
}

static const struct {
    const char *name;
    spoil_fn *spoil;
} faults[] = {
    {"without a step", lose},
    {"with a wrong peer", take_wrong_peer},
    {"with a wrong block", take_wrong_block},
    {"with a wrong operand", take_wrong_operand},
    {"with an operand in place", take_operand_in_place},
    {"with a missing reduction", store_instead},
    {"with swapped operands", swap_operands},
};

/* Spoil every step of every rank in turn; all must be caught. */
static void spoil_all(struct group *g, const struct coll__algo *algo,
                      const struct coll__trial *t, spoil_fn *spoil,
                      const char *name)
{
    for (int r = 0; r < g->p; r++)
        for (int i = 0; i < g->plans[r].n_steps; i++) {
            struct coll__plan whole = g->plans[r];
            int is_fault;

            g->plans[r] = copy_of(&whole);
            is_fault = spoil(g, r, &g->plans[r], i);
            link_again(&g->plans[r]);
            ck_assert_msg(!is_fault || is_caught(g),
                          "%s %s, p %d count %zu order %d seed %u: rank %d %s "
                          "(%d, %s) passes", algo->name,
                          coll_collective_name(t->collective), t->nranks,
                          t->count, t->order, t->seed, r, name, i,
                          coll__step_name(whole.steps[i].kind));
            coll__plan_fini(&g->plans[r]);
            g->plans[r] = whole;
        }
}

/* Two-level machine, so that hierarchical algorithms take part. */
static void make_view(struct coll__view *view, int p)
{
    int hosts[MAX_RANKS];

    for (int r = 0; r < p; r++)
        hosts[r] = r % 2;
    ck_assert_int_eq(
        coll__view_init(view, p, 2, (const int *const[]){hosts}), COLL_OK);
}

static int has_empty_part(const struct coll__problem *pb)
{
    for (int r = 0; r < pb->nranks; r++)
        if ((pb->in_counts && !pb->in_counts[r]) ||
            (pb->out_counts && !pb->out_counts[r]))
            return 1;
    return 0;
}

/* Does the seed let a rank work in place, or have an empty part?  Some plans
 * then copy a rank's own block onto itself within a larger copy. */
static int is_special(const struct coll__trial *trial)
{
    struct coll__cast cast;
    int any = 0;

    ck_assert_int_eq(coll__cast_init(&cast, trial), COLL_OK);
    for (int r = 0; r < trial->nranks; r++)
        any |= cast.pbs[r].in_place || has_empty_part(&cast.pbs[r]);
    coll__cast_fini(&cast);
    return any;
}

static struct coll__trial trial_of(enum coll_collective collective, int p,
                                   const struct coll__view *view)
{
    struct coll__trial t = {.collective = collective,
                            .type = COLL_I32,
                            .nranks = p,
                            .root = p / 2,
                            .count = (size_t)p + 1,
                            .view = view};

    while (is_special(&t))
        t.seed++;
    return t;
}

static void spoil_algo(const struct coll__algo *algo,
                       enum coll_collective collective, int p, int fault,
                       enum coll__order order)
{
    struct coll__view view;
    struct coll__trial t;
    struct group g;

    make_view(&view, p);
    t = trial_of(collective, p, &view);
    t.order = order;
    t.op = order == ORDER_FREE && coll__reduces(collective) &&
                   !coll__is_prefix(collective)
               ? COLL_AVG
               : COLL_SUM;
    if (group_init(&g, algo, &t)) {
        spoil_all(&g, algo, &t, faults[fault].spoil, faults[fault].name);
        group_fini(&g);
    }
    coll__view_fini(&view);
}

/* A barrier hears of some ranks twice, so it may lose a step unharmed. */
START_TEST(a_spoilt_step_is_caught_wherever_it_is)
{
    int most = getenv("TEST_QUICK") ? 2 : 5;

    for (int a = 0; coll__algos[a]; a++)
        for (int k = 0; k < COLL_N_COLLECTIVES; k++) {
            if (!(coll__algos[a]->serves & 1u << k) || k == COLL_BARRIER)
                continue;
            for (int p = 2; p <= most; p += 3)
                spoil_algo(coll__algos[a], (enum coll_collective)k, p, _i,
                           coll__algos[a]->is_canonical ? ORDER_RANKS
                                                        : ORDER_FREE);
        }
}
END_TEST

/* ---- what a step may not touch -------------------------------------------- */

/* Faults that leave every element right, each in rank 0's plan of a group. */
typedef void misuse_fn(struct group *g);

static void take_less_scratch(struct group *g)
{
    g->plans[0].tmp_len--;
}

static void write_between_parts(struct group *g)
{
    struct coll__span first = coll__part(&g->cast.pbs[0], BUF_OUT, 0);

    ck_assert_uint_ge(first.off, sizeof(int32_t));
    plan_copy(&g->plans[0], (struct coll__span){BUF_OUT, 0, sizeof(int32_t)},
              (struct coll__span){BUF_OUT, first.off, sizeof(int32_t)});
}

static void write_behind_out(struct group *g)
{
    size_t len = coll__problem_len(&g->cast.pbs[0], BUF_OUT);

    plan_copy(&g->plans[0], (struct coll__span){BUF_OUT, len, 4},
              (struct coll__span){BUF_IN, 0, 4});
}

static void copy_over_itself(struct group *g)
{
    plan_copy(&g->plans[0], (struct coll__span){BUF_TMP, 0, 12},
              (struct coll__span){BUF_IN, 0, 12});
    plan_copy(&g->plans[0], (struct coll__span){BUF_TMP, 4, 8},
              (struct coll__span){BUF_TMP, 0, 8});
}

static int find_reduce(const struct coll__plan *plan)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == STEP_REDUCE)
            return i;
    ck_abort_msg("the plan has no such step");
    return -1;
}

/* Cut a reduction within an element. */
static void halve_an_element(struct group *g)
{
    struct coll__plan *plan = &g->plans[0];
    int at = find_reduce(plan);
    struct coll__step rest = plan->steps[at];

    plan->steps[at].dst.len = plan->steps[at].src.len = 2;
    rest.dst.off += 2;
    rest.src.off += 2;
    rest.dst.len = rest.src.len -= 2;
    coll__plan_add(plan, &rest);
    memmove(plan->steps + at + 2, plan->steps + at + 1,
            (size_t)(plan->n_steps - at - 2) * sizeof(rest));
    plan->steps[at + 1] = rest;
}

static void message_itself(struct group *g)
{
    plan_send(&g->plans[0], 0, (struct coll__span){BUF_OUT, 0, 4});
    plan_recv(&g->plans[0], 0, (struct coll__span){BUF_TMP, 0, 4});
}

static void ask_the_transport_for_a_user_op(struct group *g)
{
    for (int r = 0; r < g->p; r++)
        g->cast.pbs[r].is_user_op = 1;
}

static const struct {
    const char *words;
    enum coll_collective collective;
    const char *algo;
    misuse_fn *misuse;
} misuses[] = {
    {"behind TMP", COLL_ALLREDUCE, "recursive_doubling", take_less_scratch},
    {"between the parts", COLL_ALLGATHERV, "ring", write_between_parts},
    {"behind OUT", COLL_ALLGATHERV, "ring", write_behind_out},
    {"overlap", COLL_ALLREDUCE, "recursive_doubling", copy_over_itself},
    {"whole elements", COLL_ALLREDUCE, "recursive_doubling", halve_an_element},
    {"rank itself", COLL_ALLREDUCE, "recursive_doubling", message_itself},
    {"a user's operation", COLL_ALLREDUCE, "ring",
     ask_the_transport_for_a_user_op},
};

/* With a gap before the first part, of which no part is empty. */
static struct coll__trial misused_trial(enum coll_collective collective)
{
    struct coll__trial t = {.collective = collective,
                            .type = COLL_I32,
                            .nranks = 3,
                            .count = 12};

    while (is_special(&t) || t.seed % 3 == 0)
        t.seed++;
    return t;
}

START_TEST(a_step_touches_what_it_may_alone)
{
    const struct coll__algo *algo =
        coll__algo_find(misuses[_i].collective, misuses[_i].algo);
    struct coll__trial t = misused_trial(misuses[_i].collective);
    char why[256] = "";
    struct group g;

    if (coll__reduces(t.collective) && algo->is_canonical)
        t.order = ORDER_RANKS; /* a user's operation: nothing is fused */
    ck_assert(group_init(&g, algo, &t));
    ck_assert(!is_caught(&g));
    misuses[_i].misuse(&g);
    link_again(&g.plans[0]);
    ck_assert_int_eq(coll__plan_check(g.cast.pbs, g.plans, 1, why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_msg(strstr(why, misuses[_i].words), "'%s' without '%s'", why,
                  misuses[_i].words);
    group_fini(&g);
}
END_TEST

/* ---- hazards -------------------------------------------------------------- */

enum { READ_AFTER_WRITE = 1, WRITE_AFTER_READ = 2, WRITE_AFTER_WRITE = 4 };

static int meet(const struct coll__span *a, const struct coll__span *b)
{
    return a->buf == b->buf && a->off < b->off + b->len &&
           b->off < a->off + a->len;
}

static int reads(const struct coll__step *step, const struct coll__span *span)
{
    return (coll__step_reads_src(step->kind) && meet(&step->src, span)) ||
           (coll__step_reads_dst(step->kind) && meet(&step->dst, span));
}

static int writes(const struct coll__step *step, const struct coll__span *span)
{
    return coll__step_writes_dst(step->kind) && meet(&step->dst, span);
}

/* The hazards for which b must wait for a. */
static unsigned hazards(const struct coll__step *a, const struct coll__step *b)
{
    unsigned which = 0;

    if (coll__step_writes_dst(a->kind) && reads(b, &a->dst))
        which |= READ_AFTER_WRITE;
    if (coll__step_writes_dst(b->kind) && reads(a, &b->dst))
        which |= WRITE_AFTER_READ;
    if (coll__step_writes_dst(a->kind) && writes(b, &a->dst))
        which |= WRITE_AFTER_WRITE;
    return which;
}

/* Drop the edges that only this hazard asks for; their number. */
static int drop_hazard(struct coll__plan *plan, unsigned hazard)
{
    int kept = 0, dropped = 0, from = 0;

    for (int i = 0; i < plan->n_steps; i++) {
        int to = plan->first_after[i + 1];

        for (int e = from; e < to; e++) {
            int j = plan->after[e];

            if (hazards(&plan->steps[i], &plan->steps[j]) == hazard) {
                plan->n_deps[j]--;
                dropped++;
            } else {
                plan->after[kept++] = j;
            }
        }
        from = to;
        plan->first_after[i + 1] = kept;
    }
    return dropped;
}

/* Does any algorithm's plan go wrong without this hazard's edges? */
static int hazard_matters(unsigned hazard)
{
    int n_caught = 0;

    for (int a = 0; coll__algos[a]; a++)
        for (int k = 0; k < COLL_N_COLLECTIVES; k++) {
            struct coll__trial t =
                trial_of((enum coll_collective)k, 5, NULL);
            struct group g;
            int n = 0;

            if (!(coll__algos[a]->serves & 1u << k) ||
                !group_init(&g, coll__algos[a], &t))
                continue;
            for (int r = 0; r < g.p; r++)
                n += drop_hazard(&g.plans[r], hazard);
            n_caught += n && is_caught(&g);
            group_fini(&g);
        }
    return n_caught;
}

START_TEST(reads_must_wait_for_writes)
{
    ck_assert_int_gt(hazard_matters(READ_AFTER_WRITE), 0);
}
END_TEST

START_TEST(writes_must_wait_for_reads)
{
    ck_assert_int_gt(hazard_matters(WRITE_AFTER_READ), 0);
}
END_TEST

/* No good algorithm writes what nobody reads, so this plan is made by hand:
 * rank 0 fills a place twice. */
START_TEST(writes_must_wait_for_writes)
{
    struct coll__trial t = {.collective = COLL_ALLGATHER,
                            .type = COLL_I32,
                            .nranks = 2,
                            .count = 3};
    struct group g = {.p = 2};

    for (t.seed = 0; g.cast.pbs == NULL; t.seed++) {
        ck_assert_int_eq(coll__cast_init(&g.cast, &t), COLL_OK);
        if (g.cast.pbs[0].in_place || g.cast.pbs[1].in_place)
            coll__cast_fini(&g.cast);
    }
    for (int r = 0; r < 2; r++) {
        struct coll__problem *pb = &g.cast.pbs[r];

        for (int q = 0; q < 2; q++)
            plan_copy(&g.plans[r], coll__part(pb, BUF_OUT, q),
                      coll__whole(pb, BUF_IN));
        plan_send(&g.plans[r], 1 - r, coll__whole(pb, BUF_IN));
        plan_recv(&g.plans[r], 1 - r, coll__part(pb, BUF_OUT, 1 - r));
        ck_assert_int_eq(coll__plan_link(&g.plans[r]), COLL_OK);
    }
    ck_assert(!is_caught(&g));
    ck_assert_int_gt(drop_hazard(&g.plans[0], WRITE_AFTER_WRITE), 0);
    ck_assert(is_caught(&g));
    group_fini(&g);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mutation");
    TCase *steps = tcase_create("steps"), *edges = tcase_create("hazards");

    tcase_set_timeout(steps, 300);
    tcase_set_timeout(edges, 300);
    tcase_add_loop_test(steps, a_spoilt_step_is_caught_wherever_it_is, 0,
                        (int)ARRAY_LEN(faults));
    tcase_add_loop_test(steps, a_step_touches_what_it_may_alone, 0,
                        (int)ARRAY_LEN(misuses));
    tcase_add_test(edges, reads_must_wait_for_writes);
    tcase_add_test(edges, writes_must_wait_for_reads);
    tcase_add_test(edges, writes_must_wait_for_writes);
    suite_add_tcase(suite, steps);
    suite_add_tcase(suite, edges);
    return suite_run(suite);
}
