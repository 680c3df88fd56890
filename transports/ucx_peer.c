/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_peer.c - the other ranks of a communicator: their transfers, and their
 * loss.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"

#include <stdlib.h>

#define SPOILED SIZE_MAX /* in xfer->done: the transfer has failed */

/* ---- transfers ---------------------------------------------------------- */

void coll__ucx_queue_put(struct ucx_queue *queue, struct coll__xfer *xfer)
{
    xfer->next = NULL;
    *queue->last = xfer;
    queue->last = &xfer->next;
}

void coll__ucx_queue_take(struct ucx_queue *queue)
{
    queue->first = queue->first->next;
    if (!queue->first)
        queue->last = &queue->first;
}

/* xfer->priv counts the segments that UCX holds. */
void coll__ucx_hand_over(struct coll__xfer *xfer)
{
    xfer->priv = (void *)((uintptr_t)xfer->priv + 1);
}

void coll__ucx_take_back(const struct ucx_peer *peer, struct coll__xfer *xfer,
                         int is_well)
{
    uintptr_t n_held = (uintptr_t)xfer->priv - 1;

    xfer->priv = (void *)n_held;
    if (!is_well)
        xfer->done = SPOILED;
    if (!n_held && xfer->done == SPOILED)
        coll__xfer_end(xfer, peer->status);
    else if (!n_held && xfer->done == xfer->len)
        coll__xfer_end(xfer, COLL_OK);
}

void coll__ucx_spoil(const struct ucx_peer *peer, struct ucx_queue *queue)
{
    struct coll__xfer *xfer;

    while ((xfer = queue->first)) {
        coll__ucx_queue_take(queue);
        xfer->done = SPOILED;
        if (!xfer->priv)
            coll__xfer_end(xfer, peer->status);
    }
}

void coll__ucx_begin(struct ucx *ucx)
{
    ucx->n_under_way++;
    ucx->worker->n_under_way++;
}

void coll__ucx_end(struct ucx *ucx)
{
    ucx->n_under_way--;
    ucx->worker->n_under_way--;
}

/* ---- peers -------------------------------------------------------------- */

void coll__ucx_list(struct ucx_peer *peer)
{
    if (peer->is_listed)
        return;
    peer->is_listed = 1;
    peer->next_work = peer->ucx->work[peer->channel];
    peer->ucx->work[peer->channel] = peer;
}

struct ucx_peer *coll__ucx_peer(struct ucx *ucx, int lane)
{
    struct ucx_peer *peer = ucx->peers[lane];
    int rank = lane % ucx->base.size;

    if (peer)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (!peer) {
        log_error("ucx", "no memory for the link to rank %d; free some", rank);
        return NULL;
    }
    peer->ucx = ucx;
    peer->rank = rank;
    peer->channel = lane / ucx->base.size;
    peer->link = ucx->seats[rank].link;
    peer->to = ucx->seats[rank].to;
    peer->sends.last = &peer->sends.first;
    peer->recvs.last = &peer->recvs.first;
    ucx->peers[lane] = peer;
    coll__ucx_list(peer); /* to be connected */
    return peer;
}

void coll__ucx_lose(struct ucx_peer *peer, int status)
{
    struct ucx *ucx = peer->ucx;

    ucx->moved++;
    if (ucx->worker->caller != ucx) {
        peer->fault = status;
        coll__ucx_list(peer);
        return;
    }
    if (!peer->status)
        peer->status = status;
    coll__ucx_spoil(peer, &peer->sends);
    coll__ucx_spoil(peer, &peer->recvs);
}

/* Has another channel of that rank been lost? */
static int is_known_lost(const struct ucx *ucx, int rank)
{
    for (int c = 0; c < COLL__CHANNELS; c++) {
        const struct ucx_peer *peer =
            ucx->peers[coll__lane(c, rank, ucx->base.size)];

        if (peer && peer->status)
            return 1;
    }
    return 0;
}

/* The peer's link has failed.  Each communicator says so, in its own numbers. */
static void lose_link(struct ucx_peer *peer)
{
    const struct ucx_link *link = peer->link;

    if (!peer->ucx->is_closing && !(link->heard & ucx_bit(UCX_BYE)) &&
        !is_known_lost(peer->ucx, peer->rank))
        log_error("ucx", "rank %d went away: %s; its own messages say why",
                  peer->rank, coll__ucx.ucs_status_string(link->rc));
    coll__ucx_lose(peer, link->status);
}

/* Lose the peers whose links have failed. */
static void lose_all(struct ucx *ucx)
{
    for (int i = 0; i < ucx->n_lanes; i++) {
        struct ucx_peer *peer = ucx->peers[i];

        if (peer && peer->link && peer->link->status && !peer->status)
            lose_link(peer);
    }
}

void coll__ucx_reach(struct ucx_peer *peer)
{
    if (!peer->link || peer->status) /* open() has not come so far */
        return;
    coll__ucx_connect(peer->link);
    if (peer->link->status)
        lose_link(peer);
}

/* Do what is due for a listed peer.  A peer that sends before open() has its link is
 * listed again by open(). */
static void serve(struct ucx_peer *peer)
{
    if (peer->fault && !peer->status)
        coll__ucx_lose(peer, peer->fault);
    coll__ucx_reach(peer);
    coll__ucx_push(peer);
    coll__ucx_pull(peer);
    coll__ucx_ack(peer);
}

/* There is no limit of bytes for each round, as in shm and tcp for all channels but
 * the first: it would change nothing.  The long work is in UCX's own progress, a few
 * fragments of each endpoint at a time in its own order; passing a segment to UCX, or
 * matching one, takes only a few steps.  Credits keep a small message from waiting
 * for large ones: at most UCX_CREDIT bytes and one segment of each channel are ahead
 * of it. */
static void serve_channel(struct ucx *ucx, int channel)
{
    struct ucx_peer *work = ucx->work[channel];

    ucx->work[channel] = NULL;
    while (work) {
        struct ucx_peer *peer = work;

        work = peer->next_work;
        peer->is_listed = 0;
        serve(peer);
    }
}

void coll__ucx_serve(struct ucx *ucx)
{
    if (ucx->has_lost) {
        ucx->has_lost = 0;
        lose_all(ucx);
    }
    if (ucx->sent)
        coll__ucx_take_sent(ucx);
    if (ucx->fetched)
        coll__ucx_take_fetched(ucx);
    for (int c = 0; c < COLL__CHANNELS; c++)
        serve_channel(ucx, c);
}
