/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - choose a GPU, prepare it, and keep its first error. */
#include "trainer/cuda/gpu.h"
#include "trainer/cuda/launch.h"
#include "trainer/error.h"

#include <stdio.h>
#include <string.h>

struct gpu gpu;

/* ---- errors ---- */

int gpu_well(void) { return gpu.has_failed ? train_fail("%s", gpu.why) : 0; }

static int keep(const char *call, const char *text, const char *more)
{
    if (!gpu.has_failed)
        snprintf(gpu.why, sizeof(gpu.why),
                 "the GPU cuda:%d (%s) failed: %s: %s%s%.150s; see dmesg and "
                 "nvidia-smi",
                 gpu.number, gpu.name, call, text, *more ? ": " : "", more);
    gpu.has_failed = 1;
    return gpu_well();
}

int gpu_note(CUresult rc, const char *call)
{
    const char *text = NULL;

    if (!rc)
        return 0;
    gpu.cu.cuGetErrorString(rc, &text);
    return keep(call, text ? text : "an unknown error", "");
}

int gpu_no_memory(size_t len)
{
    if (!gpu.has_failed)
        snprintf(gpu.why, sizeof(gpu.why),
                 "the GPU cuda:%d (%s) has no memory left for %zu bytes more; "
                 "lower --batch-size, or see nvidia-smi for who uses it",
                 gpu.number, gpu.name, len);
    gpu.has_failed = 1;
    return gpu_well();
}

int gpu_note_cudnn(cudnnStatus_t rc, const char *call)
{
    char more[200] = "";

    if (rc == CUDNN_STATUS_SUCCESS)
        return 0;
    gpu.dnn.cudnnGetLastErrorString(more, sizeof(more));
    return keep(call, gpu.dnn.cudnnGetErrorString(rc), more);
}

int gpu_note_cublaslt(cublasStatus_t rc, const char *call)
{
    if (rc == CUBLAS_STATUS_SUCCESS)
        return 0;
    return keep(call, gpu.dnn.cublasLtGetStatusString(rc), "");
}

/* ---- finding ---- */

/* Find the driver and the libraries.  Returns the number of GPUs, or -1 and why. */
static int find(char *why, size_t len)
{
    int n;

    if (!launch_has_kernels()) {
        snprintf(why, len,
                 "this coll_train was built without nvcc, so it has no kernels "
                 "for GPUs; install CUDA's compiler and configure again");
        return -1;
    }
    n = cuda_find(&gpu.cu, why, len);
    if (!n)
        n = cuda_count(&gpu.cu, why, len);
    return n < 0 || dnn_find(&gpu.dnn, why, len) ? -1 : n;
}

int gpu_probe(char *why, size_t len) { return find(why, len) < 0 ? -1 : 0; }

static int refuse(const char *why)
{
    return train_refuse("--device cuda: %s, or give --device cpu", why);
}

/* Return the number of the GPU to use, or -1 with train_error() set. */
static int choose(const struct device_config *config)
{
    char why[400];
    int n = find(why, sizeof(why));

    if (n < 0)
        return refuse(why);
    if (config->number >= n)
        return train_refuse("--device cuda:%d: there %s only %d GPU%s here, "
                            "counted from 0; name another, or none",
                            config->number, n > 1 ? "are" : "is", n,
                            n > 1 ? "s" : "");
    return config->number >= 0 ? config->number : config->local_rank % n;
}

/* ---- opening ---- */

static int open_context(void)
{
    if (gpu_note(gpu.cu.cuDeviceGet(&gpu.device, gpu.number), "cuDeviceGet") ||
        gpu_note(gpu.cu.cuDeviceGetName(gpu.name, sizeof(gpu.name), gpu.device),
                 "cuDeviceGetName") ||
        gpu_note(gpu.cu.cuDeviceTotalMem(&gpu.memory, gpu.device),
                 "cuDeviceTotalMem") ||
        gpu_note(gpu.cu.cuDevicePrimaryCtxRetain(&gpu.context, gpu.device),
                 "cuDevicePrimaryCtxRetain"))
        return -1;
    gpu.is_open = 1;
    return gpu_note(gpu.cu.cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent");
}

static int open_streams(int has_overlap)
{
    if (gpu_note(gpu.cu.cuStreamCreate(&gpu.compute, CU_STREAM_NON_BLOCKING),
                 "cuStreamCreate") ||
        gpu_note(gpu.cu.cuEventCreate(&gpu.computed, CU_EVENT_DISABLE_TIMING),
                 "cuEventCreate") ||
        gpu_note(gpu.cu.cuEventCreate(&gpu.exchanged, CU_EVENT_DISABLE_TIMING),
                 "cuEventCreate"))
        return -1;
    gpu.exchange = gpu.compute;
    return has_overlap ? gpu_note(gpu.cu.cuStreamCreate(&gpu.exchange,
                                                        CU_STREAM_NON_BLOCKING),
                                  "cuStreamCreate")
                       : 0;
}

static int open_libraries(void)
{
    if (gpu_note_cudnn(gpu.dnn.cudnnCreate(&gpu.cudnn), "cudnnCreate") ||
        gpu_note_cudnn(gpu.dnn.cudnnSetStream(gpu.cudnn, gpu.compute),
                       "cudnnSetStream"))
        return -1;
    return gpu_note_cublaslt(gpu.dnn.cublasLtCreate(&gpu.cublaslt),
                             "cublasLtCreate");
}

int gpu_open(const struct device_config *config)
{
    int number;

    memset(&gpu, 0, sizeof(gpu));
    number = choose(config);
    if (number < 0)
        return -1;
    gpu.number = number;
    gpu.is_deterministic = config->is_deterministic;
    gpu.precision = config->precision;
    return open_context() || open_streams(config->has_overlap) ||
                   open_libraries()
               ? -1
               : 0;
}

static void close_streams(void)
{
    if (gpu.computed)
        gpu.cu.cuEventDestroy(gpu.computed);
    if (gpu.exchanged)
        gpu.cu.cuEventDestroy(gpu.exchanged);
    for (int i = 0; i < DEVICE_MARKS; i++)
        if (gpu.marks[i])
            gpu.cu.cuEventDestroy(gpu.marks[i]);
    if (gpu.exchange && gpu.exchange != gpu.compute)
        gpu.cu.cuStreamDestroy(gpu.exchange);
    if (gpu.compute)
        gpu.cu.cuStreamDestroy(gpu.compute);
}

/* The primary context stays, as in programs of the CUDA runtime: communicators still use it. */
void gpu_close(void)
{
    if (!gpu.is_open)
        return;
    if (gpu.cublaslt)
        gpu.dnn.cublasLtDestroy(gpu.cublaslt);
    if (gpu.cudnn)
        gpu.dnn.cudnnDestroy(gpu.cudnn);
    gpu_release(gpu.work.at);
    gpu_release(gpu.gradient.at);
    gpu_release(gpu.partial.at);
    gpu_release_kept();
    gpu_destroy_stamps();
    close_streams();
    memset(&gpu, 0, sizeof(gpu));
}
