/* SPDX-License-Identifier: BSD-3-Clause */
/* block.c - device memory: memfds, and the addresses at which they are mapped.
 *
 * The arena's first half is what a device address is: no access rights, ever.  Its
 * second half has the same memory for the driver, at a fixed distance.  Addresses
 * are given out from the lowest, so that a freed one comes back at once (H100,
 * pointer/ids_are_new).
 */
#include "tests/fake_cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ARENA ((size_t)128 << 30)
enum { N_GRANULES = (int)(ARENA / GRANULE) };

static char *arena;
static unsigned char *is_taken; /* by granule */
static struct block *blocks;

static int arena_open(void)
{
    void *at;

    if (arena)
        return 0;
    at = mmap(NULL, 2 * ARENA, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return -1;
    madvise(at, 2 * ARENA, MADV_DONTDUMP);
    arena = (char *)(((uintptr_t)at + GRANULE - 1) & ~(GRANULE - 1));
    is_taken = calloc(N_GRANULES, 1);
    is_taken[N_GRANULES - 1] = 1; /* lost by aligning */
    return 0;
}

int arena_has(CUdeviceptr at)
{
    return arena && at >= (CUdeviceptr)arena && at < (CUdeviceptr)arena + ARENA;
}

void *arena_view(CUdeviceptr at) { return (char *)at + ARENA; }

CUdeviceptr arena_take(size_t len)
{
    int n = (int)((len + GRANULE - 1) / GRANULE), room = 0;

    if (arena_open() || len > ARENA)
        return 0;
    for (int i = 0; i < N_GRANULES; i++) {
        room = is_taken[i] ? 0 : room + 1;
        if (room < n)
            continue;
        for (int j = i - n + 1; j <= i; j++)
            is_taken[j] = 1;
        return (CUdeviceptr)(arena + (size_t)(i - n + 1) * GRANULE);
    }
    return 0;
}

void arena_give(CUdeviceptr at, size_t len)
{
    size_t first = (size_t)(at - (CUdeviceptr)arena) / GRANULE;

    for (size_t i = 0; i < (len + GRANULE - 1) / GRANULE; i++)
        is_taken[first + i] = 0;
}

int block_map(int fd, CUdeviceptr at, size_t len)
{
    return mmap(arena_view(at), len, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED;
}

void block_unmap(CUdeviceptr at, size_t len)
{
    mmap(arena_view(at), len, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

struct block *block_each(struct block *b) { return b ? b->next : blocks; }

static struct block *add(int fd, size_t len, int device)
{
    struct block *b = calloc(1, sizeof(*b));

    b->at = arena_take(len);
    b->fd = fd;
    b->len = len;
    b->device = device;
    if (!b->at || block_map(fd, b->at, len)) {
        if (b->at)
            arena_give(b->at, len);
        close(fd);
        free(b);
        return NULL;
    }
    b->id = fake_next_id();
    b->next = blocks;
    blocks = b;
    return b;
}

int memory_file(const char *what, int device)
{
    char name[64];

    snprintf(name, sizeof(name), "fake_cuda %s %d", what,
             device_at(device)->number);
    return memfd_create(name, MFD_CLOEXEC);
}

int memory_file_device(const char *what, int fd)
{
    char path[64], link[128] = "", form[64];
    int number = -1;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(form, sizeof(form), "/memfd:fake_cuda %s %%d", what);
    if (readlink(path, link, sizeof(link) - 1) < 0)
        return -1;
    /* the form is made of words of this driver */
    return sscanf(link, form, &number) == 1 ? number : -1;
}

/* Fresh device memory is not zero: PG, nor is this. */
static void soil(struct block *b)
{
    unsigned char *at = arena_view(b->at);

    for (size_t i = 0; i < 4096; i++)
        at[i] = 0xa5;
}

CUresult block_new(size_t len, int device, struct block **b)
{
    struct device *d = device_at(device);
    size_t whole = (len + GRANULE - 1) & ~(GRANULE - 1);
    int fd;

    if (whole < len || whole > device_memory() - d->used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fd = memory_file("memory", device);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (ftruncate(fd, (off_t)whole)) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *b = add(fd, whole, device);
    if (!*b)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->used += whole;
    soil(*b);
    return CUDA_SUCCESS;
}

struct block *block_import(int fd, size_t len, int device)
{
    struct block *b = add(fd, len, device);

    if (b)
        b->owner_pid = -1;
    return b;
}

void block_drop(struct block *b)
{
    struct block **at = &blocks;

    if (--b->n_users > 0)
        return;
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    block_unmap(b->at, b->len);
    arena_give(b->at, b->len);
    close(b->fd);
    if (!b->owner_pid)
        device_at(b->device)->used -= b->len;
    free(b);
}
