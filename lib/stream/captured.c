/* SPDX-License-Identifier: BSD-3-Clause */
/* captured.c - staged batches in a captured graph; captured.h describes the protocol. */
#include "lib/comm/comm.h"
#include "lib/comm/fail.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_stream.h"
#include "lib/run/owner.h"
#include "lib/stream/calls.h"
#include "lib/stream/staged.h"
#include "lib/trace/log.h"

#include <stdlib.h>

/* The values that the words take in each launch.  One value lets every wait pass; the
 * driver compares modulo 2^32. */
enum { ENDED, ASKS, GOES = ASKS, FIRST, PASSES = 1 << 30 };

/* A stage that several have. */
struct coll__lent {
    struct coll__stage *stage;
    atomic_int n_users;
};

struct coll__captured {
    struct coll__captured *next;
    struct coll__job *job; /* the communicator's */
    struct coll__stage *words;
    struct coll__lent *slots;
    atomic_int n_users; /* the communicator and the graph */
};

static void store(const struct coll__captured *c, enum coll__stage_word word,
                  uint32_t value)
{
    atomic_store_explicit(coll__stage_word(c->words, word), value,
                          memory_order_release);
}

static uint32_t ready(const struct coll__captured *c)
{
    return atomic_load_explicit(coll__stage_word(c->words, STAGE_READY),
                                memory_order_acquire);
}

/* ---- made and freed ------------------------------------------------------------ */

static void drop_slots(struct coll__lent *slots)
{
    if (atomic_fetch_sub(&slots->n_users, 1) != 1)
        return;
    coll__stage_put(slots->stage);
    free(slots);
}

/* Put the words back zeroed, as their next user expects. */
static void put_words(struct coll__stage *words)
{
    for (int w = 0; w < N_STAGE_WORDS; w++)
        atomic_store(coll__stage_word(words, (enum coll__stage_word)w), 0);
    coll__stage_put(words);
}

/* A thread of the driver may call this when a graph is destroyed, so it makes no CUDA
 * call. */
static void drop(void *arg)
{
    struct coll__captured *c = arg;

    if (atomic_fetch_sub(&c->n_users, 1) != 1)
        return;
    put_words(c->words);
    drop_slots(c->slots);
    free(c);
}

static int have_slots(struct coll__streams *s)
{
    struct coll__lent *slots = s->captures.slots;
    int rc;

    if (slots)
        return COLL_OK;
    slots = malloc(sizeof(*slots));
    if (!slots) {
        log_error("api", "no memory for an operation of a graph");
        return COLL_ERR_NOMEM;
    }
    rc = coll__stage_take(s->ctx, 2 * s->slot_len, &slots->stage);
    if (rc) {
        free(slots);
        return rc;
    }
    atomic_init(&slots->n_users, 1);
    s->captures.slots = slots;
    return COLL_OK;
}

/* The job is its own. */
static int captured_new(struct coll__streams *s, struct coll__job *job,
                        struct coll__captured **out)
{
    struct coll__captured *c = calloc(1, sizeof(*c));
    int rc = have_slots(s);

    if (rc == COLL_OK && !c) {
        log_error("api", "no memory for an operation of a graph");
        rc = COLL_ERR_NOMEM;
    }
    if (rc == COLL_OK)
        rc = coll__stage_take(s->ctx, 0, &c->words);
    if (rc) {
        free(c);
        return rc;
    }
    c->slots = s->captures.slots;
    atomic_fetch_add(&c->slots->n_users, 1);
    atomic_init(&c->n_users, 2);
    store(c, STAGE_IDLE, 1);
    job->captured = c;
    job->slots = c->slots->stage;
    job->words = c->words;
    job->first = FIRST;
    c->job = job;
    *out = c;
    return COLL_OK;
}

/* Drop the communicator's use of the batch. */
static void forget(struct coll__captured *c)
{
    coll__job_free(c->job);
    drop(c);
}

/* ---- captured -------------------------------------------------------------------- */

static int put_in_stream(const struct coll__streams *s,
                         struct coll__captured *c, void *stream)
{
    void *ready = coll__stage_flag(c->words, STAGE_READY);
    int rc =
        coll__cuda_wait_flag(stream, coll__stage_flag(c->words, STAGE_IDLE), 1);

    if (rc == COLL_OK)
        rc = coll__cuda_write_flag(stream, ready, ASKS);
    if (rc == COLL_OK)
        rc = coll__cuda_wait_flag(stream,
                                  coll__stage_flag(c->words, STAGE_DONE), GOES);
    if (rc == COLL_OK)
        rc = coll__job_put_first(s, c->job, stream);
    if (rc == COLL_OK)
        rc = coll__job_put_rest(s, c->job, stream);
    return rc ? rc : coll__cuda_write_flag(stream, ready, ENDED);
}

/* From here on the host looks for its launches, unless the communicator has failed. */
static int append(struct coll_comm *comm, struct coll__captured *c)
{
    struct coll__captures *all = &comm->stream->staged->captures;
    int rc;

    coll__owner_acquire(comm);
    rc = coll__comm_status(comm);
    if (rc == COLL_OK) {
        if (!all->first)
            all->last = &all->first;
        *all->last = c;
        all->last = &c->next;
        comm->run->n_captured++;
    }
    coll__owner_release(comm);
    coll__sleep_news();
    return rc;
}

int coll__captured_put(struct coll_comm *comm, struct coll__batch *batch)
{
    struct coll__streams *s = comm->stream->staged;
    struct coll__captured *c;
    struct coll__job *job;
    int rc = coll__job_new(comm, batch, &job);

    if (rc)
        return rc;
    rc = captured_new(s, job, &c);
    if (rc) {
        coll__job_free(job);
        return rc;
    }
    rc = coll__cuda_hold(batch->stream, drop, c);
    if (rc == COLL_OK)
        rc = append(comm, c);
    if (rc) {
        forget(c);
        return rc;
    }
    return put_in_stream(s, c, batch->stream);
}

/* ---- launched -------------------------------------------------------------------- */

static void take_out(struct coll_comm *comm, struct coll__captured **at)
{
    struct coll__captures *all = &comm->stream->staged->captures;
    struct coll__captured *c = *at;

    *at = c->next;
    if (all->last == &c->next)
        all->last = at;
    if (all->next == c)
        all->next = c->next;
    comm->run->n_captured--;
    forget(c);
}

/* Free batches whose graphs were destroyed, and find one whose stream asks. */
static struct coll__captured *look_at_all(struct coll_comm *comm)
{
    struct coll__captured **at = &comm->stream->staged->captures.first;

    while (*at) {
        if (atomic_load(&(*at)->n_users) == 1) {
            take_out(comm, at);
            continue;
        }
        if (ready(*at) == ASKS)
            return *at;
        at = &(*at)->next;
    }
    return NULL;
}

static void count_run(struct coll_comm *comm, int change)
{
    comm->run->n_running += change;
    comm->run->n_streaming += change;
}

struct coll__job *coll__captured_begin(struct coll_comm *comm)
{
    struct coll__captures *all = &comm->stream->staged->captures;
    struct coll__captured *c = all->next;

    if (!comm->run->n_captured)
        return NULL;
    if (!c || ready(c) != ASKS)
        c = look_at_all(comm);
    if (!c)
        return NULL;
    count_run(comm, 1);
    c->job->k = 0;
    store(c, STAGE_IDLE, 0);
    store(c, STAGE_DONE, GOES);
    return c->job;
}

int coll__captured_end(struct coll_comm *comm, struct coll__job *job)
{
    struct coll__captured *c = job->captured;

    if (ready(c) != ENDED)
        return 0;
    store(c, STAGE_DONE, 0);
    store(c, STAGE_IDLE, 1);
    count_run(comm, -1);
    comm->stream->staged->captures.next = c->next;
    return 1;
}

/* ---- the end --------------------------------------------------------------------- */

static void let_pass(const struct coll__captured *c)
{
    store(c, STAGE_DONE, PASSES);
    store(c, STAGE_IDLE, 1);
}

void coll__captured_release(struct coll_comm *comm)
{
    struct coll__streams *s = comm->stream->staged;

    for (struct coll__captured *c = s->captures.first; c; c = c->next)
        let_pass(c);
    if (s->at && s->at->captured) {
        count_run(comm, -1);
        s->at = NULL;
    }
    comm->run->n_captured = 0;
}

size_t coll__captured_bytes(const struct coll__streams *s)
{
    const struct coll__lent *slots = s->captures.slots;
    size_t len = slots ? slots->stage->len : 0;

    for (struct coll__captured *c = s->captures.first; c; c = c->next)
        len += COLL__STAGE_WORDS;
    return len;
}

void coll__captured_free(struct coll__streams *s)
{
    struct coll__captured *c, *next;

    for (c = s->captures.first; c; c = next) {
        next = c->next;
        let_pass(c);
        forget(c);
    }
    if (s->captures.slots)
        drop_slots(s->captures.slots);
}
