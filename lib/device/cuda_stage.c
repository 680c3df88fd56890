/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stage.c - stages: pinned once, and reused. */
#include "lib/device/cuda_stage.h"
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <stdlib.h>

enum { WORD_BYTES = 128 }; /* a word has lines of its own */

_Static_assert(N_STAGE_WORDS *WORD_BYTES <= COLL__STAGE_WORDS, "they fit");

struct coll__stage_cuda {
    CUcontext ctx;
    CUevent event;       /* of ctx; never waited for, only queried for errors */
    unsigned char *seen; /* the base's address for streams; words follow len bytes */
};

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);
static struct coll__stage *left; /* under the lock: those that were put back */

/* The parent's stages in a child, so that leak checkers find them. */
static struct coll__stage *volatile inherited;

static void forget_parents(void)
{
    inherited = left;
    left = NULL;
}

/* ---- its words ------------------------------------------------------------------ */

_Atomic uint32_t *coll__stage_word(const struct coll__stage *stage,
                                   enum coll__stage_word word)
{
    return (_Atomic uint32_t *)(stage->base + stage->len +
                                (size_t)word * WORD_BYTES);
}

void *coll__stage_seen(const struct coll__stage *stage, const void *at)
{
    return stage->own->seen + ((const unsigned char *)at - stage->base);
}

void *coll__stage_flag(const struct coll__stage *stage,
                       enum coll__stage_word word)
{
    return coll__stage_seen(stage, stage->base + stage->len +
                                       (size_t)word * WORD_BYTES);
}

/* ---- making ---------------------------------------------------------------------- */

/* Keep the next calls from spoiling a capture that another stream has under way.  Returns
 * the mode for restore(). */
static CUstreamCaptureMode relax(const struct coll__cuda *cuda)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

static void restore(const struct coll__cuda *cuda, CUstreamCaptureMode mode)
{
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
}

/* Pin it, and have an event to ask. */
static int pin(const struct coll__cuda *cuda, struct coll__stage *stage)
{
    CUstreamCaptureMode mode = relax(cuda);
    void *seen = NULL;
    CUresult rc;
    int status =
        coll__cuda_register(stage->base, stage->len + COLL__STAGE_WORDS, &seen);

    stage->own->seen = seen;
    if (!status) {
        rc = cuda->cuEventCreate(&stage->own->event, CU_EVENT_DISABLE_TIMING);
        status = coll__cuda_status(rc, "cuEventCreate");
        if (status)
            coll__cuda_unregister(stage->base);
    }
    restore(cuda, mode);
    return status;
}

static int make(void *ctx, size_t len, struct coll__stage **out)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct coll__stage *stage = calloc(1, sizeof(*stage));
    struct coll__stage_cuda *own = calloc(1, sizeof(*own));
    int status = COLL_ERR_NOMEM;

    if (!cuda || !stage || !own)
        goto fail;
    stage->own = own;
    own->ctx = ctx;
    stage->len = len;
    stage->base = coll__device_host.alloc(len + COLL__STAGE_WORDS);
    if (!stage->base)
        goto fail;
    status = pin(cuda, stage);
    if (status)
        goto fail_base;
    *out = stage;
    return COLL_OK;

fail_base:
    coll__device_host.free(stage->base, len + COLL__STAGE_WORDS);
fail:
    log_error(
        "cuda",
        "no pinned memory of %zu bytes for a communicator's "
        "streams; see ulimit -l, or set cuda_slot to less in a tuning file",
        len);
    free(own);
    free(stage);
    return status;
}

/* ---- taking and putting back ----------------------------------------------------- */

/* May this stage be reused?  A reset of the context has unpinned it. */
static int serves(const struct coll__stage *stage, const void *ctx, size_t len)
{
    return stage->len == len && stage->own->ctx == (CUcontext)ctx &&
           coll__stage_is_at(stage, STAGE_FINISHED, stage->last) &&
           coll__cuda_whose(stage->base, NULL) == WHOSE_HOSTS;
}

int coll__stage_take(void *ctx, size_t len, struct coll__stage **out)
{
    struct coll__stage **at = &left, *stage;

    coll__lock(&lock);
    while (*at && !serves(*at, ctx, len))
        at = &(*at)->next;
    stage = *at;
    if (stage)
        *at = stage->next;
    coll__unlock(&lock);
    if (!stage)
        return make(ctx, len, out);
    *out = stage;
    return COLL_OK;
}

void coll__stage_put(struct coll__stage *stage)
{
    coll__lock(&lock);
    stage->next = left;
    left = stage;
    coll__unlock(&lock);
}

/* ---- whose turn it is -------------------------------------------------------------- */

int coll__stage_follow(const struct coll__stage *stage, uint32_t before,
                       void *stream)
{
    if (coll__stage_is_at(stage, STAGE_FINISHED, before))
        return COLL_OK;
    return coll__cuda_wait_flag(stream, coll__stage_flag(stage, STAGE_FINISHED),
                                before);
}

int coll__stage_finish(const struct coll__stage *stage, uint32_t number,
                       void *stream)
{
    return coll__cuda_write_flag(
        stream, coll__stage_flag(stage, STAGE_FINISHED), number);
}

/* ---- whether it works -------------------------------------------------------------- */

/* Query the event.  After a sticky error every call in the context returns that error,
 * and a query of this event returns no other one. */
int coll__stage_probe(const struct coll__stage *stage)
{
    const struct coll__cuda *cuda = coll__cuda_driver(NULL, 0);
    CUstreamCaptureMode mode;
    CUcontext ctx;
    CUresult rc;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    mode = relax(cuda);
    rc = cuda->cuCtxPushCurrent(stage->own->ctx);
    if (!rc) {
        rc = cuda->cuEventQuery(stage->own->event);
        cuda->cuCtxPopCurrent(&ctx);
    }
    restore(cuda, mode);
    return coll__cuda_status(rc, "the GPU failed");
}
