/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_recv.c - read messages into place, or reduce them from a buffer that stays in
 * the cache. */
#include "transports/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Where the bytes behind the head go: into place, or behind the beginning of an
 * element. */
static struct iovec body_of(const struct tcp *tcp, const struct tcp_lane *in,
                            size_t most)
{
    const struct coll__xfer *xfer = in->first;
    size_t left = xfer->len - xfer->done - in->n_part;

    if (!xfer->reduce)
        return (struct iovec){(char *)xfer->buf + xfer->done,
                              left < most ? left : most};
    if (left > TCP_BOUNCE - in->n_part)
        left = TCP_BOUNCE - in->n_part;
    return (struct iovec){tcp->bounce + in->n_part, left};
}

/* So many bytes of the message have come to where body_of() has had them. */
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

/* So many bytes have come: the rest of the head, and some of the message. */
static void account(struct tcp *tcp, struct tcp_lane *in, size_t n)
{
    size_t head = sizeof(in->wire) - in->n_wire;
    struct coll__xfer *xfer = in->first;

    if (n < head) {
        in->n_wire += n;
        return;
    }
    in->n_wire = sizeof(in->wire);
    if (!coll__xfer_fits(xfer, &in->wire.head, in->wire.len)) {
        tcp_end_first(in, COLL_ERR_MISMATCH);
        in->status = COLL_ERR_MISMATCH;
        return;
    }
    take_body(tcp, in, n - head);
    if (xfer->done == xfer->len)
        tcp_end_first(in, COLL_OK);
}

static ssize_t read_some(struct tcp *tcp, struct tcp_lane *in, size_t most)
{
    struct iovec parts[2] = {
        {(char *)&in->wire + in->n_wire, sizeof(in->wire) - in->n_wire},
        body_of(tcp, in, most)};
    struct iovec *first = parts + !parts[0].iov_len;
    struct msghdr message = {.msg_iov = first,
                             .msg_iovlen = (size_t)(parts + 2 - first)};

    return recvmsg(in->fd, &message, MSG_DONTWAIT);
}

int tcp__has_bounce(struct tcp *tcp, struct tcp_lane *in)
{
    if (!in->first->reduce || tcp->bounce)
        return 1;
    tcp->bounce = malloc(TCP_BOUNCE);
    if (!tcp->bounce)
        tcp__lose(tcp, in, COLL_ERR_NOMEM,
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
            tcp__broken(tcp, in, 0);
        } else if (errno == EAGAIN) {
            in->is_ready = 0;
        } else if (errno != EINTR) {
            tcp__broken(tcp, in, errno);
        }
    }
    return moved;
}
