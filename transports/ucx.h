/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx.h - what the files of the UCX transport share; no one else includes it.
 *
 * A process has one worker of UCX, and one endpoint to each worker of another
 * process, a link, whatever the number of communicators that use them (ranks
 * that are threads of one process have a worker each).  A message says for
 * which communicator it is by the number that its receiver gave that one.
 *
 * A message travels as segments of at most UCX_SEGMENT bytes, each one active
 * message with a struct ucx_wire in front.  An ordered pair of ranks has a lane
 * for each channel, whose segments are numbered from 0.  UCX may deliver active
 * messages of different protocols out of order, so a segment is kept in slot
 * number % UCX_WINDOW of its lane until its turn comes.
 *
 * Credits: at most UCX_WINDOW segments, and UCX_CREDIT bytes plus one segment,
 * are under way on a lane whose receiver has not said that it is through with them;
 * what goes beyond waits in the sender's queue.  So a receiver that does not
 * receive holds no more than that for each lane.  `taken`, how many segments of the
 * lane from you I am through with, travels on every message of the lane back, and
 * on one of its own once half of either credit is used up.
 *
 * All bytes lie in memory of the host, and UCX is told so: one that knows GPUs would
 * ask their driver about each buffer.
 *
 * Threads: each communicator may have a thread of its own, and UCX runs
 * callbacks for all of them inside the calls of any.  So a worker, and all that
 * hangs on it, is touched under its lock alone, and `caller` is the communicator
 * whose thread holds that.  But a transfer's status and buffer are read without
 * the lock by the thread that started it: so what UCX says of the transfers of
 * another than the caller waits in that one's lists, until it is the caller.
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
    UCX_HELLO, /* between workers: one lane is connected */
    UCX_READY, /* all lanes are */
    UCX_STAY,  /* no communicator joins us any more, but I go on */
    UCX_BYE    /* this worker ends */
};

/* The header of every active message; all hosts have the same byte order. */
struct ucx_wire {
    uint32_t kind;
    int32_t lane;    /* channel and sender's rank, by coll__lane() */
    uint64_t to;     /* the receiver's number of the communicator */
    uint64_t seq;    /* of this segment */
    uint64_t taken;  /* segments of the lane back that it is through with */
    uint64_t offset; /* of the segment in its message */
    uint64_t len;    /* of the message */
    struct coll__head head;
};

_Static_assert(sizeof(struct ucx_wire) == 72, "no padding on the wire");

/* A worker's name, never given twice. */
struct ucx_id {
    uint64_t words[2];
};

/* Between workers a message has the sender's name, in these two. */
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
    struct coll__xfer *xfer; /* NULL: nobody waits for it any more */
    size_t n;
    int is_busy;          /* until UCX has called back */
    ucs_status_t rc;      /* while in ucx->sent */
    struct ucx_out *next; /* there */
};

enum ucx_hold {
    HOLD_NONE,   /* the slot is free */
    HOLD_UCX,    /* eager data in UCX's memory, to be released */
    HOLD_COPY,   /* eager data in copy */
    HOLD_RNDV,   /* still at the sender; data is UCX's descriptor */
    HOLD_MOVING, /* on its way into the receive's buffer or a bounce buffer */
    HOLD_TAKEN   /* through with; free when all before it are */
};

/* A segment that arrived. */
struct ucx_in {
    struct ucx_wire wire;
    struct ucx_peer *peer;
    enum ucx_hold hold;
    size_t n;
    void *data;
    void *copy; /* grows to what is needed, and stays */
    size_t room;
    struct coll__xfer *xfer; /* while moving; NULL: nobody waits any more */
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
    struct ucx_link *next, *next_work; /* of the worker's links, and of those
                                        * that are listed */
    struct ucx_link *next_alike;       /* in the same bucket */
    void *address;                     /* NULL: heard of before it was told */
    ucp_ep_h ep;     /* NULL before the first use and after a failure */
    int status;      /* COLL_OK, or why it cannot be reached any more */
    ucs_status_t rc; /* in UCX's words */
    int rank;        /* in the communicator that made it, for messages */
    int n_users;     /* ranks of communicators that are there */
    int is_listed;
    int is_spoiled; /* a communicator of both has not ended in order: so it is
                     * not known what the other still says */

    struct ucx_wire note; /* the message between workers that is under way */
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
    int fault;   /* the same, until the communicator is the caller */
    struct ucx_peer *next_work;
    int is_listed;

    struct ucx_queue sends; /* not wholly handed to UCX */
    uint64_t sent, acked;   /* segments */
    size_t in_flight;       /* bytes of those between acked and sent */
    struct ucx_out out[UCX_WINDOW];

    struct ucx_queue recvs; /* not wholly matched */
    uint64_t matched, taken,
        told;      /* segments; told: taken, as the peer knows */
    size_t untold; /* bytes of those between told and taken */
    struct ucx_in in[UCX_WINDOW];

    struct ucx_wire note; /* the message without data that is under way */
    int is_noting;
};

/* What is known of each rank before the first contact. */
struct ucx_seat {
    struct ucx_link *link; /* NULL: this rank, and all while open() lasts */
    uint64_t to;
};

/* A communicator. */
struct ucx {
    struct coll__tp base;
    struct ucx_worker *worker; /* NULL: on a network of RDMA that this rank is
                                  * not on */
    const struct coll__rails *rails; /* while open() lasts */
    struct ucx *next;            /* of the worker's that are closed, but that
                                  * UCX still holds something of */
    uint64_t number;             /* by which others send to it */
    const atomic_int *failure;   /* of struct coll__tp_env */
    struct coll__link near, far; /* to ranks of this host, and of others */
    unsigned char *is_near;      /* [size] */
    unsigned char *is_reached;   /* [size]: else it is another transport's */
    struct ucx_seat *seats;      /* [size] */
    int n_lanes;                 /* channels of all ranks */
    struct ucx_peer **peers;     /* [n_lanes], NULL before the first contact */
    struct ucx_peer *work[COLL__CHANNELS]; /* with something to do in poll() */
    struct ucx_out *sent;        /* segments that UCX sent, or not, while */
    struct ucx_in *fetched;      /* another was the caller; and fetched */
    void *bounces;   /* free ones, linked through their first word */
    int n_bounces;   /* made */
    int n_under_way; /* requests that UCX will call back for */
    int moved;       /* since the last poll */
    int has_lost;    /* a link failed since the last poll */
    int has_let_go;  /* of what had come when it failed */
    int is_closing;
};

struct ucx_worker {
    pthread_mutex_t lock;
    struct ucx *caller; /* see above; NULL: a worker's own affairs */
    struct ucx_worker *next;
    int index;           /* which of the process's, if threads are ranks */
    struct ucx_context *context;
    unsigned generation; /* of the process that made it (lib/util/lock.h) */
    int is_retired;      /* no new communicator may use it */
    int is_ending;
    int n_users; /* communicators; under the lock of all workers */
    struct ucx_id id;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;

    struct ucx **comms; /* by the low half of their number, NULL: free */
    uint32_t n_comms;   /* the room there */
    uint32_t n_numbers; /* given so far */
    struct ucx_link *links, *work;
    struct ucx_link *buckets[UCX_BUCKETS]; /* the links by their names */
    struct ucx *closed;
    unsigned n_turns; /* of coll__ucx_work() */
    int n_under_way; /* requests that UCX will call back for, of all, but for
                      * those of flushing */
};

static inline unsigned ucx_bit(enum ucx_kind kind)
{
    return 1u << (kind - UCX_DATA);
}

/* ---- ucx.c, ucx_open.c: of struct coll__transport ---- */

void coll__ucx_close(struct coll__tp *tp, int is_orderly);
int coll__ucx_open(const struct coll__tp_env *env, struct coll__tp **tp);

/* ---- ucx_load.c ---- */

/* UCX's functions, by their names; NULL while UCX is not loaded.  Tests put their own
 * in. */
struct ucx_entries {
#define X(name) __typeof__(name) *name;
    COLL__UCX_MAP(X)
#undef X
};
extern struct ucx_entries coll__ucx;

/* Load UCX, once in a process's life.  NULL: it is there; or why it is not, for ever
 * valid.  Any thread. */
const char *coll__ucx_load(void);

/* ---- ucx_context.c ---- */

/* UCX before 1.14, as distributions build it, aborts the process where a peer
 * dies at the wrong moment: while an endpoint is being connected (its pull
 * request 8175 mends a part of it), and amid an eager message of several pieces
 * that are sent from where they lie. */
int coll__ucx_is_fragile(void);

/* What UCX is not used for: a child of a process that has used it, whose threads
 * and connections a fork does not copy. */
#define UCX_AFTER_FORK_TEXT                                                \
    "this process was made by fork() from one that had used UCX, which a "  \
    "fork does not copy; fork before the first communicator, run a program " \
    "of its own (exec), or do without: COLL_TRANSPORTS=self,shm"

/* One of the process's contexts: for RDMA by certain devices, or for all ways that
 * UCX has. */
struct ucx_context {
    ucp_context_h ucp;
    char devices[COLL__RAILS * 40]; /* "": all ways, TCP among them */
    int n_users;
    struct ucx_context *next;
};

/* Begin and end to use the process's context for these devices; the first one loads
 * UCX.  COLL_ERR_NOMEM or COLL_ERR_TRANSPORT: `why` says so, and nothing is logged.
 * Thread-safe. */
int coll__ucx_context_get(const struct coll__rails *rails,
                          struct ucx_context **context, char *why, size_t len);
void coll__ucx_context_put(struct ucx_context *context);

/* ---- ucx_limits.c ---- */

/* File descriptors of a process; all ranks learn each other's. */
struct ucx_limits {
    int32_t n_needed, n_free; /* in all; beyond those that are open, as far as
                               * they are needed */
    uint64_t limit;
};

/* Look what a communicator with that many new links needs. */
void coll__ucx_limits_get(int n_links, int is_meshed, int has_worker,
                          struct ucx_limits *room);

/* COLL_OK, or COLL_ERR_SYSTEM (logged): that rank has not what it needs. */
int coll__ucx_limits_judge(const struct ucx_limits *room, int rank);

/* COLL_OK, or COLL_ERR_SYSTEM (logged): UCX would end this process, since its
 * files are longer than they may be. */
int coll__ucx_limits_for_files(void);

/* ---- ucx_worker.c ---- */

/* Say whether the process has that worker for these devices already. */
int coll__ucx_worker_exists(int index, const char *devices);

/* Give the communicator the process's worker of that index for its rails, made if
 * need be, and a number there.  A status, logged.  Thread-safe. */
int coll__ucx_worker_get(struct ucx *ucx, int index);

/* No communicator that is opened from now on gets this worker. */
void coll__ucx_worker_retire(struct ucx_worker *worker);

/* Say whether no other communicator uses it.  None that is opened from now on gets
 * it then: its peers are about to be told that it ends, or not told that it stays. */
int coll__ucx_worker_retire_last(struct ucx_worker *worker);

/* The communicator has left its worker, which ends with the last one: in order
 * when all ranks of that one are here, too.  Called without the lock. */
void coll__ucx_worker_put(struct ucx_worker *worker, int is_orderly);

/* Take the worker for this communicator, and let it go.  _try returns 0 when
 * another has it. */
void coll__ucx_enter(struct ucx *ucx);
int coll__ucx_enter_try(struct ucx *ucx);
void coll__ucx_exit(struct ucx *ucx);

/* The communicator of that number, or NULL. */
struct ucx *coll__ucx_find(const struct ucx_worker *worker, uint64_t number);

/* Nobody finds the communicator any more.  Returns 1 when nothing of it is under
 * way, and it is the caller's to free; else the worker does that. */
int coll__ucx_forget(struct ucx *ucx);

/* Free a communicator that has left its worker. */
void coll__ucx_free(struct ucx *ucx);

/* Has the communicator failed? */
static inline int ucx_has_failed(const struct ucx *ucx)
{
    return ucx->failure &&
           atomic_load_explicit(ucx->failure, memory_order_relaxed);
}

/* Let UCX work, and do what is due for the links. */
void coll__ucx_work(struct ucx_worker *worker);

/* ---- ucx_link.c ---- */

/* Translate UCX's code, saying what failed; logged.  COLL_OK for UCS_OK. */
int coll__ucx_status(ucs_status_t rc, const char *call);

/* Return the link to the worker of that name, made if need be; NULL (logged): no
 * memory. */
struct ucx_link *coll__ucx_link(struct ucx_worker *worker,
                                const struct ucx_id *id);

/* The same, if there is one, else NULL. */
struct ucx_link *coll__ucx_link_find(const struct ucx_worker *worker,
                                     const struct ucx_id *id);

/* Free the links that nobody uses and that cannot be used any more; all of them
 * when the worker has ended. */
void coll__ucx_links_free(struct ucx_worker *worker);

/* Make the endpoint, unless there is one; a failure breaks the link. */
void coll__ucx_connect(struct ucx_link *link);

/* The link is of no use any more, nor is any peer beyond it. */
void coll__ucx_break(struct ucx_link *link, int status, ucs_status_t rc);

/* Begin to close the endpoint, if there is one. */
void coll__ucx_hang_up(struct ucx_link *link, int is_forced);

/* Say that to the worker, once; after the note that is under way. */
void coll__ucx_say(struct ucx_link *link, enum ucx_kind kind);
void coll__ucx_heard(struct ucx_worker *worker, const struct ucx_wire *wire);

/* Do what is due for the listed links. */
void coll__ucx_serve_links(struct ucx_worker *worker);

/* Connect this rank to all others, in both directions; all of them call it.  A
 * status, logged but where the communicator has failed; `timeout` in seconds. */
int coll__ucx_meet(struct ucx *ucx, double timeout);

/* Say farewell to all links, and wait until those that are not spoiled have said
 * so, too, or that they stay, or have failed, or five seconds. */
void coll__ucx_part(struct ucx_worker *worker);

/* The requests of flushing that UCX has. */
int coll__ucx_n_flushing(const struct ucx_worker *worker);

/* Say whether the other worker ends, too: so it works until it has heard all. */
static inline int ucx_is_parting(const struct ucx_link *link)
{
    return (link->heard & ucx_bit(UCX_BYE)) != 0;
}

/* Make progress until all endpoints are connected, those that end have what was
 * sent to them, and nothing happens for `pause` seconds: 1, or the deadline: 0.
 * Nobody else is waited for: a rank may be at anything, and not let UCX work. */
int coll__ucx_quieten(struct ucx_worker *worker, double pause, double deadline);

/* ---- ucx_peer.c ---- */

void coll__ucx_queue_put(struct ucx_queue *queue, struct coll__xfer *xfer);
void coll__ucx_queue_take(struct ucx_queue *queue);

/* One segment more of xfer is UCX's. */
void coll__ucx_hand_over(struct coll__xfer *xfer);

/* One segment of xfer is UCX's no more, and went well or not; ends the transfer
 * when it was the last one. */
void coll__ucx_take_back(const struct ucx_peer *peer, struct coll__xfer *xfer,
                         int is_well);

/* End the transfers of a queue with the peer's status: now or, where UCX still
 * holds their buffers, when UCX lets go of them. */
void coll__ucx_spoil(const struct ucx_peer *peer, struct ucx_queue *queue);

/* Return the state of that lane, made if need be; NULL (logged): no memory. */
struct ucx_peer *coll__ucx_peer(struct ucx *ucx, int lane);

/* Have coll__ucx_serve() look after this peer. */
void coll__ucx_list(struct ucx_peer *peer);

/* The peer is lost, and its transfers with it: now or, of another than the
 * caller, when that one is. */
void coll__ucx_lose(struct ucx_peer *peer, int status);

/* Connect the peer, unless it is, or lose it if that cannot be. */
void coll__ucx_reach(struct ucx_peer *peer);

/* Do what is due for the listed peers, the caller's. */
void coll__ucx_serve(struct ucx *ucx);

/* A request of the communicator's begins, and is through. */
void coll__ucx_begin(struct ucx *ucx);
void coll__ucx_end(struct ucx *ucx);

/* ---- ucx_price.c ---- */

/* Price a link to other hosts by the device of an endpoint to one; ep NULL: by
 * the one that UCX is likely to take for a process of that NUMA node (-1: not
 * known). */
void coll__ucx_far(ucp_ep_h ep, int numa_node, struct coll__link *link);

/* ---- ucx_send.c ---- */

/* Hand UCX what the credits allow. */
void coll__ucx_push(struct ucx_peer *peer);

/* The peer is through with that many segments. */
void coll__ucx_acked(struct ucx_peer *peer, uint64_t taken);

/* Send an acknowledgement if one is due. */
void coll__ucx_ack(struct ucx_peer *peer);

/* Look at what UCX has sent while another was the caller. */
void coll__ucx_take_sent(struct ucx *ucx);

/* ---- ucx_recv.c ---- */

/* UCX's callback for each active message; arg is the struct ucx_worker. */
ucs_status_t coll__ucx_arrived(void *arg, const void *header, size_t header_len,
                               void *data, size_t len,
                               const ucp_am_recv_param_t *param);

/* Match what has arrived with the receives, in order. */
void coll__ucx_pull(struct ucx_peer *peer);

/* Look at what UCX has fetched while another was the caller. */
void coll__ucx_take_fetched(struct ucx *ucx);

/* Let go of what has arrived from the peer and is not on its way to a buffer: so
 * its sender has its own buffers back. */
void coll__ucx_let_go(struct ucx_peer *peer);

/* Forget all that arrived from the peer. */
void coll__ucx_drop(struct ucx_peer *peer);

#endif
