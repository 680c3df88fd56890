/* SPDX-License-Identifier: BSD-3-Clause */
/* link.h - frames over one authenticated connection, never blocking.
 *
 * All calls and callbacks are under the reactor's lock; callbacks come on its
 * thread.  Output that the socket does not take at once is queued.
 */
#ifndef COLL_LIB_BOOT_LINK_H
#define COLL_LIB_BOOT_LINK_H

#include "lib/boot/reactor.h"

#define COLL__FRAME_MAX ((size_t)1 << 30)

/* What stands before each frame's body; little-endian as it travels. */
struct coll__frame {
    uint32_t type, from, to, id;
    uint64_t len; /* of the body */
};

struct coll__link_chunk;

struct coll__link {
    struct coll__source source; /* first */
    int peer;                   /* the rank at the other end */
    void *owner;
    /* A frame came; body[len] is the callee's to free (NULL when len is 0).
     * A nonzero result breaks the link. */
    int (*got)(struct coll__link *link, const struct coll__frame *frame,
               unsigned char *body);
    /* The connection ended, and everything before its end was got(). */
    void (*broken)(struct coll__link *link);
    /* All output is in the kernel. */
    void (*drained)(struct coll__link *link);

    /* The link's own. */
    struct coll__frame head;
    size_t n_head;
    unsigned char *body;
    size_t n_body;
    struct coll__link_chunk *first, **last;
    size_t n_queued; /* bytes of output */
    int is_shutting; /* no more output after the queue */
};

/* Begin to read from the socket fd, which is the link's from now on. */
int coll__link_open(struct coll__link *link, int fd);

/* Say whether the connection is up. */
static inline int coll__link_is_up(const struct coll__link *link)
{
    return link->source.fd >= 0;
}

/* Queue a frame; body is copied.  A link that is down takes nothing.
 *
 * Errors:    COLL_ERR_NOMEM, logged.
 */
int coll__link_send(struct coll__link *link, const struct coll__frame *frame,
                    const void *body);

/* Say after the queued output that no more will come. */
void coll__link_shut(struct coll__link *link);

/* Close at once and free what the link holds; also for one never opened. */
void coll__link_close(struct coll__link *link);

#endif
