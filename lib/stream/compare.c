/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.c - COLL_CHECK=1: the ranks compare calls for streams before they enqueue them.
 *
 * A host barrier goes before each collective.  Before each message, an empty message
 * goes from its sender to its receiver.  Both carry the call's signature (sequence,
 * collective, type, op, root, counts) and a digest of the places of registered buffers.
 * So the checks of host operations notice ranks that disagree or do not come.  No
 * byte of a collective moves until all ranks have made the same call; no byte of
 * a message moves into its receiver until the receiver knows that the sender has called.
 * Nothing is enqueued, so this works while a stream is being captured.
 *
 * The empty messages use the channel of messages that are carried, which has no others
 * between these ranks.  So their order does not depend on the caller's messages
 * between host buffers.
 */
#include "lib/comm/comm.h"
#include "lib/plan/plan.h"
#include "lib/run/cache.h"
#include "lib/run/owner.h"
#include "lib/comm/algorithm_id.h"
#include "lib/device/cuda_stream.h"
#include "lib/run/request.h"
#include "lib/type/op.h"

/* A sender does not wait for its receiver: its stream need not either. */
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
        (*request)->call.sig = coll__request_signature(pb, op, SERIES_COMPARED);
        coll__signature_set_places(&(*request)->call.sig, places);
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
