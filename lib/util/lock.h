/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - the library's global locks, and what a fork does to them.
 *
 * fork() copies only the thread that calls it.  In the child, work that other threads had
 * under way stays unfinished for ever, and sockets and segments that the library shares
 * with other processes are the parent's.  Therefore:
 *
 *  - An object that belongs to one process stores coll__generation, which every child
 *    increments.  One comparison tells a child that an object is its parent's; the child
 *    leaves it alone.
 *  - In the child a lock of this kind is free, and its data are consistent: fork() takes
 *    all of these locks first.  A thread holds one of them at a time, and under it
 *    perhaps coll__inner_lock, which is taken last.
 *
 * The lock of one object, such as a communicator, is a plain mutex: the child does not
 * use the object.
 *
 * Lines that a thread logs (lib/trace/log.h) while it holds a lock go out when it holds
 * none.
 */
#ifndef COLL_LIB_UTIL_LOCK_H
#define COLL_LIB_UTIL_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

/* How many forks lie between this process and the first one that loaded the library.
 * The child's only thread writes it before fork() returns there. */
extern unsigned coll__generation __attribute__((visibility("hidden")));

/* Does an object of that generation belong to the parent? */
static inline int coll__is_inherited(unsigned generation)
{
    return __builtin_expect(generation != coll__generation, 0);
}

/* Return this process's generation, for an object that is made now.  Any thread. */
unsigned coll__generation_now(void);

struct coll__lock {
    pthread_mutex_t mutex;
    void (*in_child)(
        void);            /* called in a child, with all locks held; or NULL */
    atomic_int is_listed; /* this and below: lock.c's */
    struct coll__lock *next;
};

/* clang-format off */
#define COLL__LOCK(fn) {.mutex = PTHREAD_MUTEX_INITIALIZER, .in_child = (fn)}
/* clang-format on */

/* For short sections that call no function of the library. */
extern struct coll__lock coll__inner_lock;

/* Take or release a lock.  The thread holds no other one; the inner lock may be taken
 * under one.  coll__lock_try() does not wait, and says whether it took the lock. */
void coll__lock(struct coll__lock *lock);
int coll__lock_try(struct coll__lock *lock);
void coll__unlock(struct coll__lock *lock);

/* Initialize a condition variable whose deadlines are times of coll__now(). */
void coll__cond_init(pthread_cond_t *cond);

/* Wait on cond with the lock held.  Returns 0, perhaps without a reason; -1 at the
 * deadline. */
int coll__lock_wait(struct coll__lock *lock, pthread_cond_t *cond,
                    double deadline);

/* Does this thread hold any lock? */
int coll__holds_lock(void);

/* Set, once, the function that a thread calls when it has released its last lock. */
void coll__when_unlocked(void (*fn)(void));

#endif
