/* SPDX-License-Identifier: BSD-3-Clause */
/* train_state.h - what train.c, step.c, replay.c, train_divide.c, train_state.c and elastic.c
 * share. */
#ifndef COLL_TRAINER_TRAIN_STATE_H
#define COLL_TRAINER_TRAIN_STATE_H

#include <stddef.h>

struct trainer;

/* Return the number of images of all ranks in a step. */
size_t trainer__global_batch(const struct trainer *t);

/* Make a step of the epoch: 0, or -1 with train_error() set. */
int trainer__step(struct trainer *t, size_t step);

/* trainer__replay: do the work of a step that has begun, by `put` or by a graph of what
 * `put` does.  trainer__make_replay: find out if there are to be graphs.  Both return 0, or
 * -1 with train_error() set.  trainer__drop_replay: drop the graph.  trainer__renew_replay: do
 * so, since the ranks change, and begin to record anew. */
int trainer__replay(struct trainer *t, size_t step,
                    int (*put)(struct trainer *t, size_t step));
int trainer__make_replay(struct trainer *t);
void trainer__drop_replay(struct trainer *t);
void trainer__renew_replay(struct trainer *t);

/* Begin an epoch's sums. */
void trainer__open_tally(struct trainer *t);

/* Add the step that was made to the epoch's sums. */
void trainer__count_step(struct trainer *t);

/* trainer__make_rescue: allocate what --elastic needs; 0, or -1 with train_error() set.
 * trainer__begin_rescue: keep what a step will change, before it begins.  trainer__undo: take
 * back what a step that has failed has done to parameters and optimizer.
 * trainer__drop_rescue: free it all. */
int trainer__make_rescue(struct trainer *t);
void trainer__begin_rescue(struct trainer *t);
void trainer__undo(struct trainer *t);
void trainer__drop_rescue(struct trainer *t);

/* Cut the images of a step of so many ranks into blocks, without memory for their sums. */
void trainer__cut(struct trainer *t, int n_ranks);

/* Divide the training among the ranks: blocks, buckets, images and rate.
 *
 * Shapes:    the data and the model are there.
 * Result:    0, or -1 with train_error() set.
 */
int trainer__divide(struct trainer *t);

/* On rank 0: read the checkpoint to resume from, if there is one, and begin to
 * write others.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer__resume(struct trainer *t);

/* On rank 0: check that checkpoints can be written, and keep other runs out of
 * their folder.
 *
 * Result:    0, or -1 with train_error() set.
 */
int trainer__probe(struct trainer *t);

/* Free the state of all ranks, which rank 0 holds between loading and sharing.
 */
void trainer__free_whole(struct trainer *t);

/* Say that the parameters were written. */
void trainer__params_changed(struct trainer *t);

/* Send a rank's running statistics to all ranks.  Each rank computes statistics of its
 * own images, and rank 0's count as the model's, as in PyTorch.  PyTorch sends them
 * before each step.  But no training step reads them, so it is enough to send them
 * before a test or a checkpoint. */
int trainer__share_running(struct trainer *t, int root);

#endif
