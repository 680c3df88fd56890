/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.c - find overlapping parts by sorting them by where they begin.  Then each part
 * need only be compared with the one before it that ends last.
 */
#include "lib/run/parts.h"
#include "lib/util/util.h"

#include <string.h>

static uintptr_t begin_of(const struct coll__parts *parts, size_t i)
{
    return parts->base + parts->displs[i] * parts->size;
}

static uintptr_t end_of(const struct coll__parts *parts, size_t i)
{
    return begin_of(parts, i) + parts->counts[i] * parts->size;
}

/* List the parts that are not empty in in[n].  Returns whether they are sorted.
 */
static int list(const struct coll__parts *parts, size_t *in, size_t *n)
{
    int is_sorted = 1;

    *n = 0;
    for (size_t i = 0; i < (size_t)parts->n; i++) {
        if (!parts->counts[i])
            continue;
        is_sorted &= !*n || parts->displs[in[*n - 1]] <= parts->displs[i];
        in[(*n)++] = i;
    }
    return is_sorted;
}

/* Merge from[0, middle) and from[middle, n) into to. */
static void merge(const struct coll__parts *parts, const size_t *from,
                  size_t *to, size_t middle, size_t n)
{
    size_t a = 0, b = middle;

    for (size_t i = 0; i < n; i++)
        to[i] = b == n || (a < middle &&
                           parts->displs[from[a]] <= parts->displs[from[b]])
                    ? from[a++]
                    : from[b++];
}

/* Sort the parts that are not empty into order[].  Returns their number. */
static size_t sort(const struct coll__parts *parts, size_t *order,
                   size_t *spare, size_t *n_looks)
{
    size_t n, *from = order, *to = spare, *other;
    int is_sorted = list(parts, order, &n);

    *n_looks += (size_t)parts->n;
    if (is_sorted)
        return n;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t at = 0; at < n; at += 2 * width) {
            size_t left = n - at;

            merge(parts, from + at, to + at, min_size(width, left),
                  min_size(2 * width, left));
        }
        *n_looks += n;
        other = from;
        from = to;
        to = other;
    }
    if (from != order)
        memcpy(order, from, n * sizeof(*order));
    return n;
}

int coll__parts_overlap(const struct coll__parts *parts,
                        struct coll__sorter *sorter)
{
    size_t *order = sorter->scratch;
    size_t n = sort(parts, order, order + parts->n, &sorter->n_looks);

    for (size_t i = 1; i < n; i++)
        if (begin_of(parts, order[i]) < end_of(parts, order[i - 1]))
            return 1;
    sorter->n_looks += n;
    return 0;
}

int coll__parts_meet(const struct coll__parts *a, const struct coll__parts *b,
                     struct coll__sorter *sorter)
{
    size_t *of_a = sorter->scratch, *of_b = of_a + a->n, *spare = of_b + b->n;
    size_t n_a = sort(a, of_a, spare, &sorter->n_looks);
    size_t n_b = sort(b, of_b, spare, &sorter->n_looks);
    uintptr_t far_a = 0, far_b = 0; /* where the parts before end */

    for (size_t i = 0, j = 0; i < n_a || j < n_b; sorter->n_looks++) {
        int is_a = j == n_b ||
                   (i < n_a && begin_of(a, of_a[i]) <= begin_of(b, of_b[j]));
        const struct coll__parts *parts = is_a ? a : b;
        size_t part = is_a ? of_a[i++] : of_b[j++];
        uintptr_t *far = is_a ? &far_a : &far_b;

        if (begin_of(parts, part) < (is_a ? far_b : far_a))
            return 1;
        if (end_of(parts, part) > *far)
            *far = end_of(parts, part);
    }
    return 0;
}
