/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_ipc.h - slots in device memory, flags in memory of the host.
 *
 * Each rank has an inbox in its GPU's memory, with slots for each other rank of the host.
 * The other ranks' processes have mapped it by CUDA IPC; ranks of the same process use
 * its address directly.  Flags are in a segment that the host's ranks share and that each
 * process has registered:
 *
 *   inbox of a rank:   from its first peer: slot 0 .. 2k-1 | from its second: ...
 *   behind that:       with its first peer: words 0 .. k-1 | ... | kernels' slots
 *   segment:           token, state | from, to: flag 0 .. 2k-1 | ... | notes | patterns
 *
 * Ranks whose GPUs do not reach each other have their slots in host memory
 * (cuda_ipc_host.c).
 *
 * A direct read uses the flag of its slot, but not the slot.
 */
#ifndef COLL_TRANSPORTS_CUDA_IPC_H
#define COLL_TRANSPORTS_CUDA_IPC_H

#include "lib/device/cuda.h"
#include "lib/device/cuda_held.h"
#include "lib/util/util.h"
#include "transports/segment.h"
#include "transports/stream.h"

#include <stdatomic.h>

#define CUDA_IPC_PATTERN 64 /* bytes that a probe writes */
#define CUDA_IPC_WORD ((size_t)64) /* bytes apart; two for each slot */
#define CUDA_IPC_WHY 192

/* One rank's notes about another rank of the host; only the noting rank writes them. */
struct cuda_ipc_note {
    atomic_int has_written; /* the pattern, into its inbox */
    atomic_int has_read;    /* the pattern, in its own */
    atomic_int
        has_mapped; /* its inbox, into another process (enum cuda_ipc_mapped) */
};

enum cuda_ipc_mapped { MAPPED_NOT, MAPPED, MAPPED_FOR_GRAPHS };

/* Where messages from one rank to another are stored, at addresses of this rank's
 * device. */
struct cuda_ipc_way {
    unsigned char *slots, *words, *kernel_slots;
};

/* Another rank of the host. */
struct cuda_ipc_peer {
    int rank, pid;
    struct coll__cuda_memory memory;
    unsigned char *inbox;         /* here; NULL: it cannot be mapped */
    struct cuda_ipc_way to, from; /* `to` is mostly in its inbox, `from` in this rank's */
    int is_mapped;                /* by IPC; else it is held */
    int reached;
    char why[CUDA_IPC_WHY]; /* if it is not */
};

struct cuda_ipc {
    struct coll__stream_tp base;
    struct coll__cuda_held held; /* what graphs need, until they are gone */
    int local_rank, local_size;
    int *local_of; /* [size]: -1 on another host */
    struct coll__cuda_home home;
    int shares_context;          /* with another rank of its process */
    struct cuda_ipc_peer *peers; /* [local_size] */
    struct cuda_ipc_map **maps;  /* [size]: state of cuda_ipc_map.c, see below */
    uint64_t n_changes; /* counts registrations and their ends; equal on all ranks */

    unsigned char *inbox; /* this rank's; or NULL */
    struct coll__segment *segment;
    unsigned char *map, *seen; /* the segment's address for the host and for devices; or
                                * NULL */
    int file;                  /* open until all others have opened it; or -1 */
    struct coll__segment *host; /* cuda_ipc_host.c's, or NULL */
    unsigned char *host_seen;   /* as devices see it, or NULL */
    size_t host_len;

    atomic_int failure; /* what release() was told */
    int is_late;        /* it was closed while graphs needed it */

    struct cuda_ipc *next; /* closed ones whose memory others still have mapped */
};

/* Return the number of slots from one rank to another, including those of COLL__ASIDE;
 * and the slot of message n. */
static inline int cuda_ipc_n_slots(const struct cuda_ipc *tp)
{
    return 2 * tp->base.n_slots;
}

static inline int cuda_ipc_slot_of(const struct cuda_ipc *tp, int n)
{
    return n < COLL__ASIDE
               ? n % tp->base.n_slots
               : tp->base.n_slots + (n - COLL__ASIDE) % tp->base.n_slots;
}

/* ---- where things are in the segment ------------------------------------- */

static inline size_t cuda_ipc_flag_at(const struct cuda_ipc *tp, int from,
                                      int to, int slot)
{
    size_t pair = (size_t)from * (size_t)tp->local_size + (size_t)to;

    return CACHE_LINE *
           (2 + pair * (size_t)cuda_ipc_n_slots(tp) + (size_t)slot);
}

static inline size_t cuda_ipc_note_at(const struct cuda_ipc *tp, int by, int of)
{
    size_t pair = (size_t)by * (size_t)tp->local_size + (size_t)of;

    return cuda_ipc_flag_at(tp, tp->local_size, 0, 0) +
           pair * sizeof(struct cuda_ipc_note);
}

/* Two patterns for each pair: the written one, and the one read back. */
static inline size_t cuda_ipc_pattern_at(const struct cuda_ipc *tp, int by,
                                         int of)
{
    size_t pair = (size_t)by * (size_t)tp->local_size + (size_t)of;

    return round_up(cuda_ipc_note_at(tp, tp->local_size, 0), CACHE_LINE) +
           2 * pair * CUDA_IPC_PATTERN;
}

static inline size_t cuda_ipc_segment_len(const struct cuda_ipc *tp)
{
    return round_up(cuda_ipc_pattern_at(tp, tp->local_size, 0), 4096);
}

static inline struct cuda_ipc_note *cuda_ipc_note(const struct cuda_ipc *tp,
                                                  int by, int of)
{
    return (struct cuda_ipc_note *)(tp->map + cuda_ipc_note_at(tp, by, of));
}

/* A flag as the host sees it. */
static inline struct coll__slot_flag *cuda_ipc_flag(const struct cuda_ipc *tp,
                                                    int from, int to, int slot)
{
    return (struct coll__slot_flag *)(tp->map +
                                      cuda_ipc_flag_at(tp, from, to, slot));
}

/* Return the host's state, after the token at the beginning of the file. */
static inline atomic_int *cuda_ipc_state(const struct cuda_ipc *tp)
{
    return (atomic_int *)(tp->map + CACHE_LINE);
}

/* Offsets in a rank's inbox: of another rank's slots, and of the words and slots of
 * kernels with that rank. */
static inline size_t cuda_ipc_slots_at(const struct cuda_ipc *tp, int owner,
                                       int from)
{
    return (size_t)(from < owner ? from : from - 1) *
           (size_t)cuda_ipc_n_slots(tp) * tp->base.slot;
}

static inline size_t cuda_ipc_words_at(const struct cuda_ipc *tp, int owner,
                                       int from)
{
    return cuda_ipc_slots_at(tp, 0, tp->local_size) +
           (size_t)(from < owner ? from : from - 1) * (size_t)tp->base.n_slots *
               2 * CUDA_IPC_WORD;
}

static inline size_t cuda_ipc_kernel_slots_at(const struct cuda_ipc *tp,
                                              int owner, int from)
{
    return cuda_ipc_words_at(tp, 0, tp->local_size) +
           (size_t)(from < owner ? from : from - 1) * (size_t)tp->base.n_slots *
               tp->base.kernel.slot;
}

static inline struct cuda_ipc_way cuda_ipc_way_in(const struct cuda_ipc *tp,
                                                  unsigned char *inbox,
                                                  int owner, int from)
{
    return (struct cuda_ipc_way){
        .slots = inbox + cuda_ipc_slots_at(tp, owner, from),
        .words = inbox + cuda_ipc_words_at(tp, owner, from),
        .kernel_slots = inbox + cuda_ipc_kernel_slots_at(tp, owner, from)};
}

/* Its bytes. */
static inline size_t cuda_ipc_inbox_len(const struct cuda_ipc *tp)
{
    if (!tp->base.kernel.most)
        return cuda_ipc_slots_at(tp, 0, tp->local_size);
    return cuda_ipc_kernel_slots_at(tp, 0, tp->local_size);
}

/* ---- cuda_ipc_open.c ----------------------------------------------------- */

int cuda_ipc__open(const struct coll__tp_env *env, void *context,
                   struct coll__stream_tp **tp);

/* ---- cuda_ipc_kernel.c ----------------------------------------------------- */

/* A rank's settings for operations that are one kernel, for an exchange. */
struct cuda_ipc_wish {
    int32_t engine;  /* CUDA_IPC_AUTO, ... */
    int32_t has_mps; /* its GPU runs kernels of several processes at once */
    int32_t pid;     /* and pid_ns: of its process */
    int32_t may_shrink; /* the slots fill the inbox, so they may become smaller */
    uint64_t most, pid_ns;
    unsigned char uuid[16];
};
enum { CUDA_IPC_AUTO, CUDA_IPC_STREAM, CUDA_IPC_KERNEL };

void cuda_ipc__wish(const struct cuda_ipc *tp, struct cuda_ipc_wish *out);

/* Compute base.kernel, without its stop word, from the wishes of the host's ranks,
 * [local_size]; the result is the same on all ranks.  Slots may shrink to keep the inbox
 * within its limit. */
void cuda_ipc__decide(struct cuda_ipc *tp, const struct cuda_ipc_wish *wishes);

/* Set all words to 0, before other ranks know of the inbox.  Returns a status, logged. */
int cuda_ipc__clear_words(const struct cuda_ipc *tp, void *stream);

void cuda_ipc__kernel_slot(const struct coll__stream_tp *tp, int peer,
                           int is_send, int n, struct coll__kernel_slot *out);

/* ---- cuda_ipc_host.c ------------------------------------------------------- */

/* Give ranks that are all on one host, but do not reach each other by their GPUs,
 * slots in host memory; only if other pairs do reach each other.  Collective, after
 * it is known which pairs do. may_share: this rank could use host memory.  Returns a
 * status of the exchange, or COLL_ERR_NOMEM, not logged: a rank without such memory
 * stays out of reach. */
int cuda_ipc__share_host(struct cuda_ipc *tp, const struct coll__tp_env *env,
                         int may_share);

/* ---- cuda_ipc_registration.c ------------------------------------------------------ */

int cuda_ipc__enroll(struct coll__stream_tp *tp, const struct coll__tp_env *env,
                     void *ptr, size_t len);
int cuda_ipc__dismiss(struct coll__stream_tp *tp,
                      const struct coll__tp_env *env, void *ptr);
void cuda_ipc__forget_registrations(struct cuda_ipc *tp);

/* A rank's part of a registration, for an exchange. */
struct cuda_ipc_part {
    int32_t status, can_export;
    int32_t
        may_stay; /* it is a buffer of the library, lent to the ranks that map it */
    int32_t misses; /* the caller has freed a lent buffer: all ranks must unmap idle
                     * ones */
    int32_t n_idle; /* how many idle allocations of each rank may stay mapped here */
    int32_t zero;   /* so that no byte is unset */
    uint64_t number, at, len;
    struct coll__cuda_memory memory;
    char why[CUDA_IPC_WHY];
};

/* ---- cuda_ipc_map.c ------------------------------------------------------- */

/* Map the allocation that holds rank r's part, or use it for one registration more; *at
 * is the part's address.  Returns a status, and why.  This rank's context must be
 * current, as for all functions below. */
int cuda_ipc__map_take(struct cuda_ipc *tp, int r,
                       const struct cuda_ipc_part *part, unsigned char **at,
                       char *why);

/* map_give: end one registration's use of the allocation.  map_note: mark the
 * allocation as just used. */
void cuda_ipc__map_give(struct cuda_ipc *tp, int r, uint64_t id);
void cuda_ipc__map_note(struct cuda_ipc *tp, int r, uint64_t id);

/* Close rank r's idle allocations, except the n_idle most recently used that may stay.  A
 * rank closes its own ones after all others have done so. */
void cuda_ipc__trim_maps(struct cuda_ipc *tp, int r, int n_idle);

/* Has the caller freed a buffer that is lent? */
int cuda_ipc__misses_maps(const struct cuda_ipc *tp);

/* Return how many bytes of other processes' memory are mapped. */
size_t cuda_ipc__mapped_len(const struct cuda_ipc *tp);

/* leave_maps: close all mappings of other ranks' memory, which no stream uses any more.
 * take_back_maps: take back the lent buffers, which the other ranks have closed.
 * forget_maps: free the lists; any context may be current. */
void cuda_ipc__leave_maps(struct cuda_ipc *tp);
void cuda_ipc__take_back_maps(struct cuda_ipc *tp);
void cuda_ipc__forget_maps(struct cuda_ipc *tp);

/* ---- cuda_ipc_close.c ---------------------------------------------------- */

void cuda_ipc__close(struct coll__stream_tp *tp, int is_orderly);
int cuda_ipc__held_by(struct coll__stream_tp *tp, void *stream);
void cuda_ipc__end(struct coll__cuda_held *held);
int cuda_ipc__was_reset(const struct coll__stream_tp *tp); /* cuda_ipc.c */
void cuda_ipc__release(struct coll__stream_tp *tp, int status);
void cuda_ipc__reclaim(void);

/* ---- cuda_ipc_shared.c --------------------------------------------------- */

/* Register the segment for this process's devices, unless it is registered, and set its
 * device address.  Returns a status, logged. */
int cuda_ipc__register(struct coll__segment *segment, size_t len,
                       unsigned char **seen);
void cuda_ipc__unregister(struct coll__segment *segment);

/* Make an inbox in the current context, which its owner drops.  Other ranks of the
 * process hold it while their streams may write to it.  Returns a status, logged. */
int cuda_ipc__make_inbox(size_t len, unsigned char **at);
void cuda_ipc__hold(void *at);
void cuda_ipc__drop(void *at);

#endif
