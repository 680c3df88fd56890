/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_seal.c - lanes whose bytes are encrypted and authenticated.
 *
 * Messages are sealed into a buffer that stays in the cache; a send ends when the
 * message's last record has left that buffer.  Incoming bytes are read record by record,
 * never beyond the message, and opened into place.  No byte or length is used before its
 * record has been authenticated.
 */
#include "transports/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Each direction has a key of its own, named by the sending end. */
static struct tcp_crypt *new_crypt(const unsigned char *session, int is_callers,
                                   size_t at)
{
    struct tcp_crypt *crypt = malloc(sizeof(*crypt));

    if (!crypt)
        return NULL;
    coll__seal_init(&crypt->seal, session, is_callers ? "caller" : "called");
    crypt->at = at;
    crypt->end = 0;
    crypt->n_whole = 0;
    return crypt;
}

int tcp__make_crypts(struct tcp_conn *conn, const unsigned char *session,
                     int calls)
{
    conn->out.crypt = new_crypt(session, calls, 0);
    conn->in.crypt = new_crypt(session, !calls, TCP_HEAD_RECORD);
    return conn->out.crypt && conn->in.crypt;
}

void tcp__free_crypt(struct tcp_crypt *crypt)
{
    if (crypt)
        coll__auth_wipe(&crypt->seal, sizeof(crypt->seal));
    free(crypt);
}

/* Return the bytes of a message's next record. */
static size_t next_piece(const struct coll__xfer *xfer)
{
    size_t left = xfer->len - xfer->done;

    return left < COLL__SEAL_RECORD ? left : COLL__SEAL_RECORD;
}

/* ---- sending ------------------------------------------------------------- */

/* Seal a record, if there is space for it. */
static int seal(struct tcp_crypt *crypt, const void *bytes, size_t len)
{
    if (crypt->end + len + COLL__SEAL_BYTES > sizeof(crypt->records))
        return 0;
    coll__seal_put(&crypt->seal, crypt->records + crypt->end, bytes, len);
    crypt->end += len + COLL__SEAL_BYTES;
    return 1;
}

/* Seal as much of a message as there is space for; is it all? */
static int seal_message(struct tcp_lane *out, struct coll__xfer *xfer)
{
    struct tcp_wire wire = {xfer->sig, xfer->len};

    if (!out->n_wire && !seal(out->crypt, &wire, sizeof(wire)))
        return 0;
    out->n_wire = sizeof(wire);
    while (xfer->done < xfer->len) {
        size_t n = next_piece(xfer);

        if (!seal(out->crypt, (const char *)xfer->buf + xfer->done, n))
            return 0;
        xfer->done += n;
    }
    out->n_wire = 0;
    return 1;
}

static void fill(struct tcp_lane *out)
{
    struct tcp_crypt *crypt = out->crypt;
    struct coll__xfer *xfer = out->first;

    crypt->at = crypt->end = 0;
    for (; xfer && seal_message(out, xfer); xfer = xfer->next)
        crypt->n_whole++;
}

/* All records have been sent, so end the messages whose last record was among them. */
static void end_sent(struct tcp_lane *out)
{
    size_t n_wire = out->n_wire; /* of the message behind them */

    for (; out->crypt->n_whole; out->crypt->n_whole--)
        tcp_end_first(out, COLL_OK);
    out->n_wire = n_wire;
}

int tcp__push_sealed(struct tcp *tcp, struct tcp_lane *out, size_t most,
                     size_t *bytes)
{
    struct tcp_crypt *crypt = out->crypt;
    size_t until = *bytes + most;
    int moved = 0;

    while (out->first && out->is_ready && *bytes < until) {
        ssize_t n;

        if (crypt->at == crypt->end)
            fill(out);
        n = send(out->conn->fd, crypt->records + crypt->at,
                 crypt->end - crypt->at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            crypt->at += (size_t)n;
            *bytes += (size_t)n;
            moved++;
            if (crypt->at == crypt->end)
                end_sent(out);
        } else if (errno == EAGAIN) {
            out->is_ready = 0;
        } else if (errno != EINTR) {
            tcp__broken(tcp, out->conn, errno);
        }
    }
    return moved;
}

/* ---- receiving ----------------------------------------------------------- */

void tcp__lose_changed(struct tcp *tcp, const struct tcp_conn *conn)
{
    tcp__lose(tcp, conn, COLL_ERR_PEER,
              "sent what did not come as it was: somebody on the way has "
              "changed it");
}

/* Return where the record that is being read ends. */
static size_t record_end(const struct tcp_lane *in)
{
    size_t n = next_piece(in->first);

    if (tcp_reads_head_alone(in))
        return TCP_HEAD_RECORD;
    return in->crypt->at + (n ? n + COLL__SEAL_BYTES : 0);
}

static void open_head(struct tcp *tcp, struct tcp_lane *in)
{
    if (coll__seal_take(&in->crypt->seal, &in->wire, in->crypt->records,
                        sizeof(in->wire))) {
        tcp__lose_changed(tcp, in->conn);
        return;
    }
    in->n_wire = sizeof(in->wire);
    if (coll__xfer_fits(in->first, &in->wire.sig, in->wire.len))
        return;
    if (tcp__take_shared(tcp, in)) {
        in->crypt->end = 0;
        return;
    }
    tcp_end_first(in, COLL_ERR_MISMATCH);
    in->status = COLL_ERR_MISMATCH;
}

/* The record is complete: open it into place, or into the buffer from which it is
 * reduced. */
static void open_piece(struct tcp *tcp, struct tcp_lane *in)
{
    struct tcp_crypt *crypt = in->crypt;
    struct coll__xfer *xfer = in->first;
    size_t n = next_piece(xfer);
    void *to =
        xfer->reduce ? (char *)tcp->bounce : (char *)xfer->buf + xfer->done;

    if (n && coll__seal_take(&crypt->seal, to, crypt->records + crypt->at, n)) {
        tcp__lose_changed(tcp, in->conn);
        return;
    }
    crypt->at = crypt->end = 0;
    if (xfer->reduce)
        tcp__reduce(tcp, in, n);
    else
        xfer->done += n;
    if (xfer->done < xfer->len)
        return;
    crypt->at = TCP_HEAD_RECORD;
    tcp_end_first(in, COLL_OK);
}

/* So many bytes have come. */
static void account(struct tcp *tcp, struct tcp_lane *in, size_t n)
{
    struct tcp_crypt *crypt = in->crypt;

    crypt->end += n;
    if (!in->n_wire && crypt->end >= TCP_HEAD_RECORD)
        open_head(tcp, in);
    if (!in->status && in->n_wire && crypt->end == record_end(in))
        open_piece(tcp, in);
}

int tcp__pull_sealed(struct tcp *tcp, struct tcp_lane *in, size_t most,
                     size_t *bytes)
{
    struct tcp_crypt *crypt = in->crypt;
    size_t until = *bytes + most;
    int moved = 0;

    while (in->first && in->is_ready && !in->status && *bytes < until &&
           tcp__has_bounce(tcp, in)) {
        ssize_t n = recv(in->conn->fd, crypt->records + crypt->end,
                         record_end(in) - crypt->end, MSG_DONTWAIT);

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

int tcp__peek_sealed(struct tcp_lane *in, struct tcp_wire *wire)
{
    unsigned char record[TCP_HEAD_RECORD];
    struct coll__seal seal;
    int is_changed;
    ssize_t n;

    if (in->crypt->end)
        return 0;
    n = recv(in->conn->fd, record, sizeof(record), MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return tcp_has_ended(n) ? -1 : 0;
    if (n < (ssize_t)sizeof(record))
        return 0;
    seal = in->crypt->seal;
    is_changed = coll__seal_take(&seal, wire, record, sizeof(*wire));
    coll__auth_wipe(&seal, sizeof(seal));
    errno = EBADMSG;
    return is_changed ? -1 : 1;
}
