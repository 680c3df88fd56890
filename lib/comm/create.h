/* SPDX-License-Identifier: BSD-3-Clause */
/* create.h - make a communicator, and free its memory. */
#ifndef COLL_LIB_COMM_CREATE_H
#define COLL_LIB_COMM_CREATE_H

#include "lib/comm/idle.h"

struct coll__boot;
struct coll__ctrl_part;
struct coll_comm;
struct coll_mem_stats;

/* How to make a communicator. */
struct coll__options {
    double timeout;
    int is_reproducible, is_deferred, wants_thread;
    struct coll__idle idle;
    /* The communicator that this one is split from.  Its settings, tuning file and
     * measured prices are inherited.  NULL: the environment decides. */
    const struct coll_comm *parent;
};

/* Make a communicator over an open bootstrap, and close that. */
int coll__comm_open(struct coll__boot *boot,
                    const struct coll__options *options,
                    struct coll_comm **comm);

/* Make a communicator of some of the ranks of `whole`; the arguments are those of
 * coll__ctrl_divide().  part: its ranks and tag. */
int coll__comm_divide(struct coll_comm *whole,
                      const struct coll__ctrl_part *part,
                      struct coll_comm **comm);

/* Log that the function `who` was called in a forked child.  Returns
 * COLL_ERR_INVALID. */
int coll__comm_inherited(const char *who);

/* Check that the function `who` was given a communicator, which is not the parent's of this
 * process.  Returns COLL_OK, or COLL_ERR_INVALID, logged. */
int coll__comm_check(const struct coll_comm *comm, const char *who);

/* Free the communicator's memory, also in a forked child.  No other process notices. */
void coll__comm_free(struct coll_comm *comm);

/* Add the bytes that the communicator holds.  As owner. */
void coll__comm_bytes(const struct coll_comm *comm,
                      struct coll_mem_stats *stats);

#endif
