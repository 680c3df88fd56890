/* SPDX-License-Identifier: BSD-3-Clause */
/* train_divide.c - how a run is divided among its ranks: images, blocks, buckets and
 * the learning rate.
 *
 * Everything in a trainer that depends on the number of ranks is made here, from the
 * options and t->ddp.
 */
#include "trainer/args.h"
#include "trainer/ddp.h"
#include "trainer/model.h"
#include "trainer/models.h"
#include "trainer/train.h"
#include "trainer/train_state.h"
#include "trainer/wire.h"

#include <math.h>

#define FIRST_BUCKET 1 /* MiB, as in PyTorch */

size_t trainer__global_batch(const struct trainer *t)
{
    return t->args->batch_size * t->args->accum * (size_t)t->ddp->size;
}

static enum wire wire_of(const struct args *args)
{
    return args->fp16_allreduce   ? WIRE_F16
           : args->bf16_allreduce ? WIRE_BF16
                                  : WIRE_F32;
}

void trainer__cut(struct trainer *t)
{
    const struct args *a = t->args;
    struct blocks_config config = {
        .deterministic = a->deterministic,
        .is_rounded = wire_of(a) != WIRE_F32,
        .n_ranks = t->ddp->size,
        .batch = a->batch_size,
        .accum = a->accum,
        .needs_batch = model_needs_batch(t->desc),
        .is_ragged = a->drop_last_off,
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
        .sums = t->blocks.is_shared,
        .zero = a->zero,
        .wire = wire_of(a),
    };

    return ddp_make_buckets(t->ddp, t->model, &config);
}

static int make_sampler(struct trainer *t)
{
    t->sampler = (struct sampler){
        .seed = t->args->seed,
        .n_images = t->data.train.n,
        .batch = t->args->batch_size * t->args->accum,
        .rank = t->ddp->rank,
        .n_ranks = t->ddp->size,
        .shard = (enum shard)t->args->shard,
        .drops_rest = !t->args->drop_last_off,
        .most = t->args->limit_steps,
    };
    return sampler_init(&t->sampler);
}

int trainer__divide(struct trainer *t)
{
    if (blocks_init(&t->blocks, t->device, model_n_params(t->model)) ||
        make_buckets(t) || make_sampler(t))
        return -1;
    rate_init(&t->rate, t->args, t->ddp->size, t->sampler.n_steps);
    return 0;
}
