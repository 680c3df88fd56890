/* SPDX-License-Identifier: BSD-3-Clause */
/* advice.h - what callers must do where the calls of two ranks do not match; the end of
 * the error sentence. */
#ifndef COLL_LIB_COMM_ADVICE_H
#define COLL_LIB_COMM_ADVICE_H

#include "lib/type/signature.h"

#define COLL__SAME_CALLS                                                       \
    "all ranks must call the same operations in the same order"
#define COLL__SAME_SIZE "a send and its receive need the same count and type"

/* Return the advice for two collectives whose signatures differ: "all ranks must pass the
 * same count" if they differ in that alone, and COLL__SAME_CALLS if they differ in more.
 * Algorithm ids are not compared: they follow from the rest. */
const char *coll__advice(const struct coll__signature *a,
                         const struct coll__signature *b);

#endif
