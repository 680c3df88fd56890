/* SPDX-License-Identifier: BSD-3-Clause */
/* tagged.c - requests of messages with tags.
 *
 * Such a request has no plan and no program: lib/tags matches the messages and carries
 * them.  Otherwise it is as other requests are: it is in the queue of its channel while it
 * runs, and every call that makes progress moves it.  What the communicator needs for tags
 * is made with its first request of this kind.
 */
#include "lib/run/tagged.h"
#include "lib/comm/advice.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/run/args.h"
#include "lib/run/group.h"
#include "lib/run/owner.h"
#include "lib/run/stream_calls.h"
#include "lib/tags/tags.h"
#include "lib/trace/log.h"
#include "lib/trace/trace.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME_TYPE "a send with a tag and its receive need the same type"

struct coll__tagged_request {
    struct coll_request request; /* first, so that the two pointers are equal */
    struct coll__tagged tagged;
    struct coll__tagged_request *next; /* among those that were put back */
};

static struct coll__tagged_request *tagged_of(struct coll_request *request)
{
    return (struct coll__tagged_request *)request;
}

static int is_recv(const struct coll_args *args)
{
    return args->collective == COLL_RECV_TAGGED;
}

/* ---- arguments ------------------------------------------------------------- */

static int check_peer(const struct coll_args *args,
                      const struct coll_comm *comm)
{
    int is_any = is_recv(args) && args->root == COLL_ANY_RANK;
    int is_any_tag = is_recv(args) && args->tag == COLL_ANY_TAG;
    const char *name = coll_collective_name(args->collective);

    if (!is_any && (args->root < 0 || args->root >= comm->size)) {
        log_error("api", "%s: peer %d is not within 0 to %d%s", name,
                  args->root, comm->size - 1,
                  is_recv(args) ? ", nor COLL_ANY_RANK" : "");
        return COLL_ERR_INVALID;
    }
    if (!is_any_tag && args->tag < 0) {
        log_error("api", "%s: tag %d is negative%s", name, args->tag,
                  is_recv(args) ? ", and not COLL_ANY_TAG" : "");
        return COLL_ERR_INVALID;
    }
    return COLL_OK;
}

static int check_memory(const struct coll_args *args)
{
    if (!coll__is_stream_call(args) && !coll__is_streams_after_all(args))
        return COLL_OK;
    log_error("api",
              "%s: messages with tags are for host memory, without a stream; "
              "copy the buffer to the host, or take coll_send() and "
              "coll_recv()",
              coll_collective_name(args->collective));
    return COLL_ERR_UNSUPPORTED;
}

static int check_buffer(const struct coll_args *args)
{
    const void *buf = is_recv(args) ? args->out : args->in;

    if (args->count > PTRDIFF_MAX / coll_type_size(args->type))
        return coll__args_wrong(args, "count is larger than the address space");
    if (args->count && !buf)
        return coll__args_wrong(args,
                                is_recv(args) ? "out is NULL" : "in is NULL");
    if (is_recv(args) && args->status &&
        args->status->size < sizeof(*args->status))
        return coll__args_wrong(args, "set status->size to "
                                      "sizeof(struct coll_recv_status)");
    return COLL_OK;
}

int coll__tagged_check(const struct coll_args *args,
                       const struct coll_comm *comm)
{
    int rc;

    if ((unsigned)args->type >= COLL_N_TYPES) {
        log_error("api", "%s: %d is no element type; see enum coll_type",
                  coll_collective_name(args->collective), (int)args->type);
        return COLL_ERR_INVALID;
    }
    if (args->background != 0 && args->background != 1)
        return coll__args_wrong(args, "background must be 0 or 1");
    if (args->algo && *args->algo)
        return coll__args_wrong(args, "there are no algorithms; set algo to "
                                      "NULL");
    rc = check_peer(args, comm);
    if (rc == COLL_OK)
        rc = check_memory(args);
    return rc ? rc : check_buffer(args);
}

/* ---- requests -------------------------------------------------------------- */

/* Prepare the communicator for tags. */
static int open_tags(struct coll_comm *comm)
{
    int rc =
        comm->run->tags
            ? COLL_OK
            : coll__tags_create(&comm->links.routes, comm->rank, comm->size,
                                CHANNEL_TAGS, &comm->run->tags);

    if (rc)
        return rc;
    comm->run->tags->n_received =
        &comm->calls.n_received[SERIES_TAGGED * comm->size];
    comm->run->has_more |= RUN_HAS_TAGS;
    return COLL_OK;
}

static void init(struct coll__tagged_request *r, struct coll_comm *comm,
                 const struct coll_args *args)
{
    size_t len = args->count * coll_type_size(args->type);
    struct coll_request *request = &r->request;

    *request = (struct coll_request){
        .kind = REQUEST_TAGGED,
        .call = {.comm = comm,
                 .is_p2p = args->root != COLL_ANY_RANK,
                 .sig = {.collective = (uint8_t)args->collective,
                         .type = (uint8_t)args->type,
                         .series = SERIES_TAGGED,
                         .root = args->root,
                         .count = args->count}},
        .args = *args,
        .problem = {.collective = args->collective,
                    .type = args->type,
                    .nranks = comm->size,
                    .rank = comm->rank,
                    .root = args->root,
                    .count = args->count},
        .algorithm = "tagged",
        .in_len = is_recv(args) ? 0 : len,
        .out_len = is_recv(args) ? len : 0,
        .channel = CHANNEL_TAGS,
    };
    r->tagged.peer = args->root;
    r->tagged.tag = args->tag;
    r->tagged.type = args->type;
    r->tagged.buf = is_recv(args) ? args->out : (void *)(uintptr_t)args->in;
    r->tagged.count = args->count;
    r->tagged.owner = r;
}

int coll__tagged_take(struct coll_comm *comm, const struct coll_args *args,
                      struct coll_request **request)
{
    struct coll__tagged_request *r;
    int rc = coll__tagged_check(args, comm);

    if (rc)
        return rc;
    r = comm->run->idle_tagged;
    if (r)
        comm->run->idle_tagged = r->next;
    else
        r = calloc(1, sizeof(*r));
    if (!r || open_tags(comm)) {
        free(r);
        log_error("api", "no memory for a request");
        return COLL_ERR_NOMEM;
    }
    init(r, comm, args);
    *request = &r->request;
    return COLL_OK;
}

void coll__tagged_put(struct coll_request *request)
{
    struct coll__tagged_request *r = tagged_of(request);
    struct coll__run *run = request->call.comm->run;

    r->next = run->idle_tagged;
    run->idle_tagged = r;
}

/* ---- the end of one -------------------------------------------------------- */

static void describe_longer(const struct coll__tagged_request *r, char *text,
                            size_t len)
{
    const struct coll__tag_message *m = &r->tagged.message;
    size_t size = coll_type_size(m->type);
    char what[COLL__SIGNATURE_TEXT];

    coll__signature_describe_own(&r->request.call.sig, r->request.call.user_tag,
                                 what, sizeof(what));
    snprintf(text, len,
             "%s: the message of rank %d with tag %d has %zu elements (%zu "
             "bytes), and the receive takes %zu (%zu bytes); receive as many "
             "as are sent",
             what, m->source, m->tag, m->count, m->count * size,
             r->tagged.count, r->tagged.count * size);
}

void coll__tagged_say(const struct coll_request *request)
{
    char text[COLL__TEXT_MAX];

    describe_longer((const struct coll__tagged_request *)request, text,
                    sizeof(text));
    coll__log_set_error(text);
}

/* Fail: the types of the two ranks differ. */
static int fail_types(const struct coll__tagged_request *r)
{
    const struct coll__tag_message *m = &r->tagged.message;
    struct coll_comm *comm = r->request.call.comm;
    struct coll__signature sent = {.seq = coll__tagged_seq(m->tag, m->number),
                                   .collective = COLL_SEND_TAGGED,
                                   .type = (uint8_t)m->type,
                                   .series = SERIES_TAGGED,
                                   .root = comm->rank,
                                   .count = m->count};
    char here[COLL__SIGNATURE_TEXT], there[COLL__SIGNATURE_TEXT];

    coll__signature_describe_own(&r->request.call.sig, r->request.call.user_tag,
                                 here, sizeof(here));
    coll__signature_describe(&sent, there, sizeof(there));
    return coll__comm_fail(comm, COLL_ERR_MISMATCH, COLL__DISAGREE, m->source,
                           there, comm->rank, here, SAME_TYPE);
}

/* Tell the caller, and the log, what came. */
static void tell(const struct coll__tagged_request *r)
{
    struct coll_recv_status *status = r->request.args.status;
    const struct coll__tag_message *m = &r->tagged.message;

    if (is_recv(&r->request.args))
        log_debug("tags", "received %zu %s from rank %d with tag %d", m->count,
                  coll_type_name(m->type), m->source, m->tag);
    else
        log_debug("tags", "sent %zu %s to rank %d with tag %d", m->count,
                  coll_type_name(m->type), r->tagged.peer, m->tag);
    if (!status || !is_recv(&r->request.args))
        return;
    status->source = m->source;
    status->tag = m->tag;
    status->count = m->count;
}

/* A send or a receive has ended.  COLL_OK, or the communicator's failure. */
static int end(struct coll__tagged_request *r)
{
    struct coll_request *request = &r->request;
    struct coll_comm *comm = request->call.comm;
    int status = r->tagged.status;

    if (status == COLL_ERR_MISMATCH) {
        fail_types(r);
        return coll__run_quiesce(comm);
    }
    if (status == COLL_ERR_TRUNCATED)
        coll__tagged_say(request);
    tell(r);
    if (is_recv(&request->args))
        atomic_fetch_sub_explicit(&comm->calls.n_receiving, 1,
                                  memory_order_relaxed);
    coll__request_end(request, status);
    return COLL_OK;
}

/* End all that have ended. */
static int collect(struct coll_comm *comm)
{
    struct coll__tagged *tagged;
    int rc = COLL_OK;

    while (rc == COLL_OK && (tagged = coll__tags_take(comm->run->tags)))
        rc = end(tagged->owner);
    return rc;
}

/* ---- running --------------------------------------------------------------- */

/* Return the number of a call: of a send, among those to this peer; of a receive, that of
 * the peer's first message that no receive has taken yet.  The stall check compares these
 * with what the peer has done. */
static uint32_t next_number(struct coll_comm *comm,
                            const struct coll_args *args)
{
    int at = SERIES_TAGGED * comm->size + args->root;

    if (!is_recv(args))
        return (uint32_t)atomic_fetch_add_explicit(&comm->calls.n_sent[at], 1,
                                                   memory_order_relaxed) +
               1;
    atomic_fetch_add_explicit(&comm->calls.n_receiving, 1,
                              memory_order_relaxed);
    if (args->root == COLL_ANY_RANK)
        return ++comm->run->tags->n_from_any;
    return (uint32_t)atomic_load_explicit(&comm->calls.n_received[at],
                                          memory_order_relaxed) +
           1;
}

int coll__tagged_start(struct coll_request *request)
{
    struct coll__tagged_request *r = tagged_of(request);
    struct coll_comm *comm = request->call.comm;

    if (coll__comm_has_failed(comm))
        return coll__request_fail(request);
    if (coll__trace_is_on())
        request->called = request->begun = coll__now();
    request->call.sig.seq =
        coll__tagged_seq(request->args.tag, next_number(comm, &request->args));
    if (!comm->run->queues[CHANNEL_TAGS].first)
        coll__history_p2p(&comm->calls.history[SERIES_HOST], &request->call.sig,
                          request->call.user_tag);
    coll__request_queue(request);
    if (is_recv(&request->args))
        coll__tags_recv(comm->run->tags, &r->tagged);
    else
        coll__tags_send(comm->run->tags, &r->tagged);
    return collect(comm);
}

int coll__tagged_move(struct coll_comm *comm, int *moved)
{
    struct coll__tags *tags = comm->run->tags;
    const struct coll_request *first = comm->run->queues[CHANNEL_TAGS].first;
    int rc = coll__tags_move(tags, moved);

    if (rc == COLL_OK)
        return collect(comm);
    if (tags->fault && first)
        return coll__run_failed(comm, &first->call.sig, tags->fault, rc);
    coll__comm_fail(comm, rc, "%s", coll_last_error());
    return coll__run_quiesce(comm);
}

/* Would a blocking call wait for ever: for this rank itself, of which nothing runs? */
static int is_endless(const struct coll_comm *comm,
                      const struct coll_args *args)
{
    const struct coll__tags *tags = comm->run->tags;
    int is_home = args->root == comm->rank ||
                  (args->root == COLL_ANY_RANK && comm->size == 1);

    if (!is_home || comm->run->queues[CHANNEL_TAGS].first)
        return 0;
    return is_recv(args) ? !coll__tags_has(tags, comm->rank, args->tag)
                         : !coll__tags_keeps(
                               tags, args->count * coll_type_size(args->type));
}

/* As owner. */
static int call(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll_request *request;
    int rc = coll__comm_status(comm);

    if (rc == COLL_OK)
        rc = coll__tagged_take(comm, args, &request);
    if (rc)
        return rc;
    if (is_endless(comm, args))
        rc = coll__args_wrong(args, "this rank would wait for itself for ever; "
                                    "use a group or requests");
    else
        rc = coll__tagged_start(request);
    if (rc == COLL_OK)
        rc = coll__request_wait(request, comm->timeout);
    coll__tagged_put(request);
    return rc;
}

int coll__tagged_call(struct coll_comm *comm, const struct coll_args *args)
{
    const char *name = coll_collective_name(args->collective);
    int rc;

    if (coll__group_is_open())
        return coll__group_note(comm, args);
    rc = coll__comm_check(comm, name);
    if (rc == COLL_OK)
        rc = coll__owner_enter(comm, name);
    if (rc)
        return coll__log_done(rc);
    rc = call(comm, args);
    coll__owner_release(comm);
    coll__active_move();
    return coll__log_done(rc);
}

/* ---- the communicator's end ------------------------------------------------ */

int coll__tagged_leave(struct coll_comm *comm)
{
    struct coll__tag_message m;

    if (!comm->run->tags || !coll__tags_left(comm->run->tags, &m))
        return COLL_OK;
    log_error("api",
              "rank %d sent rank %d a message with tag %d (%zu %s) that was "
              "never received; each coll_send_tagged() needs its "
              "coll_recv_tagged()",
              m.source, comm->rank, m.tag, m.count, coll_type_name(m.type));
    return COLL_ERR_MISMATCH;
}

void coll__tagged_reset(struct coll_comm *comm)
{
    if (comm->run->tags)
        coll__tags_reset(comm->run->tags);
    atomic_store_explicit(&comm->calls.n_receiving, 0, memory_order_relaxed);
}

void coll__tagged_forget(struct coll_comm *comm)
{
    struct coll__tagged_request *r;

    while ((r = comm->run->idle_tagged)) {
        comm->run->idle_tagged = r->next;
        free(r);
    }
    coll__tags_destroy(comm->run->tags);
    comm->run->tags = NULL;
}

size_t coll__tagged_bytes(const struct coll_comm *comm)
{
    return comm->run->tags ? comm->run->tags->kept : 0;
}
