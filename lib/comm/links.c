/* SPDX-License-Identifier: BSD-3-Clause */
/* links.c - which transport connects this rank to each other rank.
 *
 * The allowed transports are opened in order of preference until every rank reaches
 * every rank: a job within one host never starts the network.  prices.c combines what
 * the transports say of their links' cost.
 */
#include "lib/comm/links.h"
#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/comm/comm_view.h"
#include "lib/comm/create.h"
#include "lib/comm/prices.h"
#include "lib/exec/routes.h"
#include "lib/topo/inside.h"
#include "lib/topo/rails.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "lib/net/auth.h"
#include "lib/ctrl/ctrl.h"
#include "transports/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS 200 /* for a message that is about to come: about a microsecond */

int coll__comm_exchange(void *arg, const void *in, size_t len, void *out)
{
    struct coll_comm *comm = arg;

    return coll__ctrl_allgather(comm->ctrl, in, len, out, comm->timeout);
}

void *coll__comm_exchange_new(struct coll_comm *comm, const void *in,
                              size_t len, int *rc)
{
    void *all = malloc((size_t)comm->size * len);

    if (!all) {
        log_error("comm", "no memory for %d ranks", comm->size);
        *rc = COLL_ERR_NOMEM;
        return NULL;
    }
    *rc = coll__comm_exchange(comm, in, len, all);
    if (*rc == COLL_OK)
        return all;
    free(all);
    return NULL;
}

struct coll__tp_env coll__comm_env(struct coll_comm *comm)
{
    return (struct coll__tp_env){.rank = comm->rank,
                                 .size = comm->size,
                                 .peers = comm->peers,
                                 .allgather = coll__comm_exchange,
                                 .arg = comm,
                                 .timeout = comm->timeout,
                                 .failure = &comm->failure.status};
}

/* Remember the most expensive link within this host, and that to other hosts. */
static void note_link(struct coll_comm *comm, int peer,
                      const struct coll__link *link)
{
    int is_far = comm->peers[peer].host != comm->peers[comm->rank].host;

    coll__link_dearer(&comm->links.dearest[is_far], link);
}

/* Route to this transport the ranks that it reaches and that have no route yet. */
static void take_routes(struct coll_comm *comm, struct coll__tp *tp)
{
    for (int r = 0; r < comm->size; r++) {
        struct coll__link link;

        if (comm->links.routes.to[r] || tp->ops->reaches(tp, r, &link))
            continue;
        comm->links.routes.to[r] = tp;
        if (r != comm->rank)
            note_link(comm, r, &link);
    }
}

static void drop_routes(struct coll_comm *comm, const struct coll__tp *tp)
{
    for (int r = 0; r < comm->size; r++)
        if (comm->links.routes.to[r] == tp)
            comm->links.routes.to[r] = NULL;
}

static int has_routes(const struct coll_comm *comm, const struct coll__tp *tp)
{
    for (int r = 0; r < comm->size; r++)
        if (comm->links.routes.to[r] == tp)
            return 1;
    return 0;
}

/* Add the name of a transport that is used, as in "self,shm". */
static void add_name(struct coll_comm *comm, const char *name)
{
    size_t n = strlen(comm->links.names);

    snprintf(comm->links.names + n, sizeof(comm->links.names) - n, "%s%s",
             n ? "," : "", name);
}

/* Return the first rank that this one does not reach, or -1. */
static int first_missing(const struct coll_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (!comm->links.routes.to[r])
            return r;
    return -1;
}

/* What each rank says once a transport is open. */
struct report {
    struct coll__offer offer; /* of its links so far */
    int32_t missing;          /* a rank that it cannot reach yet, or -1 */
    uint32_t found;           /* of the others, by the transport */
    int32_t told;             /* what attachments say of it */
};

/* What all have said. */
struct coverage {
    struct report *reports;     /* [size] */
    struct coll__offer *offers; /* [size] */
    uint32_t *found;            /* [size] */
    int32_t *told;              /* [size]: what attachments say of each */
    int32_t mine;               /* of this rank; the same throughout */
    int missing,
        from; /* a rank that `from` cannot reach yet; -1: there is none */
};

static int coverage_init(struct coverage *cover, const struct coll_comm *comm)
{
    size_t n = (size_t)comm->size;

    *cover = (struct coverage){.reports = malloc(n * sizeof(*cover->reports)),
                               .offers = malloc(n * sizeof(*cover->offers)),
                               .found = malloc(n * sizeof(*cover->found)),
                               .told = malloc(n * sizeof(*cover->told)),
                               .mine = coll__attachments_tell()};
    if (cover->reports && cover->offers && cover->found && cover->told)
        return COLL_OK;
    log_error("comm", "no memory for %d ranks", comm->size);
    return COLL_ERR_NOMEM;
}

static void coverage_fini(struct coverage *cover)
{
    free(cover->reports);
    free(cover->offers);
    free(cover->found);
    free(cover->told);
}

/* Collective. */
static int report(struct coll_comm *comm, uint32_t found,
                  struct coverage *cover)
{
    struct report mine = {
        .missing = first_missing(comm), .found = found, .told = cover->mine};
    int rc;

    coll__comm_offer(comm, &mine.offer);
    rc = coll__comm_exchange(comm, &mine, sizeof(mine), cover->reports);
    cover->missing = -1;
    for (int r = 0; r < comm->size && rc == COLL_OK; r++) {
        cover->told[r] = cover->reports[r].told;
        cover->offers[r] = cover->reports[r].offer;
        cover->found[r] = cover->reports[r].found;
        if (cover->missing >= 0)
            continue;
        cover->missing = cover->reports[r].missing;
        cover->from = r;
    }
    return rc;
}

/* Have all ranks found the same transports usable?  Each rank's report assumed so. */
static int is_alike(const struct coverage *cover, int size)
{
    for (int r = 1; r < size; r++)
        if (cover->found[r] != cover->found[0])
            return 0;
    return 1;
}

/* Take the routes that tp offers, and find which are missing then.  If tp is usable on
 * some ranks only, it may offer other routes after settle().  Collective. */
static int settle(struct coll_comm *comm, struct coll__tp *tp,
                  struct coverage *cover)
{
    struct coll__link before[2] = {comm->links.dearest[0],
                                   comm->links.dearest[1]};
    int rc;

    take_routes(comm, tp);
    rc = report(comm, tp->found, cover);
    if (rc == COLL_OK)
        rc = tp->ops->settle(tp, cover->found);
    if (rc || is_alike(cover, comm->size))
        return rc;
    drop_routes(comm, tp);
    memcpy(comm->links.dearest, before, sizeof(before));
    take_routes(comm, tp);
    return report(comm, tp->found, cover);
}

static int is_allowed(const struct coll_comm *comm,
                      const struct coll__transport *transport)
{
    return coll__word_in(transport->name, comm->settings.transports, ',');
}

/* Is the transport used with RDMA only?  It is if another transport, which needs no
 * RDMA, may carry the messages between hosts. */
static int is_for_rdma(const struct coll_comm *comm,
                       const struct coll__transport *transport)
{
    for (int i = 0; transport->needs_rdma && coll__transports[i]; i++)
        if (coll__transports[i]->spans_hosts &&
            !coll__transports[i]->needs_rdma &&
            is_allowed(comm, coll__transports[i]))
            return 1;
    return 0;
}

/* Is the transport left out because messages between hosts have to be encrypted? */
static int is_too_open(const struct coll__transport *transport)
{
    return transport->spans_hosts && !transport->is_encrypted &&
           !strcmp(coll__param_text(PARAM_NET_ENCRYPT), "1");
}

/* May the transport be of use to any rank? */
static int is_wanted(const struct coll_comm *comm,
                     const struct coll__transport *transport)
{
    int n_hosts;

    if (is_too_open(transport))
        return 0;
    if (!is_for_rdma(comm, transport))
        return 1;
    coll__rails_common(comm->peers, comm->size, &n_hosts);
    return n_hosts > 1;
}

/* Return the name of an allowed transport that is left out because it cannot encrypt,
 * or NULL. */
static const char *find_too_open(const struct coll_comm *comm)
{
    for (int i = 0; coll__transports[i]; i++)
        if (is_allowed(comm, coll__transports[i]) &&
            is_too_open(coll__transports[i]))
            return coll__transports[i]->name;
    return NULL;
}

/* Open one transport; collective. */
static int open_one(struct coll_comm *comm, const struct coll__transport *ops,
                    struct coverage *cover)
{
    unsigned char secret[COLL__SECRET_BYTES];
    struct coll__tp_env env = coll__comm_env(comm);
    struct coll__tp *tp;
    int rc;

    env.is_rdma_alone = is_for_rdma(comm, ops);
    env.secret = secret;
    coll__ctrl_secret(comm->ctrl, ops->name, secret);
    rc = ops->open(&env, &tp);
    coll__auth_wipe(secret, sizeof(secret));

    if (rc)
        return rc;
    comm->links.tps[comm->links.routes.n_all++] = tp;
    if (comm->size > 1 && comm->links.routes.n_all == 1 && ops->is_own) {
        /* the first one: all know what it reaches without asking */
        take_routes(comm, tp);
        cover->from = 0;
        cover->missing = 1;
    } else {
        rc = settle(comm, tp, cover);
    }
    if (rc == COLL_OK && has_routes(comm, tp))
        add_name(comm, ops->name);
    return rc;
}

static int check_names(const char *names)
{
    char text[SETTING_BYTES], known[128] = "", *rest = text, *name;

    for (int i = 0; coll__transports[i]; i++)
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
                 i ? ", " : "", coll__transports[i]->name);
    snprintf(text, sizeof(text), "%s", names);
    while ((name = strsep(&rest, ",")))
        if (!coll__transport_find(name)) {
            log_error("comm",
                      "COLL_TRANSPORTS: there is no transport '%s'; "
                      "there are: %s",
                      name, known);
            return COLL_ERR_INVALID;
        }
    return COLL_OK;
}

/* Return the transport by which a rank reaches itself, if the user's list does not name
 * it.  It is always used. */
static const char *find_own(const struct coll_comm *comm)
{
    for (int i = 0; coll__transports[i]; i++)
        if (coll__transports[i]->is_own && !is_allowed(comm, coll__transports[i]))
            return coll__transports[i]->name;
    return "";
}

/* Report that the ranks do not all reach each other by the allowed transports. */
static int no_route(const struct coll_comm *comm, const struct coverage *cover)
{
    const char *open = find_too_open(comm);

    log_error("comm",
              "rank %d cannot reach rank %d by the transports %s%s%s%s; "
              "add tcp to COLL_TRANSPORTS, and see coll_info --transports",
              cover->from, cover->missing, comm->settings.transports,
              open ? ", of which " : "", open ? open : "",
              open ? " does not encrypt" : "");
    return COLL_ERR_TRANSPORT;
}

/* Open the transports in turn until every rank reaches every rank. */
static int open_all(struct coll_comm *comm, struct coverage *cover)
{
    char names[2 * SETTING_BYTES], *rest = names, *name;
    const char *own = find_own(comm);
    int rc = COLL_OK;

    snprintf(names, sizeof(names), "%s%s%s", own, *own ? "," : "",
             comm->settings.transports);
    while (rc == COLL_OK && cover->missing >= 0 &&
           (name = strsep(&rest, ",")) &&
           comm->links.routes.n_all < MAX_TRANSPORTS) {
        const struct coll__transport *transport = coll__transport_find(name);

        if (is_wanted(comm, transport))
            rc = open_one(comm, transport, cover);
    }
    return rc == COLL_OK && cover->missing >= 0 ? no_route(comm, cover) : rc;
}

/* `streams` is not touched: the reactor may read it already, because the communicator can
 * fail at any time (failure.lock). */
static int routes_init(struct coll_comm *comm)
{
    const struct coll__peer *me = &comm->peers[comm->rank];
    struct coll__routes *routes = &comm->links.routes;

    routes->to = calloc((size_t)comm->size, sizeof(struct coll__tp *));
    if (!routes->to) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    routes->all = comm->links.tps;
    routes->n_local = me->local_size;
    routes->looks = LOOKS;
    routes->is_shared = me->n_sharers > me->local_cores;
    return COLL_OK;
}

int coll__comm_links_open(struct coll_comm *comm,
                          const struct coll__options *options)
{
    struct coverage cover;
    int rc = check_names(comm->settings.transports);

    if (rc == COLL_OK)
        rc = routes_init(comm);
    coll__inside_load(&comm->links.inside);
    if (rc == COLL_OK)
        rc = coverage_init(&cover, comm);
    if (rc)
        return rc;
    rc = open_all(comm, &cover);
    if (rc == COLL_OK)
        rc = coll__comm_prices_agree(comm, cover.offers, options->parent);
    if (rc == COLL_OK)
        rc = coll__attachments_join(comm, options, cover.told);
    coverage_fini(&cover);
    return rc ? rc : coll__comm_view_init(comm);
}

void coll__comm_links_close(struct coll_comm *comm, int is_orderly)
{
    while (comm->links.routes.n_all) {
        struct coll__tp *tp = comm->links.tps[--comm->links.routes.n_all];

        tp->ops->close(tp, is_orderly);
    }
}
