/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn.h - cuDNN and cublasLt, found at run time.
 *
 * The trainer does not link to them, so that it also starts where they are not
 * installed.  Functions are called through a table, under their plain names.
 */
#ifndef COLL_TRAINER_CUDA_DNN_H
#define COLL_TRAINER_CUDA_DNN_H

#include <cublasLt.h>
#include <cudnn.h>
#include <stddef.h>

#define DNN_CUDNN_ENTRIES(X)                                                   \
    X(cudnnGetVersion)                                                         \
    X(cudnnGetErrorString)                                                     \
    X(cudnnGetLastErrorString)                                                 \
    X(cudnnCreate)                                                             \
    X(cudnnDestroy)                                                            \
    X(cudnnSetStream)                                                          \
    X(cudnnCreateTensorDescriptor)                                             \
    X(cudnnSetTensor4dDescriptor)                                              \
    X(cudnnDestroyTensorDescriptor)                                            \
    X(cudnnCreateFilterDescriptor)                                             \
    X(cudnnSetFilter4dDescriptor)                                              \
    X(cudnnDestroyFilterDescriptor)                                            \
    X(cudnnCreateConvolutionDescriptor)                                        \
    X(cudnnSetConvolution2dDescriptor)                                         \
    X(cudnnSetConvolutionMathType)                                             \
    X(cudnnDestroyConvolutionDescriptor)                                       \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                  \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                             \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                           \
    X(cudnnGetConvolutionForwardWorkspaceSize)                                 \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize)                            \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize)                          \
    X(cudnnConvolutionForward)                                                 \
    X(cudnnConvolutionBackwardData)                                            \
    X(cudnnConvolutionBackwardFilter)

#define DNN_CUBLASLT_ENTRIES(X)                                                \
    X(cublasLtGetVersion)                                                      \
    X(cublasLtGetStatusString)                                                 \
    X(cublasLtCreate)                                                          \
    X(cublasLtDestroy)                                                         \
    X(cublasLtMatmulDescCreate)                                                \
    X(cublasLtMatmulDescSetAttribute)                                          \
    X(cublasLtMatmulDescDestroy)                                               \
    X(cublasLtMatrixLayoutCreate)                                              \
    X(cublasLtMatrixLayoutDestroy)                                             \
    X(cublasLtMatmulPreferenceCreate)                                          \
    X(cublasLtMatmulPreferenceSetAttribute)                                    \
    X(cublasLtMatmulPreferenceDestroy)                                         \
    X(cublasLtMatmulAlgoGetHeuristic)                                          \
    X(cublasLtMatmul)

struct dnn_entries {
#define X(name) __typeof__(name) *name;
    DNN_CUDNN_ENTRIES(X)
    DNN_CUBLASLT_ENTRIES(X)
#undef X
};

/* Find both libraries, of the major versions that the program was built for.
 *
 * Result:    0 and *dnn; or -1 and why[len], a sentence with the remedy.
 * Threads:   one at a time.
 * Cost:      the libraries stay loaded.
 */
int dnn_find(struct dnn_entries *dnn, char *why, size_t len);

/* Write "9.19.0" for cuDNN's version, and "13.1.0" for cublasLt's. */
void dnn_say_versions(const struct dnn_entries *dnn, char cudnn[24],
                      char cublaslt[24]);

#endif
