/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_wrong.c - operations on GPU buffers that are wrong, or fail: a sentence
 * for each, and no stream that waits for ever. */
#include "tests/support/side_by_side.h"
#include "tests/support/device_world.h"
#include "tests/support/suite.h"

#if __has_include(<cuda_runtime_api.h>)
#include "include/coll/cuda.h"
#endif

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 1000, LEN = 4 * COUNT };

static int sum(const struct device_rank *r, const void *in, void *out,
               CUstream stream)
{
    return coll_allreduce(in, out, COUNT, COLL_I32, COLL_SUM, r->comm, stream);
}

static void add(const void *left, const void *right, void *out, size_t count,
                enum coll_type type, void *arg)
{
    (void)left, (void)right, (void)out, (void)count, (void)type, (void)arg;
}

/* By an operation of one's own, which the host does on all ways. */
static int own_sum(const struct device_rank *r, void *at)
{
    enum coll_op op;
    int rc = coll_op_create_user(add, NULL, 1, &op);

    rc = rc ? rc
            : coll_allreduce(at, at, COUNT, COLL_I32, op, r->comm, r->stream);
    coll_op_destroy(op);
    return rc;
}

/* Whether GPUs reach each other, or the host carries all messages. */
static void take_engine(int is_carried)
{
    setenv("FAKE_CUDA_IPC", is_carried ? "0" : "1", 1);
}

/* ---- wrong uses --------------------------------------------------------------- */

static int wrong_uses(struct world_rank *me)
{
    struct device_rank r;
    CUcontext own;
    CUgraph graph;
    CUstream other;
    CUdeviceptr far, freed;
    char *plain = calloc(1, LEN), *at;
    void *pinned;

    WORLD_CHECK(me, !device_join(&r, me));
    pinned = fake_words(COUNT);
    OK(cu.CtxGetCurrent(&own));
    at = device_put(plain, LEN);
    freed = fake_memory(LEN);
    OK(cu.MemFree(freed));
    fake_device(1);
    far = fake_memory(LEN);
    other = fake_stream();
    OK(cu.CtxSetCurrent(own));
    EXPECT(me, sum(&r, plain, at, r.stream), COLL_ERR_INVALID,
           "in is no memory that CUDA knows");
    EXPECT(me, sum(&r, at, plain, NULL), COLL_ERR_INVALID, "cudaHostRegister");
    EXPECT(me, sum(&r, at, (void *)freed, r.stream), COLL_ERR_INVALID,
           "out is no memory that CUDA knows: it was freed");
    EXPECT(me, sum(&r, (void *)far, at, r.stream), COLL_ERR_INVALID,
           "in is memory of GPU 1 and the stream is of GPU 0");
    EXPECT(me, sum(&r, (void *)far, (void *)far, NULL), COLL_ERR_INVALID,
           "NULL is of the current one: cudaSetDevice");
    EXPECT(me, sum(&r, at, at + 4, r.stream), COLL_ERR_INVALID, "overlap");
    EXPECT(me, coll_send(at, 1, COLL_I32, me->rank, r.comm, r.stream),
           COLL_ERR_INVALID, "matching send or receive in the same group");
    EXPECT(me, sum(&r, at, at, r.stream), COLL_OK, "");
    EXPECT(me, sum(&r, (void *)far, (void *)far, other), COLL_ERR_INVALID,
           "make a communicator for each GPU");
    OK(cu.StreamBeginCapture(r.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT(me, own_sum(&r, at), COLL_OK, "");
    OK(cu.StreamEndCapture(r.stream, &graph));
    OK(cu.CtxSetCurrent(NULL));
    EXPECT(me, sum(&r, at, at, NULL), COLL_ERR_INVALID, "cudaSetDevice()");
    EXPECT(me, sum(&r, at, at, r.stream), COLL_OK, "");
    OK(cu.CtxSetCurrent(own));
    EXPECT(me, sum(&r, pinned, pinned, r.stream), COLL_OK, "");
    WORLD_CHECK(me, world_sum(r.comm, 3) == COLL_OK);
    OK(cu.StreamSynchronize(r.stream));
    free(plain);
    return device_leave(&r);
}

/* _i: whether by way of the host, as below */
START_TEST(each_wrong_use_has_a_sentence_and_harms_nothing)
{
    take_engine(_i);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ck_assert_int_eq(device_threads(1, wrong_uses, NULL), 0);
}
END_TEST

/* All that the communicator had on the device is gone; a new one has it. */
static int reset(struct world_rank *me)
{
    struct device_rank r;
    CUcontext ctx;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    for (int i = 0; i < me->size; i++) /* also before the first call */
        WORLD_CHECK(me, me->arg || !sum(&r, at, at, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    world_meet(me);
    OK(cu.DevicePrimaryCtxReset(me->rank % 2));
    OK(cu.DevicePrimaryCtxRetain(&ctx, me->rank % 2));
    OK(cu.CtxSetCurrent(ctx));
    r.stream = fake_stream();
    at = (char *)fake_memory(LEN);
    EXPECT(me, sum(&r, at, at, r.stream), COLL_ERR_INVALID,
           "make a new communicator after a reset");
    world_meet(me);
    coll_comm_destroy(r.comm);
    r.comm = world_join(me);
    WORLD_CHECK(me, r.comm && !sum(&r, at, at, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    return device_leave(&r);
}

START_TEST(a_device_that_was_reset_is_told)
{
    take_engine(_i);
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ck_assert_int_eq(device_fork(2, reset, NULL), 0);
    if (!_i)
        ck_assert_int_eq(world_fork(2, reset, "", patient(60)), 0);
}
END_TEST

static int wrong_groups(struct world_rank *me)
{
    struct device_rank r;
    CUstream other;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    other = fake_stream();
    at = (char *)fake_memory(LEN);
    coll_group_start();
    WORLD_CHECK(me, !coll_send(at, 1, COLL_I32, !me->rank, r.comm, r.stream));
    WORLD_CHECK(me, !coll_recv(at, 1, COLL_I32, !me->rank, r.comm, other));
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "need one stream");
    coll_group_start();
    EXPECT(me, sum(&r, &at, at, r.stream), COLL_ERR_INVALID, "no memory that");
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "no memory that");
    return device_leave(&r);
}

START_TEST(a_wrong_group_does_nothing)
{
    ck_assert_int_eq(device_fork(2, wrong_groups, NULL), 0);
}
END_TEST

static int without_thread(struct world_rank *me)
{
    struct device_rank r;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    EXPECT(me, sum(&r, at, at, r.stream), COLL_ERR_INVALID,
           "COLL_PROGRESS=off forbids");
    return device_leave(&r);
}

START_TEST(without_the_progress_thread_there_are_none)
{
    setenv("COLL_PROGRESS", "off", 1);
    ck_assert_int_eq(world_fork(2, without_thread, NULL, patient(60)), 0);
}
END_TEST

static int without_driver(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int32_t at[4] = {1};

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, coll_allreduce(at, at, 4, COLL_I32, COLL_SUM, comm,
                                   CU_STREAM_PER_THREAD) < 0);
    WORLD_CHECK(me, strstr(coll_last_error(), "no CUDA driver") ||
                        strstr(coll_last_error(), "no current CUDA context"));
    WORLD_CHECK(me, !coll_allreduce(at, at, 4, COLL_I32, COLL_SUM, comm, NULL));
    return coll_comm_destroy(comm) != COLL_OK;
}

START_TEST(without_a_driver_a_stream_is_refused)
{
    ck_assert_int_eq(world_fork(2, without_driver, NULL, patient(60)), 0);
}
END_TEST

#if __has_include(<cuda_runtime_api.h>)
START_TEST(a_stream_of_the_runtime_is_one)
{
    ck_assert_ptr_eq(coll_cuda_stream(NULL), CU_STREAM_LEGACY);
    ck_assert_ptr_eq(coll_cuda_stream(cudaStreamPerThread),
                     CU_STREAM_PER_THREAD);
    ck_assert_int_eq(coll_cuda_type(CUDA_R_16BF), COLL_BF16);
    ck_assert_int_eq(coll_cuda_type(CUDA_C_64F), COLL_C128);
    ck_assert_int_eq(coll_cuda_type(CUDA_C_64I), COLL_N_TYPES);
}
END_TEST
#define add_runtime(tc) tcase_add_test(tc, a_stream_of_the_runtime_is_one)
#else
#define add_runtime(tc) (void)(tc)
#endif

/* ---- failures ----------------------------------------------------------------- */

/* Rank 0 calls, and the others end in the way of `arg`; its stream goes on within a
 * second or so. */
enum way { ABORT, KILL, BREAK };
enum { CALLS = 20 };

static int left_alone(struct world_rank *me)
{
    enum way way = *(const enum way *)me->arg;
    struct device_rank r;
    int status = 0;
    char *at;

    if (way == BREAK && me->rank == 1)
        setenv("FAKE_CUDA_FAULT", "cuMemcpyAsync:12:700", 1);
    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    WORLD_CHECK(me, !sum(&r, at, at, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    world_meet(me);
    if (me->rank == 1 && way == KILL)
        raise(SIGKILL);
    if (me->rank == 1 && way == ABORT)
        WORLD_CHECK(me, !coll_comm_abort(r.comm, "enough"));
    for (int i = 0; me->rank == 1 && way == BREAK && !status && i < CALLS; i++)
        status = sum(&r, at, at, r.stream);
    if (me->rank == 1 && way == BREAK)
        EXPECT(me, status, COLL_ERR_SYSTEM, "illegal");
    if (me->rank == 1) {
        coll_comm_destroy(r.comm);
        return 0;
    }
    for (int i = 0; i < CALLS && !status; i++) /* until it has heard of it */
        status = sum(&r, at, at, r.stream);
    OK(cu.StreamSynchronize(r.stream));
    status = world_await_failure(r.comm, patient(20));
    WORLD_CHECK(me, status == (way == ABORT  ? COLL_ERR_ABORTED
                               : way == KILL ? COLL_ERR_PEER
                                             : COLL_ERR_SYSTEM));
    WORLD_CHECK(me, sum(&r, at, at, r.stream) == status);
    WORLD_CHECK(me, way != BREAK || strstr(coll_last_error(), "illegal"));
    coll_comm_destroy(r.comm);
    return 0;
}

/* _i: the way; a rank that was killed counts. */
START_TEST(streams_that_wait_go_on_when_a_rank_fails)
{
    enum way way = (enum way)_i;

    patient_timeout(30);
    ck_assert_int_eq(world_fork(3, left_alone, &way, patient(60)), way == KILL);
}
END_TEST

/* An abort, and the end right behind it. */
static int ends_at_once(struct world_rank *me)
{
    struct device_rank r;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    WORLD_CHECK(me, me->rank || !sum(&r, at, at, r.stream));
    world_meet(me);
    WORLD_CHECK(me, !coll_comm_abort(r.comm, "enough"));
    WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_ERR_ABORTED);
    OK(cu.StreamSynchronize(r.stream));
    return 0;
}

START_TEST(the_end_of_a_failed_communicator_lets_streams_go)
{
    patient_timeout(30);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(world_fork(2, ends_at_once, NULL, patient(60)), 0);
}
END_TEST

/* The device fails after a call, to which its stream does not come then: the host
 * asks now and then. */
static int device_fails(struct world_rank *me)
{
    struct device_rank r;
    double until = gpu_now() + patient(10);
    char *at;

    if (!me->rank)
        setenv("FAKE_CUDA_FAULT", "cuEventQuery:3:700", 1);
    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    if (!me->rank)
        fake_hold(r.stream, fake_words(1));
    sum(&r, at, at, r.stream); /* which may hear of it already */
    while (!coll_comm_async_error(r.comm) && gpu_now() < until)
        usleep(1000);
    WORLD_CHECK(me, coll_comm_async_error(r.comm) == COLL_ERR_SYSTEM);
    WORLD_CHECK(me, strstr(coll_last_error(), "illegal memory access"));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(a_device_that_fails_is_told_of_in_its_own_words)
{
    ck_assert_int_eq(device_fork(2, device_fails, NULL), 0);
}
END_TEST

static int never_comes(struct world_rank *me)
{
    struct device_rank r;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    if (me->rank) {
        world_await_failure(r.comm, patient(20));
    } else {
        WORLD_CHECK(me, !sum(&r, at, at, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        EXPECT(me, coll_comm_async_error(r.comm), COLL_ERR_TIMEOUT,
               "not arrived: rank 1");
    }
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(a_rank_that_never_comes_is_named)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(2, never_comes, NULL, patient(60)), 0);
}
END_TEST

/* Another type there: both calls are told. */
static int disagrees(struct world_rank *me)
{
    struct device_rank r;
    char *at;
    int rc;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    rc = coll_allreduce(at, at, 10, me->rank ? COLL_I32 : COLL_F32, COLL_SUM,
                        r.comm, r.stream);
    WORLD_CHECK(me, !rc || rc == COLL_ERR_MISMATCH); /* it may know already */
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, world_await_failure(r.comm, patient(10)) ==
                        COLL_ERR_MISMATCH);
    WORLD_CHECK(me, strstr(coll_last_error(), "(10 f32, sum)"));
    coll_comm_destroy(r.comm);
    return 0;
}

START_TEST(ranks_that_disagree_are_told)
{
    ck_assert_int_eq(device_fork(2, disagrees, NULL), 0);
}
END_TEST

/* ---- forks -------------------------------------------------------------------- */

static int forks(struct world_rank *me)
{
    struct device_rank r;
    int status = -1;
    pid_t pid;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(LEN);
    WORLD_CHECK(me, !sum(&r, at, at, r.stream));
    pid = fork();
    if (!pid) {
        status = sum(&r, at, at, r.stream) != COLL_ERR_INVALID;
        _exit(status + 2 * (coll_comm_destroy(r.comm) != COLL_OK));
    }
    WORLD_CHECK(me, waitpid(pid, &status, 0) == pid && !status);
    WORLD_CHECK(me, !sum(&r, at, at, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    return device_leave(&r);
}

START_TEST(a_child_may_only_free)
{
    ck_assert_int_eq(device_fork(2, forks, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_wrong");
    TCase *tc = tcase_create("cuda_wrong");

    setenv("FAKE_CUDA_IPC", "0", 0);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, each_wrong_use_has_a_sentence_and_harms_nothing, 0,
                        2);
    tcase_add_loop_test(tc, a_device_that_was_reset_is_told, 0, 2);
    tcase_add_test(tc, a_wrong_group_does_nothing);
    add_runtime(tc);
    tcase_add_test(tc, without_the_progress_thread_there_are_none);
    tcase_add_test(tc, without_a_driver_a_stream_is_refused);
    tcase_add_loop_test(tc, streams_that_wait_go_on_when_a_rank_fails, 0, 3);
    tcase_add_test(tc, the_end_of_a_failed_communicator_lets_streams_go);
    tcase_add_test(tc, a_device_that_fails_is_told_of_in_its_own_words);
    tcase_add_test(tc, a_rank_that_never_comes_is_named);
    tcase_add_test(tc, ranks_that_disagree_are_told);
    tcase_add_test(tc, a_child_may_only_free);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
