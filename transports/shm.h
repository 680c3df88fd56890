/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.h - what lies in the shared segment of a host's ranks, and who owns it.
 *
 * Each ordered pair of ranks has a fifo for each channel: a ring of lines, each a
 * pair of cache lines, and a slot of data behind each.  Each rank has cells
 * besides, for what does not fit a slot; it alone writes them, whoever it names in
 * a line reads them.  So bytes that go to several ranks are written once.
 *
 *   fifo src -> dst:  tail | line 0 .. n-1 | slot 0 .. n-1
 *   line:                full | what | head | payload, or where it lies
 *   rank:                cell 0 .. m-1, and a bell
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
 * There is no read-modify-write in that, and no counter wraps (64 bits).
 *
 * A rank that has nothing to do sleeps, and its bell says so: whoever then stores
 * a `full` or a `tail` for it wakes it (shm_bell.c).
 *
 * A free cell is kept for every fifo that holds none, and what is beyond these
 * is given to whoever asks.  Only a cell that several fifos hold can make them
 * too few: one of these gives it back, the others keep it.  What is for a fifo
 * that finds none goes in pieces by the slots then.  So a rank that takes nothing
 * of a channel never keeps messages from others, or from other channels.
 */
#ifndef COLL_TRANSPORTS_SHM_H
#define COLL_TRANSPORTS_SHM_H

#include "transports/transport.h"
#include "lib/device/area.h"
#include "lib/util/fence.h"
#include "lib/util/util.h"

#include <stdatomic.h>
#include <string.h>

#define SHM_LINE 128 /* two cache lines, since processors fetch pairs of them */
#define SHM_INLINE (SHM_LINE - sizeof(uint64_t) - 8 - sizeof(struct coll__head))

/* Where the bytes of a line are. */
enum shm_where {
    SHM_HERE,  /* in the line, or nowhere: there are none */
    SHM_SLOT,  /* in the slot of the line; in pieces when it is larger */
    SHM_CELL,  /* in a cell of the sender */
    SHM_THERE, /* in the sender's own memory */
    SHM_AREA,  /* in the sender's memory that others map, too */
    SHM_WHERES = 8 /* as many as fit; a power of two */
};

struct shm_line {
    _Atomic uint64_t full;
    uint64_t what; /* bytes of the message * SHM_WHERES + where */
    struct coll__head head;
    union {
        unsigned char bytes[SHM_INLINE];
        uint64_t cell;
        const void *address;
        struct coll__area_place area;
    };
};

_Static_assert(sizeof(struct shm_line) == SHM_LINE, "no gaps");

struct shm_fifo {
    _Atomic uint64_t tail;
    unsigned char pad[2 * CACHE_LINE - sizeof(uint64_t)];
    struct shm_line lines[];
};

enum { SHM_AWAKE, SHM_ASLEEP };

/* A rank's: ASLEEP is its own to store, AWAKE that of whoever wakes it. */
struct shm_bell {
    atomic_int word;     /* a futex */
    atomic_int waits_on; /* transport.h's; whoever publishes reads this line */
    unsigned char pad[CACHE_LINE - 2 * sizeof(atomic_int)];
};

/* The sending end of a fifo. */
struct shm_out {
    struct shm_fifo *fifo;
    unsigned char *slots;
    struct shm_bell *bell; /* of the receiver */
    uint64_t next;   /* the line to be written next */
    uint64_t freed;  /* lines below it are free again, as far as we know */
    int16_t *cell_of; /* [n_lines]: the cell that a line names, or -1 */
    int n_held;      /* cells that its lines name */
    int n_denied;    /* how often it held none and found none */
    struct coll__xfer *first, **last;      /* not written yet */
    struct coll__xfer *there, **there_last; /* written; for the receiver to
                                             * read where they are */
    int is_active;
};

/* The receiving end. */
struct shm_in {
    struct shm_fifo *fifo;
    unsigned char *slots, *cells;
    struct shm_bell *bell; /* of the sender */
    uint64_t next; /* the line to be read next */
    int pid;       /* of the sender, for what is in its own memory */
    struct coll__xfer *first, **last;
    struct coll__area_map *area; /* where the first one is read from; else NULL */
    const unsigned char *from;   /* and its first byte there */
    int is_active;
};

/* One of this rank's cells, and the bytes in it. */
struct shm_cell {
    uint64_t name; /* as in struct coll__bytes */
    size_t off;    /* within the message */
    int n_lines;   /* that name it and are not free again */
    int64_t order; /* when it was freed, or (below 0) kept; 0: never used */
};

#define SHM_AREA_BUCKETS 64

/* The ends with transfers, of a channel. */
struct shm_active {
    struct shm_out **out;
    struct shm_in **in;
    int n_out, n_in;
    int next_out, next_in; /* where the next round goes on */
};

struct shm {
    struct coll__tp base;
    int local_rank, local_size;
    struct coll__link link;
    size_t n_lines, slot; /* n_lines is a power of two */
    size_t cell, n_cells;
    size_t fetch_min; /* length of the shortest message that is fetched, and how
                       * much may move beside it */
    size_t fetch_max;
    size_t area_min; /* and of those that are read in their area */
    size_t stream_min; /* beside so much, results are stored past the caches */

    struct coll__segment *segment; /* NULL: no rank is in reach */
    unsigned char *map;
    int *local_of; /* [size]: local rank, -1 where out of reach */
    int file;      /* the others open it until all have; or -1 */
    struct shm_bell *bell; /* this rank's */
    int rings_surely;      /* the others' processes take part in its fences */

    int n_lanes;         /* channels of all local ranks */
    struct shm_out *out; /* [n_lanes] */
    struct shm_in *in;
    struct shm_active active[COLL__CHANNELS];
    void *active_room;
    int n_ended; /* offers, since the last poll */

    unsigned char *cells; /* this rank's */
    struct shm_cell *cell_state; /* [n_cells] */
    int16_t *cell_of;            /* all fifos' */
    int64_t n_freed, n_kept;     /* how often one was freed; was kept free */
    int n_free, n_used;          /* now; ever */
    int n_without; /* fifos, none to this rank itself, that hold no cell */
    unsigned char *scratch; /* what is fetched to be reduced, or NULL */
    struct shm_area *areas[SHM_AREA_BUCKETS]; /* that this rank has read */
};

/* Bytes that go into a slot next: a small message, or the piece of a larger one
 * that fits and ends within what its cell would hold. */
static inline size_t shm_in_slot(const struct shm *shm,
                                 const struct coll__xfer *xfer)
{
    size_t left = xfer->len - xfer->done;

    if (xfer->len <= shm->slot)
        return left;
    left = min_size(left, shm->cell - xfer->done % shm->cell);
    return min_size(left, shm->slot);
}

/* Copy n bytes, a line's payload at most, without a call. */
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

/* The line that a receiver reads next. */
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

/* What was read and written before stays before what is read and written
 * after, whatever it is: for offers, whose bytes are plain memory.  x86 keeps
 * that order by itself, but for a store and a later load. */
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

/* Something has been stored for that rank: wake it if it sleeps. */
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
    SHM_OFFERED  /* all of it; it is to stay until the receiver has read it */
};

/* Write as much of a message as can be now. */
enum shm_pushed shm__push(struct shm *shm, struct shm_out *out, struct coll__xfer *xfer);

/* transport.h's put(), for messages that fit a slot. */
int shm__put(struct coll__tp *tp, struct coll__xfer *xfer);

/* Learn which lines are free again; messages that were fetched are done.
 * Returns how many lines. */
int shm__reclaim(struct shm *shm, struct shm_out *out);

/* A message goes onward: return the cell for its next bytes, which a send finds
 * there if it comes soon; or NULL. */
unsigned char *shm__cell_for(struct shm *shm, const struct coll__xfer *xfer);

/* Take back what is offered: who reads it notices. */
void shm__withdraw(const struct shm *shm, struct shm_out *out);

/* ---- shm_in.c: the receiving side ---------------------------------------- */

/* Take the next line of a message, or a part of what it names; 0 while none has
 * come. */
int shm__pull(struct shm *shm, struct shm_in *in, struct coll__xfer *xfer);

/* transport.h's take(). */
int shm__take(struct coll__tp *tp, struct coll__xfer *xfer);

/* ---- shm_area.c: reading in place ------------------------------------------ */

/* Let in->from be where a message of len bytes lies, and in->area the area. */
int shm__find_area(struct shm *shm, struct shm_in *in,
                   const struct coll__area_place *place, size_t len);

void shm__drop_areas(struct shm *shm);

#endif
