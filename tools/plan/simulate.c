/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate.c - simulate all ranks' plans on the links of a machine, and compare the time
 * with the predicted one. */
#include "tools/plan/tool.h"
#include "lib/algo/algo.h"

#include <stdio.h>

/* messages; with more, a simulation takes too long, so pieces are made larger */
#define MOST_MESSAGES (1 << 20)

/* Return the largest number of messages that one of some sampled ranks sends. */
static double messages_of(const struct coll__algo *algo,
                          const struct coll__problem *pbs, size_t chunk)
{
    int p = pbs[0].nranks, step = p > 8 ? p / 8 : 1, most = 0;

    for (int r = 0; r < p; r += step) {
        struct coll__plan plan;
        int n = 0;

        if (coll__plan_build(algo, &pbs[r], chunk, &plan))
            return 0;
        for (int i = 0; i < plan.n_steps; i++)
            n += plan.steps[i].kind == STEP_SEND;
        coll__plan_fini(&plan);
        most = n > most ? n : most;
    }
    return most;
}

/* Choose the length of the pipeline's pieces, so that the simulation ends soon. */
static size_t affordable_chunk(const struct coll__algo *algo,
                               const struct coll__problem *pbs, size_t chunk)
{
    while (chunk && chunk < coll__problem_bytes(&pbs[0]) &&
           pbs[0].nranks * messages_of(algo, pbs, chunk) > MOST_MESSAGES)
        chunk *= 2;
    return chunk;
}

static void print_result(const struct machine *m,
                         const struct coll__problem *pb,
                         const struct coll__algo *algo, double predicted,
                         const struct coll__sim_result *r)
{
    char time[24], size[24], name[COLL__LINK_NAME] = "";

    printf("%s %s of %s over %d ranks\nmachine %s\n",
           coll_collective_name(pb->collective), algo->name,
           bytes_text(coll__problem_bytes(pb), size), pb->nranks, m->what);
    printf("simulated  %s\n", seconds_text(r->seconds, time));
    printf("predicted  %s (%.2f of it)\n", seconds_text(predicted, time),
           r->seconds > 0 ? predicted / r->seconds : 1);
    printf("sent       %ld messages, %s", r->n_messages,
           bytes_text((size_t)r->bytes, size));
    if (m->view.chunk)
        printf(", in pieces of %s at most", bytes_text(m->view.chunk, size));
    printf("\n");
    if (r->busiest >= 0) {
        coll__fabric_link_name(m->fabric, r->busiest, name);
        printf("busiest    %s, for %s\n", name, seconds_text(r->busy, time));
    }
    printf("last       rank %d\n", r->last_rank);
}

static int simulate_problem(const struct job *job, struct machine *m,
                            const struct coll__problem *pbs)
{
    const struct coll__problem *pb = &pbs[0];
    const struct coll__algo *algo = choose(job, pb);
    struct coll__sim_result result;
    double predicted;

    if (!algo)
        return 1;
    m->view.chunk = affordable_chunk(algo, pbs, job->chunk);
    if (coll__sim_run(algo, pb, m->fabric, job->placement, &result))
        return say_last();
    predicted = algo->cost(pb);
    if (job->json)
        return json_simulate(job, m, algo, predicted, &result);
    print_result(m, pb, algo, predicted, &result);
    return 0;
}

int simulate(const struct job *job)
{
    struct machine m;
    struct cast cast;
    int rc;

    if (!job->topology)
        return say(2, "--simulate needs the links of a --topology FILE");
    if (coll__has_in_counts(job->collective) ||
        coll__has_out_counts(job->collective))
        return say(2, "--simulate takes no collective whose name ends in v; "
                   "take the one without");
    rc = machine_init(&m, job, job->ranks);
    if (rc)
        return rc;
    rc = cast_init(&cast, job, &m);
    if (!rc) {
        rc = simulate_problem(job, &m, cast.pbs);
        cast_fini(&cast);
    }
    machine_fini(&m);
    return rc;
}
