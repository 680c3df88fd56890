/* SPDX-License-Identifier: BSD-3-Clause */
/* train_divide.c - how a run is divided among its ranks: images, blocks, buckets and
 * the learning rate.
 *
 * Everything in a trainer that depends on the number of ranks is made here, from the
 * options and t->ddp.
 */
#include "trainer/args.h"
#include "trainer/ddp.h"
#include "trainer/device.h"
#include "trainer/model.h"
#include "trainer/models.h"
#include "trainer/train.h"
#include "trainer/train_state.h"
#include "trainer/wire.h"

#include <math.h>

#define FIRST_BUCKET 1 /* MiB, as in PyTorch */

static size_t divide_up(size_t n, size_t by) { return (n + by - 1) / by; }

/* With --elastic --global-batch-size stays, whatever the number of ranks. */
static size_t batch_of(const struct args *a, int n_ranks)
{
    if (a->elastic && a->global_batch_size)
        return a->global_batch_size;
    return a->batch_size * a->accum * (size_t)n_ranks;
}

size_t trainer__global_batch(const struct trainer *t)
{
    return batch_of(t->args, t->ddp->size);
}

static enum wire wire_of(const struct args *args)
{
    return args->fp16_allreduce   ? WIRE_F16
           : args->bf16_allreduce ? WIRE_BF16
                                  : WIRE_F32;
}

/* Return how many images stay together: those that are normalized together. */
static size_t unit_of(const struct trainer *t)
{
    return model_needs_batch(t->desc) ? t->args->batch_size : 1;
}

/* Return the most images that one of so many ranks has in a step. */
static size_t most_of_rank(const struct trainer *t, int n_ranks)
{
    size_t units = divide_up(batch_of(t->args, n_ranks), unit_of(t));

    return divide_up(units, (size_t)n_ranks) * unit_of(t);
}

/* Return how many images of the epoch are not to be divided any more. */
static size_t images_had(const struct trainer *t)
{
    return t->tally.is_trained ? 0 : t->tally.done;
}

/* Return 1 if a step may be shorter than others, or the ranks' parts of it differ. */
static int is_ragged(const struct trainer *t, int n_ranks)
{
    size_t all = batch_of(t->args, n_ranks);

    return t->args->drop_last_off || images_had(t) % all ||
           most_of_rank(t, n_ranks) * (size_t)n_ranks != all;
}

void trainer__cut(struct trainer *t, int n_ranks)
{
    const struct args *a = t->args;
    struct blocks_config config = {
        .deterministic = a->deterministic,
        .is_rounded = wire_of(a) != WIRE_F32,
        .n_ranks = n_ranks,
        .batch = unit_of(t),
        .accum = most_of_rank(t, n_ranks) / unit_of(t),
        .needs_batch = model_needs_batch(t->desc),
        .is_ragged = is_ragged(t, n_ranks),
    };

    blocks_cut(&t->blocks, &config);
}

static size_t bytes_of(double mib)
{
    return (size_t)(fmin(mib, 1e6) * 1048576);
}

static int make_buckets(struct trainer *t)
{
    const struct args *a = t->args;
    struct ddp_config config = {
        .bucket_bytes = bytes_of(a->bucket_mb),
        .first_bytes = bytes_of(fmin(FIRST_BUCKET, a->bucket_mb)),
        .overlap = !a->overlap_off,
        .sums = t->blocks.is_shared || a->elastic,
        .zero = a->zero,
        .wire = wire_of(a),
        .score = &t->step.record->score,
    };

    return ddp_make_buckets(t->ddp, t->model, &config);
}

static int make_sampler(struct trainer *t)
{
    t->sampler = (struct sampler){
        .seed = t->args->seed,
        .n_images = t->data.train.n,
        .batch = most_of_rank(t, t->ddp->size),
        .rank = t->ddp->rank,
        .n_ranks = t->ddp->size,
        .shard = (enum shard)t->args->shard,
        .drops_rest = !t->args->drop_last_off,
        .is_elastic = t->args->elastic,
        .all = trainer__global_batch(t),
        .unit = unit_of(t),
        .from = images_had(t),
        .most = t->args->limit_steps,
    };
    return sampler_init(&t->sampler);
}

int trainer__divide(struct trainer *t)
{
    trainer__cut(t, t->ddp->size);
    if (blocks_init(&t->blocks, t->device, model_n_params(t->model)) ||
        make_buckets(t) || make_sampler(t))
        return -1;
    rate_init(&t->rate, t->args,
              t->args->global_batch_size ? t->ddp->n_first : t->ddp->size,
              t->sampler.n_steps);
    return 0;
}
