/* SPDX-License-Identifier: BSD-3-Clause */
/* refusing_driver.c - a libcuda.so.1 that has a device and refuses every call.
 *
 * For tests/gpu/gpu.sh: with it each rule differs, nothing can be measured, and both have
 * to be said properly.  REFUSING_DRIVER=hang or crash makes cuCtxGetCurrent do that.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REFUSED = 999, VERSION = 13000 };

int cuGetProcAddress_v2(const char *name, void **entry, int version,
                        unsigned long long flags, int *status);

static int refuse(void) { return REFUSED; }

static int stop(void)
{
    const char *how = getenv("REFUSING_DRIVER");

    if (how && !strcmp(how, "hang"))
        for (;;)
            pause();
    if (how && !strcmp(how, "crash"))
        abort();
    return REFUSED;
}

static int agree(void) { return 0; }

static int version_get(int *version)
{
    *version = VERSION;
    return 0;
}

static int device_count(int *count)
{
    *count = 1;
    return 0;
}

static int device_get(int *device, int ordinal)
{
    *device = ordinal;
    return 0;
}

static int device_name(char *name, int len, int device)
{
    (void)device;
    strncpy(name, "no \"GPU\" at all", (size_t)len);
    return 0;
}

static int error_name(int code, const char **name)
{
    *name = code ? "CUDA_ERROR_REFUSED" : "CUDA_SUCCESS";
    return 0;
}

static const struct {
    const char *name;
    void *entry;
} entries[] = {
    {"cuInit", agree},
    {"cuDriverGetVersion", version_get},
    {"cuDeviceGetCount", device_count},
    {"cuDeviceGet", device_get},
    {"cuDeviceGetName", device_name},
    {"cuGetErrorName", error_name},
    {"cuCtxGetCurrent", stop},
};

int cuGetProcAddress_v2(const char *name, void **entry, int version,
                        unsigned long long flags, int *status)
{
    (void)flags;
    if (version > VERSION)
        return 1;
    *entry = refuse;
    for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
        if (!strcmp(name, entries[i].name))
            *entry = entries[i].entry;
    if (status)
        *status = 0;
    return 0;
}
