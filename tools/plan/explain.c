/* SPDX-License-Identifier: BSD-3-Clause */
/* explain.c - every algorithm, or those of --algo, with its predicted time, and why one
 * wins.
 *
 * To find the shares of a time, it is predicted again on a machine whose latency,
 * bandwidth, shared links or memory cost nothing.
 */
#include "tools/plan/tool.h"

#include <stdio.h>
#include <stdlib.h>

/* What costs time, as bits. */
enum { LATENCY = 1, SHARED = 2, BANDWIDTH = 4, WORK = 8 };

/* Return the time when the prices of some of it are 0. */
static double time_without(const struct coll__algo *algo,
                           const struct coll__problem *pb, unsigned what)
{
    struct coll__view view = *pb->view;
    struct coll__problem free_pb = *pb;

    for (int l = 0; l < view.n_levels; l++) {
        struct coll__level *level = &view.levels[l];

        level->alpha = what & LATENCY ? 0 : level->alpha;
        level->gap = what & LATENCY ? 0 : level->gap;
        level->share = what & SHARED ? 0 : level->share;
        level->beta = what & BANDWIDTH ? 0 : level->beta;
    }
    view.gamma = what & WORK ? 0 : view.gamma;
    free_pb.view = &view;
    return algo->cost(&free_pb);
}

static struct parts parts_of(const struct coll__candidate *c,
                             const struct coll__problem *pb)
{
    double all = c->seconds > 0 ? c->seconds : 1;
    double alone = time_without(c->algo, pb, SHARED);

    return (struct parts){
        .latency = (all - time_without(c->algo, pb, LATENCY)) / all,
        .shared = (all - alone) / all,
        .bandwidth =
            (alone - time_without(c->algo, pb, SHARED | BANDWIDTH)) / all,
        .work = (all - time_without(c->algo, pb, WORK)) / all,
    };
}

static const char *most_of(const struct parts *p, double *share)
{
    const struct {
        const char *name;
        double share;
    } all[] = {{"latency", p->latency},
               {"bandwidth", p->bandwidth},
               {"shared links", p->shared},
               {"work in memory", p->work}};
    int best = 0;

    for (int i = 1; i < 4; i++)
        if (all[i].share > all[best].share)
            best = i;
    *share = all[best].share;
    return all[best].name;
}

/* ---- the table ------------------------------------------------------------ */

static void print_head(const struct job *job, const struct coll__problem *pb,
                       const struct machine *m)
{
    char size[24];

    printf("%s of %s", coll_collective_name(pb->collective),
           bytes_text(coll__problem_bytes(pb), size));
    printf(" (%zu %s", pb->count, coll_type_name(pb->type));
    if (coll__reduces(pb->collective))
        printf(", %s", coll_op_name(pb->op));
    printf(") over %d ranks, placed in %s\nmachine %s\n\n", pb->nranks,
           job->placement == PLACE_CYCLIC ? "turn" : "blocks", m->what);
}

static void print_candidate(const struct coll__candidate *c, double best,
                            const struct parts *parts, int is_first)
{
    double share;
    char time[24];
    const char *most = most_of(parts, &share);

    printf("%s %-28s %12s %8.2f  %s (%.0f %%)\n", is_first ? "*" : " ",
           c->algo->name, seconds_text(c->seconds, time),
           best > 0 ? c->seconds / best : 1, most, 100 * share);
}

/* `n`: how many were asked about. */
static void print_why(const struct coll__candidate *list, int n, int n_usable,
                      const struct parts *parts)
{
    char time[24];
    double share;
    const char *most = most_of(&parts[0], &share);

    printf("\n%s%s: %s", list[0].algo->name, n > 1 ? " wins" : "",
           list[0].algo->what);
    printf("; %s, of which %.0f %% is %s", seconds_text(list[0].seconds, time),
           100 * share, most);
    if (n_usable > 1) {
        most = most_of(&parts[1], &share);
        printf("; %s, next, takes %.2f times as long (%.0f %% %s)",
               list[1].algo->name,
               list[0].seconds > 0 ? list[1].seconds / list[0].seconds : 1,
               100 * share, most);
    }
    printf(".\n");
}

static void print_all(const struct coll__candidate *list, int n, int n_usable,
                      const struct parts *parts)
{
    printf("  %-28s %12s %8s  %s\n", "algorithm", "predicted", "ratio",
           "most of it");
    for (int i = 0; i < n_usable; i++)
        print_candidate(&list[i], list[0].seconds, &parts[i], i == 0);
    for (int i = n_usable; i < n; i++)
        printf("- %-28s %s\n", list[i].algo->name, list[i].refusal);
    if (n_usable)
        print_why(list, n, n_usable, parts);
}

static int explain_problem(const struct job *job, const struct machine *m,
                           const struct coll__problem *pb)
{
    struct coll__candidate list[MAX_ALGOS];
    struct parts parts[MAX_ALGOS] = {{0}};
    int n = candidates(job, pb, list), n_usable = 0, rc = 0;

    while (n_usable < n && !list[n_usable].refusal) {
        parts[n_usable] = parts_of(&list[n_usable], pb);
        n_usable++;
    }
    if (job->json)
        rc = json_explain(job, m, list, n, parts);
    if (!job->json) {
        print_head(job, pb, m);
        print_all(list, n, n_usable, parts);
    }
    return rc || n_usable ? rc : say_none(job);
}

int explain(const struct job *job)
{
    struct machine m;
    struct cast cast;
    int rc = machine_init(&m, job, job->ranks);

    if (rc)
        return rc;
    rc = cast_init(&cast, job, &m);
    if (!rc) {
        rc = explain_problem(job, &m, &cast.pbs[0]);
        cast_fini(&cast);
    }
    machine_fini(&m);
    return rc;
}
