/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.h - what the files of the TCP transport share; no one else includes it.
 *
 * Two ranks have one connection on each channel, made when one of them first has
 * something to send there; a lane is one of its two directions.  So TCP keeps the
 * order, holds a sender up whose receiver takes nothing, and lets no channel wait
 * for another one: there are no credits, no rendezvous, and nothing is read that no
 * receive has been posted for, but straight to where that wants it.  An answer takes
 * the acknowledgement of what it answers along: 8 bytes there and back took 24 us by
 * a connection each way, and 15 by one for both.
 *
 * A message is a struct tcp_wire and the bytes.  Both ranks know its length, so that
 * they are read by one call; another length, or another head, is a mismatch, after
 * which the lane is of no use.  The read of a short one takes along what has come
 * behind it, up to TCP_AHEAD bytes, so that many short ones cost few calls.
 *
 *   sender                                    receiver
 *   coll__connector() to its listener ............... the reactor hands the socket to the
 *                                            communicator's list of arrivals
 *   sendmsg(head, bytes of messages) ....... recvmsg(head, the receive's buffer), or
 *                                            recv(what there is), if it is short
 *
 * Both may call at the same time, and the one of lower rank decides: it proves itself
 * as the caller, or it lets the other in, whichever comes first (`callers`), and never
 * both.  So its own call is always welcome once it has got so far, and it may send at
 * once.  The other one waits for a word behind its call: where that is closed instead,
 * the lower one's is there, or it has gone, which another call finds out.
 *
 * Where hosts are joined by several interfaces that are alike, in networks of their
 * own, connections take turns: the ranks of a host, and their channels, go by one each.
 * So the ranks of a host have what all of these carry, and one rank has it by several
 * operations at once; one message goes by one of them.
 *
 * Threads: the communicator's own touches everything but what follows.  `arrived`:
 * the reactor's adds to it and the other takes away, all at once (release, acquire).
 * `callers`: the first of both that puts its name there wins (relaxed: nothing hangs
 * on it but who; a connection itself comes by `arrived`).
 */
#ifndef COLL_TRANSPORTS_TCP_H
#define COLL_TRANSPORTS_TCP_H

#include "lib/net/connector.h"
#include "transports/transport.h"

#include <stdatomic.h>

#define TCP_BOUNCE ((size_t)128 << 10) /* bytes; stays in a core's cache */
#define TCP_GRAIN 16u                  /* bytes; whole elements of any type */
#define TCP_AHEAD ((size_t)4 << 10) /* bytes; messages up to there are short */
#define TCP_UNREAD (128 << 10)      /* bytes; see `is_acked_early` */

struct tcp_wire {
    struct coll__head head;
    uint64_t len;
};

_Static_assert(sizeof(struct tcp_wire) == 32, "no padding on the wire");

/* What a rank tells the others. */
struct tcp_card {
    int32_t status; /* of its open() */
    int32_t n_addrs;
    uint32_t order; /* TCP_ORDER, as this host writes it */
    int32_t n_alike; /* of the addresses, the first: coll__net_count_alike() */
    int32_t seat;    /* among the ranks of its host */
    struct coll__addr addrs[COLL__MAX_ADDRS];
};

#define TCP_ORDER 0x01020304u

/* Of a lane that is sealed (COLL_NET_ENCRYPT): the head is a record, and the bytes
 * are as many as it takes; both ranks know how long they are. */
#define TCP_HEAD_RECORD (sizeof(struct tcp_wire) + COLL__SEAL_BYTES)
#define TCP_RECORD (COLL__SEAL_RECORD + COLL__SEAL_BYTES)

struct tcp_crypt {
    struct coll__seal seal;
    size_t at,
        end;     /* of `records`: sent up to there, or where the bytes' record
                     * begins; filled up to there */
    int n_whole; /* messages whose last record is there */
    unsigned char records[TCP_HEAD_RECORD + 2 * TCP_RECORD];
};

/* One end of a lane. */
struct tcp_lane {
    struct tcp_conn *conn; /* whose direction it is */
    int status;            /* COLL_OK, or why it is of no use any more */
    int is_active;         /* transfers wait: it is in a list */
    int is_ready; /* the kernel has not said yet that it must wait; it has
                            * while there is anything ahead */
    struct coll__xfer *first, **last;
    struct tcp_wire wire; /* of the first one */
    size_t n_wire;        /* bytes of that, sent or read */
    struct tcp_crypt *crypt; /* or NULL */

    /* A receiver's: what comes is acknowledged at once, and not when it is read, while
     * there are no more than TCP_UNREAD bytes of it.  Then epoll does not tell of fewer
     * than these, so this ends before anybody depends on that. */
    int is_acked_early;
    /* A receiver's: the beginning of an element that is to be reduced. */
    unsigned char part[TCP_GRAIN];
    size_t n_part;
    /* A receiver's: what has been read and not been taken, from `at` to `end`. */
    struct tcp_ahead {
        unsigned char *bytes; /* [TCP_AHEAD]; NULL before the first short one */
        size_t at, end;
    } ahead;
};

/* What becomes of a connection. */
enum tcp_state {
    TCP_UNUSED,
    TCP_DIALING,
    TCP_ASKING,  /* it stands; the other one's word is to come */
    TCP_AWAITED, /* the other one calls, or has gone: call again, later */
    TCP_CONNECTED
};

/* One end of the connection with a rank on a channel. */
struct tcp_conn {
    struct tcp *tcp;
    int rank, channel; /* of the other end */
    int fd;            /* its own from TCP_ASKING on; else -1 */
    enum tcp_state state;
    struct tcp_lane out, in;
    int n_asked; /* times that coll__net_limit_flight() was */

    /* While it is made. */
    struct coll__addr addrs[COLL__MAX_ADDRS]; /* in the order of this one */
    struct coll__connector connector;
    struct coll__call *call;
    double deadline; /* of that; TCP_AWAITED: when to call again */
};

/* A connection that another rank has made. */
struct tcp_arrival {
    struct tcp_arrival *next;
    int fd, rank, channel, is_sealed;
    unsigned char session[COLL__SECRET_BYTES];
};

/* Lanes of a channel and a direction that have transfers. */
struct tcp_active {
    struct tcp_lane **lanes; /* [size] */
    int n, next;
};

struct tcp {
    struct coll__tp base;
    double timeout;              /* s, to connect */
    const atomic_int *failure;   /* of struct coll__tp_env */
    struct coll__link near, far; /* to ranks of this host, and of others */
    unsigned char *is_near;      /* [size] */
    int *lost;                   /* [size]: a status, once it is lost */
    struct tcp_card *cards;      /* [size] */
    unsigned char secret[COLL__SECRET_BYTES];
    struct coll__gate gates[COLL__CHANNELS];
    int has_reactor, has_gates;
    int events; /* an epoll of all connections, edge-triggered */

    struct tcp_conn **conns; /* [COLL__CHANNELS * size], NULL until used */
    /* [COLL__CHANNELS * size], of ranks above this one: who makes the connection */
    _Atomic(unsigned char) *callers;
    struct tcp_active sending[COLL__CHANNELS], receiving[COLL__CHANNELS];
    int n_active;          /* in all of these */
    int n_early;           /* lanes that are acknowledged early */
    int n_calling;         /* connections that are being made by this rank */
    int is_armed;          /* the next poll() asks the kernel what is new */
    double look_at;        /* when to look for silent hosts */
    double asleep_until;   /* somebody may sleep on `events`; 0: nobody */
    unsigned char *bounce; /* [TCP_BOUNCE]; or NULL before the first use */
    _Atomic(struct tcp_arrival *) arrived;
};

/* ---- tcp_open.c ---------------------------------------------------------- */

int tcp__open(const struct coll__tp_env *env, struct coll__tp **tp);
void tcp__close(struct coll__tp *tp, int is_orderly);

/* ---- tcp_conn.c, tcp_call.c ---------------------------------------------- */

/* Return the connection, which need not stand; NULL (logged): no memory. */
struct tcp_conn *tcp__conn(struct tcp *tcp, int rank, int channel);

/* Count the alike interfaces of a rank's host to which as many of ours lead, alike as
 * well; 1 or more. */
int tcp__count_ways(const struct tcp_card *card);

/* Begin to connect, or go on with it; how much was done.  A failure loses it. */
int tcp__connect(struct tcp *tcp, struct tcp_conn *conn);

/* Take over what has arrived. */
void tcp__take_arrivals(struct tcp *tcp);

/* The reactor's: a connection has come to that gate. */
void tcp__arrived(struct coll__gate *gate, int fd,
                  const struct coll__hello *hello,
                  const unsigned char *session);

/* Give back what a connection holds that is still being made. */
void tcp__end_call(struct tcp *tcp, struct tcp_conn *conn);

/* Have tcp->events tell of that socket; 0 or errno.  From either thread. */
int tcp__watch(struct tcp *tcp, int fd, int rank, int channel);

/* Ask the kernel which lanes need not wait any more; how many it told of.  It does not
 * tell of what is acknowledged early. */
int tcp__hear(struct tcp *tcp);

/* Have what comes acknowledged early, or not. */
void tcp__ack_early(struct tcp *tcp, struct tcp_lane *in, int is_early);

/* The connection's rank is lost, logged as "rank 3" and why: all its transfers end,
 * and others will at once. */
void tcp__lose(struct tcp *tcp, const struct tcp_conn *conn, int status,
               const char *why);

/* The same of a connection that has ended, by an errno, or 0. */
void tcp__broken(struct tcp *tcp, const struct tcp_conn *conn, int err);

/* Now and then: lose ranks whose processes have ended, or whose hosts have fallen
 * silent.  Not 0: the kernel has told of something. */
int tcp__look(struct tcp *tcp);

/* ---- tcp_send.c, tcp_recv.c ---------------------------------------------- */

/* Move what the kernel takes or has, up to `most` bytes or a little more; how much
 * was done, and *bytes grows. */
int tcp__push(struct tcp *tcp, struct tcp_lane *out, size_t most,
              size_t *bytes);
int tcp__pull(struct tcp *tcp, struct tcp_lane *in, size_t most, size_t *bytes);

/* The bytes of a message have come to tcp->bounce, behind in->n_part of them that
 * in->part has: reduce what is whole. */
void tcp__reduce(struct tcp *tcp, struct tcp_lane *in, size_t n);

/* Show the next message's head, if all of it has come: 1 and *wire, or 0. */
int tcp__peek(struct tcp_lane *in, struct tcp_wire *wire);

/* Have tcp->bounce, if the first receive reduces; 0: the lane is lost. */
int tcp__has_bounce(struct tcp *tcp, struct tcp_lane *in);

/* ---- tcp_seal.c ---------------------------------------------------------- */

/* Make what the lanes of a sealed connection need, of its secret; `calls` says which
 * end this is.  0: no memory. */
int tcp__make_crypts(struct tcp_conn *conn, const unsigned char *session,
                     int calls);
void tcp__free_crypt(struct tcp_crypt *crypt);

/* As tcp__push() and tcp__pull(). */
int tcp__push_sealed(struct tcp *tcp, struct tcp_lane *out, size_t most,
                     size_t *bytes);
int tcp__pull_sealed(struct tcp *tcp, struct tcp_lane *in, size_t most,
                     size_t *bytes);

/* As tcp__peek(). */
int tcp__peek_sealed(const struct tcp_lane *in, struct tcp_wire *wire);

/* The first of a lane's transfers has ended. */
static inline void tcp_end_first(struct tcp_lane *lane, int status)
{
    struct coll__xfer *xfer = lane->first;

    lane->first = xfer->next;
    if (!lane->first)
        lane->last = &lane->first;
    lane->n_wire = 0;
    coll__xfer_end(xfer, status);
}

#endif
