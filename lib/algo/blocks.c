/* SPDX-License-Identifier: BSD-3-Clause */
/* blocks.c - parts of many ranks, packed one after the other in the order of the ranks
 * (modulo nranks), and the binomial tree that carries them. */
#include "lib/algo/algo.h"

size_t coll__parts_len(const struct coll__problem *pb, enum coll__buf buf,
                       int first, int n)
{
    size_t len = 0;

    for (int i = first; i < first + n; i++)
        len += coll__part(pb, buf, i).len;
    return len;
}

/* Return how many parts, from part i on and before `end`, are packed in buf. */
static struct coll__span packed_run(const struct coll__problem *pb,
                                    enum coll__buf buf, int *i, int end)
{
    struct coll__span run = coll__part(pb, buf, (*i)++), next;

    for (; *i < end; (*i)++) {
        next = coll__part(pb, buf, *i);
        if (next.off != run.off + run.len)
            break;
        run.len += next.len;
    }
    return run;
}

void coll__plan_pack(const struct coll__problem *pb, struct coll__plan *plan,
                     struct coll__span dst, int first, int n)
{
    for (int i = first; i < first + n; dst.off += dst.len) {
        struct coll__span run = packed_run(pb, BUF_IN, &i, first + n);

        dst.len = run.len;
        plan_copy(plan, dst, run);
    }
}

void coll__plan_unpack(const struct coll__problem *pb, struct coll__plan *plan,
                       int first, int n, struct coll__span src)
{
    for (int i = first; i < first + n; src.off += src.len) {
        struct coll__span run = packed_run(pb, BUF_OUT, &i, first + n);

        src.len = run.len;
        plan_copy(plan, run, src);
    }
}
