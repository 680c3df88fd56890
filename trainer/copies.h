/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.h - copies of the parts that ranks update with ZeRO, so that no death loses one.
 *
 * A shard is what a rank alone updates: its parts of the parameters and the optimizer's
 * state of these.  After each step a rank keeps a copy of its shard and sends another to
 * the next rank.  Each holds the copies of the last two steps.
 */
#ifndef COLL_TRAINER_COPIES_H
#define COLL_TRAINER_COPIES_H

#include "trainer/ddp.h"

/* The copy of a shard as it was after a step. */
struct copy {
    int is_there;
    uint64_t step;
    /* of the device: parameters, then the arrays of the optimizer's state */
    float *values;
};

struct copies {
    const struct device *device;
    int rank, size; /* this rank, and the ranks whose shards there are */
    int n_buckets;
    struct ddp_part *parts; /* [size][n_buckets] */
    size_t width;           /* numbers of a parameter: itself and its state */
    struct copy own[2],
        previous[2]; /* of this rank and of the one before it: the
                                       * last, and the one before */
};

struct trainer;

/* Make room for copies of the shards of these ranks, after ddp_make_buckets(), and make
 * the first copies; all ranks call it.
 *
 * Result:    0, or -1 with train_error() set.
 * Ownership: the caller ends t->rescue.copies by copies_destroy() in any case.
 */
int copies_make(struct trainer *t);
void copies_destroy(struct copies *s); /* NULL is allowed */

/* Copy this rank's shard, and exchange copies with its neighbours; all ranks call it.
 * When a rank returns 0, the rank before it has made its copy. */
int copies_take(struct trainer *t);

/* Return the copy of that step, or NULL. */
const struct copy *copies_find(const struct copy two[2], uint64_t step);

/* Return the numbers of a rank's shard. */
size_t copies_len(const struct copies *s, int rank);

/* Copy a rank's shard to its place in `whole`: [width][parameters], both of the device. */
void copies_spread(const struct copies *s, int rank, const float *values,
                   float *whole, size_t n_params);

#endif
