/* SPDX-License-Identifier: BSD-3-Clause */
/* stall.c - what happens when a wait takes long, and how this rank answers for its
 * calls when another rank waits.
 *
 * A stall is about movement: as long as anything of the communicator moves, no rank is
 * asked anything.  The deadline is about the caller: it counts from the start of the
 * wait, less the time in which this process was stopped, since the rest of the job may
 * have been stopped too.
 *
 *   20 ms without movement   look for messages that no rank is going to receive
 *   1 s, then 2, 4 s later   ask: the peer of a send or receive, else all ranks
 *   COLL_STALL_WARN          ask again, warn which ranks have not come, and go on
 *   the deadline             ask again, report which ranks have not come, and fail
 *
 * Nothing here waits.  While a question is under way, data still move.  The asked rank
 * answers on its reactor's thread from data that any thread may read; if the two ranks
 * disagree, it fails the communicator everywhere.  So the answers matter only for the
 * sentence about a warning or a deadline.
 *
 * Two ranks disagree if one waits for what the other will never do:
 *  - their operations of one number have different signatures;
 *  - the other rank has reached a collective call that is no operation (it destroys or
 *    splits the communicator) without having started what this rank waits for;
 *  - the rank waits for a message of a rank that waits in a collective, and that
 *    collective cannot end before the first rank comes to it.
 */
#include "lib/comm/stall.h"
#include "lib/comm/advice.h"
#include "lib/comm/algorithm_id.h"
#include "lib/comm/attachment.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/members.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LOOK_AROUND_S 0.02
#define HOST_TEXT 80 /* bytes of " on HOST" */
#define ASK_S 1.0    /* s before the first question; each next one takes twice as long */
/* a wait allows this many times the time for one answer, since other waits ask too */
#define TURNS 10
/* if so many s lie between two looks at the clock, the process was stopped */
#define STILL_S 2.0

/* ---- where a rank is ----------------------------------------------------- */

/* Can the collective end on this rank before rank `other` has started it?  Not if
 * this rank's result depends on that rank's data. */
static int can_end_without(const struct coll_comm *comm,
                           const struct coll__signature *sig, int other)
{
    if (sig->series == SERIES_COMPARED)
        return 0;
    switch ((enum coll_collective)sig->collective) {
    case COLL_BARRIER:
        return 0;
    case COLL_ALLREDUCE:
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
        return !coll__signature_count(sig);
    case COLL_SCAN:
    case COLL_EXSCAN: /* only the ranks before this one matter */
        return !coll__signature_count(sig) || other > comm->rank;
    case COLL_REDUCE:
    case COLL_GATHER:
        return !coll__signature_count(sig) ||
               coll__signature_root(sig) != comm->rank;
    case COLL_BROADCAST:
    case COLL_SCATTER:
        return !coll__signature_count(sig) ||
               coll__signature_root(sig) != other;
    default:
        return 1;
    }
}

/* Does this rank's caller wait in a collective that needs the asking rank?  Then *mine
 * is that collective, and the two ranks wait for each other for ever. */
static int is_stuck_before(struct coll_comm *comm,
                           const struct coll__ctrl_call *call,
                           struct coll__signature *mine)
{
    uint64_t seq =
        atomic_load_explicit(&comm->calls.stuck_in, memory_order_acquire);

    return call->is_blocked && seq > call->n_started &&
           coll__history_get(&comm->calls.history[SERIES_HOST], seq, mine) &&
           !can_end_without(comm, mine, call->rank);
}

/* Write both calls into text; `mine` is what this rank called. */
static enum coll__verdict disagree(const struct coll_comm *comm,
                                   const struct coll__ctrl_call *call,
                                   const char *mine, const char *advice,
                                   char text[COLL__TEXT_MAX])
{
    char theirs[COLL__SIGNATURE_TEXT];

    coll__signature_describe(&call->sig, theirs, sizeof(theirs));
    snprintf(text, COLL__TEXT_MAX, COLL__DISAGREE, comm->rank, mine, call->rank,
             theirs, advice);
    return VERDICT_NEVER;
}

static enum coll__verdict disagree_in_way(const struct coll_comm *comm,
                                          const struct coll__ctrl_call *call,
                                          const struct coll__signature *mine,
                                          char text[COLL__TEXT_MAX])
{
    char here[COLL__SIGNATURE_TEXT], there[COLL__SIGNATURE_TEXT];

    coll__algorithm_id_describe(mine, here, sizeof(here));
    coll__algorithm_id_describe(&call->sig, there, sizeof(there));
    snprintf(text, COLL__TEXT_MAX, COLL__DISAGREE, comm->rank, here, call->rank,
             there, COLL__SAME_ALGORITHM);
    return VERDICT_NEVER;
}

/* Another rank asks about a collective: calls of one number must be alike. */
static enum coll__verdict judge_collective(struct coll_comm *comm,
                                           const struct coll__ctrl_call *call,
                                           const char *apart,
                                           char text[COLL__TEXT_MAX])
{
    struct coll__history *history = coll__history_of(comm, &call->sig);
    struct coll__signature mine;
    char what[COLL__SIGNATURE_TEXT];
    uint64_t n =
        atomic_load_explicit(&history->n_started, memory_order_acquire);

    if (n < call->sig.seq)
        return apart ? disagree(comm, call, apart, COLL__SAME_CALLS, text)
                     : VERDICT_LATE;
    if (!coll__history_get(history, call->sig.seq, &mine) ||
        !memcmp(&mine, &call->sig, sizeof(mine)))
        return VERDICT_HERE;
    if (coll__algorithm_ids_differ(&mine, &call->sig))
        return disagree_in_way(comm, call, &mine, text);
    coll__history_describe(history, &mine, what, sizeof(what));
    return disagree(comm, call, what, coll__advice(&mine, &call->sig), text);
}

/* Another rank asks about a send or receive whose peer is this rank. */
static enum coll__verdict judge_message(struct coll_comm *comm,
                                        const struct coll__ctrl_call *call,
                                        const char *apart,
                                        char text[COLL__TEXT_MAX])
{
    struct coll__signature mine;
    char what[COLL__SIGNATURE_TEXT];
    int is_stuck = is_stuck_before(comm, call, &mine); /* before the count */
    int at = call->sig.series * comm->size + call->rank;
    int is_tagged = coll__is_tagged((enum coll_collective)call->sig.collective);
    _Atomic uint64_t *n = call->sig.collective == COLL_RECV ||
                                  call->sig.collective == COLL_RECV_TAGGED
                              ? &comm->calls.n_sent[at]
                              : &comm->calls.n_received[at];

    if (atomic_load_explicit(n, memory_order_relaxed) >=
        (is_tagged ? (uint32_t)call->sig.seq : call->sig.seq))
        return VERDICT_HERE;
    if (apart)
        return disagree(comm, call, apart, COLL__SAME_CALLS, text);
    if (!is_stuck)
        return VERDICT_LATE;
    coll__history_describe(&comm->calls.history[SERIES_HOST], &mine, what,
                           sizeof(what));
    return disagree(comm, call, what, COLL__SAME_CALLS, text);
}

/* Another rank asks about a message with a tag.  A receive from any rank may be served by
 * others, and what waits here for a message may be what the other rank sends. */
static enum coll__verdict judge_tagged(struct coll_comm *comm,
                                       const struct coll__ctrl_call *call,
                                       const char *apart,
                                       char text[COLL__TEXT_MAX])
{
    int is_send = call->sig.collective == COLL_SEND_TAGGED;

    if (apart)
        snprintf(text, COLL__TEXT_MAX, "in %s", apart);
    if (call->rank == comm->rank)
        return VERDICT_HERE;
    if (call->sig.root == COLL_ANY_RANK ||
        (is_send &&
         atomic_load_explicit(&comm->calls.n_receiving, memory_order_relaxed)))
        return VERDICT_LATE;
    return judge_message(comm, call, apart, text);
}

/* Another rank asks about a start in any order.  The two ranks wait for each other for ever
 * if its caller waits for the end, and this rank's caller in a call of all ranks. */
static enum coll__verdict judge_start(struct coll_comm *comm,
                                      const struct coll__ctrl_call *call,
                                      const char *apart,
                                      char text[COLL__TEXT_MAX])
{
    uint32_t n =
        coll__attachments_n_starts(comm, coll__started_number(call->sig.seq));

    if ((int32_t)(n - (uint32_t)call->sig.seq) >= 0)
        return VERDICT_HERE;
    if (apart && call->is_blocked)
        return disagree(comm, call, apart, COLL__SAME_CALLS, text);
    if (apart)
        snprintf(text, COLL__TEXT_MAX, "in %s", apart);
    return VERDICT_LATE;
}

enum coll__verdict coll__stall_judge(struct coll_comm *comm,
                                     const struct coll__ctrl_call *call,
                                     int is_gathering,
                                     char text[COLL__TEXT_MAX])
{
    const char *apart =
        is_gathering
            ? atomic_load_explicit(&comm->calls.apart, memory_order_acquire)
            : NULL;

    coll__history_where(coll__history_of(comm, &call->sig), text,
                        COLL__TEXT_MAX);
    if (coll__is_tagged((enum coll_collective)call->sig.collective))
        return judge_tagged(comm, call, apart, text);
    if (call->sig.series == SERIES_STARTED)
        return judge_start(comm, call, apart, text);
    return coll__is_p2p((enum coll_collective)call->sig.collective)
               ? judge_message(comm, call, apart, text)
               : judge_collective(comm, call, apart, text);
}

/* ---- asking -------------------------------------------------------------- */

static struct coll__ctrl_call call_of(const struct coll__call *waiting,
                                      int is_blocked)
{
    struct coll_comm *comm = waiting->comm;

    return (struct coll__ctrl_call){
        .rank = comm->rank,
        .peer = waiting->is_p2p ? waiting->sig.root : -1,
        .is_blocked = is_blocked,
        .n_started = atomic_load_explicit(
            &comm->calls.history[SERIES_HOST].n_started, memory_order_relaxed),
        .sig = waiting->sig,
    };
}

/* Ask, unless another rank has asked all ranks about it meanwhile. */
static void ask(struct coll__patience *p, const struct coll__call *running,
                int is_blocked, double now)
{
    struct coll__ctrl *ctrl = running->comm->ctrl;
    struct coll__ctrl_call call = call_of(running, is_blocked);
    double asked;

    if (!coll__ctrl_ask(ctrl, &call, running->is_p2p ? now : p->asked, &asked))
        return; /* another question is under way: next time */
    p->asked = now;
    p->pause *= 2;
}

/* ---- who is missing ------------------------------------------------------ */

/* " on HOST" if the job has several hosts and the next rank named is on another
 * one; else "". */
static const char *host_of(const struct coll_comm *comm, int rank, int next,
                           char text[HOST_TEXT])
{
    text[0] = '\0';
    if (comm->n_hosts > 1 &&
        (next < 0 || comm->peers[rank].host != comm->peers[next].host))
        snprintf(text, HOST_TEXT, " on %s", coll__ctrl_host(comm->ctrl, rank));
    return text;
}

/* A sentence that grows. */
struct text {
    char *at;
    size_t len, n; /* bytes: of the place, and so far */
};

static void append(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void append(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text->n += (size_t)vsnprintf(text->at + text->n, text->len - text->n,
                                 format, args);
    va_end(args);
    if (text->n >= text->len)
        text->n = text->len - 1; /* it is full */
}

/* Append "; label 1, 4 on h1, 7 on h2, ... (5 in all)". */
static void list_ranks(const struct coll_comm *comm, const int *ranks,
                       int n_ranks, const char *label, struct text *text)
{
    int n_named = n_ranks < COLL__NAMED ? n_ranks : COLL__NAMED;
    const char *before = label;
    char host[HOST_TEXT];

    for (int i = 0; i < n_named; i++) {
        int next = i + 1 < n_named ? ranks[i + 1] : -1;

        append(text, "%s%d%s", before, ranks[i],
               host_of(comm, ranks[i], next, host));
        before = ", ";
    }
    if (n_ranks > COLL__NAMED)
        append(text, ", ... (%d in all)", n_ranks);
}

/* Say who has not come to a collective; "" where all have. */
static void describe_absent(const struct coll__call *waiting,
                            const struct coll__ctrl_roll *roll, char *text,
                            size_t len)
{
    const struct coll_comm *comm = waiting->comm;
    struct text said = {.at = text, .len = len};

    text[0] = '\0';
    list_ranks(comm, roll->late, roll->n_late,
               waiting->sig.series == SERIES_STARTED ? "; not started by rank "
                                                     : "; not arrived: rank ",
               &said);
    if (roll->n_late)
        append(&said, " (rank %d is %s)", roll->late[0], roll->text);
    list_ranks(comm, roll->silent, roll->n_silent, "; no answer from rank ",
               &said);
}

/* Say who is missing in any call, from the answers; roll is NULL without any. */
static void describe_missing(const struct coll__call *waiting,
                             const struct coll__ctrl_roll *roll, char *text,
                             size_t len)
{
    const struct coll_comm *comm = waiting->comm;
    int peer = waiting->sig.root;
    char host[HOST_TEXT] = "";

    if (waiting->is_p2p)
        host_of(comm, peer, -1, host);
    if (waiting->is_p2p && roll)
        snprintf(text, len, "; rank %d%s is %s", peer, host, roll->text);
    else if (waiting->is_p2p)
        snprintf(text, len, "; no answer from rank %d%s", peer, host);
    else if (roll)
        describe_absent(waiting, roll, text, len);
    else
        snprintf(text, len, "; no answer from the other ranks");
}

/* The answers about a call. */
struct answers {
    struct coll__ctrl_roll roll;
    const struct coll__ctrl_roll *heard; /* &roll, or NULL without any */
};

/* Find out which ranks are missing, by questions asked after `since`.  1: *answers has all
 * that will come.  0: answers may still come.  Waits for several peers are asked about
 * one after the other, so the time for answers counts from when this wait's question was
 * asked. */
static int hear(const struct coll__call *waiting, int is_blocked, double since,
                double now, struct answers *answers)
{
    struct coll__ctrl *ctrl = waiting->comm->ctrl;
    struct coll__ctrl_call call = call_of(waiting, is_blocked);
    double most = coll__ctrl_answer_time(ctrl), asked;

    answers->heard = NULL;
    if (coll__ctrl_heard(ctrl, &call, since, &answers->roll))
        answers->heard = &answers->roll;
    if (answers->heard || now > since + TURNS * most)
        return 1;
    return coll__ctrl_ask(ctrl, &call, since, &asked) && now > asked + most;
}

/* ---- the deadline -------------------------------------------------------- */

/* Fail the communicator and say who is missing; roll is NULL without answers. */
static int fail_late(const struct coll__call *waiting, double timeout,
                     const struct coll__ctrl_roll *roll)
{
    struct coll_comm *comm = waiting->comm;
    const char *where = waiting->sig.series == SERIES_STREAM
                            ? "a stream may be at other work for so long"
                            : "one may compute long between coll_start and "
                              "coll_wait";
    char what[COLL__SIGNATURE_TEXT], absent[COLL__TEXT_MAX / 2];

    coll__signature_describe_own(&waiting->sig, waiting->user_tag, what,
                                 sizeof(what));
    describe_missing(waiting, roll, absent, sizeof(absent));
    if (!*absent)
        snprintf(absent, sizeof(absent),
                 "; all ranks have started it: raise COLL_TIMEOUT if %s",
                 where);
    return coll__comm_fail(comm, COLL_ERR_TIMEOUT,
                           "%s did not end within %g s on rank %d%s", what,
                           timeout, comm->rank, absent);
}

/* Is anybody missing? */
static int is_anyone_late(const struct coll__ctrl_roll *heard)
{
    return !heard || heard->n_late || heard->n_silent;
}

/* The deadline has passed: fail once it is known who is missing. */
static int expire(struct coll__call *waiting, double timeout, int is_blocked,
                  double now)
{
    struct answers answers;

    if (!waiting->expired)
        waiting->expired = now;
    if (!hear(waiting, is_blocked, waiting->expired, now, &answers))
        return COLL_OK;
    return fail_late(waiting, timeout, answers.heard);
}

/* ---- a warning before ---------------------------------------------------- */

static void say_stall(const struct coll__call *waiting, double timeout,
                      double waited, const struct coll__ctrl_roll *heard)
{
    const struct coll_comm *comm = waiting->comm;
    char what[COLL__SIGNATURE_TEXT], absent[COLL__TEXT_MAX / 2];
    char group[COLL__TEXT_MAX / 2];

    coll__signature_describe_own(&waiting->sig, waiting->user_tag, what,
                                 sizeof(what));
    describe_missing(waiting, heard, absent, sizeof(absent));
    coll__members_text(comm, group, sizeof(group));
    log_warn("comm",
             "%s%s has waited for %.0f s on rank %d%s; it fails after %g s "
             "(COLL_TIMEOUT)",
             group, what, waited, comm->rank, absent, timeout);
}

/* The wait is longer than COLL_STALL_WARN: warn once it is known who is missing.  If
 * all ranks have reached the call, ask again later. */
static void warn(struct coll__call *waiting, double timeout, double since,
                 int is_blocked, double now)
{
    double patience = (double)waiting->comm->stall_warn;
    struct answers answers;
    struct coll__stall *s = &waiting->stall;

    if (s->seq != waiting->sig.seq)
        *s = (struct coll__stall){.seq = waiting->sig.seq, .asked = now};
    if (s->said || now < s->asked ||
        !hear(waiting, is_blocked, s->asked, now, &answers))
        return;
    if (is_anyone_late(answers.heard)) {
        s->said = since;
        say_stall(waiting, timeout, now - since, answers.heard);
    } else {
        s->asked = now + patience;
    }
}

/* Is it time for that? */
static int is_stall(const struct coll__call *waiting, double since, double now)
{
    long patience = waiting->comm->stall_warn;

    return patience && now - since > (double)patience;
}

void coll__stall_end(struct coll__call *waiting)
{
    char what[COLL__SIGNATURE_TEXT], group[COLL__TEXT_MAX / 2];

    coll__signature_describe_own(&waiting->sig, waiting->user_tag, what,
                                 sizeof(what));
    coll__members_text(waiting->comm, group, sizeof(group));
    log_warn("comm", "%s%s continued after %.0f s on rank %d", group, what,
             coll__now() - waiting->stall.said, waiting->comm->rank);
    waiting->stall.said = 0;
}

/* ---- patience ------------------------------------------------------------ */

/* Is it a collective that is numbered in the order of the calls? */
static int is_numbered_by_calls(const struct coll__signature *sig)
{
    return coll__numbered_in(sig) == SERIES_HOST &&
           !coll__is_p2p((enum coll_collective)sig->collective);
}

/* Look for what is wrong; a status. */
static int investigate(const struct coll__call *running, int is_blocked,
                       double now)
{
    struct coll_comm *comm = running->comm;
    struct coll__patience *p = &comm->patience;

    p->looked = now;
    if (is_blocked && is_numbered_by_calls(&running->sig))
        atomic_store_explicit(&comm->calls.stuck_in, running->sig.seq,
                              memory_order_release);
    if (now > p->asked + p->pause)
        ask(p, running, is_blocked, now);
    return coll__comm_look_around(comm);
}

/* When the caller's wait began, plus the time in which this process was stopped. */
static double waits_since(struct coll__call *waiting, double now)
{
    if (!waiting->waits_since)
        waiting->waits_since = now;
    else if (now - waiting->considered > STILL_S)
        waiting->waits_since += now - waiting->considered;
    waiting->considered = now;
    return waiting->waits_since;
}

int coll__stall_check(struct coll__call *waiting,
                      const struct coll__call *running, double timeout,
                      int is_blocked)
{
    struct coll_comm *comm = waiting->comm;
    struct coll__patience *p = &comm->patience;
    double now = coll__now(), since;
    int rc = COLL_OK;

    if (comm->lost.until) /* it is failing */
        return COLL_OK;
    if (!p->since)
        *p = (struct coll__patience){now, now, now, ASK_S};
    since = is_blocked ? waits_since(waiting, now) : p->since;
    if (now - since <= timeout)
        waiting->expired = 0;
    else
        rc = expire(waiting, timeout, is_blocked, now);
    if (!waiting->expired && is_stall(waiting, since, now))
        warn(waiting, timeout, since, is_blocked, now);
    if (!rc && now - p->looked >= LOOK_AROUND_S)
        rc = investigate(running, is_blocked, now);
    return rc;
}

int coll__stall_check_stream(struct coll__call *standing,
                             struct coll__patience *p)
{
    struct coll_comm *comm = standing->comm;
    double now = coll__now();

    if (!p->since)
        *p = (struct coll__patience){now, now, now, ASK_S};
    if (now - p->since > comm->timeout)
        return expire(standing, comm->timeout, 0, now);
    standing->expired = 0;
    if (is_stall(standing, p->since, now))
        warn(standing, comm->timeout, p->since, 0, now);
    if (now > p->asked + p->pause)
        ask(p, standing, 0, now);
    return COLL_OK;
}

void coll__patience_end(struct coll_comm *comm)
{
    comm->patience = (struct coll__patience){0};
    atomic_store_explicit(&comm->calls.stuck_in, 0, memory_order_relaxed);
}
