/* SPDX-License-Identifier: BSD-3-Clause */
/* sim.c - discrete events: when each step of each rank begins and ends.
 *
 * The machine, which is also the one that the closed forms assume:
 *
 * - A message up to COLL__EAGER bytes begins when its send is ready: all that
 *   it waits for is done, and the messages before it on its lane have begun.
 *   The send ends when the message leaves, the receive when it is there and
 *   the receive is ready.  A longer one begins when its receive is ready, too:
 *   the receiver lends its buffer, nothing is copied on the way (rendezvous),
 *   and the handshake is part of `overhead`; both end when the last byte is
 *   there.
 * - It takes `overhead` and then passes the links of its route in order, cut
 *   into up to SEGMENTS segments.  On the sender's own link, the first one,
 *   they follow each other without a break, message after message; then each
 *   finds its way by itself, so messages that meet on a link share it.
 * - The head of a segment enters a link when it has come from the one before
 *   and the link is free: links serve heads in order of arrival.  The link is
 *   then busy for n beta.  The head goes on after `latency`, without waiting
 *   for the rest (cut-through); the last byte leaves a link when the slowest of
 *   the links so far lets it.  So a message alone takes overhead + sum of
 *   latencies + n max(beta): the alpha + n beta of the formulas.  A link of
 *   several cables (beta / share of them) gives each segment the one that is
 *   free first.
 * - A rank's own links (the first and the last of a route) are busy for `gap`
 *   at the least, so messages of one rank are that far apart.
 * - A rank's processor does one thing at a time, in the order in which the
 *   steps get ready: COPY, REDUCE, SCALE and the reduction of RECV_REDUCE take
 *   n gamma each.  Copies from IN to OUT are free: ranks in place have none,
 *   and prices must not depend on that.
 *
 * Events of one time happen in the order in which they became known, so the
 * result is the same each time.
 */
#include "tools/sim/sim.h"
#include "tools/sim/sim_queue.h"
#include "tools/sim/sim_steps.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <limits.h>
#include <stdlib.h>

/* A message is cut into up to SEGMENTS segments of at least SEGMENT_MIN bytes.  When
 * there are many messages, they share links evenly enough without more segments. */
#define SEGMENTS 8
#define SEGMENTS_ALL (4 << 20)
#define SEGMENT_MIN 4096

enum {
    EVENT_BEGIN,   /* a message is ready for its first link */
    EVENT_HOP,     /* a segment's head arrives at its next link */
    EVENT_ARRIVED, /* a message's last byte is there */
    EVENT_STEP     /* a step has ended */
};

struct link {
    double latency, beta, busy;
    int first, n_cables; /* in sim.free */
};

/* A message under way; in the free list, lane is the next entry. */
struct message {
    int send, recv, lane;
    int n_left; /* segments */
};

/* A segment; in the free list, hop is the next entry. */
struct segment {
    int message, hop;
    double tail; /* when the last byte has passed the links so far */
};

/* The route of a lane in sim.hops; -1: not computed yet. */
struct route {
    int first, n;
};

/* The entries of an array: used so far, allocated, and the first free one or -1. */
struct pool {
    int n, cap, free;
};

struct sim {
    const struct coll__fabric *fabric;
    struct coll__sim_steps all;
    struct coll__sim_queue queue;
    double overhead, gap, gamma, now;
    struct link *links;
    double *free; /* of each cable: when it is free */
    int n_links, *seat;
    struct route *routes; /* [n_lanes] */
    int *hops, n_hops, cap_hops;
    struct message *messages;
    struct pool of_messages;
    struct segment *segments;
    struct pool of_segments;
    double *cpu; /* [nranks]: when the processor is free */
    int n_done, last_step, status;
    int most_segments; /* of one message */
    struct coll__sim_result *result;
};

static void put(struct sim *s, double time, int kind, int at)
{
    if (coll__sim_put(&s->queue, time, kind, at))
        s->status = COLL_ERR_NOMEM;
}

/* Double a full array; without memory, set the status. */
static void *grow(struct sim *s, void *items, int n, int *cap, size_t size)
{
    void *more;

    if (n < *cap)
        return items;
    more = realloc(items, (size_t)(*cap ? 2 * *cap : 1024) * size);
    if (!more) {
        s->status = COLL_ERR_NOMEM;
        return items;
    }
    *cap = *cap ? 2 * *cap : 1024;
    return more;
}

/* ---- messages ------------------------------------------------------------ */

static void find_route(struct sim *s, int lane)
{
    const struct coll__sim_lane *l = &s->all.lanes[lane];
    int links[COLL__ROUTE_MAX];
    int n = coll__fabric_route(s->fabric, s->seat[l->from], s->seat[l->to],
                               links);

    s->routes[lane] = (struct route){s->n_hops, n};
    for (int i = 0; i < n; i++) {
        s->hops = grow(s, s->hops, s->n_hops, &s->cap_hops, sizeof(*s->hops));
        if (s->status != COLL_OK)
            return;
        s->hops[s->n_hops++] = links[i];
    }
}

static int is_eager(const struct sim *s, int step)
{
    return s->all.steps[step].len <= COLL__EAGER;
}

static int new_message(struct sim *s)
{
    int m = s->of_messages.free;

    if (m >= 0) {
        s->of_messages.free = s->messages[m].lane;
        return m;
    }
    s->messages = grow(s, s->messages, s->of_messages.n, &s->of_messages.cap,
                       sizeof(*s->messages));
    return s->status == COLL_OK ? s->of_messages.n++ : -1;
}

static int new_segment(struct sim *s)
{
    int g = s->of_segments.free;

    if (g >= 0) {
        s->of_segments.free = s->segments[g].hop;
        return g;
    }
    s->segments = grow(s, s->segments, s->of_segments.n, &s->of_segments.cap,
                       sizeof(*s->segments));
    return s->status == COLL_OK ? s->of_segments.n++ : -1;
}

static int segments_of(const struct sim *s, size_t len)
{
    size_t n = len / SEGMENT_MIN, most = (size_t)s->most_segments;

    return n < 1 ? 1 : n > most ? (int)most : (int)n;
}

static void set_segments(struct sim *s)
{
    int n_sends = 0;

    for (int i = 0; i < s->all.n_steps; i++)
        n_sends += s->all.steps[i].kind == SIM_SEND;
    s->most_segments = n_sends ? SEGMENTS_ALL / n_sends : 1;
    if (s->most_segments < 1)
        s->most_segments = 1;
    if (s->most_segments > SEGMENTS)
        s->most_segments = SEGMENTS;
}

static void begin_message(struct sim *s, int lane, int send, int recv)
{
    double time = s->now + s->overhead;
    size_t len = s->all.steps[send].len;
    int m = new_message(s);

    if (m >= 0 && s->routes[lane].first < 0)
        find_route(s, lane);
    if (s->status != COLL_OK)
        return;
    s->messages[m] = (struct message){send, recv, lane,
                                       segments_of(s, len)};
    s->result->n_messages++;
    s->result->bytes += (double)len;
    if (s->routes[lane].n)
        put(s, time, EVENT_BEGIN, m);
    else { /* a rank to itself */
        if (is_eager(s, send))
            put(s, time, EVENT_STEP, send);
        put(s, time + (double)len * s->gamma, EVENT_ARRIVED, m);
    }
}

static int is_ready(const struct sim *s, int step)
{
    return step >= 0 && !s->all.steps[step].waits;
}

/* Begin the messages of a lane that can begin: in order, while both sides are ready, up
 * to the send `last`. */
static void run_lane(struct sim *s, int lane, int last)
{
    struct coll__sim_lane *l = &s->all.lanes[lane];

    while (l->send <= last && is_ready(s, l->send) &&
           (is_ready(s, l->recv) || is_eager(s, l->send))) {
        int send = l->send, recv = l->recv;

        l->send = s->all.steps[send].next;
        l->recv = s->all.steps[recv].next;
        begin_message(s, lane, send, recv);
    }
}

/* Return the cable of a link that becomes free first, the lowest of equals. */
static double *cable_of(struct sim *s, const struct link *link)
{
    double *best = &s->free[link->first];

    for (int i = 1; i < link->n_cables; i++)
        if (s->free[link->first + i] < *best)
            best = &s->free[link->first + i];
    return best;
}

/* A segment's head has reached the link of its hop: send it on. */
static void hop(struct sim *s, int g)
{
    struct segment *segment = &s->segments[g];
    struct message *message = &s->messages[segment->message];
    const struct route *route = &s->routes[message->lane];
    struct link *link = &s->links[s->hops[route->first + segment->hop]];
    size_t len = s->all.steps[message->send].len;
    double *cable = cable_of(s, link), head = max_double(s->now, *cable);
    int n = segments_of(s, len), is_last = segment->hop == route->n - 1;
    double busy = (double)len / n * link->beta;

    segment->tail = max_double(segment->tail, head + busy) + link->latency;
    link->busy += busy / link->n_cables;
    if (n == 1 && (segment->hop == 0 || is_last))
        busy = max_double(busy, s->gap);
    *cable = head + busy;
    segment->hop++;
    if (!is_last) {
        put(s, head + link->latency, EVENT_HOP, g);
        return;
    }
    if (!--message->n_left)
        put(s, segment->tail, EVENT_ARRIVED, segment->message);
    segment->hop = s->of_segments.free;
    s->of_segments.free = g;
}

/* Send all segments over the first link, one after another. */
static void depart(struct sim *s, int m)
{
    for (int i = s->messages[m].n_left; i > 0 && s->status == COLL_OK; i--) {
        int g = new_segment(s);

        if (g < 0)
            return;
        s->segments[g] = (struct segment){m, 0, s->now};
        hop(s, g);
    }
    if (is_eager(s, s->messages[m].send))
        put(s, s->now, EVENT_STEP, s->messages[m].send);
}

/* ---- steps --------------------------------------------------------------- */

/* Give work on n bytes to a rank's processor; the step ends with it. */
static void work(struct sim *s, int rank, int step)
{
    double begin = max_double(s->now, s->cpu[rank]);

    s->cpu[rank] = begin + (double)s->all.steps[step].len * s->gamma;
    put(s, s->cpu[rank], EVENT_STEP, step);
}

/* A ready receive's message has arrived: reduce it, or finish the step at once. */
static void take(struct sim *s, int step)
{
    const struct coll__sim_step *of = &s->all.steps[step];

    if (of->kind == SIM_RECV_REDUCE)
        work(s, s->all.lanes[of->lane].to, step);
    else
        put(s, s->now, EVENT_STEP, step);
}

/* All steps before this one are finished: begin it. */
static void ready(struct sim *s, int step)
{
    const struct coll__sim_step *of = &s->all.steps[step];

    if (of->kind == SIM_WORK)
        work(s, of->lane, step);
    else if (of->kind == SIM_FREE)
        put(s, s->now, EVENT_STEP, step);
    else if (of->is_here)
        take(s, step);
    else
        run_lane(s, of->lane, s->all.n_steps);
}

static void end_step(struct sim *s, int step)
{
    const struct coll__sim_step *of = &s->all.steps[step];

    s->n_done++;
    s->last_step = step;
    for (int e = of->first_after; e < of[1].first_after; e++) {
        int next = s->all.after[e];

        if (!--s->all.steps[next].waits)
            ready(s, next);
    }
}

static void arrived(struct sim *s, int m)
{
    struct message message = s->messages[m];

    s->messages[m].lane = s->of_messages.free;
    s->of_messages.free = m;
    if (!is_eager(s, message.send))
        end_step(s, message.send);
    if (is_ready(s, message.recv))
        take(s, message.recv);
    else
        s->all.steps[message.recv].is_here = 1;
}

/* ---- the whole ----------------------------------------------------------- */

static int init_links(struct sim *s)
{
    int n_cables = 0;

    s->n_links = coll__fabric_n_links(s->fabric);
    s->links = malloc(((size_t)s->n_links + 1) * sizeof(*s->links));
    if (!s->links)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < s->n_links; i++) {
        struct coll__fabric_link link = coll__fabric_link(s->fabric, i);
        int n = link.share < link.beta ? (int)(link.beta / link.share + 0.5)
                                       : 1;

        if (n > INT_MAX - 1 - n_cables)
            return COLL_ERR_NOMEM;
        s->links[i] = (struct link){link.latency, link.beta, 0, n_cables, n};
        n_cables += n;
    }
    s->free = calloc((size_t)n_cables + 1, sizeof(*s->free));
    return s->free ? COLL_OK : COLL_ERR_NOMEM;
}

static int init(struct sim *s, const struct coll__algo *algo,
                const struct coll__problem *pb, enum coll__placement placement)
{
    size_t p = (size_t)pb->nranks;
    int rc;

    s->overhead = coll__fabric_overhead(s->fabric);
    s->gap = coll__fabric_gap(s->fabric);
    s->gamma = coll__fabric_gamma(s->fabric);
    s->seat = malloc(p * sizeof(*s->seat));
    s->cpu = calloc(p, sizeof(*s->cpu));
    if (!s->seat || !s->cpu || init_links(s))
        return COLL_ERR_NOMEM;
    rc = coll__fabric_seats(s->fabric, pb->nranks, placement, s->seat);
    if (rc == COLL_OK)
        rc = coll__sim_steps_init(&s->all, algo, pb);
    if (rc)
        return rc;
    s->routes = malloc(((size_t)s->all.n_lanes + 1) * sizeof(*s->routes));
    if (!s->routes)
        return COLL_ERR_NOMEM;
    for (int i = 0; i < s->all.n_lanes; i++)
        s->routes[i] = (struct route){-1, 0};
    return COLL_OK;
}

static void fini(struct sim *s)
{
    coll__sim_steps_fini(&s->all);
    coll__sim_queue_fini(&s->queue);
    free(s->links);
    free(s->free);
    free(s->seat);
    free(s->routes);
    free(s->hops);
    free(s->messages);
    free(s->segments);
    free(s->cpu);
}

/* Begin the steps that wait for nothing, each rank in the order of its list; a receive
 * begins with its send. */
static void begin(struct sim *s)
{
    for (int i = 0; i < s->all.n_steps && s->status == COLL_OK; i++) {
        const struct coll__sim_step *step = &s->all.steps[i];

        if (step->waits)
            continue;
        if (step->kind == SIM_SEND)
            run_lane(s, step->lane, i);
        else if (step->kind == SIM_WORK || step->kind == SIM_FREE)
            ready(s, i);
    }
}

static void run(struct sim *s)
{
    struct coll__sim_event event;

    set_segments(s);
    begin(s);
    while (s->status == COLL_OK && coll__sim_take(&s->queue, &event)) {
        s->now = event.time;
        if (event.kind == EVENT_BEGIN)
            depart(s, event.at);
        else if (event.kind == EVENT_HOP)
            hop(s, event.at);
        else if (event.kind == EVENT_ARRIVED)
            arrived(s, event.at);
        else
            end_step(s, event.at);
    }
}

static int rank_of(const struct sim *s, int step)
{
    const struct coll__sim_step *of = &s->all.steps[step];

    if (of->kind == SIM_WORK || of->kind == SIM_FREE)
        return of->lane;
    return of->kind == SIM_SEND ? s->all.lanes[of->lane].from
                                : s->all.lanes[of->lane].to;
}

static void conclude(struct sim *s)
{
    struct coll__sim_result *result = s->result;

    result->seconds = s->now;
    result->n_steps = s->all.n_steps;
    result->last_rank = s->all.n_steps ? rank_of(s, s->last_step) : 0;
    result->busiest = -1;
    for (int i = 0; i < s->n_links; i++)
        if (s->links[i].busy > result->busy) {
            result->busy = s->links[i].busy;
            result->busiest = i;
        }
}

int coll__sim_run(const struct coll__algo *algo, const struct coll__problem *pb,
                  const struct coll__fabric *fabric,
                  enum coll__placement placement,
                  struct coll__sim_result *result)
{
    struct coll__sim_result got = {0};
    struct sim s = {.fabric = fabric,
                    .of_messages.free = -1,
                    .of_segments.free = -1,
                    .result = &got};
    int rc = init(&s, algo, pb, placement);

    if (rc == COLL_OK) {
        run(&s);
        rc = s.status;
    }
    if (rc == COLL_OK && s.n_done < s.all.n_steps) {
        log_error("plan", "%s: %d of %d steps wait for ever; prove the plans "
                  "first (--check)",
                  algo->name, s.all.n_steps - s.n_done, s.all.n_steps);
        rc = COLL_ERR_INVALID;
    } else if (rc == COLL_ERR_NOMEM) {
        log_error("plan", "no memory to simulate %d ranks", pb->nranks);
    } else if (rc == COLL_OK) {
        conclude(&s);
        *result = got;
    }
    fini(&s);
    return rc;
}
