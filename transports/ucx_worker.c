/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_worker.c - the process's workers, and the communicators at each.
 *
 * All communicators of a process share one worker.  If ranks are threads, each has a
 * worker of its own, since a worker with error handling cannot connect to itself.  A
 * worker lives from the first communicator to the last.
 *
 * UCX's TCP uses freed memory (1.13.1) if a peer closes a connection whose endpoint was
 * closed by force here while it had something to send: of the two events of that socket
 * the first one's handler frees what the second one's uses.  So the last communicator of a
 * worker does not close by force what is stuck, but halts the worker: UCX does not work
 * for it any more, so it touches no buffer, and the worker is kept.
 *
 * UCX 1.13 aborts the process if a worker is destroyed while it has requests.  Requests
 * to a peer that is stopped or slow may last for any time.  So a worker with unfinished
 * requests is kept.
 *
 * A worker is SERIALIZED, not SINGLE: calls come from different threads, but never at the
 * same time, so UCX need not lock.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"
#include "lib/util/yield.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define PAUSE_SECONDS 2e-3 /* s without any event, after which none is expected */
#define TURNS 256          /* rounds of progress between two checks for failed
                            * communicators */

/* Time limits in s: for sent messages to leave, the same after a failure, and for UCX
 * to cancel requests.  After a failure these and the limits of ucx.c add up to less
 * than a second. */
#define QUIET_SECONDS 0.5
#define QUIET_FAILED_SECONDS 0.25
#define CANCEL_SECONDS 0.2

static struct coll__lock workers_lock = COLL__LOCK(NULL);
static struct ucx_worker *workers; /* these, and what each says of its users, */
static struct ucx_worker *parked;  /* are under workers_lock */

/* ---- the lock ------------------------------------------------------------ */

void coll__ucx_enter(struct ucx *ucx)
{
    while (!coll__ucx_enter_try(ucx))
        coll__yield();
}

int coll__ucx_enter_try(struct ucx *ucx)
{
    if (pthread_mutex_trylock(&ucx->worker->lock))
        return 0;
    ucx->worker->caller = ucx;
    return 1;
}

void coll__ucx_exit(struct ucx *ucx)
{
    ucx->worker->caller = NULL;
    pthread_mutex_unlock(&ucx->worker->lock);
}

/* ---- the communicators of a worker --------------------------------------- */

struct ucx *coll__ucx_find(const struct ucx_worker *worker, uint64_t number)
{
    uint32_t at = (uint32_t)number;
    struct ucx *ucx = at < worker->n_comms ? worker->comms[at] : NULL;

    return ucx && ucx->number == number ? ucx : NULL;
}

/* Add the communicator to the table.  The low half of its number is its index there, the
 * high half a count, so that no number is used twice. */
static int seat(struct ucx_worker *worker, struct ucx *ucx)
{
    uint32_t at = 0, n = worker->n_comms ? 2 * worker->n_comms : 8;
    struct ucx **comms;

    while (at < worker->n_comms && worker->comms[at])
        at++;
    if (at == worker->n_comms) {
        comms = realloc(worker->comms, n * sizeof(*comms));
        if (!comms) {
            log_error("ucx", "no memory for a communicator; free some");
            return COLL_ERR_NOMEM;
        }
        for (uint32_t i = at; i < n; i++)
            comms[i] = NULL;
        worker->comms = comms;
        worker->n_comms = n;
    }
    worker->comms[at] = ucx;
    ucx->number = (uint64_t)++worker->n_numbers << 32 | at;
    return COLL_OK;
}

static void destroy_peer(struct ucx_peer *peer)
{
    for (unsigned i = 0; i < UCX_WINDOW; i++) {
        free(peer->in[i].copy);
        free(peer->in[i].bounce); /* nobody waits for it any more */
    }
    free(peer);
}

void coll__ucx_free(struct ucx *ucx)
{
    for (int i = 0; ucx->peers && i < ucx->n_lanes; i++)
        if (ucx->peers[i])
            destroy_peer(ucx->peers[i]);
    while (ucx->bounces) {
        void *bounce = ucx->bounces;

        ucx->bounces = *(void **)bounce;
        free(bounce);
    }
    free(ucx->peers);
    free(ucx->seats);
    free(ucx->is_near);
    free(ucx->is_reached);
    free(ucx);
}

/* Free closed communicators once UCX holds nothing of them. */
static void sweep(struct ucx_worker *worker)
{
    struct ucx **at = &worker->closed;

    while (*at) {
        struct ucx *ucx = *at;

        if (ucx->n_under_way) {
            at = &ucx->next;
            continue;
        }
        *at = ucx->next;
        coll__ucx_free(ucx);
    }
}

int coll__ucx_forget(struct ucx *ucx)
{
    struct ucx_worker *worker = ucx->worker;

    if (coll__ucx_find(worker, ucx->number) == ucx)
        worker->comms[(uint32_t)ucx->number] = NULL;
    if (!ucx->n_under_way)
        return 1;
    ucx->next = worker->closed;
    worker->closed = ucx;
    return 0;
}

/* Release the segments that came for failed communicators: their senders wait for that,
 * and the callers may not look at these communicators for long. */
static void let_go(struct ucx_worker *worker)
{
    for (uint32_t i = 0; i < worker->n_comms; i++) {
        struct ucx *ucx = worker->comms[i];

        if (!ucx || ucx->has_let_go || !ucx_has_failed(ucx))
            continue;
        ucx->has_let_go = 1;
        for (int l = 0; l < ucx->n_lanes; l++)
            if (ucx->peers[l])
                coll__ucx_let_go(ucx->peers[l]);
    }
}

void coll__ucx_work(struct ucx_worker *worker)
{
    if (++worker->n_turns % TURNS == 0)
        let_go(worker);
    coll__ucx.ucp_worker_progress(worker->worker);
    if (worker->work)
        coll__ucx_serve_links(worker);
    if (worker->closed)
        sweep(worker);
}

/* ---- begin --------------------------------------------------------------- */

static int start(struct ucx_worker *worker, const struct coll__rails *rails)
{
    ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .cb = coll__ucx_arrived,
        .arg = worker,
    };
    char why[512];
    int status =
        coll__ucx_context_get(rails, &worker->context, why, sizeof(why));
    ucs_status_t rc;

    if (status) {
        log_error("ucx", "%s", why);
        return status;
    }
    rc = coll__ucx.ucp_worker_create(worker->context->ucp, &params,
                                     &worker->worker);
    if (rc != UCS_OK) {
        log_error("ucx",
                  "UCX cannot start a worker: %s; see its own lines, or "
                  "set UCX_TLS=tcp,self",
                  coll__ucx.ucs_status_string(rc));
        coll__ucx_context_put(worker->context);
        worker->worker = NULL;
        return COLL_ERR_TRANSPORT;
    }
    rc = coll__ucx.ucp_worker_set_am_recv_handler(worker->worker, &handler);
    if (rc == UCS_OK)
        rc = coll__ucx.ucp_worker_get_address(worker->worker, &worker->address,
                                              &worker->address_len);
    return coll__ucx_status(rc, "ucp_worker_get_address");
}

/* Free the parts of a worker; UCX must have no requests. */
static void destroy(struct ucx_worker *worker)
{
    if (worker->address)
        coll__ucx.ucp_worker_release_address(worker->worker, worker->address);
    if (worker->worker) {
        coll__ucx.ucp_worker_destroy(worker->worker);
        coll__ucx_context_put(worker->context);
    }
    worker->worker = NULL;
    coll__ucx_links_free(worker);
    sweep(worker);
    pthread_mutex_destroy(&worker->lock);
    free(worker->comms);
    free(worker);
}

static struct ucx_worker *make(int index, const struct coll__rails *rails,
                               int *rc)
{
    struct ucx_worker *worker = calloc(1, sizeof(*worker));

    *rc = COLL_ERR_NOMEM;
    if (!worker) {
        log_error("ucx", "no memory for a worker; free some");
        return NULL;
    }
    worker->index = index;
    worker->generation = coll__generation_now();
    pthread_mutex_init(&worker->lock, NULL);
    if (getrandom(&worker->id, sizeof(worker->id), 0) ==
        (ssize_t)sizeof(worker->id))
        *rc = start(worker, rails);
    if (*rc == COLL_OK)
        return worker;
    destroy(worker);
    return NULL;
}

static struct ucx_worker *find(int index, const char *devices)
{
    struct ucx_worker *worker = workers;

    while (worker && (worker->index != index || worker->is_retired ||
                      strcmp(worker->context->devices, devices)))
        worker = worker->next;
    return worker;
}

int coll__ucx_worker_exists(int index, const char *devices)
{
    int exists;

    coll__lock(&workers_lock);
    exists = find(index, devices) != NULL;
    coll__unlock(&workers_lock);
    return exists;
}

/* Acquire the worker of that index.  If there is none, list and use the new one, if
 * given; else return NULL. */
static struct ucx_worker *use(int index, const char *devices,
                              struct ucx_worker *fresh)
{
    struct ucx_worker *worker;

    coll__lock(&workers_lock);
    worker = find(index, devices);
    if (!worker && fresh) {
        worker = fresh;
        worker->next = workers;
        workers = worker;
    }
    if (worker)
        worker->n_users++;
    coll__unlock(&workers_lock);
    return worker;
}

/* Acquire that worker, or make one; without the lock, since UCX is slow. */
static int use_or_make(int index, const struct coll__rails *rails,
                       struct ucx_worker **out)
{
    struct ucx_worker *worker = use(index, rails->devices, NULL), *fresh;
    int rc = COLL_OK;

    if (!worker) {
        fresh = make(index, rails, &rc);
        if (rc)
            return rc;
        worker = use(index, rails->devices, fresh);
        if (worker != fresh)
            destroy(fresh); /* another thread was faster */
    }
    *out = worker;
    return COLL_OK;
}

int coll__ucx_worker_get(struct ucx *ucx, int index)
{
    int rc = use_or_make(index, ucx->rails, &ucx->worker);

    if (rc)
        return rc;
    if (coll__is_inherited(ucx->worker->generation)) {
        log_error("ucx", "%s", UCX_AFTER_FORK_TEXT);
        ucx->worker = NULL;
        return COLL_ERR_TRANSPORT;
    }
    coll__ucx_enter(ucx);
    rc = seat(ucx->worker, ucx);
    coll__ucx_exit(ucx);
    return rc;
}

/* ---- end ----------------------------------------------------------------- */

void coll__ucx_worker_retire(struct ucx_worker *worker)
{
    coll__lock(&workers_lock);
    worker->is_retired = 1;
    coll__unlock(&workers_lock);
}

int coll__ucx_worker_retire_last(struct ucx_worker *worker)
{
    int is_last;

    coll__lock(&workers_lock);
    is_last = worker->n_users == 1;
    worker->is_retired |= is_last;
    coll__unlock(&workers_lock);
    return is_last;
}

/* Keep the worker to the end of the process. */
static void park(struct ucx_worker *worker)
{
    log_info(
        "ucx",
        "kept a UCX worker with %d unfinished requests until the process ends",
        worker->n_under_way + coll__ucx_n_flushing(worker));
    coll__lock(&workers_lock);
    worker->next = parked;
    parked = worker;
    coll__unlock(&workers_lock);
}

/* Make progress until UCX holds no request of ours.  Returns 1, or 0 at the deadline. */
static int settle(struct ucx_worker *worker, double deadline)
{
    while (worker->n_under_way || coll__ucx_n_flushing(worker)) {
        if (coll__now() > deadline)
            return 0;
        if (!coll__ucx.ucp_worker_progress(worker->worker))
            coll__yield();
    }
    return 1;
}

/* Close all endpoints: by force, unless the other side makes progress until they are
 * closed.  Returns 1 if UCX has finished that and all other requests. */
static int hang_up_all(struct ucx_worker *worker, int is_forced)
{
    for (struct ucx_link *link = worker->links; link; link = link->next)
        coll__ucx_hang_up(link,
                          is_forced || link->status || !ucx_is_parting(link));
    return settle(worker, coll__now() + CANCEL_SECONDS);
}

/* Was every endpoint connected by open()? */
static int is_meshed(const struct ucx_worker *worker)
{
    for (struct ucx_link *link = worker->links; link; link = link->next)
        if (link->ep && !(link->said & link->heard & ucx_bit(UCX_READY)))
            return 0;
    return 1;
}

/* Close all endpoints.  Returns 1 if UCX holds nothing any more. */
static int close_all(struct ucx_worker *worker, int is_orderly)
{
    double quiet = is_orderly ? QUIET_SECONDS : QUIET_FAILED_SECONDS;
    int is_quiet;

    if (is_orderly)
        coll__ucx_part(worker);
    is_quiet = coll__ucx_quieten(worker, is_orderly ? 0 : PAUSE_SECONDS,
                                 coll__now() + quiet);
    if (!is_quiet && !is_meshed(worker) && coll__ucx_is_fragile())
        return 0; /* an endpoint may be half connected */
    return hang_up_all(worker, !is_orderly || !is_quiet);
}

/* The last communicator has left, so no other thread knows this worker. */
static void end(struct ucx_worker *worker, int is_orderly)
{
    int is_done = 0;

    pthread_mutex_lock(&worker->lock); /* after whoever was the last there */
    worker->is_ending = 1;
    if (!worker->is_halted)
        is_done = close_all(worker, is_orderly);
    pthread_mutex_unlock(&worker->lock);
    if (is_done)
        destroy(worker);
    else
        park(worker);
}

void coll__ucx_worker_put(struct ucx_worker *worker, int is_orderly)
{
    struct ucx_worker **at = &workers;
    int is_last;

    coll__lock(&workers_lock);
    is_last = !--worker->n_users;
    while (is_last && *at != worker)
        at = &(*at)->next;
    if (is_last)
        *at = worker->next;
    coll__unlock(&workers_lock);
    if (is_last)
        end(worker, is_orderly);
}
