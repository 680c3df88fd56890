/* SPDX-License-Identifier: BSD-3-Clause */
/* trace.h - what the operations of this process took: COLL_PROFILE's table and
 * COLL_TIMELINE's file.
 *
 * While neither is asked for, an operation pays for one load and a branch that
 * is never taken.  Where one is, it pays for two looks at the clock and a lock,
 * and for the timeline a write of about 500 bytes.
 *
 * Threads: whoever has the turn of a communicator notes its operations; what
 * this folder keeps of them is under trace.c's lock.  coll__trace_flags is
 * written under it, once when the first communicator is made and when a file
 * cannot be written on, and read by anybody (relaxed: who sees it late misses
 * an operation, and nothing else depends on it).
 */
#ifndef COLL_LIB_TRACE_TRACE_H
#define COLL_LIB_TRACE_TRACE_H

#include "include/coll/coll.h"

#include <stdatomic.h>

enum { TRACE_PROFILE = 1, TRACE_TIMELINE = 2, TRACE_TIMES = 4 };

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
    const char *algorithm;  /* borrowed */
    const char *transports; /* "self,shm"; borrowed */
    /* On coll__now(): when it was started, when its turn on its channel came, and
     * when it had ended. */
    double called, begun, ended;
};

/* Read COLL_PROFILE and COLL_TIMELINE and open their files, at the first
 * communicator of the process, whose rank names them.
 *
 * Result:    COLL_OK, also where nothing is asked for.
 * Errors:    COLL_ERR_INVALID, logged: a file cannot be written.
 * Threads:   any.
 */
int coll__trace_open(int rank, int n_ranks);

/* Put the rank's number in the place of the first "%r" of a file's name: 1, or 0
 * without one.  path has PATH_MAX bytes. */
int coll__trace_path(const char *text, int rank, char *path);

/* Have operations look at the clock, for who keeps their times himself. */
void coll__trace_times(void);

/* Note an operation; and that a caller was within a wait for so long. */
void coll__trace_note(const struct coll__traced *op);
void coll__trace_waited(double seconds);

/* Write the profile as it is now; it is written at the program's exit as well. */
void coll__trace_write(void);

/* ---- profile.c; under trace.c's lock --------------------------------------- */

/* 0, or -1 and errno. */
int coll__profile_open(const char *path, int rank, int n_ranks);
void coll__profile_note(const struct coll__traced *op);
void coll__profile_waited(double seconds);
int coll__profile_write(void);

/* ---- timeline.c; under trace.c's lock -------------------------------------- */

int coll__timeline_open(const char *path);
int coll__timeline_note(const struct coll__traced *op);
int coll__timeline_span(const char *row, const char *what, double begin,
                        double end);

#endif
