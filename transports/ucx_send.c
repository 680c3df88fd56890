/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_send.c - send segments: credits, UCX's send calls, acknowledgements. */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

/* UCX has released the segment's memory. */
static void segment_sent(struct ucx_out *out, ucs_status_t rc)
{
    struct coll__xfer *xfer = out->xfer;
    struct ucx *ucx = out->peer->ucx;

    if (xfer && ucx->worker->caller != ucx) {
        out->rc = rc;
        out->next = ucx->sent;
        ucx->sent = out;
        return;
    }
    out->is_busy = 0;
    if (!xfer)
        return;
    out->xfer = NULL;
    ucx->moved++;
    if (rc != UCS_OK && !out->peer->status)
        coll__ucx_lose(out->peer, coll__ucx_status(rc, "ucp_am_send_nbx"));
    coll__ucx_take_back(out->peer, xfer, rc == UCS_OK);
    if (out->peer->sends.first)
        coll__ucx_list(out->peer); /* it may have waited for this slot */
}

void coll__ucx_take_sent(struct ucx *ucx)
{
    struct ucx_out *out = ucx->sent;

    ucx->sent = NULL;
    while (out) {
        struct ucx_out *next = out->next;

        segment_sent(out, out->rc);
        out = next;
    }
}

static void on_sent(void *request, ucs_status_t rc, void *arg)
{
    struct ucx_out *out = arg;

    coll__ucx.ucp_request_free(request);
    coll__ucx_end(out->peer->ucx);
    segment_sent(out, rc);
}

/* Return the lane number by which the peer knows this end. */
static int lane_here(const struct ucx_peer *peer)
{
    const struct coll__tp *tp = &peer->ucx->base;

    return coll__lane(peer->channel, tp->rank, tp->size);
}

/* Fill the next slot with the next segment of xfer; returns where its bytes begin. */
static const void *cut_segment(struct ucx_peer *peer, struct ucx_out *out,
                               struct coll__xfer *xfer)
{
    const unsigned char *from = (const unsigned char *)xfer->buf + xfer->done;

    out->wire = (struct ucx_wire){.kind = UCX_DATA,
                                  .lane = lane_here(peer),
                                  .to = peer->to,
                                  .seq = peer->sent++,
                                  .taken = peer->taken,
                                  .offset = xfer->done,
                                  .len = xfer->len,
                                  .sig = xfer->sig};
    out->peer = peer;
    out->xfer = xfer;
    out->n = min_size(xfer->len - xfer->done, UCX_SEGMENT);
    out->is_busy = 1;
    peer->in_flight += out->n;
    peer->told = peer->taken;
    peer->untold = 0;
    xfer->done += out->n;
    return from;
}

static void send_segment(struct ucx_peer *peer, struct coll__xfer *xfer)
{
    struct ucx_out *out = &peer->out[peer->sent % UCX_WINDOW];
    const void *from = cut_segment(peer, out, xfer);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.send = on_sent,
        .user_data = out,
        .memory_type = UCS_MEMORY_TYPE_HOST, /* ucx.h: it need not ask */
    };
    ucs_status_ptr_t request;

    coll__ucx_hand_over(xfer);
    if (xfer->done == xfer->len)
        coll__ucx_queue_take(&peer->sends);
    request = coll__ucx.ucp_am_send_nbx(
        peer->link->ep, 0, &out->wire, sizeof(out->wire), from, out->n, &param);
    if (UCS_PTR_IS_PTR(request))
        coll__ucx_begin(peer->ucx);
    else
        segment_sent(out, UCS_PTR_STATUS(request));
}

static int has_credit(const struct ucx_peer *peer)
{
    return peer->sent - peer->acked < UCX_WINDOW &&
           peer->in_flight < UCX_CREDIT &&
           !peer->out[peer->sent % UCX_WINDOW].is_busy;
}

static int is_open(const struct ucx_peer *peer)
{
    return peer->link && peer->link->ep && !peer->status;
}

void coll__ucx_push(struct ucx_peer *peer)
{
    while (is_open(peer) && peer->sends.first && has_credit(peer))
        send_segment(peer, peer->sends.first);
}

void coll__ucx_acked(struct ucx_peer *peer, uint64_t taken)
{
    if (taken <= peer->acked)
        return; /* overtaken by a later message */
    while (peer->acked < taken)
        peer->in_flight -= peer->out[peer->acked++ % UCX_WINDOW].n;
    if (peer->sends.first)
        coll__ucx_list(peer);
}

/* ---- acknowledgements --------------------------------------- */

static void on_noted(void *request, ucs_status_t rc, void *arg)
{
    struct ucx_peer *peer = arg;

    coll__ucx.ucp_request_free(request);
    coll__ucx_end(peer->ucx);
    peer->is_noting = 0;
    if (rc != UCS_OK && !peer->status && !peer->ucx->is_closing)
        coll__ucx_lose(peer, coll__ucx_status(rc, "ucp_am_send_nbx"));
    coll__ucx_list(peer); /* the next note may be due */
}

static void send_note(struct ucx_peer *peer)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_noted,
        .user_data = peer,
    };
    ucs_status_ptr_t request;

    peer->note = (struct ucx_wire){.kind = UCX_ACK,
                                   .lane = lane_here(peer),
                                   .to = peer->to,
                                   .taken = peer->taken};
    peer->told = peer->taken;
    peer->untold = 0;
    peer->is_noting = 1;
    request = coll__ucx.ucp_am_send_nbx(peer->link->ep, 0, &peer->note,
                                        sizeof(peer->note), NULL, 0, &param);
    if (UCS_PTR_IS_PTR(request)) {
        coll__ucx_begin(peer->ucx);
        return;
    }
    peer->is_noting = 0;
    if (UCS_PTR_IS_ERR(request) && !peer->ucx->is_closing)
        coll__ucx_lose(
            peer, coll__ucx_status(UCS_PTR_STATUS(request), "ucp_am_send_nbx"));
}

void coll__ucx_ack(struct ucx_peer *peer)
{
    if (is_open(peer) && !peer->is_noting &&
        (peer->taken - peer->told >= UCX_WINDOW / 2 ||
         peer->untold >= UCX_CREDIT / 2))
        send_note(peer);
}
