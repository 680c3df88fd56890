/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.h - libcoll for users of CUDA's runtime: what coll.h has, where it takes a
 * stream as void *, with cudaStream_t checked by the compiler.
 *
 * Header only: it adds nothing to what is linked, and a program that passes its
 * streams to coll.h as they are gets the same.
 */
#ifndef COLL_CUDA_H
#define COLL_CUDA_H

#include <coll/coll.h>
#include <cuda_runtime_api.h>
#include <library_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the stream as coll.h takes it.
 *
 * Shapes:    0, the default stream, is the legacy one of the current device; pass
 *            cudaStreamPerThread for the thread's own, also where nvcc is told to
 *            make that the default.
 * Ownership: the caller's; it may be destroyed once the calls with it returned.
 * Errors:    none.
 * Threads:   any.
 */
static inline void *coll_cuda_stream(cudaStream_t stream)
{
    return stream ? (void *)stream : (void *)cudaStreamLegacy;
}

/* The same element type as a cudaDataType_t's, or COLL_N_TYPES where there is
 * none. */
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
    default:
        return COLL_N_TYPES;
    }
}

#ifdef __cplusplus
}
#endif
#endif
