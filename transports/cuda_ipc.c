/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc.c - the transport between GPUs of a host: which ranks it reaches, what it takes,
 * and where the slots are. */
#include "transports/cuda_ipc.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"

#include <stdio.h>

static struct cuda_ipc *of(const struct coll__stream_tp *tp)
{
    return (struct cuda_ipc *)tp;
}

static int reaches(const struct coll__stream_tp *base, int peer, char *why,
                   size_t len)
{
    const struct cuda_ipc *tp = of(base);
    int local = tp->local_of[peer];

    if (local >= 0 && tp->peers[local].reached)
        return COLL_OK;
    snprintf(why, len, "%s",
             local < 0 ? "it is on another host" : tp->peers[local].why);
    return COLL_ERR_PEER;
}

static int state(const struct coll__stream_tp *base)
{
    const struct cuda_ipc *tp = of(base);
    int failure = atomic_load(&tp->failure);

    return failure || !tp->map ? failure : atomic_load(cuda_ipc_state(tp));
}

static int is_legacy(const void *stream)
{
    return !stream || stream == COLL__LEGACY_STREAM;
}

int cuda_ipc__was_reset(const struct coll__stream_tp *base)
{
    const struct cuda_ipc *tp = of(base);

    return tp->map && coll__cuda_whose(tp->map, NULL) != WHOSE_HOSTS;
}

static int takes(struct coll__stream_tp *base, void *stream,
                 const struct coll__cuda_place *place)
{
    const struct cuda_ipc *tp = of(base);

    if (tp->base.kernel.why[0]) {
        log_error("cuda", "%s", tp->base.kernel.why);
        return COLL_ERR_UNSUPPORTED;
    }
    if (is_legacy(stream) && tp->shares_context) {
        log_error("cuda",
                  "ranks of one process share the legacy stream, and would "
                  "wait for each other in it; give each rank a stream of its "
                  "own (cudaStreamCreateWithFlags(), cudaStreamNonBlocking)");
        return COLL_ERR_INVALID;
    }
    if (place->ctx == tp->home.ctx)
        return COLL_OK;
    if (place->device != tp->home.device)
        log_error(
            "cuda",
            "the stream is of GPU %d and the communicator of GPU "
            "%d; give it a stream of the GPU that was current when it was "
            "made",
            place->device, tp->home.device);
    else
        log_error("cuda",
                  "the stream is of another context of GPU %d than the "
                  "communicator; let both be of the primary one",
                  place->device);
    return COLL_ERR_INVALID;
}

static void find_slot(const struct coll__stream_tp *base, int peer, int is_send,
                      int n, struct coll__slot *out)
{
    const struct cuda_ipc *tp = of(base);
    int other = tp->local_of[peer], slot = cuda_ipc_slot_of(tp, n);
    const struct cuda_ipc_peer *at = &tp->peers[other];
    const struct cuda_ipc_way *way = is_send ? &at->to : &at->from;
    int from = is_send ? tp->local_rank : other;
    int to = is_send ? other : tp->local_rank;

    *out = (struct coll__slot){.flag = tp->seen +
                                       cuda_ipc_flag_at(tp, from, to, slot),
                               .at = way->slots + (size_t)slot * base->slot,
                               .is_host = base->by_host[peer]};
}

static uint64_t held(const struct coll__stream_tp *base, int *peer)
{
    const struct cuda_ipc *tp = of(base);
    int me = tp->local_rank;
    uint64_t digest = 0;

    *peer = -1;
    for (int r = 0; tp->map && r < tp->local_size; r++)
        for (int s = 0; s < cuda_ipc_n_slots(tp) && r != me; s++) {
            const struct coll__slot_flag *out = cuda_ipc_flag(tp, me, r, s);
            uint32_t sent = atomic_load(&out->state);
            uint32_t came = atomic_load(&cuda_ipc_flag(tp, r, me, s)->state);

            digest =
                (digest ^ ((uint64_t)sent << 32 | came)) * 0x9e3779b97f4a7c15u;
            if (sent == COLL__SLOT_FULL && !atomic_load(&out->released))
                *peer = tp->peers[r].rank;
        }
    return digest;
}

static void bytes(const struct coll__stream_tp *base,
                  struct coll_mem_stats *stats)
{
    const struct cuda_ipc *tp = of(base);

    stats->mapped += cuda_ipc__mapped_len(tp);
    for (int r = 0; r < tp->local_size; r++)
        stats->mapped += tp->peers[r].is_mapped ? cuda_ipc_inbox_len(tp) : 0;
    stats->shared +=
        (tp->segment ? cuda_ipc_segment_len(tp) : 0) + tp->host_len;
    stats->device += tp->inbox ? cuda_ipc_inbox_len(tp) : 0;
}

const struct coll__stream_transport coll__stream_cuda_ipc = {
    .name = "cuda_ipc",
    .what =
        "slots in the memory of the host's GPUs, flags that streams wait for",
    .open = cuda_ipc__open,
    .close = cuda_ipc__close,
    .reclaim = cuda_ipc__reclaim,
    .reaches = reaches,
    .takes = takes,
    .hold = cuda_ipc__held_by,
    .was_reset = cuda_ipc__was_reset,
    .slot = find_slot,
    .enroll = cuda_ipc__enroll,
    .dismiss = cuda_ipc__dismiss,
    .kernel_slot = cuda_ipc__kernel_slot,
    .release = cuda_ipc__release,
    .state = state,
    .held = held,
    .bytes = bytes,
};
