/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.c - messages between hosts over TCP sockets, if there is no better transport.
 *
 * Each channel lists its lanes that have transfers, for each direction, so idle lanes
 * cost nothing when it is polled.  Each poll tries a few lanes directly; with many, it
 * first asks the kernel which of them are ready.
 */
#include "lib/util/util.h"
#include "transports/tcp.h"

#include <errno.h>
#include <sys/socket.h>

#define PACKET 1024 /* bytes; a message of this length fits into one packet */
#define LONG ((size_t)64 << 10) /* bytes; longer ones make streams */
#define ASK_RTT 16   /* long messages to look at before a link may count as short */
#define SLEEPS 50e-3 /* s; a rank that slept after arm() is awake by then */

/* Most bytes moved through one lane before the next one, and through all lanes of a
 * channel and direction in a round.  The first channel has no limit for a round. */
#define AT_ONCE ((size_t)512 << 10)
#define A_ROUND ((size_t)64 << 10)

static int tcp_usable(char *why, size_t len)
{
    (void)why;
    (void)len;
    return COLL_OK;
}

static int tcp_reaches(struct coll__tp *tp, int peer, struct coll__link *link)
{
    const struct tcp *tcp = (const struct tcp *)tp;

    if (peer == tp->rank)
        return COLL_ERR_PEER;
    *link = tcp->is_near[peer] ? tcp->near : tcp->far;
    return COLL_OK;
}

/* ---- transfers ----------------------------------------------------------- */

/* Put the transfer into its lane; returns 0 if it has ended. */
static int enlist(struct tcp *tcp, struct tcp_lane *lane,
                  struct tcp_active *active, struct coll__xfer *xfer)
{
    xfer->status = COLL_IN_PROGRESS;
    if (!lane || lane->status) {
        coll__xfer_end(xfer, lane ? lane->status : COLL_ERR_NOMEM);
        return 0;
    }
    tcp_enlist(tcp, active, lane, xfer);
    return lane->first == xfer;
}

void tcp__limit_flight(struct tcp_conn *conn)
{
    if (conn->n_asked < ASK_RTT && conn->state == TCP_CONNECTED)
        conn->n_asked =
            coll__net_limit_flight(conn->fd) ? ASK_RTT : conn->n_asked + 1;
}

/* Return what to send on the channel's connection: the message, or the head of a message
 * that rails share. */
static struct coll__xfer *prepare_long(struct tcp *tcp, struct tcp_conn *conn,
                                       struct coll__xfer *xfer)
{
    struct coll__xfer *head = NULL;

    if (xfer->len >= tcp->rails.from && conn)
        head = tcp__share(tcp, conn, xfer);
    if (!head && xfer->len > LONG && conn)
        tcp__limit_flight(conn);
    return head ? head : xfer;
}

static void tcp_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct tcp *tcp = (struct tcp *)tp;
    struct tcp_conn *conn = tcp__conn(tcp, xfer->peer, xfer->channel);
    size_t bytes = 0;

    xfer->done = 0;
    if (xfer->len >= TCP_SHARED_LEAST)
        xfer = prepare_long(tcp, conn, xfer);
    if (!enlist(tcp, conn ? &conn->out : NULL, &tcp->sending[xfer->channel],
                xfer))
        return;
    if (conn->state != TCP_CONNECTED) {
        tcp__connect(tcp, conn);
        return;
    }
    tcp__push(tcp, &conn->out, AT_ONCE, &bytes);
}

static void tcp_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct tcp *tcp = (struct tcp *)tp;
    struct tcp_conn *conn = tcp__conn(tcp, xfer->peer, xfer->channel);

    xfer->done = 0;
    enlist(tcp, conn ? &conn->in : NULL, &tcp->receiving[xfer->channel], xfer);
}

/* ---- polling ------------------------------------------------------------- */

/* Move one lane; does it still have transfers? */
static int advance(struct tcp *tcp, struct tcp_lane *lane, int is_out,
                   int *moved, size_t *bytes)
{
    if (is_out && lane->conn->state != TCP_CONNECTED && !lane->status)
        *moved += tcp__connect(tcp, lane->conn);
    if (lane->conn->state == TCP_CONNECTED)
        *moved += is_out ? tcp__push(tcp, lane, AT_ONCE, bytes)
                         : tcp__pull(tcp, lane, AT_ONCE, bytes);
    return lane->first != NULL;
}

/* Move the lanes, starting where the last round stopped, until so many bytes have been
 * moved. */
static int round_of(struct tcp *tcp, struct tcp_active *active, int is_out,
                    size_t most)
{
    size_t bytes = 0;
    int moved = 0;

    for (int n = active->n; n > 0 && bytes < most; n--) {
        struct tcp_lane *lane;

        if (active->next >= active->n)
            active->next = 0;
        lane = active->lanes[active->next];
        if (advance(tcp, lane, is_out, &moved, &bytes)) {
            active->next++;
            continue;
        }
        moved += lane->status != COLL_OK; /* its transfers have ended */
        lane->is_active = 0;
        active->lanes[active->next] = active->lanes[--active->n];
        tcp->n_active--;
    }
    return moved;
}

/* Few lanes are as good as ready. */
static void trust(struct tcp_active *active)
{
    for (int i = 0; i < active->n; i++)
        active->lanes[i]->is_ready = 1;
}

/* End early acknowledgements, so that epoll reports every byte. */
static void end_early_acks(struct tcp *tcp)
{
    for (int i = 0; i < tcp->rails.n_lines * tcp->base.size && tcp->n_early;
         i++)
        if (tcp->conns[i])
            tcp__ack_early(tcp, &tcp->conns[i]->in, 0);
}

/* May a rank sleep?  A thread that has armed the bell may sleep on it while another one
 * receives; until it is awake again, epoll must report every byte. */
static int is_asleep(struct tcp *tcp)
{
    if (tcp->asleep_until > 0 && coll__now() >= tcp->asleep_until)
        tcp->asleep_until = 0;
    return tcp->asleep_until > 0;
}

/* Choose which lanes acknowledge early.  When a receiver reads a message of several
 * packets without having answered, its kernel sends an acknowledgement first, which takes
 * about as long as the message.  With early acknowledgement the kernel sends it as the
 * packets come, on the core that handles them.  Long messages would cause too many
 * acknowledgements; short ones do not change the setting. */
static void choose_acks(struct tcp *tcp, struct tcp_active *active)
{
    for (int i = 0; i < active->n; i++) {
        struct tcp_lane *in = active->lanes[i];

        if (in->first && in->first->len > PACKET &&
            in->conn->state == TCP_CONNECTED)
            tcp__ack_early(tcp, in, in->first->len <= LONG && !is_asleep(tcp));
    }
}

/* Find out which lanes are ready.  A rank that is about to sleep on epoll reads all of
 * its events first, also those of lanes without receives: else these would wake it again
 * and again. */
static void learn_who_is_ready(struct tcp *tcp)
{
    if (tcp->is_armed)
        tcp->asleep_until = coll__now() + SLEEPS;
    if (tcp->n_active > TCP_FEW || tcp->is_armed) {
        end_early_acks(tcp);
        tcp__hear(tcp);
        tcp->is_armed = 0;
        return;
    }
    if (atomic_load_explicit(&tcp->arrived, memory_order_relaxed))
        tcp__take_arrivals(tcp);
    for (int c = 0; c < COLL__CHANNELS; c++) {
        trust(&tcp->sending[c]);
        trust(&tcp->receiving[c]);
        choose_acks(tcp, &tcp->receiving[c]);
    }
}

/* Read before writing: the ranks that must read our messages may wait for the results of
 * theirs. */
static int tcp_poll(struct coll__tp *tp)
{
    struct tcp *tcp = (struct tcp *)tp;
    int moved = 0;

    if (!tcp->n_active && !tcp->is_armed)
        return 0;
    learn_who_is_ready(tcp);
    for (int c = 0; c < COLL__CHANNELS; c++) {
        size_t most = c ? A_ROUND : SIZE_MAX;

        moved += round_of(tcp, &tcp->receiving[c], 0, most);
        moved += round_of(tcp, &tcp->sending[c], 1, most);
    }
    if (tcp->rails.n_shared)
        moved += tcp__move_shared(tcp);
    return moved ? moved : tcp__look(tcp);
}

/* epoll does not watch the sockets of connections that are being made. */
static int tcp_arm(struct coll__tp *tp, struct coll__bell *bell)
{
    struct tcp *tcp = (struct tcp *)tp;

    if (tcp->n_calling)
        return 0;
    tcp->is_armed = 1;
    bell->fd = tcp->events;
    return 1;
}

static int tcp_peek(struct coll__tp *tp, int peer, int channel,
                    struct coll__signature *sig)
{
    struct tcp *tcp = (struct tcp *)tp;
    struct tcp_conn *conn;
    struct tcp_lane *in;
    struct tcp_wire wire;

    tcp__take_arrivals(tcp);
    conn = tcp->conns[coll__lane(channel, peer, tp->size)];
    if (!conn || conn->state != TCP_CONNECTED)
        return 0;
    in = &conn->in;
    if (in->first || in->status)
        return 0;
    if ((in->crypt ? tcp__peek_sealed : tcp__peek)(in, &wire) != 1)
        return 0;
    *sig = wire.sig;
    sig->collective &= (uint8_t)~TCP_SHARED;
    return 1;
}

const struct coll__transport coll__transport_tcp = {
    .name = "tcp",
    .what = "sockets between hosts, through the process's own listener",
    .spans_hosts = 1,
    .is_encrypted = 1,
    .usable = tcp_usable,
    .open = tcp__open,
    .settle = coll__no_settle,
    .close = tcp__close,
    .reaches = tcp_reaches,
    .send = tcp_send,
    .recv = tcp_recv,
    .put = coll__no_put,
    .take = coll__no_take,
    .poll = tcp_poll,
    .arm = tcp_arm,
    .peek = tcp_peek,
};
