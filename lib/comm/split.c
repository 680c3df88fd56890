/* SPDX-License-Identifier: BSD-3-Clause */
/* split.c - new communicators of a communicator's ranks.
 *
 * One exchange over the parent's control tree tells which group every rank wants.  The
 * parent's tree then carries and watches the making of the groups' own trees.  A fault
 * of one rank travels with its wish, so that all ranks refuse the split and none
 * waits.  Afterwards the groups are independent: a failure of one does not touch the
 * others.
 */
#include "lib/comm/split.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/net/auth.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/ctrl/ctrl.h"

#include <stdlib.h>
#include <string.h>

static const char *const faults[] = {
    [SPLIT_COLOR] = "has a color below 0 that is not COLL_NO_COLOR",
    [SPLIT_RUNNING] = "has operations running; wait for them first",
    [SPLIT_NULL] = "passed NULL for the new communicator",
};

/* What each rank wants.  The tag of the rank that becomes rank 0 of a group names the
 * group. */
struct wish {
    int32_t fault, color, key;
    unsigned char tag[COLL__TAG_BYTES];
};

/* Fail the parent if its control tree has failed. */
static int judge(struct coll_comm *comm, int rc)
{
    if (rc != COLL_OK && coll__ctrl_status(comm->ctrl) != COLL_OK)
        coll__comm_fail(comm, rc, "%s", coll_last_error());
    return rc;
}

/* All ranks' wishes, and the ranks sorted by color, key and rank: one group after the
 * other. */
struct wishes {
    struct wish *of; /* [size] */
    int *ranks;      /* [2 * size]: room to sort, too */
    int size;
};

/* Does rank a come before rank b? */
static int is_before(const struct wish *wishes, int a, int b)
{
    if (wishes[a].color != wishes[b].color)
        return wishes[a].color < wishes[b].color;
    return wishes[a].key != wishes[b].key ? wishes[a].key < wishes[b].key
                                          : a < b;
}

static void sort(const struct wish *wishes, int *ranks, int *other, int n)
{
    int half = n / 2, i = 0, j = half;

    if (n < 2)
        return;
    sort(wishes, ranks, other, half);
    sort(wishes, ranks + half, other, n - half);
    for (int k = 0; k < n; k++)
        other[k] = j == n || (i < half && is_before(wishes, ranks[i], ranks[j]))
                       ? ranks[i++]
                       : ranks[j++];
    memcpy(ranks, other, (size_t)n * sizeof(*ranks));
}

static void find_groups(struct wishes *wishes)
{
    for (int r = 0; r < wishes->size; r++)
        wishes->ranks[r] = r;
    sort(wishes->of, wishes->ranks, wishes->ranks + wishes->size, wishes->size);
}

static int color_at(const struct wishes *wishes, int i)
{
    return wishes->of[wishes->ranks[i]].color;
}

/* Return how many ranks are in the group whose first one is at i. */
static int group_size(const struct wishes *wishes, int i)
{
    int end = i + 1;

    while (end < wishes->size && color_at(wishes, end) == color_at(wishes, i))
        end++;
    return end - i;
}

/* Return the group of this rank, which has a color. */
static struct coll__ctrl_part find_group(const struct wishes *wishes, int rank)
{
    struct coll__ctrl_part part = {.rank = 0};
    int i = 0;

    while (color_at(wishes, i) != wishes->of[rank].color)
        i++;
    part.ranks = wishes->ranks + i;
    part.size = group_size(wishes, i);
    while (part.ranks[part.rank] != rank)
        part.rank++;
    memcpy(part.tag, wishes->of[part.ranks[0]].tag, sizeof(part.tag));
    return part;
}

/* COLL_ERR_INVALID, on all ranks, if a rank's wish has a fault. */
static int judge_wishes(const struct wish *wishes, int size, const char *who)
{
    for (int r = 0; r < size; r++)
        if (wishes[r].fault) {
            log_error("api", "%s: rank %d %s", who, r, faults[wishes[r].fault]);
            return COLL_ERR_INVALID;
        }
    return COLL_OK;
}

/* Allocate the wishes of all ranks. */
static int divide_with(struct coll_comm *comm, const char *who,
                       const struct wish *mine, struct wishes *wishes,
                       struct coll_comm **out)
{
    struct coll__ctrl_part part;
    int rc = coll__ctrl_allgather(comm->ctrl, mine, sizeof(*mine), wishes->of,
                                  comm->timeout);

    if (rc == COLL_OK)
        rc = judge_wishes(wishes->of, comm->size, who);
    if (rc != COLL_OK)
        return rc;
    find_groups(wishes);
    if (mine->color == COLL_NO_COLOR) {
        *out = NULL;
        return COLL_OK;
    }
    part = find_group(wishes, comm->rank);
    return coll__comm_divide(comm, &part, out);
}

int coll__comm_split(struct coll_comm *comm, const char *who,
                     const struct coll__split *wanted, struct coll_comm **part)
{
    struct wish mine = {.fault = (int32_t)wanted->fault,
                        .color = wanted->color,
                        .key = wanted->key};
    size_t n = (size_t)comm->size;
    struct wishes wishes = {.size = comm->size};
    int rc;

    atomic_store_explicit(&comm->calls.apart, who, memory_order_release);
    coll__files_fill_standard();
    coll__auth_random(mine.tag, sizeof(mine.tag));
    wishes.of = malloc(n * sizeof(*wishes.of));
    wishes.ranks = malloc(2 * n * sizeof(*wishes.ranks));
    coll__ctrl_divide_begin(comm->ctrl);
    if (wishes.of && wishes.ranks)
        rc = judge(comm, divide_with(comm, who, &mine, &wishes, part));
    else
        rc = coll__comm_fail(comm, COLL_ERR_NOMEM,
                             "rank %d has no memory "
                             "to divide %d ranks",
                             comm->rank, comm->size);
    coll__ctrl_divide_end(comm->ctrl);
    free(wishes.of);
    free(wishes.ranks);
    return rc;
}
