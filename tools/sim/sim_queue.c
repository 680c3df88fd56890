/* SPDX-License-Identifier: BSD-3-Clause */
/* sim_queue.c - a heap of four children a node: flatter than a binary one, and
 * the children of a node share two cache lines. */
#include "tools/sim/sim_queue.h"
#include "include/coll/coll.h"

#include <stdlib.h>

#define FAN 4

static int before(const struct coll__sim_event *a,
                  const struct coll__sim_event *b)
{
    return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

static int grow(struct coll__sim_queue *queue)
{
    int cap = queue->cap ? 2 * queue->cap : 1024;
    struct coll__sim_event *events =
        realloc(queue->events, (size_t)cap * sizeof(*events));

    if (!events)
        return COLL_ERR_NOMEM;
    queue->events = events;
    queue->cap = cap;
    return COLL_OK;
}

int coll__sim_put(struct coll__sim_queue *queue, double time, int kind, int at)
{
    struct coll__sim_event event = {time, queue->seq++, kind, at};
    int i = queue->n;

    if (i == queue->cap && grow(queue))
        return COLL_ERR_NOMEM;
    queue->n++;
    while (i && before(&event, &queue->events[(i - 1) / FAN])) {
        queue->events[i] = queue->events[(i - 1) / FAN];
        i = (i - 1) / FAN;
    }
    queue->events[i] = event;
    return COLL_OK;
}

/* Return the child of i that is first in time; i itself if it has none. */
static int first_child(const struct coll__sim_queue *queue, int i)
{
    int child = FAN * i + 1, end = child + FAN;

    if (child >= queue->n)
        return i;
    if (end > queue->n)
        end = queue->n;
    for (int c = child + 1; c < end; c++)
        if (before(&queue->events[c], &queue->events[child]))
            child = c;
    return child;
}

int coll__sim_take(struct coll__sim_queue *queue, struct coll__sim_event *event)
{
    struct coll__sim_event last;
    int i = 0, child;

    if (!queue->n)
        return 0;
    *event = queue->events[0];
    last = queue->events[--queue->n];
    while ((child = first_child(queue, i)) != i &&
           before(&queue->events[child], &last)) {
        queue->events[i] = queue->events[child];
        i = child;
    }
    queue->events[i] = last;
    return 1;
}

void coll__sim_queue_fini(struct coll__sim_queue *queue)
{
    free(queue->events);
    *queue = (struct coll__sim_queue){0};
}
