/* SPDX-License-Identifier: BSD-3-Clause */
/* test_proxy.c - plans in streams of ranks on several hosts, over the fake CUDA driver:
 * messages between GPUs that do not reach each other are carried by the hosts. */
#include "tests/exec/every_algorithm.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "lib/exec/prog.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>
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
    CUgraphExec exec = stream_capture(sum, s), other = stream_capture(tree, s);

    for (int i = 0; i < part_of(20); i++) {
        d.op.seed = e.op.seed = (unsigned)i;
        WORLD_CHECK(me, does(s, &d, exec, 20));
        WORLD_CHECK(me, does(s, &e, other, 3));
        stream_fill(&d, s);
        WORLD_CHECK(me, !stream_start(sum, s) && !stream_finish(sum, s));
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
    CUgraphExec exec = stream_capture(sum, s);

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

/* ---- messages that are left in their slots ----------------------------------------- */

enum { N_ASIDE = 2 }; /* slots, so nobody needs to have come */

static struct coll__planned planned(const struct world_rank *me, int i,
                                    size_t len)
{
    return (struct coll__planned){
        .of = {.peer = !me->rank, .n = COLL__ASIDE + i},
        .len = len,
        .sig = {.collective = COLL_SEND, .root = 1, .count = len},
        .is_send = me->rank == 0,
        .is_first = 1};
}

static int put_aside(struct stream_rank *rank, const struct coll__planned *p,
                     CUdeviceptr at)
{
    struct coll__work work = {.kind = WORK_COPY,
                              .dst = (void *)at,
                              .src = (void *)at,
                              .len = p->len,
                              .stream = rank->s};

    return p->is_send ? coll__stream_send(rank->tp, &p->of, &work)
                      : coll__stream_recv(rank->tp, &p->of, &work);
}

/* Begin a run of two messages of len bytes each, from or to `at`. */
static int begin_aside(const struct world_rank *me, struct stream_rank *rank,
                       CUdeviceptr at, size_t len)
{
    const struct coll__stream_transport *ops = rank->tp->ops;
    struct coll__planned p[N_ASIDE] = {planned(me, 0, len),
                                       planned(me, 1, len)};
    struct coll__carried *run;
    int rc = ops->plan(rank->tp, p, N_ASIDE, &run);

    if (rc)
        return rc;
    rc = ops->begin(rank->tp, run, rank->s);
    for (int i = 0; i < N_ASIDE && rc == COLL_OK; i++)
        rc = put_aside(rank, &p[i], at + len * (CUdeviceptr)i);
    ops->forget(run);
    return rc;
}

/* Rank 0's stream is done with its sends before rank 1 receives any; a collective goes by
 * meanwhile, and then rank 1 takes them in order. */
static int leave_aside(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct stream_rank *rank = s->rank;
    struct deed d = deed_of(me, COLL_ALLREDUCE, 100);
    struct coll__prog *sum = make(&d, "ring", s);
    uint64_t numbers[N_ASIDE] = {7, 9}, got[N_ASIDE] = {0};
    CUdeviceptr at = fake_memory(sizeof(got));

    for (int k = 0; k < 5; k++) {
        fake_put(at, me->rank ? got : numbers, sizeof(got));
        if (me->rank == 0) {
            WORLD_CHECK(me, begin_aside(me, rank, at, 8) == COLL_OK);
            OK(cu.StreamSynchronize(rank->s));
        }
        world_meet(me);
        stream_fill(&d, s);
        WORLD_CHECK(me, !stream_start(sum, s) && !stream_finish(sum, s));
        WORLD_CHECK(me, stream_is_right(&d, s));
        if (me->rank == 1) {
            WORLD_CHECK(me, begin_aside(me, rank, at, 8) == COLL_OK);
            OK(cu.StreamSynchronize(rank->s));
            OK(cu.MemcpyDtoH(got, at, sizeof(got)));
            WORLD_CHECK(me, !memcmp(got, numbers, sizeof(got)));
        }
        world_meet(me);
        memset(got, 0, sizeof(got));
        numbers[0] += 2;
    }
    OK(cu.MemFree(at));
    coll__prog_destroy(sum);
    stream_stage_free(me, s);
    return 0;
}

/* ---- what is wrong ------------------------------------------------------------- */

static int await_state(const struct stream_rank *rank)
{
    double until = coll__now() + patient(20);

    while (rank->tp->ops->state(rank->tp) == COLL_OK && coll__now() < until)
        usleep(1000);
    return rank->tp->ops->state(rank->tp);
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
    OK(cu.StreamSynchronize(s->rank->s));
    stream_fall_apart(me, s, prog);
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
        WORLD_CHECK(me, stream_reached(prog, s) == COLL_IN_PROGRESS);
        stream_hosts_stop(rank);
        rank->tp->ops->release(rank->tp, COLL_ERR_ABORTED);
        rank->tp->ops->let_go(rank->tp);
        OK(cu.StreamSynchronize(s->rank->s));
        WORLD_CHECK(me, stream_reached(prog, s) == COLL_ERR_ABORTED);
        WORLD_CHECK(me, stream_start(prog, s) == COLL_ERR_ABORTED);
    }
    world_meet(me);
    OK(cu.StreamSynchronize(s->rank->s));
    stream_fall_apart(me, s, prog);
    return 0;
}

enum {
    LARGE = 1 << 20 /* bytes that a host reads where they lie, if it can */
};

/* Two messages of equal bytes. */
static CUdeviceptr put_large(int byte)
{
    char *bytes = malloc(N_ASIDE * LARGE);
    CUdeviceptr at = fake_memory(N_ASIDE * LARGE);

    ck_assert_ptr_nonnull(bytes);
    memset(bytes, byte, N_ASIDE * LARGE);
    fake_put(at, bytes, N_ASIDE * LARGE);
    free(bytes);
    return at;
}

static int holds_large(CUdeviceptr at, char byte)
{
    char *bytes = malloc(N_ASIDE * LARGE);
    int is_so = 1;

    ck_assert_ptr_nonnull(bytes);
    OK(cu.MemcpyDtoH(bytes, at, N_ASIDE * LARGE));
    for (int i = 0; i < N_ASIDE * LARGE; i++)
        is_so &= bytes[i] == byte;
    free(bytes);
    return is_so;
}

static int stands_still(const struct stream_rank *rank)
{
    return cu.StreamQuery(rank->s) == CUDA_ERROR_NOT_READY;
}

/* Rank 0: the messages of its first run are under way, and those of the second wait for
 * the same slots, when it fails.  The first ones stay as they are until rank 1 has taken
 * them. */
static int fail_sending(const struct world_rank *me, struct stream_rank *rank)
{
    CUdeviceptr first = put_large(1), second = put_large(2);

    stream_hosts_stop(rank);
    WORLD_CHECK(me, !begin_aside(me, rank, first, LARGE));
    OK(cu.StreamSynchronize(rank->s));
    while (stream_hosts_move(rank) > 0)
        ;
    WORLD_CHECK(me, !begin_aside(me, rank, second, LARGE));
    rank->tp->ops->release(rank->tp, COLL_ERR_PEER);
    usleep(10000); /* for a stream that errs */
    WORLD_CHECK(me, stands_still(rank));
    world_meet(me);
    while (!world_await_through(me, 1, 0))
        WORLD_CHECK(me, stream_hosts_move(rank) >= 0);
    rank->tp->ops->let_go(rank->tp);
    OK(cu.StreamSynchronize(rank->s));
    OK(cu.MemFree(first));
    OK(cu.MemFree(second));
    return 0;
}

/* Rank 1, which does not know of the failure: what it gets is right, and what rank 0 gives
 * since then does not come. */
static int take_what_is_right(const struct world_rank *me,
                              struct stream_rank *rank)
{
    CUdeviceptr at = put_large(0);

    world_meet(me);
    WORLD_CHECK(me, !begin_aside(me, rank, at, LARGE));
    OK(cu.StreamSynchronize(rank->s));
    WORLD_CHECK(me, holds_large(at, 1));
    WORLD_CHECK(me, !begin_aside(me, rank, at, LARGE));
    usleep(100000); /* for a message that should not come */
    WORLD_CHECK(me, stands_still(rank));
    world_through(me);
    stream_hosts_stop(rank);
    rank->tp->ops->release(rank->tp, COLL_ERR_PEER);
    OK(cu.StreamSynchronize(rank->s));
    OK(cu.MemFree(at));
    return 0;
}

static int fail_alone(struct world_rank *me)
{
    struct stage *s = stream_stage_new(me);
    struct deed d = deed_of(me, COLL_ALLREDUCE, 100);
    struct coll__prog *prog = make(&d, "ring", s);

    if ((me->rank ? take_what_is_right : fail_sending)(me, s->rank))
        return 1;
    world_meet(me);
    stream_fall_apart(me, s, prog);
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
                                 .slot = body == fail_alone ? LARGE : SLOT,
                                 .body = body,
                                 .hosts = hosts};

    return stream_run(&scene);
}

/* _i: threads, processes; and below */
START_TEST(sends_are_left_until_they_are_received)
{
    static const int hosts[] = {0, 1};
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = _i,
                                 .n_slots = N_ASIDE,
                                 .slot = SLOT,
                                 .body = leave_aside,
                                 .hosts = hosts};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

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

START_TEST(what_a_stream_gives_after_a_failure_is_not_carried)
{
    ck_assert_int_eq(run_two(_i, fail_alone), 0);
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
    tcase_add_loop_test(tc, sends_are_left_until_they_are_received, 0, 2);
    tcase_add_loop_test(tc, ranks_that_disagree_are_told, 0, 2);
    tcase_add_loop_test(tc, a_run_that_nobody_joins_is_released, 0, 2);
    tcase_add_loop_test(tc, what_a_stream_gives_after_a_failure_is_not_carried,
                        0, 2);
    return suite_run(suite);
}
