/* SPDX-License-Identifier: BSD-3-Clause */
/* history.c - a ring of operation heads, and operations in words. */
#include "lib/trace/history.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct coll__head) == 3 * sizeof(uint64_t),
               "a head is three words");

void coll__history_start(struct coll__history *h,
                         const struct coll__head *head)
{
    uint64_t words[3];
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_relaxed);

    memcpy(words, head, sizeof(words));
    for (int i = 0; i < 3; i++) {
        atomic_store_explicit(&h->words[n % COLL__HISTORY][i], words[i],
                              memory_order_relaxed);
        h->hash = (h->hash ^ words[i]) * 0x9e3779b97f4a7c15u;
        h->hash ^= h->hash >> 32;
    }
    atomic_store_explicit(&h->n_started, n + 1, memory_order_release);
}

void coll__history_end(struct coll__history *h)
{
    uint64_t n = atomic_load_explicit(&h->n_done, memory_order_relaxed);

    atomic_store_explicit(&h->n_done, n + 1, memory_order_relaxed);
}

int coll__history_get(struct coll__history *h, uint64_t seq,
                      struct coll__head *head)
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t words[3];

    if (seq < 1 || seq > n || seq + COLL__HISTORY <= n)
        return 0;
    for (int i = 0; i < 3; i++)
        words[i] = atomic_load_explicit(
            &h->words[(seq - 1) % COLL__HISTORY][i], memory_order_relaxed);
    memcpy(head, words, sizeof(*head));
    return 1;
}

static const char *op_name(uint8_t op)
{
    if (op == COLL__HEAD_PREMUL)
        return "premul";
    return op == COLL__HEAD_USER ? "user" : coll_op_name((enum coll_op)op);
}

void coll__head_describe(const struct coll__head *head, char *text, size_t len)
{
    enum coll_collective collective = (enum coll_collective)head->collective;
    char more[32] = "";

    if (collective == COLL_ALLREDUCE)
        snprintf(more, sizeof(more), ", %s", op_name(head->op));
    if (collective == COLL_BROADCAST)
        snprintf(more, sizeof(more), ", root %d", head->root);
    if (collective == COLL_BARRIER)
        snprintf(text, len, "barrier #%llu", (unsigned long long)head->seq);
    else
        snprintf(text, len, "%s #%llu (%llu %s%s)",
                 coll_collective_name(collective),
                 (unsigned long long)head->seq,
                 (unsigned long long)head->count,
                 coll_type_name((enum coll_type)head->type), more);
}

void coll__history_where(struct coll__history *h, char *text, size_t len)
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t done = atomic_load_explicit(&h->n_done, memory_order_relaxed);
    struct coll__head head;
    char what[128];

    if (!n || !coll__history_get(h, done < n ? done + 1 : n, &head)) {
        snprintf(text, len, "before its first operation");
        return;
    }
    coll__head_describe(&head, what, sizeof(what));
    snprintf(text, len, "%s %s", done < n ? "in" : "after", what);
}
