/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn.c - find cuDNN and cublasLt, and say why if they are not there. */
#include "trainer/cuda/dnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

/* A library, and how it is called in a sentence. */
struct library {
    const char *name, *file;
    unsigned major;
    const char *const *entries;
    size_t n_entries;
};

#define X(name) #name,
static const char *const cudnn_entries[] = {DNN_CUDNN_ENTRIES(X)};
static const char *const cublaslt_entries[] = {DNN_CUBLASLT_ENTRIES(X)};
#undef X

#define N_CUDNN (sizeof(cudnn_entries) / sizeof(cudnn_entries[0]))
#define N_CUBLASLT (sizeof(cublaslt_entries) / sizeof(cublaslt_entries[0]))

static const struct library cudnn = {"cuDNN", "libcudnn.so." TEXT(CUDNN_MAJOR),
                                     CUDNN_MAJOR, cudnn_entries, N_CUDNN};
static const struct library cublaslt = {
    "cublasLt", "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR), CUBLAS_VER_MAJOR,
    cublaslt_entries, N_CUBLASLT};

/* dlsym() returns data pointers, but entry points are functions: a union converts
 * them. */
union table {
    struct dnn_entries entries;
    void *found[sizeof(struct dnn_entries) / sizeof(void *)];
};

static int load(const struct library *l, void **found, char *why, size_t len)
{
    void *file = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);

    if (!file) {
        snprintf(why, len,
                 "%s cannot be loaded (%s); install %s %u, name its folder in "
                 "LD_LIBRARY_PATH",
                 l->name, dlerror(), l->name, l->major);
        return -1;
    }
    for (size_t i = 0; i < l->n_entries; i++) {
        found[i] = dlsym(file, l->entries[i]);
        if (!found[i]) {
            snprintf(why, len, "%s has no %s; install a newer %s %u", l->file,
                     l->entries[i], l->name, l->major);
            return -1;
        }
    }
    return 0;
}

static int judge_major(const struct library *l, size_t major, char *why,
                       size_t len)
{
    if (major == l->major)
        return 0;
    snprintf(why, len,
             "%s is %s %zu, but this program was built for %s %u; install "
             "that",
             l->file, l->name, major, l->name, l->major);
    return -1;
}

int dnn_find(struct dnn_entries *dnn, char *why, size_t len)
{
    union table table;

    memset(&table, 0, sizeof(table));
    if (load(&cudnn, table.found, why, len) ||
        load(&cublaslt, table.found + N_CUDNN, why, len) ||
        judge_major(&cudnn, table.entries.cudnnGetVersion() / 10000, why,
                    len) ||
        judge_major(&cublaslt, table.entries.cublasLtGetVersion() / 10000, why,
                    len))
        return -1;
    *dnn = table.entries;
    return 0;
}

void dnn_say_versions(const struct dnn_entries *dnn, char cudnn_version[24],
                      char cublaslt_version[24])
{
    unsigned v = (unsigned)dnn->cudnnGetVersion();

    snprintf(cudnn_version, 24, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    v = (unsigned)dnn->cublasLtGetVersion();
    snprintf(cublaslt_version, 24, "%u.%u.%u", v / 10000, v / 100 % 100,
             v % 100);
}
