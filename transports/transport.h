/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.h - how a span of bytes gets from one rank to another.
 *
 * A transport is one file and one line in list.c.  Two ranks have several channels
 * between them.  Messages of one channel arrive in the order in which they were sent, and
 * a receive takes the next message of its peer and channel.  Messages that wait on one
 * channel do not hold up another channel. send() and recv() never block: they start a
 * transfer, and poll() moves all transfers.  A transfer is done when its status is no
 * longer COLL_IN_PROGRESS; the transport sets it by coll__xfer_end() within one of these
 * calls.  Many transfers may be under way at once, several of them to the same peer.  A
 * transport never sees a plan or a collective.
 *
 * Each transport has its own flow control: a slow receiver holds its senders up and never
 * costs memory without bound.  All calls on one struct coll__tp come from one thread at a
 * time.  Every transport passes tests/transports/conform.c.
 */
#ifndef COLL_TRANSPORTS_TRANSPORT_H
#define COLL_TRANSPORTS_TRANSPORT_H

#include "lib/device/kernel.h"
#include "lib/topo/peer.h"
#include "lib/type/signature.h"

#include <stdatomic.h>
#include <string.h>

/* Channels between two ranks.  Channel 0 has priority: poll() moves as much of it as
 * possible, and of each other channel a share that takes some 10 us at most in each
 * direction.  No channel waits until another is finished. */
#define COLL__CHANNELS 9

/* Hints about a message's bytes; the transport chooses how they travel. */
struct coll__bytes {
    /* Messages with the same name (not 0) carry the same bytes: what the receive with a
     * name stores, the sends with that name send next.  So one copy may serve them
     * all. */
    uint64_t name;
    size_t beside; /* bytes that the host's ranks read and write in this call; they
                    * compete for its caches */
    /* For a send.  is_exchange: only one receiver gets these bytes and stores them, and
     * every rank sends and receives as much.  is_copied: this rank also copies its own
     * part of the data. */
    unsigned is_exchange : 1, is_copied : 1;
    unsigned is_final : 1; /* for a receive: this call does not read the bytes again */
};

/* Transfers that have ended, the earliest first, for the caller to collect: so its work
 * depends on how many have ended, not on how many are under way. */
struct coll__ended {
    struct coll__xfer *first, **last;
};

/* One message under way.  The caller owns the storage, and does not touch it while status
 * is COLL_IN_PROGRESS or while it is in the list of ended transfers. */
struct coll__xfer {
    int status;
    int peer, channel;
    void *buf; /* a send only reads it */
    size_t len;
    struct coll__signature
        sig; /* a send's signature; a receive's must be the same */
    coll__reduce_fn *reduce; /* for a receive; NULL: store the message */
    const void *with; /* for a reducing receive: buf = reduce(with, message); `with` is
                       * buf, or does not overlap it */
    struct coll__bytes bytes;
    struct coll__ended *ended; /* the list that it joins when it has ended; NULL: the
                                * caller looks at the status */
    struct coll__xfer *next_ended;
    void *owner;             /* the caller's */
    struct coll__signature
        got; /* after COLL_ERR_MISMATCH: the one that came instead */
    uint64_t got_len;

    struct coll__xfer *next; /* this and below: the transport's */
    size_t done;
    void *priv;
};

/* The cost of a link between two ranks: time for n bytes = alpha + n * beta. */
struct coll__link {
    double alpha; /* s */
    double beta;  /* s a byte */
    double gap;   /* s from one message to the next; 0: alpha includes it */
    /* The part of beta that is spent once for all receivers if several get the same
     * bytes; 0: none. */
    double once;
    /* For a link between hosts: s a byte, counting all bytes that leave by its device at
     * once (0: beta); the device; and whether these are the device's own values rather
     * than a guess. */
    double share;
    double
        both; /* for such a link: how many times longer bytes take while as many go the
               * other way; 0: no longer */
    char via[48];
    int is_known;
};

/* What a transport may use while it opens. */
struct coll__tp_env {
    int rank, size;
    const struct coll__peer *peers; /* [size] */
    /* Gather len bytes from each rank, in rank order; collective over all ranks.  Every
     * rank calls it the same number of times, or fails in open(). */
    int (*allgather)(void *arg, const void *in, size_t len, void *out);
    void *arg;
    double timeout; /* s, for each wait for the other ranks */
    /* Returns not 0 once the communicator has failed, as another thread notices: the
     * other ranks' messages are not wanted any more.  NULL: no such check. */
    const atomic_int *failure;
    int is_rdma_alone;           /* use RDMA alone: other links are left to another
                                  * transport */
    const unsigned char *secret; /* [32] the communicator's secret, known to its ranks
                                  * only; each transport has another one */
};

/* The transport's state for one communicator; the first member of its own. */
struct coll__tp {
    const struct coll__transport *ops;
    int rank, size;
    unsigned generation; /* of the process that opened it (lib/util/lock.h) */
    size_t eager; /* put() and take() accept messages up to this length */
    int ahead; /* how many put() between two ranks need no action of the receiver while no
                * transfer is under way; 0: none do */
    size_t shared;  /* bytes that the ranks of a host share */
    uint32_t found; /* open()'s findings about the other ranks, for settle() */
    int asks_kernel; /* a poll is a system call, as expensive as a yield */
    unsigned
        n_woken; /* how many sleeping ranks it has woken so far; an answer from such a
                  * rank takes longer */
    /* [size]: a number that each rank publishes in shared memory, 0 at first.  Each rank
     * stores its own, without ordering; the engine that does so knows what it means
     * (lib/exec/listed.c).  NULL: this transport has no shared memory; a NULL entry: that
     * rank is out of reach. */
    atomic_int **published;
};

/* What an idle rank may sleep on: until the word is no longer `value`, or the file can be
 * read.  Neither: this transport delivers only messages of the rank to itself. */
struct coll__bell {
    atomic_int *word; /* in shared memory: a rank that changes it wakes the sleeper
                       * (lib/util/futex.h); or NULL */
    int value;
    int fd; /* for poll(2) to be read; or -1 */
};

struct coll__transport {
    const char *name; /* "shm" */
    const char *what; /* one line */

    /* Properties that upper layers need. */
    int is_own;       /* it reaches only the rank itself */
    int spans_hosts;  /* it reaches ranks of other hosts */
    int is_encrypted; /* between hosts, if COLL_NET_ENCRYPT=1 asks for it */
    int needs_rdma;   /* without RDMA, another transport between hosts is better */

    /* Can the transport work on this machine?  COLL_OK, or a status and why (reason and
     * remedy, len bytes at most).  Needs no communicator. */
    int (*usable)(char *why, size_t len);

    /* Join the ranks; collective.  On success *tp is the caller's, to be closed; on
     * failure (logged) nothing remains. settle() must follow. */
    int (*open)(const struct coll__tp_env *env, struct coll__tp **tp);

    /* Take every rank's findings, found[size], after all have opened; the transport
     * defines their meaning.  Until then reaches() assumes that all ranks have found the
     * same as this rank, which saves an exchange if they have.  Nothing is sent or
     * received before. */
    int (*settle)(struct coll__tp *tp, const uint32_t *found);

    /* Close.  With is_orderly, every rank has called close() and all transfers are
     * done; else drop all that is under way.  In a child of the process that opened it,
     * free memory and do nothing that other ranks notice. */
    void (*close)(struct coll__tp *tp, int is_orderly);

    /* COLL_OK and the link's cost, or COLL_ERR_PEER: cannot reach that rank. */
    int (*reaches)(struct coll__tp *tp, int peer, struct coll__link *link);

    void (*send)(struct coll__tp *tp, struct coll__xfer *xfer);
    void (*recv)(struct coll__tp *tp, struct coll__xfer *xfer);

    /* Send or receive at once or not at all, between ranks that have no other transfer
     * under way in that direction. put() returns 1 if the message is under way, or 0 if
     * nothing happened. take() returns COLL_OK if xfer is done, COLL_IN_PROGRESS if
     * nothing happened, or COLL_ERR_MISMATCH. */
    int (*put)(struct coll__tp *tp, struct coll__xfer *xfer);
    int (*take)(struct coll__tp *tp, struct coll__xfer *xfer);

    /* Move all transfers without blocking.  Returns the number of transfers that finished
     * or moved, or a negative status (logged) if the transport broke. */
    int (*poll)(struct coll__tp *tp);

    /* Announce that this rank is about to sleep, and set *bell, which must be {0} with fd
     * -1, to what it may sleep on.  Afterwards poll() must be called once more; anything
     * that it does not find rings the bell: a message, space for one, or a failure.
     * Returns 1, or 0 if the bell may not ring: then poll again within a millisecond.  A
     * repeated call costs no system call while the bell has not rung. */
    int (*arm)(struct coll__tp *tp, struct coll__bell *bell);

    /* Look at the next message from peer on that channel that has arrived and that no
     * receive has taken: 1 and *sig, or 0 also while a receive is under way there.  Fast
     * if `published` is set.  For diagnosis, and for lib/tags, which posts each receive
     * when its message shows; arm()'s bell rings for such messages, too. */
    int (*peek)(struct coll__tp *tp, int peer, int channel,
                struct coll__signature *sig);
};

/* Return the index of a channel to or from a rank, among n ranks. */
static inline int coll__lane(int channel, int rank, int n)
{
    return channel * n + rank;
}

/* settle() for a transport whose ranks know everything after open(). */
int coll__no_settle(struct coll__tp *tp, const uint32_t *found);

/* put() and take() for a transport without eager messages. */
int coll__no_put(struct coll__tp *tp, struct coll__xfer *xfer);
int coll__no_take(struct coll__tp *tp, struct coll__xfer *xfer);

/* arm() for a transport without a bell. */
int coll__no_arm(struct coll__tp *tp, struct coll__bell *bell);

/* All transports in order of preference, NULL at the end. */
extern const struct coll__transport *const coll__transports[];

/* Return the transport of that name, or NULL. */
const struct coll__transport *coll__transport_find(const char *name);

static inline void coll__ended_init(struct coll__ended *ended)
{
    ended->first = NULL;
    ended->last = &ended->first;
}

/* Take the earliest out, or NULL. */
static inline struct coll__xfer *coll__ended_take(struct coll__ended *ended)
{
    struct coll__xfer *xfer = ended->first;

    if (!xfer)
        return NULL;
    ended->first = xfer->next_ended;
    if (!ended->first)
        ended->last = &ended->first;
    return xfer;
}

/* End a transfer: the caller owns it again.  The transport has dropped its references, or
 * drops them before it returns. */
static inline void coll__xfer_end(struct coll__xfer *xfer, int status)
{
    xfer->status = status;
    if (!xfer->ended)
        return;
    xfer->next_ended = NULL;
    *xfer->ended->last = xfer;
    xfer->ended->last = &xfer->next_ended;
}

/* Does a message with this signature and length match xfer?  If not, note in xfer->got what
 * came. */
static inline int coll__xfer_fits(struct coll__xfer *xfer,
                                  const struct coll__signature *sig,
                                  uint64_t len)
{
    if (len == xfer->len && !memcmp(sig, &xfer->sig, sizeof(*sig)))
        return 1;
    xfer->got = *sig;
    xfer->got_len = len;
    return 0;
}

#endif
