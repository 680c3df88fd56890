/* SPDX-License-Identifier: BSD-3-Clause */
/* host_levels.h - the state of the path for GPU buffers of several hosts. */
#ifndef COLL_LIB_STREAM_HOST_LEVELS_H
#define COLL_LIB_STREAM_HOST_LEVELS_H

struct coll_comm;
struct coll_mem_stats;

/* Add the memory that it holds, without that of its sub-communicators. */
void coll__levels_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats);

/* Free it; the streams have passed all operations, or the communicator has failed. */
void coll__levels_free(struct coll_comm *comm);

#endif
