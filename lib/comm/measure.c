/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.c - the latency and bandwidth between two ranks, by sending messages.
 *
 * Two ranks do it while their communicator is made, over the transport between them.
 * Short messages there and back give the latency, a long one with a short answer the
 * bandwidth.  Rank a leads, since only its clock counts.  Each round begins with an
 * order of rank a: the length of the next message, and whether one of that length goes
 * the other way at the same time, or how many short messages follow; -1 ends it.  The
 * quickest of some rounds counts, since other work on the machines only slows a round
 * down.
 *
 * Short messages in a row tell when the next one can follow.  Where the cores do all
 * the work this is most of a message's latency; with a card that does it, next to
 * nothing.
 *
 * Many algorithms send and receive at once.  That may be slower than one way alone,
 * if the cores do the work, as with TCP over a fast link, or if the link is
 * half-duplex.
 *
 * Bounds: rounds of one kind end after 4 ms or ten rounds; at least three are made,
 * unless they take 20 ms.  The longest message is 1 MiB, and it is sent only if 64 KiB
 * took less than 0.3 ms.
 *
 * Results are rounded to half powers of two, so that equal runs mostly choose the same
 * algorithms.
 */
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/prices.h"
#include "lib/exec/wait.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>

#define ENOUGH_SECONDS 4e-3 /* for rounds of one length */
#define MOST_SECONDS 20e-3
#define ENOUGH_ROUNDS 3
#define MOST_ROUNDS 10
#define FIRST_LEN ((int64_t)64 << 10)
#define LAST_LEN ((int64_t)1 << 20)
#define QUICK 0.3e-3
#define BOTH_WAYS ((int64_t)1 << 40) /* in an order, beside the length */
#define IN_A_ROW ((int64_t)1 << 41)  /* or beside a number of short messages */
#define ROW 8

/* The messages under way.  A transport may refer to them until it is closed, so the
 * communicator keeps them until then. */
struct coll__link_trial {
    struct coll__xfer out, in;
    int64_t order, answer;
    unsigned char message[2 * LAST_LEN]; /* one each way */
};

struct talk {
    struct coll_comm *comm;
    struct coll__tp *tp;
    struct coll__link_trial *trial;
    int peer;
};

static int is_far(const struct talk *talk)
{
    const struct coll__peer *peers = talk->comm->peers;

    return peers[talk->comm->rank].host != peers[talk->peer].host;
}

static const char *host_of(const struct talk *talk)
{
    return is_far(talk) ? "another host" : "this host";
}

/* ---- one message, or one each way ---------------------------------------- */

static void say_why(const struct talk *talk, int status)
{
    char last[COLL__TEXT_MAX]; /* most likely the transport's */

    snprintf(last, sizeof(last), "%s", coll_last_error());
    log_error("comm",
              "rank %d could not exchange a message with rank %d: %s%s%s",
              talk->comm->rank, talk->peer, coll_strerror(status),
              *last ? "; last error: " : "", last);
}

/* Wait for a transfer; its status, or why it will not end. */
static int finish(const struct talk *talk, const struct coll__xfer *xfer)
{
    struct coll_comm *comm = talk->comm;
    const struct coll__peer *me = &comm->peers[comm->rank];
    double deadline = coll__now() + comm->timeout;
    struct coll__wait wait;
    int rc;

    /* Passing the routes makes a rank whose looks are system calls yield early to a
     * peer on its core.  A thousand looks before yielding cost 500 us a message. */
    coll__wait_init(&wait, me->n_sharers > me->local_cores,
                    &comm->links.routes);
    while (xfer->status == COLL_IN_PROGRESS) {
        rc = talk->tp->ops->poll(talk->tp);
        if (rc > 0)
            coll__wait_moved(&wait);
        if (rc >= 0)
            rc = coll__comm_status(comm);
        if (rc)
            return rc;
        if (coll__wait_idle(&wait, 0) && coll__now() > deadline) {
            log_error("comm",
                      "rank %d and rank %d of %s could not exchange a message "
                      "in %.3g s%s",
                      comm->rank, talk->peer, host_of(talk), comm->timeout,
                      is_far(talk) ? "; check that no firewall is between "
                                     "them, and check UCX_NET_DEVICES"
                                   : "; check that both run");
            return COLL_ERR_TIMEOUT;
        }
    }
    if (xfer->status)
        say_why(talk, xfer->status);
    return xfer->status;
}

static void begin_put(const struct talk *talk, void *buf, size_t len)
{
    talk->trial->out =
        (struct coll__xfer){.peer = talk->peer, .buf = buf, .len = len};
    talk->tp->ops->send(talk->tp, &talk->trial->out);
}

static void begin_take(const struct talk *talk, void *buf, size_t len)
{
    talk->trial->in =
        (struct coll__xfer){.peer = talk->peer, .buf = buf, .len = len};
    talk->tp->ops->recv(talk->tp, &talk->trial->in);
}

static int put(const struct talk *talk, void *buf, size_t len)
{
    begin_put(talk, buf, len);
    return finish(talk, &talk->trial->out);
}

static int take(const struct talk *talk, void *buf, size_t len)
{
    begin_take(talk, buf, len);
    return finish(talk, &talk->trial->in);
}

static int put_and_take(const struct talk *talk, size_t len)
{
    int rc;

    begin_take(talk, talk->trial->message + LAST_LEN, len);
    begin_put(talk, talk->trial->message, len);
    rc = finish(talk, &talk->trial->out);
    return rc ? rc : finish(talk, &talk->trial->in);
}

/* n short ones, by put() or take(). */
static int row(const struct talk *talk, int64_t n,
               int (*one)(const struct talk *talk, void *buf, size_t len))
{
    int rc = COLL_OK;

    for (int64_t i = 0; i < n && rc == COLL_OK; i++)
        rc = one(talk, talk->trial->message, sizeof(int64_t));
    return rc;
}

/* ---- rank a: asks and looks at the clock --------------------------------- */

static int round_of(const struct talk *talk, int64_t order, double *seconds)
{
    struct coll__link_trial *trial = talk->trial;
    double begin = coll__now();
    int rc;

    *seconds = 0;
    trial->order = order;
    rc = put(talk, &trial->order, sizeof(trial->order));
    if (rc || order < 0)
        return rc;
    if (order & IN_A_ROW)
        rc = row(talk, order - IN_A_ROW, put);
    else if (order & BOTH_WAYS)
        rc = put_and_take(talk, (size_t)(order - BOTH_WAYS));
    else if (order)
        rc = put(talk, trial->message, (size_t)order);
    if (rc == COLL_OK)
        rc = take(talk, &trial->answer, sizeof(trial->answer));
    *seconds = coll__now() - begin;
    return rc;
}

/* Find the quickest of several rounds, without the first one, in which a connection may
 * be made. */
static int quickest(const struct talk *talk, int64_t order, double *best)
{
    double seconds, all = 0;
    int rc = round_of(talk, order, &seconds);

    *best = 1e9;
    for (int i = 0; i < MOST_ROUNDS && rc == COLL_OK; i++) {
        if (all > (i < ENOUGH_ROUNDS ? MOST_SECONDS : ENOUGH_SECONDS))
            break;
        rc = round_of(talk, order, &seconds);
        all += seconds;
        if (seconds < *best)
            *best = seconds;
    }
    return rc;
}

/* Round to the next half power of two, within the range of networks. */
static double rounded(double value, double least, double most)
{
    double step = least;

    while (step * 1.189 < value && step < most) /* the fourth root of 2 */
        step *= 1.4142135623730951;
    return step;
}

/* s a byte of a round's message. */
static double per_byte(double round, double without, int64_t len)
{
    return rounded((round - without) / (double)len, 1 / 128e9, 1 / 1e5);
}

static int ask(const struct talk *talk, struct coll__measured *measured)
{
    double there_and_back, with_row, with_message, with_two, none;
    int64_t len = FIRST_LEN;
    int rc = quickest(talk, 0, &there_and_back);

    if (rc == COLL_OK)
        rc = quickest(talk, ROW | IN_A_ROW, &with_row);
    if (rc == COLL_OK)
        rc = quickest(talk, len, &with_message);
    if (rc == COLL_OK && with_message < QUICK) {
        len = LAST_LEN;
        rc = quickest(talk, len, &with_message);
    }
    if (rc == COLL_OK)
        rc = quickest(talk, len | BOTH_WAYS, &with_two);
    if (rc == COLL_OK)
        rc = round_of(talk, -1, &none);
    if (rc)
        return rc;
    measured->alpha = rounded(there_and_back / 2, 0.5e-6, 10e-3);
    measured->gap = rounded((with_row - there_and_back) / ROW,
                            measured->alpha / 16, measured->alpha);
    measured->beta = per_byte(with_message, there_and_back, len);
    measured->both =
        max_double(1, per_byte(with_two, there_and_back, len) / measured->beta);
    log_info("comm",
             "a message to %s, rank %d, took %.3g us, the next one "
             "%.3g us more, one of %lld bytes %.3g us, one each way %.3g us",
             host_of(talk), talk->peer, there_and_back / 2 * 1e6,
             (with_row - there_and_back) / ROW * 1e6, (long long)len,
             with_message * 1e6, with_two * 1e6);
    return COLL_OK;
}

/* ---- rank b: does as it is told ------------------------------------------ */

static int obey(const struct talk *talk, int64_t order)
{
    int64_t len = order & ~BOTH_WAYS & ~IN_A_ROW;

    if (len > (order & IN_A_ROW ? ROW : LAST_LEN)) {
        log_error("comm", "rank %d asks for a message of %lld bytes",
                  talk->peer, (long long)len);
        return COLL_ERR_MISMATCH;
    }
    if (order & IN_A_ROW)
        return row(talk, len, take);
    if (order & BOTH_WAYS)
        return put_and_take(talk, (size_t)len);
    return len ? take(talk, talk->trial->message, (size_t)len) : COLL_OK;
}

static int serve(const struct talk *talk)
{
    struct coll__link_trial *trial = talk->trial;
    int rc = COLL_OK;

    while (rc == COLL_OK) {
        rc = take(talk, &trial->order, sizeof(trial->order));
        if (rc || trial->order < 0)
            break;
        rc = obey(talk, trial->order);
        if (rc == COLL_OK)
            rc = put(talk, &trial->answer, sizeof(trial->answer));
    }
    return rc;
}

int coll__comm_measure(struct coll_comm *comm, int a, int b,
                       struct coll__measured *measured)
{
    struct talk talk = {.comm = comm, .peer = comm->rank == a ? b : a};
    int rc;

    comm->links.trial = calloc(1, sizeof(*comm->links.trial));
    if (!comm->links.trial) {
        log_error("comm", "no memory for two messages of %lld bytes",
                  (long long)LAST_LEN);
        return COLL_ERR_NOMEM;
    }
    talk.trial = comm->links.trial;
    talk.tp = comm->links.routes.to[talk.peer];
    rc = comm->rank == a ? ask(&talk, measured) : serve(&talk);
    if (rc == COLL_OK) { /* nobody holds it any more */
        free(comm->links.trial);
        comm->links.trial = NULL;
    }
    return rc;
}
