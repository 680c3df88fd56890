/* SPDX-License-Identifier: BSD-3-Clause */
/* result.h - NCCL's results for libcoll's statuses, and the sentence of the last
 * error. */
#ifndef COLL_NCCL_RESULT_H
#define COLL_NCCL_RESULT_H

#include "bindings/nccl/nccl.h"

enum { NCCL__WHY_MAX = 512 };

/* The second name of a function of nccl.h. */
#define NCCL__ALIAS(name)                                                      \
    __typeof__(nccl##name) pnccl##name __attribute__((alias("nccl" #name)))

/* Keep a sentence for ncclGetLastError() in this thread; return the result. */
ncclResult_t nccl__wrong(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Turn a status of libcoll into a result.  An error's sentence becomes this thread's. */
ncclResult_t nccl__of_status(int status);

/* Return this thread's sentence. */
const char *nccl__why(void);

#endif
