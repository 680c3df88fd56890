/* SPDX-License-Identifier: BSD-3-Clause */
/* train_state.h - between train.c and train_state.c. */
#ifndef COLL_TRAINER_TRAIN_STATE_H
#define COLL_TRAINER_TRAIN_STATE_H

#include "trainer/train.h"

/* On rank 0: read the checkpoint to resume from, if there is one, and begin to
 * write others.  Result: 0, or -1 with train_error() set. */
int trainer__resume(struct trainer *t);

/* On rank 0: find out whether checkpoints can be written, where they are to be,
 * and keep other runs out.  Result: 0, or -1 with train_error() set. */
int trainer__probe(struct trainer *t);

/* Free the state of all ranks that rank 0 holds between loading and sharing. */
void trainer__free_whole(struct trainer *t);

/* Say that the parameters were written. */
void trainer__params_changed(struct trainer *t);

/* Each rank's statistics are of its own images; those of rank 0 are the
 * model's, as in PyTorch, where they are sent before each step.  No step of
 * training reads them, so that before a test or a checkpoint is soon enough. */
int trainer__share_running(struct trainer *t);

#endif
