/* SPDX-License-Identifier: BSD-3-Clause */
/* train.c - set-up and epochs. */
#include "trainer/train.h"
#include "trainer/clock.h"
#include "trainer/checkpoint.h"
#include "trainer/copies.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/loader.h"
#include "trainer/model.h"
#include "trainer/models.h"
#include "trainer/rng.h"
#include "trainer/smaller.h"
#include "trainer/threads.h"
#include "trainer/train_state.h"
#include "trainer/watch.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- set-up ---- */

static struct data_config data_config_of(const struct trainer *t)
{
    int is_bench = t->args->synthetic;

    return (struct data_config){
        .name = t->args->dataset,
        .dir = t->args->data_dir,
        .limit_train =
            is_bench ? trainer__global_batch(t) : t->args->limit_train,
        .limit_test = is_bench ? 1 : t->args->limit_test,
        .seed = t->args->seed,
        .channels = t->desc->in.channels,
        .height = t->desc->in.height,
        .width = t->desc->in.width,
    };
}

int trainer_load(struct trainer *t)
{
    struct data_config config;

    t->desc = model_find(t->args->model);
    config = data_config_of(t);
    return dataset_load(&t->data, &config);
}

/* Newcomers have loaded the data already. */
static int load_data(struct trainer *t, int status)
{
    struct data_config config = data_config_of(t);

    if (!t->ddp->is_newcomer &&
        dataset_load_shared(&t->data, &config, t->ddp, status))
        return -1;
    if (t->args->normalize_meanstd)
        pixel_scale_meanstd(&t->scale, &t->data.train);
    else
        pixel_scale_unit(&t->scale);
    if (status)
        return -1;
    return t->device->images.hold(&t->data.train) ||
                   t->device->images.hold(&t->data.test)
               ? -1
               : 0;
}

/* Return the images of a pass, so that a batch needs few passes of similar
 * size. */
static int choose_chunk(const struct device *device, size_t batch)
{
    size_t most = device->most_images ? (size_t)device->most_images : batch;
    size_t passes = (batch + most - 1) / most;

    return (int)((batch + passes - 1) / passes);
}

/* With blocks, each block is computed by itself. */
static size_t most_in_pass(const struct trainer *t)
{
    return t->blocks.is_shared ? t->blocks.len : t->args->batch_size;
}

static int make_models(struct trainer *t)
{
    struct model_config config = {
        .desc = t->desc,
        .device = t->device,
        .channels = t->data.train.channels,
        .height = t->data.train.height,
        .width = t->data.train.width,
        .smoothing = t->args->label_smoothing,
        .chunk = model_needs_batch(t->desc)
                     ? (int)t->args->batch_size
                     : choose_chunk(t->device, most_in_pass(t)),
    };
    size_t share = t->data.test.n / (size_t)t->ddp->size + 1;
    size_t asked = t->args->test_batch_size;
    size_t test_chunk = smaller(asked ? asked : (size_t)config.chunk, share);

    if (model_create(&t->model, &config) ||
        model_create_view(&t->eval, t->model, (int)test_chunk))
        return -1;
    t->test.index = calloc(test_chunk, sizeof(*t->test.index));
    t->test.labels = t->device->alloc(test_chunk);
    t->step.record = t->device->alloc(sizeof(*t->step.record));
    if (!t->test.index || !t->test.labels || !t->step.record)
        return train_fail("out of memory for %zu labels; lower "
                          "--test-batch-size",
                          test_chunk);
    /* Rank 0's parameters will replace all others', which differ until then: a rank
     * that did not get them would be noticed. */
    model_init_params(t->model, (enum model_init_kind)t->args->init,
                      t->args->seed + (uint64_t)t->ddp->rank);
    return 0;
}

/* A thread that takes a core from the ranks would cost more than it gains. */
static int is_core_idle(const struct trainer *t)
{
    return threads_allowed() > t->args->threads && ddp_has_spare_core(t->ddp);
}

static int make_loader(struct trainer *t)
{
    int kind = t->args->prefetch;
    int may_help =
        kind == PREFETCH_ON || (kind == PREFETCH_AUTO && is_core_idle(t));

    return loader_create(&t->loader, t->model, t->device,
                         may_help && !t->device->is_async);
}

static int make_optim(struct trainer *t)
{
    optim_set(&t->optim, t->args);
    t->optim.lr = rate_full(&t->rate);
    return optim_init(&t->optim, t->device, ddp_n_own(t->ddp, t->ddp->rank));
}

/* Begin with the device that the options name; main() has replaced auto. */
static int make_device(struct trainer *t)
{
    const struct args *args = t->args;
    struct device_config config = {
        .precision = (enum precision)args->precision,
        .local_rank = ddp_local_rank(t->ddp),
        .threads = (int)args->threads,
        .is_deterministic = args->deterministic,
        .has_overlap = !args->overlap_off,
    };

    t->device = t->ddp->device = device_find(args->device, &config.number);
    phase_init(&t->phases, t->device, args->breakdown);
    t->ddp->log = &t->phases;
    return t->device->init(&config);
}

int trainer_init(struct trainer *t)
{
    int st = 0;

    t->desc = model_find(t->args->model);
    if (!t->ddp->is_newcomer) /* to which the ranks have told it */
        t->ddp->has_gpus = strcmp(t->args->device, "cpu") != 0;
    if (t->ddp->rank == 0 && trainer__probe(t))
        st = -1;
    if (make_device(t) || trainer__make_replay(t))
        st = -1;
    /* newcomers do it with the ranks that they join */
    if (!t->ddp->is_newcomer && t->ddp->has_gpus && ddp_renew(t->ddp))
        return -1;
    trainer__cut(t, t->ddp->n_first); /* newcomers have the same passes */
    if (load_data(t, st) || make_models(t) || make_loader(t) ||
        trainer__divide(t) || make_optim(t) || trainer__make_rescue(t))
        return -1;
    return t->ddp->rank == 0 ? trainer__resume(t) : 0;
}

/* End what is in the device's memory, and the device. */
static void fini_device(struct trainer *t)
{
    trainer__drop_rescue(t);
    trainer__free_whole(t);
    t->device->release(t->test.labels);
    t->device->release(t->step.record);
    model_destroy(t->eval);
    model_destroy(t->model);
    t->device->images.let_go(&t->data.train);
    t->device->images.let_go(&t->data.test);
    t->device->fini();
}

void trainer_fini(struct trainer *t)
{
    trainer__drop_replay(t);
    ddp_drop_buckets(t->ddp);
    loader_destroy(t->loader); /* first, since it reads what is freed below */
    folder_fini(&t->saving.folder);
    sampler_fini(&t->sampler);
    blocks_fini(&t->blocks);
    optim_fini(&t->optim);
    phase_fini(&t->phases);
    free(t->test.index);
    if (t->device) /* else trainer_init() was never called */
        fini_device(t);
    dataset_fini(&t->data);
    *t = (struct trainer){.args = t->args, .ddp = t->ddp};
}

/* ---- training ---- */

/* An epoch may have been cut short, while images of it were being gathered. */
static void start_epoch(struct trainer *t, uint64_t epoch)
{
    loader_drop(t->loader);
    sampler_start_epoch(&t->sampler, epoch);
}

void trainer__open_tally(struct trainer *t)
{
    t->tally = (struct tally){.is_open = 1,
                              /* of a resumed epoch */
                              .done = t->skip * trainer__global_batch(t),
                              .start = now(),
                              .data = t->data_seconds,
                              .phases = t->phases.sums};
}

void trainer__count_step(struct trainer *t)
{
    struct tally *sum = &t->tally;

    sum->loss += t->step.loss;
    sum->n_right += t->step.n_right;
    sum->n_images += t->step.images;
    sum->n_steps++;
    t->skip++;
    t->tally.done += t->step.all;
    t->rescue.in_step = 0;
    t->rescue.n_counted++;
}

static struct progress_stats progress_of(const struct trainer *t)
{
    double n = (double)t->tally.n_images, n_step = (double)t->step.images;

    return (struct progress_stats){
        .step = t->skip,
        .loss = n > 0 ? t->tally.loss / n : 0,
        .accuracy = n > 0 ? t->tally.n_right / n : 0,
        .seconds = now() - t->tally.start,
        .step_loss = n_step > 0 ? t->step.loss / n_step : 0,
    };
}

struct epoch_stats trainer_figures(const struct trainer *t)
{
    const struct tally *sum = &t->tally;
    struct epoch_stats stats = {
        .epoch = t->epoch,
        .n_steps = sum->n_steps,
        .n_images = sum->n_images,
        .n_counted = t->tally.done,
        .loss = sum->loss,
        .accuracy = sum->n_right,
        .lr = t->optim.lr,
        .seconds = now() - sum->start,
        .data_seconds = t->data_seconds - sum->data,
    };

    for (int i = 0; i < N_PHASES; i++)
        stats.phases.seconds[i] =
            t->phases.sums.seconds[i] - sum->phases.seconds[i];
    stats.comm_seconds = stats.phases.seconds[PHASE_COMM];
    return stats;
}

int trainer_epoch(struct trainer *t, struct epoch_stats *stats,
                  void (*progress)(void *arg, const struct progress_stats *now),
                  void *arg)
{
    start_epoch(t, t->epoch);
    if (!t->tally.is_open)
        trainer__open_tally(t);
    while (t->skip < t->sampler.n_steps) {
        struct progress_stats p;

        if (trainer__step(t, t->skip))
            return -1;
        trainer__count_step(t);
        p = progress_of(t);
        progress(arg, &p);
        if (stop_asked(t->ddp, &t->pace, &t->stop))
            return -1;
        if ((t->stop || t->pace.n_new) && t->skip < t->sampler.n_steps)
            return ddp_await_all(t->ddp) ? -1 : 1;
    }
    if (ddp_await_all(t->ddp) || phase_read(&t->phases))
        return -1;
    t->epoch++;
    t->skip = t->sampler.from = 0;
    t->tally.is_trained = 1;
    t->tally.is_open = 0;
    *stats = trainer_figures(t);
    return 0;
}

void trainer_close_epoch(struct trainer *t)
{
    t->tally.is_trained = 0;
    t->tally.done = 0;
}

int trainer_repeat(struct trainer *t, uint64_t n)
{
    start_epoch(t, 0);
    for (; n > 0 && !t->stop; n--)
        if (trainer__step(t, 0) || stop_asked(t->ddp, &t->pace, &t->stop))
            return -1;
    return ddp_await_all(t->ddp) || phase_read(&t->phases) ? -1 : 0;
}

int trainer_is_done(const struct trainer *t)
{
    return t->epoch >= t->args->epochs || t->test.has_reached;
}

int trainer_max(struct trainer *t, double *value)
{
    return ddp_max(t->ddp, value, 1);
}
