/* SPDX-License-Identifier: BSD-3-Clause */
/* deferred.c - deferred destructions: communicators that leave while no call waits.
 *
 * The other ranks may wait for the end of such a communicator, and its caller may
 * compute for as long as it likes.  So a thread moves deferred destructions while
 * there are any.  The call that destroys the last communicator of the process, or the
 * process's exit, stops the thread and waits for all of them itself.  If the process
 * holds two copies of the library, neither has the last communicator while the other
 * has some: ranks may end the communicators of two copies in different orders too.
 *
 * The thread leaves out communicators that hold state on a GPU.  Freeing that state
 * waits for the whole device and would end a capture that the caller has begun.  These
 * are moved by the calls that destroy other communicators; so are all if there can be
 * no thread.
 *
 * A deferred communicator is in the list, or in the hands of one thread that took it
 * from there under the lock; no other thread touches it then.
 */
#include "lib/comm/comm.h"
#include "lib/comm/destroy.h"
#include "lib/trace/log.h"
#include "lib/comm/copies.h"
#include "lib/util/lock.h"
#include "lib/util/spawn.h"
#include "lib/util/util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 1e-3     /* s for one of several communicators that a call waits for */
#define NAP_FIRST 1e-3 /* s, between two looks of the thread */
#define NAP_MOST 20e-3

static void forget_parents(void);

static struct coll__lock lock = COLL__LOCK(forget_parents);

/* All under the lock, but for the thread's handle. */
static struct {
    int n_comms; /* of this process */
    int n_left;  /* and of those the ones that leave */
    struct coll_comm *first, *last;
    int n; /* in the list */

    int has_thread; /* it has to be joined, by whoever clears this */
    int is_stopping, has_ended;
    pthread_t thread;
    pthread_cond_t changed;      /* the list has grown, or is_stopping */
    struct coll_comm *in_thread; /* what it has in hand */

    /* The error of a deferred destruction, for the next call to return. */
    int wrong;
    char why[COLL__LINE_MAX];
} deferred;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* In a child: the parent's communicators.  They are kept here so that leak checkers
 * find them. */
static struct coll_comm *volatile inherited[2];

static void forget_parents(void)
{
    inherited[0] = deferred.first;
    inherited[1] = deferred.in_thread;
    memset(&deferred, 0, sizeof(deferred));
    coll__cond_init(&deferred.changed);
    coll__copies_forked();
}

void coll__deferred_count(struct coll_comm *comm, int change)
{
    coll__lock(&lock);
    if (!coll__comm_is_inherited(comm)) {
        deferred.n_comms += change;
        if (comm->ending.is_counted)
            deferred.n_left += change;
        coll__copies_tell(deferred.n_comms - deferred.n_left);
    }
    coll__unlock(&lock);
}

int coll__deferred_is_last(struct coll_comm *comm)
{
    int is_last;

    coll__lock(&lock);
    comm->ending.is_counted = 1;
    is_last = ++deferred.n_left == deferred.n_comms;
    coll__copies_tell(deferred.n_comms - deferred.n_left);
    coll__unlock(&lock);
    return is_last && !coll__copies_have();
}

/* ---- the list; the lock held ------------------------------------------------- */

static void append(struct coll_comm *comm)
{
    comm->ending.next = NULL;
    if (deferred.last)
        deferred.last->ending.next = comm;
    else
        deferred.first = comm;
    deferred.last = comm;
    deferred.n++;
}

static struct coll_comm *take_first(void)
{
    struct coll_comm *comm = deferred.first;

    deferred.first = comm->ending.next;
    if (!deferred.first)
        deferred.last = NULL;
    deferred.n--;
    return comm;
}

/* Keep an error for the next call.  Only a disagreement counts, since it makes results
 * wrong; a rank that died after this one had left does not matter. */
static void note_end(int rc)
{
    if (rc != COLL_ERR_MISMATCH || deferred.wrong)
        return;
    deferred.wrong = rc;
    snprintf(deferred.why, sizeof(deferred.why), "%s", coll_last_error());
}

/* Let one go on. */
static void move_one(struct coll_comm *comm, double slice, double since,
                     int is_last)
{
    int rc;

    coll__unlock(&lock);
    rc = coll__destroy_go_on(comm, coll__now() + slice, since, is_last);
    coll__lock(&lock);
    if (rc == COLL_IN_PROGRESS)
        append(comm);
    else
        note_end(rc);
}

/* Move each deferred destruction once; returns how many are not finished.  If a
 * destruction was deferred after the caller began to wait, its timeout counts from the
 * moment it was deferred. */
static int move_each(double slice, double since, int is_last)
{
    for (int n = deferred.n; n > 0 && deferred.n; n--) {
        struct coll_comm *comm = take_first();

        move_one(comm, slice, max_double(since, comm->ending.put_at), is_last);
    }
    return deferred.n;
}

/* On the thread: move each destruction whose communicator holds no state on a device.
 * Returns whether there were any. */
static int move_own(void)
{
    int found = 0;

    for (int n = deferred.n; n > 0 && deferred.n; n--) {
        struct coll_comm *comm = take_first();

        if (comm->holds_device) {
            append(comm);
            continue;
        }
        found = 1;
        deferred.in_thread = comm;
        move_one(comm, 0, INFINITY, 0);
        deferred.in_thread = NULL;
    }
    return found;
}

/* ---- the thread ---------------------------------------------------------------- */

static void *run(void *arg)
{
    double nap = NAP_FIRST;

    (void)arg;
    coll__lock(&lock);
    while (!deferred.is_stopping && move_own()) {
        int n = deferred.n;

        if (deferred.is_stopping)
            break;
        coll__lock_wait(&lock, &deferred.changed, coll__now() + nap);
        nap = n == deferred.n ? min_double(nap * 1.5, NAP_MOST) : NAP_FIRST;
    }
    deferred.has_ended = 1;
    coll__unlock(&lock);
    return NULL;
}

static void start_thread(void)
{
    int rc = coll__spawn(&deferred.thread, run, NULL, "coll-leave");

    deferred.has_thread = !rc;
    deferred.has_ended = 0;
    if (rc)
        log_warn("comm",
                 "cannot start the thread for deferred destructions: %s; other "
                 "ranks may wait for this one; raise ulimit -u",
                 strerror(rc));
}

/* The lock is not held during the join: a fork() may wait for this lock and hold a
 * lock that the thread waits for. */
static void join_thread(void)
{
    pthread_t thread = deferred.thread;

    deferred.has_thread = 0;
    coll__unlock(&lock);
    pthread_join(thread, NULL);
    coll__lock(&lock);
}

/* If several threads destroy communicators, only one of them stops the thread. */
void coll__deferred_take_over(void)
{
    coll__lock(&lock);
    if (deferred.has_thread) {
        deferred.is_stopping = 1;
        pthread_cond_broadcast(&deferred.changed);
        join_thread();
        deferred.is_stopping = 0;
    }
    coll__unlock(&lock);
}

/* ---- what destroy.c calls ---------------------------------------------------------- */

/* Move them without changing the caller's last error. */
static int move(double slice, double since, int is_last)
{
    char said[COLL__LINE_MAX];
    int n;

    snprintf(said, sizeof(said), "%s", coll_last_error());
    coll__lock(&lock);
    n = move_each(slice, since, is_last);
    coll__unlock(&lock);
    coll__log_set_error(said);
    return n;
}

int coll__deferred_move(double since) { return move(SLICE, since, 1); }

void coll__deferred_look(void) { move(0, INFINITY, 0); }

static void wait_at_exit(void)
{
    double since = coll__now();

    coll__deferred_take_over();
    while (coll__deferred_move(since))
        ;
    coll__log_done(COLL_OK);
}

static void init(void)
{
    coll__cond_init(&deferred.changed);
    atexit(wait_at_exit);
}

void coll__deferred_put(struct coll_comm *comm)
{
    pthread_once(&once, init);
    coll__lock(&lock);
    comm->ending.put_at = coll__now();
    append(comm);
    pthread_cond_broadcast(&deferred.changed);
    if (deferred.has_thread && deferred.has_ended)
        join_thread();
    if (!deferred.has_thread && !deferred.is_stopping)
        start_thread();
    coll__unlock(&lock);
}

int coll__deferred_wrong(int rc)
{
    coll__lock(&lock);
    if (!rc && deferred.wrong) {
        rc = deferred.wrong;
        coll__log_set_error(deferred.why);
        deferred.wrong = 0;
    }
    coll__unlock(&lock);
    return rc;
}
