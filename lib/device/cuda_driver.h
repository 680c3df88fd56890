/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_driver.h - the CUDA driver, found at run time.
 *
 * Nothing is linked: a process without NVIDIA's driver runs as well, it only has
 * no CUDA.  Functions are called through the table, under their plain names:
 *     const struct coll__cuda *cuda = coll__cuda_driver(why, sizeof(why));
 *     rc = cuda->cuMemAlloc(&ptr, len);
 * cuda.h makes cuMemAlloc cuMemAlloc_v2, here as there, so that the entry is the
 * one whose declaration the compiler sees.
 */
#ifndef COLL_LIB_DEVICE_CUDA_DRIVER_H
#define COLL_LIB_DEVICE_CUDA_DRIVER_H

#include <cuda.h>
#include <stddef.h>

/* Asked for as they are in this version: older drivers lack it, newer ones keep
 * it. */
#define COLL__CUDA_VERSION 12000

#define COLL__CUDA_DRIVER_MAP(X)                                               \
    X(cuInit)                                                                  \
    X(cuDriverGetVersion)                                                      \
    X(cuGetErrorName)                                                          \
    X(cuGetErrorString)                                                        \
    X(cuDeviceGetCount)                                                        \
    X(cuDeviceGet)                                                             \
    X(cuDeviceGetName)                                                         \
    X(cuDeviceGetAttribute)                                                    \
    X(cuDeviceGetUuid)                                                         \
    X(cuDeviceCanAccessPeer)                                                   \
    X(cuDeviceGetP2PAttribute)                                                 \
    X(cuDevicePrimaryCtxRetain)                                                \
    X(cuDevicePrimaryCtxRelease)                                               \
    X(cuCtxGetDevice)                                                          \
    X(cuCtxGetCurrent)                                                         \
    X(cuCtxPushCurrent)                                                        \
    X(cuCtxPopCurrent)                                                         \
    X(cuCtxEnablePeerAccess)                                                   \
    X(cuCtxSynchronize)                                                        \
    X(cuModuleLoadData)                                                        \
    X(cuModuleUnload)                                                          \
    X(cuModuleGetFunction)                                                     \
    X(cuFuncGetAttribute)                                                      \
    X(cuLaunchKernel)                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                             \
    X(cuMemAlloc)                                                              \
    X(cuMemFree)                                                               \
    X(cuMemHostRegister)                                                       \
    X(cuMemHostUnregister)                                                     \
    X(cuMemHostGetDevicePointer)                                               \
    X(cuMemGetAddressRange)                                                    \
    X(cuMemcpyAsync)                                                           \
    X(cuMemcpyHtoD)                                                            \
    X(cuMemcpyDtoH)                                                            \
    X(cuMemcpyDtoDAsync)                                                       \
    X(cuMemsetD32Async)                                                        \
    X(cuPointerGetAttributes)                                                  \
    X(cuIpcGetMemHandle)                                                       \
    X(cuIpcOpenMemHandle)                                                      \
    X(cuIpcCloseMemHandle)                                                     \
    X(cuGraphRetainUserObject)                                                 \
    X(cuUserObjectCreate)                                                      \
    X(cuUserObjectRelease)                                                     \
    X(cuStreamCreate)                                                          \
    X(cuStreamDestroy)                                                         \
    X(cuStreamBatchMemOp)                                                      \
    X(cuStreamWaitValue32)                                                     \
    X(cuStreamWriteValue32)                                                    \
    X(cuStreamGetCtx)                                                          \
    X(cuStreamIsCapturing)                                                     \
    X(cuStreamSynchronize)                                                     \
    X(cuThreadExchangeStreamCaptureMode)                                       \
    X(cuEventCreate)                                                           \
    X(cuEventDestroy)                                                          \
    X(cuEventQuery)                                                            \
    X(cuEventRecord)                                                           \
    X(cuEventSynchronize)                                                      \
    X(cuEventElapsedTime)

/* The form of 12.0; cuda.h may declare a newer one under that name. */
typedef CUresult coll__capture_info_fn(CUstream stream,
                                       CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph,
                                       const CUgraphNode **nodes, size_t *n);

struct coll__cuda {
#define X(name) __typeof__(name) *name;
    COLL__CUDA_DRIVER_MAP(X)
#undef X
    coll__capture_info_fn *cuStreamGetCaptureInfo;
};

/* Find the driver and start it: once in a process's life.
 *
 * Result:    its entries, for as long as the process lives; NULL where there is
 *            no CUDA, and in a child that was forked after it was started.
 * Errors:    none logged: to have no CUDA is not one.  why, of len bytes, then
 *            gets one sentence with the remedy; may be NULL, with len 0.
 * Threads:   any.
 * Cost:      after the first call a few loads.
 */
const struct coll__cuda *coll__cuda_driver(char *why, size_t len);

/* The same for whoever cannot do without: NULL is logged with the remedy. */
const struct coll__cuda *coll__cuda_needed(void);

/* Load the entries from this file and start the driver: 0, or -1 and why. */
int coll__cuda_load(const char *file, struct coll__cuda *out, char *why,
                    size_t len);

/* Translate what a call of the driver returned.
 *
 * Result:    COLL_OK; COLL_IN_PROGRESS for CUDA_ERROR_NOT_READY.
 * Errors:    logged with the driver's text: COLL_ERR_NOMEM, COLL_ERR_INVALID
 *            (what the caller gave is wrong), COLL_ERR_UNSUPPORTED,
 *            COLL_ERR_SYSTEM (all others).
 * Threads:   any.
 */
int coll__cuda_status(CUresult rc, const char *call);

/* The same, but nothing is logged: the sentence goes to why[len]. */
int coll__cuda_verdict(CUresult rc, const char *call, char *why, size_t len);

#endif
