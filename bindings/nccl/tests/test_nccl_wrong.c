/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nccl_wrong.c - wrong calls: their results, and the sentences that
 * ncclGetLastError() gives. */
#include "bindings/nccl/tests/gpus.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

enum { N = 2, COUNT = 100, LEN = 800 };

static struct rank ranks[N];

static void begin(void)
{
    ncclComm_t comms[N];

    nc_start(N);
    for (int r = 0; r < N; r++)
        nc_take(&ranks[r], r, LEN);
    NC(ncclCommInitAll(comms, N, NULL));
    for (int r = 0; r < N; r++)
        ranks[r].comm = comms[r];
}

/* What was wrong before did no harm: the communicators work, and end. */
static void finish(void)
{
    for (int r = 0; r < N; r++)
        nc_fill(&ranks[r], ranks[r].in, ncclInt32, COUNT, 1);
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        NC(ncclAllReduce(ranks[r].in, ranks[r].out, COUNT, ncclInt32, ncclSum,
                         ranks[r].comm, (cudaStream_t)ranks[r].stream));
    NC(ncclGroupEnd());
    for (int r = 0; r < N; r++)
        nc_sync(&ranks[r]);
    for (int r = 0; r < N; r++)
        ck_assert(nc_has(&ranks[r], ranks[r].out, ncclInt32, COUNT, N));
    for (int r = 0; r < N; r++)
        NC(ncclCommDestroy(ranks[r].comm));
}

#define R (&ranks[0])
#define S (cudaStream_t) ranks[0].stream

START_TEST(operations_say_what_is_wrong)
{
    ncclComm_t nobody = NULL;
    char host[LEN];

    begin();
    FAILS(ncclAllReduce(R->in, R->out, COUNT, ncclInt32, ncclSum, nobody, S),
          ncclInvalidArgument, "ncclAllReduce: the communicator is NULL");
    FAILS(ncclAllReduce(R->in, R->out, COUNT, (ncclDataType_t)12, ncclSum,
                        R->comm, S),
          ncclInvalidArgument, "12 is no ncclDataType_t");
    FAILS(ncclAllReduce(R->in, R->out, COUNT, ncclInt32, (ncclRedOp_t)7,
                        R->comm, S),
          ncclInvalidArgument, "7 is no ncclRedOp_t");
    FAILS(ncclReduce(R->in, R->out, COUNT, ncclInt32, (ncclRedOp_t)5000, 0,
                     R->comm, S),
          ncclInvalidArgument, "5000");
    FAILS(ncclBroadcast(R->in, R->out, COUNT, ncclInt32, N, R->comm, S),
          ncclInvalidArgument, "root");
    FAILS(ncclAllGather(NULL, R->out, COUNT, ncclInt32, R->comm, S),
          ncclInvalidArgument, "NULL");
    FAILS(ncclSend(R->in, COUNT, ncclInt32, -1, R->comm, S),
          ncclInvalidArgument, "-1");
    FAILS(ncclRecv(R->out, COUNT, ncclInt32, 0, R->comm, S),
          ncclInvalidArgument, "itself");
    FAILS(ncclAllReduce(host, host, COUNT, ncclInt32, ncclSum, R->comm, S),
          ncclInvalidArgument, "pin it");
    FAILS(ncclAllReduce(ranks[1].in, R->out, COUNT, ncclInt32, ncclSum, R->comm,
                        S),
          ncclInvalidArgument, "memory of GPU 1");
    finish();
}
END_TEST

/* After a wrong call a group starts nothing. */
START_TEST(a_group_with_a_wrong_call_starts_nothing)
{
    ncclComm_t comm = NULL;
    ncclUniqueId id;

    begin();
    nc_fill(R, R->out, ncclInt32, COUNT, 7);
    NC(ncclGroupStart());
    NC(ncclAllReduce(R->in, R->out, COUNT, ncclInt32, ncclSum, R->comm, S));
    FAILS(ncclReduce(R->in, R->out, COUNT, (ncclDataType_t)-1, ncclSum, 0,
                     R->comm, S),
          ncclInvalidArgument, "-1 is no ncclDataType_t");
    FAILS(ncclCommDestroy(R->comm), ncclInvalidUsage, "end the group first");
    FAILS(ncclCommFinalize(R->comm), ncclInvalidUsage, "end the group first");
    NC(ncclGetUniqueId(&id));
    NC(ncclCommInitRank(&comm, 2, id, 0));
    ck_assert(comm);
    FAILS(ncclAllReduce(R->in, R->out, COUNT, ncclInt32, ncclSum, comm, S),
          ncclInvalidUsage, "is not initialized");
    FAILS(ncclCommAbort(comm), ncclInvalidUsage, "end the group first");
    FAILS(ncclGroupEnd(), ncclInvalidArgument, "-1 is no ncclDataType_t");
    ck_assert(!comm);
    nc_sync(R);
    ck_assert(nc_has(R, R->out, ncclInt32, COUNT, 7));
    FAILS(ncclGroupEnd(), ncclInvalidUsage, "there is no group");
    NC(ncclGroupStart());
    NC(ncclAllReduce(NULL, R->out, COUNT, ncclInt32, ncclSum, R->comm, S));
    FAILS(ncclGroupEnd(), ncclInvalidArgument, "NULL");
    finish();
}
END_TEST

START_TEST(initialization_says_what_is_wrong)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int devices[] = {0, 9};
    ncclUniqueId id = {{0}};
    ncclComm_t comms[3];

    nc_start(N);
    FAILS(ncclGetUniqueId(NULL), ncclInvalidArgument, "id is NULL");
    FAILS(ncclGetVersion(NULL), ncclInvalidArgument, "version is NULL");
    FAILS(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument,
          "comm is NULL");
    FAILS(ncclCommInitRank(comms, 2, id, 2), ncclInvalidArgument,
          "rank 2 of 2 ranks");
    FAILS(ncclCommInitRank(comms, 0, id, 0), ncclInvalidArgument,
          "rank 0 of 0 ranks");
    FAILS(ncclCommInitRank(comms, 2, id, 0), ncclInvalidArgument, "id");
    ck_assert(!comms[0]);
    FAILS(ncclCommInitRankScalable(comms, 2, 0, 3, &id, NULL),
          ncclInvalidArgument, "3 ids of 2 ranks");
    FAILS(ncclCommInitAll(comms, 3, NULL), ncclInvalidArgument,
          "3 communicators; there are 2 GPUs");
    FAILS(ncclCommInitAll(comms, 2, devices), ncclInvalidArgument,
          "there is no GPU 9");
    FAILS(ncclCommInitAll(NULL, 2, NULL), ncclInvalidArgument, "comms is NULL");
    config.netName = "IB";
    FAILS(ncclCommInitRankConfig(comms, 1, id, 0, &config), ncclInvalidUsage,
          "config.netName asks for IB");
    config.netName = NULL;
    config.blocking = 2;
    FAILS(ncclCommInitRankConfig(comms, 1, id, 0, &config), ncclInvalidArgument,
          "config.blocking is 2");
    config.magic = 0;
    FAILS(ncclCommInitRankConfig(comms, 1, id, 0, &config), ncclInvalidArgument,
          "NCCL_CONFIG_INITIALIZER");
}
END_TEST

/* One rank of a group never comes: both others are told, and there is nothing to destroy. */
START_TEST(a_group_whose_initialization_fails_makes_nothing)
{
    ncclComm_t comms[2];
    ncclUniqueId id;

    setenv("COLL_TIMEOUT", "1", 1);
    nc_start(2);
    NC(ncclGetUniqueId(&id));
    NC(ncclGroupStart());
    for (int r = 0; r < 2; r++)
        NC(ncclCommInitRank(&comms[r], 3, id, r));
    FAILS(ncclGroupEnd(), ncclRemoteError, "rank");
    ck_assert(!comms[0] && !comms[1]);
}
END_TEST

/* A program of NCCL 2.14 has a shorter config. */
START_TEST(a_config_of_an_older_program_is_read)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comm;

    nc_start(1);
    NC(ncclGetUniqueId(&id));
    config.size = offsetof(ncclConfig_t, cgaClusterSize) + sizeof(int);
    config.netName = "behind its end";
    NC(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    NC(ncclCommDestroy(comm));
}
END_TEST

START_TEST(communicators_say_what_is_wrong)
{
    ncclSimInfo_t info = {0};
    float factor = 2;
    ncclResult_t state;
    ncclWindow_t window;
    ncclComm_t part;
    ncclRedOp_t op;
    void *handle;
    int number, gone[] = {0, 5};

    begin();
    FAILS(ncclCommCount(NULL, &number), ncclInvalidArgument, "is NULL");
    FAILS(ncclCommUserRank(R->comm, NULL), ncclInvalidArgument,
          "ncclCommUserRank: the result is NULL");
    FAILS(ncclCommGetAsyncError(NULL, &state), ncclInvalidArgument, "is NULL");
    FAILS(ncclCommSplit(R->comm, 0, 0, NULL, NULL), ncclInvalidArgument,
          "newcomm is NULL");
    FAILS(ncclCommShrink(R->comm, gone, 2, &part, NULL, 0), ncclInvalidArgument,
          "2 of 2 ranks");
    FAILS(ncclCommShrink(R->comm, gone, 1, &part, NULL, 0), ncclInvalidArgument,
          "rank 0 is excluded");
    FAILS(ncclCommShrink(R->comm, gone + 1, 1, &part, NULL, 0),
          ncclInvalidArgument, "there is no rank 5 of 2");
    FAILS(ncclCommShrink(R->comm, gone, 1, &part, NULL, NCCL_SHRINK_ABORT),
          ncclInvalidUsage, "NCCL_SHRINK_DEFAULT");
    FAILS(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat, ncclScalarDevice,
                                   R->comm),
          ncclInvalidUsage, "ncclScalarHostImmediate");
    FAILS(ncclRedOpCreatePreMulSum(NULL, &factor, ncclFloat,
                                   ncclScalarHostImmediate, R->comm),
          ncclInvalidArgument, "op is NULL");
    FAILS(ncclRedOpDestroy(ncclSum, R->comm), ncclInvalidArgument,
          "was not made by");
    FAILS(ncclCommRegister(R->comm, NULL, LEN, &handle), ncclInvalidArgument,
          "the buffer is NULL");
    FAILS(ncclCommRegister(R->comm, R->in, LEN, NULL), ncclInvalidArgument,
          "handle is NULL");
    FAILS(ncclCommWindowRegister(R->comm, R->in, LEN, &window, 6),
          ncclInvalidArgument, "the flags are 0x6");
    FAILS(ncclCommWindowDeregister(R->comm, NULL), ncclInvalidArgument,
          "nothing of this handle");
    FAILS(ncclMemAlloc(NULL, 1), ncclInvalidArgument, "NULL");
    FAILS(ncclMemFree(&number), ncclInvalidArgument, "coll_mem_free");
    FAILS(ncclGroupSimulateEnd(&info), ncclInvalidUsage, "there is no group");
    ck_assert_str_eq(ncclGetErrorString((ncclResult_t)99),
                     "unknown result code");
    NC(ncclCommDestroy(NULL));
    NC(ncclCommAbort(NULL));
    NC(ncclMemFree(NULL));
    finish();
}
END_TEST

START_TEST(a_finalized_communicator_is_refused)
{
    begin();
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        NC(ncclCommFinalize(ranks[r].comm));
    NC(ncclGroupEnd());
    FAILS(ncclAllReduce(R->in, R->out, COUNT, ncclInt32, ncclSum, R->comm, S),
          ncclInvalidUsage, "was finalized");
    FAILS(ncclCommFinalize(R->comm), ncclInvalidUsage, "was finalized");
    for (int r = 0; r < N; r++)
        NC(ncclCommDestroy(ranks[r].comm));
}
END_TEST

/* The ranks' calls differ: with COLL_CHECK the end of the group says so.  Without kernels
 * (nvcc) the host carries the messages, and finds it later. */
START_TEST(a_mismatch_is_invalid_usage)
{
    double until = gpu_now() + patient(20);
    ncclResult_t state;

    setenv("COLL_CHECK", "1", 1);
    begin();
    NC(ncclGroupStart());
    for (int r = 0; r < N; r++)
        NC(ncclAllReduce(ranks[r].in, ranks[r].out, (size_t)(COUNT - r),
                         ncclInt32, ncclSum, ranks[r].comm,
                         (cudaStream_t)ranks[r].stream));
    state = ncclGroupEnd();
    while (!state && gpu_now() < until)
        NC(ncclCommGetAsyncError(R->comm, &state));
    FAILS(state, ncclInvalidUsage, "count");
    for (int r = 0; r < N; r++)
        NC(ncclCommAbort(ranks[r].comm));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl_wrong");
    TCase *tc = suite_case(suite, "nccl_wrong", 30);

    tcase_add_test(tc, operations_say_what_is_wrong);
    tcase_add_test(tc, a_group_with_a_wrong_call_starts_nothing);
    tcase_add_test(tc, initialization_says_what_is_wrong);
    tcase_add_test(tc, a_group_whose_initialization_fails_makes_nothing);
    tcase_add_test(tc, a_config_of_an_older_program_is_read);
    tcase_add_test(tc, communicators_say_what_is_wrong);
    tcase_add_test(tc, a_finalized_communicator_is_refused);
    tcase_add_test(tc, a_mismatch_is_invalid_usage);
    return suite_run(suite);
}
