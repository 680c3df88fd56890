/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - notices streams that stand still; watch.h says why. */
#include "lib/stream/watch.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/stall.h"
#include "lib/device/cuda_stage.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/util.h"
#include "transports/stream.h"

#include <stdlib.h>

#define PERIOD 0.1 /* s, between two looks at one communicator */

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);
static struct coll__watch *all; /* under the lock */
static pthread_cond_t given;    /* likewise: a thread has looked */
static pthread_once_t once = PTHREAD_ONCE_INIT;

atomic_int coll__watch_n;

/* A child has no streams. */
static void forget_parents(void)
{
    all = NULL;
    atomic_store(&coll__watch_n, 0);
    coll__cond_init(&given);
}

/* ---- notes of the calls ---------------------------------------------------- */

static uint64_t n_noted(const struct coll__watch *watch)
{
    return atomic_load_explicit(&watch->calls.n_started, memory_order_acquire);
}

static uint32_t number_of(const struct coll__watch *watch, uint64_t call)
{
    return atomic_load_explicit(&watch->number[call % COLL__HISTORY],
                                memory_order_relaxed);
}

static int has_finished(const struct coll__watch *watch, uint64_t call)
{
    return coll__stage_is_at(watch->stage, STAGE_FINISHED,
                             number_of(watch, call));
}

/* Return the count of messages between this rank and the message's peer, in this
 * direction; NULL for a collective. */
static _Atomic uint64_t *messages(struct coll_comm *comm,
                                  const struct coll__signature *sig)
{
    if (!coll__is_p2p((enum coll_collective)sig->collective))
        return NULL;
    return (sig->collective == COLL_SEND ? comm->calls.n_sent
                                         : comm->calls.n_received) +
           SERIES_STREAM * comm->size + sig->root;
}

/* All ranks number collectives alike; two peers number their messages alike. */
static uint64_t next_seq(struct coll_comm *comm,
                         const struct coll__signature *sig)
{
    _Atomic uint64_t *n = messages(comm, sig);

    if (!n)
        n = &comm->calls.history[SERIES_STREAM].n_started;
    return 1 + atomic_load_explicit(n, memory_order_relaxed);
}

static void count(struct coll_comm *comm, const struct coll__signature *sig,
                  uint64_t user_tag)
{
    _Atomic uint64_t *n = messages(comm, sig);

    if (n)
        atomic_store_explicit(n, sig->seq, memory_order_relaxed);
    else
        coll__history_start(&comm->calls.history[SERIES_STREAM], sig, user_tag);
}

void coll__watch_note(struct coll__watch *watch, struct coll__signature sig,
                      uint64_t user_tag, uint32_t number)
{
    uint64_t call = 1 + n_noted(watch);

    sig.seq = next_seq(watch->comm, &sig);
    atomic_store_explicit(&watch->number[call % COLL__HISTORY], number,
                          memory_order_relaxed);
    count(watch->comm, &sig, user_tag);
    coll__history_start(&watch->calls, &sig, user_tag);
}

void coll__watch_drop(struct coll__watch *watch, int n, uint32_t before)
{
    uint64_t call = n_noted(watch);

    for (; n > 0; n--, call--)
        atomic_store_explicit(&watch->number[call % COLL__HISTORY], before,
                              memory_order_relaxed);
}

/* In the collectives listed, each rank needs data of every other rank.  With a count of
 * 0, the slots are empty. */
void coll__watch_capture(struct coll__watch *watch,
                         enum coll_collective collective)
{
    switch (collective) {
    case COLL_ALLREDUCE:
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
    case COLL_BARRIER:
        break;
    default:
        atomic_store(&watch->has_loose_graph, 1);
    }
}

int coll__watch_is_behind(const struct coll__watch *watch)
{
    uint64_t n = n_noted(watch);

    return n && !has_finished(watch, n);
}

/* ---- looking --------------------------------------------------------------- */

/* Publish the last finished collective, for ranks that ask how far this rank is. */
static void tell_finished(struct coll__watch *watch, uint64_t from, uint64_t to)
{
    struct coll__signature sig;

    for (; to >= from && coll__history_get(&watch->calls, to, &sig); to--)
        if (!coll__is_p2p((enum coll_collective)sig.collective)) {
            coll__history_end(&watch->comm->calls.history[SERIES_STREAM],
                              sig.seq);
            return;
        }
}

/* Go on to what has not finished. */
static void find_first(struct coll__watch *watch, uint64_t n)
{
    uint64_t before = watch->first;

    if (n && has_finished(watch, n))
        watch->first = n + 1;
    while (watch->first <= n && has_finished(watch, watch->first))
        watch->first++;
    if (watch->first == before)
        return;
    watch->patience.since = 0;
    watch->is_clean = 0;
    if (watch->standing.stall.said)
        coll__stall_end(&watch->standing);
    tell_finished(watch, before, watch->first - 1);
}

/* Look into the slots: a rank that has not taken its message, or -1. */
static int find_peer(struct coll__watch *watch)
{
    const struct coll__stream_tp *tp = watch->comm->links.routes.streams;
    int peer;
    uint64_t digest = tp->ops->held(tp, &peer);

    if (digest != watch->digest)
        watch->patience.since = 0;
    watch->digest = digest;
    return peer;
}

/* Has the stage come to the first unfinished call? */
static int is_next(const struct coll__watch *watch)
{
    return coll__stage_is_at(watch->stage, STAGE_FINISHED,
                             number_of(watch, watch->first) - 1);
}

/* Write the call to ask about into standing.sig.  For a group's messages it is the send
 * that `peer` has not taken, if there is one.  0: the call is too old to be known. */
static int find_standing(struct coll__watch *watch, uint64_t n, int peer)
{
    uint32_t number = number_of(watch, watch->first);
    struct coll__signature sig;

    if (!coll__history_get(&watch->calls, watch->first, &watch->standing.sig))
        return 0;
    for (uint64_t call = watch->first;
         call <= n && number_of(watch, call) == number; call++)
        if (coll__history_get(&watch->calls, call, &sig) &&
            sig.collective == COLL_SEND && sig.root == peer) {
            watch->standing.sig = sig;
            break;
        }
    watch->standing.user_tag =
        coll__history_user_tag(&watch->calls, &watch->standing.sig);
    watch->standing.is_p2p =
        coll__is_p2p((enum coll_collective)watch->standing.sig.collective);
    return 1;
}

/* Of a graph nothing is noted. */
static void consider_graph(struct coll__watch *watch, int peer)
{
    struct coll_comm *comm = watch->comm;
    double now = coll__now();

    if (!watch->is_clean || atomic_load(&watch->has_loose_graph))
        return;
    if (!watch->patience.since)
        watch->patience.since = now;
    if (now - watch->patience.since > comm->timeout)
        coll__comm_fail(comm, COLL_ERR_TIMEOUT,
                        "a graph that rank %d launched made no progress within "
                        "%g s: rank %d has not received its message; launch "
                        "the same graphs in the same order on all ranks",
                        comm->rank, comm->timeout, peer);
}

static void look(struct coll__watch *watch)
{
    struct coll_comm *comm = watch->comm;
    uint64_t n = n_noted(watch);
    int peer, rc;

    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return;
    find_first(watch, n);
    peer = find_peer(watch);
    if (watch->first > n && peer < 0) {
        watch->is_clean = 1;
        return;
    }
    rc = coll__stage_probe(watch->stage);
    if (rc < 0)
        coll__comm_fail(comm, rc, "%s", coll_last_error());
    else if (watch->first > n)
        consider_graph(watch, peer);
    else if (is_next(watch) && find_standing(watch, n, peer))
        coll__stall_check_stream(&watch->standing, &watch->patience);
}

/* Find a watch that no thread has checked for a while; with the lock. */
static struct coll__watch *find_due(double now)
{
    struct coll__watch *watch = all;

    while (watch && (watch->is_taken || now - watch->looked < PERIOD))
        watch = watch->next;
    return watch;
}

/* Checks run without the list's lock, since they take other locks. */
void coll__watch_look(void)
{
    static double looked; /* the progress thread's */
    double now = coll__now();
    struct coll__watch *watch;

    if (now - looked < PERIOD / 2)
        return;
    looked = now;
    coll__lock(&lock);
    while ((watch = find_due(now))) {
        watch->is_taken = 1;
        watch->looked = now;
        coll__unlock(&lock);
        look(watch);
        coll__lock(&lock);
        watch->is_taken = 0;
        pthread_cond_broadcast(&given);
    }
    coll__unlock(&lock);
}

/* ---- the list -------------------------------------------------------------- */

static void init(void) { coll__cond_init(&given); }

int coll__watch_begin(struct coll_comm *comm, const struct coll__stage *stage,
                      struct coll__watch **out)
{
    struct coll__watch *watch = calloc(1, sizeof(*watch));

    if (!watch) {
        log_error("api", "no memory for a communicator's streams");
        return COLL_ERR_NOMEM;
    }
    pthread_once(&once, init);
    watch->comm = watch->standing.comm = comm;
    watch->stage = stage;
    watch->first = 1;
    watch->is_clean = 1;
    coll__lock(&lock);
    watch->next = all;
    watch->at = &all;
    if (all)
        all->at = &watch->next;
    all = watch;
    atomic_fetch_add(&coll__watch_n, 1);
    coll__unlock(&lock);
    *out = watch;
    return COLL_OK;
}

void coll__watch_end(struct coll__watch *watch)
{
    coll__lock(&lock);
    while (watch->is_taken)
        coll__lock_wait(&lock, &given, coll__now() + 3600);
    if (watch->at) {
        *watch->at = watch->next;
        if (watch->next)
            watch->next->at = watch->at;
        watch->at = NULL;
        atomic_fetch_sub(&coll__watch_n, 1);
    }
    coll__unlock(&lock);
}
