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

/* A shrink.  It stays with the communicator when one of its agreements is late, so that the
 * next call goes on with that agreement. */
struct coll__shrinking {
    struct coll_comm *whole;
    uint64_t *dead; /* a set: the ranks that are not in it */
    int *ranks;     /* [whole->size]: the others */
    int is_late;    /* the last agreement has timed out */
    int has_tried;  /* to make the part; next is the agreement on that */
    struct coll_comm *rest;   /* the part, or NULL */
    int made;                 /* the status with which it was made */
    char why[COLL__TEXT_MAX]; /* it was not made */
    int n_dead;               /* ranks that were not to be in it */
};

static struct coll__ctrl_part part_of(struct coll__shrinking *s)
{
    struct coll__ctrl_part part = {.ranks = s->ranks, .is_rest = 1};

    for (int r = 0; r < s->whole->size; r++) {
        if (coll__set_has(s->dead, r))
            continue;
        if (r == s->whole->rank)
            part.rank = part.size;
        s->ranks[part.size++] = r;
    }
    snprintf((char *)part.tag, sizeof(part.tag), "rest %u",
             coll__ctrl_agreed(s->whole->ctrl));
    return part;
}

static int n_dead(const struct coll__shrinking *s)
{
    int n = 0;

    for (int r = 0; r < s->whole->size; r++)
        n += coll__set_has(s->dead, r);
    return n;
}

static int agree(struct coll__shrinking *s, uint64_t *flags)
{
    int rc =
        coll__ctrl_agree(s->whole->ctrl, flags, s->dead, s->whole->timeout);

    s->is_late = rc == COLL_ERR_TIMEOUT;
    return rc;
}

/* Another rank has not made it: this one's is of no use. */
static void unmake(struct coll__shrinking *s)
{
    if (!s->rest)
        return;
    coll__comm_fail(s->rest, COLL_ERR_ABORTED, "another rank could not join");
    coll__comm_destroy(s->rest);
    s->rest = NULL;
}

/* Keep this thread's last error, while others may come. */
static void keep_why(struct coll__shrinking *s)
{
    snprintf(s->why, sizeof(s->why), "%s", coll_last_error());
}

/* Agree on who has died, and try to make a part of the others. */
static int make(struct coll__shrinking *s)
{
    struct coll__ctrl_part part;
    uint64_t flags = 0;
    int rc = agree(s, &flags);

    if (rc)
        return rc;
    s->n_dead = n_dead(s);
    part = part_of(s);
    s->made = coll__comm_divide(s->whole, &part, &s->rest);
    keep_why(s);
    s->has_tried = 1;
    return COLL_OK;
}

/* Agree whether all ranks have made it.  COLL_IN_PROGRESS: a rank died meanwhile. */
static int compare(struct coll__shrinking *s)
{
    uint64_t flags = s->made ? 0 : MADE;
    int rc = agree(s, &flags);

    if (s->is_late)
        return rc;
    s->has_tried = 0;
    if (rc == COLL_OK && flags & MADE)
        return COLL_OK;
    if (rc)
        keep_why(s);
    unmake(s);
    if (rc == COLL_OK && n_dead(s) > s->n_dead)
        return COLL_IN_PROGRESS;
    coll__log_set_error(s->why);
    if (rc)
        return rc;
    return s->made ? s->made : COLL_ERR_BOOTSTRAP;
}

/* One attempt, or what is left of it.  COLL_IN_PROGRESS: make another one. */
static int try(struct coll__shrinking *s)
{
    int rc = s->has_tried ? COLL_OK : make(s);

    return rc ? rc : compare(s);
}

/* Begin, or go on with the one that was late; NULL: no memory. */
static struct coll__shrinking *begin(struct coll_comm *whole)
{
    size_t n = (size_t)whole->size;
    struct coll__shrinking *s = whole->failure.shrinking;

    if (s)
        return s;
    s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->whole = whole;
    s->dead = calloc((size_t)coll__set_words(whole->size), sizeof(*s->dead));
    s->ranks = malloc(n * sizeof(*s->ranks));
    whole->failure.shrinking = s;
    coll__ctrl_divide_begin(whole->ctrl);
    if (s->dead && s->ranks)
        return s;
    coll__comm_shrink_end(whole);
    return NULL;
}

void coll__comm_shrink_end(struct coll_comm *whole)
{
    struct coll__shrinking *s = whole->failure.shrinking;

    if (!s)
        return;
    whole->failure.shrinking = NULL;
    coll__ctrl_divide_end(whole->ctrl);
    if (!coll__comm_is_inherited(whole))
        unmake(s);
    else if (s->rest)
        coll__comm_abandon(s->rest);
    free(s->dead);
    free(s->ranks);
    free(s);
}

int coll__comm_shrink(struct coll_comm *whole, const int *exclude,
                      int n_exclude, struct coll_comm **rest)
{
    struct coll__shrinking *s = begin(whole);
    int rc;

    if (!s) {
        log_error("comm", "no memory for %d ranks", whole->size);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < n_exclude; i++)
        coll__ctrl_exclude(whole->ctrl, exclude[i]);
    do
        rc = try(s);
    while (rc == COLL_IN_PROGRESS);
    if (rc == COLL_OK) {
        *rest = s->rest;
        s->rest = NULL;
    }
    if (!s->is_late)
        coll__comm_shrink_end(whole);
    return rc;
}
