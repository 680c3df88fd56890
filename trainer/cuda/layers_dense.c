/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_dense.c - every output from every input, by cublasLt: each of the three passes is
 * one product of matrices, and the first ends with biases and relu by a kernel, which keeps
 * NaN, as cublasLt's own relu does not. */
#include "trainer/cuda/dnn_product.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/cuda/layers_cuda.h"
#include "trainer/cuda/sums.h"
#include "trainer/error.h"

#include <stdlib.h>

struct dense {
    struct dnn_product *out, *dweights, *din;
    void *weights; /* as values, of the GPU; NULL where these are f32 */
};

static int dense_shape(struct layer *l) { return layer_dense.shape(l); }

static void dense_fini(struct layer *l)
{
    struct dense *d = l->state;

    if (!d)
        return;
    dnn_product_destroy(d->din);
    dnn_product_destroy(d->dweights);
    dnn_product_destroy(d->out);
    gpu_release(d->weights);
    free(d);
    l->state = NULL;
}

/* Return the weights as values. */
static const void *weights_of(const struct layer *l)
{
    const struct dense *d = l->state;

    return d->weights ? d->weights : l->weights;
}

static int prepare_weights(const struct layer *l, struct dense *d)
{
    if (!gpu_has_bf16())
        return 0;
    d->weights = gpu_alloc(l->n_weights * gpu_value_size());
    return d->weights ? 0 : gpu_no_memory(l->n_weights * gpu_value_size());
}

static int prepare_forward(const struct layer *l, struct dense *d)
{
    struct dnn_product_config out = {
        .rows = l->chunk,
        .columns = l->fan_out,
        .inner = l->fan_in,
        .alignment_b = dnn_alignment(weights_of(l)),
        .alignment_out = DNN_ALIGNED,
        .alignment_a = DNN_ALIGNED,
    };

    return dnn_product_create(&d->out, &out);
}

static int prepare_back(const struct layer *l, struct dense *d)
{
    struct dnn_product_config dweights = {
        .rows = l->fan_in,
        .columns = l->fan_out,
        .inner = l->chunk,
        .a_turned = 1,
        .alignment_a = DNN_ALIGNED,
        .alignment_b = DNN_ALIGNED,
        .alignment_out = dnn_alignment(l->dweights),
        .out_is_f32 = 1,
    };
    struct dnn_product_config din = {
        .rows = l->chunk,
        .columns = l->fan_in,
        .inner = l->fan_out,
        .b_turned = 1,
        .alignment_a = DNN_ALIGNED,
        .alignment_b = dnn_alignment(weights_of(l)),
        .alignment_out = DNN_ALIGNED,
    };

    if (dnn_product_create(&d->dweights, &dweights) ||
        dnn_product_create(&d->din, &din))
        return -1;
    return sums_prepare((size_t)l->chunk, (size_t)l->fan_out);
}

static int dense_init(struct layer *l)
{
    struct dense *d = calloc(1, sizeof(*d));

    if (!d)
        return train_fail("out of memory for layer %d; use fewer ranks on this "
                          "machine",
                          l->index);
    l->state = d;
    if (!prepare_weights(l, d) && !prepare_forward(l, d) &&
        (!l->dweights || !prepare_back(l, d)))
        return 0;
    dense_fini(l);
    return -1;
}

/* Copy weights that have changed. */
static int pack(struct layer *l)
{
    const struct dense *d = l->state;
    struct train_span from = floats(l->weights, l->n_weights);
    struct train_span to = values(d->weights, l->n_weights);

    if (!d->weights || !l->is_stale)
        return 0;
    l->is_stale = 0;
    return LAUNCH(pack_bf16, l->n_weights, ARG(from), ARG(to));
}

static int dense_forward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    const struct dense *d = l->state;
    struct dnn_product_io product = {
        .a = io->in, .b = weights_of(l), .out = io->out};
    size_t n = layer_cuda_n_out(l);
    struct train_span out = values(io->out, n);
    struct train_span biases = floats(l->biases, l->n_biases);

    (void)pass;
    if (pack(l) || dnn_multiply(d->out, &product))
        return -1;
    return LAUNCH_VALUES(bias_relu, n, ARG(out), ARG(biases),
                         ARG(l->spec.relu));
}

static int dense_backward(struct layer *l, const struct layer_io *io,
                          const struct pass *pass)
{
    const struct dense *d = l->state;
    struct dnn_product_io dweights = {.a = io->in,
                                      .b = io->dout,
                                      .out = l->dweights,
                                      .adds = !pass->is_first};
    struct dnn_product_io din = {
        .a = io->dout, .b = weights_of(l), .out = io->din};

    if (layer_cuda_relu_back(l, io) ||
        sums_add(io->dout, (size_t)l->chunk, (size_t)l->fan_out, l->dbiases) ||
        dnn_multiply(d->dweights, &dweights))
        return -1;
    return io->din ? dnn_multiply(d->din, &din) : 0;
}

const struct layer_ops layer_cuda_dense = {
    .name = "dense",
    .may_overwrite = 1, /* in is last read before din is written */
    .reads_out = 0,
    .writes_over = 1,
    .shape = dense_shape,
    .init = dense_init,
    .fini = dense_fini,
    .forward = dense_forward,
    .backward = dense_backward,
};
