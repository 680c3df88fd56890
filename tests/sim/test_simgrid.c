/* SPDX-License-Identifier: BSD-3-Clause */
/* test_simgrid.c - a second opinion on simulations: the same plans on SimGrid.
 *
 * SimGrid's flows share links evenly and have no order, so where a rank has
 * several messages ready at once the truth lies between two of its runs: one
 * where they share the way out, and one where each waits for the end of the
 * last.  Where a rank sends one at a time the two are one.  We allow 15 % on
 * either side: links that queue segments let early messages through earlier.
 * Bruck's alltoall gets 20 %: most messages of a round meet others with a
 * shorter way, and SimGrid gives a flow the less of a link the longer its
 * latency is.
 */
#include "tools/sim/sim.h"
#include "lib/util/util.h"
#include "tests/sim/simgrid_replay.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* A fabric as SimGrid gets it. */
struct machine {
    struct coll__fabric *fabric;
    struct coll__view view;
    struct replay replay;
    struct replay_link *links;
    int *hops, *first;
};

static void copy_links(struct machine *m)
{
    int n = coll__fabric_n_links(m->fabric);

    m->links = calloc((size_t)n, sizeof(*m->links));
    ck_assert_ptr_nonnull(m->links);
    for (int i = 0; i < n; i++) {
        struct coll__fabric_link link = coll__fabric_link(m->fabric, i);

        m->links[i] = (struct replay_link){link.latency, link.beta, link.share};
    }
    m->replay.links = m->links;
    m->replay.n_links = n;
}

static void copy_routes(struct machine *m, int p)
{
    size_t pairs = (size_t)p * (size_t)p;
    int *seat = malloc((size_t)p * sizeof(*seat)), n = 0;

    m->first = malloc((pairs + 1) * sizeof(*m->first));
    m->hops = malloc(pairs * COLL__ROUTE_MAX * sizeof(*m->hops));
    ck_assert(seat && m->first && m->hops);
    ck_assert_int_eq(coll__fabric_seats(m->fabric, p, PLACE_BLOCK, seat),
                     COLL_OK);
    for (int i = 0; i < p * p; i++) {
        m->first[i] = n;
        n += coll__fabric_route(m->fabric, seat[i / p], seat[i % p],
                                m->hops + n);
    }
    m->first[p * p] = n;
    m->replay.first = m->first;
    m->replay.hops = m->hops;
    free(seat);
}

static void machine_init(struct machine *m, const char *name, int p)
{
    ck_assert_int_eq(coll__fabric_load(fixture_file("topo", name), &m->fabric),
                     COLL_OK);
    ck_assert_int_eq(
        coll__view_of_fabric(&m->view, m->fabric, p, PLACE_BLOCK, 0), COLL_OK);
    m->replay =
        (struct replay){.overhead = coll__fabric_overhead(m->fabric),
                        .gamma = coll__fabric_gamma(m->fabric)};
    copy_links(m);
    copy_routes(m, p);
}

static void machine_fini(struct machine *m)
{
    free(m->links);
    free(m->hops);
    free(m->first);
    coll__view_fini(&m->view);
    coll__fabric_destroy(m->fabric);
}

static void compare(struct machine *m, const struct coll__algo *algo,
                    const struct coll__problem *pb, double slack)
{
    double shared, ordered, low, high;
    struct coll__sim_result got;
    struct coll__sim_steps all;

    ck_assert_int_eq(
        coll__sim_run(algo, pb, m->fabric, PLACE_BLOCK, &got), COLL_OK);
    ck_assert_int_eq(coll__sim_steps_init(&all, algo, pb), COLL_OK);
    m->replay.all = &all;
    m->replay.in_order = 0;
    shared = replay_seconds(&m->replay);
    m->replay.in_order = 1;
    ordered = replay_seconds(&m->replay);
    coll__sim_steps_fini(&all);
    low = shared < ordered ? shared : ordered;
    high = shared < ordered ? ordered : shared;
    ck_assert_msg(low > 0 && got.seconds >= (1 - slack) * low &&
                      got.seconds <= (1 + slack) * high,
                  "%s %s, %d ranks, %zu elements: %g s, SimGrid %g to %g s",
                  coll_collective_name(pb->collective), algo->name, pb->nranks,
                  pb->count, got.seconds, shared, ordered);
}

static const struct {
    enum coll_collective collective;
    const char *name;
    double slack;
} replayed[] = {
    {COLL_ALLREDUCE, "ring", 0.15},
    {COLL_ALLREDUCE, "recursive_doubling", 0.15},
    {COLL_ALLREDUCE, "rabenseifner", 0.15},
    {COLL_ALLREDUCE, "binomial", 0.15},
    {COLL_BROADCAST, "binomial", 0.15},
    {COLL_BROADCAST, "chain", 0.15},
    {COLL_REDUCE, "binomial", 0.15},
    {COLL_ALLGATHER, "ring", 0.15},
    {COLL_ALLGATHER, "bruck", 0.15},
    {COLL_REDUCE_SCATTER, "ring", 0.15},
    {COLL_REDUCE_SCATTER, "halving", 0.15},
    {COLL_ALLTOALL, "bruck", 0.20},
    {COLL_GATHER, "binomial", 0.15},
    {COLL_SCATTER, "binomial", 0.15},
};

static const struct {
    const char *file;
    int nranks;
} machines[] = {{"flat.topo", 8},    {"flat.topo", 13},   {"flat.topo", 32},
                {"hosts8.topo", 16}, {"hosts8.topo", 32}, {"switch.topo", 12}};

START_TEST(simgrid_agrees_on_the_time_of_each_plan)
{
    static const size_t counts[] = {64, 1 << 13, 1 << 20, 1 << 24};
    struct machine m;

    machine_init(&m, machines[_i].file, machines[_i].nranks);
    for (size_t a = 0; a < ARRAY_LEN(replayed); a++)
        for (size_t c = 0; c < ARRAY_LEN(counts); c++) {
            struct coll__problem pb = {.collective = replayed[a].collective,
                                       .type = COLL_F32,
                                       .op = COLL_SUM,
                                       .nranks = machines[_i].nranks,
                                       .view = &m.view,
                                       .count = counts[c]};
            const struct coll__algo *algo =
                coll__algo_find(pb.collective, replayed[a].name);

            ck_assert_ptr_nonnull(algo);
            compare(&m, algo, &pb, replayed[a].slack);
        }
    machine_fini(&m);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("simgrid");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, simgrid_agrees_on_the_time_of_each_plan, 0,
                        ARRAY_LEN(machines));
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
