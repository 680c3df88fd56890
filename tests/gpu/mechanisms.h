/* SPDX-License-Identifier: BSD-3-Clause */
/* mechanisms.h - what a measurement of mechanisms.c is made of.
 *
 * A measurement is a function that each rank calls.  Ranks are processes, or threads
 * of one process; they share a segment that all have registered, and map each other's
 * device memory by IPC (threads take the pointer).  Figures are written into the
 * segment, from where the process that started the ranks takes them; that one never
 * calls the driver.
 */
#ifndef TESTS_GPU_MECHANISMS_H
#define TESTS_GPU_MECHANISMS_H

#include "tests/gpu/gpu.h"

#include <stdatomic.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_RANKS = 4, MAX_ROUNDS = 4, MAX_FIGURES = 160, AREA_LEN = 2 << 20 };

struct figure {
    char name[96], unit[12];
    double value;
};

/* A flag of its own cache line: written by one rank, waited for by another. */
struct line {
    _Alignas(128) volatile uint32_t word;
};

struct share {
    atomic_int arrived, has_failed, n_figures;
    char why[200];
    struct figure figures[MAX_FIGURES];
    CUipcMemHandle handles[MAX_RANKS];
    CUdeviceptr areas[MAX_RANKS];
    struct line flags[MAX_RANKS][MAX_RANKS][MAX_ROUNDS]; /* [to][from] */
    struct line words[MAX_RANKS][4]; /* a rank's own, for its measurements */
};

struct rank {
    int rank, n, is_thread;
    uint32_t k; /* the last value that flags were raised to */
    int barriers;
    struct share *share;
    CUdeviceptr share_dev;
    CUcontext ctx;
    CUstream s;
    CUdeviceptr area;             /* AREA_LEN bytes of device memory */
    CUdeviceptr areas[MAX_RANKS]; /* everybody's, as this rank sees them */
    CUfunction pass8, add_one, hold, pingpong, gaps, copy16;
};

struct measurement {
    const char *name;
    int ranks, is_threads;
    const char *predicts; /* written before the first run */
    void (*run)(struct rank *r);
};

struct measurement_list {
    const struct measurement *all;
    size_t n;
};
extern const struct measurement_list of_flags, of_kernels, of_copies, of_costs;

/* Take down why and end all ranks when a call fails. */
#define TRY(call) rank_try(r, #call, (call))
void rank_try(struct rank *r, const char *call, CUresult rc);
_Noreturn void rank_fail(struct rank *r, const char *why);

/* The context, a stream, the area with flags of zero, the shared segment registered,
 * everybody's area mapped. */
void rank_start(struct rank *r);

/* All ranks are here. */
void rank_barrier(struct rank *r);

/* A rank of a measurement; the share was mapped by the caller. */
void rank_run(const struct measurement *m, struct rank *r);

/* Device addresses: a flag in the segment or in `to`'s area, and a slot for data. */
CUdeviceptr host_flag(const struct rank *r, int to, int from, int round);
CUdeviceptr device_flag(const struct rank *r, int to, int from, int round);
CUdeviceptr slot_of(const struct rank *r, int to, int from);
CUdeviceptr word_dev(const struct rank *r, int i);

void figure_add(struct rank *r, const char *unit, double value,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Seconds, sorted in place. */
double median_of(double *times, int n);
double part_of(double *times, int n, double part);

#endif
