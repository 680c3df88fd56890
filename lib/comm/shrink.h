/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink.h - a communicator of the ranks that live. */
#ifndef COLL_LIB_COMM_SHRINK_H
#define COLL_LIB_COMM_SHRINK_H

struct coll_comm;

/* Make a communicator of the living ranks of `whole`, in their order.  Collective over
 * them, whether it has failed or not.
 *
 * Shapes:    exclude[n_exclude]: ranks that are not to be in it and do not call.
 * Result:    *rest, the same ranks everywhere.  A rank of it may have died since.
 * Errors:    COLL_ERR_TIMEOUT: as coll__ctrl_agree().  The next call goes on where this one
 *            was.  COLL_ERR_PEER: as coll__ctrl_agree().  Else the status with
 *            which a rank could not join, or COLL_ERR_BOOTSTRAP on the others.  Logged.
 */
int coll__comm_shrink(struct coll_comm *whole, const int *exclude,
                      int n_exclude, struct coll_comm **rest);

/* End a shrink that has timed out and is not called again; there may be none.  Before the
 * end of `whole`'s control connections, or in a child of its process. */
void coll__comm_shrink_end(struct coll_comm *whole);

#endif
