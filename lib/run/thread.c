/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.c - the progress thread: it moves operations while no other thread does.
 *
 * A process has one such thread for all of its communicators, as long as one of them
 * uses it.  It acquires active communicators like any other thread (owner.c).  A caller
 * that waits acquires its communicator and does the work itself, since waiting for
 * another thread costs more.  So the progress thread does not change blocking calls; it
 * works while the caller computes.
 *
 * If a core is free for it, the thread waits as a caller does and then sleeps until a
 * message comes or a communicator is released (lib/exec/sleep.h).  If it shares a core
 * with a thread that computes, a wake-up from another core takes effect only at the
 * end of that thread's time slice (Linux 6.6 and later), but a timer's at once: so the
 * thread naps there.
 */
#include "lib/run/run.h"
#include "lib/comm/comm.h"
#include "lib/run/owner.h"
#include "lib/run/stream_calls.h"
#include "lib/topo/topo.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/param.h"
#include "lib/util/spawn.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

#define WAKEFUL 2e-3     /* s that it stays awake after progress, on a core of its own */
#define SLEEP_MOST 20e-3 /* s */
#define NAP_FIRST 50e-6
#define NAP_SHARED                                                             \
    200e-6 /* on a core that it shares: some 2 % of the core */

static void forget_parent(void);

static struct coll__lock lock = COLL__LOCK(forget_parent);

static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct {
    /* Under the lock. */
    int n_users, is_running;
    int is_ending;        /* somebody waits for its end */
    pthread_cond_t ended; /* is_ending became 0 */
    pthread_t thread;
    int has_core; /* does not change while it runs */
    atomic_int is_stopping;
} self;

/* In a child after fork(): there is no such thread and no communicator that uses
 * it. */
static void forget_parent(void)
{
    self.n_users = self.is_running = self.is_ending = 0;
    coll__cond_init(&self.ended);
}

/* ---- the thread ------------------------------------------------------------ */

static int is_stopping(void)
{
    return atomic_load_explicit(&self.is_stopping, memory_order_acquire);
}

/* Look once more before sleeping: news that comes after this look wakes the thread.
 * Messages wake it only if it has a core of its own. */
static enum coll__found look(struct coll__sleep *sleep)
{
    if (self.has_core)
        return coll__active_look(sleep);
    coll__sleep_arm(sleep, NULL, 0);
    return coll__active_move_all();
}

/* What streams do rings no bell. */
static double longest_nap(void)
{
    if (atomic_load_explicit(&coll__n_streaming, memory_order_relaxed))
        return NAP_FIRST;
    return self.has_core ? COLL__NAP : NAP_SHARED;
}

/* Sleep until there is something to move.  Returns 1, without a sleep, if a last look
 * found something.  *nap is the length of the sleep if news may not wake this
 * thread. */
static int doze(double *nap)
{
    struct coll__sleep sleep;
    enum coll__found found = look(&sleep);
    int has_bell = found == FOUND_NONE || (self.has_core && sleep.is_sure);

    if (found == FOUND_MOVED)
        return 1;
    if (is_stopping())
        return 0;
    coll__sleep(&sleep, has_bell ? SLEEP_MOST : *nap);
    *nap = min_double(*nap * 1.5, longest_nap());
    return 0;
}

static void *run(void *arg)
{
    double nap = NAP_FIRST, until = 0;
    struct coll__wait wait;

    (void)arg;
    coll__wait_init(&wait, 0, NULL);
    while (!is_stopping()) {
        enum coll__found found = coll__active_move_all();

        if (coll__stream_calls)
            coll__stream_calls->watch();
        if (found == FOUND_STILL && coll__now() < until) {
            coll__wait_idle(&wait, 0);
        } else if (found == FOUND_MOVED || doze(&nap)) {
            coll__wait_moved(&wait);
            nap = NAP_FIRST;
            until = self.has_core ? coll__now() + WAKEFUL : 0;
        }
    }
    return NULL;
}

/* ---- its users; the lock held ------------------------------------------------ */

static int start_thread(void)
{
    int rc;

    atomic_store_explicit(&self.is_stopping, 0, memory_order_relaxed);
    rc = coll__spawn(&self.thread, run, NULL, "coll-progress");
    self.is_running = !rc;
    if (!rc)
        return COLL_OK;
    log_error("comm",
              "cannot start the progress thread: %s; see ulimit -u, or "
              "set COLL_PROGRESS=off",
              strerror(rc));
    return COLL_ERR_SYSTEM;
}

int coll__comm_has_spare_core(const struct coll_comm *comm)
{
    struct coll__seat seat;

    coll__lock(&lock);
    coll__topo_seat(comm->peers, comm->size, comm->rank, &seat);
    coll__unlock(&lock);
    CPU_FREE(seat.spare);
    return seat.has_core;
}

static int start(const struct coll_comm *comm)
{
    struct coll__seat seat;
    int rc;

    coll__topo_seat(comm->peers, comm->size, comm->rank, &seat);
    self.has_core = seat.has_core;
    rc = start_thread();
    if (rc == COLL_OK && seat.spare)
        pthread_setaffinity_np(self.thread, seat.len, seat.spare);
    if (rc == COLL_OK)
        log_debug("comm", "the progress thread %s",
                  seat.has_core ? "has a core"
                                : "shares the cores of those that compute");
    CPU_FREE(seat.spare);
    return rc;
}

/* The lock is not held during the join: a fork() may wait for this lock and hold a
 * lock that the thread waits for. */
static void stop(void)
{
    self.is_running = 0;
    self.is_ending = 1;
    coll__unlock(&lock);
    atomic_store_explicit(&self.is_stopping, 1, memory_order_release);
    coll__sleep_news();
    pthread_join(self.thread, NULL);
    coll__lock(&lock);
    self.is_ending = 0;
    pthread_cond_broadcast(&self.ended);
}

static void wait_until_ended(void)
{
    while (self.is_ending)
        coll__lock_wait(&lock, &self.ended, coll__now() + 3600);
}

/* ---- what others call -------------------------------------------------------- */

/* A program may exit without destroying its communicators: nothing may move any more
 * when the libraries below are unloaded. */
static void end_at_exit(void)
{
    coll__lock(&lock);
    wait_until_ended();
    if (self.is_running && !pthread_equal(self.thread, pthread_self()))
        stop();
    coll__unlock(&lock);
}

static void init(void)
{
    coll__cond_init(&self.ended);
    atexit(end_at_exit);
}

/* One rank waits for nobody. */
static int may_have_one(const struct coll_comm *comm)
{
    return comm->size > 1 && strcmp(coll__param_text(PARAM_PROGRESS), "off");
}

static int get(const struct coll_comm *comm)
{
    int rc = COLL_OK;

    pthread_once(&once, init);
    coll__lock(&lock);
    wait_until_ended();
    if (!self.is_running)
        rc = start(comm);
    if (rc == COLL_OK)
        self.n_users++;
    coll__unlock(&lock);
    return rc;
}

static void put(void)
{
    coll__lock(&lock);
    if (!--self.n_users && self.is_running)
        stop();
    coll__unlock(&lock);
}

int coll__comm_take_thread(struct coll_comm *comm)
{
    int rc;

    if (comm->run->has_thread || !may_have_one(comm))
        return COLL_OK;
    rc = get(comm);
    comm->run->has_thread = rc == COLL_OK ? 1 : -1;
    return rc;
}

int coll__comm_need_thread(struct coll_comm *comm, const char *what)
{
    if (comm->run->has_thread > 0)
        return COLL_OK;
    if (!strcmp(coll__param_text(PARAM_PROGRESS), "off")) {
        log_error("api",
                  "%s: operations of a stream need the progress thread, "
                  "which COLL_PROGRESS=off forbids; unset it",
                  what);
        return COLL_ERR_INVALID;
    }
    if (!comm->run->has_thread)
        comm->run->has_thread = get(comm) == COLL_OK ? 1 : -1;
    if (comm->run->has_thread > 0)
        return COLL_OK;
    log_error("api",
              "%s: there is no progress thread, which operations of a "
              "stream need; see ulimit -u",
              what);
    return COLL_ERR_SYSTEM;
}

void coll__comm_drop_thread(struct coll_comm *comm)
{
    if (comm->run->has_thread > 0)
        put();
    comm->run->has_thread = 0;
}

/* The communicator uses the thread, so nobody writes has_core meanwhile. */
int coll__comm_has_thread_apart(const struct coll_comm *comm)
{
    return comm->run->has_thread > 0 && self.has_core;
}
