/* SPDX-License-Identifier: BSD-3-Clause */
/* fail.c - how a communicator fails, and the sentence that says why.
 *
 * The first failure stays: whoever comes first writes the text and then the
 * status.  Each later call returns that status and, for its own thread, that
 * sentence.
 */
#include "lib/api/comm.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a broken connection waits for the control connections to say which
 * process ended, and an expired deadline for answers. */
#define NEWS_S 0.5

#define DISAGREE \
    "the ranks disagree: rank %d called %s where rank %d called %s; %s"
#define SAME_CALLS "all ranks must call the same operations in the same order"
#define SAME_SIZE "a send and its receive need the same count and type"

static int take_failure(struct coll_comm *comm, int status, const char *text)
{
    struct coll__failure *f = &comm->failure;
    int is_first;

    pthread_mutex_lock(&f->lock);
    is_first = atomic_load_explicit(&f->status, memory_order_relaxed) ==
               COLL_OK;
    if (is_first) {
        snprintf(f->text, sizeof(f->text), "%s", text);
        atomic_store_explicit(&f->status, status, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
    return is_first;
}

void coll__comm_set_failure(struct coll_comm *comm, int status,
                            const char *text)
{
    if (take_failure(comm, status, text))
        log_info("comm", "failed: %s", text);
}

int coll__comm_status(struct coll_comm *comm)
{
    int status = atomic_load_explicit(&comm->failure.status,
                                      memory_order_acquire);

    if (status != COLL_OK)
        log_error("comm", "%s", comm->failure.text);
    return status;
}

int coll__comm_fail(struct coll_comm *comm, int status, const char *format, ...)
{
    char text[COLL__TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (take_failure(comm, status, text))
        coll__ctrl_abort(comm->ctrl, status, text);
    return coll__comm_status(comm);
}

int coll_comm_abort(struct coll_comm *comm, const char *why)
{
    if (!comm) {
        log_error("api", "coll_comm_abort: comm is NULL");
        return COLL_ERR_INVALID;
    }
    coll__comm_fail(comm, COLL_ERR_ABORTED, "rank %d aborted: %s", comm->rank,
                    why ? why : "no reason given");
    return COLL_OK;
}

int coll_comm_async_error(struct coll_comm *comm)
{
    return coll__comm_status(comm);
}

/* Two ranks called different things: say both calls.  Of a collective ours is
 * the one of that number; else the one that is under way. */
static int mismatch(struct coll_comm *comm, const struct coll__head *ours,
                    int peer, const struct coll__head *theirs)
{
    struct coll__head mine = *ours;
    char here[128], there[128];
    int is_ours = coll__is_p2p((enum coll_collective)ours->collective),
        is_theirs = coll__is_p2p((enum coll_collective)theirs->collective);

    if (!is_ours && !is_theirs)
        coll__history_get(&comm->history, theirs->seq, &mine);
    coll__head_describe(theirs, there, sizeof(there));
    coll__head_describe(&mine, here, sizeof(here));
    return coll__comm_fail(comm, COLL_ERR_MISMATCH,
                           DISAGREE, peer, there, comm->rank, here,
                           is_ours && is_theirs ? SAME_SIZE : SAME_CALLS);
}

/* The heads agree, the lengths do not. */
static int wrong_length(struct coll_comm *comm,
                        const struct coll_request *request,
                        const struct coll__xfer *xfer)
{
    char what[128];

    coll__head_describe(&request->head, what, sizeof(what));
    return coll__comm_fail(
        comm, COLL_ERR_MISMATCH,
        "the ranks disagree in %s: rank %d sent %llu bytes where rank %d "
        "takes %zu; %s",
        what, xfer->peer, (unsigned long long)xfer->got_len, comm->rank,
        xfer->len,
        coll__has_own_counts(request->problem.collective)
            ? "the counts at both ends must be equal"
            : "set the same COLL_* variables on all ranks");
}

/* A connection broke: the control connections know more, in a moment. */
static int lost(struct coll_comm *comm, int peer)
{
    double until = coll__now() + NEWS_S;
    struct timespec nap = {0, 1000000};

    while (coll__now() < until &&
           atomic_load_explicit(&comm->failure.status, memory_order_acquire) ==
               COLL_OK)
        nanosleep(&nap, NULL);
    return coll__comm_fail(comm, COLL_ERR_PEER,
                           "the connection to rank %d broke; see that its "
                           "process and the network are up", peer);
}

int coll__comm_prog_failed(struct coll_comm *comm,
                           const struct coll_request *request, int status)
{
    const struct coll__xfer *xfer = coll__prog_fault(request->prog);
    const char *why = coll_last_error(); /* most likely the transport's */

    if (!xfer)
        return coll__comm_fail(comm, status, "%s", coll_last_error());
    if (status == COLL_ERR_PEER)
        return lost(comm, xfer->peer);
    if (status != COLL_ERR_MISMATCH)
        return coll__comm_fail(comm, status,
                               "the transfer with rank %d failed: %s%s%s",
                               xfer->peer, coll_strerror(status),
                               *why ? "; last error: " : "", why);
    if (memcmp(&xfer->got, &xfer->head, sizeof(xfer->got)))
        return mismatch(comm, &request->head, xfer->peer, &xfer->got);
    return wrong_length(comm, request, xfer);
}

/* Can a message with this head, which waits here, still find its receive?  One
 * of two ranks can whenever this rank comes to it; one of a collective that is
 * done here, or of another one than runs here, cannot. */
static int is_lost(const struct coll_comm *comm, const struct coll__head *head)
{
    const struct coll_request *first = comm->running;
    uint64_t n_done = atomic_load_explicit(&comm->history.n_done,
                                           memory_order_relaxed);

    if (coll__is_p2p((enum coll_collective)head->collective))
        return 0;
    if (head->seq <= n_done)
        return 1;
    return !first->is_p2p && head->seq == first->head.seq &&
           memcmp(head, &first->head, sizeof(*head));
}

int coll__comm_look_around(struct coll_comm *comm)
{
    struct coll__head theirs;

    for (int r = 0; r < comm->size; r++) {
        struct coll__tp *tp = comm->routes.to[r];

        if (tp->ops->peek(tp, r, &theirs) && is_lost(comm, &theirs))
            return mismatch(comm, &comm->running->head, r, &theirs);
    }
    return COLL_OK;
}

/* ---- deadlines ----------------------------------------------------------- */

/* Append "; label 1, 4, 5" for the ranks whose mark is `which`. */
static size_t list_ranks(const char *marks, int size, char which,
                         const char *label, char *text, size_t len, size_t n)
{
    const char *before = label;

    for (int r = 0; r < size; r++)
        if (marks[r] == which && n < len) {
            n += (size_t)snprintf(text + n, len - n, "%s%d", before, r);
            before = ", ";
        }
    return n < len ? n : len - 1;
}

/* Is the rank that answers in a send or receive? */
static int is_aside(const struct coll__ctrl_answer *answer)
{
    return !strncmp(answer->text, "in send ", 8) ||
           !strncmp(answer->text, "in recv ", 8);
}

/* Say who has not arrived at operation seq: l(ate), s(ilent) or h(ere). */
static void describe_absent(const struct coll_comm *comm, uint64_t seq,
                            const struct coll__ctrl_answer *answers,
                            char *marks, char *text, size_t len)
{
    size_t n;
    int late = -1;

    for (int r = 0; r < comm->size; r++) {
        marks[r] = !answers[r].has_answered ? 's'
                   : answers[r].n_started < seq || is_aside(&answers[r])
                       ? 'l'
                       : 'h';
        if (marks[r] == 'l' && late < 0)
            late = r;
    }
    n = list_ranks(marks, comm->size, 'l', "; not arrived: rank ", text, len,
                   0);
    if (late >= 0 && n < len)
        n += (size_t)snprintf(text + n, len - n, " (rank %d is %s)", late,
                              answers[late].text);
    if (n < len)
        n = list_ranks(marks, comm->size, 's', "; no answer from rank ", text,
                       len, n);
    if (!n)
        snprintf(text, len, "; all ranks have started it: raise COLL_TIMEOUT "
                 "if one may compute long between coll_start and coll_wait");
}

/* What the rank calls operation seq, if it is that one that it speaks of; else
 * NULL.  It may be in an earlier one and have started more. */
static const char *call_of(const struct coll__ctrl_answer *answer, uint64_t seq)
{
    const char *what = strchr(answer->text, ' '); /* behind "in" or "after" */
    unsigned long long n;

    if (!answer->has_answered || is_aside(answer) || !what ||
        sscanf(what, " %*s #%llu", &n) != 1 || n != seq)
        return NULL;
    return what + 1;
}

/* Does any rank say that its operation of this number is another one? */
static int compare_answers(struct coll_comm *comm, const char *what,
                           const struct coll__ctrl_answer *answers)
{
    for (int r = 0; r < comm->size; r++) {
        const char *theirs = call_of(&answers[r], comm->running->head.seq);

        if (theirs && strcmp(theirs, what))
            return coll__comm_fail(comm, COLL_ERR_MISMATCH, DISAGREE, r, theirs,
                                   comm->rank, what, SAME_CALLS);
    }
    return COLL_OK;
}

int coll__comm_ask_around(struct coll_comm *comm)
{
    struct coll__ctrl_answer *answers;
    char what[128];
    int rc;

    if (comm->running->is_p2p)
        return COLL_OK; /* there is nothing to compare */
    answers = calloc((size_t)comm->size, sizeof(*answers));
    if (!answers)
        return COLL_OK; /* it is only a question; the deadline stays */
    coll__head_describe(&comm->running->head, what, sizeof(what));
    coll__ctrl_ask(comm->ctrl, NEWS_S, answers);
    rc = compare_answers(comm, what, answers);
    free(answers);
    return rc ? rc : coll__comm_status(comm);
}

/* Say where the other end of a send or receive is. */
static void describe_peer(int peer, const struct coll__ctrl_answer *answers,
                          char *text, size_t len)
{
    if (answers[peer].has_answered)
        snprintf(text, len, "; rank %d is %.200s", peer,
                 answers[peer].text);
    else
        snprintf(text, len, "; no answer from rank %d", peer);
}

int coll__comm_timed_out(struct coll_comm *comm,
                         const struct coll_request *request, double timeout)
{
    struct coll__ctrl_answer *answers =
        calloc((size_t)comm->size, sizeof(*answers));
    char *marks = calloc((size_t)comm->size, 1);
    char what[128], absent[COLL__TEXT_MAX / 2] = "";

    coll__head_describe(&request->head, what, sizeof(what));
    if (answers && marks) {
        coll__ctrl_ask(comm->ctrl, NEWS_S, answers);
        if (request->is_p2p)
            describe_peer(request->head.root, answers, absent, sizeof(absent));
        else
            describe_absent(comm, request->head.seq, answers, marks, absent,
                            sizeof(absent));
    }
    free(answers);
    free(marks);
    return coll__comm_fail(comm, COLL_ERR_TIMEOUT,
                           "%s did not end within %g s on rank %d%s", what,
                           timeout, comm->rank, absent);
}
