/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - a folder of checkpoints belongs to one run at a time.
 *
 * DIR/.run names the run that writes there, which holds a lock on it.  A run
 * that begins anew moves the checkpoints of an earlier run to
 * DIR/NAME-OF-THAT-RUN, so that --resume auto never takes those.
 */
#ifndef COLL_TRAINER_FOLDER_H
#define COLL_TRAINER_FOLDER_H

#define FOLDER_NAME 64

struct folder {
    const char *dir;         /* borrowed */
    int fd;                  /* of .run, locked; 0 for none */
    char run[FOLDER_NAME];   /* the run whose checkpoints are there; "": none */
    char moved[FOLDER_NAME]; /* where they were moved to; "": nowhere */
};

/* Lock a folder that exists.
 *
 * Shapes:    *f is zero.
 * Result:    0, or -1 with train_error() set: another job writes there.
 * Ownership: folder_fini() gives the lock back, as the end of the process does.
 */
int folder_init(struct folder *f, const char *dir);
void folder_fini(struct folder *f);

/* Return 1 if this job was started again (collrun --max-restarts) and the
 * checkpoints are its own. */
int folder_is_restart(const struct folder *f);

/* Begin to write: continue the run whose checkpoints are in the folder (goes_on), or
 * move these checkpoints away.
 *
 * Result:    0, or -1 with train_error() set.
 */
int folder_begin(struct folder *f, int goes_on);

#endif
