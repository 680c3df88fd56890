/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.h - COLL_HISTORY: each rank's last calls in a file, as JSON, when a
 * communicator fails and when the process gets a SIGUSR2.
 *
 * The file holds the history (lib/trace/history.h) of every communicator of the process.
 * The tool coll_history reads the files of all ranks and says which ranks are missing.
 * While the variable is set, calls are traced (lib/trace/trace.h), for their times.
 */
#ifndef COLL_LIB_TRACE_RECORDER_H
#define COLL_LIB_TRACE_RECORDER_H

#include "lib/trace/history.h"

/* coll__now() when the calls of SERIES_HOST began and ended; 0: unknown. */
struct coll__times {
    _Atomic double called[COLL__HISTORY], ended[COLL__HISTORY];
};

/* The data of a communicator that the file shows; all pointers are borrowed. */
struct coll__recorded {
    unsigned generation; /* coll__generation of its process (lib/util/lock.h) */
    int rank, size;
    const int *ranks; /* [size]: ranks in the first communicator; NULL: 0, 1, 2 ... */
    struct coll__history *history; /* [N_HISTORIES] */
    const _Atomic int *status;     /* its failure or COLL_OK, stored with release */
    const char *failure;           /* the failure's text, valid once *status is set */
    char id[17]; /* the same on all its ranks, and unique */
};

struct coll__recorder {
    struct coll__recorded what;
    struct coll__recorder *next,
        **at;                  /* in the list, under recorder.c's lock */
    struct coll__times *times; /* NULL: not recorded, and not in the list */
    int is_told;               /* under the lock: its failure is in the file */
};

/* Read COLL_HISTORY when the process makes its first communicator, whose rank names the
 * file.  Remove the file of an earlier job; rename that of an earlier run of this job.
 *
 * Errors:    COLL_ERR_INVALID, logged: the file cannot be written.
 */
int coll__recorder_open(int rank, int size);

/* Is COLL_HISTORY set? */
int coll__recorder_is_on(void);

/* Record a communicator from now on; stop recording it, also in a child. */
void coll__recorder_add(struct coll__recorder *recorder,
                        const struct coll__recorded *what);
void coll__recorder_remove(struct coll__recorder *recorder);

/* Note when a call of SERIES_HOST began, or ended. */
void coll__recorder_called(struct coll__recorder *recorder,
                           const struct coll__signature *sig, double when);
void coll__recorder_ended(struct coll__recorder *recorder,
                          const struct coll__signature *sig, double when);

/* The communicator has failed: write the file, if COLL_HISTORY is set.  Any thread that
 * holds no lock. */
void coll__recorder_write(struct coll__recorder *recorder);

/* Write the file now, if COLL_HISTORY is set. */
void coll__recorder_write_all(void);

#endif
