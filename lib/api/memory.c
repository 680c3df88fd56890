/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - buffers that the library makes for the caller. */
#include "include/coll/coll.h"
#include "lib/device/area.h"
#include "lib/trace/log.h"

static int alloc(void **ptr, size_t bytes)
{
    if (!ptr) {
        log_error("mem", "coll_mem_alloc: ptr is NULL; pass where the address "
                         "of the memory shall go");
        return COLL_ERR_INVALID;
    }
    return coll__area_alloc(ptr, bytes);
}

int coll_mem_alloc(void **ptr, size_t bytes)
{
    return coll__log_done(alloc(ptr, bytes));
}

int coll_mem_free(void *ptr)
{
    return ptr ? coll__log_done(coll__area_free(ptr)) : COLL_OK;
}
