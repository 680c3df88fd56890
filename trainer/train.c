/* SPDX-License-Identifier: BSD-3-Clause */
/* train.c - set-up and the training step.
 *
 * A step: gather images, forward, loss, backward, chunk by chunk; average the
 * gradients over the ranks; update the parameters.  Gradients are divided by
 * the rank's own batch, so that their average is that of the global batch.  If
 * their bits must not depend on the ranks, they are divided by the global
 * batch, and summed.
 */
#include "trainer/train.h"
#include "trainer/checkpoint.h"
#include "trainer/copies.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/loader.h"
#include "trainer/model.h"
#include "trainer/models.h"
#include "trainer/rng.h"
#include "trainer/threads.h"
#include "trainer/train_state.h"
#include "trainer/watch.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- set-up ---- */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

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
    return t->device->hold(&t->data.train) || t->device->hold(&t->data.test)
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
    if (!t->test.index || !t->test.labels)
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
    return t->device->init(&config);
}

int trainer_init(struct trainer *t)
{
    int st = 0;

    t->desc = model_find(t->args->model);
    if (t->ddp->rank == 0 && trainer__probe(t))
        st = -1;
    if (make_device(t))
        st = -1;
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
    model_destroy(t->eval);
    model_destroy(t->model);
    t->device->let_go(&t->data.train);
    t->device->let_go(&t->data.test);
    t->device->fini();
}

void trainer_fini(struct trainer *t)
{
    ddp_drop_buckets(t->ddp);
    loader_destroy(t->loader); /* first, since it reads what is freed below */
    folder_fini(&t->saving.folder);
    sampler_fini(&t->sampler);
    blocks_fini(&t->blocks);
    optim_fini(&t->optim);
    free(t->test.index);
    if (t->device) /* else trainer_init() was never called */
        fini_device(t);
    dataset_fini(&t->data);
    *t = (struct trainer){.args = t->args, .ddp = t->ddp};
}

/* ---- training ---- */

/* A block whose gradients are being computed. */
struct finishing {
    struct trainer *t;
    size_t block;
};

/* The gradients of this layer and of later ones are written for this block;
 * after the last block they are this rank's. */
static int layer_done(void *arg, int layer)
{
    const struct finishing *f = arg;
    struct trainer *t = f->t;
    const struct layer *l = model_layer(t->model, layer);
    size_t at = (size_t)(l->dweights - model_gradients(t->model));

    blocks_add(&t->blocks, f->block, l->dweights, at,
               model_layer_params(t->model, layer));
    return f->block + 1 == t->blocks.n ? ddp_layer_done(t->ddp, layer) : 0;
}

/* Return the factor of one image's loss in the gradients. */
static float image_scale(const struct trainer *t)
{
    return 1 / (float)(t->ddp->config.sums ? t->step.all : t->step.images);
}

/* Images of one pass: n of this rank's images of a step, from number `at` on.
 */
struct piece {
    size_t step, at;
    int n;
};

/* Return the piece that begins there, all of one block. */
static struct piece piece_at(const struct trainer *t, size_t step, size_t at)
{
    size_t len = t->blocks.len;
    size_t end =
        smaller((at / len + 1) * len, sampler_count(&t->sampler, step));

    return (struct piece){
        step, at, (int)smaller(end - at, (size_t)model_chunk(t->model))};
}

static struct images_pick pick_of(const struct trainer *t,
                                  const struct piece *p)
{
    uint64_t key = rng_key(t->args->seed, RNG_AUGMENT);

    return (struct images_pick){
        .images = &t->data.train,
        .index = sampler_step(&t->sampler, p->step) + p->at,
        .n = p->n,
        .scale = &t->scale,
        .augment = (enum augment)t->args->augment,
        .key = rng_key(rng_key(key, t->epoch), p->step),
        .first = sampler_first(&t->sampler, p->step) + p->at,
    };
}

/* Get this piece, and let the loader begin with the one after it, of this step
 * or of the next.  Returns the labels. */
static const unsigned char *load_piece(struct trainer *t, const struct piece *p)
{
    size_t at = p->at + (size_t)p->n;
    int is_last = at == t->step.images;
    double start = now(), span = phase_begin();
    struct images_pick pick = pick_of(t, p);
    const unsigned char *labels = loader_take(t->loader, &pick);

    if (!is_last || p->step + 1 < t->sampler.n_steps) {
        struct piece next = piece_at(t, p->step + is_last, is_last ? 0 : at);

        pick = pick_of(t, &next);
        loader_ask(t->loader, &pick);
    }
    t->data_seconds += now() - start;
    phase_end(&t->phases, PHASE_DATA, span);
    return labels;
}

/* Note a phase.  With --breakdown the device's work counts for the phase that it belongs
 * to; an error is the next function's. */
static void end_phase(struct trainer *t, enum phase phase, double begin)
{
    if (t->args->breakdown)
        t->device->order.wait();
    phase_end(&t->phases, phase, begin);
}

/* Add the gradients of a piece.  The last piece starts buckets, so the loss must
 * have been checked before it: see watch_average(). */
static int learn_piece(struct trainer *t, const struct piece *p,
                       struct pass *pass, struct model_score *score,
                       double loss)
{
    struct finishing block = {t, p->at / t->blocks.len};
    size_t end = smaller((block.block + 1) * t->blocks.len, t->step.images);
    int is_last = p->at + (size_t)p->n == end;
    const unsigned char *labels = load_piece(t, p);
    double span = phase_begin();
    int st;

    pass->first = t->step.first + p->at;
    pass->n = p->n;
    if (model_forward(t->model, pass))
        return -1;
    if (model_loss(t->model, labels, p->n, image_scale(t), score) ||
        watch_pass(t, t->model, p->n, score->loss))
        return -1;
    end_phase(t, PHASE_FORWARD, span);
    span = phase_begin();
    if (is_last && isfinite(loss + score->loss))
        st = model_backward(t->model, pass, layer_done, &block);
    else
        st = model_backward(t->model, pass, NULL, NULL);
    end_phase(t, PHASE_BACKWARD, span);
    return st;
}

/* Add up the squares of this rank's parts of the averages, in the order of
 * parameters, so that the cut into buckets has no effect. */
static int sum_squares(const struct trainer *t, double *sum)
{
    const float *g = model_gradients(t->model);

    *sum = 0;
    if (!t->args->zero)
        return t->device->squares(g, model_n_params(t->model), sum);
    for (int i = t->ddp->n_buckets; i-- > 0;) {
        struct ddp_part part = ddp_part(t->ddp, i, t->ddp->rank);

        if (t->device->squares(g + part.first, part.count, sum))
            return -1;
    }
    return 0;
}

/* Scale the averaged gradients down to --clip-norm, by PyTorch's rule. */
static int clip(struct trainer *t)
{
    double squares, most = t->args->clip_norm;

    if (sum_squares(t, &squares) ||
        (t->args->zero && ddp_sum(t->ddp, &squares, 1)))
        return -1;
    if (sqrt(squares) <= most)
        return 0;
    t->device->scale(model_gradients(t->model), model_n_params(t->model),
                     (float)(most / (sqrt(squares) + 1e-6)));
    return 0;
}

/* With ZeRO and --elastic: no rank gets the others' parameters before all have copies of
 * their shards.  So if one rank has finished a step, all ranks can. */
static int gather_after_copies(struct trainer *t)
{
    if (copies_take(t))
        return -1;
    for (int i = t->ddp->n_buckets; i-- > 0;)
        if (ddp_part_moved(t->ddp, i))
            return -1;
    return ddp_await_all(t->ddp);
}

/* Make the optimizer's step.  With ZeRO parameters still arrive when this
 * returns; the next forward pass waits for each layer's. */
static int move_params(struct trainer *t)
{
    int keeps_copies = t->args->zero && t->args->elastic;
    struct optim *o = &t->optim;

    if (t->args->clip_norm > 0 && clip(t))
        return -1;
    o->lr = rate_at(&t->rate, ++t->rate.step);
    o->step++;
    for (int i = t->ddp->n_buckets; i-- > 0;) {
        struct ddp_part mine = ddp_part(t->ddp, i, t->ddp->rank);
        struct optim_part part = {
            .at = mine.at,
            .n = mine.count,
            .params = model_params(t->model) + mine.first,
            .gradients = model_gradients(t->model) + mine.first,
        };

        t->device->step(o, &part);
        if (!keeps_copies && ddp_part_moved(t->ddp, i))
            return -1;
    }
    trainer__params_changed(t);
    if (keeps_copies)
        return gather_after_copies(t);
    return t->args->overlap_off ? ddp_await_all(t->ddp) : 0;
}

static int layer_needed(void *ddp, int layer) { return ddp_await(ddp, layer); }

static void begin_step(struct trainer *t, size_t step)
{
    t->step.all = sampler_count_all(&t->sampler, step);
    t->step.images = sampler_count(&t->sampler, step);
    t->step.first = sampler_first(&t->sampler, step);
    t->step.loss = t->step.n_right = 0;
    if (t->step.images == 0) /* a rank without images adds nothing */
        model_clear_gradients(t->model);
    trainer__begin_rescue(t);
}

static int train_step(struct trainer *t, size_t step)
{
    uint64_t key = rng_key(t->args->seed, RNG_DROPOUT);
    struct pass pass = {.is_training = 1,
                        .keeps_all = t->args->dropout_off,
                        .key = rng_key(rng_key(key, t->epoch), step),
                        .needs = layer_needed,
                        .arg = t->ddp};
    double loss = 0, span;
    int st;

    begin_step(t, step);
    for (size_t at = 0; at < t->step.images;) {
        struct piece piece = piece_at(t, step, at);
        struct model_score score;

        pass.is_first = at % t->blocks.len == 0;
        if (pass.is_first)
            model_clear_gradients(t->model);
        if (learn_piece(t, &piece, &pass, &score, loss))
            return -1;
        at += (size_t)piece.n;
        loss += score.loss;
        t->step.n_right += score.n_right;
    }
    t->step.loss = loss;
    if (watch_average(t, step, loss))
        return -1;
    span = phase_begin();
    st = move_params(t);
    end_phase(t, PHASE_OPTIMIZER, span);
    return st;
}

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
                              .comm = t->ddp->seconds,
                              .data = t->data_seconds,
                              .phases = t->phases};
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
        .comm_seconds = t->ddp->seconds - sum->comm,
        .data_seconds = t->data_seconds - sum->data,
    };

    for (int i = 0; i < N_PHASES; i++)
        stats.phases.seconds[i] = t->phases.seconds[i] - sum->phases.seconds[i];
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

        if (train_step(t, t->skip))
            return -1;
        trainer__count_step(t);
        p = progress_of(t);
        progress(arg, &p);
        if (stop_asked(t->ddp, &t->pace, &t->stop))
            return -1;
        if ((t->stop || t->pace.n_new) && t->skip < t->sampler.n_steps)
            return ddp_await_all(t->ddp) ? -1 : 1;
    }
    if (ddp_await_all(t->ddp))
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
        if (train_step(t, 0) || stop_asked(t->ddp, &t->pace, &t->stop))
            return -1;
    return ddp_await_all(t->ddp);
}

int trainer_is_done(const struct trainer *t)
{
    return t->epoch >= t->args->epochs || t->test.has_reached;
}

int trainer_max(struct trainer *t, double *value)
{
    return ddp_max(t->ddp, value, 1);
}
