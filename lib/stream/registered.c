/* SPDX-License-Identifier: BSD-3-Clause */
/* registered.c - which of a call's buffers the other ranks read in place.
 *
 * A rank knows only its own call.  If it passes registered memory, it assumes that all
 * ranks do, at the same place.  COLL_CHECK compares a digest of the places; without it
 * nothing checks this.
 */
#include "lib/comm/comm.h"
#include "lib/device/cuda.h"
#include "lib/order/order.h"
#include "lib/stream/programs.h"
#include "lib/stream/calls.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>

static int is_stale(const struct coll__stream_call *call, int buf,
                    const struct coll__registration *reg)
{
    if (call->ids[buf] == reg->id)
        return 0;
    log_error("api",
              "%s: memory that was registered there has been freed since; "
              "call coll_mem_deregister() before that",
              coll_collective_name(call->pb.collective));
    return 1;
}

/* With a direct read, a kernel waits until the other ranks have read its buffer.  An H100
 * took 2.1 us for a round trip of words, and 3.5 us for a kernel that copies 1 MiB
 * (tests/gpu/reports).  So operations up to the default limit for one kernel go through
 * slots.  The size from which a direct read is faster has not been measured. */
#define LEAST_SHOWN ((size_t)256 << 10)

static int is_long_enough(const struct coll__stream_tp *tp,
                          const struct coll__problem *pb)
{
    return !coll__is_one_kernel(tp, pb) ||
           coll__problem_total(pb) > LEAST_SHOWN;
}

int coll__find_registered(const struct coll_comm *comm,
                          const struct coll__stream_call *call,
                          struct coll__registered found[N_BUFS],
                          unsigned *direct)
{
    const struct coll__stream_tp *tp = comm->links.routes.streams;
    const void *at[N_BUFS] = {call->args.in, call->args.out, NULL};
    unsigned bufs = 0;

    *direct = 0;
    if (tp->regs && comm->size > 1 && !comm->settings.plans &&
        is_long_enough(tp, &call->pb))
        bufs = coll__problem_readable(&call->pb);
    for (int b = BUF_IN; b <= BUF_OUT; b++) {
        size_t len = coll__problem_len(&call->pb, (enum coll__buf)b);
        const struct coll__registration *reg =
            bufs & 1u << b && len ? coll__registration_of(tp, at[b], len)
                                  : NULL;

        found[b] = (struct coll__registered){.reg = reg};
        if (!reg)
            continue;
        if (is_stale(call, b, reg))
            return COLL_ERR_INVALID;
        found[b].off = (size_t)((const unsigned char *)at[b] - reg->base);
        *direct |= 1u << b;
    }
    if (call->op.pre.is_set)
        *direct &= ~(1u << BUF_IN); /* the scaled input is in another buffer */
    return COLL_OK;
}

void coll__registered_numbers(const struct coll__registered found[N_BUFS],
                              unsigned direct, uint64_t regs[N_BUFS])
{
    for (int b = 0; b < N_BUFS; b++)
        if (direct & 1u << b)
            regs[b] = found[b].reg->number + 1; /* 0: of none */
}

/* The copy is needed if the program is in place and the call is not
 * (coll__problem_read_direct()). */
int coll__programs_put_copy(const struct coll_comm *comm,
                            const struct coll__stream_call *call,
                            const struct coll__problem *as, void *stream)
{
    struct coll__stream_tp *tp = comm->links.routes.streams;
    struct coll__work work = {.kind = WORK_COPY, .stream = stream};
    struct coll__span own;
    int rc;

    if (as->in_place == call->pb.in_place ||
        !coll__problem_len(&call->pb, BUF_IN))
        return COLL_OK;
    own = coll__own_in(as);
    work.dst = (unsigned char *)call->args.out + own.off;
    work.src = call->args.in;
    work.len = own.len;
    work.is_src_host = call->is_host[BUF_IN] != 0;
    work.is_dst_host = call->is_host[BUF_OUT] != 0;
    rc = coll__stream_work(tp, &work);
    if (rc && !coll__cuda_streams.is_captured(stream))
        tp->ops->release(tp, rc); /* the other ranks wait for the rest */
    return rc;
}

/* All ranks have the same list of registrations, so a registration's position
 * identifies it. */
static uint64_t place_of(const struct coll__registration *reg)
{
    uint64_t place = 0;

    for (; reg; reg = reg->next)
        place++;
    return place;
}

static uint32_t digest_of(const struct coll__stream_call *call,
                          const struct coll__registered found[N_BUFS],
                          unsigned direct)
{
    uint64_t hash = 1;

    if (!direct)
        return 0;
    for (int b = BUF_IN; b <= BUF_OUT; b++)
        if (direct & 1u << b)
            hash = coll__hash_add(
                coll__hash_add(coll__hash_add(hash, (uint64_t)b), found[b].off),
                place_of(found[b].reg));
    hash = coll__hash_add(
        hash, (uint64_t)coll__problem_read_direct(&call->pb, direct).in_place);
    hash = coll__hash_add(hash, (uint64_t)call->pb.root);
    return (uint32_t)hash >> 1 | 1;
}

int coll__programs_digest(const struct coll_comm *comm,
                          const struct coll__stream_call *call,
                          uint32_t *digest)
{
    struct coll__registered found[N_BUFS];
    unsigned direct;
    int rc = coll__find_registered(comm, call, found, &direct);

    *digest = rc ? 0 : digest_of(call, found, direct);
    return rc;
}

void coll__programs_places(const struct coll_comm *comm,
                           const struct coll__stream_call *call,
                           char text[COLL__PLACES_TEXT])
{
    static const char *const names[N_BUFS] = {
        [BUF_IN] = "in", [BUF_OUT] = "out"};
    const struct coll__registered none = {.reg = NULL};
    struct coll__registered found[N_BUFS] = {none};
    unsigned direct = 0;
    int n = 0;

    coll__find_registered(comm, call, found, &direct);
    for (int b = BUF_IN; b <= BUF_OUT; b++)
        if (direct & 1u << b)
            n += snprintf(text + n, COLL__PLACES_TEXT - (size_t)n,
                          "%s%s at byte %zu of registered registration %llu",
                          n ? ", " : "", names[b], found[b].off,
                          (unsigned long long)place_of(found[b].reg));
    if (!n)
        snprintf(text, COLL__PLACES_TEXT, "nothing registered");
}
