/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.c - blocking calls: each is a request that the communicator keeps for
 * the next call of its shape; the hot path is a look-up, a start and the wait.
 *
 * The list is in order of use, the latest first, and bounded by number and by
 * the scratch that the requests hold.
 */
#include "lib/api/comm.h"
#include "lib/trace/log.h"

#include <string.h>

#define MAX_CACHED 64
#define MAX_BYTES ((size_t)64 << 20)

static int same_array(const size_t *a, const size_t *b, int n)
{
    return (!a && !b) || (a && b && !memcmp(a, b, (size_t)n * sizeof(*a)));
}

static int same_counts(const struct coll__problem *a,
                       const struct coll__problem *b)
{
    return same_array(a->in_counts, b->in_counts, a->nranks) &&
           same_array(a->out_counts, b->out_counts, a->nranks) &&
           same_array(a->in_displs, b->in_displs, a->nranks) &&
           same_array(a->out_displs, b->out_displs, a->nranks);
}

/* Of a reduction the handle, too: one premul has not the scalar of another. */
static int fits(const struct coll_request *request,
                const struct coll_args *args, const struct coll__problem *pb)
{
    const struct coll__problem *own = &request->problem;

    return own->count == pb->count && own->collective == pb->collective &&
           own->type == pb->type && own->op == pb->op &&
           own->root == pb->root && own->in_place == pb->in_place &&
           (request->args.op == args->op || !coll__reduces(pb->collective)) &&
           (!coll__has_counts(pb->collective) || same_counts(own, pb));
}

/* Is this a plain call of the request's shape, with buffers that lie as its
 * own did: together as they should, or apart as a whole?  Then there is nothing
 * to judge about it.  Whatever else may be right is for coll__args_check(). */
static int is_again(const struct coll_request *request,
                    const struct coll_args *args)
{
    uintptr_t in = (uintptr_t)args->in, out = (uintptr_t)args->out;
    const struct coll_args *own = &request->args;

    if (own->collective != args->collective || own->count != args->count ||
        own->type != args->type || own->op != args->op ||
        own->root != args->root || args->stream || !request->is_plain ||
        (!in && request->in_len) || (!out && request->out_len))
        return 0;
    if (request->problem.in_place)
        return out - in == (uintptr_t)own->out - (uintptr_t)own->in;
    return out - in >= request->in_len && in - out >= request->out_len;
}

/* Drop the request that was used longest ago. */
static void drop_oldest(struct coll_comm *comm)
{
    struct coll_request **at = &comm->cached;

    while ((*at)->next)
        at = &(*at)->next;
    comm->cached_bytes -= (*at)->tmp_len;
    coll__request_free(*at);
    *at = NULL;
    comm->n_cached--;
}

/* Take a request out of the list, for these buffers. */
static struct coll_request *take(struct coll_comm *comm,
                                 struct coll_request **at,
                                 const struct coll_args *args)
{
    struct coll_request *kept = *at;

    *at = kept->next;
    comm->n_cached--;
    comm->cached_bytes -= kept->tmp_len;
    kept->args.in = args->in;
    kept->args.out = args->out;
    return kept;
}

int coll__cache_take(struct coll_comm *comm, const struct coll_args *args,
                     struct coll_request **request)
{
    struct coll__problem pb;
    int rc;

    for (struct coll_request **at = &comm->cached; *at; at = &(*at)->next)
        if (is_again(*at, args)) {
            *request = take(comm, at, args);
            return COLL_OK;
        }
    rc = coll__args_check(args, comm, &pb);
    if (rc)
        return rc;
    for (struct coll_request **at = &comm->cached; *at; at = &(*at)->next)
        if (fits(*at, args, &pb)) {
            *request = take(comm, at, args);
            return COLL_OK;
        }
    if (atomic_load_explicit(&comm->failure.status, memory_order_relaxed))
        return coll__comm_quiesce(comm); /* no transport to bind it to */
    return coll__request_make(comm, args, &pb, request);
}

void coll__cache_put(struct coll_request *request)
{
    struct coll_comm *comm = request->comm;

    if (request->parts) {
        request->parts = NULL;
        request->head.root = request->problem.root;
    }
    request->next = comm->cached;
    comm->cached = request;
    comm->n_cached++;
    comm->cached_bytes += request->tmp_len;
    while (comm->n_cached > 1 &&
           (comm->n_cached > MAX_CACHED || comm->cached_bytes > MAX_BYTES))
        drop_oldest(comm);
}

/* A message to oneself whose other half nothing that runs can be. */
static int is_endless(const struct coll_comm *comm,
                      const struct coll_args *args)
{
    return coll__is_p2p(args->collective) && args->root == comm->rank &&
           !comm->running;
}

/* May the request go ahead without the queue? */
static int may_dash(const struct coll_comm *comm,
                    const struct coll_request *request)
{
    return !comm->running && coll__prog_is_listed(request->prog) &&
           !atomic_load_explicit(&comm->failure.status, memory_order_relaxed);
}

/* A shape once more, and small: it stays in the list, as the latest, if it ends
 * at once. */
static int call_again(struct coll_comm *comm, struct coll_request **at,
                      const struct coll_args *args)
{
    struct coll_request *request = *at;
    int rc;

    *at = request->next;
    request->next = comm->cached;
    comm->cached = request;
    request->args.in = args->in;
    request->args.out = args->out;
    rc = coll__request_dash(request);
    if (rc != COLL_IN_PROGRESS)
        return rc;
    take(comm, &comm->cached, args);
    coll__request_join(request);
    rc = coll__request_wait(request, comm->timeout);
    coll__cache_put(request);
    return rc;
}

static int call(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll_request *request;
    int rc = coll__cache_take(comm, args, &request);

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

int coll__comm_call(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll_request **at;

    if (!comm) {
        log_error("api", "%s: comm is NULL",
                  coll_collective_name(args->collective));
        return COLL_ERR_INVALID;
    }
    if (coll__group_is_open())
        return coll__group_note(comm, args);
    for (at = &comm->cached; *at; at = &(*at)->next)
        if (is_again(*at, args) && may_dash(comm, *at))
            return call_again(comm, at, args);
    return call(comm, args);
}

void coll__cache_forget(struct coll_comm *comm)
{
    while (comm->n_cached)
        drop_oldest(comm);
}
