/* SPDX-License-Identifier: BSD-3-Clause */
/* counts.h - what this process has put into streams of the fake CUDA driver: a test
 * asks for fake_cuda_counts by dlsym() and compares with what a plan says. */
#ifndef COLL_TESTS_FAKE_COUNTS_H
#define COLL_TESTS_FAKE_COUNTS_H

#include <stdint.h>

struct fake_counts {
    uint64_t copies, copied; /* copied: bytes; and below */
    uint64_t crossed;        /* of those, to or from memory of the host */
    uint64_t fills, kernels;
    uint64_t kernel_len;    /* bytes of result, of the product's kernels */
    uint64_t plan_len;      /* of the steps of its plans that have run */
    uint64_t next_len,
        plan_next;          /* of these what went to a second place, too */
    uint64_t writes, waits; /* of values, in all batches */
    uint64_t records, event_waits;
    uint64_t functions, launches; /* of the host; of graphs */
};

/* All since the process began; a graph's nodes count at each launch. */
void fake_cuda_counts(struct fake_counts *counts);

/* What this thread has called of the driver. */
struct fake_calls {
    uint64_t all;
    uint64_t pointers; /* of these: questions about a pointer */
};

void fake_cuda_calls(struct fake_calls *calls);

#endif
