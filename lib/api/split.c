/* SPDX-License-Identifier: BSD-3-Clause */
/* split.c - new communicators of a communicator's ranks.
 *
 * Two exchanges over the parent's control tree: which group every rank wants,
 * and the unique id that each group's rank 0 has made.  What is wrong on one
 * rank travels with its wish, so that all refuse alike and nobody waits.  From
 * there on the groups are on their own: one that fails leaves the others.
 */
#include "lib/api/comm.h"
#include "lib/boot/auth.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

enum fault { FAULT_NONE, FAULT_COLOR, FAULT_RUNNING, FAULT_NULL };

static const char *const faults[] = {
    [FAULT_COLOR] = "has a color below 0 that is not COLL_NO_COLOR",
    [FAULT_RUNNING] = "has operations running; wait for them first",
    [FAULT_NULL] = "passed NULL for the new communicator",
};

/* What each rank says, and what it then offers its group. */
struct wish {
    int32_t fault, color, key;
};

struct offer {
    int32_t status; /* of making the id */
    struct coll_unique_id id;
};

/* This rank's new group. */
struct group {
    int rank, size;
    int leader; /* the parent's rank of the new rank 0 */
};

/* Exchange over the parent; an exchange that broke off leaves its control tree
 * of no use. */
static int exchange(struct coll_comm *comm, const void *mine, size_t len,
                    void **all)
{
    int rc;

    *all = malloc((size_t)comm->size * len);
    if (!*all)
        return coll__comm_fail(comm, COLL_ERR_NOMEM, "rank %d has no memory "
                               "to divide %d ranks", comm->rank, comm->size);
    rc = coll__ctrl_allgather(comm->ctrl, mine, len, *all, comm->timeout);
    if (rc == COLL_OK)
        return COLL_OK;
    free(*all);
    return coll__comm_fail(comm, rc, "%s", coll_last_error());
}

/* Numbered by key, then by the parent's rank. */
static struct group find_group(const struct wish *wishes,
                               const struct coll_comm *comm)
{
    const struct wish *mine = &wishes[comm->rank];
    struct group group = {.leader = comm->rank};

    for (int r = 0; r < comm->size; r++) {
        const struct wish *first = &wishes[group.leader];

        if (wishes[r].color != mine->color)
            continue;
        group.size++;
        if (wishes[r].key < mine->key ||
            (wishes[r].key == mine->key && r < comm->rank))
            group.rank++;
        if (wishes[r].key < first->key ||
            (wishes[r].key == first->key && r < group.leader))
            group.leader = r;
    }
    return group;
}

/* The first exchange: COLL_ERR_INVALID on all when one's wish cannot be. */
static int agree(struct coll_comm *comm, const struct wish *mine,
                 const char *who, struct group *group)
{
    struct wish *wishes;
    void *all;
    int rc = exchange(comm, mine, sizeof(*mine), &all);

    if (rc)
        return rc;
    wishes = all;
    for (int r = 0; r < comm->size && rc == COLL_OK; r++)
        if (wishes[r].fault) {
            log_error("api", "%s: rank %d %s", who, r,
                      faults[wishes[r].fault]);
            rc = COLL_ERR_INVALID;
        }
    if (rc == COLL_OK)
        *group = find_group(wishes, comm);
    free(all);
    return rc;
}

/* The second one: get the id that the group's leader made. */
static int share_id(struct coll_comm *comm, const struct group *group,
                    int is_leader, struct coll_unique_id *id)
{
    struct offer mine = {0}, *offers;
    void *all;
    int rc;

    if (is_leader)
        mine.status = coll_get_unique_id(&mine.id);
    rc = exchange(comm, &mine, sizeof(mine), &all);
    if (rc == COLL_OK) {
        offers = all;
        rc = offers[group->leader].status;
        *id = offers[group->leader].id;
        if (rc && !is_leader)
            log_error("api", "rank %d could not open the rendezvous of the new "
                      "communicator: %s", group->leader, coll_strerror(rc));
        coll__auth_wipe(all, (size_t)comm->size * sizeof(*offers));
        free(all);
    } else if (is_leader && !mine.status) {
        coll__boot_drop_id(&mine.id);
    }
    coll__auth_wipe(&mine, sizeof(mine));
    return rc;
}

/* Meet the others of the group. */
static int join(struct coll_comm *comm, const struct group *group,
                struct coll_unique_id *id, struct coll_comm **out)
{
    struct coll__options options = {.timeout = comm->timeout,
                                    .settings = &comm->settings,
                                    .tune = comm->tune};
    struct coll__boot boot;
    int rc = coll__boot_open_id(&boot, id, group->size, group->rank,
                                comm->timeout);

    coll__auth_wipe(id, sizeof(*id));
    return rc ? rc : coll__comm_open(&boot, &options, out);
}

static int divide(struct coll_comm *comm, const char *who, struct wish *mine,
                  struct coll_comm **out)
{
    int is_in = mine->color != COLL_NO_COLOR;
    struct coll_unique_id id;
    struct group group;
    int rc = coll__comm_status(comm);

    if (rc)
        return rc;
    if (!out)
        mine->fault = FAULT_NULL;
    else if (comm->running)
        mine->fault = FAULT_RUNNING;
    rc = agree(comm, mine, who, &group);
    if (rc == COLL_OK)
        rc = share_id(comm, &group, is_in && !group.rank, &id);
    if (rc == COLL_OK && is_in)
        return join(comm, &group, &id, out);
    if (rc == COLL_OK)
        *out = NULL;
    return rc;
}

int coll_comm_split(struct coll_comm *comm, int color, int key,
                    struct coll_comm **split)
{
    struct wish mine = {.color = color, .key = key};

    if (!comm) {
        log_error("api", "coll_comm_split: comm is NULL");
        return COLL_ERR_INVALID;
    }
    if (color < 0 && color != COLL_NO_COLOR)
        mine.fault = FAULT_COLOR;
    return divide(comm, "coll_comm_split", &mine, split);
}

int coll_comm_dup(struct coll_comm *comm, struct coll_comm **dup)
{
    struct wish mine = {.color = 0};

    if (!comm) {
        log_error("api", "coll_comm_dup: comm is NULL");
        return COLL_ERR_INVALID;
    }
    return divide(comm, "coll_comm_dup", &mine, dup);
}
