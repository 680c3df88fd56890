/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint.h - the state of a training run in a file, written by rank 0.
 *
 * DIR/epoch-0003.ckpt: a header of 64-bit words, the name of the data set, the
 * parameters, the optimizer's state, the layers' running statistics, and the CRC-32 of
 * all that, in this machine's byte order.
 * A file appears whole or not at all: it is written under another name, synced
 * and renamed.
 */
#ifndef COLL_TRAINER_CHECKPOINT_H
#define COLL_TRAINER_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#define CHECKPOINT_PATH 1024
#define CHECKPOINT_DAMAGED (-2)
#define CHECKPOINT_NAME 32 /* bytes of a data set's name, with its end */

struct device;

/* What decides which images are in a step; n_ranks 0: not known. */
struct checkpoint_steps {
    uint64_t n_ranks, batch;    /* images of a rank in a step */
    uint64_t shard, drops_rest; /* as of struct sampler */
};

/* What is saved, or what loading fills in. */
struct checkpoint {
    uint64_t epoch, step, seed; /* epochs and steps done */
    uint64_t skip; /* steps of an epoch that is not finished; also in the
                    * file's name, epoch-0003+000120.ckpt */
    struct checkpoint_steps steps;
    uint64_t optim;             /* enum optim_kind */
    char dataset[CHECKPOINT_NAME];   /* "": of an earlier version's file */
    const struct device *device;
    float *params, *state, *running; /* the caller's, of the device */
    size_t n_params, n_state, n_running;
};

/* Check that files can be made in dir, making dir if it is missing.
 *
 * Result:    0, or -1 with train_error() set.
 */
int checkpoint_probe(const char *dir);

/* Write dir/epoch-NNNN.ckpt and remove all but the newest `keep` checkpoints up
 * to it (0 removes none).
 *
 * Result:    0, or -1 with train_error() set and dir as before.  Numbers that
 *            are not finite are neither written nor accepted when a file is
 *            read.
 */
int checkpoint_save(const struct checkpoint *c, const char *dir, size_t keep);

/* Read a checkpoint.
 *
 * Shapes:    params, state, running, their lengths and optim are set, and must fit.
 *            dataset is that of the run, and may be another one than the file's; an
 *            error sentence about another model names the file's.
 * Result:    0 and the other fields; or with train_error() set and nothing
 *            written -1 (no such file, of another model, optimizer or version),
 *            or CHECKPOINT_DAMAGED, where an older one may be good (cut off, a
 *            wrong check sum, no checkpoint at all, not finite).
 */
int checkpoint_load(struct checkpoint *c, const char *path);

/* Find the newest checkpoint in dir.
 *
 * Result:    1 and its path, 0 when there is none, -1 with train_error() set.
 */
int checkpoint_newest(const char *dir, char path[CHECKPOINT_PATH]);

/* Replace the path that the last call returned by that of the next older
 * checkpoint.
 *
 * Result:    as of checkpoint_newest(); path is unchanged if there is none.
 */
int checkpoint_older(const char *dir, char path[CHECKPOINT_PATH]);

#endif
