/* SPDX-License-Identifier: BSD-3-Clause */
/* step.c - a training step: the host decides its numbers; then all work of the device and of
 * the exchange is put.  The host reads what the step has left before parameters are
 * updated; where the work is a graph, after it.
 *
 * The work: gather images, forward, loss, backward, chunk by chunk; average the gradients
 * over the ranks; update the parameters.  Gradients are divided by the rank's own batch, so
 * that their average is that of the global batch.  If their bits must not depend on the
 * ranks, they are divided by the global batch, and summed.
 *
 * A loss that is not finite has no useful gradients: one NaN stands for them, the canary,
 * which the average brings to every rank without a message of its own.  All ranks see the
 * same average, so all leave their parameters alone, and stop at the same step.
 */
#include "trainer/clock.h"
#include "trainer/copies.h"
#include "trainer/ddp.h"
#include "trainer/loader.h"
#include "trainer/model.h"
#include "trainer/rng.h"
#include "trainer/smaller.h"
#include "trainer/train.h"
#include "trainer/train_state.h"
#include "trainer/watch.h"

#include <math.h>

/* ---- passes ---- */

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

/* Return the pick of a piece, or of all images of the step as one. */
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
    double start = now();
    struct phase_span span = phase_begin(&t->phases, PHASE_DATA);
    struct images_pick pick = pick_of(t, p);
    const unsigned char *labels = loader_take(t->loader, &pick);

    if (!is_last || p->step + 1 < t->sampler.n_steps) {
        struct piece next = piece_at(t, p->step + is_last, is_last ? 0 : at);

        pick = pick_of(t, &next);
        loader_ask(t->loader, &pick);
    }
    t->data_seconds += now() - start;
    phase_end(&t->phases, span);
    return labels;
}

static int layer_needed(void *ddp, int layer) { return ddp_await(ddp, layer); }

static struct pass pass_of(const struct trainer *t, size_t step)
{
    uint64_t key = rng_key(t->args->seed, RNG_DROPOUT);

    return (struct pass){.is_training = 1,
                         .keeps_all = t->args->dropout_off,
                         .key = rng_key(rng_key(key, t->epoch), step),
                         .needs = layer_needed,
                         .arg = t->ddp};
}

/* Compute a piece's loss, and add it to the step's. */
static int judge_piece(struct trainer *t, const struct piece *p,
                       struct pass *pass)
{
    const unsigned char *labels = load_piece(t, p);
    struct phase_span span = phase_begin(&t->phases, PHASE_FORWARD);

    pass->first = t->step.first + p->at;
    pass->n = p->n;
    if (model_forward(t->model, pass))
        return -1;
    model_loss(t->model, labels, p->n, image_scale(t), &t->step.record->score);
    phase_end(&t->phases, span);
    return 0;
}

/* Add the gradients of a piece.  The last piece of a block finishes them. */
static int learn_piece(struct trainer *t, const struct piece *p,
                       struct pass *pass)
{
    struct finishing block = {t, p->at / t->blocks.len};
    size_t end = smaller((block.block + 1) * t->blocks.len, t->step.images);
    int is_last = p->at + (size_t)p->n == end, st;
    struct phase_span span;

    if (judge_piece(t, p, pass))
        return -1;
    span = phase_begin(&t->phases, PHASE_BACKWARD);
    st = model_backward(t->model, pass, is_last ? layer_done : NULL, &block);
    phase_end(&t->phases, span);
    return st;
}

/* ---- parameters ---- */

/* Add up the squares of this rank's parts of the averages, in the order of
 * parameters, so that the cut into buckets has no effect. */
static void sum_squares(const struct trainer *t)
{
    const float *g = model_gradients(t->model);

    if (!t->args->zero)
        t->device->squares(g, model_n_params(t->model),
                           &t->step.record->squares);
    for (int i = t->ddp->n_buckets; t->args->zero && i-- > 0;) {
        struct ddp_part part = ddp_part(t->ddp, i, t->ddp->rank);

        t->device->squares(g + part.first, part.count,
                           &t->step.record->squares);
    }
}

/* Scale the averaged gradients down to --clip-norm. */
static int clip(struct trainer *t)
{
    sum_squares(t);
    if (t->args->zero && ddp_sum_one(t->ddp, &t->step.record->squares))
        return -1;
    t->device->clip(model_gradients(t->model), model_n_params(t->model),
                    &t->step.record->squares, t->args->clip_norm);
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
    return ddp_await_all(t->ddp) || t->device->order.wait() || ddp_well(t->ddp)
               ? -1
               : 0;
}

/* Make the optimizer's step.  With ZeRO parameters still arrive when this
 * returns; the next forward pass waits for each layer's. */
static int move_params(struct trainer *t)
{
    int keeps_copies = t->args->zero && t->args->elastic;
    struct optim *o = &t->optim;

    if (t->args->clip_norm > 0 && clip(t))
        return -1;
    for (int i = t->ddp->n_buckets; i-- > 0;) {
        struct ddp_part mine = ddp_part(t->ddp, i, t->ddp->rank);
        struct optim_part part = {
            .at = mine.at,
            .n = mine.count,
            .params = model_params(t->model) + mine.first,
            .gradients = model_gradients(t->model) + mine.first,
            .canary = &t->step.record->canary,
        };

        t->device->step(o, &part);
        if (!keeps_copies && ddp_part_moved(t->ddp, i))
            return -1;
    }
    if (keeps_copies)
        return gather_after_copies(t);
    return t->args->overlap_off || t->ddp->is_recorded ? ddp_await_all(t->ddp)
                                                       : 0;
}

/* ---- a step ---- */

/* Tell the device what the step is about. */
static void begin_on_device(struct trainer *t, size_t step)
{
    const struct piece all = {step, 0, (int)t->step.images};
    double start = now();
    struct phase_span span = phase_begin(&t->phases, PHASE_DATA);

    t->device->begin(&(struct device_step){
        .pick = pick_of(t, &all),
        .dropout = pass_of(t, step).key,
        .optim = &t->optim,
    });
    t->data_seconds += now() - start;
    phase_end(&t->phases, span);
}

static void begin_step(struct trainer *t, size_t step)
{
    t->step.all = sampler_count_all(&t->sampler, step);
    t->step.images = sampler_count(&t->sampler, step);
    t->step.first = sampler_first(&t->sampler, step);
    t->step.is_seen = 0;
    t->step.before.optim = t->optim.step;
    t->step.before.rate = t->rate.step;
    t->step.before.lr = t->optim.lr;
    trainer__begin_rescue(t);
    t->optim.lr = rate_at(&t->rate, ++t->rate.step);
    t->optim.step++;
    begin_on_device(t, step);
}

/* The step has not been made: it does not count. */
static void take_back(struct trainer *t)
{
    phase_forget(&t->phases);
    trainer__undo(t);
    t->optim.step = t->step.before.optim;
    t->rate.step = t->step.before.rate;
    t->optim.lr = t->step.before.lr;
}

/* Find the first place that is not finite: judge the images again, by the parameters that
 * the step leaves alone. */
static int find_place(struct trainer *t, size_t step)
{
    struct pass pass = pass_of(t, step);

    for (size_t at = 0; at < t->step.images;) {
        struct piece piece = piece_at(t, step, at);
        struct model_score score;

        t->device->zero(t->step.record, sizeof(*t->step.record));
        if (judge_piece(t, &piece, &pass) ||
            t->device->read(&score, &t->step.record->score, sizeof(score)) ||
            watch_pass(t, t->model, piece.n, score.loss))
            return -1;
        at += (size_t)piece.n;
    }
    return 0;
}

/* Read what the step has left. */
static int read_record(struct trainer *t, struct step_record *record)
{
    if (t->device->read(record, t->step.record, sizeof(*record)))
        return -1;
    t->step.is_seen = 1;
    t->step.loss = record->score.loss;
    t->step.n_right = record->score.n_right;
    return 0;
}

/* Learn what the step has left: 0, or -1 with train_error() set, the same sentence on every
 * rank if the loss of a rank is not finite. */
static int see_step(struct trainer *t, size_t step)
{
    struct step_record record;

    if (read_record(t, &record) || ddp_well(t->ddp) || phase_read(&t->phases))
        return -1;
    if (isfinite(record.canary))
        return 0;
    take_back(t);
    if (!isfinite(record.score.loss) && find_place(t, step))
        return -1;
    return watch_step(t, step);
}

static int put_step(struct trainer *t, size_t step)
{
    struct pass pass = pass_of(t, step);
    struct phase_span span;
    int st;

    t->device->zero(t->step.record, sizeof(*t->step.record));
    if (t->step.images == 0) /* a rank without images adds nothing */
        model_clear_gradients(t->model);
    for (size_t at = 0; at < t->step.images;) {
        struct piece piece = piece_at(t, step, at);

        pass.is_first = at % t->blocks.len == 0;
        if (pass.is_first)
            model_clear_gradients(t->model);
        if (learn_piece(t, &piece, &pass))
            return -1;
        at += (size_t)piece.n;
    }
    if (ddp_average(t->ddp))
        return -1;
    t->device->copy(&t->step.record->canary, ddp_canary(t->ddp), sizeof(float));
    if (!t->ddp->is_recorded && see_step(t, step))
        return -1;
    span = phase_begin(&t->phases, PHASE_OPTIMIZER);
    st = move_params(t);
    phase_end(&t->phases, span);
    return st;
}

int trainer__step(struct trainer *t, size_t step)
{
    struct step_record record;
    int st;

    begin_step(t, step);
    st = trainer__replay(t, step, put_step);
    trainer__params_changed(t);
    if (!st && !t->step.is_seen)
        st = see_step(t, step);
    if (!st)
        return 0;
    /* other ranks may have made the step, so that it counts */
    if (!t->step.is_seen)
        read_record(t, &record);
    take_back(t);
    return -1;
}
