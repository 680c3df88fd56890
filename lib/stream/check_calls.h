/* SPDX-License-Identifier: BSD-3-Clause */
/* check_calls.h - checks of calls for a stream, for calls.c. */
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

/* Check call->args, with the stream's context current; `place` describes the stream.
 * If the result is COLL_OK the other members of *call are set, except call->cut.  Else
 * a status, logged. */
int coll__stream_judge(struct coll_comm *comm, struct coll__stream_call *call,
                       const struct coll__cuda_place *place);

/* Compare a call outside groups with the other ranks' calls, if COLL_CHECK asks for it,
 * and wait for the result.  A status, logged. */
int coll__stream_compare_call(struct coll_comm *comm,
                              const struct coll_args *args);

#endif
