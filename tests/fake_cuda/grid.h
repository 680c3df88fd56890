/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.h - kernels whose threads wait for each other, and for others: on the host by
 * threads that run at once.
 *
 * Of a block's threads few are played: what its kernel finds in blockDim.  They begin
 * in any order, blocks late and in any order, and no more of these at a time than the
 * device has room for: a block that none is left for starts when another one ends (PG,
 * "Thread Hierarchy": blocks run "in any order, in parallel or in series").
 */
#ifndef COLL_TESTS_FAKE_GRID_H
#define COLL_TESTS_FAKE_GRID_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fake_grid {
    const char *entry;
    void **params;
    unsigned blocks, threads; /* of a block: those that are played */
    unsigned seed;            /* 0: in order, and at once */

    /* Where len bytes of device memory are here, NULL: nowhere, a fault; as they are
     * without a function.  Is all lost?  Whoever waits asks.  Wait for a block's
     * place on the device, and give it back. */
    void *(*reach)(void *arg, uint64_t at, size_t len);
    int (*is_lost)(void *arg);
    void (*enter)(void *arg);
    void (*leave)(void *arg);
    void *arg;
};

/* Run it to its end: 0; 1: it reached for what is not there, or was lost; -1: there is
 * no such entry. */
int fake_grid_run(const struct fake_grid *grid);

/* What a thread of a running grid calls (cuda_shim.h); where something is wrong they
 * do not return. */
void *fake_grid_reach(uint64_t at, size_t len);
void fake_grid_rest(void);
int fake_grid_sync(int is_so); /* of the block; is it so for one of them? */

/* Of kernels.cc: be that thread of that block. */
int fake_kernel_thread(const char *entry, void **params, unsigned blocks,
                       unsigned block, unsigned threads, unsigned thread);

#ifdef __cplusplus
}
#endif
#endif
