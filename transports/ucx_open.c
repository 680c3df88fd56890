/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_open.c - how the ranks of a communicator join over UCX.
 *
 * If UCX is used for RDMA alone, the ranks that join are those with a UCX that works and
 * a port on the network that joins the most hosts.  The other ranks only take part in the
 * exchanges; another transport reaches them.
 *
 * The ranks exchange the names of their workers.  A rank that must not use its worker (a
 * lower rank has the same one, or a link has failed) takes another one, and they exchange
 * names again.  If a link is missing, they exchange addresses and make links; after the
 * first communicator of the same processes none is missing.
 *
 * Endpoints: up to the limit ucx_mesh, all ranks are connected in open(), so that no rank
 * has to answer a connection request during other work.  For more ranks that would take
 * too long; they connect at their first message.
 */
#include "transports/ucx.h"
#include "transports/list.h"
#include "transports/price.h"
#include "transports/ucx_price.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

/* What the ranks exchange in open(). */
struct hello {
    int32_t status;
    uint32_t address_len;
    int32_t mesh;  /* the limit ucx_mesh there */
    int32_t is_in; /* it can be reached */
    int32_t n_new; /* links that it has to make */
    struct ucx_id id;
    uint64_t number;
    struct ucx_limits limits;
};

/* Price links to other hosts by the network device. */
static void estimate(struct ucx *ucx, const struct coll__tp_env *env,
                     const struct hello *hellos)
{
    const struct coll__peer *me = &env->peers[env->rank];
    int far = -1; /* a rank of another host */

    coll__price_loopback(env, &ucx->near);
    for (int r = 0; r < env->size; r++) {
        ucx->is_reached[r] = ucx->worker && hellos[r].is_in;
        ucx->is_near[r] = env->peers[r].host == me->host;
        far = ucx->is_near[r] || !ucx->is_reached[r] ? far : r;
    }
    if (far < 0)
        return;
    coll__ucx_enter(ucx);
    coll__ucx_far(ucx->seats[far].link->ep, me->within[WITHIN_NUMA], &ucx->far);
    coll__ucx_exit(ucx);
    coll__price_rails(ucx->rails->n, &ucx->far);
    ucx->far.alpha += coll__price_crowd(env);
}

static int make_tables(struct ucx *ucx)
{
    size_t n = (size_t)ucx->base.size;

    ucx->n_lanes = COLL__CHANNELS * ucx->base.size;
    ucx->peers = calloc((size_t)ucx->n_lanes, sizeof(struct ucx_peer *));
    ucx->seats = calloc(n, sizeof(*ucx->seats));
    ucx->is_near = calloc(n, 1);
    ucx->is_reached = calloc(n, 1);
    if (ucx->peers && ucx->seats && ucx->is_near && ucx->is_reached)
        return COLL_OK;
    log_error("ucx", "no memory for a transport of %zu ranks; free some", n);
    return COLL_ERR_NOMEM;
}

/* Return the index of this rank's worker: ranks that are threads of one process take one
 * each, in order. */
static int own_index(const struct coll__tp_env *env)
{
    const struct coll__peer *me = &env->peers[env->rank];
    int n = 0;

    for (int r = 0; r < env->rank; r++)
        n += env->peers[r].pid == me->pid &&
             env->peers[r].pid_ns == me->pid_ns &&
             env->peers[r].host == me->host;
    return n;
}

/* Take a worker.  UCX is started only where it has room. */
static int take_worker(struct ucx *ucx, int index, struct hello *mine)
{
    int size = ucx->base.size, rc = COLL_OK;

    if (!coll__ucx_worker_exists(index, ucx->rails->devices)) {
        if (ucx->rails->n)
            log_info("ucx", "%s", ucx->rails->why);
        coll__ucx_limits_get(size - 1, size <= mine->mesh, 0, &mine->limits);
        rc = coll__ucx_limits_judge(&mine->limits, ucx->base.rank);
        if (rc == COLL_OK)
            rc = coll__ucx_limits_for_files();
    }
    if (rc == COLL_OK)
        rc = coll__ucx_worker_get(ucx, index);
    if (rc == COLL_OK) {
        mine->id = ucx->worker->id;
        mine->number = ucx->number;
        mine->address_len = (uint32_t)ucx->worker->address_len;
    }
    return rc;
}

/* Take a worker if this rank needs one.  If UCX is used for RDMA only and the worker
 * cannot be made, this rank does without UCX, since another transport reaches the other
 * ranks. */
static void come_in(struct ucx *ucx, const struct coll__tp_env *env,
                    struct hello *mine)
{
    mine->is_in = !env->is_rdma_alone || ucx->rails->n;
    if (!mine->is_in) {
        log_info("ucx", "%s", ucx->rails->why);
        return;
    }
    mine->status = take_worker(ucx, own_index(env), mine);
    if (!mine->status || !env->is_rdma_alone)
        return;
    log_warn("ucx",
             "no RDMA: UCX could not use %s (see its own messages), so the "
             "next of COLL_TRANSPORTS is used; install a UCX with verbs, or "
             "allow more (ulimit -l, /dev/infiniband)",
             ucx->rails->devices);
    if (ucx->worker)
        coll__ucx_worker_put(ucx->worker, 0);
    ucx->worker = NULL;
    *mine = (struct hello){.mesh = mine->mesh};
}

/* Does this rank need a link to that rank? */
static int is_linked(const struct ucx *ucx, const struct hello *hellos,
                     int rank)
{
    return rank != ucx->base.rank && hellos[rank].is_in;
}

/* Exchange every rank's status so far; return the first error. */
static int agree(const struct coll__tp_env *env, struct hello *mine,
                 struct hello *hellos)
{
    int rc = env->allgather(env->arg, mine, sizeof(*mine), hellos);

    for (int r = 0; rc == COLL_OK && r < env->size; r++) {
        rc = hellos[r].status;
        if (rc != COLL_OK && mine->status == COLL_OK &&
            coll__ucx_limits_judge(&hellos[r].limits, r) == COLL_OK)
            log_error("ucx",
                      "rank %d could not open UCX: %s; see its log, or "
                      "leave ucx out of COLL_TRANSPORTS",
                      r, coll_strerror(rc));
    }
    return rc;
}

static int is_meshed(const struct hello *hellos, int size)
{
    for (int r = 0; r < size; r++)
        if (size > hellos[r].mesh)
            return 0;
    return 1;
}

/* Must this worker not be used?  A lower rank has the same one, or a link to one of the
 * others has failed; links are not made a second time. */
static int is_unfit(struct ucx *ucx, const struct hello *hellos)
{
    int is_bad = 0;

    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size; r++) {
        struct ucx_link *link = coll__ucx_link_find(ucx->worker, &hellos[r].id);

        is_bad |=
            r < ucx->base.rank && ucx_same(&hellos[r].id, &ucx->worker->id);
        is_bad |= link && link->status;
    }
    coll__ucx_exit(ucx);
    return is_bad;
}

/* Count the lower ranks with the same worker as this rank. */
static int n_before(const struct ucx *ucx, const struct hello *hellos)
{
    int n = 0;

    for (int r = 0; r < ucx->base.rank; r++)
        n += ucx_same(&hellos[r].id, &ucx->worker->id);
    return n;
}

/* Take another worker. */
static int change_worker(struct ucx *ucx, const struct hello *hellos,
                         struct hello *mine)
{
    struct ucx_worker *old = ucx->worker;
    int n = n_before(ucx, hellos);

    coll__ucx_enter(ucx);
    coll__ucx_forget(ucx);
    coll__ucx_exit(ucx);
    if (!n)
        coll__ucx_worker_retire(old);
    ucx->worker = NULL;
    mine->status = take_worker(ucx, old->index + n, mine);
    coll__ucx_worker_put(old, 0);
    return mine->status;
}

/* Count the links that are still to be made or, if all are made at once, still to be
 * finished. */
static int n_new_links(struct ucx *ucx, const struct hello *hellos)
{
    unsigned ready = is_meshed(hellos, ucx->base.size) ? ucx_bit(UCX_READY) : 0;
    int n = 0;

    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size; r++) {
        struct ucx_link *link = coll__ucx_link_find(ucx->worker, &hellos[r].id);

        n += is_linked(ucx, hellos, r) &&
             (!link || !link->address ||
              (link->said & link->heard & ready) != ready);
    }
    coll__ucx_exit(ucx);
    return n;
}

/* From the others' names, check this worker, and find the missing links. */
static int compare(struct ucx *ucx, const struct coll__tp_env *env,
                   struct hello *mine, struct hello *hellos)
{
    int rc = COLL_OK;

    if (!ucx->worker)
        return COLL_OK;
    if (is_unfit(ucx, hellos))
        rc = change_worker(ucx, hellos, mine);
    if (rc)
        return rc;
    mine->n_new = n_new_links(ucx, hellos);
    coll__ucx_limits_get(mine->n_new, is_meshed(hellos, env->size), 1,
                         &mine->limits);
    return coll__ucx_limits_judge(&mine->limits, env->rank);
}

/* The workers' addresses, each padded to the longest one's `len` bytes. */
struct addresses {
    unsigned char *all; /* [size * len]; NULL: they were not exchanged */
    size_t len;
};

/* Exchange the workers' addresses. */
static int exchange(struct ucx *ucx, const struct coll__tp_env *env,
                    struct hello *mine, struct hello *hellos,
                    struct addresses *addresses)
{
    size_t len = 0;
    void *padded = NULL;
    int rc;

    for (int r = 0; r < env->size; r++)
        len = max_size(len, hellos[r].address_len);
    addresses->len = len;
    addresses->all = malloc((size_t)env->size * len);
    padded = calloc(1, len);
    if (!addresses->all || !padded) {
        log_error("ucx", "no memory for %d addresses of %zu bytes; free some",
                  env->size, len);
        mine->status = COLL_ERR_NOMEM;
    } else if (ucx->worker) {
        memcpy(padded, ucx->worker->address, ucx->worker->address_len);
    }
    rc = agree(env, mine, hellos);
    if (rc == COLL_OK)
        rc = env->allgather(env->arg, padded, len, addresses->all);
    free(padded);
    return rc;
}

/* Find or make the link to a rank; returns 0 without memory. */
static int take_link(struct ucx *ucx, int rank, const struct hello *hello,
                     const unsigned char *address)
{
    struct ucx_link *link = coll__ucx_link(ucx->worker, &hello->id);

    if (!link)
        return 0;
    if (!link->address && address) {
        link->address = malloc(hello->address_len);
        if (!link->address)
            return 0;
        memcpy(link->address, address, hello->address_len);
    }
    if (!link->n_users) {
        link->rank = rank;
        link->heard &= ~ucx_bit(UCX_STAY);
        link->said &= ~ucx_bit(UCX_STAY);
    }
    link->n_users++;
    ucx->seats[rank] = (struct ucx_seat){link, hello->number};
    for (int c = 0; c < COLL__CHANNELS; c++) {
        struct ucx_peer *peer = ucx->peers[coll__lane(c, rank, ucx->base.size)];

        if (!peer)
            continue; /* it was not heard of already */
        peer->link = link;
        peer->to = hello->number;
        coll__ucx_list(peer);
    }
    return 1;
}

/* There are no addresses when all links are there. */
static int take_links(struct ucx *ucx, const struct hello *hellos,
                      const struct addresses *addresses)
{
    int is_well = 1;

    if (!ucx->worker)
        return COLL_OK;
    coll__ucx_enter(ucx);
    for (int r = 0; r < ucx->base.size && is_well; r++)
        if (is_linked(ucx, hellos, r))
            is_well = take_link(ucx, r, &hellos[r],
                                addresses->all ? addresses->all +
                                                     (size_t)r * addresses->len
                                               : NULL);
    coll__ucx_exit(ucx);
    if (is_well)
        return COLL_OK;
    log_error("ucx", "no memory for %d links; free some", ucx->base.size);
    return COLL_ERR_NOMEM;
}

static int n_new_of_all(const struct hello *hellos, int size)
{
    int n = 0;

    for (int r = 0; r < size; r++)
        n |= hellos[r].n_new;
    return n;
}

/* Join the others.  Every rank makes the same calls of allgather(), whatever has
 * failed on it, and the next call tells the others.  All ranks are connected here if
 * their number is within every rank's limit ucx_mesh; else they connect at their first
 * message. */
static int join(struct ucx *ucx, const struct coll__tp_env *env,
                struct hello *hellos)
{
    struct hello mine = {.mesh = (int32_t)coll__limit(LIMIT_UCX_MESH)};
    struct addresses addresses = {NULL, 0};
    int rc, n_new = 0;

    come_in(ucx, env, &mine);
    rc = agree(env, &mine, hellos);
    if (rc == COLL_OK) {
        mine.status = compare(ucx, env, &mine, hellos);
        rc = agree(env, &mine, hellos);
    }
    if (rc == COLL_OK) {
        n_new = n_new_of_all(hellos, env->size);
        if (n_new)
            rc = exchange(ucx, env, &mine, hellos, &addresses);
    }
    if (rc == COLL_OK)
        mine.status = take_links(ucx, hellos, &addresses);
    free(addresses.all);
    if (rc || !n_new)
        return rc ? rc : mine.status;
    if (mine.status == COLL_OK && ucx->worker && is_meshed(hellos, env->size))
        mine.status = coll__ucx_meet(ucx, env->timeout);
    return agree(env, &mine, hellos);
}

static void choose(const struct coll__tp_env *env, struct coll__rails *rails)
{
    int n_hosts;
    uint32_t fabric = coll__rails_common(env->peers, env->size, &n_hosts);

    coll__ucx_rails(env->peers[env->rank].within[WITHIN_NUMA], fabric, rails);
}

/* Without memory for these few bytes a rank cannot tell the others of its failure; they
 * learn it from the deadline of allgather(). */
int coll__ucx_open(const struct coll__tp_env *env, struct coll__tp **tp)
{
    struct coll__rails rails = {.n = 0};
    struct hello *hellos = calloc((size_t)env->size, sizeof(*hellos));
    struct ucx *ucx = calloc(1, sizeof(*ucx));
    int rc = COLL_ERR_NOMEM;

    if (!hellos || !ucx) {
        log_error("ucx", "no memory for a transport; free some");
        free(hellos);
        free(ucx);
        return rc;
    }
    ucx->base = (struct coll__tp){.ops = &coll__transport_ucx,
                                  .rank = env->rank,
                                  .size = env->size,
                                  .generation = coll__generation_now()};
    ucx->failure = env->failure;
    ucx->rails = &rails;
    if (env->is_rdma_alone)
        choose(env, &rails);
    rc = make_tables(ucx);
    if (rc == COLL_OK)
        rc = join(ucx, env, hellos);
    if (rc == COLL_OK)
        estimate(ucx, env, hellos); /* a connected endpoint tells its device */
    ucx->rails = NULL;
    free(hellos);
    if (rc == COLL_OK)
        *tp = &ucx->base;
    else if (ucx->worker)
        coll__ucx_close(&ucx->base, 0);
    else
        coll__ucx_free(ucx);
    return rc;
}
