/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - all devices. */
#include "lib/device/device.h"

#if COLL_HAVE_CUDA
extern const struct coll__device coll__device_cuda;
#endif

const struct coll__device *const coll__devices[] = {
#if COLL_HAVE_CUDA
    &coll__device_cuda,
#endif
    &coll__device_host, /* last: it owns whatever nobody else does */
    NULL,
};

atomic_int coll__device_is_here;

const struct coll__device *coll__device_of(const void *ptr)
{
    int i = 0;

    while (coll__devices[i + 1] && !coll__devices[i]->owns(ptr))
        i++;
    return coll__devices[i];
}
