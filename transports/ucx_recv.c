/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_recv.c - receive segments: they arrive, are matched in order, and are stored.
 *
 * A segment that is next in order and whose receive is posted is copied or reduced
 * straight from UCX's memory.  Any other segment is kept in its slot: in UCX's memory if
 * UCX allows that, else as a copy.  The data of a rendezvous stay at the sender until
 * this rank fetches them.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

/* ---- bounce buffers: a rendezvous is fetched here to be reduced --------- */

static void *bounce_get(struct ucx *ucx)
{
    void **bounce = ucx->bounces;

    if (bounce) {
        ucx->bounces = *bounce;
        return bounce;
    }
    if (ucx->n_bounces == UCX_BOUNCES)
        return NULL;
    bounce = malloc(UCX_SEGMENT);
    ucx->n_bounces += !!bounce;
    return bounce;
}

static void bounce_put(struct ucx *ucx, void *bounce)
{
    *(void **)bounce = ucx->bounces;
    ucx->bounces = bounce;
}

/* ---- landing ------------------------------------------------------------ */

static void store(const struct coll__xfer *xfer, uint64_t offset,
                  const void *from, size_t n)
{
    unsigned char *to = (unsigned char *)xfer->buf + offset;

    if (xfer->reduce && n)
        xfer->reduce(to, (const unsigned char *)xfer->with + offset, from, n);
    else if (n)
        memcpy(to, from, n);
}

/* Mark this segment as taken, and return credit for all taken segments in order. */
static void taken(struct ucx_in *in)
{
    struct ucx_peer *peer = in->peer;

    in->hold = HOLD_TAKEN;
    while (in = &peer->in[peer->taken % UCX_WINDOW], in->hold == HOLD_TAKEN) {
        in->hold = HOLD_NONE;
        peer->untold += in->n;
        peer->taken++;
    }
    peer->ucx->moved++;
    if (peer->taken - peer->told >= UCX_WINDOW / 2 ||
        peer->untold >= UCX_CREDIT / 2)
        coll__ucx_list(peer);
}

/* Let go of what the slot holds. */
static void release(struct ucx_in *in)
{
    if (in->hold == HOLD_UCX || in->hold == HOLD_RNDV)
        coll__ucx.ucp_am_data_release(in->peer->ucx->worker->worker, in->data);
    in->data = NULL;
}

/* Turn to the next segment of the peer; the receive counts this one. */
static void step(struct ucx_peer *peer, struct coll__xfer *xfer, size_t n)
{
    peer->matched++;
    xfer->done += n;
    coll__ucx_hand_over(xfer);
    if (xfer->done == xfer->len)
        coll__ucx_queue_take(&peer->recvs);
}

static void fetched(struct ucx_in *in, ucs_status_t rc)
{
    struct ucx_peer *peer = in->peer;
    struct ucx *ucx = peer->ucx;
    struct coll__xfer *xfer = in->xfer;

    if (xfer && ucx->worker->caller != ucx) {
        in->rc = rc;
        in->next = ucx->fetched;
        ucx->fetched = in;
        return;
    }
    if (in->bounce && xfer && rc == UCS_OK)
        store(xfer, in->wire.offset, in->bounce, in->n);
    if (in->bounce)
        bounce_put(ucx, in->bounce);
    in->bounce = NULL;
    in->xfer = NULL;
    if (rc != UCS_OK && !peer->status && xfer)
        coll__ucx_lose(peer, coll__ucx_status(rc, "ucp_am_recv_data_nbx"));
    taken(in);
    if (xfer)
        coll__ucx_take_back(peer, xfer, rc == UCS_OK);
}

void coll__ucx_take_fetched(struct ucx *ucx)
{
    struct ucx_in *in = ucx->fetched;

    ucx->fetched = NULL;
    while (in) {
        struct ucx_in *next = in->next;

        fetched(in, in->rc);
        in = next;
    }
}

static void on_fetched(void *request, ucs_status_t rc, size_t len, void *arg)
{
    struct ucx_in *in = arg;

    (void)len;
    coll__ucx.ucp_request_free(request);
    coll__ucx_end(in->peer->ucx);
    fetched(in, rc);
}

/* Fetch a rendezvous; returns 0 if it has to wait for a bounce buffer. */
static int fetch(struct ucx_in *in, struct coll__xfer *xfer)
{
    struct ucx_peer *peer = in->peer;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.recv_am = on_fetched,
        .user_data = in,
        .memory_type = UCS_MEMORY_TYPE_HOST, /* ucx.h: it need not ask */
    };
    void *to = (unsigned char *)xfer->buf + xfer->done;
    ucs_status_ptr_t request;

    if (xfer->reduce) {
        in->bounce = to = bounce_get(peer->ucx);
        if (!to && !peer->ucx->n_bounces) {
            log_error("ucx",
                      "no memory for a buffer of %zu bytes; free some, "
                      "or lower COLL_CHUNK",
                      UCX_SEGMENT);
            coll__ucx_lose(peer, COLL_ERR_NOMEM);
        }
        if (!to) {
            coll__ucx_list(peer);
            return 0;
        }
    }
    in->xfer = xfer;
    in->hold = HOLD_MOVING;
    step(peer, xfer, in->n);
    request = coll__ucx.ucp_am_recv_data_nbx(peer->ucx->worker->worker,
                                             in->data, to, in->n, &param);
    if (UCS_PTR_IS_PTR(request))
        coll__ucx_begin(peer->ucx);
    else
        fetched(in, UCS_PTR_STATUS(request));
    return 1;
}

/* Does the segment belong to the first receive?  If not, drop it: either the receive has
 * ended with an error, or the segment is the rest of a message whose beginning was
 * dropped. */
static int belongs(struct ucx_peer *peer, const struct ucx_wire *wire)
{
    struct coll__xfer *xfer = peer->recvs.first;

    if (!xfer || wire->offset != xfer->done)
        return 0;
    if (wire->offset || coll__xfer_fits(xfer, &wire->sig, wire->len))
        return 1;
    coll__ucx_queue_take(&peer->recvs);
    coll__xfer_end(xfer, COLL_ERR_MISMATCH);
    return 0;
}

/* Take the next step for the segment in its slot; returns 0 if it has to wait. */
static int land(struct ucx_peer *peer, struct ucx_in *in)
{
    struct coll__xfer *xfer = peer->recvs.first;

    if (!belongs(peer, &in->wire)) {
        release(in);
        peer->matched++;
        taken(in);
        return 1;
    }
    if (in->hold == HOLD_RNDV)
        return !peer->status && fetch(in, xfer);
    store(xfer, xfer->done, in->data, in->n);
    step(peer, xfer, in->n);
    release(in);
    taken(in);
    coll__ucx_take_back(peer, xfer, 1);
    return 1;
}

void coll__ucx_pull(struct ucx_peer *peer)
{
    struct ucx_in *in;

    while (in = &peer->in[peer->matched % UCX_WINDOW],
           (peer->recvs.first || in->wire.offset) &&
               in->wire.seq == peer->matched &&
               (in->hold == HOLD_UCX || in->hold == HOLD_COPY ||
                in->hold == HOLD_RNDV))
        if (!land(peer, in))
            break;
}

void coll__ucx_let_go(struct ucx_peer *peer)
{
    for (unsigned i = 0; i < UCX_WINDOW; i++) {
        release(&peer->in[i]);
        if (peer->in[i].hold != HOLD_MOVING)
            peer->in[i].hold = HOLD_NONE;
    }
}

void coll__ucx_drop(struct ucx_peer *peer)
{
    coll__ucx_let_go(peer);
    for (unsigned i = 0; i < UCX_WINDOW; i++)
        peer->in[i].xfer = NULL;
}

/* ---- arrival ------------------------------------------------------------ */

/* Could a rank of this communicator have sent this? */
static int is_sane(const struct ucx *ucx, const struct ucx_wire *wire, size_t n)
{
    if (wire->lane < 0 || wire->lane >= ucx->n_lanes ||
        wire->lane % ucx->base.size == ucx->base.rank)
        return 0;
    if (wire->kind != UCX_DATA)
        return n == 0;
    return wire->offset % UCX_SEGMENT == 0 && wire->offset <= wire->len &&
           n == min_size(wire->len - wire->offset, UCX_SEGMENT) &&
           (n || !wire->len);
}

/* Did the peer stay within its credits? */
static int is_due(const struct ucx_peer *peer, const struct ucx_wire *wire)
{
    if (wire->taken > peer->sent)
        return 0;
    return wire->kind != UCX_DATA ||
           (wire->seq - peer->taken < UCX_WINDOW &&
            peer->in[wire->seq % UCX_WINDOW].hold == HOLD_NONE);
}

static ucs_status_t drop_stray(const struct ucx_wire *wire, size_t n)
{
    log_warn("ucx",
             "dropped a message that no rank can have sent (kind %x, "
             "lane %d, number %llu, %zu of %llu bytes); check that every rank "
             "runs the same libcoll",
             (unsigned)wire->kind, (int)wire->lane,
             (unsigned long long)wire->seq, n, (unsigned long long)wire->len);
    return UCS_OK;
}

/* Keep the data after the callback; returns the callback's status for UCX. */
static ucs_status_t hold(struct ucx_in *in, void *data, uint64_t attr)
{
    void *copy;

    in->data = data;
    if (attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        in->hold = HOLD_RNDV;
    else if (in->n && attr & UCP_AM_RECV_ATTR_FLAG_DATA)
        in->hold = HOLD_UCX;
    if (in->hold != HOLD_NONE)
        return UCS_INPROGRESS;
    if (in->n > in->capacity) {
        copy = realloc(in->copy, in->n);
        if (!copy) {
            log_error("ucx",
                      "no memory for a message of %zu bytes from rank "
                      "%d; free some",
                      in->n, in->peer->rank);
            coll__ucx_lose(in->peer, COLL_ERR_NOMEM);
            return UCS_OK;
        }
        in->copy = copy;
        in->capacity = in->n;
    }
    if (in->n)
        memcpy(in->copy, data, in->n);
    in->data = in->copy;
    in->hold = HOLD_COPY;
    return UCS_OK;
}

/* The usual case: the segment is next in order, in UCX's memory, and its receive is
 * posted. */
static void store_at_once(struct ucx_peer *peer, struct ucx_in *in,
                          const void *data)
{
    struct coll__xfer *xfer = peer->recvs.first;

    if (!belongs(peer, &in->wire)) {
        peer->matched++;
        taken(in);
        return;
    }
    store(xfer, xfer->done, data, in->n);
    step(peer, xfer, in->n);
    taken(in);
    coll__ucx_take_back(peer, xfer, 1);
}

static ucs_status_t arrive(struct ucx_peer *peer, const struct ucx_wire *wire,
                           void *data, size_t n, uint64_t attr)
{
    struct ucx_in *in = &peer->in[wire->seq % UCX_WINDOW];

    in->wire = *wire;
    in->peer = peer;
    in->n = n;
    if (peer->recvs.first || wire->offset)
        coll__ucx_list(peer); /* to fetch it, or to match what follows it */
    if (peer->ucx->worker->caller == peer->ucx && peer->recvs.first &&
        wire->seq == peer->matched && !(attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        store_at_once(peer, in, data);
        return UCS_OK;
    }
    return hold(in, data, attr);
}

/* Pass the message to its communicator; one that has ended ignores it. */
static ucs_status_t arrive_at(struct ucx *ucx, const struct ucx_wire *wire,
                              void *data, size_t n, uint64_t attr)
{
    struct ucx_peer *peer;

    if (!is_sane(ucx, wire, n))
        return drop_stray(wire, n);
    peer = coll__ucx_peer(ucx, wire->lane);
    if (!peer || peer->status)
        return UCS_OK;
    if (!is_due(peer, wire))
        return drop_stray(wire, n);
    coll__ucx_acked(peer, wire->taken);
    if (wire->kind != UCX_DATA || ucx->is_closing || ucx_has_failed(ucx))
        return UCS_OK;
    return arrive(peer, wire, data, n, attr);
}

ucs_status_t coll__ucx_arrived(void *arg, const void *header, size_t header_len,
                               void *data, size_t len,
                               const ucp_am_recv_param_t *param)
{
    struct ucx_worker *worker = arg;
    struct ucx_wire wire = {0};
    struct ucx *ucx;

    if (header_len == sizeof(wire))
        memcpy(&wire, header, sizeof(wire));
    if (wire.kind < UCX_DATA || wire.kind > UCX_BYE)
        return drop_stray(&wire, len);
    if (wire.kind > UCX_ACK) {
        coll__ucx_heard(worker, &wire);
        return UCS_OK;
    }
    ucx = coll__ucx_find(worker, wire.to);
    return ucx ? arrive_at(ucx, &wire, data, len, param->recv_attr) : UCS_OK;
}
