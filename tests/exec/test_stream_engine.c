/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stream_engine.c - whole plans in streams over the fake CUDA driver: every
 * algorithm of every collective against results of the host, what that costs against
 * what the plan says, captures, and streams that are released. */
#include "tests/support/patience.h"
#include "tests/exec/every_algorithm.h"
#include "tests/support/suite.h"
#include "lib/exec/prog.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* size, devices, processes, slots, blocks of a kernel */
static const int scenes[][5] = {
    {1, 1, 0, 2, 0}, {2, 1, 1, 1, 0}, {3, 2, 0, 2, 0}, {4, 1, 1, 2, 0},
    {5, 4, 0, 3, 0}, {7, 1, 0, 1, 0}, {8, 2, 1, 2, 0}, {1, 1, 0, 2, 3},
    {2, 1, 1, 1, 2}, {3, 2, 0, 2, 1}, {4, 4, 1, 2, 3}, {5, 1, 0, 3, 2},
    {7, 4, 0, 1, 1}, {8, 2, 1, 2, 1},
};

/* _i: the scene. */
START_TEST(every_algorithm_gives_what_the_host_gives)
{
    struct stream_scene scene = {.size = scenes[_i][0],
                                 .n_devices = scenes[_i][1],
                                 .are_processes = scenes[_i][2],
                                 .n_slots = scenes[_i][3],
                                 .seed = (unsigned)_i + 1,
                                 .slot = SLOT,
                                 .body = every_algorithm};

    stream_kernel_blocks = scenes[_i][4];

    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    setenv("FAKE_CUDA_DELAY", "10", 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* _i: the scene. */
START_TEST(registered_buffers_are_read_in_place)
{
    struct stream_scene scene = {.size = scenes[_i][0],
                                 .n_devices = scenes[_i][1],
                                 .are_processes = scenes[_i][2],
                                 .n_slots = scenes[_i][3],
                                 .seed = (unsigned)_i + 100,
                                 .slot = SLOT,
                                 .body = every_algorithm};

    stream_registers = 1;
    stream_kernel_blocks = scenes[_i][4];
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    setenv("FAKE_CUDA_DELAY", "10", 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* To where it belongs: one's own part, and what the others have. */
static int count_lying(struct world_rank *me)
{
    const struct coll__algo *ring = coll__algo_find(COLL_ALLGATHER, "ring");
    struct stage *s = stream_stage_new(me);
    struct deed d = {.op = {.collective = COLL_ALLGATHER,
                            .type = COLL_I32,
                            .size = me->size,
                            .count = 300}};
    uint64_t others = (uint64_t)me->size - 1, len = 300 * sizeof(int32_t);
    struct fake_counts before, after;
    struct coll__prog *prog;

    stream_problem(&d, me->rank, 0);
    WORLD_CHECK(me, stream_make(ring, &d, s, &prog) == COLL_OK);
    stream_fill(&d, s);
    s->ask(&before);
    WORLD_CHECK(me, !stream_start(prog, s) && !stream_finish(prog, s));
    s->ask(&after);
    WORLD_CHECK(me, stream_is_right(&d, s));
    if (stream_kernel_blocks)
        WORLD_CHECK(me, after.plan_len - before.plan_len == (1 + others) * len);
    else
        WORLD_CHECK(me, after.copied - before.copied == (1 + others) * len);
    coll__prog_destroy(prog);
    stream_stage_free(me, s);
    return 0;
}

/* _i: ranks, twice: by streams, by kernels */
START_TEST(each_byte_of_an_allgather_is_copied_once)
{
    struct stream_scene scene = {.size = _i / 2,
                                 .n_devices = 1,
                                 .are_processes = 1,
                                 .seed = 1,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = count_lying};

    stream_registers = 1;
    stream_kernel_blocks = _i % 2 * 2;
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- captured ------------------------------------------------------------ */

/* An allreduce in place, of numbers that change, and its graph by turns with what is
 * not captured: 1,000 launches. */
static int replay(struct world_rank *me)
{
    const struct coll__algo *ring = coll__algo_find(COLL_ALLREDUCE, "ring");
    const struct coll__algo *tree = coll__algo_find(COLL_BROADCAST, "binomial");
    struct stage *s = stream_stage_new(me);
    struct coll__prog *sum, *other;
    struct deed d = {.op = {.collective = COLL_ALLREDUCE,
                            .type = COLL_I32,
                            .size = me->size,
                            .count = 300}},
                e = {.op = {.collective = COLL_BROADCAST,
                            .type = COLL_F64,
                            .size = me->size,
                            .count = 65}};
    CUgraphExec exec;

    stream_problem(&d, me->rank, 0);
    stream_problem(&e, me->rank, 0);
    WORLD_CHECK(me, !stream_make(ring, &d, s, &sum) &&
                        !stream_make(tree, &e, s, &other));
    exec = stream_capture(sum, s);
    for (int batch = 0; batch < part_of(20); batch++) {
        e.op.seed = d.op.seed = (unsigned)batch;
        stream_fill(&e, s);
        WORLD_CHECK(me, stream_start(other, s) == COLL_OK &&
                            stream_finish(other, s) == COLL_OK);
        WORLD_CHECK(me, stream_is_right(&e, s));
        stream_fill(&d, s);
        for (int i = 0; i < 50; i++)
            OK(cu.GraphLaunch(exec, s->rank->s));
        OK(cu.StreamSynchronize(s->rank->s));
        WORLD_CHECK(me, stream_is_right(&d, s));
    }
    OK(cu.GraphExecDestroy(exec));
    coll__prog_destroy(sum);
    coll__prog_destroy(other);
    stream_stage_free(me, s);
    return 0;
}

/* _i: threads, processes; the same as one kernel of two blocks, on registered buffers,
 * and both. */
START_TEST(a_graph_runs_a_thousand_times)
{
    struct stream_scene scene = {.size = 3,
                                 .n_devices = 1,
                                 .are_processes = _i % 2,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = replay};

    stream_kernel_blocks = _i / 2 % 2 * 2;
    stream_registers = _i / 4;

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- ends ---------------------------------------------------------------- */

static struct deed deed_of(const struct world_rank *me, enum coll_type type,
                           size_t count)
{
    struct deed d = {.op = {.collective = COLL_ALLREDUCE,
                            .type = type,
                            .size = me->size,
                            .count = count}};

    stream_problem(&d, me->rank, 0);
    return d;
}

static int make_ring(const struct deed *d, struct stage *s,
                     struct coll__prog **prog)
{
    return stream_make(coll__algo_find(COLL_ALLREDUCE, "ring"), d, s, prog);
}

/* Three ranks; i % 2: they are processes, i / 2: all steps are one kernel. */
static int run_three(int i, world_fn *fn)
{
    struct stream_scene scene = {.size = 3,
                                 .n_devices = 1,
                                 .are_processes = i % 2,
                                 .seed = 1,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = fn};

    stream_kernel_blocks = i / 2 * 2;
    return stream_run(&scene);
}

/* The others come late: to be enqueued is not to be there. */
static int come_late(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_U16, 100);
    struct coll__prog *prog;

    WORLD_CHECK(me, make_ring(&d, s, &prog) == COLL_OK);
    stream_fill(&d, s);
    if (me->rank == 0) {
        WORLD_CHECK(me, stream_start(prog, s) == COLL_OK);
        usleep(10000);
        WORLD_CHECK(me, stream_reached(prog, s) == COLL_IN_PROGRESS);
    }
    world_meet(me);
    if (me->rank)
        WORLD_CHECK(me, stream_start(prog, s) == COLL_OK);
    WORLD_CHECK(me,
                stream_finish(prog, s) == COLL_OK && stream_is_right(&d, s));
    coll__prog_destroy(prog);
    stream_stage_free(me, s);
    return 0;
}

START_TEST(enqueued_is_not_reached)
{
    ck_assert_int_eq(run_three(_i, come_late), 0);
}
END_TEST

/* Rank 0 begins and the others never do; it is released. */
static int never_come(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_U16, 2000);
    struct stream_rank *rank = s->rank;
    struct coll__prog *prog;

    WORLD_CHECK(me, make_ring(&d, s, &prog) == COLL_OK);
    if (me->rank == 0) {
        WORLD_CHECK(me, stream_start(prog, s) == COLL_OK);
        rank->tp->ops->release(rank->tp, COLL_ERR_ABORTED);
        OK(cu.StreamSynchronize(s->rank->s));
        WORLD_CHECK(me, stream_reached(prog, s) == COLL_ERR_ABORTED);
    }
    world_meet(me);
    WORLD_CHECK(me, stream_start(prog, s) == COLL_ERR_ABORTED);
    stream_fall_apart(me, s, prog);
    return 0;
}

START_TEST(a_run_that_nobody_joins_is_released)
{
    ck_assert_int_eq(run_three(_i, never_come), 0);
}
END_TEST

/* A kernel of rank 0 cannot be started: it says so, and the others learn of it while
 * their streams wait.  Streams that are released no longer wait for each other's data,
 * so the ranks are processes: what they read and write then is a race by design, which
 * the thread sanitizer would report. */
static int fall_out(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_U16, 2000);
    struct stream_rank *rank = s->rank;
    struct coll__prog *prog;
    int rc;

    WORLD_CHECK(me, make_ring(&d, s, &prog) == COLL_OK);
    if (me->rank == 0 && rank->scene->arg)
        usleep(50000);
    rc = stream_start(prog, s);
    if (rc == COLL_OK)
        rc = stream_finish(prog, s);
    WORLD_CHECK(me, rc == COLL_ERR_INVALID);
    rank->tp->ops->release(rank->tp, rc);
    OK(cu.StreamSynchronize(s->rank->s));
    stream_fall_apart(me, s, prog);
    return 0;
}

/* _i: does it begin after the others? */
START_TEST(a_rank_that_falls_out_takes_the_others_along)
{
    struct stream_scene scene = {.size = 3,
                                 .n_devices = 1,
                                 .are_processes = 1,
                                 .seed = 1,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = fall_out,
                                 .arg = _i ? "late" : NULL,
                                 .fault = "cuLaunchKernel:2:1"};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- who serves ---------------------------------------------------------- */

/* Plans in any order, for more slots, of longer messages do not suit streams. */
static int serve(struct world_rank *me)
{
    const struct coll__algo *ring = coll__algo_find(COLL_ALLREDUCE, "ring");
    static const struct coll__slots rooms[] = {
        {.n_slots = 0, .slot = SLOT},
        {.n_slots = 3, .slot = SLOT},
        {.n_slots = 2, .slot = 2 * SLOT}};
    struct stage *s = stream_stage_new(me);
    struct coll__op op = {.base = COLL_SUM};
    struct coll__binding to = {.op = &op,
                               .routes = &s->routes,
                               .device = &coll__device_cuda,
                               .is_lent_scratch = 1};
    struct deed d = {.op = {.collective = COLL_ALLREDUCE,
                            .type = COLL_F32,
                            .size = me->size,
                            .count = 2000}};

    stream_problem(&d, me->rank, 0);
    for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
        struct coll__plan plan;
        struct coll__prog *prog;

        if (rooms[i].n_slots)
            WORLD_CHECK(me, !coll__plan_build_in_slot_order(ring, &d.pb,
                                                            &rooms[i], &plan));
        else
            WORLD_CHECK(me, !coll__plan_build(ring, &d.pb, SLOT, &plan));
        WORLD_CHECK(me, coll__prog_create(&d.pb, &plan, &to, &prog) ==
                            COLL_ERR_INTERNAL);
    }
    stream_stage_free(me, s);
    return 0;
}

START_TEST(other_plans_are_refused)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = 0,
                                 .seed = 1,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = serve};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream_engine");
    TCase *tc = tcase_create("stream_engine");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, every_algorithm_gives_what_the_host_gives, 0,
                        (int)ARRAY_LEN(scenes));
    tcase_add_loop_test(tc, registered_buffers_are_read_in_place, 0,
                        (int)ARRAY_LEN(scenes));
    tcase_add_loop_test(tc, each_byte_of_an_allgather_is_copied_once, 4, 12);
    tcase_add_loop_test(tc, a_graph_runs_a_thousand_times, 0, 8);
    tcase_add_loop_test(tc, enqueued_is_not_reached, 0, 4);
    tcase_add_loop_test(tc, a_run_that_nobody_joins_is_released, 0, 4);
    tcase_add_loop_test(tc, a_rank_that_falls_out_takes_the_others_along, 0, 2);
    tcase_add_test(tc, other_plans_are_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
