/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_kernels.h - the kernels for device memory: an image for the driver, which
 * entry does what, and what its parameters are.
 *
 * An entry is found by cuModuleGetFunction() and started by cuLaunchKernel() with
 * a grid and blocks of one dimension.  Its parameters, in order:
 *   coll_copy        void *dst, void *next, const void *src, size_t len
 *   a reduction      void *dst, void *next, const void *a, const void *b,
 *                    size_t len
 *   a premul         void *dst, const void *src, size_t len, uint64_t factor
 *                    (the factor's bits are the lowest ones)
 *   a scale          void *dst, const void *src, size_t len, int n_ranks,
 *                    uint64_t magic (coll__cuda_magic(n_ranks))
 * len is bytes of whole elements, all buffers are aligned to them.  dst may be
 * an input, nothing overlaps otherwise.  The result goes to dst, and to next
 * where it is not NULL.  Results are those of the host's kernels
 * (lib/device/reduce.h), but that one NaN is like another.
 */
#ifndef COLL_LIB_DEVICE_CUDA_KERNELS_H
#define COLL_LIB_DEVICE_CUDA_KERNELS_H

#define COLL__CUDA_THREADS 512 /* of a block at most */
#define COLL__CUDA_BLOCKS_A_PROCESSOR 2

#ifndef __cplusplus
#include "include/coll/coll.h"

/* A fat binary: machine code of several architectures and PTX for later ones;
 * for cuModuleLoadData().  Made by nvcc: not there without it. */
extern const unsigned char coll__cuda_image[];

/* Return the entry's name; NULL for no type or operation, and for the bits of
 * floats.  coll_avg is the sum. */
const char *coll__cuda_reduce(enum coll_type type, enum coll_op op);
const char *coll__cuda_scale(enum coll_type type);
const char *coll__cuda_premul(enum coll_type type);

/* Return what a step of coll_plan is that does what the entry of that name does, one
 * of enum coll__cuda_doing; -1 for no such name. */
int coll__cuda_doing(const char *name);

/* Return what the scale kernels want for this number of ranks, 1 or more:
 * 2^64 (2^l - n) / n rounded down, for the least 2^l that n does not exceed. */
uint64_t coll__cuda_magic(int n_ranks);

/* Return how many blocks of COLL__CUDA_THREADS threads are worth while for len
 * bytes of result: 1 to `most`. */
unsigned coll__cuda_blocks(size_t len, unsigned most);
#endif

#endif
