/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler.c - Fisher and Yates' shuffle.  Its numbers depend on seed and epoch,
 * so that every rank draws the same order without a message. */
#include "trainer/sampler.h"
#include "trainer/error.h"
#include "trainer/rng.h"
#include "trainer/smaller.h"

#include <stdlib.h>

static size_t divide_up(size_t n, size_t by) { return (n + by - 1) / by; }

/* Return how many indices `order` holds: all that an epoch draws from. */
static size_t order_len(const struct sampler *s)
{
    size_t used = s->n_mine;

    if (s->is_elastic)
        return s->n_images;
    if (s->shard == SHARD_SAMPLER)
        used *= (size_t)s->n_ranks;
    return s->shard != SHARD_STRIDE && used < s->n_images ? s->n_images : used;
}

/* Return the steps of an epoch without a limit. */
static size_t count_steps(const struct sampler *s)
{
    size_t n = s->is_elastic ? s->n_images : s->n_mine;
    size_t by = s->is_elastic ? s->all : s->batch;

    return s->drops_rest ? n / by : divide_up(n, by);
}

int sampler_init(struct sampler *s)
{
    size_t ranks = (size_t)s->n_ranks;

    s->order = NULL;
    s->n_mine =
        s->drops_rest ? s->n_images / ranks : divide_up(s->n_images, ranks);
    s->n_steps = count_steps(s);
    if (s->n_steps == 0)
        return train_refuse("%zu training images do not fill one step of %d x "
                            "%zu; lower --batch-size or raise --limit-train",
                            s->n_images, s->n_ranks, s->batch);
    if (s->most && s->most < s->n_steps)
        s->n_steps = s->most;
    s->order = malloc(order_len(s) * sizeof(*s->order));
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

static void shuffle(uint32_t *order, size_t n, uint64_t key)
{
    for (size_t i = n; i-- > 1;) {
        size_t j = (size_t)rng_below(key, i, i + 1);
        uint32_t was = order[i];

        order[i] = order[j];
        order[j] = was;
    }
}

void sampler_start_epoch(struct sampler *s, uint64_t epoch)
{
    uint64_t key = rng_key(rng_key(s->seed, RNG_SHUFFLE), epoch);
    size_t n = s->n_images, len = order_len(s);
    size_t from = 0, by = 1;

    if (s->shard == SHARD_STRIDE) {
        from = (size_t)s->rank;
        by = (size_t)s->n_ranks;
        n = len;
    }
    if (s->shard != SHARD_SAMPLER)
        key = rng_key(key, (uint64_t)s->rank);
    for (size_t i = 0; i < n; i++)
        s->order[i] = (uint32_t)((from + i * by) % s->n_images);
    shuffle(s->order, n, key);
    for (size_t i = n; i < len; i++)
        s->order[i] = s->order[i - n];
}

/* Return where an elastic step begins in the order; it ends where the next would begin. */
static size_t begin_of(const struct sampler *s, size_t step)
{
    size_t at = step * s->all;

    at = at < s->from ? s->from : at;
    return smaller(at, s->n_images);
}

/* Return how many images of an elastic step are those of lower ranks. */
static size_t before(const struct sampler *s, size_t step, int rank)
{
    size_t n = sampler_count_all(s, step), units = divide_up(n, s->unit);
    size_t at = units * (size_t)rank / (size_t)s->n_ranks * s->unit;

    return smaller(at, n);
}

size_t sampler_count_all(const struct sampler *s, size_t step)
{
    return s->is_elastic ? begin_of(s, step + 1) - begin_of(s, step)
                         : sampler_count(s, step) * (size_t)s->n_ranks;
}

size_t sampler_count(const struct sampler *s, size_t step)
{
    size_t left;

    if (s->is_elastic)
        return before(s, step, s->rank + 1) - before(s, step, s->rank);
    left = s->n_mine - step * s->batch;
    return smaller(left, s->batch);
}

size_t sampler_first(const struct sampler *s, size_t step)
{
    return s->is_elastic ? before(s, step, s->rank)
                         : (size_t)s->rank * sampler_count(s, step);
}

const uint32_t *sampler_step(const struct sampler *s, size_t step)
{
    size_t at = step * s->batch;

    if (s->is_elastic)
        return s->order + begin_of(s, step) + sampler_first(s, step);
    if (s->shard == SHARD_SAMPLER)
        at = at * (size_t)s->n_ranks + sampler_first(s, step);
    return s->order + at;
}
