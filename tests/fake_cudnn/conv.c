/* SPDX-License-Identifier: BSD-3-Clause */
/* conv.c - cuDNN's convolutions: algorithms, workspaces, and the work that is put into the
 * handle's stream. */
#include "tests/fake_cudnn/dnn.h"

#include <string.h>

#define NEED(is_so, status, reason)                                            \
    do {                                                                       \
        if (!(is_so))                                                          \
            return dnn_say(CUDNN_STATUS_##status, reason);                     \
    } while (0)

/* ---- algorithms and their workspaces ------------------------------------- */

/* One of the results, in a form that all three passes have. */
struct result {
    int number, is_deterministic;
    cudnnStatus_t status;
    size_t memory;
    cudnnMathType_t math;
};

/* API reference, cudnnGetConvolutionForwardAlgorithm_v7(): all algorithms are returned, the
 * fastest first; cudnnConvolutionFwdAlgoPerf_t: the status of each is the one that the
 * convolution would have. */
static cudnnStatus_t choose(const struct conv_call *call, int requested,
                            int *returned, struct result *results)
{
    const struct conv_algo *a;
    struct conv c;
    cudnnStatus_t st = conv_check(call, &c);

    if (st == CUDNN_STATUS_BAD_PARAM)
        return st;
    NEED(returned, BAD_PARAM, "returnedAlgoCount is NULL");
    NEED(requested > 0, BAD_PARAM, "requestedAlgoCount is not positive");
    *returned = 0;
    while (*returned < requested && (a = conv_algo_at(call->pass, *returned))) {
        struct result *r = &results[(*returned)++];

        *r = (struct result){.number = a->number,
                             .is_deterministic = a->is_deterministic,
                             .status = st,
                             .math = ((struct convolution *)call->conv)->math};
        if (!st && !a->is_supported)
            r->status = CUDNN_STATUS_NOT_SUPPORTED;
        if (!r->status)
            r->memory = conv_workspace(&c, a);
    }
    return CUDNN_STATUS_SUCCESS;
}

enum { MOST_RESULTS = 8 };

/* The three kinds of results have the same fields.  There is no time: NVIDIA's sample
 * mnistCUDNN prints -1 for all of them. */
#define FILL_IN(out, results, n)                                               \
    do {                                                                       \
        for (int i_ = 0; i_ < (n); i_++) {                                     \
            memset(&(out)[i_], 0, sizeof((out)[i_]));                          \
            (out)[i_].algo = (results)[i_].number;                             \
            (out)[i_].status = (results)[i_].status;                           \
            (out)[i_].time = -1;                                               \
            (out)[i_].memory = (results)[i_].memory;                           \
            (out)[i_].determinism = (results)[i_].is_deterministic             \
                                        ? CUDNN_DETERMINISTIC                  \
                                        : CUDNN_NON_DETERMINISTIC;             \
            (out)[i_].mathType = (results)[i_].math;                           \
        }                                                                      \
    } while (0)

static int at_most(int requested)
{
    return requested < MOST_RESULTS ? requested : MOST_RESULTS;
}

/* Answer a call with its results. */
#define ANSWER(call, requested, returned, out)                                 \
    do {                                                                       \
        struct result results_[MOST_RESULTS];                                  \
        cudnnStatus_t st_;                                                     \
                                                                               \
        NEED(out, BAD_PARAM, "perfResults is NULL");                           \
        st_ = choose(call, at_most(requested), returned, results_);            \
        if (!st_)                                                              \
            FILL_IN(out, results_, *(returned));                               \
        return st_;                                                            \
    } while (0)

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *out)
{
    const struct conv_call call = {"cudnnGetConvolutionForwardAlgorithm_v7",
                                   FORWARD,
                                   handle,
                                   x,
                                   y,
                                   w,
                                   conv};

    ANSWER(&call, requested, returned, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *out)
{
    const struct conv_call call = {
        "cudnnGetConvolutionBackwardDataAlgorithm_v7",
        BACK_DATA,
        handle,
        dx,
        dy,
        w,
        conv};

    ANSWER(&call, requested, returned, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out)
{
    const struct conv_call call = {
        "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
        BACK_FILTER,
        handle,
        x,
        dy,
        dw,
        conv};

    ANSWER(&call, requested, returned, out);
}

static cudnnStatus_t measure(const struct conv_call *call, int number,
                             size_t *len)
{
    const struct conv_algo *algo;
    struct conv c;
    cudnnStatus_t st;

    NEED(len, BAD_PARAM, "sizeInBytes is NULL");
    st = conv_check(call, &c);
    if (!st)
        st = conv_algo_find(&c, number, &algo);
    if (!st)
        *len = conv_workspace(&c, algo);
    return st;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
    size_t *len)
{
    const struct conv_call call = {"cudnnGetConvolutionForwardWorkspaceSize",
                                   FORWARD,
                                   handle,
                                   x,
                                   y,
                                   w,
                                   conv};

    return measure(&call, (int)algo, len);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo,
    size_t *len)
{
    const struct conv_call call = {
        "cudnnGetConvolutionBackwardDataWorkspaceSize",
        BACK_DATA,
        handle,
        dx,
        dy,
        w,
        conv};

    return measure(&call, (int)algo, len);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, cudnnConvolutionBwdFilterAlgo_t algo,
    size_t *len)
{
    const struct conv_call call = {
        "cudnnGetConvolutionBackwardFilterWorkspaceSize",
        BACK_FILTER,
        handle,
        x,
        dy,
        dw,
        conv};

    return measure(&call, (int)algo, len);
}

/* ---- work ---------------------------------------------------------------- */

/* Where everything lies. */
struct places {
    const void *alpha, *beta, *x, *w, *y, *workspace;
    size_t workspace_len;
    int algo;
};

static int is_aligned(const void *at) { return (size_t)at % 16 == 0; }

static cudnnStatus_t check_places(const struct conv *c, const struct places *p)
{
    NEED(p->alpha && p->beta, BAD_PARAM, "alpha or beta is NULL");
    NEED(p->x && p->w && p->y, BAD_PARAM,
         "the memory of a tensor or of the filter is NULL");
    NEED(is_aligned(p->x) && is_aligned(p->w) && is_aligned(p->y) &&
             is_aligned(p->workspace),
         BAD_PARAM_MISALIGNED_POINTER, "memory is not aligned to 16 bytes");
    NEED(p->workspace_len >= c->workspace, BAD_PARAM_SIZE_INSUFFICIENT,
         "workSpaceSizeInBytes is less than the algorithm needs");
    NEED(p->workspace || !c->workspace, BAD_PARAM, "workSpace is NULL");
    return CUDNN_STATUS_SUCCESS;
}

static struct fake_cuda_span span(const void *at, size_t len)
{
    return (struct fake_cuda_span){(CUdeviceptr)at, len, 16};
}

static cudnnStatus_t put(const struct conv_call *call, const struct places *p)
{
    const struct dnn_handle *h;
    const struct conv_algo *algo;
    struct fake_cuda_work work = {.entry = call->entry, .run = conv_run};
    struct conv c;
    cudnnStatus_t st = conv_check(call, &c);

    if (!st)
        st = conv_algo_find(&c, p->algo, &algo);
    if (st)
        return st;
    c.workspace = conv_workspace(&c, algo);
    c.is_unordered = !algo->is_deterministic;
    st = check_places(&c, p);
    if (st)
        return st;
    memcpy(&c.alpha, p->alpha, sizeof(c.alpha));
    memcpy(&c.beta, p->beta, sizeof(c.beta));
    work.spans[0] = span(p->x, conv_x_len(&c));
    work.spans[1] = span(p->w, conv_w_len(&c));
    work.spans[2] = span(p->y, conv_y_len(&c));
    if (p->workspace)
        work.spans[3] = span(p->workspace, p->workspace_len);
    work.args = &c;
    work.args_len = sizeof(c);
    h = object_of(call->handle, DNN_HANDLE, call->entry);
    return dnn_launch(fake_cuda_put(h->ctx, h->stream, &work));
}

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd,
    const void *x, const cudnnFilterDescriptor_t wd, const void *w,
    const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t workspace_len, const void *beta,
    const cudnnTensorDescriptor_t yd, void *y)
{
    const struct conv_call call = {
        "cudnnConvolutionForward", FORWARD, handle, xd, yd, wd, conv};
    const struct places p = {alpha,     beta,          x,        w, y,
                             workspace, workspace_len, (int)algo};

    return put(&call, &p);
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t wd,
    const void *w, const cudnnTensorDescriptor_t dyd, const void *dy,
    const cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
    void *workspace, size_t workspace_len, const void *beta,
    const cudnnTensorDescriptor_t dxd, void *dx)
{
    const struct conv_call call = {
        "cudnnConvolutionBackwardData", BACK_DATA, handle, dxd, dyd, wd, conv};
    const struct places p = {alpha,     beta,          dx,       w, dy,
                             workspace, workspace_len, (int)algo};

    return put(&call, &p);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd,
    const void *x, const cudnnTensorDescriptor_t dyd, const void *dy,
    const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algo, void *workspace, size_t workspace_len,
    const void *beta, const cudnnFilterDescriptor_t dwd, void *dw)
{
    const struct conv_call call = {"cudnnConvolutionBackwardFilter",
                                   BACK_FILTER,
                                   handle,
                                   xd,
                                   dyd,
                                   dwd,
                                   conv};
    const struct places p = {alpha,     beta,          x,        dw, dy,
                             workspace, workspace_len, (int)algo};

    return put(&call, &p);
}
