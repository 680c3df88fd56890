/* SPDX-License-Identifier: BSD-3-Clause */
/* members.h - whom the rank numbers of a communicator mean. */
#ifndef COLL_LIB_COMM_MEMBERS_H
#define COLL_LIB_COMM_MEMBERS_H

#include <stddef.h>

struct coll_comm;

/* Note that rank r of comm, which is being made, is rank ranks[r] of `whole`.  COLL_OK
 * or COLL_ERR_NOMEM, logged; call fini() in both cases. */
int coll__members_init(struct coll_comm *comm, const struct coll_comm *whole,
                       const int *ranks);
void coll__members_fini(struct coll_comm *comm);

/* Write "in the group of ranks 1 3 5 of 8: ", or "" if comm is the first communicator
 * or has the same rank numbers. */
void coll__members_text(const struct coll_comm *comm, char *text, size_t len);

#endif
