/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.c - blocking calls: each is a request that the communicator keeps for the next
 * call of the same shape.  The hot path is a look-up, a start and the wait.
 *
 * Idle requests are in lists by the hash of their shape.  A call takes one out and
 * puts it back, so that a group may run several requests of one shape.  The latest
 * request is looked at first, which needs no hash.  While nothing runs, a call whose shape
 * has an idle request bypasses the queue.  A request has scratch only while a call uses
 * it.
 *
 * COLL_CACHE bounds the bytes of plans and programs.  Beyond the bound an idle request is
 * freed: the first one, from a random place on, that was not used since an earlier search
 * passed it.  So a program that cycles through slightly more shapes than fit still finds
 * most of them; if the oldest request were freed, it would find none.
 */
#include "lib/run/request.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/run/args.h"
#include "lib/run/group.h"
#include "lib/run/owner.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/exec/exec.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 64 /* requests */

struct coll__kept_request {
    struct coll_request request; /* first, so that the two pointers are equal */
    uint64_t hash;               /* of its shape */
    struct coll__kept_request *next; /* while idle: in the list of that hash */
    size_t at;                       /* its place in `all` */
    size_t bytes;
    struct coll__scratch *scratch; /* while a call has taken it, or NULL */
    int is_idle;                   /* no call has taken it */
    int is_used;                   /* again, since trim() last passed it over */
};

static struct coll__kept_request *kept_of(struct coll_request *request)
{
    return (struct coll__kept_request *)request;
}

/* ---- which shape --------------------------------------------------------- */

/* Which of the two count arrays does the call read on this rank? */
static void find_arrays(const struct coll_comm *comm,
                        const struct coll_args *args, int *in, int *out)
{
    int is_root = args->root == comm->rank;

    *in = args->collective == COLL_ALLTOALLV ||
          args->collective == COLL_REDUCE_SCATTERV ||
          (args->collective == COLL_SCATTERV && is_root);
    *out = args->collective == COLL_ALLTOALLV ||
           args->collective == COLL_ALLGATHERV ||
           (args->collective == COLL_GATHERV && is_root);
}

/* Hash counts and displacements.  Without displacements, parts follow each other. */
static uint64_t hash_parts(const size_t *counts, const size_t *displs, int n)
{
    uint64_t hash = 0, a = 0x9e3779b97f4a7c15u, b = 0xc2b2ae3d27d4eb4fu;
    size_t at = 0;

    for (int r = 0; counts && r < n; r++) {
        hash += (counts[r] + a) * ((displs ? displs[r] : at) + b);
        at += counts[r];
        a += 0x9e3779b97f4a7c15u;
        b += 0xc2b2ae3d27d4eb4fu;
    }
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct coll_comm *comm,
                        const struct coll_args *args)
{
    uint64_t hash = args->count * 0x9e3779b97f4a7c15u;
    int in, out;

    hash ^= (uint64_t)(uint32_t)args->root << 32 | (uint32_t)args->op;
    hash = (hash ^ hash >> 32) * 0xc2b2ae3d27d4eb4fu;
    hash ^= (uint64_t)args->collective << 8 | (uint64_t)args->type;
    if (coll__has_counts(args->collective)) {
        find_arrays(comm, args, &in, &out);
        if (in)
            hash += hash_parts(args->in_counts, args->in_displs, comm->size);
        if (out)
            hash -= hash_parts(args->out_counts, args->out_displs, comm->size);
    }
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

/* Do the two multiply by the same factors? */
static int same_factors(const struct coll_args *a, const struct coll_args *b)
{
    return a->op == b->op && a->prescale == b->prescale &&
           a->postscale == b->postscale;
}

/* Has the request this shape?  Reductions compare the operation's handle too: two
 * premul operations have different scalars. */
static int fits(const struct coll_request *request,
                const struct coll_args *args, const struct coll__problem *pb)
{
    return coll__series_of(&request->args) == coll__series_of(args) &&
           (same_factors(&request->args, args) ||
            !coll__reduces(pb->collective)) &&
           coll__same_problem(&request->problem, pb);
}

/* Are the caller's counts and displacements those of a request, which has all
 * displacements? */
static int same_parts(const size_t *counts, const size_t *displs,
                      const size_t *own_counts, const size_t *own_displs, int n)
{
    size_t at = 0;

    if (!counts || !coll__same_numbers(counts, own_counts, n))
        return 0;
    if (displs)
        return coll__same_numbers(displs, own_displs, n);
    for (int r = 0; r < n; at += counts[r++])
        if (own_displs[r] != at)
            return 0;
    return 1;
}

static int same_layout(const struct coll_request *request,
                       const struct coll_args *args)
{
    const struct coll__problem *own = &request->problem;
    int in, out;

    find_arrays(request->call.comm, args, &in, &out);
    return (!in || same_parts(args->in_counts, args->in_displs, own->in_counts,
                              own->in_displs, own->nranks)) &&
           (!out || same_parts(args->out_counts, args->out_displs,
                               own->out_counts, own->out_displs, own->nranks));
}

/* Are the buffers in place, or separate, as those of the request's first call were?
 * The address of an empty buffer does not matter. */
static int lie_alike(const struct coll_request *request,
                     const struct coll_args *args)
{
    uintptr_t in = (uintptr_t)args->in, out = (uintptr_t)args->out;
    const struct coll_args *own = &request->args;

    if (!request->in_len)
        return !request->out_len || out;
    if (!request->out_len)
        return in != 0;
    if (!in || !out)
        return 0;
    return request->problem.in_place
               ? out - in == (uintptr_t)own->out - (uintptr_t)own->in
               : out - in >= request->in_len && in - out >= request->out_len;
}

/* Is this a call of the request's shape that needs no check?  0: it may be one all the
 * same; coll__args_check() decides. */
static int is_again(const struct coll_request *request,
                    const struct coll_args *args)
{
    const struct coll_args *own = &request->args;

    return own->collective == args->collective && own->count == args->count &&
           own->type == args->type && same_factors(own, args) &&
           own->root == args->root && own->any_order == args->any_order &&
           !args->stream && request->is_plain && lie_alike(request, args) &&
           (!request->numbers || same_layout(request, args));
}

/* ---- those that are idle ------------------------------------------------- */

static struct coll__kept_request **list_of(const struct coll__cache *cache,
                                           uint64_t hash)
{
    return &cache->idle[hash & (cache->capacity - 1)];
}

static void insert(struct coll__cache *cache, struct coll__kept_request *kept)
{
    struct coll__kept_request **list = list_of(cache, kept->hash);

    kept->next = *list;
    *list = kept;
    kept->is_idle = 1;
}

static void remove_idle(struct coll__cache *cache,
                        struct coll__kept_request *kept)
{
    struct coll__kept_request **at = list_of(cache, kept->hash);

    while (*at != kept)
        at = &(*at)->next;
    *at = kept->next;
    kept->is_idle = 0;
    if (cache->latest == kept)
        cache->latest = NULL;
}

static struct coll__kept_request *first_of(const struct coll__cache *cache,
                                           uint64_t hash)
{
    return cache->capacity ? *list_of(cache, hash) : NULL;
}

/* Return the idle request that this call repeats, or NULL. */
static struct coll__kept_request *find_again(const struct coll_comm *comm,
                                             const struct coll_args *args)
{
    const struct coll__cache *cache = &comm->run->cache;
    struct coll__kept_request *at = cache->latest;

    if (at && is_again(&at->request, args))
        return at;
    at = first_of(cache, hash_of(comm, args));
    while (at && !is_again(&at->request, args))
        at = at->next;
    return at;
}

/* The same for a call that was checked; pb is its problem. */
static struct coll__kept_request *find_fit(const struct coll__cache *cache,
                                           const struct coll_args *args,
                                           const struct coll__problem *pb,
                                           uint64_t hash)
{
    struct coll__kept_request *at = first_of(cache, hash);

    while (at && !fits(&at->request, args, pb))
        at = at->next;
    return at;
}

/* ---- all of them --------------------------------------------------------- */

/* Another thread may call fork() at any time, and the child frees what is in `all`
 * (coll__cache_forget()).  So `all` never has a request twice or one that was freed,
 * and lacks one request at most.  The fences keep the compiler to that order. */

/* Double the capacity. */
static int grow(struct coll__cache *cache)
{
    size_t capacity = cache->capacity ? 2 * cache->capacity : FIRST_CAPACITY;
    struct coll__kept_request **all = malloc(capacity * sizeof(*all));
    struct coll__kept_request **idle = calloc(capacity, sizeof(*idle)), **old;

    if (!all || !idle) {
        log_error("api", "no memory to keep %zu requests", capacity);
        free(all);
        free(idle);
        return COLL_ERR_NOMEM;
    }
    if (cache->n)
        memcpy(all, cache->all, cache->n * sizeof(*all));
    old = cache->all;
    atomic_signal_fence(memory_order_release);
    cache->all = all;
    free(old);
    free(cache->idle);
    cache->idle = idle;
    cache->capacity = capacity;
    for (size_t i = 0; i < cache->n; i++)
        if (all[i]->is_idle)
            insert(cache, all[i]);
    return COLL_OK;
}

static void add(struct coll__cache *cache, struct coll__kept_request *kept)
{
    kept->at = cache->n;
    kept->bytes = coll__request_bytes(&kept->request);
    cache->all[cache->n] = kept;
    atomic_signal_fence(memory_order_release);
    cache->n++;
    cache->bytes += kept->bytes;
}

static void drop(struct coll__cache *cache, struct coll__kept_request *kept)
{
    struct coll__kept_request *last = cache->all[cache->n - 1];

    remove_idle(cache, kept);
    cache->n--;
    atomic_signal_fence(memory_order_release);
    cache->all[kept->at] = last;
    last->at = kept->at;
    cache->bytes -= kept->bytes;
    coll__request_free(&kept->request);
}

/* Return the idle request to free next, or NULL. */
static struct coll__kept_request *find_victim(struct coll__cache *cache)
{
    size_t first;

    cache->dice = cache->dice * 6364136223846793005u + 1442695040888963407u;
    first = (size_t)(cache->dice >> 33) % cache->n;
    for (size_t i = 0; i < 2 * cache->n; i++) {
        struct coll__kept_request *kept = cache->all[(first + i) % cache->n];

        if (!kept->is_idle || kept == cache->latest)
            continue;
        if (!kept->is_used)
            return kept;
        kept->is_used = 0;
    }
    return NULL;
}

static void trim(struct coll__cache *cache)
{
    struct coll__kept_request *victim;

    while (cache->bytes > cache->most && (victim = find_victim(cache)))
        drop(cache, victim);
}

/* ---- taking and putting back --------------------------------------------- */

static int borrow(struct coll__kept_request *kept)
{
    struct coll_request *request = &kept->request;
    int rc;

    if (!request->tmp_len)
        return COLL_OK;
    rc = coll__scratch_take(&request->call.comm->run->cache.pool,
                            &coll__device_host, request->tmp_len,
                            &kept->scratch);
    if (rc == COLL_OK)
        coll__prog_lend(request->prog, kept->scratch->base);
    return rc;
}

static void give_back(struct coll__kept_request *kept)
{
    if (!kept->scratch)
        return;
    coll__scratch_put(&kept->request.call.comm->run->cache.pool, kept->scratch);
    kept->scratch = NULL;
}

/* For these buffers. */
static int use(struct coll__kept_request *kept, const struct coll_args *args)
{
    kept->is_used = 1;
    kept->request.args.in = args->in;
    kept->request.args.out = args->out;
    return borrow(kept);
}

static int take(struct coll__cache *cache, struct coll__kept_request *kept,
                const struct coll_args *args, struct coll_request **request)
{
    int rc = use(kept, args);

    if (rc)
        return rc;
    remove_idle(cache, kept);
    *request = &kept->request;
    return COLL_OK;
}

static int make(struct coll_comm *comm, const struct coll_args *args,
                const struct coll__problem *pb, uint64_t hash,
                struct coll_request **request)
{
    struct coll__cache *cache = &comm->run->cache;
    int rc = cache->n < cache->capacity ? COLL_OK : grow(cache);
    struct coll__kept_request *new;

    if (rc)
        return rc;
    new = calloc(1, sizeof(*new));
    if (!new) {
        log_error("api", "no memory for a request");
        return COLL_ERR_NOMEM;
    }
    new->request.kind = REQUEST_KEPT;
    new->hash = hash;
    rc = coll__request_init(&new->request, comm, args, pb);
    if (rc) {
        free(new);
        return rc;
    }
    rc = borrow(new);
    if (rc) {
        coll__request_free(&new->request);
        return rc;
    }
    add(cache, new);
    cache->n_made++;
    *request = &new->request;
    return COLL_OK;
}

/* Take the request of a call that was checked, or make one. */
static int take_or_make(struct coll_comm *comm, const struct coll_args *args,
                        const struct coll__problem *pb, uint64_t hash,
                        struct coll_request **request)
{
    struct coll__cache *cache = &comm->run->cache;
    struct coll__kept_request *kept = find_fit(cache, args, pb, hash);

    if (kept)
        return take(cache, kept, args, request);
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__run_quiesce(comm); /* no transport to bind it to */
    return make(comm, args, pb, hash, request);
}

int coll__cache_take(struct coll_comm *comm, const struct coll_args *args,
                     struct coll_request **request)
{
    struct coll__cache *cache = &comm->run->cache;
    struct coll__kept_request *kept = find_again(comm, args);
    struct coll__problem pb;
    int rc;

    if (kept)
        return take(cache, kept, args, request);
    cache->n_judged++;
    rc = coll__args_check(args, comm, &pb);
    return rc ? rc
              : take_or_make(comm, args, &pb, hash_of(comm, args), request);
}

void coll__cache_put(struct coll_request *request)
{
    struct coll__cache *cache = &request->call.comm->run->cache;
    struct coll__kept_request *kept = kept_of(request);

    if (request->parts) {
        request->parts = NULL;
        request->call.sig.root = request->problem.root;
    }
    give_back(kept);
    insert(cache, kept);
    cache->latest = kept;
    if (cache->bytes > cache->most)
        trim(cache);
}

/* ---- calls --------------------------------------------------------------- */

/* Would the call wait for ever: is it a blocking send or receive of a rank to itself,
 * and no running operation can match it? */
static int is_endless(const struct coll_comm *comm,
                      const struct coll_args *args)
{
    return coll__is_p2p(args->collective) && args->root == comm->rank &&
           !comm->run->queues[CHANNEL_P2P].first;
}

int coll__cache_take_call(struct coll_comm *comm, const struct coll_args *args,
                          struct coll_request **request)
{
    uint64_t n_made = comm->run->cache.n_made;
    int rc = coll__cache_take(comm, args, request);

    if (rc || n_made == comm->run->cache.n_made ||
        !coll__is_streams_after_all(args))
        return rc;
    coll__cache_put(*request);
    return COLL_IN_PROGRESS;
}

/* Carry out a call.  COLL_IN_PROGRESS: it is for a stream, and nothing was done.  As
 * owner. */
static int call(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll_request *request;
    int rc = coll__cache_take_call(comm, args, &request);

    if (rc)
        return rc;
    if (is_endless(comm, args))
        rc = coll__args_wrong(args, "a message of a rank to itself would wait "
                                    "for ever; use a group or requests");
    else
        rc = coll__request_start(request);
    if (rc == COLL_OK)
        rc = coll__request_wait(request, comm->timeout);
    coll__cache_put(request);
    return rc;
}

/* May a call bypass the queue?  Only if nothing runs, no communicator is active, no call is
 * traced and no failure or check of old messages is due.  Without the bypass, 8-byte
 * operations of two ranks take 1.3 times as long (benchmarks/NOTES.md, 58). */
static int may_bypass(const struct coll_comm *comm)
{
    return atomic_load_explicit(&comm->run->owner, memory_order_acquire) ==
               OWNER_NONE &&
           !atomic_load_explicit(&comm->run->calling, memory_order_relaxed) &&
           !coll__trace_is_on() &&
           !atomic_load_explicit(&coll__n_active, memory_order_relaxed) &&
           !coll__history_is_look_due(&comm->calls.history[SERIES_HOST]) &&
           !atomic_load_explicit(&comm->failure.status, memory_order_relaxed);
}

/* Return the idle request that the call repeats, if it may bypass the queue, else NULL.
 * Until it is known that no other thread owns the communicator, nothing of it is read. */
static struct coll__kept_request *find_alone(const struct coll_comm *comm,
                                             const struct coll_args *args)
{
    struct coll__kept_request *kept =
        may_bypass(comm) ? find_again(comm, args) : NULL;

    return kept && coll__prog_is_listed(kept->request.prog) ? kept : NULL;
}

/* Run it at once; if it does not end without a wait, it joins the queue. */
static int call_again(struct coll_comm *comm, struct coll__kept_request *kept,
                      const struct coll_args *args)
{
    struct coll_request *request = &kept->request;
    int rc = use(kept, args);

    if (rc)
        return rc;
    rc = coll__request_start_alone(request);
    if (rc != COLL_IN_PROGRESS) {
        give_back(kept);
        comm->run->cache.latest = kept;
        return rc;
    }
    coll__owner_acquire(comm);
    remove_idle(&comm->run->cache, kept);
    coll__request_queue(request);
    rc = coll__request_wait(request, comm->timeout);
    coll__cache_put(request);
    coll__owner_release(comm);
    return rc;
}

static int call_stream(struct coll_comm *comm, const struct coll_args *args)
{
    int rc = coll__stream_calls_there(args);

    return rc ? rc : coll__stream_calls->call(comm, args);
}

int coll__run_call(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll__kept_request *again;
    int rc;

    if (coll__group_is_open()) /* do not call coll__log_done(): calls of a log handler
                                * would become part of the group */
        return coll__group_note(comm, args);
    if (!comm || coll__comm_is_inherited(comm))
        return coll__log_done(
            coll__comm_check(comm, coll_collective_name(args->collective)));
    if (coll__is_stream_call(args))
        return coll__log_done(call_stream(comm, args));
    again = find_alone(comm, args);
    if (again)
        return coll__log_done(call_again(comm, again, args));
    rc = coll__owner_enter(comm, coll_collective_name(args->collective));
    if (rc)
        return coll__log_done(rc);
    rc = call(comm, args);
    coll__owner_release(comm);
    if (rc == COLL_IN_PROGRESS)
        return coll__log_done(call_stream(comm, args));
    coll__active_move();
    return coll__log_done(rc);
}

/* In a child only the list `all` is consistent: another thread of the parent may have
 * been changing everything else during fork().  So this function uses only `all`. */
void coll__cache_forget(struct coll_comm *comm)
{
    struct coll__cache *cache = &comm->run->cache;

    for (size_t i = 0; i < cache->n; i++)
        coll__request_free(&cache->all[i]->request);
    free(cache->all);
    free(cache->idle);
    coll__pool_fini(&cache->pool);
    *cache = (struct coll__cache){.most = cache->most};
}
