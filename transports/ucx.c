/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx.c - messages between ranks on any hosts through UCX, by RDMA or, where tcp is not
 * allowed, by UCX's own TCP.  This file has the transport's calls. ucx_open.c opens
 * communicators, ucx_worker.c has the process's workers, ucx_link.c their endpoints,
 * ucx_peer.c the other ranks; ucx_send.c sends segments, and ucx_recv.c receives them.
 * ucx.h describes the protocol.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"
#include "lib/util/yield.h"

#include <stdlib.h>
#include <string.h>

#define QUIET_SECONDS 0.5         /* s, for transfers under way to end by themselves */
#define QUIET_FAILED_SECONDS 0.25 /* s, if the communicator has failed */
#define SHARED_SECONDS 5.0        /* s more, if other communicators would suffer */
#define CANCEL_SECONDS 0.2        /* s, for UCX to cancel what was under way */

/* ---- the transport's calls ---------------------------------------------- */

static int ucx_usable(char *why, size_t len)
{
    const struct coll__rails any = {.n = 0};
    struct ucx_context *context;

    if (coll__ucx_context_get(&any, &context, why, len))
        return COLL_ERR_UNSUPPORTED;
    coll__ucx_context_put(context);
    return COLL_OK;
}

static int ucx_poll(struct coll__tp *tp)
{
    struct ucx *ucx = (struct ucx *)tp;
    int moved;

    if (!ucx->worker || !coll__ucx_enter_try(ucx))
        return 0; /* another lets UCX work */
    coll__ucx_work(ucx->worker);
    coll__ucx_serve(ucx);
    moved = ucx->moved;
    ucx->moved = 0;
    coll__ucx_exit(ucx);
    return moved;
}

/* Begin a transfer.  Returns its peer, or NULL if the transfer has failed already. */
static struct ucx_peer *begin(struct ucx *ucx, struct coll__xfer *xfer)
{
    struct ucx_peer *peer = coll__ucx_peer(
        ucx, coll__lane(xfer->channel, xfer->peer, ucx->base.size));

    xfer->done = 0;
    xfer->priv = NULL;
    xfer->status = COLL_IN_PROGRESS;
    if (!peer)
        coll__xfer_end(xfer, COLL_ERR_NOMEM);
    else
        coll__ucx_reach(peer);
    return peer;
}

static void ucx_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct ucx *ucx = (struct ucx *)tp;
    struct ucx_peer *peer;

    coll__ucx_enter(ucx);
    peer = begin(ucx, xfer);
    if (peer) {
        coll__ucx_queue_put(&peer->sends, xfer);
        coll__ucx_push(peer);
        if (peer->status)
            coll__ucx_spoil(peer, &peer->sends);
    }
    coll__ucx_exit(ucx);
}

static void ucx_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct ucx *ucx = (struct ucx *)tp;
    struct ucx_peer *peer;

    coll__ucx_enter(ucx);
    peer = begin(ucx, xfer);
    if (peer) {
        coll__ucx_queue_put(&peer->recvs, xfer);
        coll__ucx_pull(peer); /* messages that came before the loss still count */
        if (peer->status)
            coll__ucx_spoil(peer, &peer->recvs);
    }
    coll__ucx_exit(ucx);
}

static int peek(const struct ucx_peer *peer, struct coll__signature *sig)
{
    const struct ucx_in *in;

    if (!peer || peer->recvs.first)
        return 0;
    in = &peer->in[peer->matched % UCX_WINDOW];
    if (in->hold == HOLD_NONE || in->wire.seq != peer->matched ||
        in->wire.offset)
        return 0;
    *sig = in->wire.sig;
    return 1;
}

static int ucx_peek(struct coll__tp *tp, int rank, int channel,
                    struct coll__signature *sig)
{
    struct ucx *ucx = (struct ucx *)tp;
    int has_come;

    if (!ucx->worker)
        return 0;
    coll__ucx_enter(ucx);
    has_come = peek(ucx->peers[coll__lane(channel, rank, tp->size)], sig);
    coll__ucx_exit(ucx);
    return has_come;
}

static int ucx_reaches(struct coll__tp *tp, int rank, struct coll__link *link)
{
    const struct ucx *ucx = (const struct ucx *)tp;

    if (rank == tp->rank || rank < 0 || rank >= tp->size ||
        !ucx->is_reached[rank])
        return COLL_ERR_PEER;
    *link = ucx->is_near[rank] ? ucx->near : ucx->far;
    return COLL_OK;
}

/* ---- closing ------------------------------------------------------------ */

/* Forget the transfers of this peer; the communicator closes. */
static void forget(struct ucx_peer *peer)
{
    for (unsigned i = 0; i < UCX_WINDOW; i++)
        peer->out[i].xfer = NULL;
    coll__ucx_drop(peer);
}

static void forget_all(struct ucx *ucx)
{
    coll__ucx_enter(ucx);
    ucx->is_closing = 1;
    coll__ucx_take_sent(ucx);
    coll__ucx_take_fetched(ucx);
    for (int i = 0; i < ucx->n_lanes; i++)
        if (ucx->peers[i])
            forget(ucx->peers[i]);
    coll__ucx_exit(ucx);
}

/* Make progress until UCX holds nothing of this communicator.  Returns 1, or 0 at the
 * deadline. */
static int settle(struct ucx *ucx, double deadline)
{
    int n;

    do {
        coll__ucx_enter(ucx);
        coll__ucx_work(ucx->worker);
        n = ucx->n_under_way;
        coll__ucx_exit(ucx);
        if (n)
            coll__yield();
    } while (n && coll__now() < deadline);
    return !n;
}

/* Does UCX hold buffers of transfers with this peer? */
static int holds_buffers(const struct ucx_peer *peer)
{
    if (!peer || !peer->link)
        return 0;
    for (unsigned i = 0; i < UCX_WINDOW; i++)
        if (peer->out[i].is_busy || peer->in[i].hold == HOLD_MOVING)
            return 1;
    return 0;
}

/* Do other communicators use a link whose peer delays this communicator? */
static int is_shared(struct ucx *ucx)
{
    int found = 0;

    coll__ucx_enter(ucx);
    for (int i = 0; i < ucx->n_lanes; i++)
        found |= holds_buffers(ucx->peers[i]) && !ucx->peers[i]->link->status &&
                 ucx->peers[i]->link->n_users > 1;
    coll__ucx_exit(ucx);
    return found;
}

/* Break the links that still use buffers of this communicator, since the caller is about
 * to own these again.  Other communicators lose such a link too; new communicators get
 * new links, of another worker.  The last one to use TCP halts the worker instead. */
static void break_off(struct ucx *ucx)
{
    struct ucx_worker *worker = ucx->worker;
    int n = 0, n_alive = 0;

    coll__ucx_enter(ucx);
    for (int i = 0; i < ucx->n_lanes; i++) {
        if (!holds_buffers(ucx->peers[i]))
            continue;
        n_alive += !ucx->peers[i]->link->status;
        log_info("ucx", "broke the link to rank %d, which receives nothing",
                 ucx->peers[i]->rank);
        coll__ucx_break(ucx->peers[i]->link, COLL_ERR_PEER, UCS_ERR_CANCELED);
        n++;
    }
    coll__ucx_exit(ucx);
    if (!n)
        return;
    coll__ucx_worker_retire(worker);
    worker->is_halted =
        n_alive && ucx_uses_tcp(worker) && coll__ucx_worker_retire_last(worker);
    if (!worker->is_halted)
        settle(ucx, coll__now() + CANCEL_SECONDS);
}

/* Leave this communicator's links.  If no other communicator uses a link, tell the
 * worker at its other end that this worker stays.  Do so even if this communicator has
 * failed, since it may have ended in order there. */
static void leave_links(struct ucx *ucx, int is_orderly, int is_last)
{
    for (int r = 0; r < ucx->base.size; r++) {
        struct ucx_link *link = ucx->seats[r].link;

        if (!link)
            continue;
        link->is_spoiled |= !is_orderly;
        if (--link->n_users || is_last)
            continue;
        coll__ucx_say(link, UCX_STAY);
    }
}

void coll__ucx_close(struct coll__tp *tp, int is_orderly)
{
    struct ucx *ucx = (struct ucx *)tp;
    struct ucx_worker *worker = ucx->worker;
    double quiet = is_orderly ? QUIET_SECONDS : QUIET_FAILED_SECONDS;
    int is_free;

    if (!worker || coll__is_inherited(tp->generation)) {
        coll__ucx_free(ucx); /* worker and links are the parent's */
        return;
    }
    forget_all(ucx);
    if (!settle(ucx, coll__now() + quiet) &&
        !(is_shared(ucx) && settle(ucx, coll__now() + SHARED_SECONDS)))
        break_off(ucx);
    coll__ucx_enter(ucx);
    leave_links(ucx, is_orderly, coll__ucx_worker_retire_last(worker));
    is_free = coll__ucx_forget(ucx);
    coll__ucx_links_free(worker);
    coll__ucx_exit(ucx);
    if (is_free)
        coll__ucx_free(ucx);
    coll__ucx_worker_put(worker, is_orderly);
}

const struct coll__transport coll__transport_ucx = {
    .name = "ucx",
    .what = "UCX: RDMA where the hosts have it, else TCP",
    .spans_hosts = 1,
    .needs_rdma = 1,
    .usable = ucx_usable,
    .open = coll__ucx_open,
    .settle = coll__no_settle,
    .close = coll__ucx_close,
    .reaches = ucx_reaches,
    .send = ucx_send,
    .recv = ucx_recv,
    .put = coll__no_put,
    .take = coll__no_take,
    .poll = ucx_poll,
    .arm = coll__no_arm,
    .peek = ucx_peek,
};
