/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.c - sum blocks in a perfect binary tree, as a binary counter carries.
 */
#include "trainer/blocks.h"
#include "trainer/error.h"

static int is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

/* Return how many blocks n images are cut into. */
static size_t natural_cut(size_t n)
{
    size_t blocks = 1;

    while (blocks < BLOCKS_MOST && n % (2 * blocks) == 0)
        blocks *= 2;
    return blocks;
}

/* Return why n blocks do not fit these ranks, or NULL if they do. */
static const char *why_not(const struct blocks_config *c, size_t n)
{
    if (c->is_rounded)
        return "each rank's sums are rounded to 16 bits";
    if (c->is_ragged)
        return "the last step is shorter, by --drop-last off";
    if (is_power_of_two(n) && n % (size_t)c->n_ranks == 0)
        return NULL;
    return c->needs_batch ? "batch normalization, in batches that are no power "
                            "of two"
                          : "the ranks do not divide the step's blocks";
}

void blocks_cut(struct blocks *b, const struct blocks_config *c)
{
    size_t ranks = (size_t)c->n_ranks, own = c->batch * c->accum;
    size_t n = c->needs_batch ? ranks * c->accum : natural_cut(ranks * own);

    *b = (struct blocks){.why_not = why_not(c, n)};
    b->is_shared = c->deterministic && !b->why_not;
    b->n_all = b->is_shared ? n : ranks;
    b->n = b->n_all / ranks;
    b->len = own / b->n;
}

int blocks_init(struct blocks *b, const struct device *device, size_t n_params)
{
    b->device = device;
    while ((size_t)1 << b->n_sums < b->n) {
        b->sums[b->n_sums] = device->alloc(n_params * sizeof(float));
        if (!b->sums[b->n_sums])
            return train_fail("out of memory for the gradients of %zu blocks; "
                              "leave --deterministic out or use more ranks",
                              b->n);
        b->n_sums++;
    }
    return 0;
}

void blocks_fini(struct blocks *b)
{
    while (b->n_sums > 0)
        b->device->release(b->sums[--b->n_sums]);
}

/* The bits of `block` are a binary counter.  Each 1 stands for a kept sum of that
 * level.  The new block is added to the kept sums below the lowest 0, and the result is
 * kept at that level.  After the last block no sum is kept. */
void blocks_add(struct blocks *b, size_t block, float *gradients, size_t at,
                size_t n)
{
    int level = 0;

    for (; block >> level & 1; level++)
        b->device->add(gradients, b->sums[level] + at, n);
    if (level < b->n_sums)
        b->device->copy(b->sums[level] + at, gradients, n * sizeof(*gradients));
}
