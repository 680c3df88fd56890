/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn_fixture.c - the stand-ins of cuDNN and cuBLASLt in a test. */
#include "tests/fake_cudnn/dnn_fixture.h"
#include "lib/type/half.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dnn_entries dnn;

static void *library(const char *path)
{
    void *at = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    ck_assert_msg(at != NULL, "%s", dlerror());
    return at;
}

static void entry(void *from, const char *name, void *to)
{
    void *at = dlsym(from, name);

    ck_assert_msg(at != NULL, "no entry %s", name);
    memcpy(to, &at, sizeof(at));
}

void dnn_open(void)
{
    void *from;

    fake_open();
    from = library(FAKE_CUDNN);
#define X(name) entry(from, #name, &dnn.name);
    DNN_ENTRIES(X)
    from = library(FAKE_CUBLASLT);
    LT_ENTRIES(X)
#undef X
}

/* Numbers that a test has been given: all are found from here. */
struct given {
    struct given *next;
    float numbers[];
};

static float *give(size_t n)
{
    static struct given *all;
    struct given *g = malloc(sizeof(*g) + n * sizeof(float));

    g->next = all;
    all = g;
    return g->numbers;
}

static size_t size_of(enum dnn_number type) { return type == DNN_BF16 ? 2 : 4; }

void dnn_write(CUdeviceptr to, const float *from, size_t n,
               enum dnn_number type)
{
    uint16_t *narrow = malloc(n * sizeof(*narrow));

    for (size_t i = 0; i < n; i++)
        narrow[i] = bf16_narrow(from[i]);
    fake_put(to, type == DNN_BF16 ? (const void *)narrow : from,
             n * size_of(type));
    free(narrow);
}

CUdeviceptr dnn_put(const float *from, size_t n, enum dnn_number type)
{
    CUdeviceptr at = fake_memory(n * size_of(type));

    dnn_write(at, from, n, type);
    return at;
}

float *dnn_get(CUdeviceptr at, size_t n, enum dnn_number type)
{
    float *to = give(n);
    uint16_t *narrow = malloc(n * sizeof(*narrow));

    OK(cu.MemcpyDtoH(type == DNN_BF16 ? (void *)narrow : to, at,
                     n * size_of(type)));
    for (size_t i = 0; type == DNN_BF16 && i < n; i++)
        to[i] = bf16_widen(narrow[i]);
    free(narrow);
    return to;
}

float *dnn_draw(size_t n, unsigned seed, enum dnn_number type)
{
    float *to = give(n);

    seed = seed * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(int)(seed >> 8 & 0xffff) / 32768.0f - 1;
        if (type == DNN_BF16)
            to[i] = bf16_widen(bf16_narrow(to[i]));
    }
    return to;
}

int dnn_near(const float *is, const double *should, size_t n, size_t terms,
             enum dnn_number type)
{
    for (size_t i = 0; i < n; i++) {
        double most = (double)(terms + 4) * 0x1p-23;

        if (type == DNN_BF16)
            most += fabs(should[i]) * 0x1p-8;
        if (!(fabs(is[i] - should[i]) <= most))
            return 0;
    }
    return 1;
}
