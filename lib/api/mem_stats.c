/* SPDX-License-Identifier: BSD-3-Clause */
/* mem_stats.c - what a communicator holds of memory: each part says its own. */
#include "lib/comm/comm.h"
#include "lib/run/owner.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <string.h>

/* Of requests that the caller has made; a stream's have no program. */
static void add_own(const struct coll_comm *comm, struct coll_mem_stats *stats)
{
    for (const struct coll_request *r = comm->own; r; r = r->own_next) {
        stats->plans += r->bytes;
        stats->scratch += r->tmp_len;
    }
}

void coll__comm_bytes(const struct coll_comm *comm,
                      struct coll_mem_stats *stats)
{
    stats->plans += comm->cache.bytes;
    stats->scratch += comm->cache.pool.bytes;
    add_own(comm, stats);
    for (int c = 0; c < COLL__CHANNELS; c++)
        stats->scratch += comm->queues[c].stage_len;
    for (int t = 0; t < comm->routes.n_all; t++)
        stats->shared += comm->tps[t]->shared;
    coll__stream_bytes(comm, stats);
    coll__subcomms_bytes(comm, stats);
}

static int mem_stats(struct coll_comm *comm, struct coll_mem_stats *stats)
{
    struct coll_mem_stats ours;
    int rc;

    if (!comm || !stats) {
        log_error("api", "coll_comm_mem_stats: %s is NULL",
                  comm ? "stats" : "comm");
        return COLL_ERR_INVALID;
    }
    if (coll__comm_is_inherited(comm))
        return coll__comm_inherited("coll_comm_mem_stats");
    rc = coll__struct_take(stats, &ours, sizeof(ours), "mem_stats");
    if (rc)
        return rc;
    ours = (struct coll_mem_stats){.size = ours.size};
    rc = coll__owner_enter(comm, "coll_comm_mem_stats");
    if (rc)
        return rc;
    coll__comm_bytes(comm, &ours);
    coll__owner_release(comm);
    memcpy(stats, &ours, min_size(ours.size, sizeof(ours)));
    return COLL_OK;
}

int coll_comm_mem_stats(struct coll_comm *comm, struct coll_mem_stats *stats)
{
    return coll__log_done(mem_stats(comm, stats));
}
