/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_link.c - the endpoints to other workers: connecting, failure, farewell.
 *
 * Endpoints are made by both sides, in open() or at the first contact (see
 * ucx_open.c), so that a receive notices the death of its sender, too.  Error
 * handling by peer is on, which confines UCX to the means that notice a dead
 * peer (RDMA, TCP).
 *
 * A link between the same two workers is never made a second time: after a failure, a new
 * communicator takes a new worker, so that both sides know which worker they connect to.
 *
 * UCX 1.13 loses messages under way if one side closes early.  So workers that end
 * exchange UCX_BYE, and close after they have heard from all workers that may still send.
 * If a communicator of two workers has failed, nothing tells whether the other will send,
 * or when: their link is spoiled, and this worker does not wait for it.  Messages of
 * other communicators over that link have arrived, since those communicators ended in
 * order.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "lib/util/yield.h"

#include <stdlib.h>
#include <string.h>

#define FAREWELL_SECONDS 5.0 /* s, for the other ranks to call close() too */
#define GRACE_SECONDS 5.0    /* s to connect, after the communicator has failed */

int coll__ucx_status(ucs_status_t rc, const char *call)
{
    if (rc == UCS_OK)
        return COLL_OK;
    log_error("ucx", "%s: %s; see UCX_LOG_LEVEL=info", call,
              coll__ucx.ucs_status_string(rc));
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

/* ---- links --------------------------------------------------------------- */

struct ucx_link *coll__ucx_link_find(const struct ucx_worker *worker,
                                     const struct ucx_id *id)
{
    struct ucx_link *link = worker->buckets[id->words[0] % UCX_BUCKETS];

    while (link && !ucx_same(&link->id, id))
        link = link->next_alike;
    return link;
}

struct ucx_link *coll__ucx_link(struct ucx_worker *worker,
                                const struct ucx_id *id)
{
    struct ucx_link *link = coll__ucx_link_find(worker, id);

    if (link)
        return link;
    link = calloc(1, sizeof(*link));
    if (!link) {
        log_error("ucx", "no memory for a link; free some");
        return NULL;
    }
    link->worker = worker;
    link->id = *id;
    link->rank = -1;
    link->next = worker->links;
    worker->links = link;
    link->next_alike = worker->buckets[id->words[0] % UCX_BUCKETS];
    worker->buckets[id->words[0] % UCX_BUCKETS] = link;
    return link;
}

static int is_spent(const struct ucx_link *link)
{
    return !link->n_users && link->status && !link->ep && !link->is_noting &&
           !link->is_listed && !link->n_flushing;
}

static void link_free(struct ucx_link *link)
{
    struct ucx_link **at =
        &link->worker->buckets[link->id.words[0] % UCX_BUCKETS];

    while (*at != link)
        at = &(*at)->next_alike;
    *at = link->next_alike;
    free(link->address);
    free(link);
}

void coll__ucx_links_free(struct ucx_worker *worker)
{
    struct ucx_link **at = &worker->links;

    while (*at) {
        struct ucx_link *link = *at;

        if (worker->worker && !is_spent(link)) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        link_free(link);
    }
}

static void list(struct ucx_link *link)
{
    if (link->is_listed)
        return;
    link->is_listed = 1;
    link->next_work = link->worker->work;
    link->worker->work = link;
}

void coll__ucx_break(struct ucx_link *link, int status, ucs_status_t rc)
{
    struct ucx_worker *worker = link->worker;

    if (link->status)
        return;
    link->status = status;
    link->rc = rc;
    for (uint32_t i = 0; i < worker->n_comms; i++)
        if (worker->comms[i]) {
            worker->comms[i]->has_lost = 1;
            worker->comms[i]->moved++;
        }
    list(link); /* to close its endpoint */
}

/* ---- endpoints ---------------------------------------------------------- */

static void on_failure(void *arg, ucp_ep_h ep, ucs_status_t rc)
{
    struct ucx_link *link = arg;

    (void)ep;
    coll__ucx_break(link, COLL_ERR_PEER, rc);
}

void coll__ucx_connect(struct ucx_link *link)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = link->address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_failure, .arg = link},
    };
    ucs_status_t rc;

    if (link->ep || link->status || !link->address)
        return;
    rc = coll__ucx.ucp_ep_create(link->worker->worker, &params, &link->ep);
    if (rc == UCS_OK)
        return;
    link->ep = NULL;
    coll__ucx_break(link, coll__ucx_status(rc, "ucp_ep_create"), rc);
}

/* UCX has finished flushing or closing an endpoint, with or without success; arg is the
 * counter. */
static void on_through(void *request, ucs_status_t rc, void *arg)
{
    int *n_under_way = arg;

    (void)rc;
    coll__ucx.ucp_request_free(request);
    --*n_under_way;
}

void coll__ucx_hang_up(struct ucx_link *link, int is_forced)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = is_forced ? UCP_EP_CLOSE_FLAG_FORCE : 0,
        .cb.send = on_through,
        .user_data = &link->worker->n_under_way,
    };
    ucp_ep_h ep = link->ep;

    link->ep = NULL;
    if (ep && UCS_PTR_IS_PTR(coll__ucx.ucp_ep_close_nbx(ep, &param)))
        link->worker->n_under_way++;
}

static void flush_endpoint(struct ucx_link *link)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_through,
        .user_data = &link->n_flushing,
    };

    if (link->ep && !link->status &&
        UCS_PTR_IS_PTR(coll__ucx.ucp_ep_flush_nbx(link->ep, &param)))
        link->n_flushing++;
}

/* ---- notes: messages between workers ------------------------------------- */

static void on_noted(void *request, ucs_status_t rc, void *arg)
{
    struct ucx_link *link = arg;

    (void)rc; /* on_failure() reports errors */
    coll__ucx.ucp_request_free(request);
    link->worker->n_under_way--;
    link->is_noting = 0;
    list(link); /* the next note may be due */
}

void coll__ucx_say(struct ucx_link *link, enum ucx_kind kind)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send = on_noted,
        .user_data = link,
    };
    const struct ucx_id *me = &link->worker->id;
    ucs_status_ptr_t request;

    if (link->said & ucx_bit(kind) || !link->ep || link->status)
        return;
    link->due |= ucx_bit(kind);
    if (link->is_noting)
        return;
    link->due &= ~ucx_bit(kind);
    link->said |= ucx_bit(kind);
    link->note = (struct ucx_wire){
        .kind = kind, .offset = me->words[0], .len = me->words[1]};
    link->is_noting = 1;
    request = coll__ucx.ucp_am_send_nbx(link->ep, 0, &link->note,
                                        sizeof(link->note), NULL, 0, &param);
    if (UCS_PTR_IS_PTR(request)) {
        link->worker->n_under_way++;
        return;
    }
    link->is_noting = 0;
    if (UCS_PTR_IS_ERR(request))
        coll__ucx_break(link, COLL_ERR_PEER, UCS_PTR_STATUS(request));
}

void coll__ucx_heard(struct ucx_worker *worker, const struct ucx_wire *wire)
{
    struct ucx_id id = ucx_sender(wire);
    struct ucx_link *link = coll__ucx_link(worker, &id);

    if (!link)
        return;
    link->heard |= ucx_bit(wire->kind);
    if (wire->kind == UCX_BYE)
        list(link); /* to answer */
}

/* Send the messages that waited for another one to finish. */
static void say_due(struct ucx_link *link)
{
    for (int kind = UCX_HELLO; kind <= UCX_BYE && link->due; kind++)
        if (link->due & ucx_bit((enum ucx_kind)kind))
            coll__ucx_say(link, (enum ucx_kind)kind);
}

/* Answer a worker that ends: this worker stays.  Do so when the two share no
 * communicator any more, then close the link. */
static void answer_farewell(struct ucx_link *link)
{
    if (link->n_users || link->worker->is_ending ||
        !(link->heard & ucx_bit(UCX_BYE)))
        return;
    coll__ucx_say(link, UCX_STAY);
    if (link->is_noting || !(link->said & ucx_bit(UCX_STAY)))
        return; /* on_noted() lists it again */
    if (!link->status)
        link->status = COLL_ERR_PEER;
    coll__ucx_hang_up(link, 0);
}

void coll__ucx_serve_links(struct ucx_worker *worker)
{
    struct ucx_link *work = worker->work;

    worker->work = NULL;
    while (work) {
        struct ucx_link *link = work;

        work = link->next_work;
        link->is_listed = 0;
        if (link->status) {
            coll__ucx_hang_up(link, 1);
        } else {
            say_due(link);
            answer_farewell(link);
        }
    }
}

/* ---- greeting and farewell ---------------------------------------------- */

/* Make the worker progress for this communicator, or for none. */
static void turn(struct ucx_worker *worker, struct ucx *ucx)
{
    if (ucx) {
        coll__ucx_enter(ucx);
        coll__ucx_work(worker);
        coll__ucx_serve(ucx);
        coll__ucx_exit(ucx);
    } else {
        coll__ucx_work(worker);
    }
    coll__yield();
}

/* Send a message of this kind to each rank of this communicator that has not got it.
 * Returns how many ranks have not sent or got it yet; *missing is one of them. */
static int greet(struct ucx *ucx, enum ucx_kind kind, int *missing)
{
    int n = 0;

    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size; r++) {
        struct ucx_link *link = ucx->seats[r].link;

        if (!link || link->status)
            continue;
        coll__ucx_say(link, kind);
        if (link->said & link->heard & ucx_bit(kind) && !link->is_noting)
            continue;
        *missing = r;
        n++;
    }
    coll__ucx_exit(ucx);
    return n;
}

/* Is waiting useless?  If the communicator has failed, some ranks may never answer.  But
 * ranks that are connecting may suffer if this one gives up, so they get some time. */
static int is_over(const struct ucx *ucx, double *deadline)
{
    double now = coll__now();
    double grace = coll__ucx_is_fragile() ? GRACE_SECONDS : 0;

    if (ucx_has_failed(ucx) && *deadline > now + grace)
        *deadline = now + grace;
    return now >= *deadline;
}

static int greet_until(struct ucx *ucx, enum ucx_kind kind, double *deadline,
                       int *missing)
{
    int n;

    while ((n = greet(ucx, kind, missing)) && !is_over(ucx, deadline))
        turn(ucx->worker, ucx);
    return n;
}

static int connect_all(struct ucx *ucx)
{
    int rc = COLL_OK;

    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size && rc == COLL_OK; r++) {
        struct ucx_link *link = ucx->seats[r].link;

        if (!link)
            continue;
        coll__ucx_connect(link);
        rc = link->status;
        if (rc)
            log_error("ucx", "rank %d went away: %s; its own messages say why",
                      r, coll__ucx.ucs_status_string(link->rc));
    }
    coll__ucx_exit(ucx);
    return rc;
}

static void flush_links(struct ucx *ucx)
{
    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size; r++)
        if (ucx->seats[r].link)
            flush_endpoint(ucx->seats[r].link);
    coll__ucx_exit(ucx);
}

/* Is a link of this communicator being flushed? *missing is its rank. */
static int is_flushing(struct ucx *ucx, int *missing)
{
    int found = 0;

    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size && !found; r++) {
        const struct ucx_link *link = ucx->seats[r].link;

        found = link && link->n_flushing && !link->status;
        if (found)
            *missing = r;
    }
    coll__ucx_exit(ucx);
    return found;
}

/* 1, or it is over: 0. */
static int flush_until(struct ucx *ucx, double *deadline, int *missing)
{
    flush_links(ucx);
    while (is_flushing(ucx, missing)) {
        if (is_over(ucx, deadline))
            return 0;
        turn(ucx->worker, ucx);
    }
    return 1;
}

/* A rank that has got UCX_HELLO is connected to that peer by one lane, and by all lanes
 * once its endpoints are flushed.  The peers need this rank's progress for that, so it
 * makes progress until all ranks are ready. */
int coll__ucx_meet(struct ucx *ucx, double timeout)
{
    double deadline = coll__now() + timeout;
    int missing = -1, rc = connect_all(ucx);

    if (rc != COLL_OK)
        return rc;
    if (greet_until(ucx, UCX_HELLO, &deadline, &missing) ||
        !flush_until(ucx, &deadline, &missing) ||
        greet_until(ucx, UCX_READY, &deadline, &missing)) {
        if (ucx_has_failed(ucx)) /* the next exchange tells why */
            return COLL_ERR_PEER;
        log_error("ucx",
                  "no connection to rank %d within %g s; check that no "
                  "firewall is between the hosts, or raise COLL_TIMEOUT",
                  missing, timeout);
        return COLL_ERR_TIMEOUT;
    }
    return connect_all(ucx); /* which says whether one failed */
}

/* Send UCX_BYE.  Returns how many links have not got it or may still send something,
 * without the spoiled ones. */
static int part(struct ucx_worker *worker, int *missing)
{
    unsigned enough = ucx_bit(UCX_BYE) | ucx_bit(UCX_STAY);
    int n = 0;

    for (struct ucx_link *link = worker->links; link; link = link->next) {
        if (!link->ep || link->status)
            continue;
        coll__ucx_say(link, UCX_BYE);
        if (link->is_spoiled || (link->said & ucx_bit(UCX_BYE) &&
                                 link->heard & enough && !link->is_noting))
            continue;
        *missing = link->rank;
        n++;
    }
    return n;
}

void coll__ucx_part(struct ucx_worker *worker)
{
    double deadline = coll__now() + FAREWELL_SECONDS;
    int missing = -1, n;

    worker->is_ending = 1;
    while ((n = part(worker, &missing)) && coll__now() < deadline)
        turn(worker, NULL);
    if (n)
        log_warn("ucx",
                 "closed without %d peers, among them rank %d, that did not "
                 "close within %.0f s; they must call coll_comm_destroy() too",
                 n, missing, FAREWELL_SECONDS);
}

int coll__ucx_n_flushing(const struct ucx_worker *worker)
{
    int n = 0;

    for (struct ucx_link *link = worker->links; link; link = link->next)
        n += link->n_flushing;
    return n;
}

/* A flush ends when the other worker has read all that was sent. */
static int is_to_be_flushed(const struct ucx_link *link)
{
    return ucx_is_parting(link) ||
           !(link->said & link->heard & ucx_bit(UCX_READY));
}

int coll__ucx_quieten(struct ucx_worker *worker, double pause, double deadline)
{
    double last = coll__now(); /* time of the last progress */

    for (struct ucx_link *link = worker->links; link; link = link->next)
        if (is_to_be_flushed(link))
            flush_endpoint(link);
    while (coll__ucx_n_flushing(worker) || coll__now() < last + pause) {
        if (coll__now() > deadline)
            return 0;
        if (coll__ucx.ucp_worker_progress(worker->worker))
            last = coll__now();
        else
            coll__yield();
    }
    return 1;
}
