/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - an operation in a few bytes: messages are stamped with it, error
 * sentences are made from it. */
#ifndef COLL_LIB_TRACE_HEAD_H
#define COLL_LIB_TRACE_HEAD_H

#include "include/coll/coll.h"

/* Names the operation that a message belongs to; travels with each message.
 * Two ranks whose heads differ disagree about what they do. */
struct coll__head {
    uint64_t seq; /* the communicator's operation number, from 1 */
    uint8_t collective, type, op, zero;
    int32_t root;
    uint64_t count;
};

/* head.op of a caller's own operation: each process has its own handles, but
 * all ranks must have the same kind. */
#define COLL__HEAD_PREMUL 0xfe
#define COLL__HEAD_USER 0xff

/* Describe a head in words: "allreduce #7 (100 f32, sum)". */
void coll__head_describe(const struct coll__head *head, char *text,
                         size_t len);

#endif
