/* SPDX-License-Identifier: BSD-3-Clause */
/* tags_int.h - what the files of lib/tags share: tags.h has the protocol. */
#ifndef COLL_LIB_TAGS_TAGS_INT_H
#define COLL_LIB_TAGS_TAGS_INT_H

#include "lib/tags/tags.h"

/* What a message of the channel is: sig.op.  sig.root is the tag, sig.count the count.
 * sig.seq is the message's number, or the bytes of a CREDIT. */
enum coll__tag_kind {
    TAG_SHORT = 1,
    TAG_ANNOUNCE,
    TAG_ACCEPT,
    TAG_LONG,
    TAG_CREDIT
};

/* Where the data of a message are that no receive has taken, or has only just taken. */
enum coll__tag_where {
    TAG_IN_MEMORY, /* in `bytes`, or on their way there */
    TAG_AT_SENDER, /* it was announced */
    TAG_AT_HOME,   /* in the buffer of a send of this rank to itself */
};

struct coll__tag_kept {
    struct coll__tag_message message;
    struct coll__envelope envelope;
    enum coll__tag_where where;
    struct coll__tagged *send; /* TAG_AT_HOME */
    struct coll__tagged *recv; /* that has taken it before it was all there */
    int is_coming;             /* `step` has not ended */
    struct coll__tag_step step;
    struct coll__tag_kept *next, **at; /* among all or, next, the spare ones */
    unsigned char bytes[];
};

struct coll__tag_peer {
    size_t credit; /* bytes of SHORT messages that this rank may send */
    size_t owed;   /* bytes of credit to be returned to the peer */
    uint32_t n_sent;
    struct coll__tagged_list announced; /* sends, until the peer accepts */
    struct coll__tagged_list accepted;  /* receives, until the data come */
    struct coll__tag_step credit_in, credit_out;
    int is_crediting;
};

static inline size_t coll__tag_bytes(const struct coll__tag_message *message)
{
    return message->count * coll_type_size(message->type);
}

static inline size_t coll__tag_cost(size_t len) { return len + COLL__TAG_COST; }

/* ---- tags_step.c ----------------------------------------------------------- */

void coll__tagged_clear(struct coll__tagged_list *list);
void coll__tagged_append(struct coll__tagged_list *list,
                         struct coll__tagged *tagged);

/* Take out the one with that number; NULL: there is none. */
struct coll__tagged *coll__tagged_find(struct coll__tagged_list *list,
                                       uint32_t number);

/* It has ended.  The second one is for a step whose `of` it is: one of its transfers has
 * ended. */
void coll__tagged_finish(struct coll__tags *tags, struct coll__tagged *tagged);
void coll__tagged_finish_of(struct coll__tags *tags,
                            struct coll__tag_step *step);

struct coll__signature coll__tag_stamp(enum coll__tag_kind kind, uint64_t seq,
                                       const struct coll__tag_message *message);

/* Start a transfer with a rank: step->ended and step->of are set. */
void coll__tag_start(struct coll__tags *tags, struct coll__tag_step *step,
                     const struct coll__xfer *xfer, int is_send);

/* Send a message without data; receive one, which has come. */
void coll__tag_say(struct coll__tags *tags, struct coll__tag_step *step,
                   int peer, const struct coll__signature *sig);
void coll__tag_hear(struct coll__tags *tags, struct coll__tag_step *step,
                    int peer, const struct coll__signature *sig);

/* This rank holds the data of a SHORT message no more: return credit once half of it is
 * owed.  credit_came: the peer has returned some. */
void coll__tag_owe(struct coll__tags *tags, int peer, size_t len);
void coll__tag_credit_came(struct coll__tags *tags,
                           struct coll__tag_step *step);

/* May this rank send a message of len bytes as a SHORT one? */
int coll__tag_has_credit(const struct coll__tags *tags, int peer, size_t len);

/* ---- tags_recv.c ----------------------------------------------------------- */

/* Make an envelope with memory for len bytes; NULL: there is none, logged. */
struct coll__tag_kept *coll__tag_keep(struct coll__tags *tags,
                                      const struct coll__tag_message *message,
                                      size_t len);

/* Have the message wait for a receive. */
void coll__tag_wait(struct coll__tags *tags, struct coll__tag_kept *kept);

/* The receive takes the message: does it get the data? */
int coll__tag_fits(struct coll__tags *tags, struct coll__tagged *recv,
                   const struct coll__tag_message *message);

/* All of a kept message is there, and a receive has taken it. */
void coll__tag_hand_over(struct coll__tags *tags, struct coll__tag_kept *kept);

/* Tell the sender that a receive has taken its message.  A count of 0 says that the data
 * are not wanted, or that there are none. */
void coll__tag_accept(struct coll__tags *tags, struct coll__tag_kept *kept);

/* A receive takes a message of this rank to itself. */
void coll__tag_copy_home(struct coll__tags *tags, struct coll__tagged *recv,
                         struct coll__tagged *send);

/* Free an envelope, or have it serve again. */
void coll__tag_let_go(struct coll__tags *tags, struct coll__tag_kept *kept);

/* ---- tags.c ---------------------------------------------------------------- */

/* Look at what has come from a rank; a status, as coll__tags_move(). */
int coll__tags_look(struct coll__tags *tags, int peer, int *moved);

#endif
