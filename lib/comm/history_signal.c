/* SPDX-License-Identifier: BSD-3-Clause */
/* history_signal.c - on SIGUSR2 the file of COLL_HISTORY is written.
 *
 * The signal handler wakes the reactor's thread through an eventfd, and that thread
 * writes the file.  The handler is installed with the first communicator of the
 * process, if the program has no handler of its own, and removed with the last
 * communicator.
 */
#include "lib/comm/history_signal.h"
#include "lib/comm/comm.h"
#include "lib/net/auth.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/ctrl/ctrl.h"
#include "lib/trace/recorder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static atomic_int wake_fd = -1; /* what the handler writes to */
static struct sigaction old_action;

/* Protects takes_signal, and the installation of the handler.  It is a mutex of its own
 * because it is held while the reactor starts and ends, and no coll__lock may be held
 * then. */
static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static int takes_signal;

static void on_signal(int number)
{
    const uint64_t one = 1;
    int err = errno, fd = atomic_load_explicit(&wake_fd, memory_order_relaxed);

    (void)number;
    if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
        errno = err; /* the reactor's thread is awake already */
    errno = err;
}

/* Writing the file takes a while, and no thread should wait that long for the reactor's
 * lock. */
static void run(struct coll__task *task)
{
    (void)task;
    coll__reactor_unlock();
    coll__recorder_write_all();
    coll__reactor_lock();
}

static struct coll__task task = {.run = run};

static void ready(struct coll__source *source, uint32_t events)
{
    uint64_t n;

    (void)events;
    if (read(source->fd, &n, sizeof(n)) == sizeof(n))
        coll__reactor_defer(&task);
}

static void dropped(struct coll__source *dropped)
{
    dropped->fd = -1;
    atomic_store_explicit(&wake_fd, -1, memory_order_relaxed);
}

static struct coll__source source = {.fd = -1};

static int is_by(const struct sigaction *action, void (*handler)(int))
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == handler;
}

/* Has the program no handler for SIGUSR2?  In a child the handler may be ours,
 * inherited from the parent. */
static int is_free(void)
{
    struct sigaction now;

    if (sigaction(SIGUSR2, NULL, &now))
        return 0;
    if (is_by(&now, on_signal))
        return 1;
    if (!is_by(&now, SIG_DFL) && !is_by(&now, SIG_IGN))
        return 0;
    old_action = now;
    return 1;
}

static int watch(void)
{
    int rc, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return -1;
    source = (struct coll__source){
        .fd = fd, .events = EPOLLIN, .ready = ready, .dropped = dropped};
    coll__reactor_lock();
    rc = coll__reactor_add(&source);
    coll__reactor_unlock();
    if (rc) {
        close(fd);
        return -1;
    }
    atomic_store_explicit(&wake_fd, fd, memory_order_relaxed);
    return 0;
}

/* If the handler cannot be installed, the file is still written at a failure. */
static int take_signal(void)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (!is_free()) {
        log_info("trace", "the program handles SIGUSR2 itself, so COLL_HISTORY "
                          "is written only at a failure");
        return 0;
    }
    if (coll__reactor_get())
        return 0;
    if (watch()) {
        coll__reactor_put();
        log_warn("trace", "cannot handle SIGUSR2, so COLL_HISTORY is written "
                          "only at a failure");
        return 0;
    }
    sigemptyset(&ours.sa_mask);
    return !sigaction(SIGUSR2, &ours, NULL);
}

static void leave_signal(void)
{
    struct sigaction now;

    if (!sigaction(SIGUSR2, NULL, &now) && is_by(&now, on_signal))
        sigaction(SIGUSR2, &old_action, NULL);
    atomic_store_explicit(&wake_fd, -1, memory_order_relaxed);
    coll__reactor_lock();
    coll__reactor_cancel(&task);
    if (source.fd >= 0)
        coll__reactor_remove(&source);
    coll__reactor_unlock();
    coll__reactor_put();
}

/* Install the handler if the process has communicators, and remove it if it has none.
 * Other threads may have added or removed communicators meanwhile. */
static void settle_signal(void)
{
    int has_comms;

    pthread_mutex_lock(&signal_lock);
    has_comms = coll__recorder_is_used();
    if (has_comms && !takes_signal) {
        takes_signal = take_signal();
    } else if (!has_comms && takes_signal) {
        leave_signal();
        takes_signal = 0;
    }
    pthread_mutex_unlock(&signal_lock);
}

/* In a child: the thread that held the lock does not exist here, so the lock starts
 * anew. */
static void forget(void)
{
    pthread_mutex_init(&signal_lock, NULL);
    takes_signal = 0;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget); }

/* ---- which communicators ------------------------------------------------------- */

/* Make a name for the communicator, the same on all of its ranks. */
static void name(const struct coll_comm *comm, char id[17])
{
    unsigned char secret[COLL__SECRET_BYTES];

    coll__ctrl_secret(comm->ctrl, "history", secret);
    for (int i = 0; i < 8; i++)
        snprintf(id + 2 * i, 3, "%02x", secret[i]);
}

void coll__history_add(struct coll_comm *comm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct coll__recorded what = {.generation = comm->generation,
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .ranks = comm->members.first,
                                  .history = comm->calls.history,
                                  .status = &comm->failure.status,
                                  .failure = comm->failure.text};

    if (!coll__recorder_is_on())
        return;
    pthread_once(&once, watch_forks);
    name(comm, what.id);
    coll__recorder_add(&comm->recorder, &what);
    settle_signal();
}

void coll__history_remove(struct coll_comm *comm)
{
    int was_there = comm->recorder.times && !coll__comm_is_inherited(comm);

    coll__recorder_remove(&comm->recorder);
    if (was_there)
        settle_signal();
}
