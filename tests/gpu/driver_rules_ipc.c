/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_ipc.c - device memory of another process.
 *
 * The rule's process imports; the part "owner" allocates what it is asked for and
 * obeys one word at a time.
 */
#include "tests/gpu/driver_rules.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAZY CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

enum order { ALLOC, FREE, FILL, READ, WRITE_FLAG, WAIT_FLAG, SYNC, QUIT };

struct owned {
    CUipcMemHandle handle;
    CUdeviceptr at;
};

struct ask {
    enum order order;
    CUdeviceptr at; /* where; for ALLOC how much */
    uint32_t value;
};

static uint32_t owner_obey(const struct ask *ask, CUstream s)
{
    uint32_t value = ask->value;

    switch (ask->order) {
    case FREE:
        return cu.MemFree(ask->at);
    case FILL:
        cu.MemsetD32Async(ask->at, value, 16, s);
        break;
    case READ:
        cu.MemcpyDtoH(&value, ask->at, 4);
        return value;
    case WRITE_FLAG:
        return cu.StreamWriteValue32(s, ask->at, value, 0);
    case WAIT_FLAG:
        return cu.StreamWaitValue32(s, ask->at, value,
                                    CU_STREAM_WAIT_VALUE_GEQ);
    case SYNC:
        return cu.StreamSynchronize(s);
    case ALLOC:
    case QUIT:
        break;
    }
    return cu.StreamSynchronize(s);
}

static void part_owner(int talk)
{
    CUstream s;
    struct ask ask;

    start();
    s = new_stream();
    for (hear(talk, &ask, sizeof(ask)); ask.order != QUIT;
         hear(talk, &ask, sizeof(ask))) {
        if (ask.order == ALLOC) {
            struct owned owned;

            owned.at = new_memory(ask.at);
            MUST(cu.IpcGetMemHandle(&owned.handle, owned.at));
            tell(talk, &owned, sizeof(owned));
        } else {
            tell_word(talk, (int)owner_obey(&ask, s));
        }
    }
}

static struct owned owner_alloc(int talk, size_t len)
{
    struct ask ask = {.order = ALLOC, .at = len};
    struct owned owned;

    tell(talk, &ask, sizeof(ask));
    hear(talk, &owned, sizeof(owned));
    return owned;
}

static int owner_do(int talk, enum order order, CUdeviceptr at, uint32_t value)
{
    struct ask ask = {order, at, value};

    tell(talk, &ask, sizeof(ask));
    return hear_word(talk);
}

static uint32_t word_at(CUdeviceptr at)
{
    uint32_t value = 0;

    must("cuMemcpyDtoH of the import", cu.MemcpyDtoH(&value, at, 4));
    return value;
}

static void own_process(void)
{
    CUipcMemHandle handle;
    CUdeviceptr at;

    start();
    MUST(cu.IpcGetMemHandle(&handle, new_memory(1 << 20)));
    WANT(INVALID_CONTEXT, cu.IpcOpenMemHandle(&at, handle, LAZY));
    GOOD(cu.CtxSynchronize());
}

static void handles(void)
{
    CUipcMemHandle a, b, c;
    CUdeviceptr at, again;

    start();
    at = new_memory(4 << 20);
    GOOD(cu.IpcGetMemHandle(&a, at));
    GOOD(cu.IpcGetMemHandle(&b, at));
    want_true("asked twice: equal", !memcmp(&a, &b, sizeof(a)));
    GOOD(cu.IpcGetMemHandle(&b, at + 4096));
    want_true("asked of the inside: equal", !memcmp(&a, &b, sizeof(a)));
    GOOD(cu.MemFree(at));
    again = new_memory(4 << 20);
    GOOD(cu.IpcGetMemHandle(&c, again));
    seen("freed and allocated again: the same address", "%d", at == again);
    want_true("the handle is another one", memcmp(&a, &c, sizeof(a)) != 0);
}

static void not_capable(void)
{
    CUipcMemHandle handle;
    CUdeviceptr pool;
    CUstream s;
    void *pinned, *plain = malloc(4096);

    start();
    s = new_stream();
    MUST(cu.MemHostAlloc(&pinned, 4096, 0));
    MUST(cu.MemAllocAsync(&pool, 4096, s));
    MUST(cu.StreamSynchronize(s));
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, (CUdeviceptr)plain));
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, (CUdeviceptr)pinned));
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, pool));
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, 0));
}

static void offsets(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned a = owner_alloc(run.talk, 1000), b;
    CUdeviceptr at, bt, base;
    size_t size;

    b = owner_alloc(run.talk, 1000);
    start();
    owner_do(run.talk, FILL, a.at, 0xa);
    owner_do(run.talk, FILL, b.at, 0xb);
    owner_do(run.talk, FILL, a.at + 512, 0xaa);
    seen("distance of two small allocations", "%lld", (long long)(b.at - a.at));
    seen("their handles are equal", "%d",
         !memcmp(&a.handle, &b.handle, sizeof(a.handle)));
    GOOD(cu.IpcOpenMemHandle(&at, a.handle, LAZY));
    GOOD(cu.IpcOpenMemHandle(&bt, b.handle, LAZY));
    seen("distance of their imports", "%lld", (long long)(bt - at));
    seen("the import has the owner's address", "%d", at == a.at);
    want_number("the first one's data", 0xa, word_at(at));
    want_number("the second one's data", 0xb, word_at(bt));
    want_number("the inside by offset", 0xaa, word_at(at + 512));
    GOOD(cu.MemGetAddressRange(&base, &size, at));
    seen("address range of the import: size", "%zu", size);
    seen("it begins so far before the import", "%lld", (long long)(at - base));
    GOOD(cu.IpcCloseMemHandle(at));
    want_number("the second after closing the first", 0xb, word_at(bt));
    GOOD(cu.IpcCloseMemHandle(bt));
}

static void open_twice(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4 << 20);
    CUdeviceptr a, b;
    unsigned type;

    start();
    owner_do(run.talk, FILL, own.at, 7);
    GOOD(cu.IpcOpenMemHandle(&a, own.handle, LAZY));
    GOOD(cu.IpcOpenMemHandle(&b, own.handle, LAZY));
    want_true("opened twice: one address", a == b);
    GOOD(cu.IpcCloseMemHandle(a));
    want_number("after one close it is still there", 7, word_at(a));
    GOOD(cu.IpcCloseMemHandle(b));
    WANT(INVALID_VALUE,
         cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    WANT(INVALID_VALUE, cu.IpcCloseMemHandle(a));
    GOOD(cu.IpcOpenMemHandle(&b, own.handle, LAZY));
    want_number("it can be opened again", 7, word_at(b));
}

static void wrong(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4 << 20);
    CUipcMemHandle junk;
    CUdeviceptr at, mine;
    CUcontext ctx = start();

    memset(&junk, 0x5a, sizeof(junk));
    mine = new_memory(64);
    WANT(INVALID_VALUE, cu.IpcOpenMemHandle(&at, own.handle, 0));
    WANT(INVALID_VALUE, cu.IpcOpenMemHandle(&at, own.handle, 2));
    WANT(INVALID_VALUE, cu.IpcOpenMemHandle(&at, junk, LAZY));
    memset(&junk, 0, sizeof(junk));
    WANT(INVALID_VALUE, cu.IpcOpenMemHandle(&at, junk, LAZY));
    MUST(cu.CtxSetCurrent(NULL));
    WANT(INVALID_CONTEXT, cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    MUST(cu.CtxSetCurrent(ctx));
    GOOD(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    WANT(INVALID_VALUE, cu.IpcCloseMemHandle(at + 4096));
    WANT(INVALID_VALUE, cu.IpcCloseMemHandle(mine));
    WANT(INVALID_VALUE, cu.IpcCloseMemHandle(0));
    WANT(INVALID_VALUE, cu.MemFree(at));
    MUST(cu.CtxSetCurrent(NULL));
    WANT(INVALID_CONTEXT, cu.IpcCloseMemHandle(at));
    MUST(cu.CtxSetCurrent(ctx));
    GOOD(cu.IpcCloseMemHandle(at));
    GOOD(cu.CtxSynchronize());
}

static void attributes(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4 << 20);
    unsigned type = 0, is_ipc = 77;
    unsigned long long id = 0, again = 0;
    CUipcMemHandle handle;
    CUdeviceptr at;

    start();
    GOOD(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    GOOD(cu.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
    want_number("type (2 = device)", 2, type);
    GOOD(cu.PointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at));
    want_true("a buffer id", id != 0);
    GOOD(cu.PointerGetAttribute(
        &is_ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at));
    seen("an import is said to be ipc capable", "%u", is_ipc);
    WANT(INVALID_VALUE, cu.IpcGetMemHandle(&handle, at));
    GOOD(cu.IpcCloseMemHandle(at));
    GOOD(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    GOOD(cu.PointerGetAttribute(&again, CU_POINTER_ATTRIBUTE_BUFFER_ID, at));
    want_true("opened again it has another buffer id", id != again);
}

static void freed(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 256 << 20), next;
    size_t before, after, closed, total;
    CUdeviceptr at, other;

    start();
    owner_do(run.talk, FILL, own.at, 7);
    GOOD(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    MUST(cu.MemGetInfo(&before, &total));
    want_number("the owner's cuMemFree while imported", 0,
                owner_do(run.talk, FREE, own.at, 0));
    MUST(cu.MemGetInfo(&after, &total));
    seen("MiB given back by it", "%lld", (long long)(after - before) >> 20);
    want_number("the import can still be read", 7, word_at(at));
    seen("opening the handle once more", "%s",
         gpu_code(cu.IpcOpenMemHandle(&other, own.handle, LAZY)));
    next = owner_alloc(run.talk, 256 << 20);
    seen("the owner's next allocation has the same address", "%d",
         next.at == own.at);
    owner_do(run.talk, FILL, next.at, 8);
    want_number("the import keeps the old memory", 7, word_at(at));
    GOOD(cu.IpcOpenMemHandle(&other, next.handle, LAZY));
    want_number("the new handle opens the new", 8, word_at(other));
    MUST(cu.MemGetInfo(&before, &total));
    GOOD(cu.IpcCloseMemHandle(at));
    MUST(cu.MemGetInfo(&closed, &total));
    seen("MiB given back by closing", "%lld",
         (long long)(closed - before) >> 20);
}

static void stale(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4 << 20);
    CUdeviceptr at;

    start();
    owner_do(run.talk, FREE, own.at, 0);
    WANT(INVALID_VALUE, cu.IpcOpenMemHandle(&at, own.handle, LAZY));
}

static void dead_owner(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4 << 20), second;
    CUdeviceptr at, bt;

    second = owner_alloc(run.talk, 4 << 20);
    start();
    owner_do(run.talk, FILL, own.at, 7);
    GOOD(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    kill(run.pid, SIGKILL);
    waitpid(run.pid, NULL, 0);
    rest(200);
    /* Expected: INVALID_VALUE; an H100 (driver 580.159) answers this. */
    WANT(INVALID_HANDLE, cu.IpcOpenMemHandle(&bt, second.handle, LAZY));
    want_number("a killed owner's memory can be read", 7, word_at(at));
    GOOD(cu.MemsetD32Async(at, 9, 16, NULL));
    GOOD(cu.CtxSynchronize());
    want_number("and written", 9, word_at(at));
    GOOD(cu.IpcCloseMemHandle(at));
    GOOD(cu.CtxSynchronize());
}

static void memops(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4096);
    struct words w;
    CUdeviceptr at;
    CUstream s;

    start();
    s = new_stream();
    w = new_words(1);
    MUST(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    owner_do(run.talk, FILL, own.at, 0);
    want_number("the owner waits for its word", 0,
                owner_do(run.talk, WAIT_FLAG, own.at, 1));
    want_number("and will write the next one", 0,
                owner_do(run.talk, WRITE_FLAG, own.at + 4, 1));
    GOOD(cu.StreamWaitValue32(s, at + 4, 1, CU_STREAM_WAIT_VALUE_GEQ));
    GOOD(cu.StreamWriteValue32(s, w.dev, 1, 0));
    want_true("a wait on another's memory waits", !becomes(w.host, 1, 100));
    GOOD(cu.StreamWriteValue32(NULL, at, 1, 0));
    want_true("a write there lets the owner go, and it us",
              becomes(w.host, 1, 3000));
    want_number("the owner's stream is done", 0,
                owner_do(run.talk, SYNC, 0, 0));
}

static void other_context(void)
{
    struct part_run run = part_start("owner", NULL);
    struct owned own = owner_alloc(run.talk, 4 << 20);
    CUdeviceptr at, bt;
    CUcontext b;
    CUresult rc;

    start();
    owner_do(run.talk, FILL, own.at, 7);
    GOOD(cu.IpcOpenMemHandle(&at, own.handle, LAZY));
    MUST(cu.CtxCreate(&b, NULL, 0, 0));
    rc = cu.IpcOpenMemHandle(&bt, own.handle, LAZY);
    seen("a second context of the process opens it too", "%s", gpu_code(rc));
    if (rc == CUDA_SUCCESS)
        seen("at the same address", "%d", at == bt);
    want_number("the first one's import, by the second context", 7,
                word_at(at));
}

#define AREA "ipc"
static const struct rule rules[] = {
    {AREA, "own_process", "DA cuIpcOpenMemHandle; UCX PR 11603",
     "a process cannot open its own handle", own_process},
    {AREA, "handles", "DA cuIpcGetMemHandle; UCX 11724",
     "a handle names the allocation, wherever inside it was asked for",
     handles},
    {AREA, "not_capable", "DA cuIpcGetMemHandle",
     "host and pool memory have no handle", not_capable},
    {AREA, "offsets", "DA cuIpcOpenMemHandle",
     "an import is the allocation from its base", offsets},
    {AREA, "open_twice", "DA cuIpcOpenMemHandle, cuIpcCloseMemHandle",
     "imports are counted", open_twice},
    {AREA, "wrong", "DA cuIpcOpenMemHandle, cuIpcCloseMemHandle",
     "what opening and closing refuse", wrong},
    {AREA, "attributes", "DA cuPointerGetAttribute",
     "an import is device memory, and cannot be handed on", attributes},
    {AREA, "freed", "DA cuIpcCloseMemHandle (undefined)",
     "freed while imported: the memory lives until it is closed", freed},
    {AREA, "stale", "DA cuIpcOpenMemHandle",
     "the handle of freed memory does not open", stale},
    {AREA, "dead_owner", "no documentation",
     "what a killed process owned stays while it is imported", dead_owner},
    {AREA, "memops", "DA cuStreamWaitValue32",
     "memory operations act on imports, waits included", memops},
    {AREA, "other_context", "DA cuIpcOpenMemHandle",
     "a second context of the importer", other_context},
};
static const struct part parts[] = {{"owner", part_owner}};
const struct rule_file rules_ipc = {rules, ARRAY_LEN(rules), parts,
                                    ARRAY_LEN(parts)};
