/* SPDX-License-Identifier: BSD-3-Clause */
/* self.c - a rank talking to itself: match the send to the receive and copy.
 *
 * Sends and receives of a channel wait in two queues.  The heads of the two queues match,
 * since messages keep their order.
 */
#include "transports/list.h"
#include "lib/trace/log.h"
#include "lib/util/lock.h"

#include <stdlib.h>
#include <string.h>

struct queue {
    struct coll__xfer *first, **last;
};

struct channel {
    struct queue sends, recvs;
};

struct self {
    struct coll__tp base;
    struct channel channels[COLL__CHANNELS];
    int finished; /* since the last poll */
};

static void queue_init(struct queue *q)
{
    q->first = NULL;
    q->last = &q->first;
}

static void queue_put(struct queue *q, struct coll__xfer *xfer)
{
    xfer->next = NULL;
    *q->last = xfer;
    q->last = &xfer->next;
}

static struct coll__xfer *queue_take(struct queue *q)
{
    struct coll__xfer *xfer = q->first;

    q->first = xfer->next;
    if (!q->first)
        q->last = &q->first;
    return xfer;
}

static int self_usable(char *why, size_t len)
{
    (void)why;
    (void)len;
    return COLL_OK;
}

static int self_open(const struct coll__tp_env *env, struct coll__tp **tp)
{
    struct self *self = calloc(1, sizeof(*self));

    if (!self) {
        log_error("self", "no memory for the self transport");
        return COLL_ERR_NOMEM;
    }
    self->base = (struct coll__tp){.ops = &coll__transport_self,
                                   .rank = env->rank,
                                   .size = env->size,
                                   .generation = coll__generation_now()};
    for (int c = 0; c < COLL__CHANNELS; c++) {
        queue_init(&self->channels[c].sends);
        queue_init(&self->channels[c].recvs);
    }
    *tp = &self->base;
    return COLL_OK;
}

static void self_close(struct coll__tp *tp, int is_orderly)
{
    (void)is_orderly;
    free(tp);
}

static int self_reaches(struct coll__tp *tp, int peer, struct coll__link *link)
{
    *link = (struct coll__link){.alpha = 50e-9, .beta = 1 / 10e9};
    return peer == tp->rank ? COLL_OK : COLL_ERR_PEER;
}

static void deliver(struct coll__xfer *recv, const struct coll__xfer *send)
{
    if (!coll__xfer_fits(recv, &send->sig, send->len)) {
        coll__xfer_end(recv, COLL_ERR_MISMATCH);
        return;
    }
    if (recv->reduce)
        recv->reduce(recv->buf, recv->with, send->buf, recv->len);
    else if (recv->len)
        memmove(recv->buf, send->buf, recv->len);
    coll__xfer_end(recv, COLL_OK);
}

/* Both transfers are at the heads of their queues. */
static void match(struct self *self, struct channel *channel)
{
    while (channel->sends.first && channel->recvs.first) {
        struct coll__xfer *send = queue_take(&channel->sends);

        deliver(queue_take(&channel->recvs), send);
        coll__xfer_end(send, COLL_OK);
        self->finished += 2;
    }
}

static void self_send(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct self *self = (struct self *)tp;
    struct channel *channel = &self->channels[xfer->channel];

    xfer->status = COLL_IN_PROGRESS;
    queue_put(&channel->sends, xfer);
    match(self, channel);
}

static void self_recv(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct self *self = (struct self *)tp;
    struct channel *channel = &self->channels[xfer->channel];

    xfer->status = COLL_IN_PROGRESS;
    queue_put(&channel->recvs, xfer);
    match(self, channel);
}

static int self_poll(struct coll__tp *tp)
{
    struct self *self = (struct self *)tp;
    int finished = self->finished;

    self->finished = 0;
    return finished;
}

/* The bell stays {0}: only this rank sends to itself. */
static int self_arm(struct coll__tp *tp, struct coll__bell *bell)
{
    (void)tp;
    (void)bell;
    return 1;
}

static int self_peek(struct coll__tp *tp, int peer, int channel,
                     struct coll__signature *sig)
{
    const struct queue *sends = &((struct self *)tp)->channels[channel].sends;

    if (peer != tp->rank || !sends->first)
        return 0;
    *sig = sends->first->sig;
    return 1;
}

const struct coll__transport coll__transport_self = {
    .name = "self",
    .what = "a rank's messages to itself",
    .is_own = 1,
    .usable = self_usable,
    .open = self_open,
    .settle = coll__no_settle,
    .close = self_close,
    .reaches = self_reaches,
    .send = self_send,
    .recv = self_recv,
    .put = coll__no_put,
    .take = coll__no_take,
    .poll = self_poll,
    .arm = self_arm,
    .peek = self_peek,
};
