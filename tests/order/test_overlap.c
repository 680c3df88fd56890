/* SPDX-License-Identifier: BSD-3-Clause */
/* test_overlap.c - do the levels of an operation in streams overlap?  All ranks' plans run
 * step by step, as listed, with the slots that there are, in a time that is computed.
 *
 * The ranks of a host share a bus, over which each copies into the other's slots; a host
 * has one link to other hosts, which carries one message at a time.  A rank copies what
 * goes that way into its slot, and from it, at the speed of the bus.
 */
#include "tests/support/files.h"
#include "tests/support/suite.h"
#include "lib/order/order.h"
#include "lib/plan/view.h"
#include "lib/proof/prove.h"
#include "lib/util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOSTS = 2, EACH = 2, RANKS = HOSTS * EACH, SLOTS = 2, MOST = 1 << 14 };
#define SLOT ((size_t)512 << 10)

/* Seconds a byte. */
struct speed {
    double bus, link;
};

/* One direction between two ranks: when each message is there, and when its slots, at the
 * sender and the receiver, are free again. */
struct way {
    double there[MOST], sent[MOST], taken[MOST];
    int n_sent, n_taken;
};

struct run {
    struct speed speed;
    const struct coll__plan *plans; /* [RANKS] */
    int at[RANKS];
    double now[RANKS], link[HOSTS];
    struct way ways[RANKS][RANKS];
};

static int are_apart(int a, int b) { return a / EACH != b / EACH; }

/* When may the next message be put into a slot?  -1: not yet known. */
static double when_free(const struct run *run, int from, int to)
{
    const struct way *way = &run->ways[from][to];
    int before = way->n_sent - SLOTS;

    if (before < 0)
        return 0;
    if (are_apart(from, to))
        return way->sent[before];
    return before < way->n_taken ? way->taken[before] : -1;
}

/* The link takes a message if the receiver's slot is free. */
static int send(struct run *run, int from, int to, size_t len)
{
    struct way *way = &run->ways[from][to];
    double free = when_free(run, from, to), begin;
    int n = way->n_sent;

    if (free < 0 || n == MOST ||
        (are_apart(from, to) && n - SLOTS >= way->n_taken))
        return 0;
    run->now[from] = max_double(run->now[from], free) +
                     (double)len * run->speed.bus;
    way->there[n] = run->now[from];
    if (are_apart(from, to)) {
        begin = max_double(run->now[from], run->link[from / EACH]);
        if (n >= SLOTS)
            begin = max_double(begin, way->taken[n - SLOTS]);
        way->sent[n] = way->there[n] = run->link[from / EACH] =
            begin + (double)len * run->speed.link;
    }
    way->n_sent++;
    return 1;
}

static int receive(struct run *run, int from, int to, double cost)
{
    struct way *way = &run->ways[from][to];

    if (way->n_taken == way->n_sent)
        return 0;
    run->now[to] =
        max_double(run->now[to], way->there[way->n_taken]) + cost;
    way->taken[way->n_taken++] = run->now[to];
    return 1;
}

/* A received message costs a copy over the bus if it was carried; within a host its sender
 * has paid. */
static int step(struct run *run, int rank)
{
    const struct coll__step *s = &run->plans[rank].steps[run->at[rank]];

    if (s->kind == STEP_SEND)
        return send(run, rank, s->peer, s->src.len);
    if (coll__step_is_message(s->kind))
        return receive(run, s->peer, rank,
                       are_apart(rank, s->peer)
                           ? (double)s->dst.len * run->speed.bus
                           : 0);
    return 1;
}

static int is_done(const struct run *run, int rank)
{
    return run->at[rank] == run->plans[rank].n_steps;
}

/* The rank that is least far goes on, of those that can. */
static int advance(struct run *run)
{
    int is_stuck[RANKS] = {0};

    for (;;) {
        int least = -1;

        for (int r = 0; r < RANKS; r++)
            if (!is_stuck[r] && !is_done(run, r) &&
                (least < 0 || run->now[r] < run->now[least]))
                least = r;
        if (least < 0)
            return 0;
        if (step(run, least)) {
            run->at[least]++;
            return 1;
        }
        is_stuck[least] = 1;
    }
}

/* The time of all plans, or -1 if they get stuck. */
static double time_of(const struct coll__plan *plans, struct speed speed)
{
    struct run *run = calloc(1, sizeof(*run));
    double most = 0;

    ck_assert_ptr_nonnull(run);
    run->plans = plans;
    run->speed = speed;
    while (advance(run))
        ;
    for (int r = 0; r < RANKS; r++)
        most = is_done(run, r) && most >= 0 ? max_double(most, run->now[r]) : -1;
    free(run);
    return most;
}

static void view_init(struct coll__view *view, struct speed speed)
{
    int hosts[RANKS];
    const int *color[] = {hosts};

    for (int r = 0; r < RANKS; r++)
        hosts[r] = r / EACH * EACH;
    ck_assert(!coll__view_init(view, RANKS, 2, color));
    for (int l = 0; l < 2; l++) {
        view->levels[l].alpha = 1e-6;
        view->levels[l].beta = l ? speed.link : speed.bus;
        view->levels[l].gap = 1e-6;
        view->levels[l].share = view->levels[l].beta;
    }
    view->chunk = 128 << 10;
}

static void plans_init(struct coll__plan plans[RANKS],
                       const struct coll__view *view,
                       enum coll_collective collective, size_t len)
{
    const struct coll__algo *algo = coll__algo_find(collective, "hierarchical");
    struct coll__slots slots = {.n_slots = SLOTS, .slot = SLOT};
    struct coll__problem pb = {.collective = collective,
                               .type = COLL_F32,
                               .op = COLL_SUM,
                               .nranks = RANKS,
                               .count = len / 4,
                               .in_place = 1,
                               .view = view};

    coll__slots_for_levels(&pb, &slots);
    for (pb.rank = 0; pb.rank < RANKS; pb.rank++)
        ck_assert(!coll__plan_build_in_slot_order(algo, &pb, &slots,
                                                  &plans[pb.rank]));
}

/* The time of all plans; of the bytes that the busiest rank copies over its bus, and of
 * those that the busiest link carries. */
struct times {
    double all, bus, link;
};

static struct times work_of(const struct coll__plan *plans, struct speed speed)
{
    double links[HOSTS] = {0};
    struct times t = {0};

    for (int r = 0; r < RANKS; r++) {
        double bus = 0;

        for (int i = 0; i < plans[r].n_steps; i++) {
            const struct coll__step *s = &plans[r].steps[i];
            int is_apart =
                coll__step_is_message(s->kind) && are_apart(r, s->peer);

            if (s->kind == STEP_SEND)
                bus += (double)s->src.len;
            else if (is_apart)
                bus += (double)s->dst.len;
            if (s->kind == STEP_SEND && is_apart)
                links[r / EACH] += (double)s->src.len;
        }
        t.bus = max_double(t.bus, bus * speed.bus);
    }
    for (int h = 0; h < HOSTS; h++)
        t.link = max_double(t.link, links[h] * speed.link);
    return t;
}

static struct times times_of(size_t len, struct speed speed)
{
    struct coll__plan plans[RANKS];
    struct coll__view view;
    struct times t;

    view_init(&view, speed);
    plans_init(plans, &view, COLL_ALLREDUCE, len);
    t = work_of(plans, speed);
    t.all = time_of(plans, speed);
    for (int r = 0; r < RANKS; r++)
        coll__plan_fini(&plans[r]);
    coll__view_fini(&view);
    return t;
}

static void check(size_t len, double times_slower)
{
    struct speed speed = {1e-9, times_slower * 1e-9};
    struct times t = times_of(len, speed);
    double slowest = max_double(t.bus, t.link);
    char line[128];

    ck_assert(t.bus > 0 && t.link > 0 && t.all > 0);
    ck_assert(t.all < t.bus + t.link);
    snprintf(line, sizeof(line), "| %g | %zu | %.2f | %.2f | %.2f | %.2f | %.2f |",
             times_slower, len >> 10, t.all * 1e3, t.bus * 1e3, t.link * 1e3,
             t.all / slowest, (t.bus + t.link) / slowest);
    ck_assert_msg(fixture_has_line("order", "overlap.md", line),
                  "not in overlap.md: %s", line);
}

static const double times_slower[] = {0.5, 1, 2, 4, 8};

/* _i: the size */
START_TEST(levels_overlap)
{
    for (int i = 0; i < 5; i++)
        check((size_t)256 << 10 << 2 * _i, times_slower[i]);
}
END_TEST

/* _i: the speed.  Link and bus are busy at the same time, if a vector is long or one of
 * them is faster. */
START_TEST(the_slowest_level_decides)
{
    for (size_t mib = 4; mib <= 64; mib *= 4) {
        struct times t =
            times_of(mib << 20, (struct speed){1e-9, times_slower[_i] * 1e-9});
        int is_even = t.bus == t.link;

        ck_assert(t.all <= (is_even && mib < 64 ? 1.26 : 1.15) *
                               max_double(t.bus, t.link));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overlap");
    TCase *tc = tcase_create("overlap");

    tcase_add_loop_test(tc, levels_overlap, 0, 5);
    tcase_add_loop_test(tc, the_slowest_level_decides, 0, 5);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
