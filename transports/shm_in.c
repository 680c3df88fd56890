/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_in.c - the receiving side of shared memory: store or reduce bytes from where the
 * line says that they are. shm.h defines the owners. */
#include "transports/shm.h"
#include "lib/device/copy.h"
#include "transports/cma.h"

#include <string.h>

/* Bytes that one system call fetches: they take some 20 us, and the call less than
 * one. */
#define FETCH_MOST ((size_t)256 << 10)

#define NEAR_BYTES 4096 /* stay in the first cache */

/* Return the line to the sender, with the bytes that it names. */
static void pass_line(struct shm *shm, struct shm_in *in)
{
    atomic_store_explicit(&in->fifo->tail, ++in->next,
                          memory_order_release);
    shm_ring(shm, in->bell);
}

/* Should the stores bypass the caches? */
static int is_past(const struct shm *shm, const struct coll__xfer *xfer)
{
    return xfer->bytes.is_final && xfer->bytes.beside >= shm->stream_min;
}

static void put_away(const struct shm *shm, const struct coll__xfer *xfer,
                     unsigned char *to, const unsigned char *from, size_t n)
{
    if (is_past(shm, xfer))
        coll__copy_stream(to, from, n);
    else
        memcpy(to, from, n);
}

/* Reduce n bytes at `from` with those at xfer->done, into dst. */
static void combine(const struct coll__xfer *xfer, unsigned char *dst,
                    const unsigned char *from, size_t n)
{
    const unsigned char *with = xfer->with;

    if (xfer->reduce)
        xfer->reduce(dst, with + xfer->done, from, n);
    else
        memcpy(dst, from, n);
}

/* If the stored bytes are sent next, reduce into the cell that they are sent by, and copy
 * from there while they are in the cache. */
static void store_twice(const struct shm *shm, struct coll__xfer *xfer,
                        unsigned char *cell, const unsigned char *from,
                        size_t n)
{
    unsigned char *to = xfer->buf;
    size_t done = xfer->done, part;

    for (size_t at = 0; at < n; at += part) {
        part = min_size(n - at, NEAR_BYTES);
        combine(xfer, cell + at, from + at, part);
        put_away(shm, xfer, to + xfer->done, cell + at, part);
        xfer->done += part;
    }
    xfer->done = done;
}

static void store(struct shm *shm, struct coll__xfer *xfer, const void *from,
                  size_t n)
{
    unsigned char *to = (unsigned char *)xfer->buf + xfer->done;
    unsigned char *cell = NULL;

    if (n == min_size(xfer->len - xfer->done, shm->cells.len)) /* not a piece */
        cell = shm__cell_for(shm, xfer);
    if (cell)
        store_twice(shm, xfer, cell, from, n);
    else if (xfer->reduce || xfer->bytes.name) /* read again, and soon */
        combine(xfer, to, from, n);
    else
        put_away(shm, xfer, to, from, n);
    if (is_past(shm, xfer))
        coll__copy_fence();
}

/* Fetch the next n bytes of a message from the sender's memory at `from`. */
static int fetch(struct shm *shm, const struct shm_in *in,
                 struct coll__xfer *xfer, const unsigned char *from,
                 size_t n)
{
    unsigned char *to = (unsigned char *)xfer->buf + xfer->done;
    int rc;

    if (!xfer->reduce)
        return coll__cma_read(in->pid, to, from + xfer->done, n);
    rc = coll__cma_read(in->pid, shm->scratch, from + xfer->done, n);
    if (rc == COLL_OK)
        store(shm, xfer, shm->scratch, n);
    return rc;
}

/* Receive the next part of a message from the sender's region. */
static int read_in_place(struct shm *shm, struct shm_in *in,
                         struct coll__xfer *xfer, const struct shm_line *line,
                         size_t n)
{
    int rc = COLL_OK;

    if (!in->region)
        rc = shm__find_region(shm, in, &line->region, xfer->len);
    if (rc == COLL_OK)
        store(shm, xfer, in->from + xfer->done, n);
    return rc;
}

/* Receive the next part of the bytes that the sender offers; after the last part, pass
 * the line.  A sender that fails withdraws its offers before its caller may change the
 * bytes.  So all that was read before the withdrawal is whole; if the bytes cannot be
 * read any more, the sender has failed. */
static int pull_offer(struct shm *shm, struct shm_in *in,
                      struct coll__xfer *xfer, const struct shm_line *line)
{
    int is_region = line->what % SHM_WHERES == SHM_REGION, rc;
    size_t n = xfer->len - xfer->done;

    /* a part at a time: other ranks can run in between, and the bytes read here stay in
     * the cache */
    n = min_size(n, xfer->reduce || is_region ? shm->cells.len : FETCH_MOST);
    rc = is_region ? read_in_place(shm, in, xfer, line, n)
                   : fetch(shm, in, xfer, line->address, n);
    shm_keep_order();
    if (!shm_is_there(in, line))
        rc = COLL_ERR_PEER;
    xfer->done += n;
    if (rc || xfer->done == xfer->len)
        in->region = NULL;
    if (rc)
        xfer->status = rc;
    else if (xfer->done == xfer->len)
        pass_line(shm, in);
    return 1;
}

int shm__pull(struct shm *shm, struct shm_in *in, struct coll__xfer *xfer)
{
    uint64_t index = in->next & (shm->n_lines - 1);
    struct shm_line *line = shm_next_line(shm, in);
    size_t n;

    if (!shm_is_there(in, line))
        return 0;
    if (xfer->done == 0 &&
        !coll__xfer_fits(xfer, &line->sig, line->what / SHM_WHERES)) {
        xfer->status = COLL_ERR_MISMATCH;
        return 1;
    }
    switch ((enum shm_where)(line->what % SHM_WHERES)) {
    case SHM_THERE:
    case SHM_REGION:
        return pull_offer(shm, in, xfer, line);
    case SHM_CELL:
        n = min_size(xfer->len - xfer->done, shm->cells.len);
        store(shm, xfer, in->cells + line->cell * shm->cells.len, n);
        break;
    case SHM_SLOT:
        n = shm_in_slot(shm, xfer);
        store(shm, xfer, in->slots + index * shm->slot, n);
        break;
    default:
        n = xfer->len;
        if (xfer->reduce && n)
            xfer->reduce(xfer->buf, xfer->with, line->bytes, n);
        else
            shm_copy_inline(xfer->buf, line->bytes, n);
    }
    pass_line(shm, in);
    xfer->done += n;
    return 1;
}

int shm__take(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct shm *shm = (struct shm *)tp;
    struct shm_in *in = shm_in_of(shm, xfer);

    if (in->first || !shm_is_there(in, shm_next_line(shm, in)))
        return COLL_IN_PROGRESS;
    xfer->done = 0;
    xfer->status = COLL_IN_PROGRESS;
    shm__pull(shm, in, xfer);
    if (xfer->status == COLL_IN_PROGRESS)
        xfer->status = COLL_OK;
    return xfer->status;
}
