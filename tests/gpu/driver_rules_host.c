/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_host.c - host memory that the device may use. */
#include "tests/gpu/driver_rules.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPPED (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)

static char *pages(size_t n)
{
    char *at = mmap(NULL, n * 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    memset(at, 1, n * 4096);
    return at;
}

static void unaligned(void)
{
    char *at = pages(4);
    CUdeviceptr dev = 0;
    unsigned type;

    start();
    GOOD(cu.MemHostRegister(at + 100, 1000, MAPPED));
    GOOD(cu.MemHostGetDevicePointer(&dev, at + 100, 0));
    want_true("the device address is the host's", dev == (CUdeviceptr)at + 100);
    seen("type of the page's first byte, outside the range", "%s",
         gpu_code(cu.PointerGetAttribute(
             &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)at)));
    GOOD(cu.MemHostGetDevicePointer(&dev, at + 600, 0));
    want_true("an inner address too", dev == (CUdeviceptr)at + 600);
    WANT(INVALID_VALUE, cu.MemHostGetDevicePointer(&dev, at + 100, 1));
    WANT(INVALID_VALUE, cu.MemHostGetDevicePointer(&dev, at + 8192, 0));
    GOOD(cu.MemHostUnregister(at + 100));
}

static void overlap(void)
{
    char *at = pages(16);

    start();
    GOOD(cu.MemHostRegister(at + 4 * 4096, 4 * 4096, MAPPED));
    WANT(HOST_MEMORY_ALREADY_REGISTERED,
         cu.MemHostRegister(at + 4 * 4096, 4 * 4096, MAPPED));
    WANT(HOST_MEMORY_ALREADY_REGISTERED,
         cu.MemHostRegister(at + 5 * 4096, 4096, MAPPED));
    WANT(HOST_MEMORY_ALREADY_REGISTERED,
         cu.MemHostRegister(at + 7 * 4096, 4 * 4096, MAPPED));
    WANT(HOST_MEMORY_ALREADY_REGISTERED,
         cu.MemHostRegister(at, 16 * 4096, MAPPED));
    GOOD(cu.MemHostRegister(at, 4 * 4096, MAPPED));
    GOOD(cu.MemHostRegister(at + 8 * 4096, 100, MAPPED));
    seen("other bytes of a page of which 100 are registered", "%s",
         gpu_code(cu.MemHostRegister(at + 8 * 4096 + 200, 100, MAPPED)));
    GOOD(cu.CtxSynchronize());
}

static void unregister(void)
{
    char *at = pages(4);
    void *pinned;

    start();
    MUST(cu.MemHostAlloc(&pinned, 4096, 0));
    WANT(HOST_MEMORY_NOT_REGISTERED, cu.MemHostUnregister(at));
    GOOD(cu.MemHostRegister(at, 4 * 4096, MAPPED));
    WANT(INVALID_VALUE, cu.MemHostUnregister(at + 4096));
    WANT(INVALID_VALUE, cu.MemHostUnregister(at + 8));
    WANT(INVALID_VALUE, cu.MemHostUnregister(pinned));
    WANT(INVALID_VALUE, cu.MemHostUnregister(NULL));
    WANT(INVALID_VALUE, cu.MemFreeHost(at));
    GOOD(cu.MemHostUnregister(at));
    WANT(HOST_MEMORY_NOT_REGISTERED, cu.MemHostUnregister(at));
    GOOD(cu.MemFreeHost(pinned));
    WANT(INVALID_VALUE, cu.MemFreeHost(pinned));
    GOOD(cu.MemFreeHost(NULL));
}

static void bad(void)
{
    char *at = pages(4);
    void *pinned = (void *)1;
    CUdeviceptr dev;

    start();
    dev = new_memory(4096);
    WANT(INVALID_VALUE, cu.MemHostRegister(at, 0, MAPPED));
    WANT(INVALID_VALUE, cu.MemHostRegister(NULL, 4096, MAPPED));
    WANT(INVALID_VALUE, cu.MemHostRegister(at, 4096, 64));
    WANT(INVALID_VALUE, cu.MemHostRegister((void *)dev, 4096, MAPPED));
    munmap(at + 4096, 4096);
    WANT(INVALID_VALUE, cu.MemHostRegister(at, 4 * 4096, MAPPED));
    GOOD(cu.MemHostAlloc(&pinned, 0, 0));
    seen("cuMemHostAlloc of 0 bytes gives", "%p", pinned);
    MUST(cu.CtxSetCurrent(NULL));
    WANT(INVALID_CONTEXT, cu.MemHostRegister(at, 4096, MAPPED));
}

static void not_mapped(void)
{
    char *at = pages(1);
    CUdeviceptr dev = 0;
    void *pinned;

    start();
    GOOD(cu.MemHostRegister(at, 4096, 0));
    GOOD(cu.MemHostGetDevicePointer(&dev, at, 0));
    GOOD(cu.StreamWriteValue32(NULL, (CUdeviceptr)at, 5, 0));
    GOOD(cu.CtxSynchronize());
    want_number("written by the device", 5, at[0]);
    GOOD(cu.MemHostAlloc(&pinned, 4096, 0));
    GOOD(cu.MemHostGetDevicePointer(&dev, pinned, 0));
    want_true("its device address is the host's", dev == (CUdeviceptr)pinned);
}

static int memfd(size_t len)
{
    int fd = memfd_create("flags", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)len))
        cannot("no memfd could be made");
    return fd;
}

static volatile uint32_t *map_fd(int fd, size_t len)
{
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Waits for a word in shared memory by its stream and writes the next one. */
static void part_shares(int talk)
{
    int fd = gpu_hear_fd(talk);
    volatile uint32_t *at = map_fd(fd, 8192);
    CUdeviceptr dev;
    CUstream s;

    start();
    s = new_stream();
    MUST(cu.MemHostRegister((void *)at, 8192, MAPPED));
    MUST(cu.MemHostGetDevicePointer(&dev, (void *)at, 0));
    MUST(cu.StreamWaitValue32(s, dev, 1, CU_STREAM_WAIT_VALUE_GEQ));
    MUST(cu.StreamWriteValue32(s, dev + 4096, 1, 0));
    tell_word(talk, 1);
    hear_word(talk);
    tell_word(talk, (int)cu.StreamSynchronize(s));
}

static void shared(void)
{
    struct part_run run = part_start("shares", NULL);
    int fd = memfd(8192);
    volatile uint32_t *at;
    CUdeviceptr dev;
    CUstream s;

    start();
    mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at = map_fd(fd, 8192);
    s = new_stream();
    gpu_tell_fd(run.talk, fd);
    hear_word(run.talk);
    GOOD(cu.MemHostRegister((void *)at, 8192, MAPPED));
    MUST(cu.MemHostGetDevicePointer(&dev, (void *)at, 0));
    want_true("the other stream waits", !becomes(at + 1024, 1, 100));
    GOOD(cu.StreamWriteValue32(s, dev, 1, 0));
    GOOD(cu.StreamWaitValue32(s, dev + 4096, 1, CU_STREAM_WAIT_VALUE_GEQ));
    want_true("it goes on and answers", becomes(at + 1024, 1, 3000));
    GOOD(cu.StreamSynchronize(s));
    tell_word(run.talk, 1);
    want_number("the other stream is done", 0, hear_word(run.talk));
}

/* One segment mapped twice in one process, as ranks that are threads do. */
static void shared_twice(void)
{
    int fd = memfd(8192);
    volatile uint32_t *a = map_fd(fd, 8192), *b = map_fd(fd, 8192);

    start();
    GOOD(cu.MemHostRegister((void *)a, 8192, MAPPED));
    GOOD(cu.MemHostRegister((void *)b, 8192, MAPPED));
    GOOD(cu.StreamWriteValue32(NULL, (CUdeviceptr)a, 3, 0));
    GOOD(cu.StreamWaitValue32(NULL, (CUdeviceptr)b, 3, 0));
    GOOD(cu.CtxSynchronize());
    want_number("seen through the other mapping", 3, *b);
}

static void read_only(void)
{
    int fd = memfd(8192), can = 0;
    void *at = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    CUresult rc;

    start();
    cu.DeviceGetAttribute(
        &can, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0);
    rc = cu.MemHostRegister(at, 8192, MAPPED);
    want_true("without READ_ONLY it is refused", rc != CUDA_SUCCESS);
    seen("with", "%s", gpu_code(rc));
    seen("READ_ONLY_HOST_REGISTER_SUPPORTED", "%d", can);
    want_code(
        "with READ_ONLY", can ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED,
        cu.MemHostRegister(at, 8192, MAPPED | CU_MEMHOSTREGISTER_READ_ONLY));
}

/* The mapping goes first: does the registration stay? */
static void unmapped_first(void)
{
    char *at = pages(4), *again;
    unsigned type = 0;
    CUresult rc;

    start();
    GOOD(cu.MemHostRegister(at, 4 * 4096, MAPPED));
    munmap(at, 4 * 4096);
    seen("type of the unmapped range", "%s",
         gpu_code(cu.PointerGetAttribute(
             &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)at)));
    again = mmap(at, 4 * 4096, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(again, 2, 4 * 4096);
    WANT(HOST_MEMORY_ALREADY_REGISTERED,
         cu.MemHostRegister(again, 4 * 4096, MAPPED));
    rc = cu.StreamWriteValue32(NULL, (CUdeviceptr)at, 5, 0);
    seen("a write to the stale registration", "%s", gpu_code(rc));
    GOOD(cu.CtxSynchronize());
    want_number("the new mapping has not been written to", 2, again[0]);
    GOOD(cu.MemHostUnregister(at));
    GOOD(cu.MemHostRegister(again, 4 * 4096, MAPPED));
}

static void part_locks(int talk)
{
    struct rlimit none = {0, 0};
    CUcontext ctx;

    setrlimit(RLIMIT_MEMLOCK, &none);
    tell_word(talk, (int)gpu_start(&ctx));
    tell_word(talk, (int)cu.MemHostRegister(pages(256), 256 * 4096, MAPPED));
}

static void memlock(void)
{
    struct part_how nobody = {.is_nobody = geteuid() == 0};
    struct part_run run = part_start("locks", &nobody);
    int rc;

    if (gpu_hear(run.talk, &rc, sizeof(rc)) || rc)
        cannot("the driver does not start for an ordinary user");
    want_code("cuMemHostRegister of 1 MiB with RLIMIT_MEMLOCK 0", CUDA_SUCCESS,
              (CUresult)hear_word(run.talk));
    part_end(&run);
}

/* Private registered pages, a child, and then a write by the parent. */
static void forked(void)
{
    char *at = pages(4);
    CUdeviceptr dev;
    uint32_t word = 0;
    int pid;

    start();
    dev = new_memory(64);
    GOOD(cu.MemHostRegister(at, 4 * 4096, MAPPED));
    pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    memset(at, 9, 4096);
    GOOD(cu.MemcpyDtoDAsync(dev, (CUdeviceptr)at, 4, NULL));
    GOOD(cu.MemcpyDtoH(&word, dev, 4));
    want_number("the device reads what the parent wrote", 0x09090909, word);
    GOOD(cu.StreamWriteValue32(NULL, (CUdeviceptr)at, 5, 0));
    GOOD(cu.CtxSynchronize());
    want_number("the parent reads what the device wrote", 5, at[0]);
}

#define AREA "host"
static const struct rule rules[] = {
    {AREA, "unaligned", "DA cuMemHostRegister",
     "any range can be registered; the device's address is the same",
     unaligned},
    {AREA, "overlap", "DA cuMemHostRegister",
     "a range that touches a registered one is refused", overlap},
    {AREA, "unregister", "DA cuMemHostUnregister, cuMemFreeHost",
     "only a range's first address ends it", unregister},
    {AREA, "bad", "DA cuMemHostRegister", "what cannot be registered", bad},
    {AREA, "not_mapped", "DA cuMemHostGetDevicePointer",
     "with unified addresses DEVICEMAP is implied", not_mapped},
    {AREA, "shared", "DA cuMemHostRegister; NCCL's src/os/linux.cc",
     "one memfd registered by two processes carries flags of streams", shared},
    {AREA, "shared_twice", "no documentation",
     "one memfd mapped and registered twice in one process", shared_twice},
    {AREA, "read_only", "DA CU_MEMHOSTREGISTER_READ_ONLY",
     "read-only pages need READ_ONLY", read_only},
    {AREA, "unmapped_first", "no documentation",
     "a registration outlives the mapping and blocks its address",
     unmapped_first},
    {AREA, "memlock", "no documentation", "RLIMIT_MEMLOCK does not count",
     memlock},
    {AREA, "forked", "Linux 5.9: pinned pages are copied for the child",
     "a fork leaves registered private pages with the parent", forked},
};
static const struct part parts[] = {{"shares", part_shares},
                                    {"locks", part_locks}};
const struct rule_file rules_host = {rules, ARRAY_LEN(rules), parts,
                                     ARRAY_LEN(parts)};
