/* SPDX-License-Identifier: BSD-3-Clause */
/* rate.h - the learning rate of each step of a run: a warm-up, then a schedule.
 *
 * Both depend only on the number of the step in the run, so that a run that is
 * resumed follows the same curve.
 */
#ifndef COLL_TRAINER_RATE_H
#define COLL_TRAINER_RATE_H

#include "trainer/args.h"

struct learning_rate {
    double base;                   /* of one rank */
    double factor;                 /* the factor of --lr-scale */
    uint64_t warmup;               /* steps of the warm-up */
    uint64_t epoch_steps, n_steps; /* of an epoch; of all epochs */
    struct schedule schedule;      /* after the warm-up */
    uint64_t step; /* steps of the run so far; the epochs before a resume
                    * count as epoch_steps each */
};

/* Set the rate by the options, for a run that has made no step. */
void rate_init(struct learning_rate *rate, const struct args *args, int n_ranks,
               uint64_t epoch_steps);

/* Return the rate after the warm-up and before the schedule lowers it. */
double rate_full(const struct learning_rate *rate);

/* Return the rate of step number `step`, counted from 1.
 *
 * Result:    in the warm-up, by Horovod's rule: after a share w of it, the rate of
 *            one rank times w (factor - 1) + 1.  Then the full rate times
 *            const:     1
 *            step:E,F:  F^(epochs done / E), rounded down; epochs of the warm-up count
 *            cosine:    (1 + cos(pi s / S)) / 2, after s of the S steps that
 *                       follow the warm-up: from 1 to almost 0
 *            These are PyTorch's StepLR each epoch and CosineAnnealingLR each
 *            step.
 * Source:    Loshchilov and Hutter, "SGDR", ICLR 2017, without restarts; Goyal et
 *            al., arXiv:1706.02677 (warm-up).
 */
double rate_at(const struct learning_rate *rate, uint64_t step);

#endif
