/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - judge what callers pass, and make problems of it. */
#ifndef COLL_LIB_RUN_ARGS_H
#define COLL_LIB_RUN_ARGS_H

#include "lib/run/run.h"

/* ---- args.c -------------------------------------------------------------- */

/* Judge the arguments of an operation and turn them into a problem, which
 * borrows the caller's arrays and the communicator's. */
int coll__args_check(const struct coll_args *args, struct coll_comm *comm,
                     struct coll__problem *pb);

/* Give args arrays of their own in *numbers, for the caller to free(); NULL where
 * the collective has none.  COLL_OK, or COLL_ERR_NOMEM, logged. */
int coll__args_keep(struct coll_args *args, const struct coll_comm *comm,
                    size_t **numbers);

/* Log what is wrong with them; COLL_ERR_INVALID. */
int coll__args_wrong(const struct coll_args *args, const char *what);

/* Judge a caller's struct: its size, and no unknown tail that is not zero.
 * Copies it into ours[len], the rest zero. */
int coll__struct_take(const void *theirs, void *ours, size_t len,
                      const char *name);

/* ---- buffers.c ----------------------------------------------------------- */

/* Judge where the buffers lie; says in pb whether they are one. */
int coll__buffers_check(const struct coll_args *args,
                        struct coll__sorter *sorter, struct coll__problem *pb);

#endif
