/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_memop.c - cuStreamWaitValue, cuStreamWriteValue, cuStreamBatchMemOp. */
#include "tests/gpu/driver_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GEQ CU_STREAM_WAIT_VALUE_GEQ
#define EQ CU_STREAM_WAIT_VALUE_EQ
#define AND CU_STREAM_WAIT_VALUE_AND
#define NOR CU_STREAM_WAIT_VALUE_NOR

/* Does a 32-bit wait for value let a stream pass when the word is `word`? */
static void passes(uint32_t word, uint32_t value, unsigned how, int want)
{
    static const char *const names[] = {"GEQ", "EQ", "AND", "NOR"};
    struct words w = new_words(2);
    CUstream s = new_stream();
    char text[100];

    w.host[0] = word;
    GOOD(cu.StreamWaitValue32(s, w.dev, value, how));
    GOOD(cu.StreamWriteValue32(s, w.dev + 4, 1, 0));
    snprintf(text, sizeof(text), "word %#x passes a wait for %#x by %s", word,
             value, names[how]);
    want_number(text, want, becomes(w.host + 1, 1, want ? 2000 : 60));
    w.host[0] = how == NOR ? 0 : value;
    if (!want)
        want_true("then it passes by another word",
                  becomes(w.host + 1, 1, 2000));
}

static void waits_32(void)
{
    start();
    passes(5, 5, GEQ, 1);
    passes(6, 5, GEQ, 1);
    passes(4, 5, GEQ, 0);
    passes(0, 1, GEQ, 0);
    passes(1, 0xffffffff, GEQ, 1);
    passes(0x80000000, 1, GEQ, 1);
    passes(0x80000001, 0, GEQ, 0);
    passes(0xffffffff, 0, GEQ, 0);
    passes(5, 5, EQ, 1);
    passes(6, 5, EQ, 0);
    passes(6, 2, AND, 1);
    passes(4, 2, AND, 0);
    passes(0xfffffff0, 0x0f, NOR, 0);
    passes(0xfffffff0, 0x07, NOR, 1);
}

static void waits_64(void)
{
    volatile uint64_t *wide;
    struct words w, out;
    CUstream s;

    start();
    w = new_words(4);
    out = new_words(3);
    s = new_stream();
    wide = (volatile uint64_t *)w.host;
    GOOD(cu.StreamWaitValue64(s, w.dev, (uint64_t)1 << 40, GEQ));
    GOOD(cu.StreamWriteValue64(s, w.dev + 8, (uint64_t)3 << 40, 0));
    GOOD(cu.StreamWriteValue32(s, out.dev, 1, 0));
    wide[0] = 0xffffffff;
    want_true("the upper half counts", !becomes(out.host, 1, 100));
    wide[0] = (uint64_t)1 << 40;
    want_true("it passes", becomes(out.host, 1, 2000));
    want_true("64 bits are written", wide[1] == (uint64_t)3 << 40);
    GOOD(cu.StreamWaitValue64(s, w.dev, ~0ULL, GEQ));
    GOOD(cu.StreamWriteValue32(s, out.dev + 4, 1, 0));
    want_true("GEQ is cyclic here too", becomes(out.host + 1, 1, 2000));
}

/* A wait for bits of two words: one of the stream, one of the host (transports/stream.h).
 * In a batch the same. */
static void waits_two_words(void)
{
    CUstreamBatchMemOpParams op = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64};
    uint64_t bits = 1 | (uint64_t)1 << 32;
    struct words w, out;
    CUstream s;

    start();
    w = new_words(2);
    out = new_words(3);
    s = new_stream();
    GOOD(cu.StreamWaitValue64(s, w.dev, bits, AND));
    GOOD(cu.StreamWriteValue32(s, out.dev, 1, 0));
    w.host[0] = 2;
    want_true("another bit does not do", !becomes(out.host, 1, 100));
    w.host[0] = 1;
    want_true("the lower word lets it pass", becomes(out.host, 1, 2000));
    GOOD(cu.StreamWriteValue32(s, w.dev, 2, 0));
    op.waitValue.address = w.dev;
    op.waitValue.value64 = bits;
    op.waitValue.flags = AND;
    GOOD(cu.StreamBatchMemOp(s, 1, &op, 0));
    GOOD(cu.StreamWriteValue32(s, out.dev + 4, 1, 0));
    want_true("it waits in a batch", !becomes(out.host + 1, 1, 100));
    w.host[1] = 1;
    want_true("the upper word lets it pass", becomes(out.host + 1, 1, 2000));
    GOOD(cu.StreamWriteValue32(s, w.dev, 2, 0));
    GOOD(cu.StreamWaitValue64(s, w.dev, bits, AND));
    GOOD(cu.StreamWriteValue32(s, out.dev + 8, 1, 0));
    want_true("and every wait after it", becomes(out.host + 2, 1, 2000));
    want_true("32 bits are written beside it", w.host[0] == 2 && w.host[1]);
}

static void addresses(void)
{
    void *plain = calloc(1, 4096);
    CUdeviceptr dev;
    struct words w;
    CUstream s;

    start();
    w = new_words(4);
    dev = new_memory(1000);
    s = new_stream();
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, w.dev + 1, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, w.dev + 2, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWaitValue32(s, w.dev + 2, 0, GEQ));
    WANT(INVALID_VALUE, cu.StreamWriteValue64(s, w.dev + 4, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, 0, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, (CUdeviceptr)plain, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWaitValue32(s, (CUdeviceptr)plain, 0, GEQ));
    GOOD(cu.StreamWriteValue32(s, dev + 996, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, dev + 1000, 1, 0));
    GOOD(cu.StreamWriteValue32(s, (CUdeviceptr)w.host, 3, 0));
    GOOD(cu.StreamSynchronize(s));
    want_number("the host's own address is written to", 3, *w.host);
    GOOD(cu.MemFree(dev));
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, dev, 1, 0));
    GOOD(cu.StreamSynchronize(s));
}

static void flags(void)
{
    int can_flush = 0;
    struct words w;
    CUstream s;

    start();
    w = new_words(1);
    s = new_stream();
    cu.DeviceGetAttribute(&can_flush,
                          CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0);
    seen("CAN_FLUSH_REMOTE_WRITES", "%d", can_flush);
    want_code(
        "a wait with FLUSH",
        can_flush ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
        cu.StreamWaitValue32(s, w.dev, 0, GEQ | CU_STREAM_WAIT_VALUE_FLUSH));
    WANT(INVALID_VALUE, cu.StreamWaitValue32(s, w.dev, 0, 4));
    WANT(INVALID_VALUE, cu.StreamWaitValue32(s, w.dev, 0, 8));
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, w.dev, 0, 2));
    REFUSED(cu.StreamWriteValue32(s, w.dev, 0,
                                  CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    GOOD(cu.StreamSynchronize(s));
}

static void writes(CUstreamBatchMemOpParams *ops, unsigned n, CUdeviceptr at)
{
    memset(ops, 0, n * sizeof(*ops));
    for (unsigned i = 0; i < n; i++) {
        ops[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
        ops[i].writeValue.address = at;
        ops[i].writeValue.value = i + 1;
    }
}

static void batch_limits(void)
{
    static CUstreamBatchMemOpParams ops[1000];
    struct words w;
    CUstream s;

    start();
    w = new_words(1);
    s = new_stream();
    writes(ops, ARRAY_LEN(ops), w.dev);
    seen("0 operations", "%s", gpu_code(cu.StreamBatchMemOp(s, 0, ops, 0)));
    GOOD(cu.StreamBatchMemOp(s, 1, ops, 0));
    GOOD(cu.StreamBatchMemOp(s, 255, ops, 0));
    GOOD(cu.StreamSynchronize(s));
    want_number("the last of 255 is the last", 255, *w.host);
    WANT(INVALID_VALUE, cu.StreamBatchMemOp(s, 256, ops, 0));
    WANT(INVALID_VALUE, cu.StreamBatchMemOp(s, 1000, ops, 0));
    WANT(INVALID_VALUE, cu.StreamBatchMemOp(s, 1, ops, 1));
    /* INVALID_VALUE was expected without operations: driver 580 dies of it (H100). */
    ops[1].operation = 77;
    WANT(INVALID_VALUE, cu.StreamBatchMemOp(s, 2, ops, 0));
    ops[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    ops[1].writeValue.address = 0;
    *w.host = 99;
    WANT(INVALID_VALUE, cu.StreamBatchMemOp(s, 2, ops, 0));
    GOOD(cu.StreamSynchronize(s));
    want_number("of a refused batch nothing is done", 99, *w.host);
}

static void batch_kinds(void)
{
    CUstreamBatchMemOpParams ops[4];
    int can_flush = 0;
    struct words w;
    CUstream s;

    start();
    w = new_words(4);
    s = new_stream();
    writes(ops, 4, w.dev);
    ops[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    ops[1].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS;
    ops[2].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    ops[2].waitValue.address = w.dev + 4;
    ops[2].waitValue.value = 1;
    ops[2].waitValue.flags = EQ;
    ops[3].writeValue.address = w.dev + 8;
    GOOD(cu.StreamBatchMemOp(s, 4, ops, 0));
    want_true("what is before the wait is done", becomes(w.host, 1, 2000));
    want_true("what is after it is not", !becomes(w.host + 2, 4, 60));
    w.host[1] = 1;
    want_true("then it is", becomes(w.host + 2, 4, 2000));
    ops[0].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    ops[0].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    GOOD(cu.StreamBatchMemOp(s, 1, ops, 0));
    memset(ops, 0, sizeof(ops));
    ops[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    cu.DeviceGetAttribute(&can_flush,
                          CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0);
    want_code("a batch with FLUSH_REMOTE_WRITES",
              can_flush ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
              cu.StreamBatchMemOp(s, 1, ops, 0));
}

/* Host memory that a rank of another process would share. */
static void registered(void)
{
    volatile uint32_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr dev;
    CUstream s;

    start();
    s = new_stream();
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, (CUdeviceptr)at, 1, 0));
    MUST(cu.MemHostRegister((void *)at, 4096,
                            CU_MEMHOSTREGISTER_PORTABLE |
                                CU_MEMHOSTREGISTER_DEVICEMAP));
    MUST(cu.MemHostGetDevicePointer(&dev, (void *)at, 0));
    want_true("device and host address are equal", dev == (CUdeviceptr)at);
    GOOD(cu.StreamWaitValue32(s, dev, 1, GEQ));
    GOOD(cu.StreamWriteValue32(s, dev + 4, 1, 0));
    want_true("it waits", !becomes(at + 1, 1, 60));
    *at = 1;
    want_true("it goes on", becomes(at + 1, 1, 2000));
}

/* Flags in every kind of device memory. */
static void memory_kinds(void)
{
    CUmemAllocationProp prop = {0};
    CUmemAccessDesc access = {{.type = CU_MEM_LOCATION_TYPE_DEVICE},
                              CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr mapped, pool, plain;
    CUstream s;

    start();
    s = new_stream();
    plain = new_memory(64);
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = access.location;
    MUST(cu.MemCreate(&handle, 2 << 20, &prop, 0));
    MUST(cu.MemAddressReserve(&mapped, 2 << 20, 0, 0, 0));
    MUST(cu.MemMap(mapped, 2 << 20, 0, handle, 0));
    MUST(cu.MemSetAccess(mapped, 2 << 20, &access, 1));
    MUST(cu.MemAllocAsync(&pool, 64, s));
    GOOD(cu.StreamWriteValue32(s, plain, 1, 0));
    GOOD(cu.StreamWaitValue32(s, plain, 1, GEQ));
    GOOD(cu.StreamWriteValue32(s, mapped, 1, 0));
    GOOD(cu.StreamWaitValue32(s, mapped, 1, GEQ));
    /* Documented: SUCCESS; an H100 (driver 580.159) refuses memory of a pool. */
    WANT(INVALID_VALUE, cu.StreamWriteValue32(s, pool, 1, 0));
    WANT(INVALID_VALUE, cu.StreamWaitValue32(s, pool, 1, GEQ));
    GOOD(cu.StreamSynchronize(s));
}

/* The flag that a stream writes behind a copy: never before the copy's bytes. */
static void data_before_flag(void)
{
    enum { WORDS = 1 << 16, TIMES = 300 };
    volatile uint32_t *to;
    struct words flag;
    CUdeviceptr from;
    CUstream s;
    void *pinned;
    int early = 0;

    start();
    s = new_stream();
    flag = new_words(1);
    from = new_memory(4 * WORDS);
    MUST(cu.MemHostAlloc(&pinned, 4 * WORDS, 0));
    to = pinned;
    for (uint32_t i = 1; i <= TIMES; i++) {
        MUST(cu.MemsetD32Async(from, i, WORDS, s));
        MUST(cu.MemcpyDtoHAsync(pinned, from, 4 * WORDS, s));
        MUST(cu.StreamWriteValue32(s, flag.dev, i, 0));
        while (*flag.host != i)
            ;
        atomic_thread_fence(memory_order_acquire);
        early += to[WORDS - 1] != i || to[0] != i;
    }
    want_number("of 300 flags so many came before their data", 0, early);
}

/* Abort: a second stream, or the host, lets the first one go. */
static void released_by_another(void)
{
    CUstream a, b;
    struct words w;
    CUdeviceptr flag;

    start();
    a = new_stream();
    b = new_stream();
    w = new_words(1);
    flag = new_memory(64);
    MUST(cu.MemsetD8Async(flag, 0, 64, b));
    MUST(cu.StreamSynchronize(b));
    GOOD(cu.StreamWaitValue32(a, flag, 1, GEQ));
    GOOD(cu.StreamWriteValue32(a, w.dev, 1, 0));
    want_true("a waits", !becomes(w.host, 1, 60));
    GOOD(cu.StreamWriteValue32(b, flag, 1, 0));
    want_true("b lets it go", becomes(w.host, 1, 2000));
}

#define AREA "memop"
static const struct rule rules[] = {
    {AREA, "waits_32", "DA CUstreamWaitValue_flags",
     "GEQ is cyclic, EQ, AND and NOR as written", waits_32},
    {AREA, "waits_64", "DA cuStreamWaitValue64", "64 bits likewise", waits_64},
    {AREA, "waits_two_words", "DA cuStreamWaitValue64",
     "AND of 64 bits: one of two words that are written one by one",
     waits_two_words},
    {AREA, "addresses", "DA cuStreamWaitValue32",
     "aligned, known to the device, and within it", addresses},
    {AREA, "flags", "DA CUstreamWriteValue_flags",
     "unknown flags are refused; so is what this version lost", flags},
    {AREA, "batch_limits", "DA cuStreamBatchMemOp; NCCL splits at 255",
     "fewer than 256 operations, all or nothing", batch_limits},
    {AREA, "batch_kinds", "DA CUstreamBatchMemOpType",
     "barriers and waits among writes, in order", batch_kinds},
    {AREA, "registered", "DA cuMemHostRegister, cuStreamWaitValue32",
     "host memory takes part once it is registered", registered},
    {AREA, "memory_kinds", "DA cuStreamWaitValue32",
     "flags may lie in device memory, of a pool excepted", memory_kinds},
    {AREA, "data_before_flag", "DA CU_STREAM_WRITE_VALUE_DEFAULT",
     "what the stream did before is seen before the flag", data_before_flag},
    {AREA, "released_by_another", "DA cuStreamWaitValue32",
     "another stream's write lets a waiting one go", released_by_another},
};
const struct rule_file rules_memop = {rules, ARRAY_LEN(rules), NULL, 0};
