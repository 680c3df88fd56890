/* SPDX-License-Identifier: BSD-3-Clause */
/* test_slot_order.c - plans of ranks that do one thing after the other: with one slot
 * between two ranks, two or three, every algorithm's come to their ends as listed,
 * move what they moved before, and are right. */
#include "lib/order/order.h"
#include "lib/plan/view.h"
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/util/util.h"
#include "lib/type/signature.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MOST 9 /* ranks */
#define SLOTS 3

/* Messages and their bytes, local steps and theirs. */
struct work {
    int n_sent, n_received, n_local;
    size_t sent, received, local, longest;
};

static struct work work_of(const struct coll__plan *plan)
{
    struct work work = {0};

    for (int i = 0; i < plan->n_steps; i++) {
        const struct coll__step *step = &plan->steps[i];
        int is_send = step->kind == STEP_SEND;
        size_t len = is_send ? step->src.len : step->dst.len;

        if (is_send || coll__step_is_recv(step->kind)) {
            *(is_send ? &work.n_sent : &work.n_received) += 1;
            *(is_send ? &work.sent : &work.received) += len;
            work.longest = max_size(work.longest, len);
        } else {
            work.n_local++;
            work.local += len;
        }
    }
    return work;
}

/* What a rank does is what the builder says for streams, in another order. */
static void same_work(const struct coll__algo *algo,
                      const struct coll__problem *pb,
                      const struct coll__slots *room,
                      const struct coll__plan *plan)
{
    struct coll__plan built;
    struct work a, b = work_of(plan);

    ck_assert_int_eq(coll__plan_build_for_slots(algo, pb, room, &built),
                     COLL_OK);
    a = work_of(&built);
    ck_assert_uint_eq(a.sent, b.sent);
    ck_assert_uint_eq(a.received, b.received);
    ck_assert_uint_eq(a.local, b.local);
    ck_assert_int_ge(b.n_local, a.n_local);
    ck_assert_int_ge(b.n_sent, a.n_sent);
    ck_assert_uint_le(b.longest, room->slot);
    ck_assert_uint_eq(plan->tmp_len, built.tmp_len);
    coll__plan_fini(&built);
}

static void try_room(const struct coll__algo *algo,
                     const struct coll__cast *cast, const struct coll__trial *t,
                     const struct coll__slots *room)
{
    struct coll__plan plans[MOST];
    char why[256] = "";
    int rc;

    for (int r = 0; r < t->nranks; r++) {
        rc = coll__plan_build_in_slot_order(algo, &cast->pbs[r], room,
                                            &plans[r]);
        ck_assert_msg(rc == COLL_OK, "%s %s of %d ranks: %s",
                      coll_collective_name(t->collective), algo->name,
                      t->nranks, coll_last_error());
        ck_assert_int_eq(plans[r].n_slots, room->n_slots);
        same_work(algo, &cast->pbs[r], room, &plans[r]);
    }
    rc = coll__plans_run_as_listed(plans, t->nranks, room->n_slots, why,
                                   sizeof(why));
    if (rc == COLL_OK)
        rc = coll__plan_check(cast->pbs, plans, t->seed, why, sizeof(why));
    ck_assert_msg(rc == COLL_OK,
                  "%s %s of %d ranks, root %d, count %zu, seed %u, %d slots of "
                  "%zu, slices of %zu: %s",
                  coll_collective_name(t->collective), algo->name, t->nranks,
                  t->root, t->count, t->seed, room->n_slots, room->slot,
                  room->slice, why);
    for (int r = 0; r < t->nranks; r++)
        coll__plan_fini(&plans[r]);
}

/* Ranks are in place or not as the trial's seed has it. */
static void try_trials(const struct coll__algo *algo,
                       enum coll_collective collective, int nranks)
{
    struct coll__view views[COLL__N_VIEWS];
    struct coll__trial trial;

    ck_assert_int_eq(coll__views_init(views, nranks), COLL_OK);
    for (int i = 0; coll__trial_at(i, collective, nranks, views, &trial); i++) {
        struct coll__slots room = {.n_slots = 1 + i % SLOTS,
                                   .slot = i / SLOTS % 2 ? 64 : 256,
                                   .slice = i % 5 ? 0 : 128};
        struct coll__cast cast;

        ck_assert_int_eq(coll__cast_init(&cast, &trial), COLL_OK);
        if (!coll__algo_refuses(algo, &cast.pbs[0]))
            try_room(algo, &cast, &trial, &room);
        coll__cast_fini(&cast);
    }
    coll__views_fini(views);
}

/* _i: the algorithm. */
START_TEST(every_plan_runs_in_slot_order)
{
    int most = getenv("TEST_QUICK") ? 6 : MOST;

    for (int c = 0; c < COLL_N_COLLECTIVES; c++)
        for (int p = 1; p <= most; p++)
            if (coll__algos[_i]->serves & (1u << c))
                try_trials(coll__algos[_i], (enum coll_collective)c, p);
}
END_TEST

/* ---- hosts -------------------------------------------------------------------- */

/* The next of all ways to put p ranks on hosts, the first host's rank 0: a rank is on one
 * of the hosts before it, or on a new one.  0 past the last. */
static int next_hosts(int p, int *host)
{
    for (int r = p - 1; r > 0; r--) {
        int most = 0;

        for (int i = 0; i < r; i++)
            most = max_int(most, host[i]);
        if (host[r] > most)
            continue;
        host[r]++;
        for (int i = r + 1; i < p; i++)
            host[i] = 0;
        return 1;
    }
    return 0;
}

/* Do ranks of one host follow each other? */
static int are_neighbours(int p, const int *host)
{
    for (int r = 1; r < p; r++)
        if (host[r] < host[r - 1])
            return 0;
    return 1;
}

/* The price of the network may be high, or as within a host. */
static void hosts_view(struct coll__view *view, int p, const int *host, int n)
{
    const int *color[1];
    int first[MOST];

    for (int r = 0; r < p; r++)
        for (first[r] = 0; host[first[r]] != host[r];)
            first[r]++;
    color[0] = first;
    ck_assert_int_eq(coll__view_init(view, p,
                                     1 + coll__view_is_level(first, NULL, p),
                                     color),
                     COLL_OK);
    for (int l = 0; l < view->n_levels; l++) {
        view->levels[l].alpha = 1e-6;
        view->levels[l].beta = l && n % 2 ? 1e-9 : 1e-10;
        view->levels[l].share = view->levels[l].beta;
    }
    view->chunk = 128;
}

static void try_hosts(const struct coll__algo *algo,
                      enum coll_collective collective, int p, const int *host,
                      int n)
{
    struct coll__view view;
    struct coll__trial trial = {.collective = collective,
                                .type = COLL_I32,
                                .op = COLL_SUM,
                                .nranks = p,
                                .root = n % p,
                                .count = (size_t)(17 + 13 * (n % 5)),
                                .chunk = 128,
                                .seed = (unsigned)n,
                                .view = &view};
    struct coll__slots room = {
        .n_slots = 1 + n % SLOTS, .slot = 64, .slice = n % 2 ? 128 : 0};
    struct coll__cast cast;

    if (collective == COLL_BARRIER) {
        trial.type = COLL_U8;
        trial.op = COLL_MAX;
        trial.count = 1;
    }
    hosts_view(&view, p, host, n);
    ck_assert_int_eq(coll__cast_init(&cast, &trial), COLL_OK);
    if (!coll__algo_refuses(algo, &cast.pbs[0]))
        try_room(algo, &cast, &trial, &room);
    coll__cast_fini(&cast);
    coll__view_fini(&view);
}

static void try_all_hosts(const struct coll__algo *algo,
                          enum coll_collective collective, int p, int is_all)
{
    int host[MOST] = {0}, n = 0;

    do
        if (is_all || are_neighbours(p, host))
            try_hosts(algo, collective, p, host, n++);
    while (next_hosts(p, host));
}

/* All partitions of up to 4 ranks into hosts; of up to 7, and of up to 9 in which ranks of
 * a host follow each other, with TEST_LONG.  _i: the algorithm. */
START_TEST(every_partition_into_hosts_runs_in_slot_order)
{
    int is_long = getenv("TEST_LONG") != NULL, all = is_long ? 7 : 4;

    for (int c = 0; c < COLL__N_OF_ALL; c++)
        for (int p = 2; p <= (is_long ? MOST : all + 1); p++)
            if (coll__algos[_i]->serves & (1u << coll__of_all(c)))
                try_all_hosts(coll__algos[_i], coll__of_all(c), p, p <= all);
}
END_TEST

/* Messages so long that their chunks fit no slot: these are cut once more.  _i: the
 * algorithm. */
START_TEST(chunks_that_fit_no_slot_run_in_slot_order)
{
    int step = getenv("TEST_QUICK") ? 5 : 1; /* prime to what i is made of */

    for (int i = 0; i < 96; i += step) {
        struct coll__trial trial = {.type = COLL_I32,
                                    .op = COLL_SUM,
                                    .nranks = 2 + i % 4,
                                    .root = i / 4 % 2,
                                    .count = 256 * 16 * 2 + 37,
                                    .seed = (unsigned)i};
        struct coll__slots room = {
            .n_slots = 1 + i / 8 % 2, .slot = 64, .slice = i % 3 ? 0 : 4096};
        struct coll__cast cast;

        trial.collective = i / 16 % 2   ? COLL_REDUCE
                           : i / 32 % 2 ? COLL_REDUCE_SCATTER
                                        : COLL_ALLREDUCE;
        if (!(coll__algos[_i]->serves & (1u << trial.collective)))
            continue;
        ck_assert_int_eq(coll__cast_init(&cast, &trial), COLL_OK);
        if (!coll__algo_refuses(coll__algos[_i], &cast.pbs[0]))
            try_room(coll__algos[_i], &cast, &trial, &room);
        coll__cast_fini(&cast);
    }
}
END_TEST

/* ---- what is refused ----------------------------------------------------- */

/* Two ranks that wait for each other. */
START_TEST(plans_without_an_order_are_refused)
{
    struct coll__plan plans[2] = {{0}};
    struct coll__slot_order order;

    for (int r = 0; r < 2; r++) {
        struct coll__span span = {BUF_OUT, 0, 4};

        plan_recv(&plans[r], 1 - r, span);
        plan_send(&plans[r], 1 - r, span);
        ck_assert_int_eq(coll__plan_link(&plans[r]), COLL_OK);
    }
    ck_assert_int_eq(coll__plans_slot_order(plans, 2, 3, 0, &order),
                     COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "get stuck"));
    ck_assert_ptr_null(order.lanes);
    for (int r = 0; r < 2; r++)
        coll__plan_fini(&plans[r]);
}
END_TEST

/* One that receives and passes on cannot do so the other way round. */
START_TEST(turns_that_are_not_the_plan_s_are_refused)
{
    static int wrong[][3] = {{2, 1}, {1, 1}, {1, 4}, {1}};
    static const int n[] = {2, 2, 2, 1};
    struct coll__span span = {BUF_OUT, 0, 4};
    struct coll__plan plan = {0};
    int right[] = {1, 2};

    plan_recv(&plan, 0, span);
    plan_send(&plan, 1, span);
    ck_assert_int_eq(coll__plan_link(&plan), COLL_OK);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        ck_assert_int_eq(
            coll__plan_reorder(&plan,
                               &(struct coll__slot_order){wrong[i], n[i], 1}),
            COLL_ERR_INVALID);
        ck_assert_int_eq(plan.n_slots, 0);
        ck_assert_int_eq(plan.steps[0].kind, STEP_RECV);
    }
    ck_assert_int_eq(
        coll__plan_reorder(&plan, &(struct coll__slot_order){right, 2, 1}),
        COLL_OK);
    coll__plan_fini(&plan);
}
END_TEST

/* ---- what the order is for ----------------------------------------------- */

/* A relay passes each piece on before it takes the one behind the next. */
START_TEST(a_chain_is_a_pipeline)
{
    const struct coll__algo *algo = coll__algo_find(COLL_BROADCAST, "chain");
    struct coll__problem pb = {.collective = COLL_BROADCAST,
                               .type = COLL_U8,
                               .nranks = 4,
                               .rank = 1,
                               .count = 1000 * 64};
    struct coll__slots room = {.n_slots = 2, .slot = 64};
    struct coll__plan plan;
    int held = 0;

    ck_assert_int_eq(coll__plan_build_in_slot_order(algo, &pb, &room, &plan),
                     COLL_OK);
    ck_assert_int_eq(plan.n_steps, 2000);
    for (int i = 0; i < plan.n_steps; i++) {
        held += plan.steps[i].kind == STEP_SEND ? -1 : 1;
        ck_assert_int_le(held, 2);
    }
    coll__plan_fini(&plan);
}
END_TEST

/* ---- what is passed on as it is taken ------------------------------------ */

enum { PIECES = 5 };

static void build_rings(int p, const struct coll__slots *room,
                        struct coll__plan plans[MOST])
{
    const struct coll__algo *ring = coll__algo_find(COLL_ALLREDUCE, "ring");

    for (int r = 0; r < p; r++) {
        struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                                   .type = COLL_U8,
                                   .nranks = p,
                                   .rank = r,
                                   .count = (size_t)p * PIECES * room->slot,
                                   .in_place = r % 2};

        ck_assert_int_eq(
            coll__plan_build_in_slot_order(ring, &pb, room, &plans[r]),
            COLL_OK);
    }
}

/* All but what goes off first and what comes last; _i: ranks. */
START_TEST(a_ring_passes_on_all_that_goes_through)
{
    struct coll__plan plans[MOST];

    for (int n_slots = 2; n_slots <= 4; n_slots++) {
        struct coll__slots room = {.n_slots = n_slots, .slot = 64};

        build_rings(_i, &room, plans);
        for (int r = 0; r < _i; r++) {
            int n = 0;

            for (int i = 0; i < plans[r].n_steps; i++)
                n += plans[r].steps[i].is_fused;
            ck_assert_int_eq(n, (2 * _i - 3) * PIECES);
            coll__plan_fini(&plans[r]);
        }
    }
}
END_TEST

/* Receives whose next step sends what they leave; they become joined ones. */
static int join_all(struct coll__plan *plan)
{
    int n = 0;

    for (int i = 0; i + 1 < plan->n_steps; i++) {
        struct coll__step *step = &plan->steps[i];

        if (!coll__step_is_recv(step->kind) || step[1].kind != STEP_SEND ||
            !coll__same_span(&step->dst, &step[1].src))
            continue;
        ck_assert_int_eq(step->is_fused, 0);
        step->is_fused = 1;
        n++;
    }
    return n;
}

/* With one slot each rank would wait for the next one to take what it has. */
START_TEST(a_ring_that_is_full_passes_on_nothing)
{
    struct coll__slots room = {.n_slots = 1, .slot = 64};
    struct coll__plan plans[MOST];
    char why[256] = "";

    build_rings(4, &room, plans);
    ck_assert_int_eq(coll__plans_run_as_listed(plans, 4, 1, why, sizeof(why)),
                     COLL_OK);
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(join_all(&plans[r]), 5 * PIECES);
    ck_assert_int_eq(coll__plans_run_as_listed(plans, 4, 1, why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_int_eq(coll__plans_run_as_listed(plans, 4, 2, why, sizeof(why)),
                     COLL_OK);
    for (int r = 0; r < 4; r++)
        coll__plan_fini(&plans[r]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slot_order");
    TCase *c = tcase_create("slot_order");
    int n = 0;

    while (coll__algos[n])
        n++;
    tcase_set_timeout(c, getenv("TEST_LONG") ? 1800 : 60);
    tcase_add_loop_test(c, every_plan_runs_in_slot_order, 0, n);
    tcase_add_loop_test(c, every_partition_into_hosts_runs_in_slot_order, 0, n);
    tcase_add_loop_test(c, chunks_that_fit_no_slot_run_in_slot_order, 0, n);
    tcase_add_test(c, plans_without_an_order_are_refused);
    tcase_add_test(c, turns_that_are_not_the_plan_s_are_refused);
    tcase_add_test(c, a_chain_is_a_pipeline);
    tcase_add_loop_test(c, a_ring_passes_on_all_that_goes_through, 2, 7);
    tcase_add_test(c, a_ring_that_is_full_passes_on_nothing);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
