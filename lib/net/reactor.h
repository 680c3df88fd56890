/* SPDX-License-Identifier: BSD-3-Clause */
/* reactor.h - one thread per process that sleeps in epoll for all sockets.
 *
 * One lock guards everything that the reactor knows: its sources, and the links, gates
 * and control trees built on them.  The reactor's thread holds it while it runs ready(),
 * expired() and tasks; callers hold it while they change anything.  One lock is enough,
 * since this is the rare path; nothing blocks under it.
 */
#ifndef COLL_LIB_NET_REACTOR_H
#define COLL_LIB_NET_REACTOR_H

#include "include/coll/coll.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

/* A file descriptor that the reactor watches; embedded in its owner's struct.
 * A callback may remove any source, itself included. */
struct coll__source {
    int fd;          /* -1 once it is removed */
    uint32_t events; /* EPOLL* */
    double deadline; /* when to call expired(), by coll__now(); 0 for never */
    void (*ready)(struct coll__source *source, uint32_t events);
    void (*expired)(struct coll__source *source); /* deadline is 0 again */
    /* The reactor ends, or this is a forked child: fd is closed, forget it. */
    void (*dropped)(struct coll__source *source);
    uint32_t slot, serial; /* for the reactor only */
};

/* A function to run on the reactor's thread, soon or at a given time, lock held; run()
 * may release the lock for a while. */
struct coll__task {
    void (*run)(struct coll__task *task);
    struct coll__task *next, **at;
    double when; /* a time of coll__now(); 0: soon */
    int is_queued;
};

/* descriptors of a reactor in use, including coll__presence_self()'s */
#define COLL__REACTOR_FILES 3

/* Begin and end to use the reactor: the first user starts its thread, the last user ends
 * it.  The lock is not held.
 *
 * Errors:    COLL_ERR_SYSTEM, COLL_ERR_NOMEM, logged.
 */
int coll__reactor_get(void);
void coll__reactor_put(void);

/* try: returns whether it got the lock; for callers that must not wait. */
void coll__reactor_lock(void);
int coll__reactor_lock_try(void);
void coll__reactor_unlock(void);

/* Make a condition whose waits have deadlines by coll__now(). */
void coll__reactor_cond_init(pthread_cond_t *cond);

/* Wait on cond, lock held: 0 (also without a signal), or COLL_ERR_TIMEOUT at the
 * deadline. */
int coll__reactor_wait(pthread_cond_t *cond, double deadline);

/* Like poll(), until a time of coll__now(); lock not held.  It may return 0 earlier. */
int coll__reactor_poll(struct pollfd *fds, int n, double until);

/* While threads wait, they call move() now and then, without the lock; often while
 * *n_busy is not 0.  So a thread that waits for other ranks still progresses operations
 * that those ranks may be waiting for. */
void coll__reactor_move(atomic_int *n_busy, void (*move)(void));

/* The functions below are called with the lock held. */

/* Watch source->fd; COLL_ERR_SYSTEM, COLL_ERR_NOMEM, logged. */
int coll__reactor_add(struct coll__source *source);

/* Wait for other events. */
void coll__reactor_change(struct coll__source *source, uint32_t events);

/* Set source->deadline. */
void coll__reactor_deadline(struct coll__source *source, double deadline);

/* Stop watching a source.  remove: close its descriptor.  release: return the
 * descriptor, still open. */
void coll__reactor_remove(struct coll__source *source);
int coll__reactor_release(struct coll__source *source);

/* defer: run the task once, soon.  defer_until: run it at that time or soon after.
 * cancel: do not run it. */
void coll__reactor_defer(struct coll__task *task);
void coll__reactor_defer_until(struct coll__task *task, double when);
void coll__reactor_cancel(struct coll__task *task);

#endif
