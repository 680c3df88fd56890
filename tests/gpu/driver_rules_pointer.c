/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_pointer.c - what the driver knows of an address. */
#include "tests/gpu/driver_rules.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define ATTR(name) CU_POINTER_ATTRIBUTE_##name

/* The plural call, as a program asks that does not know what it holds. */
struct known {
    CUcontext ctx;
    unsigned type, is_managed, is_ipc, is_mapped;
    int ordinal;
    unsigned long long id, handles;
    CUdeviceptr dev, range;
    size_t size;
    void *host;
    CUmemoryPool pool;
};

static CUresult ask(struct known *k, CUdeviceptr at)
{
    CUpointer_attribute names[] = {
        ATTR(CONTEXT),        ATTR(MEMORY_TYPE),
        ATTR(IS_MANAGED),     ATTR(IS_LEGACY_CUDA_IPC_CAPABLE),
        ATTR(MAPPED),         ATTR(DEVICE_ORDINAL),
        ATTR(BUFFER_ID),      ATTR(ALLOWED_HANDLE_TYPES),
        ATTR(DEVICE_POINTER), ATTR(RANGE_START_ADDR),
        ATTR(RANGE_SIZE),     ATTR(HOST_POINTER),
        ATTR(MEMPOOL_HANDLE)};
    void *values[] = {&k->ctx,       &k->type,    &k->is_managed, &k->is_ipc,
                      &k->is_mapped, &k->ordinal, &k->id,         &k->handles,
                      &k->dev,       &k->range,   &k->size,       &k->host,
                      &k->pool};

    memset(k, 0x55, sizeof(*k));
    return cu.PointerGetAttributes(ARRAY_LEN(names), names, values, at);
}

static CUresult type_of(CUdeviceptr at, unsigned *type)
{
    *type = 77;
    return cu.PointerGetAttribute(type, ATTR(MEMORY_TYPE), at);
}

static unsigned long long id_of(CUdeviceptr at)
{
    unsigned long long id = 0;

    cu.PointerGetAttribute(&id, ATTR(BUFFER_ID), at);
    return id;
}

static void host_unknown(void)
{
    CUdeviceptr at = (CUdeviceptr)malloc(4096);
    CUcontext ctx;
    unsigned long long id;
    unsigned type, yes;
    struct known k;

    start();
    WANT(INVALID_VALUE, type_of(at, &type));
    WANT(INVALID_VALUE, cu.PointerGetAttribute(&ctx, ATTR(CONTEXT), at));
    WANT(INVALID_VALUE, cu.PointerGetAttribute(&yes, ATTR(IS_MANAGED), at));
    WANT(INVALID_VALUE, cu.PointerGetAttribute(&id, ATTR(BUFFER_ID), at));
    WANT(INVALID_VALUE, cu.PointerGetAttribute(&yes, 99, at));
    GOOD(ask(&k, at));
    want_number("type", 0, k.type);
    want_true("context NULL", k.ctx == NULL);
    want_number("managed", 0, k.is_managed);
    want_number("buffer id", 0, (long long)k.id);
    want_number("ipc capable", 0, k.is_ipc);
    /* Documented: 0; an H100 (driver 580.159) does not write it: as ask() left it. */
    want_number("range size", 0x5555555555555555, (long long)k.size);
    seen("device ordinal", "%d", k.ordinal);
    seen("device pointer", "%#llx", (unsigned long long)k.dev);
    seen("host pointer is the address", "%d", k.host == (void *)at);
    seen("mapped", "%u", k.is_mapped);
}

static void device(void)
{
    CUcontext ctx = start();
    CUdeviceptr at = new_memory(1000);
    unsigned type;
    struct known k, inside;
    void *host;

    GOOD(type_of(at, &type));
    want_number("type (2 = device)", 2, type);
    GOOD(ask(&k, at));
    GOOD(ask(&inside, at + 500));
    want_true("context", k.ctx == ctx);
    want_number("ordinal", 0, k.ordinal);
    want_number("managed", 0, k.is_managed);
    want_number("ipc capable", 1, k.is_ipc);
    want_number("handle types", 0, (long long)k.handles);
    want_true("pool NULL", k.pool == NULL);
    want_true("buffer id not 0", k.id != 0);
    want_true("the same buffer id inside", k.id == inside.id);
    want_true("device pointer", k.dev == at && inside.dev == at + 500);
    want_true("range start", k.range == at && inside.range == at);
    want_number("range size", 1000, (long long)k.size);
    want_number("mapped", 1, k.is_mapped);
    want_true("host pointer NULL", k.host == NULL);
    WANT(INVALID_VALUE, cu.PointerGetAttribute(&host, ATTR(HOST_POINTER), at));
    want_number("aligned to 512", 0, (long long)(at % 512));
}

static void past_the_end(void)
{
    CUdeviceptr at, base;
    size_t size;
    unsigned type;

    start();
    at = new_memory(1000);
    seen("type one byte past 1000", "%s", gpu_code(type_of(at + 1000, &type)));
    WANT(INVALID_VALUE, type_of(at + 1000, &type));
    WANT(INVALID_VALUE, type_of(at + (1 << 20), &type));
    GOOD(cu.MemGetAddressRange(&base, &size, at + 999));
    want_true("base and size", base == at && size == 1000);
    WANT(NOT_FOUND, cu.MemGetAddressRange(&base, &size, at + 1000));
    WANT(NOT_FOUND,
         cu.MemGetAddressRange(&base, &size, (CUdeviceptr)malloc(16)));
    GOOD(cu.MemGetAddressRange(NULL, &size, at));
}

static void host_known(void)
{
    CUcontext ctx = start();
    void *mine = aligned_alloc(4096, 8192), *pinned;
    struct known k;
    unsigned type;

    MUST(cu.MemHostAlloc(&pinned, 4096, 0));
    MUST(cu.MemHostRegister(mine, 8192,
                            CU_MEMHOSTREGISTER_PORTABLE |
                                CU_MEMHOSTREGISTER_DEVICEMAP));
    for (int i = 0; i < 2; i++) {
        void *host = i ? mine : pinned;

        seen("memory", "%s", i ? "cuMemHostRegister" : "cuMemHostAlloc");
        GOOD(ask(&k, (CUdeviceptr)host + 8));
        want_number("type (1 = host)", 1, k.type);
        want_true("context", k.ctx == ctx);
        want_true("buffer id not 0", k.id != 0);
        want_true("host pointer is the address", k.host == (char *)host + 8);
        want_true("device pointer is the same", k.dev == (CUdeviceptr)k.host);
        want_true("range start", k.range == (CUdeviceptr)host);
        want_number("range size", i ? 8192 : 4096, (long long)k.size);
        want_number("managed", 0, k.is_managed);
        want_number("ipc capable", 0, k.is_ipc);
    }
    GOOD(cu.MemHostUnregister(mine));
    WANT(INVALID_VALUE, type_of((CUdeviceptr)mine, &type));
}

static void after_free(void)
{
    unsigned type;
    struct known k;
    CUdeviceptr at;

    start();
    at = new_memory(4 << 20);
    GOOD(cu.MemFree(at));
    WANT(INVALID_VALUE, type_of(at, &type));
    GOOD(ask(&k, at));
    want_number("type", 0, k.type);
    want_number("buffer id", 0, (long long)k.id);
    WANT(INVALID_VALUE, cu.MemFree(at));
}

static void ids_are_new(void)
{
    unsigned long long last = 0;
    CUdeviceptr first = 0;
    int same = 0, fresh = 1;

    start();
    for (int i = 0; i < 50; i++) {
        CUdeviceptr at = new_memory(4 << 20);
        unsigned long long id = id_of(at);

        first = first ? first : at;
        same += at == first;
        fresh = fresh && id > last;
        last = id;
        MUST(cu.MemFree(at));
    }
    want_true("each allocation has a greater buffer id", fresh);
    seen("of 50 allocations so many had the first one's address", "%d", same);
}

static void without_context(void)
{
    CUdeviceptr at;
    struct known k;
    unsigned type;

    start();
    at = new_memory(64);
    MUST(cu.CtxSetCurrent(NULL));
    GOOD(type_of(at, &type));
    WANT(INVALID_CONTEXT,
         cu.PointerGetAttribute(&k.dev, ATTR(DEVICE_POINTER), at));
    seen("plural call with DEVICE_POINTER", "%s", gpu_code(ask(&k, at)));
    seen("its type", "%u", k.type);
}

static void alloc_rules(void)
{
    CUdeviceptr at, more;
    void *host = malloc(64);

    start();
    at = new_memory(1000);
    WANT(INVALID_VALUE, cu.MemAlloc(&more, 0));
    GOOD(cu.MemFree(0));
    WANT(INVALID_VALUE, cu.MemFree(at + 8));
    WANT(INVALID_VALUE, cu.MemFree((CUdeviceptr)host));
    WANT(OUT_OF_MEMORY, cu.MemAlloc(&more, (size_t)1 << 45));
    GOOD(cu.CtxSynchronize());
    GOOD(cu.MemAlloc(&more, 1000));
    seen("distance of two small allocations", "%lld", (long long)(more - at));
    GOOD(cu.MemFree(at));
    WANT(INVALID_VALUE, cu.MemFree(at));
}

static void sync_memops(void)
{
    unsigned value = 77, on = 1;
    CUdeviceptr at;

    start();
    at = new_memory(64);
    GOOD(cu.PointerGetAttribute(&value, ATTR(SYNC_MEMOPS), at));
    want_number("at first", 0, value);
    GOOD(cu.PointerSetAttribute(&on, ATTR(SYNC_MEMOPS), at));
    GOOD(cu.PointerGetAttribute(&value, ATTR(SYNC_MEMOPS), at));
    want_number("then", 1, value);
}

static void part_touch(int talk)
{
    start();
    *(volatile char *)new_memory(64) = 1;
    tell_word(talk, 1);
}

static void host_touches(void)
{
    struct part_run run = part_start("touch", NULL);
    int status = part_end(&run);

    want_number("ended by signal (11 = SIGSEGV)", SIGSEGV,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void managed(void)
{
    CUdeviceptr at;
    CUstream s;
    unsigned yes = 0;
    CUipcMemHandle handle;

    if (!rules_allow_managed)
        cannot("managed memory is tried with --managed alone");
    start();
    s = new_stream();
    MUST(cu.MemAllocManaged(&at, 4096, CU_MEM_ATTACH_GLOBAL));
    GOOD(cu.PointerGetAttribute(&yes, ATTR(IS_MANAGED), at));
    want_number("is managed", 1, yes);
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, at, 1, 0));
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, at));
}

#define AREA "pointer"
static const struct rule rules[] = {
    {AREA, "host_unknown", "DA cuPointerGetAttribute(s)",
     "plain host memory: INVALID_VALUE singly, no range from the plural call",
     host_unknown},
    {AREA, "device", "DA cuPointerGetAttribute",
     "memory of cuMemAlloc answers for every byte of it", device},
    {AREA, "past_the_end", "DA cuMemGetAddressRange",
     "an allocation ends where it was asked to", past_the_end},
    {AREA, "host_known", "DA cuPointerGetAttribute",
     "pinned and registered memory is host memory with a device address",
     host_known},
    {AREA, "after_free", "DA cuMemFree", "a freed address is unknown",
     after_free},
    {AREA, "ids_are_new", "DA CU_POINTER_ATTRIBUTE_BUFFER_ID",
     "a buffer id is never used again, an address is", ids_are_new},
    {AREA, "without_context", "DA cuPointerGetAttribute",
     "attributes can be asked without a context, but the device pointer",
     without_context},
    {AREA, "alloc", "DA cuMemAlloc, cuMemFree",
     "what cuMemAlloc and cuMemFree refuse, and that no refusal stays",
     alloc_rules},
    {AREA, "sync_memops", "DA CU_POINTER_ATTRIBUTE_SYNC_MEMOPS",
     "SYNC_MEMOPS can be set", sync_memops},
    {AREA, "host_touches", "PG 'Unified Virtual Address Space'",
     "the processor faults on device memory", host_touches},
    {AREA, "managed", "DA cuMemAllocManaged, cuStreamWriteValue32",
     "managed memory is neither for memory operations nor for IPC", managed},
};
static const struct part parts[] = {{"touch", part_touch}};
const struct rule_file rules_pointer = {rules, ARRAY_LEN(rules), parts,
                                        ARRAY_LEN(parts)};
