/* SPDX-License-Identifier: BSD-3-Clause */
/* split.h - split a communicator into several. */
#ifndef COLL_LIB_COMM_SPLIT_H
#define COLL_LIB_COMM_SPLIT_H

struct coll_comm;

/* Why a rank cannot take part in a split; all ranks refuse it then. */
enum coll__split_fault {
    SPLIT_OK,
    SPLIT_COLOR,   /* below 0, and not COLL_NO_COLOR */
    SPLIT_RUNNING, /* operations are running */
    SPLIT_NULL     /* there is no place for the new communicator */
};

/* Where a rank wants to be. */
struct coll__split {
    enum coll__split_fault fault;
    int color, key;
};

/* Split comm: ranks with the same color form a new communicator, ordered by key and
 * rank.  Collective, not as owner, for the call `who`.
 *
 * Result:    COLL_OK and *part, NULL for COLL_NO_COLOR; a status, logged:
 *            COLL_ERR_INVALID on all ranks if one of them has a fault.
 */
int coll__comm_split(struct coll_comm *comm, const char *who,
                     const struct coll__split *wanted, struct coll_comm **part);

#endif
