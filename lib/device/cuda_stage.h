/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stage.h - pinned memory of the host on the way between streams and ranks,
 * and words by which a stream and the host hand it to each other.
 *
 * What passes is numbered, from 1 on and modulo 2^32, in the order in which the
 * streams come to it:
 *
 *   ready     the stream writes it: up to here the host may work on the stage
 *   done      the host stores it: up to here a stream that waits may go on
 *   finished  the stream writes it: up to here it will touch the stage no more
 *   idle      the host stores it, of what a graph does again and again: a launch may
 *             begin (lib/stream/captured.h, which counts anew in each)
 *
 * Making one pins memory, which returns whatever streams wait for; unpinning waits
 * for all streams of the context (an H100's driver 580), one of which may wait for
 * what this very thread was about to do.  So a stage is never unpinned: what one
 * communicator leaves is the next one's, as soon as its streams have finished.
 */
#ifndef COLL_LIB_DEVICE_CUDA_STAGE_H
#define COLL_LIB_DEVICE_CUDA_STAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum coll__stage_word {
    STAGE_READY,
    STAGE_DONE,
    STAGE_FINISHED,
    STAGE_IDLE,
    N_STAGE_WORDS
};

#define COLL__STAGE_WORDS 4096 /* bytes that they take, behind len */

struct coll__stage {
    unsigned char *base; /* aligned to a page */
    size_t len;
    uint32_t last;                /* number that was given to anybody */
    struct coll__stage_cuda *own; /* cuda_stage.c's */
    struct coll__stage *next;
};

/* Take one of len bytes for the context that is current, ctx; 0: words alone.
 *
 * Result:    all that it was used for before has finished.
 * Ownership: the caller's, to be put back; its streams may still be at it then.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_SYSTEM, COLL_ERR_UNSUPPORTED; logged.
 * Threads:   any.
 * Cost:      pins the pages, where none is left of that length.
 */
int coll__stage_take(void *ctx, size_t len, struct coll__stage **stage);
void coll__stage_put(struct coll__stage *stage);

/* The word as the host sees it, and as a stream does. */
_Atomic uint32_t *coll__stage_word(const struct coll__stage *stage,
                                   enum coll__stage_word word);
void *coll__stage_flag(const struct coll__stage *stage,
                       enum coll__stage_word word);

/* Has the word come to that number? */
static inline int coll__stage_is_at(const struct coll__stage *stage,
                                    enum coll__stage_word word, uint32_t number)
{
    uint32_t at = atomic_load_explicit(coll__stage_word(stage, word),
                                       memory_order_acquire);

    return (int32_t)(at - number) >= 0;
}

/* Put what comes behind all up to that number, where some is still in a stream: one of
 * that handle may be another one than it was.  And say that the stream has passed
 * `number`.  Statuses, logged. */
int coll__stage_follow(const struct coll__stage *stage, uint32_t before,
                       void *stream);
int coll__stage_finish(const struct coll__stage *stage, uint32_t number,
                       void *stream);

/* Where a stream sees what lies at `at` in the stage. */
void *coll__stage_seen(const struct coll__stage *stage, const void *at);

/* Say whether the stage's context still works: COLL_OK, or a status, logged with
 * the driver's text.  Any thread; cost: some calls of the driver. */
int coll__stage_probe(const struct coll__stage *stage);

#endif
