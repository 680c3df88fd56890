/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.c - which thread owns a communicator, and the list of active communicators.
 *
 * One thread at a time calls the functions of a communicator: its caller.  What runs
 * on the communicator is moved by its owner, which may be another thread:
 *
 *   NONE   Nothing runs.  Only the caller knows the communicator; it acquires
 *          ownership by a plain store.
 *   FREE   Something runs or is to be started, and no thread is within a call for the
 *          communicator.  It is in the active list, and every thread of the process
 *          that waits for something else moves it.
 *   TAKEN  One thread owns it and moves it.
 *
 * If the last operation ended in another thread, the communicator stays FREE without
 * being in the list until its caller acquires it again.  Only the caller changes the
 * state to and from NONE.
 *
 * So operations end while their caller waits for others, in any order, and a blocking
 * call costs no atomic instruction.  A release stores the state with release order; an
 * acquire, or finding NONE, loads it with acquire order.  That hands over all of the
 * communicator but its atomics.
 *
 * A caller that finds another thread owning its communicator does not wait: it puts
 * what it starts into `submitted`.  The other thread looks there once more after it
 * has released ownership.  Each of the two stores first and then loads what the other
 * one stores, all in one order (seq_cst), so one of them sees the request.
 *
 * The list has a lock.  The lock also keeps a communicator from being freed while
 * another thread has found it in the list or is about to release it: a caller that
 * destroys a communicator acquires ownership first and then the lock.
 */
#include "lib/run/request.h"
#include "lib/run/owner.h"
#include "lib/comm/comm.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"
#include "lib/util/yield.h"

#include <pthread.h>

/* of progress, before a thread looks again at what it waits for */
#define ROUNDS 64

static void forget_all(void);

static struct coll__lock list_lock = COLL__LOCK(forget_all);
static struct coll_comm *first, **last = &first; /* under it */
atomic_int coll__n_active, coll__n_streaming;

/* In a child after fork(): nobody moves the parent's communicators. */
static void forget_all(void)
{
    first = NULL;
    last = &first;
    atomic_store_explicit(&coll__n_active, 0, memory_order_relaxed);
    atomic_store_explicit(&coll__n_streaming, 0, memory_order_relaxed);
}

/* ---- the list; locked ------------------------------------------------------ */

static void append(struct coll_comm *comm)
{
    comm->run->next_active = NULL;
    comm->run->active_at = last;
    *last = comm;
    last = &comm->run->next_active;
}

static void take_out(struct coll_comm *comm)
{
    *comm->run->active_at = comm->run->next_active;
    if (comm->run->next_active)
        comm->run->next_active->run->active_at = comm->run->active_at;
    else
        last = comm->run->active_at;
}

static void move_for_waiters(void);

static void be_called(void)
{
    coll__reactor_move(&coll__n_active, move_for_waiters);
}

/* Put the communicator into the active list, or take it out.  Locked. */
static void set_listed(struct coll_comm *comm, int is_active)
{
    if (comm->run->is_active == is_active)
        return;
    comm->run->is_active = is_active;
    if (is_active)
        append(comm);
    else
        take_out(comm);
    atomic_fetch_add_explicit(&coll__n_active, is_active ? 1 : -1,
                              memory_order_relaxed);
}

/* ---- ownership ----------------------------------------------------------- */

/* The communicator was released: wake threads that wanted to move it, or that sleep
 * and do not know that it has become active.  A thread that wanted it has set `missed`
 * and looked once more; as with `submitted`, one of the two sees the other. */
static void tell_sleepers(struct coll_comm *comm, int is_new)
{
    if (!is_new && !atomic_load(&comm->run->missed))
        return;
    atomic_store_explicit(&comm->run->missed, 0, memory_order_relaxed);
    coll__sleep_news();
}

/* Acquire a communicator that is FREE. */
static int take_free(struct coll_comm *comm)
{
    int expected = OWNER_FREE;

    return atomic_compare_exchange_strong(&comm->run->owner, &expected,
                                          OWNER_TAKEN);
}

int coll__owner_try(struct coll_comm *comm)
{
    if (atomic_load_explicit(&comm->run->owner, memory_order_acquire) !=
        OWNER_NONE)
        return take_free(comm);
    atomic_store_explicit(&comm->run->owner, OWNER_TAKEN, memory_order_relaxed);
    return 1;
}

void coll__owner_acquire(struct coll_comm *comm)
{
    while (!coll__owner_try(comm)) /* for as long as one round takes */
        coll__yield();
    coll__submitted_start(comm->run);
}

int coll__owner_refused(const struct coll__run *run, const char *who)
{
    pthread_t calling =
        atomic_load_explicit(&run->calling, memory_order_relaxed);

    if (calling != pthread_self()) /* which stored it */
        return COLL_OK;
    log_error("api",
              "%s: called within a function of coll_op_create_user(), which "
              "would wait for itself; call nothing of the library there",
              who);
    return COLL_ERR_INVALID;
}

int coll__owner_enter(struct coll_comm *comm, const char *who)
{
    int rc = coll__owner_refuses(comm->run, who);

    if (rc == COLL_OK)
        coll__owner_acquire(comm);
    return rc;
}

void coll__owner_release(struct coll_comm *comm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int is_busy =
        coll__run_has_work(comm->run) ||
        atomic_load_explicit(&comm->run->submitted, memory_order_relaxed);
    int is_new = is_busy && !comm->run->is_active;

    if (is_busy != comm->run->is_active) {
        pthread_once(&once, be_called);
        coll__lock(&list_lock);
        set_listed(comm, is_busy);
        coll__unlock(&list_lock);
    }
    if (!is_busy) {
        atomic_store_explicit(&comm->run->owner, OWNER_NONE,
                              memory_order_release);
        return;
    }
    atomic_store(&comm->run->owner, OWNER_FREE);
    tell_sleepers(comm, is_new);
}

void coll__owner_end(struct coll_comm *comm)
{
    coll__lock(&list_lock);
    set_listed(comm, 0);
    coll__unlock(&list_lock);
}

/* Add the request to `submitted`, which has the latest first. */
static void push(struct coll_request *request)
{
    struct coll_comm *comm = request->call.comm;
    struct coll_request *next =
        atomic_load_explicit(&comm->run->submitted, memory_order_relaxed);

    do
        request->next = next;
    while (
        !atomic_compare_exchange_weak(&comm->run->submitted, &next, request));
}

void coll__submit(struct coll_request *request, int is_for_thread)
{
    struct coll_comm *comm = request->call.comm;

    push(request);
    if (!coll__owner_try(comm)) /* who has it looks again */
        return;
    if (!is_for_thread)
        coll__submitted_start(comm->run);
    coll__owner_release(comm);
}

/* In the order in which they came. */
void coll__submitted_start_some(struct coll__run *run)
{
    struct coll_request *request =
        atomic_exchange_explicit(&run->submitted, NULL, memory_order_acquire);
    struct coll_request *earliest = NULL, *next;

    for (; request; request = next) {
        next = request->next;
        request->next = earliest;
        earliest = request;
    }
    for (; earliest; earliest = next) {
        next = earliest->next;
        coll__request_start_any(earliest);
    }
}

/* ---- the others ------------------------------------------------------------ */

/* Another thread owned it a moment ago: have that thread wake us when it releases
 * it, and try once more. */
static int take_missed(struct coll_comm *comm)
{
    atomic_store(&comm->run->missed, 1);
    return take_free(comm);
}

/* Acquire the next active communicator that no thread owns; NULL if there is none.
 * Each one that was looked at goes to the end of the list. */
static struct coll_comm *take_next(void)
{
    struct coll_comm *comm = NULL;
    int n, is_taken = 0;

    coll__lock(&list_lock);
    n = atomic_load_explicit(&coll__n_active, memory_order_relaxed);
    while (n-- && !is_taken) {
        comm = first;
        take_out(comm);
        append(comm);
        is_taken = take_free(comm) || take_missed(comm);
    }
    coll__unlock(&list_lock);
    return is_taken ? comm : NULL;
}

/* Release a communicator from the list.  If its caller has submitted something
 * meanwhile, start that first.  After its release, and once the lock is released, the
 * communicator may have been freed. */
static void give_back(struct coll_comm *comm)
{
    coll__lock(&list_lock);
    for (;;) {
        set_listed(comm, coll__run_has_work(comm->run));
        atomic_store(&comm->run->owner, OWNER_FREE);
        if (comm->run->is_active)
            tell_sleepers(comm, 0);
        if (!atomic_load(&comm->run->submitted) || !take_free(comm))
            break;
        coll__unlock(&list_lock);
        coll__submitted_start(comm->run);
        coll__lock(&list_lock);
    }
    coll__unlock(&list_lock);
}

/* Is this thread within coll__active_move_all()?  A user function that runs there may
 * call the library. */
static _Thread_local int is_moving;

/* Move a communicator that this thread owns. */
static enum coll__found move(struct coll_comm *comm)
{
    int moved;

    coll__submitted_start(comm->run);
    coll__run_progress(comm, &moved);
    give_back(comm);
    return moved ? FOUND_MOVED : FOUND_STILL;
}

enum coll__found coll__active_move_all(void)
{
    int n = atomic_load_explicit(&coll__n_active, memory_order_relaxed);
    enum coll__found found = FOUND_NONE;

    if (is_moving)
        return FOUND_NONE;
    is_moving = 1;
    while (n-- > 0) {
        struct coll_comm *comm = take_next();
        enum coll__found one;

        if (!comm)
            break;
        one = move(comm);
        found = one > found ? one : found;
    }
    is_moving = 0;
    return found;
}

/* The sleep is prepared before the look, so that news that comes after the look ends
 * the sleep. */
enum coll__found coll__active_look(struct coll__sleep *sleep)
{
    enum coll__found found = FOUND_NONE;
    struct coll_comm *comm;
    int news;

    is_moving = 1;
    coll__sleep_arm(sleep, NULL, 0);
    news = sleep->news;
    comm = take_next();
    if (comm) {
        int has_streams = comm->run->n_streaming || comm->run->n_captured;

        coll__sleep_arm(sleep, comm->links.routes.all,
                        comm->links.routes.n_all);
        found = move(comm);
        sleep->news = news;
        if (has_streams ||
            atomic_load_explicit(&coll__n_active, memory_order_relaxed) > 1)
            sleep->is_sure = 0; /* who else is to be moved has no bell here, nor
                                 * has a stream */
    }
    is_moving = 0;
    return found;
}

/* Move everything while a thread waits in the reactor for other ranks. */
static void move_for_waiters(void)
{
    int n = ROUNDS;

    while (coll__active_move() && --n)
        ;
}
