/* SPDX-License-Identifier: BSD-3-Clause */
/* descriptor.c - cuDNN's handles and descriptors.  To wrong values of descriptors
 * they answer what cuDNN 9.19 does, which needs no device for that. */
#include "tests/fake_cudnn/dnn.h"

#include <limits.h>

#define BAD CUDNN_STATUS_BAD_PARAM
#define NEED(is_so, reason)                                                    \
    do {                                                                       \
        if (!(is_so))                                                          \
            return dnn_say(BAD, reason);                                       \
    } while (0)

/* ---- handles ------------------------------------------------------------- */

static cudnnStatus_t of_start(CUresult rc)
{
    switch (rc) {
    case CUDA_SUCCESS:
        return CUDNN_STATUS_SUCCESS;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_NOT_INITIALIZED:
        return dnn_say(CUDNN_STATUS_NOT_INITIALIZED,
                       "CUDA finds no device, or can not start");
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
        return dnn_say(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                       "the handle's memory can not be allocated: there is "
                       "none, or a stream captures");
    default:
        return dnn_say(CUDNN_STATUS_INTERNAL_ERROR, "the driver has failed");
    }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    struct dnn_handle *h;
    CUcontext ctx = NULL;
    CUresult rc;

    NEED(handle, "handle is NULL");
    rc = runtime_begin("cudnnCreate", &ctx);
    if (rc)
        return of_start(rc);
    h = object_new(DNN_HANDLE, sizeof(*h));
    h->ctx = ctx;
    *handle = (cudnnHandle_t)h;
    return CUDNN_STATUS_SUCCESS;
}

/* It waits for the device: API reference, cudnnDestroy(). */
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    struct dnn_handle *h = object_of(handle, DNN_HANDLE, "cudnnDestroy");

    if (!h)
        return CUDNN_STATUS_SUCCESS;
    object_end(handle, DNN_HANDLE, "cudnnDestroy");
    return runtime_end(h->ctx) ? dnn_say(CUDNN_STATUS_INTERNAL_ERROR,
                                         "the device can not be waited for")
                               : CUDNN_STATUS_SUCCESS;
}

/* API reference: a stream of another context is refused. */
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    struct dnn_handle *h = object_of(handle, DNN_HANDLE, "cudnnSetStream");
    CUcontext ctx = NULL;

    NEED(h, "handle is NULL");
    if (stream) {
        if (cuStreamGetCtx((CUstream)stream, &ctx))
            return dnn_say(CUDNN_STATUS_INTERNAL_ERROR,
                           "the driver does not tell the stream's context");
        if (ctx != h->ctx)
            return dnn_say(CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH,
                           "the stream is not of the handle's context");
    }
    h->stream = (CUstream)stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- tensors ------------------------------------------------------------- */

enum { LAST_TYPE = 21 }; /* of 9.19 */

static int is_type(cudnnDataType_t type)
{
    return type >= CUDNN_DATA_FLOAT && (int)type <= LAST_TYPE;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out)
{
    NEED(out, "tensorDesc is NULL");
    *out = object_new(TENSOR, sizeof(struct tensor));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t handle)
{
    if (handle)
        object_end(handle, TENSOR, "cudnnDestroyTensorDescriptor");
    return CUDNN_STATUS_SUCCESS;
}

/* Negative strides are taken; elements may lie 2^31 - 1 apart. */
static cudnnStatus_t set(struct tensor *t, const struct tensor *value)
{
    long long extent = 1;

    NEED(t, "tensorDesc is NULL");
    NEED(is_type(value->type), "dataType is no type");
    for (int i = 0; i < 4; i++) {
        NEED(value->dims[i] > 0, "a dimension is not positive");
        NEED(value->strides[i] || value->dims[i] == 1, "a stride is 0");
        extent += (long long)(value->dims[i] - 1) * value->strides[i];
    }
    if (extent > INT_MAX)
        return dnn_say(CUDNN_STATUS_NOT_SUPPORTED,
                       "the tensor has more than 2^31 - 1 elements");
    *t = *value;
    t->is_set = 1;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t handle,
                                           cudnnDataType_t type, int n, int c,
                                           int h, int w, int n_stride,
                                           int c_stride, int h_stride,
                                           int w_stride)
{
    const struct tensor value = {
        .type = type,
        .dims = {n, c, h, w},
        .strides = {n_stride, c_stride, h_stride, w_stride}};

    return set(object_of(handle, TENSOR, "cudnnSetTensor4dDescriptorEx"),
               &value);
}

/* The product, or 0 where an int has no room for it. */
static int times(int a, int b)
{
    int product;

    return __builtin_mul_overflow(a, b, &product) ? 0 : product;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t handle,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w)
{
    struct tensor *t = object_of(handle, TENSOR, "cudnnSetTensor4dDescriptor");
    struct tensor value = {.type = type, .dims = {n, c, h, w}};
    int *strides = value.strides;

    NEED(t, "tensorDesc is NULL");
    NEED(n > 0 && c > 0 && h > 0 && w > 0, "a dimension is not positive");
    switch (format) {
    case CUDNN_TENSOR_NCHW:
        strides[3] = 1;
        strides[2] = w;
        strides[1] = times(h, w);
        strides[0] = times(c, strides[1]);
        break;
    case CUDNN_TENSOR_NHWC:
        strides[1] = 1;
        strides[3] = c;
        strides[2] = times(w, c);
        strides[0] = times(h, strides[2]);
        break;
    default: /* vectors of channels are for types of 8 bits */
        return dnn_say(BAD, "the format is no format of this type");
    }
    return set(t, &value);
}

/* ---- filters ------------------------------------------------------------- */

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out)
{
    NEED(out, "filterDesc is NULL");
    *out = object_new(FILTER, sizeof(struct filter));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t handle)
{
    if (handle)
        object_end(handle, FILTER, "cudnnDestroyFilterDescriptor");
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t handle,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w)
{
    struct filter *f = object_of(handle, FILTER, "cudnnSetFilter4dDescriptor");

    NEED(f, "filterDesc is NULL");
    NEED(k > 0 && c > 0 && h > 0 && w > 0, "a dimension is not positive");
    NEED(format >= CUDNN_TENSOR_NCHW && format <= CUDNN_TENSOR_NCHW_VECT_C,
         "format is no format");
    NEED(is_type(type), "dataType is no type");
    *f = (struct filter){1, type, format, {k, c, h, w}};
    return CUDNN_STATUS_SUCCESS;
}

/* ---- convolutions -------------------------------------------------------- */

cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *out)
{
    NEED(out, "convDesc is NULL");
    *out = object_new(CONVOLUTION, sizeof(struct convolution));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t handle)
{
    if (handle)
        object_end(handle, CONVOLUTION, "cudnnDestroyConvolutionDescriptor");
    return CUDNN_STATUS_SUCCESS;
}

static int computes_in(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE ||
           type == CUDNN_DATA_HALF || type == CUDNN_DATA_INT32 ||
           type == CUDNN_DATA_FAST_FLOAT_FOR_FP8;
}

/* It keeps the math type that was set before. */
cudnnStatus_t cudnnSetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t handle, int pad_h, int pad_w, int stride_h,
    int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
    cudnnDataType_t type)
{
    struct convolution *c =
        object_of(handle, CONVOLUTION, "cudnnSetConvolution2dDescriptor");

    NEED(c, "convDesc is NULL");
    NEED(pad_h >= 0 && pad_w >= 0, "a padding is negative");
    NEED(stride_h > 0 && stride_w > 0, "a stride is not positive");
    NEED(dilation_h > 0 && dilation_w > 0, "a dilation is not positive");
    NEED(mode == CUDNN_CONVOLUTION || mode == CUDNN_CROSS_CORRELATION,
         "mode is no mode");
    NEED(computes_in(type), "a convolution does not compute in this type");
    *c = (struct convolution){1,
                              {pad_h, pad_w},
                              {stride_h, stride_w},
                              {dilation_h, dilation_w},
                              mode,
                              type,
                              c->math};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle,
                                          cudnnMathType_t math)
{
    struct convolution *c =
        object_of(handle, CONVOLUTION, "cudnnSetConvolutionMathType");

    NEED(c, "convDesc is NULL");
    NEED((unsigned)math <= CUDNN_FMA_MATH, "mathType is no math type");
    c->math = math;
    return CUDNN_STATUS_SUCCESS;
}
