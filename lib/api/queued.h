/* SPDX-License-Identifier: BSD-3-Clause */
/* queued.h - the path of operations that streams carry out by themselves, for
 * stream.c and staged.c. */
#ifndef COLL_LIB_API_QUEUED_H
#define COLL_LIB_API_QUEUED_H

struct coll_comm;

/* Free the programs and leave the other ranks' devices; streams have passed what
 * they were given, or the communicator has failed. */
void coll__queued_free(struct coll_comm *comm);

#endif
