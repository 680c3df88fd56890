/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - the times of this process's operations: COLL_PROFILE's table, COLL_TIMELINE's
 * file and COLL_METRICS's counters.
 *
 * While all are off, an operation costs one load and one branch more.  If one is on, it
 * costs two reads of the clock and a lock; the timeline also costs a write of about 500
 * bytes.
 *
 * Threads: the owner of a communicator notes its operations.  The data here is under
 * trace.c's lock.  coll__trace_flags is written under this lock: when the first
 * communicator is made, and when writing a file fails.  Any thread reads it (relaxed: a
 * thread that sees a change late misses an operation, and nothing else depends on it).
 */
#ifndef COLL_LIB_TRACE_TRACE_H
#define COLL_LIB_TRACE_TRACE_H

#include "include/coll/coll.h"

#include <stdatomic.h>

enum {
    TRACE_PROFILE = 1,
    TRACE_TIMELINE = 2,
    TRACE_TIMES = 4,
    TRACE_METRICS = 8
};

extern atomic_int coll__trace_flags __attribute__((visibility("hidden")));

static inline int coll__trace_is_on(void)
{
    return __builtin_expect(
        atomic_load_explicit(&coll__trace_flags, memory_order_relaxed) != 0, 0);
}

/* An operation that has ended. */
struct coll__traced {
    enum coll_collective collective;
    enum coll_type type;
    size_t count, bytes; /* of the call, as its caller gave them */
    int n_ranks;
    int metrics;            /* its communicator's number in metrics.h */
    uint64_t user_tag;      /* its caller's; 0 if there is none */
    const char *algorithm;  /* borrowed */
    const char *transports; /* "self,shm"; borrowed */
    /* coll__now() when it was started, when it was first on its channel, and when it
     * had ended. */
    double called, begun, ended;
};

/* Read COLL_PROFILE, COLL_TIMELINE and COLL_METRICS and open their files, when the process
 * makes its first communicator, whose rank names them.
 *
 * Result:    COLL_OK, also if all are off.
 * Errors:    COLL_ERR_INVALID, logged: a file cannot be written.
 * Threads:   any.
 */
int coll__trace_open(int rank, int n_ranks);

/* Replace the first "%r" of a file's name by the rank's number.  Returns 1, or 0 if there
 * is no "%r".  path has PATH_MAX bytes. */
int coll__trace_path(const char *text, int rank, char *path);

/* Have operations read the clock, for recorder.c. */
void coll__trace_times(void);

/* note: note an operation that has ended.  waited: note how long a caller has waited for
 * an operation; metrics: its communicator's number. */
void coll__trace_note(const struct coll__traced *op);
void coll__trace_waited(int metrics, enum coll_collective collective,
                        double seconds);

/* A communicator ends: note how late this rank came to the calls that end on all ranks
 * together, in all n of them. */
void coll__trace_late(int metrics, double seconds, uint64_t n);

/* Write the profile now; it is also written at the program's exit. */
void coll__trace_write(void);

/* ---- profile.c; under trace.c's lock --------------------------------------- */

/* 0, or -1 and errno. */
int coll__profile_open(const char *path, int rank, int n_ranks);
void coll__profile_note(const struct coll__traced *op);
void coll__profile_waited(double seconds);
void coll__profile_late(double seconds, uint64_t n);
int coll__profile_write(void);

/* ---- timeline.c; under trace.c's lock -------------------------------------- */

int coll__timeline_open(const char *path);
int coll__timeline_note(const struct coll__traced *op);
int coll__timeline_span(const char *row, const char *what, double begin,
                        double end);

#endif
