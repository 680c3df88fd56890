/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - coll_train: arguments, ranks, epochs, report.
 *
 * The ranks agree on failures that one rank alone may have (a file, memory, a
 * disk): the lowest such rank prints why, and every rank ends with its cause as
 * status.  When a collective fails, each rank prints why and ends at once; with
 * --elastic they go on if it failed because of a death.
 */
#include "coll/coll.h"
#include "trainer/alike.h"
#include "trainer/args.h"
#include "trainer/bench.h"
#include "trainer/build.h"
#include "trainer/clock.h"
#include "trainer/ddp.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/hints.h"
#include "trainer/report.h"
#include "trainer/stop.h"
#include "trainer/train.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int say_error(void)
{
    fprintf(stderr, "coll_train: %s\n", train_error());
    return -1;
}

/* If this rank's device has failed, collectives of the others wait for it in their
 * devices' streams: say that this rank ends. */
static void leave_if_broken(struct ddp *d)
{
    if (!d->has_failed && d->n_buckets && d->device->order.well())
        ddp_leave(d);
}

/* Return 0 if every rank's status is 0; else -1 after one sentence, or after none if
 * survive() can go on. */
static int all_well(struct ddp *d, int status)
{
    int failed;

    if (status)
        leave_if_broken(d);
    if (d->has_failed || ddp_agree(d, status, &failed)) {
        if (d->is_elastic && d->has_lost)
            return -1;
        fprintf(stderr, "coll_train: rank %d: %s\n", d->rank, train_error());
        return -1;
    }
    if (failed < 0)
        return 0;
    return failed == d->rank ? say_error() : -1;
}

/* End the run after a signal has ended the epoch early. */
static int end_early(struct trainer *t, struct report *r)
{
    int st = t->stop == SIGUSR1 ? trainer_save_now(t) : 0;

    report_epoch_cut(r);
    return all_well(t->ddp, st);
}

/* The ranks change by trainer_survive(), trainer_grow() or trainer_join(), which all ranks
 * that are then there call; and whoever is rank 0 prints and saves from now on.
 *
 * Result:    0; or -1 after a sentence, or after none if survive() can go on.
 */
static int change_ranks(struct trainer *t, struct report *r,
                        int (*change)(struct trainer *))
{
    struct ddp *d = t->ddp;
    double begin = now();
    int before = d->size, st = change(t);

    if (!st && t->rescue.is_training && d->rank == 0 && !r->is_speaker)
        st = report_take_over(r) || trainer_take_over(t) ? -1 : 0;
    if (all_well(d, st) || all_well(d, report_share(r)))
        return -1;
    report_ranks(r, before, now() - begin);
    return 0;
}

/* With --elastic: after ranks have died, let the others go on.
 *
 * Result:    0; or -1 after a sentence.
 */
static int survive(struct trainer *t, struct report *r)
{
    while (t->ddp->is_elastic && t->ddp->has_lost)
        if (!change_ranks(t, r, trainer_survive))
            return 0;
    return -1;
}

static int run_epoch(struct trainer *t, struct report *r)
{
    struct epoch_stats stats, own;
    int st;

    if (t->tally.is_trained) {
        stats = trainer_figures(t);
        st = 0;
    } else {
        if (!t->tally.is_open)
            report_epoch_start(r);
        st = trainer_epoch(t, &stats, report_progress, r);
    }
    if (st > 0)
        return t->stop ? end_early(t, r) : change_ranks(t, r, trainer_grow);
    own = stats;
    if (!st)
        st = trainer_test(t, &stats);
    if (!st) { /* all ranks save together */
        int reported = report_epoch(r, &stats), saved = trainer_save(t);

        report_own(r, &own);
        st = reported || saved ? -1 : 0;
    }
    if (st)
        report_epoch_cut(r);
    if (all_well(t->ddp, st))
        return -1;
    trainer_close_epoch(t);
    return 0;
}

/* Return 1 if a resumed run begins with a test: it has no epoch left, or may
 * have reached its target already. */
static int begins_with_test(const struct trainer *t)
{
    return trainer_is_done(t) ||
           (t->args->target_acc > 0 && t->epoch > 0 && t->skip == 0);
}

/* Test the parameters as they are. */
static int test_only(struct trainer *t, struct report *r)
{
    struct epoch_stats stats = {0};
    int st = trainer_test(t, &stats);

    if (!st)
        report_test(r, &stats);
    return all_well(t->ddp, st);
}

static int finish(struct trainer *t, struct report *r)
{
    double max_rss = report_max_rss();
    int st = trainer_max(t, &max_rss);

    if (!st)
        st = report_end(r, max_rss);
    return all_well(t->ddp, st);
}

/* After the first line of an epoch every rank catches signals. */
static int catch_signals(struct trainer *t)
{
    stop_catch();
    return all_well(t->ddp, 0);
}

static int bench(struct trainer *t, struct report *r)
{
    int st;

    if (catch_signals(t))
        return -1;
    st = bench_run(t, r);
    stop_release();
    return all_well(t->ddp, st);
}

static int run_epochs(struct trainer *t, struct report *r)
{
    while ((t->tally.is_trained || !trainer_is_done(t)) && !t->stop)
        if (run_epoch(t, r))
            return -1;
    return !t->stop || trainer_is_done(t) ? finish(t, r) : 0;
}

/* Compare the files of --config: each rank has read its own. */
static int has_same_config(struct ddp *ddp, const struct args *args)
{
    double crc[] = {args->config_crc, -(double)args->config_crc};

    if (ddp_max(ddp, crc, 2))
        return -1;
    if (crc[0] != -crc[1])
        return train_refuse(
            "--config is not the same file on all ranks; copy it "
            "to all hosts, or to a folder that they share");
    return 0;
}

/* Check what cannot be had on a GPU. */
static int judge_gpu(const struct args *args)
{
    if (!*args->profile || !strcmp(args->device, "cpu"))
        return 0;
    return train_refuse("--profile does not count what runs in the streams of "
                        "a GPU; give --breakdown or --timeline instead, or "
                        "--device cpu");
}

/* On a newcomer: take what the ranks have. */
static int take_device(struct args *args, const struct ddp *d)
{
    char why[400];

    if (d->has_gpus && device_find_gpu(why, sizeof(why)))
        return train_refuse("the ranks train on GPUs, and this newcomer finds "
                            "none: %s",
                            why);
    args->device = d->has_gpus ? "cuda" : "cpu";
    return judge_gpu(args);
}

/* Replace --device auto: a GPU if every rank has one. */
static int choose_device(struct args *args, struct ddp *d)
{
    char why[400];
    double lacks;

    if (strcmp(args->device, "auto"))
        return judge_gpu(args);
    if (d->is_newcomer)
        return take_device(args, d);
    lacks = device_find_gpu(why, sizeof(why)) != 0;
    if (ddp_max(d, &lacks, 1))
        return -1;
    args->device = lacks > 0 ? "cpu" : "cuda";
    return judge_gpu(args);
}

/* Check and prepare what the ranks have in common, and give all of them rank 0's state. */
static int prepare(struct args *args, struct trainer *t, struct report *r)
{
    struct ddp *d = t->ddp;

    trainer_fini(t);
    report_fini(r);
    if (all_well(d, report_init(r, t)) ||
        all_well(d, args_share_batch(args, d->n_first)) ||
        all_well(d, has_same_config(d, args)) ||
        all_well(d, args_check_alike(args, d)) ||
        all_well(d, choose_device(args, d)) || all_well(d, trainer_init(t)))
        return -1;
    return trainer_share(t) ? all_well(d, -1) : 0;
}

/* Begin the run, on all ranks that there are; again, if one has died meanwhile. */
static int begin(struct args *args, struct trainer *t, struct report *r)
{
    if (prepare(args, t, r))
        return -1;
    report_start(r);
    if (args->dry_run || args->synthetic)
        return 0;
    if (begins_with_test(t) && test_only(t, r))
        return -1;
    if (catch_signals(t))
        return -1;
    t->rescue.is_training = 1;
    return 0;
}

/* Join the ranks that train. */
static int join(struct args *args, struct trainer *t, struct report *r)
{
    if (report_init(r, t) || args_share_batch(args, t->ddp->n_first) ||
        choose_device(args, t->ddp)) {
        ddp_leave(t->ddp);
        return say_error();
    }
    stop_catch();
    return change_ranks(t, r, trainer_join);
}

static int train_once(struct args *args, struct trainer *t, struct report *r)
{
    if (t->rescue.is_training)
        return run_epochs(t, r);
    if (t->ddp->is_newcomer ? join(args, t, r) : begin(args, t, r))
        return -1;
    if (args->dry_run) {
        report_plan(r);
        return 0;
    }
    return args->synthetic ? bench(t, r) : run_epochs(t, r);
}

static int train(struct args *args, struct trainer *t, struct report *r)
{
    int st;

    do
        st = train_once(args, t, r);
    while (st && !survive(t, r));
    stop_release();
    if (!st && t->stop && !trainer_is_done(t))
        report_stopped(r);
    return st;
}

/* Return the exit status.  A run that a signal ends has the status of a process
 * that the signal has killed; SIGUSR1 is a planned end, with status 0. */
static int status_of(const struct trainer *t, int st)
{
    if (st)
        return (int)train_cause();
    return t->stop && t->stop != SIGUSR1 && !trainer_is_done(t) ? 128 + t->stop
                                                                : EXIT_SUCCESS;
}

/* Set the library's variables for traces.  It reads them when the first communicator is
 * created, so do this before. */
static int ask_for_traces(const struct args *args)
{
    if ((*args->timeline && setenv("COLL_TIMELINE", args->timeline, 1)) ||
        (*args->profile && setenv("COLL_PROFILE", args->profile, 1)))
        return train_fail("out of memory for the environment; leave --timeline "
                          "and --profile out");
    return 0;
}

static int run(struct args *args)
{
    struct ddp ddp;
    struct trainer trainer = {.args = args, .ddp = &ddp};
    struct report report = {.t = &trainer};
    int st;

    if (stop_init() || ask_for_traces(args) ||
        (args->elastic && ddp_is_newcomer() && trainer_load(&trainer)) ||
        ddp_init(&ddp, args->deterministic)) {
        say_error();
        dataset_fini(&trainer.data); /* a newcomer's that was not let in */
        return (int)train_cause();
    }
    ddp.is_elastic = args->elastic;
    if (ddp.rank == 0)
        hint_environment(stderr);
    st = train(args, &trainer, &report);
    report_fini(&report);
    st = status_of(&trainer, st);
    trainer_fini(&trainer);
    if (ddp_fini(&ddp) && !st && !args->elastic) {
        say_error(); /* else a rank may die after the last word */
        st = (int)train_cause();
    }
    return st;
}

/* Do what was asked for; returns the exit status. */
static int act(struct args *args)
{
    if (args->check_build) {
        build_print();
        return EXIT_SUCCESS;
    }
    return run(args);
}

int main(int argc, char **argv)
{
    struct args args;
    int st = args_parse(&args, argc, argv);

    if (st > 0)
        return st - 1;
    if (st < 0) {
        say_error();
        return (int)train_cause();
    }
    st = act(&args);
    args_fini(&args);
    return st;
}
