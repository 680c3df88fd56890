/* SPDX-License-Identifier: BSD-3-Clause */
/* object.c - what handles point to. */
#include "tests/fake_cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT = 512, SLOTS = 4096, CHUNKS = 4096 };

static char *chunks[CHUNKS];
static int n_chunks, n_used = SLOTS;

void *object_new(enum kind kind, size_t size)
{
    struct object *o;

    if (size > SLOT || (n_used == SLOTS && n_chunks == CHUNKS))
        abort();
    if (n_used == SLOTS) {
        chunks[n_chunks++] = calloc(SLOTS, SLOT);
        n_used = 0;
    }
    o = (struct object *)(void *)(chunks[n_chunks - 1] + SLOT * n_used++);
    o->kind = kind;
    o->is_alive = 1;
    return o;
}

void *object_find(const void *handle, enum kind kind)
{
    for (int i = 0; i < n_chunks; i++) {
        size_t at = (size_t)((const char *)handle - chunks[i]);
        struct object *o;

        if ((const char *)handle < chunks[i] || at >= (size_t)SLOTS * SLOT)
            continue;
        o = (struct object *)(void *)(chunks[i] + at);
        if (at % SLOT || o->kind != kind)
            return NULL;
        return i == n_chunks - 1 && (int)(at / SLOT) >= n_used ? NULL : o;
    }
    return NULL;
}

void fake_misuse(const char *entry, const char *what, const void *handle)
{
    fprintf(stderr, "fake_cuda: %s: %p is no %s, or one that was destroyed\n",
            entry, handle, what);
    abort();
}

void *object_of(const void *handle, enum kind kind, const char *entry)
{
    static const char *const names[] = {
        "context",     "stream",           "event",
        "module",      "function",         "graph",
        "node",        "executable graph", "pool",
        "user object", "allocation handle"};
    struct object *o = object_find(handle, kind);

    if (!o || !o->is_alive)
        fake_misuse(entry, names[kind], handle);
    return o;
}
