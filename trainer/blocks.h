/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.h - gradients summed in an order that does not depend on the ranks.
 *
 * With --deterministic the images of a step, those of all ranks together, are cut
 * into blocks of equal size.  The gradients of each block are computed separately,
 * and the blocks are summed in a perfect binary tree:
 *
 *   block   0   1   2   3   4   5   6   7
 *           +---+   +---+   +---+   +---+    each of 4 ranks has two blocks,
 *             +-------+       +-------+      each of 2 ranks has four
 *                 +---------------+
 *
 * Each rank has a whole subtree, and libcoll's canonical tree over a power of two
 * of ranks (lib/algo/algo.h) continues it.  So any number of ranks makes the same
 * additions.
 */
#ifndef COLL_TRAINER_BLOCKS_H
#define COLL_TRAINER_BLOCKS_H

#include "trainer/device.h"

#include <stddef.h>

#define BLOCKS_MOST 8    /* of a step, cut for any number of ranks */
#define BLOCKS_LEVELS 32 /* of a rank's tree */

struct model_desc;

/* What decides how the images of a step are cut. */
struct blocks_config {
    int deterministic; /* 0: a rank's images are one block */
    int is_rounded;    /* a rank's sum is rounded before others are added */
    int needs_batch;   /* a layer needs the whole batch at once */
    int is_ragged;     /* the last step of an epoch may be shorter */
    int n_ranks;
    size_t batch, accum; /* a rank's images: batch times accum */
};

struct blocks {
    size_t n, len; /* of a rank: blocks, and images of each */
    size_t n_all;  /* of all ranks */
    int is_shared; /* fewer ranks, or more up to n_all, have the same cut */
    const char *why_not;
    const struct device *device;
    float *sums[BLOCKS_LEVELS]; /* of the device: sums of 1, 2, 4... blocks that
                                 * wait for another one */
    int n_sums;
};

/* Cut the images of a step.
 *
 * Result:    n * len = batch * accum.  If the cut is shared it depends only on
 *            the images of the step (with needs_batch also on batch).  If it is
 *            not, why_not says "batch normalization", or the like.
 */
void blocks_cut(struct blocks *b, const struct blocks_config *config);

/* Allocate the sums of n_params gradients.
 *
 * Shapes:    after blocks_cut().
 * Result:    0, or -1 with train_error() set.
 * Ownership: the caller ends it by blocks_fini() in either case.
 */
int blocks_init(struct blocks *b, const struct device *device, size_t n_params);
void blocks_fini(struct blocks *b);

/* Add the gradients [at, at + n) of a block.
 *
 * Shapes:    gradients[n] of the device; the blocks come in order from 0, and each range
 *            once in each block.
 * Result:    after the last block, gradients = the sum of all blocks; before,
 *            they are kept for that sum.
 */
void blocks_add(struct blocks *b, size_t block, float *gradients, size_t at,
                size_t n);

#endif
