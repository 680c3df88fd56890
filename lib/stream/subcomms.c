/* SPDX-License-Identifier: BSD-3-Clause */
/* subcomms.c - a communicator and its sub-communicators are the members of one struct
 * coll__subcomms: if a member fails, all members fail.
 *
 * Members find each other under the struct's lock.  The parent removes all members from
 * the struct before it destroys the sub-communicators, so a thread with the lock may
 * use every member that it finds.  A failing member fails the others under the lock;
 * the locks of failures and of the reactor are taken after it.  All enqueued operations
 * end before the members are removed, so that the parent hears of each failure.
 */
#include "lib/stream/subcomms.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/destroy.h"
#include "lib/comm/fail.h"
#include "lib/ctrl/ctrl.h"
#include "lib/stream/calls.h"
#include "lib/run/owner.h"
#include "lib/trace/log.h"

#include <stdio.h>
#include <stdlib.h>

struct coll__subcomms {
    pthread_mutex_t lock;
    struct coll_comm *whole, *parts[N_SUBCOMMS]; /* NULL: they leave */
    atomic_int n_users;
};

static struct coll__subcomms *subcomms_of(const struct coll_comm *comm)
{
    return comm->stream ? atomic_load_explicit(&comm->stream->subcomms,
                                               memory_order_acquire)
                        : NULL;
}

/* Make comm a member.  From then on reactor threads may use the struct at any time. */
static void take(struct coll_comm *comm, struct coll__subcomms *subcomms)
{
    atomic_fetch_add(&subcomms->n_users, 1);
    atomic_store_explicit(&comm->stream->subcomms, subcomms,
                          memory_order_release);
}

int coll__subcomms_make(struct coll_comm *whole,
                        struct coll_comm *const parts[N_SUBCOMMS])
{
    struct coll__subcomms *subcomms = calloc(1, sizeof(*subcomms));

    if (!subcomms) {
        log_error("comm", "no memory for a communicator");
        return COLL_ERR_NOMEM;
    }
    pthread_mutex_init(&subcomms->lock, NULL);
    pthread_mutex_lock(&subcomms->lock);
    subcomms->whole = whole;
    take(whole, subcomms);
    for (int i = 0; i < N_SUBCOMMS; i++) {
        subcomms->parts[i] = parts[i];
        parts[i]->is_subcomm = 1;
        take(parts[i], subcomms);
    }
    pthread_mutex_unlock(&subcomms->lock);
    return COLL_OK;
}

/* No lock: only the caller's thread removes members. */
struct coll_comm *coll__subcomm(const struct coll_comm *comm, int part)
{
    const struct coll__subcomms *subcomms = subcomms_of(comm);

    return subcomms && subcomms->whole == comm ? subcomms->parts[part] : NULL;
}

/* Fail a member and tell its other ranks, which may otherwise see this rank leave before
 * they hear of the failure. */
static void fail(struct coll_comm *comm, int status, const char *text)
{
    if (coll__comm_note_failure(comm, status, text))
        coll__ctrl_abort(comm->ctrl, status, text);
}

void coll__subcomms_fail(struct coll_comm *comm, int status, const char *text)
{
    struct coll__subcomms *subcomms = subcomms_of(comm);
    char part_text[COLL__TEXT_MAX];

    if (!subcomms)
        return;
    snprintf(part_text, sizeof(part_text), "among all ranks: %.*s",
             COLL__TEXT_MAX - 32, text);
    pthread_mutex_lock(&subcomms->lock);
    if (subcomms->whole && subcomms->whole != comm)
        fail(subcomms->whole, status, text);
    for (int i = 0; i < N_SUBCOMMS; i++)
        if (subcomms->parts[i] && subcomms->parts[i] != comm)
            fail(subcomms->parts[i], status, part_text);
    pthread_mutex_unlock(&subcomms->lock);
}

void coll__subcomms_bytes(const struct coll_comm *comm,
                          struct coll_mem_stats *stats)
{
    for (int i = 0; i < N_SUBCOMMS; i++) {
        struct coll_comm *part = coll__subcomm(comm, i);

        if (!part)
            continue;
        coll__owner_acquire(part);
        coll__comm_bytes(part, stats);
        coll__owner_release(part);
    }
}

int coll__subcomm_destroy(struct coll_comm *part)
{
    coll__owner_acquire(part);
    return coll__comm_destroy(part);
}

static int drain(struct coll_comm *part)
{
    int rc;

    coll__owner_acquire(part);
    rc = coll__stream_drain(part);
    coll__owner_release(part);
    return rc;
}

/* Drain the inter-host one first: it has deadlines, and intra-host operations may wait
 * for it. */
int coll__subcomms_drain(struct coll_comm *comm)
{
    for (int i = N_SUBCOMMS - 1; i >= 0; i--) {
        struct coll_comm *part = coll__subcomm(comm, i);
        int rc = part ? drain(part) : COLL_OK;

        if (rc)
            return coll__comm_fail(comm, rc, "%s", coll_last_error());
    }
    return coll__comm_status(comm);
}

int coll__subcomms_leave(struct coll_comm *comm)
{
    struct coll__subcomms *subcomms = subcomms_of(comm);
    struct coll_comm *parts[N_SUBCOMMS];
    int rc = COLL_OK;

    if (!subcomms || subcomms->whole != comm)
        return COLL_OK;
    if (coll__comm_status(
            comm)) /* the failing thread may not have told the members yet */
        coll__subcomms_fail(comm, coll__comm_status(comm), comm->failure.text);
    pthread_mutex_lock(&subcomms->lock);
    subcomms->whole = NULL;
    for (int i = 0; i < N_SUBCOMMS; i++) {
        parts[i] = subcomms->parts[i];
        subcomms->parts[i] = NULL;
    }
    pthread_mutex_unlock(&subcomms->lock);
    for (int i = 0; i < N_SUBCOMMS; i++) {
        int status = coll__subcomm_destroy(parts[i]);

        rc = rc ? rc : status;
    }
    return rc;
}

void coll__subcomms_drop(struct coll_comm *comm)
{
    struct coll__subcomms *subcomms = subcomms_of(comm);

    if (!subcomms)
        return;
    if (coll__comm_is_inherited(comm) && subcomms->whole == comm)
        for (int i = 0; i < N_SUBCOMMS; i++)
            coll__comm_abandon(subcomms->parts[i]);
    atomic_store_explicit(&comm->stream->subcomms, NULL, memory_order_relaxed);
    if (atomic_fetch_sub(&subcomms->n_users, 1) > 1)
        return;
    if (!coll__comm_is_inherited(comm)) /* it may be held by who is gone */
        pthread_mutex_destroy(&subcomms->lock);
    free(subcomms);
}
