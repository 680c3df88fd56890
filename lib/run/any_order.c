/* SPDX-License-Identifier: BSD-3-Clause */
/* any_order.c - requests that ranks may start in different orders.
 *
 * The messages of a channel have one order, so all ranks must begin its operations in one
 * order.  They agree on it over a tree of the ranks, on a channel of its own:
 *
 *   READY n   up: this rank and all below it have started the request with number n
 *   BEGIN n   down: all ranks have
 *
 * The root sends BEGIN in the order in which requests become ready there, and every link
 * keeps that order.  A rank that has passed BEGIN on puts the request into the queue of its
 * channel.  So only what all ranks have started is in a queue, and no rank waits there for
 * what another rank has not started.
 *
 * A rank starts a request again only after the operation has ended, hence after BEGIN.  So
 * between two BEGINs of a request each child sends one READY, and a count is enough.
 *
 * Requests of one number share an agreement.  A child may start a request that this rank
 * has not made yet: then READY makes the agreement.  Agreements are never freed before the
 * communicator, so that any thread may look one up.  A free one takes another number.
 */
#include "lib/run/any_order.h"
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/comm/stall.h"
#include "lib/run/args.h"
#include "lib/run/request.h"
#include "lib/run/run.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/util.h"

#include <assert.h>
#include <stdlib.h>

#define N_CHILDREN 4 /* at most, of a rank in the tree */
#define N_BUCKETS 256

enum message { READY = 1, BEGIN };

struct coll__agreement {
    /* The number, and how many times this rank has started the request, as
     * coll__started_seq(); 0: free.  Any thread reads it. */
    _Atomic uint64_t started;
    struct coll_request *request; /* NULL: this rank has not made it yet */
    int channel;                  /* of its operations */
    int n_ready;                  /* children that have sent READY */
    int is_passed; /* this rank has sent READY, and awaits BEGIN */
    int n_unsent;  /* of `sends`, that are under way */
    /* To the parent and the children. */
    struct coll__xfer sends[1 + N_CHILDREN];
    struct coll__agreement *next;  /* in its bucket, or among the free ones */
    struct coll__agreement *older; /* among all */
};

struct coll__any_order {
    int peers[1 + N_CHILDREN]; /* the parent, or -1, and the children */
    int n_peers;
    struct coll__xfer receives[1 + N_CHILDREN];
    struct coll__ended ended;                   /* transfers */
    struct coll__agreement *buckets[N_BUCKETS]; /* by number */
    struct coll__agreement *spare;              /* free ones */
    /* All agreements, the latest first.  Any thread reads the list, which only grows. */
    _Atomic(struct coll__agreement *) latest;
};

int coll__any_order_check(const struct coll_args *args)
{
    if (args->any_order != 0 && args->any_order != 1)
        return coll__args_wrong(args, "any_order must be 0 or 1");
    if (args->any_order &&
        (coll__is_p2p(args->collective) || coll__is_tagged(args->collective)))
        return coll__args_wrong(args, "any_order is for operations of all "
                                      "ranks; set it to 0");
    return COLL_OK;
}

/* ---- agreements ------------------------------------------------------------ */

static struct coll__any_order *any_order_of(const struct coll_comm *comm)
{
    return atomic_load_explicit(&comm->run->any_order, memory_order_acquire);
}

static uint64_t started(const struct coll__agreement *a)
{
    return atomic_load_explicit(&a->started, memory_order_acquire);
}

static void set_started(struct coll__agreement *a, uint64_t seq)
{
    atomic_store_explicit(&a->started, seq, memory_order_release);
}

static struct coll__agreement **bucket_of(struct coll__any_order *all,
                                          uint32_t number)
{
    return &all->buckets[number % N_BUCKETS];
}

/* Find the agreement with that number; NULL: there is none. */
static struct coll__agreement *find(struct coll__any_order *all,
                                    uint32_t number)
{
    struct coll__agreement *a = *bucket_of(all, number);

    while (a && coll__started_number(started(a)) != number)
        a = a->next;
    return a;
}

static struct coll__agreement *make(struct coll__any_order *all)
{
    struct coll__agreement *a = calloc(1, sizeof(*a));

    if (!a) {
        log_error("api", "no memory for a request");
        return NULL;
    }
    a->older = atomic_load_explicit(&all->latest, memory_order_relaxed);
    atomic_store_explicit(&all->latest, a, memory_order_release);
    return a;
}

/* Take a free one whose last messages have left, or make one; NULL: no memory, logged. */
static struct coll__agreement *take_free(struct coll__any_order *all)
{
    struct coll__agreement **at = &all->spare, *a;

    while (*at && (*at)->n_unsent)
        at = &(*at)->next;
    a = *at;
    if (!a)
        return make(all);
    *at = a->next;
    return a;
}

/* Find or make the agreement with that number; NULL: no memory, logged. */
static struct coll__agreement *take(struct coll__any_order *all,
                                    uint32_t number)
{
    struct coll__agreement **bucket = bucket_of(all, number);
    struct coll__agreement *a = find(all, number);

    if (a)
        return a;
    a = take_free(all);
    if (!a)
        return NULL;
    set_started(a, coll__started_seq(number, 0));
    a->next = *bucket;
    *bucket = a;
    return a;
}

static void give_back(struct coll__any_order *all, struct coll__agreement *a)
{
    struct coll__agreement **at =
        bucket_of(all, coll__started_number(started(a)));

    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    a->next = all->spare;
    all->spare = a;
    set_started(a, 0);
}

/* The latest agreement; NULL: there is none. */
static struct coll__agreement *latest(const struct coll__any_order *all)
{
    return all ? atomic_load_explicit(&all->latest, memory_order_acquire)
               : NULL;
}

uint32_t coll__any_order_n_starts(const struct coll_comm *comm, uint32_t number)
{
    const struct coll__agreement *a = latest(any_order_of(comm));

    for (; a; a = a->older) {
        uint64_t seq = started(a);

        if (coll__started_number(seq) == number)
            return (uint32_t)seq;
    }
    return 0;
}

/* ---- agreeing ---------------------------------------------------------------- */

static void say(struct coll_comm *comm, struct coll__agreement *a, int to,
                enum message message)
{
    struct coll__any_order *all = any_order_of(comm);
    int peer = all->peers[to];
    struct coll__tp *tp = comm->links.routes.to[peer];
    struct coll__xfer *xfer = &a->sends[to];

    *xfer = (struct coll__xfer){
        .peer = peer,
        .channel = CHANNEL_ORDER,
        .sig = {.seq = coll__started_seq(coll__started_number(started(a)), 0),
                .op = (uint8_t)message,
                .series = SERIES_STARTED},
        .ended = &all->ended,
        .owner = a};
    a->n_unsent++;
    tp->ops->send(tp, xfer);
}

/* Note for other ranks which request this rank waits for, of those that have not begun. */
static void note_first(struct coll_comm *comm)
{
    const struct coll_request *first = comm->run->queues[CHANNEL_ORDER].first;

    coll__history_p2p(&comm->calls.history[SERIES_HOST],
                      first ? &first->call.sig : NULL,
                      first ? first->call.user_tag : 0);
}

/* All ranks have started the request: tell the children, and put it into the queue of its
 * channel.  COLL_OK, or the communicator's failure. */
static int begin(struct coll_comm *comm, struct coll__agreement *a)
{
    const struct coll__any_order *all = any_order_of(comm);
    struct coll_request *request = a->request;

    a->is_passed = 0;
    for (int i = 1; i < all->n_peers; i++)
        say(comm, a, i, BEGIN);
    coll__request_unqueue(request);
    note_first(comm);
    if (request->call.stall.said)
        coll__stall_end(&request->call);
    request->channel = a->channel;
    request->call.sig.series = SERIES_ANY_ORDER;
    return coll__request_start(request);
}

/* Has this rank started the request, and does it wait for BEGIN? */
static int is_waiting(const struct coll__agreement *a)
{
    return a->request && a->request->channel == CHANNEL_ORDER;
}

/* If this rank has started the request, and all below it have, tell the parent.  COLL_OK,
 * or the communicator's failure. */
static int pass(struct coll_comm *comm, struct coll__agreement *a)
{
    if (!is_waiting(a) || a->is_passed || a->n_unsent ||
        a->n_ready < any_order_of(comm)->n_peers - 1)
        return COLL_OK;
    a->n_ready = 0;
    if (comm->rank == 0)
        return begin(comm, a);
    a->is_passed = 1;
    say(comm, a, 0, READY);
    return COLL_OK;
}

int coll__any_order_start(struct coll_request *request)
{
    struct coll__agreement *a = request->agreement;
    struct coll_comm *comm = request->call.comm;
    uint64_t seq = started(a);

    if (coll__comm_has_failed(comm))
        return coll__request_fail(request);
    seq = coll__started_seq(coll__started_number(seq), (uint32_t)seq + 1);
    if (coll__trace_is_on())
        request->called = coll__now();
    request->call.sig.series = SERIES_STARTED;
    request->call.sig.seq = seq;
    request->channel = CHANNEL_ORDER;
    coll__request_queue(request);
    set_started(a, seq);
    if (comm->run->queues[CHANNEL_ORDER].first == request)
        note_first(comm);
    return pass(comm, a);
}

/* A child has sent READY: it is of a request that this rank has, or will make. */
static int ready_came(struct coll_comm *comm, uint32_t number)
{
    struct coll__any_order *all = any_order_of(comm);
    int is_old = (int32_t)(number - comm->calls.n_any_order) <= 0;
    struct coll__agreement *a = is_old ? find(all, number) : take(all, number);

    if (!a && is_old)
        return COLL_OK; /* it is destroyed: the child waits for ever */
    if (!a) {
        coll__comm_fail(comm, COLL_ERR_NOMEM, "%s", coll_last_error());
        return coll__run_quiesce(comm);
    }
    a->n_ready++;
    return pass(comm, a);
}

static int came(struct coll_comm *comm, const struct coll__signature *sig)
{
    uint32_t number = coll__started_number(sig->seq);
    struct coll__agreement *a;

    if (sig->op == READY)
        return ready_came(comm, number);
    a = find(any_order_of(comm), number);
    assert(a && a->is_passed && is_waiting(a));
    return begin(comm, a);
}

/* Collect the transfers that have ended.  COLL_OK, or the communicator's failure. */
static int collect(struct coll_comm *comm)
{
    const struct coll_request *first = comm->run->queues[CHANNEL_ORDER].first;
    struct coll__xfer *xfer;
    int rc = COLL_OK;

    while (rc == COLL_OK &&
           (xfer = coll__ended_take(&any_order_of(comm)->ended))) {
        struct coll__agreement *a = xfer->owner;

        if (xfer->status < 0)
            return coll__run_failed(comm, first ? &first->call.sig : &xfer->sig,
                                    xfer, xfer->status);
        if (!a)
            continue;
        a->n_unsent--;
        rc = pass(comm, a);
    }
    return rc;
}

/* Take what has come from the parent or a child.  COLL_OK, or the communicator's
 * failure. */
static int hear(struct coll_comm *comm, int from, int *moved)
{
    struct coll__any_order *all = any_order_of(comm);
    int peer = all->peers[from], rc = COLL_OK;
    struct coll__tp *tp = comm->links.routes.to[peer];
    struct coll__xfer *xfer = &all->receives[from];
    struct coll__signature sig;

    while (rc == COLL_OK && xfer->status == COLL_OK &&
           tp->ops->peek(tp, peer, CHANNEL_ORDER, &sig)) {
        *xfer = (struct coll__xfer){.peer = peer,
                                    .channel = CHANNEL_ORDER,
                                    .sig = sig,
                                    .ended = &all->ended};
        tp->ops->recv(tp, xfer);
        *moved = 1;
        rc = came(comm, &sig);
        if (rc == COLL_OK)
            rc = collect(comm);
    }
    return rc;
}

int coll__any_order_move(struct coll_comm *comm, int *moved)
{
    const struct coll__any_order *all = any_order_of(comm);
    int rc = collect(comm);

    for (int i = !comm->rank; i < all->n_peers && rc == COLL_OK; i++)
        if (comm->run->queues[CHANNEL_ORDER].first)
            rc = hear(comm, i, moved);
    return rc;
}

/* ---- making and ending ------------------------------------------------------- */

/* Prepare the communicator, with its first request of this kind. */
static struct coll__any_order *open(struct coll_comm *comm)
{
    struct coll__any_order *all = calloc(1, sizeof(*all));

    if (!all) {
        log_error("api", "no memory for a request");
        return NULL;
    }
    all->peers[all->n_peers++] =
        comm->rank ? (comm->rank - 1) / N_CHILDREN : -1;
    coll__ended_init(&all->ended);
    for (int i = 1; i <= N_CHILDREN; i++)
        if (i < comm->size - N_CHILDREN * comm->rank)
            all->peers[all->n_peers++] = N_CHILDREN * comm->rank + i;
    atomic_store_explicit(&comm->run->any_order, all, memory_order_release);
    comm->run->has_more |= RUN_HAS_ANY_ORDER;
    return all;
}

uint32_t coll__any_order_count(struct coll_comm *comm)
{
    if (!++comm->calls.n_any_order)
        comm->calls.n_any_order = 1;
    return comm->calls.n_any_order;
}

int coll__any_order_join(struct coll_request *request, uint32_t number)
{
    struct coll_comm *comm = request->call.comm;
    struct coll__any_order *all = any_order_of(comm);
    struct coll__agreement *a;

    if (comm->size == 1) /* with whom nobody has to agree */
        return COLL_OK;
    if (all)
        collect(comm); /* what has been sent is free */
    else
        all = open(comm);
    a = all ? take(all, number) : NULL;
    if (!a)
        return COLL_ERR_NOMEM;
    a->request = request;
    a->channel = request->channel;
    request->agreement = a;
    return COLL_OK;
}

void coll__any_order_leave(struct coll_request *request)
{
    struct coll__agreement *a = request->agreement;

    if (!a)
        return;
    request->agreement = NULL;
    a->request = NULL;
    a->n_ready = 0;
    give_back(any_order_of(request->call.comm), a);
}

void coll__any_order_forget(struct coll_comm *comm)
{
    struct coll__any_order *all = any_order_of(comm);
    struct coll__agreement *next;

    for (struct coll__agreement *a = latest(all); a; a = next) {
        next = a->older;
        free(a);
    }
    free(all);
}

size_t coll__any_order_bytes(const struct coll_comm *comm)
{
    const struct coll__any_order *all = any_order_of(comm);
    size_t bytes = all ? sizeof(*all) : 0;

    for (const struct coll__agreement *a = latest(all); a; a = a->older)
        bytes += sizeof(*a);
    return bytes;
}
