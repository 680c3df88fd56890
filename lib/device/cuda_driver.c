/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_driver.c - find the CUDA driver, and say why if there is none.
 *
 * Each entry is looked up by its plain name and one version.  dlsym() by the plain name
 * could return an older form than cuda.h declares under that name.
 * Source: CUDA Driver API, "Driver Entry Point Access".
 */
#include "lib/device/cuda_driver.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

typedef CUresult ask_fn(const char *symbol, void **fn, int version,
                        cuuint64_t flags,
                        CUdriverProcAddressQueryResult *result);

/* ---- one sentence ------------------------------------------------------------ */

/* Write the driver's text for a status, or its number if the driver has none. */
static void say(const struct coll__cuda *cuda, CUresult rc, char *text,
                size_t len)
{
    const char *name = NULL, *words = NULL;

    if (cuda && cuda->cuGetErrorName && cuda->cuGetErrorString) {
        cuda->cuGetErrorName(rc, &name);
        cuda->cuGetErrorString(rc, &words);
    }
    if (name && words)
        snprintf(text, len, "%s (%s)", words, name);
    else
        snprintf(text, len, "status %d", (int)rc);
}

static int refuse(const struct coll__cuda *cuda, CUresult rc, const char *call,
                  char *why, size_t len)
{
    char text[256];

    switch (rc) {
    case CUDA_ERROR_STUB_LIBRARY:
        snprintf(why, len,
                 "libcuda.so.1 is the toolkit's stub and no driver; "
                 "take its folder out of LD_LIBRARY_PATH");
        break;
    case CUDA_ERROR_NO_DEVICE:
        snprintf(why, len,
                 "the CUDA driver finds no GPU; see nvidia-smi and "
                 "CUDA_VISIBLE_DEVICES");
        break;
    case CUDA_ERROR_NOT_INITIALIZED:
        snprintf(why, len,
                 "this process was forked from one that had started "
                 "CUDA; start it by exec() instead");
        break;
    case CUDA_ERROR_NOT_FOUND:
        snprintf(why, len, "the CUDA driver has no %s; update it", call);
        break;
    default:
        say(cuda, rc, text, sizeof(text));
        snprintf(why, len, "%s: %s", call, text);
    }
    return -1;
}

static const char too_old[] = "the CUDA driver is older than 12.0; update it";

/* ---- finding ----------------------------------------------------------------- */

static CUresult find(ask_fn *ask, const char *name, void **fn)
{
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult rc;

    *fn = NULL;
    rc =
        ask(name, fn, COLL__CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &result);
    return rc || *fn ? rc : CUDA_ERROR_NOT_FOUND;
}

/* A union turns the data pointer that is found into a function pointer. */
static int fill(ask_fn *ask, struct coll__cuda *out, char *why, size_t len)
{
    union {
        struct coll__cuda entries;
        void *found[sizeof(struct coll__cuda) / sizeof(void *)];
    } table = {.found = {NULL}};
    static const char *const names[] = {
#define X(name) #name,
        COLL__CUDA_DRIVER_MAP(X)
#undef X
            "cuStreamGetCaptureInfo",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        CUresult rc = find(ask, names[i], &table.found[i]);

        if (rc == CUDA_ERROR_INVALID_VALUE) { /* the version asked for */
            snprintf(why, len, "%s", too_old);
            return -1;
        }
        if (rc)
            return refuse(&table.entries, rc, names[i], why, len);
    }
    *out = table.entries;
    return 0;
}

static int start(const struct coll__cuda *cuda, char *why, size_t len)
{
    CUresult rc = cuda->cuInit(0);
    int n_devices = 0;

    if (rc)
        return refuse(cuda, rc, "cuInit", why, len);
    rc = cuda->cuDeviceGetCount(&n_devices);
    if (!rc && n_devices < 1)
        rc = CUDA_ERROR_NO_DEVICE;
    return rc ? refuse(cuda, rc, "cuDeviceGetCount", why, len) : 0;
}

/* The driver is never closed again, since its threads keep running. */
int coll__cuda_load(const char *file, struct coll__cuda *out, char *why,
                    size_t len)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    struct coll__cuda found;
    union {
        void *found;
        ask_fn *fn;
    } ask;

    if (!library) {
        snprintf(why, len, "no CUDA driver: %s; install NVIDIA's", dlerror());
        return -1;
    }
    ask.found = dlsym(library, "cuGetProcAddress_v2");
    if (!ask.found) {
        snprintf(why, len, "%s", too_old);
        return -1;
    }
    if (fill(ask.fn, &found, why, len) || start(&found, why, len))
        return -1;
    *out = found;
    return 0;
}

/* ---- once in a process's life --------------------------------------------------- */

/* Written once, under `once`, and read after it. */
static struct {
    struct coll__cuda entries;
    int is_there;
    unsigned generation; /* of forks, when it was started */
    char why[512];
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_driver(void)
{
    driver.generation = coll__generation_now();
    driver.is_there = !coll__cuda_load("libcuda.so.1", &driver.entries,
                                       driver.why, sizeof(driver.why));
}

const struct coll__cuda *coll__cuda_driver(char *why, size_t len)
{
    pthread_once(&once, open_driver);
    if (driver.is_there && driver.generation == coll__generation_now())
        return &driver.entries;
    if (!driver.is_there)
        snprintf(why, len, "%s", driver.why);
    else
        refuse(NULL, CUDA_ERROR_NOT_INITIALIZED, "", why, len);
    return NULL;
}

const struct coll__cuda *coll__cuda_needed(void)
{
    char why[sizeof(driver.why)];
    const struct coll__cuda *cuda = coll__cuda_driver(why, sizeof(why));

    if (!cuda)
        log_error("cuda", "%s", why);
    return cuda;
}

int coll__cuda_verdict(CUresult rc, const char *call, char *why, size_t len)
{
    char text[256];

    if (rc == CUDA_SUCCESS)
        return COLL_OK;
    if (rc == CUDA_ERROR_NOT_READY)
        return COLL_IN_PROGRESS;
    say(coll__cuda_driver(NULL, 0), rc, text, sizeof(text));
    snprintf(why, len, "%s: %s", call, text);
    switch (rc) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return COLL_ERR_NOMEM;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_INVALID_HANDLE:
        return COLL_ERR_INVALID;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return COLL_ERR_UNSUPPORTED;
    default:
        return COLL_ERR_SYSTEM;
    }
}

int coll__cuda_status(CUresult rc, const char *call)
{
    char why[512];
    int status = coll__cuda_verdict(rc, call, why, sizeof(why));

    if (status < 0)
        log_error("cuda", "%s", why);
    return status;
}
