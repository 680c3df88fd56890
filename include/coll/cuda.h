/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.h - coll.h for programs that use the CUDA runtime.
 *
 * coll.h takes a stream as void *.  These functions turn a cudaStream_t and a
 * cudaDataType_t into what coll.h takes, so that the compiler checks their types.
 */
#ifndef COLL_CUDA_H
#define COLL_CUDA_H

#include <coll/coll.h>
#include <cuda_runtime_api.h>
#include <library_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the CUDA runtime --------------------------------------------------- *
 *
 * The header coll/cuda.h is for programs that use the CUDA runtime.  It adds
 * nothing to what a program links.
 */

/* Return a stream as coll.h takes it.
 *
 * Shapes:    stream 0 is the legacy default stream of the current device.  Pass
 *            cudaStreamPerThread for the default stream of the thread, also
 *            where nvcc is told to make that the default.
 * Result:    A pointer that is not NULL.
 * Ownership: the stream stays the caller's.  It may be destroyed once the calls
 *            that got it have returned.
 * Errors:    None.
 * Threads:   Any.
 */
static inline void *coll_cuda_stream(cudaStream_t stream)
{
    return stream ? (void *)stream : (void *)cudaStreamLegacy;
}

/* Return the element type that is the same as a cudaDataType_t.
 *
 * Result:    COLL_N_TYPES if coll.h has no such type.
 * Errors:    None.
 * Threads:   Any.
 */
static inline enum coll_type coll_cuda_type(cudaDataType_t type)
{
    switch (type) {
    case CUDA_R_8I:
        return COLL_I8;
    case CUDA_R_8U:
        return COLL_U8;
    case CUDA_R_16I:
        return COLL_I16;
    case CUDA_R_16U:
        return COLL_U16;
    case CUDA_R_32I:
        return COLL_I32;
    case CUDA_R_32U:
        return COLL_U32;
    case CUDA_R_64I:
        return COLL_I64;
    case CUDA_R_64U:
        return COLL_U64;
    case CUDA_R_16F:
        return COLL_F16;
    case CUDA_R_16BF:
        return COLL_BF16;
    case CUDA_R_32F:
        return COLL_F32;
    case CUDA_R_64F:
        return COLL_F64;
    case CUDA_R_8F_E4M3:
        return COLL_F8E4M3;
    case CUDA_R_8F_E5M2:
        return COLL_F8E5M2;
    case CUDA_C_32F:
        return COLL_C64;
    case CUDA_C_64F:
        return COLL_C128;
    default:
        return COLL_N_TYPES;
    }
}

#ifdef __cplusplus
}
#endif
#endif
