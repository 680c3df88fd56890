/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h - check the arguments of callers, and make problems of them. */
#ifndef COLL_LIB_RUN_ARGS_H
#define COLL_LIB_RUN_ARGS_H

#include <stddef.h>

struct coll__problem;
struct coll__sorter;
struct coll_args;
struct coll_comm;

/* ---- args.c -------------------------------------------------------------- */

/* Check the arguments of an operation and make a problem of them, which borrows the
 * caller's arrays and the communicator's. */
int coll__args_check(const struct coll_args *args, struct coll_comm *comm,
                     struct coll__problem *pb);

/* Copy the arrays of args into *numbers, which the caller frees; NULL if the collective
 * has no arrays.  COLL_OK, or COLL_ERR_NOMEM, logged. */
int coll__args_keep(struct coll_args *args, const struct coll_comm *comm,
                    size_t **numbers);

/* Log what is wrong with them; COLL_ERR_INVALID. */
int coll__args_wrong(const struct coll_args *args, const char *what);

/* Check the place of a rank for the function `who`; COLL_ERR_INVALID, logged. */
int coll__place_check(const char *who, int nranks, int rank);

/* Check a caller's struct: its size is valid, and members that this version does not
 * know are zero.  Copy it into ours[len], and set the rest to zero. */
int coll__struct_take(const void *theirs, void *ours, size_t len,
                      const char *name);

/* ---- buffers.c ----------------------------------------------------------- */

/* Check that the buffers exist and do not overlap; set pb->in_place. */
int coll__buffers_check(const struct coll_args *args,
                        struct coll__sorter *sorter, struct coll__problem *pb);

#endif
