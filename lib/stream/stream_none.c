/* SPDX-License-Identifier: BSD-3-Clause */
/* stream_none.c - in place of stream.c, where configure found no CUDA. */
#include "lib/comm/comm.h"
#include "lib/stream/gpu_view.h"
#include "lib/trace/log.h"

void coll__stream_look_for_devices(void) {}

int coll__stream_owns(const struct coll_args *args)
{
    (void)args;
    return 0;
}

int coll__stream_check(struct coll_comm *comm, const struct coll_args *args)
{
    (void)comm;
    log_error("api",
              "%s: stream must be NULL, this libcoll was built without "
              "CUDA; install its headers (nvidia-cuda-dev) and configure again",
              coll_collective_name(args->collective));
    return COLL_ERR_UNSUPPORTED;
}

int coll__stream_call(struct coll_comm *comm, const struct coll_args *args)
{
    return coll__stream_check(comm, args);
}

int coll__stream_compare(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request)
{
    *request = NULL;
    return coll__stream_check(comm, args);
}

int coll__stream_run(struct coll_comm *comm,
                     const struct coll_args *const calls[], int n)
{
    (void)n;
    return coll__stream_check(comm, calls[0]);
}

int coll__stream_request(struct coll_comm *comm, const struct coll_args *args,
                         struct coll_request **request)
{
    (void)request;
    return coll__stream_check(comm, args);
}

/* Nobody has made a request, nor anything else, that comes here. */
int coll__stream_start(struct coll_request *request)
{
    (void)request;
    return COLL_ERR_INTERNAL;
}

void coll__stream_look(struct coll_request *request) { (void)request; }

void coll__stream_wait(struct coll_request *request, double timeout)
{
    (void)request;
    (void)timeout;
}

enum coll__lack coll__stream_lacks(void) { return LACKS_BUILD; }

int coll__stream_join(struct coll_comm *comm)
{
    (void)comm;
    return COLL_OK;
}

int coll__stream_join_hosts(struct coll_comm *comm)
{
    (void)comm;
    return COLL_OK;
}

void coll__stream_reclaim(void) {}

void coll__stream_fail(struct coll_comm *comm, int status)
{
    (void)comm, (void)status;
}

int coll__stream_move(struct coll_comm *comm, int *moved)
{
    (void)comm;
    (void)moved;
    return COLL_OK;
}

void coll__stream_release(struct coll_comm *comm) { (void)comm; }

int coll__stream_drain(struct coll_comm *comm)
{
    (void)comm;
    return COLL_OK;
}

void coll__stream_leave(struct coll_comm *comm) { (void)comm; }

void coll__watch_look(void) {}

atomic_int coll__watch_n;

void coll__stream_bytes(const struct coll_comm *comm,
                        struct coll_mem_stats *stats)
{
    (void)comm;
    (void)stats;
}

void coll__stream_free(struct coll_comm *comm) { (void)comm; }

int coll__gpus_describe(struct coll__topo *topo)
{
    (void)topo;
    return COLL_OK;
}
