/* SPDX-License-Identifier: BSD-3-Clause */
/* elastic.c - the ranks change: some die, and newcomers join.  Those that are there go on
 * from the last step that any of them has finished.
 *
 * Survivors, ranks that let newcomers in, and newcomers all go through meet(): each tells
 * where it is.  One of those that are furthest sends its state to those that are behind;
 * newcomers are behind all others.  What is left of the epoch is divided anew.
 *
 * Random numbers are functions of seed, epoch and place (rng.h), rates of the step, and
 * the order of an epoch's images of seed and epoch.  So the state is parameters,
 * optimizer, running statistics, and the few numbers of struct place.
 *
 * A step changes nothing before all ranks have brought their gradients.  So when a rank
 * dies, no survivor is more than one step ahead of another: one whose exchange was whole
 * has made the step, and one whose exchange failed has not.  A rank that has made it
 * sends its parameters and optimizer state, and the step counts, with the dead rank's
 * images.  If no rank has made it, it is made again, without the dead rank.  A graph of a
 * device makes a step also after an exchange that has failed; then it is undone.
 *
 * With ZeRO each rank changes a part, and copies.h has every part as it was after the
 * last two steps.  No rank finishes a step before all parts have their copies.  So the
 * survivors take the last step of which all copies are there, and bring the parts
 * together; every one of them has the whole until the next step begins.  Ranks that let
 * newcomers in do so before.
 *
 * No rank makes a step before all train.  So if one of those that began the run does not
 * yet, nothing is lost if they all begin anew.
 *
 * Who receives keeps its own state until the new one is there as a whole.  So if the
 * sender dies meanwhile, nothing is lost but the step that it alone had made.
 */
#include "trainer/alike.h"
#include "trainer/args.h"
#include "trainer/copies.h"
#include "trainer/ddp.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/loader.h"
#include "trainer/model.h"
#include "trainer/optim.h"
#include "trainer/rng.h"
#include "trainer/smaller.h"
#include "trainer/train.h"
#include "trainer/train_state.h"

#include <stdlib.h>
#include <string.h>

enum standing {
    BEGINS, /* prepares the run, with the others that began it */
    NEW,    /* has joined the run, and lacks the state */
    TRAINS
};

/* Where a rank is in the run. */
struct place {
    uint64_t alike; /* as in a trainer, as all that follow */
    uint64_t step, epoch, is_trained, done, has_reached;
    uint64_t own, previous; /* with ZeRO: steps of its newest copies, */
    int32_t rank;           /* and its rank when they were made, or -1 */
    int32_t has_whole, has_previous;
    int32_t standing;
};

static struct place place_of(const struct trainer *t)
{
    const struct copies *s = t->rescue.copies;
    struct place place = {
        .alike = t->rescue.alike,
        .step = t->rescue.n_counted,
        .epoch = t->epoch,
        .is_trained = (uint64_t)t->tally.is_trained,
        .done = t->tally.done,
        .has_reached = (uint64_t)t->test.has_reached,
        .rank = -1,
        .has_whole = t->rescue.is_training && t->rescue.whole,
        .standing = t->rescue.is_training ? TRAINS
                    : t->ddp->is_newcomer ? NEW
                                          : BEGINS,
    };

    if (s) {
        place.rank = s->rank;
        place.own = s->own[0].step;
        place.has_previous = s->previous[0].is_there || s->previous[1].is_there;
        place.previous = s->previous[!s->previous[0].is_there].step;
    }
    return place;
}

/* After its last step an epoch is trained, and then tested. */
static int is_ahead(const struct place *a, const struct place *b)
{
    if (a->standing != b->standing)
        return a->standing > b->standing;
    return a->step != b->step ? a->step > b->step
                              : a->is_trained < b->is_trained;
}

static int count(const struct place *all, int n, enum standing standing)
{
    int found = 0;

    for (int r = 0; r < n; r++)
        found += all[r].standing == (int)standing;
    return found;
}

/* ---- what is kept of a step's beginning ---- */

static int make_before(struct trainer *t)
{
    size_t n = model_n_params(t->model) + t->optim.n_state;

    t->rescue.before = t->device->alloc(n * sizeof(*t->rescue.before));
    return t->rescue.before
               ? 0
               : train_fail("out of memory for a copy of parameters and the "
                            "optimizer's state, %zu bytes; give --graph off",
                            n * sizeof(*t->rescue.before));
}

int trainer__make_rescue(struct trainer *t)
{
    size_t n = model_n_running(t->model);

    if (!t->args->elastic)
        return 0;
    t->rescue.alike = rng_key(args_digest(t->args), dataset_digest(&t->data));
    if (n)
        t->rescue.running = t->device->alloc(n * sizeof(*t->rescue.running));
    if (n && !t->rescue.running)
        return train_fail("out of memory for %zu running statistics; leave "
                          "--elastic out",
                          n);
    return t->step.replay.can ? make_before(t) : 0;
}

static void keep_before(struct trainer *t)
{
    size_t n = model_n_params(t->model);
    float *before = t->rescue.before;

    t->device->copy(before, model_params(t->model), n * sizeof(*before));
    t->device->copy(before + n, t->optim.state,
                    t->optim.n_state * sizeof(*before));
}

void trainer__undo(struct trainer *t)
{
    size_t n = model_n_params(t->model);
    const float *before = t->rescue.before;

    if (!before || !t->step.replay.is_wanted)
        return;
    t->device->copy(model_params(t->model), before, n * sizeof(*before));
    t->device->copy(t->optim.state, before + n,
                    t->optim.n_state * sizeof(*before));
    trainer__params_changed(t);
}

void trainer__begin_rescue(struct trainer *t)
{
    t->device->release(t->rescue.whole);
    t->rescue.whole = NULL;
    if (t->rescue.running)
        t->device->copy(t->rescue.running, model_running(t->model),
                        model_n_running(t->model) * sizeof(float));
    if (t->rescue.before && t->step.replay.is_wanted)
        keep_before(t);
    t->rescue.in_step = 1;
}

/* Take back what a step has changed that will be made again. */
static void restore_running(struct trainer *t)
{
    if (t->rescue.running && t->rescue.in_step)
        t->device->copy(model_running(t->model), t->rescue.running,
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
    t->device->copy(model_params(t->model), whole, n * sizeof(*whole));
    t->device->copy(t->optim.state, whole + n, n_state * sizeof(*whole));
    trainer__params_changed(t);
    return 0;
}

/* Bring the root's state to the ranks that are behind it. */
static int share_state(struct trainer *t, int root, int receives)
{
    size_t n = model_n_params(t->model) + t->optim.n_state;
    float *whole = receives ? t->device->alloc(n * sizeof(*whole)) : NULL;
    int failed, st = 0;

    if (receives && !whole)
        st = train_fail("out of memory for another rank's state, %zu bytes; "
                        "go on from a checkpoint",
                        n * sizeof(*whole));
    if (ddp_agree(t->ddp, st, &failed) || failed >= 0)
        st = -1;
    else
        st = receives ? receive_state(t, root, whole) : send_state(t, root);
    t->device->release(whole);
    return st;
}

/* Return the first rank that no other is ahead of. */
static int find_latest(const struct place *all, int n)
{
    int latest = 0;

    for (int r = 1; r < n; r++)
        if (is_ahead(&all[r], &all[latest]))
            latest = r;
    return latest;
}

static int is_behind(const struct place *a, const struct place *latest)
{
    return a->standing != TRAINS || a->step < latest->step;
}

static int is_any_behind(const struct place *all, int n, int latest)
{
    for (int r = 0; r < n; r++)
        if (is_behind(&all[r], &all[latest]))
            return 1;
    return 0;
}

/* ---- the same with ZeRO ---- */

/* Return the rank that has the copy of an old rank's shard, its own or the next one's;
 * -1: none. */
static int holder_of(const struct place *all, int n, int old, int n_old)
{
    int holder = -1;

    for (int r = 0; r < n; r++) {
        if (all[r].rank == old)
            return r;
        if (all[r].rank == (old + 1) % n_old && all[r].has_previous)
            holder = r;
    }
    return holder;
}

/* Find the last step after which there is a copy of each shard: 0, or -1 with
 * train_error() set. */
static int find_step(const struct place *all, int n, int n_old, uint64_t *step)
{
    *step = UINT64_MAX;
    for (int old = 0; old < n_old; old++) {
        int r = holder_of(all, n, old, n_old);
        uint64_t has;

        if (r < 0)
            return train_fail_by(
                CAUSE_RANKS,
                "ranks %d and %d died together, and with them the only copies "
                "of a part of the optimizer's state; go on from a checkpoint "
                "by --resume auto",
                old, (old + 1) % n_old);
        has = all[r].rank == old ? all[r].own : all[r].previous;
        *step = has < *step ? has : *step;
    }
    return 0;
}

/* Bring the shards of all old ranks together on every rank. */
static int assemble(struct trainer *t, const struct place *all, uint64_t step,
                    float *whole)
{
    const struct copies *s = t->rescue.copies;
    size_t n_params = model_n_params(t->model), most = 0;
    float *values;
    int st = 0;

    for (int old = 0; old < s->size; old++)
        most = copies_len(s, old) > most ? copies_len(s, old) : most;
    values = t->device->alloc(most * sizeof(*values));
    if (!values)
        return train_fail("out of memory for another rank's state");
    for (int old = 0; old < s->size && !st; old++) {
        int root = holder_of(all, t->ddp->size, old, s->size);
        const struct copy *copy =
            copies_find(old == s->rank ? s->own : s->previous, step);

        if (root == t->ddp->rank)
            t->device->copy(values, copy->values,
                            copies_len(s, old) * sizeof(*values));
        st = ddp_share_floats(t->ddp, values, copies_len(s, old), root);
        copies_spread(s, old, values, whole, n_params);
    }
    t->device->release(values);
    return st;
}

/* Have the parameters and the whole optimizer's state on every rank, after *step. */
static int make_whole(struct trainer *t, const struct place *all,
                      uint64_t *step)
{
    size_t n = (1 + optim_arrays(t->optim.kind)) * model_n_params(t->model);
    float *whole;
    int root = 0, failed, st;

    while (root < t->ddp->size && !all[root].has_whole)
        root++;
    *step = root < t->ddp->size ? all[root].step : 0;
    if (root == t->ddp->size &&
        find_step(all, t->ddp->size, t->rescue.copies->size, step))
        return -1;
    whole = t->rescue.whole ? t->rescue.whole
                            : t->device->alloc(n * sizeof(*whole));
    st = whole ? 0
               : train_fail("out of memory for the state of all ranks, %zu "
                            "bytes; go on from a checkpoint",
                            n * sizeof(*whole));
    if (ddp_agree(t->ddp, st, &failed) || failed >= 0)
        st = -1;
    else if (root < t->ddp->size)
        st = ddp_share_floats(t->ddp, whole, n, root);
    else
        st = assemble(t, all, *step, whole);
    if (st && whole != t->rescue.whole)
        t->device->release(whole);
    if (!st)
        t->rescue.whole = whole;
    return st;
}

/* Take this rank's new part of the whole. */
static int take_part(struct trainer *t)
{
    size_t n_params = model_n_params(t->model);
    const float *state = t->rescue.whole + n_params;
    struct optim *o = &t->optim;
    uint64_t step = o->step;

    optim_fini(o);
    if (optim_init(o, t->device, ddp_n_own(t->ddp, t->ddp->rank)))
        return -1;
    o->step = step;
    for (size_t k = 0; k < optim_arrays(o->kind); k++)
        for (int i = 0; i < t->ddp->n_buckets; i++) {
            struct ddp_part part = ddp_part(t->ddp, i, t->ddp->rank);

            t->device->copy(o->state + k * o->n + part.at,
                            state + k * n_params + part.first,
                            part.count * sizeof(*state));
        }
    return copies_make(t);
}

/* ---- the latest step ---- */

/* Bring the latest state to all ranks.  *step is the step that it comes after. */
static int take_state(struct trainer *t, const struct place *all, int root,
                      uint64_t *step)
{
    struct ddp *d = t->ddp;

    *step = all[root].step;
    if (!t->args->zero)
        return is_any_behind(all, d->size, root)
                   ? share_state(t, root, is_behind(&all[d->rank], &all[root]))
                   : 0;
    if (make_whole(t, all, step))
        return -1;
    t->device->copy(model_params(t->model), t->rescue.whole,
                    model_n_params(t->model) * sizeof(float));
    trainer__params_changed(t);
    return 0;
}

/* Count the step that this rank has made, but did not know to be finished; or begin to
 * count. */
static void catch_up(struct trainer *t, uint64_t step)
{
    if (!t->rescue.is_training)
        trainer__open_tally(t);
    else if (t->rescue.n_counted < step)
        trainer__count_step(t); /* with this rank's images */
    restore_running(t);
    t->rescue.n_counted = t->optim.step = step;
}

static void take_place(struct trainer *t, const struct place *latest)
{
    t->epoch = latest->epoch;
    t->tally.is_trained = (int)latest->is_trained;
    t->tally.is_open &= !t->tally.is_trained;
    t->tally.done = (size_t)latest->done;
    t->test.has_reached = (int)latest->has_reached;
}

/* Come to the place of the rank that is furthest. */
static int take_latest(struct trainer *t, const struct place *all)
{
    int root = find_latest(all, t->ddp->size);
    uint64_t step;

    if (take_state(t, all, root, &step))
        return -1;
    catch_up(t, step);
    if (count(all, t->ddp->size, NEW) && trainer__share_running(t, root))
        return -1;
    if (all[root].step == step) /* else all ranks have counted it just now */
        take_place(t, &all[root]);
    t->rescue.is_training = 1;
    return 0;
}

void trainer__drop_rescue(struct trainer *t)
{
    t->device->release(t->rescue.running);
    t->device->release(t->rescue.before);
    t->device->release(t->rescue.whole);
    copies_destroy(t->rescue.copies);
}

/* ---- going on ---- */

/* Divide what is left of the epoch among the ranks that are there. */
static int divide_anew(struct trainer *t)
{
    ddp_drop_buckets(t->ddp);
    blocks_fini(&t->blocks);
    sampler_fini(&t->sampler);
    if (trainer__divide(t) || ddp_open_buckets(t->ddp) ||
        (t->args->zero && take_part(t)))
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

/* Return the places of all ranks, or NULL with train_error() set. */
static struct place *gather_places(struct trainer *t)
{
    struct place mine = place_of(t),
                 *all = calloc((size_t)t->ddp->size, sizeof(*all));

    if (!all) {
        train_fail("out of memory for the places of %d ranks", t->ddp->size);
        return NULL;
    }
    if (!ddp_gather_bytes(t->ddp, &mine, all, sizeof(mine)))
        return all;
    free(all);
    return NULL;
}

/* Check that a newcomer has ranks to join, and makes the same run as they do. */
static int judge_newcomer(struct trainer *t, const struct place *all)
{
    const struct place *latest = &all[find_latest(all, t->ddp->size)];

    if (t->rescue.is_training)
        return 0;
    if (latest->standing != TRAINS)
        train_fail_by(CAUSE_RANKS, "the ranks went on without this newcomer, "
                                   "since one of them died");
    else if (latest->alike != t->rescue.alike)
        train_refuse("this newcomer has other options or images than the "
                     "ranks; leave the program, its --config and its data as "
                     "they are while a job runs");
    else
        return 0;
    ddp_leave(t->ddp);
    return -1;
}

/* All ranks that are there go on together. */
static int meet(struct trainer *t)
{
    struct place *all = gather_places(t);
    int st;

    if (!all)
        return -1;
    if (count(all, t->ddp->size, BEGINS)) {
        t->rescue.is_training = 0;
        free(all);
        return 0;
    }
    st = judge_newcomer(t, all) || take_latest(t, all);
    free(all);
    return st ? -1 : divide_anew(t);
}

int trainer_survive(struct trainer *t)
{
    loader_drop(t->loader);
    trainer__renew_replay(t);
    return ddp_shrink(t->ddp) ? -1 : meet(t);
}

/* With ZeRO: have the whole on every rank before there are others. */
static int hold_whole(struct trainer *t)
{
    struct place *all = gather_places(t);
    uint64_t step;
    int st = all ? make_whole(t, all, &step) : -1;

    free(all);
    return st;
}

/* After a growth: newcomers have a GPU by now, if the ranks have. */
static int meet_newcomers(struct trainer *t)
{
    return t->ddp->has_gpus && ddp_renew(t->ddp) ? -1 : meet(t);
}

int trainer_grow(struct trainer *t)
{
    loader_drop(t->loader);
    trainer__renew_replay(t);
    if ((t->args->zero && hold_whole(t)) || ddp_grow(t->ddp, t->pace.n_new))
        return -1;
    return meet_newcomers(t);
}

int trainer_join(struct trainer *t)
{
    if (!trainer_init(t))
        return meet_newcomers(t);
    ddp_leave(t->ddp);
    return -1;
}
