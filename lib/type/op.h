/* SPDX-License-Identifier: BSD-3-Clause */
/* op.h - reduction operations: the built-in ones and the caller's own.
 *
 * A caller's operation has a handle, a value of enum coll_op from COLL_N_OPS on.  Each
 * call copies the operation, and does not need the handle afterwards.
 */
#ifndef COLL_LIB_TYPE_OP_H
#define COLL_LIB_TYPE_OP_H

#include "include/coll/coll.h"

#define COLL__OPS_MAX 1000u /* operations of callers at a time */

/* What elements are multiplied by. */
struct coll__factor {
    int is_set;
    enum coll_type type; /* of the elements, or of the parts of complex ones */
    unsigned char number[16]; /* of coll__factor_type(type) */
};

struct coll__op {
    enum coll_op base; /* SUM for the caller's own */
    coll_user_fn *fn;  /* NULL: base's kernel */
    void *arg;
    int commutes;
    int is_premul; /* of coll_op_create_premul(); for pre.type only */
    /* Of IN; and of the result, then an average is not divided. */
    struct coll__factor pre, post;
    float postscale; /* the call's, if post is set */
};

/* Narrow floats are multiplied by an f32, other types by a number of their own. */
static inline enum coll_type coll__factor_type(enum coll_type type)
{
    return type == COLL_F16 || type == COLL_BF16 || type == COLL_F8E4M3 ||
                   type == COLL_F8E5M2
               ? COLL_F32
               : type;
}

/* Look an operation up: a built-in one or a handle.
 *
 * Errors:    COLL_ERR_INVALID, not logged; *out is untouched.
 * Threads:   any, while no thread destroys that operation.
 * Cost:      no lock.
 */
int coll__op_get(enum coll_op op, struct coll__op *out);

/* Look a call's operation up, with its factors on n ranks: those of prescale and
 * postscale, which the operation and the type allow, and those of an average.
 *
 * An average of floats of 8 or 16 bits multiplies its input, so that no sum overflows,
 * whatever the algorithm and the order: each rank multiplies its input by 1 / m, where m
 * is the least power of two with m >= n (half.h: power_for()), and STEP_SCALE divides the
 * sum by n / m.  A product with a power of two is exact, unless it is less than the least
 * normal number (2^-14 in f16): then it is rounded to a multiple of 2^-24, and the average may
 * be off by m / 2 of these.  Sums in f32 would not lose that, but they would double the bytes
 * between the ranks, and each plan would need a second type.
 *
 * Errors:    as coll__op_get().
 */
int coll__op_for(const struct coll_args *args, int n, struct coll__op *out);

/* Set out to a scalar of `type`, which has numbers. */
void coll__factor_set(enum coll_type type, const void *scalar,
                      struct coll__factor *out);

/* Are they equal? */
int coll__same_factor(const struct coll__factor *a,
                      const struct coll__factor *b);

/* Enter a copy of a caller's operation into the table; *out is its handle.
 *
 * Errors:    COLL_ERR_NOMEM when the table is full, not logged.
 * Threads:   any.
 */
int coll__op_add(const struct coll__op *op, enum coll_op *out);

/* Remove an operation.  Returns COLL_ERR_INVALID, not logged, if there is none. */
int coll__op_remove(enum coll_op op);

/* Kinds of types, as bits. */
enum coll__kind {
    KIND_INTEGER = 1,
    KIND_FLOAT = 2,
    KIND_BOOL = 4,
    KIND_COMPLEX = 8,
    KIND_PAIR = 16 /* a value and an index */
};

enum coll__kind coll__type_kind(enum coll_type type);

/* Does the order matter in which numbers of the type are added? */
int coll__type_rounds(enum coll_type type);

/* Say whether the operation is defined for that type. */
int coll__op_takes(const struct coll__op *op, enum coll_type type);

/* Name the kinds of types that it is defined for: "integers and bool". */
const char *coll__op_kinds(const struct coll__op *op);

/* Does only the host have a kernel for the built-in operation?  Then it does the steps of
 * streams, too. */
int coll__op_is_hosts(const struct coll__op *op, enum coll_type type);

/* Return the signature's op for the operation (signature.h). */
uint8_t coll__op_code(const struct coll__op *op);

#endif
