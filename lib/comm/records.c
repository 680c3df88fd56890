/* SPDX-License-Identifier: BSD-3-Clause */
/* records.c - on SIGUSR2 the files of COLL_HISTORY and COLL_METRICS are written, the
 * latter also every 10 s and when the last communicator ends.
 *
 * The signal handler wakes the reactor's thread through an eventfd, and that thread
 * writes the files.  The handler is installed with the first communicator of the
 * process, if the program has no handler of its own, and removed with the last
 * communicator.
 */
#include "lib/comm/records.h"
#include "lib/comm/comm.h"
#include "lib/net/auth.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/ctrl/ctrl.h"
#include "lib/trace/metrics.h"
#include "lib/trace/recorder.h"
#include "lib/util/util.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVERY 10.0 /* s, COLL_METRICS */

static atomic_int wake_fd = -1; /* what the handler writes to */
static struct sigaction old_action;

/* Protects these two, and the installation of the handler.  It is a mutex of its own
 * because it is held while the reactor starts and ends, and no coll__lock may be held
 * then. */
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_comms, uses_reactor;

/* Under the reactor's lock: the metrics are written every 10 s. */
static int is_due_again;

static void on_signal(int number)
{
    const uint64_t one = 1;
    int err = errno, fd = atomic_load_explicit(&wake_fd, memory_order_relaxed);

    (void)number;
    if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
        errno = err; /* the reactor's thread is awake already */
    errno = err;
}

/* Writing a file takes a while, and no thread should wait that long for the reactor's
 * lock. */
static void answer(struct coll__task *task)
{
    (void)task;
    coll__reactor_unlock();
    coll__recorder_write_all();
    coll__metrics_write();
    coll__reactor_lock();
}

static void write_again(struct coll__task *task)
{
    coll__reactor_unlock();
    coll__metrics_write();
    coll__reactor_lock();
    if (is_due_again)
        coll__reactor_defer_until(task, coll__now() + EVERY);
}

static struct coll__task on_request = {.run = answer};
static struct coll__task periodic = {.run = write_again};

static void ready(struct coll__source *source, uint32_t events)
{
    uint64_t n;

    (void)events;
    if (read(source->fd, &n, sizeof(n)) == sizeof(n))
        coll__reactor_defer(&on_request);
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

/* Install the handler.  If that cannot be done, the files are still written at a failure
 * and at the end. */
static void take_signal(void)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    if (!is_free()) {
        log_info("trace", "the program handles SIGUSR2 itself, so the signal "
                          "writes no file of COLL_HISTORY or COLL_METRICS");
        return;
    }
    if (watch()) {
        log_warn("trace", "cannot handle SIGUSR2, so the signal writes no file "
                          "of COLL_HISTORY or COLL_METRICS");
        return;
    }
    sigemptyset(&ours.sa_mask);
    sigaction(SIGUSR2, &ours, NULL);
}

static void leave_signal(void)
{
    struct sigaction now;

    if (!sigaction(SIGUSR2, NULL, &now) && is_by(&now, on_signal))
        sigaction(SIGUSR2, &old_action, NULL);
    atomic_store_explicit(&wake_fd, -1, memory_order_relaxed);
}

static void begin(void)
{
    uses_reactor = !coll__reactor_get();
    if (!uses_reactor)
        return;
    take_signal();
    coll__reactor_lock();
    is_due_again = coll__metrics_is_on();
    if (is_due_again)
        coll__reactor_defer_until(&periodic, coll__now() + EVERY);
    coll__reactor_unlock();
}

static void end(void)
{
    if (!uses_reactor)
        return;
    leave_signal();
    coll__reactor_lock();
    is_due_again = 0;
    coll__reactor_cancel(&periodic);
    coll__reactor_cancel(&on_request);
    if (source.fd >= 0)
        coll__reactor_remove(&source);
    coll__reactor_unlock();
    coll__reactor_put();
}

/* Count one more communicator, or one fewer. */
static void count(int change)
{
    int is_last;

    pthread_mutex_lock(&records_lock);
    if (!n_comms)
        begin();
    n_comms += change;
    is_last = !n_comms;
    if (is_last)
        end();
    pthread_mutex_unlock(&records_lock);
    if (is_last)
        coll__metrics_write();
}

/* In a child: the thread that held the lock does not exist here, so the lock starts
 * anew. */
static void forget(void)
{
    pthread_mutex_init(&records_lock, NULL);
    n_comms = 0;
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, forget); }

/* ---- which communicators ------------------------------------------------------- */

/* Make a name for the communicator, the same on all of its ranks.  Ranks that are alone
 * have no secret. */
static void name(const struct coll_comm *comm, char id[17])
{
    unsigned char secret[COLL__SECRET_BYTES];

    if (comm->size == 1)
        coll__auth_random(secret, sizeof(secret));
    else
        coll__ctrl_secret(comm->ctrl, "history", secret);
    coll__auth_hex(secret, 8, id);
}

void coll__records_add(struct coll_comm *comm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct coll__records *records = &comm->records;
    struct coll__recorded what = {.generation = comm->generation,
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .ranks = comm->members.first,
                                  .history = comm->calls.history,
                                  .status = &comm->failure.status,
                                  .failure = comm->failure.text};

    if (!coll__recorder_is_on() && !coll__metrics_is_on())
        return;
    pthread_once(&once, watch_forks);
    name(comm, what.id);
    if (coll__recorder_is_on())
        coll__recorder_add(&records->recorder, &what);
    records->metrics = coll__metrics_add(what.id, what.size);
    records->is_counted = 1;
    count(1);
}

void coll__records_joint(struct coll_comm *comm, double seconds)
{
    comm->records.n_joint++;
    comm->records.in_joint += seconds;
}

void coll__records_remove(struct coll_comm *comm)
{
    coll__recorder_remove(&comm->records.recorder);
    if (comm->records.is_counted && !coll__comm_is_inherited(comm))
        count(-1);
}
