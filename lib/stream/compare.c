/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.c - COLL_CHECK=1: calls for streams are compared before they are put there.
 *
 * A barrier of the host goes before each collective, and an empty message before each
 * message, from its sender to its receiver.  These are stamped as
 * the call's would be: sequence, collective, type, op, root, counts; with a digest of
 * where registered buffers lie.  So all that
 * notices, among operations on buffers of the host, that ranks disagree or that one
 * does not come, notices it here.  No byte of the call's own has moved until all ranks
 * have called the same, or of a message until its receiver knows that its sender has.
 * Nothing is put into a stream, so it may be done while one is being captured.
 *
 * The empty messages go by the channel of messages that pass through the host for
 * streams, of which there are none then: so they keep an order of their own, whatever
 * the caller sends between buffers of the host.
 */
#include "lib/comm/comm.h"
#include "lib/run/cache.h"
#include "lib/run/owner.h"
#include "lib/comm/algorithm_id.h"
#include "lib/device/cuda_stream.h"

/* A sender goes on without its receiver, as its stream may. */
static struct coll_args args_of(const struct coll__problem *pb)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};

    if (coll__is_p2p(pb->collective)) {
        args.collective = pb->collective;
        args.root = pb->root;
        args.stream = COLL__LEGACY_STREAM; /* whichever: it has that channel */
    }
    return args;
}

int coll__compare_take(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places,
                       struct coll_request **request)
{
    struct coll_args args = args_of(pb);
    int rc = coll__cache_take(comm, &args, request);

    if (rc == COLL_OK) {
        (*request)->call.head = coll__request_head(pb, op, SERIES_COMPARED);
        coll__head_lies(&(*request)->call.head, places);
    }
    return rc;
}

void coll__compare_put(struct coll_request *request)
{
    struct coll__op none = {.base = request->problem.op};

    coll__request_stamp(request, &none);
    coll__cache_put(request);
}

int coll__compare_call(struct coll_comm *comm, const struct coll__problem *pb,
                       const struct coll__op *op, uint32_t places)
{
    struct coll_request *request;
    int rc;

    coll__owner_acquire(comm);
    rc = coll__compare_take(comm, pb, op, places, &request);
    if (rc == COLL_OK) {
        rc = coll__request_start(request);
        if (rc == COLL_OK)
            rc = coll__request_wait(request, comm->timeout);
        coll__compare_put(request);
    }
    coll__owner_release(comm);
    return rc;
}
