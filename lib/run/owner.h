/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.h - who owns a communicator and moves it, and who moves those that
 * nobody waits for: owner.c, and the progress thread's thread.c. */
#ifndef COLL_LIB_RUN_OWNER_H
#define COLL_LIB_RUN_OWNER_H

#include "lib/run/request.h"

/* ---- owner.c ------------------------------------------------------------ */

/* Acquire the communicator: as its caller, for whom it is idle or soon given
 * back; or, try, not where another thread has it (0). */
void coll__owner_acquire(struct coll_comm *comm);
int coll__owner_try(struct coll_comm *comm);

/* May this thread call `who`?  COLL_OK, or COLL_ERR_INVALID, logged: it is within a
 * function of coll_op_create_user() for an operation of the communicator, and would
 * wait for itself. */
int coll__owner_refused(struct coll_comm *comm, const char *who);
static inline int coll__owner_refuses(struct coll_comm *comm, const char *who)
{
    return __builtin_expect(atomic_load_explicit(&comm->run->calling,
                                                 memory_order_relaxed) != 0,
                            0)
               ? coll__owner_refused(comm, who)
               : COLL_OK;
}

/* Acquire it for a call named so, unless it is refused. */
int coll__owner_enter(struct coll_comm *comm, const char *who);

/* Give it back: from now on others move what runs. */
void coll__owner_release(struct coll_comm *comm);

/* Keep it for ever: the communicator ends. */
void coll__owner_end(struct coll_comm *comm);

/* Leave the request, which does not run, to the owner: it is started
 * after all that was before.  For the communicator's caller, without owning it.
 * Where nobody has it the caller starts it; is_for_thread: the next one that takes
 * ownership does, be it the progress thread, be it the caller. */
void coll__submit(struct coll_request *request, int is_for_thread);

/* As owner, before anything else is started: start what was left. */
void coll__submitted_start_some(struct coll_comm *comm);
static inline void coll__submitted_start(struct coll_comm *comm)
{
    if (__builtin_expect(atomic_load_explicit(&comm->run->submitted,
                                              memory_order_relaxed) != NULL,
                         0))
        coll__submitted_start_some(comm);
}

/* Move all communicators on that nobody else does: is there any, and has anything
 * moved? */
enum coll__found { FOUND_NONE, FOUND_STILL, FOUND_MOVED };
enum coll__found coll__active_move_all(void);

/* The same for one of them before this thread sleeps, by *sleep: until something
 * comes for it, or there is another one to be moved. */
enum coll__found coll__active_look(struct coll__sleep *sleep);

extern atomic_int coll__n_active __attribute__((visibility("hidden")));

/* The same, where there are none at no cost; whether anything moved. */
static inline int coll__active_move(void)
{
    return __builtin_expect(
               atomic_load_explicit(&coll__n_active, memory_order_relaxed),
               0) &&
           coll__active_move_all() == FOUND_MOVED;
}

/* As owner: is there no other communicator to be moved on, and no stream that
 * comes in silence? */
static inline int coll__active_is_alone(const struct coll_comm *comm)
{
    return atomic_load_explicit(&coll__n_active, memory_order_relaxed) ==
               comm->run->is_active &&
           !comm->run->n_streaming && !comm->run->n_captured;
}

/* ---- thread.c ------------------------------------------------------------ */

/* Have the process's progress thread, as far as COLL_PROGRESS allows one, until
 * it is dropped.  COLL_OK, or COLL_ERR_SYSTEM, logged: then the caller moves
 * everything, and nobody tries again. */
int coll__comm_take_thread(struct coll_comm *comm);

/* The same for what nobody else would move, also of one rank: COLL_OK, or
 * COLL_ERR_INVALID, COLL_ERR_SYSTEM, logged for `what`, where there is none. */
int coll__comm_need_thread(struct coll_comm *comm, const char *what);
void coll__comm_drop_thread(struct coll_comm *comm);

/* Is there a core for it that no rank computes on? */
int coll__comm_has_spare_core(const struct coll_comm *comm);

/* Has the communicator's caller that thread, on a core that nobody computes on? */
int coll__comm_has_thread_apart(const struct coll_comm *comm);

#endif
