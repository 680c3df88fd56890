/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - stop a run whose numbers are NaN or infinite, on all ranks at the
 * same step.
 *
 * Each step checks its loss, and each epoch checks everything that a checkpoint
 * would hold, so that no checkpoint holds such numbers.
 */
#ifndef COLL_TRAINER_WATCH_H
#define COLL_TRAINER_WATCH_H

#include <stddef.h>

struct model;
struct trainer;

/* After a forward pass of m over n images, before a backward pass: if its
 * loss is not finite, keep the first place that is not.  Returns 0, or -1 with
 * train_error() set. */
int watch_pass(struct trainer *t, struct model *m, int n, double loss);

/* Stop at step `step` (from 0), in which a rank's loss was not finite; all ranks call it.
 * Returns -1 with train_error() set, the same sentence on every rank. */
int watch_step(struct trainer *t, size_t step);

/* After an epoch, check that the test's loss over all ranks, the parameters and
 * the optimizer's state are finite.
 *
 * Result:    0; or -1 with train_error() set, the same sentence on every rank.
 * Cost:      one pass over parameters and state, and one small allreduce.
 */
int watch_epoch(struct trainer *t, double test_loss);

#endif
