/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c - events: DA, "Event Management". */
#include "tests/fake_cuda/fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_SHARED = 4096 };
static struct event *shared[MOST_SHARED];
static int n_shared;

/* ---- records ------------------------------------------------------------- */

static struct record *record_new(struct event *e)
{
    struct record *r = calloc(1, sizeof(*r));

    r->n_users = 1;
    r->shared = e->shared;
    if (e->shared)
        r->number = atomic_fetch_add(&e->shared->n_recorded, 1) + 1;
    return r;
}

void record_drop(struct record *r)
{
    if (--r->n_users == 0)
        free(r);
}

int record_is_done(const struct record *r)
{
    return r->shared ? atomic_load(&r->shared->n_done) >= r->number
                     : atomic_load(&r->is_done);
}

void record_end(struct record *r)
{
    uint64_t done;

    r->at = fake_now();
    atomic_store(&r->is_done, 1);
    if (!r->shared)
        return;
    done = atomic_load(&r->shared->n_done);
    while (done < r->number &&
           !atomic_compare_exchange_weak(&r->shared->n_done, &done, r->number))
        ;
}

/* Of an event that processes share: the last record of any of them. */
static struct record *last_of(struct event *e)
{
    struct record *r;

    if (!e->shared)
        return e->last;
    r = e->last;
    if (!r || r->number != atomic_load(&e->shared->n_recorded)) {
        if (r)
            record_drop(r);
        r = calloc(1, sizeof(*r));
        r->n_users = 1;
        r->shared = e->shared;
        r->number = atomic_load(&e->shared->n_recorded);
        e->last = r;
    }
    return r;
}

struct record *event_record(struct event *e)
{
    if (e->last)
        record_drop(e->last);
    e->capture_id = 0;
    e->last = record_new(e);
    e->last->n_users++;
    return e->last;
}

struct record *event_last(struct event *e)
{
    struct record *r = last_of(e);

    if (r)
        r->n_users++;
    return r;
}

/* ---- made and destroyed -------------------------------------------------- */

struct event *event_new(struct context *ctx, unsigned flags)
{
    struct event *e = object_new(EVENT, sizeof(*e));

    e->ctx = ctx;
    e->flags = flags;
    e->fd = -1;
    return e;
}

static CUresult share(struct event *e)
{
    e->fd = memfd_create("fake_cuda event", MFD_CLOEXEC);
    if (e->fd < 0 || n_shared == MOST_SHARED || ftruncate(e->fd, 4096))
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
    if (e->shared == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->id = fake_next_id();
    shared[n_shared++] = e;
    return CUDA_SUCCESS;
}

int event_by_id(uint64_t id)
{
    for (int i = 0; i < n_shared; i++)
        if (shared[i]->id == id && shared[i]->object.is_alive)
            return shared[i]->fd;
    return -1;
}

/* DA cuEventCreate: INTERPROCESS only together with DISABLE_TIMING. */
CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    struct context *ctx;
    struct event *e;
    CUresult rc = fake_enter("cuEventCreate", NEED_CONTEXT | ALONE, &ctx);

    if (rc)
        return rc;
    if (!out || flags & ~7u ||
        (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    e = event_new(ctx, flags);
    if (flags & CU_EVENT_INTERPROCESS)
        rc = share(e);
    if (!rc)
        *out = (CUevent)e;
    return fake_leave(rc);
}

static CUresult enter(const char *entry, CUevent handle, struct event **e)
{
    CUresult rc = fake_enter(entry, 0, NULL);

    if (rc)
        return rc;
    *e = object_of(handle, EVENT, entry);
    if (!(*e)->ctx->is_live)
        return fake_leave(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return CUDA_SUCCESS;
}

/* DA cuEventDestroy: a record that has not been reached stays until it is. */
CUresult cuEventDestroy(CUevent handle)
{
    struct event *e;
    CUresult rc = enter("cuEventDestroy", handle, &e);

    if (rc)
        return rc;
    e->object.is_alive = 0;
    if (e->last)
        record_drop(e->last);
    e->last = NULL;
    set_free(e->frontier);
    e->frontier = NULL;
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1; /* the page stays: records in streams may end later */
    return fake_leave(CUDA_SUCCESS);
}

/* ---- used ---------------------------------------------------------------- */

/* In a capture the event stands for what is before it; or with EXTERNAL it is recorded by
 * a node, at each launch. */
static CUresult record_captured(struct stream *s, struct event *e,
                                unsigned flags)
{
    struct work w = {.kind = W_RECORD, .outside = e};

    if (s->capture->is_invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags == CU_EVENT_RECORD_EXTERNAL)
        return capture_put(s, &w);
    capture_record(s, e);
    return CUDA_SUCCESS;
}

/* DA cuEventRecord: event and stream are of one context, else INVALID_HANDLE.  EXTERNAL
 * outside of a capture is taken to be what it is for cuStreamWaitEvent. */
static CUresult record(const char *entry, CUevent handle, CUstream stream,
                       unsigned flags)
{
    struct work w = {.kind = W_RECORD};
    struct stream *s;
    struct event *e;
    CUresult rc = fake_enter_stream(entry, 0, stream, &s);

    if (rc)
        return rc;
    e = object_of(handle, EVENT, entry);
    if (e->ctx != s->ctx)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    rc = stream_check(s);
    if (rc)
        return fake_leave(rc);
    if (s->capture)
        return fake_leave(record_captured(s, e, flags));
    if (flags)
        return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
    w.record = event_record(e);
    return fake_leave(stream_put(s, &w));
}

CUresult cuEventRecord(CUevent handle, CUstream stream)
{
    return record("cuEventRecord", handle, stream, 0);
}

CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned flags)
{
    return flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL
               ? CUDA_ERROR_INVALID_VALUE
               : record("cuEventRecordWithFlags", handle, stream, flags);
}

/* PG, "Prohibited and Unhandled Operations": a captured event is CAPTURED_EVENT and
 * ends the capture; when that has ended the event is INVALID_VALUE (H100); another
 * one is an unsafe call. */
static CUresult may_look(struct event *e)
{
    if (!e->capture_id)
        return capture_allows();
    if (!e->capture)
        return CUDA_ERROR_INVALID_VALUE;
    capture_invalidate(e->capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}

/* DA cuEventQuery: never recorded is SUCCESS. */
CUresult cuEventQuery(CUevent handle)
{
    struct event *e;
    CUresult rc = enter("cuEventQuery", handle, &e);

    if (rc)
        return rc;
    rc = may_look(e);
    if (!rc && last_of(e) && !record_is_done(e->last))
        rc = CUDA_ERROR_NOT_READY;
    return fake_leave(rc);
}

CUresult cuEventSynchronize(CUevent handle)
{
    struct event *e;
    struct record *r;
    CUresult rc = enter("cuEventSynchronize", handle, &e);

    if (rc)
        return rc;
    rc = may_look(e);
    if (rc || !last_of(e))
        return fake_leave(rc);
    r = e->last;
    r->n_users++;
    while (!record_is_done(r) && !fake_error()) {
        if (r->shared)
            fake_nap();
        else
            fake_wait();
    }
    record_drop(r);
    return fake_leave(fake_error());
}

/* DA cuEventElapsedTime: INVALID_HANDLE without timing or a record, NOT_READY before
 * both are done.  One that was captured, and not as EXTERNAL, is INVALID_VALUE
 * (github.com/NVIDIA/warp, issue 983). */
CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    struct event *a, *b;
    CUresult rc = enter("cuEventElapsedTime", from, &a);

    if (rc)
        return rc;
    b = object_of(to, EVENT, "cuEventElapsedTime");
    if (a->flags & CU_EVENT_DISABLE_TIMING ||
        b->flags & CU_EVENT_DISABLE_TIMING || !a->last || !b->last)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    if (a->capture_id || b->capture_id)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (!record_is_done(a->last) || !record_is_done(b->last))
        return fake_leave(CUDA_ERROR_NOT_READY);
    *ms = (float)((b->last->at - a->last->at) * 1e3);
    return fake_leave(CUDA_SUCCESS);
}

/* DA cuStreamWaitEvent: for the last record at the time of the call; never recorded
 * is nothing to wait for; EXTERNAL outside of a capture is ILLEGAL_STATE. */
CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags)
{
    struct work w = {.kind = W_WAIT};
    struct stream *s;
    struct event *e;
    CUresult rc = fake_enter_stream("cuStreamWaitEvent", 0, stream, &s);

    if (rc)
        return rc;
    e = object_of(handle, EVENT, "cuStreamWaitEvent");
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    rc = stream_check(s);
    if (rc)
        return fake_leave(rc);
    if (s->capture || e->capture_id)
        return fake_leave(capture_wait(s, e, flags));
    if (flags)
        return fake_leave(CUDA_ERROR_ILLEGAL_STATE);
    w.record = event_last(e);
    return fake_leave(w.record ? stream_put(s, &w) : CUDA_SUCCESS);
}

/* ---- of other processes -------------------------------------------------- */

/* DA cuIpcGetEventHandle: INTERPROCESS events alone. */
CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
    struct shared_handle h = {.magic = 0};
    struct event *e;
    CUresult rc = enter("cuIpcGetEventHandle", handle, &e);

    if (rc)
        return rc;
    if (!out)
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    if (!e->shared || e->is_import)
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    h.id = e->id;
    rc = handle_open(&h, HANDLE_EVENT);
    if (!rc) {
        memset(out, 0, sizeof(*out));
        memcpy(out, &h, sizeof(h));
    }
    return fake_leave(rc);
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
    struct context *ctx;
    struct shared_handle h;
    struct event *e;
    int fd = -1;
    CUresult rc = fake_enter("cuIpcOpenEventHandle", NEED_CONTEXT, &ctx);

    if (rc)
        return rc;
    memcpy(&h, &handle, sizeof(h));
    rc = out ? handle_ask(&h, HANDLE_EVENT, &fd) : CUDA_ERROR_INVALID_VALUE;
    if (rc)
        return fake_leave(rc);
    e = event_new(ctx, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
    e->is_import = 1;
    e->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (e->shared == MAP_FAILED)
        return fake_leave(CUDA_ERROR_OUT_OF_MEMORY);
    *out = (CUevent)e;
    return fake_leave(CUDA_SUCCESS);
}
