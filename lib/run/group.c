/* SPDX-License-Identifier: BSD-3-Clause */
/* group.c - groups: operations are noted, then started together.
 *
 * A group belongs to its thread.  At its end, small allreduces of one communicator are
 * fused: they are copied side by side into the stage of their channel and travel as one
 * allreduce, unless another collective comes between them.  Then all requests are
 * started in order and waited for.  Each wait moves all communicators, so ranks may
 * list their communicators in different orders.  What is fused depends only on what
 * all ranks of a communicator have in common.
 */
#include "lib/run/request.h"
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/run/args.h"
#include "lib/run/group.h"
#include "lib/run/owner.h"
#include "lib/run/stream_calls.h"
#include "lib/run/tagged.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>

struct note {
    struct coll_comm *comm;
    struct coll_args args;
    size_t *numbers; /* the arrays of args */
    int is_fused;    /* travels with an earlier one */
    int is_streams;  /* for a stream */
    void *
        context; /* that its stream belongs to, if that depends on the thread */
    struct coll__part part;
    struct coll__queue *queue; /* with the stage, of one that carries others */
    /* NULL if fused, or if the communicator had failed.  For a call on a stream: the
     * request that compares it (COLL_CHECK), or NULL */
    struct coll_request *request;
};

_Thread_local int coll__group_depth;

static _Thread_local struct {
    int status; /* of the first call that was wrong */
    char why[COLL__TEXT_MAX];
    struct note *notes;
    size_t n, cap;
} group;

/* ---- noting -------------------------------------------------------------- */

/* Remember the first thing that went wrong. */
static int spoil(int status)
{
    if (group.status == COLL_OK) {
        group.status = status;
        strncpy(group.why, coll_last_error(), sizeof(group.why) - 1);
    }
    return status;
}

static int no_memory(void)
{
    log_error("api", "no memory for a group of %zu operations", group.n + 1);
    return COLL_ERR_NOMEM;
}

/* Make room for one more. */
static int reserve(void)
{
    size_t cap = group.cap ? 2 * group.cap : 16;
    struct note *notes;

    if (group.n < group.cap)
        return COLL_OK;
    notes = realloc(group.notes, cap * sizeof(*notes));
    if (!notes)
        return no_memory();
    group.notes = notes;
    group.cap = cap;
    return COLL_OK;
}

static int judge(struct coll_comm *comm, const struct coll_args *args,
                 struct coll__problem *pb, int *is_streams)
{
    int rc;

    *is_streams = 0;
    rc = coll__comm_check(comm, coll_collective_name(args->collective));
    if (rc)
        return rc;
    if (coll__is_tagged(args->collective))
        return coll__tagged_check(args, comm);
    coll__look_for_devices();
    *is_streams = coll__is_stream_call(args);
    if (!*is_streams)
        return coll__args_check(args, comm, pb);
    rc = coll__stream_calls_there(args);
    return rc ? rc : coll__stream_calls->check(comm, args);
}

int coll__group_note(struct coll_comm *comm, const struct coll_args *args)
{
    struct coll__problem pb = {0};
    struct note *note;
    int is_streams, rc = judge(comm, args, &pb, &is_streams);

    if (rc == COLL_OK)
        rc = reserve();
    if (rc)
        return spoil(rc);
    note = &group.notes[group.n];
    *note = (struct note){.comm = comm, .args = *args};
    note->is_streams = is_streams;
    if (is_streams)
        note->context = coll__stream_calls->here(args);
    rc = coll__args_keep(&note->args, comm, &note->numbers);
    if (rc)
        return spoil(rc);
    note->part = (struct coll__part){
        .in = args->in,
        .out = args->out,
        .len = coll__problem_bytes(&pb),
    };
    group.n++;
    return COLL_OK;
}

int coll__group_forget(const struct coll_comm *comm)
{
    size_t n = 0;

    for (size_t i = 0; i < group.n; i++) {
        if (group.notes[i].comm == comm)
            free(group.notes[i].numbers);
        else
            group.notes[n++] = group.notes[i];
    }
    if (n == group.n)
        return COLL_OK;
    group.n = n;
    log_error("api", "a communicator was destroyed within a group that has "
                     "operations on it; end the group first");
    return spoil(COLL_ERR_INVALID);
}

/* ---- fusing -------------------------------------------------------------- */

static int can_follow(const struct note *first, const struct note *next,
                      size_t len)
{
    return next->args.collective == COLL_ALLREDUCE &&
           next->args.type == first->args.type &&
           next->args.op == first->args.op &&
           next->part.len <= first->comm->settings.fuse - len;
}

/* Chain the allreduces that can be fused with this one behind it; returns the bytes
 * of all of them. */
static size_t fuse(struct note *first)
{
    const struct note *end = group.notes + group.n;
    struct coll__part *last = &first->part;
    size_t len = first->part.len;

    if (first->args.collective != COLL_ALLREDUCE ||
        len > first->comm->settings.fuse)
        return len;
    for (struct note *next = first + 1; next < end; next++) {
        if (next->comm != first->comm || next->is_streams ||
            coll__is_p2p(next->args.collective) ||
            coll__is_tagged(next->args.collective))
            continue;
        if (!can_follow(first, next, len))
            break;
        next->is_fused = 1;
        last->next = &next->part;
        last = &next->part;
        len += next->part.len;
    }
    return len;
}

/* See that the stage holds len bytes; nothing uses it yet. */
static int make_stage(struct coll__queue *queue, size_t len)
{
    unsigned char *stage;

    if (len <= queue->stage_len)
        return COLL_OK;
    stage = malloc(len);
    if (!stage)
        return no_memory();
    free(queue->stage);
    queue->stage = stage;
    queue->stage_len = len;
    return COLL_OK;
}

/* Turn a note and those chained behind it into one allreduce on the stage. */
static int use_stage(struct note *note, size_t len)
{
    struct coll__problem pb = {.collective = note->args.collective,
                               .type = note->args.type,
                               .count = len / coll_type_size(note->args.type)};

    note->args.count = pb.count;
    note->queue = &note->comm->run
                       ->queues[coll__channel_of(note->comm, &pb, SERIES_HOST)];
    return make_stage(note->queue, len);
}

/* Return a digest of the lengths of fused allreduces; never 0, which means not
 * fused. */
static int32_t digest(const struct coll__part *part)
{
    uint64_t hash = 0;

    for (; part; part = part->next)
        hash = coll__hash_add(hash, part->len);
    return (int32_t)((uint32_t)hash | 1);
}

/* Take the request that carries the note out. */
static int take_request(struct note *note)
{
    int is_many = note->part.next != NULL, rc;

    if (coll__is_tagged(note->args.collective))
        return coll__tagged_take(note->comm, &note->args, &note->request);
    if (is_many) /* the stage is as large as it gets */
        note->args.in = note->args.out = note->queue->stage;
    rc = coll__cache_take(note->comm, &note->args, &note->request);
    if (rc || !is_many)
        return rc;
    note->request->parts = &note->part;
    note->request->call.sig.root = digest(&note->part);
    return COLL_OK;
}

/* ---- running ------------------------------------------------------------- */

/* Does the group have an operation of a communicator of the parent?  Then this child
 * was forked within the group. */
static int is_any_inherited(void)
{
    for (size_t i = 0; i < group.n; i++)
        if (coll__comm_is_inherited(group.notes[i].comm))
            return 1;
    return 0;
}

static int is_failed(const struct coll_comm *comm)
{
    return atomic_load_explicit(&comm->failure.status, memory_order_relaxed) !=
           COLL_OK;
}

/* Make the request that compares a call on a stream, in the call's own context. */
static int compare(struct note *note)
{
    int rc = coll__stream_calls->enter(note->context);

    if (rc)
        return rc;
    rc = coll__stream_calls->compare(note->comm, &note->args, &note->request);
    coll__stream_calls->leave(note->context);
    return rc;
}

/* Make all requests.  A failed communicator does not stop the others; its status is
 * reported by gather_status(). */
static int make_requests(void)
{
    int rc = COLL_OK;

    for (size_t i = 0; i < group.n && rc == COLL_OK; i++) {
        struct note *note = &group.notes[i];
        int is_alone = note->is_fused || note->is_streams;
        size_t len = is_alone ? 0 : fuse(note);

        if (note->part.next && !note->is_fused)
            rc = use_stage(note, len);
    }
    for (size_t i = 0; i < group.n && rc == COLL_OK; i++) {
        struct note *note = &group.notes[i];

        if (!note->is_fused) {
            rc = coll__owner_enter(note->comm, "coll_group_end");
            if (rc)
                break;
            rc = note->is_streams ? compare(note) : take_request(note);
            coll__owner_release(note->comm);
        }
        if (rc && is_failed(note->comm))
            rc = COLL_OK;
    }
    return rc;
}

/* Start all requests for streams, or all others. */
static void start_all(int is_streams)
{
    for (size_t i = 0; i < group.n; i++) {
        struct coll_request *request = group.notes[i].request;

        if (!request || group.notes[i].is_streams != is_streams)
            continue;
        coll__owner_acquire(request->call.comm);
        coll__request_start_any(request);
        coll__owner_release(request->call.comm);
    }
}

static void wait_all(int is_streams)
{
    for (size_t i = 0; i < group.n; i++) {
        struct coll_request *request = group.notes[i].request;

        if (!request || group.notes[i].is_streams != is_streams ||
            coll__request_status(request) != COLL_IN_PROGRESS)
            continue;
        coll__owner_acquire(request->call.comm);
        coll__request_wait(request, request->call.comm->timeout);
        coll__owner_release(request->call.comm);
    }
}

/* Return why the note's operation failed: its communicator's failure, or a message that
 * was too long.  Logged again for this thread. */
static int status_of(const struct note *note)
{
    int rc = coll__comm_status(note->comm);

    if (rc || !note->request)
        return rc;
    rc = coll__request_status(note->request);
    if (rc == COLL_ERR_TRUNCATED)
        coll__tagged_say(note->request);
    return rc;
}

/* Return the first failure among the group's operations, logged again for this
 * thread. */
static int gather_status(int is_streams)
{
    for (size_t i = 0; i < group.n; i++) {
        const struct note *note = &group.notes[i];
        int is_missing = !note->request && !is_streams && !note->is_fused;

        if (note->is_streams == is_streams &&
            (is_missing ||
             (note->request && coll__request_status(note->request))))
            return status_of(note);
    }
    return COLL_OK;
}

/* Carry out the requests of one kind. */
static int run_requests(int is_streams)
{
    start_all(is_streams);
    wait_all(is_streams);
    return gather_status(is_streams);
}

/* Enqueue all stream calls of one communicator; `first` is its first note.  All its
 * streams are of one GPU, so one context serves all calls. */
static int run_streams_of(size_t first, const struct coll_args **calls)
{
    struct coll_comm *comm = group.notes[first].comm;
    void *context = NULL;
    int rc, n = 0;

    for (size_t i = first; i < group.n; i++) {
        if (!group.notes[i].is_streams || group.notes[i].comm != comm)
            continue;
        calls[n++] = &group.notes[i].args;
        if (!context)
            context = group.notes[i].context;
    }
    rc = coll__stream_calls->enter(context);
    if (rc)
        return rc;
    rc = coll__stream_calls->run(comm, calls, n);
    coll__stream_calls->leave(context);
    return rc;
}

static int is_first_for_streams(size_t i)
{
    if (!group.notes[i].is_streams)
        return 0;
    for (size_t j = 0; j < i; j++)
        if (group.notes[j].is_streams &&
            group.notes[j].comm == group.notes[i].comm)
            return 0;
    return 1;
}

/* Put all calls for streams into their streams. */
static int run_streams(void)
{
    const struct coll_args **calls = malloc((group.n + 1) * sizeof(*calls));
    int rc = calls ? COLL_OK : no_memory();

    for (size_t i = 0; i < group.n && rc == COLL_OK; i++)
        if (is_first_for_streams(i))
            rc = run_streams_of(i, calls);
    free(calls);
    return rc;
}

static int run_all(void)
{
    int rc;

    if (is_any_inherited())
        return coll__comm_inherited("coll_group_end");
    rc = make_requests();
    if (rc == COLL_OK)
        rc = run_requests(1);
    if (rc == COLL_OK)
        rc = run_streams();
    return rc ? rc : run_requests(0);
}

/* Put the requests back and forget the notes. */
static void clear(void)
{
    for (size_t i = 0; i < group.n; i++) {
        struct coll_request *request = group.notes[i].request;

        if (request) {
            coll__owner_acquire(request->call.comm);
            if (group.notes[i].is_streams)
                coll__stream_calls->compared(request);
            else if (request->kind == REQUEST_TAGGED)
                coll__tagged_put(request);
            else
                coll__cache_put(request);
            coll__owner_release(request->call.comm);
        }
        free(group.notes[i].numbers);
    }
    free(group.notes);
    group.notes = NULL;
    group.n = group.cap = 0;
    group.status = COLL_OK;
}

int coll__group_end(void)
{
    int rc;

    if (!coll__group_depth) {
        log_error("api", "coll_group_end: there is no group; call "
                         "coll_group_start() first");
        return coll__log_done(COLL_ERR_INVALID);
    }
    if (--coll__group_depth)
        return COLL_OK;
    rc = group.status;
    if (rc)
        log_error("api", "%s", group.why);
    else
        rc = run_all();
    clear();
    return coll__log_done(rc);
}
