/* SPDX-License-Identifier: BSD-3-Clause */
/* attach.c - creates and frees the stream state of a communicator, and holds the
 * table of functions that the rest of the library calls. */
#include "lib/stream/attach.h"
#include "lib/comm/comm.h"
#include "lib/run/stream_calls.h"
#include "lib/stream/calls.h"
#include "lib/stream/carry.h"
#include "lib/stream/compare.h"
#include "lib/stream/gpu_view.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>

static int stream_open(struct coll_comm *comm)
{
    coll__stream_look_for_devices();
    comm->stream = calloc(1, sizeof(*comm->stream));
    return comm->stream ? COLL_OK : COLL_ERR_NOMEM;
}

static int32_t stream_tell(void) { return (int32_t)coll__stream_lacks(); }

/* "Rank 3 ...". */
static const char *describe(int32_t lack)
{
    static const char *const texts[N_LACKS] = {
        [LACKS_BUILD] = "has a libcoll without CUDA; install its headers "
                        "(nvidia-cuda-dev) and configure again",
        [LACKS_KERNELS] = "has a libcoll without CUDA kernels; configure again "
                          "where there is nvcc",
        [LACKS_DRIVER] = "had no CUDA driver in its process when the "
                         "communicator was made; call cudaSetDevice() before",
        [LACKS_START] = "has a CUDA driver that cannot be used; see coll_info "
                        "--check-build",
        [LACKS_CONTEXT] = "had no current CUDA context when the communicator "
                          "was made; call cudaSetDevice() before",
    };

    return lack >= 0 && lack < N_LACKS && texts[lack] ? texts[lack]
                                                      : "is of another version";
}

static int has_device(int32_t lack)
{
    return lack != LACKS_DRIVER && lack != LACKS_BUILD;
}

static int has_no_streams(int32_t lack) { return lack < LACKS_KERNELS; }

static int lacks_any(int32_t lack) { return lack != LACKS_NOTHING; }

/* Return the first rank of which `is` holds (enum coll__lack), or -1. */
static int find(const int32_t *lacks, int size, int (*is)(int32_t lack))
{
    for (int r = 0; r < size; r++)
        if (is(lacks[r]))
            return r;
    return -1;
}

/* If all ranks have devices, join these, too. */
static int stream_join(struct coll_comm *comm,
                       const struct coll__options *options,
                       const int32_t *lacks)
{
    struct coll__stream *s = comm->stream;
    int without = find(lacks, comm->size, has_no_streams);
    int r = without < 0 ? find(lacks, comm->size, lacks_any) : without;
    int rc = COLL_OK;

    (void)options;
    s->is_plain = r >= 0 && without < 0;
    coll__stream_choose_plain(comm);
    if (r >= 0)
        snprintf(s->no_streams, sizeof(s->no_streams), "rank %d %s", r,
                 describe(lacks[r]));
    else
        rc = coll__stream_join(comm);
    comm->holds_device = r < 0;
    if (rc || find(lacks, comm->size, has_device) < 0)
        return rc;
    if (r >= 0)
        log_info("comm", "GPU buffers %s: %s",
                 s->is_plain ? "pass through the host" : "cannot be used",
                 s->no_streams);
    else
        log_info("comm", "GPU buffers go from GPU to GPU%s%s",
                 s->near ? ", through the hosts where these do not reach each "
                           "other: "
                         : "",
                 s->no_streams);
    return COLL_OK;
}

static int stream_leave(struct coll_comm *comm)
{
    coll__stream_leave(comm);
    return COLL_OK;
}

static int stream_free(struct coll_comm *comm)
{
    if (!comm->stream)
        return COLL_OK;
    coll__stream_free(comm);
    coll__view_fini(&comm->stream->gpu_view);
    free(comm->stream);
    comm->stream = NULL;
    return COLL_OK;
}

static const struct coll__view *stream_view(const struct coll_comm *comm)
{
    return comm->stream->gpu_view.nranks ? &comm->stream->gpu_view : NULL;
}

const struct coll__attachment coll__stream_attachment = {
    .life = {[LIFE_OPEN] = stream_open,
             [LIFE_SETTLE] = coll__stream_join_far,
             [LIFE_DRAIN] = coll__stream_drain,
             [LIFE_LEAVE] = stream_leave,
             [LIFE_FREE] = stream_free},
    .tell = stream_tell,
    .join = stream_join,
    .fail = coll__stream_fail,
    .hear = coll__stream_hear,
    .bytes = coll__stream_bytes,
};

const struct coll__stream_calls coll__stream_call_table = {
    .look_for_devices = coll__stream_look_for_devices,
    .owns = coll__stream_owns,
    .check = coll__stream_check,
    .call = coll__stream_call,
    .run = coll__stream_run,
    .here = coll__stream_here,
    .enter = coll__stream_enter,
    .leave = coll__stream_go,
    .compare = coll__stream_compare,
    .compared = coll__compare_put,
    .request = coll__stream_request,
    .start = coll__stream_start,
    .look = coll__stream_look,
    .wait = coll__stream_wait,
    .move = coll__carry_move,
    .release = coll__carry_release,
    .watch = coll__stream_watch,
    .view = stream_view,
    .enroll = coll__stream_enroll,
    .reclaim = coll__stream_reclaim,
    .context = coll__cuda_context,
    .describe = coll__gpus_describe,
};
