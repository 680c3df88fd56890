/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - the machine and the problem that a job is about. */
#include "tools/plan/tool.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The standard machine: hosts of 8 ranks on a 100 Gbit/s network without
 * blocking, and memory that moves 10 GB/s for each rank. */
#define HOST_RANKS 8

static const struct coll__level within_host = {
    .alpha = 0.5e-6, .beta = 0.1e-9, .share = 0.02e-9, .gap = 0.1e-6};
static const struct coll__level between_hosts = {
    .alpha = 2e-6, .beta = 0.08e-9, .share = 0.08e-9, .gap = 0.2e-6};
#define GAMMA 0.1e-9

/* Give a level the prices of another, but not its groups. */
static void set_prices(struct coll__level *level, const char *name,
                       const struct coll__level *prices)
{
    snprintf(level->name, sizeof(level->name), "%s", name);
    level->alpha = prices->alpha;
    level->beta = prices->beta;
    level->share = prices->share;
    level->gap = prices->gap;
}

static int standard_machine(struct machine *m, const struct job *job, int ranks)
{
    int n_hosts = (ranks + HOST_RANKS - 1) / HOST_RANKS, rc;
    int *hosts = malloc((size_t)ranks * sizeof(int));

    if (!hosts)
        return say(1, "no memory for %d ranks", ranks);
    for (int r = 0; r < ranks; r++)
        hosts[r] = job->placement == PLACE_CYCLIC ? r % n_hosts
                                                  : r / HOST_RANKS;
    rc = coll__view_init(&m->view, ranks, n_hosts > 1 ? 2 : 1,
                         (const int *const[]){hosts});
    free(hosts);
    if (rc)
        return say_last();
    set_prices(&m->view.levels[0], "host", &within_host);
    if (n_hosts > 1)
        set_prices(&m->view.levels[1], "network", &between_hosts);
    m->view.gamma = GAMMA;
    m->view.chunk = job->chunk;
    snprintf(m->what, sizeof(m->what), "standard: %d host%s of up to %d ranks, "
             "0.5 us and 10 GB/s within a host, 2 us and 12.5 GB/s between "
             "hosts", n_hosts, n_hosts > 1 ? "s" : "", HOST_RANKS);
    return 0;
}

static int machine_of_file(struct machine *m, const struct job *job, int ranks)
{
    int n_hosts;

    if (coll__fabric_load(job->topology, &m->fabric))
        return say_last();
    if (coll__view_of_fabric(&m->view, m->fabric, ranks, job->placement,
                             job->chunk)) {
        coll__fabric_destroy(m->fabric);
        m->fabric = NULL;
        return say_last();
    }
    n_hosts = coll__fabric_n_hosts(m->fabric);
    snprintf(m->what, sizeof(m->what), "%s: %d host%s, seats for %d ranks",
             coll__fabric_name(m->fabric), n_hosts, n_hosts > 1 ? "s" : "",
             coll__fabric_n_seats(m->fabric));
    return 0;
}

int machine_init(struct machine *m, const struct job *job, int ranks)
{
    *m = (struct machine){0};
    return job->topology ? machine_of_file(m, job, ranks)
                         : standard_machine(m, job, ranks);
}

void machine_fini(struct machine *m)
{
    coll__view_fini(&m->view);
    if (m->fabric)
        coll__fabric_destroy(m->fabric);
}

/* ---- the problem ---------------------------------------------------------- */

/* In the v collectives, every part gets the same count. */
static void set_counts(struct coll__problem *pb, const size_t *counts,
                       const size_t *displs)
{
    if (coll__has_in_counts(pb->collective)) {
        pb->in_counts = counts;
        pb->in_displs = displs;
    }
    if (coll__has_out_counts(pb->collective)) {
        pb->out_counts = counts;
        pb->out_displs = displs;
    }
}

int cast_init(struct cast *cast, const struct job *job,
              const struct machine *machine)
{
    size_t p = (size_t)job->ranks, count;
    struct coll__problem pb = {.collective = job->collective,
                               .type = job->type,
                               .order = job->order,
                               .root = job->root,
                               .nranks = job->ranks,
                               .view = &machine->view};

    if (coll__reduces(job->collective))
        pb.op = job->op;
    if (job->collective == COLL_BARRIER) {
        pb.type = COLL_U8;
        pb.op = COLL_MAX;
    }
    count = job->collective == COLL_BARRIER
                ? 1
                : job->bytes / coll_type_size(job->type);
    pb.count = count;
    cast->pbs = malloc(p * sizeof(*cast->pbs));
    cast->numbers = malloc(2 * p * sizeof(*cast->numbers));
    if (!cast->pbs || !cast->numbers) {
        cast_fini(cast);
        return say(1, "no memory for %d ranks", job->ranks);
    }
    for (size_t r = 0; r < p; r++) {
        cast->numbers[r] = count;
        cast->numbers[p + r] = r * count;
        cast->pbs[r] = pb;
        cast->pbs[r].rank = (int)r;
        set_counts(&cast->pbs[r], cast->numbers, cast->numbers + p);
        cast->pbs[r].in_place =
            job->in_place && coll__problem_may_be_in_place(&cast->pbs[r]);
    }
    return 0;
}

void cast_fini(struct cast *cast)
{
    free(cast->pbs);
    free(cast->numbers);
    *cast = (struct cast){0};
}

/* ---- which algorithm ------------------------------------------------------ */

int candidates(const struct job *job, const struct coll__problem *pb,
               struct coll__candidate list[MAX_ALGOS])
{
    int n = coll__algo_candidates(pb, "", list, MAX_ALGOS), n_named = 0;

    for (int i = 0; i < n; i++)
        if (!*job->algo ||
            coll__algo_is_forced(list[i].algo, job->algo, pb->collective))
            list[n_named++] = list[i];
    return n_named;
}

int say_none(const struct job *job)
{
    return say(1, "%s can%s do this %s%s",
               *job->algo ? job->algo : "no algorithm", *job->algo ? "not" : "",
               coll_collective_name(job->collective),
               job->action == ACTION_EXPLAIN ? "" : "; see --explain");
}

const struct coll__algo *choose(const struct job *job,
                                const struct coll__problem *pb)
{
    struct coll__candidate list[MAX_ALGOS];

    if (candidates(job, pb, list) && !list[0].refusal)
        return list[0].algo;
    say_none(job);
    return NULL;
}

/* ---- numbers for people --------------------------------------------------- */

const char *bytes_text(size_t bytes, char text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t u = 0;

    while (value >= 1024 && u + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        u++;
    }
    snprintf(text, 24, "%.4g %s", value, units[u]);
    return text;
}

const char *seconds_text(double seconds, char text[24])
{
    double scale = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;

    snprintf(text, 24, "%.3g %s", seconds * scale,
             seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s");
    if (strchr(text, 'e'))
        snprintf(text, 24, "%.0f %s", seconds * scale,
                 seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s");
    return text;
}
