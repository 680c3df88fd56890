/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan_host.h - the kernel of plans in a context: cuda_launch.c loads it,
 * cuda_plan.c launches it. */
#ifndef COLL_LIB_DEVICE_CUDA_PLAN_HOST_H
#define COLL_LIB_DEVICE_CUDA_PLAN_HOST_H

#include "lib/device/cuda_driver.h"
#include "lib/device/device.h"

struct coll__cuda_plan_entry {
    CUfunction kernel;
    CUcontext ctx;
    CUstream uploads; /* of the library's own */
    unsigned
        most_blocks; /* blocks that the GPU runs at once if it runs nothing else */
};

/* Find the kernel in the stream's context; load it if coll__cuda_prepare() has not.
 * Returns a status, logged. */
int coll__cuda_plan_entry_of(void *stream, struct coll__cuda_plan_entry *out);

/* load, launch, unload and taken of struct coll__stream_ops. */
int coll__cuda_load_plan(const struct coll__kernel_step *steps, int n,
                         int n_sharing, void *stream, void **plan);
int coll__cuda_launch_plan(void *plan, const struct coll__kernel_run *run);
void coll__cuda_unload(void *plan);
size_t coll__cuda_taken(const void *plan);

/* Forget the memory of plans, since the context's device was reset. */
void coll__cuda_forget_rooms(CUcontext ctx);

#endif
