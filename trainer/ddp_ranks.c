/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_ranks.c - which ranks there are: they join, and some die. */
#include "trainer/ddp.h"
#include "coll/coll.h"
#include "trainer/error.h"

/* Return the cause that a collective's status stands for. */
static enum train_cause cause_of(int status)
{
    return status == COLL_ERR_INVALID  ? CAUSE_USER
           : status == COLL_ERR_NOMEM  ? CAUSE_MACHINE
           : status == COLL_ERR_SYSTEM ? CAUSE_MACHINE
                                       : CAUSE_RANKS;
}

/* After an error the communicator can only be shrunk or destroyed. */
int ddp__check(struct ddp *d, int status)
{
    const char *why = coll_last_error();

    if (status == COLL_OK)
        return 0;
    d->has_failed = 1;
    d->has_lost = status == COLL_ERR_PEER || status == COLL_ERR_ABORTED;
    return train_fail_by(cause_of(status), "%s",
                         *why ? why : coll_strerror(status));
}

void ddp_adopt(struct ddp *d, struct coll_comm *comm)
{
    *d = (struct ddp){
        .comm = comm,
        .rank = coll_comm_rank(comm),
        .size = coll_comm_size(comm),
        .n_hosts = coll_comm_n_hosts(comm),
    };
}

int ddp_init(struct ddp *d, int reproducible)
{
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = reproducible};
    struct coll_comm *comm;

    *d = (struct ddp){.size = 1, .n_hosts = 1};
    if (ddp__check(d, coll_comm_create_env(&comm, &config)))
        return -1;
    ddp_adopt(d, comm);
    return 0;
}

int ddp_fini(struct ddp *d)
{
    int st = d->comm ? coll_comm_destroy(d->comm) : COLL_OK;

    d->comm = NULL;
    return d->has_failed ? -1 : ddp__check(d, st);
}

int ddp_shrink(struct ddp *d)
{
    struct coll_comm *rest;
    struct ddp was;
    int st;

    ddp_drop_buckets(d);
    st = ddp__check(
        d, coll_comm_shrink(d->comm, NULL, 0, COLL_SHRINK_ABORT, &rest));
    if (st) {
        d->has_lost = 0;
        return -1;
    }
    coll_comm_destroy(d->comm); /* its status is that of the ranks that died */
    was = *d;
    ddp_adopt(d, rest);
    d->is_elastic = was.is_elastic;
    d->seconds = was.seconds;
    d->bytes = was.bytes;
    return 0;
}

const char *ddp_transports(const struct ddp *d)
{
    return coll_comm_transports(d->comm);
}

int ddp_local_rank(const struct ddp *d)
{
    return coll_comm_local_rank(d->comm);
}

int ddp_local_size(const struct ddp *d)
{
    return coll_comm_local_size(d->comm);
}

int ddp_has_spare_core(const struct ddp *d)
{
    return coll_comm_has_spare_core(d->comm);
}

int ddp_host(const struct ddp *d) { return coll_comm_host(d->comm); }
