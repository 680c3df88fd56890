/* SPDX-License-Identifier: BSD-3-Clause */
/* owner.c - who owns a communicator and moves it, and the list of those
 * that anybody may move.
 *
 * A communicator is used by one thread at a time, its caller's, and what runs on
 * it is moved by its owner:
 *
 *   IDLE   nothing runs, nobody but the caller knows of it; the caller takes
 *          ownership by a plain store
 *   FREE   something runs, or is to be started, and no thread is within a call for
 *          it: it is listed, and every thread of the process that waits for
 *          something else moves it
 *   TAKEN  one thread moves it
 *
 * A communicator whose last operation ended in another thread stays FREE, in no
 * list, until its caller takes ownership again: to and from IDLE it is the caller
 * alone who goes.
 *
 * So operations end while their caller waits for others, in any order; and a
 * blocking call costs no atomic instruction.  Whoever releases it
 * stores with release, whoever takes it (or finds it IDLE) loads with acquire:
 * all of the communicator but its atomics is handed over by that.
 *
 * A caller that finds it owned by another thread does not wait for the end of a round: it
 * leaves what it starts in `submitted`, and whoever releases it looks
 * there once more.  Each of the two stores first and then looks at what the other
 * stores, all of it in one order (seq_cst), so one of them sees it.
 *
 * The list is under a lock, by which also a communicator is kept from ending
 * while another thread has found it there, or is about to release it: its
 * caller takes ownership and then the lock before it ends it.
 */
#include "lib/run/request.h"
#include "lib/run/owner.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"

#include <pthread.h>
#include <sched.h>

/* in which something moves, before a thread looks at what it waits for */
#define ROUNDS 64

static void forget_all(void);

static struct coll__lock list_lock = COLL__LOCK(forget_all);
static struct coll_comm *first, **last = &first; /* under it */
atomic_int coll__n_active;

/* In a child none of them is anybody's to move. */
static void forget_all(void)
{
    first = NULL;
    last = &first;
    atomic_store_explicit(&coll__n_active, 0, memory_order_relaxed);
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

/* Be in the list while something runs or is to be started. */
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

/* Does something run, or may begin without a call? */
static int has_work(const struct coll_comm *comm)
{
    return comm->run->n_running || comm->run->n_captured;
}

/* ---- turns ----------------------------------------------------------------- */

/* Of one that was given back: wake those who could not have it, or knew nothing of
 * it.  Who looks for something to move says so in `missed`, and looks once more;
 * as with `submitted`, one sees the other. */
static void tell_sleepers(struct coll_comm *comm, int is_new)
{
    if (!is_new && !atomic_load(&comm->run->missed))
        return;
    atomic_store_explicit(&comm->run->missed, 0, memory_order_relaxed);
    coll__sleep_news();
}

/* That of one in the list, or of its caller's. */
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
        sched_yield();
    coll__submitted_start(comm);
}

int coll__owner_refused(struct coll_comm *comm, const char *who)
{
    pthread_t calling =
        atomic_load_explicit(&comm->run->calling, memory_order_relaxed);

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
    int rc = coll__owner_refuses(comm, who);

    if (rc == COLL_OK)
        coll__owner_acquire(comm);
    return rc;
}

void coll__owner_release(struct coll_comm *comm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int is_busy = has_work(comm) || atomic_load_explicit(&comm->run->submitted,
                                                         memory_order_relaxed);
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

/* Put it before what was left there. */
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
        coll__submitted_start(comm);
    coll__owner_release(comm);
}

/* In the order in which they came. */
void coll__submitted_start_some(struct coll_comm *comm)
{
    struct coll_request *request = atomic_exchange_explicit(
        &comm->run->submitted, NULL, memory_order_acquire);
    struct coll_request *earliest = NULL, *next;

    for (; request; request = next) {
        next = request->next;
        request->next = earliest;
        earliest = request;
    }
    for (; earliest; earliest = next) {
        next = earliest->next;
        coll__request_start(earliest);
    }
}

/* ---- the others ------------------------------------------------------------ */

/* The same of one that another thread has: if it has given it back meanwhile. */
static int take_missed(struct coll_comm *comm)
{
    atomic_store(&comm->run->missed, 1);
    return take_free(comm);
}

/* Acquire the next one that nobody moves, NULL where all are moved; each
 * goes to the end of the list. */
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

/* To its caller, or whoever moves next; unless the caller has left something
 * meanwhile.  Once it is given and the lock is not held, it may be gone. */
static void give_back(struct coll_comm *comm)
{
    coll__lock(&list_lock);
    for (;;) {
        set_listed(comm, has_work(comm));
        atomic_store(&comm->run->owner, OWNER_FREE);
        if (comm->run->is_active)
            tell_sleepers(comm, 0);
        if (!atomic_load(&comm->run->submitted) || !take_free(comm))
            break;
        coll__unlock(&list_lock);
        coll__submitted_start(comm);
        coll__lock(&list_lock);
    }
    coll__unlock(&list_lock);
}

/* Does this thread move some?  User functions may call the library there. */
static _Thread_local int is_moving;

/* Move a communicator that this thread owns. */
static enum coll__found move(struct coll_comm *comm)
{
    int moved;

    coll__submitted_start(comm);
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

/* News count from before the look on: what comes after it is not missed. */
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

/* For a thread that waits for other ranks elsewhere. */
static void move_for_waiters(void)
{
    int n = ROUNDS;

    while (coll__active_move() && --n)
        ;
}
