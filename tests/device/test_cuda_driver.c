/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_driver.c - the CUDA driver is found, or one sentence says why not. */
#include "tests/support/suite.h"
#include "lib/device/cuda_driver.h"
#include "include/coll/coll.h"

#include <check.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- entries are what cuda.h says of them -------------------------------------- */

#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>

/* Each entry's newest form up to COLL__CUDA_VERSION: what is found by asking for
 * that version.  cuda.h may declare a newer one under the same name. */
#define FORMS(X)                                                               \
    X(cuInit, 2000)                                                            \
    X(cuDriverGetVersion, 2020)                                                \
    X(cuGetErrorName, 6000)                                                    \
    X(cuGetErrorString, 6000)                                                  \
    X(cuDeviceGetCount, 2000)                                                  \
    X(cuDeviceGet, 2000)                                                       \
    X(cuDeviceGetName, 2000)                                                   \
    X(cuDeviceGetAttribute, 2000)                                              \
    X(cuDeviceGetUuid, 11040)                                                  \
    X(cuDeviceCanAccessPeer, 4000)                                             \
    X(cuDeviceGetP2PAttribute, 8000)                                           \
    X(cuDevicePrimaryCtxRetain, 7000)                                          \
    X(cuDevicePrimaryCtxRelease, 11000)                                        \
    X(cuCtxGetDevice, 2000)                                                    \
    X(cuCtxGetCurrent, 4000)                                                   \
    X(cuCtxPushCurrent, 4000)                                                  \
    X(cuCtxPopCurrent, 4000)                                                   \
    X(cuCtxEnablePeerAccess, 4000)                                             \
    X(cuCtxSynchronize, 2000)                                                  \
    X(cuModuleLoadData, 2000)                                                  \
    X(cuModuleUnload, 2000)                                                    \
    X(cuModuleGetFunction, 2000)                                               \
    X(cuFuncGetAttribute, 2020)                                                \
    X(cuLaunchKernel, 4000)                                                    \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)                       \
    X(cuMemAlloc, 3020)                                                        \
    X(cuMemFree, 3020)                                                         \
    X(cuMemHostRegister, 6050)                                                 \
    X(cuMemHostUnregister, 4000)                                               \
    X(cuMemHostGetDevicePointer, 3020)                                         \
    X(cuMemGetAddressRange, 3020)                                              \
    X(cuMemcpyAsync, 4000)                                                     \
    X(cuMemcpyHtoD, 3020)                                                      \
    X(cuMemcpyDtoH, 3020)                                                      \
    X(cuMemcpyDtoDAsync, 3020)                                                 \
    X(cuMemsetD32Async, 3020)                                                  \
    X(cuPointerGetAttributes, 7000)                                            \
    X(cuIpcGetMemHandle, 4010)                                                 \
    X(cuIpcOpenMemHandle, 11000)                                               \
    X(cuIpcCloseMemHandle, 4010)                                               \
    X(cuGraphRetainUserObject, 11030)                                          \
    X(cuUserObjectCreate, 11030)                                               \
    X(cuUserObjectRelease, 11030)                                              \
    X(cuStreamGetCaptureInfo, 11030)                                           \
    X(cuStreamCreate, 2000)                                                    \
    X(cuStreamDestroy, 4000)                                                   \
    X(cuStreamBatchMemOp, 11070)                                               \
    X(cuStreamWaitValue32, 11070)                                              \
    X(cuStreamWaitValue64, 11070)                                              \
    X(cuStreamWriteValue32, 11070)                                             \
    X(cuStreamGetCtx, 9020)                                                    \
    X(cuStreamIsCapturing, 10000)                                              \
    X(cuStreamSynchronize, 2000)                                               \
    X(cuThreadExchangeStreamCaptureMode, 10010)                                \
    X(cuEventCreate, 2000)                                                     \
    X(cuEventDestroy, 4000)                                                    \
    X(cuEventQuery, 2000)                                                      \
    X(cuEventRecord, 2000)                                                     \
    X(cuEventSynchronize, 2000)                                                \
    X(cuEventElapsedTime, 2000)

#define X(name, version)                                                       \
    _Static_assert(__builtin_types_compatible_p(                               \
                       __typeof__(((struct coll__cuda *)0)->name),             \
                       PFN_##name##_v##version),                               \
                   #name " takes other arguments at version 12.0");
FORMS(X)
#undef X

#define X(...) +1
_Static_assert(FORMS(X) == COLL__CUDA_DRIVER_MAP(X) + 1,
               "an entry has no form here");
#undef X
#endif

/* ---- a driver of few entries ------------------------------------------------------ */

/* A library that is loaded is found by its name, wherever it lies. */
static void take_few(void)
{
    unsetenv("FEW");
    ck_assert(dlopen(FEW, RTLD_NOW | RTLD_LOCAL));
}

static const struct {
    const char *mood, *why;
} refusals[] = {
    {"stub",
     "libcuda.so.1 is the toolkit's stub and no driver; take its folder "
     "out of LD_LIBRARY_PATH"},
    {"no device", "the CUDA driver finds no GPU; see nvidia-smi and "
                  "CUDA_VISIBLE_DEVICES"},
    {"none visible", "the CUDA driver finds no GPU; see nvidia-smi and "
                     "CUDA_VISIBLE_DEVICES"},
    {"forked",
     "this process was forked from one that had started CUDA; start it "
     "by exec() instead"},
    {"old", "the CUDA driver is older than 12.0; update it"},
    {"lacks one", "the CUDA driver has no cuLaunchKernel; update it"},
    {"out of order", "cuInit: system not yet initialized "
                     "(CUDA_ERROR_SYSTEM_NOT_READY)"},
};

/* _i: how the driver feels. */
START_TEST(a_driver_that_does_not_work_is_none_and_says_why)
{
    struct coll__cuda cuda;
    char why[512] = "";

    memset(&cuda, 0x5a, sizeof(cuda));
    setenv("FEW", refusals[_i].mood, 1);
    ck_assert_int_eq(coll__cuda_load(FEW, &cuda, why, sizeof(why)), -1);
    ck_assert_str_eq(why, refusals[_i].why);
    for (size_t i = 0; i < sizeof(cuda); i++) /* untouched */
        ck_assert_int_eq(((char *)&cuda)[i], 0x5a);
}
END_TEST

START_TEST(every_entry_of_a_driver_that_works_is_there)
{
    struct coll__cuda cuda;
    char why[512] = "";
    int n = 0;

    unsetenv("FEW");
    ck_assert_msg(!coll__cuda_load(FEW, &cuda, why, sizeof(why)), "%s", why);
#define X(name) ck_assert(cuda.name);
    COLL__CUDA_DRIVER_MAP(X)
#undef X
    ck_assert_int_eq(cuda.cuDeviceGetCount(&n), CUDA_SUCCESS);
    ck_assert_int_eq(n, 1);
}
END_TEST

START_TEST(no_driver_is_no_error_but_a_sentence)
{
    struct coll__cuda cuda;
    char why[512] = "", file[] = "/no such folder/libcuda.so.1";

    ck_assert_int_eq(coll__cuda_load(file, &cuda, why, sizeof(why)), -1);
    ck_assert_msg(strstr(why, "no CUDA driver: ") == why, "%s", why);
    ck_assert_msg(strstr(why, "install NVIDIA's") != NULL, "%s", why);
    ck_assert_str_eq(coll_last_error(), "");
}
END_TEST

START_TEST(a_library_that_cannot_be_asked_is_too_old)
{
    struct coll__cuda cuda;
    char why[512] = "";

    ck_assert_int_eq(coll__cuda_load("libm.so.6", &cuda, why, sizeof(why)), -1);
    ck_assert_str_eq(why, "the CUDA driver is older than 12.0; update it");
}
END_TEST

/* Whatever this machine has, it has it at the second call too. */
START_TEST(the_driver_of_this_machine_is_looked_for_once)
{
    char why[512] = "", again[512] = "";
    const struct coll__cuda *cuda = coll__cuda_driver(why, sizeof(why));

    ck_assert(coll__cuda_driver(again, sizeof(again)) == cuda);
    ck_assert_str_eq(why, again);
    ck_assert_int_eq(!cuda, why[0] != '\0');
    ck_assert(coll__cuda_driver(NULL, 0) == cuda);
}
END_TEST

/* In a child the driver does not work any more, nor may it be asked. */
START_TEST(a_child_has_no_driver_once_its_parent_started_it)
{
    char why[512] = "";
    int status;
    pid_t child;

    take_few();
    ck_assert(coll__cuda_driver(why, sizeof(why)));
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child)
        _exit(coll__cuda_driver(why, sizeof(why)) ||
              strcmp(why, "this process was forked from one that had started "
                          "CUDA; start it by exec() instead"));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(coll__cuda_driver(why, sizeof(why)));
}
END_TEST

/* ---- statuses ------------------------------------------------------------------ */

START_TEST(statuses_are_translated_with_the_call_that_failed)
{
    static const struct {
        CUresult rc;
        int status;
    } pairs[] = {
        {CUDA_ERROR_OUT_OF_MEMORY, COLL_ERR_NOMEM},
        {CUDA_ERROR_INVALID_VALUE, COLL_ERR_INVALID},
        {CUDA_ERROR_INVALID_HANDLE, COLL_ERR_INVALID},
        {CUDA_ERROR_NOT_SUPPORTED, COLL_ERR_UNSUPPORTED},
        {CUDA_ERROR_ILLEGAL_ADDRESS, COLL_ERR_SYSTEM},
    };

    ck_assert_int_eq(coll__cuda_status(CUDA_SUCCESS, "cuInit"), COLL_OK);
    ck_assert_int_eq(coll__cuda_status(CUDA_ERROR_NOT_READY, "cuEventQuery"),
                     COLL_IN_PROGRESS);
    ck_assert_str_eq(coll_last_error(), "");
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        ck_assert_int_eq(coll__cuda_status(pairs[i].rc, "cuMemcpyAsync"),
                         pairs[i].status);
        ck_assert_msg(!strncmp(coll_last_error(), "cuMemcpyAsync: ", 15), "%s",
                      coll_last_error());
    }
}
END_TEST

START_TEST(a_status_is_said_in_the_drivers_words)
{
    take_few();
    ck_assert_int_eq(
        coll__cuda_status(CUDA_ERROR_SYSTEM_NOT_READY, "cuMemAlloc"),
        COLL_ERR_SYSTEM);
    ck_assert_str_eq(coll_last_error(),
                     "cuMemAlloc: system not yet initialized "
                     "(CUDA_ERROR_SYSTEM_NOT_READY)");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda driver");
    TCase *driver = suite_case(suite, "driver", 20);

    tcase_add_loop_test(driver,
                        a_driver_that_does_not_work_is_none_and_says_why, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(driver, every_entry_of_a_driver_that_works_is_there);
    tcase_add_test(driver, no_driver_is_no_error_but_a_sentence);
    tcase_add_test(driver, a_library_that_cannot_be_asked_is_too_old);
    tcase_add_test(driver, the_driver_of_this_machine_is_looked_for_once);
    tcase_add_test(driver, a_child_has_no_driver_once_its_parent_started_it);
    tcase_add_test(driver, statuses_are_translated_with_the_call_that_failed);
    tcase_add_test(driver, a_status_is_said_in_the_drivers_words);
    return suite_run(suite);
}
