/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.c - enqueue messages between streams: wait for the slot, copy or reduce, set the
 * slot's state.  No function here waits; each only puts work into a stream. */
#include "transports/stream.h"
#include "lib/trace/log.h"

/* A wait for a state ends when the flag is released, too. */
#define FULL (COLL__SLOT_FULL | COLL__SLOT_RELEASED)
#define EMPTY (COLL__SLOT_EMPTY | COLL__SLOT_RELEASED)

static struct coll__slot slot_of(const struct coll__stream_tp *tp,
                                 const struct coll__message *of, int is_send)
{
    struct coll__slot slot;

    tp->ops->slot(tp, of->peer, is_send, of->n & ~COLL__DIRECT, &slot);
    return slot;
}

/* Enqueue work of the device, or of the host. */
static int enqueue(struct coll__stream_tp *tp, struct coll__work *work)
{
    work->kernels = tp->kernels;
    return coll__stream_is_hosts(tp, work) ? tp->ops->work(tp, work)
                                           : tp->streams->enqueue(work);
}

int coll__stream_state(const struct coll__stream_tp *tp)
{
    int status = tp->ops->state(tp);

    if (status)
        coll__log_set_error("");
    return status;
}

int coll__stream_send(struct coll__stream_tp *tp,
                      const struct coll__message *to,
                      const struct coll__work *work)
{
    struct coll__slot slot = slot_of(tp, to, 1);
    struct coll__work copy = *work;
    int status = coll__stream_state(tp);

    copy.kind = WORK_COPY;
    copy.dst = slot.at;
    copy.is_dst_host = slot.is_host != 0;
    if (status == COLL_OK)
        status = tp->streams->wait_bits(copy.stream, slot.flag, EMPTY);
    if (status == COLL_OK && !(to->n & COLL__DIRECT))
        status = enqueue(tp, &copy);
    if (status == COLL_OK)
        status =
            tp->streams->write_flag(copy.stream, slot.flag, COLL__SLOT_FULL);
    return status;
}

int coll__stream_recv(struct coll__stream_tp *tp,
                      const struct coll__message *from,
                      const struct coll__work *work)
{
    struct coll__slot slot = slot_of(tp, from, 0);
    struct coll__work take = *work;
    int status = coll__stream_state(tp);

    if (!(from->n & COLL__DIRECT)) {
        take.src = slot.at;
        take.is_src_host = slot.is_host != 0;
    }
    if (status == COLL_OK)
        status = tp->streams->wait_bits(take.stream, slot.flag, FULL);
    if (status == COLL_OK)
        status = enqueue(tp, &take);
    if (status == COLL_OK)
        status =
            tp->streams->write_flag(take.stream, slot.flag, COLL__SLOT_EMPTY);
    return status;
}

/* Both flags are written after the kernel, in either order. */
int coll__stream_relay(struct coll__stream_tp *tp,
                       const struct coll__message *from,
                       const struct coll__message *to,
                       const struct coll__work *work)
{
    static const uint64_t before[2] = {FULL, EMPTY};
    static const uint32_t after[2] = {COLL__SLOT_EMPTY, COLL__SLOT_FULL};
    struct coll__slot in = slot_of(tp, from, 0);
    struct coll__slot out = slot_of(tp, to, 1);
    void *const flags[2] = {in.flag, out.flag};
    struct coll__work take = *work;
    int status = coll__stream_state(tp);

    if (!(from->n & COLL__DIRECT)) {
        take.src = in.at;
        take.is_src_host = in.is_host != 0;
    }
    take.dst = work->dst ? work->dst : out.at;
    take.is_dst_host = work->dst ? work->is_dst_host : out.is_host != 0;
    take.next = work->dst ? out.at : NULL;
    if (status == COLL_OK)
        status = tp->streams->wait_two(take.stream, flags, before);
    if (status == COLL_OK)
        status = enqueue(tp, &take);
    if (status == COLL_OK)
        status = tp->streams->write_two(take.stream, flags, after);
    return status;
}

int coll__stream_work(struct coll__stream_tp *tp, const struct coll__work *work)
{
    struct coll__work own = *work;
    int status = coll__stream_state(tp);

    return status ? status : enqueue(tp, &own);
}

int coll__stream_settle(struct coll__stream_tp *tp,
                        const struct coll__message *to, void *stream)
{
    struct coll__slot slot = slot_of(tp, to, 1);
    int status = coll__stream_state(tp);

    return status ? status : tp->streams->wait_bits(stream, slot.flag, EMPTY);
}
