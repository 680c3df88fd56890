/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler.c - Fisher and Yates' shuffle, with numbers named by seed and epoch,
 * so that every rank draws the same order without a message. */
#include "trainer/sampler.h"
#include "trainer/error.h"
#include "trainer/rng.h"

#include <stdlib.h>

int sampler_init(struct sampler *s)
{
    size_t step = (size_t)s->n_ranks * s->batch;

    s->order = NULL;
    s->n_steps = s->n_images / step;
    if (s->n_steps == 0)
        return train_fail("%zu training images do not fill one step of %d x "
                          "%zu; lower --batch-size or raise --limit-train",
                          s->n_images, s->n_ranks, s->batch);
    s->order = malloc(s->n_images * sizeof(*s->order));
    if (!s->order)
        return train_fail("out of memory for the order of %zu images; lower "
                          "--limit-train", s->n_images);
    return 0;
}

void sampler_fini(struct sampler *s)
{
    free(s->order);
    s->order = NULL;
}

void sampler_start_epoch(struct sampler *s, uint64_t epoch)
{
    uint64_t key = rng_key(rng_key(s->seed, RNG_SHUFFLE), epoch);

    for (size_t i = 0; i < s->n_images; i++)
        s->order[i] = (uint32_t)i;
    for (size_t i = s->n_images; i-- > 1;) {
        size_t j = (size_t)rng_below(key, i, i + 1);
        uint32_t was = s->order[i];

        s->order[i] = s->order[j];
        s->order[j] = was;
    }
}

size_t sampler_first(const struct sampler *s)
{
    return (size_t)s->rank * s->batch;
}

const uint32_t *sampler_step(const struct sampler *s, size_t step)
{
    return s->order + step * (size_t)s->n_ranks * s->batch + sampler_first(s);
}
