/* SPDX-License-Identifier: BSD-3-Clause */
/* conv_fixture.h - a convolution of a test: its descriptors, its memory, and its results
 * by plain loops. */
#ifndef COLL_TESTS_FAKE_CONV_FIXTURE_H
#define COLL_TESTS_FAKE_CONV_FIXTURE_H

#include "tests/fake_cudnn/dnn_fixture.h"

enum { CONV_FORWARD, CONV_BACK_DATA, CONV_BACK_FILTER };
enum { CONV_X, CONV_W, CONV_Y };

struct conv_case {
    int n, c, h, w, k, r, s;
    int pad[2], stride[2], dilation[2], is_flipped;
};

struct conv_test {
    struct conv_case shape;
    enum dnn_number type;
    CUcontext ctx;
    int out[2]; /* rows and columns */
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    float alpha, beta; /* 1 and 0 */

    /* Of x, w and y: how many numbers, where, and what conv_reset() has put there. */
    size_t n[3];
    CUdeviceptr at[3];
    float *was[3];

    CUdeviceptr workspace;
    size_t workspace_len;
};

/* Open all, have device 0's context current, make a handle. */
void conv_start(cudnnHandle_t *handle);

/* Math is FMA, and the workspace is large enough for each pass. */
void conv_make(struct conv_test *t, const struct conv_case *shape,
               enum dnn_number type);
void conv_free(struct conv_test *t);

/* Write random numbers into x, w and y. */
void conv_reset(struct conv_test *t, unsigned seed);

/* The pass by algorithm 0 or 1, which have these numbers in each of them. */
cudnnStatus_t conv_call(const struct conv_test *t, cudnnHandle_t h, int pass,
                        int algo);
size_t conv_need(const struct conv_test *t, cudnnHandle_t h, int pass,
                 int algo);

/* Which of x, w and y it writes. */
int conv_output(int pass);

/* Has the output become alpha * result + beta * what it was?  Waits for the device. */
int conv_is_right(const struct conv_test *t, int pass, double alpha,
                  double beta);

/* The last len bytes of an allocation, or up to 15 fewer, so that they are aligned. */
CUdeviceptr conv_tail(size_t len);

#endif
