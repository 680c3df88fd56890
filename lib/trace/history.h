/* SPDX-License-Identifier: BSD-3-Clause */
/* history.h - the last operations of a communicator, for error sentences.
 *
 * Written by the thread that calls the operations, read by any: words are
 * published by the release store of n_started.  Each is itself stored with
 * release and loaded with acquire: so who has read one of a newer operation, which
 * takes the same place 1,024 later, finds in n_started that it is overtaken, and
 * has nothing rather than a mixture of two.
 */
#ifndef COLL_LIB_TRACE_HISTORY_H
#define COLL_LIB_TRACE_HISTORY_H

#include "lib/type/head.h"

#include <stdatomic.h>

#define COLL__HISTORY 1024
#define COLL__WHERE_MAX 200 /* bytes of where a rank is, with its NUL */

struct coll__history {
    _Atomic uint64_t words[COLL__HISTORY][3];
    _Atomic uint64_t n_started, n_done; /* all up to n_done have ended */
    uint64_t hash; /* over all heads; the calling thread's */

    /* A send or receive that this rank is in: no part of what ranks compare.
     * Odd while it is written; all words 0 when there is none. */
    _Atomic unsigned aside_version;
    _Atomic uint64_t aside[3];
};

/* Some times before an operation is forgotten, those of others are to be looked for that
 * were called in its place: is it such a time, before the next one starts? */
static inline int coll__history_is_look_due(const struct coll__history *h)
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_relaxed);

    return n % (COLL__HISTORY / 4) == COLL__HISTORY / 4 - 1;
}

/* Note the start of the next operation; and that all up to seq have ended. */
void coll__history_start(struct coll__history *h,
                         const struct coll__head *head);
void coll__history_end(struct coll__history *h, uint64_t seq);

/* Note the send or receive that the rank is in from now on; NULL for none. */
void coll__history_aside(struct coll__history *h,
                         const struct coll__head *head);

/* Fetch the head of operation seq (from 1 on): 1, or 0 when it is too old. */
int coll__history_get(struct coll__history *h, uint64_t seq,
                      struct coll__head *head);

/* Describe where this rank is: "in allreduce #7 (...)", and in which send or receive
 * besides. */
void coll__history_where(struct coll__history *h, char *text, size_t len);

#endif
