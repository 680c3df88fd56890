/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.h - the contents of the shared segment of a host's ranks, and the owner of each
 * part.
 *
 * Each ordered pair of ranks has a fifo for each channel: a ring of lines (each a pair of
 * cache lines), and a slot of data for each line.  Each rank also has cells, for messages
 * that do not fit a slot.  Only that rank writes its cells; the receivers that it names
 * in lines read them.  So bytes for several receivers are written once.
 *
 *   fifo src -> dst:  tail | line 0 .. n-1 | slot 0 .. n-1
 *   line: full | what | signature | payload, or its place rank: cell 0 .. m-1, and a
 *   bell
 *
 * A message is one line or several (one for each cell or piece), in order.
 * Line k (counted from 0, for ever) is at k modulo n.  The sender alone writes
 * lines, slots and cells, the receiver alone writes `tail`:
 *
 *   full = k + 1, release      line k, and the bytes that it names, are there;
 *                              read after an acquire load of it
 *   tail = k + 1, release      the receiver is done with line k and with the
 *                              bytes that it names; written again after an
 *                              acquire load of it
 *
 * No read-modify-write is needed, and no counter wraps (64 bits).
 *
 * An idle rank sleeps, and its bell says so: a rank that then stores a `full` or a `tail`
 * for it wakes it (shm_bell.c).
 *
 * One free cell is reserved for every fifo that holds none; the others go to any fifo
 * that asks.  Only a cell that several fifos hold can make the reserve too small: when
 * one of them returns its hold, the others still keep the cell.  A fifo that then finds
 * no cell sends in pieces through the slots.  So a receiver that takes nothing on one
 * channel never blocks messages to other ranks or on other channels.
 */
#ifndef COLL_TRANSPORTS_SHM_H
#define COLL_TRANSPORTS_SHM_H

#include "transports/transport.h"
#include "lib/device/region.h"
#include "lib/util/fence.h"
#include "lib/util/util.h"

#include <stdatomic.h>
#include <string.h>

#define SHM_LINE 128 /* two cache lines, since processors fetch pairs of them */
#define SHM_INLINE                                                             \
    (SHM_LINE - sizeof(uint64_t) - 8 - sizeof(struct coll__signature))

/* Where the bytes of a line are. */
enum shm_where {
    SHM_HERE,      /* in the line; also for messages without bytes */
    SHM_SLOT,      /* in the line's slot; larger messages in pieces */
    SHM_CELL,      /* in a cell of the sender */
    SHM_THERE,     /* in the sender's own memory */
    SHM_REGION,    /* in the sender's memory, which other ranks map too */
    SHM_WHERES = 8 /* as many as fit; a power of two */
};

struct shm_line {
    _Atomic uint64_t full;
    uint64_t what; /* bytes of the message * SHM_WHERES + where */
    struct coll__signature sig;
    union {
        unsigned char bytes[SHM_INLINE];
        uint64_t cell;
        const void *address;
        struct coll__region_place region;
    };
};

_Static_assert(sizeof(struct shm_line) == SHM_LINE, "no gaps");

struct shm_fifo {
    _Atomic uint64_t tail;
    unsigned char pad[2 * CACHE_LINE - sizeof(uint64_t)];
    struct shm_line lines[];
};

enum { SHM_AWAKE, SHM_ASLEEP };

/* One for each rank: the rank itself stores ASLEEP, the rank that wakes it stores
 * AWAKE. */
struct shm_bell {
    atomic_int word; /* a futex */
    /* As in transport.h; it is here since senders read this cache line anyway. */
    atomic_int published;
    unsigned char pad[CACHE_LINE - 2 * sizeof(atomic_int)];
};

/* The sending end of a fifo. */
struct shm_out {
    struct shm_fifo *fifo;
    unsigned char *slots;
    struct shm_bell *bell; /* of the receiver */
    uint64_t next;   /* the line to be written next */
    uint64_t freed;  /* lines below it are known to be free again */
    int16_t *cell_of; /* [n_lines]: the cell that each line names, or -1 */
    int n_held;      /* cells that its lines name */
    int n_denied;    /* how often it needed a cell, held none and found none */
    struct coll__xfer *first, **last;      /* not written yet */
    struct coll__xfer *there, **there_last; /* written, and to be read in place by the
                                             * receiver */
    int is_active;
};

/* The receiving end. */
struct shm_in {
    struct shm_fifo *fifo;
    unsigned char *slots, *cells;
    struct shm_bell *bell; /* of the sender */
    uint64_t next; /* the line to be read next */
    int pid;       /* of the sender, to read its own memory */
    struct coll__xfer *first, **last;
    struct coll__region_map
        *region; /* the region of the first message; NULL: in none */
    const unsigned char *from;   /* and its first byte there */
    int is_active;
};

/* One of this rank's cells, and the bytes in it. */
struct shm_cell {
    uint64_t name; /* as in struct coll__bytes */
    size_t off;    /* within the message */
    int n_lines;   /* lines that name it and are not free yet */
    struct shm_cell_list
        *list; /* in which it is, or NULL; and its place there */
    struct shm_cell *next, **at;
};

struct shm_cell_list {
    struct shm_cell *first, **last;
};

#define SHM_REGION_BUCKETS 64

/* The ends of one channel that have transfers. */
struct shm_active {
    struct shm_out **out;
    struct shm_in **in;
    int n_out, n_in;
    int next_out, next_in; /* where the next round goes on */
};

/* This rank's cells. */
struct shm_cells {
    size_t len, n;           /* bytes of a cell; cells */
    unsigned char *at;       /* [n * len] */
    struct shm_cell *state;  /* [n] */
    int16_t *of_line;        /* cell_of of all fifos */
    struct shm_cell_list
        freed; /* free ones that were used, the earliest first */
    struct shm_cell_list
        kept;      /* free ones with bytes of a send that comes soon */
    size_t n_used; /* cells below it have been used */
    size_t latest; /* the one that was taken last */
    int n_free;
    int n_without;           /* fifos to other ranks that hold no cell */
};

struct shm {
    struct coll__tp base;
    int local_rank, local_size;
    struct coll__link link;
    size_t n_lines, slot; /* n_lines is a power of two */
    size_t fetch_min; /* least length of a fetched message; fetch_max: most bytes that may
                       * move at the same time */
    size_t fetch_max;
    size_t
        region_min; /* least length of a message that is read in its region */
    size_t stream_min; /* if at least so many bytes move at the same time, results are
                        * stored past the caches */

    struct coll__segment *segment; /* NULL: no rank is in reach */
    unsigned char *map;
    int *local_of; /* [size]: local rank, -1 if out of reach */
    int file;      /* open until all others have opened it; or -1 */
    struct shm_bell *bell; /* this rank's */
    int rings_surely;      /* this rank's fences reach the others' processes */

    int n_lanes;         /* channels of all local ranks */
    struct shm_out *out; /* [n_lanes] */
    struct shm_in *in;
    struct shm_active active[COLL__CHANNELS];
    int n_used; /* channels below it have had transfers that waited */
    int n_ended; /* offers, since the last poll */

    struct shm_cells cells;
    unsigned char *scratch; /* buffer for fetched bytes that are reduced, or NULL */
    struct shm_region
        *regions[SHM_REGION_BUCKETS]; /* that this rank has read */
};

/* Return how many bytes go into a slot next: a small message, or a piece of a larger one.
 * The piece fits the slot and does not cross a multiple of the cell's length. */
static inline size_t shm_in_slot(const struct shm *shm,
                                 const struct coll__xfer *xfer)
{
    size_t left = xfer->len - xfer->done;

    if (xfer->len <= shm->slot)
        return left;
    left = min_size(left, shm->cells.len - xfer->done % shm->cells.len);
    return min_size(left, shm->slot);
}

/* Copy n bytes, at most a line's payload, without a function call. */
static inline void shm_copy_inline(void *dst, const void *src, size_t n)
{
    unsigned char *to = dst;
    const unsigned char *from = src;

    if (n >= 8) {
        for (size_t at = 0; at + 8 < n; at += 8)
            memcpy(to + at, from + at, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        for (size_t at = 0; at < n; at++)
            to[at] = from[at];
    }
}

/* A transfer's end of a fifo. */
static inline struct shm_out *shm_out_of(const struct shm *shm,
                                         const struct coll__xfer *xfer)
{
    return &shm->out[coll__lane(xfer->channel, shm->local_of[xfer->peer],
                                shm->local_size)];
}

static inline struct shm_in *shm_in_of(const struct shm *shm,
                                       const struct coll__xfer *xfer)
{
    return &shm->in[coll__lane(xfer->channel, shm->local_of[xfer->peer],
                               shm->local_size)];
}

/* Return the line that a receiver reads next. */
static inline struct shm_line *shm_next_line(const struct shm *shm,
                                             const struct shm_in *in)
{
    return &in->fifo->lines[in->next & (shm->n_lines - 1)];
}

/* Has it come? */
static inline int shm_is_there(const struct shm_in *in,
                               const struct shm_line *line)
{
    return atomic_load_explicit(&line->full, memory_order_acquire) ==
           in->next + 1;
}

/* Order all reads and writes before this point before all later ones, also those of plain
 * memory: offers need it. x86 keeps that order by itself, except for a store and a later
 * load. */
static inline void shm_keep_order(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __asm__ volatile("" ::: "memory");
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* ---- shm_bell.c: sleeping and waking ------------------------------------- */

/* transport.h's arm(). */
int shm__arm(struct coll__tp *tp, struct coll__bell *bell);

void shm__wake(struct shm *shm, struct shm_bell *bell);

/* Wake that rank if it sleeps; call this after a store that it waits for. */
static inline void shm_ring(struct shm *shm, struct shm_bell *bell)
{
    coll__fence_light();
    if (__builtin_expect(
            atomic_load_explicit(&bell->word, memory_order_relaxed), SHM_AWAKE))
        shm__wake(shm, bell);
}

/* ---- shm_segment.c: opening and closing ---------------------------------- */

int shm__open(const struct coll__tp_env *env, struct coll__tp **tp);
int shm__settle(struct coll__tp *tp, const uint32_t *found);
void shm__close(struct coll__tp *tp, int is_orderly);
int shm__usable(char *why, size_t len);

/* ---- shm_out.c: the sending side ----------------------------------------- */

enum shm_pushed {
    SHM_NOTHING,
    SHM_WRITTEN, /* some of it, or all */
    SHM_OFFERED  /* all of it, in place: unchanged until the receiver has read it */
};

/* Write as much of a message as possible now. */
enum shm_pushed shm__push(struct shm *shm, struct shm_out *out, struct coll__xfer *xfer);

/* transport.h's put(), for messages that fit a slot. */
int shm__put(struct coll__tp *tp, struct coll__xfer *xfer);

/* Find the lines that are free again, and end the messages that were fetched.  Returns
 * how many lines. */
int shm__reclaim(struct shm *shm, struct shm_out *out);

/* For a message that is sent on: return the cell for its next bytes, where a send soon
 * after finds them; or NULL. */
unsigned char *shm__cell_for(struct shm *shm, const struct coll__xfer *xfer);

/* Withdraw all offers; a receiver in the midst of one notices. */
void shm__withdraw(const struct shm *shm, struct shm_out *out);

/* ---- shm_in.c: the receiving side ---------------------------------------- */

/* Receive the next line of a message, or a part of the bytes that it names; returns 0
 * if none has arrived. */
int shm__pull(struct shm *shm, struct shm_in *in, struct coll__xfer *xfer);

/* transport.h's take(). */
int shm__take(struct coll__tp *tp, struct coll__xfer *xfer);

/* ---- shm_region.c: reading in place ------------------------------------------ */

/* Set in->from to the address of a message of len bytes, and in->region to its region. */
int shm__find_region(struct shm *shm, struct shm_in *in,
                     const struct coll__region_place *place, size_t len);

void shm__drop_regions(struct shm *shm);

#endif
