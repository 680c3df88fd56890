/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - prove the plans of a file, or those of the chosen algorithm. */
#include "tools/plan/tool.h"

#include <stdio.h>

#define N_SEEDS 3

static int judge(const struct job *job, const struct coll__plans *plans,
                 const char *name)
{
    const struct coll__problem *pb = &plans->pbs[0];
    char why[256] = "";
    int rc = coll__plans_check(plans, N_SEEDS, why, sizeof(why));
    long n_steps = 0;
    int n_slots = 0; /* none: not in this order */

    if (rc == COLL_OK &&
        coll__plans_slots(plans->plans, pb->nranks, &n_slots) == COLL_ERR_NOMEM)
        return say_last();
    for (int r = 0; r < pb->nranks; r++)
        n_steps += plans->plans[r].n_steps;
    if (job->json)
        json_check(plans, rc ? why : NULL, n_slots);
    if (rc)
        return say(1, "%s: %s", name, why);
    if (!job->json)
        printf("proven: %s %s of %zu %s over %d ranks, %ld steps\n",
               coll_collective_name(pb->collective), plans->algorithm,
               pb->count, coll_type_name(pb->type), pb->nranks, n_steps);
    if (!job->json && n_slots)
        printf("run as listed, it needs room for %d message%s from one rank "
               "to another\n",
               n_slots, n_slots > 1 ? "s" : "");
    else if (!job->json)
        puts("it cannot be run as listed, only as its edges allow");
    return 0;
}

static int check_file(const struct job *job)
{
    struct coll__plans plans;
    int rc;

    if (coll__plans_load(job->file, &plans))
        return say_last();
    rc = judge(job, &plans, job->file);
    coll__plans_fini(&plans);
    return rc;
}

static int check_built(const struct job *job, const struct cast *cast)
{
    const struct coll__algo *algo = choose(job, &cast->pbs[0]);
    struct coll__plans plans;
    int rc;

    if (!algo)
        return 1;
    if (coll__plans_build(&plans, algo, cast->pbs, job->chunk))
        return say_last();
    rc = judge(job, &plans, algo->name);
    coll__plans_fini(&plans);
    return rc;
}

int check(const struct job *job)
{
    struct machine m;
    struct cast cast;
    int rc;

    if (job->file)
        return check_file(job);
    rc = machine_init(&m, job, job->ranks);
    if (rc)
        return rc;
    rc = cast_init(&cast, job, &m);
    if (!rc) {
        rc = check_built(job, &cast);
        cast_fini(&cast);
    }
    machine_fini(&m);
    return rc;
}
