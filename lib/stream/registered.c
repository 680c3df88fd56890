/* SPDX-License-Identifier: BSD-3-Clause */
/* registered.c - which of a call's buffers the other ranks read in place.
 *
 * A rank knows only its own call.  If it passes registered memory, it assumes that all
 * ranks do, at the same place.  COLL_CHECK compares a digest of the places; without it
 * nothing checks this.
 */
#include "lib/stream/programs.h"
#include "lib/stream/staged.h"
#include "lib/trace/log.h"

#include <stdio.h>

static int is_stale(const struct coll__stream_call *call, const void *ptr,
                    const struct coll__stream_area *area)
{
    struct coll__cuda_memory memory;
    char why[256];

    if (coll__cuda_find(ptr, &memory, why, sizeof(why)) == COLL_OK &&
        memory.id == area->id)
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

int coll__find_spots(const struct coll_comm *comm,
                     const struct coll__stream_call *call,
                     struct coll__spot spots[N_BUFS], unsigned *lying)
{
    const struct coll__stream_tp *tp = comm->links.routes.streams;
    const void *at[N_BUFS] = {call->args.in, call->args.out, NULL};
    unsigned bufs = 0;

    *lying = 0;
    if (tp->areas && comm->size > 1 && is_long_enough(tp, &call->pb))
        bufs = coll__problem_readable(&call->pb);
    for (int b = BUF_IN; b <= BUF_OUT; b++) {
        size_t len = coll__problem_len(&call->pb, (enum coll__buf)b);
        const struct coll__stream_area *area =
            bufs & 1u << b && len ? coll__stream_area_of(tp, at[b], len) : NULL;

        spots[b] = (struct coll__spot){.area = area};
        if (!area)
            continue;
        if (is_stale(call, at[b], area))
            return COLL_ERR_INVALID;
        spots[b].off = (size_t)((const unsigned char *)at[b] - area->base);
        *lying |= 1u << b;
    }
    if (call->op.is_premul)
        *lying &= ~(1u << BUF_IN); /* the scaled input is in another buffer */
    return COLL_OK;
}

void coll__spots_areas(const struct coll__spot spots[N_BUFS], unsigned lying,
                       uint64_t areas[N_BUFS])
{
    for (int b = 0; b < N_BUFS; b++)
        if (lying & 1u << b)
            areas[b] = spots[b].area->number + 1; /* 0: of none */
}

/* The copy is needed if the program is in place and the call is not
 * (coll__problem_lying()). */
int coll__queued_put_copy(const struct coll_comm *comm,
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
    rc = tp->ops->takes(tp, stream);
    if (rc)
        return rc;
    own = coll__own_in(as);
    work.dst = (unsigned char *)call->args.out + own.off;
    work.src = call->args.in;
    work.len = own.len;
    rc = coll__cuda_enqueue(&work);
    if (rc && !coll__cuda_streams.is_captured(stream))
        tp->ops->release(tp, rc); /* the other ranks wait for the rest */
    return rc;
}

static uint64_t mix(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* All ranks have the same list of areas, so an area's position identifies it. */
static uint64_t place_of(const struct coll__stream_area *area)
{
    uint64_t place = 0;

    for (; area; area = area->next)
        place++;
    return place;
}

static uint32_t digest_of(const struct coll__stream_call *call,
                          const struct coll__spot spots[N_BUFS], unsigned lying)
{
    uint64_t hash = 1;

    if (!lying)
        return 0;
    for (int b = BUF_IN; b <= BUF_OUT; b++)
        if (lying & 1u << b)
            hash = mix(mix(mix(hash, (uint64_t)b), spots[b].off),
                       place_of(spots[b].area));
    hash = mix(hash, (uint64_t)coll__problem_lying(&call->pb, lying).in_place);
    hash = mix(hash, (uint64_t)call->pb.root);
    return (uint32_t)hash >> 1 | 1;
}

int coll__queued_digest(const struct coll_comm *comm,
                        const struct coll__stream_call *call, uint32_t *digest)
{
    struct coll__spot spots[N_BUFS];
    unsigned lying;
    int rc = coll__find_spots(comm, call, spots, &lying);

    *digest = rc ? 0 : digest_of(call, spots, lying);
    return rc;
}

void coll__queued_places(const struct coll_comm *comm,
                         const struct coll__stream_call *call,
                         char text[COLL__PLACES_TEXT])
{
    static const char *const names[N_BUFS] = {
        [BUF_IN] = "in", [BUF_OUT] = "out"};
    const struct coll__spot none = {.area = NULL};
    struct coll__spot spots[N_BUFS] = {none};
    unsigned lying = 0;
    int n = 0;

    coll__find_spots(comm, call, spots, &lying);
    for (int b = BUF_IN; b <= BUF_OUT; b++)
        if (lying & 1u << b)
            n += snprintf(text + n, COLL__PLACES_TEXT - (size_t)n,
                          "%s%s at byte %zu of registered area %llu",
                          n ? ", " : "", names[b], spots[b].off,
                          (unsigned long long)place_of(spots[b].area));
    if (!n)
        snprintf(text, COLL__PLACES_TEXT, "nothing registered");
}
