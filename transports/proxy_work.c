/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_work.c - steps that the host does for a stream: the caller's own reductions, and
 * all that is no copy where the device has no kernels.
 *
 * They go through a lane of this rank to itself, whose slot has two halves:
 *
 *     stream                                   host
 *     wait empty
 *     copy the operands into the halves
 *     state = full                        -->  first half = op(first half, second half)
 *     wait worked                         <--  state = worked
 *     copy the first half out
 *     state = empty
 */
#include "lib/device/cuda.h"
#include "lib/util/util.h"
#include "transports/proxy.h"

#define WORKED (COLL__SLOT_WORKED | COLL__SLOT_RELEASED)
#define EMPTY (COLL__SLOT_EMPTY | COLL__SLOT_RELEASED)

struct coll__message proxy__own(const struct proxy *p)
{
    return (struct coll__message){.peer = p->base.rank};
}

/* ---- the stream's part ------------------------------------------------------------- */

static const void *after(const void *at, size_t n)
{
    return at ? (const unsigned char *)at + n : NULL;
}

/* Copy.  Without kernels, what goes from pinned memory to pinned memory takes the way
 * round by the device's. */
static int put_copy(const struct proxy *p, const struct coll__work *copy)
{
    struct coll__work first = *copy, second = *copy;
    int status;

    if (!coll__stream_is_hosts(&p->base, copy))
        return p->base.streams->enqueue(copy);
    first.dst = p->base.bounce;
    first.is_dst_host = 0;
    second.src = p->base.bounce;
    second.is_src_host = 0;
    status = p->base.streams->enqueue(&first);
    return status ? status : p->base.streams->enqueue(&second);
}

/* Copy an operand into a half. */
static int put_in(const struct proxy *p, void *half,
                  const struct coll__work *of, const void *operand,
                  unsigned is_host)
{
    struct coll__work copy = {.kind = WORK_COPY,
                              .dst = half,
                              .src = operand,
                              .len = of->len,
                              .stream = of->stream,
                              .is_dst_host = 1,
                              .is_src_host = is_host & 1};

    return put_copy(p, &copy);
}

/* What is combined with src lies at `with`, or at dst. */
static int put_operands(const struct proxy *p, const struct coll__work *work,
                        unsigned char *half, unsigned char *other)
{
    int status = COLL_OK;

    if (work->kind != WORK_MULTIPLY)
        status = work->with
                     ? put_in(p, half, work, work->with, work->is_with_host)
                     : put_in(p, half, work, work->dst, work->is_dst_host);
    if (status == COLL_OK && work->kind != WORK_SCALE)
        status = put_in(p, other, work, work->src, work->is_src_host);
    return status;
}

static int take_result(const struct proxy *p, const struct coll__work *work,
                       const void *half)
{
    struct coll__work copy = {.kind = WORK_COPY,
                              .dst = work->dst,
                              .src = half,
                              .len = work->len,
                              .stream = work->stream,
                              .is_dst_host = work->is_dst_host,
                              .is_src_host = 1};

    return put_copy(p, &copy);
}

static int put_piece(struct proxy *p, const struct coll__work *work)
{
    const struct coll__stream_ops *streams = p->base.streams;
    struct coll__message own = proxy__own(p);
    struct coll__slot slot;
    int status;

    proxy__slot(p, &own, 1, &slot);
    status = streams->wait_bits(work->stream, slot.flag, EMPTY);
    if (status == COLL_OK)
        status = put_operands(p, work, slot.at, slot.at + p->base.slot);
    if (status == COLL_OK)
        status = streams->write_flag(work->stream, slot.flag, COLL__SLOT_FULL);
    if (status == COLL_OK)
        status = streams->wait_bits(work->stream, slot.flag, WORKED);
    if (status == COLL_OK)
        status = take_result(p, work, slot.at);
    if (status == COLL_OK)
        status = streams->write_flag(work->stream, slot.flag, COLL__SLOT_EMPTY);
    return status;
}

int proxy__work(struct coll__stream_tp *tp, const struct coll__work *work)
{
    struct proxy *p = (struct proxy *)tp;
    int status = COLL_OK;

    for (size_t at = 0; at < work->len && status == COLL_OK; at += tp->slot) {
        struct coll__work piece = *work;

        piece.dst = (unsigned char *)work->dst + at;
        piece.src = after(work->src, at);
        piece.with = after(work->with, at);
        piece.len = min_size(tp->slot, work->len - at);
        status = work->kind == WORK_COPY ? put_copy(p, &piece)
                                         : put_piece(p, &piece);
    }
    return status;
}

/* ---- the host's part ------------------------------------------------------------- */

void proxy__do_work(const struct coll__work *work, unsigned char *half,
                    unsigned char *other, size_t len)
{
    size_t n = len / coll_type_size(work->type);

    if (work->kind == WORK_SCALE)
        coll__device_host.scale(work->type)(half, len, work->nranks);
    else if (work->kind == WORK_MULTIPLY)
        coll__device_host.multiply(work->type)(half, other, len, work->scalar);
    else if (!work->fn)
        coll__device_host.reduce(work->type, work->op)(half, half, other, len);
    else
        work->fn(work->is_src_left ? other : half,
                 work->is_src_left ? half : other, half, n, work->type,
                 work->arg);
}
