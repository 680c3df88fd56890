/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink.c - make a communicator of the ranks that live.
 *
 * The living ranks agree on who has died, and make a part of the rest.  Then they agree on
 * whether all of them have made it.  If a rank has died meanwhile, they begin anew.
 */
#include "lib/comm/shrink.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/destroy.h"
#include "lib/comm/fail.h"
#include "lib/ctrl/agree.h"
#include "lib/ctrl/ctrl.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MADE = 1 }; /* the bit on which the ranks agree at the end */

/* What an attempt needs. */
struct attempt {
    struct coll_comm *whole;
    uint64_t *dead;         /* a set: the ranks that are not in it */
    int *ranks;             /* [whole->size]: the others */
    struct coll_comm *rest; /* what was made, or NULL */
};

static struct coll__ctrl_part part_of(struct attempt *a)
{
    struct coll__ctrl_part part = {.ranks = a->ranks, .is_rest = 1};

    for (int r = 0; r < a->whole->size; r++) {
        if (coll__set_has(a->dead, r))
            continue;
        if (r == a->whole->rank)
            part.rank = part.size;
        a->ranks[part.size++] = r;
    }
    snprintf((char *)part.tag, sizeof(part.tag), "rest %u",
             coll__ctrl_agreed(a->whole->ctrl));
    return part;
}

static int n_dead(const struct attempt *a)
{
    int n = 0;

    for (int r = 0; r < a->whole->size; r++)
        n += coll__set_has(a->dead, r);
    return n;
}

static int agree(struct attempt *a, uint64_t *flags)
{
    return coll__ctrl_agree(a->whole->ctrl, flags, a->dead, a->whole->timeout);
}

/* Another rank has not made it: this one's is of no use. */
static void unmake(struct attempt *a)
{
    if (!a->rest)
        return;
    coll__comm_fail(a->rest, COLL_ERR_ABORTED, "another rank could not join");
    coll__comm_destroy(a->rest);
    a->rest = NULL;
}

/* One attempt.  COLL_IN_PROGRESS: a rank died meanwhile. */
static int try(struct attempt *a)
{
    struct coll__ctrl_part part;
    uint64_t flags = 0;
    char why[COLL__TEXT_MAX];
    int n, rc, made = agree(a, &flags);

    if (made)
        return made;
    n = n_dead(a);
    part = part_of(a);
    made = coll__comm_divide(a->whole, &part, &a->rest);
    snprintf(why, sizeof(why), "%s", coll_last_error());
    flags = made ? 0 : MADE;
    rc = agree(a, &flags);
    if (rc == COLL_OK && flags & MADE)
        return COLL_OK;
    unmake(a);
    if (rc)
        return rc;
    if (n_dead(a) > n)
        return COLL_IN_PROGRESS;
    coll__log_set_error(why);
    return made ? made : COLL_ERR_BOOTSTRAP;
}

int coll__comm_shrink(struct coll_comm *whole, const int *exclude,
                      int n_exclude, struct coll_comm **rest)
{
    size_t n = (size_t)whole->size;
    struct attempt a = {.whole = whole};
    int rc = COLL_IN_PROGRESS;

    a.dead = calloc((size_t)coll__set_words(whole->size), sizeof(*a.dead));
    a.ranks = malloc(n * sizeof(*a.ranks));
    if (!a.dead || !a.ranks) {
        log_error("comm", "no memory for %zu ranks", n);
        rc = COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n_exclude; i++)
        coll__ctrl_exclude(whole->ctrl, exclude[i]);
    coll__ctrl_divide_begin(whole->ctrl);
    while (rc == COLL_IN_PROGRESS)
        rc = try(&a);
    coll__ctrl_divide_end(whole->ctrl);
    if (rc == COLL_OK)
        *rest = a.rest;
    free(a.dead);
    free(a.ranks);
    return rc;
}
