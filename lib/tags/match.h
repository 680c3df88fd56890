/* SPDX-License-Identifier: BSD-3-Clause */
/* match.h - which receive takes which message: MPI's rules, and nothing else.
 *
 * A receive names a source or any rank, and a tag or any tag.  A message that comes takes
 * the earliest receive that matches it; a receive that is posted takes the earliest message
 * that matches it.  So messages of one source that match the same receives do not overtake
 * each other.  At no time does a kept message match a posted receive.
 *
 * Messages are kept by source, and so are the receives that name a source.  The receives
 * from any rank have a list of their own.  A search among receives looks at two lists; a
 * receive from any rank looks at one list for each rank.
 */
#ifndef COLL_LIB_TAGS_MATCH_H
#define COLL_LIB_TAGS_MATCH_H

#include <stdint.h>

/* A receive, or a message that has come.  In a receive, source may be COLL_ANY_RANK and
 * tag COLL_ANY_TAG.  The caller sets the first three members. */
struct coll__envelope {
    int source, tag;
    void *owner;
    uint64_t order; /* the matcher's, from here on */
    struct coll__envelope *next;
};

struct coll__matcher {
    int size;                   /* ranks */
    uint64_t n;                 /* envelopes so far */
    int n_receives, n_messages; /* that wait */
    struct coll__envelopes
        *receives; /* [size + 1]: by source; the last: any rank */
    struct coll__envelopes *messages; /* [size]: by source */
};

/* Prepare for ranks 0 to size - 1.  COLL_OK or COLL_ERR_NOMEM, not logged.  Envelopes are
 * the caller's, also those that wait at the end. */
int coll__matcher_init(struct coll__matcher *m, int size);
void coll__matcher_fini(struct coll__matcher *m);

/* Take out the earliest receive that a message from that source and with that tag matches;
 * NULL if there is none. */
struct coll__envelope *coll__match_message(struct coll__matcher *m, int source,
                                           int tag);

/* Take out the earliest message that a receive matches, or NULL.  The second one leaves it
 * where it is. */
struct coll__envelope *coll__match_receive(struct coll__matcher *m, int source,
                                           int tag);
const struct coll__envelope *coll__match_look(const struct coll__matcher *m,
                                              int source, int tag);

/* Have a receive, or a message, wait: nothing that matches it waits already. */
void coll__match_post(struct coll__matcher *m, struct coll__envelope *receive);
void coll__match_keep(struct coll__matcher *m, struct coll__envelope *message);

/* Forget all receives and messages. */
void coll__match_forget(struct coll__matcher *m);

#endif
