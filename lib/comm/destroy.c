/* SPDX-License-Identifier: BSD-3-Clause */
/* destroy.c - the end of a communicator.
 *
 * First all ranks exchange a final check: did all call the same operations, and was
 * every message received?  Then the transports close, and all ranks leave at once, so
 * that none takes another for dead.  The reactor moves both exchanges.
 *
 * Ranks may destroy their communicators in different orders.  Then no rank can wait
 * for the others in one communicator.  So while this process has other communicators,
 * the call waits a moment only; after that the destruction is deferred (deferred.c).
 * If the final check fails then, the next call that destroys a communicator returns
 * it.
 */
#include "lib/comm/destroy.h"
#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/comm/links.h"
#include "lib/comm/shrink.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/sort.h"
#include "lib/util/util.h"
#include "lib/ctrl/ctrl.h"
#include "transports/stream.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GRACE 10e-3 /* s, for ranks that call at about the same time */
#define SLICE 1e-3  /* s, for this communicator beside the deferred ones */

/* What ranks compare at the end: did all call the same operations, and was every
 * message received?  And how long were they in the calls that end on all of them
 * together?  Who came late was in them for a shorter time. */
struct coll__final_check {
    uint64_t n_started, hash, n_sent, n_received, n_joint;
    double in_joint;
};

/* ---- the two exchanges ----------------------------------------------------- */

static int compare(const struct coll__final_check *all, int size)
{
    uint64_t n_sent = 0, n_received = 0;

    for (int r = 0; r < size; r++) {
        n_sent += all[r].n_sent;
        n_received += all[r].n_received;
        if (all[r].n_started == all[0].n_started && all[r].hash == all[0].hash)
            continue;
        log_error(
            "comm",
            "the ranks disagree: the %llu operations of rank %d differ from "
            "the %llu of rank 0, so results may be wrong; all ranks must call "
            "the same operations with the same root, counts and type",
            (unsigned long long)all[r].n_started, r,
            (unsigned long long)all[0].n_started);
        return COLL_ERR_MISMATCH;
    }
    if (n_sent == n_received)
        return COLL_OK;
    log_error("comm",
              "the ranks disagree: they sent %llu messages and "
              "received %llu; each coll_send() needs its coll_recv()",
              (unsigned long long)n_sent, (unsigned long long)n_received);
    return COLL_ERR_MISMATCH;
}

/* Note how late this rank came to its calls on the average, if all ranks were traced. */
static void note_lateness(const struct coll_comm *comm)
{
    const struct coll__final_check *all = comm->ending.all;
    uint64_t n = comm->records.n_joint;
    double *begun, median;

    for (int r = 0; r < comm->size; r++)
        if (!n || all[r].n_joint != n)
            return;
    begun = malloc((size_t)comm->size * sizeof(*begun));
    if (!begun)
        return;
    for (int r = 0; r < comm->size; r++) /* before the end */
        begun[r] = -all[r].in_joint;
    median = lower_median(begun, (size_t)comm->size);
    free(begun);
    coll__trace_late(comm->records.metrics,
                     max_double(0, -comm->records.in_joint - median), n);
}

/* Messages of streams that are compared as they are called count in SERIES_COMPARED. */
static int is_counted(const struct coll_comm *comm, int series, int rank)
{
    return series != SERIES_STREAM || !comm->settings.is_checked ||
           coll__stream_carries(comm->links.routes.streams, rank);
}

static void count_messages(const struct coll_comm *comm, int series,
                           struct coll__final_check *mine)
{
    for (int r = 0; r < comm->size; r++) {
        if (!is_counted(comm, series, r))
            continue;
        mine->n_sent += comm->calls.n_sent[series * comm->size + r];
        mine->n_received += comm->calls.n_received[series * comm->size + r];
    }
}

static int start_final_check(struct coll_comm *comm)
{
    struct coll__final_check mine = {0};

    comm->ending.all = calloc((size_t)comm->size, sizeof(*comm->ending.all));
    if (!comm->ending.all) {
        log_error("comm", "no memory for %d ranks", comm->size);
        return COLL_ERR_NOMEM;
    }
    for (int s = 0; s < N_HISTORIES; s++) {
        mine.n_started += atomic_load(&comm->calls.history[s].n_started);
        mine.hash = mine.hash * 3 + comm->calls.history[s].hash;
    }
    for (int s = 0; s < N_SERIES; s++)
        count_messages(comm, s, &mine);
    mine.n_joint = comm->records.n_joint;
    mine.in_joint = comm->records.in_joint;
    atomic_store_explicit(&comm->calls.apart, "coll_comm_destroy",
                          memory_order_release);
    return coll__ctrl_exchange_start(comm->ctrl, &mine, sizeof(mine));
}

/* Note the first error of a destruction, which coll_comm_destroy() returns, maybe much
 * later. */
static void note_wrong(struct coll_comm *comm, int rc)
{
    if (!rc || comm->ending.rc)
        return;
    comm->ending.rc = rc;
    snprintf(comm->ending.why, sizeof(comm->ending.why), "%s",
             coll_last_error());
}

/* Free it.  The other ranks notice if it did not leave in order. */
static int end(struct coll_comm *comm, int status)
{
    int rc = comm->ending.rc ? comm->ending.rc : status;

    if (comm->ending.rc)
        coll__log_set_error(comm->ending.why);
    coll__attachments_step(LIFE_END, comm);
    coll__comm_free(comm);
    return rc;
}

static int end_at_once(struct coll_comm *comm)
{
    coll__comm_links_close(comm, 0);
    return end(comm, coll__ctrl_close(comm->ctrl, 0, comm->timeout));
}

/* Wait until `until` for all final checks, compare them, and begin to leave.
 * COLL_IN_PROGRESS, or a status. */
static int end_final_check(struct coll_comm *comm, double until, double timeout)
{
    int rc =
        coll__ctrl_exchange_end(comm->ctrl, comm->ending.all, until, timeout);

    if (rc == COLL_IN_PROGRESS)
        return rc;
    if (rc == COLL_OK)
        rc = compare(comm->ending.all, comm->size);
    if (rc == COLL_OK)
        note_lateness(comm);
    note_wrong(comm, rc);
    if (rc && rc != COLL_ERR_MISMATCH)
        return rc;
    coll__comm_links_close(comm, 1);
    rc = coll__ctrl_close_start(comm->ctrl);
    comm->ending.is_released = rc == COLL_OK;
    return rc;
}

int coll__destroy_go_on(struct coll_comm *comm, double until, double since,
                        int is_last)
{
    int is_due = until >= since + comm->timeout, rc;
    double timeout = is_due ? comm->timeout : -1;

    if (!comm->ending.is_released) {
        rc = end_final_check(comm, until, timeout);
        if (rc)
            return rc == COLL_IN_PROGRESS ? rc : end_at_once(comm);
    }
    rc = coll__ctrl_close_end(comm->ctrl, until, timeout, is_last);
    return rc == COLL_IN_PROGRESS ? rc : end(comm, rc);
}

/* ---- destroying ------------------------------------------------------------- */

/* The last communicator of the process: wait for it and for all deferred ones. */
static int wait_for_all(struct coll_comm *comm)
{
    double since = coll__now();
    int rc;

    coll__deferred_take_over();
    while ((rc = coll__destroy_go_on(comm, coll__now() + SLICE, since, 1)) ==
           COLL_IN_PROGRESS)
        coll__deferred_move(since);
    while (coll__deferred_move(since))
        ;
    return coll__deferred_wrong(rc);
}

/* Wait a moment. */
static int wait_shortly(struct coll_comm *comm)
{
    double until = coll__now() + (comm->is_deferred ? 0 : GRACE);
    int rc;

    coll__deferred_look();
    rc = coll__destroy_go_on(comm, until, INFINITY, 0);
    if (rc == COLL_IN_PROGRESS) {
        coll__deferred_put(comm);
        rc = COLL_OK;
    }
    return coll__deferred_wrong(rc);
}

static int leave(struct coll_comm *comm)
{
    int rc = start_final_check(comm);

    if (rc) {
        note_wrong(comm, rc);
        return end_at_once(comm);
    }
    return coll__deferred_is_last(comm) ? wait_for_all(comm)
                                        : wait_shortly(comm);
}

void coll__comm_abandon(struct coll_comm *comm)
{
    coll__comm_shrink_end(comm);
    coll__ctrl_close(comm->ctrl, 0, 0);
    coll__comm_free(comm);
}

int coll__comm_destroy(struct coll_comm *comm)
{
    int rc = coll__comm_status(comm);

    coll__comm_shrink_end(comm);
    coll__comm_await_tellers(comm);
    if (rc == COLL_OK)
        rc = coll__attachments_step(LIFE_DRAIN, comm);
    note_wrong(comm, rc);
    note_wrong(comm, coll__attachments_step(LIFE_LEAVE, comm));
    return rc ? end_at_once(comm) : leave(comm);
}
