/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_kernel.c - operations that are one kernel, which waits for the other ranks'
 * kernels: when that works, and where their messages are.
 *
 * Kernels that wait for each other must run at the same time.  They do if each rank has
 * its own GPU, or if the ranks of one process share a GPU and have few enough blocks
 * (H100, kernels_meet: 2 us a round trip).  Processes without MPS share a GPU by time
 * slices: a round trip takes two slices of 2 ms (4505 us), so that is refused.
 */
#include "transports/cuda_ipc.h"
#include "lib/util/limit.h"
#include "lib/util/param.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MOST_KERNEL_SLOT ((size_t)1 << 20)

/* ---- deciding ------------------------------------------------------------ */

static int engine_wanted(void)
{
    const char *name = coll__param_text(PARAM_CUDA_ENGINE);

    return !strcmp(name, "kernel")   ? CUDA_IPC_KERNEL
           : !strcmp(name, "stream") ? CUDA_IPC_STREAM
                                     : CUDA_IPC_AUTO;
}

void cuda_ipc__wish(const struct cuda_ipc *tp, struct cuda_ipc_wish *out)
{
    *out = (struct cuda_ipc_wish){
        .engine = engine_wanted(),
        .has_mps = coll__cuda_has_mps(tp->home.device),
        .pid = (int)getpid(),
        .may_shrink = !coll__limit(LIMIT_CUDA_SLOT),
        .most = min_size(coll__limit(LIMIT_CUDA_KERNEL_MAX),
                         SIZE_MAX / 2)}; /* SIZE_MAX: all */
    memcpy(out->uuid, tp->home.uuid, 16);
}

static int share_gpu(const struct cuda_ipc_wish *a,
                     const struct cuda_ipc_wish *b)
{
    return !memcmp(a->uuid, b->uuid, 16);
}

/* Return a rank that shares a GPU with another rank or, with takes_turns, with a rank of
 * another process by time slices; -1 if there is none. */
static int find_sharing(const struct cuda_ipc *tp,
                        const struct cuda_ipc_wish *wishes, int takes_turns)
{
    for (int a = 0; a < tp->local_size; a++)
        for (int b = 0; b < a; b++) {
            int are_one = (wishes[a].pid == wishes[b].pid &&
                           wishes[a].pid_ns == wishes[b].pid_ns) ||
                          (wishes[a].has_mps && wishes[b].has_mps);

            if (share_gpu(&wishes[a], &wishes[b]) && !(takes_turns && are_one))
                return a;
        }
    return -1;
}

static size_t kernel_most(struct cuda_ipc *tp,
                          const struct cuda_ipc_wish *wishes)
{
    struct coll__stream_kernel *kernel = &tp->base.kernel;
    int turns = find_sharing(tp, wishes, 1);

    if (wishes[0].engine == CUDA_IPC_STREAM)
        return 0;
    if (wishes[0].engine == CUDA_IPC_AUTO)
        return tp->local_size > 1 && find_sharing(tp, wishes, 0) < 0
                   ? wishes[0].most
                   : 0;
    if (turns < 0)
        return SIZE_MAX;
    snprintf(
        kernel->why, sizeof(kernel->why),
        "COLL_CUDA_ENGINE=kernel: process %d shares its GPU with another one, "
        "and their kernels take turns of milliseconds; start MPS, give each "
        "rank a GPU, or set COLL_CUDA_ENGINE=auto",
        wishes[turns].pid);
    return 0;
}

/* Choose the length of kernels' slots, for the largest operation; the streams' slots
 * shrink to make space. */
static void choose_slot(struct cuda_ipc *tp, int may_shrink)
{
    struct coll__stream_kernel *kernel = &tp->base.kernel;
    size_t len = round_up(min_size(kernel->most, MOST_KERNEL_SLOT), 64), more;

    kernel->slot = min_size(tp->base.slot, len);
    more = kernel->slot + 2 * CUDA_IPC_WORD;
    if (may_shrink && tp->base.slot > 2 * more)
        tp->base.slot -= round_up(more / 2, CUDA_IPC_WORD); /* of two */
}

void cuda_ipc__decide(struct cuda_ipc *tp, const struct cuda_ipc_wish *wishes)
{
    struct coll__stream_kernel *kernel = &tp->base.kernel;

    kernel->most = kernel_most(tp, wishes);
    for (int r = 0; r < tp->local_size; r++)
        kernel->n_sharing += share_gpu(&wishes[r], &wishes[tp->local_rank]);
    if (kernel->most)
        choose_slot(tp, wishes[0].may_shrink);
}

/* ---- messages ------------------------------------------------------------ */

int cuda_ipc__clear_words(const struct cuda_ipc *tp, void *stream)
{
    size_t at = cuda_ipc_words_at(tp, 0, 1);
    size_t len = cuda_ipc_words_at(tp, 0, tp->local_size) - at;
    int status = coll__cuda_clear(stream, tp->inbox + at, len);

    return status ? status : coll__cuda_stream_wait(stream);
}

/* Find the words of a slot.  An inbox has two words for each slot: the first is for
 * messages that arrive in this slot, the second for messages that leave for the slot of
 * the same number in the peer's inbox. */
void cuda_ipc__kernel_slot(const struct coll__stream_tp *base, int peer,
                           int is_send, int n, struct coll__kernel_slot *out)
{
    const struct cuda_ipc *tp = (const struct cuda_ipc *)base;
    const struct cuda_ipc_peer *other = &tp->peers[tp->local_of[peer]];
    const struct cuda_ipc_way *way = is_send ? &other->to : &other->from;
    size_t slot = (size_t)(n % base->n_slots);

    *out = (struct coll__kernel_slot){
        .at = way->kernel_slots + slot * base->kernel.slot,
        .own = other->from.words + (2 * slot + (size_t)is_send) * CUDA_IPC_WORD,
        .theirs =
            other->to.words + (2 * slot + (size_t)!is_send) * CUDA_IPC_WORD};
}
