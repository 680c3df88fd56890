/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c - the blocking operations, and groups of them. */
#include "lib/run/cache.h"
#include "lib/run/group.h"
#include "lib/run/tagged.h"
#include "include/coll/coll.h"

/* The arguments that all operations have.  Naming every member saves the slow clearing
 * of the others. */
static inline struct coll_args plain(enum coll_collective collective,
                                     const void *in, void *out, size_t count,
                                     enum coll_type type, void *stream)
{
    return (struct coll_args){
        .size = sizeof(struct coll_args),
        .collective = collective,
        .type = type,
        .op = COLL_SUM,
        .root = 0,
        .in = in,
        .out = out,
        .count = count,
        .stream = stream,
        .in_counts = NULL,
        .in_displs = NULL,
        .out_counts = NULL,
        .out_displs = NULL,
        .algo = NULL,
        .status = NULL,
        .tag = 0,
    };
}

int coll_allreduce(const void *in, void *out, size_t count, enum coll_type type,
                   enum coll_op op, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_ALLREDUCE, in, out, count, type, stream);

    args.op = op;
    return coll__run_call(comm, &args);
}

int coll_broadcast(const void *in, void *out, size_t count, enum coll_type type,
                   int root, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_BROADCAST, in, out, count, type, stream);

    args.root = root;
    return coll__run_call(comm, &args);
}

int coll_reduce(const void *in, void *out, size_t count, enum coll_type type,
                enum coll_op op, int root, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_REDUCE, in, out, count, type, stream);

    args.op = op;
    args.root = root;
    return coll__run_call(comm, &args);
}

int coll_allgather(const void *in, void *out, size_t count, enum coll_type type,
                   struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_ALLGATHER, in, out, count, type, stream);

    return coll__run_call(comm, &args);
}

int coll_allgatherv(const void *in, void *out, const size_t counts[],
                    const size_t displs[], enum coll_type type,
                    struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_ALLGATHERV, in, out, 0, type, stream);

    args.out_counts = counts;
    args.out_displs = displs;
    return coll__run_call(comm, &args);
}

int coll_reduce_scatter(const void *in, void *out, size_t count,
                        enum coll_type type, enum coll_op op,
                        struct coll_comm *comm, void *stream)
{
    struct coll_args args =
        plain(COLL_REDUCE_SCATTER, in, out, count, type, stream);

    args.op = op;
    return coll__run_call(comm, &args);
}

int coll_reduce_scatterv(const void *in, void *out, const size_t counts[],
                         enum coll_type type, enum coll_op op,
                         struct coll_comm *comm, void *stream)
{
    struct coll_args args =
        plain(COLL_REDUCE_SCATTERV, in, out, 0, type, stream);

    args.in_counts = counts;
    args.op = op;
    return coll__run_call(comm, &args);
}

int coll_scan(const void *in, void *out, size_t count, enum coll_type type,
              enum coll_op op, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_SCAN, in, out, count, type, stream);

    args.op = op;
    return coll__run_call(comm, &args);
}

int coll_exscan(const void *in, void *out, size_t count, enum coll_type type,
                enum coll_op op, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_EXSCAN, in, out, count, type, stream);

    args.op = op;
    return coll__run_call(comm, &args);
}

int coll_alltoall(const void *in, void *out, size_t count, enum coll_type type,
                  struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_ALLTOALL, in, out, count, type, stream);

    return coll__run_call(comm, &args);
}

int coll_alltoallv(const void *in, const size_t in_counts[],
                   const size_t in_displs[], void *out,
                   const size_t out_counts[], const size_t out_displs[],
                   enum coll_type type, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_ALLTOALLV, in, out, 0, type, stream);

    args.in_counts = in_counts;
    args.in_displs = in_displs;
    args.out_counts = out_counts;
    args.out_displs = out_displs;
    return coll__run_call(comm, &args);
}

int coll_gather(const void *in, void *out, size_t count, enum coll_type type,
                int root, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_GATHER, in, out, count, type, stream);

    args.root = root;
    return coll__run_call(comm, &args);
}

int coll_gatherv(const void *in, size_t count, void *out, const size_t counts[],
                 const size_t displs[], enum coll_type type, int root,
                 struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_GATHERV, in, out, count, type, stream);

    args.out_counts = counts;
    args.out_displs = displs;
    args.root = root;
    return coll__run_call(comm, &args);
}

int coll_scatter(const void *in, void *out, size_t count, enum coll_type type,
                 int root, struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_SCATTER, in, out, count, type, stream);

    args.root = root;
    return coll__run_call(comm, &args);
}

int coll_scatterv(const void *in, const size_t counts[], const size_t displs[],
                  void *out, size_t count, enum coll_type type, int root,
                  struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_SCATTERV, in, out, count, type, stream);

    args.in_counts = counts;
    args.in_displs = displs;
    args.root = root;
    return coll__run_call(comm, &args);
}

int coll_send(const void *in, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_SEND, in, NULL, count, type, stream);

    args.root = peer;
    return coll__run_call(comm, &args);
}

int coll_recv(void *out, size_t count, enum coll_type type, int peer,
              struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_RECV, NULL, out, count, type, stream);

    args.root = peer;
    return coll__run_call(comm, &args);
}

int coll_send_tagged(const void *in, size_t count, enum coll_type type,
                     int peer, int tag, struct coll_comm *comm, void *stream)
{
    struct coll_args args =
        plain(COLL_SEND_TAGGED, in, NULL, count, type, stream);

    args.root = peer;
    args.tag = tag;
    return coll__tagged_call(comm, &args);
}

int coll_recv_tagged(void *out, size_t count, enum coll_type type, int peer,
                     int tag, struct coll_comm *comm, void *stream,
                     struct coll_recv_status *status)
{
    struct coll_args args =
        plain(COLL_RECV_TAGGED, NULL, out, count, type, stream);

    args.root = peer;
    args.tag = tag;
    args.status = status;
    return coll__tagged_call(comm, &args);
}

int coll_barrier(struct coll_comm *comm, void *stream)
{
    struct coll_args args = plain(COLL_BARRIER, NULL, NULL, 0, COLL_I8, stream);

    return coll__run_call(comm, &args);
}

int coll_group_start(void)
{
    coll__group_depth++;
    return COLL_OK;
}

int coll_group_end(void) { return coll__group_end(); }
