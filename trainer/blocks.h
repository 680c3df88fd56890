/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.h - gradients summed in an order that knows no ranks.
 *
 * With --deterministic the images of a step, of all ranks together, are cut into
 * blocks of equal size.  Each block's gradients are made by themselves, and the
 * blocks are summed in a perfect binary tree:
 *
 *   block   0   1   2   3   4   5   6   7
 *           +---+   +---+   +---+   +---+    of 4 ranks each makes two blocks
 *             +-------+       +-------+      of 2 ranks four, and their sum
 *                 +---------------+
 *
 * A rank has a whole subtree, and libcoll's canonical tree over a power of two
 * of ranks (lib/algo/algo.h) goes on where it ends.  So whatever the number of
 * ranks, the same additions are made.
 */
#ifndef COLL_TRAINER_BLOCKS_H
#define COLL_TRAINER_BLOCKS_H

#include "trainer/device.h"

#include <stddef.h>

#define BLOCKS_MOST 8    /* of a step, cut for any number of ranks */
#define BLOCKS_LEVELS 32 /* of a rank's tree */

struct model_desc;

/* What the images of a step are cut by. */
struct blocks_config {
    int deterministic; /* 0: a rank's images are one block */
    int is_rounded;    /* a rank's sum is rounded before others are added */
    int needs_batch;   /* layers must see a batch at once */
    int is_ragged;     /* the last step of an epoch may be shorter */
    int n_ranks;
    size_t batch, accum; /* a rank's images: batch times accum */
};

struct blocks {
    size_t n, len; /* of a rank: blocks, and images in each */
    size_t n_all;  /* of all ranks */
    int is_shared; /* fewer ranks, or more up to n_all, cut the same way */
    const char *why_not;
    const struct device *device;
    float *sums[BLOCKS_LEVELS]; /* of 1, 2, 4... blocks, to be added to */
    int n_sums;
};

/* Cut a step's images.
 *
 * Result:    n * len = batch * accum.  Where it is shared the cut depends on the
 *            images of the step alone (with needs_batch, on batch too);
 *            elsewhere why_not says "batch normalization", or the like.
 */
void blocks_cut(struct blocks *b, const struct blocks_config *config);

/* Make room for the sums of n_params gradients.
 *
 * Shapes:    after blocks_cut().
 * Result:    0, or -1 with train_error() set.
 * Ownership: end it by blocks_fini() either way.
 */
int blocks_init(struct blocks *b, const struct device *device, size_t n_params);
void blocks_fini(struct blocks *b);

/* Gradients [at, at + n) of a block are made.
 *
 * Shapes:    gradients[n], block by block from 0, each range once in each.
 * Result:    after the last block, gradients = the sum over all of them; before,
 *            they were put aside.
 */
void blocks_add(struct blocks *b, size_t block, float *gradients, size_t at,
                size_t n);

#endif
