/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stream.c - find out about a stream and its buffers before work is put into it. */
#include "lib/device/cuda_stream.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/trace/log.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

/* ---- whose memory ------------------------------------------------------------- */

typedef __typeof__(cuPointerGetAttributes) ask_fn;

/* The number of libraries that the process has loaded so far; 0: it is not known. */
static int take_loads(struct dl_phdr_info *info, size_t size, void *n_loads)
{
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
        *(unsigned long long *)n_loads = info->dlpi_adds;
    return 1; /* every object has the number: no more of them */
}

static void *look_for_ask(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);

    return library ? dlsym(library, "cuPointerGetAttributes") : NULL;
}

/* Find cuPointerGetAttributes, if the process has loaded the driver.  It has had one form
 * since 7.0, so dlsym() finds the right one.  The entry stays valid: the driver has
 * threads and is never unloaded.
 *
 * dlopen() of a library that is not there takes some 30 us, so look only where a library
 * was loaded since the last look; to know that takes some 0.1 us.  Any thread may look:
 * `looked` is stored after what was found (release), so whoever reads it (acquire) also
 * reads that. */
static ask_fn *find_ask(void)
{
    static _Atomic(void *) found;
    static _Atomic(unsigned long long) looked;
    unsigned long long n_loads = 0;
    union {
        void *found;
        ask_fn *fn;
    } ask = {.found = atomic_load(&found)};

    if (ask.found)
        return ask.fn;
    dl_iterate_phdr(take_loads, &n_loads);
    if (n_loads &&
        atomic_load_explicit(&looked, memory_order_acquire) == n_loads)
        ask.found = atomic_load(&found);
    else {
        ask.found = look_for_ask();
        if (ask.found) {
            atomic_store(&found, ask.found);
            atomic_store(&coll__device_is_here, 1);
        }
        atomic_store_explicit(&looked, n_loads, memory_order_release);
    }
    return ask.fn;
}

void coll__cuda_look(void) { find_ask(); }

int coll__cuda_has_context(void)
{
    union {
        void *found;
        __typeof__(cuCtxGetCurrent) *fn;
    } current = {.found = NULL};
    CUcontext ctx = NULL;

    if (find_ask())
        current.found =
            dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD),
                  "cuCtxGetCurrent");
    return current.found && !current.fn(&ctx) && ctx;
}

/* Source: Driver API, cuPointerGetAttributes: unknown addresses give zeros, no error. */
enum coll__whose coll__cuda_whose(const void *ptr,
                                  struct coll__cuda_owner *owner)
{
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                   CU_POINTER_ATTRIBUTE_BUFFER_ID};
    ask_fn *ask = ptr ? find_ask() : NULL;
    unsigned type = 0;
    int ordinal = -1;
    unsigned long long id = 0;
    void *out[] = {&type, &ordinal, &id};

    if (!ask || ask(3, names, out, (CUdeviceptr)ptr))
        return WHOSE_NOBODYS;
    if (owner)
        *owner = (struct coll__cuda_owner){.device = ordinal, .id = id};
    return type == CU_MEMORYTYPE_DEVICE ? WHOSE_DEVICES
           : type == CU_MEMORYTYPE_HOST ? WHOSE_HOSTS
                                        : WHOSE_NOBODYS;
}

/* ---- streams ------------------------------------------------------------------- */

/* The legacy stream and the per-thread stream belong to the current context. */
static CUresult context_of(const struct coll__cuda *cuda, CUstream stream,
                           CUcontext *ctx)
{
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return cuda->cuCtxGetCurrent(ctx);
    return cuda->cuStreamGetCtx(stream, ctx);
}

/* Say why a capture closes a stream, or NULL.  Source: Driver API,
 * cuStreamIsCapturing. */
static const char *closed_by(CUresult rc, CUstreamCaptureStatus capture)
{
    if (rc == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return "the legacy stream cannot be used while another stream that it "
               "waits for is captured; pass that one";
    return capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED
               ? "the stream's capture was spoilt by a call that captures "
                 "forbid; end it and begin another"
               : NULL;
}

/* Fill in *place, with the context current.  If another capture forbids all use of the
 * legacy stream, the legacy stream counts as captured. */
static int describe(const struct coll__cuda *cuda, CUstream stream,
                    struct coll__cuda_place *place)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult rc = cuda->cuStreamIsCapturing(stream, &capture);

    place->is_captured = rc == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
                         capture != CU_STREAM_CAPTURE_STATUS_NONE;
    place->closed = closed_by(rc, capture);
    if (rc && rc != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return coll__cuda_status(rc, "cuStreamIsCapturing");
    return COLL_OK;
}

/* Find the number of the context's device; it is current. */
static int find_device(const struct coll__cuda *cuda,
                       const struct coll__cuda_place *known,
                       struct coll__cuda_place *place)
{
    if (known && known->ctx == place->ctx) {
        place->device = known->device;
        return COLL_OK;
    }
    return coll__cuda_status(cuda->cuCtxGetDevice(&place->device),
                             "cuCtxGetDevice");
}

int coll__cuda_enter(void *stream, const struct coll__cuda_place *known,
                     struct coll__cuda_place *place)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUcontext ctx = NULL;
    CUresult rc;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    rc = context_of(cuda, stream, &ctx);
    if (rc)
        return coll__cuda_status(rc, "the stream's context");
    if (!ctx) {
        log_error(
            "cuda",
            "the stream is NULL, the legacy stream of the current CUDA "
            "context, but this thread has no current CUDA context; call "
            "cudaSetDevice() or cuCtxSetCurrent() first, or pass a stream");
        return COLL_ERR_INVALID;
    }
    rc = cuda->cuCtxPushCurrent(ctx);
    if (rc)
        return coll__cuda_status(rc, "cuCtxPushCurrent");
    place->ctx = ctx;
    status = find_device(cuda, known, place);
    if (status == COLL_OK)
        status = describe(cuda, stream, place);
    if (status)
        coll__cuda_leave();
    return status;
}

void *coll__cuda_here(void *stream)
{
    return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD
               ? coll__cuda_context()
               : NULL;
}

int coll__cuda_push(void *ctx)
{
    const struct coll__cuda *cuda = coll__cuda_needed();

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    return coll__cuda_status(cuda->cuCtxPushCurrent(ctx), "cuCtxPushCurrent");
}

void coll__cuda_leave(void)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUcontext ctx;

    if (cuda)
        cuda->cuCtxPopCurrent(&ctx);
}
