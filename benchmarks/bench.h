/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - one driver for all benchmarks.
 *
 * A collective is a struct bench_op, one file each; what is measured (bandwidth
 * or latency) is a struct bench_mode; a program is one of each.  Rank 0 alone
 * writes to stdout.
 */
#ifndef COLL_BENCHMARKS_BENCH_H
#define COLL_BENCHMARKS_BENCH_H

#include "tools/common/table.h"
#include <coll/coll.h>

#include <time.h>

struct bench_args {
    size_t first, last; /* bytes that each rank contributes */
    double factor;      /* from one size to the next */
    long iters;         /* timed, 0: as many as fit the mode's time */
    long warmup;
    enum coll_type type;
    enum coll_op op;
    int root;
    const char *device, *algo; /* algo NULL: the library chooses */
    int by_host; /* --clock host: times of a device's operations, too */
    int overlaps; /* --stream-overlap */
    int graph;   /* --graph: calls of one, which is launched; 0: calls */
    int varies, checks;        /* --vary-buffers, --check */
    int is_shared;             /* --mem alloc: buffers by coll_mem_alloc() */
    double idle;               /* s, --idle: one rank comes so much later */
    size_t beside; /* bytes, --beside: of an allreduce that is under way */
    enum table_form form;
};

/* One size of one collective, as this rank sees it. */
struct bench_case {
    enum coll_type type;
    enum coll_op op;
    int root, rank, ranks;
    size_t count;
    /* Of an operation whose name ends in v: what goes to and comes from each
     * rank; `count` on the average. */
    const size_t *in_counts, *out_counts;
    unsigned salt; /* another one, other content */
    void *stream;  /* of a device's buffers; else NULL */
};

/* How many blocks of count elements a buffer holds. */
enum bench_blocks {
    BLOCKS_ONE,
    BLOCKS_EACH,  /* one for each rank */
    BLOCKS_ROOT,  /* one for each rank, on the root; others have no use for it */
    BLOCKS_WINDOW /* BENCH_WINDOW */
};
#define BENCH_WINDOW 16 /* messages on their way between two ranks */

struct bench_op {
    const char *name;
    enum coll_collective collective;
    const char *note; /* a line about what is measured; or NULL */
    int has_data, has_op, has_root;
    int has_counts; /* its name ends in v */
    /* A rank may be done before the others begin.  Its own clock then says
     * little: a barrier ends each iteration, and its time is subtracted. */
    int runs_ahead;

    enum bench_blocks in, out;
    int trips; /* messages one after the other in an iteration, 0 as 1: its
                * time is divided by them */

    /* Bytes moved and bytes on the busiest link, each per byte of a rank's (or
     * the root's) `in`; algbw and busbw are made from them. */
    double (*moved)(int ranks);
    double (*traffic)(int ranks);

    /* Write this rank's input; count the elements of out that are wrong. */
    void (*fill)(const struct bench_case *c, void *in);
    size_t (*verify)(const struct bench_case *c, const void *out);

    int (*run)(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm);
};

struct bench_mode {
    const char *name;
    size_t first, last;        /* the default sizes */
    long warmup;               /* the default */
    long min_iters, max_iters; /* when -n does not fix them */
    double seconds;            /* that the timed part shall last, about */
    /* Of a program with a way of its own; else NULL. */
    const char *program, *about; /* its name, the last words of its --help */
};

extern const struct bench_op bench_allreduce, bench_broadcast, bench_reduce,
    bench_allgather, bench_allgatherv, bench_reduce_scatter,
    bench_reduce_scatterv, bench_alltoall, bench_alltoallv, bench_gather,
    bench_gatherv, bench_scatter, bench_scatterv, bench_barrier;
extern const struct bench_op bench_p2p_ping, bench_p2p_one, bench_p2p_both;
extern const struct bench_mode bench_bw, bench_lat, bench_p2p_bw,
    bench_p2p_bibw;

/* The whole program; returns its exit status. */
int bench_main(int argc, char **argv, const struct bench_op *op,
               const struct bench_mode *mode);

/* ---- bench_args.c ------------------------------------------------------ */

/* Read the command line; 0 and *args, or 1 when the program has said all there
 * is to say and ends with *status. */
int bench_args_read(int argc, char **argv, const struct bench_op *op,
                    const struct bench_mode *mode, struct bench_args *args,
                    int *status);

/* ---- bench_data.c: whole numbers that every type holds exactly --------- */

/* The value of that rank at that index, and its reduction over all ranks. */
long bench_value(const struct bench_case *c, int rank, size_t index);
long bench_reduced(const struct bench_case *c, size_t index);

typedef long bench_value_fn(const struct bench_case *c, int rank, size_t index);

/* Write count values of that rank into buf, or count those that differ from
 * what buf holds. */
void bench_put(const struct bench_case *c, bench_value_fn *value, int rank,
               void *buf);
size_t bench_differing(const struct bench_case *c, bench_value_fn *value,
                       int rank, const void *buf);

/* The case of block b alone, of so many elements: its own content. */
struct bench_case bench_block(const struct bench_case *c, int b, size_t count);

/* How many elements rank r's part has: c's, or its own among counts. */
size_t bench_count(const struct bench_case *c, const size_t *counts, int r);

/* Of c's own rank's part (a gather gives it, a scatter gets it), or of those of
 * all ranks one after the other: write it, or count what differs. */
void bench_put_part(const struct bench_case *c, const size_t *counts,
                    void *buf);
void bench_put_parts(const struct bench_case *c, const size_t *counts,
                     void *buf);
size_t bench_differing_part(const struct bench_case *c, const size_t *counts,
                            const void *buf);
size_t bench_differing_parts(const struct bench_case *c, const size_t *counts,
                             const void *buf);

/* What rank `from` gives to rank `to`, when ranks give different amounts:
 * half as much again as count, and half as much, in turn. */
size_t bench_uneven(const struct bench_case *c, int from, int to);

/* ---- bench_factor.c: for moved and traffic, of p ranks ------------------ */

double bench_zero(int ranks);
double bench_one(int ranks);
double bench_ranks(int ranks);  /* p */
double bench_others(int ranks); /* p - 1 */
double bench_share(int ranks);  /* (p - 1) / p */
double bench_window(int ranks); /* BENCH_WINDOW */
double bench_windows(int ranks); /* of both directions */

/* ---- bench_time.c: in seconds ------------------------------------------- */

double bench_clock(clockid_t clock);
void bench_pause(double seconds);

/* ---- bench_beside.c: a large allreduce beside what is measured ----------- */

struct bench_beside;

/* A status; *beside is to be freed in any case, on all ranks or on none. */
int bench_beside_make(struct coll_comm *comm, size_t bytes,
                      struct bench_beside **beside);

/* NULL: nothing. */
int bench_beside_start(struct bench_beside *beside);
int bench_beside_end(struct bench_beside *beside);
void bench_beside_free(struct bench_beside *beside);

/* ---- bench_device.c: where buffers lie but on the host ------------------- */

/* One of this process.  Statuses are 0 or a COLL_ERR_*, which is said. */
struct bench_device {
    const char *name;
    /* Have this thread use one, of several that which the rank's number on its
     * host falls to; its name, or NULL and why. */
    const char *(*open)(int local_rank, char *why, size_t len);
    void (*close)(void);
    int (*count)(void); /* of those that there are, after open() */

    int (*alloc)(void **at, size_t len); /* is not said */
    void (*free)(void *at);
    int (*put)(void *to, const void *from, size_t len); /* from the host */
    int (*get)(void *to, const void *from, size_t len); /* to the host */

    void *(*stream)(void); /* of all operations */
    int (*copy)(void *to, const void *from, size_t len); /* in it */
    int (*wait)(void);     /* for its end */
    /* Note the time at which the stream comes there, i counting from 0; and the
     * seconds from mark i to the next, after wait(). */
    int (*mark)(long i);
    double (*between)(long i);

    /* What is put into the stream between the two does not run, but becomes a
     * graph, in the place of the one before; and run it once. */
    int (*capture)(void);
    int (*capture_end)(void);
    int (*launch)(void);

    /* Begin a computation of so much work in a stream of its own, when `stream` comes
     * here; and have `stream` wait for its end. */
    int (*fork)(uint64_t work);
    int (*join)(void);
};

extern const struct bench_device bench_cuda;

/* bench_kernel.cu for the driver; its first byte is 0 in a build without nvcc. */
extern const unsigned char bench_kernel_image[];

/* NULL: there is none of that name. */
const struct bench_device *bench_device_find(const char *name);

/* ---- bench_buffers.c ------------------------------------------------------ */

#define BENCH_VARIED 4 /* buffer pairs to go round with --vary-buffers */

struct bench_buffers {
    const struct bench_op *op;
    const struct bench_device *device; /* NULL: the host */
    int is_shared, n_local;            /* ranks of this host */
    int n;
    void *in[BENCH_VARIED], *out[BENCH_VARIED];
    size_t in_blocks, out_blocks, in_len, out_len;
    void *image; /* on the host, of one of a device's */
};

/* Blocks that make up a size: of what a rank gives; elements of a block. */
size_t bench_blocks_given(const struct bench_op *op,
                          const struct coll_comm *comm);
size_t bench_elements(const struct bench_op *op, const struct bench_args *args,
                      const struct coll_comm *comm, size_t bytes);

/* Get them for the largest size: 0, or -1 without memory; to be put back in either
 * case. */
int bench_buffers_get(const struct bench_op *op, const struct bench_args *args,
                      const struct bench_device *device, struct coll_comm *comm,
                      struct bench_buffers *buffers);
void bench_buffers_put(struct bench_buffers *buffers);

/* Write the content of pair i; and add up the wrong elements of its result. */
int bench_buffers_fill(const struct bench_buffers *buffers,
                       const struct bench_case *c, int i);
int bench_buffers_verify(const struct bench_buffers *buffers,
                         const struct bench_case *c, int i, uint64_t *errors);

/* ---- bench_memory.c ------------------------------------------------------ */

/* Bytes that this machine can still give, as far as it tells. */
double bench_available_memory(void);

/* ---- bench_turns.c: for programs that compare ways --------------------- */

/* Give each time that of the slowest rank; collective. */
int bench_slowest(struct coll_comm *comm, double *times, size_t n);

/* The median; sorts the values. */
double bench_median(double *values, size_t n);

/* Allocate for the largest size, on all ranks or on none; collective. */
int bench_get_buffers(struct coll_comm *comm, const struct bench_args *args,
                      void **in, void **out);

/* The last step: lines may be lost only now, on a full disk.  The exit status. */
int bench_finish(const char *program, int status);

/* ---- bench_report.c ---------------------------------------------------- */

/* What one size gave; times in seconds. */
struct bench_result {
    size_t bytes, count;
    long iters;
    double min, p50, p99;
    double idle_cpu; /* of a core, that a rank used while it waited */
    double alone, kernel, both, hidden; /* --stream-overlap: s; of 1 */
    const char *algorithm;
    uint64_t errors;
};

/* barrier: the seconds that are subtracted from each time, if any. */
void bench_report_start(const struct bench_op *op,
                        const struct bench_mode *mode,
                        const struct bench_args *args,
                        const struct coll_comm *comm, double barrier);
void bench_report_line(const struct bench_op *op, const struct bench_args *args,
                       const struct coll_comm *comm,
                       const struct bench_result *result);

#endif
