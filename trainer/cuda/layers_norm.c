/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_norm.c - batch normalization, an addition, and relu; see trainer/layers_norm.c.
 *
 * A "row" is the channels of one pixel.  The kernels keep what they compute for a pass in
 * the layer's state (kernels.h).
 */
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/cuda/layers_cuda.h"
#include "trainer/cuda/sums.h"

static int norm_shape(struct layer *l) { return layer_norm.shape(l); }

static size_t n_channels(const struct layer *l)
{
    return (size_t)l->in.channels;
}

static size_t rows_of_image(const struct layer *l)
{
    return (size_t)l->in.height * (size_t)l->in.width;
}

static int norm_init(struct layer *l)
{
    l->state =
        gpu_alloc(TRAIN_CUDA_NORM_ARRAYS * n_channels(l) * sizeof(float));
    if (!l->state)
        return gpu_no_memory(TRAIN_CUDA_NORM_ARRAYS * n_channels(l) *
                             sizeof(float));
    return l->dweights ? sums_prepare((size_t)l->chunk * rows_of_image(l),
                                      2 * n_channels(l))
                       : 0;
}

static void norm_fini(struct layer *l)
{
    gpu_release(l->state);
    l->state = NULL;
}

/* Return the rows that the statistics are of. */
static uint64_t n_rows(const struct layer *l, const struct pass *pass)
{
    return (uint64_t)(pass->n ? pass->n : l->chunk) * rows_of_image(l);
}

static struct train_span state_of(const struct layer *l)
{
    return floats(l->state, TRAIN_CUDA_NORM_ARRAYS * n_channels(l));
}

/* Find the batch's mean, and the sums of squares around it: *sums. */
static int find_moments(const struct layer *l, const float *from, uint64_t rows,
                        struct train_span *sums)
{
    size_t channels = n_channels(l);
    struct train_span state = state_of(l);
    struct train_span in = values(from, rows * channels);

    if (sums_of(from, rows, channels, sums) ||
        LAUNCH(norm_mean_f32, channels, ARG(*sums), ARG(state), ARG(rows)))
        return -1;
    *sums = sums_first(rows, channels);
    if (LAUNCH_VALUES(norm_squares, sums->len / sizeof(float), ARG(in),
                      ARG(*sums), ARG(state)))
        return -1;
    return sums_fold(sums, channels);
}

static int norm_forward(struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t channels = n_channels(l), n = layer_cuda_n_in(l);
    uint64_t rows = n_rows(l, pass);
    struct train_span sums = {0, 0}, state = state_of(l);
    struct train_span running = floats(l->running, l->n_running);
    struct train_span weights = floats(l->weights, channels);
    struct train_span biases = floats(l->biases, channels);
    struct train_span in = values(io->in, n), plus = values(io->plus, n);
    struct train_span out = values(io->out, n);

    if (pass->is_training && find_moments(l, io->in, rows, &sums))
        return -1;
    if (LAUNCH(norm_finish_f32, channels, ARG(sums), ARG(state), ARG(running),
               ARG(weights), ARG(biases), ARG(rows)))
        return -1;
    return LAUNCH_VALUES(norm_apply, n, ARG(in), ARG(plus), ARG(out),
                         ARG(state), ARG(l->spec.relu));
}

/* Sum what the gradients of weights and biases need, and make the factors of din. */
static int find_factors(const struct layer *l, const struct layer_io *io,
                        const struct pass *pass)
{
    size_t channels = n_channels(l), n = layer_cuda_n_in(l);
    uint64_t rows = n_rows(l, pass);
    struct train_span state = state_of(l), in = values(io->in, n);
    struct train_span out = values(l->spec.relu ? io->out : NULL, n);
    struct train_span dout = values(io->dout, n), dplus = values(io->dplus, n);
    struct train_span sums = sums_first(n / channels, 2 * channels);
    struct train_span weights = floats(l->weights, channels);
    struct train_span dweights = floats(l->dweights, channels);
    struct train_span dbiases = floats(l->dbiases, channels);

    if (LAUNCH_VALUES(norm_products, n, ARG(in), ARG(out), ARG(dout),
                      ARG(dplus), ARG(sums), ARG(state), ARG(rows)) ||
        sums_fold(&sums, 2 * channels))
        return -1;
    return LAUNCH(norm_factors_f32, channels, ARG(sums), ARG(state),
                  ARG(weights), ARG(dweights), ARG(dbiases), ARG(rows),
                  ARG(pass->is_training));
}

static int norm_backward(struct layer *l, const struct layer_io *io,
                         const struct pass *pass)
{
    size_t n = layer_cuda_n_in(l);
    uint64_t rows = n_rows(l, pass);
    struct train_span state = state_of(l), in = values(io->in, n);
    struct train_span dout = values(io->dout, n), din = values(io->din, n);

    if (find_factors(l, io, pass))
        return -1;
    return io->din ? LAUNCH_VALUES(norm_back, n, ARG(in), ARG(dout), ARG(din),
                                   ARG(state), ARG(rows))
                   : 0;
}

const struct layer_ops layer_cuda_norm = {
    .name = "norm",
    .may_overwrite = 1, /* din is written value by value, after in was read */
    .reads_out = 0,
    .shape = norm_shape,
    .init = norm_init,
    .fini = norm_fini,
    .forward = norm_forward,
    .backward = norm_backward,
};
