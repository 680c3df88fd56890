/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.h - the CUDA driver for programs, found at run time.
 *
 * Programs do not link to the driver, so that they also start where there is none.
 * Functions are called through a table, under their plain names:
 *     cu.cuMemAlloc(&ptr, len)
 * cuda.h of CUDA defines cuMemAlloc as cuMemAlloc_v2, in the table as in the call.
 */
#ifndef COLL_TOOLS_COMMON_CUDA_H
#define COLL_TOOLS_COMMON_CUDA_H

#include <cuda.h>
#include <stddef.h>

#define CUDA_ENTRIES(X)                                                        \
    X(cuInit)                                                                  \
    X(cuDriverGetVersion)                                                      \
    X(cuGetErrorString)                                                        \
    X(cuDeviceGetCount)                                                        \
    X(cuDeviceGet)                                                             \
    X(cuDeviceGetName)                                                         \
    X(cuDeviceGetAttribute)                                                    \
    X(cuDeviceTotalMem)                                                        \
    X(cuDevicePrimaryCtxRetain)                                                \
    X(cuDevicePrimaryCtxRelease)                                               \
    X(cuCtxSetCurrent)                                                         \
    X(cuCtxGetDevice)                                                          \
    X(cuMemAlloc)                                                              \
    X(cuMemFree)                                                               \
    X(cuMemAllocHost)                                                          \
    X(cuMemFreeHost)                                                           \
    X(cuMemcpyDtoH)                                                            \
    X(cuMemcpyAsync)                                                           \
    X(cuMemcpyDtoDAsync)                                                       \
    X(cuMemcpyDtoHAsync)                                                       \
    X(cuMemcpyHtoDAsync)                                                       \
    X(cuMemsetD8Async)                                                         \
    X(cuStreamCreate)                                                          \
    X(cuStreamDestroy)                                                         \
    X(cuStreamSynchronize)                                                     \
    X(cuStreamWaitEvent)                                                       \
    X(cuStreamBeginCapture)                                                    \
    X(cuStreamEndCapture)                                                      \
    X(cuEventCreate)                                                           \
    X(cuEventDestroy)                                                          \
    X(cuEventRecord)                                                           \
    X(cuEventRecordWithFlags)                                                  \
    X(cuEventSynchronize)                                                      \
    X(cuEventElapsedTime)                                                      \
    X(cuGraphInstantiateWithFlags)                                             \
    X(cuGraphDestroy)                                                          \
    X(cuGraphExecDestroy)                                                      \
    X(cuGraphLaunch)                                                           \
    X(cuModuleLoadData)                                                        \
    X(cuModuleUnload)                                                          \
    X(cuModuleGetFunction)                                                     \
    X(cuLaunchKernel)

struct cuda_entries {
#define X(name) __typeof__(name) *name;
    CUDA_ENTRIES(X)
#undef X
};

/* Find the driver (libcuda.so.1, of CUDA 12.0 or later) and start it.
 *
 * Result:    0 and *cu; or -1 and why[len], a sentence with the remedy, to which
 *            the caller can add another one.
 * Threads:   one at a time.
 * Cost:      the driver is loaded, and never unloaded, since its threads keep
 *            running.
 */
int cuda_find(struct cuda_entries *cu, char *why, size_t len);

/* Return the number of GPUs; or -1 and why[len], if there is none too. */
int cuda_count(const struct cuda_entries *cu, char *why, size_t len);

/* Translate the driver's answer to a call: 0 if it succeeded, else -1 and why[len]. */
int cuda_judge(const struct cuda_entries *cu, CUresult rc, const char *call,
               char *why, size_t len);

/* Return the address of device memory as the driver has it. */
static inline CUdeviceptr cuda_address(const void *at)
{
    return (CUdeviceptr)(size_t)at;
}

#endif
