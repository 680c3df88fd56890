/* SPDX-License-Identifier: BSD-3-Clause */
/* few.c - so few of the driver's entries that it starts, or does not: as the
 * variable FEW says. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

static const char *mood(void)
{
    const char *few = getenv("FEW");

    return few ? few : "";
}

static int is(const char *word) { return !strcmp(mood(), word); }

static CUresult init(unsigned flags)
{
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    return is("no device")      ? CUDA_ERROR_NO_DEVICE
           : is("forked")       ? CUDA_ERROR_NOT_INITIALIZED
           : is("out of order") ? CUDA_ERROR_SYSTEM_NOT_READY
                                : CUDA_SUCCESS;
}

static CUresult version(int *out)
{
    *out = is("old") ? 11080 : 13000;
    return CUDA_SUCCESS;
}

static CUresult count(int *out)
{
    *out = !is("none visible");
    return CUDA_SUCCESS;
}

static CUresult name(CUresult rc, const char **out)
{
    *out = rc == CUDA_ERROR_SYSTEM_NOT_READY ? "CUDA_ERROR_SYSTEM_NOT_READY"
                                             : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult words(CUresult rc, const char **out)
{
    *out =
        rc == CUDA_ERROR_SYSTEM_NOT_READY ? "system not yet initialized" : NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult any(void) { return CUDA_SUCCESS; }

static const struct {
    const char *name;
    void *fn;
} entries[] = {
    {"cuInit", (void *)init},
    {"cuDriverGetVersion", (void *)version},
    {"cuDeviceGetCount", (void *)count},
    {"cuGetErrorName", (void *)name},
    {"cuGetErrorString", (void *)words},
};

/* A version beyond the driver's own is invalid, a name that it does not know is
 * no error: DA, "Driver Entry Point Access". */
CUresult cuGetProcAddress_v2(const char *symbol, void **fn, int wanted,
                             cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    int own = 0;

    version(&own);
    if (is("stub"))
        return CUDA_ERROR_STUB_LIBRARY;
    if (wanted > own || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *fn = (void *)any;
    *result = CU_GET_PROC_ADDRESS_SUCCESS;
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
        if (!strcmp(entries[i].name, symbol))
            *fn = entries[i].fn;
    if (is("lacks one") && !strcmp(symbol, "cuLaunchKernel")) {
        *fn = NULL;
        *result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return CUDA_SUCCESS;
}
