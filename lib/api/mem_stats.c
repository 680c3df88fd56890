/* SPDX-License-Identifier: BSD-3-Clause */
/* mem_stats.c - a communicator's memory: each module adds its own. */
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/run/args.h"
#include "lib/run/owner.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <string.h>

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
