/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_buffers.c - what a rank sends and receives, on the host or on a device.
 *
 * Content is made and compared on the host.  For buffers on a device the host has one
 * image, which the device's buffers use in turn.
 */
#include "benchmarks/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
#define POISON 0xa5

/* Return the most blocks that any rank's buffer holds. */
static size_t most_blocks(enum bench_blocks blocks, int ranks)
{
    return blocks == BLOCKS_ONE      ? 1
           : blocks == BLOCKS_WINDOW ? BENCH_WINDOW
                                     : (size_t)ranks;
}

static size_t n_blocks(const struct bench_op *op, const struct coll_comm *comm,
                       int root, enum bench_blocks blocks)
{
    int is_away = blocks == BLOCKS_ROOT && coll_comm_rank(comm) != root;

    /* uneven parts may be half a block more in all */
    return (is_away ? 1 : most_blocks(blocks, coll_comm_size(comm))) +
           (op->has_counts != 0);
}

size_t bench_blocks_given(const struct bench_op *op,
                          const struct coll_comm *comm)
{
    return most_blocks(op->in, coll_comm_size(comm));
}

size_t bench_elements(const struct bench_op *op, const struct bench_args *args,
                      const struct coll_comm *comm, size_t bytes)
{
    size_t count =
        bytes / coll_type_size(args->type) / bench_blocks_given(op, comm);

    return count ? count : 1;
}

/* ---- memory ------------------------------------------------------------ */

static size_t longer(size_t a, size_t b) { return a > b ? a : b; }

/* Do the buffers fit into the available memory?  Ask before allocating, since the
 * kernel may grant more than it has and then kill the process. */
static int fits(const struct bench_buffers *b, size_t beside)
{
    double all = b->n * ((double)b->in_len + (double)b->out_len);
    double image = (double)longer(b->in_len, b->out_len);
    double need = (b->device ? image : all) + 2 * (double)beside;

    return need * b->n_local < bench_available_memory();
}

static int get(const struct bench_buffers *b, void **at, size_t len)
{
    if (b->device)
        return b->device->alloc(at, len);
    return b->is_shared ? coll_mem_alloc(at, len)
                        : posix_memalign(at, PAGE, len);
}

static void put(const struct bench_buffers *b, void *at)
{
    if (b->device)
        b->device->free(at);
    else if (b->is_shared)
        coll_mem_free(at);
    else
        free(at);
}

int bench_buffers_get(const struct bench_op *op, const struct bench_args *args,
                      const struct bench_device *device, struct coll_comm *comm,
                      struct bench_buffers *b)
{
    size_t len = bench_elements(op, args, comm, op->has_data ? args->last : 0) *
                 coll_type_size(args->type);
    int is_short = 0;

    *b = (struct bench_buffers){.op = op,
                                .device = device,
                                .is_shared = args->is_shared,
                                .n_local = coll_comm_local_size(comm)};
    b->n = args->varies ? BENCH_VARIED : 1;
    b->in_blocks = n_blocks(op, comm, args->root, op->in);
    b->out_blocks = n_blocks(op, comm, args->root, op->out);
    b->in_len = len * b->in_blocks;
    b->out_len = len * b->out_blocks;
    if (!fits(b, args->beside))
        return -1;
    if (device)
        b->image = malloc(longer(b->in_len, b->out_len));
    for (int i = 0; i < b->n && !is_short; i++)
        is_short =
            get(b, &b->in[i], b->in_len) || get(b, &b->out[i], b->out_len);
    return is_short || (device && !b->image) ? -1 : 0;
}

void bench_buffers_put(struct bench_buffers *b)
{
    for (int i = 0; i < b->n; i++) {
        put(b, b->in[i]);
        put(b, b->out[i]);
    }
    free(b->image);
}

/* ---- content ------------------------------------------------------------- */

static size_t block_len(const struct bench_case *c)
{
    return c->count * coll_type_size(c->type);
}

int bench_buffers_fill(const struct bench_buffers *b,
                       const struct bench_case *c, int i)
{
    size_t in = block_len(c) * b->in_blocks, out = block_len(c) * b->out_blocks;
    int rc;

    b->op->fill(c, b->device ? b->image : b->in[i]);
    rc = b->device ? b->device->put(b->in[i], b->image, in) : COLL_OK;
    memset(b->device ? b->image : b->out[i], POISON, out);
    if (!rc && b->device)
        rc = b->device->put(b->out[i], b->image, out);
    return rc;
}

int bench_buffers_verify(const struct bench_buffers *b,
                         const struct bench_case *c, int i, uint64_t *errors)
{
    size_t out = block_len(c) * b->out_blocks;
    int rc = b->device ? b->device->get(b->image, b->out[i], out) : COLL_OK;

    if (!rc)
        *errors += b->op->verify(c, b->device ? b->image : b->out[i]);
    return rc;
}
