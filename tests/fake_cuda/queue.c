/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.c - operations wait for their turn, and streams' threads run them.
 *
 * PG, "Streams": what one stream has is done in the order of the calls; of two
 * streams nothing is promised.  DA, "Stream synchronization behavior": the legacy
 * stream waits for the blocking streams of its context, and they for it.  PG, "CUDA
 * Environment Variables": CUDA_DEVICE_MAX_CONNECTIONS "to each device"; streams
 * beyond them share one, and what cannot start holds up whoever is behind it there (H100,
 * queue/many_wait; kernel/one_connection: what has started does not).
 */
#include "tests/fake_cuda/fake.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static struct channel channels[MAX_DEVICES][MAX_CHANNELS];
static struct stream *all;
static uint64_t n_ops;
static unsigned n_streams, n_legacy;

static unsigned n_channels(void)
{
    long n = fake_setting("CUDA_DEVICE_MAX_CONNECTIONS", 8);

    return n < 1 ? 1 : n > MAX_CHANNELS ? MAX_CHANNELS : (unsigned)n;
}

/* ---- delays -------------------------------------------------------------- */

/* FAKE_CUDA_SEED: which delays, 0 for none (1); FAKE_CUDA_DELAY: microseconds at most
 * (60). */
unsigned stream_dice(struct stream *s, unsigned n)
{
    if (!s->dice)
        return 0;
    s->dice ^= s->dice << 13;
    s->dice ^= s->dice >> 7;
    s->dice ^= s->dice << 17;
    return (unsigned)(s->dice >> 11) % n;
}

void stream_delay(struct stream *s)
{
    if (!s->dice || !s->most_delay)
        return;
    switch (stream_dice(s, 6)) {
    case 0:
        usleep(stream_dice(s, s->most_delay));
        break;
    case 1:
        sched_yield();
    }
}

/* ---- whose turn it is ---------------------------------------------------- */

static int is_before(const struct stream *s, const struct op *op)
{
    return s->first && s->first->number < op->number;
}

static int is_held_by_legacy(const struct op *op)
{
    const struct stream *mine = op->stream;

    if (!mine->is_legacy)
        return mine->is_blocking && mine->ctx->legacy &&
               is_before(mine->ctx->legacy, op);
    for (const struct stream *s = mine->ctx->streams; s; s = s->next)
        if (s != mine && s->is_blocking && is_before(s, op))
            return 1;
    return 0;
}

/* After an error nothing is done any more, so there is nothing to wait for. */
static int may_start(const struct op *op)
{
    return fake_error() || (op->stream->channel->first == op &&
                            !is_held_by_legacy(op) && work_is_ready(&op->work));
}

void queue_kick(void)
{
    for (struct stream *s = all; s; s = s->all_next)
        if (s->first && !s->first->is_started && may_start(s->first))
            pthread_cond_signal(&s->wake);
}

static void leave_channel(struct op *op)
{
    struct channel *c = op->stream->channel;
    struct op **at = &c->first, *last = NULL;

    while (*at && *at != op) {
        last = *at;
        at = &(*at)->channel_next;
    }
    if (!*at)
        return;
    *at = op->channel_next;
    if (c->last == op)
        c->last = last;
    c->n -= op->is_counted;
}

/* A wait for a value stands in its channel until it passes (H100). */
static int stands_in_channel(const struct op *op)
{
    return op->work.kind == W_MEMOPS ||
           (op->work.kind == W_WAIT && op->work.record->shared);
}

/* ---- a stream's thread --------------------------------------------------- */

static void run(struct stream *s, struct op *op)
{
    CUresult rc;

    op->is_started = 1;
    if (!stands_in_channel(op)) {
        leave_channel(op);
        queue_kick();
        fake_changed();
    }
    pthread_mutex_unlock(fake_lock());
    stream_delay(s);
    rc = work_run(&op->work, s);
    pthread_mutex_lock(fake_lock());
    if (rc)
        fake_fail(rc);
    leave_channel(op);
    s->first = op->next;
    if (!s->first)
        s->last = NULL;
    work_fini(&op->work);
    op->is_done = 1;
    if (!op->n_waiting)
        free(op);
    queue_kick();
    fake_changed();
}

static void *stream_main(void *arg)
{
    struct stream *s = arg;

    pthread_mutex_lock(fake_lock());
    for (;;) {
        struct op *op = s->first;

        if (op && may_start(op))
            run(s, op);
        else if (!op && !s->object.is_alive)
            break;
        else
            pthread_cond_wait(&s->wake, fake_lock());
    }
    s->is_running = 0;
    queue_remove(s);
    pthread_mutex_unlock(fake_lock());
    return NULL;
}

static void start_thread(struct stream *s)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 512 << 10);
    if (pthread_create(&thread, &attr, stream_main, s))
        abort();
    pthread_attr_destroy(&attr);
    s->is_running = 1;
}

/* ---- the callers' side --------------------------------------------------- */

static void add(struct stream *s, uint64_t id)
{
    uint64_t seed = (uint64_t)fake_setting("FAKE_CUDA_SEED", 1);

    s->id = id;
    s->dice = seed ? seed * 0x9e3779b97f4a7c15u ^ id << 17 : 0;
    s->most_delay = (unsigned)fake_setting("FAKE_CUDA_DELAY", 60);
    s->all_next = all;
    all = s;
    pthread_cond_init(&s->wake, NULL);
}

void queue_add(struct stream *s)
{
    add(s, ++n_streams);
    s->channel = &channels[s->ctx->device][(s->id - 1) % n_channels()];
}

/* It has a channel of its own. */
void queue_add_legacy(struct stream *s)
{
    add(s, (uint64_t)1 << 32 | ++n_legacy);
    s->is_legacy = 1;
    s->channel = calloc(1, sizeof(*s->channel));
}

static void unlink_from(struct stream **list, struct stream *s, int is_all)
{
    while (*list && *list != s)
        list = is_all ? &(*list)->all_next : &(*list)->next;
    if (*list)
        *list = is_all ? s->all_next : s->next;
}

void queue_remove(struct stream *s)
{
    unlink_from(&all, s, 1);
    unlink_from(&s->ctx->streams, s, 0);
}

/* H100, queue/depth: behind a wait 1020 calls fit, records of events do not count;
 * then the caller waits. */
struct op *queue_put(struct stream *s, struct work *w, int is_waited_for)
{
    struct op *op = calloc(1, sizeof(*op));

    op->is_counted = w->kind != W_RECORD;
    while (op->is_counted && s->channel->n >= CHANNEL_ROOM && !fake_error())
        fake_wait();
    counts_add(w);
    op->stream = s;
    op->work = *w;
    op->number = ++n_ops;
    op->n_waiting = is_waited_for;
    *(s->last ? &s->last->next : &s->first) = op;
    s->last = op;
    *(s->channel->last ? &s->channel->last->channel_next : &s->channel->first) =
        op;
    s->channel->last = op;
    s->channel->n += op->is_counted;
    if (!s->is_running)
        start_thread(s);
    if (s->first == op)
        pthread_cond_signal(&s->wake);
    return op;
}
