/* SPDX-License-Identifier: BSD-3-Clause */
/* fail.c - how a communicator fails, and the sentence that says why.
 *
 * The first failure stays: it writes the text and then the status.  Each later call
 * returns that status and sets that sentence as its thread's last error.
 */
#include "lib/comm/fail.h"
#include "lib/comm/advice.h"
#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/comm/algorithm_id.h"
#include "lib/comm/members.h"
#include "lib/exec/sleep.h"
#include "lib/trace/log.h"
#include "lib/util/text.h"
#include "lib/util/util.h"
#include "lib/ctrl/ctrl.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* How long to wait, after a connection broke, for the control connections to say which
 * process ended. */
#define NEWS_S 0.5

int coll__comm_note_failure(struct coll_comm *comm, int status,
                            const char *text)
{
    struct coll__failure *f = &comm->failure;
    char group[COLL__TEXT_MAX / 2];
    int is_first;

    coll__members_text(comm, group, sizeof(group));
    pthread_mutex_lock(&f->lock);
    is_first =
        atomic_load_explicit(&f->status, memory_order_relaxed) == COLL_OK;
    if (is_first) {
        snprintf(f->text, sizeof(f->text), "%s%s", group, text);
        atomic_store_explicit(&f->status, status, memory_order_release);
        coll__attachments_fail(comm, status);
    }
    pthread_mutex_unlock(&f->lock);
    if (is_first)
        coll__sleep_news();
    return is_first;
}

void coll__comm_set_failure(struct coll_comm *comm, int status,
                            const char *text)
{
    if (!coll__comm_note_failure(comm, status, text))
        return;
    log_info("comm", "failed: %s", text);
    coll__recorder_write(&comm->records.recorder);
}

int coll__comm_status(struct coll_comm *comm)
{
    int status =
        atomic_load_explicit(&comm->failure.status, memory_order_acquire);

    if (status != COLL_OK)
        log_error("comm", "%s", comm->failure.text);
    return status;
}

int coll__comm_fail(struct coll_comm *comm, int status, const char *format, ...)
{
    char text[COLL__TEXT_MAX];
    va_list args;
    int rc;

    va_start(args, format);
    coll__vprint(text, sizeof(text), format, args);
    va_end(args);
    /* Who sees the failure, by acquire, also sees that this thread is here. */
    atomic_fetch_add_explicit(&comm->failure.n_telling, 1,
                              memory_order_relaxed);
    if (coll__comm_note_failure(comm, status, text)) {
        coll__ctrl_abort(comm->ctrl, status, text);
        coll__recorder_write(&comm->records.recorder);
    }
    rc = coll__comm_status(comm);
    atomic_fetch_sub_explicit(&comm->failure.n_telling, 1,
                              memory_order_release);
    return rc;
}

void coll__comm_await_tellers(const struct coll_comm *comm)
{
    while (atomic_load_explicit(&comm->failure.n_telling, memory_order_acquire))
        sched_yield();
}

static int is_message(const struct coll__signature *sig)
{
    return coll__is_p2p((enum coll_collective)sig->collective);
}

/* Has this rank started the collective of that number? */
static int has_come_to(struct coll_comm *comm,
                       const struct coll__signature *sig)
{
    return sig->seq <=
           atomic_load_explicit(&coll__history_of(comm, sig)->n_started,
                                memory_order_relaxed);
}

/* Find this rank's counterpart of `theirs`, a call of another rank: the collective with
 * the same number, or `ours` if this rank has not reached that number.  Returns 0 if the
 * history has forgotten it, after COLL__HISTORY later calls. */
static int find_ours(struct coll_comm *comm, const struct coll__signature *ours,
                     const struct coll__signature *theirs,
                     struct coll__signature *mine)
{
    if (!ours || (ours->seq != theirs->seq && !is_message(ours) &&
                  !is_message(theirs) && has_come_to(comm, theirs)))
        return coll__history_get(coll__history_of(comm, theirs), theirs->seq,
                                 mine);
    *mine = *ours;
    return 1;
}

/* Describe a call that the history has forgotten. */
static void describe_forgotten(const struct coll__signature *theirs,
                               char text[COLL__SIGNATURE_TEXT])
{
    snprintf(text, COLL__SIGNATURE_TEXT,
             "something else as its #%llu, more than %d calls ago",
             (unsigned long long)theirs->seq, COLL__HISTORY);
}

/* Do the ranks run the same call with different algorithms?  *mine is this rank's
 * signature. */
static int differs_in_way(struct coll_comm *comm,
                          const struct coll__signature *ours,
                          const struct coll__signature *theirs,
                          struct coll__signature *mine)
{
    if (is_message(theirs))
        return 0;
    if (ours && ours->seq == theirs->seq)
        *mine = *ours;
    else if (!coll__history_get(coll__history_of(comm, theirs), theirs->seq,
                                mine))
        return 0;
    return coll__algorithm_ids_differ(mine, theirs);
}

/* Fail: the ranks run the same call by different algorithms. */
static int other_way(struct coll_comm *comm, const struct coll__signature *mine,
                     int peer, const struct coll__signature *theirs)
{
    char here[COLL__SIGNATURE_TEXT], there[COLL__SIGNATURE_TEXT];

    coll__algorithm_id_describe(mine, here, sizeof(here));
    coll__algorithm_id_describe(theirs, there, sizeof(there));
    return coll__comm_fail(comm, COLL_ERR_MISMATCH, COLL__DISAGREE, peer, there,
                           comm->rank, here, COLL__SAME_ALGORITHM);
}

/* Fail: two ranks called different operations.  `ours` is the call that received a
 * message of the call `theirs`, or NULL if no call with that number runs here. */
static int mismatch(struct coll_comm *comm, const struct coll__signature *ours,
                    int peer, const struct coll__signature *theirs)
{
    char here[COLL__SIGNATURE_TEXT], there[COLL__SIGNATURE_TEXT];
    int are_messages = ours && is_message(ours) && is_message(theirs);
    const char *advice = COLL__SAME_CALLS;
    struct coll__signature mine;

    if (differs_in_way(comm, ours, theirs, &mine))
        return other_way(comm, &mine, peer, theirs);
    if (find_ours(comm, ours, theirs, &mine)) {
        coll__history_describe(coll__history_of(comm, &mine), &mine, here,
                               sizeof(here));
        advice = are_messages ? COLL__SAME_SIZE : coll__advice(&mine, theirs);
    } else {
        describe_forgotten(theirs, here);
    }
    coll__signature_describe(theirs, there, sizeof(there));
    return coll__comm_fail(comm, COLL_ERR_MISMATCH, COLL__DISAGREE, peer, there,
                           comm->rank, here, advice);
}

/* Fail: the signatures agree, but the lengths do not. */
static int wrong_length(struct coll_comm *comm,
                        const struct coll__signature *call,
                        const struct coll__xfer *xfer)
{
    char what[COLL__SIGNATURE_TEXT];

    coll__history_describe(coll__history_of(comm, call), call, what,
                           sizeof(what));
    return coll__comm_fail(
        comm, COLL_ERR_MISMATCH,
        "the ranks disagree in %s: rank %d sent %llu bytes where rank %d "
        "takes %zu; %s",
        what, xfer->peer, (unsigned long long)xfer->got_len, comm->rank,
        xfer->len,
        coll__has_own_counts((enum coll_collective)call->collective)
            ? "the counts at both ends must be equal"
            : "set the same COLL_* variables on all ranks");
}

/* Note that the connection to a rank broke; the control connections may soon tell
 * why. */
static int lose(struct coll_comm *comm, int peer)
{
    comm->lost.peer = peer;
    comm->lost.until = coll__now() + NEWS_S;
    return COLL_OK;
}

int coll__comm_still_lost(struct coll_comm *comm)
{
    if (coll__now() < comm->lost.until)
        return COLL_OK;
    return coll__comm_fail(comm, COLL_ERR_PEER,
                           "the connection to rank %d broke; check that its "
                           "process runs and that the network is up",
                           comm->lost.peer);
}

/* Look at the messages of collectives that came from rank r and wait to be received.
 * A message is right if this rank has not come to its collective yet, or if that same
 * collective runs on the message's channel.  What streams send is left to their transport:
 * it alone knows how far they are. */
static int look_at(struct coll_comm *comm, int r)
{
    struct coll__tp *tp = comm->links.routes.to[r];
    struct coll__signature theirs;

    for (int c = 0; c < CHANNEL_P2P; c++) {
        const struct coll__signature *ours;

        if (!tp->ops->peek(tp, r, c, &theirs) ||
            theirs.series == SERIES_STREAM || !has_come_to(comm, &theirs))
            continue;
        ours = coll__attachments_find(comm, c, theirs.seq);
        if (!ours || memcmp(&theirs, ours, sizeof(theirs)))
            return mismatch(comm, ours, r, &theirs);
    }
    return COLL_OK;
}

/* The signatures differ.  If the peer's call of our number uses another channel, the
 * message is of a later call: report the earlier difference. */
static int wrong_call(struct coll_comm *comm,
                      const struct coll__signature *call,
                      const struct coll__xfer *xfer)
{
    int rc = is_message(call) ? COLL_OK : look_at(comm, xfer->peer);

    return rc ? rc : mismatch(comm, call, xfer->peer, &xfer->got);
}

int coll__comm_run_failed(struct coll_comm *comm,
                          const struct coll__signature *call,
                          const struct coll__xfer *xfer, int status)
{
    const char *why = coll_last_error(); /* most likely the transport's */

    if (!xfer)
        return coll__comm_fail(comm, status, "%s", coll_last_error());
    if (status == COLL_ERR_PEER)
        return lose(comm, xfer->peer);
    if (status != COLL_ERR_MISMATCH)
        return coll__comm_fail(comm, status,
                               "the transfer with rank %d failed: %s%s%s",
                               xfer->peer, coll_strerror(status),
                               *why ? "; last error: " : "", why);
    if (memcmp(&xfer->got, &xfer->sig, sizeof(xfer->got)))
        return wrong_call(comm, call, xfer);
    return wrong_length(comm, call, xfer);
}

int coll__comm_look_around(struct coll_comm *comm)
{
    int rc = COLL_OK;

    for (int r = 0; r < comm->size && rc == COLL_OK; r++)
        rc = look_at(comm, r);
    return rc;
}
