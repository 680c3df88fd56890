/* SPDX-License-Identifier: BSD-3-Clause */
/* train_state.c - the state of a run: resumed, sent to all ranks, saved.
 *
 * A checkpoint is complete, whichever rank holds which part of the optimizer's
 * state: with ZeRO the ranks bring their parts together to write it, and
 * receive the parts of their own number when it is read.
 */
#include "trainer/alike.h"
#include "trainer/args.h"
#include "trainer/checkpoint.h"
#include "trainer/copies.h"
#include "trainer/ddp.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/train_state.h"
#include "trainer/folder.h"
#include "trainer/model.h"
#include "trainer/optim.h"
#include "trainer/train.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct checkpoint_steps steps_of(const struct trainer *t)
{
    return (struct checkpoint_steps){
        .n_ranks = (uint64_t)t->sampler.n_ranks,
        .batch = t->sampler.batch,
        .shard = (uint64_t)t->sampler.shard,
        .drops_rest = (uint64_t)t->sampler.drops_rest,
    };
}

int trainer_has_other_steps(const struct trainer *t)
{
    struct checkpoint_steps now = steps_of(t);

    return t->saving.steps.n_ranks &&
           (t->saving.steps.n_ranks != now.n_ranks ||
            t->saving.steps.batch != now.batch ||
            t->saving.steps.shard != now.shard ||
            t->saving.steps.drops_rest != now.drops_rest);
}

/* `state` is the optimizer's state of all parameters. */
static struct checkpoint checkpoint_of(struct trainer *t, float *state)
{
    size_t n = model_n_params(t->model);
    struct checkpoint c = {
        .epoch = t->epoch,
        .skip = t->skip,
        .step = t->optim.step,
        .seed = t->args->seed,
        .steps = steps_of(t),
        .optim = (uint64_t)t->optim.kind,
        .device = t->device,
        .params = model_params(t->model),
        .state = state,
        .n_params = n,
        .n_state = optim_arrays(t->optim.kind) * n,
        .running = model_running(t->model),
        .n_running = model_n_running(t->model),
    };

    snprintf(c.dataset, sizeof(c.dataset), "%s", t->args->dataset);
    return c;
}

/* Return memory of the device for the optimizer's state of all parameters: this rank's
 * own, or with ZeRO t->saving.whole, until trainer__free_whole(). */
static float *make_whole(struct trainer *t)
{
    size_t n = optim_arrays(t->optim.kind) * model_n_params(t->model);

    if (!t->args->zero)
        return t->optim.state;
    t->saving.whole = t->device->alloc(n * sizeof(*t->saving.whole));
    if (!t->saving.whole)
        train_fail("out of memory for the whole state of %s, %zu bytes; save "
                   "and resume where rank 0 has more",
                   optim_name(t->optim.kind), n * sizeof(*t->saving.whole));
    return t->saving.whole;
}

void trainer__free_whole(struct trainer *t)
{
    t->device->release(t->saving.whole);
    t->saving.whole = NULL;
}

/* ---- resuming, on rank 0 ---- */

static int is_of_other_data(const struct trainer *t, const struct checkpoint *c)
{
    return *c->dataset && strcmp(c->dataset, t->args->dataset);
}

/* Check that the checkpoint is of this run's data set.  It may be of another one if the
 * user has named this run's: models are trained further on other images, and tested on
 * them. */
static int judge_dataset(const struct trainer *t, const struct checkpoint *c,
                         const char *path)
{
    const char *dataset = t->args->dataset;

    if (!is_of_other_data(t, c))
        return 0;
    if (!args_names_dataset(t->args))
        return train_refuse("%s was made with --dataset %s, but this run has "
                            "%s; give --dataset %s, or --dataset %s if you "
                            "want other images",
                            path, c->dataset, dataset, c->dataset, dataset);
    fprintf(stderr,
            "coll_train: %s was made with --dataset %s; this run uses %s\n",
            path, c->dataset, dataset);
    return 0;
}

/* Returns what checkpoint_load() does. */
static int load_checkpoint(struct trainer *t, const char *path)
{
    float *state = make_whole(t);
    struct checkpoint c;
    int st;

    if (!state)
        return -1;
    c = checkpoint_of(t, state);
    st = checkpoint_load(&c, path);
    if (st) {
        trainer__free_whole(t);
        return st;
    }
    if (c.seed != t->args->seed)
        return train_refuse(
            "%s was made with --seed %llu; resume with the same", path,
            (unsigned long long)c.seed);
    if (judge_dataset(t, &c, path))
        return -1;
    t->epoch = c.epoch;
    t->optim.step = c.step;
    t->saving.steps = c.steps;
    if (!trainer_has_other_steps(t) && !is_of_other_data(t, &c))
        t->skip = c.skip;
    model_changed(t->model);
    return 0;
}

/* Resume from the checkpoint that was named. */
static int resume_from(struct trainer *t, const char *path)
{
    int st = load_checkpoint(t, path);

    if (st == CHECKPOINT_DAMAGED)
        return train_refuse("%s; name another by --resume", train_error());
    return st;
}

/* Find the checkpoint before a damaged one, and name the damaged one on stderr. */
static int pass_over(const char *dir, char path[CHECKPOINT_PATH])
{
    char what[CHECKPOINT_PATH + 128];
    int found;

    snprintf(what, sizeof(what), "%s", train_error());
    found = checkpoint_older(dir, path);
    fprintf(stderr, "coll_train: %s%s\n", what,
            found > 0 ? "; the next older one is taken" : "");
    return found;
}

/* Resume from the newest good checkpoint of this run: 1 if there is one, 0 if
 * there is none at all, or -1 with train_error() set.  A crash may have damaged
 * the newest one.  If all are damaged, the user must say that the run shall
 * begin anew. */
static int resume_newest(struct trainer *t)
{
    const char *dir = t->args->checkpoint;
    char path[CHECKPOINT_PATH];
    int found = checkpoint_newest(dir, path), n_damaged = 0, st = 0;

    while (found > 0) {
        st = load_checkpoint(t, path);
        if (st != CHECKPOINT_DAMAGED)
            return st ? -1 : 1;
        n_damaged++;
        found = pass_over(dir, path);
    }
    if (found == 0 && n_damaged)
        return train_refuse("none of the checkpoints in %s (%d) is good; name "
                            "one by --resume PATH, or leave --resume out to "
                            "begin anew",
                            dir, n_damaged);
    return found;
}

/* Return 1 if this run writes checkpoints.  A run that only reads them may
 * share the folder with one that writes, and needs no permission to write. */
static int is_writer(const struct trainer *t)
{
    const struct args *a = t->args;

    return *a->checkpoint && !a->dry_run && !a->eval_only;
}

int trainer__probe(struct trainer *t)
{
    const struct args *a = t->args;

    if (*a->checkpoint && !a->eval_only && checkpoint_probe(a->checkpoint))
        return -1;
    return is_writer(t) ? folder_init(&t->saving.folder, a->checkpoint) : 0;
}

/* A job that was started again resumes without --resume. */
int trainer__resume(struct trainer *t)
{
    const char *from = t->args->resume;
    int goes_on = 0, st = 0;

    if (!strcmp(from, "auto") || folder_is_restart(&t->saving.folder))
        goes_on = resume_newest(t);
    else if (*from)
        st = resume_from(t, from);
    if (goes_on == 0 && !strcmp(from, "auto") && t->args->eval_only)
        st = train_refuse("there is no checkpoint in %s to test; name one with "
                          "--resume PATH",
                          t->args->checkpoint);
    if (goes_on < 0 || st || !is_writer(t))
        return goes_on < 0 ? -1 : st;
    return folder_begin(&t->saving.folder, goes_on);
}

int trainer_take_over(struct trainer *t)
{
    if (trainer__probe(t))
        return -1;
    return is_writer(t) ? folder_begin(&t->saving.folder, 1) : 0;
}

/* ---- to all ranks ---- */

void trainer__params_changed(struct trainer *t)
{
    model_changed(t->model);
    model_changed(t->eval);
}

int trainer__share_running(struct trainer *t, int root)
{
    size_t n = model_n_running(t->model);

    return n ? ddp_share_floats(t->ddp, model_running(t->model), n, root) : 0;
}

/* Send each rank its part of the state that rank 0 has resumed from. */
static int share_optim(struct trainer *t)
{
    struct optim *o = &t->optim;
    size_t n = model_n_params(t->model);

    if (!t->args->zero)
        return ddp_share_floats(t->ddp, o->state, o->n_state, 0);
    for (size_t i = 0; i < optim_arrays(o->kind); i++) {
        const float *whole = t->saving.whole ? t->saving.whole + i * n : NULL;

        if (ddp_spread(t->ddp, whole, o->state + i * o->n))
            return -1;
    }
    trainer__free_whole(t);
    return 0;
}

int trainer_share(struct trainer *t)
{
    uint64_t words[] = {t->epoch, t->optim.step, t->skip,
                        t->saving.steps.n_ranks};

    if (model_check_alike(t->model, t->ddp) ||
        ddp_share_words(t->ddp, words, 4) || trainer__share_running(t, 0) ||
        ddp_share_floats(t->ddp, model_params(t->model),
                         model_n_params(t->model), 0))
        return -1;
    t->epoch = words[0];
    t->optim.step = words[1];
    t->skip = (size_t)words[2];
    t->rate.step = t->epoch * t->rate.epoch_steps + t->skip;
    if (!words[3]) /* nothing was resumed */
        t->device->zero(t->optim.state, t->optim.n_state * sizeof(float));
    else if (share_optim(t))
        return -1;
    trainer__params_changed(t);
    t->rescue.n_counted = t->optim.step;
    if (t->args->elastic && t->args->zero && copies_make(t))
        return -1;
    return ddp_open_buckets(t->ddp);
}

/* ---- saving ---- */

/* Bring the parts of all ranks to rank 0's t->saving.whole; all ranks learn if it has
 * no memory for them. */
static int collect_whole(struct trainer *t)
{
    size_t n = model_n_params(t->model);
    int failed, st = t->ddp->rank == 0 && !make_whole(t) ? -1 : 0;

    if (ddp_agree(t->ddp, st, &failed))
        return -1;
    if (failed >= 0)
        return -1;
    for (size_t i = 0; i < optim_arrays(t->optim.kind); i++) {
        float *whole = t->saving.whole ? t->saving.whole + i * n : NULL;

        if (ddp_collect(t->ddp, t->optim.state + i * t->optim.n, whole))
            return -1;
    }
    return 0;
}

int trainer_save_now(struct trainer *t)
{
    struct checkpoint c;
    int st = 0;

    if (!*t->args->checkpoint)
        return 0;
    if (t->args->zero && collect_whole(t))
        st = -1;
    if (!st && t->ddp->rank == 0) {
        c = checkpoint_of(t, t->args->zero ? t->saving.whole : t->optim.state);
        st = checkpoint_save(&c, t->args->checkpoint, t->args->keep);
    }
    trainer__free_whole(t);
    return st;
}

int trainer_save(struct trainer *t)
{
    int is_turn = t->epoch % t->args->checkpoint_every == 0 ||
                  trainer_is_done(t) || t->stop == SIGUSR1;

    return is_turn ? trainer_save_now(t) : 0;
}
