/* SPDX-License-Identifier: BSD-3-Clause */
/* tags_send.c - sends of messages with tags: at once, announced, or to the rank itself. */
#include "lib/tags/tags_int.h"

#include <string.h>

/* ---- sending --------------------------------------------------------------- */

/* Has the peer returned credit? */
static void look_for_credit(struct coll__tags *tags, int peer)
{
    int moved, rc = coll__tags_look(tags, peer, &moved);

    if (rc)
        tags->status = rc;
}

static void start_data(struct coll__tags *tags, struct coll__tagged *send,
                       enum coll__tag_kind kind)
{
    struct coll__xfer xfer = {
        .peer = send->peer,
        .buf = send->buf,
        .len = coll__tag_bytes(&send->message),
        .sig = coll__tag_stamp(kind, send->message.number, &send->message)};

    send->n_open = 1;
    send->first.ended = coll__tagged_finish_of;
    send->first.of = send;
    coll__tag_start(tags, &send->first, &xfer, 1);
}

/* The announcement has left, and the peer has accepted the message. */
static void accepted(struct coll__tags *tags, struct coll__tag_step *step)
{
    struct coll__tagged *send = step->of;

    if (--send->n_open)
        return;
    if (send->second.xfer.sig.count)
        start_data(tags, send, TAG_LONG);
    else
        coll__tagged_finish(tags, send);
}

static void announce(struct coll__tags *tags, struct coll__tagged *send)
{
    struct coll__tag_peer *p = &tags->peers[send->peer];
    struct coll__signature sig;

    sig = coll__tag_stamp(TAG_ANNOUNCE, send->message.number, &send->message);
    coll__tagged_append(&p->announced, send);
    send->n_open = 2;
    send->first.ended = send->second.ended = accepted;
    send->first.of = send->second.of = send;
    coll__tag_say(tags, &send->first, send->peer, &sig);
}

/* Keep a message of this rank to itself: its data too if there is credit. */
static int keep_at_home(struct coll__tags *tags, struct coll__tagged *send)
{
    size_t len = coll__tag_bytes(&send->message);
    int is_short = coll__tag_has_credit(tags, tags->rank, len);
    struct coll__tag_kept *kept =
        coll__tag_keep(tags, &send->message, is_short ? len : 0);

    if (!kept)
        return 0;
    kept->where = is_short ? TAG_IN_MEMORY : TAG_AT_HOME;
    kept->send = send;
    if (is_short) {
        if (len)
            memcpy(kept->bytes, send->buf, len);
        tags->peers[tags->rank].credit -= coll__tag_cost(len);
        coll__tagged_finish(tags, send);
    }
    coll__tag_wait(tags, kept);
    return 1;
}

static void send_home(struct coll__tags *tags, struct coll__tagged *send)
{
    struct coll__envelope *receive =
        coll__match_message(&tags->matcher, tags->rank, send->tag);

    if (!receive) {
        if (keep_at_home(tags, send))
            return;
        send->status = COLL_ERR_NOMEM;
        coll__tagged_finish(tags, send);
        return;
    }
    coll__tag_fits(tags, receive->owner, &send->message);
    coll__tag_copy_home(tags, receive->owner, send);
}

void coll__tags_send(struct coll__tags *tags, struct coll__tagged *send)
{
    size_t len = send->count * coll_type_size(send->type);

    send->status = COLL_OK;
    send->message = (struct coll__tag_message){
        tags->rank, send->tag, send->type, send->count,
        ++tags->peers[send->peer].n_sent};
    tags->n_running++;
    if (send->peer != tags->rank && len <= COLL__TAG_SHORT &&
        !coll__tag_has_credit(tags, send->peer, len))
        look_for_credit(tags, send->peer);
    if (send->peer == tags->rank) {
        send_home(tags, send);
    } else if (coll__tag_has_credit(tags, send->peer, len)) {
        tags->peers[send->peer].credit -= coll__tag_cost(len);
        start_data(tags, send, TAG_SHORT);
    } else {
        announce(tags, send);
    }
}

int coll__tags_keeps(const struct coll__tags *tags, size_t len)
{
    return coll__tag_has_credit(tags, tags->rank, len);
}
