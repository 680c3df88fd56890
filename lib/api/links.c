/* SPDX-License-Identifier: BSD-3-Clause */
/* links.c - which transport joins this rank to each of the others.
 *
 * The allowed transports are opened one after the other, in order of
 * preference, and only until every rank reaches every rank: a job within one
 * host never starts the network.  What a link costs is agreed on by taking the
 * dearest one, so that all ranks choose the same algorithms.
 */
#include "lib/api/comm.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int exchange(void *arg, const void *in, size_t len, void *out)
{
    struct coll_comm *comm = arg;

    return coll__ctrl_allgather(comm->ctrl, in, len, out, comm->timeout);
}

/* Make `worst` as dear as the link; what it has none of yet has alpha 0. */
static void dearer(struct coll__link *worst, const struct coll__link *link)
{
    double once = worst->alpha > 0 && worst->once < link->once ? worst->once
                                                               : link->once;

    if (link->alpha <= 0) /* nobody has such a link */
        return;
    worst->alpha = max_double(worst->alpha, link->alpha);
    worst->beta = max_double(worst->beta, link->beta);
    worst->gap = max_double(worst->gap, link->gap);
    worst->once = once;
}

/* Remember the dearest link within this host, and the dearest to others. */
static void note_link(struct coll_comm *comm, int peer,
                      const struct coll__link *link)
{
    int is_far = comm->peers[peer].host != comm->peers[comm->rank].host;
    dearer(&comm->links[is_far], link);
}

/* Give the ranks that this transport reaches, and no other did, to it; add the
 * dearest link.  Returns 1 when it has got any. */
static int take_routes(struct coll_comm *comm, struct coll__tp *tp)
{
    int is_used = 0;

    for (int r = 0; r < comm->size; r++) {
        struct coll__link link;

        if (comm->routes.to[r] || tp->ops->reaches(tp, r, &link))
            continue;
        comm->routes.to[r] = tp;
        is_used = 1;
        if (r != comm->rank)
            note_link(comm, r, &link);
    }
    return is_used;
}

/* The first rank that this one does not reach, or -1. */
static int first_missing(const struct coll_comm *comm)
{
    for (int r = 0; r < comm->size; r++)
        if (!comm->routes.to[r])
            return r;
    return -1;
}

/* Open one transport; collective.  *missing: a rank that some rank cannot reach
 * yet, and *from that one, or -1. */
static int open_one(struct coll_comm *comm, const char *name, int *missing,
                    int *from)
{
    const struct coll__transport *ops = coll__transport_find(name);
    struct coll__tp_env env = {comm->rank, comm->size, comm->peers, exchange,
                               comm};
    struct coll__tp *tp;
    int32_t mine, *all;
    int rc = ops->open(&env, &tp);

    if (rc)
        return rc;
    comm->tps[comm->routes.n_all++] = tp;
    if (take_routes(comm, tp)) {
        size_t n = strlen(comm->transports);

        snprintf(comm->transports + n, sizeof(comm->transports) - n, "%s%s",
                 n ? "," : "", name);
    }
    all = malloc((size_t)comm->size * sizeof(*all));
    if (!all) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    mine = first_missing(comm);
    rc = exchange(comm, &mine, sizeof(mine), all);
    *missing = -1;
    for (int r = 0; r < comm->size && rc == COLL_OK && *missing < 0; r++) {
        *missing = all[r];
        *from = r;
    }
    free(all);
    return rc;
}

/* Take the dearest links of all ranks, so that all choose alike. */
static int agree_on_links(struct coll_comm *comm)
{
    struct coll__link mine[2] = {comm->links[0], comm->links[1]};
    struct coll__link(*all)[2] = malloc((size_t)comm->size * sizeof(mine));
    int rc = COLL_ERR_NOMEM;

    if (all)
        rc = exchange(comm, mine, sizeof(mine), all);
    else
        log_error("comm", "no memory for %d ranks", comm->size);
    for (int r = 0; r < comm->size && rc == COLL_OK; r++)
        for (int far = 0; far < 2; far++)
            dearer(&comm->links[far], &all[r][far]);
    free(all);
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
            log_error("comm", "COLL_TRANSPORTS: there is no transport '%s'; "
                      "there are: %s", name, known);
            return COLL_ERR_INVALID;
        }
    return COLL_OK;
}

int coll__comm_links_open(struct coll_comm *comm)
{
    char names[SETTING_BYTES + 8], *rest = names, *name;
    int missing = 0, from = 0, rc = check_names(comm->settings.transports);

    comm->routes.all = comm->tps;
    comm->routes.to = calloc((size_t)comm->size, sizeof(struct coll__tp *));
    if (!comm->routes.to) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    /* a rank always reaches itself */
    snprintf(names, sizeof(names), "%s%s",
             coll__word_in("self", comm->settings.transports, ',') ? ""
                                                                   : "self,",
             comm->settings.transports);
    while (rc == COLL_OK && missing >= 0 && (name = strsep(&rest, ",")) &&
           comm->routes.n_all < MAX_TRANSPORTS)
        rc = open_one(comm, name, &missing, &from);
    if (rc == COLL_OK && missing >= 0) {
        log_error("comm", "rank %d cannot reach rank %d by the transports %s; "
                  "add ucx to COLL_TRANSPORTS, and see coll_info --transports",
                  from, missing, comm->settings.transports);
        rc = COLL_ERR_TRANSPORT;
    }
    if (rc == COLL_OK)
        rc = agree_on_links(comm);
    return rc ? rc : coll__comm_view_init(comm);
}

void coll__comm_links_close(struct coll_comm *comm, int is_orderly)
{
    while (comm->routes.n_all) {
        struct coll__tp *tp = comm->tps[--comm->routes.n_all];

        tp->ops->close(tp, is_orderly);
    }
}
