/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc.c - messages between streams of GPUs of a host.
 *
 * No function here waits; each only calls the driver.  A send enqueues a wait, a copy
 * into the peer's inbox and a flag.  A receive enqueues a wait, a copy or a reduction out
 * of its own inbox, and a flag.  Nothing else touches the data.  A message that is
 * received and sent on is one kernel, between the waits and the flags of both.
 */
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

static int takes(struct coll__stream_tp *base, void *stream)
{
    const struct cuda_ipc *tp = of(base);
    struct coll__cuda_place place;
    int device;
    int status = coll__cuda_enter(stream, &place);

    if (status)
        return status;
    coll__cuda_leave();
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
    if (place.ctx == tp->home.ctx && tp->map &&
        coll__cuda_whose(tp->map, &device) != WHOSE_HOSTS) {
        log_error("cuda",
                  "GPU %d was reset since the communicator was made; make a "
                  "new communicator after a reset",
                  place.device);
        return COLL_ERR_INVALID;
    }
    if (place.ctx == tp->home.ctx)
        return COLL_OK;
    if (place.device != tp->home.device)
        log_error(
            "cuda",
            "the stream is of GPU %d and the communicator of GPU "
            "%d; give it a stream of the GPU that was current when it was "
            "made",
            place.device, tp->home.device);
    else
        log_error("cuda",
                  "the stream is of another context of GPU %d than the "
                  "communicator; let both be of the primary one",
                  place.device);
    return COLL_ERR_INVALID;
}

/* A flag as devices see it. */
static void *flag_of(const struct cuda_ipc *tp, int from, int to, int slot)
{
    return tp->seen + cuda_ipc_flag_at(tp, from, to, slot);
}

static int send_one(struct coll__stream_tp *base, void *stream, int peer, int n,
                    const void *src, size_t len)
{
    const struct cuda_ipc *tp = of(base);
    int to = tp->local_of[peer], slot = cuda_ipc_slot_of(tp, n);
    void *flag = flag_of(tp, tp->local_rank, to, slot);
    struct coll__work work = {.kind = WORK_COPY,
                              .dst = tp->peers[to].to.slots +
                                     (size_t)slot * base->slot,
                              .src = src,
                              .len = len,
                              .stream = stream};
    int status = state(base);

    if (status == COLL_OK)
        status = coll__cuda_wait_bit(stream, flag, CUDA_IPC_EMPTY);
    if (status == COLL_OK && !(n & COLL__DIRECT))
        status = coll__cuda_enqueue(&work);
    if (status == COLL_OK)
        status = coll__cuda_write_flag(stream, flag, CUDA_IPC_FULL);
    return status;
}

static int recv_one(struct coll__stream_tp *base, void *stream, int peer, int n,
                    const struct coll__work *work)
{
    const struct cuda_ipc *tp = of(base);
    int from = tp->local_of[peer], slot = cuda_ipc_slot_of(tp, n);
    void *flag = flag_of(tp, from, tp->local_rank, slot);
    struct coll__work take = *work;
    int status = state(base);

    if (!(n & COLL__DIRECT))
        take.src = tp->peers[from].from.slots + (size_t)slot * base->slot;
    take.stream = stream;
    if (status == COLL_OK)
        status = coll__cuda_wait_bit(stream, flag, CUDA_IPC_FULL);
    if (status == COLL_OK)
        status = coll__cuda_enqueue(&take);
    if (status == COLL_OK)
        status = coll__cuda_write_flag(stream, flag, CUDA_IPC_EMPTY);
    return status;
}

/* Both words are written after the kernel, in either order. */
static int relay(struct coll__stream_tp *base, const struct coll__message *from,
                 const struct coll__message *to, const struct coll__work *work)
{
    const struct cuda_ipc *tp = of(base);
    int prev = tp->local_of[from->peer], next = tp->local_of[to->peer];
    int in = cuda_ipc_slot_of(tp, from->n), out = cuda_ipc_slot_of(tp, to->n);
    void *const flags[2] = {flag_of(tp, prev, tp->local_rank, in),
                            flag_of(tp, tp->local_rank, next, out)};
    unsigned char *slot = tp->peers[next].to.slots + (size_t)out * base->slot;
    const uint32_t before[2] = {CUDA_IPC_FULL, CUDA_IPC_EMPTY},
                   after[2] = {CUDA_IPC_EMPTY, CUDA_IPC_FULL};
    struct coll__work take = *work;
    int status = state(base);

    if (!(from->n & COLL__DIRECT))
        take.src = tp->peers[prev].from.slots + (size_t)in * base->slot;
    take.dst = work->dst ? work->dst : slot;
    take.next = work->dst ? slot : NULL;
    if (status == COLL_OK)
        status = coll__cuda_wait_bits(take.stream, flags, before);
    if (status == COLL_OK)
        status = coll__cuda_enqueue(&take);
    if (status == COLL_OK)
        status = coll__cuda_write_flags(take.stream, flags, after);
    return status;
}

static int settle(struct coll__stream_tp *base, void *stream, int peer, int n)
{
    const struct cuda_ipc *tp = of(base);
    int to = tp->local_of[peer], slot = cuda_ipc_slot_of(tp, n);
    int status = state(base);

    return status ? status
                  : coll__cuda_wait_bit(stream,
                                        flag_of(tp, tp->local_rank, to, slot),
                                        CUDA_IPC_EMPTY);
}

static uint64_t held(const struct coll__stream_tp *base, int *peer)
{
    const struct cuda_ipc *tp = of(base);
    int me = tp->local_rank;
    uint64_t digest = 0;

    *peer = -1;
    for (int r = 0; tp->map && r < tp->local_size; r++)
        for (int s = 0; s < cuda_ipc_n_slots(tp) && r != me; s++) {
            uint32_t sent = atomic_load(cuda_ipc_flag(tp, me, r, s));
            uint32_t came = atomic_load(cuda_ipc_flag(tp, r, me, s));

            digest =
                (digest ^ ((uint64_t)sent << 32 | came)) * 0x9e3779b97f4a7c15u;
            if (sent != CUDA_IPC_EMPTY && sent != CUDA_IPC_RELEASED)
                *peer = tp->peers[r].rank;
        }
    return digest;
}

static size_t bytes(const struct coll__stream_tp *base, size_t *host,
                    size_t *mapped)
{
    const struct cuda_ipc *tp = of(base);

    *mapped = cuda_ipc__mapped_len(tp);
    for (int r = 0; r < tp->local_size; r++)
        *mapped += tp->peers[r].is_mapped ? cuda_ipc_inbox_len(tp) : 0;
    *host = (tp->segment ? cuda_ipc_segment_len(tp) : 0) + tp->host_len;
    return tp->inbox ? cuda_ipc_inbox_len(tp) : 0;
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
    .send = send_one,
    .recv = recv_one,
    .settle = settle,
    .relay = relay,
    .enroll = cuda_ipc__enroll,
    .dismiss = cuda_ipc__dismiss,
    .slot = cuda_ipc__slot,
    .release = cuda_ipc__release,
    .state = state,
    .held = held,
    .bytes = bytes,
};
