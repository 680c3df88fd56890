/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_scratch.c - device memory in which operations of streams work. */
#include "lib/stream/stream_scratch.h"
#include "lib/device/cuda.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>

struct coll__stream_room {
    struct coll__stream_room *next;
    void *at;
    size_t len;
};

int coll__stream_scratch_have(struct coll__stream_scratch *scratch, size_t len)
{
    struct coll__stream_room *room;

    if (len <= scratch->len)
        return COLL_OK;
    room = malloc(sizeof(*room));
    if (!room) {
        log_error("api", "no memory for an operation of a stream");
        return COLL_ERR_NOMEM;
    }
    room->len = max_size(len, 2 * scratch->len);
    room->at = coll__device_cuda.alloc(room->len);
    if (!room->at) {
        free(room);
        return COLL_ERR_NOMEM;
    }
    room->next = scratch->rooms;
    scratch->rooms = room;
    scratch->at = room->at;
    scratch->len = room->len;
    scratch->taken += room->len;
    return COLL_OK;
}

void coll__stream_scratch_free(struct coll__stream_scratch *scratch)
{
    while (scratch->rooms) {
        struct coll__stream_room *room = scratch->rooms;

        scratch->rooms = room->next;
        coll__device_cuda.free(room->at, room->len);
        free(room);
    }
    *scratch = (struct coll__stream_scratch){0};
}
