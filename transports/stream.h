/* SPDX-License-Identifier: BSD-3-Clause */
/* stream.h - how bytes get from a rank's stream to another rank's, and no host waits.
 *
 * Both ends put their part into streams of their devices and are done: send() has the
 * stream wait for an empty slot of the peer, write it, and say that it is full;
 * recv() has it wait for that, take what is in it, and say that it is empty.  Two
 * ranks have few slots between them, each way: whoever lists sends and receives so
 * that they come to an end with so many (lib/plan/schedule.h) comes to an end.
 *
 * Message n of a run, from one rank to another, goes by slot n modulo their number;
 * those of COLL__ASIDE + n by as many other slots, which a run may leave full: so a
 * caller's sends are not in the way of what follows (lib/stream/messages.c).
 * Each run begins with 0 again, and when it has ended all slots are empty.  So what
 * was captured may run again and again, before or behind any other run, as long as
 * all ranks have the same order of runs.  A communicator's runs must follow each
 * other, whatever streams they are in.
 */
#ifndef COLL_TRANSPORTS_STREAM_H
#define COLL_TRANSPORTS_STREAM_H

#include "lib/device/device.h"
#include "transports/transport.h"

/* For operations that are one kernel, which does what send() and recv() do by slots and
 * words of its own.  most and slot are the same on all ranks of a host. */
struct coll__stream_kernel {
    size_t most;      /* bytes of all parts, up to which they are; 0: none */
    size_t slot;      /* bytes, as below; there are n_slots of them, too */
    int n_sharing;    /* ranks whose kernels run on this one's GPU at once */
    const void *stop; /* the word that tells them to stop, as the GPU sees it */
    char why[200];    /* it was asked for, and cannot be */
};

/* Where a kernel's message lies on its way, and the words of its slot: of this rank and
 * of the other one (lib/device/cuda_plan.h).  All as this rank's GPU sees it. */
struct coll__slot {
    void *at, *own, *theirs;
};

/* A message of a run, by its number, from a peer or to it. */
struct coll__message {
    int peer, n;
};

#define COLL__ASIDE (1 << 30)

/* Added to the number of a message that lies in no slot: its sender says that it may be
 * read, and its receiver that it has read it, by the flag of the slot of that number.
 * The receiver takes it from where the sender has it. */
#define COLL__DIRECT (1 << 29)

/* Memory that each rank of a communicator has registered, as much as the others: these
 * may read it in place. */
struct coll__stream_area {
    struct coll__stream_area *next;
    unsigned char *base; /* of this rank's */
    size_t len;
    uint64_t id;        /* of its allocation; never used again */
    uint64_t number;    /* of its registration, likewise */
    unsigned char **at; /* [size]: each rank's, as this one's GPU sees it */
};

/* A communicator's state; the first member of the transport's own. */
struct coll__stream_tp {
    const struct coll__stream_transport *ops;
    int rank, size;
    unsigned generation; /* of the process that opened it (lib/util/lock.h) */
    int n_slots; /* between two ranks, each way; the same on all of a host */
    size_t slot; /* bytes; a multiple of 64 */
    struct coll__stream_kernel kernel;
    struct coll__stream_area
        *areas; /* alike on all ranks, the last one first */
    unsigned char
        *by_host; /* [size]: is that rank reached by memory of the host? */
};

/* Where len bytes at ptr lie wholly; or NULL. */
static inline const struct coll__stream_area *
coll__stream_area_of(const struct coll__stream_tp *tp, const void *ptr,
                     size_t len)
{
    const struct coll__stream_area *area = tp->areas;

    while (
        area &&
        ((const unsigned char *)ptr < area->base || len > area->len ||
         (size_t)((const unsigned char *)ptr - area->base) > area->len - len))
        area = area->next;
    return area;
}

struct coll__stream_transport {
    const char *name; /* "cuda_ipc" */
    const char *what; /* one line */

    /* Join the ranks; collective, with what each has: a context (NULL: the current
     * one; none at all, and the others hear of it).  All that runs need is made
     * here: memory, mappings, kernels.
     *
     * Ownership: *tp is the caller's, to be closed; nothing remains on failure.
     * Errors:    COLL_ERR_NOMEM, or those of env->allgather; logged.  That a rank is
     *            out of reach is none: reaches() says so.
     */
    int (*open)(const struct coll__tp_env *env, void *context,
                struct coll__stream_tp **tp);

    /* Leave, as struct coll__transport has it.  Unless is_orderly, streams that wait
     * are released first. */
    void (*close)(struct coll__stream_tp *tp, int is_orderly);

    /* Give back what close() had to keep, where the others have let go of it since.
     * Any thread. */
    void (*reclaim)(void);

    /* COLL_OK, the same on both ranks; or COLL_ERR_PEER, and the reason in why. */
    int (*reaches)(const struct coll__stream_tp *tp, int peer, char *why,
                   size_t len);

    /* Can its sends and receives be put into this stream?  COLL_ERR_INVALID is logged
     * with the remedy. */
    int (*takes)(struct coll__stream_tp *tp, void *stream);

    /* Message n of the run to, or from, a peer within reach, of slot bytes at most.
     * A receive does `work`, of which src is what came: a copy, or a reduction.
     * With COLL__DIRECT a send takes nothing from src, and a receive does with
     * work->src as it is; settle() has the stream of the sender wait until what has
     * that slot was taken, and nothing may change before.
     * Returns a status, logged; after release() it is that one, and nothing is put
     * into the stream. */
    int (*send)(struct coll__stream_tp *tp, void *stream, int peer, int n,
                const void *src, size_t len);
    int (*recv)(struct coll__stream_tp *tp, void *stream, int peer, int n,
                const struct coll__work *work);
    int (*settle)(struct coll__stream_tp *tp, void *stream, int peer, int n);

    /* Receive a message and send its work's result on as another, of as many bytes, by
     * one kernel in work->stream, when the one is there and the other has a slot.
     * work->dst, unless it is NULL, gets the result as well. */
    int (*relay)(struct coll__stream_tp *tp, const struct coll__message *from,
                 const struct coll__message *to, const struct coll__work *work);

    /* Register len bytes of device memory, or forget those that begin at ptr;
     * collective, with env's exchanges alone, all ranks reach each other.
     *
     * Errors:    COLL_ERR_INVALID (no memory of this GPU, registered already or
     *            not), COLL_ERR_MISMATCH (of another length on another rank, or
     *            other memory), COLL_ERR_UNSUPPORTED (it cannot be mapped),
     *            COLL_ERR_NOMEM: all ranks have the same one, logged, and nothing
     *            has changed; or that of an exchange.
     */
    int (*enroll)(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                  void *ptr, size_t len);
    int (*dismiss)(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                   void *ptr);

    /* By which slot a kernel has message n of the run to, or from, a peer within
     * reach. */
    void (*slot)(const struct coll__stream_tp *tp, int peer, int is_send, int n,
                 struct coll__slot *out);

    /* From any thread: the communicator has failed, so let no stream of this rank
     * wait for another, now or later; all ranks of the host see by state() that what
     * has come since is worth nothing. */
    void (*release)(struct coll__stream_tp *tp, int status);

    /* COLL_OK, or what release() was told, here or by another rank of the host.  When
     * a stream has come to its end after a release, it says so. */
    int (*state)(const struct coll__stream_tp *tp);

    /* A digest of what lies in slots to and from this rank, which changes while data
     * move; *peer becomes a rank that has not taken what this one sent, or -1.  Any
     * thread; nothing of the device's. */
    uint64_t (*held)(const struct coll__stream_tp *tp, int *peer);

    /* Bytes of device memory, of memory that the host's ranks have together, and of
     * others' device memory as it is mapped into this process. */
    size_t (*bytes)(const struct coll__stream_tp *tp, size_t *host,
                    size_t *mapped);
};

extern const struct coll__stream_transport coll__stream_cuda_ipc;

#endif
