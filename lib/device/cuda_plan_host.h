/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_plan_host.h - the kernel of plans in a context, for cuda_launch.c, which loads
 * kernels, and cuda_plan.c. */
#ifndef COLL_LIB_DEVICE_CUDA_PLAN_HOST_H
#define COLL_LIB_DEVICE_CUDA_PLAN_HOST_H

#include "lib/device/cuda_driver.h"
#include "lib/device/device.h"

struct coll__cuda_plan_entry {
    CUfunction kernel;
    CUcontext ctx;
    CUstream uploads; /* of the library's own */
    unsigned
        most_blocks; /* that the GPU runs at once, if it has nothing else */
};

/* Find what the stream's context has; loaded by coll__cuda_prepare(), or now.  A
 * status, logged. */
int coll__cuda_plan_entry_of(void *stream, struct coll__cuda_plan_entry *out);

/* As struct coll__stream_ops has them. */
int coll__cuda_load_plan(const struct coll__planned *steps, int n,
                         int n_sharing, void *stream, void **plan);
int coll__cuda_launch_plan(void *plan, const struct coll__planned_run *run);
void coll__cuda_unload(void *plan);
size_t coll__cuda_taken(const void *plan);

/* The context's device was reset: rooms for plans are there no more. */
void coll__cuda_forget_rooms(CUcontext ctx);

#endif
