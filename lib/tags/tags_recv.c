/* SPDX-License-Identifier: BSD-3-Clause */
/* tags_recv.c - receives of messages with tags, and messages that wait for one. */
#include "lib/tags/tags_int.h"
#include "lib/trace/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages that wait ---------------------------------------------------- */

/* Make an envelope with memory for len bytes; NULL: there is none, logged. */
struct coll__tag_kept *coll__tag_keep(struct coll__tags *tags,
                                      const struct coll__tag_message *message,
                                      size_t len)
{
    struct coll__tag_kept *kept = len ? NULL : tags->spare;

    if (kept)
        tags->spare = kept->next;
    else
        kept = malloc(sizeof(*kept) + len);
    if (!kept) {
        log_error("tags",
                  "no memory for a message of %zu bytes from rank %d, which "
                  "no receive has asked for; free some",
                  len, message->source);
        return NULL;
    }
    *kept = (struct coll__tag_kept){
        .message = *message,
        .envelope = {.source = message->source, .tag = message->tag}};
    kept->envelope.owner = kept;
    kept->next = tags->all;
    kept->at = &tags->all;
    if (kept->next)
        kept->next->at = &kept->next;
    tags->all = kept;
    return kept;
}

void coll__tag_let_go(struct coll__tags *tags, struct coll__tag_kept *kept)
{
    size_t len = coll__tag_bytes(&kept->message);

    *kept->at = kept->next;
    if (kept->next)
        kept->next->at = kept->at;
    if (kept->where == TAG_IN_MEMORY && len) {
        free(kept);
        return;
    }
    kept->next = tags->spare;
    tags->spare = kept;
}

void coll__tag_wait(struct coll__tags *tags, struct coll__tag_kept *kept)
{
    coll__match_keep(&tags->matcher, &kept->envelope);
    if (kept->where == TAG_IN_MEMORY)
        tags->kept += coll__tag_bytes(&kept->message);
}

/* ---- a receive takes a message --------------------------------------------- */

/* The receive takes the message: does it get the data? */
int coll__tag_fits(struct coll__tags *tags, struct coll__tagged *recv,
                   const struct coll__tag_message *message)
{
    _Atomic uint64_t *n = &tags->n_received[message->source];

    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    recv->message = *message;
    if (message->type != recv->type)
        recv->status = COLL_ERR_MISMATCH;
    else if (message->count > recv->count)
        recv->status = COLL_ERR_TRUNCATED;
    return !recv->status;
}

static void copy(struct coll__tagged *recv, const void *from)
{
    size_t len = coll__tag_bytes(&recv->message);

    if (!recv->status && len)
        memmove(recv->buf, from, len);
}

/* All of a kept message is there, and a receive has taken it. */
void coll__tag_hand_over(struct coll__tags *tags, struct coll__tag_kept *kept)
{
    struct coll__tagged *recv = kept->recv;

    copy(recv, kept->bytes);
    coll__tag_owe(tags, kept->message.source, coll__tag_bytes(&kept->message));
    coll__tag_let_go(tags, kept);
    coll__tagged_finish(tags, recv);
}

/* Tell the sender that a receive has taken its message.  A count of 0 says that the data
 * are not wanted, or that there are none. */
void coll__tag_accept(struct coll__tags *tags, struct coll__tag_kept *kept)
{
    struct coll__tagged *recv = kept->recv;
    struct coll__tag_message wanted = kept->message;
    int source = wanted.source;
    struct coll__signature sig;

    wanted.count = recv->status ? 0 : wanted.count;
    sig = coll__tag_stamp(TAG_ACCEPT, wanted.number, &wanted);
    recv->n_open = 1 + (wanted.count > 0);
    if (wanted.count)
        coll__tagged_append(&tags->peers[source].accepted, recv);
    coll__tag_let_go(tags, kept);
    recv->second.ended = coll__tagged_finish_of;
    recv->second.of = recv;
    coll__tag_say(tags, &recv->second, source, &sig);
}

/* A message of this rank to itself. */
void coll__tag_copy_home(struct coll__tags *tags, struct coll__tagged *recv,
                         struct coll__tagged *send)
{
    copy(recv, send->buf);
    coll__tagged_finish(tags, send);
    coll__tagged_finish(tags, recv);
}

/* A receive takes a message that waits. */
static void take_kept(struct coll__tags *tags, struct coll__tagged *recv,
                      struct coll__tag_kept *kept)
{
    coll__tag_fits(tags, recv, &kept->message);
    kept->recv = recv;
    if (kept->where == TAG_IN_MEMORY)
        tags->kept -= coll__tag_bytes(&kept->message);
    if (kept->is_coming)
        return;
    if (kept->where == TAG_IN_MEMORY) {
        coll__tag_hand_over(tags, kept);
    } else if (kept->where == TAG_AT_SENDER) {
        coll__tag_accept(tags, kept);
    } else {
        coll__tag_copy_home(tags, recv, kept->send);
        coll__tag_let_go(tags, kept);
    }
}

void coll__tags_recv(struct coll__tags *tags, struct coll__tagged *recv)
{
    struct coll__envelope *message =
        coll__match_receive(&tags->matcher, recv->peer, recv->tag);

    recv->status = COLL_OK;
    tags->n_running++;
    if (message) {
        take_kept(tags, recv, message->owner);
        return;
    }
    recv->receive = (struct coll__envelope){
        .source = recv->peer, .tag = recv->tag, .owner = recv};
    coll__match_post(&tags->matcher, &recv->receive);
}
