/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - which thread owns a communicator and moves its operations; the active
 * list; the progress thread. */
#ifndef COLL_LIB_RUN_OWNER_H
#define COLL_LIB_RUN_OWNER_H

#include "lib/run/run.h"

/* ---- owner.c ------------------------------------------------------------ */

/* Acquire ownership of the communicator, for the thread that calls its functions.
 * acquire() waits until another thread has released it, which takes one round of
 * progress at most; try() returns 0 if another thread owns it. */
void coll__owner_acquire(struct coll_comm *comm);
int coll__owner_try(struct coll_comm *comm);

/* Refuse the call `who` within a function of coll_op_create_user() that this thread
 * runs for the communicator: the call would wait for itself.  COLL_OK, or
 * COLL_ERR_INVALID, logged. */
int coll__owner_refused(const struct coll__run *run, const char *who);
static inline int coll__owner_refuses(const struct coll__run *run,
                                      const char *who)
{
    return __builtin_expect(
               atomic_load_explicit(&run->calling, memory_order_relaxed) != 0,
               0)
               ? coll__owner_refused(run, who)
               : COLL_OK;
}

/* Acquire ownership for the call `who`, unless coll__owner_refused() refuses it. */
int coll__owner_enter(struct coll_comm *comm, const char *who);

/* Release ownership: from now on other threads may move what runs. */
void coll__owner_release(struct coll_comm *comm);

/* The communicator ends: take it out of the active list, so that no other thread
 * acquires it again. */
void coll__owner_end(struct coll_comm *comm);

/* Submit a request for the owner to start, behind those submitted before.  For the
 * communicator's caller, without owning it.  If nobody owns the communicator, the
 * caller starts the request itself, or, with is_for_thread, leaves that to the next
 * owner. */
void coll__submit(struct coll_request *request, int is_for_thread);

/* Start the requests that were submitted.  As owner, before anything else is
 * started. */
void coll__submitted_start_some(struct coll__run *run);
static inline void coll__submitted_start(struct coll__run *run)
{
    if (__builtin_expect(
            atomic_load_explicit(&run->submitted, memory_order_relaxed) != NULL,
            0))
        coll__submitted_start_some(run);
}

/* Move each active communicator that no other thread owns.  FOUND_NONE: there was
 * none. */
enum coll__found { FOUND_NONE, FOUND_STILL, FOUND_MOVED };
enum coll__found coll__active_move_all(void);

/* Move one active communicator, and prepare *sleep so that this thread, if it sleeps
 * then, is woken when a message comes for it or another communicator becomes
 * active. */
enum coll__found coll__active_look(struct coll__sleep *sleep);

extern atomic_int coll__n_active __attribute__((visibility("hidden")));

/* Communicators for whose streams there is something to carry; changed by their owners. */
extern atomic_int coll__n_streaming __attribute__((visibility("hidden")));

/* As coll__active_move_all(); returns whether anything moved.  Costs one load if no
 * communicator is active. */
static inline int coll__active_move(void)
{
    return __builtin_expect(
               atomic_load_explicit(&coll__n_active, memory_order_relaxed),
               0) &&
           coll__active_move_all() == FOUND_MOVED;
}

/* Is this the only active communicator, without work for streams, whose progress
 * wakes nobody?  As owner. */
static inline int coll__active_is_alone(const struct coll__run *run)
{
    return atomic_load_explicit(&coll__n_active, memory_order_relaxed) ==
               run->is_active &&
           !run->n_streaming && !run->n_captured;
}

/* ---- thread.c ------------------------------------------------------------ */

/* Use the progress thread of the process, if COLL_PROGRESS allows one, until
 * coll__comm_drop_thread().  COLL_OK, or COLL_ERR_SYSTEM, logged: then the caller moves
 * everything, and the thread is not tried again. */
int coll__comm_take_thread(struct coll_comm *comm);

/* As coll__comm_take_thread(), for work that no other thread would move, such as that
 * of streams; also for a single rank.  COLL_OK, or COLL_ERR_INVALID or COLL_ERR_SYSTEM,
 * logged for `what`, if there is no progress thread. */
int coll__comm_need_thread(struct coll_comm *comm, const char *what);
void coll__comm_drop_thread(struct coll_comm *comm);

/* Is there a core for the progress thread on which no rank computes? */
int coll__comm_has_spare_core(const struct coll_comm *comm);

/* Does the communicator use a progress thread that runs on such a core? */
int coll__comm_has_thread_apart(const struct coll_comm *comm);

#endif
