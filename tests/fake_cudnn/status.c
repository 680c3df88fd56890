/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - words for statuses, the version, and the last error of a thread. */
#include "tests/fake_cudnn/dnn.h"

#include <stdio.h>

static _Thread_local char last[256];

cudnnStatus_t dnn_say(cudnnStatus_t status, const char *reason)
{
    snprintf(last, sizeof(last), "%s", reason);
    return status;
}

cudnnStatus_t dnn_launch(CUresult rc)
{
    const char *words = NULL;

    if (!rc)
        return CUDNN_STATUS_SUCCESS;
    cuGetErrorString(rc, &words);
    return dnn_say(CUDNN_STATUS_EXECUTION_FAILED_CUDART,
                   words ? words : "an unknown error of the driver");
}

size_t cudnnGetVersion(void) { return CUDNN_VERSION; }

/* The words that 9.19 has: the names. */
const char *cudnnGetErrorString(cudnnStatus_t status)
{
#define WORDS(X)                                                               \
    X(SUCCESS)                                                                 \
    X(NOT_INITIALIZED)                                                         \
    X(SUBLIBRARY_VERSION_MISMATCH)                                             \
    X(SERIALIZATION_VERSION_MISMATCH)                                          \
    X(DEPRECATED)                                                              \
    X(LICENSE_ERROR)                                                           \
    X(RUNTIME_IN_PROGRESS)                                                     \
    X(RUNTIME_FP_OVERFLOW)                                                     \
    X(SUBLIBRARY_LOADING_FAILED)                                               \
    X(BAD_PARAM)                                                               \
    X(INVALID_VALUE)                                                           \
    X(BAD_PARAM_NULL_POINTER)                                                  \
    X(BAD_PARAM_MISALIGNED_POINTER)                                            \
    X(BAD_PARAM_NOT_FINALIZED)                                                 \
    X(BAD_PARAM_OUT_OF_BOUND)                                                  \
    X(BAD_PARAM_SIZE_INSUFFICIENT)                                             \
    X(BAD_PARAM_STREAM_MISMATCH)                                               \
    X(BAD_PARAM_SHAPE_MISMATCH)                                                \
    X(BAD_PARAM_DUPLICATED_ENTRIES)                                            \
    X(BAD_PARAM_ATTRIBUTE_TYPE)                                                \
    X(NOT_SUPPORTED)                                                           \
    X(NOT_SUPPORTED_GRAPH_PATTERN)                                             \
    X(NOT_SUPPORTED_SHAPE)                                                     \
    X(NOT_SUPPORTED_DATA_TYPE)                                                 \
    X(NOT_SUPPORTED_LAYOUT)                                                    \
    X(NOT_SUPPORTED_ARCH_MISMATCH)                                             \
    X(NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING)                              \
    X(NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE)                                    \
    X(NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT)                                \
    X(NOT_SUPPORTED_PADDING)                                                   \
    X(NOT_SUPPORTED_BAD_LAUNCH_PARAM)                                          \
    X(INTERNAL_ERROR)                                                          \
    X(INTERNAL_ERROR_COMPILATION_FAILED)                                       \
    X(INTERNAL_ERROR_UNEXPECTED_VALUE)                                         \
    X(INTERNAL_ERROR_HOST_ALLOCATION_FAILED)                                   \
    X(INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)                                 \
    X(INTERNAL_ERROR_BAD_LAUNCH_PARAM)                                         \
    X(INTERNAL_ERROR_TEXTURE_CREATION_FAILED)                                  \
    X(EXECUTION_FAILED)                                                        \
    X(EXECUTION_FAILED_CUDA_DRIVER)                                            \
    X(EXECUTION_FAILED_CUBLAS)                                                 \
    X(EXECUTION_FAILED_CUDART)                                                 \
    X(EXECUTION_FAILED_CURAND)
#define X(name)                                                                \
    case CUDNN_STATUS_##name:                                                  \
        return "CUDNN_STATUS_" #name;
    switch (status) {
        WORDS(X)
    default:
        return "CUDNN_UNKNOWN_STATUS";
    }
#undef X
#undef WORDS
}

void cudnnGetLastErrorString(char *message, size_t max_size)
{
    if (!message || !max_size)
        return;
    snprintf(message, max_size, "%s", last);
    last[0] = '\0';
}
