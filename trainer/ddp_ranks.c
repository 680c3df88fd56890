/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp_ranks.c - which ranks there are: they join, some die, and newcomers take their
 * places.
 *
 * A growth gives all ranks a larger communicator, or none of them.  In the second case they
 * shrink the one that they have, with those that have seen a rank die before.  Newcomers
 * that could not join end, and the launcher starts others.
 */
#include "trainer/ddp.h"
#include "coll/coll.h"
#include "trainer/error.h"

#include <stdlib.h>

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
        .n_first = coll_comm_size(comm),
        .n_hosts = coll_comm_n_hosts(comm),
    };
}

/* Have another communicator in place of the one that there is, if any. */
static void replace(struct ddp *d, struct coll_comm *comm)
{
    struct ddp was = *d;

    if (was.comm)
        coll_comm_destroy(was.comm); /* its status is that of dead ranks */
    ddp__release_packed(&was);
    ddp_adopt(d, comm);
    d->n_first = was.n_first ? was.n_first : d->size;
    d->is_newcomer = was.is_newcomer;
    d->has_gpus = was.has_gpus;
    d->is_elastic = was.is_elastic;
    d->device = was.device;
    d->log = was.log;
    d->bytes = was.bytes;
}

/* ---- joining --------------------------------------------------------------- */

int ddp_is_newcomer(void)
{
    const char *number = getenv("COLLRUN_NEWCOMER");

    return number && *number;
}

/* The ranks tell newcomers what these cannot know. */
static int share_beginning(struct ddp *d)
{
    uint64_t words[] = {(uint64_t)d->n_first, (uint64_t)d->has_gpus};

    if (ddp_share_words(d, words, 2))
        return -1;
    d->n_first = (int)words[0];
    d->has_gpus = (int)words[1];
    return 0;
}

int ddp_init(struct ddp *d, int reproducible)
{
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = reproducible};
    struct coll_comm *comm;

    *d =
        (struct ddp){.size = 1, .n_hosts = 1, .is_newcomer = ddp_is_newcomer()};
    if (ddp__check(d, coll_comm_create_env(&comm, &config)))
        return -1;
    replace(d, comm);
    return d->is_newcomer ? share_beginning(d) : 0;
}

void ddp_leave(struct ddp *d)
{
    d->has_failed = 1;
    coll_comm_abort(d->comm, train_error());
}

int ddp_fini(struct ddp *d)
{
    int st = d->comm ? coll_comm_destroy(d->comm) : COLL_OK;

    d->comm = NULL;
    return d->has_failed ? -1 : ddp__check(d, st);
}

/* ---- ranks that die, and newcomers ------------------------------------------ */

int ddp_waiting(struct ddp *d)
{
    int n;

    if (!d->is_elastic || d->rank > 0 || coll_comm_waiting(d->comm, &n))
        return 0; /* without the launcher there are none */
    return n;
}

int ddp_shrink(struct ddp *d)
{
    struct coll_comm *rest;

    ddp_drop_buckets(d);
    if (ddp__check(
            d, coll_comm_shrink(d->comm, NULL, 0, COLL_SHRINK_ABORT, &rest))) {
        d->has_lost = 0;
        return -1;
    }
    replace(d, rest);
    return 0;
}

int ddp_grow(struct ddp *d, int n)
{
    struct coll_comm *grown;

    ddp_drop_buckets(d);
    if (ddp__check(d, coll_comm_grow(d->comm, n, NULL, &grown))) {
        d->has_lost = 1;
        return -1;
    }
    replace(d, grown);
    return share_beginning(d);
}

int ddp_renew(struct ddp *d)
{
    struct coll_comm *same;

    ddp_drop_buckets(d);
    if (ddp__check(d, coll_comm_dup(d->comm, &same)))
        return -1;
    replace(d, same);
    return 0;
}

/* ---- where they are --------------------------------------------------------- */

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
