/* SPDX-License-Identifier: BSD-3-Clause */
/* staged.h - calls for streams, and what a communicator has for those that pass through
 * the host: shared by what carries them out. */
#ifndef COLL_LIB_STREAM_STAGED_H
#define COLL_LIB_STREAM_STAGED_H

#include "lib/stream/captured.h"
#include "lib/comm/comm.h"
#include "lib/stream/cut.h"
#include "lib/stream/calls.h"
#include "lib/device/cuda_stage.h"
#include "lib/device/cuda_stream.h"

/* A call that was judged; its arrays are the caller's, or the communicator's. */
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
    struct coll__captured *captured; /* whose it is, of a graph; or NULL */
    const struct coll__stage *slots; /* where its pieces go through */
    const struct coll__stage *words; /* by which it and its stream go on */
    struct coll__stream_call *calls; /* [n_calls], of a piece's buffers */
    int n_calls;
    uint32_t first, n; /* pieces of this rank, by their numbers in the words */
    uint32_t k, n_all; /* the piece that is next; of all ranks' the most */
    int asks;          /* whether n_all is still to be found out */
    uint64_t most[2];  /* what is said of it, and heard */
    struct coll_request **running; /* [room] */
    int n_running, room;           /* that many are under way */
    atomic_int n_users; /* the host, and the caller while it puts it in */
};

/* Of one communicator, from its first such call on. */
struct coll__streams {
    void *ctx; /* of all its streams */
    int device;
    struct coll__stage *stage;
    size_t slot_len; /* the stage has two */
    /* As owner. */
    struct coll__job *first, **last; /* under way, in the order of the calls */
    struct coll__job *at;            /* the one that is carried out, or NULL */
    struct coll__job *ended;         /* with a failure; freed at the end */
    struct coll__captures captures;
    uint32_t published; /* the last number of those */
    double looked;
};

/* Where piece k of a job lies. */
static inline unsigned char *coll__slot_of(const struct coll__streams *s,
                                           const struct coll__job *job,
                                           uint32_t k)
{
    return job->slots->base + ((job->first + k) % 2) * s->slot_len;
}

/* Make a job of a batch: all but its place in a queue, and on a stage.  A status,
 * logged. */
int coll__job_new(const struct coll_comm *comm, const struct coll__batch *batch,
                  struct coll__job **job);

/* Put its first piece into the stream; and all else that the stream does for it. */
int coll__job_put_first(const struct coll__streams *s, struct coll__job *job,
                        void *stream);
int coll__job_put_rest(const struct coll__streams *s, struct coll__job *job,
                       void *stream);

/* One user of the job less; or free it, of which nobody else knows. */
void coll__job_drop(struct coll__job *job);
void coll__job_free(struct coll__job *job);

/* Free the jobs, and put the stage back. */
void coll__staged_free(struct coll__streams *streams);

#endif
