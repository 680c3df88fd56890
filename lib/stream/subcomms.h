/* SPDX-License-Identifier: BSD-3-Clause */
/* subcomms.h - the sub-communicators of a communicator.
 *
 * The sub-communicators are made by splitting the communicator, and the caller does not
 * see them.  If one of them or the parent fails, all fail with the same message.  The
 * sub-communicators are destroyed with the parent.
 */
#ifndef COLL_LIB_STREAM_SUBCOMMS_H
#define COLL_LIB_STREAM_SUBCOMMS_H

struct coll_comm;
struct coll_mem_stats;

enum { SUBCOMM_INTRA, SUBCOMM_INTER, N_SUBCOMMS };

/* A communicator and its sub-communicators.  The struct exists until its last member is
 * freed. */
struct coll__subcomms;

/* Attach the sub-communicators to `whole`, which owns them from now on.
 * COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__subcomms_make(struct coll_comm *whole,
                        struct coll_comm *const parts[N_SUBCOMMS]);

/* Return a sub-communicator of comm; NULL if comm never had it or has destroyed it. */
struct coll_comm *coll__subcomm(const struct coll_comm *comm, int part);

/* comm has just failed: fail the other members.  Any thread. */
void coll__subcomms_fail(struct coll_comm *comm, int status, const char *text);

/* As comm's owner: wait until its sub-communicators have done all enqueued operations.
 * COLL_OK, or comm's failure. */
int coll__subcomms_drain(struct coll_comm *comm);

/* Destroy one sub-communicator; a status, logged. */
int coll__subcomm_destroy(struct coll_comm *part);

/* Add the memory of its sub-communicators.  For comm's caller. */
void coll__subcomms_bytes(const struct coll_comm *comm,
                          struct coll_mem_stats *stats);

/* comm is being destroyed: destroy its sub-communicators first, if any.  Returns their
 * status, logged; idempotent. */
int coll__subcomms_leave(struct coll_comm *comm);

/* comm is freed; also in a child. */
void coll__subcomms_drop(struct coll_comm *comm);

#endif
