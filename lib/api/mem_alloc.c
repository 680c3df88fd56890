/* SPDX-License-Identifier: BSD-3-Clause */
/* mem_alloc.c - buffers that the library allocates for the caller. */
#include "include/coll/coll.h"
#include "lib/device/region.h"
#include "lib/device/device.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"

static int has_place(void **ptr, const char *who)
{
    if (!ptr)
        log_error("mem", "%s: ptr is NULL; pass the address of a pointer", who);
    return ptr != NULL;
}

int coll_mem_alloc(void **ptr, size_t bytes)
{
    return coll__log_done(has_place(ptr, "coll_mem_alloc")
                              ? coll__region_alloc(ptr, bytes)
                              : COLL_ERR_INVALID);
}

/* Find the first kind of device that has buffers, or NULL. */
static const struct coll__buffers *device_buffers(void)
{
    int i = 0;

    while (coll__devices[i] && !coll__devices[i]->buffers)
        i++;
    return coll__devices[i] ? coll__devices[i]->buffers : NULL;
}

static int alloc_device(void **ptr, size_t bytes, int device)
{
    const struct coll__buffers *buffers = device_buffers();

    if (!has_place(ptr, "coll_mem_alloc_device"))
        return COLL_ERR_INVALID;
    if (buffers)
        return buffers->alloc(ptr, bytes, device, coll__stream_calls->reclaim);
    log_error("mem", "coll_mem_alloc_device: this libcoll was built without "
                     "CUDA; install its headers (nvidia-cuda-dev) and "
                     "configure again");
    return COLL_ERR_UNSUPPORTED;
}

int coll_mem_alloc_device(void **ptr, size_t bytes, int device)
{
    return coll__log_done(alloc_device(ptr, bytes, device));
}

static int free_any(void *ptr)
{
    const struct coll__buffers *buffers = device_buffers();

    if (!buffers || !buffers->has(ptr))
        return coll__region_free(ptr);
    coll__stream_calls->reclaim();
    return buffers->free(ptr);
}

int coll_mem_free(void *ptr)
{
    return ptr ? coll__log_done(free_any(ptr)) : COLL_OK;
}
