/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_calls.h - calls that a rank makes beside its plans, and what is
 * expected of each: while a stream or another thread's copy waits
 * (driver_rules_queue.c), and in a capture (driver_rules_unsafe.c).
 */
#ifndef TESTS_GPU_DRIVER_RULES_CALLS_H
#define TESTS_GPU_DRIVER_RULES_CALLS_H

#include "tests/gpu/driver_rules.h"

enum behind_wait { NOT_BEHIND, RETURNS, BLOCKS };

/* UNSAFE: forbidden where the thread's mode and the capture's say so. */
enum in_capture { NOT_CAPTURED, ALLOWED, UNSAFE, FORBIDDEN };

struct rule_call {
    const char *name;
    enum behind_wait behind; /* a stream that waits */
    enum behind_wait beside; /* a copy to pageable memory that waits */
    enum in_capture captured;
    CUresult (*call)(void *arg); /* arg is not used */
};

extern const struct rule_call rule_calls[];
extern const size_t n_rule_calls;

/* What they act on, made before anything waits. */
struct call_scene {
    CUcontext ctx;
    CUstream work; /* which they enqueue to, and wait for */
    CUstream other;
    CUdeviceptr mem[4];
    CUevent event;
    CUgraph graph;
    CUgraphExec exec;
    CUmemoryPool pool;
    void *pinned, *pages;
    CUipcMemHandle handle; /* of another process: the rule's to get */
    CUdeviceptr imported;
};
extern struct call_scene on;

/* Start, and make all of it but the handle. */
void calls_prepare(void);

#endif
