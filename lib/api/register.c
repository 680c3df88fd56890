/* SPDX-License-Identifier: BSD-3-Clause */
/* register.c - GPU memory that a communicator's ranks read from each other in place. */
#include "lib/comm/comm.h"
#include "lib/comm/create.h"
#include "lib/comm/fail.h"
#include "lib/run/stream_calls.h"
#include "lib/trace/log.h"

static int enroll(struct coll_comm *comm, const char *who, void *ptr,
                  size_t bytes, int is_new)
{
    int rc = coll__comm_check(comm, who);

    if (rc)
        return rc;
    if (coll__stream_calls)
        return coll__stream_calls->enroll(comm, who, ptr, bytes, is_new);
    log_info("api", "%s: nothing to do, this libcoll was built without CUDA",
             who);
    return coll__comm_status(comm);
}

int coll_mem_register(struct coll_comm *comm, void *ptr, size_t bytes)
{
    return coll__log_done(enroll(comm, "coll_mem_register", ptr, bytes, 1));
}

int coll_mem_deregister(struct coll_comm *comm, void *ptr)
{
    return coll__log_done(enroll(comm, "coll_mem_deregister", ptr, 0, 0));
}
