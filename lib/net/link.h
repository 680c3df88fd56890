/* SPDX-License-Identifier: BSD-3-Clause */
/* link.h - frames between two ranks of a group, over the wire between their
 * processes; never blocking.
 *
 * One rank opens a link over a wire; the other rank expects it and answers.  All calls
 * and callbacks are under the reactor's lock.  Callbacks come on the reactor's thread,
 * or during the owner's call of expect.
 */
#ifndef COLL_LIB_NET_LINK_H
#define COLL_LIB_NET_LINK_H

#include "lib/net/auth.h"
#include "lib/net/wire.h"

enum coll__link_state {
    LINK_DOWN,     /* not opened yet; or it ended */
    LINK_EXPECTED, /* awaits that the other end opens it */
    LINK_ASKING,   /* OPEN was sent; no answer yet */
    LINK_REFUSED,  /* the other end does not expect it */
    LINK_UP
};

struct coll__link {
    int self, peer;              /* the ranks at this end and at the other */
    const unsigned char *secret; /* the group's; the owner keeps it */
    void *owner;
    /* A frame came; body[len] is the callee's to free (NULL when len is 0).
     * A nonzero result breaks the link. */
    int (*got)(struct coll__link *link, const struct coll__frame *frame,
               unsigned char *body);
    /* The state has changed from LINK_EXPECTED or LINK_ASKING to another one. */
    void (*answered)(struct coll__link *link);
    /* The link was up and has ended; every earlier frame went to got().  is_silent: it
     * ended because the other end's host has fallen silent. */
    void (*broken)(struct coll__link *link);
    /* All output is in the kernel; after coll__link_shut(). */
    void (*drained)(struct coll__link *link);

    /* For link.c only. */
    enum coll__link_state state;
    uint64_t tag;
    int is_shut; /* no more output */
    int is_silent;
    struct coll__wire *wire;
    struct coll__link *next, **at; /* in the wire's list, or the expected ones' */
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

/* Expect that the other end opens the link; it may have done so already. */
void coll__link_expect(struct coll__link *link);

/* Between these two calls, an opening that is not expected is kept and not refused: the
 * caller may be about to expect it.  Calls nest. */
void coll__link_hold(void);
void coll__link_unhold(void);

/* Open the link; COLL_ERR_NOMEM, logged.  Frames may be sent before the answer comes; if
 * the other end does not expect the link by then, it refuses it. */
int coll__link_ask(struct coll__link *link, struct coll__wire *wire);

/* Queue a frame; body is copied.  A link that is down takes nothing.
 *
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__link_send(struct coll__link *link, const struct coll__frame *frame,
                    const void *body);

/* Send END after the queued output: no more frames will come. */
void coll__link_shut(struct coll__link *link);

/* End the link at once; also valid for one that was never opened. */
void coll__link_close(struct coll__link *link);

#endif
