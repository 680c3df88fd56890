/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c - the blocking operations: each is a request under another name. */
#include "lib/api/comm.h"

int coll_allreduce(const void *in, void *out, size_t count,
                   enum coll_type type, enum coll_op op,
                   struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_ALLREDUCE,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .op = op,
                                     .stream = stream,
                                 });
}

int coll_broadcast(const void *in, void *out, size_t count,
                   enum coll_type type, int root, struct coll_comm *comm,
                   void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_BROADCAST,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .root = root,
                                     .stream = stream,
                                 });
}

int coll_allgather(const void *in, void *out, size_t count,
                   enum coll_type type, struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_ALLGATHER,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .stream = stream,
                                 });
}

int coll_barrier(struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_BARRIER,
                                     .stream = stream,
                                 });
}
