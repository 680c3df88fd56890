/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_copy.c - copies: which wait, which the host waits for. */
#include "tests/gpu/driver_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    CUstream s;
    CUdeviceptr dev;
    void *pageable, *more, *pinned;
    size_t len;
} on;

static CUresult h2d(void *arg)
{
    return cu.MemcpyHtoDAsync(on.dev, arg, on.len, on.s);
}

static CUresult d2h(void *arg)
{
    return cu.MemcpyDtoHAsync(arg, on.dev, on.len, on.s);
}

static CUresult d2d(void *arg)
{
    (void)arg;
    return cu.MemcpyDtoDAsync(on.dev, on.dev + (8 << 20), on.len, on.s);
}

static CUresult h2h(void *arg)
{
    return cu.MemcpyAsync((CUdeviceptr)on.more, (CUdeviceptr)arg, on.len, on.s);
}

static CUresult set(void *arg)
{
    (void)arg;
    return cu.MemsetD8Async(on.dev, 0, on.len, on.s);
}

static void prepare(void)
{
    start();
    on.s = new_stream();
    on.dev = new_memory(16 << 20);
    on.pageable = calloc(1, 8 << 20);
    on.more = calloc(1, 8 << 20);
    memset(on.pageable, 1, 8 << 20);
    memset(on.more, 1, 8 << 20);
    MUST(cu.MemHostAlloc(&on.pinned, 8 << 20, 0));
}

static void one(const char *what, const char *want, CUresult (*call)(void *),
                void *arg)
{
    struct gate gate = gate_shut(on.s);
    char text[100];

    snprintf(text, sizeof(text), "%s of %zu bytes behind a wait", what, on.len);
    want_text(text, want, returns_or_blocks(call, arg, &gate));
    gate_open(&gate);
    cu.StreamSynchronize(on.s);
}

static void async_copies(void)
{
    static const size_t sizes[] = {4, 4096, 65536, 65537, 1 << 20, 8 << 20};

    prepare();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        on.len = sizes[i];
        /* Documented: beyond 64 KiB it blocks; with an H100 (driver 580.159) 1 MiB
         * returns too. */
        one("pageable H2D", on.len <= 1 << 20 ? "returns" : "blocks", h2d,
            on.pageable);
        one("pageable D2H", "blocks", d2h, on.pageable);
        one("pinned H2D", "returns", h2d, on.pinned);
        one("pinned D2H", "returns", d2h, on.pinned);
        one("D2D", "returns", d2d, NULL);
        one("memset", "returns", set, NULL);
        one("pageable H2H", "blocks", h2h, on.pageable);
        one("pinned to pageable", "blocks", h2h, on.pinned);
    }
}

/* Does a pageable copy that came back read its source later? */
static void staged(void)
{
    struct gate gate;
    unsigned char back[64];

    prepare();
    on.len = sizeof(back);
    gate = gate_shut(on.s);
    memset(on.pageable, 7, on.len);
    GOOD(h2d(on.pageable));
    memset(on.pageable, 9, on.len);
    gate_open(&gate);
    GOOD(cu.StreamSynchronize(on.s));
    GOOD(cu.MemcpyDtoH(back, on.dev, sizeof(back)));
    want_number("what arrives was read at the call", 7, back[0]);
    gate = gate_shut(on.s);
    memset(on.pinned, 7, on.len);
    GOOD(h2d(on.pinned));
    memset(on.pinned, 9, on.len);
    gate_open(&gate);
    GOOD(cu.StreamSynchronize(on.s));
    GOOD(cu.MemcpyDtoH(back, on.dev, sizeof(back)));
    want_number("from pinned memory it is read late", 9, back[0]);
}

static CUresult sync_d2d(void *arg)
{
    (void)arg;
    return cu.MemcpyDtoD(on.dev, on.dev + 4096, 64);
}

static CUresult sync_h2d(void *arg) { return cu.MemcpyHtoD(on.dev, arg, 64); }

static CUresult sync_d2h(void *arg) { return cu.MemcpyDtoH(arg, on.dev, 64); }

static CUresult sync_set(void *arg)
{
    (void)arg;
    return cu.MemsetD8(on.dev, 0, 64);
}

static CUresult sync_set_pinned(void *arg)
{
    return cu.MemsetD8((CUdeviceptr)arg, 0, 64);
}

static void sync_copies(void)
{
    prepare();
    on.s = NULL;
    on.len = 64;
    one("cuMemcpyDtoD", "returns", sync_d2d, NULL);
    /* Documented: up to 64 KiB it returns; with an H100 (driver 580.159) it blocks. */
    one("cuMemcpyHtoD pageable", "blocks", sync_h2d, on.pageable);
    one("cuMemcpyHtoD pinned", "blocks", sync_h2d, on.pinned);
    one("cuMemcpyDtoH pageable", "blocks", sync_d2h, on.pageable);
    one("cuMemcpyDtoH pinned", "blocks", sync_d2h, on.pinned);
    one("cuMemsetD8 of device memory", "returns", sync_set, NULL);
    one("cuMemsetD8 of pinned memory", "blocks", sync_set_pinned, on.pinned);
}

static void bad(void)
{
    CUdeviceptr dev;
    int x = 0;

    start();
    dev = new_memory(1000);
    WANT(INVALID_VALUE, cu.MemcpyHtoD(dev, NULL, 8));
    GOOD(cu.MemcpyHtoD(dev, NULL, 0));
    WANT(INVALID_VALUE, cu.MemcpyHtoD(0, &x, 4));
    WANT(INVALID_VALUE, cu.MemcpyHtoD(dev + 998, &x, 4));
    WANT(INVALID_VALUE, cu.MemcpyDtoDAsync(dev, dev + 500, 600, NULL));
    WANT(INVALID_VALUE, cu.MemsetD8Async(dev, 0, 1001, NULL));
    GOOD(cu.MemcpyDtoDAsync(dev, dev + 10, 500, NULL));
    GOOD(cu.MemFree(dev));
    WANT(INVALID_VALUE, cu.MemcpyHtoD(dev, &x, 4));
    WANT(INVALID_VALUE, cu.MemcpyHtoDAsync(dev, &x, 4, NULL));
    GOOD(cu.CtxSynchronize());
}

/* cuMemcpyDtoDAsync with a host address: the kind in the name counts little. */
static void kinds(void)
{
    CUdeviceptr dev;
    void *pinned, *plain = calloc(1, 64);

    start();
    dev = new_memory(64);
    MUST(cu.MemHostAlloc(&pinned, 64, 0));
    GOOD(cu.MemcpyDtoDAsync((CUdeviceptr)pinned, dev, 64, NULL));
    GOOD(cu.MemcpyHtoDAsync(dev, (void *)(dev + 32), 8, NULL));
    WANT(INVALID_VALUE, cu.MemcpyDtoDAsync((CUdeviceptr)plain, dev, 64, NULL));
    GOOD(cu.MemcpyAsync((CUdeviceptr)plain, dev, 64, NULL));
    GOOD(cu.CtxSynchronize());
}

#define AREA "copy"
static const struct rule rules[] = {
    {AREA, "async_behind_wait", "DA 'API synchronization behavior'",
     "pageable memory makes an asynchronous copy wait in the caller",
     async_copies},
    {AREA, "staged", "DA 'API synchronization behavior'",
     "pageable memory is read at the call, pinned memory when its turn comes",
     staged},
    {AREA, "sync_behind_wait", "DA 'API synchronization behavior'",
     "D2D copies and memset of device memory do not wait in the caller",
     sync_copies},
    {AREA, "bad", "DA cuMemcpy", "what is out of bounds is refused at once",
     bad},
    {AREA, "kinds", "DA cuMemcpy",
     "known addresses are taken for what they are", kinds},
};
const struct rule_file rules_copy = {rules, ARRAY_LEN(rules), NULL, 0};
