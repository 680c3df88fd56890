/* SPDX-License-Identifier: BSD-3-Clause */
/* diagnose.c - COLL_DIAGNOSE: measure links, and name those that are much slower than the
 * others.
 *
 * First one rank of each host plays a tournament against those of the other hosts, then the
 * ranks of each host against each other.  In each round of a tournament all pairs measure
 * their link at the same time.  After ROUNDS rounds it ends: then each host's cable and each
 * rank's core was tried against many others.
 *
 * Links are compared with those of the same level of the view, since a link to another NUMA
 * node may be slower than one within.  A slow one is measured once more while all others
 * are quiet, since ranks may share cores, cards and cables.  Then rank 0 names those that are
 * still slow.
 *
 * Source: the circle method; Lucas, Recreations mathematiques, 1883.
 */
#include "lib/comm/diagnose.h"
#include "lib/comm/comm.h"
#include "lib/comm/links.h"
#include "lib/comm/prices.h"
#include "lib/trace/log.h"
#include "lib/util/sort.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS                                                                 \
    32 /* of each tournament, and links that are measured again; at most */
#define SLOW 3.0 /* times the median */

/* What a rank has measured: the links to ranks with higher numbers. */
struct result {
    int32_t peer;
    float alpha, beta; /* s, s a byte */
};

struct report {
    char host[32];
    int32_t n;
    struct result results[2 * ROUNDS];
};

struct link {
    int a, b, level;
    double alpha, beta;
};

/* All links; the same on every rank. */
struct findings {
    const struct coll_comm *comm;
    const struct report *reports; /* [comm->size] */
    struct link *links;
    int n_links;
    int n[COLL__LEVELS]; /* links of each level, and their medians */
    double alpha[COLL__LEVELS], beta[COLL__LEVELS];
};

/* ---- the tournament -------------------------------------------------------------- */

int coll__tournament_rounds(int n) { return n % 2 ? n : n - 1; }

/* In round k the players i and j meet whose numbers add up to k, modulo the odd number of
 * rounds m.  Who would meet himself meets player m, if there is one. */
int coll__tournament_partner(int n, int player, int round)
{
    int m = coll__tournament_rounds(n), partner;

    if (player == m) /* 2 * partner = round, modulo m */
        return (int)((long)round * ((m + 1) / 2) % m);
    partner = (round - player + m) % m;
    if (partner != player)
        return partner;
    return m < n ? m : -1;
}

static int play(struct coll_comm *comm, const int *players, int n,
                struct report *mine)
{
    int rounds = min_int(coll__tournament_rounds(n), ROUNDS), me = 0;
    int rc = COLL_OK;

    while (me < n && players[me] != comm->rank)
        me++;
    for (int k = 0; me < n && k < rounds && rc == COLL_OK; k++) {
        int partner = coll__tournament_partner(n, me, k);
        int peer = partner < 0 ? -1 : players[partner];
        struct coll__measured measured;

        if (peer < 0)
            continue;
        rc = coll__comm_measure(comm, min_int(comm->rank, peer),
                                max_int(comm->rank, peer), &measured);
        if (rc == COLL_OK && comm->rank < peer)
            mine->results[mine->n++] = (struct result){
                peer, (float)measured.alpha, (float)measured.beta};
    }
    return rc;
}

/* Between hosts: their first ranks.  Within this rank's host: all. */
static int is_player(const struct coll_comm *comm, int rank, int is_far)
{
    const struct coll__peer *peer = &comm->peers[rank];

    return is_far ? peer->local_rank == 0
                  : peer->host == comm->peers[comm->rank].host;
}

static int measure(struct coll_comm *comm, int is_far, struct report *mine)
{
    int *players = malloc((size_t)comm->size * sizeof(*players));
    int n = 0, rc;

    if (!players) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < comm->size; r++)
        if (is_player(comm, r, is_far))
            players[n++] = r;
    rc = play(comm, players, n, mine);
    free(players);
    return rc;
}

/* ---- judging ----------------------------------------------------------------------- */

/* Return the innermost level whose groups join the two ranks. */
static int level_of(const struct coll__view *view, int a, int b)
{
    int l = 0;

    while (l < view->n_levels - 1 &&
           view->levels[l].group[a] != view->levels[l].group[b])
        l++;
    return l;
}

static int collect(struct findings *f)
{
    const struct coll_comm *comm = f->comm;
    int n = 0;

    for (int r = 0; r < comm->size; r++)
        n += f->reports[r].n;
    f->links = malloc(((size_t)n + 1) * sizeof(*f->links));
    if (!f->links) {
        log_error("comm", "no memory for %d links", n);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < comm->size; r++)
        for (int i = 0; i < f->reports[r].n; i++) {
            const struct result *result = &f->reports[r].results[i];
            int level = level_of(&comm->view, r, result->peer);

            f->links[f->n_links++] = (struct link){r, result->peer, level,
                                                   result->alpha, result->beta};
            f->n[level]++;
        }
    return COLL_OK;
}

/* Find the lower median of a level's links. */
static int find_median(struct findings *f, int level)
{
    size_t n = (size_t)f->n[level], at = 0;
    double *values = malloc(2 * n * sizeof(*values));

    if (!values) {
        log_error("comm", "no memory for %zu links", n);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < f->n_links; i++)
        if (f->links[i].level == level) {
            values[at] = f->links[i].alpha;
            values[n + at++] = f->links[i].beta;
        }
    f->alpha[level] = lower_median(values, n);
    f->beta[level] = lower_median(values + n, n);
    free(values);
    return COLL_OK;
}

static int is_slow(const struct findings *f, const struct link *link)
{
    return link->alpha > SLOW * f->alpha[link->level] ||
           link->beta > SLOW * f->beta[link->level];
}

/* Measure a link once more, and keep the better values.  Collective. */
static int measure_again(struct coll_comm *comm, struct link *link)
{
    struct coll__measured mine = {0}, *all;
    int rc = COLL_OK;

    if (comm->rank == link->a || comm->rank == link->b)
        rc = coll__comm_measure(comm, link->a, link->b, &mine);
    if (rc)
        return rc;
    all = coll__comm_exchange_new(comm, &mine, sizeof(mine), &rc);
    if (!all)
        return rc;
    link->alpha = min_double(link->alpha, all[link->a].alpha);
    link->beta = min_double(link->beta, all[link->a].beta);
    free(all);
    return COLL_OK;
}

static int judge(struct coll_comm *comm, struct findings *f)
{
    int rc = collect(f), n_again = 0;

    for (int l = 0; l < COLL__LEVELS && rc == COLL_OK; l++)
        if (f->n[l])
            rc = find_median(f, l);
    for (int i = 0; i < f->n_links && rc == COLL_OK; i++)
        if (is_slow(f, &f->links[i]) && n_again++ < ROUNDS)
            rc = measure_again(comm, &f->links[i]);
    return rc;
}

/* ---- saying ------------------------------------------------------------------------ */

static void put_speed(char *text, size_t len, double alpha, double beta)
{
    snprintf(text, len, "%.3g us, %.3g GB/s", alpha * 1e6, 1e-9 / beta);
}

static void say_link(const struct findings *f, const struct link *link)
{
    const struct coll__level *price = &f->comm->view.levels[link->level];
    int slow = is_slow(f, link);
    char here[64], there[64], priced[64];

    if (!slow && !coll__log_wants(COLL_LOG_INFO, "comm"))
        return;
    put_speed(here, sizeof(here), link->alpha, link->beta);
    put_speed(there, sizeof(there), f->alpha[link->level],
              f->beta[link->level]);
    put_speed(priced, sizeof(priced), price->alpha, price->beta);
    coll__log_write(
        slow ? COLL_LOG_WARN : COLL_LOG_INFO, "comm",
        "the link of rank %d (%s) and rank %d (%s)%s: %s; median of %d links "
        "of level %s: %s; their price: %s",
        link->a, f->reports[link->a].host, link->b, f->reports[link->b].host,
        slow ? " is slow" : "", here, f->n[link->level], price->name, there,
        priced);
}

static void say_summary(const struct findings *f)
{
    char text[COLL__LINE_MAX] = "", median[64], priced[64];

    for (int l = 0; l < f->comm->view.n_levels; l++) {
        const struct coll__level *price = &f->comm->view.levels[l];
        size_t len = strlen(text);

        if (!f->n[l])
            continue;
        put_speed(median, sizeof(median), f->alpha[l], f->beta[l]);
        put_speed(priced, sizeof(priced), price->alpha, price->beta);
        snprintf(text + len, sizeof(text) - len,
                 "; median of level %s: %s, their price: %s", price->name,
                 median, priced);
    }
    coll__log_write(COLL_LOG_INFO, "comm", "none of %d links is slow%s",
                    f->n_links, text);
}

static void say(const struct findings *f)
{
    int n_slow = 0;

    for (int i = 0; i < f->n_links; i++) {
        say_link(f, &f->links[i]);
        n_slow += is_slow(f, &f->links[i]);
    }
    if (!n_slow)
        say_summary(f);
}

/* Make of all reports what rank 0 says. */
static int conclude(struct coll_comm *comm, const struct report *reports)
{
    struct findings f = {.comm = comm, .reports = reports};
    int rc = judge(comm, &f);

    if (rc == COLL_OK && comm->rank == 0)
        say(&f);
    free(f.links);
    return rc;
}

int coll__comm_diagnose(struct coll_comm *comm)
{
    struct report mine = {.n = 0}, *all;
    int rc = measure(comm, 1, &mine);

    /* All wait until the hosts are done, so that nobody disturbs them. */
    if (rc == COLL_OK)
        free(coll__comm_exchange_new(comm, &(char){0}, 1, &rc));
    if (rc == COLL_OK)
        rc = measure(comm, 0, &mine);
    if (rc)
        return rc;
    gethostname(mine.host, sizeof(mine.host) - 1);
    all = coll__comm_exchange_new(comm, &mine, sizeof(mine), &rc);
    if (all)
        rc = conclude(comm, all);
    free(all);
    return rc;
}
