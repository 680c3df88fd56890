/* SPDX-License-Identifier: BSD-3-Clause */
/* head.c - operations in words. */
#include "lib/type/head.h"

#include <stdio.h>

static const char *op_name(uint8_t op)
{
    if (op == COLL__HEAD_PREMUL)
        return "premul";
    return op == COLL__HEAD_USER ? "user" : coll_op_name((enum coll_op)op);
}

/* Describe the digest that the root field holds, if it holds one. */
static void describe_places(const struct coll__head *head, char *text,
                            size_t len)
{
    uint32_t places = coll__head_places(head);

    if (places)
        snprintf(text, len, ", registered buffers with digest %08x", places);
    else if (head->root && !coll__head_has_root(head))
        snprintf(text, len, ", parts with digest %08x", (unsigned)head->root);
}

/* Describe the fields of a collective that follow its type. */
static void describe_more(const struct coll__head *head, char *text, size_t len)
{
    size_t n = 0;

    text[0] = '\0';
    switch ((enum coll_collective)head->collective) {
    case COLL_ALLREDUCE:
        n = (size_t)snprintf(text, len, ", %s", op_name(head->op));
        describe_places(head, text + n, len - n);
        break;
    case COLL_REDUCE_SCATTER:
        n = (size_t)snprintf(text, len, ", %s", op_name(head->op));
        describe_places(head, text + n, len - n);
        break;
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        describe_places(head, text, len);
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
        n = (size_t)snprintf(text, len, ", root %d", coll__head_root(head));
        describe_places(head, text + n, len - n);
        break;
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
    const char *where = head->series == SERIES_HOST ? "" : " on a stream";
    char more[96];

    describe_more(head, more, sizeof(more));
    if (coll__is_p2p(collective))
        snprintf(text, len, "%s #%llu %s %d (%llu %s)%s", name, seq,
                 collective == COLL_SEND ? "to" : "from", head->root, count,
                 type, where);
    else if (collective == COLL_BARRIER)
        snprintf(text, len, "%s #%llu%s", name, seq, where);
    else if (coll__has_counts(collective))
        snprintf(text, len, "%s #%llu (%s%s)%s", name, seq, type, more, where);
    else
        snprintf(text, len, "%s #%llu (%llu %s%s)%s", name, seq, count, type,
                 more, where);
}
