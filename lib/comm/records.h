/* SPDX-License-Identifier: BSD-3-Clause */
/* records.h - which communicators are in the files of COLL_HISTORY and COLL_METRICS, and
 * when the files are written. */
#ifndef COLL_LIB_COMM_RECORDS_H
#define COLL_LIB_COMM_RECORDS_H

struct coll_comm;

/* Add the communicator to the files; remove it, also in a child.  The first communicator
 * installs a handler for SIGUSR2 if the program has none, and the last one removes
 * it. */
void coll__records_add(struct coll_comm *comm);
void coll__records_remove(struct coll_comm *comm);

/* Note how long a call took that ends on all ranks together.  The owner only. */
void coll__records_joint(struct coll_comm *comm, double seconds);

#endif
