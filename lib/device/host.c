/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - the host device: ordinary memory; all work is done at once, on the caller's
 * thread.
 *
 * Scratch comes straight from the kernel: whole pages, zero-filled, and huge pages if the
 * scratch is large.
 */
#include "lib/device/device.h"
#include "lib/device/copy.h"
#include "lib/device/reduce.h"
#include "lib/util/util.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

static int host_usable(char *why, size_t len)
{
    if (len)
        why[0] = '\0';
    return COLL_OK;
}

static size_t mapped_len(size_t len)
{
    return round_up(max_size(len, 1), (size_t)sysconf(_SC_PAGESIZE));
}

static void *host_alloc(size_t len)
{
    size_t mapped = mapped_len(len);
    void *ptr;

    if (mapped < len) /* within a page of SIZE_MAX */
        return NULL;
    ptr = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ptr == MAP_FAILED)
        return NULL;
    if (len >= HUGE_PAGE)
        madvise(ptr, mapped, MADV_HUGEPAGE); /* advice: failing is fine */
    return ptr;
}

static void host_free(void *ptr, size_t len)
{
    if (ptr)
        munmap(ptr, mapped_len(len));
}

static void host_copy(void *dst, const void *src, size_t len, void *stream)
{
    (void)stream;
    if (len)
        memcpy(dst, src, len);
}

static void host_copy_past(void *dst, const void *src, size_t len, void *stream)
{
    (void)stream;
    if (!len)
        return;
    coll__copy_stream(dst, src, len);
    coll__copy_fence();
}

const struct coll__device coll__device_host = {
    .name = "host",
    .what = "ordinary memory, worked on by the calling thread",
    .usable = host_usable,
    .alloc = host_alloc,
    .free = host_free,
    .copy = host_copy,
    .copy_past = host_copy_past,
    .reduce = coll__host_reduce,
    .scale = coll__host_scale,
    .multiply = coll__host_multiply,
};
