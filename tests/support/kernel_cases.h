/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_cases.h - the kernels for device memory against the host's, wherever
 * they run: on a GPU (tests/gpu/kernels.c) or on the host (test_cuda_kernels.c);
 * and the lengths that those of the host are tried with, too (test_reduce.c).
 */
#ifndef COLL_TESTS_KERNEL_CASES_H
#define COLL_TESTS_KERNEL_CASES_H

#include "include/coll/coll.h"
#include "lib/device/cuda_plan.h"

/* Numbers of elements around vectors of 16 to 64 bytes, several of them, and
 * rounds of 3 x 32 threads. */
enum { KERNEL_N_COUNTS = 15 };
extern const size_t kernel_counts[KERNEL_N_COUNTS];

/* Where the kernels run.  Calls end the process when they fail. */
struct machine {
    char *(*alloc)(
        size_t len); /* device memory, aligned to 16 bytes at least */
    void (*release)(char *ptr);
    void (*put)(char *device, const void *host, size_t len);
    void (*get)(void *host, const char *device, size_t len);
    /* returns when it is done */
    void (*launch)(const char *entry, unsigned blocks, unsigned threads,
                   void **params);
    size_t large;  /* bytes of the largest buffers */
    long n_checks; /* of the caller's reading: kernels started */
};

enum kernel_kind { KERNEL_COPY, KERNEL_REDUCE, KERNEL_SCALE, KERNEL_MULTIPLY };

/* dst is a buffer of its own, the left operand, or the right one. */
enum kernel_target { ELSEWHERE, LEFT, RIGHT, N_TARGETS };

struct kernel_case {
    enum kernel_kind kind;
    enum coll_type type;
    enum coll_op op; /* of KERNEL_REDUCE */
    enum kernel_target target;
    size_t count;
    size_t at[4];           /* dst, next, a, b: elements past 16 bytes */
    int has_next, is_tight; /* tight: nothing is allocated behind */
    int n_ranks;            /* of KERNEL_SCALE */
    unsigned blocks, threads;
};

/* Run one case: all that it wrote, and what it must not touch, byte for byte.
 *
 * Result:    0; -1, and why in words.
 */
int kernel_check(struct machine *m, const struct kernel_case *c, char *why,
                 size_t len);

/* What launch() is asked for as a step of coll_plan. */
struct coll__cuda_step kernel_step(const char *entry, void **params);

/* Run every case of a type: each operation, in place and not, many alignments
 * and lengths.
 *
 * Result:    0; -1 after the first that failed, and why in words.
 */
int kernel_check_reductions(struct machine *m, enum coll_type type, char *why,
                            size_t len);
int kernel_check_others(struct machine *m, enum coll_type type, char *why,
                        size_t len);
/* Scale all small numbers and all beginnings of a number by many numbers of ranks. */
int kernel_check_divisions(struct machine *m, enum coll_type type, char *why,
                           size_t len);

#endif
