/* SPDX-License-Identifier: BSD-3-Clause */
/* transport.h - how a span of bytes gets from one rank to another.
 *
 * A transport is one file and one line in list.c.  Two ranks have some channels
 * between them, each with an order of its own: messages of one arrive in the order
 * in which they were sent, a receive takes the next message of its peer and
 * channel, and what is not taken on one channel holds up none of the others.
 * send() and recv() never block: they start a transfer, poll() moves everything on,
 * and a transfer is done when its status is no longer COLL_IN_PROGRESS, as
 * coll__xfer_end() says within one of these calls.  Many
 * transfers may be under way at once, several of them to the same peer.  A
 * transport never sees a plan or a collective.
 *
 * Flow control is the transport's own: a slow receiver holds its senders up and
 * never costs memory without bound.  All calls on one struct coll__tp come from
 * one thread at a time.  Every transport passes tests/transports/conform.c.
 */
#ifndef COLL_TRANSPORTS_TRANSPORT_H
#define COLL_TRANSPORTS_TRANSPORT_H

#include "lib/device/kernel.h"
#include "lib/topo/peer.h"
#include "lib/type/head.h"

#include <stdatomic.h>
#include <string.h>

/* Between two ranks.  The first goes first: poll() moves all that it can of that
 * one, and of each other one a share that takes no longer than some 10 us each way;
 * none waits for another one's end. */
#define COLL__CHANNELS 5

/* What the bytes of a message are; how they travel is the transport's choice. */
struct coll__bytes {
    /* Those of one name, not 0, are the same ones: what a receive stores goes out
     * next in the sends of its name, and one copy may do for all of these. */
    uint64_t name;
    size_t beside; /* so many the ranks of the host read and write in this call:
                    * they compete for its caches */
    /* A send's: its receiver alone gets them and stores them, while every rank
     * does as much for others; and this rank copies them for itself, too. */
    unsigned is_exchange : 1, is_copied : 1;
    unsigned is_final : 1; /* a receive's: it is read no more in this call */
};

/* Transfers that have ended, the earliest first, for whoever started them to
 * collect: so its work is by what has ended, not by what is under way. */
struct coll__ended {
    struct coll__xfer *first, **last;
};

/* One message under way.  The caller's storage, untouched by the caller while
 * status is COLL_IN_PROGRESS, and while it is among those that have ended. */
struct coll__xfer {
    int status;
    int peer, channel;
    void *buf; /* a send only reads it */
    size_t len;
    struct coll__head head;  /* a send's stamp; what a receive must match */
    coll__reduce_fn *reduce; /* a receive's: NULL stores the message instead */
    const void *with; /* a reducing receive's: buf = reduce(with, message); it
                       * is buf itself, or does not overlap it */
    struct coll__bytes bytes;
    struct coll__ended *ended; /* that it joins when it has ended; NULL: who
                                * started it looks at the status */
    struct coll__xfer *next_ended;
    void *owner;             /* the caller's */
    struct coll__head got;   /* after COLL_ERR_MISMATCH: what came instead */
    uint64_t got_len;

    struct coll__xfer *next; /* this and below: the transport's */
    size_t done;
    void *priv;
};

/* What joins two ranks: time for n bytes = alpha + n * beta. */
struct coll__link {
    double alpha; /* s */
    double beta;  /* s a byte */
    double gap;   /* s from one message to the next; 0: a part of alpha */
    /* The part of beta that is spent once for all receivers, where several get
     * the same bytes; 0: there is none. */
    double once;
    /* Of a link between hosts: s a byte of all that leaves by its device at
     * once, 0: beta; the device, and whether these come from what it is rather
     * than from a guess. */
    double share;
    double
        both; /* of the same: how many times as long bytes take that meet as many
                  * others; 0: as long */
    char via[48];
    int is_known;
};

/* What a transport may use while it opens. */
struct coll__tp_env {
    int rank, size;
    const struct coll__peer *peers; /* [size] */
    /* Gather len bytes from each rank, in rank order; collective over all
     * ranks.  Every rank calls it equally often, or fails open(). */
    int (*allgather)(void *arg, const void *in, size_t len, void *out);
    void *arg;
    double timeout; /* s, of each wait for the other ranks */
    /* Not 0 once the communicator has failed, which another thread notices: the
     * other ranks' messages are not wanted then.  NULL: nobody says so. */
    const atomic_int *failure;
    int is_rdma_alone;           /* other ways are for another transport */
    const unsigned char *secret; /* [32] of the communicator: its ranks alone
                                  * know it, and no two transports have one */
};

/* The transport's state for one communicator; the first member of its own. */
struct coll__tp {
    const struct coll__transport *ops;
    int rank, size;
    unsigned generation; /* of the process that opened it (lib/util/lock.h) */
    size_t eager; /* put() and take() are for messages up to this length */
    int ahead; /* and, while no transfer is under way, for so many at a time
                * between two ranks: then put() needs nobody's help.  0: none */
    size_t shared;  /* bytes that the ranks of a host have together */
    uint32_t found; /* what open() found of the others, for settle() */
    int asks_kernel; /* a look at a peer is a system call, as dear as a yield */
    unsigned
        n_woken; /* ranks that slept and that it has woken, so far: what comes
                       * of it takes longer than a message */
    /* [size]: 1 + the core on which each rank waited last, 0 while that is not
     * known, in memory that all of them see; each stores its own, with no order to
     * anything else.  NULL of those out of reach, and where nobody says it. */
    atomic_int **waits_on;
};

/* What a rank that has polled in vain for long may sleep on: until the word is
 * no longer `value`, or the file can be read.  Neither: nothing comes by that
 * transport but what this rank sends itself. */
struct coll__bell {
    atomic_int *word; /* in memory that others share: who changes it wakes who
                       * sleeps on it (lib/util/futex.h); or NULL */
    int value;
    int fd; /* for poll(2) to be read; or -1 */
};

struct coll__transport {
    const char *name; /* "shm" */
    const char *what; /* one line */

    /* What upper layers need to know of it. */
    int is_own;       /* it reaches the rank itself and nobody else */
    int spans_hosts;  /* it reaches ranks of other hosts */
    int is_encrypted; /* between hosts, if COLL_NET_ENCRYPT=1 asks for it */
    int needs_rdma;   /* without RDMA another transport that spans hosts is better */

    /* Say whether this machine lets it work: COLL_OK, or a status and why
     * (reason and remedy, len bytes at most).  Needs no communicator. */
    int (*usable)(char *why, size_t len);

    /* Join the ranks; collective.  On success *tp is the caller's, to be
     * closed; on failure (logged) nothing remains.  settle() is to follow. */
    int (*open)(const struct coll__tp_env *env, struct coll__tp **tp);

    /* Hear what each rank has found, found[size], when all have opened: what it
     * means is the transport's own.  Before that reaches() takes the others to
     * have found what this rank has, which saves an exchange where it is so;
     * nothing is sent or received yet. */
    int (*settle)(struct coll__tp *tp, const uint32_t *found);

    /* Leave.  With is_orderly every rank is known to have come here and all
     * transfers are done; else drop whatever is under way.  In a child of the
     * process that opened it, free memory and do nothing that others notice. */
    void (*close)(struct coll__tp *tp, int is_orderly);

    /* COLL_OK and the link's cost, or COLL_ERR_PEER: cannot reach that rank. */
    int (*reaches)(struct coll__tp *tp, int peer, struct coll__link *link);

    void (*send)(struct coll__tp *tp, struct coll__xfer *xfer);
    void (*recv)(struct coll__tp *tp, struct coll__xfer *xfer);

    /* The same at once or not at all, between ranks that have no other
     * transfer under way in that direction.  put() returns 1, and the message
     * is on its way, or 0: nothing happened.  take() returns COLL_OK, xfer is
     * done; COLL_IN_PROGRESS: nothing happened; or COLL_ERR_MISMATCH. */
    int (*put)(struct coll__tp *tp, struct coll__xfer *xfer);
    int (*take)(struct coll__tp *tp, struct coll__xfer *xfer);

    /* Move everything on without blocking; the number of transfers that
     * finished or moved, or a negative status (logged) when it broke. */
    int (*poll)(struct coll__tp *tp);

    /* Say that this rank is about to sleep, and on what: *bell, which is {0} but
     * for fd -1 before.  What one more poll() does not find then rings it, be it
     * a message, room for one, or a failure.  Returns 1; or 0: not for sure, or
     * not at all, so look again within a millisecond.  May be called again,
     * which costs no system call while it has not rung. */
    int (*arm)(struct coll__tp *tp, struct coll__bell *bell);

    /* Show the head of the next message from peer on that channel that has arrived
     * and that no receive has taken: 1 and *head, or 0.  For diagnosis, and quick
     * where `waits_on` is there. */
    int (*peek)(struct coll__tp *tp, int peer, int channel,
                struct coll__head *head);
};

/* The number of a channel to or from a rank, of n ranks. */
static inline int coll__lane(int channel, int rank, int n)
{
    return channel * n + rank;
}

/* Of a transport whose ranks know all after open(). */
int coll__no_settle(struct coll__tp *tp, const uint32_t *found);

/* Of a transport that has no eager messages. */
int coll__no_put(struct coll__tp *tp, struct coll__xfer *xfer);
int coll__no_take(struct coll__tp *tp, struct coll__xfer *xfer);

/* Of a transport that rings no bell. */
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

/* The transfer has ended: it is its caller's again, so the transport has let go
 * of it, or does before it returns. */
static inline void coll__xfer_end(struct coll__xfer *xfer, int status)
{
    xfer->status = status;
    if (!xfer->ended)
        return;
    xfer->next_ended = NULL;
    *xfer->ended->last = xfer;
    xfer->ended->last = &xfer->next_ended;
}

/* Say whether a message with this head and length is what xfer waits for; if
 * not, record what came in xfer->got. */
static inline int coll__xfer_fits(struct coll__xfer *xfer,
                                  const struct coll__head *head, uint64_t len)
{
    if (len == xfer->len && !memcmp(head, &xfer->head, sizeof(*head)))
        return 1;
    xfer->got = *head;
    xfer->got_len = len;
    return 0;
}

#endif
