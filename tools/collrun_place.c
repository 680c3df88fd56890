/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_place.c - the run's name, and which of the job's ranks start on this machine. */
#include "tools/collrun_fleet.h"
#include "tools/collrun_hosts.h"
#include "tools/collrun_job.h"
#include "tools/collrun_nodes.h"

#include "lib/net/auth.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void place_name_run(const struct options *options, char name[PLACE_RUN_ID])
{
    const char *given = options->run_id          ? options->run_id
                        : options->endpoint_host ? "none"
                                                 : NULL;
    unsigned char bytes[8];

    if (given) {
        snprintf(name, PLACE_RUN_ID, "%s", given);
        return;
    }
    coll__auth_random(bytes, sizeof(bytes));
    coll__auth_hex(bytes, sizeof(bytes), name);
}

/* A rank started by another launcher gets its number from that launcher's variables. */
static int number_by_launcher(void)
{
    static const char *const names[] = {"PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    const char *text = NULL;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !text; i++)
        text = getenv(names[i]);
    return text ? atoi(text) : -1;
}

/* Run as one rank started by srun or mpirun, which sees the GPUs of its host's slots. */
static int find_place_within(struct job *job, const struct options *options)
{
    char *list = options->slots ? strdup(options->slots) : NULL;
    const char *slots;

    job->first = number_by_launcher();
    job->size = options->is_within;
    if (job->first < 0 || job->first >= job->size) {
        complain("the launcher has told no number of a rank below %d",
                 job->size);
        return EXIT_FAILURE;
    }
    slots = list ? hosts_find_slots(list, job->first) : NULL;
    if (slots && *slots)
        setenv("CUDA_VISIBLE_DEVICES", slots, 1);
    free(list);
    return 0;
}

/* Meet the other nodes.  Node 0's options count. */
static int find_place_among_nodes(struct job *job,
                                  const struct options *options)
{
    int status = nodes_meet(options, job->setting.run_id, &job->nodes);
    const struct order *order;

    if (status)
        return status;
    order = &job->nodes->order;
    job->first = order->first;
    job->size = order->size;
    if (order->node) {
        job->restarts.most = order->max_restarts;
        job->restarts.min_np = order->min_np;
    }
    return 0;
}

/* Start a collrun on each other host.  The options are those of node 0 then. */
static int find_place_of_fleet(struct job *job, const struct options *options)
{
    struct fleet *fleet;
    int status = fleet_plan(options, job->setting.run_id, &fleet);

    if (status)
        return status;
    job->options = fleet_options(fleet);
    job->n = job->options->n;
    return find_place_among_nodes(job, job->options);
}

/* Do --min-np and --max-np allow for the ranks with which the job begins? */
static int judge_limits(struct job *job)
{
    struct restarts *r = &job->restarts;

    if (!r->max_np)
        r->max_np = job->options->discovery_script ? INT_MAX : job->size;
    if (!r->min_np || (r->min_np <= job->size && job->size <= r->max_np))
        return 0;
    complain("--min-np %d, %d ranks, --max-np %d: each must be no larger than "
             "the next",
             r->min_np, job->size, r->max_np);
    return EXIT_USAGE;
}

int place_find(struct job *job, const struct options *options)
{
    int status;

    job->size = job->n;
    job->restarts.min_np = options->min_np;
    job->restarts.max_np = options->max_np;
    if (options->is_within)
        return find_place_within(job, options);
    if (options->hosts || options->hostfile || options->discovery_script) {
        status = find_place_of_fleet(job, options);
        if (status)
            return status;
    } else if (options->endpoint_host) {
        status = find_place_among_nodes(job, options);
        if (status || job->nodes->order.node)
            return status;
    }
    status = judge_limits(job);
    if (status)
        nodes_close(job->nodes);
    return status;
}
