/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_buffer.c - GPU memory that the library allocates for the caller.
 *
 * It comes from cuMemAlloc(), so it can be exported, which memory of pools cannot.  A
 * buffer takes whole allocation units of the driver: a handle exports a whole unit, so
 * nothing else may be in it.
 *
 * A registered buffer is held, and a held buffer cannot be freed.  A buffer that other
 * ranks merely have mapped is lent to them.  If the caller frees a lent buffer, its
 * memory is kept until all ranks have unmapped it.  Then it goes back to the driver,
 * which alone knows when no stream uses it any more.
 *
 * A forked child has no driver: it forgets its copies.
 * Source: CUDA Driver API, cuIpcGetMemHandle.
 */
#include "lib/device/cuda.h"
#include "lib/device/cuda_driver.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>

#define UNIT ((size_t)2 << 20) /* in which the driver maps memory */

struct buffer {
    struct buffer *next;
    unsigned char *at;
    size_t len;
    struct coll__cuda_home home;
    int is_retained; /* home.ctx is a primary context, retained for this buffer */
    int n_holds, n_loans;
    int is_freed;        /* by the caller, while it is lent */
    unsigned generation; /* of the process that allocated it */
};

static struct coll__lock lock = COLL__LOCK(NULL);
static struct buffer *buffers; /* the list and the fields that change: under the lock */

/* ---- where ------------------------------------------------------------------ */

static int no_such_device(int number)
{
    log_error(
        "mem",
        "coll_mem_alloc_device: there is no GPU %d, this process sees %d, "
        "from 0 on; see nvidia-smi and CUDA_VISIBLE_DEVICES",
        number, coll__cuda_count());
    return COLL_ERR_INVALID;
}

/* Retain the device's primary context; unsettle() releases it. */
static int retain(const struct coll__cuda *cuda, int number,
                  struct buffer *buffer)
{
    CUcontext ctx;
    int status = coll__cuda_status(cuda->cuDevicePrimaryCtxRetain(&ctx, number),
                                   "cuDevicePrimaryCtxRetain");

    if (status)
        return status;
    status = coll__cuda_home_of(ctx, &buffer->home);
    if (status)
        cuda->cuDevicePrimaryCtxRelease(number);
    else
        buffer->is_retained = 1;
    return status;
}

static int settle(const struct coll__cuda *cuda, int number,
                  struct buffer *buffer)
{
    CUcontext ctx = NULL;
    int status = COLL_OK;

    if (number < -1 || number >= coll__cuda_count())
        return no_such_device(number);
    if (number < 0 || (!cuda->cuCtxGetCurrent(&ctx) && ctx))
        status = coll__cuda_home_of(NULL, &buffer->home);
    if (status || number < 0 || (ctx && buffer->home.device == number))
        return status;
    return retain(cuda, number, buffer);
}

static void unsettle(const struct coll__cuda *cuda, const struct buffer *buffer)
{
    if (buffer->is_retained)
        cuda->cuDevicePrimaryCtxRelease(buffer->home.device);
}

/* ---- allocating --------------------------------------------------------------- */

/* Count the bytes on a device that the caller has freed and other ranks still map. */
static size_t missed_on(int device)
{
    size_t len = 0;

    coll__lock(&lock);
    for (const struct buffer *b = buffers; b; b = b->next)
        if (b->is_freed && b->home.device == device)
            len += b->len;
    coll__unlock(&lock);
    return len;
}

static int cannot(size_t len, int device, CUresult rc)
{
    char why[256], missed[192] = "";
    int status = coll__cuda_verdict(rc, "cuMemAlloc", why, sizeof(why));
    size_t missed_len = missed_on(device);

    if (missed_len)
        snprintf(missed, sizeof(missed),
                 "; %zu bytes were freed while other ranks had them mapped, "
                 "and come back when all register or deregister (or at once: "
                 "the limit cuda_maps is 0 in the tuning file)",
                 missed_len);
    log_error("mem",
              "cannot allocate %zu bytes on GPU %d: %s%s; see nvidia-smi for "
              "who has its memory",
              len, device, why, missed);
    return status;
}

/* Allocate, outside of captures that are under way. */
static int take(const struct coll__cuda *cuda, size_t len,
                void (*reclaim)(void), struct buffer *buffer)
{
    CUdeviceptr at = 0;
    CUresult rc;
    int was, status;

    if (len > PTRDIFF_MAX - UNIT)
        return cannot(len, buffer->home.device, CUDA_ERROR_OUT_OF_MEMORY);
    buffer->len = round_up(max_size(len, 1), UNIT);
    status = coll__cuda_go_in(&buffer->home, &was);
    if (status)
        return status;
    rc = cuda->cuMemAlloc(&at, buffer->len);
    if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
        reclaim();
        rc = cuda->cuMemAlloc(&at, buffer->len);
    }
    coll__cuda_go_out(was);
    buffer->at = (unsigned char *)at;
    return rc ? cannot(len, buffer->home.device, rc) : COLL_OK;
}

static void enlist(struct buffer *buffer)
{
    buffer->generation = coll__generation_now();
    coll__lock(&lock);
    buffer->next = buffers;
    buffers = buffer;
    coll__unlock(&lock);
}

static int make(const struct coll__cuda *cuda, size_t len, int number,
                void (*reclaim)(void), struct buffer *buffer)
{
    int status = settle(cuda, number, buffer);

    if (status)
        return status;
    status = take(cuda, len, reclaim, buffer);
    if (status)
        unsettle(cuda, buffer);
    return status;
}

static int buffer_alloc(void **ptr, size_t len, int number,
                        void (*reclaim)(void))
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    struct buffer *buffer;
    int status;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    buffer = calloc(1, sizeof(*buffer));
    if (!buffer) {
        log_error("mem", "no memory for a buffer's description");
        return COLL_ERR_NOMEM;
    }
    status = make(cuda, len, number, reclaim, buffer);
    if (status) {
        free(buffer);
        return status;
    }
    *ptr = buffer->at;
    enlist(buffer);
    return COLL_OK;
}

/* ---- finding -------------------------------------------------------------------- */

/* With the lock, as below. */
static struct buffer **find(const void *ptr)
{
    const unsigned char *at = ptr;
    struct buffer **b = &buffers;

    while (*b && (at < (*b)->at || at >= (*b)->at + (*b)->len))
        b = &(*b)->next;
    return b;
}

static int begins(const void *ptr)
{
    const struct buffer *b = *find(ptr);

    return b && b->at == ptr && !b->is_freed;
}

static int buffer_has(const void *ptr)
{
    int has;

    coll__lock(&lock);
    has = begins(ptr);
    coll__unlock(&lock);
    return has;
}

int coll__cuda_buffer_hold(const void *ptr)
{
    struct buffer *b;

    coll__lock(&lock);
    b = *find(ptr);
    if (b && b->is_freed)
        b = NULL;
    if (b)
        b->n_holds++;
    coll__unlock(&lock);
    return b != NULL;
}

/* A child may already have freed its copy of its parent's buffer. */
void coll__cuda_buffer_release(const void *ptr)
{
    struct buffer *b;

    coll__lock(&lock);
    b = *find(ptr);
    if (b)
        b->n_holds--;
    coll__unlock(&lock);
}

/* ---- freeing -------------------------------------------------------------------- */

static int refuse(const void *ptr, int n_holds)
{
    if (n_holds)
        log_error("mem",
                  "coll_mem_free: %p is registered, and other ranks may read "
                  "there; call coll_mem_deregister() or coll_comm_destroy() "
                  "before, on all ranks",
                  ptr);
    else
        log_error("mem",
                  "coll_mem_free: %p is not the start of an allocation; "
                  "pass what coll_mem_alloc_device() gave, once",
                  ptr);
    return COLL_ERR_INVALID;
}

/* Called without the lock: the driver may wait for streams. */
static int give_back(const struct buffer *buffer)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    int status, was;

    if (!cuda)
        return COLL_ERR_UNSUPPORTED;
    status = coll__cuda_go_in(&buffer->home, &was);
    if (status)
        return status;
    status = coll__cuda_status(cuda->cuMemFree((CUdeviceptr)buffer->at),
                               "cuMemFree");
    coll__cuda_go_out(was);
    unsettle(cuda, buffer);
    return status;
}

/* Remove a buffer from the list if it is freed and not lent; with the lock. */
static struct buffer *take_out(struct buffer **at)
{
    struct buffer *buffer = *at;

    if (!buffer->is_freed || buffer->n_loans)
        return NULL;
    *at = buffer->next;
    return buffer;
}

static int end(struct buffer *buffer)
{
    int status = COLL_OK;

    if (buffer && !coll__is_inherited(buffer->generation))
        status = give_back(buffer);
    free(buffer);
    return status;
}

static int buffer_free(void *ptr)
{
    struct buffer **at, *last = NULL;
    int is_there, n_holds = 0;

    coll__lock(&lock);
    at = find(ptr);
    is_there = begins(ptr);
    if (is_there && coll__is_inherited((*at)->generation))
        (*at)->n_holds = (*at)->n_loans = 0;
    if (is_there)
        n_holds = (*at)->n_holds;
    if (is_there && !n_holds) {
        (*at)->is_freed = 1;
        last = take_out(at);
    }
    coll__unlock(&lock);
    return !is_there || n_holds ? refuse(ptr, n_holds) : end(last);
}

/* ---- lending --------------------------------------------------------------------- */

void coll__cuda_buffer_lend(const void *ptr)
{
    coll__lock(&lock);
    (*find(ptr))->n_loans++;
    coll__unlock(&lock);
}

void coll__cuda_buffer_take_back(const void *ptr)
{
    struct buffer **at, *last;

    coll__lock(&lock);
    at = find(ptr);
    (*at)->n_loans--;
    last = take_out(at);
    coll__unlock(&lock);
    end(last);
}

int coll__cuda_buffer_is_missed(const void *ptr)
{
    int is_missed;

    coll__lock(&lock);
    is_missed = (*find(ptr))->is_freed;
    coll__unlock(&lock);
    return is_missed;
}

const struct coll__buffers coll__cuda_buffers = {
    .alloc = buffer_alloc, .has = buffer_has, .free = buffer_free};
