/* SPDX-License-Identifier: BSD-3-Clause */
/* test_proxy.c - plans in streams of ranks on several hosts, over the fake CUDA driver:
 * messages between GPUs that do not reach each other are carried by the hosts. */
#include "tests/exec/every_algorithm.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "lib/exec/prog.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- every algorithm --------------------------------------------------------- */

/* ranks, processes, slots; the ranks' hosts */
static const struct {
    int size, are_processes, n_slots;
    const int hosts[9];
} layouts[] = {
    {1, 0, 1, {0}},
    {2, 0, 1, {0, 1}},
    {2, 1, 2, {0, 1}},
    {3, 1, 1, {0, 0, 1}},
    {3, 0, 2, {0, 1, 0}},
    {4, 1, 2, {0, 0, 1, 1}},
    {4, 0, 1, {0, 1, 2, 3}},
    {5, 1, 1, {0, 0, 1, 1, 1}},
    {5, 0, 3, {0, 1, 1, 2, 0}},
    {6, 1, 2, {0, 0, 1, 1, 2, 2}},
    {7, 0, 1, {0, 1, 0, 1, 0, 1, 0}},
    {8, 1, 1, {0, 0, 0, 0, 1, 1, 1, 1}},
    {9, 1, 2, {0, 0, 0, 1, 1, 2, 2, 2, 2}},
};

static struct stream_scene scene_of(int i, world_fn *body)
{
    return (struct stream_scene){.size = layouts[i].size,
                                 .n_devices = 1 + i % 3,
                                 .are_processes = layouts[i].are_processes,
                                 .n_slots = layouts[i].n_slots,
                                 .seed = (unsigned)i + 200,
                                 .slot = SLOT,
                                 .body = body,
                                 .hosts = layouts[i].hosts};
}

/* _i: the layout. */
START_TEST(every_algorithm_gives_what_the_host_gives)
{
    struct stream_scene scene = scene_of(_i, every_algorithm);

    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    setenv("FAKE_CUDA_DELAY", "10", 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- captured ------------------------------------------------------------------ */

static struct deed deed_of(const struct world_rank *me,
                           enum coll_collective collective, size_t count)
{
    struct deed d = {.op = {.collective = collective,
                            .type = COLL_I32,
                            .size = me->size,
                            .count = count}};

    stream_problem(&d, me->rank, 0);
    return d;
}

static struct coll__prog *make(const struct deed *d, const char *algo,
                               struct stage *s)
{
    struct coll__prog *prog = NULL;

    ck_assert_int_eq(
        stream_make(coll__algo_find(d->op.collective, algo), d, s, &prog),
        COLL_OK);
    return prog;
}

static CUgraphExec capture(struct coll__prog *prog, struct stage *s)
{
    CUgraphExec exec;
    CUgraph graph;

    OK(cu.StreamBeginCapture(s->rank->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ck_assert_int_eq(stream_start(prog, s), COLL_OK);
    OK(cu.StreamEndCapture(s->rank->s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphDestroy(graph));
    return exec;
}

static int does(struct stage *s, const struct deed *d, CUgraphExec exec, int n)
{
    stream_fill(d, s);
    for (int i = 0; i < n; i++)
        OK(cu.GraphLaunch(exec, s->rank->s));
    OK(cu.StreamSynchronize(s->rank->s));
    return stream_is_right(d, s);
}

/* Two graphs by turns, and what is not captured between them. */
static int replay(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_ALLREDUCE, 300);
    struct deed e = deed_of(me, COLL_BROADCAST, 65);
    struct coll__prog *sum = make(&d, "ring", s);
    struct coll__prog *tree = make(&e, "binomial", s);
    CUgraphExec exec = capture(sum, s), other = capture(tree, s);

    for (int i = 0; i < 20; i++) {
        d.op.seed = e.op.seed = (unsigned)i;
        WORLD_CHECK(me, does(s, &d, exec, 20));
        WORLD_CHECK(me, does(s, &e, other, 3));
        stream_fill(&d, s);
        WORLD_CHECK(me, !stream_start(sum, s) && !stream_finish(sum));
        WORLD_CHECK(me, stream_is_right(&d, s));
    }
    OK(cu.GraphExecDestroy(exec));
    OK(cu.GraphExecDestroy(other));
    coll__prog_destroy(sum);
    coll__prog_destroy(tree);
    stream_stage_free(me, s);
    return 0;
}

/* _i: the layout. */
START_TEST(graphs_are_launched_again_and_again)
{
    struct stream_scene scene = scene_of(_i, replay);

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* A graph that outlives the transport does not hold up its stream. */
static int outlive(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_ALLREDUCE, 300);
    struct coll__prog *sum = make(&d, "ring", s);
    struct stream_rank *rank = s->rank;
    CUgraphExec exec = capture(sum, s);

    WORLD_CHECK(me, does(s, &d, exec, 3));
    world_meet(me);
    coll__prog_destroy(sum);
    stream_close(rank, 1);
    for (int i = 0; i < 3; i++)
        OK(cu.GraphLaunch(exec, rank->s));
    OK(cu.StreamSynchronize(rank->s));
    OK(cu.GraphExecDestroy(exec));
    stream_stage_free(me, s);
    return 0;
}

/* _i: threads, processes. */
START_TEST(a_graph_may_outlive_the_transport)
{
    static const int hosts[] = {0, 1, 2};
    struct stream_scene scene = {.size = 3,
                                 .n_devices = 1,
                                 .are_processes = _i,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = outlive,
                                 .hosts = hosts};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- what is wrong ------------------------------------------------------------- */

static int await_state(const struct stream_rank *rank)
{
    double until = coll__now() + patient(20);

    while (rank->tp->ops->state(rank->tp) == COLL_OK && coll__now() < until)
        usleep(1000);
    return rank->tp->ops->state(rank->tp);
}

static void fall_apart(struct world_rank *me, struct stage *s,
                       struct coll__prog *prog)
{
    struct stream_rank *rank = s->rank;

    coll__prog_abandon(prog);
    coll__prog_destroy(prog);
    stream_stage_free(me, s);
    stream_close(rank, 0);
}

/* Rank 1 receives a message of another call than its own, and releases its streams. */
static int disagree(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_BROADCAST, 9);
    struct coll__prog *prog = make(&d, "binomial", s);
    struct coll__signature sig = {.collective = COLL_BROADCAST,
                                  .count = (uint64_t)me->rank};
    struct stream_rank *rank = s->rank;

    coll__prog_start(prog, &sig, (void *)s->in, (void *)s->out, rank->s);
    if (me->rank == 1)
        WORLD_CHECK(me, await_state(rank) == COLL_ERR_MISMATCH);
    world_meet(me);
    fall_apart(me, s, prog);
    return 0;
}

/* Rank 0 begins and the other never does.  Streams that were released no longer wait, so
 * nobody may carry their messages any more. */
static int never_come(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_ALLREDUCE, 2000);
    struct coll__prog *prog = make(&d, "ring", s);
    struct stream_rank *rank = s->rank;

    if (me->rank == 0) {
        WORLD_CHECK(me, stream_start(prog, s) == COLL_OK);
        WORLD_CHECK(me, coll__prog_reached(prog) == COLL_IN_PROGRESS);
        stream_hosts_stop(rank);
        rank->tp->ops->release(rank->tp, COLL_ERR_ABORTED);
        coll__prog_abandon(prog);
        WORLD_CHECK(me, coll__prog_reached(prog) == COLL_ERR_ABORTED);
        WORLD_CHECK(me, stream_start(prog, s) == COLL_ERR_ABORTED);
    }
    world_meet(me);
    fall_apart(me, s, prog);
    return 0;
}

static int run_two(int are_processes, world_fn *body)
{
    static const int hosts[] = {0, 1};
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = are_processes,
                                 .seed = 1,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = body,
                                 .hosts = hosts};

    return stream_run(&scene);
}

/* _i: threads, processes; and below */
START_TEST(ranks_that_disagree_are_told)
{
    ck_assert_int_eq(run_two(_i, disagree), 0);
}
END_TEST

START_TEST(a_run_that_nobody_joins_is_released)
{
    ck_assert_int_eq(run_two(_i, never_come), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("proxy");
    TCase *tc = suite_case(suite, "proxy", 60);

    tcase_add_loop_test(tc, every_algorithm_gives_what_the_host_gives, 0,
                        (int)ARRAY_LEN(layouts));
    tcase_add_loop_test(tc, graphs_are_launched_again_and_again, 0,
                        (int)ARRAY_LEN(layouts));
    tcase_add_loop_test(tc, a_graph_may_outlive_the_transport, 0, 2);
    tcase_add_loop_test(tc, ranks_that_disagree_are_told, 0, 2);
    tcase_add_loop_test(tc, a_run_that_nobody_joins_is_released, 0, 2);
    return suite_run(suite);
}
