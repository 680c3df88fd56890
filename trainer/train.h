/* SPDX-License-Identifier: BSD-3-Clause */
/* train.h - one rank's part of a data-parallel training run. */
#ifndef COLL_TRAINER_TRAIN_H
#define COLL_TRAINER_TRAIN_H

#include "trainer/blocks.h"
#include "trainer/checkpoint.h"
#include "trainer/data.h"
#include "trainer/epoch.h"
#include "trainer/folder.h"
#include "trainer/optim.h"
#include "trainer/phase.h"
#include "trainer/rate.h"
#include "trainer/sampler.h"
#include "trainer/stop.h"

#include <stddef.h>
#include <stdint.h>

struct args;
struct ddp;
struct device;
struct loader;
struct model;
struct model_desc;
struct step_record;
struct copies;

/* Checkpoints, on rank 0. */
struct saving {
    struct folder folder;
    struct checkpoint_steps steps; /* of the checkpoint that was resumed from */
    /* of the device: the optimizer's state of all ranks, while it saves or resumes with
     * ZeRO */
    float *whole;
};

/* What --elastic needs to go on without ranks that die, and with newcomers. */
struct rescue {
    int is_training; /* this rank has the run's state, and its steps have begun */
    uint64_t alike; /* a number of the options and images, equal on all ranks */
    float *running; /* of the device: the running statistics before this step */
    /* of the device: the same of parameters and the optimizer's state; NULL if a step changes
     * them only when the exchange was whole */
    float *before;
    int in_step;    /* the step has begun, and is not counted */
    uint64_t n_counted; /* steps of the run that are counted */
    /* With ZeRO; else NULL.  whole: parameters and state of all ranks, of the device,
     * from a death to the next step. */
    struct copies *copies;
    float *whole;
};

/* One pass of the test. */
struct test_pass {
    uint32_t *index;
    unsigned char *labels; /* of the device */
    int has_reached; /* the last test has reached --target-acc */
};

/* Steps as one graph of the device. */
struct replay {
    int can;        /* the device records, and options allow it */
    int is_wanted;  /* it is to record a step */
    int is_warm;    /* a step of all images was made */
    void *graph;    /* of a step, or NULL */
    uint64_t bytes; /* of gradients that it averages */
    struct phase_spans spans; /* of its phases */
};

/* The step that is being made, or was the last. */
struct step {
    size_t all;           /* images of all ranks */
    size_t images;        /* of this rank */
    size_t first;         /* the first of them, counted in the global batch */
    int is_seen;          /* the host has read what it has left */
    struct {
        uint64_t optim, rate; /* steps, */
        double lr;            /* and the rate */
    } before;             /* the step: to be had again if it does not count */
    double loss, n_right; /* of this rank's images */
    int bad_place;        /* the first place of this rank that is not finite
                           * (finite.h), or 0 */
    struct step_record *record; /* of the device */
    struct replay replay;
};

/* How far an epoch is, and what this rank has summed in it. */
struct tally {
    int is_open; /* the epoch has begun and has steps left */
    int is_trained; /* it has all its steps, but may lack its test and its checkpoint */
    size_t done; /* images of all ranks in its steps */
    double loss, n_right;
    size_t n_steps, n_images; /* of this rank */
    double start, data;       /* when it was opened: time, and seconds so far */
    struct phases phases;     /* the same */
};

struct trainer {
    const struct args *args; /* borrowed */
    struct ddp *ddp;         /* borrowed */
    const struct device *device;
    const struct model_desc *desc;
    struct dataset data;
    struct pixel_scale scale;
    struct sampler sampler;
    struct loader *loader;      /* of the training images */
    struct blocks blocks;       /* into which a step's images are cut */
    struct model *model, *eval; /* eval: a view of model, to test with */
    struct learning_rate rate;
    struct optim optim;
    uint64_t epoch;        /* epochs done */
    size_t skip;           /* steps that the next epoch has made already */
    struct step step;
    struct tally tally;
    struct rescue rescue;
    struct saving saving;
    struct test_pass test;
    int stop;              /* the signal that ended the run; 0: none */
    struct stop_pace pace; /* of asking for it */
    uint32_t param_crc;    /* after the last epoch; equal on all ranks */
    double data_seconds;   /* spent gathering batches, or waiting for them */
    struct phase_log phases; /* of all steps so far */
};

/* Load the data on this rank alone: on a newcomer before it joins, so that nobody waits
 * for it.
 *
 * Shapes:    *t is zero except for args.
 * Result:    0, or -1 with train_error() set.
 */
int trainer_load(struct trainer *t);

/* Prepare data, model, optimizer, and on rank 0 the checkpoint to resume from.
 * All ranks that begin the run call it, and meet once, to share the data of their host.
 *
 * Shapes:    *t is zero except for args and ddp.
 * Result:    0, or -1 with train_error() set.
 * Ownership: end it by trainer_fini() either way, which leaves args and ddp.
 */
int trainer_init(struct trainer *t);
void trainer_fini(struct trainer *t);

/* On rank 0: return 1 if steps had other images before the resume. */
int trainer_has_other_steps(const struct trainer *t);

/* Send rank 0's epoch, parameters and optimizer state to all ranks.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer_share(struct trainer *t);

/* Train one epoch; `progress` is called after each step.
 *
 * Result:    0 and *stats, which are this rank's own and lack the test; or -1
 *            with train_error() set; or 1, on every rank after the same step,
 *            when a signal says to stop (t->stop and t->skip are set) or
 *            t->pace.n_new newcomers wait; *stats is then not set.  After
 *            trainer_grow(), or a -1 and trainer_survive(), the next call
 *            trains what is left of the epoch, if t->tally.is_trained is not
 *            set.  When one rank's loss is not finite, all ranks return -1 from
 *            the same step with the same sentence, and parameters and optimizer
 *            are as before the step.
 */
int trainer_epoch(struct trainer *t, struct epoch_stats *stats,
                  void (*progress)(void *arg, const struct progress_stats *now),
                  void *arg);

/* Return this rank's figures of the last epoch, as trainer_epoch() does. */
struct epoch_stats trainer_figures(const struct trainer *t);

/* Say that the last epoch has been tested and saved. */
void trainer_close_epoch(struct trainer *t);

/* With --elastic the ranks change, and all that are then there call one of these:
 * trainer_survive() after a function failed and t->ddp->has_lost, trainer_grow() after
 * trainer_epoch() has found newcomers, and these trainer_join(), which also prepares them.
 *
 * Result:    0: every rank has the state after the last step that any of them has
 *            finished; the images that this epoch has left are divided among them;
 *            t->stop is 0.  If t->rescue.is_training is 0, a rank died before all had
 *            begun, and all begin the run anew.
 *            Else -1 with train_error() set; if t->ddp->has_lost, more ranks have
 *            died, and trainer_survive() goes on.
 */
int trainer_survive(struct trainer *t);
int trainer_grow(struct trainer *t);
int trainer_join(struct trainer *t);

/* On a rank that has become rank 0: write the checkpoints from now on.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer_take_over(struct trainer *t);

/* Make the first step of the first epoch n times; fewer if a signal says to
 * stop, and t->stop is set then.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer_repeat(struct trainer *t, uint64_t n);

/* Return 1 if no epoch is left. */
int trainer_is_done(const struct trainer *t);

/* Test, each rank its share.  Then sum *stats over all ranks; check that all
 * ranks have the same parameters, and that these, the optimizer's state and the
 * test's loss are finite; and set t->test.has_reached, the same on all ranks.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer_test(struct trainer *t, struct epoch_stats *stats);

/* Write a checkpoint: trainer_save() only if one is due after this epoch,
 * trainer_save_now() always.  All ranks call the function, and rank 0 writes.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer_save(struct trainer *t);
int trainer_save_now(struct trainer *t);

/* Replace *value by the largest of all ranks. */
int trainer_max(struct trainer *t, double *value);

#endif
