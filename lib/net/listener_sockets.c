/* SPDX-License-Identifier: BSD-3-Clause */
/* listener_sockets.c - the listener's listening sockets.
 *
 * They are open while there is a gate; when the last gate is removed, they are closed.
 * So a process that has made all its communicators listens nowhere.  A brief socket
 * serves one rendezvous, and its address is not told to any other group.
 */
#include "lib/net/listener_int.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE 0.1     /* s without accept() when no seat is free */
#define MAX_ACCEPT 64 /* connections before other sources are served */
#define MAX_LISTENERS 64

struct listener {
    struct coll__source source; /* first */
    int is_brief;
};

static struct listener *listeners[MAX_LISTENERS];
static int has_complained; /* that descriptors ran out */

/* ---- connections -------------------------------------------------------- */

static void pause_listener(struct coll__source *source)
{
    coll__reactor_change(source, 0);
    coll__reactor_deadline(source, coll__now() + PAUSE);
}

static int is_want(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

/* The listener may close while a connection is accepted. */
static int is_listening(const struct coll__source *source)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (listeners[i] && &listeners[i]->source == source)
            return 1;
    return 0;
}

/* Accept one connection; may there be another one? */
static int accept_one(struct coll__source *source)
{
    int fd, err;

    if (!coll__listener_seat(0)) {
        pause_listener(source);
        return 0;
    }
    fd = accept4(source->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    err = errno;
    if (fd >= 0) {
        coll__listener_admit(fd);
        return is_listening(source);
    }
    if (err == ECONNABORTED || err == EINTR)
        return 1;
    if (!is_want(err))
        return 0;
    if (coll__listener_seat(1))
        return 1;
    if (!has_complained)
        log_warn("boot", "cannot accept a connection: %s; see ulimit -n",
                 strerror(err));
    has_complained = 1;
    pause_listener(source);
    return 0;
}

static void listener_ready(struct coll__source *source, uint32_t events)
{
    (void)events;
    for (int i = 0; i < MAX_ACCEPT; i++)
        if (!accept_one(source))
            break;
}

static void listener_expired(struct coll__source *source)
{
    double due = coll__listener_report();

    coll__reactor_change(source, EPOLLIN);
    if (due > 0)
        coll__reactor_deadline(source, due);
}

void coll__listener_resume(void)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (listeners[i])
            coll__reactor_change(&listeners[i]->source, EPOLLIN);
}

void coll__listener_remind(double when)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (listeners[i] && listeners[i]->source.deadline <= 0) {
            coll__reactor_deadline(&listeners[i]->source, when);
            return;
        }
}

/* ---- opening and closing ------------------------------------------------ */

static void listener_dropped(struct coll__source *source)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (listeners[i] && &listeners[i]->source == source)
            listeners[i] = NULL;
    free(source);
}

static void close_listener(struct listener *listener)
{
    coll__reactor_remove(&listener->source);
    listener_dropped(&listener->source);
}

void coll__listener_close(void)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (listeners[i])
            close_listener(listeners[i]);
}

void coll__listener_close_spare(int fd)
{
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (listeners[i] && listeners[i]->is_brief &&
            listeners[i]->source.fd == fd)
            close_listener(listeners[i]);
}

/* Is accept() allowed?  Call it on no socket: if it is allowed, the error is EBADF.  If
 * it is forbidden, the other ranks would wait for this one until their deadlines. */
static int check_accept(void)
{
    accept4(-1, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (errno == EBADF)
        return COLL_OK;
    log_error("boot",
              "cannot accept connections, accept4() fails: %s; a seccomp "
              "profile forbids it",
              strerror(errno));
    return COLL_ERR_SYSTEM;
}

/* Accept connections from fd, which the listener owns, whatever the status. */
static int start_listener(int fd, int is_brief)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    int i = 0, status;

    while (i < MAX_LISTENERS && listeners[i])
        i++;
    if (!listener || i == MAX_LISTENERS) {
        log_error("boot", "cannot listen on another port: %s",
                  listener ? "this process has too many" : "out of memory");
        free(listener);
        close(fd);
        return listener ? COLL_ERR_SYSTEM : COLL_ERR_NOMEM;
    }
    listener->is_brief = is_brief;
    listener->source = (struct coll__source){
        .fd = fd,
        .events = EPOLLIN,
        .ready = listener_ready,
        .expired = listener_expired,
        .dropped = listener_dropped,
    };
    status = coll__reactor_add(&listener->source);
    if (status) {
        free(listener);
        close(fd);
        return status;
    }
    listeners[i] = listener;
    return COLL_OK;
}

static int adopt(int fd, int is_brief)
{
    int status = check_accept();

    if (!status)
        return start_listener(fd, is_brief);
    close(fd);
    return status;
}

int coll__listener_adopt(int fd, int is_brief)
{
    int status;

    coll__net_await_words(fd);
    coll__reactor_lock();
    status = adopt(fd, is_brief);
    coll__reactor_unlock();
    return status;
}

static int open_any(enum coll__reach reach,
                    struct coll__addr addrs[COLL__MAX_ADDRS])
{
    int fd, n, status;

    for (int i = 0; i < MAX_LISTENERS; i++) {
        if (!listeners[i] || listeners[i]->is_brief ||
            coll__net_reach(listeners[i]->source.fd) < reach)
            continue;
        n = coll__net_own_addrs(listeners[i]->source.fd, addrs);
        if (n > 0)
            return n;
    }
    status = coll__net_listen(reach, &fd);
    if (status)
        return status;
    n = coll__net_own_addrs(fd, addrs);
    status = adopt(fd, 0);
    return status ? status : n;
}

int coll__listener_open(enum coll__reach reach,
                        struct coll__addr addrs[COLL__MAX_ADDRS])
{
    int n;

    coll__reactor_lock();
    n = open_any(reach, addrs);
    coll__reactor_unlock();
    return n;
}

static int has_port(const struct listener *listener, uint16_t port)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];

    return listener && coll__net_own_addrs(listener->source.fd, addrs) > 0 &&
           coll__net_port(&addrs[0]) == port;
}

int coll__listener_open_at(const struct coll__addr *at, int is_quiet)
{
    int fd, status = COLL_OK;

    coll__reactor_lock();
    for (int i = 0; i < MAX_LISTENERS; i++)
        if (has_port(listeners[i], coll__net_port(at)))
            goto out;
    status = coll__net_listen_at(at, is_quiet, &fd);
    if (!status)
        status = adopt(fd, 0);
out:
    coll__reactor_unlock();
    return status;
}
