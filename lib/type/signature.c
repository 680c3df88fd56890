/* SPDX-License-Identifier: BSD-3-Clause */
/* signature.c - operations in words. */
#include "lib/type/signature.h"

#include <stdio.h>
#include <string.h>

static const char *op_name(int op)
{
    if (op == COLL__SIGNATURE_PREMUL)
        return "premul";
    return op == COLL__SIGNATURE_USER ? "user" : coll_op_name((enum coll_op)op);
}

/* Describe the operation: ", sum", ", sum, postscale 0.5". */
static size_t describe_op(const struct coll__signature *sig, char *text,
                          size_t len)
{
    size_t n = (size_t)snprintf(text, len, ", %s",
                                op_name(sig->op & ~COLL__SIGNATURE_SCALED));

    if (sig->op & COLL__SIGNATURE_SCALED)
        n += (size_t)snprintf(text + n, len - n, ", postscale %.9g",
                              (double)coll__signature_scale(sig));
    return n;
}

/* Describe the digest that the root field holds, if it holds one. */
static void describe_places(const struct coll__signature *sig, char *text,
                            size_t len)
{
    uint32_t places = coll__signature_places(sig);

    if (places)
        snprintf(text, len, ", registered buffers with digest %08x", places);
    else if (sig->root && !coll__signature_has_root(sig))
        snprintf(text, len, ", parts with digest %08x", (unsigned)sig->root);
}

/* Describe the fields of a collective that follow its type. */
static void describe_more(const struct coll__signature *sig, char *text,
                          size_t len)
{
    size_t n = 0;

    text[0] = '\0';
    switch ((enum coll_collective)sig->collective) {
    case COLL_ALLREDUCE:
        n = describe_op(sig, text, len);
        describe_places(sig, text + n, len - n);
        break;
    case COLL_SCAN:
    case COLL_EXSCAN:
        describe_op(sig, text, len);
        break;
    case COLL_REDUCE_SCATTER:
        n = describe_op(sig, text, len);
        describe_places(sig, text + n, len - n);
        break;
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
        describe_places(sig, text, len);
        break;
    case COLL_REDUCE:
        n = describe_op(sig, text, len);
        snprintf(text + n, len - n, ", root %d", sig->root);
        break;
    case COLL_REDUCE_SCATTERV:
        n = describe_op(sig, text, len);
        /* fall through */
    case COLL_ALLGATHERV: /* counts */
        snprintf(text + n, len - n, ", counts with digest %08x",
                 (unsigned)coll__signature_count(sig));
        break;
    case COLL_BROADCAST:
        n = (size_t)snprintf(text, len, ", root %d", coll__signature_root(sig));
        describe_places(sig, text + n, len - n);
        break;
    case COLL_GATHER:
    case COLL_GATHERV:
    case COLL_SCATTER:
    case COLL_SCATTERV:
        snprintf(text, len, ", root %d", sig->root);
        break;
    default:
        break;
    }
}

/* "send_tagged #2 to 3, tag 5", "recv_tagged #1 from any rank, any tag". */
static void describe_tagged(const struct coll__signature *sig, char *text,
                            size_t len)
{
    enum coll_collective collective = (enum coll_collective)sig->collective;
    int tag = coll__signature_tag(sig);
    char peer[16] = "any rank", what[24] = "any tag";

    if (sig->root != COLL_ANY_RANK)
        snprintf(peer, sizeof(peer), "%d", (int)sig->root);
    if (tag != COLL_ANY_TAG)
        snprintf(what, sizeof(what), "tag %d", tag);
    snprintf(text, len, "%s #%u %s %s, %s (%llu %s)",
             coll_collective_name(collective), (unsigned)sig->seq,
             collective == COLL_SEND_TAGGED ? "to" : "from", peer, what,
             (unsigned long long)sig->count,
             coll_type_name((enum coll_type)sig->type));
}

static const char *where_of(const struct coll__signature *sig)
{
    switch ((enum coll__series)sig->series) {
    case SERIES_STREAM:
    case SERIES_COMPARED:
        return " on a stream";
    case SERIES_ANY_ORDER:
        return " in any order";
    default:
        return "";
    }
}

static void describe_number(const struct coll__signature *sig, char *text,
                            size_t len)
{
    if (sig->series == SERIES_STARTED)
        snprintf(text, len, "of request number %u",
                 (unsigned)coll__started_number(sig->seq));
    else
        snprintf(text, len, "#%llu", (unsigned long long)sig->seq);
}

void coll__signature_describe(const struct coll__signature *sig, char *text,
                              size_t len)
{
    enum coll_collective collective = (enum coll_collective)sig->collective;
    const char *name = coll_collective_name(collective);
    const char *type = coll_type_name((enum coll_type)sig->type);
    unsigned long long count = coll__signature_count(sig);
    const char *where = where_of(sig);
    char more[96], number[40];

    describe_more(sig, more, sizeof(more));
    describe_number(sig, number, sizeof(number));
    if (coll__is_tagged(collective))
        describe_tagged(sig, text, len);
    else if (coll__is_p2p(collective))
        snprintf(text, len, "%s %s %s %d (%llu %s)%s", name, number,
                 collective == COLL_SEND ? "to" : "from", sig->root, count,
                 type, where);
    else if (collective == COLL_BARRIER)
        snprintf(text, len, "%s %s%s", name, number, where);
    else if (coll__has_counts(collective))
        snprintf(text, len, "%s %s (%s%s)%s", name, number, type, more, where);
    else
        snprintf(text, len, "%s %s (%llu %s%s)%s", name, number, count, type,
                 more, where);
}

void coll__signature_describe_own(const struct coll__signature *sig,
                                  uint64_t user_tag, char *text, size_t len)
{
    size_t n;

    coll__signature_describe(sig, text, len);
    n = strlen(text);
    if (user_tag)
        snprintf(text + n, len - n, " [user tag %llu]",
                 (unsigned long long)user_tag);
}
