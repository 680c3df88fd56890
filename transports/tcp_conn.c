/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_conn.c - the connections: the table of them, their epoll events, and their loss. */
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define EVENTS 64       /* taken at once */
#define LOOK_EVERY 0.25 /* s */

struct tcp_conn *tcp__conn(struct tcp *tcp, int rank, int channel)
{
    struct tcp_conn **at =
        &tcp->conns[coll__lane(channel, rank, tcp->base.size)];
    struct tcp_conn *conn = *at;

    if (conn)
        return conn;
    conn = calloc(1, sizeof(*conn));
    if (!conn) {
        log_error("tcp", "no memory for a connection to rank %d; free some",
                  rank);
        return NULL;
    }
    conn->tcp = tcp;
    conn->rank = rank;
    conn->channel = channel;
    conn->fd = -1;
    conn->out.conn = conn->in.conn = conn;
    conn->out.last = &conn->out.first;
    conn->in.last = &conn->in.first;
    conn->out.status = conn->in.status = tcp->lost[rank];
    conn->in.apart_from =
        tcp->rails.n && !tcp->is_near[rank] && channel < COLL__CHANNELS
            ? TCP_SHARED_LEAST
            : SIZE_MAX;
    *at = conn;
    return conn;
}

/* ---- the end of one ------------------------------------------------------ */

static void end_lane(struct tcp_lane *lane, int status)
{
    if (lane->status)
        return;
    lane->status = status;
    while (lane->first)
        tcp_end_first(lane, status);
}

/* If one connection to a rank is lost, all are. */
void tcp__lose(struct tcp *tcp, const struct tcp_conn *conn, int status,
               const char *why)
{
    int rank = conn->rank;

    if (tcp->lost[rank])
        return;
    tcp->lost[rank] = status;
    if (!tcp->failure || !atomic_load(tcp->failure)) /* else it is no news */
        log_error("tcp", "rank %d %s", rank, why);
    for (int c = 0; c < tcp->rails.n_lines; c++) {
        struct tcp_conn *other =
            tcp->conns[coll__lane(c, rank, tcp->base.size)];

        if (!other)
            continue;
        tcp__end_call(tcp, other);
        end_lane(&other->out, status);
        end_lane(&other->in, status);
    }
    tcp__end_shared(tcp, rank, status);
}

void tcp__broken(struct tcp *tcp, const struct tcp_conn *conn, int err)
{
    char why[160];

    if (coll__net_is_silence(err))
        snprintf(why, sizeof(why), "is on a host that has fallen silent");
    else
        snprintf(why, sizeof(why), "went away: %s; its own messages say why",
                 err ? strerror(err) : "it closed the connection");
    tcp__lose(tcp, conn, COLL_ERR_PEER, why);
}

/* ---- what the kernel says ------------------------------------------------ */

int tcp__watch(struct tcp *tcp, int fd, int rank, int channel)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data.u32 = (uint32_t)coll__lane(channel, rank, tcp->base.size)};

    return epoll_ctl(tcp->events, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

/* Find out whether the other end has closed.  Lanes with transfers find that out
 * themselves; this is for a connection whose lanes are idle.  Bytes sent before the end
 * can still be read. */
static void look_for_end(struct tcp *tcp, const struct tcp_conn *conn)
{
    ssize_t n;
    char byte;

    if (conn->state != TCP_CONNECTED || conn->in.ahead.at < conn->in.ahead.end)
        return;
    n = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0)
        tcp__broken(tcp, conn, 0);
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        tcp__broken(tcp, conn, errno);
}

int tcp__hear(struct tcp *tcp)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(tcp->events, events, EVENTS, 0);

    if (atomic_load_explicit(&tcp->arrived, memory_order_relaxed))
        tcp__take_arrivals(tcp);
    for (int i = 0; i < n; i++) {
        struct tcp_conn *conn = tcp->conns[events[i].data.u32];

        if (!conn)
            continue;
        conn->out.is_ready = conn->in.is_ready = 1;
        if (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            look_for_end(tcp, conn);
    }
    return n > 0 ? n : 0;
}

/* Early acknowledgement is SO_RCVLOWAT: if a reader wants at least so many bytes, the
 * kernel acknowledges packets at once, since the sender may wait for that
 * (__tcp_ack_snd_check).  Otherwise the kernel acknowledges when the bytes are read, once
 * the window has its full size. */
void tcp__ack_early(struct tcp *tcp, struct tcp_lane *in, int is_early)
{
    int least = is_early ? TCP_UNREAD : 1;

    if (in->is_acked_early == is_early ||
        setsockopt(in->conn->fd, SOL_SOCKET, SO_RCVLOWAT, &least,
                   sizeof(least)))
        return;
    in->is_acked_early = is_early;
    tcp->n_early += is_early ? 1 : -1;
}

int tcp__look(struct tcp *tcp)
{
    double now = coll__now(), silence;
    int n;

    if (now < tcp->look_at)
        return 0;
    tcp->look_at = now + LOOK_EVERY;
    n = tcp__hear(tcp);
    for (int c = 0; c < COLL__CHANNELS; c++)
        for (int i = 0; i < tcp->sending[c].n; i++) {
            const struct tcp_conn *conn = tcp->sending[c].lanes[i]->conn;

            if (conn->state == TCP_CONNECTED &&
                coll__net_is_unheard(conn->fd, &silence) &&
                silence > COLL__SILENCE)
                tcp__broken(tcp, conn, ETIMEDOUT);
        }
    return n;
}
