/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_vmm.c - memory by cuMemCreate, and its export by file descriptor. */
#include "tests/gpu/driver_rules.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define LEN ((size_t)2 << 20)

static CUmemAllocationProp prop_of(CUmemAllocationHandleType types)
{
    CUmemAllocationProp prop = {0};

    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.requestedHandleTypes = types;
    return prop;
}

static const CUmemAccessDesc access_all = {
    {.type = CU_MEM_LOCATION_TYPE_DEVICE}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
    CUdeviceptr at = 0;

    must("cuMemAddressReserve", cu.MemAddressReserve(&at, LEN, 0, 0, 0));
    must("cuMemMap", cu.MemMap(at, LEN, 0, handle, 0));
    must("cuMemSetAccess", cu.MemSetAccess(at, LEN, &access_all, 1));
    return at;
}

static CUmemGenericAllocationHandle create(CUmemAllocationHandleType types)
{
    CUmemAllocationProp prop = prop_of(types);
    CUmemGenericAllocationHandle handle = 0;

    must("cuMemCreate", cu.MemCreate(&handle, LEN, &prop, 0));
    return handle;
}

static void mapping(void)
{
    CUmemAllocationProp prop = prop_of(0);
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    size_t grain;
    int x = 5;

    start();
    GOOD(cu.MemGetAllocationGranularity(&grain, &prop,
                                        CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    want_number("granularity", (long long)LEN, (long long)grain);
    WANT(INVALID_VALUE, cu.MemCreate(&handle, LEN + 4096, &prop, 0));
    handle = create(0);
    WANT(INVALID_VALUE, cu.MemAddressReserve(&at, LEN + 100, 0, 0, 0));
    MUST(cu.MemAddressReserve(&at, 2 * LEN, 0, 0, 0));
    /* Documented: INVALID_VALUE; an H100 (driver 580.159) answers this. */
    WANT(NOT_SUPPORTED, cu.MemMap(at, 2 * LEN, 0, handle, 0));
    WANT(INVALID_VALUE, cu.MemMap(at + 4096, LEN, 0, handle, 0));
    GOOD(cu.MemMap(at, LEN, 0, handle, 0));
    WANT(INVALID_VALUE, cu.MemMap(at, LEN, 0, handle, 0));
    WANT(INVALID_VALUE, cu.MemcpyHtoD(at, &x, 4));
    GOOD(cu.MemSetAccess(at, LEN, &access_all, 1));
    GOOD(cu.MemcpyHtoD(at, &x, 4));
    WANT(INVALID_VALUE, cu.MemcpyHtoD(at + LEN, &x, 4));
    WANT(INVALID_VALUE, cu.MemFree(at));
    GOOD(cu.MemRelease(handle));
    GOOD(cu.MemcpyHtoD(at, &x, 4));
    MUST(cu.CtxSynchronize());
    WANT(INVALID_VALUE, cu.MemAddressFree(at, 2 * LEN));
    GOOD(cu.MemUnmap(at, LEN));
    GOOD(cu.MemAddressFree(at, 2 * LEN));
    GOOD(cu.CtxSynchronize());
}

static void attributes(void)
{
    CUdeviceptr at, base, start_at = 0;
    CUcontext ctx = (CUcontext)1;
    unsigned type = 0, is_ipc = 77;
    unsigned long long types = 0, id = 0;
    CUipcMemHandle handle;
    size_t size, range = 0;

    start();
    at = map(create(FD));
    GOOD(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                at + 64));
    want_number("type (2 = device)", 2, type);
    seen("CONTEXT", "%s",
         gpu_code(
             cu.PointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, at)));
    want_true("the context is NULL", ctx == NULL);
    GOOD(cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at));
    want_true("a buffer id", id != 0);
    GOOD(cu.PointerGetAttribute(
        &is_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at));
    want_number("ipc capable", 0, is_ipc);
    GOOD(cu.PointerGetAttribute(&types,
                                CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at));
    want_number("handle types (1 = file descriptor)", 1, (long long)types);
    GOOD(cu.PointerGetAttribute(
        &start_at, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + 64));
    GOOD(cu.PointerGetAttribute(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at));
    want_true("range", start_at == at && range == LEN);
    GOOD(cu.MemGetAddressRange(&base, &size, at + 64));
    want_true("address range", base == at && size == LEN);
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, at));
}

static void refused(void)
{
    CUmemGenericAllocationHandle handle, again;
    CUmemAllocationProp prop = prop_of(CU_MEM_HANDLE_TYPE_FABRIC);
    int fd = -1, can = -1;

    start();
    handle = create(0);
    WANT(INVALID_VALUE, cu.MemExportToShareableHandle(&fd, handle, FD, 0));
    /* Documented: INVALID_VALUE; an H100 (driver 580.159) answers this. */
    WANT(UNKNOWN,
         cu.MemImportFromShareableHandle(&again, (void *)(intptr_t)9999, FD));
    handle = create(FD);
    WANT(INVALID_VALUE, cu.MemExportToShareableHandle(&fd, handle, FD, 1));
    GOOD(cu.MemExportToShareableHandle(&fd, handle, FD, 0));
    GOOD(cu.MemImportFromShareableHandle(&again, (void *)(intptr_t)fd, FD));
    seen("imported by its own process: the same handle", "%d", again == handle);
    cu.DeviceGetAttribute(&can,
                          CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0);
    seen("fabric handles supported", "%d", can);
    seen("cuMemCreate for fabric handles", "%s",
         gpu_code(cu.MemCreate(&handle, LEN, &prop, 0)));
}

/* Exports LEN bytes of sevens; drops them as told; then waits to be ended. */
static void part_exports(int talk)
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    CUstream s;
    int fd = -1;

    start();
    s = new_stream();
    handle = create(FD);
    at = map(handle);
    MUST(cu.MemsetD32Async(at, 7, 64, s));
    MUST(cu.StreamSynchronize(s));
    MUST(cu.MemExportToShareableHandle(&fd, handle, FD, 0));
    gpu_tell_fd(talk, fd);
    close(fd);
    hear_word(talk);
    MUST(cu.StreamWaitValue32(s, at + 4, 8, CU_STREAM_WAIT_VALUE_EQ));
    MUST(cu.StreamWriteValue32(s, at + 8, 9, 0));
    tell_word(talk, 1);
    hear_word(talk);
    tell_word(talk, (int)cu.StreamSynchronize(s));
    hear_word(talk);
    MUST(cu.MemUnmap(at, LEN));
    MUST(cu.MemRelease(handle));
    tell_word(talk, 1);
    hear_word(talk);
}

static void export_fd(void)
{
    struct part_run run = part_start("exports", NULL);
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    CUstream s;
    int fd = gpu_hear_fd(run.talk);
    uint32_t word = 0;

    start();
    s = new_stream();
    MUST(cu.MemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, FD));
    close(fd);
    at = map(handle);
    GOOD(cu.MemcpyDtoH(&word, at, 4));
    want_number("the owner's data", 7, word);
    tell_word(run.talk, 1);
    hear_word(run.talk);
    GOOD(cu.StreamWriteValue32(s, at + 4, 8, 0));
    GOOD(cu.StreamWaitValue32(s, at + 8, 9, CU_STREAM_WAIT_VALUE_EQ));
    GOOD(cu.StreamSynchronize(s));
    tell_word(run.talk, 1);
    want_number("memory operations both ways", 0, hear_word(run.talk));
    tell_word(run.talk, 1);
    hear_word(run.talk);
    GOOD(cu.MemcpyDtoH(&word, at + 8, 4));
    want_number("after the owner released it", 9, word);
    kill(run.pid, SIGKILL);
    waitpid(run.pid, NULL, 0);
    rest(200);
    GOOD(cu.MemcpyDtoH(&word, at + 8, 4));
    want_number("after the owner was killed", 9, word);
}

#define AREA "vmm"
static const struct rule rules[] = {
    {AREA, "mapping", "DA 'Virtual Memory Management'",
     "reserve, map, give access, in units of the granularity", mapping},
    {AREA, "attributes", "DA cuPointerGetAttribute",
     "it is device memory without a context, and has no legacy handle",
     attributes},
    {AREA, "refused", "DA cuMemExportToShareableHandle",
     "only what was made for it is exported", refused},
    {AREA, "export_fd", "DA cuMemImportFromShareableHandle",
     "by file descriptor, with memory operations, beyond the owner's end",
     export_fd},
};
static const struct part parts[] = {{"exports", part_exports}};
const struct rule_file rules_vmm = {rules, ARRAY_LEN(rules), parts,
                                    ARRAY_LEN(parts)};
