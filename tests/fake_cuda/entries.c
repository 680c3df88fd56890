/* SPDX-License-Identifier: BSD-3-Clause */
/* entries.c - which entries there are, since which version: DA, "Driver Entry Point
 * Access"; the versions are those of cudaTypedefs.h. */
#include "tests/fake_cuda/fake.h"

#include <string.h>

/* Where cuda.h makes a name another one (cuMemAlloc_v2), that is the entry. */
#define ENTRIES(X)                                                             \
    X(cuCtxCreate, 12050)                                                      \
    X(cuCtxDestroy, 4000)                                                      \
    X(cuCtxDisablePeerAccess, 4000)                                            \
    X(cuCtxEnablePeerAccess, 4000)                                             \
    X(cuCtxGetCurrent, 4000)                                                   \
    X(cuCtxGetDevice, 2000)                                                    \
    X(cuCtxGetId, 12000)                                                       \
    X(cuCtxPopCurrent, 4000)                                                   \
    X(cuCtxPushCurrent, 4000)                                                  \
    X(cuCtxSetCurrent, 4000)                                                   \
    X(cuCtxSynchronize, 2000)                                                  \
    X(cuDeviceCanAccessPeer, 4000)                                             \
    X(cuDeviceGet, 2000)                                                       \
    X(cuDeviceGetAttribute, 2000)                                              \
    X(cuDeviceGetCount, 2000)                                                  \
    X(cuDeviceGetDefaultMemPool, 11020)                                        \
    X(cuDeviceGetName, 2000)                                                   \
    X(cuDeviceGetP2PAttribute, 8000)                                           \
    X(cuDeviceGetPCIBusId, 4010)                                               \
    X(cuDeviceGetUuid, 11040)                                                  \
    X(cuDevicePrimaryCtxGetState, 7000)                                        \
    X(cuDevicePrimaryCtxRelease, 11000)                                        \
    X(cuDevicePrimaryCtxReset, 11000)                                          \
    X(cuDevicePrimaryCtxRetain, 7000)                                          \
    X(cuDeviceTotalMem, 3020)                                                  \
    X(cuDriverGetVersion, 2020)                                                \
    X(cuEventCreate, 2000)                                                     \
    X(cuEventDestroy, 4000)                                                    \
    X(cuEventElapsedTime, 2000)                                                \
    X(cuEventQuery, 2000)                                                      \
    X(cuEventRecord, 2000)                                                     \
    X(cuEventRecordWithFlags, 11010)                                           \
    X(cuEventSynchronize, 2000)                                                \
    X(cuFuncGetAttribute, 2020)                                                \
    X(cuFuncSetAttribute, 9000)                                                \
    X(cuGetErrorName, 6000)                                                    \
    X(cuGetErrorString, 6000)                                                  \
    X(cuGetProcAddress, 12000)                                                 \
    X(cuGraphBatchMemOpNodeGetParams, 11070)                                   \
    X(cuGraphDestroy, 10000)                                                   \
    X(cuGraphExecBatchMemOpNodeSetParams, 11070)                               \
    X(cuGraphExecDestroy, 10000)                                               \
    X(cuGraphExecUpdate, 12000)                                                \
    X(cuGraphGetNodes, 10000)                                                  \
    X(cuGraphInstantiateWithFlags, 11040)                                      \
    X(cuGraphLaunch, 10000)                                                    \
    X(cuGraphNodeGetType, 10000)                                               \
    X(cuGraphRetainUserObject, 11030)                                          \
    X(cuGraphUpload, 11010)                                                    \
    X(cuInit, 2000)                                                            \
    X(cuIpcCloseMemHandle, 4010)                                               \
    X(cuIpcGetEventHandle, 4010)                                               \
    X(cuIpcGetMemHandle, 4010)                                                 \
    X(cuIpcOpenEventHandle, 4010)                                              \
    X(cuIpcOpenMemHandle, 11000)                                               \
    X(cuKernelGetFunction, 12000)                                              \
    X(cuLaunchCooperativeKernel, 9000)                                         \
    X(cuLaunchHostFunc, 10000)                                                 \
    X(cuLaunchKernel, 4000)                                                    \
    X(cuLibraryGetKernel, 12000)                                               \
    X(cuLibraryLoadData, 12000)                                                \
    X(cuLibraryUnload, 12000)                                                  \
    X(cuMemAddressFree, 10020)                                                 \
    X(cuMemAddressReserve, 10020)                                              \
    X(cuMemAlloc, 3020)                                                        \
    X(cuMemAllocAsync, 11020)                                                  \
    X(cuMemAllocFromPoolAsync, 11020)                                          \
    X(cuMemAllocHost, 3020)                                                    \
    X(cuMemAllocManaged, 6000)                                                 \
    X(cuMemCreate, 10020)                                                      \
    X(cuMemExportToShareableHandle, 10020)                                     \
    X(cuMemFree, 3020)                                                         \
    X(cuMemFreeAsync, 11020)                                                   \
    X(cuMemFreeHost, 2000)                                                     \
    X(cuMemGetAddressRange, 3020)                                              \
    X(cuMemGetAllocationGranularity, 10020)                                    \
    X(cuMemGetAllocationPropertiesFromHandle, 10020)                           \
    X(cuMemGetInfo, 3020)                                                      \
    X(cuMemHostAlloc, 2020)                                                    \
    X(cuMemHostGetDevicePointer, 3020)                                         \
    X(cuMemHostGetFlags, 2030)                                                 \
    X(cuMemHostRegister, 6050)                                                 \
    X(cuMemHostUnregister, 4000)                                               \
    X(cuMemImportFromShareableHandle, 10020)                                   \
    X(cuMemMap, 10020)                                                         \
    X(cuMemPoolCreate, 11020)                                                  \
    X(cuMemPoolDestroy, 11020)                                                 \
    X(cuMemPoolExportPointer, 11020)                                           \
    X(cuMemPoolExportToShareableHandle, 11020)                                 \
    X(cuMemPoolGetAttribute, 11020)                                            \
    X(cuMemPoolImportFromShareableHandle, 11020)                               \
    X(cuMemPoolImportPointer, 11020)                                           \
    X(cuMemPoolSetAccess, 11020)                                               \
    X(cuMemRangeGetAttribute, 8000)                                            \
    X(cuMemRelease, 10020)                                                     \
    X(cuMemRetainAllocationHandle, 11000)                                      \
    X(cuMemSetAccess, 10020)                                                   \
    X(cuMemUnmap, 10020)                                                       \
    X(cuMemcpy, 4000)                                                          \
    X(cuMemcpyAsync, 4000)                                                     \
    X(cuMemcpyDtoD, 3020)                                                      \
    X(cuMemcpyDtoDAsync, 3020)                                                 \
    X(cuMemcpyDtoH, 3020)                                                      \
    X(cuMemcpyDtoHAsync, 3020)                                                 \
    X(cuMemcpyHtoD, 3020)                                                      \
    X(cuMemcpyHtoDAsync, 3020)                                                 \
    X(cuMemcpyPeerAsync, 4000)                                                 \
    X(cuMemsetD32, 3020)                                                       \
    X(cuMemsetD32Async, 3020)                                                  \
    X(cuMemsetD8, 3020)                                                        \
    X(cuMemsetD8Async, 3020)                                                   \
    X(cuModuleGetFunction, 2000)                                               \
    X(cuModuleLoadData, 2000)                                                  \
    X(cuModuleUnload, 2000)                                                    \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050)                       \
    X(cuPointerGetAttribute, 4000)                                             \
    X(cuPointerGetAttributes, 7000)                                            \
    X(cuPointerSetAttribute, 6000)                                             \
    X(cuStreamAddCallback, 5000)                                               \
    X(cuStreamBatchMemOp, 11070)                                               \
    X(cuStreamBeginCapture, 10010)                                             \
    X(cuStreamCreate, 2000)                                                    \
    X(cuStreamCreateWithPriority, 5050)                                        \
    X(cuStreamDestroy, 4000)                                                   \
    X(cuStreamEndCapture, 10000)                                               \
    X(cuStreamGetCaptureInfo, 12030)                                           \
    X(cuStreamGetCtx, 9020)                                                    \
    X(cuStreamGetDevice, 12080)                                                \
    X(cuStreamGetFlags, 5050)                                                  \
    X(cuStreamGetId, 12000)                                                    \
    X(cuStreamIsCapturing, 10000)                                              \
    X(cuStreamQuery, 2000)                                                     \
    X(cuStreamSynchronize, 2000)                                               \
    X(cuStreamWaitEvent, 3020)                                                 \
    X(cuStreamWaitValue32, 11070)                                              \
    X(cuStreamWaitValue64, 11070)                                              \
    X(cuStreamWriteValue32, 11070)                                             \
    X(cuStreamWriteValue64, 11070)                                             \
    X(cuThreadExchangeStreamCaptureMode, 10010)                                \
    X(cuUserObjectCreate, 11030)                                               \
    X(cuUserObjectRelease, 11030)

/* Older forms that take the same name: of stream memory operations, and of what
 * takes a context since 13.0. */
#define OLD(X)                                                                 \
    X(cuStreamWaitValue32, 8000)                                               \
    X(cuStreamWaitValue64, 9000)                                               \
    X(cuStreamWriteValue32, 8000)                                              \
    X(cuStreamWriteValue64, 9000)                                              \
    X(cuStreamBatchMemOp, 8000)

#define X(name, version) extern void old_##name(void) __asm__(#name);
OLD(X)
#undef X
extern void info_v2(void) __asm__("cuStreamGetCaptureInfo_v2");

/* clang-format off */
static const struct {
    const char *name;
    int version;
    void *entry;
} entries[] = {
#define X(name, version) {#name, version, (void *)name},
    ENTRIES(X)
#undef X
#define X(name, version) {#name, version, (void *)old_##name},
    OLD(X)
#undef X
    {"cuStreamGetCaptureInfo", 11030, (void *)info_v2},
    {"cuCtxGetDevice", 13000, (void *)cuCtxGetDevice_v2},
    {"cuCtxSynchronize", 13000, (void *)cuCtxSynchronize_v2},
};
/* clang-format on */

/* The newest form up to that version; *is_known: there is a newer one. */
static void *find(const char *name, int version, int *is_known)
{
    void *entry = NULL;
    int newest = 0;

    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
        if (strcmp(entries[i].name, name))
            continue;
        *is_known = 1;
        if (entries[i].version <= version && entries[i].version > newest) {
            newest = entries[i].version;
            entry = entries[i].entry;
        }
    }
    return entry;
}

/* DA cuGetProcAddress: a version beyond the driver's is INVALID_VALUE; what is not
 * there is NULL and a reason, no error.  The per-thread forms are not there. */
CUresult cuGetProcAddress(const char *name, void **entry, int version,
                          cuuint64_t flags,
                          CUdriverProcAddressQueryResult *result)
{
    int own = 0, is_known = 0;

    cuDriverGetVersion(&own);
    if (!name || !entry || version > own ||
        flags & ~(cuuint64_t)CU_GET_PROC_ADDRESS_LEGACY_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    *entry = find(name, version, &is_known);
    if (result)
        *result = *entry     ? CU_GET_PROC_ADDRESS_SUCCESS
                  : is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                             : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}
