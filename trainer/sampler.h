/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler.h - which images a rank trains on, step by step.
 *
 * Where they do not come out even for the ranks, an epoch is filled up with the
 * first ones of its order, again, as by PyTorch's DistributedSampler, and ends
 * with a shorter step that is as long on every rank; or what does not fill a
 * step of all ranks is left out (drops_rest).
 *
 * sampler: an epoch is a permutation of all images, drawn from seed and epoch.
 *   Step s takes the next ranks * batch of it, the same images as with
 *   DistributedSampler.  There rank r has every ranks-th of them from the r-th
 *   on; here each rank has its run of them in rank order, so that the ranks
 *   together see what one rank with the whole batch would, in the same order.
 * stride: rank r has every ranks-th image of the data, from the r-th on, for all
 *   epochs, as by dataset.shard() of TensorFlow; it shuffles those.
 * random: each rank draws from all images, and nobody knows of the others.
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

/* Return the images of a rank in a step, the same number on every rank: the batch
 * but for a last, shorter step. */
size_t sampler_count(const struct sampler *s, size_t step);

/* Return where this rank's part of a step begins, counted in the global batch
 * (its first image), or the indices of its images. */
size_t sampler_first(const struct sampler *s, size_t step);
const uint32_t *sampler_step(const struct sampler *s, size_t step);

#endif
