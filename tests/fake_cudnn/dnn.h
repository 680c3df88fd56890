/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn.h - what libcudnn.so.9 is made of; README.md says what it is for. */
#ifndef COLL_TESTS_FAKE_CUDNN_DNN_H
#define COLL_TESTS_FAKE_CUDNN_DNN_H

#include "tests/fake_cudnn/gemm.h"
#include "tests/fake_cudnn/object.h"
#include "tests/fake_cudnn/runtime.h"

#include <cudnn.h>

/* ---- descriptors (descriptor.c) ------------------------------------------ */

struct dnn_handle {
    CUcontext ctx;
    CUstream stream;
};

/* n, c, h, w in this order; of a filter k, c, h, w. */
struct tensor {
    int is_set;
    cudnnDataType_t type;
    int dims[4], strides[4];
};

struct filter {
    int is_set;
    cudnnDataType_t type;
    cudnnTensorFormat_t format;
    int dims[4];
};

/* h, w */
struct convolution {
    int is_set;
    int pad[2], stride[2], dilation[2];
    cudnnConvolutionMode_t mode;
    cudnnDataType_t type;
    cudnnMathType_t math;
};

/* ---- status (status.c) --------------------------------------------------- */

/* Keep the reason for cudnnGetLastErrorString() and return the status. */
cudnnStatus_t dnn_say(cudnnStatus_t status, const char *reason);

/* The same for what the driver has answered. */
cudnnStatus_t dnn_launch(CUresult rc);

/* ---- convolutions (conv.c, conv_check.c, conv_run.c) --------------------- */

enum pass { FORWARD, BACK_DATA, BACK_FILTER };

/* A convolution as it runs: all that its work copies. */
struct conv {
    enum pass pass;
    int n, c, h, w; /* images and channels in */
    int k, r, s;    /* channels out, the filter's rows and columns */
    int out_h, out_w;
    int pad[2], stride[2], dilation[2];
    int is_flipped;      /* mode CUDNN_CONVOLUTION */
    enum number type;    /* in memory */
    enum number read_as; /* in products */
    int is_unordered;    /* an algorithm that is not deterministic */
    float alpha, beta;
    size_t workspace; /* bytes */
};

/* What a call was given. */
struct conv_call {
    const char *entry;
    enum pass pass;
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y; /* or their gradients */
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
};

/* An algorithm of a pass. */
struct conv_algo {
    int number, is_deterministic;
    int is_supported; /* it has convolutions of NHWC */
};

/* Check descriptors against each other; fill in the convolution.  BAD_PARAM, or one of the
 * NOT_SUPPORTED. */
cudnnStatus_t conv_check(const struct conv_call *call, struct conv *out);

/* Algorithm i of a pass: the supported ones, the fastest first, and then the others; NULL
 * behind the last one. */
const struct conv_algo *conv_algo_at(enum pass pass, int i);

/* Find an algorithm of this number, or say why it can not be used. */
cudnnStatus_t conv_algo_find(const struct conv *c, int number,
                             const struct conv_algo **out);

size_t conv_workspace(const struct conv *c, const struct conv_algo *algo);

/* Bytes of x, w and y. */
size_t conv_x_len(const struct conv *c);
size_t conv_w_len(const struct conv *c);
size_t conv_y_len(const struct conv *c);

/* The work (foreign.h): views are x, w, y and the workspace, args a struct conv. */
void conv_run(void *const *views, const void *args, unsigned seed);

#endif
