/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_held.c - a list of what was left to graphs. */
#include "lib/device/cuda_held.h"
#include "lib/device/cuda_stream.h"
#include "lib/util/lock.h"

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);
static struct coll__cuda_held *left; /* under the lock */

/* The parent's list in a child, which has no driver; so that leak checkers find it. */
static struct coll__cuda_held *volatile inherited;

static void forget_parents(void)
{
    inherited = left;
    left = NULL;
}

/* The last access of a graph; then another thread may end the object. */
static void drop(void *held)
{
    atomic_fetch_sub(&((struct coll__cuda_held *)held)->n_graphs, 1);
}

int coll__cuda_held_add(struct coll__cuda_held *held, void *stream)
{
    atomic_fetch_add(&held->n_graphs, 1);
    return coll__cuda_hold(stream, drop, held);
}

void coll__cuda_held_leave(struct coll__cuda_held *held)
{
    if (!coll__cuda_is_held(held)) {
        held->end(held);
        return;
    }
    coll__lock(&lock);
    held->next = left;
    left = held;
    coll__unlock(&lock);
}

/* Take one that no graph needs any more out of the list; NULL: there is none. */
static struct coll__cuda_held *take_unneeded(void)
{
    struct coll__cuda_held **at = &left, *held;

    coll__lock(&lock);
    while (*at && coll__cuda_is_held(*at))
        at = &(*at)->next;
    held = *at;
    if (held)
        *at = held->next;
    coll__unlock(&lock);
    return held;
}

void coll__cuda_held_reclaim(void)
{
    struct coll__cuda_held *held;

    while ((held = take_unneeded()))
        held->end(held);
}
