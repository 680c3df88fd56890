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

/* Steps of a communicator's life.  An attachment returns COLL_OK or a status, logged. */
enum coll__life {
    /* Make the state, before the ranks meet. */
    LIFE_OPEN,

    /* All ranks have joined.  Collective. */
    LIFE_SETTLE,

    /* The communicator will be destroyed: end its operations, or fail it if one still
     * runs.  As owner. */
    LIFE_DRAIN,

    /* The communicator leaves the other ranks.  Its destruction returns the status.  As
     * owner. */
    LIFE_LEAVE,

    /* No thread uses or knows the communicator any more. */
    LIFE_END,

    /* Free the state; also in a child of the process that made it. */
    LIFE_FREE,

    N_LIFE
};

struct coll__attachment {
    int (*life[N_LIFE])(struct coll_comm *comm);

    /* Return a number that every rank of the communicator is told when the links are
     * opened.  A rank without this attachment tells 0. */
    int32_t (*tell)(void);

    /* The links are open; told[r] is the number that rank r told.  Collective.  COLL_OK
     * or a status, logged. */
    int (*join)(struct coll_comm *comm, const struct coll__options *options,
                const int32_t *told);

    /* The communicator fails now.  Any thread, with failure.lock held. */
    void (*fail)(struct coll_comm *comm, int status);

    /* Another rank may have failed the communicator in a way that this rank has not been
     * told of yet: if so, fail it.  Any thread. */
    void (*hear)(struct coll_comm *comm);

    /* Return the call with that sequence number on a channel, or NULL.  As owner. */
    const struct coll__signature *(*find)(const struct coll_comm *comm,
                                          int channel, uint64_t seq);

    /* Return how many times this rank has started the request with that number, of those
     * in any order.  Any thread, without a lock. */
    uint32_t (*n_starts)(const struct coll_comm *comm, uint32_t number);

    /* Add the bytes that it holds.  As owner. */
    void (*bytes)(const struct coll_comm *comm, struct coll_mem_stats *stats);
};

/* All attachments, from the lowest layer up, then NULL (lib/api/attachments.c). */
extern const struct coll__attachment *const coll__attachments[];

/* Have each attachment take a step: from the lowest layer up, and from LIFE_DRAIN on from
 * the highest layer down.  A step before LIFE_LEAVE ends at the first failure, later ones
 * reach every attachment.  Return the first failure. */
int coll__attachments_step(enum coll__life step, struct coll_comm *comm);

/* Call a function of each attachment, from the lowest layer up.  join() stops at the first
 * failure.  At most one attachment has tell(), and the same holds for find() and
 * n_starts(). */
int coll__attachments_join(struct coll_comm *comm,
                           const struct coll__options *options,
                           const int32_t *told);
int32_t coll__attachments_tell(void);
void coll__attachments_fail(struct coll_comm *comm, int status);
void coll__attachments_hear(struct coll_comm *comm);
const struct coll__signature *
coll__attachments_find(const struct coll_comm *comm, int channel, uint64_t seq);
uint32_t coll__attachments_n_starts(const struct coll_comm *comm,
                                    uint32_t number);
void coll__attachments_bytes(const struct coll_comm *comm,
                             struct coll_mem_stats *stats);

#endif
