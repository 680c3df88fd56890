/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - the CUDA driver, opened at run time. */
#include "bindings/nccl/driver.h"
#include "bindings/nccl/result.h"

#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>

#define DRIVER_VERSION 12000 /* the forms of these functions */

/* X(name): each line is a function of the driver. */
#define ENTRIES(X)                                                             \
    X(cuInit)                                                                  \
    X(cuDeviceGetCount)                                                        \
    X(cuDevicePrimaryCtxRetain)                                                \
    X(cuCtxGetCurrent)                                                         \
    X(cuCtxSetCurrent)                                                         \
    X(cuCtxPushCurrent)                                                        \
    X(cuCtxPopCurrent)

static struct {
#define MEMBER(name) __typeof__(&name) name;
    ENTRIES(MEMBER)
#undef MEMBER
    CUresult (*cuCtxGetDevice)(CUdevice *device);
    const char *missing; /* why it cannot be used, or NULL */
} driver;

static __typeof__(&cuGetProcAddress) ask;

/* Look a function up; NULL if the driver has none. */
static void *find(const char *name)
{
    CUdriverProcAddressQueryResult status;
    void *entry = NULL;

    if (ask(name, &entry, DRIVER_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &status))
        return NULL;
    return entry;
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    driver.missing = "there is no CUDA driver (libcuda.so.1)";
    if (!library)
        return;
    driver.missing = "the CUDA driver is older than 12.0; update it";
    ask = (__typeof__(ask))dlsym(library, "cuGetProcAddress_v2");
    if (!ask)
        return;
#define FIND(name)                                                             \
    driver.name = (__typeof__(driver.name))find(#name);                        \
    if (!driver.name)                                                          \
        return;
    ENTRIES(FIND)
#undef FIND
    driver.cuCtxGetDevice =
        (__typeof__(driver.cuCtxGetDevice))find("cuCtxGetDevice");
    if (!driver.cuCtxGetDevice)
        return;
    driver.missing = driver.cuInit(0) ? "the CUDA driver did not start" : NULL;
}

static ncclResult_t have_driver(const char *who)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_driver);
    if (!driver.missing)
        return ncclSuccess;
    return nccl__wrong(ncclUnhandledCudaError, "%s: %s", who, driver.missing);
}

static ncclResult_t failed(const char *who, const char *call, CUresult rc)
{
    return nccl__wrong(ncclUnhandledCudaError, "%s: %s failed with code %d",
                       who, call, (int)rc);
}

ncclResult_t nccl__driver_here(const char *who, void **context, int *device)
{
    ncclResult_t result = have_driver(who);
    CUcontext ctx = NULL;
    CUdevice number;
    CUresult rc;

    if (result)
        return result;
    rc = driver.cuCtxGetCurrent(&ctx);
    if (rc)
        return failed(who, "cuCtxGetCurrent", rc);
    if (!ctx) {
        rc = driver.cuDevicePrimaryCtxRetain(&ctx, 0);
        if (!rc)
            rc = driver.cuCtxSetCurrent(ctx);
        if (rc)
            return failed(who, "cuDevicePrimaryCtxRetain", rc);
    }
    rc = driver.cuCtxGetDevice(&number);
    if (rc)
        return failed(who, "cuCtxGetDevice", rc);
    *context = ctx;
    *device = number;
    return ncclSuccess;
}

ncclResult_t nccl__driver_count(const char *who, int *n)
{
    ncclResult_t result = have_driver(who);
    CUresult rc;

    if (result)
        return result;
    rc = driver.cuDeviceGetCount(n);
    return rc ? failed(who, "cuDeviceGetCount", rc) : ncclSuccess;
}

ncclResult_t nccl__driver_primary(const char *who, int device, void **context)
{
    ncclResult_t result = have_driver(who);
    CUcontext ctx;
    CUresult rc;

    if (result)
        return result;
    rc = driver.cuDevicePrimaryCtxRetain(&ctx, device);
    if (rc)
        return failed(who, "cuDevicePrimaryCtxRetain", rc);
    *context = ctx;
    return ncclSuccess;
}

ncclResult_t nccl__driver_push(void *context)
{
    CUresult rc = context ? driver.cuCtxPushCurrent(context) : CUDA_SUCCESS;

    return rc ? failed("libnccl", "cuCtxPushCurrent", rc) : ncclSuccess;
}

void nccl__driver_pop(void *context)
{
    CUcontext ctx;

    if (context)
        driver.cuCtxPopCurrent(&ctx);
}
