/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nccl.c - one thread that is the rank of four GPUs, as all_reduce_perf -g 4 is. */
#include "bindings/nccl/tests/gpus.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4, COUNT = 1000, LEN = COUNT * 8 * N, LARGE = 1 << 20 };

static struct rank ranks[N];

/* Each rank has a GPU of its own, and a communicator of ncclCommInitAll(). */
static void begin(size_t len)
{
    ncclComm_t comms[N];

    nc_start(N);
    for (int r = 0; r < N; r++)
        nc_take(&ranks[r], r, len);
    OK(cu.CtxSetCurrent(ranks[1].context)); /* whichever is current */
    NC(ncclCommInitAll(comms, N, NULL));
    for (int r = 0; r < N; r++)
        ranks[r].comm = comms[r];
}

static void finish(void)
{
    for (int r = 0; r < N; r++)
        nc_sync(&ranks[r]);
    for (int r = 0; r < N; r++)
        NC(ncclCommDestroy(ranks[r].comm));
    for (int r = 0; r < N; r++)
        nc_leave(&ranks[r]);
}

/* Do it for each rank r, in a group; then wait for the streams. */
#define EACH(call)                                                             \
    do {                                                                       \
        NC(ncclGroupStart());                                                  \
        for (int r = 0; r < N; r++)                                            \
            NC(call);                                                          \
        NC(ncclGroupEnd());                                                    \
        for (int r = 0; r < N; r++)                                            \
            nc_sync(&ranks[r]);                                                \
    } while (0)

#define COMM ranks[r].comm
#define STREAM (cudaStream_t) ranks[r].stream

/* The ranks' inputs are 1, 2, 1, 2: results that each type has. */
static void fill(ncclDataType_t type)
{
    for (int r = 0; r < N; r++)
        nc_fill(&ranks[r], ranks[r].in, type, COUNT, 1 + r % 2);
}

static double reduced(ncclRedOp_t op, ncclDataType_t type)
{
    static const double results[] = {
        [ncclSum] = 6, [ncclProd] = 4, [ncclMax] = 2, [ncclMin] = 1};

    if (op != ncclAvg)
        return results[op];
    return type <= ncclUint64 ? 1 : 1.5; /* truncated */
}

static int all_have(ncclDataType_t type, size_t count, double value)
{
    int all = 1;

    for (int r = 0; r < N; r++)
        all &= nc_has(&ranks[r], ranks[r].out, type, count, value);
    return all;
}

/* _i: the type */
START_TEST(each_reduction_takes_each_type)
{
    ncclDataType_t type = (ncclDataType_t)_i;

    begin(LEN);
    fill(type);
    for (int op = 0; op < ncclNumOps; op++) {
        double want = reduced((ncclRedOp_t)op, type);

        EACH(ncclAllReduce(ranks[r].in, ranks[r].out, COUNT, type,
                           (ncclRedOp_t)op, COMM, STREAM));
        ck_assert(all_have(type, COUNT, want));
        EACH(ncclReduce(ranks[r].in, ranks[r].out, COUNT, type, (ncclRedOp_t)op,
                        2, COMM, STREAM));
        ck_assert(nc_has(&ranks[2], ranks[2].out, type, COUNT, want));
        EACH(ncclReduceScatter(ranks[r].in, ranks[r].out, COUNT / N, type,
                               (ncclRedOp_t)op, COMM, STREAM));
        ck_assert(all_have(type, COUNT / N, want));
    }
    finish();
}
END_TEST

/* _i: the type */
START_TEST(each_copy_takes_each_type)
{
    ncclDataType_t type = (ncclDataType_t)_i;
    size_t len = COUNT * nc_size(type);

    begin(LEN);
    fill(type);
    EACH(ncclAllGather(ranks[r].in, ranks[r].out, COUNT, type, COMM, STREAM));
    for (int r = 0; r < N; r++)
        for (int from = 0; from < N; from++)
            ck_assert(nc_has(&ranks[r], ranks[r].out + (size_t)from * len, type,
                             COUNT, 1 + from % 2));
    EACH(
        ncclBroadcast(ranks[r].in, ranks[r].out, COUNT, type, 3, COMM, STREAM));
    ck_assert(all_have(type, COUNT, 2));
    EACH(ncclBcast(ranks[r].in, COUNT, type, 2, COMM, STREAM));
    for (int r = 0; r < N; r++)
        ck_assert(nc_has(&ranks[r], ranks[r].in, type, COUNT, 1));
    finish();
}
END_TEST

START_TEST(buffers_may_be_in_place_large_or_empty)
{
    begin((size_t)4 * LARGE);
    for (int r = 0; r < N; r++)
        nc_fill(&ranks[r], ranks[r].in, ncclInt32, LARGE, r);
    EACH(ncclAllReduce(ranks[r].in, ranks[r].in, LARGE, ncclInt32, ncclSum,
                       COMM, STREAM));
    for (int r = 0; r < N; r++)
        ck_assert(nc_has(&ranks[r], ranks[r].in, ncclInt32, LARGE, 6));
    EACH(ncclAllReduce(ranks[r].in, ranks[r].out, 0, ncclInt32, ncclSum, COMM,
                       STREAM));
    EACH(ncclReduceScatter(ranks[r].in, ranks[r].in + (size_t)r * LARGE,
                           LARGE / N, ncclInt32, ncclMax, COMM, STREAM));
    for (int r = 0; r < N; r++)
        ck_assert(nc_has(&ranks[r], ranks[r].in + (size_t)r * LARGE, ncclInt32,
                         LARGE / N, 6));
    EACH(ncclAllGather(ranks[r].in + (size_t)r * LARGE, ranks[r].in, LARGE / N,
                       ncclInt32, COMM, STREAM));
    for (int r = 0; r < N; r++)
        ck_assert(nc_has(&ranks[r], ranks[r].in, ncclInt32, LARGE, 6));
    finish();
}
END_TEST

/* Many operations in one group, each rank's next to each other. */
START_TEST(a_group_holds_many_operations_of_many_ranks)
{
    begin(LEN);
    fill(ncclInt32);
    for (int round = 0; round < 10; round++) {
        NC(ncclGroupStart());
        for (int r = 0; r < N; r++) {
            NC(ncclGroupStart());
            for (int i = 0; i < 20; i++)
                NC(ncclAllReduce(ranks[r].in + i * 40, ranks[r].out + i * 40,
                                 10, ncclInt32, ncclSum, COMM, STREAM));
            NC(ncclGroupEnd());
        }
        NC(ncclGroupEnd());
    }
    for (int r = 0; r < N; r++)
        nc_sync(&ranks[r]);
    ck_assert(all_have(ncclInt32, 200, 6));
    finish();
}
END_TEST

/* Each rank sends to the next one, and to all, as alltoall_perf does. */
START_TEST(messages_are_sent_within_a_group)
{
    enum { PART = COUNT / N };

    begin(LEN);
    for (int r = 0; r < N; r++)
        nc_fill(&ranks[r], ranks[r].in, ncclFloat, COUNT, r);
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        for (int peer = 0; peer < N; peer++) {
            NC(ncclSend(ranks[r].in + (size_t)peer * PART * 4, PART, ncclFloat,
                        peer, COMM, STREAM));
            NC(ncclRecv(ranks[r].out + (size_t)peer * PART * 4, PART, ncclFloat,
                        peer, COMM, STREAM));
        }
    NC(ncclGroupEnd());
    for (int r = 0; r < N; r++)
        nc_sync(&ranks[r]);
    for (int r = 0; r < N; r++)
        for (int peer = 0; peer < N; peer++)
            ck_assert(nc_has(&ranks[r], ranks[r].out + (size_t)peer * PART * 4,
                             ncclFloat, PART, peer));
    finish();
}
END_TEST

/* One reduction operation for each rank, destroyed before the group ends. */
START_TEST(each_rank_scales_its_input_by_its_own_factor)
{
    begin(LEN);
    fill(ncclFloat);
    for (int round = 0; round < 3; round++) {
        NC(ncclGroupStart());
        for (int r = 0; r < N; r++) {
            float factor = (float)(r + 1);
            ncclRedOp_t op;

            NC(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat,
                                        ncclScalarHostImmediate, COMM));
            ck_assert_int_ge(op, ncclNumOps);
            NC(ncclAllReduce(ranks[r].in, ranks[r].out, COUNT, ncclFloat, op,
                             COMM, STREAM));
            NC(ncclRedOpDestroy(op, COMM));
        }
        NC(ncclGroupEnd());
    }
    for (int r = 0; r < N; r++)
        nc_sync(&ranks[r]);
    ck_assert(all_have(ncclFloat, COUNT, 1 + 2 * 2 + 3 + 4 * 2));
    finish();
}
END_TEST

/* NULL is the legacy stream of the communicator's GPU, whichever is current.
 * _i: COLL_CHECK */
START_TEST(the_stream_may_be_null)
{
    setenv("COLL_CHECK", _i ? "1" : "0", 1);
    begin(LEN);
    fill(ncclInt64);
    EACH(ncclAllReduce(ranks[r].in, ranks[r].out, COUNT, ncclInt64, ncclSum,
                       COMM, NULL));
    for (int r = 0; r < N; r++) {
        OK(cu.CtxSetCurrent(ranks[r].context));
        OK(cu.StreamSynchronize(NULL));
    }
    ck_assert(all_have(ncclInt64, COUNT, 6));
    finish();
}
END_TEST

/* One thread captures a group on the streams of all its GPUs, as all_reduce_perf -G
 * does, and launches it. */
START_TEST(a_group_is_captured_in_graphs)
{
    CUgraphExec launchable[N];
    CUgraph graphs[N];

    begin(LEN);
    for (int r = 0; r < N; r++) {
        OK(cu.CtxSetCurrent(ranks[r].context));
        OK(cu.StreamBeginCapture(ranks[r].stream,
                                 CU_STREAM_CAPTURE_MODE_GLOBAL));
    }
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        NC(ncclAllReduce(ranks[r].in, ranks[r].out, COUNT, ncclInt32, ncclSum,
                         COMM, STREAM));
    NC(ncclGroupEnd());
    for (int r = 0; r < N; r++)
        OK(cu.StreamEndCapture(ranks[r].stream, &graphs[r]));
    for (int r = 0; r < N; r++)
        OK(cu.GraphInstantiateWithFlags(&launchable[r], graphs[r], 0));
    for (int round = 0; round < 5; round++) {
        for (int r = 0; r < N; r++)
            nc_fill(&ranks[r], ranks[r].in, ncclInt32, COUNT, r + round);
        for (int r = 0; r < N; r++)
            OK(cu.GraphLaunch(launchable[r], ranks[r].stream));
        for (int r = 0; r < N; r++)
            nc_sync(&ranks[r]);
        ck_assert(all_have(ncclInt32, COUNT, 6 + N * round));
    }
    for (int r = 0; r < N; r++) {
        OK(cu.GraphExecDestroy(launchable[r]));
        OK(cu.GraphDestroy(graphs[r]));
    }
    finish();
}
END_TEST

/* Threads use communicators that another one has made. */
static void *sum_in_thread(void *arg)
{
    struct rank *r = arg;

    for (int round = 0; round < 20; round++)
        NC(ncclAllReduce(r->in, r->out, COUNT, ncclInt32, ncclSum, r->comm,
                         (cudaStream_t)r->stream));
    nc_sync(r);
    return NULL;
}

START_TEST(each_communicator_has_a_thread)
{
    pthread_t threads[N];

    begin(LEN);
    fill(ncclInt32);
    for (int r = 0; r < N; r++)
        pthread_create(&threads[r], NULL, sum_in_thread, &ranks[r]);
    for (int r = 0; r < N; r++)
        pthread_join(threads[r], NULL);
    ck_assert(all_have(ncclInt32, COUNT, 6));
    finish();
}
END_TEST

START_TEST(communicators_answer)
{
    int devices[] = {3, 1, 0, 2}, number;
    ncclComm_t comms[N];
    ncclResult_t error;

    nc_start(N);
    NC(ncclCommInitAll(comms, N, devices));
    for (int r = 0; r < N; r++) {
        NC(ncclCommCount(comms[r], &number));
        ck_assert_int_eq(number, N);
        NC(ncclCommUserRank(comms[r], &number));
        ck_assert_int_eq(number, r);
        NC(ncclCommCuDevice(comms[r], &number));
        ck_assert_int_eq(number, devices[r]);
        NC(ncclCommGetAsyncError(comms[r], &error));
        ck_assert_int_eq(error, ncclSuccess);
    }
    NC(ncclGetVersion(&number));
    ck_assert_int_eq(number, NCCL_VERSION(2, 27, 7));
    ncclResetDebugInit();
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        NC(ncclCommFinalize(comms[r]));
    NC(ncclGroupEnd());
    for (int r = 0; r < N; r++)
        NC(ncclCommDestroy(comms[r]));
}
END_TEST

START_TEST(a_group_can_be_priced_instead)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;

    begin(LEN);
    fill(ncclInt32);
    nc_fill(&ranks[0], ranks[0].out, ncclInt32, COUNT, 7);
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        NC(ncclAllReduce(ranks[r].in, ranks[r].out, COUNT, ncclInt32, ncclSum,
                         COMM, STREAM));
    NC(ncclGroupSimulateEnd(&info));
    ck_assert(info.estimatedTime > 0);
    ck_assert(nc_has(&ranks[0], ranks[0].out, ncclInt32, COUNT, 7));
    finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl");
    TCase *tc = suite_case(suite, "nccl", 60);

    tcase_add_loop_test(tc, each_reduction_takes_each_type, 0, ncclNumTypes);
    tcase_add_loop_test(tc, each_copy_takes_each_type, 0, ncclNumTypes);
    tcase_add_test(tc, buffers_may_be_in_place_large_or_empty);
    tcase_add_test(tc, a_group_holds_many_operations_of_many_ranks);
    tcase_add_test(tc, messages_are_sent_within_a_group);
    tcase_add_test(tc, each_rank_scales_its_input_by_its_own_factor);
    tcase_add_loop_test(tc, the_stream_may_be_null, 0, 2);
    tcase_add_test(tc, a_group_is_captured_in_graphs);
    tcase_add_test(tc, each_communicator_has_a_thread);
    tcase_add_test(tc, communicators_answer);
    tcase_add_test(tc, a_group_can_be_priced_instead);
    return suite_run(suite);
}
