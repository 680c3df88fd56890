/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc_close.c - release streams, and free memory.
 *
 * The driver frees, unmaps and unregisters memory only when no stream of the context
 * waits any more (H100, queue/behind_memop).  So streams are released first.
 *
 * A rank's inbox, and lent buffers, may be freed when no rank has them mapped any more.
 * Other processes say so in the segment, or have died; ranks of the same process hold the
 * inbox.  Another rank may unmap very late, and freeing memory that it uses is undefined.
 * So memory that is still mapped is kept on a list of the process, which is checked when
 * communicators are made and destroyed, and when the library's device memory is freed.
 *
 * As long as a graph has runs, a rank gives nothing back: the graph's streams pass the
 * flags, which are released, and what they copy means nothing.
 */
#include "transports/cuda_ipc.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNMAP_SECONDS 1.0 /* for others to let go of an inbox */

/* ---- releasing ----------------------------------------------------------- */

/* Set the state first: streams that go on make worthless results.  A rank releases all
 * flags that its streams may wait for, also in graphs that are launched later. */
void cuda_ipc__release(struct coll__stream_tp *base, int status)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;
    int none = COLL_OK, me = tp->local_rank;

    if (coll__is_inherited(base->generation))
        return;
    atomic_compare_exchange_strong(&tp->failure, &none, status);
    if (!tp->map)
        return;
    none = COLL_OK;
    atomic_compare_exchange_strong(cuda_ipc_state(tp), &none, status);
    for (int r = 0; r < tp->local_size; r++)
        for (int s = 0; s < cuda_ipc_n_slots(tp) && r != me; s++) {
            atomic_store(&cuda_ipc_flag(tp, me, r, s)->released, 1);
            atomic_store(&cuda_ipc_flag(tp, r, me, s)->released, 1);
        }
}

/* ---- giving back --------------------------------------------------------- */

/* Unmap the peers' memory, which this rank's streams have passed. */
static void leave_peers(struct cuda_ipc *tp)
{
    cuda_ipc__leave_maps(tp);
    for (int r = 0; r < tp->local_size; r++) {
        struct cuda_ipc_peer *peer = &tp->peers[r];

        if (peer->is_mapped)
            coll__cuda_unimport(&peer->memory, peer->inbox);
        else if (peer->inbox)
            cuda_ipc__drop(peer->inbox);
        atomic_store(&cuda_ipc_note(tp, tp->local_rank, r)->has_mapped,
                     MAPPED_NOT);
    }
}

/* A zombie counts as ended: its mappings are gone. */
static int is_alive(int pid)
{
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0),
                         .events = POLLIN};
    int has_ended = end.fd < 0 ? errno == ESRCH : poll(&end, 1, 0) == 1;

    if (end.fd >= 0)
        close(end.fd);
    return !has_ended;
}

/* Has another rank mapped the inbox?  how: at least so. */
static int is_mapped(const struct cuda_ipc *tp, enum cuda_ipc_mapped *how)
{
    *how = MAPPED_NOT;
    for (int r = 0; tp->map && r < tp->local_size; r++) {
        int its =
            atomic_load(&cuda_ipc_note(tp, r, tp->local_rank)->has_mapped);

        if (its > (int)*how && is_alive(tp->peers[r].pid))
            *how = (enum cuda_ipc_mapped)its;
    }
    return *how != MAPPED_NOT;
}

/* Wait until the other ranks have unmapped the inbox; most close at the same time, but
 * graphs may need it for long.  Returns whether some have not. */
static int await_peers(const struct cuda_ipc *tp)
{
    double until = coll__now() + (tp->is_late ? 0 : UNMAP_SECONDS);
    enum cuda_ipc_mapped how;

    while (is_mapped(tp, &how) && how == MAPPED && coll__now() < until)
        usleep(100);
    return how != MAPPED_NOT;
}

/* Free the inbox, which no rank has mapped; its context is current. */
static void leave_inbox(struct cuda_ipc *tp)
{
    cuda_ipc__drop(tp->inbox);
    cuda_ipc__take_back_maps(tp);
}

/* Free device memory.  Returns whether others still have some of it mapped. */
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

/* A child cannot use the driver; this keeps the parent's list visible to leak
 * checkers. */
static struct cuda_ipc *volatile inherited;

static void forget_parents(void)
{
    inherited = kept;
    kept = NULL;
}

static void keep(struct cuda_ipc *tp)
{
    log_info("cuda",
             "%zu bytes of device memory are kept, and the lent buffers of the "
             "caller: another rank still has them mapped",
             cuda_ipc_inbox_len(tp));
    coll__lock(&lock);
    tp->next = kept;
    kept = tp;
    coll__unlock(&lock);
}

/* Remove from the list one transport state whose memory no rank has mapped any more,
 * and return it; or return NULL. */
static struct cuda_ipc *take_kept(void)
{
    struct cuda_ipc **at = &kept, *tp;
    enum cuda_ipc_mapped how;

    coll__lock(&lock);
    while (*at && is_mapped(*at, &how))
        at = &(*at)->next;
    tp = *at;
    if (tp)
        *at = tp->next;
    coll__unlock(&lock);
    return tp;
}

/* The lock is not held while the driver frees: it may wait for streams. */
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

int cuda_ipc__held_by(struct coll__stream_tp *base, void *stream)
{
    return coll__cuda_held_add(&((struct cuda_ipc *)base)->held, stream);
}

static struct cuda_ipc *of_held(struct coll__cuda_held *held)
{
    return (struct cuda_ipc *)((char *)held - offsetof(struct cuda_ipc, held));
}

/* Change the notes of what this rank has mapped; with MAPPED_FOR_GRAPHS the other ranks
 * need not wait for this one. */
static void note_all(const struct cuda_ipc *tp, enum cuda_ipc_mapped how)
{
    for (int r = 0; tp->map && r < tp->local_size; r++) {
        atomic_int *its = &cuda_ipc_note(tp, tp->local_rank, r)->has_mapped;

        if (atomic_load(its) != MAPPED_NOT)
            atomic_store(its, how);
    }
}

/* Give everything back; no graph needs it.  But after a reset the addresses may be those
 * of other memory by now. */
void cuda_ipc__end(struct coll__cuda_held *held)
{
    struct cuda_ipc *tp = of_held(held);

    if (tp->is_late && cuda_ipc__was_reset(&tp->base)) {
        note_all(tp, MAPPED_NOT);
        return;
    }
    if (give_back(tp))
        keep(tp);
    else
        tp_free(tp);
}

/* Wait for this rank's streams: flags that they wait for were released, or all runs have
 * ended. */
static void drain(const struct cuda_ipc *tp)
{
    int was;

    if (!tp->map || !tp->home.ctx || coll__cuda_go_in(&tp->home, &was))
        return;
    coll__cuda_drain();
    coll__cuda_go_out(was);
}

static void close_own(struct cuda_ipc *tp, int is_orderly)
{
    tp->is_late = coll__cuda_is_held(&tp->held);
    if (!is_orderly || tp->is_late)
        cuda_ipc__release(&tp->base, COLL_ERR_PEER);
    if (tp->is_late)
        note_all(tp, MAPPED_FOR_GRAPHS);
    drain(tp);
    coll__cuda_held_reclaim();
    cuda_ipc__reclaim();
    cuda_ipc__forget_registrations(tp);
    coll__cuda_held_leave(&tp->held);
}

void cuda_ipc__close(struct coll__stream_tp *base, int is_orderly)
{
    struct cuda_ipc *tp = (struct cuda_ipc *)base;

    if (tp->file >= 0)
        close(tp->file);
    tp->file = -1;
    if (!coll__is_inherited(base->generation)) {
        close_own(tp, is_orderly);
        return;
    }
    cuda_ipc__forget_registrations(tp);
    tp_free(tp);
}
