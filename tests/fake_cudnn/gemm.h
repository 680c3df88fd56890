/* SPDX-License-Identifier: BSD-3-Clause */
/* gemm.h - matrix products on the host, in f32. */
#ifndef COLL_TESTS_FAKE_CUDNN_GEMM_H
#define COLL_TESTS_FAKE_CUDNN_GEMM_H

#include <stddef.h>

/* How numbers lie in memory.  TF32: f32, of which the device uses 10 bits of fraction. */
enum number { F32, BF16, TF32 };

/* Element (i, j) is at[i * row + j * col]. */
struct matrix {
    const void *at;
    enum number type;
    size_t row, col;
};

/* An m x n result, of inner length k.  c is packed, row after row. */
struct gemm {
    size_t m, n, k;
    struct matrix a, b;
    float *c;
};

/* c += a * b, in the order of k. */
void gemm_add(const struct gemm *g);

size_t number_size(enum number type);

/* Read and write one number; what is written is rounded to nearest even. */
float number_get(const void *at, enum number type, size_t i);
void number_put(void *at, enum number type, size_t i, float x);

/* Read n numbers that lie side by side, from number i on. */
void numbers_get(float *to, const void *at, enum number type, size_t i,
                 size_t n);

#endif
