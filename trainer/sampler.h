/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler.h - which images a rank trains on, step by step.
 *
 * An epoch is a permutation of all images, drawn from seed and epoch.  Step s
 * takes the next ranks * batch of it, and each rank its own part of those in
 * rank order: so the ranks together see what one rank with the whole batch
 * would, in the same order.  What does not fill a step is left out.
 */
#ifndef COLL_TRAINER_SAMPLER_H
#define COLL_TRAINER_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

struct sampler {
    uint64_t seed;
    size_t n_images;
    size_t batch; /* images of a rank in a step */
    int rank, n_ranks;
    size_t n_steps;  /* of an epoch */
    uint32_t *order; /* [n_images], this epoch's */
};

/* Set up a sampler; seed, n_images, batch, rank and n_ranks are set already.
 *
 * Result:    0, or -1 with train_error() set (not even one step fits).
 * Ownership: end it by sampler_fini().
 */
int sampler_init(struct sampler *s);
void sampler_fini(struct sampler *s);

/* Shuffle for this epoch. */
void sampler_start_epoch(struct sampler *s, uint64_t epoch);

/* Return where this rank's part of a step begins, counted in the global batch
 * (a rank's first image) or as images of the epoch's order. */
size_t sampler_first(const struct sampler *s);
const uint32_t *sampler_step(const struct sampler *s, size_t step);

#endif
