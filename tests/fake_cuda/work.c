/* SPDX-License-Identifier: BSD-3-Clause */
/* work.c - what operations and nodes do: copied, freed, run. */
#include "tests/fake_cuda/fake.h"
#include "tests/support/patience.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *duplicate(const void *from, size_t len)
{
    void *to = len ? malloc(len) : NULL;

    if (len)
        memcpy(to, from, len);
    return to;
}

void work_copy(struct work *to, const struct work *from)
{
    *to = *from;
    switch (from->kind) {
    case W_COPY:
        if (from->copy.staged)
            to->copy.staged = duplicate(from->copy.staged, from->copy.len);
        break;
    case W_KERNEL:
        to->kernel.values =
            duplicate(from->kernel.values, kernel_words(from->kernel.kernel) *
                                               sizeof(*to->kernel.values));
        break;
    case W_FOREIGN:
        to->foreign = foreign_copy(from->foreign);
        break;
    case W_MEMOPS:
        to->memops.ops = duplicate(from->memops.ops,
                                   from->memops.n * sizeof(*to->memops.ops));
        break;
    case W_RECORD:
    case W_WAIT:
        if (to->record)
            to->record->n_users++;
        break;
    default:
        break;
    }
}

void work_fini(struct work *w)
{
    switch (w->kind) {
    case W_COPY:
        free(w->copy.staged);
        break;
    case W_KERNEL:
        free(w->kernel.values);
        break;
    case W_FOREIGN:
        free(w->foreign);
        break;
    case W_MEMOPS:
        free(w->memops.ops);
        break;
    case W_RECORD:
        if (w->record && !record_is_done(w->record))
            record_end(w->record);
        if (w->record)
            record_drop(w->record);
        break;
    case W_WAIT:
        if (w->record)
            record_drop(w->record);
        break;
    case W_LAUNCH:
        run_end(w->run);
        break;
    case W_FREE:
        if (!fake_error())
            pool_forget(w->memory.id);
        break;
    default:
        break;
    }
}

int work_is_ready(const struct work *w)
{
    switch (w->kind) {
    case W_WAIT:
        return w->record->shared || record_is_done(w->record);
    case W_LAUNCH: /* DA cuGraphLaunch: behind the launch before it */
        return w->run->exec->n_done == w->run->number - 1;
    default:
        return 1;
    }
}

/* ---- running ------------------------------------------------------------- */

#if IS_THREAD_SANITIZED
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

/* Have ThreadSanitizer overlook what this thread reads and writes. */
static void races_ignore(int is_begin)
{
    (is_begin ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)(__FILE__,
                                                                   __LINE__);
    (is_begin ? AnnotateIgnoreWritesBegin : AnnotateIgnoreWritesEnd)(__FILE__,
                                                                     __LINE__);
}
#else
static void races_ignore(int is_begin) { (void)is_begin; }
#endif

enum { PIECE = 64 << 10 };

/* In pieces, forwards or backwards: no document says in which order. */
static void copy_pieces(struct stream *s, char *dst, const char *src,
                        size_t len)
{
    size_t n = (len + PIECE - 1) / PIECE;
    int is_backwards = stream_dice(s, 2);

    for (size_t i = 0; i < n; i++) {
        size_t at = PIECE * (is_backwards ? n - 1 - i : i);

        memmove(dst + at, src + at, len - at < PIECE ? len - at : PIECE);
    }
}

/* The same address for the driver: of what no device knows, the host's own. */
static void *any_view(CUdeviceptr at, size_t len)
{
    return arena_has(at) ? memory_view(at, len, NULL) : (void *)at;
}

static CUresult run_copy(struct work *w, struct stream *s)
{
    void *dst = any_view(w->copy.dst, w->copy.len);
    const void *src =
        w->copy.staged ? w->copy.staged : any_view(w->copy.src, w->copy.len);

    if (!w->copy.len)
        return CUDA_SUCCESS;
    if (!dst || !src)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    copy_pieces(s, dst, src, w->copy.len);
    return CUDA_SUCCESS;
}

static CUresult run_fill(struct work *w)
{
    unsigned width = w->fill.width;
    char *at = any_view(w->fill.dst, w->fill.n * width);

    if (!w->fill.n)
        return CUDA_SUCCESS;
    if (!at)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (width == 1)
        memset(at, (int)w->fill.value, w->fill.n);
    else
        for (size_t i = 0; i < w->fill.n; i++)
            memcpy(at + i * width, &w->fill.value, width);
    return CUDA_SUCCESS;
}

static CUresult run_memops(struct work *w, struct stream *s)
{
    unsigned next = 0, n_naps = 0;
    CUresult rc = CUDA_SUCCESS;

    while (!memops_step(w, &next, s, &rc) && !fake_error())
        memops_nap(&n_naps);
    return rc;
}

/* One after the other (H100, stream/host_functions_queue; DA cuLaunchHostFunc lets
 * them be so).  The function is skipped after an error, a callback is not. */
static void run_host(struct work *w)
{
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

    if (w->kind == W_HOST && fake_error())
        return;
    pthread_mutex_lock(&turn);
    fake_is_in_host_function = 1;
    if (w->kind == W_HOST)
        w->host.fn(w->host.arg);
    else
        w->host.callback(w->host.stream, fake_error(), w->host.arg);
    fake_is_in_host_function = 0;
    pthread_mutex_unlock(&turn);
}

static void run_wait(const struct work *w)
{
    while (!fake_error() && !record_is_done(w->record))
        usleep(50);
}

static CUresult run_data(struct work *w, struct stream *s)
{
    switch (w->kind) {
    case W_COPY:
        return run_copy(w, s);
    case W_FILL:
        return run_fill(w);
    case W_FOREIGN:
        return foreign_run(w->foreign, s);
    default:
        return kernel_run(w, s);
    }
}

/* Streams that were released wait for nobody, and their data may race. */
static CUresult run_racing(struct work *w, struct stream *s)
{
    CUresult rc;

    races_ignore(1);
    rc = run_data(w, s);
    races_ignore(0);
    return rc;
}

CUresult work_run(struct work *w, struct stream *s)
{
    if (fake_error() && w->kind != W_CALLBACK)
        return CUDA_SUCCESS;
    switch (w->kind) {
    case W_COPY:
    case W_FILL:
    case W_KERNEL:
    case W_FOREIGN:
        return s->is_released ? run_racing(w, s) : run_data(w, s);
    case W_MEMOPS:
        return run_memops(w, s);
    case W_HOST:
    case W_CALLBACK:
        run_host(w);
        return CUDA_SUCCESS;
    case W_WAIT:
        if (w->record->shared)
            run_wait(w);
        return CUDA_SUCCESS;
    case W_LAUNCH:
        return graph_run(w->run->graph, s);
    case W_RECORD:
    case W_ALLOC:
    case W_FREE:
        break;
    }
    return CUDA_SUCCESS;
}
