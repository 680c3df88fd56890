/* SPDX-License-Identifier: BSD-3-Clause */
/* subcomms.h - a communicator that works by others of its own ranks.
 *
 * Its parts are communicators of their own, made by splitting it, of which its caller
 * knows nothing: what fails one of them fails all, with the same words, and they end
 * when it does.
 */
#ifndef COLL_LIB_STREAM_SUBCOMMS_H
#define COLL_LIB_STREAM_SUBCOMMS_H

struct coll_comm;
struct coll_mem_stats;

enum { SUBCOMM_INTRA, SUBCOMM_INTER, N_SUBCOMMS };

/* Each member holds it until it is freed. */
struct coll__subcomms;

/* Make the parts those of whole: the caller's until then, its from there on.
 * COLL_OK or COLL_ERR_NOMEM, logged. */
int coll__subcomms_make(struct coll_comm *whole,
                        struct coll_comm *const parts[N_SUBCOMMS]);

/* A part of comm, or NULL where it has none (any more). */
struct coll_comm *coll__subcomm(const struct coll_comm *comm, int part);

/* comm has failed just now: so have the others of its family.  Any thread. */
void coll__subcomms_fail(struct coll_comm *comm, int status, const char *text);

/* As comm's owner: what its parts were given comes to an end before they go.  COLL_OK,
 * or comm's failure. */
int coll__subcomms_drain(struct coll_comm *comm);

/* Destroy one by itself; a status, logged. */
int coll__subcomm_destroy(struct coll_comm *part);

/* Add what its parts hold.  For comm's caller. */
void coll__subcomms_bytes(const struct coll_comm *comm,
                          struct coll_mem_stats *stats);

/* comm leaves: if it has parts, end them before.  What destroying them returns,
 * logged; idempotent. */
int coll__subcomms_leave(struct coll_comm *comm);

/* comm is freed; also in a child. */
void coll__subcomms_drop(struct coll_comm *comm);

#endif
