/* SPDX-License-Identifier: BSD-3-Clause */
/* tags_step.c - what lib/tags does with transfers: start them, and return credit. */
#include "lib/tags/tags_int.h"

/* ---- lists ----------------------------------------------------------------- */

void coll__tagged_clear(struct coll__tagged_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

void coll__tagged_append(struct coll__tagged_list *list,
                         struct coll__tagged *tagged)
{
    tagged->next = NULL;
    *list->last = tagged;
    list->last = &tagged->next;
}

/* Take out the one with that source and number; NULL: there is none. */
struct coll__tagged *coll__tagged_find(struct coll__tagged_list *list,
                                       uint32_t number)
{
    for (struct coll__tagged **at = &list->first, *found; (found = *at);
         at = &found->next)
        if (found->message.number == number) {
            *at = found->next;
            if (!*at)
                list->last = at;
            return found;
        }
    return NULL;
}

struct coll__tagged *coll__tags_take(struct coll__tags *tags)
{
    struct coll__tagged *tagged = tags->done.first;

    if (!tagged)
        return NULL;
    tags->done.first = tagged->next;
    if (!tags->done.first)
        coll__tagged_clear(&tags->done);
    return tagged;
}

void coll__tagged_finish(struct coll__tags *tags, struct coll__tagged *tagged)
{
    tags->n_running--;
    coll__tagged_append(&tags->done, tagged);
}

/* One of its transfers has ended. */
static void finish_one(struct coll__tags *tags, struct coll__tagged *tagged)
{
    if (!--tagged->n_open)
        coll__tagged_finish(tags, tagged);
}

void coll__tagged_finish_of(struct coll__tags *tags,
                            struct coll__tag_step *step)
{
    finish_one(tags, step->of);
}

/* ---- transfers ------------------------------------------------------------- */

struct coll__signature coll__tag_stamp(enum coll__tag_kind kind, uint64_t seq,
                                       const struct coll__tag_message *message)
{
    return (struct coll__signature){.seq = seq,
                                    .collective = COLL_SEND_TAGGED,
                                    .type = (uint8_t)message->type,
                                    .op = (uint8_t)kind,
                                    .series = SERIES_TAGGED,
                                    .root = message->tag,
                                    .count = message->count};
}

/* Start a transfer with a rank: step->ended and step->of are set. */
void coll__tag_start(struct coll__tags *tags, struct coll__tag_step *step,
                     const struct coll__xfer *xfer, int is_send)
{
    struct coll__tp *tp = tags->routes->to[xfer->peer];

    step->xfer = *xfer;
    step->xfer.channel = tags->channel;
    step->xfer.ended = &tags->ended;
    step->xfer.owner = step;
    if (is_send)
        tp->ops->send(tp, &step->xfer);
    else
        tp->ops->recv(tp, &step->xfer);
}

/* Send a message without data. */
void coll__tag_say(struct coll__tags *tags, struct coll__tag_step *step,
                   int peer, const struct coll__signature *sig)
{
    struct coll__xfer xfer = {.peer = peer, .sig = *sig};

    coll__tag_start(tags, step, &xfer, 1);
}

/* Receive a message without data, which has come. */
void coll__tag_hear(struct coll__tags *tags, struct coll__tag_step *step,
                    int peer, const struct coll__signature *sig)
{
    struct coll__xfer xfer = {.peer = peer, .sig = *sig};

    coll__tag_start(tags, step, &xfer, 0);
}

/* ---- credit ---------------------------------------------------------------- */

static void give_credit(struct coll__tags *tags, int peer);

static void credit_sent(struct coll__tags *tags, struct coll__tag_step *step)
{
    tags->peers[step->xfer.peer].is_crediting = 0;
    give_credit(tags, step->xfer.peer);
}

/* Return credit once half of it is owed. */
static void give_credit(struct coll__tags *tags, int peer)
{
    struct coll__tag_peer *p = &tags->peers[peer];
    struct coll__tag_message none = {.type = COLL_U8};
    struct coll__signature sig;

    if (peer == tags->rank) {
        p->credit += p->owed;
        p->owed = 0;
    }
    if (p->owed < COLL__TAG_WINDOW / 2 || p->is_crediting)
        return;
    sig = coll__tag_stamp(TAG_CREDIT, p->owed, &none);
    p->owed = 0;
    p->is_crediting = 1;
    p->credit_out.ended = credit_sent;
    coll__tag_say(tags, &p->credit_out, peer, &sig);
}

void coll__tag_credit_came(struct coll__tags *tags, struct coll__tag_step *step)
{
    tags->peers[step->xfer.peer].credit += step->xfer.sig.seq;
}

/* This rank holds the data of a SHORT message no more. */
void coll__tag_owe(struct coll__tags *tags, int peer, size_t len)
{
    tags->peers[peer].owed += coll__tag_cost(len);
    give_credit(tags, peer);
}

/* Take credit for a SHORT message of len bytes; 0: there is not enough. */
int coll__tag_has_credit(const struct coll__tags *tags, int peer, size_t len)
{
    return len <= COLL__TAG_SHORT &&
           coll__tag_cost(len) <= tags->peers[peer].credit;
}
