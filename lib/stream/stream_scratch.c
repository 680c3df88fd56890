/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_scratch.c - device memory in which operations of streams work. */
#include "lib/stream/stream_scratch.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_held.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>

struct block {
    struct block *next;
    void *at;
    size_t len;
};

struct coll__stream_blocks {
    struct coll__cuda_held held; /* first, so that the two pointers are equal */
    struct block *first;
};

static void free_all(struct coll__cuda_held *held)
{
    struct coll__stream_blocks *blocks = (struct coll__stream_blocks *)held;

    while (blocks->first) {
        struct block *block = blocks->first;

        blocks->first = block->next;
        coll__device_cuda.free(block->at, block->len);
        free(block);
    }
    free(blocks);
}

static int no_memory(void)
{
    log_error("api", "no memory for an operation of a stream");
    return COLL_ERR_NOMEM;
}

static int add_block(struct coll__stream_scratch *scratch, size_t len)
{
    struct block *block = malloc(sizeof(*block));

    if (!block)
        return no_memory();
    block->len = len;
    block->at = coll__device_cuda.alloc(len);
    if (!block->at) {
        free(block);
        return COLL_ERR_NOMEM;
    }
    block->next = scratch->blocks->first;
    scratch->blocks->first = block;
    scratch->at = block->at;
    scratch->len = len;
    scratch->taken += len;
    return COLL_OK;
}

static struct coll__stream_blocks *blocks_new(void)
{
    struct coll__stream_blocks *blocks = calloc(1, sizeof(*blocks));

    if (blocks)
        blocks->held.end = free_all;
    return blocks;
}

int coll__stream_scratch_have(struct coll__stream_scratch *scratch, size_t len)
{
    if (len <= scratch->len)
        return COLL_OK;
    if (!scratch->blocks)
        scratch->blocks = blocks_new();
    return scratch->blocks ? add_block(scratch, max_size(len, 2 * scratch->len))
                           : no_memory();
}

int coll__stream_scratch_hold(const struct coll__stream_scratch *scratch,
                              void *stream)
{
    return scratch->blocks ? coll__cuda_held_add(&scratch->blocks->held, stream)
                           : COLL_OK;
}

void coll__stream_scratch_free(struct coll__stream_scratch *scratch)
{
    if (scratch->blocks)
        coll__cuda_held_leave(&scratch->blocks->held);
    *scratch = (struct coll__stream_scratch){0};
}
