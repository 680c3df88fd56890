/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithm_id.h - the algorithm of an operation, as a few bits of its signature: if
 * some ranks use one algorithm and others another, data is wrong or nothing ends. */
#ifndef COLL_LIB_COMM_ALGORITHM_ID_H
#define COLL_LIB_COMM_ALGORITHM_ID_H

#include "lib/type/signature.h"

/* The id of a plan that comes from a file: the greatest value that sig.algo_id can
 * hold. */
#define COLL__ALGORITHM_OF_FILE 31

/* Return the number of the named algorithm among those of its collective.
 *
 * Result:    0 where ranks may choose for themselves: for messages, and for
 *            operations of which no rank knows all counts.
 */
unsigned coll__algorithm_id(enum coll_collective collective, const char *name);

/* Do the signatures differ in the algorithm alone? */
int coll__algorithm_ids_differ(const struct coll__signature *a,
                               const struct coll__signature *b);

/* Describe a signature as coll__signature_describe() does, and add the name of the
 * algorithm. */
void coll__algorithm_id_describe(const struct coll__signature *sig, char *text,
                                 size_t len);

#define COLL__SAME_ALGORITHM                                                   \
    "all ranks must have the same algorithm: set coll_args.algo alike"

#endif
