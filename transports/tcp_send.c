/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_send.c - send messages straight from their buffers, several in one call. */
#include "transports/tcp.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define BATCH 16 /* messages by one call */

/* What is to be written next. */
struct batch {
    struct tcp_wire wires[BATCH];
    struct iovec parts[2 * BATCH];
    int n_parts;
    size_t len;
};

static void add_part(struct batch *batch, void *at, size_t len)
{
    if (!len)
        return;
    batch->parts[batch->n_parts++] = (struct iovec){at, len};
    batch->len += len;
}

/* List the unsent part of the first message, and the messages after it until there is
 * enough for one call. */
static void fill(struct batch *batch, const struct tcp_lane *out, size_t most)
{
    const struct coll__xfer *xfer = out->first;
    size_t n_wire = out->n_wire;

    batch->n_parts = 0;
    batch->len = 0;
    for (int i = 0; xfer && i < BATCH && batch->len < most; i++) {
        struct tcp_wire *wire = &batch->wires[i];

        *wire = (struct tcp_wire){xfer->sig, xfer->len};
        add_part(batch, (char *)wire + n_wire, sizeof(*wire) - n_wire);
        add_part(batch, (char *)xfer->buf + xfer->done, xfer->len - xfer->done);
        xfer = xfer->next;
        n_wire = 0;
    }
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Note that n more bytes have been sent. */
static void account(struct tcp_lane *out, size_t n)
{
    struct coll__xfer *xfer;

    while ((xfer = out->first)) {
        size_t head = smaller(n, sizeof(out->wire) - out->n_wire), body;

        out->n_wire += head;
        n -= head;
        if (out->n_wire < sizeof(out->wire))
            return;
        body = smaller(n, xfer->len - xfer->done);
        xfer->done += body;
        n -= body;
        if (xfer->done < xfer->len)
            return;
        tcp_end_first(out, COLL_OK);
        if (!n)
            return;
    }
}

int tcp__push(struct tcp *tcp, struct tcp_lane *out, size_t most, size_t *bytes)
{
    size_t until = *bytes + most;
    struct batch batch;
    int moved = 0;

    if (out->crypt)
        return tcp__push_sealed(tcp, out, most, bytes);
    while (out->first && out->is_ready && *bytes < until) {
        struct msghdr message = {.msg_iov = batch.parts};
        ssize_t n;

        fill(&batch, out, until - *bytes);
        message.msg_iovlen = (size_t)batch.n_parts;
        n = sendmsg(out->conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            account(out, (size_t)n);
            *bytes += (size_t)n;
            moved++;
        } else if (errno == EAGAIN) {
            out->is_ready = 0;
        } else if (errno != EINTR) {
            tcp__broken(tcp, out->conn, errno);
        }
    }
    return moved;
}
