/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_captured.c - operations as a part of graphs, most of them carried by the host,
 * over the fake CUDA driver: every collective, launched again and again with other inputs;
 * graphs by turns; and what becomes of a launch whose communicator fails or goes. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/type/signature.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 3000, LEN = 4 * COUNT };

/* ---- graphs -------------------------------------------------------------------- */

static void begin(CUstream stream)
{
    OK(cu.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static CUgraphExec end(CUstream stream)
{
    CUgraphExec exec;
    CUgraph graph;

    OK(cu.StreamEndCapture(stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphDestroy(graph));
    return exec;
}

static int sum(const struct device_rank *r, const void *in, void *out)
{
    return coll_allreduce(in, out, COUNT, COLL_I32, COLL_SUM, r->comm,
                          r->stream);
}

static int32_t *numbers(int32_t value)
{
    int32_t at[COUNT];

    for (int i = 0; i < COUNT; i++)
        at[i] = value + i % 7;
    return device_put(at, sizeof(at));
}

static int holds(const int32_t *device, int32_t value, int32_t step)
{
    int32_t *at = device_get(device, LEN);
    int is_so = 1;

    for (int i = 0; i < COUNT; i++)
        is_so &= at[i] == value + step * (i % 7);
    free(at);
    return is_so;
}

/* ---- every collective ------------------------------------------------------------ */

struct every {
    size_t count;
    int launches;
    int flips; /* those that were in place are not, and the reverse */
};

static void choose(struct device_call *call, int c, const struct every *every,
                   int p)
{
    static const enum coll_op ops[] = {COLL_SUM, COLL_MIN, COLL_AVG, COLL_PROD};

    *call = (struct device_call){.count = every->count,
                                 .in_place = (c + every->flips) % 2};
    call->host.collective = coll__of_all(c);
    call->host.type = (enum coll_type)((size_t)(c + 5) % COLL_N_TYPES);
    call->host.op = ops[c % 4];
    device_fit_op(&call->host);
    call->host.root = c % p;
}

/* All of them as one graph. */
static int every_collective(struct world_rank *me)
{
    const struct every *every = me->arg;
    struct device_call calls[COLL__N_OF_ALL];
    struct device_rank r;
    CUgraphExec exec;

    WORLD_CHECK(me, !device_join(&r, me));
    for (int c = 0; c < COLL__N_OF_ALL; c++) {
        choose(&calls[c], c, every, me->size);
        WORLD_CHECK(me, !device_fill(&r, &calls[c]));
    }
    begin(r.stream);
    for (int c = 0; c < COLL__N_OF_ALL; c++)
        WORLD_CHECK(me, !device_do(&calls[c].device, r.comm));
    exec = end(r.stream);
    for (int i = 0; i < every->launches; i++) {
        for (int c = 0; c < COLL__N_OF_ALL; c++)
            device_refill(&calls[c], (unsigned)(i + c * me->rank));
        OK(cu.GraphLaunch(exec, r.stream));
        for (int c = 0; c < COLL__N_OF_ALL; c++)
            WORLD_CHECK(me, !device_do(&calls[c].host, r.comm));
        OK(cu.StreamSynchronize(r.stream));
        for (int c = 0; c < COLL__N_OF_ALL; c++)
            WORLD_CHECK(me, device_same(&calls[c]));
    }
    OK(cu.GraphExecDestroy(exec));
    for (int c = 0; c < COLL__N_OF_ALL; c++)
        device_free(&r, &calls[c]);
    return device_leave(&r);
}

/* _i: within a host, and as between hosts.  TEST_LONG launches it a thousand times. */
START_TEST(every_collective_is_launched_again_and_again)
{
    struct every every = {
        .count = 37, .launches = getenv("TEST_LONG") ? 1000 : part_of(200)};

    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    setenv("FAKE_CUDA_DELAY", "5", 1);
    patient_timeout(100);
    ck_assert_int_eq(world_fork(2, every_collective, &every, patient(100)), 0);
}
END_TEST

/* _i: ranks.  Slots of 8 KiB: most of them take many pieces, of which ranks have
 * more or fewer. */
START_TEST(pieces_are_handed_over_anew_in_each_launch)
{
    struct every every = {.count = COUNT, .launches = 12};

    coll__limit_assume(LIMIT_CUDA_SLOT, 8 << 10);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", _i % 2 ? "1" : "8", 1);
    patient_timeout(60);
    ck_assert_int_eq(world_fork(_i, every_collective, &every, patient(60)), 0);
}
END_TEST

START_TEST(ranks_may_be_threads)
{
    struct every every = {.count = 500, .launches = 20};

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    patient_timeout(60);
    ck_assert_int_eq(world_threads(_i, every_collective, &every, patient(60)),
                     0);
}
END_TEST

/* _i: engines, ranks, devices, and which are in place */
START_TEST(each_engine_launches_every_collective)
{
    static const char *const engines[] = {"auto", "stream", "kernel"};
    static const int ranks[] = {1, 2, 3, 4, 8};
    struct every every = {.count = 300, .launches = 6, .flips = _i / 3 % 2};
    int size = ranks[_i % 5];
    char devices[2] = {(char)('1' + _i % 4), '\0'};

    setenv("COLL_CUDA_ENGINE", engines[_i % 3], 1);
    setenv("FAKE_CUDA_IPC", _i % 3 ? "1" : "0", 1);
    setenv("FAKE_CUDA_DEVICES", devices, 1);
    setenv("FAKE_CUDA_NVLINK", "1", 1);
    /* the fake driver's processes run at once, as with MPS */
    setenv("FAKE_CUDA_ATTRIBUTES", "133=1", 1);
    patient_timeout(60);
    ck_assert_int_eq(world_fork(size, every_collective, &every, patient(60)),
                     0);
}
END_TEST

/* Sends and receives of a group, and a sum of pinned memory by a function. */
static void add(const void *left, const void *right, void *out, size_t count,
                enum coll_type type, void *arg)
{
    const int32_t *a = left, *b = right;

    (void)type, (void)arg;
    for (size_t i = 0; i < count; i++)
        ((int32_t *)out)[i] = a[i] + b[i];
}

static int other_kinds(struct world_rank *me)
{
    int right = (me->rank + 1) % me->size, p = me->size;
    int left = (me->rank + p - 1) % p;
    int32_t *from, *to, *pinned;
    struct device_rank r;
    CUgraphExec exec;
    enum coll_op op;

    WORLD_CHECK(me, !device_join(&r, me));
    from = numbers(me->rank);
    to = numbers(-1);
    pinned = (int32_t *)fake_words(COUNT);
    WORLD_CHECK(me, !coll_op_create_user(add, NULL, 1, &op));
    begin(r.stream);
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me, !coll_send(from, COUNT, COLL_I32, right, r.comm, r.stream));
    WORLD_CHECK(me, !coll_recv(to, COUNT, COLL_I32, left, r.comm, r.stream));
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, !coll_allreduce(pinned, pinned, COUNT, COLL_I32, op, r.comm,
                                    r.stream));
    exec = end(r.stream);
    WORLD_CHECK(me, !coll_op_destroy(op));
    for (int i = 0; i < 50; i++) {
        for (int j = 0; j < COUNT; j++)
            pinned[j] = i + j;
        OK(cu.GraphLaunch(exec, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        WORLD_CHECK(me, holds(to, left, 1));
        WORLD_CHECK(me, pinned[0] == p * i && pinned[9] == p * (i + 9));
    }
    OK(cu.GraphExecDestroy(exec));
    return device_leave(&r);
}

/* So many other shapes later, a graph still has what it needs. */
static int late_launch(struct world_rank *me)
{
    int32_t *at, *pinned;
    struct device_rank r;
    CUgraphExec exec;
    enum coll_op op;
    int p = me->size;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers(0);
    pinned = (int32_t *)fake_words(COUNT);
    WORLD_CHECK(me, !coll_op_create_user(add, NULL, 1, &op));
    begin(r.stream);
    WORLD_CHECK(me, !coll_allreduce(pinned, pinned, COUNT, COLL_I32, op, r.comm,
                                    r.stream));
    exec = end(r.stream);
    WORLD_CHECK(me, !coll_op_destroy(op));
    for (size_t n = 1; n <= 140; n++)
        WORLD_CHECK(me, !coll_allreduce(at, at, n, COLL_I32, COLL_MAX, r.comm,
                                        r.stream));
    OK(cu.StreamSynchronize(r.stream));
    for (int i = 0; i < COUNT; i++)
        pinned[i] = i;
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me, pinned[i] == p * i);
    OK(cu.GraphExecDestroy(exec));
    return device_leave(&r);
}

START_TEST(a_graph_keeps_what_the_host_needs_for_it)
{
    ck_assert_int_eq(device_fork(2, late_launch, NULL), 0);
}
END_TEST

/* _i: ranks, which reach each other's GPUs or not: the host does functions anyway */
START_TEST(messages_and_functions_are_launched_too)
{
    setenv("FAKE_CUDA_IPC", _i % 2 ? "0" : "1", 1);
    ck_assert_int_eq(device_fork(_i, other_kinds, NULL), 0);
}
END_TEST

/* ---- by turns -------------------------------------------------------------------- */

/* Behind all that is in the other stream so far. */
static void follow(CUstream stream, CUstream other, CUevent event)
{
    OK(cu.EventRecord(event, other));
    OK(cu.StreamWaitEvent(stream, event, 0));
}

/* a = sum of a; b = sum of a, each its own graph, by a stream or two, and calls between
 * them. */
static int take_turns(struct world_rank *me)
{
    int32_t *a, *b, *c, p = me->size, n = 1;
    CUgraphExec first, second;
    CUstream other;
    CUevent event;
    struct device_rank r;

    WORLD_CHECK(me, !device_join(&r, me));
    a = numbers(1);
    b = numbers(0);
    c = numbers(0);
    begin(r.stream);
    WORLD_CHECK(me, !sum(&r, a, a));
    first = end(r.stream);
    begin(r.stream);
    WORLD_CHECK(me, !sum(&r, a, b));
    second = end(r.stream);
    other = fake_stream();
    event = fake_event();
    for (int i = 0; i < 8; i++) {
        OK(cu.GraphLaunch(first, r.stream));
        n *= p;
        if (i % 3)
            WORLD_CHECK(me, !sum(&r, a, c));
        if (i % 2)
            follow(other, r.stream, event);
        OK(cu.GraphLaunch(second, i % 2 ? other : r.stream));
        if (i % 2)
            follow(r.stream, other, event);
        OK(cu.StreamSynchronize(r.stream));
        WORLD_CHECK(me, holds(a, n, n) && holds(b, n * p, n * p));
        WORLD_CHECK(me, i % 3 == 0 || holds(c, n * p, n * p));
    }
    OK(cu.GraphExecDestroy(first));
    OK(cu.GraphExecDestroy(second));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(graphs_and_calls_take_turns)
{
    coll__limit_assume(LIMIT_CUDA_SLOT, 8 << 10);
    ck_assert_int_eq(device_fork(_i, take_turns, NULL), 0);
}
END_TEST

/* ---- wrong uses ------------------------------------------------------------------ */

/* Beside a capture that the legacy stream would wait for, and in one that was spoilt;
 * a later call works. */
static int misuse(struct world_rank *me)
{
    struct device_rank r;
    CUstream blocking;
    CUdeviceptr spoils;
    CUgraph graph;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers(1);
    OK(cu.StreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cu.StreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT(me, coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM, r.comm, NULL),
           COLL_ERR_INVALID, "the legacy stream cannot be used while");
    OK(cu.StreamEndCapture(blocking, &graph));
    OK(cu.GraphDestroy(graph));
    begin(r.stream);
    ck_assert(cu.MemAlloc(&spoils, 4));
    EXPECT(me, sum(&r, at, at), COLL_ERR_INVALID, "capture was spoilt");
    ck_assert(cu.StreamEndCapture(r.stream, &graph));
    WORLD_CHECK(me, coll_comm_async_error(r.comm) == COLL_OK);
    WORLD_CHECK(me, !sum(&r, at, at));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(at, me->size, me->size));
    OK(cu.StreamDestroy(blocking));
    return device_leave(&r);
}

/* _i: whether the host carries them */
START_TEST(a_capture_that_cannot_take_it_is_told)
{
    setenv("FAKE_CUDA_IPC", _i ? "0" : "1", 1);
    ck_assert_int_eq(device_fork(2, misuse, NULL), 0);
}
END_TEST

/* ---- the end ----------------------------------------------------------------------- */

static CUgraphExec capture_sum(struct device_rank *r, void *at)
{
    begin(r->stream);
    ck_assert_int_eq(sum(r, at, at), 0);
    return end(r->stream);
}

/* Graphs that are made and destroyed leave nothing; a later one works. */
static int make_many(struct world_rank *me)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct device_rank r;
    int32_t *at;
    size_t few;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers(1);
    few = 0;
    for (int i = 0; i < 100; i++) {
        CUgraphExec exec = capture_sum(&r, at);

        if (i % 10 == 0)
            OK(cu.GraphLaunch(exec, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        OK(cu.GraphExecDestroy(exec));
        WORLD_CHECK(me, !coll_comm_mem_stats(r.comm, &stats));
        if (!i)
            few = stats.pinned;
        usleep(2000); /* the progress thread sees that it has gone */
    }
    WORLD_CHECK(me, me->size == 1 || few);
    WORLD_CHECK(me, stats.pinned <= few);
    return device_leave(&r);
}

START_TEST(what_graphs_had_is_given_back)
{
    ck_assert_int_eq(device_fork(1 + _i, make_many, NULL), 0);
}
END_TEST

/* Launched after its communicator has gone it passes, whatever it gives, and harms nothing
 * that was made since. */
static int outlive(struct world_rank *me)
{
    struct device_rank r;
    CUgraphExec exec;
    int32_t *at, *other;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers(1);
    other = numbers(2);
    exec = capture_sum(&r, at);
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(at, me->size, me->size));
    WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_OK);
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    world_meet(me);
    WORLD_CHECK(me, (r.comm = world_join(me)));
    for (int i = 0; i < 3; i++) {
        OK(cu.GraphLaunch(exec, r.stream));
        WORLD_CHECK(me, !sum(&r, other, other));
        if (!i)
            OK(cu.StreamSynchronize(r.stream));
    }
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(other, 2 * me->size * me->size * me->size,
                          me->size * me->size * me->size));
    OK(cu.GraphExecDestroy(exec));
    world_meet(me);
    WORLD_CHECK(me, !sum(&r, at, at));
    OK(cu.StreamSynchronize(r.stream));
    return device_leave(&r);
}

/* _i: ranks, which are threads or not, and how their GPUs reach each other */
START_TEST(a_graph_outlives_its_communicator)
{
    int size = 1 + _i % 4, way = _i / 4 % 3;

    setenv("FAKE_CUDA_IPC", way ? "1" : "0", 1);
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("COLL_CUDA_ENGINE", way == 2 ? "kernel" : "stream", 1);
    ck_assert_int_eq(_i < 12 ? device_fork(size, outlive, NULL)
                             : device_threads(size, outlive, NULL),
                     0);
}
END_TEST

static size_t free_memory(void)
{
    size_t left = 0, all;

    OK(cu.MemGetInfo(&left, &all));
    return left;
}

/* What was left to graphs is freed when communicators are made and destroyed.  Do that,
 * and say whether all ranks have so much free memory then. */
static int is_free(struct world_rank *me, size_t least)
{
    struct coll_comm *comm = world_join(me);
    int32_t is_so = free_memory() >= least;

    ck_assert_ptr_nonnull(comm);
    ck_assert(
        !coll_allreduce(&is_so, &is_so, 1, COLL_I32, COLL_MIN, comm, NULL));
    ck_assert_int_eq(coll_comm_destroy(comm), COLL_OK);
    return is_so;
}

/* Communicators end before their graphs, and when these have gone, too, nothing is left. */
static int leave_to_graphs(struct world_rank *me)
{
    struct device_rank r;
    CUgraphExec exec;
    size_t had = 0;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers(1);
    for (int i = 0; i < 6; i++) {
        exec = capture_sum(&r, at);
        OK(cu.GraphLaunch(exec, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_OK);
        OK(cu.GraphExecDestroy(exec));
        if (i == 1)
            had = free_memory();
        WORLD_CHECK(me, (r.comm = world_join(me)));
    }
    WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_OK);
    while (!is_free(me, had)) /* until the test's time is up */
        usleep(1000);
    world_meet(me);
    OK(cu.StreamDestroy(r.stream));
    return 0;
}

/* _i: how the GPUs of the ranks reach each other */
START_TEST(what_was_left_to_graphs_is_given_back)
{
    setenv("FAKE_CUDA_IPC", "1", 1);
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("COLL_CUDA_ENGINE", _i ? "kernel" : "stream", 1);
    ck_assert_int_eq(device_fork(3, leave_to_graphs, NULL), 0);
}
END_TEST

/* How the last rank goes, before it launches. */
enum ending { ABORTS, DIES, LEAVES, N_ENDINGS };

static int go(struct device_rank *r, enum ending how)
{
    usleep(100000);
    if (how == DIES)
        kill(getpid(), SIGKILL);
    if (how == ABORTS)
        return coll_comm_abort(r->comm, "in vain") != COLL_OK;
    coll_comm_destroy(r->comm);
    return 0;
}

/* The others' launches end, and so do later ones. */
static int wait_in_vain(struct world_rank *me)
{
    enum ending how = *(enum ending *)me->arg;
    struct device_rank r;
    CUgraphExec exec;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers(1);
    exec = capture_sum(&r, at);
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(at, me->size, me->size));
    world_meet(me);
    if (how ==
        LEAVES) /* of a graph nobody knows but its slots that it stands still */
        world_hurry(r.comm, patient(1));
    if (me->rank == me->size - 1 && go(&r, how))
        return 1;
    if (me->rank == me->size - 1 && how == LEAVES)
        return 0;
    for (int i = 0; i < 3; i++)
        OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, coll_comm_async_error(r.comm) < 0);
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    OK(cu.GraphExecDestroy(exec));
    coll_comm_destroy(r.comm);
    return 0;
}

/* _i: how, and between whom; a rank that was killed counts */
START_TEST(a_launch_ends_with_its_communicator)
{
    enum ending how = (enum ending)(_i % N_ENDINGS);

    setenv("COLL_TRANSPORTS", world_transports(_i / N_ENDINGS), 1);
    patient_timeout(30);
    ck_assert_int_eq(world_fork(3, wait_in_vain, &how, patient(60)),
                     how == DIES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_captured");
    TCase *tc = tcase_create("cuda_captured");

    setenv("FAKE_CUDA_IPC", "0", 0);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_collective_is_launched_again_and_again, 0, 2);
    tcase_add_loop_test(tc, pieces_are_handed_over_anew_in_each_launch, 1, 6);
    tcase_add_loop_test(tc, ranks_may_be_threads, 2, 4);
    tcase_add_loop_test(tc, each_engine_launches_every_collective, 0, 30);
    tcase_add_loop_test(tc, messages_and_functions_are_launched_too, 2, 5);
    tcase_add_test(tc, a_graph_keeps_what_the_host_needs_for_it);
    tcase_add_loop_test(tc, graphs_and_calls_take_turns, 1, 4);
    tcase_add_loop_test(tc, a_capture_that_cannot_take_it_is_told, 0, 2);
    tcase_add_loop_test(tc, what_graphs_had_is_given_back, 0, 2);
    tcase_add_loop_test(tc, a_graph_outlives_its_communicator, 0, 24);
    tcase_add_loop_test(tc, what_was_left_to_graphs_is_given_back, 0, 2);
    tcase_add_loop_test(tc, a_launch_ends_with_its_communicator, 0,
                        2 * N_ENDINGS);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
