/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.c - the image of kernels, and their grids. */
#include "trainer/cuda/launch.h"
#include "trainer/cuda/gpu.h"
#include "trainer/error.h"

#include <assert.h>
#include <string.h>

enum { BLOCKS_A_PROCESSOR = 8, MOST_ARGS = 16 };

static struct {
    CUmodule module;
    CUfunction functions[N_KERNELS];
    unsigned most_blocks;
} kernels;

static const struct {
    const char *name, *letters;
} entries[] = {
#define X(name, type, letters, parameters, arguments)                          \
    {"train_" #name "_" #type, letters},
    TRAIN_CUDA_KERNELS(X)
#undef X
};

/* A build without nvcc has an empty image. */
int launch_has_kernels(void) { return train_cuda_image[0] != 0; }

unsigned launch_most_blocks(void) { return kernels.most_blocks; }

/* All functions are looked up now, since the driver may load a kernel at its first
 * look-up, and then waits for all streams. */
static int find_functions(void)
{
    for (int k = 0; k < N_KERNELS; k++)
        if (gpu_note(gpu.cu.cuModuleGetFunction(&kernels.functions[k],
                                                kernels.module,
                                                entries[k].name),
                     entries[k].name))
            return -1;
    return 0;
}

int launch_init(void)
{
    int processors = 0;

    memset(&kernels, 0, sizeof(kernels));
    if (gpu_note(gpu.cu.cuDeviceGetAttribute(
                     &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                     gpu.device),
                 "cuDeviceGetAttribute") ||
        gpu_note(gpu.cu.cuModuleLoadData(&kernels.module, train_cuda_image),
                 "cuModuleLoadData"))
        return -1;
    kernels.most_blocks = (unsigned)processors * BLOCKS_A_PROCESSOR;
    return find_functions();
}

void launch_fini(void)
{
    if (kernels.module)
        gpu.cu.cuModuleUnload(kernels.module);
    memset(&kernels, 0, sizeof(kernels));
}

static unsigned blocks_for(size_t n)
{
    size_t blocks = (n + TRAIN_CUDA_THREADS - 1) / TRAIN_CUDA_THREADS;

    return blocks < kernels.most_blocks ? (unsigned)blocks
                                        : kernels.most_blocks;
}

int launch(enum launch_kernel kernel, size_t n, const struct launch_arg *args,
           size_t n_args)
{
    void *params[MOST_ARGS];

    assert(n_args == strlen(entries[kernel].letters) && n_args <= MOST_ARGS);
    for (size_t i = 0; i < n_args; i++) {
        assert(args[i].letter == entries[kernel].letters[i]);
        params[i] = args[i].at;
    }
    if (n == 0 || gpu.has_failed)
        return gpu_well();
    return gpu_note(gpu.cu.cuLaunchKernel(
                        kernels.functions[kernel], blocks_for(n), 1, 1,
                        TRAIN_CUDA_THREADS, 1, 1, 0, gpu.compute, params, NULL),
                    entries[kernel].name);
}
