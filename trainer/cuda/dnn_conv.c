/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn_conv.c - descriptors and algorithms of cuDNN's convolutions.
 *
 * cuDNN's heuristics list the algorithms, the fastest first, also some that cannot do
 * without shorter mantissas.  The first one is taken that works, that needs no more memory
 * than MOST_WORK, and that gives the same bits each time if that is asked for.
 */
#include "trainer/cuda/dnn_conv.h"
#include "trainer/cuda/gpu.h"
#include "trainer/error.h"

#include <stdlib.h>

#define MOST_WORK ((size_t)1 << 30) /* bytes */
#define MOST_ALGOS 16

struct dnn_conv {
    cudnnTensorDescriptor_t in, out;
    cudnnFilterDescriptor_t weights;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t back_in;
    cudnnConvolutionBwdFilterAlgo_t back_weights;
    size_t work; /* bytes that the largest of them needs */
};

static const float one = 1, zero = 0;

static cudnnDataType_t value_type(void)
{
    return gpu_has_bf16() ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static int describe_maps(cudnnTensorDescriptor_t *tensor, int n,
                         const struct shape *s)
{
    if (gpu_note_cudnn(gpu.dnn.cudnnCreateTensorDescriptor(tensor),
                       "cudnnCreateTensorDescriptor"))
        return -1;
    return gpu_note_cudnn(gpu.dnn.cudnnSetTensor4dDescriptor(
                              *tensor, CUDNN_TENSOR_NHWC, value_type(), n,
                              s->channels, s->height, s->width),
                          "cudnnSetTensor4dDescriptor");
}

static int describe_weights(struct dnn_conv *c,
                            const struct dnn_conv_config *config)
{
    if (gpu_note_cudnn(gpu.dnn.cudnnCreateFilterDescriptor(&c->weights),
                       "cudnnCreateFilterDescriptor"))
        return -1;
    return gpu_note_cudnn(gpu.dnn.cudnnSetFilter4dDescriptor(
                              c->weights, value_type(), CUDNN_TENSOR_NHWC,
                              config->out.channels, config->in.channels,
                              config->kernel, config->kernel),
                          "cudnnSetFilter4dDescriptor");
}

/* Sums are f32.  Only FMA reads f32 as it is: cuDNN's default may take it for TF32. */
static int describe_conv(struct dnn_conv *c,
                         const struct dnn_conv_config *config)
{
    static const cudnnMathType_t maths[] = {
        [PRECISION_F32] = CUDNN_FMA_MATH,
        [PRECISION_TF32] = CUDNN_DEFAULT_MATH,
        [PRECISION_BF16] = CUDNN_TENSOR_OP_MATH};
    int pad = config->pad, stride = config->stride;

    if (gpu_note_cudnn(gpu.dnn.cudnnCreateConvolutionDescriptor(&c->conv),
                       "cudnnCreateConvolutionDescriptor") ||
        gpu_note_cudnn(gpu.dnn.cudnnSetConvolution2dDescriptor(
                           c->conv, pad, pad, stride, stride, 1, 1,
                           CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                       "cudnnSetConvolution2dDescriptor"))
        return -1;
    return gpu_note_cudnn(
        gpu.dnn.cudnnSetConvolutionMathType(c->conv, maths[gpu.precision]),
        "cudnnSetConvolutionMathType");
}

/* ---- algorithms ---- */

static int no_algorithm(const char *pass)
{
    return train_fail("cuDNN has no algorithm for the %s of a convolution "
                      "here%s; give --device cpu%s%s",
                      pass,
                      gpu.is_deterministic ? " that gives the same bits each "
                                             "time"
                                           : "",
                      gpu_remedy(),
                      gpu.is_deterministic ? ", or leave --deterministic out"
                                           : "");
}

/* An algorithm of one of the three passes, whose types in cuDNN differ. */
struct candidate {
    int algo;
    cudnnStatus_t status;
    cudnnDeterminism_t determinism;
};

#define CANDIDATE(found)                                                       \
    (struct candidate)                                                         \
    {                                                                          \
        (int)(found).algo, (found).status, (found).determinism                 \
    }

/* Ask how much memory an algorithm needs. */
typedef cudnnStatus_t memory_fn(const struct dnn_conv *c, int algo,
                                size_t *len);

static cudnnStatus_t forward_memory(const struct dnn_conv *c, int algo,
                                    size_t *len)
{
    return gpu.dnn.cudnnGetConvolutionForwardWorkspaceSize(
        gpu.cudnn, c->in, c->weights, c->conv, c->out,
        (cudnnConvolutionFwdAlgo_t)algo, len);
}

static cudnnStatus_t back_in_memory(const struct dnn_conv *c, int algo,
                                    size_t *len)
{
    return gpu.dnn.cudnnGetConvolutionBackwardDataWorkspaceSize(
        gpu.cudnn, c->weights, c->out, c->conv, c->in,
        (cudnnConvolutionBwdDataAlgo_t)algo, len);
}

static cudnnStatus_t back_weights_memory(const struct dnn_conv *c, int algo,
                                         size_t *len)
{
    return gpu.dnn.cudnnGetConvolutionBackwardFilterWorkspaceSize(
        gpu.cudnn, c->in, c->out, c->conv, c->weights,
        (cudnnConvolutionBwdFilterAlgo_t)algo, len);
}

/* Return 1 and count its memory if the algorithm may be taken. */
static int may_take(struct dnn_conv *c, const struct candidate *found,
                    memory_fn *memory)
{
    size_t len;

    if (found->status != CUDNN_STATUS_SUCCESS ||
        (gpu.is_deterministic && found->determinism != CUDNN_DETERMINISTIC) ||
        memory(c, found->algo, &len) != CUDNN_STATUS_SUCCESS || len > MOST_WORK)
        return 0;
    if (c->work < len)
        c->work = len;
    return 1;
}

static int choose_forward(struct dnn_conv *c)
{
    cudnnConvolutionFwdAlgoPerf_t found[MOST_ALGOS];
    int n = 0;

    if (gpu_note_cudnn(gpu.dnn.cudnnGetConvolutionForwardAlgorithm_v7(
                           gpu.cudnn, c->in, c->weights, c->conv, c->out,
                           MOST_ALGOS, &n, found),
                       "cudnnGetConvolutionForwardAlgorithm_v7"))
        return -1;
    for (int i = 0; i < n; i++)
        if (may_take(c, &CANDIDATE(found[i]), forward_memory)) {
            c->forward = found[i].algo;
            return 0;
        }
    return no_algorithm("forward pass");
}

static int choose_back_in(struct dnn_conv *c)
{
    cudnnConvolutionBwdDataAlgoPerf_t found[MOST_ALGOS];
    int n = 0;

    if (gpu_note_cudnn(gpu.dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                           gpu.cudnn, c->weights, c->out, c->conv, c->in,
                           MOST_ALGOS, &n, found),
                       "cudnnGetConvolutionBackwardDataAlgorithm_v7"))
        return -1;
    for (int i = 0; i < n; i++)
        if (may_take(c, &CANDIDATE(found[i]), back_in_memory)) {
            c->back_in = found[i].algo;
            return 0;
        }
    return no_algorithm("input's gradient");
}

static int choose_back_weights(struct dnn_conv *c)
{
    cudnnConvolutionBwdFilterAlgoPerf_t found[MOST_ALGOS];
    int n = 0;

    if (gpu_note_cudnn(gpu.dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                           gpu.cudnn, c->in, c->out, c->conv, c->weights,
                           MOST_ALGOS, &n, found),
                       "cudnnGetConvolutionBackwardFilterAlgorithm_v7"))
        return -1;
    for (int i = 0; i < n; i++)
        if (may_take(c, &CANDIDATE(found[i]), back_weights_memory)) {
            c->back_weights = found[i].algo;
            return 0;
        }
    return no_algorithm("weights' gradient");
}

static int prepare(struct dnn_conv *c, const struct dnn_conv_config *config)
{
    if (describe_maps(&c->in, config->chunk, &config->in) ||
        describe_maps(&c->out, config->chunk, &config->out) ||
        describe_weights(c, config) || describe_conv(c, config) ||
        choose_forward(c))
        return -1;
    if (config->is_training && (choose_back_in(c) || choose_back_weights(c)))
        return -1;
    return gpu_room(&gpu.work, c->work);
}

int dnn_conv_create(struct dnn_conv **conv,
                    const struct dnn_conv_config *config)
{
    struct dnn_conv *c = calloc(1, sizeof(*c));

    if (!c)
        return train_fail("out of memory for a convolution; use fewer ranks on "
                          "this machine");
    if (prepare(c, config)) {
        dnn_conv_destroy(c);
        return -1;
    }
    *conv = c;
    return 0;
}

void dnn_conv_destroy(struct dnn_conv *c)
{
    if (!c)
        return;
    if (c->conv)
        gpu.dnn.cudnnDestroyConvolutionDescriptor(c->conv);
    if (c->weights)
        gpu.dnn.cudnnDestroyFilterDescriptor(c->weights);
    if (c->out)
        gpu.dnn.cudnnDestroyTensorDescriptor(c->out);
    if (c->in)
        gpu.dnn.cudnnDestroyTensorDescriptor(c->in);
    free(c);
}

/* ---- passes ---- */

int dnn_conv_forward(struct dnn_conv *c, const void *in, const void *weights,
                     void *out)
{
    return gpu_note_cudnn(gpu.dnn.cudnnConvolutionForward(
                              gpu.cudnn, &one, c->in, in, c->weights, weights,
                              c->conv, c->forward, gpu.work.at, gpu.work.len,
                              &zero, c->out, out),
                          "cudnnConvolutionForward");
}

int dnn_conv_backward_in(struct dnn_conv *c, const void *weights,
                         const void *dout, void *din)
{
    return gpu_note_cudnn(gpu.dnn.cudnnConvolutionBackwardData(
                              gpu.cudnn, &one, c->weights, weights, c->out,
                              dout, c->conv, c->back_in, gpu.work.at,
                              gpu.work.len, &zero, c->in, din),
                          "cudnnConvolutionBackwardData");
}

int dnn_conv_backward_weights(struct dnn_conv *c, const void *in,
                              const void *dout, void *dweights)
{
    return gpu_note_cudnn(gpu.dnn.cudnnConvolutionBackwardFilter(
                              gpu.cudnn, &one, c->in, in, c->out, dout, c->conv,
                              c->back_weights, gpu.work.at, gpu.work.len, &zero,
                              c->weights, dweights),
                          "cudnnConvolutionBackwardFilter");
}
