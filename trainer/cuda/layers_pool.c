/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_pool.c - max pool and the mean of whole maps. */
#include "trainer/cuda/launch.h"
#include "trainer/cuda/layers_cuda.h"

int layer_cuda_relu_back(const struct layer *l, const struct layer_io *io)
{
    size_t n = layer_cuda_n_out(l);
    struct train_span out = values(io->out, n), dout = values(io->dout, n);

    return l->spec.relu ? LAUNCH_VALUES(relu_back, n, ARG(out), ARG(dout)) : 0;
}

/* ---- max pool ---- */

static int pool_shape(struct layer *l) { return layer_pool_any.shape(l); }

static int pool_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t n = layer_cuda_n_out(l);
    struct train_span in = values(io->in, layer_cuda_n_in(l));
    struct train_span out = values(io->out, n);
    int stride = layer_stride(l);

    (void)pass;
    return LAUNCH_VALUES(pool, n, ARG(in), ARG(out), ARG(l->in.channels),
                         ARG(l->in.height), ARG(l->in.width),
                         ARG(l->spec.kernel), ARG(stride), ARG(l->spec.pad),
                         ARG(l->spec.relu));
}

static int pool_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t n_in = layer_cuda_n_in(l), n_out = layer_cuda_n_out(l);
    struct train_span in = values(io->in, n_in), out = values(io->out, n_out);
    struct train_span dout = values(io->dout, n_out);
    struct train_span din = values(io->din, n_in);
    int stride = layer_stride(l);

    (void)pass;
    if (!io->din)
        return 0;
    return LAUNCH_VALUES(pool_back, n_in, ARG(in), ARG(out), ARG(dout),
                         ARG(din), ARG(l->in.channels), ARG(l->in.height),
                         ARG(l->in.width), ARG(l->spec.kernel), ARG(stride),
                         ARG(l->spec.pad), ARG(l->spec.relu));
}

const struct layer_ops layer_cuda_pool = {
    .name = "pool",
    .may_overwrite = 0, /* windows overlap */
    .reads_out = 1,
    .shape = pool_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = pool_forward,
    .backward = pool_backward,
};

/* ---- the mean ---- */

static int mean_shape(struct layer *l) { return layer_mean.shape(l); }

static int mean_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t n = layer_cuda_n_out(l);
    struct train_span in = values(io->in, layer_cuda_n_in(l));
    struct train_span out = values(io->out, n);

    (void)pass;
    return LAUNCH_VALUES(mean, n, ARG(in), ARG(out), ARG(l->in.channels));
}

static int mean_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t n = layer_cuda_n_in(l);
    struct train_span dout = values(io->dout, layer_cuda_n_out(l));
    struct train_span din = values(io->din, n);

    (void)pass;
    return io->din ? LAUNCH_VALUES(mean_back, n, ARG(dout), ARG(din),
                                   ARG(l->in.channels))
                   : 0;
}

const struct layer_ops layer_cuda_mean = {
    .name = "mean",
    .may_overwrite = 1, /* backward reads no values */
    .reads_out = 0,
    .shape = mean_shape,
    .init = layer__no_init,
    .fini = layer__no_fini,
    .forward = mean_forward,
    .backward = mean_backward,
};
