/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx.h - what the files of the UCX transport share; no other file includes it.
 *
 * A process has one UCX worker, and one endpoint, called a link, to each worker of
 * another process, however many communicators use them. (Ranks that are threads of one
 * process have a worker each.)  A message names its communicator by the number that the
 * receiver gave to it.
 *
 * A message travels as segments of at most UCX_SEGMENT bytes; each segment is one active
 * message with a struct ucx_wire in front.  An ordered pair of ranks has a lane for each
 * channel, with segments numbered from 0.  UCX may deliver active messages of different
 * protocols out of order, so a segment waits in slot number % UCX_WINDOW of its lane
 * until all segments before it have come.
 *
 * Credits: at most UCX_WINDOW segments, and UCX_CREDIT bytes plus one segment, are under
 * way on a lane until its receiver has acknowledged them.  Further segments wait in the
 * sender's queue.  So a receiver that does not receive holds no more than that for each
 * lane. `taken`, the number of segments that a rank has finished receiving, travels on
 * every message of the opposite lane, and on a message of its own once half of either
 * credit is used up.
 *
 * All bytes are in host memory, and UCX is told so: a UCX with GPU support would
 * otherwise ask the driver about each buffer.
 *
 * Threads: each communicator may have its own thread, and UCX runs callbacks for all
 * communicators inside the calls of any of them.  So a worker, and everything that
 * belongs to it, is touched only under its lock, and `caller` is the communicator whose
 * thread holds the lock.  But the thread that started a transfer reads its status and
 * buffer without the lock.  So UCX's results for a communicator that is not the caller
 * wait in that communicator's lists until it is the caller.
 */
#ifndef COLL_TRANSPORTS_UCX_H
#define COLL_TRANSPORTS_UCX_H

#include "lib/topo/rails.h"
#include "transports/transport.h"
#include "transports/ucx_entries.h"

#include <ucp/api/ucp.h>

#include <pthread.h>

#define UCX_WINDOW 64u                /* segments, a power of two */
#define UCX_SEGMENT ((size_t)1 << 20) /* bytes; whole elements of any type */
#define UCX_CREDIT ((size_t)4 << 20)  /* bytes */
#define UCX_BOUNCES 4                 /* segments that wait to be reduced */
#define UCX_BUCKETS 256               /* a power of two */

enum ucx_kind {
    UCX_DATA = 0x636f6c00, /* between ranks of a communicator */
    UCX_ACK,
    UCX_HELLO, /* between workers: one lane of UCX is connected */
    UCX_READY, /* all lanes are */
    UCX_STAY,  /* we share no communicator any more, but this worker goes on */
    UCX_BYE    /* this worker ends */
};

/* The header of every active message; all hosts have the same byte order. */
struct ucx_wire {
    uint32_t kind;
    int32_t lane;    /* coll__lane() of the channel and the sender's rank */
    uint64_t to;     /* the receiver's number for the communicator */
    uint64_t seq;    /* of this segment */
    uint64_t taken;  /* how many segments of the opposite lane the sender has taken */
    uint64_t offset; /* of the segment in its message */
    uint64_t len;    /* of the message */
    struct coll__signature sig;
};

_Static_assert(sizeof(struct ucx_wire) == 72, "no padding on the wire");

/* A worker's name, which is unique. */
struct ucx_id {
    uint64_t words[2];
};

/* Messages between workers have the sender's name in these two fields. */
static inline struct ucx_id ucx_sender(const struct ucx_wire *wire)
{
    return (struct ucx_id){{wire->offset, wire->len}};
}

static inline int ucx_same(const struct ucx_id *a, const struct ucx_id *b)
{
    return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

/* A segment that was handed to UCX. */
struct ucx_out {
    struct ucx_wire wire; /* UCX reads it until the segment is sent */
    struct ucx_peer *peer;
    struct coll__xfer *xfer; /* NULL: no transfer waits for it any more */
    size_t n;
    int is_busy;          /* until UCX has called back */
    ucs_status_t rc;      /* while in ucx->sent */
    struct ucx_out *next; /* there */
};

enum ucx_hold {
    HOLD_NONE,   /* the slot is free */
    HOLD_UCX,    /* eager data in UCX's memory, to be released */
    HOLD_COPY,   /* eager data in copy */
    HOLD_RNDV,   /* rendezvous: still at the sender; data is UCX's descriptor */
    HOLD_MOVING, /* on its way into the receive's buffer or a bounce buffer */
    HOLD_TAKEN   /* done; free once all before it are done */
};

/* A segment that arrived. */
struct ucx_in {
    struct ucx_wire wire;
    struct ucx_peer *peer;
    enum ucx_hold hold;
    size_t n;
    void *data;
    void *copy; /* grows as needed, and is kept */
    size_t capacity;
    struct coll__xfer *xfer; /* while moving; NULL: no transfer waits any more */
    void *bounce;            /* while moving, to be reduced from */
    ucs_status_t rc;         /* while in ucx->fetched */
    struct ucx_in *next;     /* there */
};

struct ucx_queue {
    struct coll__xfer *first, **last;
};

/* Another worker. */
struct ucx_link {
    struct ucx_worker *worker; /* this side's */
    struct ucx_id id;
    struct ucx_link *next, *next_work; /* next in the worker's list of links, and in its
                                        * list of links with work */
    struct ucx_link *next_alike;       /* in the same bucket */
    void *address;                     /* NULL: heard of before it was told */
    ucp_ep_h ep;     /* NULL before the first use and after a failure */
    int status;      /* COLL_OK, or why it cannot be reached any more */
    ucs_status_t rc; /* in UCX's words */
    int rank;        /* in the communicator that made it, for log messages */
    int n_users;     /* how many ranks of open communicators are there */
    int is_listed;
    int is_spoiled; /* a communicator of both workers did not end in order, so it is
                     * unknown which messages still come */

    struct ucx_wire note; /* the message to the other worker that is under way */
    int is_noting;
    int n_flushing;            /* requests of flushing the endpoint */
    unsigned said, heard, due; /* bits 1 << (kind - UCX_DATA) */
};

/* One channel of another rank of a communicator; made at the first contact. */
struct ucx_peer {
    struct ucx *ucx;
    struct ucx_link *link; /* NULL until open() has it */
    int rank, channel;
    uint64_t to; /* the communicator's number there */
    int status;  /* COLL_OK, or why it cannot be reached any more */
    int fault;   /* the same, kept here until the communicator is the caller */
    struct ucx_peer *next_work;
    int is_listed;

    struct ucx_queue sends; /* not wholly handed to UCX */
    uint64_t sent, acked;   /* segments */
    size_t in_flight;       /* bytes of the segments between acked and sent */
    struct ucx_out out[UCX_WINDOW];

    struct ucx_queue recvs; /* not wholly matched */
    uint64_t matched, taken,
        told;      /* segments; told: the value of taken that the peer knows */
    size_t untold; /* bytes of the segments between told and taken */
    struct ucx_in in[UCX_WINDOW];

    struct ucx_wire note; /* the message without data that is under way */
    int is_noting;
};

/* What is known about each rank before the first contact. */
struct ucx_seat {
    struct ucx_link *link; /* NULL: this rank; all ranks during open() */
    uint64_t to;
};

/* A communicator. */
struct ucx {
    struct coll__tp base;
    struct ucx_worker *worker; /* NULL: this rank has no port on the communicator's RDMA
                                * network */
    const struct coll__rails *rails; /* while open() lasts */
    struct ucx *next;            /* next in the worker's list of closed communicators of
                                  * which UCX still holds something */
    uint64_t number;             /* by which others send to it */
    const atomic_int *failure;   /* of struct coll__tp_env */
    struct coll__link near, far; /* near: to ranks of this host; far: to other hosts */
    unsigned char *is_near;      /* [size] */
    unsigned char *is_reached;   /* [size]: 0: the rank is left to another transport */
    struct ucx_seat *seats;      /* [size] */
    int n_lanes;                 /* channels of all ranks */
    struct ucx_peer **peers;     /* [n_lanes], NULL before the first contact */
    struct ucx_peer *work[COLL__CHANNELS]; /* with something to do in poll() */
    struct ucx_out *sent;        /* segments that UCX sent, or failed to, while */
    struct ucx_in *fetched;      /* another was the caller; fetched ones */
    void *bounces;   /* free bounce buffers, linked through their first word */
    int n_bounces;   /* made */
    int n_under_way; /* requests that UCX will call back for */
    int moved;       /* since the last poll */
    int has_lost;    /* a link failed since the last poll */
    int has_let_go;  /* of what had come when it failed */
    int is_closing;
};

struct ucx_worker {
    pthread_mutex_t lock;
    struct ucx *caller; /* see above; NULL: the lock is held for the worker itself */
    struct ucx_worker *next;
    int index;           /* which of the process's workers, if threads are ranks */
    struct ucx_context *context;
    unsigned generation; /* of the process that made it (lib/util/lock.h) */
    int is_retired;      /* no new communicator may use it */
    int is_ending;
    int is_halted; /* UCX must not work for it any more (ucx_worker.c) */
    int n_users; /* communicators; under the lock of all workers */
    struct ucx_id id;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;

    struct ucx **comms; /* by the low half of their number, NULL: free */
    uint32_t n_comms;   /* capacity */
    uint32_t n_numbers; /* given so far */
    struct ucx_link *links, *work;
    struct ucx_link *buckets[UCX_BUCKETS]; /* the links by their names */
    struct ucx *closed;
    unsigned n_turns; /* of coll__ucx_work() */
    int n_under_way; /* requests of all communicators that UCX will call back for, without
                      * flushes */
};

static inline unsigned ucx_bit(enum ucx_kind kind)
{
    return 1u << (kind - UCX_DATA);
}

/* ---- ucx.c, ucx_open.c: of struct coll__transport ---- */

void coll__ucx_close(struct coll__tp *tp, int is_orderly);
int coll__ucx_open(const struct coll__tp_env *env, struct coll__tp **tp);

/* ---- ucx_load.c ---- */

/* UCX's functions, by name; NULL while UCX is not loaded.  Tests set their own. */
struct ucx_entries {
#define X(name) __typeof__(name) *name;
    COLL__UCX_MAP(X)
#undef X
};
extern struct ucx_entries coll__ucx;

/* Load UCX, once in a process's life.  Returns NULL if it is loaded, or the reason why
 * not, a text that stays valid.  Any thread. */
const char *coll__ucx_load(void);

/* ---- ucx_context.c ---- */

/* Is this UCX older than 1.14?  Such a UCX, as distributions build it, aborts the process
 * if a peer dies at the wrong moment: while an endpoint is being connected (its pull
 * request 8175 mends a part of this), or during an eager message of several pieces that
 * is sent without a copy. */
int coll__ucx_is_fragile(void);

/* Why UCX cannot be used in this process: it is a child of a process that has used UCX,
 * and a fork does not copy UCX's threads and connections. */
#define UCX_AFTER_FORK_TEXT                                                \
    "this process was made by fork() from one that had used UCX, which a "  \
    "fork does not copy; fork before the first communicator, run a program " \
    "of its own (exec), or do without: COLL_TRANSPORTS=self,shm"

/* One of the process's contexts: for RDMA by certain devices, or for all of UCX's
 * transports. */
struct ucx_context {
    ucp_context_h ucp;
    char devices[COLL__RAILS * 40]; /* "": all ways, TCP among them */
    int n_users;
    struct ucx_context *next;
};

/* Acquire and release the process's context for these devices; the first use loads UCX.
 * COLL_ERR_NOMEM or COLL_ERR_TRANSPORT: `why` has the reason, and nothing is logged.
 * Thread-safe. */
int coll__ucx_context_get(const struct coll__rails *rails,
                          struct ucx_context **context, char *why, size_t len);
void coll__ucx_context_put(struct ucx_context *context);

/* ---- ucx_limits.c ---- */

/* File descriptors of a process; all ranks exchange theirs. */
struct ucx_limits {
    /* n_needed: those that UCX will open; n_free: unused ones, counted up to
     * n_needed */
    int32_t n_needed, n_free;
    uint64_t limit;
};

/* Find what a communicator with that many new links needs. */
void coll__ucx_limits_get(int n_links, int is_meshed, int has_worker,
                          struct ucx_limits *limits);

/* Returns COLL_OK, or COLL_ERR_SYSTEM (logged) if that rank lacks file descriptors. */
int coll__ucx_limits_judge(const struct ucx_limits *limits, int rank);

/* Returns COLL_OK, or COLL_ERR_SYSTEM (logged) if UCX's files would exceed the file size
 * limit, which would kill this process. */
int coll__ucx_limits_for_files(void);

/* ---- ucx_worker.c ---- */

/* May UCX use TCP here? */
static inline int ucx_uses_tcp(const struct ucx_worker *worker)
{
    return !worker->context->devices[0];
}

/* Does the process have that worker for these devices already? */
int coll__ucx_worker_exists(int index, const char *devices);

/* Give the communicator the process's worker of that index for its rails (make it if
 * there is none), and a number there.  Returns a status, logged.  Thread-safe. */
int coll__ucx_worker_get(struct ucx *ucx, int index);

/* Keep later communicators from using this worker. */
void coll__ucx_worker_retire(struct ucx_worker *worker);

/* Does no other communicator use the worker?  Then no later one gets it: its peers are
 * about to be told that it ends, or not told that it stays. */
int coll__ucx_worker_retire_last(struct ucx_worker *worker);

/* The communicator has left its worker.  The worker ends with its last communicator; in
 * order if all ranks of that one are here too.  Call it without the lock. */
void coll__ucx_worker_put(struct ucx_worker *worker, int is_orderly);

/* Lock the worker for this communicator (enter), and unlock it (exit).  _try returns 0
 * if another communicator has the lock. */
void coll__ucx_enter(struct ucx *ucx);
int coll__ucx_enter_try(struct ucx *ucx);
void coll__ucx_exit(struct ucx *ucx);

/* Return the communicator with that number, or NULL. */
struct ucx *coll__ucx_find(const struct ucx_worker *worker, uint64_t number);

/* Remove the communicator from the table.  Returns 1 if none of its requests is under
 * way, so that the caller frees it; else the worker will free it. */
int coll__ucx_forget(struct ucx *ucx);

/* Free a communicator that has left its worker. */
void coll__ucx_free(struct ucx *ucx);

/* Has the communicator failed? */
static inline int ucx_has_failed(const struct ucx *ucx)
{
    return ucx->failure &&
           atomic_load_explicit(ucx->failure, memory_order_relaxed);
}

/* Make UCX progress, and do what is due for the links. */
void coll__ucx_work(struct ucx_worker *worker);

/* ---- ucx_link.c ---- */

/* Translate UCX's code and log what failed; COLL_OK for UCS_OK. */
int coll__ucx_status(ucs_status_t rc, const char *call);

/* Return the link to the worker of that name, new if there is none; NULL (logged): no
 * memory. */
struct ucx_link *coll__ucx_link(struct ucx_worker *worker,
                                const struct ucx_id *id);

/* Return the link to that worker if there is one, else NULL. */
struct ucx_link *coll__ucx_link_find(const struct ucx_worker *worker,
                                     const struct ucx_id *id);

/* Free the links that no communicator uses and that cannot be used any more; all of them
 * if the worker has ended. */
void coll__ucx_links_free(struct ucx_worker *worker);

/* Make the endpoint, unless there is one; a failure breaks the link. */
void coll__ucx_connect(struct ucx_link *link);

/* Mark the link as failed; its peers are lost with it. */
void coll__ucx_break(struct ucx_link *link, int status, ucs_status_t rc);

/* Begin to close the endpoint, if there is one. */
void coll__ucx_hang_up(struct ucx_link *link, int is_forced);

/* Send a message of this kind to the link's worker, at most once.  While another
 * message of the link is being sent, this one waits. */
void coll__ucx_say(struct ucx_link *link, enum ucx_kind kind);
void coll__ucx_heard(struct ucx_worker *worker, const struct ucx_wire *wire);

/* Do what is due for the listed links. */
void coll__ucx_serve_links(struct ucx_worker *worker);

/* Connect this rank to all others, in both directions; all ranks call it.  Returns a
 * status, logged unless the communicator has failed; `timeout` is in seconds. */
int coll__ucx_meet(struct ucx *ucx, double timeout);

/* Send UCX_BYE on all links.  Then wait, five seconds at most, until each link that is
 * not spoiled has sent UCX_BYE or UCX_STAY, or has failed. */
void coll__ucx_part(struct ucx_worker *worker);

/* Count UCX's flush requests. */
int coll__ucx_n_flushing(const struct ucx_worker *worker);

/* Does the other worker end too?  Then it makes progress until it has heard all. */
static inline int ucx_is_parting(const struct ucx_link *link)
{
    return (link->heard & ucx_bit(UCX_BYE)) != 0;
}

/* Make progress until all endpoints are connected, those that end have received all that
 * was sent to them, and nothing happens for `pause` seconds.  Returns 1, or 0 at the
 * deadline.  It waits for no other rank: that rank may be busy and make no progress in
 * UCX. */
int coll__ucx_quieten(struct ucx_worker *worker, double pause, double deadline);

/* ---- ucx_peer.c ---- */

void coll__ucx_queue_put(struct ucx_queue *queue, struct coll__xfer *xfer);
void coll__ucx_queue_take(struct ucx_queue *queue);

/* Count one more segment of xfer that UCX holds. */
void coll__ucx_hand_over(struct coll__xfer *xfer);

/* UCX has finished one segment of xfer, with success or not; end the transfer after its
 * last segment. */
void coll__ucx_take_back(const struct ucx_peer *peer, struct coll__xfer *xfer,
                         int is_well);

/* End the transfers of a queue with the peer's status: at once or, if UCX holds their
 * buffers, when it releases them. */
void coll__ucx_spoil(const struct ucx_peer *peer, struct ucx_queue *queue);

/* Return the state of that lane, new if there is none; NULL (logged): no memory. */
struct ucx_peer *coll__ucx_peer(struct ucx *ucx, int lane);

/* List this peer for coll__ucx_serve(). */
void coll__ucx_list(struct ucx_peer *peer);

/* Lose the peer and its transfers: at once or, if its communicator is not the caller,
 * once it is. */
void coll__ucx_lose(struct ucx_peer *peer, int status);

/* Connect the peer, unless it is connected; lose it if that fails. */
void coll__ucx_reach(struct ucx_peer *peer);

/* Do what is due for the caller's listed peers. */
void coll__ucx_serve(struct ucx *ucx);

/* Count a request of the communicator as begun, and as finished. */
void coll__ucx_begin(struct ucx *ucx);
void coll__ucx_end(struct ucx *ucx);

/* ---- ucx_price.c ---- */

/* Price a link to other hosts by the device of an endpoint to one of them.  If ep is
 * NULL, use the device that UCX is likely to choose for a process of that NUMA node (-1:
 * unknown). */
void coll__ucx_far(ucp_ep_h ep, int numa_node, struct coll__link *link);

/* ---- ucx_send.c ---- */

/* Hand UCX what the credits allow. */
void coll__ucx_push(struct ucx_peer *peer);

/* Note that the peer has received `taken` segments. */
void coll__ucx_acked(struct ucx_peer *peer, uint64_t taken);

/* Send an acknowledgement if one is due. */
void coll__ucx_ack(struct ucx_peer *peer);

/* Process the segments that UCX has sent while another communicator was the caller. */
void coll__ucx_take_sent(struct ucx *ucx);

/* ---- ucx_recv.c ---- */

/* UCX's callback for each active message; arg is the struct ucx_worker. */
ucs_status_t coll__ucx_arrived(void *arg, const void *header, size_t header_len,
                               void *data, size_t len,
                               const ucp_am_recv_param_t *param);

/* Match the segments that have arrived with the receives, in order. */
void coll__ucx_pull(struct ucx_peer *peer);

/* Process the segments that UCX has fetched while another communicator was the caller. */
void coll__ucx_take_fetched(struct ucx *ucx);

/* Release segments that have arrived from the peer, unless they are on their way to a
 * buffer: so the sender gets its buffers back. */
void coll__ucx_let_go(struct ucx_peer *peer);

/* Drop all segments that arrived from the peer. */
void coll__ucx_drop(struct ucx_peer *peer);

#endif
