/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_kernel.c - collectives on GPU buffers that are one kernel: which ones are, by
 * the public interface; programs that come and go, graphs that stay, and kernels that
 * wait for a rank that fails. */
#include "tests/fake_cuda/counts.h"
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 300000 }; /* elements of a rank's buffer */

struct rank {
    struct device_rank r;
    int32_t *at; /* on the device */
    void (*ask)(struct fake_counts *);
};

static int join(struct rank *k, struct world_rank *me)
{
    WORLD_CHECK(me, !device_join(&k->r, me));
    k->at = (int32_t *)fake_memory(MOST * sizeof(int32_t));
    k->ask = (__typeof__(k->ask))gpu_symbol("fake_cuda_counts");
    return 0;
}

static int leave(struct rank *k)
{
    OK(cu.MemFree((CUdeviceptr)k->at));
    return device_leave(&k->r);
}

/* Put the same numbers into all ranks' buffers. */
static void fill(const struct rank *k, size_t n, int seed)
{
    int32_t *host = malloc(n * sizeof(*host));

    for (size_t i = 0; i < n; i++)
        host[i] = (int32_t)i + seed;
    fake_put((CUdeviceptr)k->at, host, n * sizeof(*host));
    free(host);
}

static int is_sum(const struct rank *k, size_t n, int seed)
{
    int32_t *host = device_get(k->at, n * sizeof(*host));
    size_t i = 0;

    while (i < n && host[i] == k->r.me->size * ((int32_t)i + seed))
        i++;
    free(host);
    return i == n;
}

static int sum(const struct rank *k, size_t n)
{
    return coll_allreduce(k->at, k->at, n, COLL_I32, COLL_SUM, k->r.comm,
                          k->r.stream);
}

/* ---- which ones are -------------------------------------------------------- */

/* Is a call of n elements one kernel?  -1: it is wrong.  The first call of a shape
 * writes its program. */
static int is_kernel(const struct rank *k, size_t n)
{
    struct fake_counts before, after;

    for (int i = 0; i < 2; i++) {
        fill(k, n, i);
        k->ask(&before);
        if (sum(k, n))
            return -1;
        OK(cu.StreamSynchronize(k->r.stream));
        k->ask(&after);
        if (!is_sum(k, n, i))
            return -1;
    }
    if (after.plan_len == before.plan_len)
        return 0;
    return after.kernels - before.kernels == 1 && after.copies == before.copies
               ? 1
               : -1;
}

#define KIB ((size_t)1 << 10)

static const struct choice {
    const char *engine;
    size_t most; /* the limit cuda_kernel_max */
    const char *devices, *attributes;
    int small, large; /* of 4 KB and of 1.2 MB */
} choices[] = {
    {"auto", 256 * KIB, "2", "", 1, 0},   {"auto", 16384 * KIB, "2", "", 1, 1},
    {"auto", 0, "2", "", 0, 0},           {"auto", 256 * KIB, "1", "", 0, 0},
    {"stream", 256 * KIB, "2", "", 0, 0}, {"kernel", 0, "2", "", 1, 1},
    {"kernel", 0, "1", "133=1", 1, 1},
};

static int chooses(struct world_rank *me)
{
    const struct choice *c = me->arg;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, is_kernel(&k, 1000) == c->small);
    WORLD_CHECK(me, is_kernel(&k, MOST) == c->large);
    WORLD_CHECK(me, is_kernel(&k, 1000) == c->small); /* by turns */
    return leave(&k);
}

/* _i: the choice. */
START_TEST(small_ones_are_where_each_rank_has_a_gpu)
{
    struct choice c = choices[_i];

    setenv("COLL_CUDA_ENGINE", c.engine, 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, c.most);
    setenv("FAKE_CUDA_DEVICES", c.devices, 1);
    setenv("FAKE_CUDA_ATTRIBUTES", c.attributes, 1);
    ck_assert_int_eq(world_fork(2, chooses, &c, patient(60)), 0);
}
END_TEST

/* What the first rank says counts: kernels wait for kernels. */
static int differ(struct world_rank *me)
{
    struct rank k;

    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, me->rank ? 0 : 64 * KIB);
    setenv("COLL_CUDA_ENGINE", me->rank ? "stream" : "auto", 1);
    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, is_kernel(&k, 1000) == 1);
    WORLD_CHECK(me, is_kernel(&k, MOST) == 0);
    return leave(&k);
}

START_TEST(ranks_that_wish_otherwise_do_alike)
{
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    ck_assert_int_eq(world_fork(3, differ, NULL, patient(60)), 0);
}
END_TEST

/* Threads of one process, kernels of a few blocks, a GPU with room for four. */
static int share(struct world_rank *me)
{
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (int i = 0; i < 20; i++) {
        fill(&k, 1000, i);
        world_meet(me);
        WORLD_CHECK(me, !sum(&k, 1000));
        OK(cu.StreamSynchronize(k.r.stream));
        WORLD_CHECK(me, is_sum(&k, 1000, i));
    }
    world_meet(me);
    return leave(&k);
}

START_TEST(threads_share_a_gpu_that_has_room_for_all)
{
    setenv("COLL_CUDA_ENGINE", "kernel", 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_BLOCKS, 8);
    setenv("FAKE_CUDA_ATTRIBUTES", "16=2", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    ck_assert_int_eq(world_threads(4, share, NULL, patient(60)), 0);
}
END_TEST

static int refuse(struct world_rank *me)
{
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    EXPECT(me, sum(&k, 10), COLL_ERR_UNSUPPORTED, "start MPS");
    WORLD_CHECK(me, world_sum(k.r.comm, 3) == COLL_OK);
    return leave(&k);
}

START_TEST(processes_that_take_turns_are_told_so)
{
    setenv("COLL_CUDA_ENGINE", "kernel", 1);
    ck_assert_int_eq(world_fork(3, refuse, NULL, patient(60)), 0);
}
END_TEST

/* There is room for two blocks, and there are three ranks: all are told. */
static int lack_room(struct world_rank *me)
{
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, sum(&k, 10) < 0);
    WORLD_CHECK(me, world_await_failure(k.r.comm, patient(10)) ==
                        COLL_ERR_UNSUPPORTED);
    WORLD_CHECK(me, strstr(coll_last_error(), "do not fit on one GPU"));
    OK(cu.MemFree((CUdeviceptr)k.at));
    coll_comm_destroy(k.r.comm);
    return 0;
}

START_TEST(more_ranks_than_a_gpu_has_room_for_are_told_so)
{
    setenv("COLL_CUDA_ENGINE", "kernel", 1);
    setenv("FAKE_CUDA_ATTRIBUTES", "133=1,16=1", 1);
    ck_assert_int_eq(world_fork(3, lack_room, NULL, patient(60)), 0);
}
END_TEST

/* ---- programs that come and go --------------------------------------------- */

/* More shapes than programs are kept, of device memory for few more than these; and a
 * graph of the first one, which is launched in between. */
static int change_shapes(struct world_rank *me)
{
    struct rank k;
    CUgraphExec exec;
    CUgraph graph;

    setenv("FAKE_CUDA_FAULT", "cuMemAlloc:150+:2", 1);
    WORLD_CHECK(me, !join(&k, me));
    OK(cu.StreamBeginCapture(k.r.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORLD_CHECK(me, !sum(&k, 77));
    OK(cu.StreamEndCapture(k.r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (size_t n = 1; n <= 400; n++) {
        fill(&k, n, (int)n);
        WORLD_CHECK(me, !sum(&k, n));
        OK(cu.StreamSynchronize(k.r.stream));
        WORLD_CHECK(me, is_sum(&k, n, (int)n));
        if (n % 50)
            continue;
        fill(&k, 77, (int)n);
        OK(cu.GraphLaunch(exec, k.r.stream));
        OK(cu.StreamSynchronize(k.r.stream));
        WORLD_CHECK(me, is_sum(&k, 77, (int)n));
    }
    OK(cu.GraphExecDestroy(exec));
    OK(cu.GraphDestroy(graph));
    return leave(&k);
}

START_TEST(programs_of_old_shapes_make_room_and_graphs_keep_theirs)
{
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ck_assert_int_eq(world_fork(2, change_shapes, NULL, patient(100)), 0);
}
END_TEST

/* ---- failures -------------------------------------------------------------- */

enum way { ABORT, KILL, BREAK, N_WAYS };

/* All but the last rank's kernels wait, by a call or a graph, and go on. */
static int left_alone(struct world_rank *me)
{
    enum way way = *(const enum way *)me->arg;
    int is_last = me->rank == me->size - 1;
    struct rank k;

    if (way == BREAK && is_last)
        setenv("FAKE_CUDA_FAULT", "cuLaunchKernel:2:700", 1);
    WORLD_CHECK(me, !join(&k, me));
    WORLD_CHECK(me, !sum(&k, 500));
    OK(cu.StreamSynchronize(k.r.stream));
    world_meet(me);
    if (is_last) {
        world_await_through(me, me->size - 1, patient(20));
        if (way == KILL)
            raise(SIGKILL);
        WORLD_CHECK(me, way != ABORT || !coll_comm_abort(k.r.comm, "enough"));
        WORLD_CHECK(me, way != BREAK || sum(&k, 500) == COLL_ERR_SYSTEM);
        coll_comm_destroy(k.r.comm);
        return 0;
    }
    WORLD_CHECK(me, !sum(&k, 500));
    world_through(me);
    WORLD_CHECK(me, world_await_failure(k.r.comm, patient(20)) ==
                        (way == ABORT  ? COLL_ERR_ABORTED
                         : way == KILL ? COLL_ERR_PEER
                                       : COLL_ERR_SYSTEM));
    OK(cu.StreamSynchronize(k.r.stream));
    WORLD_CHECK(me, sum(&k, 500) < 0);
    coll_comm_destroy(k.r.comm);
    return 0;
}

/* _i: the way; a rank that was killed counts. */
START_TEST(kernels_that_wait_go_on_when_a_rank_fails)
{
    enum way way = (enum way)_i;

    setenv("FAKE_CUDA_DEVICES", "3", 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_BLOCKS, 2);
    patient_timeout(30);
    ck_assert_int_eq(world_fork(3, left_alone, &way, patient(60)), way == KILL);
}
END_TEST

/* Nothing has been called before that would have loaded the kernels. */
static int capture_first(struct world_rank *me)
{
    int32_t in[2] = {3, 4}, out[2] = {0};
    CUgraphExec exec;
    CUgraph graph;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    fake_put((CUdeviceptr)k.at, in, sizeof(in));
    OK(cu.StreamBeginCapture(k.r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, !coll_allreduce(k.at, k.at + 2, 2, COLL_I32, COLL_AVG,
                                    k.r.comm, k.r.stream));
    OK(cu.StreamEndCapture(k.r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphLaunch(exec, k.r.stream));
    OK(cu.StreamSynchronize(k.r.stream));
    OK(cu.MemcpyDtoH(out, (CUdeviceptr)(k.at + 2), sizeof(out)));
    WORLD_CHECK(me, out[0] == 3 && out[1] == 4);
    return leave(&k);
}

/* _i: ranks, from 1 on; by streams and as kernels */
START_TEST(the_first_call_may_be_captured)
{
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("COLL_CUDA_ENGINE", _i % 2 ? "kernel" : "stream", 1);
    ck_assert_int_eq(device_fork(1 + _i / 2, capture_first, NULL), 0);
}
END_TEST

/* Call it, and launch it; the host does the same. */
static int call_and_launch(struct rank *k, struct device_call *call)
{
    const struct world_rank *me = k->r.me;
    CUgraph graph;

    WORLD_CHECK(me, !device_fill(&k->r, call));
    WORLD_CHECK(me, !device_do(&call->host, k->r.comm));
    WORLD_CHECK(me, !device_do(&call->device, k->r.comm));
    OK(cu.StreamSynchronize(k->r.stream));
    WORLD_CHECK(me, device_same(call));
    OK(cu.StreamBeginCapture(k->r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, !device_do(&call->device, k->r.comm));
    OK(cu.StreamEndCapture(k->r.stream, &graph));
    device_refill(call, (unsigned)me->rank + 3);
    WORLD_CHECK(me, !device_do(&call->host, k->r.comm));
    device_launch(&k->r, graph, 1);
    WORLD_CHECK(me, device_same(call));
    device_free(&k->r, call);
    return 0;
}

/* Every collective that reduces, in place or not; op: COLL_N_OPS for a premul. */
static int each_reduction(struct rank *k, enum coll_type type, enum coll_op op)
{
    static const enum coll_collective how[] = {
        COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_REDUCE, COLL_SCAN};
    const struct world_rank *me = k->r.me;
    float narrow[2] = {2, -1};
    double wide[2] = {1, (double)me->rank};
    int is_premul = op == COLL_N_OPS;

    if (is_premul)
        WORLD_CHECK(me, !coll_op_create_premul(type == COLL_C64 ? (void *)narrow
                                                                : (void *)wide,
                                               type, &op));
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        struct device_call call = {
            .count = 1 + 700 * (i % 3),
            .in_place = (int)(i % 2),
            .host = {.collective = how[i], .type = type, .op = op}};

        if (op != COLL_AVG || how[i] != COLL_SCAN)
            WORLD_CHECK(me, !call_and_launch(k, &call));
    }
    WORLD_CHECK(me, !is_premul || !coll_op_destroy(op));
    return 0;
}

/* Factors for the input and for the result, in each type that has them. */
static int scaled(struct world_rank *me)
{
    static const enum coll_type types[] = {COLL_F16, COLL_BF16, COLL_F32,
                                           COLL_F64, COLL_C64,  COLL_C128};
    static const enum coll_collective how[] = {
        COLL_ALLREDUCE, COLL_REDUCE_SCATTER, COLL_REDUCE};
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (size_t i = 0; i < 4 * ARRAY_LEN(types); i++) {
        struct device_call call = {
            .count = 1 + 700 * (i % 3),
            .in_place = (int)(i % 2),
            .host = {.collective = how[i % ARRAY_LEN(how)],
                     .type = types[i / 4],
                     .op = i % 4 == 3 ? COLL_AVG : COLL_SUM,
                     .prescale = i % 4 ? 0.7 + me->rank : 0,
                     .postscale = i % 4 == 1 ? 0 : 1 / 3.}};

        WORLD_CHECK(me, !call_and_launch(&k, &call));
    }
    return leave(&k);
}

/* _i: ranks, from 1 on; by streams and as kernels, which reach each other or not */
START_TEST(calls_with_factors_give_what_the_host_gives)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("FAKE_CUDA_IPC", _i % 3 ? "1" : "0", 1);
    setenv("COLL_CUDA_ENGINE", _i % 3 == 1 ? "kernel" : "stream", 1);
    setenv("COLL_REPRODUCIBLE", "1", 1);
    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    ck_assert_int_eq(device_fork(1 + _i / 2, scaled, NULL), 0);
}
END_TEST

/* Operations without a kernel of the GPU, and those beside them that have one. */
static int hosts_steps(struct world_rank *me)
{
    static const struct {
        enum coll_type type;
        enum coll_op op;
    } what[] = {{COLL_C64, COLL_PROD},       {COLL_C128, COLL_PROD},
                {COLL_C64, COLL_N_OPS},      {COLL_C128, COLL_N_OPS},
                {COLL_F32_I32, COLL_MINLOC}, {COLL_F64_I32, COLL_MAXLOC},
                {COLL_I32_I32, COLL_MINLOC}, {COLL_C128, COLL_SUM},
                {COLL_C64, COLL_AVG}};
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (size_t i = 0; i < ARRAY_LEN(what); i++)
        if (each_reduction(&k, what[i].type, what[i].op))
            return 1;
    return leave(&k);
}

/* _i: ranks, from 1 on; by streams and as kernels, which reach each other or not */
START_TEST(what_the_host_does_for_a_stream_is_right)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("FAKE_CUDA_IPC", _i % 3 ? "1" : "0", 1);
    setenv("COLL_CUDA_ENGINE", _i % 3 == 1 ? "kernel" : "stream", 1);
    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    ck_assert_int_eq(device_fork(1 + _i / 2, hosts_steps, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_kernel");
    TCase *tc = tcase_create("cuda_kernel");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, small_ones_are_where_each_rank_has_a_gpu, 0,
                        (int)(sizeof(choices) / sizeof(choices[0])));
    tcase_add_test(tc, ranks_that_wish_otherwise_do_alike);
    tcase_add_test(tc, threads_share_a_gpu_that_has_room_for_all);
    tcase_add_test(tc, processes_that_take_turns_are_told_so);
    tcase_add_test(tc, more_ranks_than_a_gpu_has_room_for_are_told_so);
    tcase_add_test(tc, programs_of_old_shapes_make_room_and_graphs_keep_theirs);
    tcase_add_loop_test(tc, the_first_call_may_be_captured, 0, 4);
    tcase_add_loop_test(tc, what_the_host_does_for_a_stream_is_right, 0, 8);
    tcase_add_loop_test(tc, calls_with_factors_give_what_the_host_gives, 0, 8);
    tcase_add_loop_test(tc, kernels_that_wait_go_on_when_a_rank_fails, 0,
                        N_WAYS);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
