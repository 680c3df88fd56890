/* SPDX-License-Identifier: BSD-3-Clause */
/* agree.c - see agree.h. */
#include "lib/ctrl/agree.h"
#include "lib/net/tree.h"

#include <stdlib.h>
#include <string.h>

/* What a child has told in this rank's view. */
struct child {
    uint32_t number;
    enum coll__agree_step step; /* AGREE_VIEW: nothing */
    uint64_t flags;             /* its subtree's */
};

struct proposal {
    uint32_t number; /* of the agreement */
    int is_made;
    uint64_t flags;
    uint64_t *dead; /* [n_words] */
};

struct coll__agree {
    struct coll__agree_ops ops;
    int rank, size, n_words;
    uint64_t *view;
    int *parents; /* [size]: in this view; -1 for the root and the dead */
    struct child *children;     /* [size] */
    enum coll__agree_step step; /* this rank's, in this view */
    uint64_t flags;             /* its own */
    struct proposal
        mine; /* the last one of the agreement that it entered last */
    struct proposal
        result; /* of the last agreement that was decided; number 0: none */
};

/* ---- sets ---------------------------------------------------------------- */

static size_t set_bytes(const struct coll__agree *a)
{
    return (size_t)a->n_words * sizeof(uint64_t);
}

static int is_dead(const struct coll__agree *a, int rank)
{
    return coll__set_has(a->view, rank);
}

/* Add a set to the view; returns whether that has made it larger. */
static int join(struct coll__agree *a, const uint64_t *set)
{
    uint64_t more = 0;

    for (int i = 0; i < a->n_words; i++) {
        more |= set[i] & ~a->view[i];
        a->view[i] |= set[i];
    }
    return more != 0;
}

/* ---- the tree of a view -------------------------------------------------- */

static int parent_of(const struct coll__agree *a, int rank, int root)
{
    int r = rank;

    while (r) {
        r = coll__tree_parent(r, a->size);
        if (!is_dead(a, r))
            return r;
    }
    return rank == root ? -1 : root;
}

static void make_tree(struct coll__agree *a)
{
    int root = 0;

    while (root < a->size && is_dead(a, root))
        root++;
    for (int r = 0; r < a->size; r++)
        a->parents[r] = is_dead(a, r) ? -1 : parent_of(a, r, root);
}

static int is_child(const struct coll__agree *a, int rank)
{
    return a->parents[rank] == a->rank;
}

/* ---- messages ------------------------------------------------------------ */

/* Send a step of the agreement that the proposal is for. */
static void send(struct coll__agree *a, int to, enum coll__agree_step step,
                 const struct proposal *proposal, uint64_t flags)
{
    struct coll__agree_message message = {
        .step = (uint32_t)step, .number = proposal->number, .flags = flags};

    if (to >= 0)
        a->ops.send(a->ops.arg, to, &message, a->view, proposal->dead);
}

static void send_up(struct coll__agree *a, enum coll__agree_step step,
                    uint64_t flags)
{
    send(a, a->parents[a->rank], step, &a->mine, flags);
}

/* Send to all children but one. */
static void send_down(struct coll__agree *a, enum coll__agree_step step,
                      const struct proposal *proposal, int except)
{
    for (int r = 0; r < a->size; r++)
        if (is_child(a, r) && r != except)
            send(a, r, step, proposal, proposal->flags);
}

/* Tell a rank the view, and the last result, which it may not have heard of. */
static void tell(struct coll__agree *a, int to)
{
    send(a, to, a->result.number ? AGREE_DECIDE : AGREE_VIEW, &a->result,
         a->result.flags);
}

/* ---- steps --------------------------------------------------------------- */

/* Has this rank entered an agreement that is not decided? */
static int is_in(const struct coll__agree *a)
{
    return a->mine.number > a->result.number;
}

/* Have all children come to this step?  *flags: theirs and this rank's. */
static int have_come(const struct coll__agree *a, enum coll__agree_step step,
                     uint64_t *flags)
{
    *flags = a->flags;
    for (int r = 0; r < a->size; r++) {
        const struct child *child = &a->children[r];

        if (!is_child(a, r))
            continue;
        if (child->number != a->mine.number || child->step < step)
            return 0;
        *flags &= child->flags;
    }
    return 1;
}

static void set_proposal(const struct coll__agree *a, struct proposal *to,
                         const struct coll__agree_message *message,
                         const uint64_t *dead)
{
    to->number = message->number;
    to->is_made = 1;
    to->flags = message->flags;
    memcpy(to->dead, dead, set_bytes(a));
}

/* from: who has told the result; -1: this rank is the root. */
static void decide(struct coll__agree *a, int from)
{
    int parent = a->parents[a->rank];

    a->result.number = a->mine.number;
    a->result.flags = a->mine.flags;
    memcpy(a->result.dead, a->mine.dead, set_bytes(a));
    a->step = AGREE_VIEW; /* of the next one */
    if (parent != from)
        send(a, parent, AGREE_DECIDE, &a->result, a->result.flags);
    send_down(a, AGREE_DECIDE, &a->result, from);
    a->ops.decided(a->ops.arg, a->result.number, a->result.flags,
                   a->result.dead);
}

static void pass_proposal(struct coll__agree *a)
{
    a->step = AGREE_PROPOSE;
    send_down(a, AGREE_PROPOSE, &a->mine, -1);
}

/* The root has all flags. */
static void propose(struct coll__agree *a, uint64_t flags)
{
    if (!a->mine.is_made) {
        a->mine.is_made = 1;
        a->mine.flags = flags;
        memcpy(a->mine.dead, a->view, set_bytes(a));
    }
    pass_proposal(a);
}

/* Take the steps for which all is there. */
static void advance(struct coll__agree *a)
{
    int is_root = a->parents[a->rank] < 0;
    uint64_t flags;

    if (!is_in(a) || coll__agree_is_expelled(a))
        return;
    if (a->step == AGREE_VIEW && have_come(a, AGREE_GATHER, &flags)) {
        a->step = AGREE_GATHER;
        send_up(a, AGREE_GATHER, flags);
        if (is_root)
            propose(a, flags);
    }
    if (a->step == AGREE_PROPOSE && have_come(a, AGREE_ACK, &flags)) {
        a->step = AGREE_ACK;
        send_up(a, AGREE_ACK, flags);
        if (is_root)
            decide(a, -1);
    }
}

/* The view is larger now: start anew in its tree. */
static void renew(struct coll__agree *a)
{
    memset(a->children, 0, (size_t)a->size * sizeof(*a->children));
    a->step = AGREE_VIEW;
    make_tree(a);
    a->ops.changed(a->ops.arg);
    if (coll__agree_is_expelled(a))
        return;
    tell(a, a->parents[a->rank]);
    for (int r = 0; r < a->size; r++)
        if (is_child(a, r))
            tell(a, r);
    advance(a);
}

/* ---- what happens -------------------------------------------------------- */

void coll__agree_enter(struct coll__agree *a, uint64_t flags)
{
    a->mine.number++;
    a->mine.is_made = 0;
    a->flags = flags;
    a->step = AGREE_VIEW;
    advance(a);
}

void coll__agree_died(struct coll__agree *a, int rank)
{
    if (is_dead(a, rank))
        return;
    a->view[rank / 64] |= (uint64_t)1 << rank % 64;
    renew(a);
}

void coll__agree_connected(struct coll__agree *a, int rank)
{
    uint64_t flags;

    tell(a, rank);
    if (rank == a->parents[a->rank] && is_in(a) && a->step == AGREE_GATHER &&
        have_come(a, AGREE_GATHER, &flags))
        send_up(a, AGREE_GATHER, flags);
}

/* A child of this view has come to a step. */
static void got_up(struct coll__agree *a, int from,
                   const struct coll__agree_message *message)
{
    a->children[from] = (struct child){
        message->number, (enum coll__agree_step)message->step, message->flags};
    advance(a);
}

static void got_proposal(struct coll__agree *a, int from,
                         const struct coll__agree_message *message,
                         const uint64_t *dead)
{
    if (from != a->parents[a->rank] || a->step != AGREE_GATHER || !is_in(a) ||
        message->number != a->mine.number)
        return;
    set_proposal(a, &a->mine, message, dead);
    pass_proposal(a);
    advance(a);
}

static void got_result(struct coll__agree *a, int from,
                       const struct coll__agree_message *message,
                       const uint64_t *dead)
{
    if (!is_in(a) || message->number != a->mine.number)
        return;
    set_proposal(a, &a->mine, message, dead);
    decide(a, from);
}

int coll__agree_got(struct coll__agree *a, int from,
                    const struct coll__agree_message *message,
                    const uint64_t *view, const uint64_t *dead)
{
    int is_up = message->step == AGREE_GATHER || message->step == AGREE_ACK;

    if (message->step > AGREE_DECIDE)
        return -1;
    if (is_dead(a, from)) { /* if it is not, it is to know */
        tell(a, from);
        return 0;
    }
    if (message->step == AGREE_DECIDE)
        got_result(a, from, message, dead);
    if (join(a, view))
        renew(a);
    if (coll__agree_is_expelled(a))
        return 0;
    if (memcmp(a->view, view, set_bytes(a)) != 0)
        tell(a, from); /* its view is older */
    else if (is_up && is_child(a, from))
        got_up(a, from, message);
    else if (message->step == AGREE_PROPOSE)
        got_proposal(a, from, message, dead);
    return 0;
}

/* ---- making -------------------------------------------------------------- */

struct coll__agree *coll__agree_new(int rank, int size,
                                    const struct coll__agree_ops *ops)
{
    size_t n = (size_t)size, words = (size_t)coll__set_words(size);
    struct coll__agree *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->ops = *ops;
    a->rank = rank;
    a->size = size;
    a->n_words = (int)words;
    a->parents = calloc(n, sizeof(*a->parents));
    a->children = calloc(n, sizeof(*a->children));
    a->view = calloc(3 * words, sizeof(*a->view));
    if (!a->parents || !a->children || !a->view) {
        coll__agree_free(a);
        return NULL;
    }
    a->mine.dead = a->view + words;
    a->result.dead = a->view + 2 * words;
    make_tree(a);
    return a;
}

void coll__agree_free(struct coll__agree *a)
{
    if (!a)
        return;
    free(a->parents);
    free(a->children);
    free(a->view);
    free(a);
}

const uint64_t *coll__agree_view(const struct coll__agree *a)
{
    return a->view;
}

int coll__agree_is_expelled(const struct coll__agree *a)
{
    return is_dead(a, a->rank);
}

int coll__agree_parent(const struct coll__agree *a)
{
    return a->parents[a->rank];
}

int coll__agree_is_child(const struct coll__agree *a, int rank)
{
    return is_child(a, rank);
}
