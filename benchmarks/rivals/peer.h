/* SPDX-License-Identifier: BSD-3-Clause */
/* peer.h - one rank of one library that benchmarks/compare measures.
 *
 * A peer is the same loop (peer_loop.c: buffers, content, harness barrier,
 * clock, verification) over one backend (peer_coll.c, peer_mpi.c,
 * peer_gloo.cc, peer_sockets.c).  The driver starts the ranks of a job by the library's own
 * launcher; each connects to the driver's unix socket, says hello, gets the
 * mapping of the job's harness barrier, and then sleeps in read() until it is
 * told to measure.  A peer ends when the socket does.
 *
 * Both ends are built together and run on one machine, so that messages are
 * these structs as they lie in memory.
 */
#ifndef COLL_RIVALS_PEER_H
#define COLL_RIVALS_PEER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEER_SOCKET "COLL_COMPARE_SOCKET" /* variable: path of the socket */
#define PEER_FOLDER "COLL_COMPARE_FOLDER" /* variable: where to meet */
#define PEER_INTERFACE                                                         \
    "COLL_COMPARE_INTERFACE"              /* variable: of the hosts, or none */
#define PEER_OWN_MEMORY "--own-memory"    /* argument: buffers by alloc() */
#define PEER_ON_GPU "--on-gpu"            /* argument: buffers on a GPU */
#define PEER_MAGIC 0x70656572u

enum { PEER_MAX_RANKS = 64, PEER_MAX_SAMPLES = 2000, PEER_MAX_BATCH = 256 };

enum peer_op {
    PEER_ALLREDUCE,
    PEER_BROADCAST,
    PEER_ALLGATHER,
    PEER_REDUCE_SCATTER,
    PEER_ALLTOALL,
    PEER_BARRIER,
    PEER_N_OPS
};

/* ---- backends ----------------------------------------------------------- */

/* One operation on f32 vectors, complete on return.  `count` is the elements
 * that one rank gives (allreduce, broadcast: the vector; allgather,
 * reduce_scatter, alltoall: the block of one rank).  Broadcast works in place
 * on out.  Reductions are sums.
 *
 * Result:    0; or not 0, and error() returns the reason.
 */
typedef int peer_run(const float *in, float *out, size_t count, int root);

/* A library; every process has one, peer_lib. */
struct peer_lib {
    /* Join the job.  Result: 0 and this rank's number. */
    int (*init)(int *argc, char ***argv, int *rank, int *ranks);
    void (*fini)(void);
    const char *(*version)(void); /* after init */
    const char *(*error)(void);   /* of the last call that failed */
    peer_run *run[PEER_N_OPS];    /* NULL: it has no such operation */
    /* Memory that the library prefers for buffers, aligned to a page; NULL: no
     * preference. */
    void *(*alloc)(size_t len); /* NULL: error() has the reason */
    void (*free)(void *memory);
    int takes_gpus; /* run takes buffers on a GPU, and works in peer_stream */
};
extern const struct peer_lib peer_lib;

/* For buffers on a GPU: a CUstream, which exists before init().  NULL for buffers on
 * the host. */
extern void *peer_stream;

/* ---- messages ----------------------------------------------------------- */

/* A rank's first message. */
struct peer_hello {
    uint32_t magic;
    int32_t rank, ranks;
    char version[96];
};

enum peer_verb { PEER_QUIT, PEER_MEASURE };

/* What to measure: samples of `batch` operations back to back. */
struct peer_command {
    int32_t verb; /* enum peer_verb */
    int32_t op;   /* enum peer_op */
    uint64_t bytes;
    int32_t is_crowded;               /* more ranks than cores */
    int32_t is_bound;                 /* rank r stays on a core of its number */
    int32_t batch;                    /* <= PEER_MAX_BATCH */
    int32_t warm_up;                  /* first samples that are not reported */
    int32_t min_samples, max_samples; /* <= PEER_MAX_SAMPLES */
    double seconds;                   /* stop after so many seconds */
    uint32_t salt;                    /* content begins here */
};

enum peer_status { PEER_OK, PEER_UNSUPPORTED, PEER_FAILED };

/* A rank's answer; n_samples of struct peer_sample follow. */
struct peer_reply {
    int32_t status; /* enum peer_status */
    int32_t n_samples;
    uint64_t wrong; /* wrong elements of the last batch */
    char error[160];
};

/* When a rank began and ended a batch, ns of CLOCK_MONOTONIC, which all
 * processes of a machine share. */
struct peer_sample {
    int64_t begin, end;
};

/* ---- the harness barrier (peer_barrier.c) ------------------------------- */

/* A cache line that one rank writes. */
struct peer_line {
    uint32_t value, unused[15];
};

/* In memory that the ranks of a job share; zero at first. */
struct peer_shared {
    struct peer_line is_over;                 /* written by rank 0 before it
                                               * arrives */
    struct peer_line arrived[PEER_MAX_RANKS]; /* how often */
};

/* Return when every rank has called it.  All ranks see after the call what any rank
 * wrote to shared memory before it.  Yields early if `is_crowded`: there are more ranks
 * than cores. */
void peer_barrier(struct peer_shared *shared, int rank, int ranks,
                  int is_crowded);

/* ---- content (peer_data.c) ---------------------------------------------- */

/* The arguments of an operation. */
struct peer_case {
    enum peer_op op;
    int rank, ranks, root;
    size_t count;  /* as peer_run's */
    uint32_t salt; /* content differs where this does; equal on all ranks */
};

/* Return the elements that one rank gives when `bytes` is the cell's size: the
 * vector of allreduce and broadcast, the whole output of allgather, the whole
 * input of reduce_scatter and alltoall.  A block has one element at least. */
size_t peer_count(enum peer_op op, size_t bytes, int ranks);

/* Elements of `in` and of `out`. */
size_t peer_in_len(const struct peer_case *c);
size_t peer_out_len(const struct peer_case *c);

/* Write what this rank gives: to `in`; for broadcast only the root writes, to
 * `out`. */
void peer_fill(const struct peer_case *c, float *in, float *out);

/* Count the wrong elements of `out`.  The comparison is exact: all values are
 * integers whose sums are not rounded. */
size_t peer_verify(const struct peer_case *c, const float *out);

#ifdef __cplusplus
}
#endif
#endif
