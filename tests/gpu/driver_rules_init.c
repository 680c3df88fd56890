/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_init.c - loading, versions, cuInit, devices, fork. */
#include "tests/gpu/driver_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void before_init(void)
{
    CUcontext ctx;
    CUdeviceptr at;
    CUdevice device;
    const char *text;
    int n;

    GOOD(cu.DriverGetVersion(&n));
    GOOD(cu.GetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
    WANT(NOT_INITIALIZED, cu.CtxGetCurrent(&ctx));
    WANT(NOT_INITIALIZED, cu.DeviceGetCount(&n));
    WANT(NOT_INITIALIZED, cu.DeviceGet(&device, 0));
    WANT(NOT_INITIALIZED, cu.MemAlloc(&at, 8));
    WANT(NOT_INITIALIZED, cu.MemFree(0));
    WANT(NOT_INITIALIZED, cu.CtxSetCurrent(NULL));
}

static void init_flags(void)
{
    WANT(INVALID_VALUE, cu.Init(1));
    GOOD(cu.Init(0));
    GOOD(cu.Init(0));
}

static void entry_points(void)
{
    CUdriverProcAddressQueryResult status = 99;
    void *at = NULL;
    int version;

    GOOD(cu.DriverGetVersion(&version));
    seen("the driver's CUDA version", "%d", version);
    GOOD(cu.GetProcAddress("cuInit", &at, 2000, 0, &status));
    at = &version;
    GOOD(cu.GetProcAddress("cuNoSuchCall", &at, version, 0, &status));
    want_true("the entry of cuNoSuchCall is NULL", at == NULL);
    want_number("its status (1 = symbol not found)", 1, status);
    GOOD(cu.GetProcAddress("cuNoSuchCall", &at, version, 0, NULL));
    GOOD(cu.GetProcAddress("cuGraphLaunch", &at, 5000, 0, &status));
    want_true("the entry of cuGraphLaunch for CUDA 5 is NULL", at == NULL);
    want_number("its status (2 = version not sufficient)", 2, status);
    WANT(INVALID_VALUE,
         cu.GetProcAddress("cuInit", &at, version + 1000, 0, &status));
    WANT(INVALID_VALUE, cu.GetProcAddress("cuInit", &at, version, 64, &status));
    /* INVALID_VALUE was expected without a name: driver 580 dies of it (H100). */
}

static void old_memops(void)
{
    CUresult (*old)(CUstream, CUdeviceptr, cuuint32_t, unsigned) = NULL;
    CUdriverProcAddressQueryResult status;
    void *v1 = NULL, *v2 = NULL;
    struct words w;

    GOOD(cu.GetProcAddress("cuStreamWriteValue32", &v1, 11060, 0, &status));
    GOOD(cu.GetProcAddress("cuStreamWriteValue32", &v2, 11070, 0, &status));
    want_true("11.6 and 11.7 are different entries", v1 != v2);
    want_true("11.7 is what 13.0 is", v2 == (void *)cu.StreamWriteValue32);
    old = (__typeof__(old))gpu_symbol("cuStreamWriteValue32");
    want_true("dlsym of the plain name finds an entry", old != NULL);
    want_true("and it is that of 11.6", (void *)old == v1);
    start();
    w = new_words(1);
    if (old)
        WANT(NOT_SUPPORTED, old(NULL, w.dev, 1, 0));
    GOOD(cu.StreamWriteValue32(NULL, w.dev, 2, 0));
    want_true("the new one writes", becomes(w.host, 2, 2000));
}

static void ordinals(void)
{
    CUdevice device;
    int n = 0;

    MUST(cu.Init(0));
    MUST(cu.DeviceGetCount(&n));
    WANT(INVALID_DEVICE, cu.DeviceGet(&device, n));
    WANT(INVALID_DEVICE, cu.DeviceGet(&device, -1));
    WANT(INVALID_VALUE, cu.DeviceGet(NULL, 0));
}

static void attribute(const char *name, CUdevice_attribute number, int want)
{
    int value = -1;
    CUresult rc = cu.DeviceGetAttribute(&value, number, 0);
    char text[100];

    snprintf(text, sizeof(text), "%d %s", (int)number, name);
    if (rc != CUDA_SUCCESS)
        seen(text, "%s", gpu_code(rc));
    else if (want >= 0)
        want_number(text, want, value);
    else
        seen(text, "%d", value);
}

#define ATTRIBUTE(name, want) attribute(#name, CU_DEVICE_ATTRIBUTE_##name, want)

/* 92 and 93 are the answers about the first version of stream memory operations. */
static void attributes(void)
{
    MUST(cu.Init(0));
    ATTRIBUTE(UNIFIED_ADDRESSING, 1);
    ATTRIBUTE(CAN_MAP_HOST_MEMORY, 1);
    ATTRIBUTE(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1);
    attribute("CAN_USE_STREAM_MEM_OPS_V1", 92, -1);
    attribute("CAN_USE_64_BIT_STREAM_MEM_OPS_V1", 93, -1);
    attribute("CAN_USE_STREAM_WAIT_VALUE_NOR_V1", 94, -1);
    ATTRIBUTE(CAN_USE_64_BIT_STREAM_MEM_OPS, 1);
    ATTRIBUTE(CAN_USE_STREAM_WAIT_VALUE_NOR, 1);
    ATTRIBUTE(COOPERATIVE_LAUNCH, 1);
    ATTRIBUTE(IPC_EVENT_SUPPORTED, 1);
    ATTRIBUTE(MEMORY_POOLS_SUPPORTED, 1);
    ATTRIBUTE(CAN_FLUSH_REMOTE_WRITES, -1);
    ATTRIBUTE(HOST_NATIVE_ATOMIC_SUPPORTED, -1);
    ATTRIBUTE(PAGEABLE_MEMORY_ACCESS, -1);
    ATTRIBUTE(CONCURRENT_MANAGED_ACCESS, -1);
    ATTRIBUTE(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1);
    ATTRIBUTE(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1);
    ATTRIBUTE(HANDLE_TYPE_FABRIC_SUPPORTED, -1);
    ATTRIBUTE(READ_ONLY_HOST_REGISTER_SUPPORTED, -1);
    ATTRIBUTE(GPU_DIRECT_RDMA_SUPPORTED, -1);
    ATTRIBUTE(DMA_BUF_SUPPORTED, -1);
    ATTRIBUTE(MULTICAST_SUPPORTED, -1);
    ATTRIBUTE(ASYNC_ENGINE_COUNT, -1);
    ATTRIBUTE(COMPUTE_MODE, 0);
    ATTRIBUTE(MULTIPROCESSOR_COUNT, -1);
    ATTRIBUTE(L2_CACHE_SIZE, -1);
    WANT(INVALID_VALUE, cu.DeviceGetAttribute(&(int){0}, 9999, 0));
}

static void fork_after_init(void)
{
    int status = -1, pid;
    CUcontext ctx;

    start();
    pid = fork();
    if (pid == 0) {
        WANT(NOT_INITIALIZED, cu.Init(0));
        WANT(NOT_INITIALIZED, cu.CtxGetCurrent(&ctx));
        WANT(NOT_INITIALIZED, cu.CtxSynchronize());
        WANT(NOT_INITIALIZED, cu.MemFree(0));
        _exit(0);
    }
    waitpid(pid, &status, 0);
    want_number("the child's wait status", 0, status);
    GOOD(cu.CtxSynchronize());
}

static void part_init(int talk)
{
    CUcontext ctx;

    tell_word(talk, (int)gpu_start(&ctx));
}

static void exec_after_init(void)
{
    struct part_run run;

    start();
    run = part_start("init", NULL);
    want_number("a forked and exec'ed child starts with", 0,
                hear_word(run.talk));
    want_number("its wait status", 0, part_end(&run));
}

static void no_device(void)
{
    struct part_how hidden = {.setenv = "CUDA_VISIBLE_DEVICES", .value = ""};
    struct part_run run = part_start("init", &hidden);

    want_number("cuInit with CUDA_VISIBLE_DEVICES empty (100 NO_DEVICE)", 100,
                hear_word(run.talk));
    part_end(&run);
}

static void peers(void)
{
    CUcontext ctx = start();
    int value = -1;

    seen("cuDeviceCanAccessPeer of a device to itself", "%s",
         gpu_code(cu.DeviceCanAccessPeer(&value, 0, 0)));
    seen("its answer", "%d", value);
    WANT(INVALID_DEVICE,
         cu.DeviceGetP2PAttribute(
             &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
    WANT(INVALID_DEVICE, cu.DeviceGetP2PAttribute(&value, 99, 0, 0));
    /* Documented: INVALID_CONTEXT; an H100 (driver 580.159) answers this. */
    WANT(PEER_ACCESS_UNSUPPORTED, cu.CtxEnablePeerAccess(ctx, 0));
    WANT(INVALID_CONTEXT, cu.CtxEnablePeerAccess(NULL, 0));
    GOOD(cu.CtxSynchronize());
}

static void part_uuid(int talk)
{
    CUuuid id = {{0}};

    MUST(cu.Init(0));
    MUST(cu.DeviceGetUuid(&id, 0));
    tell(talk, &id, sizeof(id));
}

static void uuid(void)
{
    struct part_how first = {.setenv = "CUDA_VISIBLE_DEVICES", .value = "0"};
    struct part_run run = part_start("uuid", &first);
    CUuuid mine = {{0}}, theirs, none = {{0}};

    MUST(cu.Init(0));
    MUST(cu.DeviceGetUuid(&mine, 0));
    hear(run.talk, &theirs, sizeof(theirs));
    want_true("a UUID that is not zero", memcmp(&mine, &none, sizeof(none)));
    want_true("the same in another process", !memcmp(&mine, &theirs, 16));
}

static const struct rule rules[] = {
    {"init", "before_init", "DA 'Initialization'",
     "before cuInit calls answer NOT_INITIALIZED; version and names do not",
     before_init},
    {"init", "flags", "DA cuInit",
     "cuInit takes 0 alone, as often as one likes", init_flags},
    {"init", "entry_points", "DA cuGetProcAddress",
     "entries are found before cuInit; an unknown one is NULL with a status",
     entry_points},
    {"init", "old_memops", "DA cuStreamWriteValue32; cudaTypedefs.h",
     "the plain names of stream memory operations are the refused first "
     "version",
     old_memops},
    {"init", "ordinals", "DA cuDeviceGet",
     "a device out of range is INVALID_DEVICE", ordinals},
    {"init", "attributes", "DA cuDeviceGetAttribute",
     "what the engine needs is there", attributes},
    {"init", "peers", "DA cuDeviceGetP2PAttribute, cuCtxEnablePeerAccess",
     "a device is no peer of itself, nor a context", peers},
    {"init", "uuid", "DA cuDeviceGetUuid",
     "a device has one name for all processes", uuid},
    {"init", "fork_after_init", "CUDA C++ Best Practices; DA 'Initialization'",
     "a child forked after cuInit has no driver", fork_after_init},
    {"init", "exec_after_init", "DA 'Initialization'",
     "a child that calls exec has one", exec_after_init},
    {"init", "no_device", "DA cuInit", "no visible device: NO_DEVICE",
     no_device},
};
static const struct part parts[] = {{"init", part_init}, {"uuid", part_uuid}};
const struct rule_file rules_init = {rules, ARRAY_LEN(rules), parts,
                                     ARRAY_LEN(parts)};
