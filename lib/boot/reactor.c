/* SPDX-License-Identifier: BSD-3-Clause */
/* reactor.c - the thread, its table of sources and its queue of tasks.
 *
 * epoll's user data is a slot and the serial number of its use, so that an
 * event for a source that another thread removed meanwhile finds nobody.
 */
#include "lib/boot/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_EVENTS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* All under the lock. */
static struct {
    unsigned epoch;
    int n_users, is_stopping;
    pthread_cond_t stopped; /* is_stopping became 0 */
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct coll__source **slots;
    uint32_t n_slots, serial;
    struct coll__task *first, **last;
} reactor = {.epoll_fd = -1, .wake_fd = -1};

void coll__reactor_lock(void) { pthread_mutex_lock(&lock); }

void coll__reactor_unlock(void) { pthread_mutex_unlock(&lock); }

void coll__reactor_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int coll__reactor_wait(pthread_cond_t *cond, double deadline)
{
    struct timespec until = {.tv_sec = (time_t)deadline};

    until.tv_nsec = (long)((deadline - (double)until.tv_sec) * 1e9);
    return pthread_cond_timedwait(cond, &lock, &until) == ETIMEDOUT
               ? COLL_ERR_TIMEOUT
               : COLL_OK;
}

unsigned coll__reactor_epoch(void) { return reactor.epoch; }

static void wake(void)
{
    uint64_t one = 1;

    if (write(reactor.wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        log_warn("boot", "cannot wake the reactor: %s", strerror(errno));
}

/* ---- sources ------------------------------------------------------------ */

static int find_slot(uint32_t *slot)
{
    struct coll__source **more;
    uint32_t n = reactor.n_slots;

    for (*slot = 0; *slot < n; ++*slot)
        if (!reactor.slots[*slot])
            return COLL_OK;
    more = realloc(reactor.slots, (2 * n + 16) * sizeof(struct coll__source *));
    if (!more)
        return COLL_ERR_NOMEM;
    memset(more + n, 0, (n + 16) * sizeof(struct coll__source *));
    reactor.slots = more;
    reactor.n_slots = 2 * n + 16;
    return COLL_OK;
}

static int control(struct coll__source *source, int how)
{
    struct epoll_event event = {
        .events = source->events,
        .data.u64 = (uint64_t)source->serial << 32 | source->slot,
    };

    return epoll_ctl(reactor.epoll_fd, how, source->fd, &event);
}

int coll__reactor_add(struct coll__source *source)
{
    if (find_slot(&source->slot)) {
        log_error("boot", "no memory to watch another socket");
        return COLL_ERR_NOMEM;
    }
    source->serial = ++reactor.serial;
    if (control(source, EPOLL_CTL_ADD)) {
        log_error("boot", "cannot watch a socket: %s", strerror(errno));
        return COLL_ERR_SYSTEM;
    }
    reactor.slots[source->slot] = source;
    if (source->deadline > 0)
        wake();
    return COLL_OK;
}

void coll__reactor_change(struct coll__source *source, uint32_t events)
{
    if (source->fd < 0 || source->events == events)
        return;
    source->events = events;
    if (control(source, EPOLL_CTL_MOD))
        log_warn("boot", "cannot watch a socket: %s", strerror(errno));
}

void coll__reactor_deadline(struct coll__source *source, double deadline)
{
    source->deadline = deadline;
    if (source->fd >= 0 && deadline > 0)
        wake();
}

int coll__reactor_release(struct coll__source *source)
{
    int fd = source->fd;

    if (fd < 0)
        return fd;
    control(source, EPOLL_CTL_DEL);
    reactor.slots[source->slot] = NULL;
    source->fd = -1;
    return fd;
}

void coll__reactor_remove(struct coll__source *source)
{
    int fd = coll__reactor_release(source);

    if (fd >= 0)
        close(fd);
}

/* Close every source that is left and tell its owner. */
static void drop_sources(void)
{
    for (uint32_t i = 0; i < reactor.n_slots; i++) {
        struct coll__source *source = reactor.slots[i];

        if (!source)
            continue;
        reactor.slots[i] = NULL;
        close(source->fd);
        source->fd = -1;
        source->dropped(source);
    }
    free(reactor.slots);
    reactor.slots = NULL;
    reactor.n_slots = 0;
}

/* ---- tasks -------------------------------------------------------------- */

void coll__reactor_defer(struct coll__task *task)
{
    if (task->is_queued)
        return;
    task->is_queued = 1;
    task->next = NULL;
    *reactor.last = task;
    reactor.last = &task->next;
    wake();
}

void coll__reactor_cancel(struct coll__task *task)
{
    struct coll__task **at = &reactor.first;

    if (!task->is_queued)
        return;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (!*at)
        reactor.last = at;
    task->is_queued = 0;
}

static void run_tasks(void)
{
    while (reactor.first) {
        struct coll__task *task = reactor.first;

        coll__reactor_cancel(task);
        task->run(task);
    }
}

/* ---- the thread --------------------------------------------------------- */

/* Return epoll's timeout until the next deadline, in ms; -1 for none. */
static int time_left(void)
{
    double next = 0, left;

    for (uint32_t i = 0; i < reactor.n_slots; i++) {
        struct coll__source *source = reactor.slots[i];

        if (source && source->deadline > 0 &&
            (next <= 0 || source->deadline < next))
            next = source->deadline;
    }
    if (next <= 0)
        return -1;
    left = next - coll__now();
    if (left <= 0)
        return 0;
    return left > 3600 ? 3600000 : (int)(left * 1000) + 1;
}

static void run_expired(void)
{
    double now = coll__now();

    for (uint32_t i = 0; i < reactor.n_slots; i++) {
        struct coll__source *source = reactor.slots[i];

        if (source && source->deadline > 0 && source->deadline <= now) {
            source->deadline = 0;
            source->expired(source);
        }
    }
}

static void dispatch(const struct epoll_event *event)
{
    uint32_t slot = (uint32_t)event->data.u64;
    uint32_t serial = (uint32_t)(event->data.u64 >> 32);
    struct coll__source *source;
    uint64_t count;

    if (!serial) { /* somebody woke us: there is a task, or an end */
        if (read(reactor.wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
            log_warn("boot", "eventfd: %s", strerror(errno));
        return;
    }
    source = slot < reactor.n_slots ? reactor.slots[slot] : NULL;
    if (source && source->serial == serial)
        source->ready(source, event->events);
}

static void *run(void *arg)
{
    struct epoll_event events[MAX_EVENTS];
    int epoll_fd, ms;

    (void)arg;
    coll__reactor_lock();
    while (!reactor.is_stopping) {
        int n;

        ms = time_left();
        epoll_fd = reactor.epoll_fd;
        coll__reactor_unlock();
        n = epoll_wait(epoll_fd, events, MAX_EVENTS, ms);
        coll__reactor_lock();
        for (int i = 0; i < n; i++)
            dispatch(&events[i]);
        run_expired();
        run_tasks();
    }
    coll__reactor_unlock();
    return NULL;
}

/* The application's signals are not for this thread. */
static int start_thread(void)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&reactor.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!rc)
        pthread_setname_np(reactor.thread, "coll-reactor");
    return -rc;
}

static void close_fds(void)
{
    if (reactor.wake_fd >= 0)
        close(reactor.wake_fd);
    if (reactor.epoll_fd >= 0)
        close(reactor.epoll_fd);
    reactor.epoll_fd = reactor.wake_fd = -1;
}

static int start(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};
    int rc;

    reactor.first = NULL;
    reactor.last = &reactor.first;
    reactor.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    reactor.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reactor.epoll_fd < 0 || reactor.wake_fd < 0 ||
        epoll_ctl(reactor.epoll_fd, EPOLL_CTL_ADD, reactor.wake_fd, &event))
        rc = -errno;
    else
        rc = start_thread();
    if (!rc)
        return COLL_OK;
    close_fds();
    log_error("boot",
              "cannot start the control thread: %s; see ulimit -n and "
              "ulimit -u",
              strerror(-rc));
    return COLL_ERR_SYSTEM;
}

/* ---- fork: the child has the sockets but not the thread ------------------ */

static void before_fork(void) { coll__reactor_lock(); }

static void after_fork_parent(void) { coll__reactor_unlock(); }

/* Close what is the parent's, so that its peers see it end when it ends. */
static void after_fork_child(void)
{
    drop_sources();
    close_fds();
    reactor.epoch++;
    reactor.n_users = 0;
    reactor.is_stopping = 0;
    reactor.first = NULL;
    reactor.last = &reactor.first;
    coll__reactor_cond_init(&reactor.stopped);
    coll__reactor_unlock();
}

static void init(void)
{
    coll__reactor_cond_init(&reactor.stopped);
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int coll__reactor_get(void)
{
    int status = COLL_OK;

    pthread_once(&once, init);
    coll__reactor_lock();
    while (reactor.is_stopping)
        pthread_cond_wait(&reactor.stopped, &lock);
    if (!reactor.n_users)
        status = start();
    if (!status)
        reactor.n_users++;
    coll__reactor_unlock();
    return status;
}

void coll__reactor_put(void)
{
    pthread_t thread;

    coll__reactor_lock();
    if (--reactor.n_users) {
        coll__reactor_unlock();
        return;
    }
    reactor.is_stopping = 1;
    thread = reactor.thread;
    wake();
    coll__reactor_unlock();
    pthread_join(thread, NULL);
    coll__reactor_lock();
    drop_sources();
    close_fds();
    reactor.is_stopping = 0;
    pthread_cond_broadcast(&reactor.stopped);
    coll__reactor_unlock();
}
