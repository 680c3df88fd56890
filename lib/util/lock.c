/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.c - the list of locks, and the three handlers of fork().
 *
 * A lock enters the list when it is first taken; fork() need not care for the others.
 * The inner lock is not in the list.  It may be taken for the first time under another
 * lock, while a forking thread holds the list's lock and waits for that lock: entering
 * the list would deadlock.
 */
#include "lib/util/lock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

unsigned coll__generation;
struct coll__lock coll__inner_lock = COLL__LOCK(NULL);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct coll__lock *list; /* under list_lock */

static _Thread_local int n_held;
static _Atomic(void (*)(void)) when_unlocked;

/* ---- forks ----------------------------------------------------------------- */

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (struct coll__lock *lock = list; lock; lock = lock->next)
        pthread_mutex_lock(&lock->mutex);
    pthread_mutex_lock(&coll__inner_lock.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&coll__inner_lock.mutex);
    for (struct coll__lock *lock = list; lock; lock = lock->next)
        pthread_mutex_unlock(&lock->mutex);
    pthread_mutex_unlock(&list_lock);
}

static void after_fork_in_child(void)
{
    coll__generation++;
    if (coll__inner_lock.in_child)
        coll__inner_lock.in_child();
    for (struct coll__lock *lock = list; lock; lock = lock->next)
        if (lock->in_child)
            lock->in_child();
    after_fork();
}

static void watch(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

unsigned coll__generation_now(void)
{
    pthread_once(&once, watch);
    return coll__generation;
}

static void enlist(struct coll__lock *lock)
{
    pthread_once(&once, watch);
    pthread_mutex_lock(&list_lock);
    if (!lock->is_listed) {
        lock->next = list;
        list = lock;
        atomic_store_explicit(&lock->is_listed, 1, memory_order_release);
    }
    pthread_mutex_unlock(&list_lock);
}

/* ---- locks ------------------------------------------------------------------ */

static void see_listed(struct coll__lock *lock)
{
    if (lock != &coll__inner_lock &&
        !atomic_load_explicit(&lock->is_listed, memory_order_acquire))
        enlist(lock);
}

void coll__lock(struct coll__lock *lock)
{
    see_listed(lock);
    pthread_mutex_lock(&lock->mutex);
    n_held++;
}

int coll__lock_try(struct coll__lock *lock)
{
    see_listed(lock);
    if (pthread_mutex_trylock(&lock->mutex))
        return 0;
    n_held++;
    return 1;
}

void coll__unlock(struct coll__lock *lock)
{
    void (*fn)(void) =
        atomic_load_explicit(&when_unlocked, memory_order_acquire);

    pthread_mutex_unlock(&lock->mutex);
    n_held--;
    if (!n_held && fn && lock != &coll__inner_lock)
        fn();
}

int coll__holds_lock(void) { return n_held > 0; }

void coll__when_unlocked(void (*fn)(void))
{
    atomic_store_explicit(&when_unlocked, fn, memory_order_release);
}

void coll__cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

int coll__lock_wait(struct coll__lock *lock, pthread_cond_t *cond,
                    double deadline)
{
    struct timespec until = {.tv_sec = (time_t)deadline};

    until.tv_nsec = (long)((deadline - (double)until.tv_sec) * 1e9);
    return pthread_cond_timedwait(cond, &lock->mutex, &until) == ETIMEDOUT ? -1
                                                                           : 0;
}
