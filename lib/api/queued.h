/* SPDX-License-Identifier: BSD-3-Clause */
/* queued.h - the path of operations that streams carry out by themselves, for
 * stream.c and staged.c. */
#ifndef COLL_LIB_API_QUEUED_H
#define COLL_LIB_API_QUEUED_H

#include <stddef.h>

struct coll__batch;
struct coll_comm;
struct coll_mem_stats;

/* Is a stream still to come to what it carries out by itself, of no capture? */
int coll__queued_is_behind(const struct coll_comm *comm);

/* Add what it holds. */
void coll__queued_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats);

/* Free the programs and leave the other ranks' devices; streams have passed what
 * they were given, or the communicator has failed. */
void coll__queued_free(struct coll_comm *comm);

/* ---- queued_messages.c ---------------------------------------------------- */

/* Judge the sends and receives of a batch; say how many bytes of device memory they
 * need; put them into the stream.  Statuses, logged. */
int coll__messages_check(const struct coll_comm *comm,
                         const struct coll__batch *batch);
size_t coll__messages_bounce(const struct coll_comm *comm,
                             const struct coll__batch *batch);
int coll__messages_put(struct coll_comm *comm, const struct coll__batch *batch,
                       void *bounce);

#endif
