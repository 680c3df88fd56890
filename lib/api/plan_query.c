/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_query.c - coll_plan_query(), coll_plan_candidate(). */
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/price/select.h"
#include "lib/run/args.h"
#include "lib/run/request.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <string.h>

/* A question about a call's plan. */
struct question {
    struct coll_args args;
    struct coll__problem pb;
    struct coll_plan_info answer;
};

/* Check a query's arguments; only the size of q->answer is set. */
static int take_question(const char *who, const struct coll_args *theirs,
                         struct coll_comm *comm,
                         const struct coll_plan_info *info, struct question *q)
{
    struct coll__problem *pb = &q->pb;
    struct coll_args *args = &q->args;
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
    rc = coll__struct_take(info, &q->answer, sizeof(q->answer), "plan_info");
    if (rc == COLL_OK)
        rc = coll__struct_take(theirs, args, sizeof(*args), "args");
    if (rc == COLL_OK)
        rc = coll__args_check(args, comm, pb);
    if (rc == COLL_OK && coll__is_stream_call(args) && coll__stream_calls &&
        coll__stream_calls->view(comm))
        pb->view = coll__stream_calls->view(comm);
    q->answer = (struct coll_plan_info){.size = q->answer.size};
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
    struct question q;
    struct coll__plan plan;
    int rc = take_question("coll_plan_query", theirs, comm, info, &q);

    if (rc == COLL_OK)
        rc = coll__request_plan(comm, &q.args, &q.pb, &plan,
                                &q.answer.seconds);
    if (rc)
        return rc;
    q.answer.n_steps = (size_t)plan.n_steps;
    q.answer.tmp_bytes = plan.tmp_len;
    answer(&q.answer, plan.algorithm, info);
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
    struct question q;
    int n, rc = take_question("coll_plan_candidate", theirs, comm, info, &q);

    if (rc)
        return rc;
    n = coll__algo_candidates(&q.pb, "", list, MAX_CANDIDATES);
    if (index >= (size_t)n || list[index].refusal)
        return COLL_ERR_INVALID;
    q.answer.seconds = list[index].seconds;
    answer(&q.answer, list[index].algo->name, info);
    return COLL_OK;
}

int coll_plan_candidate(const struct coll_args *theirs, struct coll_comm *comm,
                        size_t index, struct coll_plan_info *info)
{
    return coll__log_done(candidate(theirs, comm, index, info));
}
