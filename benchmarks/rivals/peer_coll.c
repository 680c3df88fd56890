/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_coll.c - libcoll, by its public interface alone. */
#include "benchmarks/rivals/peer.h"

#include <coll/coll.h>

static struct coll_comm *comm;

static int init(int *argc, char ***argv, int *rank, int *ranks)
{
    int rc = coll_comm_create_env(&comm, NULL);

    (void)argc;
    (void)argv;
    if (rc)
        return rc;
    *rank = coll_comm_rank(comm);
    *ranks = coll_comm_size(comm);
    return 0;
}

static void fini(void) { coll_comm_destroy(comm); }

static const char *version(void) { return coll_version(); }

static const char *error(void) { return coll_last_error(); }

static int allreduce(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return coll_allreduce(in, out, count, COLL_F32, COLL_SUM, comm,
                          peer_stream);
}

static int broadcast(const float *in, float *out, size_t count, int root)
{
    (void)in;
    return coll_broadcast(out, out, count, COLL_F32, root, comm, peer_stream);
}

static int allgather(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return coll_allgather(in, out, count, COLL_F32, comm, peer_stream);
}

static int reduce_scatter(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return coll_reduce_scatter(in, out, count, COLL_F32, COLL_SUM, comm,
                               peer_stream);
}

static int alltoall(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return coll_alltoall(in, out, count, COLL_F32, comm, peer_stream);
}

static int barrier(const float *in, float *out, size_t count, int root)
{
    (void)in;
    (void)out;
    (void)count;
    (void)root;
    return coll_barrier(comm, peer_stream);
}

static void *alloc(size_t len)
{
    void *memory;

    return coll_mem_alloc(&memory, len) ? NULL : memory;
}

static void free_memory(void *memory) { coll_mem_free(memory); }

const struct peer_lib peer_lib = {
    .init = init,
    .fini = fini,
    .version = version,
    .error = error,
    .run = {allreduce, broadcast, allgather, reduce_scatter, alltoall, barrier},
    .alloc = alloc,
    .free = free_memory,
    .takes_gpus = 1,
};
