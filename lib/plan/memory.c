/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - a sorted array of pieces; neighbours that continue each other are
 * joined, so that a buffer in order stays one piece. */
#include "lib/plan/memory.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

static int continues(const struct coll__piece *a, const struct coll__piece *b)
{
    return a->off + a->len == b->off && a->from + a->len == b->from &&
           a->set == b->set && a->is_scaled == b->is_scaled;
}

int coll__memory_append(struct coll__memory *mem,
                        const struct coll__piece *piece)
{
    if (!piece->len)
        return COLL_OK;
    if (mem->n && continues(&mem->pieces[mem->n - 1], piece)) {
        mem->pieces[mem->n - 1].len += piece->len;
        return COLL_OK;
    }
    if (mem->n == mem->cap) {
        int cap = mem->cap ? 2 * mem->cap : 8;
        struct coll__piece *more =
            realloc(mem->pieces, (size_t)cap * sizeof(*more));

        if (!more)
            return COLL_ERR_NOMEM;
        mem->pieces = more;
        mem->cap = cap;
    }
    mem->pieces[mem->n++] = *piece;
    return COLL_OK;
}

/* The part of a piece within [from, to). */
static struct coll__piece clip(const struct coll__piece *piece, size_t from,
                               size_t to)
{
    struct coll__piece part = *piece;
    size_t begin = max_size(piece->off, from);
    size_t end = min_size(piece->off + piece->len, to);

    part.off = begin;
    part.len = begin < end ? end - begin : 0;
    part.from = piece->from + (begin - piece->off);
    return part;
}

int coll__memory_read(const struct coll__memory *mem, size_t off, size_t len,
                      struct coll__memory *to)
{
    size_t at = off;

    for (int i = 0; i < mem->n && at < off + len; i++) {
        struct coll__piece part = clip(&mem->pieces[i], at, off + len);

        if (!part.len)
            continue;
        if (part.off != at)
            return COLL_ERR_INVALID;
        at += part.len;
        part.off -= off;
        if (coll__memory_append(to, &part))
            return COLL_ERR_NOMEM;
    }
    return at == off + len ? COLL_OK : COLL_ERR_INVALID;
}

/* Append the parts of mem's pieces within [from, to) to `now`. */
static int keep(const struct coll__memory *mem, size_t from, size_t to,
                struct coll__memory *now)
{
    for (int i = 0; i < mem->n; i++) {
        struct coll__piece part = clip(&mem->pieces[i], from, to);

        if (coll__memory_append(now, &part))
            return COLL_ERR_NOMEM;
    }
    return COLL_OK;
}

int coll__memory_write(struct coll__memory *mem, size_t off, size_t len,
                       const struct coll__memory *what)
{
    struct coll__memory now = {0};
    int status;

    if (!len)
        return COLL_OK;
    status = keep(mem, 0, off, &now);
    for (int i = 0; i < what->n && status == COLL_OK; i++) {
        struct coll__piece piece = what->pieces[i];

        piece.off += off;
        status = coll__memory_append(&now, &piece);
    }
    if (status == COLL_OK)
        status = keep(mem, off + len, SIZE_MAX, &now);
    if (status != COLL_OK) {
        coll__memory_fini(&now);
        return status;
    }
    coll__memory_fini(mem);
    *mem = now;
    return COLL_OK;
}

void coll__memory_fini(struct coll__memory *mem)
{
    free(mem->pieces);
    *mem = (struct coll__memory){0};
}
