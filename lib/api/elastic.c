/* SPDX-License-Identifier: BSD-3-Clause */
/* elastic.c - communicators that lose ranks and get new ones. */
#include "lib/boot/boot.h"
#include "lib/boot/lobby.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/comm/shrink.h"
#include "lib/ctrl/agree.h"
#include "lib/ctrl/ctrl.h"
#include "lib/net/words.h"
#include "lib/run/owner.h"
#include "lib/trace/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t *set_of(const struct coll_comm *comm)
{
    uint64_t *set = calloc((size_t)coll__set_words(comm->size), sizeof(*set));

    if (!set)
        log_error("api", "no memory for %d ranks", comm->size);
    return set;
}

static int failed(struct coll_comm *comm, int ranks[], int *n)
{
    int rc = coll__comm_check(comm, "coll_comm_failed"), most;
    uint64_t *dead;

    if (rc)
        return rc;
    if (!n || *n < 0 || (*n && !ranks)) {
        log_error("api", "coll_comm_failed: n must point to the length of "
                         "ranks");
        return COLL_ERR_INVALID;
    }
    dead = set_of(comm);
    if (!dead)
        return COLL_ERR_NOMEM;
    coll__ctrl_dead(comm->ctrl, dead);
    most = *n;
    *n = 0;
    for (int r = 0; r < comm->size; r++)
        if (coll__set_has(dead, r) && (*n)++ < most)
            ranks[*n - 1] = r;
    free(dead);
    return COLL_OK;
}

int coll_comm_failed(struct coll_comm *comm, int ranks[], int *n)
{
    return coll__log_done(failed(comm, ranks, n));
}

static int agree(struct coll_comm *comm, uint64_t *flags)
{
    int rc = coll__comm_check(comm, "coll_comm_agree");
    uint64_t *dead;

    if (rc)
        return rc;
    if (!flags) {
        log_error("api", "coll_comm_agree: flags is NULL");
        return COLL_ERR_INVALID;
    }
    if (comm->failure.shrinking) {
        log_error("api", "coll_comm_agree: coll_comm_shrink() has timed out on "
                         "this communicator; call it again first");
        return COLL_ERR_INVALID;
    }
    dead = set_of(comm);
    if (!dead)
        return COLL_ERR_NOMEM;
    rc = coll__ctrl_agree(comm->ctrl, flags, dead, comm->timeout);
    free(dead);
    return rc;
}

int coll_comm_agree(struct coll_comm *comm, uint64_t *flags)
{
    return coll__log_done(agree(comm, flags));
}

static int check_excluded(const struct coll_comm *comm, const int exclude[],
                          int n_exclude)
{
    if (n_exclude < 0 || (n_exclude && !exclude)) {
        log_error("api", "coll_comm_shrink: n_exclude must be the length of "
                         "exclude");
        return COLL_ERR_INVALID;
    }
    for (int i = 0; i < n_exclude; i++)
        if (exclude[i] < 0 || exclude[i] >= comm->size ||
            exclude[i] == comm->rank) {
            log_error("api",
                      "coll_comm_shrink: rank %d is excluded on rank %d of %d; "
                      "exclude ranks of comm that do not call it",
                      exclude[i], comm->rank, comm->size);
            return COLL_ERR_INVALID;
        }
    return COLL_OK;
}

/* End what runs, if asked to. */
static int check_idle(struct coll_comm *comm, int flags)
{
    int rc;

    if (flags & COLL_SHRINK_ABORT)
        coll__comm_fail(comm, COLL_ERR_ABORTED,
                        "rank %d aborted: its communicator is shrunk",
                        comm->rank);
    rc = coll__owner_enter(comm, "coll_comm_shrink");
    if (rc)
        return rc;
    if (comm->run->n_running && coll__comm_status(comm) == COLL_OK) {
        log_error("api", "coll_comm_shrink: operations run on comm; wait for "
                         "them, or pass COLL_SHRINK_ABORT");
        rc = COLL_ERR_INVALID;
    }
    coll__owner_release(comm);
    return rc;
}

static int shrink(struct coll_comm *comm, const int exclude[], int n_exclude,
                  int flags, struct coll_comm **rest)
{
    int rc = coll__comm_check(comm, "coll_comm_shrink");

    if (rc == COLL_OK)
        rc = check_excluded(comm, exclude, n_exclude);
    if (rc == COLL_OK && (!rest || flags & ~COLL_SHRINK_ABORT)) {
        log_error("api", "coll_comm_shrink: %s",
                  rest ? "flags must be 0 or COLL_SHRINK_ABORT"
                       : "rest is NULL");
        rc = COLL_ERR_INVALID;
    }
    if (rc == COLL_OK)
        rc = check_idle(comm, flags);
    return rc ? rc : coll__comm_shrink(comm, exclude, n_exclude, rest);
}

int coll_comm_shrink(struct coll_comm *comm, const int exclude[], int n_exclude,
                     int flags, struct coll_comm **rest)
{
    return coll__log_done(shrink(comm, exclude, n_exclude, flags, rest));
}

/* ---- growing --------------------------------------------------------------- */

static int waiting(struct coll_comm *comm, int *n)
{
    int rc = coll__comm_check(comm, "coll_comm_waiting");

    if (rc == COLL_OK && !n) {
        log_error("api", "coll_comm_waiting: n is NULL");
        rc = COLL_ERR_INVALID;
    }
    return rc ? rc : coll__lobby_count(comm->timeout, n);
}

int coll_comm_waiting(struct coll_comm *comm, int *n)
{
    return coll__log_done(waiting(comm, n));
}

/* What the ranks tell each other. */
struct wish {
    struct coll_unique_id id; /* rank 0's */
    int32_t n_new;            /* 0: this rank's arguments are wrong */
    int32_t status; /* rank 0's, of asking the launcher for newcomers */
};

static int judge_wishes(const struct wish *wishes, int rank, int size)
{
    for (int r = 0; r < size; r++)
        if (wishes[r].n_new <= 0 || wishes[r].n_new != wishes[0].n_new) {
            log_error(
                "api", "coll_comm_grow: rank %d %s", r,
                wishes[r].n_new <= 0
                    ? "passed a wrong argument: n_new must be 1 at least, "
                      "and grown not NULL"
                    : "and rank 0 passed different numbers n_new");
            return COLL_ERR_INVALID;
        }
    if (wishes[0].status && rank) /* rank 0 has said more */
        log_error("api", "coll_comm_grow: rank 0 got no newcomers from the "
                         "launcher; see its message");
    return wishes[0].status;
}

/* Exchange the wishes; *ours becomes rank 0's. */
static int exchange(struct coll_comm *comm, const struct wish *mine,
                    struct wish *ours)
{
    struct wish *all = malloc((size_t)comm->size * sizeof(*all));
    int rc;

    if (!all)
        return coll__comm_fail(comm, COLL_ERR_NOMEM,
                               "rank %d has no memory for %d ranks", comm->rank,
                               comm->size);
    rc = coll__ctrl_allgather(comm->ctrl, mine, sizeof(*mine), all,
                              comm->timeout);
    if (rc == COLL_OK)
        rc = judge_wishes(all, comm->rank, comm->size);
    if (rc == COLL_OK)
        *ours = all[0];
    free(all);
    return rc;
}

struct growth {
    struct coll_comm *comm;
    struct coll__words launcher; /* on rank 0; closed if it is not needed */
};

/* Rank 0: take the caller's id, or have the launcher's newcomers join by a new one. */
static void name_group(struct growth *growth, const struct coll_unique_id *id,
                       struct wish *wish)
{
    const struct coll_comm *comm = growth->comm;

    if (id) {
        wish->id = *id;
        return;
    }
    wish->status = coll_get_unique_id(&wish->id);
    if (wish->status == COLL_OK)
        wish->status = coll__lobby_grow(&wish->id, comm->size, wish->n_new,
                                        comm->timeout, &growth->launcher);
}

static int has_failed(void *arg, char why[COLL__TEXT_MAX])
{
    const struct growth *growth = arg;
    const struct coll_comm *comm = growth->comm;
    int status =
        atomic_load_explicit(&comm->failure.status, memory_order_acquire);

    if (status)
        snprintf(why, COLL__TEXT_MAX, "%s", comm->failure.text);
    return status;
}

static int has_gone(void *arg, int *rank)
{
    struct growth *growth = arg;

    return coll__lobby_gone(&growth->launcher, rank);
}

/* Meet the newcomers.  If comm fails, because an old rank dies, or one of the launcher's
 * newcomers is gone, nobody waits any more. */
static int meet(struct growth *growth, const struct wish *ours,
                struct coll_comm **grown)
{
    struct coll_comm *comm = growth->comm;
    struct coll__options options = {.timeout = comm->timeout,
                                    .is_reproducible =
                                        comm->settings.is_reproducible,
                                    .is_deferred = comm->is_deferred,
                                    .idle = comm->idle};
    struct coll__boot boot = {.timeout = comm->timeout,
                              .origin = {has_failed, has_gone, growth}};
    int rc = coll__boot_open_id(&boot, &ours->id, comm->size + ours->n_new,
                                comm->rank);

    return rc ? rc : coll__comm_open(&boot, &options, grown);
}

static int grow(struct coll_comm *comm, int n_new,
                const struct coll_unique_id *id, struct coll_comm **grown)
{
    struct wish mine = {.n_new = grown ? n_new : 0}, ours;
    struct growth growth = {.comm = comm, .launcher.fd = -1};
    int rc = coll__comm_status(comm);

    if (rc == COLL_OK && !comm->rank && mine.n_new > 0)
        name_group(&growth, id, &mine);
    if (rc == COLL_OK)
        rc = exchange(comm, &mine, &ours);
    if (rc == COLL_OK)
        rc = meet(&growth, &ours, grown);
    coll__words_close(&growth.launcher);
    if (rc && !comm->rank) /* so that newcomers do not wait there */
        coll__boot_free_id(id ? id : &mine.id);
    return rc;
}

int coll_comm_grow(struct coll_comm *comm, int n_new,
                   const struct coll_unique_id *id, struct coll_comm **grown)
{
    int rc = coll__comm_check(comm, "coll_comm_grow");

    return coll__log_done(rc ? rc : grow(comm, n_new, id, grown));
}
