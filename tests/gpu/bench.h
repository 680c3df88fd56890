/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.h - libcoll's kernels on device 0: one at a time, and their speed. */
#ifndef TESTS_GPU_BENCH_H
#define TESTS_GPU_BENCH_H

#include "tests/gpu/gpu.h"

struct kernels {
    struct gpu_found found;
    CUmodule module;
    int processors;
    double load_ms; /* what it took to load the image */
};

/* A kernel by its name; one that is missing ends the process. */
CUfunction kernels_entry(const struct kernels *kernels, const char *name);

#define BENCH_LEAST ((size_t)4096) /* bytes */

/* Measure all of them, of `most` bytes or less, and write a report; 0 or the exit
 * status. */
int bench(const struct kernels *kernels, int is_quick, size_t most,
          const char *json);

#endif
