/* SPDX-License-Identifier: BSD-3-Clause */
/* every_algorithm.c - every algorithm of every collective in streams, against results of
 * the host, and what that costs against what the plan says. */
#include "tests/exec/every_algorithm.h"
#include "lib/exec/prog.h"
#include "lib/type/signature.h"
#include "tests/support/patience.h"

#include <stdio.h>

enum { DRAWS = 2 }; /* of each algorithm and collective */

/* ---- what it cost -------------------------------------------------------- */

/* Of a run. */
struct cost {
    uint64_t copies, copied, kernels, kernel_len, next_len, messages;
};

/* One launch and no event; what its steps leave is what the plan's do.  The
 * first run writes the plan to the device. */
static int costs_one_kernel(const struct world_rank *me,
                            const struct cost *cost, int is_first,
                            const struct fake_counts *before,
                            const struct fake_counts *after)
{
    WORLD_CHECK(me, after->kernels - before->kernels == 1);
    WORLD_CHECK(me, after->plan_len - before->plan_len ==
                        cost->copied + cost->kernel_len);
    WORLD_CHECK(me, after->plan_next - before->plan_next == cost->next_len);
    WORLD_CHECK(me, after->records == before->records);
    WORLD_CHECK(me, after->copies - before->copies == (uint64_t)is_first);
    WORLD_CHECK(me, after->waits == before->waits);
    WORLD_CHECK(me, after->writes == before->writes);
    WORLD_CHECK(me, after->fills == before->fills);
    WORLD_CHECK(me, after->functions == before->functions);
    return 0;
}

/* What is passed on as it is taken is one kernel, or one copy if nobody wants it here;
 * what lies where it was is copied once. */
static void add_step(struct cost *cost, const struct coll__prog *prog, int i)
{
    const struct coll__step *step = &coll__prog_plan(prog)->steps[i];
    const struct coll__span *direct = prog->on_stream->direct;
    int is_send = step->kind == STEP_SEND;
    int passes_on = step->is_fused && !(direct && direct[i + 1].len);
    int was_passed_on = i && step[-1].is_fused && !(direct && direct[i].len);
    size_t len = is_send ? step->src.len : step->dst.len;
    int is_kept = prog->on_stream->fused[i] == FUSED_KEPT;
    int is_kernel = (passes_on && is_kept) || step->kind == STEP_REDUCE ||
                    step->kind == STEP_SCALE || step->kind == STEP_RECV_REDUCE;

    cost->messages += step->peer >= 0;
    if (step->kind == STEP_ORDER || was_passed_on ||
        (is_send && direct && direct[i].len))
        return;
    *(is_kernel ? &cost->kernels : &cost->copies) += len > 0;
    *(is_kernel ? &cost->kernel_len : &cost->copied) += len;
    if (passes_on && is_kept)
        cost->next_len += len;
}

/* What the driver was given is what the plan has, and no more: but for messages that
 * lie where they were, which are awaited at the end. */
static int costs_as_planned(const struct world_rank *me,
                            const struct coll__prog *prog, int is_first,
                            const struct fake_counts *before,
                            const struct fake_counts *after)
{
    uint64_t n_last = (uint64_t)prog->on_stream->n_last;
    uint64_t n_begins = prog->on_stream->carried != NULL;
    struct cost cost = {0};

    for (int i = 0; i < coll__prog_plan(prog)->n_steps; i++)
        add_step(&cost, prog, i);
    if (stream_kernel_blocks)
        return costs_one_kernel(me, &cost, is_first, before, after);
    WORLD_CHECK(me, after->copies - before->copies == cost.copies);
    WORLD_CHECK(me, after->copied - before->copied == cost.copied);
    WORLD_CHECK(me, after->kernels - before->kernels == cost.kernels);
    WORLD_CHECK(me, after->kernel_len - before->kernel_len == cost.kernel_len);
    WORLD_CHECK(me, after->next_len - before->next_len == cost.next_len);
    WORLD_CHECK(me, after->waits - before->waits ==
                        cost.messages + n_last + n_begins);
    WORLD_CHECK(me, after->writes - before->writes == cost.messages + n_begins);
    WORLD_CHECK(me, after->records == before->records);
    WORLD_CHECK(me, after->fills == before->fills);
    WORLD_CHECK(me, after->functions == before->functions);
    return 0;
}

/* ---- every algorithm ----------------------------------------------------- */

/* Threads share the driver's counts: those of processes are looked at. */
static int try_deed(struct world_rank *me, const struct coll__algo *algo,
                    const struct deed *d, struct stage *s)
{
    struct fake_counts before, after;
    struct coll__prog *prog = NULL;
    int counts = s->rank->scene->are_processes && !stream_scales(d);

    WORLD_CHECK(me, stream_make(algo, d, s, &prog) == COLL_OK);
    for (int run = 0; run < 2; run++) {
        stream_fill(d, s);
        s->ask(&before);
        WORLD_CHECK(me, stream_start(prog, s) == COLL_OK);
        WORLD_CHECK(me, stream_finish(prog, s) == COLL_OK);
        s->ask(&after);
        if (!stream_is_right(d, s)) {
            fprintf(stderr, "%s %s of %d ranks, count %zu\n",
                    coll_collective_name(d->op.collective), algo->name,
                    me->size, d->op.count);
            return 1;
        }
        if (counts && costs_as_planned(me, prog, !run, &before, &after))
            return 1;
    }
    coll__prog_destroy(prog);
    return 0;
}

/* The types and operations take turns. */
static void draw(struct deed *d, enum coll_collective collective, int k,
                 int size)
{
    static const size_t counts[] = {1, 37, 300, 0, 129};

    d->op = (struct oracle_op){.collective = collective,
                               .type = (enum coll_type)(k % COLL_N_TYPES),
                               .root = k % size,
                               .size = size,
                               .count = counts[k % 5],
                               .seed = (unsigned)k + 1};
    if (!coll__reduces(collective))
        return;
    stream_draw_op(&d->op, (unsigned)k / 3);
    if (k % 7 == 3) {
        d->op.own = OWN_PREMUL;
        d->op.type = COLL_I64;
        d->op.op = COLL_SUM;
    }
}

/* Half of the ranks in hosts of two, as algorithms with levels see them. */
int every_algorithm(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct coll__view view;
    int host[ORACLE_RANKS], k = (int)s->rank->scene->seed, failed = 0;
    int in_place;

    for (int r = 0; r < me->size; r++)
        host[r] = r / 2;
    WORLD_CHECK(me, coll__view_init(&view, me->size, 2,
                                    (const int *const[]){host}) == COLL_OK);
    for (int a = 0; coll__algos[a]; a++)
        for (int i = 0; i < COLL__N_OF_ALL; i++) {
            enum coll_collective c = coll__of_all(i);
            struct deed d;

            for (int n = 0;
                 n < part_of(DRAWS) && coll__algos[a]->serves & 1u << c; n++) {
                draw(&d, c, k++, me->size);
                in_place =
                    stream_registers ? k % 2 == 0 : (k + me->rank) % 3 == 0;
                stream_problem(&d, me->rank, in_place);
                d.pb.view = &view;
                if (!coll__algo_refuses(coll__algos[a], &d.pb))
                    failed |= try_deed(me, coll__algos[a], &d, s);
                WORLD_CHECK(me, !failed);
            }
        }
    coll__view_fini(&view);
    stream_stage_free(me, s);
    return failed;
}
