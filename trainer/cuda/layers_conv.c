/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_conv.c - convolution by cuDNN; biases and relu by a kernel.
 *
 * cuDNN reads weights as [out][ky][kx][in], and they are values.  The layer packs them so
 * when they have changed, and unpacks their gradient.  Where tensor cores compute, images
 * get channels of zeros up to the number that those take at a time.
 */
#include "trainer/cuda/dnn_conv.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/cuda/layers_cuda.h"
#include "trainer/cuda/sums.h"
#include "trainer/error.h"

#include <stdlib.h>

struct conv {
    struct dnn_conv *dnn;
    struct shape in; /* with the added channels */
    /* of the GPU: */
    void *weights; /* as cuDNN has them */
    void *padded;  /* the input so, then its gradient; NULL: none is added */
};

static int conv_shape(struct layer *l) { return layer_conv.shape(l); }

static void conv_fini(struct layer *l)
{
    struct conv *c = l->state;

    if (!c)
        return;
    dnn_conv_destroy(c->dnn);
    gpu_release(c->weights);
    gpu_release(c->padded);
    free(c);
    l->state = NULL;
}

/* Return the weights with those of added channels. */
static size_t n_packed(const struct layer *l, const struct conv *c)
{
    return l->n_weights / (size_t)l->in.channels * (size_t)c->in.channels;
}

static size_t n_padded(const struct layer *l, const struct conv *c)
{
    return (size_t)l->chunk * shape_len(&c->in);
}

/* Make what only the backward pass needs. */
static int prepare_back(const struct layer *l, const struct conv *c)
{
    size_t channels = (size_t)l->out.channels;

    if (gpu_room(&gpu.gradient, n_packed(l, c) * gpu_value_size()))
        return -1;
    return l->n_biases ? sums_prepare(layer_cuda_n_out(l) / channels, channels)
                       : 0;
}

static int make(void **at, size_t n)
{
    *at = gpu_alloc(n * gpu_value_size());
    return *at ? 0 : gpu_no_memory(n * gpu_value_size());
}

static int prepare(struct layer *l, struct conv *c)
{
    struct dnn_conv_config config = {
        .chunk = l->chunk,
        .in = c->in,
        .out = l->out,
        .kernel = l->spec.kernel,
        .stride = layer_stride(l),
        .pad = l->spec.pad,
        .is_training = l->dweights != NULL,
    };

    if (make(&c->weights, n_packed(l, c)) ||
        (c->in.channels != l->in.channels &&
         make(&c->padded, n_padded(l, c))) ||
        dnn_conv_create(&c->dnn, &config))
        return -1;
    return l->dweights ? prepare_back(l, c) : 0;
}

static int conv_init(struct layer *l)
{
    struct conv *c = calloc(1, sizeof(*c));

    if (!c)
        return train_fail("out of memory for layer %d; use fewer ranks on this "
                          "machine",
                          l->index);
    l->state = c;
    l->is_stale = 1;
    c->in = l->in;
    if (c->in.channels < gpu_channels())
        c->in.channels = gpu_channels();
    if (!prepare(l, c))
        return 0;
    conv_fini(l);
    return -1;
}

static int pack(struct layer *l)
{
    const struct conv *c = l->state;
    struct train_span from = floats(l->weights, l->n_weights);
    struct train_span to = values(c->weights, n_packed(l, c));
    int ins = l->in.channels, area = l->spec.kernel * l->spec.kernel;

    if (!l->is_stale)
        return 0;
    l->is_stale = 0;
    return LAUNCH_VALUES(pack_weights, n_packed(l, c), ARG(from), ARG(to),
                         ARG(ins), ARG(c->in.channels), ARG(area));
}

static int unpack(const struct layer *l)
{
    const struct conv *c = l->state;
    struct train_span from = values(gpu.gradient.at, n_packed(l, c));
    struct train_span to = floats(l->dweights, l->n_weights);
    int ins = l->in.channels, area = l->spec.kernel * l->spec.kernel;

    return LAUNCH_VALUES(unpack_weights, l->n_weights, ARG(from), ARG(to),
                         ARG(ins), ARG(c->in.channels), ARG(area));
}

/* Give the input its added channels.  Returns what cuDNN reads, or NULL with
 * train_error() set. */
static const void *pad(const struct layer *l, const float *in)
{
    const struct conv *c = l->state;
    struct train_span from = values(in, layer_cuda_n_in(l));
    struct train_span to = values(c->padded, n_padded(l, c));

    if (!c->padded)
        return in;
    return LAUNCH_VALUES(pad_channels, n_padded(l, c), ARG(from), ARG(to),
                         ARG(l->in.channels), ARG(c->in.channels))
               ? NULL
               : c->padded;
}

static int conv_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    const struct conv *c = l->state;
    size_t n = layer_cuda_n_out(l);
    struct train_span out = values(io->out, n);
    struct train_span biases = floats(l->biases, l->n_biases);
    const void *in = pad(l, io->in);
    int relu = l->spec.relu;

    (void)pass;
    if (!in || pack(l) || dnn_conv_forward(c->dnn, in, c->weights, io->out))
        return -1;
    if (!relu && !l->n_biases)
        return 0;
    return LAUNCH_VALUES(bias_relu, n, ARG(out), ARG(biases), ARG(relu));
}

/* Write the input's gradient.  That with the added channels takes the place of their
 * input, which is not needed any more. */
static int back_in(const struct layer *l, const struct layer_io *io)
{
    const struct conv *c = l->state;
    struct train_span from = values(c->padded, n_padded(l, c));
    struct train_span to = values(io->din, layer_cuda_n_in(l));

    if (!c->padded)
        return dnn_conv_backward_in(c->dnn, c->weights, io->dout, io->din);
    if (dnn_conv_backward_in(c->dnn, c->weights, io->dout, c->padded))
        return -1;
    return LAUNCH_VALUES(pad_channels, layer_cuda_n_in(l), ARG(from), ARG(to),
                         ARG(c->in.channels), ARG(l->in.channels));
}

static int conv_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    const struct conv *c = l->state;
    size_t channels = (size_t)l->out.channels;
    const void *in = c->padded ? c->padded : io->in;

    (void)pass;
    if (layer_cuda_relu_back(l, io))
        return -1;
    if (l->n_biases && sums_add(io->dout, layer_cuda_n_out(l) / channels,
                                channels, l->dbiases))
        return -1;
    if (dnn_conv_backward_weights(c->dnn, in, io->dout, gpu.gradient.at) ||
        unpack(l))
        return -1;
    return io->din ? back_in(l, io) : 0;
}

const struct layer_ops layer_cuda_conv = {
    .name = "conv",
    .may_overwrite = 1, /* in is last read before din is written */
    .reads_out = 0,
    .shape = conv_shape,
    .init = conv_init,
    .fini = conv_fini,
    .forward = conv_forward,
    .backward = conv_backward,
};
