/* SPDX-License-Identifier: BSD-3-Clause */
/* agree.h - the ranks that are alive agree on a value while others die.
 *
 * The agreement is uniform: every rank that learns the result, also one that dies soon
 * after, learns the same.  It works as follows.  Each rank keeps a view, the set of ranks
 * that it knows to be dead.  A view only grows.  The living ranks of a view form a tree:
 * the parent of a rank is the nearest living rank above it in the tree of lib/net/tree.h;
 * who has none there is the root, or has the root for its parent.
 *
 *   GATHER   up: a subtree's flags
 *   PROPOSE  down: the proposal of which the root has heard last; if there is none, all
 *            flags and its view
 *   ACK      up: a subtree has the proposal
 *   DECIDE   everywhere: all living ranks have the proposal, so it is the result
 *
 * If a view grows, its rank tells its neighbours, who take the news into their views, and
 * all start anew in the new tree.  A rank ignores the steps of older views.  When a rank has
 * decided, all living ranks had the proposal.  So every later root has it, and proposes
 * nothing else.  (The idea is that of Buntinas, "Scalable distributed consensus to support
 * MPI fault tolerance", IPDPS 2012.)
 *
 * This is the rule alone, without connections, clocks or threads: ctrl_agree.c has them.
 */
#ifndef COLL_LIB_CTRL_AGREE_H
#define COLL_LIB_CTRL_AGREE_H

#include <stdint.h>

enum coll__agree_step {
    AGREE_VIEW, /* only the view of the sender */
    AGREE_GATHER,
    AGREE_PROPOSE,
    AGREE_ACK,
    AGREE_DECIDE
};

/* A set of ranks: bit r % 64 of word r / 64. */
static inline int coll__set_has(const uint64_t *set, int r)
{
    return set[r / 64] >> r % 64 & 1;
}

static inline int coll__set_words(int size) { return (size + 63) / 64; }

/* What a rank sends, before two sets of coll__set_words(size) words each: the sender's view,
 * and the dead of the proposal. */
struct coll__agree_message {
    uint32_t step;
    uint32_t number; /* of the agreement, from 1 */
    uint64_t flags;  /* of GATHER and ACK: the subtree's; else the proposal's */
};

struct coll__agree_ops {
    /* Send to a rank.  What cannot be sent, because there is no connection yet or none any
     * more, is dropped. */
    void (*send)(void *arg, int to, const struct coll__agree_message *message,
                 const uint64_t *view, const uint64_t *dead);
    /* The view or the tree has changed: connect to the new neighbours. */
    void (*changed)(void *arg);
    /* This rank has learned the result of the agreement with this number. */
    void (*decided)(void *arg, uint32_t number, uint64_t flags,
                    const uint64_t *dead);
    void *arg;
};

struct coll__agree;

/* Return the state of a rank that has entered no agreement; NULL: no memory. */
struct coll__agree *coll__agree_new(int rank, int size,
                                    const struct coll__agree_ops *ops);
void coll__agree_free(struct coll__agree *agree);

/* Enter the next agreement, after the one before was decided. */
void coll__agree_enter(struct coll__agree *agree, uint64_t flags);

/* A rank has died, or has left. */
void coll__agree_died(struct coll__agree *agree, int rank);

/* There is a connection to a rank now: it may have missed what was dropped. */
void coll__agree_connected(struct coll__agree *agree, int rank);

/* A message of a rank came.  Returns 0, or -1 if no rank would send it. */
int coll__agree_got(struct coll__agree *agree, int from,
                    const struct coll__agree_message *message,
                    const uint64_t *view, const uint64_t *dead);

/* The ranks that are known to be dead. */
const uint64_t *coll__agree_view(const struct coll__agree *agree);

/* Is this rank itself taken for dead by others? */
int coll__agree_is_expelled(const struct coll__agree *agree);

/* The rank's parent in its view, -1 at the root; is that rank its child?  Each rank connects
 * to its parent, and finds out by itself whether its parent and its children live. */
int coll__agree_parent(const struct coll__agree *agree);
int coll__agree_is_child(const struct coll__agree *agree, int rank);

#endif
