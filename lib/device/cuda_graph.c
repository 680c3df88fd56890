/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_graph.c - what a graph holds for as long as it can be launched: a user object,
 * whose last reference goes with the last of the graph, its copies and its launches.
 *
 * Source: CUDA Driver API, cuUserObjectCreate, cuGraphRetainUserObject.
 */
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_stream.h"
#include "lib/trace/log.h"

static int find_graph(const struct coll__cuda *cuda, CUstream stream,
                      CUgraph *graph)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult rc =
        cuda->cuStreamGetCaptureInfo(stream, &capture, NULL, graph, NULL, NULL);

    if (rc && rc != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return coll__cuda_status(rc, "cuStreamGetCaptureInfo");
    if (!rc && capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return COLL_OK;
    log_error("cuda", "%s",
              rc ? "the legacy stream cannot be used while another stream that "
                   "it waits for is captured; pass that one"
                 : "the stream's capture was spoilt by a call that captures "
                   "forbid; end it and begin another");
    return COLL_ERR_INVALID;
}

int coll__cuda_hold(void *stream, void (*drop)(void *arg), void *arg)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUuserObject object;
    CUgraph graph = NULL;
    CUresult rc;
    int status = cuda ? find_graph(cuda, stream, &graph) : COLL_ERR_UNSUPPORTED;

    if (status == COLL_OK)
        status = coll__cuda_status(
            cuda->cuUserObjectCreate(&object, arg, drop, 1,
                                     CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
            "cuUserObjectCreate");
    if (status) {
        drop(arg);
        return status;
    }
    rc = cuda->cuGraphRetainUserObject(graph, object, 1,
                                       CU_GRAPH_USER_OBJECT_MOVE);
    if (rc)
        cuda->cuUserObjectRelease(object, 1);
    return coll__cuda_status(rc, "cuGraphRetainUserObject");
}
