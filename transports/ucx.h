/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx.h - what the files of the UCX transport share; no one else includes it.
 *
 * A message travels as segments of at most UCX_SEGMENT bytes, each one active
 * message with a struct ucx_wire in front.  Segments of an ordered pair of
 * ranks are numbered from 0.  UCX may deliver active messages of different
 * protocols out of order, so a segment is kept in slot number % UCX_WINDOW of
 * its peer until its turn comes.
 *
 * Credits: at most UCX_WINDOW segments, and UCX_CREDIT bytes plus one segment,
 * are under way to a peer that has not said that it is through with them; what
 * goes beyond waits in the sender's queue.  So a receiver that does not receive
 * holds no more than that for each peer.  `taken`, how many segments from you I
 * am through with, travels on every message, and on one of its own once half of
 * either credit is used up.
 *
 * Threads: the calls on one struct coll__tp come from one thread at a time, and
 * UCX runs its callbacks inside ucp_worker_progress() and the posting calls, so
 * nothing here is shared between threads but the UCP context (see ucx.c).
 */
#ifndef COLL_TRANSPORTS_UCX_H
#define COLL_TRANSPORTS_UCX_H

#include "transports/transport.h"

#include <ucp/api/ucp.h>

#define UCX_WINDOW 64u                /* segments, a power of two */
#define UCX_SEGMENT ((size_t)1 << 20) /* bytes; whole elements of any type */
#define UCX_CREDIT ((size_t)4 << 20)  /* bytes */
#define UCX_BOUNCES 4                 /* segments that wait to be reduced */

enum ucx_kind { UCX_DATA = 0x636f6c00, UCX_ACK, UCX_HELLO, UCX_READY, UCX_BYE };

/* The header of every active message; all hosts have the same byte order. */
struct ucx_wire {
    uint32_t kind;
    int32_t src;
    uint64_t seq;    /* of this segment */
    uint64_t taken;  /* segments of the receiver's that src is through with */
    uint64_t offset; /* of the segment in its message */
    uint64_t len;    /* of the message */
    struct coll__head head;
};

_Static_assert(sizeof(struct ucx_wire) == 64, "no padding on the wire");

/* A segment that was handed to UCX. */
struct ucx_out {
    struct ucx_wire wire; /* UCX reads it until the segment is sent */
    struct ucx_peer *peer;
    struct coll__xfer *xfer; /* NULL: nobody waits for it any more */
    size_t n;
    int is_busy; /* until UCX has called back */
};

enum ucx_hold {
    HOLD_NONE,   /* the slot is free */
    HOLD_UCX,    /* eager data in UCX's memory, to be released */
    HOLD_COPY,   /* eager data in copy */
    HOLD_RNDV,   /* still at the sender; data is UCX's descriptor */
    HOLD_MOVING, /* on its way into the receive's buffer or a bounce buffer */
    HOLD_TAKEN   /* through with; free when all before it are */
};

/* A segment that arrived. */
struct ucx_in {
    struct ucx_wire wire;
    struct ucx_peer *peer;
    enum ucx_hold hold;
    size_t n;
    void *data;
    void *copy; /* grows to what is needed, and stays */
    size_t room;
    struct coll__xfer *xfer; /* while moving; NULL: nobody waits any more */
    void *bounce;            /* while moving, to be reduced from */
};

struct ucx_queue {
    struct coll__xfer *first, **last;
};

/* One other rank; made at the first contact. */
struct ucx_peer {
    struct ucx *ucx;
    int rank;
    int status;  /* COLL_OK, or why it cannot be reached any more */
    ucp_ep_h ep; /* NULL before the first use and after a failure */
    struct ucx_peer *next_work;
    int is_listed;

    struct ucx_queue sends; /* not wholly handed to UCX */
    uint64_t sent, acked;   /* segments */
    size_t in_flight;       /* bytes of those between acked and sent */
    struct ucx_out out[UCX_WINDOW];

    struct ucx_queue recvs; /* not wholly matched */
    uint64_t matched, taken,
        told;      /* segments; told: taken, as the peer knows */
    size_t untold; /* bytes of those between told and taken */
    struct ucx_in in[UCX_WINDOW];

    struct ucx_wire note; /* the message without data that is under way */
    int is_noting;
    unsigned said, heard; /* bits 1 << (kind - UCX_DATA) */
};

struct ucx {
    struct coll__tp base;
    struct ucx *next_parked; /* see ucx.c */
    ucp_context_h context;
    ucp_worker_h worker;
    struct coll__link near, far; /* to ranks of this host, and of others */
    unsigned char *is_near;      /* [size] */
    unsigned char *addresses;    /* [size * address_len] */
    size_t address_len;
    struct ucx_peer **peers; /* [size], NULL before the first contact */
    struct ucx_peer *work;   /* those with something to do in poll() */
    void *bounces;           /* free ones, linked through their first word */
    int n_bounces;           /* made */
    int n_under_way;         /* requests that UCX will call back for */
    int n_flushing;          /* and those of flushing */
    int moved;               /* since the last poll */
    int is_meshed;           /* all endpoints were connected in open() */
    int is_closing;
};

static inline unsigned ucx_bit(enum ucx_kind kind)
{
    return 1u << (kind - UCX_DATA);
}

/* ---- ucx_peer.c ---- */

/* Translate UCX's code, saying what failed; logged.  COLL_OK for UCS_OK. */
int coll__ucx_status(ucs_status_t rc, const char *call);

void coll__ucx_queue_put(struct ucx_queue *queue, struct coll__xfer *xfer);
void coll__ucx_queue_take(struct ucx_queue *queue);

/* One segment more of xfer is UCX's. */
void coll__ucx_hand_over(struct coll__xfer *xfer);

/* One segment of xfer is UCX's no more, and went well or not; ends the transfer
 * when it was the last one. */
void coll__ucx_take_back(const struct ucx_peer *peer, struct coll__xfer *xfer,
                         int is_well);

/* End the transfers of a queue with the peer's status: now or, where UCX still
 * holds their buffers, when UCX lets go of them. */
void coll__ucx_spoil(const struct ucx_peer *peer, struct ucx_queue *queue);

/* Return the state of that rank, made if need be; NULL (logged): no memory. */
struct ucx_peer *coll__ucx_peer(struct ucx *ucx, int rank);

/* Have coll__ucx_progress() look after this peer. */
void coll__ucx_list(struct ucx_peer *peer);

/* The peer is lost, and its transfers with it.  May run inside a callback. */
void coll__ucx_lose(struct ucx_peer *peer, int status);

/* Make the endpoint; a failure loses the peer. */
void coll__ucx_connect(struct ucx_peer *peer);

/* Begin to close the endpoint, if there is one. */
void coll__ucx_hang_up(struct ucx_peer *peer, int is_forced);

/* Let UCX work, and do what is due for the listed peers. */
void coll__ucx_progress(struct ucx *ucx);

/* Connect all ranks, in both directions; all of them call it.  A status,
 * logged; `timeout` in seconds. */
int coll__ucx_meet(struct ucx *ucx, double timeout);

/* Wait until each peer that this rank is connected to has come to its close(),
 * too, or has failed, or five seconds. */
void coll__ucx_leave(struct ucx *ucx);

/* Make progress until all endpoints are connected, all that was sent has gone
 * out, and nothing happens for `pause` seconds: 1, or the deadline: 0. */
int coll__ucx_quieten(struct ucx *ucx, double pause, double deadline);

/* Make progress until UCX holds no request of ours: 1, or the deadline: 0. */
int coll__ucx_settle(struct ucx *ucx, double deadline);

/* ---- ucx_send.c ---- */

/* Hand UCX what the credits allow. */
void coll__ucx_push(struct ucx_peer *peer);

/* The peer is through with that many segments. */
void coll__ucx_acked(struct ucx_peer *peer, uint64_t taken);

/* Send an acknowledgement if one is due. */
void coll__ucx_ack(struct ucx_peer *peer);

/* Say hello or farewell, once; waits for its turn after another note. */
void coll__ucx_say(struct ucx_peer *peer, enum ucx_kind kind);

/* ---- ucx_recv.c ---- */

/* UCX's callback for each active message; arg is the struct ucx. */
ucs_status_t coll__ucx_arrived(void *arg, const void *header, size_t header_len,
                               void *data, size_t len,
                               const ucp_am_recv_param_t *param);

/* Match what has arrived with the receives, in order. */
void coll__ucx_pull(struct ucx_peer *peer);

/* Forget all that arrived from the peer. */
void coll__ucx_drop(struct ucx_peer *peer);

#endif
