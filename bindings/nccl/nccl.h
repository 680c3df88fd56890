/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl.h - the types, values and functions of NCCL 2.27's host interface, as
 * libcoll's libnccl.so.2 has them.
 *
 * A program that was compiled with NVIDIA's nccl.h needs no other header: it runs
 * with this library as it is.  This header serves machines without NVIDIA's.  What
 * each function does here, and where that differs from NCCL, is in doc/nccl.md.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>

/* NVIDIA's header includes these, so programs rely on it.  With NCCL_NO_CUDA_RUNTIME
 * defined nothing of CUDA is needed. */
#ifdef NCCL_NO_CUDA_RUNTIME
typedef struct CUstream_st *cudaStream_t;
#else
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 27
#define NCCL_PATCH 7
#define NCCL_SUFFIX ""
#define NCCL_VERSION(X, Y, Z)                                                  \
    (((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z)                         \
                            : (X)*10000 + (Y)*100 + (Z))
#define NCCL_VERSION_CODE 22707

/* ---- types ----------------------------------------------------------------- */

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5,
    ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
    ncclScalarDevice = 0,
    ncclScalarHostImmediate = 1
} ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_UNDEF_FLOAT (-1.0f)

/* flags of windows, of CTA policies and of ncclCommShrink() */
#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01

/* Initialize it by NCCL_CONFIG_INITIALIZER. */
typedef struct ncclConfig_v22700 {
    size_t size; /* of the struct that the program was compiled with */
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
    int trafficClass;
    const char *commName;
    int collnetEnable;
    int CTAPolicy;
    int shrinkShare;
    int nvlsCTAs;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                \
    {                                                                          \
        sizeof(ncclConfig_t), 0xcafebeefu,                                     \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH),                  \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                      \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                      \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT,                      \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR,                      \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT,                      \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT                       \
    }

/* Initialize it by NCCL_SIM_INFO_INITIALIZER. */
typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime; /* us */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                              \
    {                                                                          \
        sizeof(ncclSimInfo_t), 0x74685283u,                                    \
            NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_UNDEF_FLOAT \
    }

/* ---- functions ------------------------------------------------------------- *
 *
 * Each has a second name that begins with p, for profilers that put a function of
 * their own in the place of the first.
 */
#define NCCL_FUNCTION(name, ...)                                               \
    ncclResult_t nccl##name(__VA_ARGS__);                                      \
    ncclResult_t pnccl##name(__VA_ARGS__)

/* the library */
NCCL_FUNCTION(GetVersion, int *version);
const char *ncclGetErrorString(ncclResult_t result);
const char *pncclGetErrorString(ncclResult_t result);
const char *ncclGetLastError(ncclComm_t comm);
const char *pncclGetLastError(ncclComm_t comm);
void ncclResetDebugInit(void);
void pncclResetDebugInit(void);

/* communicators */
NCCL_FUNCTION(GetUniqueId, ncclUniqueId *id);
NCCL_FUNCTION(CommInitRank, ncclComm_t *comm, int nranks, ncclUniqueId id,
              int rank);
NCCL_FUNCTION(CommInitRankConfig, ncclComm_t *comm, int nranks, ncclUniqueId id,
              int rank, ncclConfig_t *config);
NCCL_FUNCTION(CommInitRankScalable, ncclComm_t *comm, int nranks, int rank,
              int n_ids, ncclUniqueId *ids, ncclConfig_t *config);
NCCL_FUNCTION(CommInitAll, ncclComm_t *comms, int ndev, const int *devlist);
NCCL_FUNCTION(CommSplit, ncclComm_t comm, int color, int key, ncclComm_t *split,
              ncclConfig_t *config);
NCCL_FUNCTION(CommShrink, ncclComm_t comm, int *excluded, int n_excluded,
              ncclComm_t *shrunk, ncclConfig_t *config, int flags);
NCCL_FUNCTION(CommFinalize, ncclComm_t comm);
NCCL_FUNCTION(CommDestroy, ncclComm_t comm);
NCCL_FUNCTION(CommAbort, ncclComm_t comm);
NCCL_FUNCTION(CommGetAsyncError, ncclComm_t comm, ncclResult_t *error);
NCCL_FUNCTION(CommCount, const ncclComm_t comm, int *count);
NCCL_FUNCTION(CommCuDevice, const ncclComm_t comm, int *device);
NCCL_FUNCTION(CommUserRank, const ncclComm_t comm, int *rank);

/* memory */
NCCL_FUNCTION(MemAlloc, void **ptr, size_t size);
NCCL_FUNCTION(MemFree, void *ptr);
NCCL_FUNCTION(CommRegister, const ncclComm_t comm, void *buffer, size_t size,
              void **handle);
NCCL_FUNCTION(CommDeregister, const ncclComm_t comm, void *handle);
NCCL_FUNCTION(CommWindowRegister, ncclComm_t comm, void *buffer, size_t size,
              ncclWindow_t *window, int flags);
NCCL_FUNCTION(CommWindowDeregister, ncclComm_t comm, ncclWindow_t window);

/* reduction operations of the program's own */
NCCL_FUNCTION(RedOpCreatePreMulSum, ncclRedOp_t *op, void *scalar,
              ncclDataType_t type, ncclScalarResidence_t residence,
              ncclComm_t comm);
NCCL_FUNCTION(RedOpDestroy, ncclRedOp_t op, ncclComm_t comm);

/* operations */
NCCL_FUNCTION(AllReduce, const void *in, void *out, size_t count,
              ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
              cudaStream_t stream);
NCCL_FUNCTION(Reduce, const void *in, void *out, size_t count,
              ncclDataType_t type, ncclRedOp_t op, int root, ncclComm_t comm,
              cudaStream_t stream);
NCCL_FUNCTION(Bcast, void *buffer, size_t count, ncclDataType_t type, int root,
              ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(Broadcast, const void *in, void *out, size_t count,
              ncclDataType_t type, int root, ncclComm_t comm,
              cudaStream_t stream);
NCCL_FUNCTION(ReduceScatter, const void *in, void *out, size_t recvcount,
              ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
              cudaStream_t stream);
NCCL_FUNCTION(AllGather, const void *in, void *out, size_t sendcount,
              ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(Send, const void *in, size_t count, ncclDataType_t type, int peer,
              ncclComm_t comm, cudaStream_t stream);
NCCL_FUNCTION(Recv, void *out, size_t count, ncclDataType_t type, int peer,
              ncclComm_t comm, cudaStream_t stream);

/* groups */
NCCL_FUNCTION(GroupStart, void);
NCCL_FUNCTION(GroupEnd, void);
NCCL_FUNCTION(GroupSimulateEnd, ncclSimInfo_t *info);

#undef NCCL_FUNCTION

#ifdef __cplusplus
}
#endif
#endif
