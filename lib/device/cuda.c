/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda.c - device memory of CUDA as a device with queues.
 *
 * A step is put into its stream, an event behind it; poll() asks the events of a
 * stream, the oldest first.  So a stream has a list of what is under way there; its
 * entries and their events are used again, and after some steps nothing is made any
 * more.  In a capture nothing can be asked: there coll__cuda_enqueue() is the way.
 *
 * A process that has no device memory must not start CUDA for being asked whose a
 * pointer is: owns() asks a driver that is loaded, and does not start it.
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <stdlib.h>

struct entry {
    struct entry *next;
    struct coll__work *work;
    CUevent event;
};

/* A stream that has, or has had, work; NULL streams by their context. */
struct queue {
    struct queue *next;
    CUstream stream;
    CUcontext ctx;
    struct entry *first, *last;
    struct entry *unused;
};

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);
static struct queue *queues; /* under the lock */

/* A child can do nothing with CUDA's objects, not even end them. */
static void forget_parents(void)
{
    queues = NULL;
}

/* ---- under way ---------------------------------------------------------------- */

/* With the lock held, as all below. */
static int queue_of(const struct coll__cuda *cuda, CUstream stream,
                    struct queue **out)
{
    CUcontext ctx = NULL;
    CUresult rc = cuda->cuStreamGetCtx(stream, &ctx);
    struct queue *q = queues;

    if (rc)
        return coll__cuda_status(rc, "cuStreamGetCtx");
    while (q && (q->stream != stream || q->ctx != ctx))
        q = q->next;
    if (!q) {
        q = calloc(1, sizeof(*q));
        if (!q) {
            log_error("cuda", "no memory for a stream");
            return COLL_ERR_NOMEM;
        }
        q->stream = stream;
        q->ctx = ctx;
        q->next = queues;
        queues = q;
    }
    *out = q;
    return COLL_OK;
}

static int entry_new(const struct coll__cuda *cuda, struct queue *q,
                     struct entry **out)
{
    struct entry *e = q->unused;
    CUresult rc;

    if (e) {
        q->unused = e->next;
        e->next = NULL;
        *out = e;
        return COLL_OK;
    }
    e = calloc(1, sizeof(*e));
    if (!e) {
        log_error("cuda", "no memory for a step");
        return COLL_ERR_NOMEM;
    }
    rc = cuda->cuCtxPushCurrent(q->ctx);
    if (!rc) {
        CUcontext popped;

        rc = cuda->cuEventCreate(&e->event, CU_EVENT_DISABLE_TIMING);
        cuda->cuCtxPopCurrent(&popped);
    }
    if (rc) {
        free(e);
        return coll__cuda_status(rc, "cuEventCreate");
    }
    *out = e;
    return COLL_OK;
}

static void put_back(struct queue *q, struct entry *e)
{
    e->next = q->unused;
    q->unused = e;
}

/* An event for a step of that stream. */
static int reserve(const struct coll__cuda *cuda, CUstream stream,
                   struct queue **q, struct entry **e)
{
    int status = queue_of(cuda, stream, q);

    return status ? status : entry_new(cuda, *q, e);
}

/* Put the event behind the step, which is in the stream if status says so. */
static int follow(const struct coll__cuda *cuda, struct queue *q,
                  struct entry *e, struct coll__work *work, int status)
{
    if (!status)
        status = coll__cuda_status(cuda->cuEventRecord(e->event, work->stream),
                                   "cuEventRecord");
    if (status) {
        put_back(q, e);
        return status;
    }
    e->work = work;
    *(q->last ? &q->last->next : &q->first) = e;
    q->last = e;
    return COLL_OK;
}

/* The step, and its event; both or, as far as anyone is told, none.  Without the
 * lock between them: it is no other one's to wait for kernels to be loaded. */
static int begin(const struct coll__cuda *cuda, struct coll__work *work)
{
    struct queue *q = NULL;
    struct entry *e = NULL;
    int status;

    coll__lock(&lock);
    status = reserve(cuda, work->stream, &q, &e);
    coll__unlock(&lock);
    if (status)
        return status;
    status = coll__cuda_enqueue(work);
    coll__lock(&lock);
    status = follow(cuda, q, e, work, status);
    coll__unlock(&lock);
    return status;
}

static void cuda_start(struct coll__work *work)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    int status = cuda ? begin(cuda, work) : COLL_ERR_UNSUPPORTED;

    if (status)
        work->status = status;
}

static int poll_queue(const struct coll__cuda *cuda, struct queue *q)
{
    while (q->first) {
        struct entry *e = q->first;
        CUresult rc = cuda->cuEventQuery(e->event);

        if (rc == CUDA_ERROR_NOT_READY)
            return COLL_OK;
        if (rc)
            return coll__cuda_status(rc, "a step on the device");
        e->work->status = COLL_OK;
        q->first = e->next;
        if (!q->first)
            q->last = NULL;
        put_back(q, e);
    }
    return COLL_OK;
}

static int cuda_poll(void *stream)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    struct queue *q = NULL;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    coll__lock(&lock);
    status = queue_of(cuda, stream, &q);
    if (!status)
        status = poll_queue(cuda, q);
    coll__unlock(&lock);
    return status;
}

/* ---- whose memory ---------------------------------------------------------------- */

static int cuda_usable(char *why, size_t len)
{
    return coll__cuda_driver(why, len) ? COLL_OK : COLL_ERR_UNSUPPORTED;
}

/* A driver that has not been started says so: then nothing is its own. */
static int cuda_owns(const void *ptr)
{
    int device;

    return coll__cuda_whose(ptr, &device) == WHOSE_DEVICES;
}

/* ---- scratch ------------------------------------------------------------------- */

/* In the current context; the first device's where there is none. */
static CUresult alloc_somewhere(const struct coll__cuda *cuda, size_t len,
                                CUdeviceptr *at)
{
    CUcontext ctx = NULL;
    CUresult rc = cuda->cuCtxGetCurrent(&ctx);

    if (rc || ctx)
        return rc ? rc : cuda->cuMemAlloc(at, len);
    rc = cuda->cuDevicePrimaryCtxRetain(&ctx, 0);
    if (rc)
        return rc;
    rc = cuda->cuCtxPushCurrent(ctx);
    if (!rc) {
        rc = cuda->cuMemAlloc(at, len);
        cuda->cuCtxPopCurrent(&ctx);
    }
    if (rc)
        cuda->cuDevicePrimaryCtxRelease(0); /* else it is for good */
    return rc;
}

/* It is no part of what a stream captures. */
static void *cuda_alloc(size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr at = 0;
    int status;

    if (!cuda)
        return NULL;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    status = coll__cuda_status(alloc_somewhere(cuda, len ? len : 1, &at),
                               "cuMemAlloc");
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    return status ? NULL : (void *)at;
}

/* The driver waits for what the context's streams still do. */
static void cuda_free(void *ptr, size_t len)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);

    (void)len;
    if (cuda && ptr)
        coll__cuda_status(cuda->cuMemFree((CUdeviceptr)ptr), "cuMemFree");
}

static void cuda_copy(void *dst, const void *src, size_t len, void *stream)
{
    struct coll__work work = {.kind = WORK_COPY,
                              .dst = dst,
                              .src = src,
                              .len = len,
                              .stream = stream};

    coll__cuda_enqueue(&work); /* a failure is logged, and the stream's */
}

/* There is no function of the host for this memory: steps go through start(). */
static coll__reduce_fn *no_reduce(enum coll_type type, enum coll_op op)
{
    (void)type, (void)op;
    return NULL;
}

static coll__scale_fn *no_scale(enum coll_type type)
{
    (void)type;
    return NULL;
}

static coll__premul_fn *no_premul(enum coll_type type)
{
    (void)type;
    return NULL;
}

const struct coll__device coll__device_cuda = {
    .name = "cuda",
    .what = "memory of NVIDIA GPUs, worked on by their streams",
    .usable = cuda_usable,
    .owns = cuda_owns,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .copy_past = cuda_copy,
    .reduce = no_reduce,
    .scale = no_scale,
    .premul = no_premul,
    .start = cuda_start,
    .poll = cuda_poll,
    .buffers = &coll__cuda_buffers,
    .streams = &coll__cuda_streams,
};
