/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_close.c - letting streams go, and giving memory back.
 *
 * The driver frees, unmaps and unregisters only when no stream of the context waits
 * any more (H100, queue/behind_memop).  So a thread goes on releasing until all is
 * given back; it also serves what was captured and is launched after a failure.
 *
 * A rank's inbox may be freed when nobody has it mapped any more, and so may what is
 * lent: other processes say so in the segment, or have died; ranks of its own process
 * hold it.  Who is late to let go may be so for any time, and to free what others use
 * is undefined.  So what is still mapped is kept on a list of the process, to be looked
 * at again whenever memory of devices is asked for or given back.
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

/* ---- giving back --------------------------------------------------------- */

/* What this rank's streams still do there ends first. */
static void leave_peers(struct cuda_ipc *tp)
{
    coll__cuda_drain();
    cuda_ipc__leave_maps(tp);
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
    for (int r = 0; tp->map && r < tp->local_size; r++)
        if (atomic_load(&cuda_ipc_note(tp, r, tp->local_rank)->has_mapped) &&
            is_alive(tp->peers[r].pid))
            return 1;
    return 0;
}

/* They let go as they leave, mostly at the same time.  Returns whether some have not. */
static int await_peers(const struct cuda_ipc *tp)
{
    double until = coll__now() + UNMAP_SECONDS;
    int is_late;

    while ((is_late = is_mapped(tp)) && coll__now() < until)
        usleep(100);
    return is_late;
}

/* Which nobody has mapped, in the place. */
static void leave_inbox(struct cuda_ipc *tp)
{
    cuda_ipc__drop(tp->inbox);
    cuda_ipc__take_back_maps(tp);
}

/* Returns whether others still have some of it mapped. */
static int give_back(struct cuda_ipc *tp)
{
    int was, is_kept;

    if (!tp->home.ctx || coll__cuda_go_in(&tp->home, &was))
        return 0;
    if (tp->map)
        leave_peers(tp);
    is_kept = tp->inbox && await_peers(tp);
    if (tp->inbox && !is_kept)
        leave_inbox(tp);
    if (tp->seen)
        cuda_ipc__unregister(tp->segment);
    if (tp->host_seen)
        cuda_ipc__unregister(tp->host);
    coll__cuda_go_out(was);
    return is_kept;
}

static void tp_free(struct cuda_ipc *tp)
{
    cuda_ipc__forget_maps(tp);
    if (tp->segment)
        coll__segment_unmap(tp->segment);
    if (tp->host)
        coll__segment_unmap(tp->host);
    free(tp->base.by_host);
    free(tp->peers);
    free(tp->local_of);
    free(tp);
}

/* ---- what is still mapped -------------------------------------------------- */

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);
static struct cuda_ipc *kept; /* under the lock */

/* A child has no driver; what its parent keeps is no leak. */
static struct cuda_ipc *volatile inherited;

static void forget_parents(void)
{
    inherited = kept;
    kept = NULL;
}

static void keep(struct cuda_ipc *tp)
{
    log_info("cuda",
             "%zu bytes of device memory are kept, and what of the caller's "
             "buffers is lent: another rank has not let go of them",
             cuda_ipc_inbox_len(tp));
    coll__lock(&lock);
    tp->next = kept;
    kept = tp;
    coll__unlock(&lock);
}

/* One that nobody has mapped any more, taken out; or NULL. */
static struct cuda_ipc *take_kept(void)
{
    struct cuda_ipc **at = &kept, *tp;

    coll__lock(&lock);
    while (*at && is_mapped(*at))
        at = &(*at)->next;
    tp = *at;
    if (tp)
        *at = tp->next;
    coll__unlock(&lock);
    return tp;
}

/* The driver may wait for streams: not with the lock. */
void cuda_ipc__reclaim(void)
{
    struct cuda_ipc *tp;
    int was;

    while ((tp = take_kept())) {
        if (!coll__cuda_go_in(&tp->home, &was)) {
            leave_inbox(tp);
            coll__cuda_go_out(was);
        }
        tp_free(tp);
    }
}

/* ---- closing --------------------------------------------------------------- */

void cuda_ipc__close(struct coll__stream_tp *base, int is_orderly)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    int is_kept = 0;

    if (!coll__is_inherited(base->generation)) {
        if (!is_orderly)
            cuda_ipc__release(base, COLL_ERR_PEER);
        cuda_ipc__reclaim();
        is_kept = give_back(tp);
        stop_sweeper(tp);
        pthread_mutex_destroy(&tp->lock);
    }
    cuda_ipc__forget_areas(tp);
    if (tp->file >= 0)
        close(tp->file);
    if (is_kept)
        keep(tp);
    else
        tp_free(tp);
}
