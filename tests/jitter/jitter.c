/* SPDX-License-Identifier: BSD-3-Clause */
/* jitter.c - a library to preload: calls of libc that come late, at random.
 *
 *   LD_PRELOAD=tests/jitter/.libs/libjitter.so JITTER=SEED,PERMILLE,MOST_US
 *
 * On a busy machine a process loses its core between any two instructions, for
 * as long as others like.  Here it sleeps before or after some of its calls, so
 * that ranks meet in orders which a quiet machine never shows, and no core is
 * used for it.  Of 1,000 usual calls PERMILLE are late, by up to MOST_US; what
 * is called all the time is late less often, what is called a few times more
 * often.  Beside that, threads that compute are interrupted anywhere, by a signal
 * (unless they block it).  One delay of many takes 20 to 300 ms, and one process or
 * thread of eight is slow in nearly all that it does.  No thread sleeps more than
 * its share of the time, so that a test takes some times as long, and not a thousand
 * times.
 *
 * Each thread draws from a generator of its own, whose seed follows from SEED,
 * the program's name, its rank, and how it was made; what ranks do at the same
 * time is still the scheduler's affair, so a seed shows a failure again often,
 * and not always.
 *
 * Nothing here allocates or locks, so that it works in signal handlers and
 * behind fork().  This file is compiled without sanitizers, whose functions are
 * the next ones of these names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How often a call is late, beside the usual ones. */
enum weight { HOT = 1, OFTEN = 8, USUAL = 32, FEW = 256 };

#define SLOW_ONE_OF 8      /* processes, and threads of the others */
#define LONG_ONE_OF 256    /* delays */
#define LONG_FROM_US 20000 /* and how long those are */
#define LONG_TO_US 300000
#define SLOW_FACTOR 16   /* as often late as others */
#define ALLOWANCE 400000 /* us, that any thread may sleep beside its share */

static struct {
    uint64_t permille, most_us;
    _Atomic uint64_t key; /* the process's; 0: nothing is late */
    atomic_uint n_threads, n_children;
    atomic_bool is_slow;
} process;

static __thread struct {
    uint64_t state; /* 0: draws nothing yet */
    uint64_t began_us, slept_us;
    timer_t timer;
    int is_slow, is_inside;
} mine __attribute__((tls_model("initial-exec")));

/* The next one of that name: a sanitizer's, or libc's, and of several versions
 * there the one that programs are linked with, which dlsym() does not find. */
static void *find_next(const char *name, const char *version)
{
    void *any = dlsym(RTLD_NEXT, name);
    void *fn = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    Dl_info of_any, of_fn;

    if (!any || !fn || !dladdr(any, &of_any) || !dladdr(fn, &of_fn))
        return any ? any : fn;
    return of_any.dli_fbase == of_fn.dli_fbase ? fn : any;
}

static void *next_of(const char *name, const char *version,
                     _Atomic(void *) *known)
{
    void *fn = atomic_load_explicit(known, memory_order_acquire);

    if (!fn) {
        mine.is_inside++;
        fn = find_next(name, version);
        mine.is_inside--;
        atomic_store_explicit(known, fn, memory_order_release);
    }
    return fn;
}

/* ---- what is drawn ------------------------------------------------------- */

/* Scatter the bits of x (splitmix64). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t draw(uint64_t below)
{
    mine.state = mix(mine.state) | 1;
    return (mine.state >> 16) % below;
}

static void take_key(uint64_t key)
{
    atomic_store(&process.n_threads, 0);
    atomic_store(&process.n_children, 0);
    atomic_store(&process.is_slow, (key >> 32) % SLOW_ONE_OF == 0);
    atomic_store(&process.key, key | 1);
    mine.state = 0;
}

static uint64_t hash(uint64_t key, const char *text)
{
    for (; text && *text; text++)
        key = mix(key ^ (unsigned char)*text);
    return key;
}

__attribute__((constructor)) static void jitter_begin(void)
{
    const char *text = getenv("JITTER");
    unsigned long seed, permille, most_us;

    if (!text || sscanf(text, "%lu,%lu,%lu", &seed, &permille, &most_us) != 3)
        return;
    process.permille = permille;
    process.most_us = most_us;
    take_key(hash(hash(mix(seed), program_invocation_short_name),
                  getenv("COLL_RANK")));
}

/* ---- sleeping ------------------------------------------------------------ */

static uint64_t now_us(void)
{
    static _Atomic(void *) known;
    int (*next)(clockid_t, struct timespec *);
    struct timespec t;

    *(void **)&next = next_of("clock_gettime", "GLIBC_2.17", &known);
    next(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_us(uint64_t us)
{
    static _Atomic(void *) known;
    struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    int (*next)(clockid_t, int, const struct timespec *, struct timespec *);

    *(void **)&next = next_of("clock_nanosleep", "GLIBC_2.17", &known);
    next(CLOCK_MONOTONIC, 0, &t, NULL);
}

static uint64_t length_of_delay(void)
{
    if (!draw(LONG_ONE_OF))
        return LONG_FROM_US + draw(LONG_TO_US - LONG_FROM_US);
    return 1 + draw(process.most_us >> draw(5)); /* most are short */
}

/* Sleep so long, unless this thread has slept its share: a third of its time, or
 * four fifths where it is slow. */
static void sleep_share(uint64_t us)
{
    uint64_t lived = now_us() - mine.began_us;
    uint64_t share = mine.is_slow ? lived / 5 * 4 : lived / 3;

    if (mine.slept_us > share + ALLOWANCE)
        return;
    mine.slept_us += us;
    sleep_us(us);
}

/* ---- losing the core ----------------------------------------------------- */

#define PREEMPT_SIGNAL (SIGRTMAX - 3)
#define PREEMPT_MOST_US 20000 /* of the thread's time on a core */

/* Let the calling thread's next time come, after some more work of its own. */
static void preempt_later(void)
{
    long us = (long)draw(PREEMPT_MOST_US);
    struct itimerspec t = {.it_value = {0, 1000 * us + 1}};

    timer_settime(mine.timer, 0, &t, NULL);
}

static void on_preempt(int number)
{
    int saved = errno;

    (void)number;
    if (!mine.is_inside++)
        sleep_share(length_of_delay());
    preempt_later();
    mine.is_inside--;
    errno = saved;
}

/* Have a signal interrupt the calling thread while it computes, once in a while,
 * between any two instructions.  It needs a stack of its own: generated code
 * (oneDNN's) keeps other things than a stack's end in that register. */
static void preempt_begin(void)
{
    static __thread char room[32768];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)}, now;
    struct sigaction action = {.sa_handler = on_preempt,
                               .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = PREEMPT_SIGNAL};

    if (!sigaltstack(NULL, &now) && now.ss_flags & SS_DISABLE)
        sigaltstack(&stack, NULL);
    if (dlsym(RTLD_DEFAULT, "__tsan_init"))
        return; /* it keeps signals back until the next call of libc */
    event._sigev_un._tid = gettid();
    sigaction(PREEMPT_SIGNAL, &action, NULL);
    if (!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &mine.timer))
        preempt_later();
}

/* ---- coming late --------------------------------------------------------- */

/* The calling thread's first call. */
static void begin(void)
{
    mine.state = mix(atomic_load(&process.key) +
                     atomic_fetch_add(&process.n_threads, 1)) |
                 1;
    mine.is_slow = atomic_load(&process.is_slow) || !draw(SLOW_ONE_OF);
    mine.began_us = now_us();
    mine.slept_us = 0;
    preempt_begin();
}

/* Draw for a call of this weight: how long it is late, in us, or 0. */
static uint64_t delay_of(enum weight weight)
{
    uint64_t chance = process.permille;

    if (!mine.state) {
        begin();
        weight = FEW; /* it may have been started late */
    }
    chance *= weight * (mine.is_slow ? SLOW_FACTOR : 1u);
    if (draw(1000 * USUAL) >= chance)
        return 0;
    return length_of_delay();
}

/* Be late before a call, or after it where `after` of the pair was drawn. */
struct late {
    uint64_t after;
};

/* The code whose calls are not late, from one address to another: a fake device's, whose
 * streams poll under one lock. */
static struct {
    _Atomic uintptr_t from, to;
} left_out;

void jitter_leave_out(const void *from, const void *to);

void jitter_leave_out(const void *from, const void *to)
{
    atomic_store(&left_out.from, (uintptr_t)from);
    atomic_store(&left_out.to, (uintptr_t)to);
}

static int is_left_out(const void *caller)
{
    return (uintptr_t)caller >= atomic_load(&left_out.from) &&
           (uintptr_t)caller < atomic_load(&left_out.to);
}

static struct late late_of(enum weight weight, const void *caller)
{
    struct late late = {0};
    int saved = errno;

    if (!atomic_load_explicit(&process.key, memory_order_relaxed) ||
        mine.is_inside || is_left_out(caller))
        return late;
    mine.is_inside++;
    late.after = delay_of(weight);
    if (late.after && draw(2)) {
        sleep_share(late.after);
        late.after = 0;
    }
    mine.is_inside--;
    errno = saved;
    return late;
}

static void late_after(struct late late)
{
    int saved = errno;

    if (!late.after)
        return;
    mine.is_inside++;
    sleep_share(late.after);
    mine.is_inside--;
    errno = saved;
}

/* ---- the calls ----------------------------------------------------------- */

#define LATE_BEFORE(weight) late_of(weight, __builtin_return_address(0))

#define LATE_VERSION(weight, version, type, name, params, args)                \
    type name params;                                                          \
    type name params                                                           \
    {                                                                          \
        static _Atomic(void *) known;                                          \
        struct late late = LATE_BEFORE(weight);                                \
        type(*next) params;                                                    \
        type result;                                                           \
                                                                               \
        *(void **)&next = next_of(#name, version, &known);                     \
        result = next args;                                                    \
        late_after(late);                                                      \
        return result;                                                         \
    }

#define LATE(weight, type, name, params, args)                                 \
    LATE_VERSION(weight, NULL, type, name, params, args)

/* of waiting and time */
LATE_VERSION(HOT, "GLIBC_2.17", int, clock_gettime,
             (clockid_t id, struct timespec *t), (id, t))
LATE(HOT, int, sched_yield, (void), ())
LATE(USUAL, int, nanosleep, (const struct timespec *t, struct timespec *left),
     (t, left))
LATE(USUAL, int, usleep, (useconds_t us), (us))
LATE(USUAL, int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
LATE(USUAL, int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms),
     (fd, e, n, ms))

/* of sockets and pipes */
LATE(USUAL, ssize_t, send, (int fd, const void *buf, size_t n, int flags),
     (fd, buf, n, flags))
LATE(USUAL, ssize_t, recv, (int fd, void *buf, size_t n, int flags),
     (fd, buf, n, flags))
LATE(USUAL, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags),
     (fd, m, flags))
LATE(USUAL, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags),
     (fd, m, flags))
LATE(USUAL, ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
LATE(USUAL, ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n))
LATE(USUAL, ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
LATE(FEW, int, connect, (int fd, const struct sockaddr *addr, socklen_t len),
     (fd, addr, len))
LATE(FEW, int, accept4,
     (int fd, struct sockaddr *addr, socklen_t *len, int flags),
     (fd, addr, len, flags))
LATE(FEW, int, accept, (int fd, struct sockaddr *addr, socklen_t *len),
     (fd, addr, len))
LATE(FEW, int, listen, (int fd, int n), (fd, n))
LATE(FEW, int, shutdown, (int fd, int how), (fd, how))
LATE(USUAL, int, close, (int fd), (fd))
LATE(USUAL, int, epoll_ctl, (int fd, int op, int on, struct epoll_event *e),
     (fd, op, on, e))

/* of memory and files */
LATE(USUAL, ssize_t, pread, (int fd, void *buf, size_t n, off_t at),
     (fd, buf, n, at))
LATE(USUAL, ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t at),
     (fd, buf, n, at))
LATE(USUAL, ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec *to, unsigned long n,
      const struct iovec *from, unsigned long m, unsigned long flags),
     (pid, to, n, from, m, flags))
LATE(USUAL, void *, mmap,
     (void *at, size_t len, int how, int flags, int fd, off_t from),
     (at, len, how, flags, fd, from))
LATE(USUAL, int, munmap, (void *at, size_t len), (at, len))
LATE(FEW, int, memfd_create, (const char *name, unsigned flags), (name, flags))
LATE(FEW, int, ftruncate, (int fd, off_t len), (fd, len))
LATE(FEW, int, unlink, (const char *path), (path))

/* of threads: a lock that is held long, a waiter that wakes late */
LATE(OFTEN, int, pthread_mutex_lock, (pthread_mutex_t * lock), (lock))
LATE(OFTEN, int, pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))
LATE_VERSION(USUAL, "GLIBC_2.3.2", int, pthread_cond_wait,
             (pthread_cond_t * cond, pthread_mutex_t *lock), (cond, lock))
LATE_VERSION(USUAL, "GLIBC_2.3.2", int, pthread_cond_timedwait,
             (pthread_cond_t * cond, pthread_mutex_t *lock,
              const struct timespec *t),
             (cond, lock, t))
LATE_VERSION(USUAL, "GLIBC_2.3.2", int, pthread_cond_signal,
             (pthread_cond_t * cond), (cond))
LATE_VERSION(USUAL, "GLIBC_2.3.2", int, pthread_cond_broadcast,
             (pthread_cond_t * cond), (cond))
LATE(FEW, int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier))
LATE(FEW, int, pthread_join, (pthread_t thread, void **end), (thread, end))

/* of processes */
LATE(FEW, pid_t, waitpid, (pid_t pid, int *status, int flags),
     (pid, status, flags))
LATE(FEW, int, kill, (pid_t pid, int number), (pid, number))

/* ---- those with arguments of any number ---------------------------------- */

int open(const char *path, int flags, ...)
{
    static _Atomic(void *) known;
    struct late late = LATE_BEFORE(USUAL);
    int (*next)(const char *, int, ...), fd;
    unsigned mode = 0;
    va_list args;

    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_start(args, flags);
        mode = va_arg(args, unsigned);
        va_end(args);
    }
    *(void **)&next = next_of("open", NULL, &known);
    fd = next(path, flags, mode);
    late_after(late);
    return fd;
}

/* futex(), membarrier() and pidfd_open(), for example. */
long syscall(long number, ...)
{
    static _Atomic(void *) known;
    struct late late = LATE_BEFORE(USUAL);
    long (*next)(long, ...), a[6], result;
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    *(void **)&next = next_of("syscall", NULL, &known);
    result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    late_after(late);
    return result;
}

/* ---- what begins and what ends ------------------------------------------- */

pid_t fork(void)
{
    static _Atomic(void *) known;
    struct late late = LATE_BEFORE(FEW);
    unsigned nth = atomic_fetch_add(&process.n_children, 1) + 1;
    pid_t (*next)(void), pid;

    *(void **)&next = next_of("fork", NULL, &known);
    pid = next();
    if (!pid && atomic_load(&process.key)) {
        take_key(mix(atomic_load(&process.key) + nth));
        mine.is_inside = 0;
        late = LATE_BEFORE(FEW);
    }
    late_after(late);
    return pid;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                   void *(*fn)(void *), void *arg)
{
    static _Atomic(void *) known;
    struct late late = LATE_BEFORE(FEW);
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int rc;

    *(void **)&next = next_of("pthread_create", NULL, &known);
    rc = next(thread, attr, fn, arg);
    late_after(late);
    return rc;
}

void _exit(int status)
{
    static _Atomic(void *) known;
    void (*next)(int);

    LATE_BEFORE(FEW);
    *(void **)&next = next_of("_exit", NULL, &known);
    next(status);
    abort();
}

void exit(int status)
{
    static _Atomic(void *) known;
    void (*next)(int);

    LATE_BEFORE(FEW);
    *(void **)&next = next_of("exit", NULL, &known);
    next(status);
    abort();
}
