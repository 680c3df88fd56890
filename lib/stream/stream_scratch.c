/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_scratch.c - device memory in which operations of streams work. */
#include "lib/stream/stream_scratch.h"
#include "lib/device/cuda.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>

struct coll__stream_block {
    struct coll__stream_block *next;
    void *at;
    size_t len;
};

int coll__stream_scratch_have(struct coll__stream_scratch *scratch, size_t len)
{
    struct coll__stream_block *block;

    if (len <= scratch->len)
        return COLL_OK;
    block = malloc(sizeof(*block));
    if (!block) {
        log_error("api", "no memory for an operation of a stream");
        return COLL_ERR_NOMEM;
    }
    block->len = max_size(len, 2 * scratch->len);
    block->at = coll__device_cuda.alloc(block->len);
    if (!block->at) {
        free(block);
        return COLL_ERR_NOMEM;
    }
    block->next = scratch->blocks;
    scratch->blocks = block;
    scratch->at = block->at;
    scratch->len = block->len;
    scratch->taken += block->len;
    return COLL_OK;
}

void coll__stream_scratch_free(struct coll__stream_scratch *scratch)
{
    while (scratch->blocks) {
        struct coll__stream_block *block = scratch->blocks;

        scratch->blocks = block->next;
        coll__device_cuda.free(block->at, block->len);
        free(block);
    }
    *scratch = (struct coll__stream_scratch){0};
}
