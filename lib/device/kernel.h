/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.h - the C types of the functions that work on elements. */
#ifndef COLL_LIB_DEVICE_KERNEL_H
#define COLL_LIB_DEVICE_KERNEL_H

#include <stddef.h>

/* dst = op(a, b), over len bytes of whole elements.  dst may be a or b itself;
 * other overlap is invalid.  dst and a are aligned to their elements; b need not be (it
 * may be a message within a packet). */
typedef void coll__reduce_fn(void *dst, const void *a, const void *b,
                             size_t len);

/* dst = dst / n_ranks, over len bytes of whole elements.  For f16 and bf16, dst = dst /
 * (n_ranks / m), where 1 / m is what the input was multiplied by (coll__op_for()). */
typedef void coll__scale_fn(void *dst, size_t len, int n_ranks);

/* dst = src * *factor, over len bytes of whole elements; dst is aligned;
 * src and factor need not be.  dst may be src itself; other overlap is invalid.  The
 * factor is of type coll__factor_type() (lib/type/op.h). */
typedef void coll__multiply_fn(void *dst, const void *src, size_t len,
                               const void *factor);

#endif
