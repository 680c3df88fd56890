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

/* What a collective has beside its type. */
static void describe_more(const struct coll__head *head, char *text, size_t len)
{
    size_t n = 0;

    text[0] = '\0';
    switch ((enum coll_collective)head->collective) {
    case COLL_ALLREDUCE:
        n = (size_t)snprintf(text, len, ", %s", op_name(head->op));
        if (head->root) /* of several */
            snprintf(text + n, len - n, ", parts with digest %08x",
                     (unsigned)head->root);
        break;
    case COLL_REDUCE_SCATTER:
        snprintf(text, len, ", %s", op_name(head->op));
        break;
    case COLL_REDUCE:
        snprintf(text, len, ", %s, root %d", op_name(head->op), head->root);
        break;
    case COLL_REDUCE_SCATTERV:
        n = (size_t)snprintf(text, len, ", %s", op_name(head->op));
        /* fall through */
    case COLL_ALLGATHERV: /* counts */
        snprintf(text + n, len - n, ", counts with digest %08x",
                 (unsigned)(head->count >> 32));
        break;
    case COLL_BROADCAST:
    case COLL_GATHER:
    case COLL_GATHERV:
    case COLL_SCATTER:
    case COLL_SCATTERV:
        snprintf(text, len, ", root %d", head->root);
        break;
    default:
        break;
    }
}

void coll__head_describe(const struct coll__head *head, char *text, size_t len)
{
    enum coll_collective collective = (enum coll_collective)head->collective;
    const char *name = coll_collective_name(collective);
    const char *type = coll_type_name((enum coll_type)head->type);
    unsigned long long seq = head->seq, count = head->count;
    char more[64];

    describe_more(head, more, sizeof(more));
    if (coll__is_p2p(collective))
        snprintf(text, len, "%s #%llu %s %d (%llu %s)", name, seq,
                 collective == COLL_SEND ? "to" : "from", head->root, count,
                 type);
    else if (collective == COLL_BARRIER)
        snprintf(text, len, "%s #%llu", name, seq);
    else if (coll__has_counts(collective))
        snprintf(text, len, "%s #%llu (%s%s)", name, seq, type, more);
    else
        snprintf(text, len, "%s #%llu (%llu %s%s)", name, seq, count, type,
                 more);
}

/* ---- where a rank is ----------------------------------------------------- */

void coll__history_aside(struct coll__history *h,
                         const struct coll__head *head)
{
    unsigned version = atomic_load_explicit(&h->aside_version,
                                            memory_order_relaxed);
    uint64_t words[3] = {0};

    if (head)
        memcpy(words, head, sizeof(words));
    atomic_store_explicit(&h->aside_version, version + 1,
                          memory_order_relaxed);
    for (int i = 0; i < 3; i++)
        atomic_store_explicit(&h->aside[i], words[i], memory_order_release);
    atomic_store_explicit(&h->aside_version, version + 2,
                          memory_order_release);
}

/* Read it: 1 and *head, or 0 when there is none. */
static int get_aside(struct coll__history *h, struct coll__head *head)
{
    uint64_t words[3];
    unsigned version;

    do {
        version = atomic_load_explicit(&h->aside_version,
                                       memory_order_acquire);
        for (int i = 0; i < 3; i++)
            words[i] = atomic_load_explicit(&h->aside[i],
                                            memory_order_acquire);
    } while (version % 2 || version != atomic_load_explicit(
                                           &h->aside_version,
                                           memory_order_relaxed));
    memcpy(head, words, sizeof(*head));
    return head->seq != 0;
}

void coll__history_where(struct coll__history *h, char *text, size_t len)
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_acquire);
    uint64_t done = atomic_load_explicit(&h->n_done, memory_order_relaxed);
    struct coll__head head;
    char what[128];

    if (get_aside(h, &head)) {
        coll__head_describe(&head, what, sizeof(what));
        snprintf(text, len, "in %s", what);
        return;
    }
    if (!n || !coll__history_get(h, done < n ? done + 1 : n, &head)) {
        snprintf(text, len, "before its first operation");
        return;
    }
    coll__head_describe(&head, what, sizeof(what));
    snprintf(text, len, "%s %s", done < n ? "in" : "after", what);
}
