/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.h - requests that a communicator keeps for the next call of the same shape. */
#ifndef COLL_LIB_RUN_CACHE_H
#define COLL_LIB_RUN_CACHE_H

#include "lib/run/scratch.h"

struct coll__problem;
struct coll__kept_request; /* cache.c */
struct coll_args;
struct coll_comm;
struct coll_request;

/* All 0 at first, but for `most`. */
struct coll__cache {
    size_t most;  /* bytes of requests to keep: COLL_CACHE */
    size_t bytes; /* of those that are kept, without their scratch */
    size_t n, capacity;
    struct coll__kept_request *
        *all; /* [n] of [capacity]: those that run, too */
    struct coll__kept_request *
        *idle; /* [capacity], a power of two: lists by shape */
    struct coll__kept_request *latest; /* of the idle ones, or NULL */
    uint64_t dice;
    uint64_t n_made;   /* requests */
    uint64_t n_judged; /* calls that were looked at in full */
    struct coll__pool pool;
};

/* Carry out a blocking call; within a group, note it for the end of the group. */
int coll__run_call(struct coll_comm *comm, const struct coll_args *args);

/* Check args, then take the kept request of their shape, or make one.  When the request
 * has ended, put() returns it to the cache. */
int coll__cache_take(struct coll_comm *comm, const struct coll_args *args,
                     struct coll_request **request);
void coll__cache_put(struct coll_request *request);

/* As coll__cache_take(), for a call that may be for a stream after all, since its shape is
 * new and a CUDA driver may have been loaded meanwhile: COLL_IN_PROGRESS then, and nothing
 * was taken. */
int coll__cache_take_call(struct coll_comm *comm, const struct coll_args *args,
                          struct coll_request **request);

/* Free all kept requests; also in a child of the process that made them. */
void coll__cache_forget(struct coll_comm *comm);

#endif
