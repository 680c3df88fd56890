/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_scratch.c - device memory in which operations of streams work. */
#include "lib/stream/stream_scratch.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <stdatomic.h>
#include <stdlib.h>

struct block {
    struct block *next;
    void *at;
    size_t len;
};

/* Graphs drop it on a thread of the driver, which may not call the driver: so memory that
 * a communicator left to its graphs waits in a list until it can be freed. */
struct coll__stream_blocks {
    struct coll__stream_blocks *next; /* in the list */
    struct block *first;
    atomic_int n_graphs;
};

static struct coll__lock lock = COLL__LOCK(NULL);
static struct coll__stream_blocks *left; /* under the lock */

static void free_all(struct coll__stream_blocks *blocks)
{
    while (blocks->first) {
        struct block *block = blocks->first;

        blocks->first = block->next;
        coll__device_cuda.free(block->at, block->len);
        free(block);
    }
    free(blocks);
}

/* Take one that no graph needs any more out of the list; NULL: there is none. */
static struct coll__stream_blocks *take_unneeded(void)
{
    struct coll__stream_blocks **at = &left, *blocks;

    coll__lock(&lock);
    while (*at && atomic_load(&(*at)->n_graphs))
        at = &(*at)->next;
    blocks = *at;
    if (blocks)
        *at = blocks->next;
    coll__unlock(&lock);
    return blocks;
}

void coll__stream_scratch_reclaim(void)
{
    struct coll__stream_blocks *blocks;

    while ((blocks = take_unneeded()))
        free_all(blocks);
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

int coll__stream_scratch_have(struct coll__stream_scratch *scratch, size_t len)
{
    if (len <= scratch->len)
        return COLL_OK;
    if (!scratch->blocks)
        scratch->blocks = calloc(1, sizeof(*scratch->blocks));
    return scratch->blocks ? add_block(scratch, max_size(len, 2 * scratch->len))
                           : no_memory();
}

static void drop(void *blocks)
{
    atomic_fetch_sub(&((struct coll__stream_blocks *)blocks)->n_graphs, 1);
}

int coll__stream_scratch_hold(const struct coll__stream_scratch *scratch,
                              void *stream)
{
    if (!scratch->blocks)
        return COLL_OK;
    atomic_fetch_add(&scratch->blocks->n_graphs, 1);
    return coll__cuda_hold(stream, drop, scratch->blocks);
}

void coll__stream_scratch_free(struct coll__stream_scratch *scratch)
{
    if (scratch->blocks) {
        coll__lock(&lock);
        scratch->blocks->next = left;
        left = scratch->blocks;
        coll__unlock(&lock);
    }
    coll__stream_scratch_reclaim();
    *scratch = (struct coll__stream_scratch){0};
}
