/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy_lane.c - lanes: their slots in pinned memory, and how the host carries messages
 * between these and another rank's. */
#include "lib/device/cuda.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "transports/proxy.h"

#include <stdlib.h>
#include <string.h>

#define FLAG CACHE_LINE /* bytes from one flag to the next */

/* ---- where things are ----------------------------------------------------- */

static size_t flags_len(const struct proxy *p)
{
    return round_up((size_t)p->base.n_slots * FLAG, 4096);
}

static struct coll__slot_flag *flag_of(const struct proxy_lane *lane, int slot)
{
    return (struct coll__slot_flag *)(lane->stage->base + (size_t)slot * FLAG);
}

static unsigned char *bytes_of(const struct proxy_lane *lane, int slot)
{
    return lane->stage->base + flags_len(lane->tp) +
           (size_t)slot * lane->slot_len;
}

static size_t index_of(const struct coll__message *of, int is_send)
{
    return 4 * (size_t)of->peer + 2 * (size_t)is_send + (of->n >= COLL__ASIDE);
}

struct proxy_lane *proxy__lane_of(const struct proxy *p,
                                  const struct coll__message *of, int is_send)
{
    return atomic_load_explicit(&p->lanes[index_of(of, is_send)],
                                memory_order_acquire);
}

void proxy__slot(const struct proxy *p, const struct coll__message *of,
                 int is_send, struct coll__slot *out)
{
    const struct proxy_lane *lane = proxy__lane_of(p, of, is_send);
    int slot = proxy__slot_number(p, of);

    out->flag = coll__stage_seen(lane->stage, flag_of(lane, slot));
    out->at = coll__stage_seen(lane->stage, bytes_of(lane, slot));
    out->is_host = 1;
}

/* ---- making ----------------------------------------------------------------- */

static void lane_free(struct proxy_lane *lane)
{
    if (lane->stage)
        coll__stage_put(lane->stage);
    free(lane->slots);
    free(lane->queue);
    free(lane);
}

/* Set the flags, which an earlier user may have released. */
static void clear_flags(const struct proxy_lane *lane)
{
    for (int s = 0; s < lane->n_slots; s++) {
        atomic_store(&flag_of(lane, s)->released, 0);
        atomic_store(&flag_of(lane, s)->state, COLL__SLOT_EMPTY);
    }
}

static int lane_new(struct proxy *p, const struct coll__message *of,
                    int is_send, struct proxy_lane **out)
{
    int is_own = of->peer == p->base.rank, status = COLL_ERR_NOMEM;
    int n = is_own ? 1 : p->base.n_slots;
    size_t slot_len = (is_own ? 2 : 1) * p->base.slot;
    struct proxy_lane *lane = calloc(1, sizeof(*lane));

    if (lane)
        lane->slots = calloc((size_t)n, sizeof(*lane->slots));
    if (lane && lane->slots)
        status = coll__stage_take(
            p->home.ctx, flags_len(p) + (size_t)n * slot_len, &lane->stage);
    else
        log_error("cuda", "no memory for messages with rank %d", of->peer);
    if (status) {
        if (lane)
            lane_free(lane);
        return status;
    }
    lane->tp = p;
    lane->peer = of->peer;
    lane->n_slots = n;
    lane->slot_len = slot_len;
    lane->is_send = is_send;
    lane->channel = of->n < COLL__ASIDE ? p->env.channel : p->env.channel_aside;
    for (int s = 0; s < n; s++)
        lane->slots[s].lane = lane;
    clear_flags(lane);
    *out = lane;
    return COLL_OK;
}

static void release(const struct proxy_lane *lane)
{
    for (int s = 0; s < lane->n_slots; s++)
        atomic_store(&flag_of(lane, s)->released, 1);
}

/* Another thread that fails the communicator now releases the lane, or this one does. */
int proxy__lane_need(struct proxy *p, const struct coll__message *of,
                     int is_send)
{
    struct proxy_lane *lane = proxy__lane_of(p, of, is_send);
    int status;

    if (lane)
        return COLL_OK;
    status = lane_new(p, of, is_send, &lane);
    if (status)
        return status;
    atomic_store(&p->lanes[index_of(of, is_send)], lane);
    if (atomic_load(&p->failure))
        release(lane);
    return COLL_OK;
}

void proxy__lanes_release(const struct proxy *p, int are_sends)
{
    for (int i = 0; i < 4 * p->base.size; i++) {
        const struct proxy_lane *lane = atomic_load(&p->lanes[i]);

        if (lane && (are_sends || !lane->is_send))
            release(lane);
    }
}

/* ---- what it has to carry ------------------------------------------------------ */

static struct proxy_todo *todo_at(const struct proxy_lane *lane, int i)
{
    return &lane->queue[(lane->first + i) % lane->capacity];
}

static int grow(struct proxy_lane *lane)
{
    int capacity = lane->capacity ? 2 * lane->capacity : 8;
    struct proxy_todo *queue = calloc((size_t)capacity, sizeof(*queue));

    if (!queue) {
        log_error("cuda", "no memory for messages with rank %d", lane->peer);
        return COLL_ERR_NOMEM;
    }
    for (int i = 0; i < lane->n; i++)
        queue[i] = *todo_at(lane, i);
    free(lane->queue);
    lane->queue = queue;
    lane->capacity = capacity;
    lane->first = 0;
    return COLL_OK;
}

int proxy__lane_add(struct proxy_lane *lane, const struct proxy_todo *todo)
{
    struct proxy *p = lane->tp;

    if (lane->n == lane->capacity && grow(lane))
        return COLL_ERR_NOMEM;
    *todo_at(lane, lane->n++) = *todo;
    if (!lane->is_active) {
        lane->is_active = 1;
        lane->next = p->active;
        p->active = lane;
    }
    return COLL_OK;
}

static void next_todo(struct proxy_lane *lane)
{
    proxy__run_drop(todo_at(lane, 0)->run);
    lane->first = (lane->first + 1) % lane->capacity;
    lane->n--;
    lane->at = 0;
}

/* ---- carrying -------------------------------------------------------------- */

static void set_state(const struct proxy_lane *lane, int slot, uint32_t state)
{
    atomic_store_explicit(&flag_of(lane, slot)->state, state,
                          memory_order_release);
}

/* Do a part of a step.  The release orders the result before the state. */
static void do_next(const struct proxy_lane *lane,
                    const struct proxy_piece *piece)
{
    unsigned char *half = bytes_of(lane, piece->slot);

    proxy__do_work(&todo_at(lane, 0)->run->works[piece->what], half,
                   half + lane->tp->base.slot, piece->len);
    set_state(lane, piece->slot, COLL__SLOT_WORKED);
}

/* Start the transfer of a piece. */
static void transfer(struct proxy_lane *lane, const struct proxy_piece *piece)
{
    struct proxy *p = lane->tp;
    const struct proxy_todo *todo = todo_at(lane, 0);
    struct proxy_slot *slot = &lane->slots[piece->slot];
    struct coll__tp *tp = p->env.to[lane->peer];

    lane->n_calls += (uint64_t)piece->is_first;
    slot->xfer = (struct coll__xfer){.status = COLL_IN_PROGRESS,
                                     .peer = lane->peer,
                                     .channel = lane->channel,
                                     .buf = bytes_of(lane, piece->slot),
                                     .len = piece->len,
                                     .sig = todo->run->sigs[piece->what],
                                     .ended = &p->ended,
                                     .owner = slot};
    slot->xfer.sig.seq = todo->seq ? todo->seq : lane->n_calls;
    slot->is_busy = 1;
    lane->n_busy++;
    (lane->is_send ? tp->ops->send : tp->ops->recv)(tp, &slot->xfer);
}

/* Have the streams been released?  Asked after the state of a slot was read, this tells
 * whether the stream that wrote it may have gone on with bytes that mean nothing. */
static int is_released(const struct proxy *p)
{
    return p->base.ops->state(&p->base) != COLL_OK;
}

/* Begin the next piece, if the stream has filled, or emptied, its slot.  The acquire
 * makes the bytes visible that the state announces. */
static int start_next(struct proxy_lane *lane)
{
    const struct proxy_todo *todo = todo_at(lane, 0);
    const struct proxy_list *list = &todo->run->lists[todo->list];
    const struct proxy_piece *piece =
        &todo->run->pieces[list->first + lane->at];
    uint32_t due = lane->is_send ? COLL__SLOT_FULL : COLL__SLOT_EMPTY;

    if (lane->slots[piece->slot].is_busy ||
        atomic_load_explicit(&flag_of(lane, piece->slot)->state,
                             memory_order_acquire) != due ||
        is_released(lane->tp))
        return 0;
    if (lane->peer == lane->tp->base.rank)
        do_next(lane, piece);
    else
        transfer(lane, piece);
    if (++lane->at == list->n)
        next_todo(lane);
    return 1;
}

/* The release orders the bytes that were received before the state. */
static void end(struct proxy_slot *slot)
{
    struct proxy_lane *lane = slot->lane;

    slot->is_busy = 0;
    lane->n_busy--;
    set_state(lane, (int)(slot - lane->slots),
              lane->is_send ? COLL__SLOT_EMPTY : COLL__SLOT_FULL);
}

static int end_all(struct proxy *p, struct coll__moved *moved)
{
    struct coll__xfer *xfer;

    while ((xfer = coll__ended_take(&p->ended))) {
        if (xfer->status) {
            moved->fault = xfer;
            return xfer->status;
        }
        end(xfer->owner);
        moved->is_any = 1;
    }
    return COLL_OK;
}

int proxy__lanes_move(struct proxy *p, struct coll__moved *moved)
{
    struct proxy_lane **at = &p->active, *lane;

    while ((lane = *at)) {
        while (lane->n && start_next(lane))
            moved->is_any = 1;
        if (lane->n || lane->n_busy) {
            at = &lane->next;
        } else {
            lane->is_active = 0;
            *at = lane->next;
        }
    }
    return end_all(p, moved);
}

/* ---- the end ------------------------------------------------------------------- */

void proxy__lanes_empty(struct proxy *p)
{
    for (int i = 0; i < 4 * p->base.size; i++) {
        struct proxy_lane *lane = atomic_load(&p->lanes[i]);

        while (lane && lane->n)
            next_todo(lane);
    }
    p->active = NULL;
}

void proxy__lanes_free(struct proxy *p)
{
    for (int i = 0; i < 4 * p->base.size; i++) {
        struct proxy_lane *lane = atomic_load(&p->lanes[i]);

        if (lane)
            lane_free(lane);
    }
    free(p->lanes);
}

size_t proxy__lanes_bytes(const struct proxy *p)
{
    size_t len = 0;

    for (int i = 0; i < 4 * p->base.size; i++) {
        const struct proxy_lane *lane = atomic_load(&p->lanes[i]);

        len += lane ? lane->stage->len : 0;
    }
    return len;
}

uint64_t proxy__lanes_held(const struct proxy *p, int *peer)
{
    uint64_t digest = 0;

    for (int i = 0; i < 4 * p->base.size; i++) {
        const struct proxy_lane *lane = atomic_load(&p->lanes[i]);

        for (int s = 0; lane && s < lane->n_slots; s++) {
            const struct coll__slot_flag *flag = flag_of(lane, s);
            uint32_t state = atomic_load(&flag->state);

            digest = coll__hash_add(digest, state);
            if (lane->is_send && lane->peer != p->base.rank &&
                state == COLL__SLOT_FULL && !atomic_load(&flag->released))
                *peer = lane->peer;
        }
    }
    return digest;
}
