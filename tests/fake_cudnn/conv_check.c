/* SPDX-License-Identifier: BSD-3-Clause */
/* conv_check.c - which convolutions there are, and by which algorithms: API reference,
 * cudnnConvolutionForward(), -BackwardData(), -BackwardFilter(); of their tables the lines
 * for tensors and filters of NHWC. */
#include "tests/fake_cudnn/dnn.h"

#include <string.h>

#define NEED(is_so, status, reason)                                            \
    do {                                                                       \
        if (!(is_so))                                                          \
            return dnn_say(CUDNN_STATUS_##status, reason);                     \
    } while (0)

/* ---- descriptors --------------------------------------------------------- */

/* A dimension of 1 has any stride. */
static int is_packed_nhwc(const struct tensor *t)
{
    const int *d = t->dims;
    const int packed[4] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};

    for (int i = 0; i < 4; i++)
        if (d[i] != 1 && t->strides[i] != packed[i])
            return 0;
    return 1;
}

static cudnnStatus_t check_layout(const struct tensor *t)
{
    for (int i = 0; i < 4; i++)
        NEED(t->strides[i] > 0, NOT_SUPPORTED, "a stride is negative");
    NEED(is_packed_nhwc(t), NOT_SUPPORTED_LAYOUT,
         "a tensor is not packed in the order NHWC, which is all that this "
         "stand-in has");
    return CUDNN_STATUS_SUCCESS;
}

/* FLOAT_CONFIG and PSEUDO_BFLOAT16_CONFIG. */
static cudnnStatus_t check_types(const struct tensor *x, const struct filter *w,
                                 const struct convolution *conv,
                                 const struct tensor *y)
{
    NEED(x->type == w->type && x->type == y->type, BAD_PARAM,
         "the types of the tensors and the filter differ");
    NEED(x->type == CUDNN_DATA_FLOAT || x->type == CUDNN_DATA_BFLOAT16,
         NOT_SUPPORTED_DATA_TYPE,
         "the type is neither float nor bfloat16, which are all that this "
         "stand-in has");
    NEED(conv->type == CUDNN_DATA_FLOAT, NOT_SUPPORTED_DATA_TYPE,
         "convolutions of float and bfloat16 compute in float");
    return CUDNN_STATUS_SUCCESS;
}

/* The output's rows or columns. */
static int extent_out(int in, int window, const struct convolution *conv, int i)
{
    int reach = (window - 1) * conv->dilation[i] + 1;
    int room = in + 2 * conv->pad[i] - reach;

    return room < 0 ? 0 : room / conv->stride[i] + 1;
}

static cudnnStatus_t check_shapes(const struct tensor *x,
                                  const struct filter *w,
                                  const struct convolution *conv,
                                  const struct tensor *y)
{
    NEED(x->dims[1] == w->dims[1], BAD_PARAM,
         "the filter has another number of input channels than x");
    for (int i = 0; i < 2; i++)
        NEED(extent_out(x->dims[2 + i], w->dims[2 + i], conv, i), BAD_PARAM,
             "the filter is larger than x with its padding");
    NEED(y->dims[0] == x->dims[0], BAD_PARAM, "y has not as many images as x");
    NEED(y->dims[1] == w->dims[0], BAD_PARAM,
         "y has not as many channels as the filter has outputs");
    return CUDNN_STATUS_SUCCESS;
}

/* API reference: not supported by cudnnConvolutionForward(), a bad parameter of
 * cudnnConvolutionBackwardData(); of -BackwardFilter() it does not say. */
static cudnnStatus_t check_extents(enum pass pass, const struct tensor *x,
                                   const struct filter *w,
                                   const struct convolution *conv,
                                   const struct tensor *y)
{
    const cudnnStatus_t status =
        pass == FORWARD ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM;

    for (int i = 0; i < 2; i++)
        if (y->dims[2 + i] !=
            extent_out(x->dims[2 + i], w->dims[2 + i], conv, i))
            return dnn_say(status,
                           "y has not the rows and columns that follow");
    return CUDNN_STATUS_SUCCESS;
}

static void fill_in(struct conv *c, const struct tensor *x,
                    const struct filter *w, const struct convolution *conv,
                    const struct tensor *y)
{
    c->n = x->dims[0];
    c->c = x->dims[1];
    c->h = x->dims[2];
    c->w = x->dims[3];
    c->k = w->dims[0];
    c->r = w->dims[2];
    c->s = w->dims[3];
    c->out_h = y->dims[2];
    c->out_w = y->dims[3];
    memcpy(c->pad, conv->pad, sizeof(c->pad));
    memcpy(c->stride, conv->stride, sizeof(c->stride));
    memcpy(c->dilation, conv->dilation, sizeof(c->dilation));
    c->is_flipped = conv->mode == CUDNN_CONVOLUTION;
    c->type = x->type == CUDNN_DATA_BFLOAT16 ? BF16 : F32;
    /* API reference, cudnnMathType_t: all but FMA may use TF32 */
    c->read_as =
        c->type == F32 && conv->math != CUDNN_FMA_MATH ? TF32 : c->type;
}

cudnnStatus_t conv_check(const struct conv_call *call, struct conv *out)
{
    const struct tensor *x = object_of(call->x, TENSOR, call->entry);
    const struct tensor *y = object_of(call->y, TENSOR, call->entry);
    const struct filter *w = object_of(call->w, FILTER, call->entry);
    const struct convolution *conv =
        object_of(call->conv, CONVOLUTION, call->entry);
    cudnnStatus_t st;

    NEED(object_of(call->handle, DNN_HANDLE, call->entry), BAD_PARAM,
         "handle is NULL");
    NEED(x && y && w && conv, BAD_PARAM, "a descriptor is NULL");
    NEED(x->is_set && y->is_set && w->is_set && conv->is_set, BAD_PARAM,
         "a descriptor was not set");
    st = check_shapes(x, w, conv, y);
    if (!st)
        st = check_types(x, w, conv, y);
    if (!st)
        st = check_extents(call->pass, x, w, conv, y);
    if (!st)
        st = check_layout(x);
    if (!st)
        st = check_layout(y);
    if (st)
        return st;
    NEED(w->format == CUDNN_TENSOR_NHWC, NOT_SUPPORTED_LAYOUT,
         "the filter is not of the order NHWC, which is all that this "
         "stand-in has");
    memset(out, 0, sizeof(*out));
    out->pass = call->pass;
    fill_in(out, x, w, conv, y);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- algorithms ---------------------------------------------------------- */

/* Number, determinism, support.  A caller that wants the same bits each time has to look
 * for it: API reference, cudnnConvolutionBwdDataAlgo_t and -BwdFilterAlgo_t. */
static const struct conv_algo forward[CUDNN_CONVOLUTION_FWD_ALGO_COUNT] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, 1, 1},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, 1, 1},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 1, 0},
    {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, 1, 0},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT, 1, 0},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, 1, 0},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, 1, 0},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, 1, 0},
};

static const struct conv_algo back_data[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT] =
    {
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, 0, 1},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, 1, 1},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, 1, 0},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING, 1, 0},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, 1, 0},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, 1, 0},
};

static const struct conv_algo
    back_filter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT] = {
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, 0, 1},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, 1, 1},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, 1, 0},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, 0, 0},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, 1, 0},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, 1, 0},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, 1, 0},
};

const struct conv_algo *conv_algo_at(enum pass pass, int i)
{
    static const struct {
        const struct conv_algo *algos;
        int n;
    } lists[] = {
        [FORWARD] = {forward, CUDNN_CONVOLUTION_FWD_ALGO_COUNT},
        [BACK_DATA] = {back_data, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT},
        [BACK_FILTER] = {back_filter, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT},
    };

    return i < lists[pass].n ? &lists[pass].algos[i] : NULL;
}

cudnnStatus_t conv_algo_find(const struct conv *c, int number,
                             const struct conv_algo **out)
{
    const struct conv_algo *a;
    int i = 0;

    while ((a = conv_algo_at(c->pass, i)) && a->number != number)
        i++;
    /* API reference, cudnnStatus_t: a value that is not valid */
    NEED(a, BAD_PARAM, "algo is no algorithm");
    NEED(a->is_supported, NOT_SUPPORTED,
         "the algorithm has no convolutions of NHWC");
    *out = a;
    return CUDNN_STATUS_SUCCESS;
}

size_t conv_x_len(const struct conv *c)
{
    return (size_t)c->n * (size_t)c->c * (size_t)c->h * (size_t)c->w *
           number_size(c->type);
}

size_t conv_w_len(const struct conv *c)
{
    return (size_t)c->k * (size_t)c->c * (size_t)c->r * (size_t)c->s *
           number_size(c->type);
}

size_t conv_y_len(const struct conv *c)
{
    return (size_t)c->n * (size_t)c->k * (size_t)c->out_h * (size_t)c->out_w *
           number_size(c->type);
}

/* Invented, of the size that is usual: tables of indices, or the filter once more. */
size_t conv_workspace(const struct conv *c, const struct conv_algo *algo)
{
    if (!algo->is_deterministic)
        return 0;
    if (c->pass != FORWARD)
        return 4 * conv_w_len(c) / number_size(c->type) + 512;
    return algo->number == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
               ? (size_t)c->r * (size_t)c->s * 64 + 1024
               : 0;
}
