/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - all devices. */
#include "lib/device/cuda.h"
#include "lib/device/device.h"

const struct coll__device *const coll__devices[] = {
#if COLL_HAVE_CUDA
    &coll__device_cuda,
#endif
    &coll__device_host,
    NULL,
};

atomic_int coll__device_is_here;
