/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_device.c - the devices that buffers can be on, besides the host. */
#include "benchmarks/bench.h"

#include <string.h>

static const struct bench_device *const devices[] = {
#if COLL_HAVE_CUDA
    &bench_cuda,
#endif
    NULL};

const struct bench_device *bench_device_find(const char *name)
{
    int i = 0;

    while (devices[i] && strcmp(devices[i]->name, name))
        i++;
    return devices[i];
}
