/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c - the life of what lib/run keeps on a communicator. */
#include "lib/run/run.h"
#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/exec/routes.h"
#include "lib/run/any_order.h"
#include "lib/run/owner.h"
#include "lib/run/request.h"
#include "lib/run/stream_calls.h"
#include "lib/run/tagged.h"
#include "lib/trace/log.h"
#include "lib/util/param.h"

#include <stdlib.h>
#include <string.h>

static int run_open(struct coll_comm *comm)
{
    struct coll__run *run = calloc(1, sizeof(*run));
    size_t n = (size_t)comm->size;

    if (!run)
        return COLL_ERR_NOMEM;
    comm->run = run;
    run->cache.most = coll__param_bytes(PARAM_CACHE);
    for (int c = 0; c < COLL__CHANNELS; c++)
        run->queues[c].last = &run->queues[c].first;
    coll__ended_init(&run->ended);
    run->packed = calloc(2 * n, sizeof(*run->packed));
    run->sorter.scratch = calloc(3 * n, sizeof(*run->sorter.scratch));
    return run->packed && run->sorter.scratch ? COLL_OK : COLL_ERR_NOMEM;
}

/* Is the progress thread wanted from the start? */
static int wants_thread(const struct coll__options *options)
{
    const struct coll_comm *parent = options->parent;

    return options->wants_thread || (parent && parent->run->has_thread > 0) ||
           !strcmp(coll__param_text(PARAM_PROGRESS), "thread");
}

static int run_join(struct coll_comm *comm, const struct coll__options *options,
                    const int32_t *told)
{
    const struct coll__routes *routes = &comm->links.routes;

    (void)told;
    coll__wait_init(&comm->run->wait, routes->is_shared, routes);
    comm->run->wait.is_brief = comm->idle.run != NULL;
    return wants_thread(options) ? coll__comm_take_thread(comm) : COLL_OK;
}

/* Find the call with this number that runs or waits on the channel; NULL: there is
 * none. */
static const struct coll__signature *run_find(const struct coll_comm *comm,
                                              int channel, uint64_t seq)
{
    const struct coll_request *r = comm->run->queues[channel].first;

    while (r && r->call.sig.seq != seq)
        r = r->next;
    return r ? &r->call.sig : NULL;
}

static int run_drain(struct coll_comm *comm)
{
    if (!comm->run->n_running)
        return COLL_OK;
    coll__comm_fail(comm, COLL_ERR_ABORTED,
                    "rank %d destroyed the "
                    "communicator while a request was running",
                    comm->rank);
    return COLL_ERR_INVALID;
}

static int run_leave(struct coll_comm *comm)
{
    if (coll__comm_has_failed(comm))
        return COLL_OK;
    if (!comm->run->own)
        return coll__tagged_leave(comm);
    log_error("api", "the communicator still has requests; destroy them "
                     "first");
    return COLL_ERR_INVALID;
}

/* Other threads move it no more. */
static int run_end(struct coll_comm *comm)
{
    if (!comm->run)
        return COLL_OK;
    coll__owner_end(comm);
    coll__comm_drop_thread(comm);
    return COLL_OK;
}

static int run_free(struct coll_comm *comm)
{
    struct coll__run *run = comm->run;

    if (!run)
        return COLL_OK;
    coll__requests_forget_own(comm);
    coll__cache_forget(comm);
    coll__tagged_forget(comm);
    coll__any_order_forget(comm);
    free(run->packed);
    free(run->sorter.scratch);
    for (int c = 0; c < COLL__CHANNELS; c++)
        free(run->queues[c].stage);
    free(run);
    comm->run = NULL;
    return COLL_OK;
}

static void run_bytes(const struct coll_comm *comm,
                      struct coll_mem_stats *stats)
{
    const struct coll__run *run = comm->run;

    stats->plans += run->cache.bytes + coll__any_order_bytes(comm);
    stats->scratch += run->cache.pool.bytes + coll__tagged_bytes(comm);
    for (const struct coll_request *r = run->own; r; r = r->own_next)
        if (r->kind != REQUEST_KEPT) {
            stats->plans += coll__request_bytes(r);
            stats->scratch += r->tmp_len;
        }
    for (int c = 0; c < COLL__CHANNELS; c++)
        stats->scratch += run->queues[c].stage_len;
}

const struct coll__attachment coll__run_attachment = {
    .life = {[LIFE_OPEN] = run_open,
             [LIFE_DRAIN] = run_drain,
             [LIFE_LEAVE] = run_leave,
             [LIFE_END] = run_end,
             [LIFE_FREE] = run_free},
    .join = run_join,
    .find = run_find,
    .n_starts = coll__any_order_n_starts,
    .bytes = run_bytes,
};

int coll__stream_calls_there(const struct coll_args *args)
{
    if (coll__stream_calls)
        return COLL_OK;
    log_error("api",
              "%s: stream must be NULL, this libcoll was built without "
              "CUDA; install its headers (nvidia-cuda-dev) and configure again",
              coll_collective_name(args->collective));
    return COLL_ERR_UNSUPPORTED;
}
