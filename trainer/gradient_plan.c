/* SPDX-License-Identifier: BSD-3-Clause */
/* gradient_plan.c - plan the buffers of the gradients by one walk through the backward
 * pass.
 */
#include "trainer/gradient_plan.h"

#include <stdlib.h>

int input_value(const struct layer *l) { return l->index - l->spec.from; }

int added_value(const struct layer *l)
{
    return l->spec.plus ? l->index - l->spec.plus : 0;
}

/* Take a free buffer: the smallest that is large enough, else the largest,
 * which grows, else a new one. */
static int take(struct gradient_plan *s, size_t len)
{
    int best = GRADIENT_NONE;

    for (int b = 0; b < s->n_buffers; b++) {
        int fits = s->len[b] >= len;
        int best_fits = best >= 0 && s->len[best] >= len;

        if (s->is_free[b] &&
            (best < 0 || (fits && !best_fits) ||
             (fits == best_fits &&
              (fits ? s->len[b] < s->len[best] : s->len[b] > s->len[best]))))
            best = b;
    }
    if (best < 0)
        best = s->n_buffers++;
    if (s->len[best] < len)
        s->len[best] = len;
    s->is_free[best] = 0;
    return best;
}

static void give(struct gradient_plan *s, int buffer)
{
    if (buffer >= 0)
        s->is_free[buffer] = 1;
}

/* Return 1 if only layer i reads its input. */
static int reads_alone(const struct layer *layers, int n, int i)
{
    int v = input_value(&layers[i]), n_readers = 0;

    for (int k = 0; k < n; k++)
        n_readers +=
            (input_value(&layers[k]) == v) + (added_value(&layers[k]) == v);
    return n_readers == 1;
}

/* Return 1 if layer i may write the gradient of its input over its input: it
 * can, and no other layer needs the input any more. */
static int overwrites(const struct layer *layers, int n, int i)
{
    int v = input_value(&layers[i]);
    const struct layer *maker = v > 0 ? &layers[v - 1] : NULL;

    return maker && layers[i].ops->may_overwrite && !maker->ops->reads_out &&
           !maker->spec.relu && reads_alone(layers, n, i);
}

static size_t value_len(const struct layer *layers, int v)
{
    return shape_len(v ? &layers[v - 1].out : &layers[0].in);
}

/* Plan for the gradient of value v that a layer computes; returns the buffer
 * that it needs in the meantime, or GRADIENT_NONE. */
static int hand_to(struct gradient_plan *s, const struct layer *layers, int v)
{
    if (v == 0) /* the gradient of the images is not needed */
        return GRADIENT_NONE;
    if (s->buffer[v] != GRADIENT_NONE)
        return take(s, value_len(layers, v));
    s->buffer[v] = take(s, value_len(layers, v));
    return GRADIENT_NONE;
}

static void play(struct gradient_plan *s, const struct layer *layers, int n)
{
    s->buffer[n] = take(s, value_len(layers, n));
    for (int i = n; i-- > 0;) {
        int v = input_value(&layers[i]), *added = s->added + 2 * i;

        added[1] = hand_to(s, layers, added_value(&layers[i]));
        if (overwrites(layers, n, i)) {
            s->buffer[v] = GRADIENT_OVER;
            added[0] = GRADIENT_NONE;
        } else {
            added[0] = hand_to(s, layers, v);
        }
        give(s, added[0]);
        give(s, added[1]);
        give(s, s->buffer[i + 1]);
    }
}

int gradient_plan_init(struct gradient_plan *s, const struct layer *layers,
                       int n)
{
    size_t values = (size_t)n + 1, buffers = 3 * values;

    *s = (struct gradient_plan){
        .n_values = n + 1,
        .buffer = malloc(values * sizeof(int)),
        .added = malloc(2 * values * sizeof(int)),
        .len = calloc(buffers, sizeof(size_t)),
        .is_free = calloc(buffers, 1),
    };
    if (!s->buffer || !s->added || !s->len || !s->is_free)
        return -1;
    for (int v = 0; v <= n; v++)
        s->buffer[v] = GRADIENT_NONE;
    play(s, layers, n);
    return 0;
}

void gradient_plan_fini(struct gradient_plan *s)
{
    free(s->buffer);
    free(s->added);
    free(s->len);
    free(s->is_free);
    *s = (struct gradient_plan){0};
}
