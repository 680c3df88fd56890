/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h - COLL_METRICS: counters of this process's operations in a file, in
 * Prometheus' text form.
 *
 * Each communicator has a number and counters of its own, which stay when it has ended;
 * from the 33rd communicator on, all share the counters of number 0.  So the file has
 * a limited length, also if a program makes communicators again and again.
 */
#ifndef COLL_LIB_TRACE_METRICS_H
#define COLL_LIB_TRACE_METRICS_H

#include "include/coll/coll.h"

struct coll__metrics;
struct coll__traced;

int coll__metrics_is_on(void);

/* Return the number of a communicator that is made now; id: the same on all its ranks. */
int coll__metrics_add(const char *id, int size);

/* Write the file now, if COLL_METRICS is set.  Any thread that holds no lock. */
void coll__metrics_write(void);

/* ---- metrics.c; under trace.c's lock ---------------------------------------- */

/* COLL_OK, or COLL_ERR_INVALID, logged: the file cannot be written. */
int coll__metrics_open(int rank);
int coll__metrics_number(const char *id, int size);
void coll__metrics_note(const struct coll__traced *op);
void coll__metrics_waited(int number, enum coll_collective collective,
                          double seconds);
void coll__metrics_late(int number, double seconds);

/* Copy all counters; NULL: no memory. */
struct coll__metrics *coll__metrics_copy(void);

/* Write a copy to the file, unless a later one is there, and free it.  Returns 0 if that
 * failed, logged.  Not under trace.c's lock. */
int coll__metrics_put(struct coll__metrics *copy);

#endif
