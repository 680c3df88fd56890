/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - how bytes get from one rank's stream to another's while no CPU waits.
 *
 * Both ranks enqueue their part into streams of their devices and return.  Between two
 * ranks lie few slots in each direction.  A send makes the stream wait for an empty slot,
 * write it, and mark it full.  A receive makes its stream wait for that, take the bytes,
 * and mark the slot empty.  So the order of sends and receives must be one that finishes
 * with that many slots (lib/plan/schedule.h).  A transport says where the slots and their
 * flags are; stream.c enqueues.
 *
 * Message n of a run from one rank to another uses slot n modulo the number of slots.
 * Messages COLL__ASIDE + n use as many other slots, which a run may leave full: so a
 * caller's sends do not block the operations after them (lib/stream/messages.c).  Each
 * run counts from 0, and at its end all slots are empty.  So a captured run may be
 * launched again and again, before or after any other run, as long as all ranks have the
 * same order of runs.  The runs of a communicator must follow each other, whatever
 * streams they are in.
 *
 * After a failure the flags are released: no stream waits for them any more.  Streams
 * still write their states, as usual, and pass on bytes that mean nothing.  Other ranks
 * may not know of the failure yet.  So it is noted first, where each rank that such bytes
 * may reach can see it: a rank whose stream has passed an operation asks state(), and if
 * that is COLL_OK, the results are right.  The host carries nothing to another host that a
 * stream gave since.
 */
#ifndef COLL_TRANSPORTS_STREAM_H
#define COLL_TRANSPORTS_STREAM_H

#include "lib/device/device.h"
#include "transports/transport.h"

#include <stdatomic.h>

/* The flag of a slot, in host memory that the streams of both ends see.  Each state is a
 * bit that one end waits for.  Only the sender's stream stores SLOT_FULL, only the
 * receiver's stream SLOT_EMPTY; the host stores `released`, once. */
#define COLL__SLOT_FULL UINT32_C(1)
#define COLL__SLOT_EMPTY UINT32_C(2)
#define COLL__SLOT_WORKED UINT32_C(4)           /* by the host, for work() */
#define COLL__SLOT_RELEASED (UINT64_C(1) << 32) /* of both words: `released` */

struct coll__slot_flag {
    _Alignas(8) _Atomic uint32_t state;
    _Atomic uint32_t released; /* 0 or 1: this ends every wait for `state` */
};

/* A slot, at addresses for this rank's device. */
struct coll__slot {
    void *flag;        /* struct coll__slot_flag */
    unsigned char *at; /* its bytes */
    int is_host;       /* they are in pinned memory */
};

/* For operations that are one kernel.  The kernel does the work of send() and recv(),
 * with slots and words of its own. most and slot are the same on all ranks of a host. */
struct coll__stream_kernel {
    size_t most;      /* most bytes of an operation, over all parts; 0: no operation is
                       * one kernel */
    size_t slot;      /* bytes of a slot; there are n_slots of these too */
    int n_sharing;    /* ranks whose kernels run on this rank's GPU at once */
    const void *stop; /* the word that tells kernels to stop, at its GPU address */
    char why[200];    /* it was asked for, and cannot be */
};

/* The slot of a kernel's message, and the slot's words: this rank's and the peer's
 * (lib/device/cuda_plan.h).  All are addresses for this rank's GPU. */
struct coll__kernel_slot {
    void *at, *own, *theirs;
};

/* A message of a run: its number, and the peer that sends or receives it. */
struct coll__message {
    int peer, n;
};

#define COLL__ASIDE (1 << 30)

/* A message of a run, or a step that the host does, for plan(). */
struct coll__planned {
    struct coll__message of;
    size_t len;
    struct coll__signature sig; /* without seq */
    struct coll__work work;     /* is_work: without addresses and stream */
    unsigned is_work : 1;
    unsigned is_send : 1;
    unsigned is_first : 1; /* the first message of its call, for COLL__ASIDE */
};

/* The messages of a run that the host carries. */
struct coll__carried;

struct coll__cuda_place;

/* What move() did. */
struct coll__moved {
    int is_any; /* something moved */
    int is_idle; /* all runs that began have announced themselves and are carried */
    int has_graphs; /* there are graphs, whose runs may begin at any time */
    const struct coll__xfer
        *fault; /* after a failure: the transfer that failed; NULL: no
                                     * transfer did, and the failure is logged */
};

/* Flag in the number of a message that uses no slot: the receiver reads it in the
 * sender's memory.  With the slot's flag, the sender says that it may be read, and the
 * receiver that it has been read. */
#define COLL__DIRECT (1 << 29)

/* Memory that all ranks of a communicator have registered, the same length on each; the
 * other ranks may read it in place. */
struct coll__registration {
    struct coll__registration *next;
    unsigned char *base; /* of this rank's */
    size_t len;
    uint64_t id;        /* number of its allocation, never used again */
    uint64_t number;    /* of its registration, likewise */
    unsigned char **at; /* [size]: each rank's part, at its address for this rank's GPU */
};

/* A communicator's state; the first member of the transport's own. */
struct coll__stream_tp {
    const struct coll__stream_transport *ops;
    const struct coll__stream_ops *streams; /* of the device */
    int rank, size;
    unsigned generation; /* of the process that opened it (lib/util/lock.h) */
    int n_slots; /* between two ranks, in each direction; equal on all ranks of a host */
    size_t slot; /* bytes; a multiple of 64 */
    struct coll__stream_kernel kernel;
    struct coll__registration
        *regs; /* the same list on all ranks, the newest first */
    /* [size]: is that rank reached through host memory?  And does the host carry its
     * messages?  NULL: nobody's; ask coll__stream_carries(). */
    unsigned char *by_host, *is_carried;
    int n_carried; /* of these */
    /* Has the host something to carry or to do, now or later?  For the communicator's
     * owner. */
    int is_carrier;
    int has_no_kernels; /* the device does nothing but copies */
    const void *kernels; /* struct coll__work's, or NULL */
    void *
        bounce; /* then: device memory of a slot's length, of the runs to come */
};

/* Does the host carry messages with that rank, which compares them?  tp may be NULL. */
static inline int coll__stream_carries(const struct coll__stream_tp *tp,
                                       int rank)
{
    return tp && tp->is_carried && tp->is_carried[rank];
}

/* Does the host do this work?  Then it is planned, and goes to work(). */
static inline int coll__stream_is_hosts(const struct coll__stream_tp *tp,
                                        const struct coll__work *work)
{
    return work->kind == WORK_COPY
               ? tp->has_no_kernels && work->is_dst_host && work->is_src_host
               : work->fn || work->is_hosts || tp->has_no_kernels;
}

/* Return the registration that holds all len bytes at ptr, or NULL. */
static inline const struct coll__registration *
coll__registration_of(const struct coll__stream_tp *tp, const void *ptr,
                      size_t len)
{
    const struct coll__registration *reg = tp->regs;

    while (reg &&
           ((const unsigned char *)ptr < reg->base || len > reg->len ||
            (size_t)((const unsigned char *)ptr - reg->base) > reg->len - len))
        reg = reg->next;
    return reg;
}

struct coll__stream_transport {
    const char *name; /* "cuda_ipc" */
    const char *what; /* one line */

    /* Join the ranks; collective.  Each rank brings a context (NULL: the current one); a
     * rank without any takes part, and the others learn of it.  Everything that runs need
     * is made here: memory, mappings, kernels.
     *
     * Ownership: *tp is the caller's, to be closed; nothing remains on failure.
     * Errors:    COLL_ERR_NOMEM, or those of env->allgather; logged.  A rank out of reach
     *            is no error: reaches() tells.
     */
    int (*open)(const struct coll__tp_env *env, void *context,
                struct coll__stream_tp **tp);

    /* Close, as in struct coll__transport.  Unless is_orderly, or if graphs hold it,
     * release waiting streams first. */
    void (*close)(struct coll__stream_tp *tp, int is_orderly);

    /* Free what close() had to keep, if the other ranks have unmapped it since; what
     * graphs hold is theirs (lib/device/cuda_held.h).  Any thread. */
    void (*reclaim)(void);

    /* Returns COLL_OK, the same on both ranks; or COLL_ERR_PEER and the reason in why. */
    int (*reaches)(const struct coll__stream_tp *tp, int peer, char *why,
                   size_t len);

    /* Can messages be enqueued into this stream, which is at that place?  Ask before a
     * run is begun.  COLL_ERR_INVALID is logged with the remedy. */
    int (*takes)(struct coll__stream_tp *tp, void *stream,
                 const struct coll__cuda_place *place);

    /* The run that is being captured in the stream uses the transport: after close() it
     * passes, as long as there is the graph.  A status, logged. */
    int (*hold)(struct coll__stream_tp *tp, void *stream);

    /* Was the device reset since the ranks joined?  Costs a call of the driver. */
    int (*was_reset)(const struct coll__stream_tp *tp);

    /* Return the slot by which a stream sends or receives message n of the run; the peer
     * is within reach. */
    void (*slot)(const struct coll__stream_tp *tp, int peer, int is_send, int n,
                 struct coll__slot *out);

    /* For a transport for which the host carries messages and does steps; else NULL.
     *
     * plan: note the messages and the host's steps of a run in their order, and make the
     * slots.  begin: enqueue the beginning of a run into a stream; its messages follow.
     * work: enqueue the run's next step that the host does.  The run
     * may be captured.  forget: the run will not begin again; those under way, and graphs,
     * keep it.  move: carry what streams have reached, as the owner of the host's
     * transports.  let_go: after release(), and when the host's transports read no slot any
     * more, release the streams that wait to fill a slot again, as that owner.
     *
     * Ownership: *run is the caller's, to end by forget().  Runs of collectives are
     *            planned and begun on every rank, also without messages.
     * Errors:    COLL_ERR_NOMEM, COLL_ERR_SYSTEM, or of begin() the status given to
     *            release(); logged.
     * Threads:   move() beside plan(), begin() and forget().
     */
    int (*plan)(struct coll__stream_tp *tp,
                const struct coll__planned *messages, int n,
                struct coll__carried **run);
    int (*begin)(struct coll__stream_tp *tp, struct coll__carried *run,
                 void *stream);
    int (*work)(struct coll__stream_tp *tp, const struct coll__work *work);
    void (*forget)(struct coll__carried *run);
    int (*move)(struct coll__stream_tp *tp, struct coll__moved *moved);
    void (*let_go)(struct coll__stream_tp *tp);

    /* enroll: register len bytes of device memory.  dismiss: end the registration that
     * begins at ptr.  Collective, by env's exchanges alone; not if the host carries
     * messages.
     *
     * Errors:    COLL_ERR_INVALID (not memory of this GPU, or it is already registered,
     *            or was not registered), COLL_ERR_MISMATCH (the ranks have different
     *            lengths or registrations), COLL_ERR_UNSUPPORTED (it cannot be mapped),
     *            COLL_ERR_NOMEM: the same on all ranks, logged, and nothing has changed.
     *            Or the error of an exchange.
     */
    int (*enroll)(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                  void *ptr, size_t len);
    int (*dismiss)(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                   void *ptr);

    /* Return the same for a kernel. */
    void (*kernel_slot)(const struct coll__stream_tp *tp, int peer, int is_send,
                        int n, struct coll__kernel_slot *out);

    /* Mark the communicator as failed, from any thread: no stream of this rank waits for
     * another one any more, once let_go() was called if there is that function.  All ranks
     * of the host see by state() that results since then are worthless. */
    void (*release)(struct coll__stream_tp *tp, int status);

    /* Return COLL_OK, or the status given to release() by this rank or another rank of
     * the host.  After a release, streams that have ended show that status here. */
    int (*state)(const struct coll__stream_tp *tp);

    /* Return a digest of the slots to and from this rank, which changes while data move;
     * *peer becomes a rank that has not taken a message of this one, or -1.  Any thread;
     * no device call. */
    uint64_t (*held)(const struct coll__stream_tp *tp, int *peer);

    /* Add the bytes of device memory, of memory that the host's ranks share, of other
     * ranks' device memory mapped into this process, and of pinned memory. */
    void (*bytes)(const struct coll__stream_tp *tp,
                  struct coll_mem_stats *stats);
};

/* Return state().  If that is an error, the thread's last error becomes empty, since the
 * words for it come from the rank that called release(). */
int coll__stream_state(const struct coll__stream_tp *tp);

/* Enqueue a message to, or from, a peer within reach, of slot bytes at most.  A send is
 * of work's src.  A receive does `work` with the message as its src: a copy, or a
 * reduction.  With COLL__DIRECT a send does not read src, and a receive does `work` with
 * its own work->src.  After such a send, settle makes the sender's stream wait until the
 * receiver has read the message; until then nothing may change the bytes.  Each returns a
 * status, logged; after release() the status given there, and nothing is enqueued. */
int coll__stream_send(struct coll__stream_tp *tp,
                      const struct coll__message *to,
                      const struct coll__work *work);
int coll__stream_recv(struct coll__stream_tp *tp,
                      const struct coll__message *from,
                      const struct coll__work *work);
int coll__stream_settle(struct coll__stream_tp *tp,
                        const struct coll__message *to, void *stream);

/* Enqueue a local step, for the device or the host to do.  A status, as above. */
int coll__stream_work(struct coll__stream_tp *tp,
                      const struct coll__work *work);

/* Receive a message and send the result of its work on, as another message of as many
 * bytes, by one kernel in work->stream.  The kernel runs when the message has arrived and
 * the other message has a free slot.  work->dst, unless it is NULL, gets the result as
 * well.  A status, as above. */
int coll__stream_relay(struct coll__stream_tp *tp,
                       const struct coll__message *from,
                       const struct coll__message *to,
                       const struct coll__work *work);

extern const struct coll__stream_transport coll__stream_cuda_ipc;

#endif
