/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.h - what the files of the TCP transport share; no other file includes it.
 *
 * Two ranks have one connection for each channel, made when one of them first sends
 * something on it.  A lane is one of its two directions.  So TCP itself keeps the order,
 * holds up senders whose receivers do not read, and keeps channels independent: there are
 * no credits and no rendezvous.  A message is read only after its receive was posted,
 * straight into the receive's buffer.  One connection for both directions lets an answer
 * carry the acknowledgement: 8 bytes there and back took 24 us with a connection for each
 * direction, and 15 us with one for both.
 *
 * A message is a struct tcp_wire and the bytes.  Both ranks know its length, so one call
 * reads both.  Another length or another signature is a mismatch, after which the lane
 * cannot be used.  Reading a short message also reads what follows it, up to TCP_AHEAD
 * bytes, so that many short messages cost few calls.
 *
 *   sender                                    receiver
 *   coll__connector() to its listener ............... the reactor hands the socket to the
 *                                            communicator's list of arrivals
 *   sendmsg(sig, bytes of messages) ....... recvmsg(sig, the receive's buffer), or
 *                                            recv(what there is), if it is short
 *
 * Both ranks may connect at the same time; the lower rank decides.  It either proves
 * itself as the caller or accepts the higher rank's call, whichever comes first
 * (`callers`), never both.  So the lower rank's own call always succeeds once it has
 * proved itself, and it may send at once.  The higher rank waits for an answer to its
 * call.  If the connection is closed instead, either the lower rank's own call has
 * arrived, or that rank has ended, which another call will show.
 *
 * If several equal interfaces join two hosts, in networks of their own, connections take
 * turns: each rank of a host, and each of its channels, uses one of them.  A long message
 * uses all of them: its channel's connection announces it, and rails, connections of this
 * channel by one interface each, share its bytes (tcp_share.c).
 *
 * Threads: the communicator's thread owns everything except two members.  `arrived`: the
 * reactor adds to it, and the communicator's thread takes the whole list (release,
 * acquire).  `callers`: the first thread that stores its value wins (relaxed: the value
 * orders nothing else, since connections come by `arrived`).
 */
#ifndef COLL_TRANSPORTS_TCP_H
#define COLL_TRANSPORTS_TCP_H

#include "lib/net/connector.h"
#include "transports/transport.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/types.h>

#define TCP_BOUNCE ((size_t)128 << 10) /* bytes; stays in a core's cache */
#define TCP_GRAIN 16u                  /* bytes; whole elements of any type */
#define TCP_AHEAD ((size_t)4 << 10) /* bytes; messages up to this length are short */
#define TCP_UNREAD (128 << 10)      /* bytes; see `is_acked_early` */
#define TCP_FEW 4   /* up to so many lanes are tried without epoll */
#define TCP_RAILS 8 /* most rails of a channel */
#define TCP_SHARED_LEAST                                                       \
    ((size_t)16 << 10) /* bytes; shorter messages have no rails */
#define TCP_SET_LEAST ((size_t)128 << 10) /* if the limit tcp_rails is set */

/* In a signature's `collective`: the header announces a message whose bytes come by
 * rails. */
#define TCP_SHARED 0x80

struct tcp_wire {
    struct coll__signature sig;
    uint64_t len;
};

_Static_assert(sizeof(struct tcp_wire) == 32, "no padding on the wire");

/* What a rank publishes in open(). */
struct tcp_card {
    int32_t status; /* of its open() */
    int32_t n_addrs;
    uint32_t order; /* TCP_ORDER, as this host writes it */
    int32_t n_alike; /* how many of the first addresses are equal:
                      * coll__net_count_alike() */
    int32_t seat;    /* among the ranks of its host */
    int32_t n_rails; /* of each channel, that it lets in */
    struct coll__addr addrs[COLL__MAX_ADDRS];
};

#define TCP_ORDER 0x01020304u

/* For a sealed lane (COLL_NET_ENCRYPT): the header (struct tcp_wire) is one record, and
 * the bytes are as many records as needed; both ranks know their lengths. */
#define TCP_HEAD_RECORD (sizeof(struct tcp_wire) + COLL__SEAL_BYTES)
#define TCP_RECORD (COLL__SEAL_RECORD + COLL__SEAL_BYTES)

struct tcp_crypt {
    struct coll__seal seal;
    size_t at,
        end;     /* offsets in `records`. at: sent up to here or, on a receiver, where the
                  * record of the bytes begins; end: filled up to here */
    int n_whole; /* messages whose last record is in `records` */
    unsigned char records[TCP_HEAD_RECORD + 2 * TCP_RECORD];
};

struct tcp_share;

/* One end of a lane. */
struct tcp_lane {
    struct tcp_conn *conn; /* whose direction it is */
    int status;            /* COLL_OK, or why it cannot be used any more */
    int is_active;         /* transfers wait: it is in a list */
    int is_ready; /* no system call has returned EAGAIN yet; a lane with bytes in `ahead`
                   * is ready too */
    struct coll__xfer *first, **last;
    struct tcp_wire wire; /* of the first one */
    size_t n_wire;        /* bytes of it that were sent or read */
    struct tcp_crypt *crypt; /* or NULL */

    /* Receiver: the kernel acknowledges bytes when they come, not when they are read, up
     * to TCP_UNREAD bytes.  Meanwhile epoll does not report fewer bytes than these, so
     * this ends before any thread depends on epoll. */
    int is_acked_early;
    /* Receiver: the header of a message of this length or longer is read alone, since the
     * bytes behind it may be the next message's; SIZE_MAX: of none. */
    size_t apart_from;
    /* Receiver: the beginning of an element that is to be reduced. */
    unsigned char part[TCP_GRAIN];
    size_t n_part;
    /* Receiver: bytes that were read ahead and not used yet, from `at` to `end`. */
    struct tcp_ahead {
        unsigned char *bytes; /* [TCP_AHEAD]; NULL before the first short one */
        size_t at, end;
    } ahead;
};

/* The state of a connection. */
enum tcp_state {
    TCP_UNUSED,
    TCP_DIALING,
    TCP_ASKING,  /* connected; the other rank has not answered yet */
    TCP_AWAITED, /* the other rank calls, or has gone; call again later */
    TCP_CONNECTED
};

/* One end of the connection with a rank on a channel. */
struct tcp_conn {
    struct tcp *tcp;
    int rank;          /* of the other end */
    int channel;       /* or the number of a rail: tcp_rail() */
    int fd;            /* from TCP_ASKING on; else -1 */
    enum tcp_state state;
    struct tcp_lane out, in;
    int n_asked; /* calls of coll__net_limit_flight() */
    struct tcp_share
        *share; /* its messages with rails; NULL before the first one */

    /* While it is made. */
    struct coll__addr addrs[COLL__MAX_ADDRS]; /* in the order in which this connection
                                               * tries them */
    struct coll__connector connector;
    struct coll__call *call;
    double deadline; /* of the call; TCP_AWAITED: when to call again */
    double looked;   /* at the call, the last time */
};

/* A connection that another rank has made. */
struct tcp_arrival {
    struct tcp_arrival *next;
    int fd, rank, channel, is_sealed;
    unsigned char session[COLL__SECRET_BYTES];
};

/* A message that rails share. */
struct tcp_shared {
    struct tcp_shared *next, **list; /* `list` is the one that it is in */
    struct coll__xfer *whole;
    struct coll__xfer head; /* sender: announces it; owner: NULL once it was sent */
    uint64_t number;        /* among those of its direction */
    size_t piece;           /* sender: bytes of each piece but the last */
    size_t at;              /* sender: offset of the next piece */
    size_t left;            /* bytes of pieces that have not ended */
};

/* The messages with rails of a channel to and from a rank. */
struct tcp_share {
    struct tcp_share *next;
    struct tcp_conn *conn; /* the channel's */
    int n_rails; /* for sending; less than 2: this rank sends by none */
    uint64_t n_sent, n_taken;
    struct tcp_shared *sending, *receiving; /* the earliest first */
    /* The piece that each rail moves; owner: its struct tcp_shared, or NULL: none. */
    struct coll__xfer out[TCP_RAILS], in[TCP_RAILS];
};

/* The lanes of a channel and direction that have transfers, and those of its rails. */
struct tcp_active {
    struct tcp_lane **lanes; /* [(1 + n_rails) * size] */
    int n, next;
};

/* What connections come to: one for each channel and rail. */
struct tcp_gates {
    struct coll__gate all[COLL__CHANNELS * (1 + TCP_RAILS)];
    int n;
};

/* The rails of all channels, and the messages that they share. */
struct tcp_rails {
    int n;       /* of each channel, that this rank lets in; 0: none */
    int n_lines; /* channels, and rails of all channels */
    int are_set; /* the limit tcp_rails says how many */
    size_t from; /* messages of this length and longer are sent by rails */
    struct tcp_share *shares; /* all of them */
    struct tcp_shared *spare;
    struct coll__ended parts; /* heads and pieces that have ended */
    int n_shared;             /* messages under way */
};

struct tcp {
    struct coll__tp base;
    double timeout;              /* s, to connect */
    const atomic_int *failure;   /* of struct coll__tp_env */
    struct coll__link near, far; /* near: to ranks of this host; far: to other hosts */
    unsigned char *is_near;      /* [size] */
    int *lost;                   /* [size]: a status, once it is lost */
    struct tcp_card *cards;      /* [size] */
    unsigned char secret[COLL__SECRET_BYTES];
    struct tcp_gates gates;
    int has_reactor;
    int events; /* an epoll of all connections, edge-triggered */

    struct tcp_conn **conns; /* [n_lines * size], NULL until used */
    /* [n_lines * size], for higher ranks: which of the two makes the connection */
    _Atomic(unsigned char) *callers;
    struct tcp_rails rails;
    struct tcp_active sending[COLL__CHANNELS], receiving[COLL__CHANNELS];
    int n_active;          /* in all of these, and messages that rails share */
    int n_early;           /* lanes that are acknowledged early */
    int n_calling;         /* connections that are being made by this rank */
    int is_armed;          /* the next poll() asks epoll */
    double look_at;        /* when to look for silent hosts */
    double asleep_until;   /* until then a thread may sleep on `events`; 0: none does */
    unsigned char *bounce; /* [TCP_BOUNCE]; or NULL before the first use */
    _Atomic(struct tcp_arrival *) arrived;
};

/* ---- tcp_open.c ---------------------------------------------------------- */

int tcp__open(const struct coll__tp_env *env, struct coll__tp **tp);
void tcp__close(struct coll__tp *tp, int is_orderly);

/* ---- tcp_conn.c, tcp_call.c ---------------------------------------------- */

/* Return the connection, which need not be connected yet; NULL (logged): no memory. */
struct tcp_conn *tcp__conn(struct tcp *tcp, int rank, int channel);

/* Count the equal interfaces of a rank's host that this host reaches by as many equal
 * interfaces of its own; 1 or more. */
int tcp__count_ways(const struct tcp_card *card);

/* Begin or continue to connect.  Returns how much was done.  A failure loses the
 * connection. */
int tcp__connect(struct tcp *tcp, struct tcp_conn *conn);

/* Ask a few times, when long messages are sent, whether the link is short, and then limit
 * the data in flight. */
void tcp__limit_flight(struct tcp_conn *conn);

/* Take over what has arrived. */
void tcp__take_arrivals(struct tcp *tcp);

/* Called by the reactor: a connection has come to that gate. */
void tcp__arrived(struct coll__gate *gate, int fd,
                  const struct coll__hello *hello,
                  const unsigned char *session);

/* Free what a connection holds while it is being made. */
void tcp__end_call(struct tcp *tcp, struct tcp_conn *conn);

/* Add the socket to tcp->events; returns 0 or errno.  From either thread. */
int tcp__watch(struct tcp *tcp, int fd, int rank, int channel);

/* Ask epoll which lanes are ready again; returns how many events came.  It does not
 * report lanes that acknowledge early. */
int tcp__hear(struct tcp *tcp);

/* Switch early acknowledgement on or off. */
void tcp__ack_early(struct tcp *tcp, struct tcp_lane *in, int is_early);

/* Lose the connection's rank, logged as "rank 3" and why: all of its transfers end, and
 * later ones end at once. */
void tcp__lose(struct tcp *tcp, const struct tcp_conn *conn, int status,
               const char *why);

/* Lose the rank because its connection has ended, with an errno or 0. */
void tcp__broken(struct tcp *tcp, const struct tcp_conn *conn, int err);

/* From time to time, lose ranks whose processes have ended or whose hosts are silent.
 * Returns not 0 if the kernel has reported anything. */
int tcp__look(struct tcp *tcp);

/* ---- tcp_send.c, tcp_recv.c ---------------------------------------------- */

/* Send what the kernel accepts, or receive what it has, up to `most` bytes or a little
 * more.  Returns how much was done; *bytes grows by the bytes moved. */
int tcp__push(struct tcp *tcp, struct tcp_lane *out, size_t most,
              size_t *bytes);
int tcp__pull(struct tcp *tcp, struct tcp_lane *in, size_t most, size_t *bytes);

/* Reduce whole elements of the n message bytes in tcp->bounce; the first of these bytes
 * follow the in->n_part bytes in in->part. */
void tcp__reduce(struct tcp *tcp, struct tcp_lane *in, size_t n);

/* Look at the next message's header: 1 and *wire if all of it has arrived, or 0; -1 if
 * the connection has ended before it, and errno, which is 0 at its regular end. */
int tcp__peek(struct tcp_lane *in, struct tcp_wire *wire);

/* Allocate tcp->bounce if the first receive reduces; returns 0 if the lane is lost. */
int tcp__has_bounce(struct tcp *tcp, struct tcp_lane *in);

/* ---- tcp_seal.c ---------------------------------------------------------- */

/* Make the state of a sealed connection's lanes from its secret; `calls` says which end
 * this is.  Returns 0 without memory. */
int tcp__make_crypts(struct tcp_conn *conn, const unsigned char *session,
                     int calls);
void tcp__free_crypt(struct tcp_crypt *crypt);

/* As tcp__push() and tcp__pull(), for sealed lanes. */
int tcp__push_sealed(struct tcp *tcp, struct tcp_lane *out, size_t most,
                     size_t *bytes);
int tcp__pull_sealed(struct tcp *tcp, struct tcp_lane *in, size_t most,
                     size_t *bytes);

/* As tcp__peek(); errno EBADMSG: the header was changed on its way. */
int tcp__peek_sealed(struct tcp_lane *in, struct tcp_wire *wire);

/* Does recv() with this result, which is not positive, show the end of the connection?
 * Then errno is 0 if it is the regular end. */
static inline int tcp_has_ended(ssize_t n)
{
    if (!n)
        errno = 0;
    return !n || (errno != EAGAIN && errno != EINTR);
}

/* Lose the rank because received bytes are not those that were sent. */
void tcp__lose_changed(struct tcp *tcp, const struct tcp_conn *conn);

/* ---- tcp_share.c --------------------------------------------------------- */

/* Return the number of a channel's rail, from 0 on, in place of a channel. */
static inline int tcp_rail(int channel, int rail)
{
    return channel + COLL__CHANNELS * (1 + rail);
}

/* Begin to send a message by rails.  Returns the head to send in its place; or NULL, and
 * nothing has changed: the message has no rails. */
struct coll__xfer *tcp__share(struct tcp *tcp, struct tcp_conn *conn,
                              struct coll__xfer *whole);

/* Does the header of the lane's first receive, which does not fit it, announce that its
 * message comes by rails?  Then take the receive out of the lane. */
int tcp__take_shared(struct tcp *tcp, struct tcp_lane *in);

/* Give pieces to idle rails, and end the messages whose pieces have ended.  Returns how
 * much was done. */
int tcp__move_shared(struct tcp *tcp);

/* End all messages by rails to and from a rank, whose lanes have ended. */
void tcp__end_shared(struct tcp *tcp, int rank, int status);

/* Free everything, and end nothing. */
void tcp__free_shares(struct tcp *tcp);

/* Is the first receive's header to be read alone now? */
static inline int tcp_reads_head_alone(const struct tcp_lane *in)
{
    return in->first->len >= in->apart_from && in->n_wire < sizeof(in->wire);
}

/* Take the first transfer out of a lane. */
static inline struct coll__xfer *tcp_take_first(struct tcp_lane *lane)
{
    struct coll__xfer *xfer = lane->first;

    lane->first = xfer->next;
    if (!lane->first)
        lane->last = &lane->first;
    lane->n_wire = 0;
    return xfer;
}

/* End the first transfer of a lane. */
static inline void tcp_end_first(struct tcp_lane *lane, int status)
{
    coll__xfer_end(tcp_take_first(lane), status);
}

/* List a lane that has transfers. */
static inline void tcp_activate(struct tcp *tcp, struct tcp_active *active,
                                struct tcp_lane *lane)
{
    if (lane->is_active)
        return;
    lane->is_active = 1;
    active->lanes[active->n++] = lane;
    tcp->n_active++;
}

/* Put a transfer into a lane of the list. */
static inline void tcp_enlist(struct tcp *tcp, struct tcp_active *active,
                              struct tcp_lane *lane, struct coll__xfer *xfer)
{
    xfer->next = NULL;
    *lane->last = xfer;
    lane->last = &xfer->next;
    tcp_activate(tcp, active, lane);
}

#endif
