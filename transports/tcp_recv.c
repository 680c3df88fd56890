/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_recv.c - read messages into place, or reduce them from a buffer that stays in
 * the cache. */
#include "transports/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Return where to receive the message's bytes: in its buffer or, if they are reduced, in
 * tcp->bounce after the part of an element that came before.  Before the header of a
 * message that may be shared, that is nowhere. */
static struct iovec body_of(const struct tcp *tcp, const struct tcp_lane *in,
                            size_t most)
{
    const struct coll__xfer *xfer = in->first;
    size_t left = xfer->len - xfer->done - in->n_part;

    if (tcp_reads_head_alone(in))
        return (struct iovec){NULL, 0};
    if (!xfer->reduce)
        return (struct iovec){(char *)xfer->buf + xfer->done,
                              left < most ? left : most};
    if (left > TCP_BOUNCE - in->n_part)
        left = TCP_BOUNCE - in->n_part;
    return (struct iovec){tcp->bounce + in->n_part, left};
}

/* Note that n bytes of the message have come to where body_of() said. */
static void take_body(struct tcp *tcp, struct tcp_lane *in, size_t n)
{
    if (in->first->reduce)
        tcp__reduce(tcp, in, n);
    else
        in->first->done += n;
}

void tcp__reduce(struct tcp *tcp, struct tcp_lane *in, size_t n)
{
    struct coll__xfer *xfer = in->first;
    size_t whole;

    memcpy(tcp->bounce, in->part, in->n_part);
    n += in->n_part;
    whole = xfer->done + n == xfer->len ? n : n - n % TCP_GRAIN;
    in->n_part = n - whole;
    memcpy(in->part, tcp->bounce + whole, in->n_part);
    if (whole)
        xfer->reduce((char *)xfer->buf + xfer->done,
                     (const char *)xfer->with + xfer->done, tcp->bounce, whole);
    xfer->done += whole;
}

/* Note that n bytes have arrived: the rest of the header, and some of the message. */
static void account(struct tcp *tcp, struct tcp_lane *in, size_t n)
{
    size_t head = sizeof(in->wire) - in->n_wire;
    struct coll__xfer *xfer = in->first;

    if (n < head) {
        in->n_wire += n;
        return;
    }
    in->n_wire = sizeof(in->wire);
    if (!coll__xfer_fits(xfer, &in->wire.sig, in->wire.len)) {
        if (tcp__take_shared(tcp, in))
            return;
        tcp_end_first(in, COLL_ERR_MISMATCH);
        in->status = COLL_ERR_MISMATCH;
        return;
    }
    take_body(tcp, in, n - head);
    if (xfer->done == xfer->len)
        tcp_end_first(in, COLL_OK);
}

/* Read more into `ahead`, which has space.  Returns the bytes read, 0 at the end, or -1
 * and errno. */
static ssize_t read_ahead(struct tcp_lane *in)
{
    struct tcp_ahead *ahead = &in->ahead;
    ssize_t n;

    if (ahead->at == ahead->end)
        ahead->at = ahead->end = 0;
    n = recv(in->conn->fd, ahead->bytes + ahead->end, TCP_AHEAD - ahead->end,
             MSG_DONTWAIT);
    if (n > 0)
        ahead->end += (size_t)n;
    return n;
}

static size_t take_ahead(struct tcp_ahead *ahead, struct iovec to)
{
    size_t there = ahead->end - ahead->at;
    size_t n = there < to.iov_len ? there : to.iov_len;

    if (n)
        memcpy(to.iov_base, ahead->bytes + ahead->at, n);
    ahead->at += n;
    return n;
}

static int is_short(struct tcp_lane *in, size_t left)
{
    if (left > TCP_AHEAD)
        return 0;
    if (!in->ahead.bytes)
        in->ahead.bytes = malloc(TCP_AHEAD);
    return in->ahead.bytes != NULL; /* without it goes as well */
}

/* Read the rest of the header and some of the body, from `ahead` or from the socket;
 * returns as recvmsg() does. */
static ssize_t read_some(struct tcp *tcp, struct tcp_lane *in, size_t most)
{
    struct iovec parts[2] = {
        {(char *)&in->wire + in->n_wire, sizeof(in->wire) - in->n_wire},
        body_of(tcp, in, most)};
    struct iovec *first = parts + !parts[0].iov_len;
    struct msghdr message = {.msg_iov = first,
                             .msg_iovlen = (size_t)(parts + 2 - first)};
    struct tcp_ahead *ahead = &in->ahead;
    ssize_t n;

    if (ahead->at == ahead->end) {
        if (!is_short(in, parts[0].iov_len + parts[1].iov_len))
            return recvmsg(in->conn->fd, &message, MSG_DONTWAIT);
        n = read_ahead(in);
        if (n <= 0)
            return n;
    }
    n = (ssize_t)take_ahead(ahead, parts[0]);
    return n + (ssize_t)take_ahead(ahead, parts[1]);
}

int tcp__peek(struct tcp_lane *in, struct tcp_wire *wire)
{
    struct tcp_ahead *ahead = &in->ahead;
    size_t there = min_size(ahead->end - ahead->at, sizeof(*wire));
    size_t more = sizeof(*wire) - there;
    ssize_t n = 0;

    if (more)
        n = recv(in->conn->fd, (char *)wire + there, more,
                 MSG_PEEK | MSG_DONTWAIT);
    if (more && n <= 0)
        return tcp_has_ended(n) ? -1 : 0;
    if (there)
        memcpy(wire, ahead->bytes + ahead->at, there);
    return (size_t)n == more;
}

int tcp__has_bounce(struct tcp *tcp, struct tcp_lane *in)
{
    if (!in->first->reduce || tcp->bounce)
        return 1;
    tcp->bounce = malloc(TCP_BOUNCE);
    if (!tcp->bounce)
        tcp__lose(tcp, in->conn, COLL_ERR_NOMEM,
                  "gets no buffer: no memory; free some");
    return tcp->bounce != NULL;
}

int tcp__pull(struct tcp *tcp, struct tcp_lane *in, size_t most, size_t *bytes)
{
    size_t until = *bytes + most;
    int moved = 0;

    if (in->crypt)
        return tcp__pull_sealed(tcp, in, most, bytes);
    while (in->first && in->is_ready && !in->status && *bytes < until &&
           tcp__has_bounce(tcp, in)) {
        ssize_t n = read_some(tcp, in, until - *bytes);

        if (n > 0) {
            account(tcp, in, (size_t)n);
            *bytes += (size_t)n;
            moved++;
        } else if (n == 0) {
            tcp__broken(tcp, in->conn, 0);
        } else if (errno == EAGAIN) {
            in->is_ready = 0;
        } else if (errno != EINTR) {
            tcp__broken(tcp, in->conn, errno);
        }
    }
    return moved;
}
