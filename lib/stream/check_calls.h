/* SPDX-License-Identifier: BSD-3-Clause */
/* check_calls.h - whether a call for a stream is right: what stream.c asks
 * check_calls.c. */
#ifndef COLL_LIB_STREAM_CHECK_CALLS_H
#define COLL_LIB_STREAM_CHECK_CALLS_H

#include "include/coll/coll.h"
#include "lib/device/cuda_stream.h"

struct coll_comm;
struct coll__stream_call;

/* The stream that a call means. */
static inline void *coll__stream_of(const struct coll_args *args)
{
    return args->stream ? args->stream : COLL__LEGACY_STREAM;
}

/* Judge a call, of which call->args are known; the stream's context is current, of
 * which it is `place`.  COLL_OK and all else of *call but its cut; or a status,
 * logged. */
int coll__stream_judge(struct coll_comm *comm, struct coll__stream_call *call,
                       const struct coll__cuda_place *place);

/* Of a call that is in no group: compare it with the other ranks', where it is to be,
 * and wait for that.  A status, logged. */
int coll__stream_compare_call(struct coll_comm *comm,
                              const struct coll_args *args);

#endif
