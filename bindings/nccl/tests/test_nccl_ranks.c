/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nccl_ranks.c - ranks that are processes and threads, one or several in each: how
 * communicators begin, are divided and end. */
#include "bindings/nccl/tests/gpus.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 5000, LEN = 4 * COUNT };

/* 1 unless it holds; a process must not pass Check's own failures on. */
#define HOLDS(what)                                                            \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "rank %d, %s:%d: %s (%s)\n", rank, __FILE__,       \
                    __LINE__, #what, ncclGetLastError(NULL));                  \
            return 1;                                                          \
        }                                                                      \
    } while (0)

/* Sum 1 + rank up over a communicator of n ranks. */
static int sums_up(const struct rank *r, ncclComm_t comm)
{
    int rank = -1, n = 0;

    HOLDS(!ncclCommUserRank(comm, &rank) && !ncclCommCount(comm, &n));
    nc_fill(r, r->in, ncclInt32, COUNT, 1 + rank);
    HOLDS(!ncclAllReduce(r->in, r->out, COUNT, ncclInt32, ncclSum, comm,
                         (cudaStream_t)r->stream));
    nc_sync(r);
    HOLDS(nc_has(r, r->out, ncclInt32, COUNT, n * (n + 1) / 2));
    return 0;
}

/* Wait until a communicator that does not block is ready. */
static ncclResult_t await(ncclComm_t comm)
{
    double until = gpu_now() + patient(20);
    ncclResult_t state = ncclInProgress;

    while (!ncclCommGetAsyncError(comm, &state) && state == ncclInProgress &&
           gpu_now() < until)
        usleep(1000);
    return state;
}

/* Threads share one driver; processes start it each. */
static void start(void)
{
    if (!cu.Init)
        nc_start(3);
}

/* ---- one rank each ------------------------------------------------------------------ */

static int meet(int rank, int n, const ncclUniqueId *id)
{
    ncclComm_t comm;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    HOLDS(!ncclCommInitRank(&comm, n, *id, rank));
    HOLDS(!sums_up(&r, comm));
    HOLDS(!ncclCommFinalize(comm));
    HOLDS(!ncclCommDestroy(comm));
    return 0;
}

/* _i: ranks, which share three GPUs */
START_TEST(processes_meet_by_an_id)
{
    ck_assert_int_eq(nc_processes(_i, meet), 0);
}
END_TEST

START_TEST(threads_meet_by_an_id)
{
    nc_start(3);
    ck_assert_int_eq(nc_threads(_i, meet), 0);
}
END_TEST

/* ---- several GPUs of several processes --------------------------------------------------- */

static int meet_in_pairs(int rank, int n, const ncclUniqueId *id)
{
    ncclComm_t comms[2];
    struct rank r[2];

    start();
    for (int i = 0; i < 2; i++)
        nc_take(&r[i], (2 * rank + i) % 3, LEN);
    HOLDS(!ncclGroupStart());
    for (int i = 0; i < 2; i++) {
        OK(cu.CtxSetCurrent(r[i].context));
        HOLDS(!ncclCommInitRank(&comms[i], 2 * n, *id, 2 * rank + i));
    }
    HOLDS(!ncclGroupEnd());
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++)
            nc_fill(&r[i], r[i].in, ncclInt32, COUNT, 2 * rank + i);
        HOLDS(!ncclGroupStart());
        for (int i = 0; i < 2; i++)
            HOLDS(!ncclAllReduce(r[i].in, r[i].out, COUNT, ncclInt32, ncclMax,
                                 comms[i], (cudaStream_t)r[i].stream));
        HOLDS(!ncclGroupEnd());
        for (int i = 0; i < 2; i++)
            nc_sync(&r[i]);
        for (int i = 0; i < 2; i++)
            HOLDS(nc_has(&r[i], r[i].out, ncclInt32, COUNT, 2 * n - 1));
    }
    for (int i = 0; i < 2; i++)
        HOLDS(!ncclCommDestroy(comms[i]));
    return 0;
}

START_TEST(processes_have_two_gpus_each)
{
    ck_assert_int_eq(nc_processes(3, meet_in_pairs), 0);
}
END_TEST

START_TEST(threads_have_two_gpus_each)
{
    nc_start(3);
    ck_assert_int_eq(nc_threads(2, meet_in_pairs), 0);
}
END_TEST

/* ---- ways to begin ---------------------------------------------------------------------------- */

static int meet_without_blocking(int rank, int n, const ncclUniqueId *id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm, part;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    config.blocking = 0;
    config.commName = "mine";
    HOLDS(ncclCommInitRankConfig(&comm, n, *id, rank, &config) ==
          ncclInProgress);
    HOLDS(await(comm) == ncclSuccess);
    HOLDS(!sums_up(&r, comm));
    HOLDS(ncclCommSplit(comm, rank % 2, 0, &part, NULL) == ncclInProgress);
    HOLDS(await(comm) == ncclSuccess && await(part) == ncclSuccess);
    HOLDS(!sums_up(&r, part));
    HOLDS(ncclCommFinalize(part) == ncclInProgress);
    HOLDS(await(part) == ncclSuccess);
    HOLDS(!ncclCommDestroy(part));
    HOLDS(!ncclCommDestroy(comm));
    return 0;
}

START_TEST(initialization_need_not_block)
{
    ck_assert_int_eq(nc_processes(3, meet_without_blocking), 0);
}
END_TEST

/* A rank that waits for nobody drops its communicator. */
static int give_up(int rank, int n, const ncclUniqueId *id)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t state;
    ncclComm_t comm;

    (void)n;
    start();
    fake_device(0);
    config.blocking = 0;
    HOLDS(ncclCommInitRankConfig(&comm, 2, *id, rank, &config) ==
          ncclInProgress);
    HOLDS(!ncclCommGetAsyncError(comm, &state) && state == ncclInProgress);
    HOLDS(ncclCommFinalize(comm) == ncclInvalidUsage);
    HOLDS(!ncclCommAbort(comm));
    return 0;
}

START_TEST(initialization_in_progress_can_be_aborted)
{
    patient_timeout(2);
    ck_assert_int_eq(nc_processes(1, give_up), 0);
}
END_TEST

static int meet_by_ids(int rank, int n, const ncclUniqueId *id)
{
    ncclUniqueId ids[2] = {*id, *id};
    ncclComm_t comm;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    HOLDS(!ncclCommInitRankScalable(&comm, n, rank, 1, ids, NULL));
    HOLDS(!sums_up(&r, comm));
    HOLDS(!ncclCommDestroy(comm));
    return 0;
}

START_TEST(several_ids_are_taken)
{
    ck_assert_int_eq(nc_processes(3, meet_by_ids), 0);
}
END_TEST

/* ---- parts ----------------------------------------------------------------------------------------- */

static int divide(int rank, int n, const ncclUniqueId *id)
{
    int color = rank == n - 1 ? NCCL_SPLIT_NOCOLOR : rank % 2, number;
    ncclComm_t comm, part = NULL;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    HOLDS(!ncclCommInitRank(&comm, n, *id, rank));
    HOLDS(!sums_up(&r, comm));
    HOLDS(!ncclCommSplit(comm, color, -rank, &part, NULL));
    HOLDS(!part == (color == NCCL_SPLIT_NOCOLOR));
    if (part) {
        HOLDS(!ncclCommUserRank(part, &number));
        HOLDS(number == (n - 2 - rank) / 2); /* by the keys: backwards */
        HOLDS(!ncclCommCuDevice(part, &number) && number == rank % 3);
        HOLDS(!sums_up(&r, part));
        HOLDS(!ncclCommDestroy(part));
    }
    HOLDS(!sums_up(&r, comm));
    HOLDS(!ncclCommDestroy(comm));
    return 0;
}

START_TEST(a_communicator_is_split)
{
    ck_assert_int_eq(nc_processes(5, divide), 0);
}
END_TEST

static int shrink(int rank, int n, const ncclUniqueId *id)
{
    int excluded[] = {2, 0};
    ncclComm_t comm, part = NULL;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    HOLDS(!ncclCommInitRank(&comm, n, *id, rank));
    HOLDS(!sums_up(&r, comm));
    if (rank != 0 && rank != 2) {
        int number;

        HOLDS(!ncclCommShrink(comm, excluded, 2, &part, NULL,
                              NCCL_SHRINK_DEFAULT));
        HOLDS(!ncclCommCount(part, &number) && number == n - 2);
        HOLDS(!sums_up(&r, part));
        HOLDS(!ncclCommDestroy(part));
    }
    HOLDS(!ncclCommDestroy(comm));
    return 0;
}

START_TEST(a_communicator_shrinks)
{
    ck_assert_int_eq(nc_processes(5, shrink), 0);
}
END_TEST

/* One thread splits the communicators of all its GPUs. */
START_TEST(a_group_splits_the_communicators_of_one_thread)
{
    ncclComm_t comms[4], parts[4];
    struct rank r[4];

    nc_start(4);
    for (int i = 0; i < 4; i++)
        nc_take(&r[i], i, LEN);
    NC(ncclCommInitAll(comms, 4, NULL));
    NC(ncclGroupStart());
    for (int i = 0; i < 4; i++)
        NC(ncclCommSplit(comms[i], i / 2, i, &parts[i], NULL));
    NC(ncclGroupEnd());
    for (int i = 0; i < 4; i++)
        nc_fill(&r[i], r[i].in, ncclInt32, COUNT, i);
    NC(ncclGroupStart());
    for (int i = 0; i < 4; i++)
        NC(ncclAllReduce(r[i].in, r[i].out, COUNT, ncclInt32, ncclSum, parts[i],
                         (cudaStream_t)r[i].stream));
    NC(ncclGroupEnd());
    for (int i = 0; i < 4; i++)
        nc_sync(&r[i]);
    for (int i = 0; i < 4; i++)
        ck_assert(nc_has(&r[i], r[i].out, ncclInt32, COUNT, i < 2 ? 1 : 5));
    for (int i = 0; i < 4; i++) {
        NC(ncclCommDestroy(parts[i]));
        NC(ncclCommDestroy(comms[i]));
    }
}
END_TEST

/* ---- ends ---------------------------------------------------------------------------------------------- */

/* How many ranks have a stream that waits for rank 0; shared by all of them. */
static _Atomic int *n_waiting;

/* Rank 0 aborts while the streams of the others wait for it. */
static int abort_one(int rank, int n, const ncclUniqueId *id)
{
    double until = gpu_now() + patient(20);
    ncclResult_t state = ncclSuccess;
    ncclComm_t comm;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    HOLDS(!ncclCommInitRank(&comm, n, *id, rank));
    HOLDS(!sums_up(&r, comm));
    if (!rank) {
        while (*n_waiting < n - 1 && gpu_now() < until)
            usleep(1000);
        return ncclCommAbort(comm) != ncclSuccess;
    }
    HOLDS(!ncclAllReduce(r.in, r.out, COUNT, ncclInt32, ncclSum, comm,
                         (cudaStream_t)r.stream));
    (*n_waiting)++;
    while (!state && gpu_now() < until)
        HOLDS(!ncclCommGetAsyncError(comm, &state));
    HOLDS(state == ncclRemoteError);
    HOLDS(strstr(ncclGetLastError(comm), "ncclCommAbort"));
    nc_sync(&r); /* which ends */
    HOLDS(ncclAllReduce(r.in, r.out, COUNT, ncclInt32, ncclSum, comm,
                        (cudaStream_t)r.stream) == ncclRemoteError);
    HOLDS(!ncclCommAbort(comm));
    return 0;
}

START_TEST(an_abort_is_told_and_ends_all_waiting)
{
    n_waiting = mmap(NULL, sizeof(*n_waiting), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_int_eq(nc_processes(3, abort_one), 0);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------------------- */

static int reduce_in_windows(int rank, int n, const ncclUniqueId *id)
{
    ncclWindow_t in, out, plain;
    void *at[2], *handle;
    ncclComm_t comm;
    struct rank r;

    start();
    nc_take(&r, rank % 3, LEN);
    HOLDS(!ncclCommInitRank(&comm, n, *id, rank));
    for (int i = 0; i < 2; i++)
        HOLDS(!ncclMemAlloc(&at[i], LEN));
    HOLDS(!ncclCommRegister(comm, r.in, LEN, &handle));
    HOLDS(!ncclCommWindowRegister(comm, at[0], LEN, &in,
                                  NCCL_WIN_COLL_SYMMETRIC));
    HOLDS(!ncclCommWindowRegister(comm, at[1], LEN, &out,
                                  NCCL_WIN_COLL_SYMMETRIC));
    HOLDS(!ncclCommWindowRegister(comm, r.out, LEN, &plain, NCCL_WIN_DEFAULT));
    for (int round = 0; round < 3; round++) {
        nc_fill(&r, at[0], ncclInt32, COUNT, rank + round);
        HOLDS(!ncclAllReduce(at[0], at[1], COUNT, ncclInt32, ncclMax, comm,
                             (cudaStream_t)r.stream));
        nc_sync(&r);
        HOLDS(nc_has(&r, at[1], ncclInt32, COUNT, n - 1 + round));
    }
    HOLDS(!ncclCommWindowDeregister(comm, in));
    HOLDS(!ncclMemFree(at[0]));
    HOLDS(!sums_up(&r, comm)); /* here the ranks end it */
    HOLDS(!ncclCommWindowDeregister(comm, out));
    HOLDS(!ncclMemFree(at[1]));
    HOLDS(!ncclCommDeregister(comm, handle));
    HOLDS(ncclCommDeregister(comm, handle) == ncclInvalidArgument);
    HOLDS(!ncclCommDestroy(comm));
    return 0;
}

START_TEST(windows_are_registered_and_freed)
{
    ck_assert_int_eq(nc_processes(3, reduce_in_windows), 0);
}
END_TEST

/* One thread registers the buffers of all its GPUs, and frees them one by one. */
START_TEST(a_group_registers_the_windows_of_one_thread)
{
    ncclWindow_t windows[3];
    ncclComm_t comms[3];
    struct rank r[3];
    void *at[3];

    nc_start(3);
    for (int i = 0; i < 3; i++) {
        nc_take(&r[i], i, LEN);
        NC(ncclMemAlloc(&at[i], LEN));
        nc_fill(&r[i], at[i], ncclInt32, COUNT, i);
    }
    NC(ncclCommInitAll(comms, 3, NULL));
    for (int round = 0; round < 3; round++) {
        NC(ncclGroupStart());
        for (int i = 0; i < 3; i++)
            NC(ncclCommWindowRegister(comms[i], at[i], LEN, &windows[i],
                                      NCCL_WIN_COLL_SYMMETRIC));
        NC(ncclGroupEnd());
        NC(ncclGroupStart());
        for (int i = 0; i < 3; i++)
            NC(ncclAllReduce(at[i], r[i].out, COUNT, ncclInt32, ncclSum,
                             comms[i], (cudaStream_t)r[i].stream));
        NC(ncclGroupEnd());
        for (int i = 0; i < 3; i++)
            nc_sync(&r[i]);
        for (int i = 0; i < 3; i++)
            ck_assert(nc_has(&r[i], r[i].out, ncclInt32, COUNT, 3));
        for (int i = 0; i < 3; i++)
            NC(ncclCommWindowDeregister(comms[i], windows[i]));
    }
    NC(ncclGroupStart()); /* the group ends the windows first */
    for (int i = 0; i < 3; i++)
        NC(ncclAllReduce(at[i], r[i].out, COUNT, ncclInt32, ncclSum, comms[i],
                         (cudaStream_t)r[i].stream));
    NC(ncclGroupEnd());
    for (int i = 0; i < 3; i++)
        nc_sync(&r[i]);
    for (int i = 0; i < 3; i++)
        NC(ncclMemFree(at[i]));
    for (int i = 0; i < 3; i++)
        NC(ncclCommDestroy(comms[i]));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl_ranks");
    TCase *tc = suite_case(suite, "nccl_ranks", 60);

    tcase_add_loop_test(tc, processes_meet_by_an_id, 1, 5);
    tcase_add_loop_test(tc, threads_meet_by_an_id, 1, 5);
    tcase_add_test(tc, processes_have_two_gpus_each);
    tcase_add_test(tc, threads_have_two_gpus_each);
    tcase_add_test(tc, initialization_need_not_block);
    tcase_add_test(tc, initialization_in_progress_can_be_aborted);
    tcase_add_test(tc, several_ids_are_taken);
    tcase_add_test(tc, a_communicator_is_split);
    tcase_add_test(tc, a_communicator_shrinks);
    tcase_add_test(tc, a_group_splits_the_communicators_of_one_thread);
    tcase_add_test(tc, an_abort_is_told_and_ends_all_waiting);
    tcase_add_test(tc, windows_are_registered_and_freed);
    tcase_add_test(tc, a_group_registers_the_windows_of_one_thread);
    return suite_run(suite);
}
