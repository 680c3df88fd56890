/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.h - the CUDA driver, opened at run time, for the programs of tests/gpu.
 *
 * cuda.h is needed to compile, and nothing to link: libcuda.so.1 is opened by name
 * and each entry is asked of cuGetProcAddress.  So the programs start on a machine
 * without a driver, and can say why they do nothing there.
 */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <cuda.h>
#include <getopt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* X(name without "cu"): pasting the two makes cuda.h's macro choose the form, and
 * asking for the plain name at CUDA_VERSION gives the same one. */
/* clang-format off */
#define GPU_ENTRIES(X)                                                        \
    X(Init) X(DriverGetVersion) X(GetErrorName) X(DeviceGet)                  \
    X(DeviceGetCount) X(DeviceGetName) X(DeviceGetAttribute)                  \
    X(DeviceGetUuid) X(DeviceCanAccessPeer) X(DeviceGetP2PAttribute)          \
    X(CtxEnablePeerAccess) X(DevicePrimaryCtxRetain)                          \
    X(DevicePrimaryCtxRelease) X(DevicePrimaryCtxReset)                       \
    X(DevicePrimaryCtxGetState) X(CtxCreate) X(CtxDestroy) X(CtxGetCurrent)   \
    X(CtxSetCurrent) X(CtxPushCurrent) X(CtxPopCurrent)                       \
    X(PointerGetAttribute) X(PointerGetAttributes)                            \
    X(PointerSetAttribute) X(MemAlloc) X(MemFree) X(MemGetInfo)               \
    X(MemGetAddressRange) X(MemAllocManaged) X(MemHostAlloc) X(MemFreeHost)   \
    X(MemHostRegister) X(MemHostUnregister) X(MemHostGetDevicePointer)        \
    X(MemcpyAsync) X(MemcpyHtoD) X(MemcpyDtoH) X(MemcpyDtoD)                  \
    X(MemcpyHtoDAsync) X(MemcpyDtoHAsync) X(MemcpyDtoDAsync) X(MemsetD8)      \
    X(MemsetD8Async) X(MemsetD32Async) X(StreamCreate) X(StreamDestroy)       \
    X(StreamQuery) X(StreamSynchronize) X(StreamWaitEvent)                    \
    X(StreamAddCallback) X(LaunchHostFunc) X(EventCreate) X(EventDestroy)     \
    X(EventRecord) X(EventRecordWithFlags) X(EventQuery)                      \
    X(EventSynchronize) X(EventElapsedTime)                                   \
    X(StreamWaitValue32) X(StreamWriteValue32) X(StreamWaitValue64)           \
    X(StreamWriteValue64) X(StreamBatchMemOp) X(IpcGetMemHandle)              \
    X(IpcOpenMemHandle) X(IpcCloseMemHandle) X(IpcGetEventHandle)             \
    X(IpcOpenEventHandle) X(MemCreate) X(MemRelease) X(MemMap) X(MemUnmap)    \
    X(MemAddressReserve) X(MemAddressFree) X(MemSetAccess)                    \
    X(MemExportToShareableHandle) X(MemImportFromShareableHandle)             \
    X(MemGetAllocationGranularity) X(ModuleLoadData) X(ModuleUnload)          \
    X(ModuleGetFunction) X(FuncGetAttribute) X(LaunchKernel)                  \
    X(LaunchCooperativeKernel)                                                \
    X(OccupancyMaxActiveBlocksPerMultiprocessor) X(StreamBeginCapture)        \
    X(StreamEndCapture) X(StreamIsCapturing) X(StreamGetCaptureInfo)          \
    X(ThreadExchangeStreamCaptureMode) X(GraphInstantiateWithFlags)           \
    X(GraphLaunch) X(GraphUpload) X(GraphDestroy) X(GraphExecDestroy)         \
    X(GraphExecUpdate) X(GraphGetNodes) X(GraphNodeGetType)                   \
    X(GraphBatchMemOpNodeGetParams) X(GraphExecBatchMemOpNodeSetParams)       \
    X(UserObjectCreate) X(GraphRetainUserObject) X(MemAllocAsync)             \
    X(MemFreeAsync) X(DeviceGetDefaultMemPool) X(MemPoolGetAttribute)         \
    X(MemPoolCreate) X(MemAllocFromPoolAsync)                                 \
    X(MemPoolExportToShareableHandle) X(MemPoolImportFromShareableHandle)     \
    X(MemPoolExportPointer) X(MemPoolImportPointer) X(MemPoolSetAccess)
/* clang-format on */

/* Asked for at CUDA 12.0: 13.0 gives these names a context to take, which its cuda.h
 * declares under other names alone. */
#define GPU_OLD_ENTRIES(X) X(CtxGetDevice) X(CtxSynchronize)

struct gpu_entries {
#define GPU_MEMBER(name) __typeof__(&cu##name) name;
    GPU_ENTRIES(GPU_MEMBER)
    GPU_OLD_ENTRIES(GPU_MEMBER)
#undef GPU_MEMBER
    __typeof__(&cuGetProcAddress) GetProcAddress;
};
extern struct gpu_entries cu;

/* Open the driver and find every entry; no call to cuInit.  NULL, or why not. */
const char *gpu_open(void);

/* The plain dlsym() of the opened library: for what has an older version too. */
void *gpu_symbol(const char *name);

/* "700 ILLEGAL_ADDRESS"; the text is of static storage, a few calls long. */
const char *gpu_code(CUresult rc);

/* cuInit, and device 0's primary context current to this thread.  The first failure
 * is returned. */
CUresult gpu_start(CUcontext *ctx);

/* The kernels of gpu_ptx.c, by name, in the current context.  NULL when the driver
 * does not compile them. */
CUfunction gpu_kernel(const char *name);
extern const char gpu_ptx[];

/* End the process with what failed, unless it is CUDA_SUCCESS. */
void gpu_must(CUresult rc, const char *call);

/* Device 0; why is empty, or says what is missing. */
struct gpu_found {
    char name[100], why[200];
    int cuda; /* 1000 major + 10 minor, of the driver */
};

/* Open the driver, call cuInit and look at device 0. */
void gpu_look(struct gpu_found *found);

/* The same by another process, this program again with "--probe", whose main calls
 * gpu_probe_main: who starts ranks must not call the driver. */
void gpu_probe(struct gpu_found *found);
int gpu_probe_main(void);

/* A string in quotes; the head of a report, up to the comma behind its last value. */
void gpu_put_json(FILE *f, const char *text);
void gpu_put_head(FILE *f, const char *program, const struct gpu_found *found);

/* What programs that try one thing after another are told. */
struct gpu_options {
    const char *program, *usage;
    int is_list, seconds, within; /* -l, -t, --within */
    const char *json;             /* --json */
    char **names;                 /* the words behind the options */
    int n_names;
    double until; /* gpu_now() */
    /* The program's own options, and what takes them: as getopt_long(). */
    const char *own_letters;
    const struct option *own;
    void (*take)(struct gpu_options *o, int c, const char *value);
};

/* Take the arguments: the status to exit with, or -1 to go on. */
int gpu_parse(int argc, char **argv, struct gpu_options *o);

/* Say what is wrong; the status to exit with. */
int gpu_wrong(const struct gpu_options *o, const char *what, const char *word);

/* Is name, or other (or NULL), among the words, or are there none? */
int gpu_is_chosen(const struct gpu_options *o, const char *name,
                  const char *other);

/* Start a kernel; args as cuLaunchKernel takes them. */
CUresult gpu_launch(CUfunction f, unsigned blocks, unsigned threads, CUstream s,
                    void **args);

/* Seconds of the monotonic clock. */
double gpu_now(void);

/* Exchange bytes, and one file descriptor, over a socket; 0, or -1 when the other end
 * has gone. */
int gpu_tell(int fd, const void *at, size_t len);
int gpu_hear(int fd, void *at, size_t len);
int gpu_tell_fd(int fd, int passed);
int gpu_hear_fd(int fd);

#endif
