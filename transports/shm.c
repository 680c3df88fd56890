/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.c - ranks of one host, through one shared segment per communicator.
 *
 * A small message travels in the line that announces it, or in the slot of that line.  A
 * larger one travels through cells, in pieces, so that the sender fills one cell while
 * the receiver empties the one before.  The receiver reads messages in a shared region in
 * place (lib/device/region.h), and may fetch others from the sender's own memory (cma.h).
 * shm.h defines the owners.
 *
 * Each end of a fifo has a queue of transfers, in order.  Each channel lists the ends
 * that have transfers, so idle ends cost nothing when it is polled.
 */
#include "transports/shm.h"

/* Most bytes moved through one end in a round.  Then the caller can use what has
 * finished, since other ranks wait for its results. */
#define AT_ONCE ((size_t)64 << 10)

/* Most bytes moved through all ends of a channel in one direction in a round; the first
 * channel has no limit, and is polled again after each round. */
#define A_ROUND ((size_t)128 << 10)

/* Return the ends of a channel that have transfers; from now on poll() looks at it. */
static struct shm_active *use_channel(struct shm *shm, int channel)
{
    if (channel >= shm->n_used)
        shm->n_used = channel + 1;
    return &shm->active[channel];
}

static void activate_out(struct shm *shm, int channel, struct shm_out *out)
{
    struct shm_active *active;

    if (out->is_active)
        return;
    active = use_channel(shm, channel);
    out->is_active = 1;
    active->out[active->n_out++] = out;
}

static void activate_in(struct shm *shm, int channel, struct shm_in *in)
{
    struct shm_active *active;

    if (in->is_active)
        return;
    active = use_channel(shm, channel);
    in->is_active = 1;
    active->in[active->n_in++] = in;
}

static void append(struct coll__xfer *xfer, struct coll__xfer ***last)
{
    xfer->next = NULL;
    **last = xfer;
    *last = &xfer->next;
}

/* Write the end's messages, as far as possible, up to one round's limit.  Returns how
 * much was done; *bytes grows by the bytes moved. */
static int advance_out(struct shm *shm, struct shm_out *out, size_t *bytes)
{
    struct coll__xfer *xfer;
    int moved = out->there ? shm__reclaim(shm, out) : 0;
    size_t most = *bytes + AT_ONCE;

    while ((xfer = out->first) && *bytes < most) {
        size_t before = xfer->done;
        enum shm_pushed pushed = shm__push(shm, out, xfer);

        if (pushed == SHM_NOTHING)
            break;
        moved++;
        *bytes += xfer->done - before;
        if (xfer->done < xfer->len)
            continue;
        out->first = xfer->next;
        if (!out->first)
            out->last = &out->first;
        if (pushed == SHM_OFFERED)
            append(xfer, &out->there_last);
        else
            coll__xfer_end(xfer, COLL_OK);
    }
    return moved;
}

static int advance_in(struct shm *shm, struct shm_in *in, size_t *bytes)
{
    struct coll__xfer *xfer;
    size_t most = *bytes + AT_ONCE;
    int moved = 0;

    while ((xfer = in->first) && *bytes < most) {
        size_t before = xfer->done;

        if (!shm__pull(shm, in, xfer))
            break;
        moved++;
        *bytes += xfer->done - before;
        if (xfer->status == COLL_IN_PROGRESS && xfer->done < xfer->len)
            continue;
        in->first = xfer->next;
        if (!in->first)
            in->last = &in->first;
        coll__xfer_end(xfer, xfer->status == COLL_IN_PROGRESS ? COLL_OK
                                                              : xfer->status);
    }
    return moved;
}

static void shm_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct shm *shm = (struct shm *)tp;
    struct shm_out *out = shm_out_of(shm, xfer);
    size_t bytes = 0;

    xfer->status = COLL_IN_PROGRESS;
    xfer->done = 0;
    append(xfer, &out->last);
    if (out->first == xfer)
        advance_out(shm, out, &bytes);
    if (out->first || out->there)
        activate_out(shm, xfer->channel, out);
}

static void shm_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct shm *shm = (struct shm *)tp;
    struct shm_in *in = shm_in_of(shm, xfer);
    size_t bytes = 0;

    xfer->status = COLL_IN_PROGRESS;
    xfer->done = 0;
    append(xfer, &in->last);
    if (in->first == xfer)
        advance_in(shm, in, &bytes);
    if (in->first)
        activate_in(shm, xfer->channel, in);
}

/* Move the ends of a channel, starting where the last round stopped, until that many
 * bytes have been moved. */
static int poll_out(struct shm *shm, struct shm_active *active, size_t most)
{
    size_t bytes = 0;
    int moved = 0;

    for (int n = active->n_out; n > 0 && bytes < most; n--) {
        int *at = &active->next_out;
        struct shm_out *out;

        if (*at >= active->n_out)
            *at = 0;
        out = active->out[*at];
        moved += advance_out(shm, out, &bytes);
        if (out->first || out->there) {
            ++*at;
            continue;
        }
        out->is_active = 0;
        active->out[*at] = active->out[--active->n_out];
    }
    return moved;
}

static int poll_in(struct shm *shm, struct shm_active *active, size_t most)
{
    size_t bytes = 0;
    int moved = 0;

    for (int n = active->n_in; n > 0 && bytes < most; n--) {
        int *at = &active->next_in;
        struct shm_in *in;

        if (*at >= active->n_in)
            *at = 0;
        in = active->in[*at];
        moved += advance_in(shm, in, &bytes);
        if (in->first) {
            ++*at;
            continue;
        }
        in->is_active = 0;
        active->in[*at] = active->in[--active->n_in];
    }
    return moved;
}

static int shm_poll(struct coll__tp *tp)
{
    struct shm *shm = (struct shm *)tp;
    int moved = 0;

    for (int c = 0; c < shm->n_used; c++) {
        size_t most = c ? A_ROUND : SIZE_MAX;

        moved += poll_out(shm, &shm->active[c], most);
        moved += poll_in(shm, &shm->active[c], most);
    }
    moved += shm->n_ended;
    shm->n_ended = 0;
    return moved;
}

static int shm_peek(struct coll__tp *tp, int peer, int channel,
                    struct coll__signature *sig)
{
    struct shm *shm = (struct shm *)tp;
    int local = shm->local_of[peer];
    struct shm_line *line;
    struct shm_in *in;

    if (local < 0)
        return 0;
    in = &shm->in[coll__lane(channel, local, shm->local_size)];
    line = shm_next_line(shm, in);
    if (in->first || !shm_is_there(in, line))
        return 0;
    *sig = line->sig;
    return 1;
}

static int shm_reaches(struct coll__tp *tp, int peer, struct coll__link *link)
{
    const struct shm *shm = (const struct shm *)tp;

    if (peer == tp->rank || shm->local_of[peer] < 0)
        return COLL_ERR_PEER;
    *link = shm->link;
    return COLL_OK;
}

const struct coll__transport coll__transport_shm = {
    .name = "shm",
    .what = "shared memory between the ranks of a host",
    .usable = shm__usable,
    .open = shm__open,
    .settle = shm__settle,
    .close = shm__close,
    .reaches = shm_reaches,
    .send = shm_send,
    .recv = shm_recv,
    .put = shm__put,
    .take = shm__take,
    .poll = shm_poll,
    .arm = shm__arm,
    .peek = shm_peek,
};
