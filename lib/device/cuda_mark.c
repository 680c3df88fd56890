/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_mark.c - marks in streams: events.  A captured stream gets none, since a capture
 * forbids queries. */
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_plan_host.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"

#include <stdlib.h>

struct mark {
    CUevent event;
    void *ctx;
    int is_recorded;
};

static void drop(void *mark)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    struct mark *m = mark;

    if (m && cuda)
        cuda->cuEventDestroy(m->event);
    free(m);
}

/* With its context current. */
static int new_mark(const struct coll__cuda *cuda, void *ctx, void **out)
{
    struct mark *m = calloc(1, sizeof(*m));
    int status;

    if (!m) {
        log_error("cuda", "no memory for a mark");
        return COLL_ERR_NOMEM;
    }
    m->ctx = ctx;
    status = coll__cuda_status(
        cuda->cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING),
        "cuEventCreate");
    if (status)
        free(m);
    else
        *out = m;
    return status;
}

/* An event belongs to a context, so a stream of another context needs a new one. */
static int record(const struct coll__cuda *cuda, void *stream, void *ctx,
                  void **mark)
{
    struct mark *m = *mark;
    int status = COLL_OK;

    if (m && m->ctx != ctx) {
        drop(m);
        *mark = NULL;
    }
    if (!*mark)
        status = new_mark(cuda, ctx, mark);
    if (status)
        return status;
    m = *mark;
    status = coll__cuda_status(cuda->cuEventRecord(m->event, stream),
                               "cuEventRecord");
    m->is_recorded = !status;
    return status;
}

/* If it is unknown, the stream counts as captured. */
static int is_captured(void *stream)
{
    struct coll__cuda_place place = {.is_captured = 1};

    if (!coll__cuda_enter(stream, &place))
        coll__cuda_leave();
    return place.is_captured;
}

static int set_mark(void *stream, void **mark)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct coll__cuda_place place;
    struct mark *m = *mark;
    int status = cuda ? coll__cuda_enter(stream, &place) : COLL_ERR_UNSUPPORTED;

    if (m)
        m->is_recorded = 0;
    if (status)
        return status;
    if (!place.is_captured)
        status = record(cuda, stream, place.ctx, mark);
    coll__cuda_leave();
    return status;
}

/* The relaxed mode keeps the query from spoiling another stream's capture. */
static int has_reached(void *mark)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    const struct mark *m = mark;
    CUresult rc;

    if (!m || !m->is_recorded)
        return COLL_OK;
    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    rc = cuda->cuEventQuery(m->event);
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    return coll__cuda_status(rc, "a step on the device");
}

const struct coll__stream_ops coll__cuda_streams = {
    .prepare = coll__cuda_prepare,
    .enqueue = coll__cuda_enqueue,
    .write_flag = coll__cuda_write_flag,
    .wait_bits = coll__cuda_wait_bits,
    .write_two = coll__cuda_write_two,
    .wait_two = coll__cuda_wait_two,
    .mark = set_mark,
    .reached = has_reached,
    .unmark = drop,
    .is_captured = is_captured,
    .load = coll__cuda_load_plan,
    .launch = coll__cuda_launch_plan,
    .unload = coll__cuda_unload,
    .taken = coll__cuda_taken,
};
