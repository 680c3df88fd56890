/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_query.c - coll_plan_query(), coll_plan_candidate(). */
#include "lib/price/select.h"
#include "lib/run/args.h"
#include "lib/run/request.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <string.h>

/* Judge a question's arguments; *ours is the answer so far. */
static int take_question(const char *who, const struct coll_args *theirs,
                         struct coll_comm *comm, struct coll_plan_info *info,
                         struct coll_args *args, struct coll__problem *pb,
                         struct coll_plan_info *ours)
{
    int rc;

    if (!theirs || !comm || !info) {
        log_error("api", "%s: %s is NULL", who,
                  !theirs ? "args"
                  : !comm ? "comm"
                          : "info");
        return COLL_ERR_INVALID;
    }
    if (coll__comm_is_inherited(comm))
        return coll__comm_inherited(who);
    rc = coll__struct_take(info, ours, sizeof(*ours), "plan_info");
    if (rc == COLL_OK)
        rc = coll__struct_take(theirs, args, sizeof(*args), "args");
    if (rc == COLL_OK)
        rc = coll__args_check(args, comm, pb);
    if (rc == COLL_OK && coll__is_stream_call(args) && coll__stream_calls &&
        coll__stream_calls->view(comm))
        pb->view = coll__stream_calls->view(comm);
    *ours = (struct coll_plan_info){.size = ours->size};
    return rc;
}

static void answer(struct coll_plan_info *ours, const char *algorithm,
                   struct coll_plan_info *info)
{
    strncpy(ours->algorithm, algorithm, sizeof(ours->algorithm) - 1);
    memcpy(info, ours, min_size(ours->size, sizeof(*ours)));
}

static int query(const struct coll_args *theirs, struct coll_comm *comm,
                 struct coll_plan_info *info)
{
    struct coll_plan_info ours;
    struct coll__problem pb;
    struct coll__plan plan;
    struct coll_args args;
    int rc =
        take_question("coll_plan_query", theirs, comm, info, &args, &pb, &ours);

    if (rc == COLL_OK)
        rc = coll__request_plan(comm, &args, &pb, &plan, &ours.seconds);
    if (rc)
        return rc;
    ours.n_steps = (size_t)plan.n_steps;
    ours.tmp_bytes = plan.tmp_len;
    answer(&ours, plan.algorithm, info);
    coll__plan_fini(&plan);
    return COLL_OK;
}

int coll_plan_query(const struct coll_args *theirs, struct coll_comm *comm,
                    struct coll_plan_info *info)
{
    return coll__log_done(query(theirs, comm, info));
}

#define MAX_CANDIDATES 64

static int candidate(const struct coll_args *theirs, struct coll_comm *comm,
                     size_t index, struct coll_plan_info *info)
{
    struct coll__candidate list[MAX_CANDIDATES];
    struct coll_plan_info ours;
    struct coll__problem pb;
    struct coll_args args;
    int n, rc = take_question("coll_plan_candidate", theirs, comm, info, &args,
                              &pb, &ours);

    if (rc)
        return rc;
    n = coll__algo_candidates(&pb, "", list, MAX_CANDIDATES);
    if (index >= (size_t)n || list[index].refusal)
        return COLL_ERR_INVALID;
    ours.seconds = list[index].seconds;
    answer(&ours, list[index].algo->name, info);
    return COLL_OK;
}

int coll_plan_candidate(const struct coll_args *theirs, struct coll_comm *comm,
                        size_t index, struct coll_plan_info *info)
{
    return coll__log_done(candidate(theirs, comm, index, info));
}
