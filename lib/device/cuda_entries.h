/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_entries.h - the kernels of cuda_kernels.cu as lists; plain text for the
 * preprocessor of C and of CUDA C++ alike.
 *
 * X(op, kind): the kernel coll_<op>_<kind>.  Types whose results have equal bits share
 * a kernel: sums, products and logical operations of integers do not depend on the sign,
 * bitwise operations not on the width.  cuda_table.c maps (type, op) to a kernel.
 */
#ifndef COLL_LIB_DEVICE_CUDA_ENTRIES_H
#define COLL_LIB_DEVICE_CUDA_ENTRIES_H

/* integers by their width, and floats */
#define COLL__CUDA_WIDTHS(X, op) X(op, u8) X(op, u16) X(op, u32) X(op, u64)
#define COLL__CUDA_FLOATS(X, op)                                               \
    X(op, f16) X(op, bf16) X(op, f32) X(op, f64) X(op, f8e4m3) X(op, f8e5m2)
#define COLL__CUDA_SIGNED(X, op) X(op, i8) X(op, i16) X(op, i32) X(op, i64)

#define COLL__CUDA_PLAIN(X, op)                                                \
    COLL__CUDA_WIDTHS(X, op) COLL__CUDA_FLOATS(X, op)
#define COLL__CUDA_ALL(X, op) COLL__CUDA_SIGNED(X, op) COLL__CUDA_PLAIN(X, op)

/* coll_<op>_<kind>(void *dst, void *next, const void *a, const void *b,
 *                  size_t len) */
#define COLL__CUDA_REDUCE_MAP(X)                                               \
    COLL__CUDA_PLAIN(X, sum)                                                   \
    COLL__CUDA_PLAIN(X, prod)                                                  \
    COLL__CUDA_ALL(X, min)                                                     \
    COLL__CUDA_ALL(X, max)                                                     \
    COLL__CUDA_PLAIN(X, land)                                                  \
    COLL__CUDA_PLAIN(X, lor)                                                   \
    COLL__CUDA_PLAIN(X, lxor)                                                  \
    X(band, u8) X(bor, u8) X(bxor, u8)

/* coll_multiply_<kind>(void *dst, const void *src, size_t len,
 *                      uint64_t factor) */
#define COLL__CUDA_MULTIPLY_MAP(X) COLL__CUDA_PLAIN(X, multiply)

/* coll_scale_<kind>(void *dst, const void *src, size_t len, int n_ranks,
 *                   uint64_t magic) */
#define COLL__CUDA_SCALE_MAP(X) COLL__CUDA_ALL(X, scale)

#endif
