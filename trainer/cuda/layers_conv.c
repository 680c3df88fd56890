/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_conv.c - convolution by cuDNN; biases and relu by a kernel.
 *
 * cuDNN reads weights as [out][ky][kx][in].  The layer packs them so when they have
 * changed, and unpacks their gradient.
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
    void *weights; /* as cuDNN has them, of the GPU */
};

static int conv_shape(struct layer *l) { return layer_conv.shape(l); }

static void conv_fini(struct layer *l)
{
    struct conv *c = l->state;

    if (!c)
        return;
    dnn_conv_destroy(c->dnn);
    gpu_release(c->weights);
    free(c);
    l->state = NULL;
}

/* Make what only the backward pass needs. */
static int prepare_back(const struct layer *l)
{
    size_t channels = (size_t)l->out.channels;

    if (gpu_room(&gpu.gradient, l->n_weights * sizeof(float)))
        return -1;
    return l->n_biases ? sums_prepare(layer_cuda_n_out(l) / channels, channels)
                       : 0;
}

static int prepare(struct layer *l, struct conv *c)
{
    struct dnn_conv_config config = {
        .chunk = l->chunk,
        .in = l->in,
        .out = l->out,
        .kernel = l->spec.kernel,
        .stride = layer_stride(l),
        .pad = l->spec.pad,
        .is_training = l->dweights != NULL,
    };

    c->weights = gpu_alloc(l->n_weights * sizeof(float));
    if (!c->weights)
        return gpu_no_memory(l->n_weights * sizeof(float));
    if (dnn_conv_create(&c->dnn, &config))
        return -1;
    return l->dweights ? prepare_back(l) : 0;
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
    if (!prepare(l, c))
        return 0;
    conv_fini(l);
    return -1;
}

static int pack(struct layer *l)
{
    const struct conv *c = l->state;
    struct train_span from = floats(l->weights, l->n_weights);
    struct train_span to = floats(c->weights, l->n_weights);
    int ins = l->in.channels, area = l->spec.kernel * l->spec.kernel;

    if (!l->is_stale)
        return 0;
    l->is_stale = 0;
    return LAUNCH(pack_weights_f32, l->n_weights, ARG(from), ARG(to), ARG(ins),
                  ARG(ins), ARG(area));
}

static int unpack(const struct layer *l)
{
    struct train_span from = floats(gpu.gradient.at, l->n_weights);
    struct train_span to = floats(l->dweights, l->n_weights);
    int ins = l->in.channels, area = l->spec.kernel * l->spec.kernel;

    return LAUNCH(unpack_weights_f32, l->n_weights, ARG(from), ARG(to),
                  ARG(ins), ARG(ins), ARG(area));
}

static int conv_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    const struct conv *c = l->state;
    size_t n = layer_cuda_n_out(l);
    struct train_span out = floats(io->out, n);
    struct train_span biases = floats(l->biases, l->n_biases);
    int relu = l->spec.relu;

    (void)pass;
    if (pack(l) || dnn_conv_forward(c->dnn, io->in, c->weights, io->out))
        return -1;
    if (!relu && !l->n_biases)
        return 0;
    return LAUNCH(bias_relu_f32, n, ARG(out), ARG(biases), ARG(relu));
}

static int conv_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    const struct conv *c = l->state;
    size_t channels = (size_t)l->out.channels;

    (void)pass;
    if (layer_cuda_relu_back(l, io))
        return -1;
    if (l->n_biases && sums_add(io->dout, layer_cuda_n_out(l) / channels,
                                channels, l->dbiases))
        return -1;
    if (dnn_conv_backward_weights(c->dnn, io->in, io->dout, gpu.gradient.at) ||
        unpack(l))
        return -1;
    return io->din ? dnn_conv_backward_in(c->dnn, c->weights, io->dout, io->din)
                   : 0;
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
