/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - whose checkpoints lie in a folder: one run's at a time.
 *
 * DIR/.run names the run that writes there, and is locked while it does.  A run
 * that begins anew moves what an earlier one has left to DIR/NAME-OF-THAT-RUN,
 * so that --resume auto never takes the later epoch of another run.
 */
#ifndef COLL_TRAINER_FOLDER_H
#define COLL_TRAINER_FOLDER_H

#define FOLDER_NAME 64

struct folder {
    const char *dir;         /* borrowed */
    int fd;                  /* of .run, locked; 0 for none */
    char run[FOLDER_NAME];   /* whose checkpoints they are, "" nobody's */
    char moved[FOLDER_NAME]; /* where they went, "" nowhere */
};

/* Lock the folder, which is there.
 *
 * Shapes:    *f is zero.
 * Result:    0, or -1 with train_error() set: another job writes there.
 * Ownership: folder_fini() lets it go, as the end of the process does.
 */
int folder_init(struct folder *f, const char *dir);
void folder_fini(struct folder *f);

/* Is this process of a job that was started again (collrun --max-restarts), and
 * are the checkpoints its own? */
int folder_is_restart(const struct folder *f);

/* Begin to write: go on with the run that is there, or move its checkpoints
 * away.  Result: 0, or -1 with train_error() set. */
int folder_begin(struct folder *f, int goes_on);

#endif
