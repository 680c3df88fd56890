/* SPDX-License-Identifier: BSD-3-Clause */
/* fail.h - a communicator fails: who notices, who is told, and why it failed. */
#ifndef COLL_LIB_COMM_FAIL_H
#define COLL_LIB_COMM_FAIL_H

struct coll__signature;
struct coll__xfer;
struct coll_comm;

/* Fail the communicator here and on every other rank; the first failure
 * stays.  Any thread, also if another thread ends the communicator as soon as it has
 * failed.  Returns status. */
int coll__comm_fail(struct coll_comm *comm, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Wait until no thread is in coll__comm_fail(): before the communicator ends. */
void coll__comm_await_tellers(const struct coll_comm *comm);

/* Fail the communicator on this rank only: the other ranks know already.  Any
 * thread. */
void coll__comm_set_failure(struct coll_comm *comm, int status,
                            const char *text);

/* Fail this communicator only.  The caller passes the failure on to what depends on it.
 * Returns whether this was the first failure. */
int coll__comm_note_failure(struct coll_comm *comm, int status,
                            const char *text);

/* Return the communicator's failure, logged for this thread, or COLL_OK. */
int coll__comm_status(struct coll_comm *comm);

/* A program of the call failed with this status.  Find the cause and fail the
 * communicator.  COLL_OK means that the cause is not known yet: then ask
 * coll__comm_still_lost().
 *
 * Shapes:    fault: the transfer that failed; NULL if the transport as a whole, or the
 *            device, failed.
 */
int coll__comm_run_failed(struct coll_comm *comm,
                          const struct coll__signature *call,
                          const struct coll__xfer *fault, int status);

/* After coll__comm_run_failed() has returned COLL_OK: return the communicator's
 * failure, or COLL_OK while the cause is still not known. */
int coll__comm_still_lost(struct coll_comm *comm);

/* Look for messages that will never be received because the ranks called different
 * operations.  Done in a long wait, and before the history forgets a call.  COLL_OK or
 * a status. */
int coll__comm_look_around(struct coll_comm *comm);

#define COLL__DISAGREE                                                         \
    "the ranks disagree: rank %d called %s where rank %d called %s; %s"

#endif
