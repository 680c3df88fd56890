/* SPDX-License-Identifier: BSD-3-Clause */
/* lock.h - the library's global locks, and what a fork does to them.
 *
 * fork() copies the thread that calls it and no other, so what other threads
 * had under way is torn in the child for ever, and what the library shares with
 * other processes (sockets, segments) is the parent's.  Two things follow:
 *
 *  - Whatever belongs to one process remembers coll__generation, which is
 *    raised in every child: a child sees by one comparison that something is
 *    its parent's, and leaves it alone.
 *  - A lock of this kind is free in the child, and what it guards is whole: at
 *    a fork all of them are taken first.  A thread holds one at a time, and
 *    under it coll__inner_lock, which is taken last.
 *
 * Locks that belong to one object (a communicator's) are of the plain kind: the
 * child does not use the object.
 *
 * What is said (lib/trace/log.h) while a thread holds one is put off until it
 * holds none.
 */
#ifndef COLL_LIB_UTIL_LOCK_H
#define COLL_LIB_UTIL_LOCK_H

#include <pthread.h>
#include <stdatomic.h>

/* How many forks lie between this process and the first one that had the
 * library.  Written by the child's one thread before fork() returns in it. */
extern unsigned coll__generation __attribute__((visibility("hidden")));

/* Is what was made in that generation the parent's? */
static inline int coll__is_inherited(unsigned generation)
{
    return __builtin_expect(generation != coll__generation, 0);
}

/* Return it, to be remembered by what is made now.  Any thread. */
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

/* For what is short, and calls nothing of the library's. */
extern struct coll__lock coll__inner_lock;

/* Any thread that holds none (the inner one: or one).  try: whether it got it,
 * at once. */
void coll__lock(struct coll__lock *lock);
int coll__lock_try(struct coll__lock *lock);
void coll__unlock(struct coll__lock *lock);

/* Make a condition whose waits have deadlines by coll__now(). */
void coll__cond_init(pthread_cond_t *cond);

/* Wait on cond, the lock held: 0, also for no reason, or -1 at the deadline. */
int coll__lock_wait(struct coll__lock *lock, pthread_cond_t *cond,
                    double deadline);

/* Does this thread hold any lock? */
int coll__holds_lock(void);

/* What a thread does when it has given its last lock back; set once. */
void coll__when_unlocked(void (*fn)(void));

#endif
