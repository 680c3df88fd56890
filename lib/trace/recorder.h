/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.h - COLL_HISTORY: each rank's last calls in a file, as JSON, when a
 * communicator fails and when the process gets a SIGUSR2.
 *
 * What is written is what is kept anyway (lib/trace/history.h), of every communicator
 * of the process; coll_history reads the files of all ranks and says who is missing.
 * While the variable is set, calls are traced (lib/trace/trace.h), for their times.
 */
#ifndef COLL_LIB_TRACE_RECORDER_H
#define COLL_LIB_TRACE_RECORDER_H

#include "lib/trace/history.h"

/* When the calls of the host's series began and ended, on coll__now(); 0: unknown. */
struct coll__times {
    _Atomic double called[COLL__HISTORY], ended[COLL__HISTORY];
};

/* What is recorded of a communicator; all of it is borrowed. */
struct coll__recorded {
    unsigned generation; /* of the process that made it (lib/util/lock.h) */
    int rank, size;
    const int *ranks; /* [size]: in the first communicator; NULL: 0, 1, 2 ... */
    struct coll__history *history; /* [N_HISTORIES] */
    const _Atomic int *status;     /* of its failure, stored with release */
    const char *failure;           /* its text, valid once there is a status */
    char id[17]; /* alike on its ranks, and no other communicator's */
};

struct coll__recorder {
    struct coll__recorded what;
    struct coll__recorder *next,
        **at;                  /* in the list, under recorder.c's lock */
    struct coll__times *times; /* NULL: nothing is recorded, it is in no list */
    int is_told;               /* under the lock: its failure is in the file */
};

/* Read COLL_HISTORY at the first communicator of the process, whose rank names the
 * file, and take away one of a job before, or keep that of a run before this one.
 *
 * Errors:    COLL_ERR_INVALID, logged: it cannot be written.
 */
int coll__recorder_open(int rank, int size);

/* Is COLL_HISTORY set?  Does the file have any communicator? */
int coll__recorder_is_on(void);
int coll__recorder_is_used(void);

/* Have a communicator in the file from now on; and no more, also in a child. */
void coll__recorder_add(struct coll__recorder *recorder,
                        const struct coll__recorded *what);
void coll__recorder_remove(struct coll__recorder *recorder);

/* Note when a call of the host's series began, or ended. */
void coll__recorder_called(struct coll__recorder *recorder,
                           const struct coll__head *head, double when);
void coll__recorder_ended(struct coll__recorder *recorder,
                          const struct coll__head *head, double when);

/* The communicator has failed: write the file, if there is to be one.  Any thread that
 * holds no lock. */
void coll__recorder_write(struct coll__recorder *recorder);

/* Write the file now, if there is to be one. */
void coll__recorder_write_all(void);

#endif
