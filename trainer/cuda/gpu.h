/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.h - the GPU that this process computes on: its streams, memory and errors.
 *
 * Two streams: one computes; the exchange of gradients and parameters runs in the other
 * one, ordered by events.  All other work is put into the first.
 *
 * Functions return at once.  The first error of the driver is kept, as a sentence, and
 * every later gpu_well() returns it: after an error results mean nothing.
 */
#ifndef COLL_TRAINER_CUDA_GPU_H
#define COLL_TRAINER_CUDA_GPU_H

#include "tools/common/cuda.h"
#include "trainer/cuda/dnn.h"
#include "trainer/device.h"

#include <stddef.h>
#include <stdint.h>

/* Memory of the GPU that grows when more is needed. */
struct gpu_room {
    void *at;
    size_t len;
};

/* Graphs use the memory that rooms had when they were made: it is kept until the end. */
struct gpu_recorded {
    int has_graphs;
    int is_recording; /* what is put becomes part of a graph */
    void **kept;
    size_t n_kept;
};

struct gpu {
    struct cuda_entries cu;
    struct dnn_entries dnn;
    cudnnHandle_t cudnn;
    cublasLtHandle_t cublaslt;
    int is_open;
    int number; /* among those that CUDA shows */
    char name[100];
    size_t memory; /* bytes */
    int is_deterministic;
    enum precision precision;
    CUdevice device;
    CUcontext context;
    CUstream compute, exchange; /* the same one without overlap */
    CUevent computed, exchanged, marks[DEVICE_MARKS];
    /* What cuDNN and cublasLt may write while they compute; all layers share it. */
    struct gpu_room work;
    /* The gradient of a convolution's weights, values in cuDNN's order, likewise. */
    struct gpu_room gradient;
    /* Partial sums, of a layer or of the loss, until the next kernel has read them. */
    struct gpu_room partial;
    struct gpu_recorded recorded;
    int has_failed;
    char why[400];
};

extern struct gpu gpu;
extern const struct device_graphs gpu_graphs;
extern const struct device_stamps gpu_stamps;

/* Are values bfloat16?  Else they are f32. */
static inline int gpu_has_bf16(void) { return gpu.precision == PRECISION_BF16; }

/* Return what else may help where a library has no algorithm, or "". */
static inline const char *gpu_remedy(void)
{
    return gpu.precision == PRECISION_F32 ? "" : " or --precision f32";
}

/* Return how many channels tensor cores take at a time; 1 without them. */
static inline int gpu_channels(void)
{
    return gpu.precision == PRECISION_F32    ? 1
           : gpu.precision == PRECISION_TF32 ? 4
                                             : 8;
}

/* Return the bytes of a value. */
static inline size_t gpu_value_size(void)
{
    return gpu_has_bf16() ? sizeof(uint16_t) : sizeof(float);
}

/* Choose a GPU and prepare it.
 *
 * Result:    0, or -1 with train_error() set: what is missing and what to do.
 * Ownership: end it by gpu_close(), also after an error.
 */
int gpu_open(const struct device_config *config);
void gpu_close(void);

/* Return 0 if there is a GPU and all libraries that it needs; or -1 and why[len]. */
int gpu_probe(char *why, size_t len);

/* Note the driver's, cuDNN's or cublasLt's answer to a call.
 *
 * Result:    0, or -1 with train_error() set.
 */
int gpu_note(CUresult rc, const char *call);
int gpu_note_cudnn(cudnnStatus_t rc, const char *call);
int gpu_note_cublaslt(cublasStatus_t rc, const char *call);
int gpu_no_memory(size_t len); /* and returns -1 */

/* Return 0 if nothing has failed so far; else -1 with train_error() set. */
int gpu_well(void);

/* As the functions of the same name in the device's table. */
void *gpu_alloc(size_t len);
void gpu_release(void *at);
void gpu_write(void *to, const void *from, size_t len);
int gpu_read(void *to, const void *from, size_t len);
void gpu_copy(void *to, const void *from, size_t len);
void gpu_zero(void *at, size_t len);
void *gpu_exchange(void);
void gpu_exchanged(void);
void gpu_mark(int number);
void gpu_see(int number);

/* Wait until the GPU has done all that was put into it; returns as gpu_well(). */
int gpu_wait(void);

/* Make sure that the room has len bytes.  Its content is lost if it grows.
 *
 * Result:    0, or -1 with train_error() set.
 */
int gpu_room(struct gpu_room *room, size_t len);
void gpu_release_kept(void); /* what rooms had before */

/* gpu_keep_stamps: do not use the stamps of a graph again.  gpu_destroy_stamps: destroy
 * all stamps. */
void gpu_keep_stamps(void);
void gpu_destroy_stamps(void);

#endif
