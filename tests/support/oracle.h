/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.h - what every rank's input is, and so what every result must be.
 *
 * Inputs are small whole numbers, exact in every type, so results are exact
 * whatever the order of combination; but those of an operation that does not
 * commute, on integers, are any bits: there the order is what is looked at.
 */
#ifndef COLL_TESTS_ORACLE_H
#define COLL_TESTS_ORACLE_H

#include "include/coll/coll.h"

#define ORACLE_RANKS 16 /* at most */

/* Operations beside enum coll_op, each of them of a handle of this process. */
enum oracle_own {
    OWN_NONE,
    OWN_PREMUL,   /* rank r multiplies by 1 + r % 3 */
    OWN_COMMUTES, /* a function: the larger one */
    OWN_ORDERED,  /* a function that does not commute */
    N_OWNS,
    OWN_SCALED =
        N_OWNS /* a sum with the factors oracle_prescale() and _postscale(); of no
                         * handle, and for requests only */
};

/* One operation of a random run; equal on every rank. */
struct oracle_op {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    enum oracle_own own; /* instead of op, when it is not OWN_NONE */
    int root, size;
    size_t count; /* of a v collective about the mean of the counts */
    unsigned seed;
};

/* The parts of a buffer, in elements: none, one, or one for each rank. */
struct oracle_layout {
    int n;
    size_t counts[ORACLE_RANKS], displs[ORACLE_RANKS];
    size_t len; /* up to the end of the last part, and the gap after it */
};

/* Draw an operation of all ranks (no send or receive); *state moves on. */
struct oracle_op oracle_draw(uint64_t *state, int size);

/* Draw one for a request. */
struct oracle_op oracle_draw_request(uint64_t *state, int size);

/* A rank's factors; 0: none. */
double oracle_prescale(const struct oracle_op *op, int rank);
double oracle_postscale(const struct oracle_op *op);

/* Is the operation defined for the type, and are its results exact? */
int oracle_is_exact(const struct oracle_op *op);

/* Draw a number below n. */
unsigned oracle_random(uint64_t *state, unsigned n);

/* Of what rank's buffer is made up. */
void oracle_layout(const struct oracle_op *op, int rank, int is_out,
                   struct oracle_layout *layout);

/* Write the parts of rank's input into in. */
void oracle_fill(const struct oracle_op *op, int rank,
                 const struct oracle_layout *layout, void *in);

/* Return the index of the first element that is wrong in rank's out, or of the
 * first one of in that is not what oracle_fill() wrote (but for the part with
 * the index `skip`), or -1. */
long oracle_verify(const struct oracle_op *op, int rank,
                   const struct oracle_layout *layout, const void *out);
long oracle_verify_in(const struct oracle_op *op, int rank,
                      const struct oracle_layout *layout, int skip,
                      const void *in);

/* This process's handles. */
struct oracle_handles {
    enum coll_op own[N_OWNS][COLL_N_TYPES];
};

/* Errors:    1 when one could not be made or ended. */
int oracle_handles_init(struct oracle_handles *handles, int rank);
int oracle_handles_fini(struct oracle_handles *handles);

#endif
