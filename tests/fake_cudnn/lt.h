/* SPDX-License-Identifier: BSD-3-Clause */
/* lt.h - what libcublasLt.so.13 is made of; README.md says what it is for. */
#ifndef COLL_TESTS_FAKE_CUDNN_LT_H
#define COLL_TESTS_FAKE_CUDNN_LT_H

#include "tests/fake_cudnn/gemm.h"
#include "tests/fake_cudnn/object.h"
#include "tests/fake_cudnn/runtime.h"

#include <cublasLt.h>

struct lt_handle {
    CUcontext ctx;
};

/* Descriptors hold whatever they were given: cuBLAS 13.1 checks the sizes alone then.
 * The rest is checked when they are used. */
struct matmul {
    int32_t compute, scale, pointer_mode, trans_a, trans_b, trans_c, fill;
    uint32_t epilogue;
    const void *bias;
    int32_t bias_type, processors;
};

struct layout {
    uint32_t type;
    int32_t order;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t batch_stride;
};

struct preference {
    uint64_t workspace;
    uint32_t reductions;
    uint32_t align[4]; /* A, B, C, D */
};

/* ---- products (lt_check.c, lt_run.c) ------------------------------------- */

/* Element (i, j) is at[i * row + j * col]; it has room for len bytes. */
struct lt_matrix {
    enum number type;
    size_t row, col, len;
};

/* A product as it runs: all that its work copies.  d = alpha * a * b + beta * c, where a
 * is m x k and b is k x n, transposed already. */
struct product {
    size_t m, n, k;
    enum number read_as;
    struct lt_matrix a, b, c, d;
    int has_bias, has_relu, is_in_place_alike;
    float alpha, beta;
    size_t workspace;
};

struct lt_call {
    const char *entry;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c, d;
};

cublasStatus_t lt_check(const struct lt_call *call, struct product *out);

/* The work (foreign.h): views are a, b, c, d, the bias and the workspace, args a struct
 * product. */
void lt_run(void *const *views, const void *args, unsigned seed);

#endif
