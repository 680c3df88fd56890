/* SPDX-License-Identifier: BSD-3-Clause */
/* element.h - elements one at a time, in plain C, against which the kernels are
 * tested; narrow floats by exact arithmetic in double. */
#ifndef COLL_TESTS_ELEMENT_H
#define COLL_TESTS_ELEMENT_H

#include "tests/support/parts.h"

uint64_t random_bits(uint64_t *state);

/* A format of `places` fraction bits and this least exponent; its greatest exponent is
 * that of numbers if it has no infinities, else that of infinities and NaNs. */
struct format {
    int places, least, bias;
    unsigned sign; /* its bit */
    int is_finite; /* the only NaN has all bits of a number */
};
extern const struct format f16, bf16, f8e4m3, f8e5m2;

double decode(struct format f, unsigned bits);

/* To the nearest, ties to even, of a value that is no NaN. */
unsigned encode(struct format f, double x);

int is_nan_bits(struct format f, unsigned bits);

/* By type: *dst = op(*dst, *src), wherever the two lie. */
extern void (*const oracles[])(void *dst, const void *src, enum coll_op op);

/* Multiply an element by a factor of coll__factor_type(). */
void multiply_element(enum coll_type type, void *element, const void *factor);

/* Does the host have none, as the operation is not for that type? */
int has_no_kernel(enum coll_type type, enum coll_op op);

/* Return the first element that differs in any bit, count where none does; one
 * NaN equals another. */
size_t first_difference(enum coll_type type, const void *got, const void *want,
                        size_t count);

/* Any bits: for floats this gives NaN, infinities and tiny numbers too; every
 * fourth element is a special one. */
void fill(enum coll_type type, char *p, size_t count, uint64_t seed);

#endif
