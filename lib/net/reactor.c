/* SPDX-License-Identifier: BSD-3-Clause */
/* reactor.c - the thread, its table of sources and its queue of tasks.
 *
 * epoll's user data holds a slot and the serial number of its use.  So an event for a
 * source that another thread has removed meanwhile is recognized and dropped.
 */
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/fence.h"
#include "lib/util/lock.h"
#include "lib/util/spawn.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_EVENTS 64
#define LOG_TIME 0.1     /* s, between two tries to write pending log lines */
#define MOVE_SOON 100e-6 /* s, between two calls of move() */
#define MOVE_LATER 10e-3

static void forget_parent(void);

static struct coll__lock lock = COLL__LOCK(forget_parent);
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* All under the lock. */
static struct {
    int n_users, is_stopping;
    pthread_cond_t stopped; /* is_stopping became 0 */
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct coll__source **slots;
    uint32_t n_slots, serial;
    struct coll__task *first, **last; /* to run soon, in order */
    struct coll__task *later;         /* at their times, in any order */
} reactor = {.epoll_fd = -1, .wake_fd = -1};

/* The function that progresses communicators.  It is set once; `move` is stored after
 * n_busy. */
static struct {
    atomic_int *n_busy;
    _Atomic(void (*)(void)) move;
} mover;

void coll__reactor_lock(void) { coll__lock(&lock); }

int coll__reactor_lock_try(void) { return coll__lock_try(&lock); }

void coll__reactor_unlock(void) { coll__unlock(&lock); }

void coll__reactor_cond_init(pthread_cond_t *cond) { coll__cond_init(cond); }

void coll__reactor_move(atomic_int *n_busy, void (*move)(void))
{
    mover.n_busy = n_busy;
    atomic_store_explicit(&mover.move, move, memory_order_release);
}

/* Return how long a thread may sleep before it calls move(); 0: without limit. */
static double slice(void (*move)(void))
{
    if (!move)
        return 0;
    return atomic_load_explicit(mover.n_busy, memory_order_relaxed)
               ? MOVE_SOON
               : MOVE_LATER;
}

/* Returns after each slice of time: the caller's condition may have become true while
 * the lock was not held. */
int coll__reactor_wait(pthread_cond_t *cond, double deadline)
{
    void (*move)(void) =
        atomic_load_explicit(&mover.move, memory_order_acquire);
    double pause = slice(move), until = coll__now() + pause;

    if (!pause || until >= deadline)
        return coll__lock_wait(&lock, cond, deadline) ? COLL_ERR_TIMEOUT
                                                      : COLL_OK;
    if (coll__lock_wait(&lock, cond, until)) {
        coll__unlock(&lock);
        move();
        coll__lock(&lock);
    }
    return COLL_OK;
}

int coll__reactor_poll(struct pollfd *fds, int n, double until)
{
    void (*move)(void) =
        atomic_load_explicit(&mover.move, memory_order_acquire);
    double left = until - coll__now(), pause = slice(move);
    struct timespec time;
    int rc;

    if (pause && pause < left)
        left = pause;
    left = left < 0 ? 0 : left > 3600 ? 3600 : left;
    time.tv_sec = (time_t)left;
    time.tv_nsec = (long)((left - (double)time.tv_sec) * 1e9);
    rc = ppoll(fds, (nfds_t)n, &time, NULL);
    if (!rc && move)
        move();
    return rc;
}

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
    if (reactor.epoll_fd >= 0 && control(source, EPOLL_CTL_MOD))
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

/* Close every remaining source and tell its owner. */
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

static void queue_at(struct coll__task *task, struct coll__task **at)
{
    task->is_queued = 1;
    task->at = at;
    task->next = *at;
    if (task->next)
        task->next->at = &task->next;
    *at = task;
}

void coll__reactor_defer(struct coll__task *task)
{
    if (task->is_queued)
        return;
    task->when = 0;
    queue_at(task, reactor.last);
    reactor.last = &task->next;
    wake();
}

void coll__reactor_defer_until(struct coll__task *task, double when)
{
    coll__reactor_cancel(task);
    task->when = when;
    queue_at(task, &reactor.later);
    wake();
}

void coll__reactor_cancel(struct coll__task *task)
{
    if (!task->is_queued)
        return;
    *task->at = task->next;
    if (task->next)
        task->next->at = task->at;
    if (reactor.last == &task->next)
        reactor.last = task->at;
    task->is_queued = 0;
}

/* Take the next task among those that were due at that time; or NULL. */
static struct coll__task *find_due(double then)
{
    struct coll__task *due = reactor.first;

    for (struct coll__task *task = reactor.later; task; task = task->next)
        if (task->when <= then && (!due || task->when < due->when))
            due = task;
    return due;
}

static void run_tasks(double looked)
{
    struct coll__task *task;

    while ((task = find_due(looked))) {
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
    for (struct coll__task *task = reactor.later; task; task = task->next)
        if (next <= 0 || task->when < next)
            next = task->when;
    if (coll__log_is_stuck() && (next <= 0 || next > coll__now() + LOG_TIME))
        next = coll__now() + LOG_TIME; /* stderr may take it then */
    if (next <= 0)
        return -1;
    left = next - coll__now();
    if (left <= 0)
        return 0;
    return left > 3600 ? 3600000 : (int)(left * 1000) + 1;
}

/* Return the source whose deadline passed first, or NULL. */
static struct coll__source *find_expired(double now)
{
    struct coll__source *first = NULL;

    for (uint32_t i = 0; i < reactor.n_slots; i++) {
        struct coll__source *source = reactor.slots[i];

        if (source && source->deadline > 0 && source->deadline <= now &&
            (!first || source->deadline < first->deadline))
            first = source;
    }
    return first;
}

/* Call expired() in the order of the deadlines, even when late: if two processes ended,
 * the first end may be the cause of the second. */
static void run_expired(double looked)
{
    struct coll__source *source;

    while ((source = find_expired(looked))) {
        source->deadline = 0;
        source->expired(source);
    }
}

static void dispatch(const struct epoll_event *event)
{
    uint32_t slot = (uint32_t)event->data.u64;
    uint32_t serial = (uint32_t)(event->data.u64 >> 32);
    struct coll__source *source;
    uint64_t count;

    if (!serial) { /* another thread woke this one: a new task, or the end */
        if (read(reactor.wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
            log_warn("boot", "eventfd: %s", strerror(errno));
        return;
    }
    source = slot < reactor.n_slots ? reactor.slots[slot] : NULL;
    if (source && source->serial == serial)
        source->ready(source, event->events);
}

/* A deadline counts as passed only if it passed before the thread looked for events: if
 * the thread itself is late, the awaited event may have come meanwhile. */
static void *run(void *arg)
{
    struct epoll_event events[MAX_EVENTS];
    double looked;
    int epoll_fd, ms;

    (void)arg;
    coll__reactor_lock();
    while (!reactor.is_stopping) {
        int n;

        ms = time_left();
        epoll_fd = reactor.epoll_fd;
        coll__reactor_unlock();
        looked = coll__now();
        n = epoll_wait(epoll_fd, events, MAX_EVENTS, ms);
        coll__reactor_lock();
        for (int i = 0; i < n; i++)
            dispatch(&events[i]);
        run_expired(looked);
        run_tasks(looked);
    }
    coll__reactor_unlock();
    return NULL;
}

static void close_fds(void)
{
    if (reactor.wake_fd >= 0)
        close(reactor.wake_fd);
    if (reactor.epoll_fd >= 0)
        close(reactor.epoll_fd);
    reactor.epoll_fd = reactor.wake_fd = -1;
}

/* Open epoll and the eventfd: 0, or an errno.  Also try epoll_wait() once: if it is
 * forbidden, the thread could only spin. */
static int open_fds(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};

    reactor.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    reactor.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reactor.epoll_fd < 0 || reactor.wake_fd < 0 ||
        epoll_ctl(reactor.epoll_fd, EPOLL_CTL_ADD, reactor.wake_fd, &event) ||
        epoll_wait(reactor.epoll_fd, &event, 1, 0) < 0)
        return errno;
    return 0;
}

/* Try the system calls for sockets, on a descriptor that is no socket.  If one is
 * forbidden, a rank would wait for an answer until its deadline.  Returns NULL, or the
 * forbidden call's name, with errno set. */
static const char *find_forbidden(void)
{
    struct timespec none = {0};
    char byte;

    if (send(reactor.wake_fd, &byte, 0, MSG_NOSIGNAL) < 0 && errno != ENOTSOCK)
        return "send";
    if (recv(reactor.wake_fd, &byte, 0, 0) < 0 && errno != ENOTSOCK)
        return "recv";
    if (poll(NULL, 0, 0) < 0)
        return "poll";
    return ppoll(NULL, 0, &none, NULL) < 0 ? "ppoll" : NULL;
}

static int start(void)
{
    const char *forbidden = NULL;
    int err;

    coll__fence_join(); /* before the thread starts: after that it takes 10 ms */
    reactor.first = reactor.later = NULL;
    reactor.last = &reactor.first;
    err = open_fds();
    if (!err && (forbidden = find_forbidden()))
        err = errno;
    if (!err)
        err = coll__spawn(&reactor.thread, run, NULL, "coll-reactor");
    if (!err)
        return COLL_OK;
    close_fds();
    if (forbidden || err == EPERM || err == ENOSYS)
        log_error("boot",
                  "cannot start the control thread: %s; a seccomp profile "
                  "forbids %s",
                  strerror(err),
                  forbidden ? forbidden : "epoll, eventfd or threads");
    else
        log_error("boot",
                  "cannot start the control thread: %s; see ulimit -n and "
                  "ulimit -u",
                  strerror(err));
    return COLL_ERR_SYSTEM;
}

/* ---- fork: the child has the sockets but not the thread ------------------ */

/* Close the parent's sockets in the child, so that peers notice the parent's end.  epoll
 * is closed first: the parent uses it too, and an owner may change or remove sources when
 * it is told. */
static void forget_parent(void)
{
    close_fds();
    drop_sources();
    reactor.n_users = 0;
    reactor.is_stopping = 0;
    while (reactor.first)
        coll__reactor_cancel(reactor.first);
    while (reactor.later)
        coll__reactor_cancel(reactor.later);
    coll__cond_init(&reactor.stopped);
}

static void init(void) { coll__cond_init(&reactor.stopped); }

int coll__reactor_get(void)
{
    int status = COLL_OK;

    pthread_once(&once, init);
    coll__reactor_lock();
    while (reactor.is_stopping)
        pthread_cond_wait(&reactor.stopped, &lock.mutex);
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
