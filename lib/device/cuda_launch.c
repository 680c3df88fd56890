/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_launch.c - steps as copies and kernels in a stream.
 *
 * Kernels belong to a context.  struct place holds the kernels of a context, which are
 * looked up by name at first use.  Places are few and stay where they are; only those of
 * devices that were reset are used again.
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_plan.h"
#include "lib/device/cuda_plan_host.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/type/op.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 32, PINNED = 4096 };

struct place {
    CUcontext ctx;
    CUmodule module;
    unsigned most_blocks;
    int has_all; /* kernels were asked for */
    void
        *pinned; /* a reset of the device unpins it, which shows that the context's
                   * kernels are gone; its handle stays the same */
    struct coll__cuda_plan_entry plan;
    CUfunction copy; /* to two places */
    CUfunction reduce[COLL_N_TYPES][COLL_N_OPS];
    CUfunction scale[COLL_N_TYPES], multiply[COLL_N_TYPES];
};

static struct place places[MOST_PLACES]; /* without ctx: it is free */
static struct coll__lock lock = COLL__LOCK(NULL);

/* ---- the kernels of a context ------------------------------------------------ */

/* A build without nvcc has an empty image (cuda_no_image.c). */
static int has_kernels(void)
{
    if (coll__cuda_image[0])
        return 1;
    log_error("cuda",
              "this libcoll was built without nvcc, so it has no kernels "
              "for GPUs; install CUDA's compiler and configure again");
    return 0;
}

static void unload(const struct coll__cuda *cuda, struct place *place)
{
    if (place->module)
        cuda->cuModuleUnload(place->module);
    free(place->pinned);
}

/* With that context current; nothing remains on failure. */
static CUresult load(const struct coll__cuda *cuda, struct place *place)
{
    int device = 0, processors = 0;
    CUresult rc;

    rc = cuda->cuCtxGetDevice(&device);
    if (!rc)
        rc = cuda->cuDeviceGetAttribute(
            &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (!rc)
        rc = cuda->cuModuleLoadData(&place->module, coll__cuda_image);
    if (!rc)
        place->pinned = aligned_alloc(PINNED, PINNED);
    if (!rc && !place->pinned)
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (!rc)
        rc = cuda->cuMemHostRegister(place->pinned, PINNED, 0);
    if (rc)
        unload(cuda, place);
    place->most_blocks =
        (unsigned)max_int(1, processors * COLL__CUDA_BLOCKS_A_PROCESSOR);
    return rc;
}

static struct place *place_with(CUcontext ctx)
{
    for (int i = 0; i < MOST_PLACES; i++)
        if (places[i].ctx == ctx)
            return &places[i];
    return NULL;
}

/* Load the kernels of a context. */
static int make_place(const struct coll__cuda *cuda, CUcontext ctx,
                      struct place **out)
{
    struct place *place = *out = place_with(NULL);
    CUresult rc;

    if (!place) {
        log_error("cuda",
                  "more than %d CUDA contexts are in use; use the devices' "
                  "primary contexts",
                  MOST_PLACES);
        return COLL_ERR_UNSUPPORTED;
    }
    if (!has_kernels())
        return COLL_ERR_UNSUPPORTED;
    memset(place, 0, sizeof(*place));
    rc = cuda->cuCtxPushCurrent(ctx);
    if (!rc) {
        rc = load(cuda, place);
        if (!rc)
            place->ctx = ctx;
        cuda->cuCtxPopCurrent(&ctx);
    }
    return coll__cuda_status(rc, "loading the kernels");
}

static int find_place(const struct coll__cuda *cuda, CUcontext ctx,
                      struct place **out)
{
    *out = place_with(ctx);
    return *out ? COLL_OK : make_place(cuda, ctx, out);
}

/* Find the place of a stream's context; the lock is held. */
static int place_of(const struct coll__cuda *cuda, void *stream,
                    struct place **place)
{
    CUcontext ctx = NULL;
    CUresult rc = cuda->cuStreamGetCtx(stream, &ctx);

    if (rc)
        return coll__cuda_status(rc, "cuStreamGetCtx");
    return find_place(cuda, ctx, place);
}

/* ---- steps -------------------------------------------------------------------- */

/* Return where the place keeps the kernel of a step, and its name; NULL: no kernel. */
static CUfunction *slot_of(struct place *place, const struct coll__work *work,
                           const char **name)
{
    switch (work->kind) {
    case WORK_REDUCE:
        *name = coll__cuda_reduce(work->type, work->op);
        return *name ? &place->reduce[work->type][work->op] : NULL;
    case WORK_SCALE:
        *name = coll__cuda_scale(work->type);
        return *name ? &place->scale[work->type] : NULL;
    case WORK_MULTIPLY:
        *name = coll__cuda_multiply(work->type);
        return *name ? &place->multiply[work->type] : NULL;
    case WORK_COPY:
        *name = "coll_copy";
        return &place->copy;
    }
    return NULL;
}

/* Get the kernel of a step; *kernel is NULL if there is none. */
static int get_kernel(const struct coll__cuda *cuda, struct place *place,
                      const struct coll__work *work, CUfunction *kernel)
{
    const char *name;
    CUfunction *slot = slot_of(place, work, &name);
    int status = COLL_OK;

    if (slot && !*slot)
        status = coll__cuda_status(
            cuda->cuModuleGetFunction(slot, place->module, name),
            "cuModuleGetFunction");
    *kernel = slot ? *slot : NULL;
    return status;
}

/* The lock is held. */
static int find_kernel(const struct coll__cuda *cuda,
                       const struct coll__work *work, CUfunction *kernel,
                       unsigned *blocks)
{
    struct place *place;
    int status = place_of(cuda, work->stream, &place);

    if (status == COLL_OK)
        status = get_kernel(cuda, place, work, kernel);
    if (status == COLL_OK)
        *blocks = place->most_blocks;
    return status;
}

/* In a place whose kernels have all been looked up nothing changes, so it is read without
 * the lock. */
static int find(const struct coll__cuda *cuda, const struct coll__work *work,
                CUfunction *kernel, unsigned *blocks)
{
    struct place *place = (struct place *)work->kernels;
    int status;

    if (place) {
        *blocks = place->most_blocks;
        return get_kernel(cuda, place, work, kernel);
    }
    coll__lock(&lock);
    status = find_kernel(cuda, work, kernel, blocks);
    coll__unlock(&lock);
    return status;
}

/* Those of a type. */
static int get_kernels(const struct coll__cuda *cuda, struct place *place,
                       enum coll_type type)
{
    struct coll__work work = {.kind = WORK_SCALE, .type = type};
    CUfunction kernel;
    int status = get_kernel(cuda, place, &work, &kernel);

    work.kind = WORK_MULTIPLY;
    if (status == COLL_OK)
        status = get_kernel(cuda, place, &work, &kernel);
    work.kind = WORK_REDUCE;
    for (int op = 0; op < COLL_N_OPS && status == COLL_OK; op++) {
        work.op = (enum coll_op)op;
        status = get_kernel(cuda, place, &work, &kernel);
    }
    return status;
}

/* Get the kernel of plans, the number of its blocks that the GPU runs at once, and a
 * stream for uploads of plans; with the context current. */
static CUresult get_plan_kernel(const struct coll__cuda *cuda,
                                struct place *place)
{
    struct coll__cuda_plan_entry *plan = &place->plan;
    int device = 0, processors = 0, blocks = 0;
    CUresult rc = cuda->cuModuleGetFunction(&plan->kernel, place->module,
                                            COLL__CUDA_PLAN);

    if (!rc)
        rc = cuda->cuCtxGetDevice(&device);
    if (!rc)
        rc = cuda->cuDeviceGetAttribute(
            &processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (!rc)
        rc = cuda->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, plan->kernel, COLL__CUDA_THREADS, 0);
    if (!rc && !plan->uploads)
        rc = cuda->cuStreamCreate(&plan->uploads, CU_STREAM_NON_BLOCKING);
    plan->ctx = place->ctx;
    plan->most_blocks = (unsigned)max_int(1, processors * blocks);
    return rc;
}

static int have_plan_kernel(const struct coll__cuda *cuda, struct place *place)
{
    CUcontext ctx;
    CUresult rc = cuda->cuCtxPushCurrent(place->ctx);

    if (!rc) {
        rc = get_plan_kernel(cuda, place);
        cuda->cuCtxPopCurrent(&ctx);
    }
    return coll__cuda_status(rc, "loading the kernel of plans");
}

static int get_all(const struct coll__cuda *cuda, struct place *place)
{
    struct coll__work copy = {.kind = WORK_COPY};
    CUfunction kernel;
    int status = have_plan_kernel(cuda, place);

    if (status == COLL_OK)
        status = get_kernel(cuda, place, &copy, &kernel);
    for (int type = 0; type < COLL_N_TYPES && status == COLL_OK; type++)
        status = get_kernels(cuda, place, (enum coll_type)type);
    place->has_all = !status;
    return status;
}

/* Forget a place if its device was reset.  Returns its context then, else NULL.  The lock
 * is held. */
static CUcontext forget_stale(struct place *place)
{
    CUcontext ctx = place->ctx;

    if (coll__cuda_whose(place->pinned, NULL) == WHOSE_HOSTS)
        return NULL;
    free(place->pinned);
    place->ctx = NULL;
    return ctx;
}

/* Find a stream's place, and load all its kernels.  But if the device was reset, forget
 * the place; *stale is then its context, else NULL. */
static int prepare(const struct coll__cuda *cuda, void *stream,
                   struct place **place, CUcontext *stale)
{
    int status;

    *stale = NULL;
    coll__lock(&lock);
    status = place_of(cuda, stream, place);
    if (status == COLL_OK && (*place)->has_all)
        *stale = forget_stale(*place);
    else if (status == COLL_OK)
        status = get_all(cuda, *place);
    coll__unlock(&lock);
    return status;
}

/* Look up all kernels now.  The driver may load a kernel at its first look-up and then
 * waits for the context's streams (Programming Guide, "Lazy Loading"). */
int coll__cuda_prepare(void *stream, const void **kernels)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct place *place;
    CUcontext stale;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    status = prepare(cuda, stream, &place, &stale);
    if (status == COLL_OK && stale) {
        coll__cuda_forget_rooms(stale);
        status = prepare(cuda, stream, &place, &stale);
    }
    if (status == COLL_OK && kernels)
        *kernels = place;
    return status;
}

int coll__cuda_plan_entry_of(void *stream, struct coll__cuda_plan_entry *out)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct place *place;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    coll__lock(&lock);
    status = place_of(cuda, stream, &place);
    if (status == COLL_OK && !place->has_all)
        status = get_all(cuda, place);
    if (status == COLL_OK)
        *out = place->plan;
    coll__unlock(&lock);
    return status;
}

static CUresult launch(const struct coll__cuda *cuda,
                       const struct coll__work *work, CUfunction kernel,
                       unsigned blocks)
{
    const void *dst = work->dst, *src = work->src, *next = work->next;
    const void *with = work->with ? work->with : dst;
    size_t len = work->len;
    int n_ranks = work->nranks;
    uint64_t bits = 0;
    void *copy[] = {&dst, &next, &src, &len};
    void *reduce[] = {&dst, &next, &with, &src, &len};
    void *scale[] = {&dst, &dst, &len, &n_ranks, &bits};
    void *multiply[] = {&dst, &src, &len, &bits};
    void **params = reduce;

    if (work->kind == WORK_SCALE) {
        bits = coll__cuda_magic(n_ranks);
        params = scale;
    } else if (work->kind == WORK_MULTIPLY) {
        memcpy(&bits, work->scalar,
               coll_type_size(coll__factor_type(work->type)));
        params = multiply;
    } else if (work->kind == WORK_COPY) {
        params = copy;
    }
    return cuda->cuLaunchKernel(kernel, blocks, 1, 1, COLL__CUDA_THREADS, 1, 1,
                                0, work->stream, params, NULL);
}

static int is_drivers(const struct coll__work *work)
{
    return work->kind == WORK_COPY && !work->next &&
           !(work->is_dst_host && work->is_src_host);
}

int coll__cuda_enqueue(const struct coll__work *work)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUfunction kernel = NULL;
    unsigned blocks = 0;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    if (!work->len)
        return COLL_OK;
    if (is_drivers(work))
        return coll__cuda_status(cuda->cuMemcpyAsync((CUdeviceptr)work->dst,
                                                     (CUdeviceptr)work->src,
                                                     work->len, work->stream),
                                 "cuMemcpyAsync");
    status = find(cuda, work, &kernel, &blocks);
    if (status)
        return status;
    if (!kernel) {
        log_error("cuda", "no kernel for type %d and operation %d",
                  (int)work->type, (int)work->op);
        return COLL_ERR_UNSUPPORTED;
    }
    blocks = coll__cuda_blocks(work->len, blocks);
    return coll__cuda_status(launch(cuda, work, kernel, blocks),
                             "cuLaunchKernel");
}
