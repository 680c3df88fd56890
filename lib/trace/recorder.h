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

struct coll_comm;

/* When the calls of the host's series began and ended, on coll__now(); 0: unknown. */
struct coll__times {
    _Atomic double called[COLL__HISTORY], ended[COLL__HISTORY];
};

/* Of a communicator. */
struct coll__recorder {
    struct coll_comm *next, **at; /* in the list, under recorder.c's lock */
    struct coll__times
        *times;  /* NULL: the variable is not set, and it is in no list */
    int is_told; /* under the lock: its failure is in the file */
    char id[17]; /* alike on its ranks, and no other communicator's */
};

/* Read COLL_HISTORY at the first communicator of the process, whose rank names the
 * file, and take away one of a job before, or keep that of a run before this one.
 *
 * Errors:    COLL_ERR_INVALID, logged: it cannot be written.
 */
int coll__recorder_open(int rank, int size);

/* Have the communicator in the file from now on; and no more.  The first and the last
 * one begin and end to take SIGUSR2, where the program has no use for it. */
void coll__recorder_add(struct coll_comm *comm);
void coll__recorder_remove(struct coll_comm *comm);

/* Note when a call of the host's series began, or ended. */
void coll__recorder_called(struct coll_comm *comm,
                           const struct coll__head *head, double when);
void coll__recorder_ended(struct coll_comm *comm, const struct coll__head *head,
                          double when);

/* The communicator has failed: write the file, if there is to be one.  Any thread that
 * holds no lock. */
void coll__recorder_write(struct coll_comm *comm);

#endif
