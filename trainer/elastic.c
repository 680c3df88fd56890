/* SPDX-License-Identifier: BSD-3-Clause */
/* elastic.c - survivors of a rank's death go on from the last step that any of them has
 * finished.
 *
 * A step changes nothing before all ranks have brought their gradients.  So when a rank
 * dies, no survivor is more than one step ahead of another: one whose exchange was whole
 * has made the step, and one whose exchange failed has not.  A rank that has made it
 * sends its parameters and optimizer state, and the step counts, with the dead rank's
 * images.  If no rank has made it, it is made again, without the dead rank.
 *
 * Who receives keeps its own state until the new one is there as a whole.  So if the
 * sender dies meanwhile, nothing is lost but the step that it alone had made.
 */
#include "trainer/args.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/loader.h"
#include "trainer/model.h"
#include "trainer/train.h"
#include "trainer/train_state.h"

#include <stdlib.h>
#include <string.h>

/* Where a rank is in the run. */
struct place {
    uint64_t step, epoch, is_trained, done, has_reached; /* as in a trainer */
};

static struct place place_of(const struct trainer *t)
{
    return (struct place){
        .step = t->optim.step,
        .epoch = t->epoch,
        .is_trained = (uint64_t)t->tally.is_trained,
        .done = t->tally.done,
        .has_reached = (uint64_t)t->test.has_reached,
    };
}

/* After its last step an epoch is trained, and then tested. */
static int is_ahead(const struct place *a, const struct place *b)
{
    return a->step != b->step ? a->step > b->step
                              : a->is_trained < b->is_trained;
}

/* ---- running statistics ---- */

int trainer__make_rescue(struct trainer *t)
{
    size_t n = model_n_running(t->model);

    if (!t->args->elastic || n == 0)
        return 0;
    t->rescue.running = malloc(n * sizeof(*t->rescue.running));
    return t->rescue.running
               ? 0
               : train_fail("out of memory for %zu running statistics; leave "
                            "--elastic out",
                            n);
}

void trainer__keep_running(struct trainer *t)
{
    if (t->rescue.running)
        memcpy(t->rescue.running, model_running(t->model),
               model_n_running(t->model) * sizeof(float));
    t->rescue.in_step = 1;
}

/* Take back what a step has changed that will be made again. */
static void restore_running(struct trainer *t)
{
    if (t->rescue.running && t->rescue.in_step)
        memcpy(model_running(t->model), t->rescue.running,
               model_n_running(t->model) * sizeof(float));
    t->rescue.in_step = 0;
}

/* ---- parameters and the optimizer's state ---- */

static int send_state(struct trainer *t, int root)
{
    return ddp_share_floats(t->ddp, model_params(t->model),
                            model_n_params(t->model), root) ||
           ddp_share_floats(t->ddp, t->optim.state, t->optim.n_state, root);
}

/* Receive the state into `whole`, and only then replace the own one. */
static int receive_state(struct trainer *t, int root, float *whole)
{
    size_t n = model_n_params(t->model), n_state = t->optim.n_state;

    if (ddp_share_floats(t->ddp, whole, n, root) ||
        ddp_share_floats(t->ddp, whole + n, n_state, root))
        return -1;
    memcpy(model_params(t->model), whole, n * sizeof(*whole));
    memcpy(t->optim.state, whole + n, n_state * sizeof(*whole));
    trainer__params_changed(t);
    return 0;
}

/* Bring the root's state to the ranks that are behind it. */
static int share_state(struct trainer *t, int root, int is_behind)
{
    size_t n = model_n_params(t->model) + t->optim.n_state;
    float *whole = is_behind ? malloc(n * sizeof(*whole)) : NULL;
    int failed, st = 0;

    if (is_behind && !whole)
        st = train_fail("out of memory for another rank's state, %zu bytes; "
                        "go on from a checkpoint",
                        n * sizeof(*whole));
    if (ddp_agree(t->ddp, st, &failed) || failed >= 0)
        st = -1;
    else
        st = is_behind ? receive_state(t, root, whole) : send_state(t, root);
    free(whole);
    return st;
}

/* Return the first rank that no other is ahead of; *n_behind counts those that lack its
 * step. */
static int find_latest(const struct place *all, int n, int *n_behind)
{
    int latest = 0;

    for (int r = 1; r < n; r++)
        if (is_ahead(&all[r], &all[latest]))
            latest = r;
    *n_behind = 0;
    for (int r = 0; r < n; r++)
        *n_behind += all[r].step < all[latest].step;
    return latest;
}

/* Come to the place of the rank that is furthest. */
static int take_latest(struct trainer *t, struct place *all)
{
    struct place mine = place_of(t), best;
    int root, n_behind;

    if (ddp_gather_bytes(t->ddp, &mine, all, sizeof(mine)))
        return -1;
    root = find_latest(all, t->ddp->size, &n_behind);
    best = all[root];
    if (n_behind && share_state(t, root, mine.step < best.step))
        return -1;
    if (mine.step < best.step)
        trainer__count_step(t); /* with this rank's images */
    restore_running(t);
    t->optim.step = best.step;
    t->epoch = best.epoch;
    t->tally.is_trained = (int)best.is_trained;
    t->tally.is_open &= !t->tally.is_trained;
    t->tally.done = (size_t)best.done;
    t->test.has_reached = (int)best.has_reached;
    return 0;
}

/* ---- going on ---- */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Divide what is left of the epoch among the ranks that are left. */
static int divide_anew(struct trainer *t)
{
    blocks_fini(&t->blocks);
    sampler_fini(&t->sampler);
    trainer__cut(t);
    if (trainer__divide(t) || ddp_open_buckets(t->ddp))
        return -1;
    t->skip =
        t->tally.is_trained ? 0 : t->tally.done / trainer__global_batch(t);
    t->skip = smaller(t->skip, t->sampler.n_steps);
    t->rate.step = t->epoch * t->rate.epoch_steps + t->skip;
    if (t->rate.step)
        t->optim.lr = rate_at(&t->rate, t->rate.step);
    t->pace = (struct stop_pace){0};
    t->stop = 0; /* a rank that was told to stop says so again */
    return 0;
}

int trainer_survive(struct trainer *t)
{
    struct place *all;
    int st;

    loader_drop(t->loader);
    if (ddp_shrink(t->ddp))
        return -1;
    all = calloc((size_t)t->ddp->size, sizeof(*all));
    if (!all)
        return train_fail("out of memory for the places of %d ranks",
                          t->ddp->size);
    st = take_latest(t, all);
    free(all);
    return st ? -1 : divide_anew(t);
}
