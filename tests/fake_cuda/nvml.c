/* SPDX-License-Identifier: BSD-3-Clause */
/* nvml.c - libnvidia-ml.so.1 as it is where the kernel has no driver: a UCX that was
 * built with CUDA is linked to it, and goes on without when it says so. */
#include <stddef.h>

/* NVML API reference, nvmlReturn_t: "NVIDIA driver is not loaded". */
enum { NVML_ERROR_DRIVER_NOT_LOADED = 9 };

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int rc);

int nvmlInit_v2(void) { return NVML_ERROR_DRIVER_NOT_LOADED; }
int nvmlShutdown(void) { return NVML_ERROR_DRIVER_NOT_LOADED; }

const char *nvmlErrorString(int rc)
{
    return rc ? "fake_cuda: no driver of the kernel" : "Success";
}
