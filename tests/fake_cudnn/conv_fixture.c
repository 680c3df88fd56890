/* SPDX-License-Identifier: BSD-3-Clause */
/* conv_fixture.c - a convolution of a test. */
#include "tests/fake_cudnn/conv_fixture.h"

#include <stdlib.h>

void conv_start(cudnnHandle_t *handle)
{
    dnn_open();
    fake_start();
    DNN(SUCCESS, dnn.cudnnCreate(handle));
}

static int extent(const struct conv_case *c, int in, int window, int i)
{
    return (in + 2 * c->pad[i] - ((window - 1) * c->dilation[i] + 1)) /
               c->stride[i] +
           1;
}

static void describe(struct conv_test *t)
{
    const struct conv_case *c = &t->shape;
    cudnnDataType_t type =
        t->type == DNN_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;

    DNN(SUCCESS, dnn.cudnnCreateTensorDescriptor(&t->x));
    DNN(SUCCESS, dnn.cudnnCreateTensorDescriptor(&t->y));
    DNN(SUCCESS, dnn.cudnnCreateFilterDescriptor(&t->w));
    DNN(SUCCESS, dnn.cudnnCreateConvolutionDescriptor(&t->conv));
    DNN(SUCCESS, dnn.cudnnSetTensor4dDescriptor(t->x, CUDNN_TENSOR_NHWC, type,
                                                c->n, c->c, c->h, c->w));
    DNN(SUCCESS,
        dnn.cudnnSetTensor4dDescriptor(t->y, CUDNN_TENSOR_NHWC, type, c->n,
                                       c->k, t->out[0], t->out[1]));
    DNN(SUCCESS, dnn.cudnnSetFilter4dDescriptor(t->w, type, CUDNN_TENSOR_NHWC,
                                                c->k, c->c, c->r, c->s));
    DNN(SUCCESS,
        dnn.cudnnSetConvolution2dDescriptor(
            t->conv, c->pad[0], c->pad[1], c->stride[0], c->stride[1],
            c->dilation[0], c->dilation[1],
            c->is_flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
            CUDNN_DATA_FLOAT));
    DNN(SUCCESS, dnn.cudnnSetConvolutionMathType(t->conv, CUDNN_FMA_MATH));
}

void conv_make(struct conv_test *t, const struct conv_case *shape,
               enum dnn_number type)
{
    *t = (struct conv_test){.shape = *shape, .type = type, .alpha = 1};
    OK(cu.CtxGetCurrent(&t->ctx));
    t->out[0] = extent(shape, shape->h, shape->r, 0);
    t->out[1] = extent(shape, shape->w, shape->s, 1);
    t->n[CONV_X] = (size_t)(shape->n * shape->c * shape->h * shape->w);
    t->n[CONV_W] = (size_t)(shape->k * shape->c * shape->r * shape->s);
    t->n[CONV_Y] = (size_t)(shape->n * shape->k * t->out[0] * t->out[1]);
    describe(t);
    for (int i = 0; i < 3; i++)
        t->at[i] = fake_memory(4 * t->n[i]);
    t->workspace_len = 4 * t->n[CONV_W] + 4096;
    t->workspace = fake_memory(t->workspace_len);
}

void conv_free(struct conv_test *t)
{
    DNN(SUCCESS, dnn.cudnnDestroyTensorDescriptor(t->x));
    DNN(SUCCESS, dnn.cudnnDestroyTensorDescriptor(t->y));
    DNN(SUCCESS, dnn.cudnnDestroyFilterDescriptor(t->w));
    DNN(SUCCESS, dnn.cudnnDestroyConvolutionDescriptor(t->conv));
    for (int i = 0; i < 3; i++)
        OK(cu.MemFree(t->at[i]));
    OK(cu.MemFree(t->workspace));
}

void conv_reset(struct conv_test *t, unsigned seed)
{
    for (int i = 0; i < 3; i++) {
        t->was[i] = dnn_draw(t->n[i], 3 * seed + (unsigned)i, t->type);
        dnn_write(t->at[i], t->was[i], t->n[i], t->type);
    }
}

#define PLACE(i) ((void *)(uintptr_t)t->at[i])

cudnnStatus_t conv_call(const struct conv_test *t, cudnnHandle_t h, int pass,
                        int algo)
{
    void *workspace = (void *)(uintptr_t)t->workspace;

    switch (pass) {
    case CONV_FORWARD:
        return dnn.cudnnConvolutionForward(
            h, &t->alpha, t->x, PLACE(CONV_X), t->w, PLACE(CONV_W), t->conv,
            (cudnnConvolutionFwdAlgo_t)algo, workspace, t->workspace_len,
            &t->beta, t->y, PLACE(CONV_Y));
    case CONV_BACK_DATA:
        return dnn.cudnnConvolutionBackwardData(
            h, &t->alpha, t->w, PLACE(CONV_W), t->y, PLACE(CONV_Y), t->conv,
            (cudnnConvolutionBwdDataAlgo_t)algo, workspace, t->workspace_len,
            &t->beta, t->x, PLACE(CONV_X));
    default:
        return dnn.cudnnConvolutionBackwardFilter(
            h, &t->alpha, t->x, PLACE(CONV_X), t->y, PLACE(CONV_Y), t->conv,
            (cudnnConvolutionBwdFilterAlgo_t)algo, workspace, t->workspace_len,
            &t->beta, t->w, PLACE(CONV_W));
    }
}

size_t conv_need(const struct conv_test *t, cudnnHandle_t h, int pass, int algo)
{
    size_t len = 0;

    switch (pass) {
    case CONV_FORWARD:
        DNN(SUCCESS, dnn.cudnnGetConvolutionForwardWorkspaceSize(
                         h, t->x, t->w, t->conv, t->y,
                         (cudnnConvolutionFwdAlgo_t)algo, &len));
        break;
    case CONV_BACK_DATA:
        DNN(SUCCESS, dnn.cudnnGetConvolutionBackwardDataWorkspaceSize(
                         h, t->w, t->y, t->conv, t->x,
                         (cudnnConvolutionBwdDataAlgo_t)algo, &len));
        break;
    default:
        DNN(SUCCESS, dnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(
                         h, t->x, t->y, t->conv, t->w,
                         (cudnnConvolutionBwdFilterAlgo_t)algo, &len));
    }
    return len;
}

/* ---- plain loops --------------------------------------------------------- */

int conv_output(int pass)
{
    return pass == CONV_FORWARD     ? CONV_Y
           : pass == CONV_BACK_DATA ? CONV_X
                                    : CONV_W;
}

/* One product of the sum: of these three numbers, one is the output's. */
struct term {
    size_t x, w, y;
};

static void add_term(const struct conv_test *t, int pass, double *sums,
                     const struct term *at)
{
    double x = t->was[CONV_X][at->x], w = t->was[CONV_W][at->w],
           y = t->was[CONV_Y][at->y];

    if (pass == CONV_FORWARD)
        sums[at->y] += x * w;
    else if (pass == CONV_BACK_DATA)
        sums[at->x] += y * w;
    else
        sums[at->w] += x * y;
}

/* All channels of one tap of the filter at one pixel of the output. */
static void add_tap(const struct conv_test *t, int pass, double *sums,
                    const int at[5])
{
    const struct conv_case *s = &t->shape;
    int n = at[0], oy = at[1], ox = at[2], r = at[3], q = at[4];
    int y = oy * s->stride[0] - s->pad[0] + r * s->dilation[0];
    int x = ox * s->stride[1] - s->pad[1] + q * s->dilation[1];
    int tap = r * s->s + q;

    if (y < 0 || y >= s->h || x < 0 || x >= s->w)
        return;
    if (s->is_flipped)
        tap = s->r * s->s - 1 - tap;
    for (int k = 0; k < s->k; k++)
        for (int c = 0; c < s->c; c++) {
            const struct term term = {
                (size_t)(((n * s->h + y) * s->w + x) * s->c + c),
                (size_t)((k * s->r * s->s + tap) * s->c + c),
                (size_t)(((n * t->out[0] + oy) * t->out[1] + ox) * s->k + k)};

            add_term(t, pass, sums, &term);
        }
}

static double *compute(const struct conv_test *t, int pass)
{
    const struct conv_case *s = &t->shape;
    double *sums = calloc(t->n[conv_output(pass)], sizeof(*sums));
    int at[5];

    for (at[0] = 0; at[0] < s->n; at[0]++)
        for (at[1] = 0; at[1] < t->out[0]; at[1]++)
            for (at[2] = 0; at[2] < t->out[1]; at[2]++)
                for (at[3] = 0; at[3] < s->r; at[3]++)
                    for (at[4] = 0; at[4] < s->s; at[4]++)
                        add_tap(t, pass, sums, at);
    return sums;
}

/* Of one number of the output, at most. */
static size_t n_terms(const struct conv_test *t, int pass)
{
    const struct conv_case *s = &t->shape;
    int n = pass == CONV_FORWARD     ? s->c * s->r * s->s
            : pass == CONV_BACK_DATA ? s->k * s->r * s->s
                                     : s->n * t->out[0] * t->out[1];

    return (size_t)n;
}

int conv_is_right(const struct conv_test *t, int pass, double alpha,
                  double beta)
{
    int out = conv_output(pass), is_right;
    double *should = compute(t, pass);
    float *is;

    OK(cu.StreamSynchronize(NULL));
    is = dnn_get(t->at[out], t->n[out], t->type);
    for (size_t i = 0; i < t->n[out]; i++)
        should[i] = alpha * should[i] + beta * t->was[out][i];
    is_right = dnn_near(is, should, t->n[out], n_terms(t, pass), t->type);
    free(should);
    return is_right;
}

/* Allocations of 2 MiB have a granule of their own. */
CUdeviceptr conv_tail(size_t len)
{
    const size_t granule = (size_t)2 << 20;

    return fake_memory(granule) + granule - (len & ~(size_t)15);
}
