/* SPDX-License-Identifier: BSD-3-Clause */
/* ops.c - the operations, and reduction operations of the program's own. */
#include "bindings/nccl/comm.h"
#include "bindings/nccl/result.h"

/* ---- types and reduction operations ------------------------------------------------ */

static enum coll_type type_of(ncclDataType_t type)
{
    static const enum coll_type types[] = {
        [ncclInt8] = COLL_I8,           [ncclUint8] = COLL_U8,
        [ncclInt32] = COLL_I32,         [ncclUint32] = COLL_U32,
        [ncclInt64] = COLL_I64,         [ncclUint64] = COLL_U64,
        [ncclFloat16] = COLL_F16,       [ncclFloat32] = COLL_F32,
        [ncclFloat64] = COLL_F64,       [ncclBfloat16] = COLL_BF16,
        [ncclFloat8e4m3] = COLL_F8E4M3, [ncclFloat8e5m2] = COLL_F8E5M2,
    };

    return (unsigned)type < ncclNumTypes ? types[type] : COLL_N_TYPES;
}

/* Handles of libcoll begin at COLL_N_OPS, those of NCCL at ncclNumOps.  So a handle of
 * libcoll is one of NCCL as it is. */
_Static_assert((int)COLL_N_OPS >= (int)ncclNumOps,
               "a handle is no built-in operation");

static int is_own(ncclRedOp_t op) { return (int)op >= (int)COLL_N_OPS; }

/* The operation, or -1. */
static int op_of(ncclRedOp_t op)
{
    static const enum coll_op ops[] = {
        [ncclSum] = COLL_SUM, [ncclProd] = COLL_PROD, [ncclMax] = COLL_MAX,
        [ncclMin] = COLL_MIN, [ncclAvg] = COLL_AVG,
    };

    if (is_own(op))
        return (int)op;
    return (unsigned)op < ncclNumOps ? (int)ops[op] : -1;
}

/* Call an operation on elements of a type. */
static ncclResult_t call(const char *who, ncclDataType_t type, ncclComm_t comm,
                         struct coll_args *args)
{
    args->type = type_of(type);
    if (args->type == COLL_N_TYPES)
        return nccl__group_spoil(nccl__wrong(ncclInvalidArgument,
                                             "%s: %d is no ncclDataType_t", who,
                                             (int)type));
    return nccl__call(who, comm, args);
}

/* The same with a reduction operation. */
static ncclResult_t reduce(const char *who, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t comm, struct coll_args *args)
{
    int ours = op_of(op);

    if (ours < 0)
        return nccl__group_spoil(nccl__wrong(
            ncclInvalidArgument, "%s: %d is no ncclRedOp_t", who, (int)op));
    args->op = (enum coll_op)ours;
    return call(who, type, comm, args);
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
                                      ncclDataType_t type,
                                      ncclScalarResidence_t residence,
                                      ncclComm_t comm)
{
    static const char who[] = "ncclRedOpCreatePreMulSum";
    ncclResult_t result = nccl__comm_check(who, comm);
    enum coll_op ours;

    if (result)
        return nccl__group_spoil(result);
    if (!op)
        return nccl__group_spoil(
            nccl__wrong(ncclInvalidArgument, "%s: op is NULL", who));
    if (residence != ncclScalarHostImmediate)
        return nccl__group_spoil(nccl__wrong(
            ncclInvalidUsage,
            "%s: libcoll reads the scalar at once; pass it in host memory with "
            "ncclScalarHostImmediate",
            who));
    result =
        nccl__of_status(coll_op_create_premul(scalar, type_of(type), &ours));
    if (!result)
        *op = (ncclRedOp_t)ours;
    return nccl__group_spoil(result);
}
NCCL__ALIAS(RedOpCreatePreMulSum);

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    static const char who[] = "ncclRedOpDestroy";
    ncclResult_t result = nccl__comm_is(who, comm);

    if (!result && !is_own(op))
        result = nccl__wrong(ncclInvalidArgument,
                             "%s: %d was not made by "
                             "ncclRedOpCreatePreMulSum()",
                             who, (int)op);
    if (!result)
        result = nccl__group_end_op((enum coll_op)op);
    return nccl__group_spoil(result);
}
NCCL__ALIAS(RedOpDestroy);

/* ---- collectives ------------------------------------------------------------------------ */

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_ALLREDUCE,
                             .in = in,
                             .out = out,
                             .count = count,
                             .stream = stream};

    return reduce("ncclAllReduce", type, op, comm, &args);
}
NCCL__ALIAS(AllReduce);

ncclResult_t ncclReduce(const void *in, void *out, size_t count,
                        ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_REDUCE,
                             .root = root,
                             .in = in,
                             .out = out,
                             .count = count,
                             .stream = stream};

    return reduce("ncclReduce", type, op, comm, &args);
}
NCCL__ALIAS(Reduce);

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t recvcount,
                               ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_REDUCE_SCATTER,
                             .in = in,
                             .out = out,
                             .count = recvcount,
                             .stream = stream};

    return reduce("ncclReduceScatter", type, op, comm, &args);
}
NCCL__ALIAS(ReduceScatter);

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_BROADCAST,
                             .root = root,
                             .in = in,
                             .out = out,
                             .count = count,
                             .stream = stream};

    return call("ncclBroadcast", type, comm, &args);
}
NCCL__ALIAS(Broadcast);

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type,
                       int root, ncclComm_t comm, cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_BROADCAST,
                             .root = root,
                             .in = buffer,
                             .out = buffer,
                             .count = count,
                             .stream = stream};

    return call("ncclBcast", type, comm, &args);
}
NCCL__ALIAS(Bcast);

ncclResult_t ncclAllGather(const void *in, void *out, size_t sendcount,
                           ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_ALLGATHER,
                             .in = in,
                             .out = out,
                             .count = sendcount,
                             .stream = stream};

    return call("ncclAllGather", type, comm, &args);
}
NCCL__ALIAS(AllGather);

/* ---- messages ------------------------------------------------------------------------------ */

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type,
                      int peer, ncclComm_t comm, cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_SEND,
                             .root = peer,
                             .in = in,
                             .count = count,
                             .stream = stream};

    return call("ncclSend", type, comm, &args);
}
NCCL__ALIAS(Send);

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream)
{
    struct coll_args args = {.collective = COLL_RECV,
                             .root = peer,
                             .out = out,
                             .count = count,
                             .stream = stream};

    return call("ncclRecv", type, comm, &args);
}
NCCL__ALIAS(Recv);
