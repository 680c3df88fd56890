/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.c - find the CUDA driver.
 *
 * Each entry is looked up by its plain name and one version: dlsym() could find an older
 * form than the one that cuda.h declares.
 * Source: CUDA Driver API, "Driver Entry Point Access".
 */
#include "tools/common/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define ASKED_VERSION 12000

typedef CUresult ask_fn(const char *name, void **fn, int version,
                        cuuint64_t flags, CUdriverProcAddressQueryResult *how);

/* dlsym() returns data pointers, but entry points are functions: a union converts
 * them. */
static int fill(ask_fn *ask, struct cuda_entries *cu, char *why, size_t len)
{
    union {
        struct cuda_entries entries;
        void *found[sizeof(struct cuda_entries) / sizeof(void *)];
    } table = {.found = {NULL}};
    static const char *const names[] = {
#define X(name) #name,
        CUDA_ENTRIES(X)
#undef X
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ask(names[i], &table.found[i], ASKED_VERSION, 0, NULL);
        if (!table.found[i]) {
            snprintf(why, len,
                     "the CUDA driver is too old, without %s; update it",
                     names[i]);
            return -1;
        }
    }
    *cu = table.entries;
    return 0;
}

int cuda_judge(const struct cuda_entries *cu, CUresult rc, const char *call,
               char *why, size_t len)
{
    const char *text = NULL;

    if (!rc)
        return 0;
    cu->cuGetErrorString(rc, &text);
    snprintf(why, len, "%s: %s", call, text ? text : "an unknown error");
    return -1;
}

/* Add a remedy to the driver's own words. */
static int ask_smi(int status, char *why, size_t len)
{
    size_t at = strlen(why);

    if (status)
        snprintf(why + at, len - at, "; see nvidia-smi");
    return status;
}

static int no_device(char *why, size_t len)
{
    snprintf(why, len,
             "the CUDA driver finds no GPU; see nvidia-smi and "
             "CUDA_VISIBLE_DEVICES");
    return -1;
}

int cuda_find(struct cuda_entries *cu, char *why, size_t len)
{
    void *file = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    union {
        void *found;
        ask_fn *fn;
    } ask = {.found = file ? dlsym(file, "cuGetProcAddress_v2") : NULL};
    CUresult rc;

    if (!ask.found) {
        snprintf(why, len,
                 "there is no CUDA driver of version 12 or later "
                 "(libcuda.so.1); install NVIDIA's");
        return -1;
    }
    if (fill(ask.fn, cu, why, len))
        return -1;
    rc = cu->cuInit(0);
    if (rc == CUDA_ERROR_NO_DEVICE)
        return no_device(why, len);
    return ask_smi(cuda_judge(cu, rc, "cuInit", why, len), why, len);
}

int cuda_count(const struct cuda_entries *cu, char *why, size_t len)
{
    int n = 0;

    if (cuda_judge(cu, cu->cuDeviceGetCount(&n), "cuDeviceGetCount", why, len))
        return ask_smi(-1, why, len);
    return n > 0 ? n : no_device(why, len);
}
