/* SPDX-License-Identifier: BSD-3-Clause */
/* history.h - the last operations of a communicator, for error sentences.
 *
 * The thread that calls the operations writes; any thread reads.  The release store of
 * n_started publishes an operation's words.  An operation overwrites the entry of the one
 * 1,024 before it, perhaps while a reader reads.  Each word is stored with release and
 * loaded with acquire, so a reader that has read a newer word also sees the newer
 * n_started.  Then the reader reports that the operation is too old.
 */
#ifndef COLL_LIB_TRACE_HISTORY_H
#define COLL_LIB_TRACE_HISTORY_H

#include "lib/type/signature.h"

#include <stdatomic.h>

#define COLL__HISTORY 1024
#define COLL__WHERE_MAX 200 /* bytes of coll__history_where()'s text, with its NUL */

struct coll__history {
    _Atomic uint64_t words[COLL__HISTORY][4]; /* a signature and its user tag */
    _Atomic uint64_t n_started, n_done; /* all up to n_done have ended */
    uint64_t hash; /* over all signatures; used by the calling thread only */

    /* The send or receive that this rank is in; ranks do not compare these.  The
     * version is odd during a write; all words are 0 if there is none. */
    _Atomic unsigned p2p_version;
    _Atomic uint64_t p2p[4];
};

/* Is it time to look for messages of operations that other ranks called instead of this
 * rank's?  Call this before each operation.  It returns 1 at every 256th operation, so
 * that messages of an operation are looked for before the history forgets the
 * operation. */
static inline int coll__history_is_look_due(const struct coll__history *h)
{
    uint64_t n = atomic_load_explicit(&h->n_started, memory_order_relaxed);

    return n % (COLL__HISTORY / 4) == COLL__HISTORY / 4 - 1;
}

/* start: note that the next operation starts.  end: note that all operations up to seq
 * have ended.  user_tag: the caller's, or 0. */
void coll__history_start(struct coll__history *h,
                         const struct coll__signature *sig, uint64_t user_tag);
void coll__history_end(struct coll__history *h, uint64_t seq);

/* Note the send or receive that the rank is in from now on; NULL for none. */
void coll__history_p2p(struct coll__history *h,
                       const struct coll__signature *sig, uint64_t user_tag);

/* Get the signature of operation seq (from 1 on).  Returns 1, or 0 if it is too old. */
int coll__history_get(struct coll__history *h, uint64_t seq,
                      struct coll__signature *sig);

/* Return the user tag of a call of this rank; 0 if there is none or it is forgotten. */
uint64_t coll__history_user_tag(struct coll__history *h,
                                const struct coll__signature *sig);

/* Describe a call of this rank, with its user tag. */
void coll__history_describe(struct coll__history *h,
                            const struct coll__signature *sig, char *text,
                            size_t len);

/* Describe where this rank is: "in allreduce #7 (...)", and its send or receive if it is
 * in one. */
void coll__history_where(struct coll__history *h, char *text, size_t len);

#endif
