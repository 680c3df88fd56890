/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_out.c - the sending side of shared memory: lines, and the cells that they name.
 * shm.h defines the owners. */
#include "transports/shm.h"

#include <string.h>

#define PATIENCE 200 /* tries */
#define FEW 8        /* cells that are used in turn */
#define TWICE 16     /* times fetch_min */
#define SHARED_MIN                                                             \
    256 /* bytes, from which on a cell pays for several receivers */

/* ---- lists of free cells --------------------------------------------------- */

static void append(struct shm_cell_list *list, struct shm_cell *cell)
{
    cell->list = list;
    cell->next = NULL;
    cell->at = list->last;
    *list->last = cell;
    list->last = &cell->next;
}

/* Take a cell out of the list in which it is, if it is in one. */
static void take_out(struct shm_cell *cell)
{
    if (!cell->list)
        return;
    *cell->at = cell->next;
    if (cell->next)
        cell->next->at = cell->at;
    else
        cell->list->last = cell->at;
    cell->list = NULL;
}

/* ---- lines and cells that are free again --------------------------------- */

static void drop_cell(struct shm *shm, struct shm_out *out, int index)
{
    struct shm_cell *cell = &shm->cells.state[index];

    if (--cell->n_lines == 0) {
        append(&shm->cells.freed, cell);
        shm->cells.n_free++;
    }
    if (--out->n_held == 0)
        shm->cells.n_without++;
}

/* End the offers in lines below `tail`, which the receiver has read.  A search for a free
 * cell may call this, so n_ended tells poll() of it. */
static void end_offers(struct shm *shm, struct shm_out *out, uint64_t tail)
{
    struct coll__xfer *xfer;

    while ((xfer = out->there) && (uintptr_t)xfer->priv < tail) {
        out->there = xfer->next;
        if (!out->there)
            out->there_last = &out->there;
        coll__xfer_end(xfer, COLL_OK);
        shm->n_ended++;
    }
}

int shm__reclaim(struct shm *shm, struct shm_out *out)
{
    uint64_t tail = atomic_load_explicit(&out->fifo->tail,
                                         memory_order_acquire);
    int n = (int)(tail - out->freed);

    for (; out->freed < tail; out->freed++) {
        int16_t *cell = &out->cell_of[out->freed & (shm->n_lines - 1)];

        if (*cell >= 0)
            drop_cell(shm, out, *cell);
        *cell = -1;
    }
    end_offers(shm, out, tail);
    return n;
}

static void reclaim_all(struct shm *shm)
{
    for (int i = 0; i < shm->n_lanes; i++)
        if (shm->out[i].n_held)
            shm__reclaim(shm, &shm->out[i]);
}

static int has_line(struct shm *shm, struct shm_out *out)
{
    if (out->next - out->freed < shm->n_lines)
        return 1;
    shm__reclaim(shm, out);
    return out->next - out->freed < shm->n_lines;
}

/* May this fifo take one more cell?  One must be left for each other fifo that holds
 * none. */
static int may_take(const struct shm *shm, const struct shm_out *out)
{
    return shm->cells.n_free > shm->cells.n_without - (out->n_held == 0);
}

/* ---- which cell ----------------------------------------------------------- */

static int has_bytes(const struct shm_cell *cell, const struct coll__xfer *xfer)
{
    return cell->name == xfer->bytes.name && cell->off == xfer->done;
}

/* Return the cell that already holds these bytes of the message, or -1.  Small messages
 * with the same bytes follow each other. */
static int find_same(const struct shm *shm, const struct coll__xfer *xfer)
{
    const struct shm_cells *cells = &shm->cells;

    if (!xfer->bytes.name)
        return -1;
    if (has_bytes(&cells->state[cells->latest], xfer))
        return (int)cells->latest;
    for (size_t i = 0; i < cells->n && xfer->len > shm->slot; i++)
        if (has_bytes(&cells->state[i], xfer))
            return (int)i;
    return -1;
}

/* Should the next cell be the first unused one?  A cell that a receiver has just read is
 * slow to write, so a few cells take turns. */
static int is_new_one_next(const struct shm_cells *cells)
{
    return cells->n_used < cells->n &&
           (cells->n_used < FEW || !cells->freed.first);
}

/* Take a free cell for these bytes; there is one.  Before it takes one more than a few, or
 * one that is kept, it checks whether others have become free. */
static int take_free(struct shm *shm, uint64_t name, size_t off)
{
    struct shm_cells *cells = &shm->cells;
    struct shm_cell *cell;

    if (cells->n_used >= FEW && !cells->freed.first)
        reclaim_all(shm);
    if (is_new_one_next(cells))
        cell = &cells->state[cells->n_used++];
    else
        cell = cells->freed.first ? cells->freed.first : cells->kept.first;
    take_out(cell);
    cell->name = name;
    cell->off = off;
    cells->latest = (size_t)(cell - cells->state);
    return (int)cells->latest;
}

/* Should the receiver fetch the message?  If this rank also copies the bytes itself, they
 * are in its cache for a second copy, up to a length. */
static int is_fetched(const struct shm *shm, const struct coll__xfer *xfer)
{
    size_t times = xfer->bytes.is_copied ? TWICE : 1;

    return xfer->bytes.is_exchange && xfer->len / times >= shm->fetch_min &&
           xfer->bytes.beside <= shm->fetch_max;
}

/* Can the receiver read it in place?  Then *place is its address. */
static int is_in_region(const struct shm *shm, const struct coll__xfer *xfer,
                        struct coll__region_place *place)
{
    return xfer->len >= shm->region_min &&
           coll__region_find(xfer->buf, xfer->len, place);
}

unsigned char *shm__cell_for(struct shm *shm, const struct coll__xfer *xfer)
{
    struct coll__region_place place;
    int index;

    if (!xfer->bytes.name || xfer->len <= shm->slot ||
        shm->cells.n_free <= shm->cells.n_without || is_fetched(shm, xfer) ||
        is_in_region(shm, xfer, &place))
        return NULL;
    index = take_free(shm, xfer->bytes.name, xfer->done);
    append(&shm->cells.kept, &shm->cells.state[index]);
    return shm->cells.at + (size_t)index * shm->cells.len;
}

/* Let a line of `out` name a cell, and count the cell's lines and the free cells. */
static void hold_cell(struct shm *shm, struct shm_out *out, int index)
{
    struct shm_cell *cell = &shm->cells.state[index];

    if (cell->n_lines++ == 0) {
        take_out(cell);
        shm->cells.n_free--;
    }
    if (out->n_held++ == 0)
        shm->cells.n_without--;
    out->cell_of[out->next & (shm->n_lines - 1)] = (int16_t)index;
}

/* Find a cell with the next n bytes of a message, or copy them into a free one.  Returns
 * its index, or -1 if there is none. */
static int fill_cell(struct shm *shm, struct shm_out *out,
                     const struct coll__xfer *xfer, size_t n)
{
    int index = find_same(shm, xfer);

    if (index >= 0 && shm->cells.state[index].n_lines)
        return index;
    if (!may_take(shm, out)) {
        reclaim_all(shm);
        if (!may_take(shm, out))
            return -1;
    }
    if (index >= 0)
        return index;
    index = take_free(shm, xfer->bytes.name, xfer->done);
    memcpy(shm->cells.at + (size_t)index * shm->cells.len,
           (const unsigned char *)xfer->buf + xfer->done, n);
    return index;
}

/* Has this fifo, which holds no cell, waited too long for one?  Then other fifos keep all
 * cells, with bytes that this fifo's receiver has got already.  They should return one
 * soon; if not, send without a cell. */
static int is_kept_out(struct shm_out *out)
{
    return out->n_held == 0 && ++out->n_denied > PATIENCE;
}

/* ---- messages ------------------------------------------------------------- */

static void write_line(struct shm *shm, struct shm_out *out,
                       struct shm_line *line, const struct coll__xfer *xfer,
                       enum shm_where where)
{
    line->what = (uint64_t)xfer->len * SHM_WHERES + where;
    line->sig = xfer->sig;
    atomic_store_explicit(&line->full, ++out->next, memory_order_release);
    shm_ring(shm, out->bell);
}

/* Put a small message's bytes into a cell, once for all its receivers, if there is a free
 * one; else into the line's slot. */
static enum shm_where push_bytes(struct shm *shm, struct shm_out *out,
                                 struct shm_line *line, uint64_t slot,
                                 const struct coll__xfer *xfer)
{
    int is_shared = xfer->bytes.name && xfer->len >= SHARED_MIN &&
                    xfer->len <= shm->cells.len;
    int index = is_shared ? fill_cell(shm, out, xfer, xfer->len) : -1;

    if (index < 0) {
        memcpy(out->slots + slot * shm->slot, xfer->buf, xfer->len);
        return SHM_SLOT;
    }
    hold_cell(shm, out, index);
    line->cell = (uint64_t)index;
    return SHM_CELL;
}

/* Send a message that fits the line or its slot. */
static void push_small(struct shm *shm, struct shm_out *out,
                       struct coll__xfer *xfer)
{
    uint64_t index = out->next & (shm->n_lines - 1);
    struct shm_line *line = &out->fifo->lines[index];
    enum shm_where where = SHM_HERE;

    if (xfer->len > SHM_INLINE)
        where = push_bytes(shm, out, line, index, xfer);
    else if (xfer->len)
        shm_copy_inline(line->bytes, xfer->buf, xfer->len);
    write_line(shm, out, line, xfer, where);
    xfer->done = xfer->len;
}

/* Offer the message's address, if the receiver can read it there. */
static int push_offer(struct shm *shm, struct shm_out *out,
                      struct coll__xfer *xfer)
{
    struct shm_line *line = &out->fifo->lines[out->next &
                                                 (shm->n_lines - 1)];
    int is_region = is_in_region(shm, xfer, &line->region);

    if (!is_region && !is_fetched(shm, xfer))
        return 0;
    if (!is_region)
        line->address = xfer->buf;
    xfer->priv = (void *)(uintptr_t)out->next;
    write_line(shm, out, line, xfer, is_region ? SHM_REGION : SHM_THERE);
    xfer->done = xfer->len;
    return 1;
}

/* Send a piece of a message through the slot. */
static void push_piece(struct shm *shm, struct shm_out *out,
                       struct coll__xfer *xfer)
{
    uint64_t index = out->next & (shm->n_lines - 1);
    size_t n = shm_in_slot(shm, xfer);

    memcpy(out->slots + index * shm->slot,
           (const unsigned char *)xfer->buf + xfer->done, n);
    write_line(shm, out, &out->fifo->lines[index], xfer, SHM_SLOT);
    xfer->done += n;
}

/* Send a cell's worth of bytes through a cell, or in pieces through slots. */
static enum shm_pushed push_cell(struct shm *shm, struct shm_out *out,
                                 struct coll__xfer *xfer)
{
    struct shm_line *line = &out->fifo->lines[out->next &
                                                 (shm->n_lines - 1)];
    size_t n = min_size(xfer->len - xfer->done, shm->cells.len);
    int is_amid = xfer->done % shm->cells.len != 0;
    int index = is_amid ? -1 : fill_cell(shm, out, xfer, n);

    if (index < 0) {
        if (!is_amid && !is_kept_out(out))
            return SHM_NOTHING;
        push_piece(shm, out, xfer);
        return SHM_WRITTEN;
    }
    out->n_denied = 0;
    hold_cell(shm, out, index);
    line->cell = (uint64_t)index;
    write_line(shm, out, line, xfer, SHM_CELL);
    xfer->done += n;
    return SHM_WRITTEN;
}

void shm__withdraw(const struct shm *shm, struct shm_out *out)
{
    for (; out->there; out->there = out->there->next) {
        uint64_t index = (uintptr_t)out->there->priv & (shm->n_lines - 1);

        atomic_store_explicit(&out->fifo->lines[index].full, 0,
                              memory_order_release);
    }
    shm_keep_order(); /* the caller may touch the bytes now */
}

enum shm_pushed shm__push(struct shm *shm, struct shm_out *out,
                          struct coll__xfer *xfer)
{
    if (!has_line(shm, out))
        return SHM_NOTHING;
    if (xfer->len <= shm->slot) {
        push_small(shm, out, xfer);
        return SHM_WRITTEN;
    }
    if (xfer->done == 0 && push_offer(shm, out, xfer))
        return SHM_OFFERED;
    return push_cell(shm, out, xfer);
}

int shm__put(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct shm *shm = (struct shm *)tp;
    struct shm_out *out = shm_out_of(shm, xfer);

    if (out->first || !has_line(shm, out)) /* nothing may be queued before it */
        return 0;
    xfer->done = 0;
    push_small(shm, out, xfer);
    return 1;
}
