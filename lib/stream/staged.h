/* SPDX-License-Identifier: BSD-3-Clause */
/* staged.h - calls for streams, and a communicator's state for calls that pass through
 * the host; shared by staged.c, staged_enqueue.c and captured.c. */
#ifndef COLL_LIB_STREAM_STAGED_H
#define COLL_LIB_STREAM_STAGED_H

#include "lib/device/cuda_stage.h"
#include "lib/plan/plan.h"
#include "lib/stream/captured.h"
#include "lib/stream/cut.h"
#include "lib/type/op.h"

#include <stdatomic.h>

struct coll__batch;
struct coll_comm;
struct coll_request;

/* A checked call; the caller or the communicator owns its arrays. */
struct coll__stream_call {
    struct coll_args args;
    struct coll__problem pb;
    struct coll__op op;          /* of a reduction */
    int is_in_host, is_out_host; /* pinned, and no device's */
    struct coll__cut cut;        /* staged.c's */
};

/* A batch on the host. */
struct coll__job {
    struct coll__job *next;
    struct coll__captured *captured; /* the captured batch that owns it, or NULL */
    const struct coll__stage *slots; /* the stage whose slots it uses */
    const struct coll__stage *words; /* the words of it and its stream */
    struct coll__stream_call *calls; /* [n_calls], of a piece's buffers */
    int n_calls;
    uint32_t first, n; /* this rank's pieces: the first one's number, how many */
    uint32_t k, n_all; /* the next piece; the most pieces of any rank */
    int asks;          /* is n_all still unknown? */
    uint64_t most[2];  /* this rank's number of pieces; the largest */
    struct coll_request **running; /* [capacity] */
    int n_running, capacity;       /* requests under way */
    atomic_int n_users; /* the host, and the caller while it enqueues */
};

/* The staged calls of a communicator, from the first one on. */
struct coll__streams {
    void *ctx; /* of all its streams */
    int device;
    struct coll__stage *stage;
    size_t slot_len; /* the stage has two */
    /* As owner. */
    struct coll__job *first, **last; /* under way, in the order of the calls */
    struct coll__job *at;            /* the running job, or NULL */
    struct coll__job *ended;         /* with a failure; freed at the end */
    struct coll__captures captures;
    uint32_t published; /* the last number of a published job */
    double looked;
};

/* Where piece k of a job lies. */
static inline unsigned char *coll__slot_of(const struct coll__streams *s,
                                           const struct coll__job *job,
                                           uint32_t k)
{
    return job->slots->base + ((job->first + k) % 2) * s->slot_len;
}

/* Make a job of a batch, but neither queue it nor give it a stage.  A status,
 * logged. */
int coll__job_new(const struct coll_comm *comm, const struct coll__batch *batch,
                  struct coll__job **job);

/* put_first: enqueue the copy of the job's first piece.  put_rest: enqueue the rest of
 * the job. */
int coll__job_put_first(const struct coll__streams *s, struct coll__job *job,
                        void *stream);
int coll__job_put_rest(const struct coll__streams *s, struct coll__job *job,
                       void *stream);

/* Drop one user of the job; or free a job that has no other user. */
void coll__job_drop(struct coll__job *job);
void coll__job_free(struct coll__job *job);

/* Free the jobs and put the stage back. */
void coll__staged_free(struct coll__streams *streams);

#endif
