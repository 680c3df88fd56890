/* SPDX-License-Identifier: BSD-3-Clause */
/* module.c - images with kernels, and their launch: DA, "Module Management" and
 * "Execution Control".
 *
 * An image is a fat binary or a PTX text.  Of a fat binary the kernels are the
 * product's, compiled for the host (kernels.cc), by name; of a text those that
 * ptx.c knows.
 */
#include "tests/fake_cuda/fake.h"
#include "tests/fake_cuda/grid.h"
#include "tests/fake_cuda/kernels.h"
#include "lib/device/cuda_plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FATBIN = 0xba55ed50,
    WRAPPED = 0x466243b1,
    PRODUCT_THREADS = 512,
    MOST_PARAMS = 16,
    PLAN_REGISTERS = 64
};

static CUresult kind_of(const void *image, int *is_ptx)
{
    uint32_t magic;

    if (!memcmp(image, "", 1))
        return CUDA_ERROR_INVALID_IMAGE;
    *is_ptx = 0;
    /* a text may be shorter than a word: look at bytes up to its end */
    if (strnlen(image, sizeof(magic)) == sizeof(magic) ||
        ((const unsigned char *)image)[0] == (FATBIN & 0xff) ||
        ((const unsigned char *)image)[0] == (WRAPPED & 0xff)) {
        memcpy(&magic, image, sizeof(magic));
        if (magic == FATBIN || magic == WRAPPED)
            return CUDA_SUCCESS;
    }
    *is_ptx = 1;
    return ptx_check(image);
}

static CUresult load(struct context *ctx, const void *image,
                     struct module **out)
{
    struct module *m;
    int is_ptx;
    CUresult rc;

    if (!image || !out)
        return CUDA_ERROR_INVALID_VALUE;
    rc = kind_of(image, &is_ptx);
    if (rc)
        return rc;
    if (ctx)
        context_drain(ctx); /* H100, queue/behind_memop */
    m = object_new(MODULE, sizeof(*m));
    m->ctx = ctx;
    m->is_ptx = is_ptx;
    m->text = is_ptx ? strdup(image) : NULL;
    *out = m;
    return CUDA_SUCCESS;
}

/* In a capture it is allowed (H100, unsafe/global_self). */
CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    struct context *ctx;
    CUresult rc = fake_enter("cuModuleLoadData", NEED_CONTEXT | ALONE, &ctx);

    return rc ? rc : fake_leave(load(ctx, image, (struct module **)out));
}

CUresult cuModuleUnload(CUmodule handle)
{
    struct module *m;
    CUresult rc = fake_enter("cuModuleUnload", NEED_CONTEXT | UNSAFE, NULL);

    if (rc)
        return rc;
    m = object_of(handle, MODULE, "cuModuleUnload");
    m->object.is_alive = 0;
    free(m->text);
    m->text = NULL;
    return fake_leave(CUDA_SUCCESS);
}

/* The product's kernels as they are asked for: one description each. */
static const struct kernel *product_kernel(const char *name)
{
    enum { MOST = 256 };
    static struct kernel kernels[MOST];
    static int n;
    const char *params = fake_kernel_params(name);

    for (int i = 0; i < n; i++)
        if (!strcmp(kernels[i].name, name))
            return &kernels[i];
    if (!params || n == MOST)
        return NULL;
    kernels[n] = (struct kernel){
        .name = strdup(name), .params = params, .max_threads = PRODUCT_THREADS};
    return &kernels[n++];
}

static CUresult find(struct module *m, const char *name, struct function **out)
{
    const struct kernel *k = !m->is_ptx               ? product_kernel(name)
                             : ptx_has(m->text, name) ? ptx_kernel(name)
                                                      : NULL;

    if (!k)
        return CUDA_ERROR_NOT_FOUND;
    *out = object_new(FUNCTION, sizeof(**out));
    (*out)->module = m;
    (*out)->kernel = k;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    CUresult rc = fake_enter("cuModuleGetFunction", NEED_CONTEXT, NULL);

    if (rc)
        return rc;
    if (!out || !name)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    return fake_leave(find(object_of(handle, MODULE, "cuModuleGetFunction"),
                           name, (struct function **)out));
}

/* ---- libraries: modules of no context (DA, "Library Management") --------- */

CUresult cuLibraryLoadData(CUlibrary *out, const void *image,
                           CUjit_option *names, void **values, unsigned n,
                           CUlibraryOption *more, void **more_values,
                           unsigned n_more)
{
    CUresult rc = fake_enter("cuLibraryLoadData", 0, NULL);

    (void)names, (void)values, (void)n;
    (void)more, (void)more_values, (void)n_more;
    return rc ? rc : fake_leave(load(NULL, image, (struct module **)out));
}

CUresult cuLibraryUnload(CUlibrary handle)
{
    struct module *m;
    CUresult rc = fake_enter("cuLibraryUnload", UNSAFE, NULL);

    if (rc)
        return rc;
    m = object_of(handle, MODULE, "cuLibraryUnload");
    m->object.is_alive = 0;
    free(m->text);
    m->text = NULL;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name)
{
    CUresult rc = fake_enter("cuLibraryGetKernel", 0, NULL);

    if (rc)
        return rc;
    if (!out || !name)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    return fake_leave(find(object_of(handle, MODULE, "cuLibraryGetKernel"),
                           name, (struct function **)out));
}

/* DA cuKernelGetFunction: of the current context. */
CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle)
{
    CUresult rc = fake_enter("cuKernelGetFunction", NEED_CONTEXT, NULL);

    if (rc)
        return rc;
    if (!out)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    object_of(handle, FUNCTION, "cuKernelGetFunction");
    *out = (CUfunction)handle;
    return fake_leave(CUDA_SUCCESS);
}

/* ---- launched ------------------------------------------------------------ */

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute name,
                            CUfunction handle)
{
    struct function *f;
    CUresult rc = fake_enter("cuFuncGetAttribute", 0, NULL);

    if (rc)
        return rc;
    f = object_of(handle, FUNCTION, "cuFuncGetAttribute");
    if (!value || name < 0 || name >= CU_FUNC_ATTRIBUTE_MAX)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *value = name == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
                 ? f->kernel->max_threads
                 : 0;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute name,
                            int value)
{
    CUresult rc = fake_enter("cuFuncSetAttribute", 0, NULL);

    (void)value;
    if (rc)
        return rc;
    object_of(handle, FUNCTION, "cuFuncSetAttribute");
    return fake_leave(name < 0 || name >= CU_FUNC_ATTRIBUTE_MAX
                          ? CUDA_ERROR_INVALID_VALUE
                          : CUDA_SUCCESS);
}

/* H100, kernel/cooperative: 2112 blocks of 128 threads.  PLAN_REGISTERS: as nvcc gives
 * them to coll_plan, of 65536 a processor. */
static unsigned blocks_at_once(const struct kernel *k, unsigned threads)
{
    unsigned all = threads ? 2048 / ((threads + 31) / 32 * 32) : 0;
    unsigned most = threads ? 65536 / PLAN_REGISTERS / threads : 0;

    return !strcmp(k->name, COLL__CUDA_PLAN) && all > most ? most : all;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out,
                                                     CUfunction handle,
                                                     int threads, size_t shared)
{
    struct function *f;
    CUresult rc =
        fake_enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", 0, NULL);

    (void)shared;
    if (rc)
        return rc;
    f = object_of(handle, FUNCTION,
                  "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (!out || threads <= 0)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    *out = (int)blocks_at_once(f->kernel, (unsigned)threads);
    return fake_leave(CUDA_SUCCESS);
}

struct launch {
    unsigned grid[3], block[3], shared;
    int is_cooperative;
};

/* DA cuLaunchKernel; the limits are the device's attributes. */
static CUresult check(const struct function *f, const struct launch *l)
{
    unsigned threads = l->block[0] * l->block[1] * l->block[2];

    for (int i = 0; i < 3; i++)
        if (!l->grid[i] || !l->block[i] || l->block[i] > 1024)
            return CUDA_ERROR_INVALID_VALUE;
    if (l->grid[0] > 0x7fffffff || l->grid[1] > 65535 || l->grid[2] > 65535 ||
        l->block[2] > 64 || threads > 1024 || l->shared > 48 << 10)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (unsigned)f->kernel->max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (l->is_cooperative &&
        (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] >
            (uint64_t)blocks_at_once(f->kernel, threads) *
                (unsigned)device_attribute(
                    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT))
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

/* How many words of a launch's values a parameter takes. */
static size_t words_of(char letter) { return letter == 's' ? 2 : 1; }

size_t kernel_words(const struct kernel *k)
{
    size_t n = 0;

    for (const char *letter = k->params; *letter; letter++)
        n += words_of(*letter);
    return n;
}

/* DA: the values are copied at the call. */
static CUresult take(const struct kernel *k, void **params, struct work *w)
{
    size_t n = strlen(k->params);
    uint64_t *value;

    if (n && !params)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
    w->kernel.values = calloc(kernel_words(k) + 1, sizeof(uint64_t));
    value = w->kernel.values;
    for (size_t i = 0; i < n; value += words_of(k->params[i++]))
        memcpy(value, params[i],
               k->params[i] == 'u' ? 4 : 8 * words_of(k->params[i]));
    return CUDA_SUCCESS;
}

static CUresult launch(const char *entry, CUfunction handle,
                       const struct launch *l, CUstream stream, void **params)
{
    struct work w = {.kind = W_KERNEL};
    struct function *f;
    struct stream *s;
    CUresult rc = fake_enter_stream(entry, 0, stream, &s);

    if (rc)
        return rc;
    f = object_of(handle, FUNCTION, entry);
    if (!f->module->object.is_alive)
        fake_misuse(entry, "kernel of a module that is loaded", handle);
    /* H100, context/kernel_of_other */
    if (f->module->ctx && f->module->ctx != s->ctx)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    rc = check(f, l);
    if (!rc)
        rc = take(f->kernel, params, &w);
    if (rc)
        return fake_leave(rc);
    w.kernel.kernel = f->kernel;
    w.kernel.blocks = l->grid[0] * l->grid[1] * l->grid[2];
    w.kernel.threads = l->block[0] * l->block[1] * l->block[2];
    return fake_leave(stream_put(s, &w));
}

CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        CUstream s, void **params, void **extra)
{
    struct launch l = {{gx, gy, gz}, {bx, by, bz}, shared, 0};

    /* both, of which the second ends at once, are taken (H100, kernel/launch) */
    if (extra && !params)
        return CUDA_ERROR_INVALID_VALUE;
    return launch("cuLaunchKernel", f, &l, s, params);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy,
                                   unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream s,
                                   void **params)
{
    struct launch l = {{gx, gy, gz}, {bx, by, bz}, shared, 1};

    return launch("cuLaunchCooperativeKernel", f, &l, s, params);
}

/* ---- run ----------------------------------------------------------------- */

/* Bytes of an element, from the name: coll_sum_bf16; coll_copy has none. */
static unsigned width_of(const struct kernel *k)
{
    static const struct {
        const char *digits;
        unsigned width;
    } widths[] = {{"16", 2}, {"32", 4}, {"64", 8}};
    size_t len = strlen(k->name);

    for (size_t i = 0; i < 3; i++)
        if (!strcmp(k->name + len - 2, widths[i].digits))
            return widths[i].width;
    return 1;
}

/* Addresses become those at which the driver has the memory.  What a device would
 * not find, or not at such an address, is a fault: DA CUDA_ERROR_ILLEGAL_ADDRESS,
 * CUDA_ERROR_MISALIGNED_ADDRESS. */
static CUresult place(const struct kernel *k, uint64_t *values,
                      struct context *ctx)
{
    const char *l = strchr(k->params, 'l');
    size_t len = l ? values[l - k->params] : 0;

    for (size_t i = 0; k->params[i]; i++) {
        if (k->params[i] != 'p' && k->params[i] != 'n')
            continue;
        if (!len || (k->params[i] == 'n' && !values[i]))
            continue;
        if (values[i] % width_of(k))
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        values[i] = (uint64_t)memory_view(values[i], len, ctx);
        if (!values[i])
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}

/* The same of spans, which say themselves how long they are. */
static CUresult place_spans(const struct kernel *k, uint64_t *values,
                            struct context *ctx)
{
    for (int i = 0; k->params[i]; values += words_of(k->params[i++])) {
        if (k->params[i] != 's' || !values[1])
            continue;
        if (values[0] % fake_kernel_item(k->name, i))
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        values[0] = (uint64_t)memory_view(values[0], values[1], ctx);
        if (!values[0])
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}

/* ---- a plan's kernel: threads that wait for each other (grid.h) ---------- */

struct visit {
    struct stream *stream;
    unsigned most; /* blocks on the device at once */
};

/* Of this process: what another one runs at the same time is another's turn (H100,
 * time_slices). */
static unsigned n_blocks[MAX_DEVICES];

static void enter_device(void *arg)
{
    const struct visit *v = arg;
    unsigned *n = &n_blocks[v->stream->ctx->device];

    pthread_mutex_lock(fake_lock());
    while (*n >= v->most && !fake_error())
        fake_nap();
    ++*n;
    pthread_mutex_unlock(fake_lock());
}

static void leave_device(void *arg)
{
    const struct visit *v = arg;

    pthread_mutex_lock(fake_lock());
    n_blocks[v->stream->ctx->device]--;
    pthread_mutex_unlock(fake_lock());
}

static void *reach(void *arg, uint64_t at, size_t len)
{
    const struct visit *v = arg;

    return memory_view(at, len, v->stream->ctx);
}

static int is_lost(void *arg)
{
    (void)arg;
    return fake_error() != CUDA_SUCCESS;
}

/* Few threads play a block's: none may rely on how many there are. */
static CUresult run_grid(struct work *w, struct stream *s, void **params)
{
    const struct kernel *k = w->kernel.kernel;
    unsigned seed = stream_dice(s, 1u << 30);
    struct visit v = {s, blocks_at_once(k, w->kernel.threads) *
                             (unsigned)device_attribute(
                                 CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)};
    struct fake_grid grid = {.entry = k->name,
                             .params = params,
                             .blocks = w->kernel.blocks,
                             .threads = 1 + seed % 3,
                             .seed = seed,
                             .reach = reach,
                             .is_lost = is_lost,
                             .enter = enter_device,
                             .leave = leave_device,
                             .arg = &v};
    int rc;

    rc = counts_add_plan(w->kernel.values, s->ctx);
    if (!rc)
        rc = fake_grid_run(&grid);
    return rc ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

CUresult kernel_run(struct work *w, struct stream *s)
{
    const struct kernel *k = w->kernel.kernel;
    uint64_t values[2 * MOST_PARAMS], *value = values;
    void *params[MOST_PARAMS];
    CUresult rc;

    memcpy(values, w->kernel.values, kernel_words(k) * sizeof(*values));
    for (int i = 0; k->params[i]; value += words_of(k->params[i++]))
        params[i] = value;
    if (k->run)
        return k->run(s, params);
    if (!strcmp(k->name, COLL__CUDA_PLAN))
        return run_grid(w, s, params);
    rc = place(k, values, s->ctx);
    if (!rc)
        rc = place_spans(k, values, s->ctx);
    if (!rc)
        fake_kernel_run(k->name, w->kernel.blocks, w->kernel.threads, params,
                        (int)stream_dice(s, 2));
    return rc;
}
