/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_driver.h - the CUDA driver, found at run time.
 *
 * The library does not link to the driver, so it also runs without one, and then has no
 * CUDA.  Functions are called through the table, under their plain names:
 *     const struct coll__cuda *cuda = coll__cuda_driver(why, sizeof(why));
 *     rc = cuda->cuMemAlloc(&ptr, len);
 * cuda.h defines cuMemAlloc as cuMemAlloc_v2, in the table as in the call, so the entry
 * is the function whose declaration the compiler sees.
 */
#ifndef COLL_LIB_DEVICE_CUDA_DRIVER_H
#define COLL_LIB_DEVICE_CUDA_DRIVER_H

#include <cuda.h>
#include <stddef.h>

/* The version of the entries that are looked up: older drivers lack it, newer ones keep
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
    X(cuStreamWaitValue64)                                                     \
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

/* Find the driver and start it, once in a process's life.
 *
 * Result:    its entries, valid as long as the process lives; NULL if there is no
 *            CUDA, and in a child that was forked after the driver was started.
 * Errors:    none logged, since having no CUDA is no error; but why[len] gets a
 *            sentence with the remedy.  why may be NULL, with len 0.
 * Threads:   any.
 * Cost:      after the first call a few loads.
 */
const struct coll__cuda *coll__cuda_driver(char *why, size_t len);

/* As coll__cuda_driver(), for callers that need the driver: NULL is logged with the
 * remedy. */
const struct coll__cuda *coll__cuda_needed(void);

/* Load the entries from this file and start the driver.  Returns 0, or -1 and why. */
int coll__cuda_load(const char *file, struct coll__cuda *out, char *why,
                    size_t len);

/* Translate the result of a call of the driver.
 *
 * Result:    COLL_OK; COLL_IN_PROGRESS for CUDA_ERROR_NOT_READY.
 * Errors:    logged with the driver's text: COLL_ERR_NOMEM, COLL_ERR_INVALID
 *            (the caller's arguments are wrong), COLL_ERR_UNSUPPORTED,
 *            COLL_ERR_SYSTEM (all others).
 * Threads:   any.
 */
int coll__cuda_status(CUresult rc, const char *call);

/* As coll__cuda_status(), but write the error to why[len] instead of logging it. */
int coll__cuda_verdict(CUresult rc, const char *call, char *why, size_t len);

#endif
