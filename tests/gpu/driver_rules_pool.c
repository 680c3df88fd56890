/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_pool.c - memory in stream order, and pools shared by descriptor. */
#include "tests/gpu/driver_rules.h"

#include <stdlib.h>
#include <unistd.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static unsigned long long id_of(CUdeviceptr at)
{
    unsigned long long id = 0;

    cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
    return id;
}

static void attributes(void)
{
    unsigned type = 0, is_ipc = 77;
    unsigned long long handles = 77;
    CUcontext ctx = (CUcontext)1;
    CUmemoryPool pool = NULL, usual;
    CUdeviceptr at, base;
    CUstream s;
    size_t size;

    start();
    s = new_stream();
    MUST(cu.DeviceGetDefaultMemPool(&usual, 0));
    GOOD(cu.MemAllocAsync(&at, 1000, s));
    GOOD(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    want_number("type, before the stream has come there", 2, type);
    GOOD(
        cu.PointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at));
    want_true("its pool is the device's", pool == usual);
    GOOD(cu.PointerGetAttribute(
        &is_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at));
    want_number("ipc capable", 0, is_ipc);
    GOOD(cu.PointerGetAttribute(&handles,
                                CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
    want_number("handle types", 0, (long long)handles);
    seen("CONTEXT", "%s",
         gpu_code(
             cu.PointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, at)));
    want_true("the context is NULL", ctx == NULL);
    GOOD(cu.MemGetAddressRange(&base, &size, at));
    want_true("address range", base == at && size == 1000);
    GOOD(cu.StreamSynchronize(s));
    GOOD(cu.MemFree(at));
    WANT(INVALID_VALUE, cu.MemFreeAsync(at, s));
}

static void reuse(void)
{
    unsigned long long first, second;
    CUdeviceptr a, b;
    CUstream s;

    start();
    s = new_stream();
    MUST(cu.MemAllocAsync(&a, 1 << 20, s));
    first = id_of(a);
    GOOD(cu.MemFreeAsync(a, s));
    MUST(cu.MemAllocAsync(&b, 1 << 20, s));
    second = id_of(b);
    want_true("freed and allocated in one stream: the same address", a == b);
    want_true("with another buffer id", first != second);
}

static void behind_wait(void)
{
    struct gate gate;
    CUdeviceptr at;
    CUstream s;
    unsigned type = 0;
    double began;

    start();
    s = new_stream();
    MUST(cu.MemAllocAsync(&at, 1 << 20, s));
    MUST(cu.StreamSynchronize(s));
    gate = gate_shut(s);
    began = gpu_now();
    GOOD(cu.MemFreeAsync(at, s));
    want_true("freeing behind a wait returns at once", gpu_now() - began < 0.2);
    seen("type of it then", "%s",
         gpu_code(cu.PointerGetAttribute(
             &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at)));
    gate_open(&gate);
    GOOD(cu.StreamSynchronize(s));
}

static CUmemoryPool new_pool(CUmemAllocationHandleType types)
{
    CUmemPoolProps props = {0};
    CUmemoryPool pool = NULL;

    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.handleTypes = types;
    props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    must("cuMemPoolCreate", cu.MemPoolCreate(&pool, &props));
    return pool;
}

static void refused(void)
{
    CUmemPoolPtrExportData data;
    CUmemoryPool usual;
    CUdeviceptr at;
    CUstream s;
    int fd = -1;

    start();
    s = new_stream();
    MUST(cu.DeviceGetDefaultMemPool(&usual, 0));
    WANT(INVALID_VALUE, cu.MemPoolExportToShareableHandle(&fd, usual, FD, 0));
    MUST(cu.MemAllocAsync(&at, 4096, s));
    WANT(INVALID_VALUE, cu.MemPoolExportPointer(&data, at));
    WANT(INVALID_VALUE,
         cu.MemPoolExportToShareableHandle(&fd, new_pool(0), FD, 0));
}

static void part_pool(int talk)
{
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr at;
    CUstream s;
    int fd = -1;

    start();
    s = new_stream();
    pool = new_pool(FD);
    MUST(cu.MemAllocFromPoolAsync(&at, 4096, pool, s));
    MUST(cu.MemsetD32Async(at, 7, 16, s));
    MUST(cu.StreamSynchronize(s));
    MUST(cu.MemPoolExportToShareableHandle(&fd, pool, FD, 0));
    MUST(cu.MemPoolExportPointer(&data, at));
    gpu_tell_fd(talk, fd);
    close(fd);
    tell(talk, &data, sizeof(data));
    hear_word(talk);
}

static void export_pool(void)
{
    struct part_run run = part_start("pool", NULL);
    CUmemAccessDesc access = {{.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemPoolPtrExportData data;
    CUmemoryPool pool;
    CUdeviceptr at, twice;
    CUstream s;
    int fd = gpu_hear_fd(run.talk);
    uint32_t word = 0;

    hear(run.talk, &data, sizeof(data));
    start();
    s = new_stream();
    MUST(cu.MemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, FD,
                                             0));
    close(fd);
    seen("cuMemPoolSetAccess of the imported pool", "%s",
         gpu_code(cu.MemPoolSetAccess(pool, &access, 1)));
    WANT(INVALID_VALUE, cu.MemAllocFromPoolAsync(&twice, 64, pool, s));
    GOOD(cu.MemPoolImportPointer(&at, pool, &data));
    GOOD(cu.MemcpyDtoH(&word, at, 4));
    want_number("the owner's data", 7, word);
    /* Documented: SUCCESS; an H100 (driver 580.159) refuses memory of a pool. */
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, at, 8, 0));
    GOOD(cu.StreamSynchronize(s));
    seen("imported twice", "%s",
         gpu_code(cu.MemPoolImportPointer(&twice, pool, &data)));
    GOOD(cu.MemFree(at));
    tell_word(run.talk, 1);
}

#define AREA "pool"
static const struct rule rules[] = {
    {AREA, "attributes", "DA cuMemAllocAsync, cuPointerGetAttribute",
     "pool memory is device memory without a context or a legacy handle",
     attributes},
    {AREA, "reuse", "DA CU_POINTER_ATTRIBUTE_BUFFER_ID",
     "an address that a stream uses again has another buffer id", reuse},
    {AREA, "behind_wait", "DA cuMemFreeAsync",
     "freeing takes its place in the stream", behind_wait},
    {AREA, "refused", "DA cuMemPoolExportToShareableHandle",
     "only a pool made for it is exported", refused},
    {AREA, "export_pool", "DA cuMemPoolImportPointer",
     "a pool by file descriptor, an allocation by 64 bytes", export_pool},
};
static const struct part parts[] = {{"pool", part_pool}};
const struct rule_file rules_pool = {rules, ARRAY_LEN(rules), parts,
                                     ARRAY_LEN(parts)};
