/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.h - what every rank's input is, and so what every result must be.
 *
 * Inputs are small whole numbers, exact in every type, so results are exact
 * whatever the order of combination.
 */
#ifndef COLL_TESTS_ORACLE_H
#define COLL_TESTS_ORACLE_H

#include "include/coll/coll.h"

/* One operation of a random run; equal on every rank. */
struct oracle_op {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    int root, size;
    size_t count;
    unsigned seed;
};

/* Draw an operation; *state moves on. */
struct oracle_op oracle_draw(uint64_t *state, int size);

/* Draw a number below n. */
unsigned oracle_random(uint64_t *state, unsigned n);

/* Write rank's input into in[count]. */
void oracle_fill(const struct oracle_op *op, int rank, void *in);

/* Return the index of the first wrong element of out, or -1. */
long oracle_verify(const struct oracle_op *op, const void *out);

/* Elements of out. */
size_t oracle_out_count(const struct oracle_op *op);

#endif
