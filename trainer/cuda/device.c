/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - a GPU, by cuDNN, cublasLt and kernels of this program. */
#include "trainer/device.h"
#include "trainer/cuda/compute.h"
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/cuda/layers_cuda.h"
#include "trainer/smaller.h"

#include <stdio.h>

static int cuda_libraries(char *text, size_t len)
{
    struct dnn_entries dnn;
    char cudnn[24], cublaslt[24];

    if (dnn_find(&dnn, text, len))
        return -1;
    dnn_say_versions(&dnn, cudnn, cublaslt);
    snprintf(text, len, "%s, cublasLt %s", cudnn, cublaslt);
    return 0;
}

static int cuda_init(const struct device_config *config)
{
    return gpu_open(config) || launch_init() || compute_init() ||
                   compute_step_init()
               ? -1
               : 0;
}

static void cuda_fini(void)
{
    compute_images_fini();
    compute_step_fini();
    compute_fini();
    launch_fini();
    gpu_close();
}

static const struct layer_ops *cuda_layer(const struct layer_spec *spec,
                                          const struct shape *in)
{
    static const struct layer_ops *const kinds[N_LAYER_KINDS] = {
        [LAYER_CONV] = &layer_cuda_conv,
        [LAYER_MAX_POOL] = &layer_cuda_pool,
        [LAYER_MEAN_POOL] = &layer_cuda_mean,
        [LAYER_NORM] = &layer_cuda_norm,
        [LAYER_DENSE] = &layer_cuda_dense,
        [LAYER_DROPOUT] = &layer_cuda_dropout,
    };

    (void)in;
    return kinds[spec->kind];
}

static int cuda_block(void) { return 0; }

static int read_bf16(float *to, const uint16_t *from, size_t n)
{
    uint16_t piece[DEVICE_PIECE];

    for (size_t at = 0; at < n; at += DEVICE_PIECE) {
        size_t len = smaller(n - at, DEVICE_PIECE);

        if (gpu_read(piece, from + at, len * sizeof(*piece)))
            return -1;
        wire_unpack(WIRE_BF16, piece, to + at, len);
    }
    return 0;
}

static int cuda_read_values(float *to, const void *from, size_t n)
{
    return gpu_has_bf16() ? read_bf16(to, from, n)
                          : gpu_read(to, from, n * sizeof(*to));
}

static void cuda_add_values(void *to, const void *from, size_t n)
{
    struct train_span out = values(to, n), in = values(from, n);

    LAUNCH_VALUES(add, n, ARG(out), ARG(in));
}

static void cuda_say(char *text, size_t len)
{
    snprintf(text, len, "cuda:%d %s, %.0f GB", gpu.number, gpu.name,
             (double)gpu.memory / 1e9);
}

const struct device device_cuda = {
    .name = "cuda",
    .is_async = 1,
    .about = {.libraries = cuda_libraries, .probe = gpu_probe, .say = cuda_say},
    .init = cuda_init,
    .fini = cuda_fini,
    .layer = cuda_layer,
    .values = {.block = cuda_block,
               .size = gpu_value_size,
               .read = cuda_read_values,
               .add = cuda_add_values},
    .order = {.well = gpu_well,
              .wait = gpu_wait,
              .exchange = gpu_exchange,
              .exchanged = gpu_exchanged,
              .has_stream = 1,
              .mark = gpu_mark,
              .see = gpu_see,
              .graphs = &gpu_graphs,
              .stamps = &gpu_stamps},
    .images = {.hold = compute_hold,
               .let_go = compute_let_go,
               .gather = compute_gather},
    .alloc = gpu_alloc,
    .release = gpu_release,
    .write = gpu_write,
    .read = gpu_read,
    .copy = gpu_copy,
    .zero = gpu_zero,
    .add = compute_add,
    .squares = compute_squares,
    .clip = compute_clip,
    .spoil = compute_spoil,
    .pack = compute_pack,
    .unpack = compute_unpack,
    .begin = compute_begin,
    .loss = compute_loss,
    .step = compute_step,
};
