/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_graph.c - keep an object alive as long as a graph can be launched: by a user
 * object, which is released with the last of the graph, its copies and its launches.
 *
 * Source: CUDA Driver API, cuUserObjectCreate, cuGraphRetainUserObject.
 */
#include "lib/device/cuda_driver.h"
#include "lib/device/cuda_stream.h"

int coll__cuda_hold(void *stream, void (*drop)(void *arg), void *arg)
{
    const struct coll__cuda *cuda = coll__cuda_needed();
    CUuserObject object;
    CUstreamCaptureStatus capture;
    CUgraph graph = NULL;
    CUresult rc;
    int status = COLL_ERR_UNSUPPORTED;

    if (cuda)
        status =
            coll__cuda_status(cuda->cuStreamGetCaptureInfo(
                                  stream, &capture, NULL, &graph, NULL, NULL),
                              "cuStreamGetCaptureInfo");
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
