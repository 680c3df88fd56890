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

int coll_reduce(const void *in, void *out, size_t count, enum coll_type type,
                enum coll_op op, int root, struct coll_comm *comm,
                void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_REDUCE,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .op = op,
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

int coll_allgatherv(const void *in, void *out, const size_t counts[],
                    const size_t displs[], enum coll_type type,
                    struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_ALLGATHERV,
                                     .in = in,
                                     .out = out,
                                     .out_counts = counts,
                                     .out_displs = displs,
                                     .type = type,
                                     .stream = stream,
                                 });
}

int coll_reduce_scatter(const void *in, void *out, size_t count,
                        enum coll_type type, enum coll_op op,
                        struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_REDUCE_SCATTER,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .op = op,
                                     .stream = stream,
                                 });
}

int coll_reduce_scatterv(const void *in, void *out, const size_t counts[],
                         enum coll_type type, enum coll_op op,
                         struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_REDUCE_SCATTERV,
                                     .in = in,
                                     .out = out,
                                     .in_counts = counts,
                                     .type = type,
                                     .op = op,
                                     .stream = stream,
                                 });
}

int coll_alltoall(const void *in, void *out, size_t count, enum coll_type type,
                  struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_ALLTOALL,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .stream = stream,
                                 });
}

int coll_alltoallv(const void *in, const size_t in_counts[],
                   const size_t in_displs[], void *out,
                   const size_t out_counts[], const size_t out_displs[],
                   enum coll_type type, struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_ALLTOALLV,
                                     .in = in,
                                     .out = out,
                                     .in_counts = in_counts,
                                     .in_displs = in_displs,
                                     .out_counts = out_counts,
                                     .out_displs = out_displs,
                                     .type = type,
                                     .stream = stream,
                                 });
}

int coll_gather(const void *in, void *out, size_t count, enum coll_type type,
                int root, struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_GATHER,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .root = root,
                                     .stream = stream,
                                 });
}

int coll_gatherv(const void *in, size_t count, void *out,
                 const size_t counts[], const size_t displs[],
                 enum coll_type type, int root, struct coll_comm *comm,
                 void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_GATHERV,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .out_counts = counts,
                                     .out_displs = displs,
                                     .type = type,
                                     .root = root,
                                     .stream = stream,
                                 });
}

int coll_scatter(const void *in, void *out, size_t count, enum coll_type type,
                 int root, struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_SCATTER,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .root = root,
                                     .stream = stream,
                                 });
}

int coll_scatterv(const void *in, const size_t counts[], const size_t displs[],
                  void *out, size_t count, enum coll_type type, int root,
                  struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_SCATTERV,
                                     .in = in,
                                     .out = out,
                                     .count = count,
                                     .in_counts = counts,
                                     .in_displs = displs,
                                     .type = type,
                                     .root = root,
                                     .stream = stream,
                                 });
}

int coll_send(const void *in, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_SEND,
                                     .in = in,
                                     .count = count,
                                     .type = type,
                                     .root = peer,
                                     .stream = stream,
                                 });
}

int coll_recv(void *out, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream)
{
    return coll__comm_call(comm, &(struct coll_args){
                                     .collective = COLL_RECV,
                                     .out = out,
                                     .count = count,
                                     .type = type,
                                     .root = peer,
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
