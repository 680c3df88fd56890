/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_dropout.c - dropout, with the masks of trainer/layers_dropout.c. */
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/cuda/layers_cuda.h"

static int dropout_shape(struct layer *l) { return layer_dropout.shape(l); }

static int drop_values(const struct layer *l, const struct pass *pass,
                       struct train_span from, struct train_span to)
{
    struct train_span step = compute_step_numbers();
    uint64_t at = compute_step_place(pass->first);
    uint32_t n_values = (uint32_t)shape_len(&l->in);
    uint32_t floor = (uint32_t)((double)l->spec.rate * 0x1p32);
    float scale = 1 / (1 - l->spec.rate);

    return LAUNCH_VALUES(dropout, layer_cuda_n_in(l), ARG(from), ARG(to),
                         ARG(step), ARG(at), ARG(l->index), ARG(n_values),
                         ARG(floor), ARG(scale));
}

static int drop_maps(const struct layer *l, const struct pass *pass,
                     struct train_span from, struct train_span to)
{
    struct train_span step = compute_step_numbers();
    uint64_t at = compute_step_place(pass->first);
    int pixels = l->in.height * l->in.width;
    float scale = 1 / (1 - l->spec.rate);

    return LAUNCH_VALUES(dropout_maps, layer_cuda_n_in(l), ARG(from), ARG(to),
                         ARG(step), ARG(at), ARG(l->index), ARG(l->in.channels),
                         ARG(pixels), ARG(l->spec.rate), ARG(scale));
}

/* Gradients are scaled as values are. */
static int dropout_pass(const struct layer *l, const float *from, float *to,
                        const struct pass *pass)
{
    size_t n = layer_cuda_n_in(l);

    if (!pass->is_training || pass->keeps_all) {
        if (from != to)
            gpu_copy(to, from, n * gpu_value_size());
        return gpu_well();
    }
    return (l->spec.of_maps ? drop_maps : drop_values)(l, pass, values(from, n),
                                                       values(to, n));
}

static int dropout_forward(struct layer *l, const struct layer_io *io,
                           const struct pass *pass)
{
    return dropout_pass(l, io->in, io->out, pass);
}

static int dropout_backward(struct layer *l, const struct layer_io *io,
                            const struct pass *pass)
{
    return dropout_pass(l, io->dout, io->din, pass);
}

const struct layer_ops layer_cuda_dropout = {
    .name = "dropout",
    .may_overwrite = 1, /* backward does not read in */
    .reads_out = 0,
    .shape = dropout_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = dropout_forward,
    .backward = dropout_backward,
};
