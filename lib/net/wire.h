/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h - one authenticated connection to another process, for all the links
 * between the two.
 *
 * A wire exists while links run over it and a moment longer; a new link uses the
 * existing wire.  Ranks of one process (threads) have a wire without a socket.
 * All calls are under the reactor's lock, and callbacks come on its thread.
 * Output that the socket does not take at once is queued.
 */
#ifndef COLL_LIB_NET_WIRE_H
#define COLL_LIB_NET_WIRE_H

#include "lib/net/reactor.h"

#include <stddef.h>

#define COLL__FRAME_MAX ((size_t)1 << 30)
#define COLL__PROCESS_BYTES 16

/* What a link sends before each body. */
struct coll__frame {
    uint32_t type, from, to, id;
    uint64_t len; /* of the body */
};

/* The header of each frame on a wire; little-endian as it travels. */
struct coll__wire_head {
    uint64_t tag; /* the link's group, and its two ranks in it */
    uint32_t src, dst;
    struct coll__frame frame;
};

struct coll__link;
struct coll__wire_chunk;
struct coll__wire_crypt;

struct coll__wire {
    struct coll__source source; /* first; fd -1: the wire to this process itself */
    unsigned char process[COLL__PROCESS_BYTES]; /* at the other end */
    int is_known;                               /* is process known? */
    struct coll__link *links;                   /* for link.c only */
    struct coll__wire *next;

    /* For wire.c only. */
    unsigned char inbox[4096]; /* read from the socket, not yet parsed */
    size_t in_at, in_end;
    int is_drained; /* the socket had no more */
    struct coll__wire_head head;
    size_t n_head;
    unsigned char *body;
    size_t n_body;
    struct coll__wire_chunk *first, **last;
    size_t n_queued; /* bytes of output */
    double rest_at;  /* when it closes, unless a link comes */
    int is_silent;   /* the other end's host has fallen silent */
    struct coll__wire_crypt *crypt; /* NULL: nothing is sealed */
};

/* Write this process's name, which is random; a forked child has another one. */
void coll__wire_self(unsigned char process[COLL__PROCESS_BYTES]);

/* Make a wire from the socket fd, which it owns from now on.
 *
 * Shapes:    process: NULL while it is not known; session: the connection's session
 *            secret, or NULL if nothing is sealed; role: this end's, "connector" or
 *            "listener".
 * Result:    the wire; NULL on failure, logged.
 */
struct coll__wire *coll__wire_new(int fd, const unsigned char *process,
                                  const unsigned char *session,
                                  const char *role);

/* Return a wire to that process, which may be this one; NULL if there is none. */
struct coll__wire *coll__wire_find(const unsigned char *process);

/* Queue a frame; body is copied.  COLL_ERR_NOMEM, logged. */
int coll__wire_send(struct coll__wire *wire, const struct coll__wire_head *head,
                    const void *body);

/* No link uses the wire any more: it is closed in a moment, unless a new one comes. */
void coll__wire_rest(struct coll__wire *wire);

/* Return how many wires with a socket there are. */
int coll__wire_count(void);

/* ---- link.c, for wire.c --------------------------------------------------- */

/* A frame came; body[len] is the callee's to free (NULL when len is 0). */
void coll__wire_got(struct coll__wire *wire, const struct coll__wire_head *head,
                    unsigned char *body);

/* The connection has ended, and every frame before its end was delivered: detach from
 * it.  is_ours is 0 in a forked child, where no owner is to be told. */
void coll__wire_broken(struct coll__wire *wire, int is_ours);

/* All output is in the kernel. */
void coll__wire_drained(struct coll__wire *wire);

#endif
