/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_kernels.h - the kernels for device memory: their image for the driver, the names
 * of their entries, and the entries' parameters.
 *
 * An entry is found by cuModuleGetFunction() and started by cuLaunchKernel() with
 * a grid and blocks of one dimension.  Its parameters, in order:
 *   coll_copy        void *dst, void *next, const void *src, size_t len
 *   a reduction      void *dst, void *next, const void *a, const void *b,
 *                    size_t len
 *   a multiply       void *dst, const void *src, size_t len, uint64_t factor
 *                    (coll__multiply_fn's, in the lowest bits)
 *   a scale          void *dst, const void *src, size_t len, int n_ranks,
 *                    uint64_t magic (coll__cuda_magic(n_ranks))
 * len is in bytes, of whole elements; all buffers are aligned to elements.  dst may be an
 * input; other overlap is invalid.  The result goes to dst, and also to next if it is not
 * NULL.  Results equal those of the host's kernels (lib/device/reduce.h) bit for bit,
 * except for the bits of a NaN.
 */
#ifndef COLL_LIB_DEVICE_CUDA_KERNELS_H
#define COLL_LIB_DEVICE_CUDA_KERNELS_H

#define COLL__CUDA_THREADS 512 /* of a block at most */
#define COLL__CUDA_BLOCKS_A_PROCESSOR 2

#ifndef __cplusplus
#include "include/coll/coll.h"

/* A fat binary for cuModuleLoadData(): machine code for several architectures, and PTX
 * for later ones.  Built by nvcc; empty without it. */
extern const unsigned char coll__cuda_image[];

/* Return the entry's name; NULL for an invalid type or operation, and where
 * coll__op_takes() refuses or coll__op_is_hosts().  avg uses the entry of the sum. */
const char *coll__cuda_reduce(enum coll_type type, enum coll_op op);
const char *coll__cuda_scale(enum coll_type type);
const char *coll__cuda_multiply(enum coll_type type);

/* Return the kind of a coll_plan step, enum coll__cuda_doing, that does the same as the
 * entry of that name; -1: no such entry. */
int coll__cuda_doing(const char *name);

/* Return the scale kernels' `magic` for n ranks, 1 or more: 2^64 (2^l - n) / n rounded
 * down, for the least 2^l that n does not exceed. */
uint64_t coll__cuda_magic(int n_ranks);

/* Return how many blocks of COLL__CUDA_THREADS threads pay for len bytes of result: 1 to
 * `most`. */
unsigned coll__cuda_blocks(size_t len, unsigned most);
#endif

#endif
