/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.c - the streaming copy of the instruction set in force. */
#include "lib/device/copy.h"
#include "lib/exec/reduce.h"

#include <stdatomic.h>

/* Chosen by the first call, once and for all.  Threads that come first together
 * choose the same; the set is constant, so that no order is needed. */
static _Atomic(const struct coll__kernels *) chosen;

void coll__copy_stream(void *dst, const void *src, size_t len)
{
    const struct coll__kernels *kernels =
        atomic_load_explicit(&chosen, memory_order_relaxed);

    if (!kernels) {
        kernels = coll__kernels_in_force();
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    kernels->copy_stream(dst, src, len);
}
