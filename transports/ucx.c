/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx.c - ranks anywhere, through UCX: RDMA where the hosts have it, TCP where
 * not.  The transport's calls, opening and closing.  The other ranks and their
 * endpoints are in ucx_peer.c, segments go out in ucx_send.c and come in in
 * ucx_recv.c, and ucx.h says how they travel.
 *
 * One UCP context per process, shared by the communicators and counted under
 * context_lock; one worker per communicator.  The worker is SERIALIZED rather
 * than SINGLE, since the calls may come from different threads one after the
 * other (the caller's, the progress thread's), but never at the same time: so
 * UCX need not lock either.
 *
 * Endpoints: up to COLL_UCX_MESH ranks are connected all at once in open(), so
 * that nobody has to answer a connection request in the midst of something
 * else; for more ranks that would cost too much, and they connect at their
 * first use.
 */
#include "transports/ucx.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_SECONDS 0.5  /* for what was sent to go out */
#define PAUSE_SECONDS 2e-3 /* without any event: nothing will come any more */
#define CANCEL_SECONDS 1.0 /* for UCX to give up what was under way */

extern const struct coll__transport coll__transport_ucx;

/* What the ranks tell each other while they open. */
struct hello {
    int32_t status;
    uint32_t address_len;
};

/* ---- the process's context ---------------------------------------------- */

static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;
static ucp_context_h shared_context; /* these are under context_lock */
static int n_users;
static struct ucx *parked; /* closed, but not to be destroyed */

/* Say whether there is an RDMA device that is not NVIDIA's. */
static int has_plain_verbs(void)
{
    DIR *dir = opendir("/sys/class/infiniband");
    struct dirent *entry;
    int found = 0;

    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, "mlx", 3))
            found = 1;
    if (dir)
        closedir(dir);
    return found;
}

/* UCX before 1.14, as distributions build it, aborts the process where a peer
 * dies at the wrong moment: while an endpoint is being connected (its pull
 * request 8175 mends a part of it), and amid an eager message of several pieces
 * that are sent from where they lie. */
static int is_fragile(void)
{
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    return major == 1 && minor < 14;
}

/* Avoid what is known to go wrong; what the user has set stays.  UCX up to 1.18
 * drops every UD packet of devices whose driver does not report the kind of
 * packet (rxe, irdma), unless told not to look. */
static void tune(ucp_config_t *config)
{
    if (is_fragile() && !getenv("UCX_ZCOPY_THRESH"))
        ucp_config_modify(config, "ZCOPY_THRESH", "inf");
    if (!getenv("UCX_UD_ETH_DGID_CHECK") &&
        !getenv("UCX_UD_VERBS_ETH_DGID_CHECK") && has_plain_verbs())
        ucp_config_modify(config, "UD_ETH_DGID_CHECK", "n");
}

static ucs_status_t make_context(ucp_context_h *context)
{
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_AM,
        .mt_workers_shared = 1,
        .name = "coll",
    };
    ucp_config_t *config;
    ucs_status_t rc = ucp_config_read(NULL, NULL, &config);

    if (rc != UCS_OK)
        return rc;
    tune(config);
    rc = ucp_init(&params, config, context);
    ucp_config_release(config);
    return rc;
}

static ucs_status_t context_get(ucp_context_h *context)
{
    ucs_status_t rc = UCS_OK;

    pthread_mutex_lock(&context_lock);
    if (!n_users)
        rc = make_context(&shared_context);
    if (rc == UCS_OK) {
        n_users++;
        *context = shared_context;
    }
    pthread_mutex_unlock(&context_lock);
    return rc;
}

static void context_put(void)
{
    pthread_mutex_lock(&context_lock);
    if (!--n_users)
        ucp_cleanup(shared_context);
    pthread_mutex_unlock(&context_lock);
}

static int ucx_usable(char *why, size_t len)
{
    ucp_context_h context;
    ucs_status_t rc = context_get(&context);

    if (rc == UCS_OK) {
        context_put();
        return COLL_OK;
    }
    snprintf(why, len,
             "ucp_init: %s; see UCX_LOG_LEVEL=info, and unset UCX_TLS "
             "and UCX_NET_DEVICES",
             ucs_status_string(rc));
    return COLL_ERR_UNSUPPORTED;
}

/* ---- the transport's calls ---------------------------------------------- */

static int ucx_poll(struct coll__tp *tp)
{
    struct ucx *ucx = (struct ucx *)tp;
    int moved;

    coll__ucx_progress(ucx);
    moved = ucx->moved;
    ucx->moved = 0;
    return moved;
}

/* Begin a transfer; its peer, or NULL when it has failed already. */
static struct ucx_peer *begin(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct ucx_peer *peer = coll__ucx_peer((struct ucx *)tp, xfer->peer);

    xfer->done = 0;
    xfer->priv = NULL;
    xfer->status = COLL_IN_PROGRESS;
    if (!peer)
        xfer->status = COLL_ERR_NOMEM;
    else if (!peer->ep && !peer->status)
        coll__ucx_connect(peer);
    return peer;
}

static void ucx_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct ucx_peer *peer = begin(tp, xfer);

    if (!peer)
        return;
    coll__ucx_queue_put(&peer->sends, xfer);
    coll__ucx_push(peer);
    if (peer->status)
        coll__ucx_spoil(peer, &peer->sends);
}

static void ucx_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct ucx_peer *peer = begin(tp, xfer);

    if (!peer)
        return;
    coll__ucx_queue_put(&peer->recvs, xfer);
    coll__ucx_pull(peer); /* what came before the peer was lost still counts */
    if (peer->status)
        coll__ucx_spoil(peer, &peer->recvs);
}

static int ucx_peek(struct coll__tp *tp, int rank, struct coll__head *head)
{
    const struct ucx_peer *peer = ((struct ucx *)tp)->peers[rank];
    const struct ucx_in *in;

    if (!peer || peer->recvs.first)
        return 0;
    in = &peer->in[peer->matched % UCX_WINDOW];
    if (in->hold == HOLD_NONE || in->wire.seq != peer->matched ||
        in->wire.offset)
        return 0;
    *head = in->wire.head;
    return 1;
}

static int ucx_reaches(struct coll__tp *tp, int rank, struct coll__link *link)
{
    const struct ucx *ucx = (const struct ucx *)tp;

    if (rank == tp->rank || rank < 0 || rank >= tp->size)
        return COLL_ERR_PEER;
    *link = ucx->is_near[rank] ? ucx->near : ucx->far;
    return COLL_OK;
}

/* ---- closing ------------------------------------------------------------ */

/* Nobody waits for the transfers of this peer any more. */
static void forget(struct ucx_peer *peer)
{
    for (unsigned i = 0; i < UCX_WINDOW; i++)
        peer->out[i].xfer = NULL;
    coll__ucx_drop(peer);
}

static void destroy_peer(struct ucx_peer *peer)
{
    for (unsigned i = 0; i < UCX_WINDOW; i++) {
        free(peer->in[i].copy);
        free(peer->in[i].bounce); /* UCX did not call back in time */
    }
    free(peer);
}

/* Free what open made, as far as it came. */
static void destroy(struct ucx *ucx)
{
    if (ucx->worker)
        ucp_worker_destroy(ucx->worker);
    for (int r = 0; ucx->peers && r < ucx->base.size; r++)
        if (ucx->peers[r])
            destroy_peer(ucx->peers[r]);
    while (ucx->bounces) {
        void *bounce = ucx->bounces;

        ucx->bounces = *(void **)bounce;
        free(bounce);
    }
    if (ucx->context)
        context_put();
    free(ucx->peers);
    free(ucx->addresses);
    free(ucx->is_near);
    free(ucx);
}

/* Keep the worker to the end of the process. */
static void park(struct ucx *ucx)
{
    log_info("ucx", "kept an unfinished worker of UCX to the end");
    pthread_mutex_lock(&context_lock);
    ucx->next_parked = parked;
    parked = ucx;
    pthread_mutex_unlock(&context_lock);
}

static void hang_up_all(struct ucx *ucx, int is_forced)
{
    for (int r = 0; r < ucx->base.size; r++)
        if (ucx->peers[r])
            coll__ucx_hang_up(ucx->peers[r],
                              is_forced || ucx->peers[r]->status);
    if (!coll__ucx_settle(ucx, coll__now() + CANCEL_SECONDS))
        log_info("ucx", "UCX still held %d requests", ucx->n_under_way);
}

static void ucx_close(struct coll__tp *tp, int is_orderly)
{
    struct ucx *ucx = (struct ucx *)tp;
    int is_quiet;

    ucx->is_closing = 1;
    if (is_orderly)
        coll__ucx_leave(ucx);
    for (int r = 0; r < tp->size; r++)
        if (ucx->peers[r])
            forget(ucx->peers[r]);
    is_quiet = coll__ucx_quieten(ucx, is_orderly ? 0 : PAUSE_SECONDS,
                                 coll__now() + QUIET_SECONDS);
    if (!is_quiet && !ucx->is_meshed && is_fragile()) {
        park(ucx); /* an endpoint may be half connected */
        return;
    }
    hang_up_all(ucx, !is_orderly || !is_quiet);
    destroy(ucx);
}

/* ---- opening ------------------------------------------------------------ */

/* Estimates: a message through loopback TCP, copied twice on the way, and one
 * through a 10 Gbit/s network; where ranks share a core, each message waits for
 * the peer's time slice. */
static void estimate(struct ucx *ucx, const struct coll__tp_env *env)
{
    const struct coll__peer *me = &env->peers[env->rank];
    double crowd =
        me->local_cores ? (double)me->local_size / me->local_cores : 1;
    double wait = crowd > 1 ? 10e-6 * crowd : 0;

    ucx->near = (struct coll__link){.alpha = 5e-6 + wait, .beta = 1 / 3e9};
    ucx->far = (struct coll__link){.alpha = 15e-6 + wait, .beta = 1 / 1.1e9};
    for (int r = 0; r < env->size; r++)
        ucx->is_near[r] = env->peers[r].host == me->host;
}

static int make_worker(struct ucx *ucx)
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
        .arg = ucx,
    };
    ucs_status_t rc = context_get(&ucx->context);

    if (rc != UCS_OK)
        return coll__ucx_status(rc, "ucp_init");
    rc = ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (rc != UCS_OK) {
        ucx->worker = NULL;
        log_error("ucx", "UCX cannot start a worker: %s; see that /dev/shm "
                  "and memory have room, or set UCX_TLS=tcp,self",
                  ucs_status_string(rc));
        return COLL_ERR_TRANSPORT;
    }
    return coll__ucx_status(
        ucp_worker_set_am_recv_handler(ucx->worker, &handler),
        "ucp_worker_set_am_recv_handler");
}

static int make_tables(struct ucx *ucx)
{
    size_t n = (size_t)ucx->base.size;

    ucx->peers = calloc(n, sizeof(struct ucx_peer *));
    ucx->is_near = calloc(n, 1);
    if (ucx->peers && ucx->is_near)
        return COLL_OK;
    log_error("ucx", "no memory for a transport of %zu ranks; free some", n);
    return COLL_ERR_NOMEM;
}

/* Tell each other how it went so far; the first status that is not well. */
static int agree(const struct coll__tp_env *env, struct hello *mine,
                 struct hello *hellos)
{
    int rc = env->allgather(env->arg, mine, sizeof(*mine), hellos);

    for (int r = 0; rc == COLL_OK && r < env->size; r++) {
        rc = hellos[r].status;
        if (rc != COLL_OK && mine->status == COLL_OK)
            log_error("ucx",
                      "rank %d could not open UCX: %s; see its log, or "
                      "leave ucx out of COLL_TRANSPORTS",
                      r, coll_strerror(rc));
    }
    return rc;
}

/* Make room for the longest address, and put this rank's own into *mine. */
static int make_room(struct ucx *ucx, const struct hello *hellos,
                     const ucp_address_t *address, size_t len, void **mine)
{
    size_t n = (size_t)ucx->base.size;

    for (size_t r = 0; r < n; r++)
        ucx->address_len = max_size(ucx->address_len, hellos[r].address_len);
    ucx->addresses = malloc(n * ucx->address_len);
    *mine = calloc(1, ucx->address_len);
    if (!ucx->addresses || !*mine) {
        log_error("ucx", "no memory for %zu addresses of %zu bytes; free some",
                  n, ucx->address_len);
        return COLL_ERR_NOMEM;
    }
    memcpy(*mine, address, len);
    return COLL_OK;
}

/* Exchange the workers' addresses.  Every rank comes through the same calls of
 * allgather(), whatever failed on it: all of them learn of it in the next. */
static int exchange(struct ucx *ucx, const struct coll__tp_env *env, int status,
                    struct hello *hellos)
{
    struct hello mine = {.status = status};
    ucp_address_t *address = NULL;
    void *padded = NULL;
    size_t len = 0;
    int rc;

    if (mine.status == COLL_OK)
        mine.status = coll__ucx_status(
            ucp_worker_get_address(ucx->worker, &address, &len),
            "ucp_worker_get_address");
    mine.address_len = (uint32_t)len;
    rc = agree(env, &mine, hellos);
    if (rc == COLL_OK) {
        mine.status = make_room(ucx, hellos, address, len, &padded);
        rc = agree(env, &mine, hellos);
    }
    if (rc == COLL_OK)
        rc = env->allgather(env->arg, padded, ucx->address_len, ucx->addresses);
    free(padded);
    if (address)
        ucp_worker_release_address(ucx->worker, address);
    return rc;
}

/* Connect all ranks while all of them are here, up to the number that the
 * parameter names; more than that connect at their first use. */
static int mesh(struct ucx *ucx, const struct coll__tp_env *env,
                struct hello *hellos)
{
    struct hello mine = {0};

    if (env->size > coll__param_int(PARAM_UCX_MESH))
        return COLL_OK;
    ucx->is_meshed = 1;
    mine.status = coll__ucx_meet(ucx, coll__param_seconds(PARAM_TIMEOUT));
    return agree(env, &mine, hellos);
}

/* Without these few bytes a rank cannot even tell the others; they learn of it
 * by the deadline of allgather(). */
static int ucx_open(const struct coll__tp_env *env, struct coll__tp **tp)
{
    struct hello *hellos = calloc((size_t)env->size, sizeof(*hellos));
    struct ucx *ucx = calloc(1, sizeof(*ucx));
    int rc = COLL_ERR_NOMEM;

    if (!hellos || !ucx) {
        log_error("ucx", "no memory for a transport; free some");
        goto fail;
    }
    ucx->base = (struct coll__tp){.ops = &coll__transport_ucx,
                                  .rank = env->rank,
                                  .size = env->size};
    rc = make_tables(ucx);
    if (rc == COLL_OK)
        rc = make_worker(ucx);
    rc = exchange(ucx, env, rc, hellos);
    if (rc != COLL_OK)
        goto fail;
    estimate(ucx, env);
    rc = mesh(ucx, env, hellos);
    free(hellos);
    if (rc == COLL_OK)
        *tp = &ucx->base;
    else
        ucx_close(&ucx->base, 0);
    return rc;

fail:
    free(hellos);
    if (ucx)
        destroy(ucx);
    return rc;
}

const struct coll__transport coll__transport_ucx = {
    .name = "ucx",
    .what = "UCX: RDMA where the hosts have it, else TCP",
    .usable = ucx_usable,
    .open = ucx_open,
    .close = ucx_close,
    .reaches = ucx_reaches,
    .send = ucx_send,
    .recv = ucx_recv,
    .put = coll__no_put,
    .take = coll__no_take,
    .poll = ucx_poll,
    .peek = ucx_peek,
};
