/* SPDX-License-Identifier: BSD-3-Clause */
/* tags.c - messages with tags over the host transports: what comes, and progress.  tags.h
 * has the protocol. */
#include "lib/tags/tags_int.h"
#include "lib/trace/log.h"

#include <stdlib.h>

#define AT_ONCE 64 /* messages of a rank in a round, before the next rank */

/* ---- messages that come ---------------------------------------------------- */

/* A SHORT message is in the buffer of its receive. */
static void stored(struct coll__tags *tags, struct coll__tag_step *step)
{
    coll__tag_owe(tags, step->xfer.peer, step->xfer.len);
    coll__tagged_finish_of(tags, step);
}

/* All of a message that no receive waited for has come. */
static void kept_came(struct coll__tags *tags, struct coll__tag_step *step)
{
    struct coll__tag_kept *kept = step->of;

    kept->is_coming = 0;
    if (!kept->recv)
        return;
    if (kept->where == TAG_IN_MEMORY)
        coll__tag_hand_over(tags, kept);
    else
        coll__tag_accept(tags, kept);
}

/* Receive the data of a message into the buffer of its receive. */
static void store(struct coll__tags *tags, struct coll__tagged *recv,
                  const struct coll__signature *sig)
{
    struct coll__xfer xfer = {.peer = recv->message.source,
                              .buf = recv->buf,
                              .len = coll__tag_bytes(&recv->message),
                              .sig = *sig};

    recv->first.of = recv;
    coll__tag_start(tags, &recv->first, &xfer, 0);
}

/* Receive a message, or its announcement, into an envelope. */
static int receive_apart(struct coll__tags *tags, struct coll__tagged *recv,
                         const struct coll__tag_message *message,
                         const struct coll__signature *sig)
{
    int is_short = sig->op == TAG_SHORT;
    size_t len = is_short ? coll__tag_bytes(message) : 0;
    struct coll__tag_kept *kept = coll__tag_keep(tags, message, len);
    struct coll__xfer xfer = {.peer = message->source, .len = len, .sig = *sig};

    if (!kept)
        return COLL_ERR_NOMEM;
    kept->where = is_short ? TAG_IN_MEMORY : TAG_AT_SENDER;
    kept->recv = recv;
    kept->is_coming = 1;
    if (!recv)
        coll__tag_wait(tags, kept);
    kept->step.ended = kept_came;
    kept->step.of = kept;
    xfer.buf = kept->bytes;
    coll__tag_start(tags, &kept->step, &xfer, 0);
    return COLL_OK;
}

/* A message has come, or is announced. */
static int message_came(struct coll__tags *tags, int source,
                        const struct coll__signature *sig)
{
    struct coll__tag_message message = {source, sig->root,
                                        (enum coll_type)sig->type, sig->count,
                                        (uint32_t)sig->seq};
    struct coll__envelope *receive =
        coll__match_message(&tags->matcher, source, message.tag);
    struct coll__tagged *recv = receive ? receive->owner : NULL;

    if (!recv || !coll__tag_fits(tags, recv, &message) ||
        sig->op == TAG_ANNOUNCE)
        return receive_apart(tags, recv, &message, sig);
    recv->n_open = 1;
    recv->first.ended = stored;
    store(tags, recv, sig);
    return COLL_OK;
}

/* The peer accepts a message. */
static int accept_came(struct coll__tags *tags, int peer,
                       const struct coll__signature *sig)
{
    struct coll__tagged *send =
        coll__tagged_find(&tags->peers[peer].announced, (uint32_t)sig->seq);

    if (!send)
        return COLL_ERR_INTERNAL;
    coll__tag_hear(tags, &send->second, peer, sig);
    return COLL_OK;
}

/* The data of an accepted message come. */
static int data_came(struct coll__tags *tags, int peer,
                     const struct coll__signature *sig)
{
    struct coll__tagged *recv =
        coll__tagged_find(&tags->peers[peer].accepted, (uint32_t)sig->seq);

    if (!recv)
        return COLL_ERR_INTERNAL;
    recv->first.ended = coll__tagged_finish_of;
    store(tags, recv, sig);
    return COLL_OK;
}

static int came(struct coll__tags *tags, int peer,
                const struct coll__signature *sig)
{
    struct coll__tag_peer *p = &tags->peers[peer];
    int rc = COLL_ERR_INTERNAL;

    switch ((enum coll__tag_kind)sig->op) {
    case TAG_SHORT:
    case TAG_ANNOUNCE:
        rc = message_came(tags, peer, sig);
        break;
    case TAG_ACCEPT:
        rc = accept_came(tags, peer, sig);
        break;
    case TAG_LONG:
        rc = data_came(tags, peer, sig);
        break;
    case TAG_CREDIT:
        p->credit_in.ended = coll__tag_credit_came;
        coll__tag_hear(tags, &p->credit_in, peer, sig);
        rc = COLL_OK;
    }
    if (rc == COLL_ERR_INTERNAL)
        log_error("tags",
                  "rank %d sent a message of kind %u that nothing here waits "
                  "for; check that every rank runs the same libcoll",
                  peer, (unsigned)sig->op);
    return rc;
}

/* ---- progress -------------------------------------------------------------- */

/* Go on with what has ended. */
static int collect(struct coll__tags *tags, int *moved)
{
    struct coll__xfer *xfer;

    while ((xfer = coll__ended_take(&tags->ended))) {
        struct coll__tag_step *step = xfer->owner;

        if (xfer->status < 0) {
            tags->fault = xfer;
            return xfer->status;
        }
        *moved = 1;
        step->ended(tags, step);
    }
    return COLL_OK;
}

/* Look at what has come from a rank. */
int coll__tags_look(struct coll__tags *tags, int peer, int *moved)
{
    struct coll__tp *tp = tags->routes->to[peer];
    struct coll__signature sig;
    int rc = COLL_OK;

    for (int n = 0; n < AT_ONCE && rc == COLL_OK &&
                    tp->ops->peek(tp, peer, tags->channel, &sig);
         n++) {
        *moved = 1;
        rc = came(tags, peer, &sig);
        if (rc == COLL_OK)
            rc = collect(tags, moved);
    }
    return rc;
}

int coll__tags_move(struct coll__tags *tags, int *moved)
{
    int rc;

    if (tags->status)
        return tags->status;
    rc = collect(tags, moved);
    if (!tags->n_running)
        return rc;
    tags->next = (tags->next + 1) % tags->size;
    for (int i = 0; i < tags->size && rc == COLL_OK; i++) {
        int peer = (tags->next + i) % tags->size;

        if (peer != tags->rank)
            rc = coll__tags_look(tags, peer, moved);
    }
    return rc;
}

/* ---- the whole ------------------------------------------------------------- */

int coll__tags_create(const struct coll__routes *routes, int rank, int size,
                      int channel, struct coll__tags **out)
{
    struct coll__tags *tags = calloc(1, sizeof(*tags));

    if (!tags)
        return COLL_ERR_NOMEM;
    *tags = (struct coll__tags){
        .rank = rank, .size = size, .channel = channel, .routes = routes};
    tags->peers = calloc((size_t)size, sizeof(*tags->peers));
    if (!tags->peers || coll__matcher_init(&tags->matcher, size)) {
        free(tags->peers);
        free(tags);
        return COLL_ERR_NOMEM;
    }
    for (int r = 0; r < size; r++)
        tags->peers[r].credit = COLL__TAG_WINDOW;
    coll__tags_reset(tags);
    *out = tags;
    return COLL_OK;
}

void coll__tags_reset(struct coll__tags *tags)
{
    while (tags->all)
        coll__tag_let_go(tags, tags->all);
    coll__match_forget(&tags->matcher);
    for (int r = 0; r < tags->size; r++) {
        coll__tagged_clear(&tags->peers[r].announced);
        coll__tagged_clear(&tags->peers[r].accepted);
    }
    coll__ended_init(&tags->ended);
    coll__tagged_clear(&tags->done);
    tags->n_running = 0;
    tags->kept = 0;
}

void coll__tags_destroy(struct coll__tags *tags)
{
    struct coll__tag_kept *kept;

    if (!tags)
        return;
    while ((kept = tags->all)) {
        tags->all = kept->next;
        free(kept);
    }
    while ((kept = tags->spare)) {
        tags->spare = kept->next;
        free(kept);
    }
    coll__matcher_fini(&tags->matcher);
    free(tags->peers);
    free(tags);
}

int coll__tags_left(const struct coll__tags *tags,
                    struct coll__tag_message *message)
{
    const struct coll__envelope *left =
        coll__match_look(&tags->matcher, COLL_ANY_RANK, COLL_ANY_TAG);
    const struct coll__tag_kept *kept = left ? left->owner : NULL;

    if (kept)
        *message = kept->message;
    return kept != NULL;
}
