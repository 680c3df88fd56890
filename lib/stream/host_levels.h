/* SPDX-License-Identifier: BSD-3-Clause */
/* host_levels.h - GPU buffers of several hosts: what host_levels.c keeps of a communicator. */
#ifndef COLL_LIB_STREAM_HOST_LEVELS_H
#define COLL_LIB_STREAM_HOST_LEVELS_H

struct coll_comm;
struct coll_mem_stats;

/* Add what it holds, but for what its parts do. */
void coll__levels_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats);

/* Free it: streams have passed what they were given, or the communicator has
 * failed. */
void coll__levels_free(struct coll_comm *comm);

#endif
