/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_open.c - open: the ranks exchange their listeners' addresses and open gates there;
 * connections are made with the first messages.  Also close. */
#include "lib/net/reactor.h"
#include "transports/list.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/limit.h"
#include "lib/util/lock.h"
#include "transports/price.h"
#include "transports/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LONGEST 1e12 /* bytes; no message is as long */

static int no_memory(const struct tcp *tcp)
{
    log_error("tcp", "no memory for a transport of %d ranks; free some",
              tcp->base.size);
    return COLL_ERR_NOMEM;
}

static int make_tables(struct tcp *tcp)
{
    size_t n = (size_t)tcp->base.size;

    tcp->is_near = calloc(n, 1);
    tcp->lost = calloc(n, sizeof(*tcp->lost));
    tcp->cards = calloc(n, sizeof(*tcp->cards));
    return tcp->is_near && tcp->lost && tcp->cards ? COLL_OK : no_memory(tcp);
}

static int make_active(struct tcp_active *active, size_t n)
{
    active->lanes = calloc(n, sizeof(*active->lanes));
    return active->lanes != NULL;
}

/* Make the tables of all channels and rails. */
static int make_lines(struct tcp *tcp)
{
    size_t n = (size_t)tcp->base.size, n_lanes = n * (1 + (size_t)tcp->rails.n);
    int is_well;

    tcp->rails.n_lines = COLL__CHANNELS * (1 + tcp->rails.n);
    n *= (size_t)tcp->rails.n_lines;
    tcp->conns = calloc(n, sizeof(*tcp->conns));
    tcp->callers = calloc(n, sizeof(*tcp->callers));
    is_well = tcp->conns && tcp->callers;
    for (int c = 0; c < COLL__CHANNELS; c++)
        is_well = is_well && make_active(&tcp->sending[c], n_lanes) &&
                  make_active(&tcp->receiving[c], n_lanes);
    return is_well ? COLL_OK : no_memory(tcp);
}

static int make_events(struct tcp *tcp)
{
    tcp->events = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->events >= 0)
        return COLL_OK;
    log_error("tcp", "no epoll: %s", coll__files_error(errno));
    return COLL_ERR_SYSTEM;
}

/* From now on accept callers that prove the secret, on the first n lines. */
static void open_gates(struct tcp *tcp, int n)
{
    coll__reactor_lock();
    for (int c = tcp->gates.n; c < n; c++) {
        struct coll__gate *gate = &tcp->gates.all[c];

        *gate = (struct coll__gate){.kind = GATE_DATA,
                                    .rank = (uint32_t)tcp->base.rank,
                                    .generation = (uint32_t)c,
                                    .arrived = tcp__arrived,
                                    .owner = tcp};
        memcpy(gate->secret, tcp->secret, sizeof(gate->secret));
        coll__gate_add(gate);
    }
    tcp->gates.n = n;
    coll__reactor_unlock();
}

/* Choose how many rails each channel has at most: one for each equal interface, or as many
 * as the limit says. */
static int choose_rails(struct tcp *tcp, const struct tcp_card *mine)
{
    int n = (int)coll__limit(LIMIT_TCP_RAILS);

    tcp->rails.are_set = n > 0;
    n = min_int(n ? n : mine->n_alike, TCP_RAILS);
    return n > 1 ? n : 0;
}

static int open_door(struct tcp *tcp, const struct coll__tp_env *env,
                     struct tcp_card *mine)
{
    enum coll__reach reach = REACH_HOST;
    int rc = coll__reactor_get();

    for (int r = 0; r < env->rank; r++)
        mine->seat += tcp->is_near[r];
    if (rc)
        return rc;
    tcp->has_reactor = 1;
    open_gates(tcp, COLL__CHANNELS);
    for (int r = 0; r < env->size; r++)
        if (!tcp->is_near[r])
            reach = REACH_NET;
    mine->n_addrs = coll__listener_open(reach, mine->addrs);
    if (mine->n_addrs > 0) {
        mine->n_alike = coll__net_count_alike(mine->addrs, mine->n_addrs);
        if (reach == REACH_NET)
            tcp->rails.n = mine->n_rails = choose_rails(tcp, mine);
        return COLL_OK;
    }
    if (mine->n_addrs == 0)
        log_error("tcp",
                  "this host has no address that other ranks could connect to; "
                  "bring up its network, or leave tcp out of COLL_TRANSPORTS");
    return mine->n_addrs ? mine->n_addrs : COLL_ERR_SYSTEM;
}

static int prepare(struct tcp *tcp, const struct coll__tp_env *env,
                   struct tcp_card *mine)
{
    int rc = make_events(tcp);

    if (rc == COLL_OK)
        rc = open_door(tcp, env, mine);
    if (rc == COLL_OK)
        rc =
            make_lines(tcp); /* nobody calls before all have this rank's card */
    if (rc == COLL_OK)
        open_gates(tcp, tcp->rails.n_lines);
    return rc;
}

/* Check the others' cards: has one of them an error? */
static int judge(const struct tcp *tcp, int own_status)
{
    for (int r = 0; r < tcp->base.size; r++) {
        const struct tcp_card *card = &tcp->cards[r];

        if (card->order != TCP_ORDER) {
            log_error("tcp",
                      "rank %d is on a machine of another byte order, "
                      "which libcoll does not serve; use hosts of one "
                      "kind",
                      r);
            return COLL_ERR_TRANSPORT;
        }
        if (card->status && !own_status)
            log_error("tcp",
                      "rank %d cannot be connected: %s; see its own "
                      "messages",
                      r, coll_strerror(card->status));
        if (card->status || card->n_addrs < 0 ||
            card->n_addrs > COLL__MAX_ADDRS || card->n_alike < 1 ||
            card->n_alike > card->n_addrs || card->seat < 0 ||
            card->n_rails < 0 || card->n_rails > TCP_RAILS)
            return card->status ? card->status : COLL_ERR_INTERNAL;
    }
    return COLL_OK;
}

/* Exchange cards; every rank takes part, whatever has failed on it. */
static int join(struct tcp *tcp, const struct coll__tp_env *env)
{
    struct tcp_card mine = {.order = TCP_ORDER};
    int rc;

    mine.status = prepare(tcp, env, &mine);
    rc = env->allgather(env->arg, &mine, sizeof(mine), tcp->cards);
    return rc ? rc : judge(tcp, mine.status);
}

/* Choose from which length on messages have rails; `saved`: s a byte.  A head and pieces
 * cost about as much as two more messages. */
static size_t choose_length(const struct tcp *tcp, double saved)
{
    double more = 2 * tcp->far.alpha, least = (double)TCP_SHARED_LEAST;

    if (!tcp->rails.n)
        return SIZE_MAX;
    if (tcp->rails.are_set)
        return TCP_SET_LEAST;
    if (more > saved * LONGEST)
        return SIZE_MAX;
    return (size_t)max_double(least, more / saved);
}

static void estimate(struct tcp *tcp, const struct coll__tp_env *env)
{
    int far = -1;
    double beta;

    tcp->rails.from = SIZE_MAX;
    for (int r = 0; r < env->size; r++)
        if (!tcp->is_near[r] && tcp->cards[r].n_addrs)
            far = r;
    coll__price_loopback(env, &tcp->near);
    if (far < 0)
        return;
    coll__price_tcp(&tcp->cards[far].addrs[0], &tcp->far);
    tcp->far.alpha += coll__price_crowd(env);
    beta = tcp->far.beta;
    coll__price_ways(tcp__count_ways(&tcp->cards[far]), &tcp->far);
    if (!tcp->rails.n)
        tcp->far.beta = beta;
    tcp->rails.from = choose_length(tcp, beta - tcp->far.beta);
    if (tcp->rails.from < SIZE_MAX)
        log_info("tcp",
                 "messages of %zu bytes and more go by up to %d connections",
                 tcp->rails.from, tcp->rails.n);
}

int tcp__open(const struct coll__tp_env *env, struct coll__tp **tp)
{
    struct tcp *tcp = calloc(1, sizeof(*tcp));
    int rc;

    if (!tcp) {
        log_error("tcp", "no memory for a transport; free some");
        return COLL_ERR_NOMEM;
    }
    tcp->base = (struct coll__tp){.ops = &coll__transport_tcp,
                                  .asks_kernel = 1,
                                  .rank = env->rank,
                                  .size = env->size,
                                  .generation = coll__generation_now()};
    tcp->failure = env->failure;
    tcp->timeout = env->timeout;
    tcp->events = -1;
    coll__ended_init(&tcp->rails.parts);
    memcpy(tcp->secret, env->secret, sizeof(tcp->secret));
    rc = make_tables(tcp);
    for (int r = 0; r < env->size && rc == COLL_OK; r++)
        tcp->is_near[r] = env->peers[r].host == env->peers[env->rank].host;
    if (rc == COLL_OK)
        rc = join(tcp, env);
    if (rc == COLL_OK)
        estimate(tcp, env);
    if (rc == COLL_OK)
        *tp = &tcp->base;
    else
        tcp__close(&tcp->base, 0);
    return rc;
}

/* ---- the end ------------------------------------------------------------- */

/* A forked child has no reactor to release. */
static void close_gates(struct tcp *tcp)
{
    if (!tcp->has_reactor)
        return;
    coll__reactor_lock();
    for (int c = 0; c < tcp->gates.n; c++) {
        coll__gate_remove(&tcp->gates.all[c]);
        coll__auth_wipe(tcp->gates.all[c].secret, COLL__SECRET_BYTES);
    }
    coll__reactor_unlock();
    if (!coll__is_inherited(tcp->base.generation))
        coll__reactor_put();
}

static void free_conns(struct tcp *tcp)
{
    for (int i = 0; tcp->conns && i < tcp->rails.n_lines * tcp->base.size;
         i++) {
        struct tcp_conn *conn = tcp->conns[i];

        if (!conn)
            continue;
        tcp__end_call(tcp, conn);
        if (conn->fd >= 0)
            close(conn->fd);
        tcp__free_crypt(conn->out.crypt);
        tcp__free_crypt(conn->in.crypt);
        free(conn->in.ahead.bytes);
        free(conn);
    }
    free(tcp->conns);
}

static void free_arrivals(struct tcp *tcp)
{
    struct tcp_arrival *next, *list = atomic_load(&tcp->arrived);

    for (; list; list = next) {
        next = list->next;
        close(list->fd);
        free(list);
    }
}

void tcp__close(struct coll__tp *tp, int is_orderly)
{
    struct tcp *tcp = (struct tcp *)tp;

    (void)is_orderly; /* what was sent is the kernel's */
    close_gates(tcp);
    free_arrivals(tcp);
    free_conns(tcp);
    tcp__free_shares(tcp);
    if (tcp->events >= 0)
        close(tcp->events);
    for (int c = 0; c < COLL__CHANNELS; c++) {
        free(tcp->sending[c].lanes);
        free(tcp->receiving[c].lanes);
    }
    coll__auth_wipe(tcp->secret, sizeof(tcp->secret));
    free(tcp->callers);
    free(tcp->bounce);
    free(tcp->cards);
    free(tcp->lost);
    free(tcp->is_near);
    free(tcp);
}
