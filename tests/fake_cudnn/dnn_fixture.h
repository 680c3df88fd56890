/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn_fixture.h - the stand-ins of cuDNN and cuBLASLt in a test of Check. */
#ifndef COLL_TESTS_FAKE_DNN_FIXTURE_H
#define COLL_TESTS_FAKE_DNN_FIXTURE_H

#include "tests/fake_cuda/fake_fixture.h"

#include <cublasLt.h>
#include <cudnn.h>

/* clang-format off */
#define DNN_ENTRIES(X)                                                        \
    X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString)      \
    X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream)                          \
    X(cudnnCreateTensorDescriptor) X(cudnnSetTensor4dDescriptor)              \
    X(cudnnSetTensor4dDescriptorEx) X(cudnnDestroyTensorDescriptor)           \
    X(cudnnCreateFilterDescriptor) X(cudnnSetFilter4dDescriptor)              \
    X(cudnnDestroyFilterDescriptor) X(cudnnCreateConvolutionDescriptor)       \
    X(cudnnSetConvolution2dDescriptor) X(cudnnSetConvolutionMathType)         \
    X(cudnnDestroyConvolutionDescriptor)                                      \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                 \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                            \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                          \
    X(cudnnGetConvolutionForwardWorkspaceSize)                                \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize)                           \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize)                         \
    X(cudnnConvolutionForward) X(cudnnConvolutionBackwardData)                \
    X(cudnnConvolutionBackwardFilter)
#define LT_ENTRIES(X)                                                         \
    X(cublasLtGetVersion) X(cublasLtGetStatusString) X(cublasLtCreate)        \
    X(cublasLtDestroy) X(cublasLtMatmulDescCreate)                            \
    X(cublasLtMatmulDescSetAttribute) X(cublasLtMatmulDescDestroy)            \
    X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutSetAttribute)         \
    X(cublasLtMatrixLayoutDestroy) X(cublasLtMatmulPreferenceCreate)          \
    X(cublasLtMatmulPreferenceSetAttribute)                                   \
    X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulAlgoGetHeuristic)      \
    X(cublasLtMatmul)
/* clang-format on */

struct dnn_entries {
#define X(name) __typeof__(name) *name;
    DNN_ENTRIES(X)
    LT_ENTRIES(X)
#undef X
};

extern struct dnn_entries dnn;

/* Find both libraries, over the fake driver, which is not started. */
void dnn_open(void);

#define DNN(status, call)                                                      \
    ck_assert_int_eq((int)(call), (int)CUDNN_STATUS_##status)
#define LT(status, call)                                                       \
    ck_assert_int_eq((int)(call), (int)CUBLAS_STATUS_##status)

/* How the numbers of a test lie in device memory. */
enum dnn_number { DNN_F32, DNN_BF16 };

/* Device memory with these numbers, rounded to the type; and the numbers in it, which stay
 * until the test's process ends. */
CUdeviceptr dnn_put(const float *from, size_t n, enum dnn_number type);
void dnn_write(CUdeviceptr to, const float *from, size_t n,
               enum dnn_number type);
float *dnn_get(CUdeviceptr at, size_t n, enum dnn_number type);

/* n numbers between -1 and 1, that the type can hold; they stay, too. */
float *dnn_draw(size_t n, unsigned seed, enum dnn_number type);

/* Are all as near as sums of `terms` such products may be? */
int dnn_near(const float *is, const double *should, size_t n, size_t terms,
             enum dnn_number type);

#endif
