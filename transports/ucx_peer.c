/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_peer.c - the other ranks: transfers, endpoints, failure, farewell.
 *
 * Endpoints are made by both sides, in open() or at the first contact (see
 * ucx.c), so that a receive notices the death of its sender, too.  Error
 * handling by peer is on, which confines UCX to the means that notice a dead
 * peer (RDMA, TCP).
 *
 * UCX 1.13 loses what is under way when one side closes early; so ranks that
 * leave in order exchange farewells, and close when they have heard those of
 * all whom they had to do with.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <sched.h>
#include <stdlib.h>

#define FAREWELL_SECONDS 5.0 /* for the others to come to their close() too */
#define SPOILED SIZE_MAX     /* in xfer->done: it cannot end well any more */

int coll__ucx_status(ucs_status_t rc, const char *call)
{
    if (rc == UCS_OK)
        return COLL_OK;
    log_error("ucx", "%s: %s; see UCX_LOG_LEVEL=info", call,
              ucs_status_string(rc));
    switch (rc) {
    case UCS_ERR_NO_MEMORY:
        return COLL_ERR_NOMEM;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_CANCELED:
        return COLL_ERR_PEER;
    default:
        return COLL_ERR_TRANSPORT;
    }
}

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
        xfer->status = peer->status;
    else if (!n_held && xfer->done == xfer->len)
        xfer->status = COLL_OK;
}

void coll__ucx_spoil(const struct ucx_peer *peer, struct ucx_queue *queue)
{
    struct coll__xfer *xfer;

    while ((xfer = queue->first)) {
        coll__ucx_queue_take(queue);
        xfer->done = SPOILED;
        if (!xfer->priv)
            xfer->status = peer->status;
    }
}

void coll__ucx_lose(struct ucx_peer *peer, int status)
{
    if (!peer->status)
        peer->status = status;
    peer->ucx->moved++;
    coll__ucx_spoil(peer, &peer->sends);
    coll__ucx_spoil(peer, &peer->recvs);
    coll__ucx_list(peer); /* to close its endpoint */
}

/* ---- endpoints ---------------------------------------------------------- */

void coll__ucx_list(struct ucx_peer *peer)
{
    if (peer->is_listed)
        return;
    peer->is_listed = 1;
    peer->next_work = peer->ucx->work;
    peer->ucx->work = peer;
}

struct ucx_peer *coll__ucx_peer(struct ucx *ucx, int rank)
{
    struct ucx_peer *peer = ucx->peers[rank];

    if (peer)
        return peer;
    peer = calloc(1, sizeof(*peer));
    if (!peer) {
        log_error("ucx", "no memory for the link to rank %d; free some", rank);
        return NULL;
    }
    peer->ucx = ucx;
    peer->rank = rank;
    peer->sends.last = &peer->sends.first;
    peer->recvs.last = &peer->recvs.first;
    ucx->peers[rank] = peer;
    coll__ucx_list(peer); /* to be connected */
    return peer;
}

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t rc)
{
    struct ucx_peer *peer = arg;

    (void)ep;
    if (!peer->ucx->is_closing && !(peer->heard & ucx_bit(UCX_BYE)) &&
        !peer->status)
        log_error("ucx", "rank %d went away: %s; its own messages say why",
                  peer->rank, ucs_status_string(rc));
    coll__ucx_lose(peer, COLL_ERR_PEER);
}

void coll__ucx_connect(struct ucx_peer *peer)
{
    struct ucx *ucx = peer->ucx;
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address =
            (void *)(ucx->addresses + (size_t)peer->rank * ucx->address_len),
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_failure, .arg = peer},
    };
    ucs_status_t rc = ucp_ep_create(ucx->worker, &params, &peer->ep);

    if (rc == UCS_OK)
        return;
    peer->ep = NULL;
    coll__ucx_lose(peer, coll__ucx_status(rc, "ucp_ep_create"));
}

/* UCX is through with flushing or closing an endpoint; arg is the counter.  One
 * that failed is through with it, too. */
static void on_through(void *request, ucs_status_t rc, void *arg)
{
    int *n_under_way = arg;

    (void)rc;
    ucp_request_free(request);
    --*n_under_way;
}

void coll__ucx_hang_up(struct ucx_peer *peer, int is_forced)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = is_forced ? UCP_EP_CLOSE_FLAG_FORCE : 0,
        .cb.send = on_through,
        .user_data = &peer->ucx->n_under_way,
    };
    ucp_ep_h ep = peer->ep;

    peer->ep = NULL;
    if (ep && UCS_PTR_IS_PTR(ucp_ep_close_nbx(ep, &param)))
        peer->ucx->n_under_way++;
}

static void flush_endpoint(struct ucx_peer *peer)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_through,
        .user_data = &peer->ucx->n_flushing,
    };

    if (peer->ep && UCS_PTR_IS_PTR(ucp_ep_flush_nbx(peer->ep, &param)))
        peer->ucx->n_flushing++;
}

/* Do what is due for a listed peer. */
static void serve(struct ucx_peer *peer)
{
    if (peer->status) {
        coll__ucx_hang_up(peer, 1);
        return;
    }
    if (!peer->ep)
        coll__ucx_connect(peer);
    coll__ucx_push(peer);
    coll__ucx_pull(peer);
    coll__ucx_ack(peer);
}

void coll__ucx_progress(struct ucx *ucx)
{
    struct ucx_peer *work;

    ucp_worker_progress(ucx->worker);
    work = ucx->work;
    ucx->work = NULL;
    while (work) {
        struct ucx_peer *peer = work;

        work = peer->next_work;
        peer->is_listed = 0;
        serve(peer);
    }
}

/* ---- greeting and farewell ---------------------------------------------- */

/* Say a word to each connected peer that has not heard it; the number of peers
 * that still have to say or hear it.  *missing is one of them. */
static int say_to_all(struct ucx *ucx, enum ucx_kind kind, int *missing)
{
    int n = 0;

    for (int r = 0; r < ucx->base.size; r++) {
        struct ucx_peer *peer = ucx->peers[r];

        if (!peer || !peer->ep || peer->status)
            continue;
        coll__ucx_say(peer, kind);
        if (peer->said & peer->heard & ucx_bit(kind) && !peer->is_noting)
            continue;
        *missing = r;
        n++;
    }
    return n;
}

static int say_until(struct ucx *ucx, enum ucx_kind kind, double deadline,
                     int *missing)
{
    int n;

    while ((n = say_to_all(ucx, kind, missing)) && coll__now() < deadline) {
        coll__ucx_progress(ucx);
        sched_yield();
    }
    return n;
}

static int connect_all(struct ucx *ucx)
{
    for (int r = 0; r < ucx->base.size; r++) {
        struct ucx_peer *peer;

        if (r == ucx->base.rank)
            continue;
        peer = coll__ucx_peer(ucx, r);
        if (!peer)
            return COLL_ERR_NOMEM;
        if (!peer->ep && !peer->status)
            coll__ucx_connect(peer);
        if (peer->status)
            return peer->status;
    }
    return COLL_OK;
}

/* A rank that has heard a hello is connected to that peer by one lane; when its
 * endpoints are flushed, by all.  Peers need this rank's progress for that, so
 * it goes on until all of them are ready. */
int coll__ucx_meet(struct ucx *ucx, double timeout)
{
    double deadline = coll__now() + timeout;
    int missing = -1, rc = connect_all(ucx);

    if (rc != COLL_OK)
        return rc;
    if (say_until(ucx, UCX_HELLO, deadline, &missing) ||
        !coll__ucx_quieten(ucx, 0, deadline) ||
        say_until(ucx, UCX_READY, deadline, &missing)) {
        log_error("ucx",
                  "no connection to rank %d within %g s; check that no "
                  "firewall is between the hosts, or raise COLL_TIMEOUT",
                  missing, timeout);
        return COLL_ERR_TIMEOUT;
    }
    for (int r = 0; r < ucx->base.size; r++)
        if (ucx->peers[r] && ucx->peers[r]->status)
            return ucx->peers[r]->status;
    return COLL_OK;
}

void coll__ucx_leave(struct ucx *ucx)
{
    int missing = -1;
    int n = say_until(ucx, UCX_BYE, coll__now() + FAREWELL_SECONDS, &missing);

    if (n)
        log_warn("ucx",
                 "closed without %d peers, rank %d among them, that did not "
                 "come within %.0f s; they must call coll_comm_destroy() too",
                 n, missing, FAREWELL_SECONDS);
}

int coll__ucx_quieten(struct ucx *ucx, double pause, double deadline)
{
    double last = coll__now(); /* time of the last progress */

    for (int r = 0; r < ucx->base.size; r++)
        if (ucx->peers[r])
            flush_endpoint(ucx->peers[r]);
    while (ucx->n_flushing || coll__now() < last + pause) {
        if (coll__now() > deadline)
            return 0;
        if (ucp_worker_progress(ucx->worker))
            last = coll__now();
        else
            sched_yield();
    }
    return 1;
}

int coll__ucx_settle(struct ucx *ucx, double deadline)
{
    while (ucx->n_under_way) {
        if (coll__now() > deadline)
            return 0;
        if (!ucp_worker_progress(ucx->worker))
            sched_yield();
    }
    return 1;
}
