/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler.h - which images a rank trains on, step by step.
 *
 * If the images cannot be divided evenly, there are two ways.  With drops_rest the
 * images that do not fill a step of all ranks are left out.  Without it, the first
 * images of the epoch's order are used again, as in PyTorch's DistributedSampler,
 * and the epoch ends with a shorter step, which has the same length on every rank.
 *
 * sampler: an epoch is a permutation of all images, drawn from seed and epoch.
 *   Step s takes the next ranks * batch of them, the same images as with
 *   DistributedSampler.  There rank r takes every ranks-th image of the step, from
 *   the r-th on.  Here each rank takes a run of images, in rank order, so that all
 *   ranks together have the images of one rank with the whole batch, in its order.
 *   With is_elastic the number of ranks may change within an epoch: step s has the
 *   images from s * all to (s + 1) * all of the order, but for those that were had
 *   before the change.  The ranks have equally many, give or take a unit, and no
 *   image is used twice.
 * stride: in all epochs rank r takes every ranks-th image of the data, from the
 *   r-th on, as dataset.shard() of TensorFlow does, and shuffles them.
 * random: each rank draws from all images, independently of the others.
 */
#ifndef COLL_TRAINER_SAMPLER_H
#define COLL_TRAINER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

enum shard { SHARD_SAMPLER, SHARD_STRIDE, SHARD_RANDOM };

struct sampler {
    uint64_t seed;
    size_t n_images;
    size_t batch; /* images of a rank in a step */
    int rank, n_ranks;
    enum shard shard;
    int drops_rest; /* 1: all steps are whole */
    int is_elastic; /* of `sampler`: */
    size_t all;  /* images of all ranks in a step; batch holds a rank's part */
    size_t unit; /* images that stay together */
    size_t from; /* images of the order that were had before */
    size_t most;    /* steps of an epoch, at most; 0: no limit */
    size_t n_steps; /* of an epoch */
    size_t n_mine;  /* images of a rank in an epoch, with those that are used
                     * twice */
    uint32_t *order; /* of this epoch: those of all ranks (sampler), or of
                      * this rank */
};

/* Set up a sampler; the fields above n_steps are set already.
 *
 * Result:    0, or -1 with train_error() set (not even one step fits).
 * Ownership: the caller ends it by sampler_fini().
 */
int sampler_init(struct sampler *s);
void sampler_fini(struct sampler *s);

/* Shuffle for this epoch. */
void sampler_start_epoch(struct sampler *s, uint64_t epoch);

/* sampler_count: return the images of this rank in a step: the batch, or fewer in a
 * shorter step.  Unless it is elastic, every rank has as many.  sampler_count_all: those
 * of all ranks. */
size_t sampler_count(const struct sampler *s, size_t step);
size_t sampler_count_all(const struct sampler *s, size_t step);

/* sampler_first: return the position of this rank's first image of a step within the
 * global batch.  sampler_step: return the indices of this rank's images of a step. */
size_t sampler_first(const struct sampler *s, size_t step);
const uint32_t *sampler_step(const struct sampler *s, size_t step);

#endif
