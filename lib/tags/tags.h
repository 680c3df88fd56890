/* SPDX-License-Identifier: BSD-3-Clause */
/* tags.h - how messages with tags travel between the ranks of a communicator.
 *
 * All travel on one channel of the host transports, whose messages keep their order.  The
 * transports know nothing of tags: a rank peeks at the next message of each rank, whose
 * signature says what it is, and posts the transport's receive for it then.
 *
 *   sender                          receiver
 *   SHORT, with the data     ->     the receive's buffer, or kept until a receive comes
 *
 *   ANNOUNCE, without data   ->     kept until a receive takes it, then
 *                            <-     ACCEPT
 *   LONG, with the data      ->     the receive's buffer
 *
 *                            <-     CREDIT: so many bytes of SHORT ones have been read
 *
 * A message of at most COLL__TAG_SHORT bytes is SHORT while the sender has credit for it at
 * that receiver; every other message is announced.  So a rank keeps at most COLL__TAG_WINDOW
 * bytes of each other rank, and one envelope for each send that has not ended there.  No
 * send waits for credit.
 *
 * A rank's messages to itself are matched without a transport, by the same rules.
 *
 * All functions are for the communicator's owner.
 */
#ifndef COLL_LIB_TAGS_TAGS_H
#define COLL_LIB_TAGS_TAGS_H

#include "lib/exec/routes.h"
#include "lib/tags/match.h"

#include <stdatomic.h>

#define COLL__TAG_SHORT ((size_t)8 << 10)   /* bytes */
#define COLL__TAG_WINDOW ((size_t)64 << 10) /* bytes of credit for each peer */
#define COLL__TAG_COST                                                         \
    128 /* bytes that a SHORT message counts beside its own */

struct coll__tags;

/* A transfer, and what to do when it has ended. */
struct coll__tag_step {
    struct coll__xfer xfer; /* first, so that the two pointers are equal */
    void (*ended)(struct coll__tags *tags, struct coll__tag_step *step);
    void *of;
};

/* A message as the sender described it. */
struct coll__tag_message {
    int source, tag;
    enum coll_type type;
    size_t count;
    uint32_t number; /* among those from the source to the receiver, from 1 */
};

/* A send or a receive.  The caller sets the first part before it starts. */
struct coll__tagged {
    int peer, tag; /* a receive's may be COLL_ANY_RANK and COLL_ANY_TAG */
    enum coll_type type;
    void *buf;    /* a send only reads it */
    size_t count; /* of a receive: at most */
    void *owner;

    /* What has become of it.  status: COLL_OK, COLL_ERR_TRUNCATED or
     * COLL_ERR_MISMATCH (the types differ), or COLL_ERR_NOMEM for a send; message: what
     * was sent, or what came. */
    int status;
    struct coll__tag_message message;

    struct coll__envelope receive; /* this and below: the engine's */
    int n_open; /* transfers that must end before it has ended */
    struct coll__tag_step first, second;
    struct coll__tagged *next;
};

/* Sends or receives in order. */
struct coll__tagged_list {
    struct coll__tagged *first, **last;
};

struct coll__tags {
    int rank, size, channel;
    const struct coll__routes *routes;
    struct coll__matcher matcher;
    struct coll__tag_peer *peers;  /* [size] */
    struct coll__ended ended;      /* transfers */
    struct coll__tagged_list done; /* for the caller to collect */
    int n_running;                 /* sends and receives that have not ended */
    uint32_t n_from_any;           /* receives from any rank; the caller's */
    int next;                      /* the rank to be looked at first */
    size_t kept;                /* bytes of messages that wait for a receive */
    struct coll__tag_kept *all; /* messages that are kept */
    struct coll__tag_kept *spare; /* without data, for the next ones */
    _Atomic uint64_t
        *n_received;          /* [size]: messages that receives have taken */
    int status;               /* what went wrong as a send started */
    struct coll__xfer *fault; /* the transfer that failed, after an error */
};

/* Prepare for the messages of a communicator on a channel; n_received is the caller's.
 * COLL_OK or COLL_ERR_NOMEM, not logged. */
int coll__tags_create(const struct coll__routes *routes, int rank, int size,
                      int channel, struct coll__tags **tags);

/* Free it, and the messages that it keeps; no transport uses them any more.  Also in a
 * child of fork(), whatever another thread was doing. */
void coll__tags_destroy(struct coll__tags *tags);

/* Forget all sends, receives and messages: the transports are closed. */
void coll__tags_reset(struct coll__tags *tags);

/* Start a send or a receive.  It is in `done` when it has ended, maybe at once. */
void coll__tags_send(struct coll__tags *tags, struct coll__tagged *send);
void coll__tags_recv(struct coll__tags *tags, struct coll__tagged *recv);

/* Go on with all of them, after the transports have been polled.  COLL_OK, or the status
 * of what failed: then tags->fault is the transfer, or NULL if an error line says what
 * happened.  *moved is set when something moved. */
int coll__tags_move(struct coll__tags *tags, int *moved);

/* Take the earliest out of `done`, or NULL. */
struct coll__tagged *coll__tags_take(struct coll__tags *tags);

/* Would this rank keep a message of len bytes to itself until it is received?  Has a
 * message come that a receive matches? */
int coll__tags_keeps(const struct coll__tags *tags, size_t len);
static inline int coll__tags_has(const struct coll__tags *tags, int source,
                                 int tag)
{
    return coll__match_look(&tags->matcher, source, tag) != NULL;
}

/* Describe a message that no receive has taken.  Returns 1, or 0 if there is none. */
int coll__tags_left(const struct coll__tags *tags,
                    struct coll__tag_message *message);

#endif
