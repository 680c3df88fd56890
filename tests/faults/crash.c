/* SPDX-License-Identifier: BSD-3-Clause */
/* crash.c - the program's own libc calls: each is counted, and handed on.
 *
 * Defined in the program they come before libc's, for libcoll as for UCX.  The
 * n-th call from the arming on is never made: there the process ends, be it
 * between two halves of a handshake, with a lock held, or with a message half
 * written.
 *
 * This file is compiled without sanitizers: libc calls these functions before
 * theirs have begun.
 */
#include "tests/faults/crash.h"
#include "lib/util/util.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int n_left; /* 0: not armed */
static int end_by;
static _Atomic double *when;
static atomic_int *sent;
static atomic_int *by_ucx;

void crash_arm(int n_calls, int how, _Atomic double *struck)
{
    end_by = how;
    when = struck;
    atomic_store_explicit(&n_left, n_calls, memory_order_release);
}

void crash_count_sent(atomic_int *n_sent) { sent = n_sent; }

void crash_count_ucx(atomic_int *is_ucx) { by_ucx = is_ucx; }

/* Called by whoever gives up: UCX, where one of its assertions does not hold. */
void abort(void)
{
    Dl_info from;

    if (by_ucx && dladdr(__builtin_return_address(0), &from) &&
        from.dli_fname && strstr(from.dli_fname, "libuc"))
        atomic_store(by_ucx, 1);
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
    _exit(127);
}

static void crash(void)
{
    atomic_store(when, coll__now());
    if (end_by) {
        signal(end_by, SIG_DFL);
        raise(end_by);
    }
    _exit(9);
}

/* Of several threads the one that makes the n-th call ends them all. */
void crash_tick(void)
{
    if (atomic_load_explicit(&n_left, memory_order_acquire) > 0 &&
        atomic_fetch_sub(&n_left, 1) == 1)
        crash();
}

/* The next one of that name, libc's or a sanitizer's. */
static void *next_of(const char *name, _Atomic(void *) *known)
{
    void *fn = atomic_load_explicit(known, memory_order_acquire);

    if (!fn) {
        fn = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(known, fn, memory_order_release);
    }
    return fn;
}

#define PASS(type, name, params, args)                                         \
    type name params;                                                          \
    type name params                                                           \
    {                                                                          \
        static _Atomic(void *) known;                                          \
        type(*next) params;                                                    \
                                                                               \
        crash_tick();                                                                \
        *(void **)&next = next_of(#name, &known);                              \
        return next args;                                                      \
    }

PASS(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
PASS(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
PASS(ssize_t, pread, (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at))
PASS(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at),
     (fd, buf, n, at))
PASS(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
PASS(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
PASS(ssize_t, recv, (int fd, void *buf, size_t n, int flags),
     (fd, buf, n, flags))
PASS(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags),
     (fd, m, flags))
PASS(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
PASS(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long n,
      const struct iovec *from, unsigned long m, unsigned long flags),
     (pid, to, n, from, m, flags))
PASS(int, socket, (int domain, int type, int protocol),
     (domain, type, protocol))
PASS(int, listen, (int fd, int n), (fd, n))
PASS(int, shutdown, (int fd, int how), (fd, how))
PASS(int, close, (int fd), (fd))
PASS(int, ftruncate, (int fd, off_t len), (fd, len))
PASS(int, fallocate, (int fd, int mode, off_t at, off_t len),
     (fd, mode, at, len))
PASS(int, memfd_create, (const char *name, unsigned flags), (name, flags))
PASS(void *, mmap,
     (void *at, size_t len, int how, int flags, int fd, off_t from),
     (at, len, how, flags, fd, from))
PASS(int, munmap, (void *at, size_t len), (at, len))
PASS(int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout))
PASS(int, epoll_create1, (int flags), (flags))
PASS(int, epoll_ctl, (int fd, int op, int on, struct epoll_event *e),
     (fd, op, on, e))
PASS(int, epoll_wait, (int fd, struct epoll_event *e, int n, int timeout),
     (fd, e, n, timeout))
PASS(int, eventfd, (unsigned value, int flags), (value, flags))
PASS(int, sched_yield, (void), ())
PASS(int, nanosleep, (const struct timespec *t, struct timespec *left),
     (t, left))
PASS(int, kill, (pid_t pid, int number), (pid, number))
PASS(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *),
      void *arg),
     (thread, attr, fn, arg))
PASS(int, pthread_join, (pthread_t thread, void **result), (thread, result))

/* ---- what tells of a connection ------------------------------------------ */

PASS(int, connect, (int fd, const struct sockaddr *addr, socklen_t len),
     (fd, addr, len))
PASS(int, accept4, (int fd, struct sockaddr *addr, socklen_t *len, int flags),
     (fd, addr, len, flags))

ssize_t send(int fd, const void *buf, size_t n, int flags)
{
    static _Atomic(void *) known;
    ssize_t (*next)(int, const void *, size_t, int), rc;

    crash_tick();
    *(void **)&next = next_of("send", &known);
    rc = next(fd, buf, n, flags);
    if (sent && rc > 0)
        atomic_fetch_add(sent, 1);
    return rc;
}

/* ---- those with arguments of any number ---------------------------------- */

int open(const char *path, int flags, ...)
{
    static _Atomic(void *) known;
    int (*next)(const char *, int, ...);
    unsigned mode = 0;
    va_list args;

    crash_tick();
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_start(args, flags);
        mode = va_arg(args, unsigned);
        va_end(args);
    }
    *(void **)&next = next_of("open", &known);
    return next(path, flags, mode);
}

/* futex() and pidfd_open(), for example. */
long syscall(long number, ...)
{
    static _Atomic(void *) known;
    long (*next)(long, ...), a[6];
    va_list args;

    crash_tick();
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    *(void **)&next = next_of("syscall", &known);
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
