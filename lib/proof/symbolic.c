/* SPDX-License-Identifier: BSD-3-Clause */
/* symbolic.c - pieces of symbolic memory: cut, read, overwritten. */
#include "lib/proof/symbolic.h"
#include "include/coll/coll.h"

#include <stdlib.h>
#include <string.h>

static int reserve(struct coll__memory *mem, int n)
{
    int cap = mem->cap ? mem->cap : 8;
    struct coll__piece *more;

    while (cap < n)
        cap *= 2;
    if (cap == mem->cap)
        return COLL_OK;
    more = realloc(mem->pieces, (size_t)cap * sizeof(*more));
    if (!more)
        return COLL_ERR_NOMEM;
    mem->pieces = more;
    mem->cap = cap;
    return COLL_OK;
}

/* Does b continue a, both in its place and in its source? */
static int goes_on(const struct coll__piece *a, const struct coll__piece *b)
{
    return a->off + a->len == b->off && a->from + a->len == b->from &&
           a->set == b->set && a->tree == b->tree &&
           a->is_scaled == b->is_scaled;
}

int coll__memory_append(struct coll__memory *mem,
                        const struct coll__piece *piece)
{
    if (!piece->len)
        return COLL_OK;
    if (mem->n && goes_on(&mem->pieces[mem->n - 1], piece)) {
        mem->pieces[mem->n - 1].len += piece->len;
        return COLL_OK;
    }
    if (reserve(mem, mem->n + 1))
        return COLL_ERR_NOMEM;
    mem->pieces[mem->n++] = *piece;
    return COLL_OK;
}

/* Return the part of a piece within [from, to), which overlaps it. */
static struct coll__piece clip(const struct coll__piece *piece, size_t from,
                               size_t to)
{
    size_t begin = piece->off > from ? piece->off : from;
    size_t end = piece->off + piece->len;
    struct coll__piece part = *piece;

    part.off = begin;
    part.len = (end < to ? end : to) - begin;
    part.from += begin - piece->off;
    return part;
}

/* Return the index of the first piece that ends after off. */
static int find(const struct coll__memory *mem, size_t off)
{
    int low = 0, high = mem->n;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (mem->pieces[middle].off + mem->pieces[middle].len <= off)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int coll__memory_read(const struct coll__memory *mem, size_t off, size_t len,
                      struct coll__memory *to)
{
    size_t at = off, end = off + len;

    to->n = 0;
    for (int i = find(mem, off); i < mem->n && at < end; i++) {
        struct coll__piece part = mem->pieces[i];

        if (part.off >= end)
            break;
        part = clip(&part, off, end);
        if (part.off != at)
            return COLL_ERR_INVALID;
        at += part.len;
        part.off -= off;
        if (coll__memory_append(to, &part))
            return COLL_ERR_NOMEM;
    }
    return at == end ? COLL_OK : COLL_ERR_INVALID;
}

int coll__memory_write(struct coll__memory *mem, size_t off, size_t len,
                       const struct coll__memory *what)
{
    struct coll__piece left = {0}, right = {0};
    size_t end = off + len;
    int first, last, n_new, at;

    if (!len)
        return COLL_OK;
    first = last = find(mem, off); /* pieces [first, last) are replaced */
    while (last < mem->n && mem->pieces[last].off < end)
        last++;
    if (last > first && mem->pieces[first].off < off)
        left = clip(&mem->pieces[first], 0, off);
    if (last > first &&
        mem->pieces[last - 1].off + mem->pieces[last - 1].len > end)
        right = clip(&mem->pieces[last - 1], end, (size_t)-1);
    n_new = what->n + (left.len > 0) + (right.len > 0);
    if (reserve(mem, mem->n + n_new))
        return COLL_ERR_NOMEM;
    memmove(mem->pieces + first + n_new, mem->pieces + last,
            (size_t)(mem->n - last) * sizeof(left));
    mem->n += n_new - (last - first);
    at = first;
    if (left.len)
        mem->pieces[at++] = left;
    for (int i = 0; i < what->n; i++) {
        mem->pieces[at] = what->pieces[i];
        mem->pieces[at++].off += off;
    }
    if (right.len)
        mem->pieces[at] = right;
    return COLL_OK;
}

void coll__memory_fini(struct coll__memory *mem)
{
    free(mem->pieces);
    *mem = (struct coll__memory){0};
}
