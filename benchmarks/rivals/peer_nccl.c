/* SPDX-License-Identifier: BSD-3-Clause */
/* peer_nccl.c - NCCL, each rank with a GPU of its own; loaded at run time.
 *
 * Rank 0's id is a file in the folder where the job's ranks meet.  An alltoall
 * is a group of sends and receives, as in NCCL's manual.  There is no barrier.
 */
#include "benchmarks/rivals/peer.h"

#include <nccl.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 60 /* s, for rank 0's id */

#define ENTRIES(X)                                                             \
    X(ncclGetVersion)                                                          \
    X(ncclGetUniqueId)                                                         \
    X(ncclGetErrorString)                                                      \
    X(ncclCommInitRank)                                                        \
    X(ncclCommDestroy)                                                         \
    X(ncclAllReduce)                                                           \
    X(ncclBroadcast)                                                           \
    X(ncclAllGather)                                                           \
    X(ncclReduceScatter)                                                       \
    X(ncclSend)                                                                \
    X(ncclRecv)                                                                \
    X(ncclGroupStart)                                                          \
    X(ncclGroupEnd)

static struct {
#define X(name) __typeof__(name) *name;
    ENTRIES(X)
#undef X
} nccl;

static ncclComm_t comm;
static int n_ranks;
static char why[256];

/* Entry points are functions, but are found as data. */
static int load(void)
{
    void *file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    void *found;

    if (!file) {
        snprintf(why, sizeof(why),
                 "%s; install NCCL, or set LD_LIBRARY_PATH to it", dlerror());
        return -1;
    }
#define X(name)                                                                \
    found = dlsym(file, #name);                                                \
    memcpy(&nccl.name, &found, sizeof(found));                                 \
    if (!found) {                                                              \
        snprintf(why, sizeof(why), "libnccl.so.2 has no %s; update it",        \
                 #name);                                                       \
        return -1;                                                             \
    }
    ENTRIES(X)
#undef X
    return 0;
}

/* Keep what went wrong, for error(). */
static int keep(ncclResult_t rc)
{
    if (rc)
        snprintf(why, sizeof(why), "%s", nccl.ncclGetErrorString(rc));
    return (int)rc;
}

static int from_environment(const char *name, int *value)
{
    const char *text = getenv(name);

    if (!text)
        snprintf(why, sizeof(why), "%s is not set", name);
    else
        *value = atoi(text);
    return text ? 0 : -1;
}

/* ---- the id ---------------------------------------------------------------- */

/* The file is complete once it has its name. */
static int write_id(const char *path, const ncclUniqueId *id)
{
    char other[600];
    FILE *file;
    size_t n;

    snprintf(other, sizeof(other), "%s.new", path);
    file = fopen(other, "we");
    n = file ? fwrite(id, sizeof(*id), 1, file) : 0;
    if (file && !fclose(file) && n && !rename(other, path))
        return 0;
    snprintf(why, sizeof(why), "cannot write NCCL's id: %s", strerror(errno));
    return -1;
}

static int read_id(const char *path, ncclUniqueId *id)
{
    for (int i = 0; i < PATIENCE * 100; i++) {
        FILE *file = fopen(path, "re");
        size_t n = file ? fread(id, sizeof(*id), 1, file) : 0;

        if (file)
            fclose(file);
        if (n)
            return 0;
        usleep(10000);
    }
    snprintf(why, sizeof(why), "rank 0 gave no id of NCCL");
    return -1;
}

static int share_id(int rank, ncclUniqueId *id)
{
    const char *folder = getenv(PEER_FOLDER);
    char path[512];
    int rc;

    snprintf(path, sizeof(path), "%s/nccl", folder ? folder : ".");
    if (rank)
        return read_id(path, id);
    rc = keep(nccl.ncclGetUniqueId(id));
    return rc ? rc : write_id(path, id);
}

/* ---- the library ------------------------------------------------------------ */

static int init(int *argc, char ***argv, int *rank, int *ranks)
{
    ncclUniqueId id;

    (void)argc;
    (void)argv;
    if (!peer_stream) {
        snprintf(why, sizeof(why), "NCCL takes no buffers on the host");
        return -1;
    }
    if (from_environment("COLL_RANK", rank) ||
        from_environment("COLL_SIZE", ranks) || load() || share_id(*rank, &id))
        return -1;
    n_ranks = *ranks;
    return keep(nccl.ncclCommInitRank(&comm, *ranks, id, *rank));
}

static void fini(void) { nccl.ncclCommDestroy(comm); }

static const char *version(void)
{
    static char text[64];
    int number = 0;

    nccl.ncclGetVersion(&number);
    snprintf(text, sizeof(text), "NCCL %d.%d.%d", number / 10000,
             number / 100 % 100, number % 100);
    return text;
}

static const char *error(void) { return why; }

static int allreduce(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(nccl.ncclAllReduce(in, out, count, ncclFloat32, ncclSum, comm,
                                   peer_stream));
}

static int broadcast(const float *in, float *out, size_t count, int root)
{
    (void)in;
    return keep(nccl.ncclBroadcast(out, out, count, ncclFloat32, root, comm,
                                   peer_stream));
}

static int allgather(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(
        nccl.ncclAllGather(in, out, count, ncclFloat32, comm, peer_stream));
}

static int reduce_scatter(const float *in, float *out, size_t count, int root)
{
    (void)root;
    return keep(nccl.ncclReduceScatter(in, out, count, ncclFloat32, ncclSum,
                                       comm, peer_stream));
}

static int alltoall(const float *in, float *out, size_t count, int root)
{
    int rc = keep(nccl.ncclGroupStart()), ended;

    (void)root;
    if (rc)
        return rc;
    for (int r = 0; r < n_ranks && !rc; r++) {
        rc = keep(nccl.ncclSend(in + count * (size_t)r, count, ncclFloat32, r,
                                comm, peer_stream));
        if (!rc)
            rc = keep(nccl.ncclRecv(out + count * (size_t)r, count, ncclFloat32,
                                    r, comm, peer_stream));
    }
    ended = keep(nccl.ncclGroupEnd());
    return rc ? rc : ended;
}

const struct peer_lib peer_lib = {
    .init = init,
    .fini = fini,
    .version = version,
    .error = error,
    .run = {allreduce, broadcast, allgather, reduce_scatter, alltoall, NULL},
    .takes_gpus = 1,
};
