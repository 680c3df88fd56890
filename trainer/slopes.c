/* SPDX-License-Identifier: BSD-3-Clause */
/* slopes.c - plays the backward pass once, taking and giving back buffers. */
#include "trainer/slopes.h"

#include <stdlib.h>

int slopes_in(const struct layer *l) { return l->index - l->spec.from; }

int slopes_plus(const struct layer *l)
{
    return l->spec.plus ? l->index - l->spec.plus : 0;
}

/* Take a free buffer: the smallest that is large enough, else the largest,
 * which grows, else a new one. */
static int take(struct slopes *s, size_t len)
{
    int best = SLOPE_NONE;

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

static void give(struct slopes *s, int buffer)
{
    if (buffer >= 0)
        s->is_free[buffer] = 1;
}

/* Say whether layer i alone reads the value that goes into it. */
static int reads_alone(const struct layer *layers, int n, int i)
{
    int v = slopes_in(&layers[i]), n_readers = 0;

    for (int k = 0; k < n; k++)
        n_readers +=
            (slopes_in(&layers[k]) == v) + (slopes_plus(&layers[k]) == v);
    return n_readers == 1;
}

/* Say whether layer i may write its input's gradient over its input: it can,
 * and neither the layer that made it nor another one looks at it again. */
static int overwrites(const struct layer *layers, int n, int i)
{
    int v = slopes_in(&layers[i]);
    const struct layer *maker = v > 0 ? &layers[v - 1] : NULL;

    return maker && layers[i].ops->may_overwrite && !maker->ops->reads_out &&
           !maker->spec.relu && reads_alone(layers, n, i);
}

static size_t value_len(const struct layer *layers, int v)
{
    return shape_len(v ? &layers[v - 1].out : &layers[0].in);
}

/* Plan for the gradient that a layer hands to value v; returns the buffer that
 * it needs for a moment, or SLOPE_NONE. */
static int hand_to(struct slopes *s, const struct layer *layers, int v)
{
    if (v == 0) /* nobody wants the images' gradient */
        return SLOPE_NONE;
    if (s->buffer[v] != SLOPE_NONE)
        return take(s, value_len(layers, v));
    s->buffer[v] = take(s, value_len(layers, v));
    return SLOPE_NONE;
}

static void play(struct slopes *s, const struct layer *layers, int n)
{
    s->buffer[n] = take(s, value_len(layers, n));
    for (int i = n; i-- > 0;) {
        int v = slopes_in(&layers[i]), *added = s->added + 2 * i;

        added[1] = hand_to(s, layers, slopes_plus(&layers[i]));
        if (overwrites(layers, n, i)) {
            s->buffer[v] = SLOPE_OVER;
            added[0] = SLOPE_NONE;
        } else {
            added[0] = hand_to(s, layers, v);
        }
        give(s, added[0]);
        give(s, added[1]);
        give(s, s->buffer[i + 1]);
    }
}

int slopes_init(struct slopes *s, const struct layer *layers, int n)
{
    size_t values = (size_t)n + 1, buffers = 3 * values;

    *s = (struct slopes){
        .n_values = n + 1,
        .buffer = malloc(values * sizeof(int)),
        .added = malloc(2 * values * sizeof(int)),
        .len = calloc(buffers, sizeof(size_t)),
        .is_free = calloc(buffers, 1),
    };
    if (!s->buffer || !s->added || !s->len || !s->is_free)
        return -1;
    for (int v = 0; v <= n; v++)
        s->buffer[v] = SLOPE_NONE;
    play(s, layers, n);
    return 0;
}

void slopes_fini(struct slopes *s)
{
    free(s->buffer);
    free(s->added);
    free(s->len);
    free(s->is_free);
    *s = (struct slopes){0};
}
