/* SPDX-License-Identifier: BSD-3-Clause */
/* queued_areas.c - which of a call's buffers the other ranks read in place.
 *
 * A rank knows of its own call alone: where it passes registered memory it takes for
 * granted that all do, at the same place of it (COLL_CHECK compares that).  The words of
 * slots say which messages lie in none, so ranks of which one has done otherwise stand
 * still, and are told.
 */
#include "lib/api/queued.h"
#include "lib/api/staged.h"
#include "lib/trace/log.h"

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

int coll__find_spots(const struct coll_comm *comm,
                     const struct coll__stream_call *call,
                     struct coll__spot spots[N_BUFS], unsigned *lying)
{
    const struct coll__stream_tp *tp = comm->routes.streams;
    const void *at[N_BUFS] = {call->args.in, call->args.out, NULL};
    unsigned bufs = 0;

    *lying = 0;
    if (tp->areas && comm->size > 1 && !coll__is_one_kernel(tp, &call->pb))
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
        *lying &= ~(1u << BUF_IN); /* what is sent is scaled, and elsewhere */
    return COLL_OK;
}

static uint64_t mix(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Areas are alike on all ranks, and so is the place of each in the list. */
static uint64_t place_of(const struct coll__stream_area *area)
{
    uint64_t place = 0;

    for (; area; area = area->next)
        place++;
    return place;
}

int coll__queued_digest(const struct coll_comm *comm,
                        const struct coll__stream_call *call, int32_t *digest)
{
    struct coll__spot spots[N_BUFS];
    uint64_t hash = 1;
    unsigned lying;
    int rc = coll__find_spots(comm, call, spots, &lying);

    *digest = 0;
    if (rc || !lying)
        return rc;
    for (int b = BUF_IN; b <= BUF_OUT; b++)
        if (lying & 1u << b)
            hash = mix(mix(mix(hash, (uint64_t)b), spots[b].off),
                       place_of(spots[b].area));
    hash = mix(hash, (uint64_t)call->pb.in_place);
    *digest = (int32_t)((uint32_t)hash >> 1 | 1);
    return COLL_OK;
}
