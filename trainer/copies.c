/* SPDX-License-Identifier: BSD-3-Clause */
/* copies.c - copies of shards, on their own rank and on the next. */
#include "trainer/copies.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/optim.h"
#include "trainer/train.h"

#include <stdlib.h>

static const struct ddp_part *part_at(const struct copies *s, int rank, int i)
{
    return &s->parts[rank * s->n_buckets + i];
}

size_t copies_len(const struct copies *s, int rank)
{
    size_t n = 0;

    for (int i = 0; i < s->n_buckets; i++)
        n += part_at(s, rank, i)->count;
    return n * s->width;
}

static int before(const struct copies *s)
{
    return (s->rank + s->size - 1) % s->size;
}

void copies_destroy(struct copies *s)
{
    if (!s)
        return;
    for (int i = 0; i < 2; i++) {
        s->device->release(s->own[i].values);
        s->device->release(s->previous[i].values);
    }
    free(s->parts);
    free(s);
}

/* Return shards of these ranks without copies, or NULL. */
static struct copies *make(struct trainer *t)
{
    struct copies *s = calloc(1, sizeof(*s));
    int n = t->ddp->n_buckets;

    if (!s)
        return NULL;
    *s = (struct copies){.device = t->device,
                         .rank = t->ddp->rank,
                         .size = t->ddp->size,
                         .n_buckets = n,
                         .width = 1 + optim_arrays(t->optim.kind)};
    s->parts = calloc((size_t)(s->size * n) + 1, sizeof(*s->parts));
    for (int r = 0; s->parts && r < s->size; r++)
        for (int i = 0; i < n; i++)
            s->parts[r * n + i] = ddp_part(t->ddp, i, r);
    return s;
}

static int alloc_copies(struct copies *s)
{
    size_t len = copies_len(s, s->rank) * sizeof(float),
           len_before = copies_len(s, before(s)) * sizeof(float);

    for (int i = 0; i < 2; i++) {
        s->own[i].values = s->device->alloc(len);
        s->previous[i].values = s->device->alloc(len_before);
        if (!s->own[i].values || !s->previous[i].values)
            return -1;
    }
    return 0;
}

int copies_make(struct trainer *t)
{
    struct copies *s;

    copies_destroy(t->rescue.copies);
    s = t->rescue.copies = make(t);
    if (!s || !s->parts || alloc_copies(s))
        return train_fail("out of memory for copies of the optimizer's state; "
                          "leave --elastic or --zero out");
    return copies_take(t);
}

/* Make room for the copy of a new step in the place of the older one. */
static struct copy *turn(struct copy two[2])
{
    struct copy older = two[1];

    two[1] = two[0];
    two[0] = older;
    two[0].is_there = 0;
    return &two[0];
}

static void pack(const struct trainer *t, float *to)
{
    const struct copies *s = t->rescue.copies;
    size_t n_state = t->optim.n_state;

    for (int i = 0; i < s->n_buckets; i++) {
        const struct ddp_part *part = part_at(s, s->rank, i);

        s->device->copy(to, model_params(t->model) + part->first,
                        part->count * sizeof(*to));
        to += part->count;
    }
    s->device->copy(to, t->optim.state, n_state * sizeof(*to));
}

int copies_take(struct trainer *t)
{
    struct copies *s = t->rescue.copies;
    struct copy *own = turn(s->own), *previous;

    pack(t, own->values);
    own->step = t->optim.step;
    own->is_there = 1;
    if (s->size == 1)
        return 0;
    previous = turn(s->previous);
    if (ddp_pass_on(t->ddp, own->values, copies_len(s, s->rank),
                    previous->values, copies_len(s, before(s))))
        return -1;
    previous->step = t->optim.step;
    previous->is_there = 1;
    return 0;
}

const struct copy *copies_find(const struct copy two[2], uint64_t step)
{
    for (int i = 0; i < 2; i++)
        if (two[i].is_there && two[i].step == step)
            return &two[i];
    return NULL;
}

void copies_spread(const struct copies *s, int rank, const float *values,
                   float *whole, size_t n_params)
{
    for (size_t k = 0; k < s->width; k++)
        for (int i = 0; i < s->n_buckets; i++) {
            const struct ddp_part *part = part_at(s, rank, i);

            s->device->copy(whole + k * n_params + part->first, values,
                            part->count * sizeof(*whole));
            values += part->count;
        }
}
