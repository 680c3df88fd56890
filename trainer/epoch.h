/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.h - the figures of an epoch, and of its steps so far. */
#ifndef COLL_TRAINER_EPOCH_H
#define COLL_TRAINER_EPOCH_H

#include "trainer/phase.h"

#include <stddef.h>
#include <stdint.h>

/* An epoch's figures, over all ranks. */
struct epoch_stats {
    uint64_t epoch;
    size_t n_steps;  /* of this process: fewer if it was resumed within the
                     * epoch */
    size_t n_images; /* that a rank had in them */
    size_t n_counted; /* images of all ranks in all steps of the epoch */
    double loss, accuracy, test_loss, test_accuracy, lr;
    double seconds; /* of the training steps, on the slowest rank */
    double images_per_s;
    double comm_seconds;  /* averaging gradients, mean over the ranks */
    double data_seconds;  /* getting batches, mean over the ranks */
    struct phases phases; /* of this rank */
};

/* Means over this rank's steps so far, for the progress bar. */
struct progress_stats {
    size_t step; /* steps of the epoch done */
    double loss, accuracy, seconds;
    double step_loss; /* of the last step alone */
};

#endif
