/* SPDX-License-Identifier: BSD-3-Clause */
/* work.h - one operation on one rank: its buffers, its call, its check. */
#ifndef COLL_TESTS_WORK_H
#define COLL_TESTS_WORK_H

#include "tests/support/oracle.h"
#include "tests/support/world.h"

struct work {
    struct oracle_op op;
    enum coll_op handle; /* what stands for op.op or op.own */
    double prescale;     /* this rank's; 0: none */
    struct oracle_layout in_at, out_at;
    unsigned char *in, *out, *room; /* room: of both, in place */
    size_t out_len;                 /* bytes, with the gaps */
    int is_in_place, are_packed;
};

#define WORK_GUARD 64 /* bytes behind each buffer that nobody may touch */

/* Whose buffers come by coll_mem_alloc(), bits of: */
enum { WORK_IN = 1, WORK_OUT = 2 };
extern int work_in_regions;

/* Make and fill the buffers; in place is this rank's own choice, taken where
 * the collective can. */
void work_init(struct work *w, const struct oracle_op *op, int rank,
               const struct oracle_handles *handles, int is_in_place);
void work_fini(struct work *w);

/* Carry it out by the blocking call. */
int work_call(const struct work *w, struct coll_comm *comm);

/* The same as arguments of a request; they point into w.  And the blocking call with
 * them, or with other buffers and a stream. */
struct coll_args work_args(const struct work *w);
int work_call_with(const struct coll_args *args, struct coll_comm *comm);

/* Look at the result, the gaps, what lies behind, and that in is as it was;
 * 1 and a line on stderr when something is wrong. */
int work_check(const struct work *w, const struct world_rank *me);

#endif
