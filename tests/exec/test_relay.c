/* SPDX-License-Identifier: BSD-3-Clause */
/* test_relay.c - what is passed on as it is taken, over the fake CUDA driver: how many
 * kernels and bytes that makes of a ring, by figures of its own, and that its results
 * are those of the host for every type. */
#include "tests/support/patience.h"
#include "tests/exec/stream_fixture.h"
#include "tests/support/suite.h"
#include "lib/exec/prog.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE = SLOT / 4 /* elements of I32 */, PIECES = 3 };

/* ---- figures ------------------------------------------------------------- */

/* Of a run. */
struct figures {
    uint64_t copies, copied, kernels, kernel_len, next_len;
};

/* A part's sum goes round in p - 1 messages, each but the first one of a kernel: all but
 * the last of these leave it with the next rank alone. */
static struct figures of_reduce_scatter(uint64_t p, uint64_t part)
{
    return (struct figures){.copies = PIECES,
                            .copied = part,
                            .kernels = (p - 1) * PIECES,
                            .kernel_len = (p - 1) * part};
}

/* That sum then is kept and goes on, as do the others but for the last one. */
static struct figures of_allreduce(uint64_t p, uint64_t part)
{
    return (struct figures){.copies = 2 * PIECES,
                            .copied = 2 * part,
                            .kernels = (2 * p - 3) * PIECES,
                            .kernel_len = (2 * p - 3) * part,
                            .next_len = (p - 1) * part};
}

static int has_cost(const struct world_rank *me, const struct figures *f,
                    const struct fake_counts *a, const struct fake_counts *b)
{
    WORLD_CHECK(me, b->copies - a->copies == f->copies);
    WORLD_CHECK(me, b->copied - a->copied == f->copied);
    WORLD_CHECK(me, b->kernels - a->kernels == f->kernels);
    WORLD_CHECK(me, b->kernel_len - a->kernel_len == f->kernel_len);
    WORLD_CHECK(me, b->next_len - a->next_len == f->next_len);
    return 0;
}

/* The same steps, by one launch. */
static int has_cost_as_one(const struct world_rank *me, const struct figures *f,
                           const struct fake_counts *a,
                           const struct fake_counts *b)
{
    WORLD_CHECK(me, b->kernels - a->kernels == 1);
    WORLD_CHECK(me, b->plan_len - a->plan_len == f->copied + f->kernel_len);
    WORLD_CHECK(me, b->plan_next - a->plan_next == f->next_len);
    return 0;
}

static int count_one(struct world_rank *me, struct stage *s, struct deed *d,
                     const struct figures *f)
{
    const struct coll__algo *ring = coll__algo_find(d->op.collective, "ring");
    struct fake_counts before, after;
    struct coll__prog *prog;

    WORLD_CHECK(me, stream_make(ring, d, s, &prog) == COLL_OK);
    stream_fill(d, s);
    s->ask(&before);
    WORLD_CHECK(me, !stream_start(prog, s) && !stream_finish(prog, s));
    s->ask(&after);
    WORLD_CHECK(me, stream_is_right(d, s));
    coll__prog_destroy(prog);
    return stream_kernel_blocks ? has_cost_as_one(me, f, &before, &after)
                                : has_cost(me, f, &before, &after);
}

static int count_rings(struct world_rank *me)
{
    uint64_t p = (uint64_t)me->size, part = PIECES * SLOT;
    struct figures sum = of_allreduce(p, part),
                   parts = of_reduce_scatter(p, part);
    struct stage *s = stream_stage_new(me);
    struct deed d = {
        .op = {.type = COLL_I32, .op = COLL_SUM, .size = me->size}};
    int failed = 0;

    for (int in_place = 0; in_place < 2; in_place++) {
        d.op.collective = COLL_ALLREDUCE;
        d.op.count = (size_t)p * PIECES * PIECE;
        stream_problem(&d, me->rank, in_place);
        failed |= count_one(me, s, &d, &sum);
        d.op.collective = COLL_REDUCE_SCATTER;
        d.op.count = PIECES * PIECE;
        stream_problem(&d, me->rank, in_place);
        failed |= count_one(me, s, &d, &parts);
    }
    stream_stage_free(me, s);
    return failed;
}

/* _i: ranks, from 2 on, of processes, which have counts of their own; each with two
 * slots and three, by streams and by kernels. */
START_TEST(a_ring_passes_on_what_it_takes)
{
    struct stream_scene scene = {.size = 2 + _i / 4,
                                 .n_devices = 1 + _i % 3,
                                 .are_processes = 1,
                                 .n_slots = 2 + _i % 2,
                                 .seed = (unsigned)_i + 1,
                                 .slot = SLOT,
                                 .body = count_rings};

    stream_kernel_blocks = _i / 2 % 2 ? 1 + _i % 2 : 0;
    setenv("FAKE_CUDA_DELAY", "10", 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- results ------------------------------------------------------------- */

static int try_one(struct world_rank *me, struct stage *s, struct deed *d)
{
    const struct coll__algo *ring = coll__algo_find(d->op.collective, "ring");
    struct coll__prog *prog;
    int is_right = 1;

    WORLD_CHECK(me, stream_make(ring, d, s, &prog) == COLL_OK);
    for (int run = 0; run < 2 && is_right; run++) {
        stream_fill(d, s);
        WORLD_CHECK(me, !stream_start(prog, s) && !stream_finish(prog, s));
        is_right = stream_is_right(d, s);
    }
    if (!is_right)
        fprintf(stderr, "%s of %d ranks, type %d, op %d, count %zu\n",
                coll_collective_name(d->op.collective), me->size,
                (int)d->op.type, (int)d->op.op, d->op.count);
    coll__prog_destroy(prog);
    return !is_right;
}

/* Each type with an operation that takes it, in pieces that are whole slots and in
 * others. */
static int try_types(struct world_rank *me)
{
    static const enum coll_collective what[] = {
        COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_REDUCE_SCATTERV,
        COLL_ALLGATHER, COLL_ALLGATHERV};
    static const size_t counts[] = {1031, 256, 777, 63};
    struct stage *s = stream_stage_new(me);
    int k = (int)s->rank->scene->seed, failed = 0;

    for (int type = 0; type < COLL_N_TYPES; type++)
        for (size_t w = 0; w < ARRAY_LEN(what) && !failed; w++, k++) {
            struct deed d = {.op = {.collective = what[w],
                                    .type = (enum coll_type)type,
                                    .size = me->size,
                                    .count = counts[k % 4],
                                    .seed = (unsigned)k}};

            if (coll__reduces(what[w]))
                stream_draw_op(&d.op, (unsigned)k);
            if (w) /* as many elements in all */
                d.op.count = 1 + d.op.count / (size_t)me->size;
            stream_problem(&d, me->rank, (k + me->rank) % 2);
            failed = try_one(me, s, &d);
        }
    stream_stage_free(me, s);
    return failed;
}

/* _i: ranks, 1 to 8, of threads and of processes, by streams and by kernels. */
START_TEST(every_type_goes_round)
{
    struct stream_scene scene = {.size = 1 + _i / 2,
                                 .n_devices = 1 + _i % 4,
                                 .are_processes = _i % 2,
                                 .n_slots = 1 + _i % 4,
                                 .seed = (unsigned)_i + 1,
                                 .slot = SLOT,
                                 .body = try_types};

    stream_kernel_blocks = _i / 2 % 2 != _i % 2 ? 1 + _i % 3 : 0;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    setenv("FAKE_CUDA_DELAY", "10", 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relay");
    TCase *tc = tcase_create("relay");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_ring_passes_on_what_it_takes, 0, 20);
    tcase_add_loop_test(tc, every_type_goes_round, 0, 16);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
