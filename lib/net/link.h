/* SPDX-License-Identifier: BSD-3-Clause */
/* link.h - frames between two ranks of a group, over the wire between their
 * processes; never blocking.
 *
 * The rank that opens a link asks for it over a wire, and the one that expects
 * it answers.  All calls and callbacks are under the reactor's lock; callbacks
 * come on its thread, or while its owner expects it.
 */
#ifndef COLL_LIB_NET_LINK_H
#define COLL_LIB_NET_LINK_H

#include "lib/net/auth.h"
#include "lib/net/wire.h"

enum coll__link_state {
    LINK_DOWN,     /* not opened yet; or it ended */
    LINK_EXPECTED, /* the other end is to open it */
    LINK_ASKING,   /* the other end is asked, and has not answered */
    LINK_REFUSED,  /* it does not know of it */
    LINK_UP
};

struct coll__link {
    int self, peer;              /* the ranks at this end and at the other */
    const unsigned char *secret; /* the group's; the owner's */
    void *owner;
    /* A frame came; body[len] is the callee's to free (NULL when len is 0).
     * A nonzero result breaks the link. */
    int (*got)(struct coll__link *link, const struct coll__frame *frame,
               unsigned char *body);
    /* It is not LINK_EXPECTED or LINK_ASKING any more. */
    void (*answered)(struct coll__link *link);
    /* It was up and is not, and everything before its end was got(); or the
     * other end's host has fallen silent, then is_silent is set. */
    void (*broken)(struct coll__link *link);
    /* All output is in the kernel; after coll__link_shut(). */
    void (*drained)(struct coll__link *link);

    /* The link's own. */
    enum coll__link_state state;
    uint64_t tag;
    int is_shut; /* no more output */
    int is_silent;
    struct coll__wire *wire;
    struct coll__link *next, **at; /* of the wire, or of those expected */
};

/* Say whether the link is up. */
static inline int coll__link_is_up(const struct coll__link *link)
{
    return link->state == LINK_UP;
}

/* Return how many bytes of output wait on the link's wire. */
static inline size_t coll__link_n_queued(const struct coll__link *link)
{
    return link->wire ? link->wire->n_queued : 0;
}

/* Await that the other end opens it; it may have asked already. */
void coll__link_expect(struct coll__link *link);

/* Between the two, who asks for a link that nobody here expects is not refused
 * but waits, as the caller may be about to expect it.  Calls nest. */
void coll__link_hold(void);
void coll__link_unhold(void);

/* Ask the other end to open it; COLL_ERR_NOMEM, logged.  What is sent meanwhile
 * follows; where nobody expects the link yet, it is refused then. */
int coll__link_ask(struct coll__link *link, struct coll__wire *wire);

/* Queue a frame; body is copied.  A link that is down takes nothing.
 *
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__link_send(struct coll__link *link, const struct coll__frame *frame,
                    const void *body);

/* Say after the queued output that no more will come. */
void coll__link_shut(struct coll__link *link);

/* End at once; also for one never opened. */
void coll__link_close(struct coll__link *link);

#endif
