/* SPDX-License-Identifier: BSD-3-Clause */
/* comms.c - communicators: create, split, query, abort, destroy. */
#include "lib/boot/boot.h"
#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/destroy.h"
#include "lib/comm/fail.h"
#include "lib/comm/split.h"
#include "lib/run/args.h"
#include "lib/run/group.h"
#include "lib/run/owner.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/param.h"

/* ---- making one ---------------------------------------------------------- */

/* Take the caller's options, or the defaults, before a communicator is made. */
static int take_config(const struct coll_config *config,
                       struct coll__options *options)
{
    struct coll_config ours = {0};
    int rc = COLL_OK;

    coll__files_fill_standard();
    if (config)
        rc = coll__struct_take(config, &ours, sizeof(ours), "config");
    if (rc)
        return rc;
    if (!(ours.timeout >= 0 && ours.timeout <= 1e9)) {
        log_error("api", "config.timeout must be 0 to 1e9 seconds");
        return COLL_ERR_INVALID;
    }
    if (ours.reproducible != 0 && ours.reproducible != 1) {
        log_error("api", "config.reproducible must be 0 or 1");
        return COLL_ERR_INVALID;
    }
    if (ours.deferred != 0 && ours.deferred != 1) {
        log_error("api", "config.deferred must be 0 or 1");
        return COLL_ERR_INVALID;
    }
    if (ours.progress_thread != 0 && ours.progress_thread != 1) {
        log_error("api", "config.progress_thread must be 0 or 1");
        return COLL_ERR_INVALID;
    }
    *options = (struct coll__options){
        .timeout =
            ours.timeout ? ours.timeout : coll__param_seconds(PARAM_TIMEOUT),
        .is_reproducible = ours.reproducible,
        .is_deferred = ours.deferred,
        .wants_thread = ours.progress_thread,
        .idle = {ours.idle, ours.idle_arg},
    };
    return COLL_OK;
}

static int create_env(struct coll_comm **comm, const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll__options options;
    int rc;

    if (!comm) {
        log_error("api", "coll_comm_create_env: comm is NULL");
        return COLL_ERR_INVALID;
    }
    rc = take_config(config, &options);
    if (rc == COLL_OK)
        rc = coll__boot_open_env(&boot, options.timeout);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

int coll_comm_create_env(struct coll_comm **comm,
                         const struct coll_config *config)
{
    return coll__log_done(create_env(comm, config));
}

static int create(struct coll_comm **comm, int nranks,
                  const struct coll_unique_id *id, int rank,
                  const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll__options options;
    int rc;

    if (!comm || !id) {
        log_error("api", "coll_comm_create: %s is NULL", comm ? "id" : "comm");
        return COLL_ERR_INVALID;
    }
    rc = coll__place_check("coll_comm_create", nranks, rank);
    if (rc == COLL_OK)
        rc = take_config(config, &options);
    if (rc)
        return rc;
    boot = (struct coll__boot){.timeout = options.timeout};
    rc = coll__boot_open_id(&boot, id, nranks, rank);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

int coll_comm_create(struct coll_comm **comm, int nranks,
                     const struct coll_unique_id *id, int rank,
                     const struct coll_config *config)
{
    return coll__log_done(create(comm, nranks, id, rank, config));
}

static int create_handles(struct coll_comm **comm, int nranks,
                          const struct coll_handle handles[], int rank,
                          uint64_t uuid, const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll__options options;
    int rc;

    if (!comm || !handles) {
        log_error("api", "coll_comm_create_handles: %s is NULL",
                  comm ? "handles" : "comm");
        return COLL_ERR_INVALID;
    }
    rc = coll__place_check("coll_comm_create_handles", nranks, rank);
    if (rc == COLL_OK)
        rc = take_config(config, &options);
    if (rc)
        return rc;
    boot = (struct coll__boot){.timeout = options.timeout};
    rc = coll__boot_open_handles(&boot, handles, nranks, rank, uuid);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

int coll_comm_create_handles(struct coll_comm **comm, int nranks,
                             const struct coll_handle handles[], int rank,
                             uint64_t uuid, const struct coll_config *config)
{
    return coll__log_done(
        create_handles(comm, nranks, handles, rank, uuid, config));
}

static int create_oob(struct coll_comm **comm, const struct coll_oob *theirs,
                      const struct coll_config *config)
{
    struct coll__boot boot;
    struct coll_oob oob;
    struct coll__options options;
    int rc;

    if (!comm || !theirs) {
        log_error("api", "coll_comm_create_oob: %s is NULL",
                  comm ? "oob" : "comm");
        return COLL_ERR_INVALID;
    }
    rc = coll__struct_take(theirs, &oob, sizeof(oob), "oob");
    if (rc == COLL_OK && (oob.nranks < 1 || oob.rank < 0 ||
                          oob.rank >= oob.nranks || !oob.allgather)) {
        log_error("api", "coll_comm_create_oob: it needs 0 <= rank < nranks "
                         "and an allgather function");
        rc = COLL_ERR_INVALID;
    }
    if (rc == COLL_OK)
        rc = take_config(config, &options);
    if (rc == COLL_OK)
        rc = coll__boot_open_oob(&boot, &oob, options.timeout);
    return rc ? rc : coll__comm_open(&boot, &options, comm);
}

int coll_comm_create_oob(struct coll_comm **comm, const struct coll_oob *theirs,
                         const struct coll_config *config)
{
    return coll__log_done(create_oob(comm, theirs, config));
}

/* ---- splitting one ------------------------------------------------------- */

/* The ranks meet not as owner: until the last one has come, others carry what streams
 * have left to be sent. */
static int split(struct coll_comm *comm, const char *who, int color, int key,
                 struct coll_comm **part)
{
    struct coll__split wanted = {.color = color, .key = key};
    int rc = coll__comm_check(comm, who);

    if (rc == COLL_OK)
        rc = coll__owner_enter(comm, who);
    if (rc)
        return rc;
    if (!part)
        wanted.fault = SPLIT_NULL;
    else if (comm->run->n_running)
        wanted.fault = SPLIT_RUNNING;
    else if (color < 0 && color != COLL_NO_COLOR)
        wanted.fault = SPLIT_COLOR;
    coll__owner_release(comm);
    rc = coll__comm_status(comm);
    return rc ? rc : coll__comm_split(comm, who, &wanted, part);
}

int coll_comm_split(struct coll_comm *comm, int color, int key,
                    struct coll_comm **part)
{
    return coll__log_done(split(comm, "coll_comm_split", color, key, part));
}

int coll_comm_dup(struct coll_comm *comm, struct coll_comm **dup)
{
    return coll__log_done(split(comm, "coll_comm_dup", 0, 0, dup));
}

/* ---- failing and destroying one ------------------------------------------ */

static int abort_comm(struct coll_comm *comm, const char *why)
{
    int rc = coll__comm_check(comm, "coll_comm_abort");

    if (rc)
        return rc;
    coll__comm_fail(comm, COLL_ERR_ABORTED, "rank %d aborted: %s", comm->rank,
                    why ? why : "no reason given");
    return COLL_OK;
}

int coll_comm_abort(struct coll_comm *comm, const char *why)
{
    return coll__log_done(abort_comm(comm, why));
}

static int async_error(struct coll_comm *comm)
{
    int rc = coll__comm_check(comm, "coll_comm_async_error");

    if (rc)
        return rc;
    coll__attachments_hear(comm);
    return coll__comm_status(comm);
}

int coll_comm_async_error(struct coll_comm *comm)
{
    return coll__log_done(async_error(comm));
}

static int destroy(struct coll_comm *comm)
{
    int rc, forgot;

    if (!comm)
        return COLL_OK;
    forgot = coll__group_forget(comm);
    if (coll__comm_is_inherited(comm)) {
        coll__comm_abandon(comm);
        return forgot;
    }
    rc = coll__owner_enter(comm, "coll_comm_destroy");
    if (rc == COLL_OK)
        rc = coll__comm_destroy(comm);
    return rc ? rc : forgot;
}

int coll_comm_destroy(struct coll_comm *comm)
{
    return coll__log_done(destroy(comm));
}

/* ---- questions ----------------------------------------------------------- */

int coll_comm_rank(const struct coll_comm *comm) { return comm->rank; }

int coll_comm_size(const struct coll_comm *comm) { return comm->size; }

int coll_comm_local_rank(const struct coll_comm *comm)
{
    return comm->peers[comm->rank].local_rank;
}

int coll_comm_local_size(const struct coll_comm *comm)
{
    return comm->peers[comm->rank].local_size;
}

int coll_comm_host(const struct coll_comm *comm)
{
    return comm->peers[comm->rank].host;
}

int coll_comm_n_hosts(const struct coll_comm *comm) { return comm->n_hosts; }

const char *coll_comm_transports(const struct coll_comm *comm)
{
    return comm->links.names;
}

int coll_comm_has_spare_core(const struct coll_comm *comm)
{
    return coll__comm_has_spare_core(comm);
}
