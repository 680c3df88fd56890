/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.h - as much of the CUDA driver as the binding needs: which GPU is current.
 *
 * The driver is opened by name, as libcoll does, so that the library loads without one.
 * Contexts are CUcontext as void *.
 */
#ifndef COLL_NCCL_DRIVER_H
#define COLL_NCCL_DRIVER_H

#include "bindings/nccl/nccl.h"

/* Find the current context and its GPU's number.  If none is current, make GPU 0's primary
 * context current, as the CUDA runtime does. */
ncclResult_t nccl__driver_here(const char *who, void **context, int *device);

/* Find how many GPUs there are. */
ncclResult_t nccl__driver_count(const char *who, int *n);

/* Return a GPU's primary context, which is kept until the process ends. */
ncclResult_t nccl__driver_primary(const char *who, int device, void **context);

/* Make a context current until nccl__driver_pop(); NULL does nothing. */
ncclResult_t nccl__driver_push(void *context);
void nccl__driver_pop(void *context);

#endif
