/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_stage.h - stages: pinned memory of the host for data that streams and the host hand
 * to each other, and words by which streams tell how far they are.
 *
 *   begun     written by a stream: a run has begun (transports/proxy.h)
 *   finished  written by a stream: it touches the stage no more for uses up to this
 *             number; uses are numbered, from 1 on and modulo 2^32, in the order in which
 *             the streams come to them
 *   spare     to try what streams do
 *
 * Pinning memory does not wait for streams.  Unpinning waits for all streams of the
 * context (driver 580 on an H100), and one of them may wait for this very thread.  So a
 * stage is never unpinned: the next communicator reuses it, once its streams have
 * finished.
 */
#ifndef COLL_LIB_DEVICE_CUDA_STAGE_H
#define COLL_LIB_DEVICE_CUDA_STAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum coll__stage_word {
    STAGE_BEGUN,
    STAGE_FINISHED,
    STAGE_SPARE,
    N_STAGE_WORDS
};

#define COLL__STAGE_WORDS 4096 /* bytes of all words, behind len */

struct coll__stage {
    unsigned char *base; /* aligned to a page */
    size_t len;
    uint32_t last;                /* the number of the last use */
    struct coll__stage_cuda *own; /* cuda_stage.c's */
    struct coll__stage *next;
};

/* Take a stage of len bytes for ctx, the current context; len 0: only the words.
 *
 * Result:    *stage, whose earlier uses have all finished.
 * Ownership: the caller puts it back; its streams may still use it then.
 * Errors:    COLL_ERR_NOMEM, COLL_ERR_SYSTEM, COLL_ERR_UNSUPPORTED; logged.
 * Threads:   any.
 * Cost:      pins the pages if no stage of that length is left.
 */
int coll__stage_take(void *ctx, size_t len, struct coll__stage **stage);
void coll__stage_put(struct coll__stage *stage);

/* Return the word's address for the host, and for streams. */
_Atomic uint32_t *coll__stage_word(const struct coll__stage *stage,
                                   enum coll__stage_word word);
void *coll__stage_flag(const struct coll__stage *stage,
                       enum coll__stage_word word);

/* Has the word reached that number? */
static inline int coll__stage_is_at(const struct coll__stage *stage,
                                    enum coll__stage_word word, uint32_t number)
{
    uint32_t at = atomic_load_explicit(coll__stage_word(stage, word),
                                       memory_order_acquire);

    return (int32_t)(at - number) >= 0;
}

/* follow(): make the stream wait until all uses up to `before` have finished.  It does so
 * even for the same handle, which may be of another stream by now.  finish(): have the
 * stream write that it has finished use `number`.  Both return a status, logged. */
int coll__stage_follow(const struct coll__stage *stage, uint32_t before,
                       void *stream);
int coll__stage_finish(const struct coll__stage *stage, uint32_t number,
                       void *stream);

/* Return the address for streams of the byte at `at` in the stage. */
void *coll__stage_seen(const struct coll__stage *stage, const void *at);

/* Say whether the stage's context still works.  Returns COLL_OK, or a status, logged with
 * the driver's text.  Any thread; cost: some calls of the driver. */
int coll__stage_probe(const struct coll__stage *stage);

#endif
