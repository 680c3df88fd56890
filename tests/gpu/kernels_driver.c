/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_driver.c - does each entry of the product's table do on a GPU what its
 * declaration says?  An entry of another version would take other arguments. */
#include "tests/gpu/kernels_driver.h"
#include "include/coll/coll.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN 4096

static const struct coll__cuda *cuda;

#define MUST(call)                                                             \
    do {                                                                       \
        CUresult rc = cuda->call;                                              \
                                                                               \
        if (rc) {                                                              \
            snprintf(why, len, "%s: status %d", #call, (int)rc);               \
            return -1;                                                         \
        }                                                                      \
    } while (0)

#define NEED(what)                                                             \
    do {                                                                       \
        if (!(what)) {                                                         \
            snprintf(why, len, "not so: %s", #what);                           \
            return -1;                                                         \
        }                                                                      \
    } while (0)

static int try_names(char *why, size_t len)
{
    const char *name = NULL, *words = NULL;
    char device_name[128] = "";
    CUdevice device = -1;
    int version = 0, n = 0, processors = 0;

    MUST(cuInit(0));
    MUST(cuDriverGetVersion(&version));
    NEED(version >= COLL__CUDA_VERSION);
    MUST(cuDeviceGetCount(&n));
    NEED(n >= 1);
    MUST(cuDeviceGet(&device, 0));
    NEED(device == 0);
    MUST(cuDeviceGetName(device_name, sizeof(device_name), device));
    NEED(*device_name);
    MUST(cuDeviceGetAttribute(
        &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    NEED(processors > 0);
    MUST(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &name));
    MUST(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &words));
    NEED(name && !strcmp(name, "CUDA_ERROR_INVALID_VALUE"));
    NEED(words && strstr(words, "invalid"));
    NEED(!coll__cuda_status(CUDA_SUCCESS, "nothing"));
    NEED(coll__cuda_status(CUDA_ERROR_INVALID_VALUE, "on purpose") ==
         COLL_ERR_INVALID);
    return 0;
}

/* Twice retained, pushed twice, popped and released once. */
static int try_context(char *why, size_t len)
{
    CUcontext one = NULL, two = NULL, popped = NULL;
    CUdevice device, current = -1;

    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&one, device));
    MUST(cuDevicePrimaryCtxRetain(&two, device));
    NEED(one && one == two);
    MUST(cuCtxPushCurrent(one));
    MUST(cuCtxPushCurrent(two));
    MUST(cuCtxPopCurrent(&popped));
    NEED(popped == one);
    MUST(cuCtxGetCurrent(&popped));
    NEED(popped == one);
    MUST(cuCtxGetDevice(&current));
    NEED(current == device);
    MUST(cuDevicePrimaryCtxRelease(device));
    MUST(cuCtxSynchronize());
    return 0;
}

static int try_copies(char *why, size_t len)
{
    unsigned char sent[LEN], came[LEN] = {0};
    CUevent began, ended;
    CUdeviceptr from = 0, to = 0;
    CUstream stream;
    float ms = -1;

    for (size_t i = 0; i < LEN; i++)
        sent[i] = (unsigned char)(i * 7 + (i >> 8));
    MUST(cuMemAlloc(&from, LEN));
    MUST(cuMemAlloc(&to, LEN));
    NEED(from && to && from != to);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&began, CU_EVENT_DEFAULT));
    MUST(cuEventCreate(&ended, CU_EVENT_DEFAULT));
    MUST(cuMemcpyHtoD(from, sent, LEN));
    MUST(cuCtxSynchronize()); /* it may come back before the bytes are there */
    MUST(cuEventRecord(began, stream));
    MUST(cuMemcpyDtoDAsync(to, from, LEN, stream));
    MUST(cuEventRecord(ended, stream));
    MUST(cuEventSynchronize(ended));
    MUST(cuStreamSynchronize(stream));
    MUST(cuEventElapsedTime(&ms, began, ended));
    NEED(ms > 0 && ms < 10000);
    MUST(cuMemcpyDtoH(came, to, LEN));
    NEED(!memcmp(sent, came, LEN));
    MUST(cuMemsetD32Async(to, 0x01010101, LEN / 4, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(came, to, LEN));
    NEED(came[0] == 1 && came[LEN - 1] == 1);
    MUST(cuEventDestroy(began));
    MUST(cuEventDestroy(ended));
    MUST(cuStreamDestroy(stream));
    MUST(cuMemFree(from));
    MUST(cuMemFree(to));
    return 0;
}

/* What is known of memory, and of a stream; no process opens its own handle. */
static int try_known(char *why, size_t len)
{
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    CUdeviceptr at = 0, base = 0, opened = 0;
    CUcontext current = NULL, of_stream = NULL;
    CUipcMemHandle handle;
    unsigned type = 0;
    void *value = &type;
    CUstream stream;
    CUevent event;
    size_t size = 0;

    MUST(cuMemAlloc(&at, LEN));
    MUST(cuMemGetAddressRange(&base, &size, at + LEN - 1));
    NEED(base == at && size == LEN);
    MUST(cuPointerGetAttributes(1, &name, &value, at));
    NEED(type == CU_MEMORYTYPE_DEVICE);
    MUST(cuIpcGetMemHandle(&handle, at));
    NEED(cuda->cuIpcOpenMemHandle(&opened, handle,
                                  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
         CUDA_ERROR_INVALID_CONTEXT);
    NEED(cuda->cuIpcCloseMemHandle(at) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuCtxGetCurrent(&current));
    MUST(cuStreamGetCtx(stream, &of_stream));
    NEED(of_stream == current);
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemsetD32Async(at, 0, LEN / 4, stream));
    MUST(cuMemcpyAsync(at, at + LEN / 2, LEN / 2, stream));
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuEventQuery(event));
    MUST(cuEventDestroy(event));
    MUST(cuStreamDestroy(stream));
    MUST(cuMemFree(at));
    return 0;
}

/* Words of the host that the stream waits for and writes. */
static int try_flags(char *why, size_t len)
{
    uint32_t *words = aligned_alloc(4096, 4096);
    CUdeviceptr at = 0;
    CUstream stream;

    NEED(words);
    words[0] = 1;
    words[1] = words[2] = 0;
    words[3] = 1;
    MUST(cuMemHostRegister(words, 4096, CU_MEMHOSTREGISTER_PORTABLE));
    MUST(cuMemHostGetDevicePointer(&at, words, 0));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamWaitValue32(stream, at, 1, CU_STREAM_WAIT_VALUE_GEQ));
    MUST(cuStreamWaitValue64(stream, at + 8, 1 | UINT64_C(1) << 32,
                             CU_STREAM_WAIT_VALUE_AND));
    MUST(cuStreamWriteValue32(stream, at + 4, 5, 0));
    MUST(cuStreamSynchronize(stream));
    NEED(words[1] == 5);
    MUST(cuStreamDestroy(stream));
    MUST(cuMemHostUnregister(words));
    free(words);
    return 0;
}

static int try_module(char *why, size_t len)
{
    static const char ptx[] = ".version 7.0\n.target sm_80\n"
                              ".address_size 64\n"
                              ".visible .entry nothing(.param .u64 at)\n"
                              "{ .reg .b64 %a; ld.param.u64 %a, [at];\n"
                              "st.global.u64 [%a], 77; ret; }\n";
    CUdeviceptr at = 0;
    CUmodule module;
    CUfunction fn;
    uint64_t came = 0;
    void *params[] = {&at};
    int threads = 0, blocks = 0;

    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&fn, module, "nothing"));
    MUST(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                            fn));
    NEED(threads >= 32);
    MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fn, 32, 0));
    NEED(blocks >= 1);
    MUST(cuMemAlloc(&at, sizeof(came)));
    MUST(cuLaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    MUST(cuMemcpyDtoH(&came, at, sizeof(came)));
    NEED(came == 77);
    MUST(cuMemFree(at));
    MUST(cuModuleUnload(module));
    return 0;
}

const struct coll__cuda *kernels_driver(char *why, size_t len)
{
    cuda = coll__cuda_driver(why, len);
    if (!cuda || try_names(why, len) || try_context(why, len) ||
        try_copies(why, len) || try_known(why, len) || try_flags(why, len) ||
        try_module(why, len))
        return NULL;
    return cuda;
}
