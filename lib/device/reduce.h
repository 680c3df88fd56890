/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce.h - the functions that reduce and scale host memory (kernels).
 *
 * Every kernel exists once per instruction set; all sets give equal bits.  The best set
 * that the processor has is chosen once, at run time (COLL_SIMD forces another).
 *
 * Integers wrap.  Floats of 8 and 16 bits are widened to f32, combined and rounded back
 * to nearest even.  min and max of floats: a NaN on either side gives a NaN
 * (the quiet one without payload), and -0 is less than +0, so that the result
 * does not depend on the order of the operands.  Complex numbers are summed and divided
 * part by part.  land, lor and lxor: a NaN is
 * true, -0 is not.
 */
#ifndef COLL_LIB_DEVICE_REDUCE_H
#define COLL_LIB_DEVICE_REDUCE_H

#include "lib/device/device.h"

/* The kernels of one instruction set. */
struct coll__kernels {
    const char *name; /* "avx2", as COLL_SIMD knows it */
    /* avg is sum; NULL where coll__op_takes() refuses */
    coll__reduce_fn *reduce[COLL_N_TYPES][COLL_N_OPS];
    coll__scale_fn
        *scale[COLL_N_TYPES]; /* and multiply: NULL for bool and pairs */
    coll__multiply_fn *multiply[COLL_N_TYPES];
    void (*copy_stream)(void *dst, const void *src, size_t len);
};

extern const struct coll__kernels coll__kernels_base;
extern const struct coll__kernels coll__kernels_avx2;
extern const struct coll__kernels coll__kernels_avx512;

/* Return a set that this processor can run, by its index, the best first; NULL past the
 * last one. */
const struct coll__kernels *coll__kernels_at(int index);

/* Return the chosen set; the first call chooses it for the process's life. */
const struct coll__kernels *coll__kernels_in_force(void);

/* Return how often the processor's features were read: 1 at most. */
int coll__kernels_n_choices(void);

/* Return a kernel of the chosen set; NULL for an invalid type or operation. */
coll__reduce_fn *coll__host_reduce(enum coll_type type, enum coll_op op);
coll__scale_fn *coll__host_scale(enum coll_type type);
coll__multiply_fn *coll__host_multiply(enum coll_type type);

#endif
