/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.c - messages between streams that the host carries: the transport's functions.
 *
 * The caller's thread plans and begins runs.  The owner of the host's transports alone
 * moves lanes.  Any thread may release the streams.
 */
#include "transports/proxy.h"
#include "lib/device/cuda.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <stdlib.h>

static struct proxy *of(const struct coll__stream_tp *tp)
{
    return (struct proxy *)tp;
}

/* ---- what streams need ------------------------------------------------------------ */

static int reaches(const struct coll__stream_tp *tp, int peer, char *why,
                   size_t len)
{
    (void)tp;
    (void)peer;
    (void)why;
    (void)len;
    return COLL_OK;
}

static int takes(struct coll__stream_tp *tp, void *stream,
                 const struct coll__cuda_place *place)
{
    struct coll__stream_tp *inner = of(tp)->inner;

    return inner ? inner->ops->takes(inner, stream, place) : COLL_OK;
}

static int was_reset(const struct coll__stream_tp *tp)
{
    const struct coll__stream_tp *inner = of(tp)->inner;

    return inner && inner->ops->was_reset(inner);
}

/* Its own runs hold it (proxy_run.c). */
static int hold(struct coll__stream_tp *tp, void *stream)
{
    struct coll__stream_tp *inner = of(tp)->inner;

    return inner ? inner->ops->hold(inner, stream) : COLL_OK;
}

static void find_slot(const struct coll__stream_tp *tp, int peer, int is_send,
                      int n, struct coll__slot *out)
{
    const struct proxy *p = of(tp);
    struct coll__message message = {.peer = peer, .n = n};

    if (p->base.is_carried[peer])
        proxy__slot(p, &message, is_send, out);
    else
        p->inner->ops->slot(p->inner, peer, is_send, n, out);
}

static void find_kernel_slot(const struct coll__stream_tp *tp, int peer,
                             int is_send, int n, struct coll__kernel_slot *out)
{
    struct coll__stream_tp *inner = of(tp)->inner;

    inner->ops->kernel_slot(inner, peer, is_send, n, out);
}

static int enroll(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                  void *ptr, size_t len)
{
    struct coll__stream_tp *inner = of(tp)->inner;
    int status = inner->ops->enroll(inner, env, ptr, len);

    tp->regs = inner->regs;
    return status;
}

static int dismiss(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                   void *ptr)
{
    struct coll__stream_tp *inner = of(tp)->inner;
    int status = inner->ops->dismiss(inner, env, ptr);

    tp->regs = inner->regs;
    return status;
}

/* ---- failures ------------------------------------------------------------------- */

static void release_own(const struct proxy *p, int are_sends)
{
    proxy__runs_release(p);
    proxy__lanes_release(p, are_sends);
}

static void release(struct coll__stream_tp *tp, int status)
{
    struct proxy *p = of(tp);
    int none = COLL_OK;

    if (coll__is_inherited(tp->generation))
        return;
    atomic_compare_exchange_strong(&p->failure, &none, status);
    release_own(p, 0);
    if (p->inner)
        p->inner->ops->release(p->inner, status);
}

static void let_go(struct coll__stream_tp *tp)
{
    if (!coll__is_inherited(tp->generation))
        release_own(of(tp), 1);
}

static int state(const struct coll__stream_tp *tp)
{
    const struct proxy *p = of(tp);
    int failure = atomic_load(&p->failure);

    return failure || !p->inner ? failure : p->inner->ops->state(p->inner);
}

static uint64_t held(const struct coll__stream_tp *tp, int *peer)
{
    const struct proxy *p = of(tp);
    uint64_t digest;

    *peer = -1;
    digest = p->inner ? p->inner->ops->held(p->inner, peer) : 0;
    return digest ^ proxy__lanes_held(p, peer);
}

/* ---- carrying --------------------------------------------------------------------- */

static int move(struct coll__stream_tp *tp, struct coll__moved *moved)
{
    struct proxy *p = of(tp);
    int status;

    *moved = (struct coll__moved){.is_any = 0};
    status = proxy__take(p, &moved->is_any);
    if (status == COLL_OK)
        status = proxy__lanes_move(p, moved);
    moved->is_idle = !p->active && !atomic_load(&p->n_begun);
    moved->has_graphs = atomic_load(&p->n_graphs) > 0;
    return status;
}

static void bytes(const struct coll__stream_tp *tp,
                  struct coll_mem_stats *stats)
{
    const struct proxy *p = of(tp);

    stats->pinned += proxy__lanes_bytes(p);
    if (p->inner)
        p->inner->ops->bytes(p->inner, stats);
}

/* ---- opened and closed ----------------------------------------------------------- */

void proxy__drop(struct proxy *p)
{
    if (atomic_fetch_sub(&p->n_users, 1) != 1)
        return;
    proxy__lanes_free(p);
    proxy__words_put(p);
    for (int b = 0; b < PROXY_BLOCKS; b++)
        free(p->runs[b]);
    free(p->free_ids);
    free(p->base.by_host);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Wait for the streams, which have been released: nothing else may use their slots
 * before. */
static void drain(const struct proxy *p)
{
    int was;

    if (!atomic_load(&p->words) || coll__cuda_go_in(&p->home, &was))
        return;
    coll__cuda_drain();
    coll__cuda_go_out(was);
}

/* In a child of the process that opened it: other threads may have been using it, so it is
 * kept, not freed. */
static void keep(struct proxy *p)
{
    static struct proxy *volatile inherited;

    inherited = p;
    (void)inherited;
}

static void close_own(struct proxy *p, int is_orderly)
{
    if (!is_orderly)
        release(&p->base, COLL_ERR_PEER);
    let_go(&p->base);
    if (!is_orderly)
        drain(p);
    proxy__lanes_empty(p);
    proxy__runs_empty(p);
}

/* Graphs that are launched later find their flags released, and the memory there. */
static void close_tp(struct coll__stream_tp *tp, int is_orderly)
{
    struct proxy *p = of(tp);
    struct coll__stream_tp *inner = p->inner;
    int is_inherited = coll__is_inherited(tp->generation);

    if (!is_inherited)
        close_own(p, is_orderly);
    p->inner = NULL;
    if (inner)
        inner->ops->close(inner, is_orderly);
    if (is_inherited)
        keep(p);
    else
        proxy__drop(p);
}

static const struct coll__stream_transport proxy = {
    .name = "proxy",
    .what = "slots in pinned memory, carried by the host's transports",
    .close = close_tp,
    .reaches = reaches,
    .takes = takes,
    .hold = hold,
    .was_reset = was_reset,
    .slot = find_slot,
    .kernel_slot = find_kernel_slot,
    .enroll = enroll,
    .dismiss = dismiss,
    .plan = proxy__plan,
    .begin = proxy__begin,
    .work = proxy__work,
    .forget = proxy__forget,
    .move = move,
    .let_go = let_go,
    .release = release,
    .state = state,
    .held = held,
    .bytes = bytes,
};

/* Find which ranks `inner` does not reach, once: each message asks.  Their messages go
 * through memory of the host. */
static void find_carried(struct proxy *p)
{
    char why[256];

    for (int r = 0; r < p->base.size; r++) {
        if (r == p->base.rank)
            continue;
        p->base.is_carried[r] =
            !p->inner || p->inner->ops->reaches(p->inner, r, why, sizeof(why));
        p->base.by_host[r] = p->base.is_carried[r] || p->inner->by_host[r];
        p->base.n_carried += p->base.is_carried[r];
    }
    p->base.is_carrier = p->base.n_carried > 0 || p->base.has_no_kernels;
    if (p->inner && !p->base.n_carried)
        p->base.kernel = p->inner->kernel;
}

/* marks: [2 * size], for by_host and is_carried. */
static void set_up(struct proxy *p, const struct coll__proxy_env *env,
                   unsigned char *marks)
{
    p->base = (struct coll__stream_tp){.ops = &proxy,
                                       .streams = &coll__cuda_streams,
                                       .rank = env->rank,
                                       .size = env->size,
                                       .generation = coll__generation_now(),
                                       .n_slots = env->n_slots,
                                       .slot = env->slot,
                                       .by_host = marks,
                                       .is_carried = marks + env->size,
                                       .has_no_kernels = env->has_no_kernels};
    p->env = *env;
    p->inner = env->inner;
    p->base.kernels = p->inner ? p->inner->kernels : NULL;
    find_carried(p);
    atomic_init(&p->n_users, 1);
    pthread_mutex_init(&p->lock, NULL);
    coll__ended_init(&p->ended);
}

int coll__proxy_open(const struct coll__proxy_env *env,
                     struct coll__stream_tp **tp)
{
    struct proxy *p = calloc(1, sizeof(*p));
    size_t n = (size_t)env->size;
    unsigned char *marks = calloc(n, 2);

    if (p)
        p->lanes = calloc(4 * n, sizeof(*p->lanes));
    if (!p || !p->lanes || !marks) {
        log_error("cuda", "no memory for the streams of %d ranks", env->size);
        if (p)
            free(p->lanes);
        free(marks);
        free(p);
        return COLL_ERR_NOMEM;
    }
    set_up(p, env, marks);
    *tp = &p->base;
    return COLL_OK;
}
