/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - one driver for all benchmarks.
 *
 * A collective is a struct bench_op, one file each.  What is measured
 * (bandwidth or latency) is a struct bench_mode.  A program is one of each.
 * Only rank 0 writes to stdout.
 */
#ifndef COLL_BENCHMARKS_BENCH_H
#define COLL_BENCHMARKS_BENCH_H

#include "tools/common/table.h"
#include <coll/coll.h>

#include <time.h>

struct bench_args {
    size_t first, last; /* bytes that each rank contributes */
    double factor;      /* each size is so many times the size before */
    long iters;         /* measured iterations; 0: as many as fit the mode's
                         * time */
    long warmup;
    enum coll_type type;
    enum coll_op op;
    int root;
    const char *device, *algo; /* algo NULL: the library chooses */
    int by_host; /* --clock host: also times the operations of a device */
    int overlaps; /* --stream-overlap */
    int graph;   /* --graph: calls in a graph; 0: no graph */
    int varies, checks;        /* --vary-buffers, --check */
    int is_shared;             /* --mem alloc: buffers by coll_mem_alloc() */
    double idle;               /* --idle: seconds by which one rank is late */
    size_t beside; /* --beside: bytes of an allreduce that runs at the same
                    * time */
    enum table_form form;
};

/* One size of one collective, as this rank sees it. */
struct bench_case {
    enum coll_type type;
    enum coll_op op;
    int root, rank, ranks;
    size_t count;
    /* For a collective whose name ends in v: the elements that are sent to and received
     * from each rank.  Their mean is `count`. */
    const size_t *in_counts, *out_counts;
    unsigned salt; /* cases with different salts have different content */
    void *stream;  /* of a device's buffers; else NULL */
};

/* How many blocks of count elements a buffer holds. */
enum bench_blocks {
    BLOCKS_ONE,
    BLOCKS_EACH,  /* one for each rank */
    BLOCKS_ROOT,  /* one for each rank, on the root; other ranks do not use
                   * it */
    BLOCKS_WINDOW /* BENCH_WINDOW */
};
#define BENCH_WINDOW 16 /* messages between two ranks at the same time */

struct bench_op {
    const char *name;
    enum coll_collective collective;
    const char *note; /* a line about what is measured; or NULL */
    int has_data, has_op, has_root;
    int has_counts; /* its name ends in v */
    /* A rank may finish before the others begin, so that its own clock says
     * little.  A barrier ends each iteration, and its time is subtracted. */
    int runs_ahead;

    enum bench_blocks in, out;
    /* the number of messages that follow each other in an iteration; the time is
     * divided by it.  0 means 1 */
    int trips;

    /* Bytes moved, and bytes over the busiest link, each for one byte of a
     * rank's (or the root's) `in`.  algbw and busbw are computed from them. */
    double (*moved)(int ranks);
    double (*traffic)(int ranks);

    /* fill: write this rank's input.  verify: return the number of wrong elements in
     * out. */
    void (*fill)(const struct bench_case *c, void *in);
    size_t (*verify)(const struct bench_case *c, const void *out);

    int (*run)(const struct bench_case *c, const void *in, void *out,
               struct coll_comm *comm);
};

struct bench_mode {
    const char *name;
    size_t first, last;        /* the default sizes */
    long warmup;               /* the default */
    long min_iters, max_iters; /* without -n */
    double seconds;            /* that the measured part shall take, about */
    /* Of a program that measures in a way of its own; else NULL. */
    const char *program, *about; /* its name, the last words of its --help */
};

extern const struct bench_op bench_allreduce, bench_broadcast, bench_reduce,
    bench_allgather, bench_allgatherv, bench_reduce_scatter,
    bench_reduce_scatterv, bench_alltoall, bench_alltoallv, bench_gather,
    bench_gatherv, bench_scatter, bench_scatterv, bench_scan, bench_barrier;
extern const struct bench_op bench_p2p_ping, bench_p2p_one, bench_p2p_both;
extern const struct bench_mode bench_bw, bench_lat, bench_p2p_bw,
    bench_p2p_bibw;

/* Run the whole program.  Returns its exit status. */
int bench_main(int argc, char **argv, const struct bench_op *op,
               const struct bench_mode *mode);

/* ---- bench_args.c ------------------------------------------------------ */

#define BENCH_GOES_ON (-1)

/* Read the command line.  Result: BENCH_GOES_ON and *args; else the program ends, with
 * this status. */
int bench_args_read(int argc, char **argv, const struct bench_op *op,
                    const struct bench_mode *mode, struct bench_args *args);

/* ---- bench_data.c: whole numbers that every type holds exactly --------- */

/* Return the value of rank `rank` at element `index`; the reduction of all ranks' values
 * there; and that of the first n ranks' values, which is no average. */
long bench_value(const struct bench_case *c, int rank, size_t index);
long bench_reduced(const struct bench_case *c, size_t index);
long bench_reduced_first(const struct bench_case *c, int n, size_t index);

typedef long bench_value_fn(const struct bench_case *c, int rank, size_t index);

/* Write c->count values of rank `rank` to buf; or return how many elements of buf
 * differ from them.
 */
void bench_put(const struct bench_case *c, bench_value_fn *value, int rank,
               void *buf);
size_t bench_differing(const struct bench_case *c, bench_value_fn *value,
                       int rank, const void *buf);

/* Write this rank's own values: the input of most operations. */
void bench_put_own(const struct bench_case *c, void *in);

/* Return the case of block b alone, which has `count` elements and content of its
 * own. */
struct bench_case bench_block(const struct bench_case *c, int b, size_t count);

/* Return the number of elements of rank r's part: counts[r], or c->count if counts is
 * NULL. */
size_t bench_count(const struct bench_case *c, const size_t *counts, int r);

/* _put_: write to buf; _differing_: return how many elements of buf differ.  _part: the
 * part of rank c->rank, which it sends in a gather and receives in a scatter; _parts:
 * the parts of all ranks, one after the other. */
void bench_put_part(const struct bench_case *c, const size_t *counts,
                    void *buf);
void bench_put_parts(const struct bench_case *c, const size_t *counts,
                     void *buf);
size_t bench_differing_part(const struct bench_case *c, const size_t *counts,
                            const void *buf);
size_t bench_differing_parts(const struct bench_case *c, const size_t *counts,
                             const void *buf);

/* Return how many elements rank `from` sends to rank `to` in an uneven case: 1.5 count
 * and 0.5 count alternate. */
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

/* Prepare the large allreduce, on all ranks or on none.  Returns a status.  The caller
 * frees *beside in any case. */
int bench_beside_make(struct coll_comm *comm, size_t bytes,
                      struct bench_beside **beside);

/* With NULL these functions do nothing. */
int bench_beside_start(struct bench_beside *beside);
int bench_beside_end(struct bench_beside *beside);
void bench_beside_free(struct bench_beside *beside);

/* ---- bench_device.c: where buffers lie but on the host ------------------- */

/* A device of this process.  Functions return 0, or a COLL_ERR_* after they have
 * printed the reason. */
struct bench_device {
    const char *name;
    /* Choose a device for this thread by the rank's number on its host.
     * Returns its name, or NULL and why. */
    const char *(*open)(int local_rank, char *why, size_t len);
    void (*close)(void);
    int (*count)(void); /* number of devices that there are, after open() */

    int (*alloc)(void **at, size_t len); /* prints no reason */
    void (*free)(void *at);
    int (*put)(void *to, const void *from, size_t len); /* from the host */
    int (*get)(void *to, const void *from, size_t len); /* to the host */

    void *(*stream)(void); /* of all operations */
    int (*copy)(void *to, const void *from, size_t len); /* in it */
    int (*wait)(void);     /* for its end */
    /* mark: enqueue time mark i (0, 1, ...) in the stream.  between: return the seconds
     * from mark i to mark i + 1; call it after wait(). */
    int (*mark)(long i);
    double (*between)(long i);

    /* Work that is enqueued between capture() and capture_end() does not run: it
     * becomes a graph, which replaces the previous graph.  launch() runs the graph
     * once. */
    int (*capture)(void);
    int (*capture_end)(void);
    int (*launch)(void);

    /* fork: when the stream reaches this point, start a computation of `work` in
     * another stream.  join: let the stream wait for the computation's end. */
    int (*fork)(uint64_t work);
    int (*join)(void);
};

extern const struct bench_device bench_cuda;

/* bench_kernel.cu as the driver loads it; its first byte is 0 in a build
 * without nvcc. */
extern const unsigned char bench_kernel_image[];

/* Return NULL if there is none of that name. */
const struct bench_device *bench_device_find(const char *name);

/* ---- bench_buffers.c ------------------------------------------------------ */

#define BENCH_VARIED 4 /* pairs of buffers that --vary-buffers uses in turn */

struct bench_buffers {
    const struct bench_op *op;
    const struct bench_device *device; /* NULL: the host */
    int is_shared, n_local;            /* ranks of this host */
    int n;
    void *in[BENCH_VARIED], *out[BENCH_VARIED];
    size_t in_blocks, out_blocks, in_len, out_len;
    void *image; /* on the host: the content of a device's buffer */
};

/* bench_blocks_given: return the number of blocks in a rank's input.  bench_elements:
 * return the number of elements in a block if the vector has `bytes`. */
size_t bench_blocks_given(const struct bench_op *op,
                          const struct coll_comm *comm);
size_t bench_elements(const struct bench_op *op, const struct bench_args *args,
                      const struct coll_comm *comm, size_t bytes);

/* Allocate the buffers for the largest size.  Returns 0, or -1 if memory is short.  The
 * caller calls bench_buffers_put() in either case. */
int bench_buffers_get(const struct bench_op *op, const struct bench_args *args,
                      const struct bench_device *device, struct coll_comm *comm,
                      struct bench_buffers *buffers);
void bench_buffers_put(struct bench_buffers *buffers);

/* fill: write the input of buffer pair i.  verify: add the number of wrong elements in
 * the result of pair i to *errors. */
int bench_buffers_fill(const struct bench_buffers *buffers,
                       const struct bench_case *c, int i);
int bench_buffers_verify(const struct bench_buffers *buffers,
                         const struct bench_case *c, int i, uint64_t *errors);

/* ---- bench_memory.c ------------------------------------------------------ */

/* Return the bytes of memory that are available on this machine, as far as the kernel
 * tells. */
double bench_available_memory(void);

/* ---- bench_turns.c: for programs that compare ways --------------------- */

/* Replace each time by the slowest rank's.  Collective. */
int bench_slowest(struct coll_comm *comm, double *times, size_t n);

/* The median; sorts the values. */
double bench_median(double *values, size_t n);

/* Allocate buffers for the largest size, on all ranks or on none.  Collective.
 */
int bench_get_buffers(struct coll_comm *comm, const struct bench_args *args,
                      void **in, void **out);

/* Flush stdout, since a full disk may only be noticed now.  Returns the exit status. */
int bench_finish(const char *program, int status);

/* ---- bench_report.c ---------------------------------------------------- */

/* The results of one size; times in seconds. */
struct bench_result {
    size_t bytes, count;
    long iters;
    double min, p50, p99;
    double idle_cpu; /* share of a core that a rank used while it waited */
    double alone, kernel, both, hidden; /* --stream-overlap: seconds; a share
                                         * of 1 */
    const char *algorithm;
    uint64_t errors;
};

/* barrier: the seconds that were subtracted from each time, or 0. */
void bench_report_start(const struct bench_op *op,
                        const struct bench_mode *mode,
                        const struct bench_args *args,
                        const struct coll_comm *comm, double barrier);
void bench_report_line(const struct bench_op *op, const struct bench_args *args,
                       const struct coll_comm *comm,
                       const struct bench_result *result);

#endif
