/* SPDX-License-Identifier: BSD-3-Clause */
/* attachment.h - what the rooms above lib/comm keep on a communicator.
 *
 * lib/run and lib/stream hold state of their own for each communicator.  lib/comm
 * makes, fails and ends communicators without knowing what that state is: it calls
 * the functions of this table at each step of a communicator's life.  A function
 * that an attachment has no use for is NULL.
 */
#ifndef COLL_LIB_COMM_ATTACHMENT_H
#define COLL_LIB_COMM_ATTACHMENT_H

#include <stdint.h>

struct coll__signature;
struct coll__options;
struct coll_comm;
struct coll_mem_stats;

struct coll__attachment {
    /* Make the state, before the ranks meet.  COLL_OK or a status, logged. */
    int (*open)(struct coll_comm *comm);

    /* Return a number that every rank of the communicator is told when the links are
     * opened.  A rank without this attachment tells 0. */
    int32_t (*tell)(void);

    /* The links are open; told[r] is the number that rank r told.  Collective.  COLL_OK
     * or a status, logged. */
    int (*join)(struct coll_comm *comm, const struct coll__options *options,
                const int32_t *told);

    /* All ranks have joined.  Collective.  COLL_OK or a status, logged. */
    int (*settle)(struct coll_comm *comm);

    /* The communicator fails now.  Any thread, with failure.lock held. */
    void (*fail)(struct coll_comm *comm, int status);

    /* The communicator has failed: fail what depends on it.  Any thread that holds no
     * lock. */
    void (*spread)(struct coll_comm *comm, int status, const char *text);

    /* Return the call with that sequence number on a channel, or NULL.  As owner. */
    const struct coll__signature *(*find)(const struct coll_comm *comm,
                                          int channel, uint64_t seq);

    /* The communicator will be destroyed: end its operations, or fail it if one still
     * runs.  COLL_OK, or a status, logged.  As owner. */
    int (*drain)(struct coll_comm *comm);

    /* The communicator leaves the other ranks.  COLL_OK, or the status that its
     * destruction returns, logged.  As owner. */
    int (*leave)(struct coll_comm *comm);

    /* No thread uses or knows the communicator any more. */
    void (*end)(struct coll_comm *comm);

    /* Free the state; also in a child of the process that made it. */
    void (*free)(struct coll_comm *comm);

    /* Add the bytes that it holds.  As owner. */
    void (*bytes)(const struct coll_comm *comm, struct coll_mem_stats *stats);
};

/* All attachments, from the lowest room up, then NULL (lib/api/attachments.c). */
extern const struct coll__attachment *const coll__attachments[];

/* Call a function of each attachment: from the lowest room up when a communicator is
 * made, from the highest room down when it ends.  Functions that return a status stop
 * at the first failure.  Only leave() calls all attachments, and returns the first
 * failure.  At most one attachment has tell(), and at most one has find(). */
int coll__attachments_open(struct coll_comm *comm);
int coll__attachments_join(struct coll_comm *comm,
                           const struct coll__options *options,
                           const int32_t *told);
int coll__attachments_settle(struct coll_comm *comm);
int32_t coll__attachments_tell(void);
void coll__attachments_fail(struct coll_comm *comm, int status);
void coll__attachments_spread(struct coll_comm *comm, int status,
                              const char *text);
const struct coll__signature *
coll__attachments_find(const struct coll_comm *comm, int channel, uint64_t seq);
int coll__attachments_drain(struct coll_comm *comm);
int coll__attachments_leave(struct coll_comm *comm);
void coll__attachments_end(struct coll_comm *comm);
void coll__attachments_free(struct coll_comm *comm);
void coll__attachments_bytes(const struct coll_comm *comm,
                             struct coll_mem_stats *stats);

#endif
