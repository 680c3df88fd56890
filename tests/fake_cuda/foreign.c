/* SPDX-License-Identifier: BSD-3-Clause */
/* foreign.c - work of other libraries: put into streams, copied with graphs, run. */
#include "tests/fake_cuda/foreign.h"
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <string.h>

struct foreign {
    struct fake_cuda_work work;
    _Alignas(max_align_t) unsigned char args[];
};

static struct foreign *foreign_new(const struct fake_cuda_work *work)
{
    struct foreign *f = malloc(sizeof(*f) + work->args_len);

    f->work = *work;
    if (work->args_len)
        memcpy(f->args, work->args, work->args_len);
    f->work.args = f->args;
    return f;
}

struct foreign *foreign_copy(const struct foreign *from)
{
    return foreign_new(&from->work);
}

CUresult foreign_run(const struct foreign *f, struct stream *s)
{
    void *views[FAKE_CUDA_SPANS] = {NULL};

    for (int i = 0; i < FAKE_CUDA_SPANS; i++) {
        const struct fake_cuda_span *span = &f->work.spans[i];

        if (!span->len)
            continue;
        if (span->align && span->at % span->align)
            return CUDA_ERROR_MISALIGNED_ADDRESS;
        views[i] = memory_view(span->at, span->len, s->ctx);
        if (!views[i])
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    f->work.run(views, f->args, stream_dice(s, 1u << 30));
    return CUDA_SUCCESS;
}

CUresult fake_cuda_put(CUcontext ctx, CUstream stream,
                       const struct fake_cuda_work *work)
{
    struct work w = {.kind = W_FOREIGN};
    struct stream *s;
    CUresult rc = fake_enter_stream(work->entry, 0, stream, &s);

    if (rc)
        return rc;
    if (s->ctx != (struct context *)ctx)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    w.foreign = foreign_new(work);
    return fake_leave(stream_put(s, &w));
}

CUresult fake_cuda_may_allocate(const char *entry, CUcontext *ctx)
{
    struct context *now;
    CUresult rc = fake_enter(entry, NEED_CONTEXT | UNSAFE | ALONE, &now);

    if (rc)
        return rc;
    *ctx = (CUcontext)now;
    return fake_leave(CUDA_SUCCESS);
}
