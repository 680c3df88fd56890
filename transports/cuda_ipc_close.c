/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_close.c - letting streams go, and giving memory back.
 *
 * The driver frees, unmaps and unregisters only when no stream of the context waits
 * any more (H100, queue/behind_memop).  So a thread goes on releasing until all is
 * given back; it also serves what was captured and is launched after a failure.
 *
 * A rank's inbox may be freed when nobody has it mapped any more: other processes say
 * so in the segment, or have died; ranks of its own process hold it.
 */
#include "transports/cuda_ipc.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/spawn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNMAP_SECONDS 1.0 /* for others to let go of an inbox */
#define SWEEP_US 200

/* ---- releasing ----------------------------------------------------------- */

/* All that this rank's streams may wait for. */
static void sweep(const struct cuda_ipc *tp)
{
    for (int r = 0; r < tp->local_size; r++)
        for (int s = 0; s < cuda_ipc_n_slots(tp) && r != tp->local_rank; s++) {
            atomic_store(cuda_ipc_flag(tp, tp->local_rank, r, s),
                         CUDA_IPC_RELEASED);
            atomic_store(cuda_ipc_flag(tp, r, tp->local_rank, s),
                         CUDA_IPC_RELEASED);
        }
}

static void *keep_sweeping(void *arg)
{
    const struct cuda_ipc *tp = arg;

    while (!atomic_load(&tp->may_stop)) {
        sweep(tp);
        usleep(SWEEP_US);
    }
    return NULL;
}

static int start_sweeper(struct cuda_ipc *tp)
{
    int err = coll__spawn(&tp->sweeper, keep_sweeping, tp, "coll-sweeper");

    if (err)
        log_error("cuda", "no thread to release streams that wait: they may "
                          "stand until this process ends; raise ulimit -u");
    return !err;
}

/* The state is there before anybody goes on by what it makes worthless. */
void cuda_ipc__release(struct coll__stream_tp *base, int status)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    int none = COLL_OK;

    if (coll__is_inherited(base->generation))
        return;
    atomic_compare_exchange_strong(&tp->failure, &none, status);
    if (!tp->map)
        return;
    none = COLL_OK;
    atomic_compare_exchange_strong(cuda_ipc_state(tp), &none, status);
    sweep(tp);
    pthread_mutex_lock(&tp->lock);
    if (!tp->sweeps)
        tp->sweeps = start_sweeper(tp);
    pthread_mutex_unlock(&tp->lock);
}

static void stop_sweeper(struct cuda_ipc *tp)
{
    atomic_store(&tp->may_stop, 1);
    if (tp->sweeps)
        pthread_join(tp->sweeper, NULL);
}

/* ---- closing ------------------------------------------------------------- */

/* What this rank's streams still do there ends first. */
static void leave_peers(struct cuda_ipc *tp)
{
    coll__cuda_drain();
    cuda_ipc__leave_areas(tp);
    for (int r = 0; r < tp->local_size; r++) {
        struct cuda_ipc_peer *peer = &tp->peers[r];

        if (peer->is_mapped)
            coll__cuda_unimport(&peer->memory, peer->inbox);
        else if (peer->inbox)
            cuda_ipc__drop(peer->inbox);
        atomic_store(&cuda_ipc_note(tp, tp->local_rank, r)->has_mapped, 0);
    }
}

/* A process that has ended, but has not been waited for, has let go, too. */
static int is_alive(int pid)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0),
                         .events = POLLIN};
    int has_ended = end.fd < 0 ? errno == ESRCH : poll(&end, 1, 0) == 1;

    if (end.fd >= 0)
        close(end.fd);
    return !has_ended;
}

static int is_mapped(const struct cuda_ipc *tp)
{
    for (int r = 0; r < tp->local_size; r++)
        if (atomic_load(&cuda_ipc_note(tp, r, tp->local_rank)->has_mapped) &&
            is_alive(tp->peers[r].pid))
            return 1;
    return 0;
}

/* To free what others use is undefined: rather lose it. */
static void leave_inbox(struct cuda_ipc *tp)
{
    double until = coll__now() + UNMAP_SECONDS;

    while (is_mapped(tp) && coll__now() < until)
        usleep(100);
    if (is_mapped(tp))
        log_warn("cuda",
                 "%zu bytes of device memory are lost until this process "
                 "ends: another rank has not let go of them",
                 cuda_ipc_inbox_len(tp));
    else
        cuda_ipc__drop(tp->inbox);
}

static void give_back(struct cuda_ipc *tp)
{
    int was;

    if (!tp->home.ctx || coll__cuda_go_in(&tp->home, &was))
        return;
    if (tp->map)
        leave_peers(tp);
    if (tp->inbox)
        leave_inbox(tp);
    if (tp->seen)
        cuda_ipc__unregister(tp->segment);
    coll__cuda_go_out(was);
}

void cuda_ipc__close(struct coll__stream_tp *base, int is_orderly)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;

    if (!coll__is_inherited(base->generation)) {
        if (!is_orderly)
            cuda_ipc__release(base, COLL_ERR_PEER);
        give_back(tp);
        stop_sweeper(tp);
        pthread_mutex_destroy(&tp->lock);
    }
    cuda_ipc__forget_areas(tp);
    if (tp->file >= 0)
        close(tp->file);
    if (tp->segment)
        coll__segment_unmap(tp->segment);
    free(tp->peers);
    free(tp->local_of);
    free(tp);
}
