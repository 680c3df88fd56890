/* SPDX-License-Identifier: BSD-3-Clause */
/* test_plan.c - every algorithm's plans, proven symbolically for all ranks; the
 * passes; and that the check finds planted faults. */
#include "lib/plan/flow.h"
#include "lib/proof/proof.h"
#include "lib/proof/prove.h"
#include "lib/price/select.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 33

struct group {
    struct coll__problem pb, pbs[MAX_RANKS];
    struct coll__plan plans[MAX_RANKS];
};

static void build(struct group *g, const struct coll__algo *algo, size_t chunk)
{
    for (int r = 0; r < g->pb.nranks; r++) {
        g->pbs[r] = g->pb;
        g->pbs[r].rank = r;
        ck_assert_int_eq(
            coll__plan_build(algo, &g->pbs[r], chunk, &g->plans[r]), COLL_OK);
    }
}

static void end(struct group *g)
{
    for (int r = 0; r < g->pb.nranks; r++)
        coll__plan_fini(&g->plans[r]);
}

static struct coll__problem allreduce(int p, size_t count)
{
    return (struct coll__problem){.collective = COLL_ALLREDUCE,
                                  .type = COLL_I32,
                                  .nranks = p,
                                  .count = count};
}

static const struct coll__algo *algo_of(enum coll_collective collective,
                                        const char *name)
{
    const struct coll__algo *algo = coll__algo_find(collective, name);

    ck_assert_msg(algo != NULL, "no algorithm %s", name);
    return algo;
}

/* ---- every algorithm is right -------------------------------------------- */

static void prove_all(const struct coll__algo *algo,
                      enum coll_collective collective, int p,
                      const struct coll__view views[COLL__N_VIEWS])
{
    struct coll__trial t;
    char why[256] = "";

    for (int i = 0; coll__trial_at(i, collective, p, views, &t); i++) {
        int rc = coll__prove(algo, &t, why, sizeof(why));

        ck_assert_msg(rc == COLL_OK || rc == COLL_ERR_UNSUPPORTED,
                      "%s %s p %d count %zu root %d order %d chunk %zu seed "
                      "%u: %s", coll_collective_name(collective), algo->name, p,
                      t.count, t.root, t.order, t.chunk, t.seed, why);
    }
}

START_TEST(every_algorithm_is_right_for_any_ranks_and_counts)
{
    struct coll__view views[COLL__N_VIEWS];

    ck_assert_int_eq(coll__views_init(views, _i), COLL_OK);
    for (int i = 0; coll__algos[i]; i++)
        for (int k = 0; k < COLL_N_COLLECTIVES; k++)
            if (coll__algos[i]->serves & 1u << k)
                prove_all(coll__algos[i], (enum coll_collective)k, _i, views);
    coll__views_fini(views);
}
END_TEST

/* The ring may go any way: who is in which group does not depend on it. */
START_TEST(every_algorithm_is_right_on_any_ring)
{
    struct coll__view views[COLL__N_VIEWS];
    int ring[MAX_RANKS] = {0};

    ck_assert_int_eq(coll__views_init(views, _i), COLL_OK);
    for (int v = 0; v < COLL__N_VIEWS; v++) {
        for (int i = 0; i < _i; i++) { /* a shuffle, another for each view */
            ring[i] = ring[i / (v + 2)];
            ring[i / (v + 2)] = i;
        }
        ck_assert_int_eq(coll__view_set_ring(&views[v], ring), COLL_OK);
    }
    for (int i = 0; coll__algos[i]; i++)
        for (int k = 0; k < COLL_N_COLLECTIVES; k++)
            if (coll__algos[i]->serves & 1u << k)
                prove_all(coll__algos[i], (enum coll_collective)k, _i, views);
    coll__views_fini(views);
}

/* The pass alone. */
static void fuse(struct coll__plan *plan)
{
    struct coll__flow flow = {0};

    ck_assert_int_eq(coll__pass_fuse(plan, &flow), COLL_OK);
    coll__flow_fini(&flow);
}

END_TEST

/* An allreduce in place: a reduce-scatter that spoils OUT, then an allgather. */
static void build_spoiling(struct group *g, const struct coll__algo *scatter,
                           int r, const size_t *counts, const size_t *displs)
{
    int ranks[MAX_RANKS];
    struct coll__problem *pb = &g->pbs[r], inner = g->pb;
    struct coll__frame frame = {ranks, coll__whole(pb, BUF_OUT),
                                {BUF_OUT, displs[r] * 4, counts[r] * 4}};

    for (int q = 0; q < pb->nranks; q++)
        ranks[q] = q;
    inner.rank = r;
    inner.count = counts[r];
    inner.in_place = inner.spoils_in = 1;
    inner.collective = COLL_REDUCE_SCATTERV;
    inner.in_counts = counts;
    inner.in_displs = displs;
    coll__plan_nest(&g->plans[r], scatter, &inner, &frame);
    inner.collective = COLL_ALLGATHERV;
    inner.out_counts = counts;
    inner.out_displs = displs;
    frame.out = frame.in;
    coll__plan_nest(&g->plans[r], algo_of(COLL_ALLGATHERV, "ring"), &inner,
                    &frame);
    fuse(&g->plans[r]);
    ck_assert_int_eq(coll__plan_link(&g->plans[r]), COLL_OK);
}

START_TEST(a_reduce_scatter_may_spoil_its_input)
{
    size_t counts[MAX_RANKS], displs[MAX_RANKS], count = 0;
    char why[256] = "";

    for (int r = 0; r < _i; r++) { /* the last rank has nothing */
        counts[r] = r < _i - 1 ? (size_t)(r * 5 % 4) : 0;
        displs[r] = count;
        count += counts[r];
    }
    for (int a = 0; coll__algos[a]; a++) {
        struct group g = {.pb = allreduce(_i, count)};

        if (!(coll__algos[a]->serves & COLL_FOR(REDUCE_SCATTERV)) ||
            (coll__algos[a]->refuses && coll__algos[a]->refuses(&g.pb)))
            continue;
        for (int r = 0; r < _i; r++) {
            g.pbs[r] = g.pb;
            g.pbs[r].rank = r;
            g.pbs[r].in_place = 1;
            build_spoiling(&g, coll__algos[a], r, counts, displs);
        }
        ck_assert_msg(coll__plan_check(g.pbs, g.plans, (unsigned)a, why,
                                       sizeof(why)) == COLL_OK,
                      "%s p %d: %s", coll__algos[a]->name, _i, why);
        end(&g);
    }
}
END_TEST

/* ---- the check finds planted faults -------------------------------------- */

static int find_step(const struct coll__plan *plan, enum coll__step_kind kind)
{
    for (int i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].kind == kind)
            return i;
    ck_abort_msg("the plan has no such step");
    return -1;
}

/* Spoil one rank's ring plan by `spoil`, link it again, and expect a fault. */
static void expect_fault(void (*spoil)(struct coll__plan *plan))
{
    struct group g = {.pb = allreduce(3, 12)};
    char why[256] = "";

    build(&g, algo_of(COLL_ALLREDUCE, "ring"), 0);
    spoil(&g.plans[1]);
    coll__plan_unlink(&g.plans[1]);
    ck_assert_int_eq(coll__plan_link(&g.plans[1]), COLL_OK);
    ck_assert_int_eq(coll__plan_check(g.pbs, g.plans, 1, why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_str_ne(why, "");
    end(&g);
}

static void remove_step(struct coll__plan *plan, int i)
{
    memmove(&plan->steps[i], &plan->steps[i + 1],
            (size_t)(plan->n_steps - i - 1) * sizeof(plan->steps[0]));
    plan->n_steps--;
}

static void lose_a_send(struct coll__plan *plan)
{
    remove_step(plan, find_step(plan, STEP_SEND));
}

static void read_the_operand_from_out(struct coll__plan *plan)
{
    struct coll__step *step = &plan->steps[find_step(plan, STEP_RECV_REDUCE)];

    step->src = step->dst; /* where nobody has put it */
}

static void read_another_operand(struct coll__plan *plan)
{
    struct coll__step *step = &plan->steps[find_step(plan, STEP_RECV_REDUCE)];

    step->src.off = (step->src.off + 16) % 48;
}

static void store_instead_of_reduce(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_RECV_REDUCE)].kind = STEP_RECV;
}

static void reduce_instead_of_store(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_RECV)].kind = STEP_RECV_REDUCE;
}

static void send_to_the_wrong_peer(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_SEND)].peer = 0;
}

static void send_another_block(struct coll__plan *plan)
{
    struct coll__span *src = &plan->steps[find_step(plan, STEP_SEND)].src;

    src->off = (src->off + 16) % 48;
}

static void send_less(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_SEND)].src.len -= 4;
}

static void write_to_in(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_RECV)].dst.buf = BUF_IN;
}

static void read_unwritten_scratch(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_SEND)].src.buf = BUF_TMP;
}

static void write_behind_out(struct coll__plan *plan)
{
    plan->steps[find_step(plan, STEP_RECV)].dst.off = 48;
}

START_TEST(a_spoilt_plan_is_refused)
{
    static void (*const faults[])(struct coll__plan *) = {
        lose_a_send,
        read_the_operand_from_out,
        read_another_operand,
        store_instead_of_reduce,
        reduce_instead_of_store,
        send_to_the_wrong_peer,
        send_another_block,
        send_less,
        write_to_in,
        read_unwritten_scratch,
        write_behind_out,
    };

    ck_assert_int_lt(_i, (int)ARRAY_LEN(faults));
    expect_fault(faults[_i]);
}
END_TEST

/* Without an edge some order of events goes wrong. */
START_TEST(a_missing_edge_is_found_in_some_order)
{
    struct group g = {.pb = allreduce(4, 16)};
    struct coll__plan *plan = &g.plans[2];
    char why[256] = "";
    int found = 0, recv;

    build(&g, algo_of(COLL_ALLREDUCE, "ring"), 0);
    /* the second send must wait for the first receive */
    recv = find_step(plan, STEP_RECV_REDUCE);
    for (int e = plan->first_after[recv]; e < plan->first_after[recv + 1]; e++)
        if (plan->steps[plan->after[e]].kind == STEP_SEND) {
            plan->n_deps[plan->after[e]]--;
            plan->after[e] = plan->after[--plan->first_after[plan->n_steps]];
            for (int i = plan->n_steps - 1; i > recv; i--)
                plan->first_after[i] = plan->first_after[plan->n_steps];
            break;
        }
    for (unsigned seed = 0; seed < 50; seed++)
        found += coll__plan_check(g.pbs, g.plans, seed, why, sizeof(why)) !=
                 COLL_OK;
    ck_assert_int_gt(found, 0);
    end(&g);
}
END_TEST

START_TEST(everyone_receiving_first_gets_stuck)
{
    struct group g = {.pb = {.collective = COLL_ALLGATHER,
                             .type = COLL_I32,
                             .nranks = 2,
                             .count = 4}};
    char why[256] = "";

    for (int r = 0; r < 2; r++) {
        struct coll__plan *plan = &g.plans[r];

        g.pbs[r] = g.pb;
        g.pbs[r].rank = r;
        plan_copy(plan, coll__part(&g.pb, BUF_OUT, r),
                  coll__whole(&g.pb, BUF_IN));
        plan_recv(plan, 1 - r, coll__part(&g.pb, BUF_OUT, 1 - r));
        /* sends what it got: reads the receive, so both wait for ever */
        plan_send(plan, 1 - r, coll__part(&g.pb, BUF_OUT, 1 - r));
        ck_assert_int_eq(coll__plan_link(plan), COLL_OK);
    }
    ck_assert_int_eq(coll__plan_check(g.pbs, g.plans, 0, why, sizeof(why)),
                     COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(why, "stuck"));
    end(&g);
}
END_TEST

/* ---- passes -------------------------------------------------------------- */

START_TEST(fuse_leaves_the_ring_without_scratch)
{
    struct group g = {.pb = allreduce(5, 100)};

    build(&g, algo_of(COLL_ALLREDUCE, "ring"), 0);
    for (int r = 0; r < 5; r++) {
        ck_assert_uint_eq(g.plans[r].tmp_len, 0);
        for (int i = 0; i < g.plans[r].n_steps; i++)
            ck_assert_int_ne(g.plans[r].steps[i].kind, STEP_REDUCE);
    }
    end(&g);
}
END_TEST

START_TEST(fuse_keeps_a_receive_that_two_steps_read)
{
    struct coll__plan plan = {0};
    struct coll__span tmp = {BUF_TMP, 0, 8}, a = {BUF_OUT, 0, 8},
                      b = {BUF_OUT, 8, 8};

    plan_recv(&plan, 1, tmp);
    plan_reduce(&plan, a, tmp);
    plan_reduce(&plan, b, tmp);
    fuse(&plan);
    ck_assert_int_eq(plan.n_steps, 3);
    ck_assert_int_eq(plan.steps[0].kind, STEP_RECV);
    ck_assert_uint_eq(plan.tmp_len, 8);
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(fuse_keeps_the_order_of_messages)
{
    struct coll__plan plan = {0};
    struct coll__span tmp = {BUF_TMP, 0, 8}, a = {BUF_OUT, 0, 8},
                      b = {BUF_OUT, 8, 8};

    plan_recv(&plan, 1, tmp);
    plan_recv(&plan, 1, b);
    plan_reduce(&plan, a, tmp);
    fuse(&plan);
    ck_assert_int_eq(plan.n_steps, 3);
    coll__plan_fini(&plan);
}
END_TEST

/* The second exchange of four ranks sends what it is to add to. */
START_TEST(fuse_keeps_an_exchange_apart)
{
    struct group g = {.pb = allreduce(4, 4)};
    int recv;

    build(&g, algo_of(COLL_ALLREDUCE, "recursive_doubling"), 0);
    ck_assert_uint_eq(g.plans[0].tmp_len, 16);
    recv = find_step(&g.plans[0], STEP_RECV);
    ck_assert_int_eq(g.plans[0].n_deps[recv], 0);
    end(&g);
}
END_TEST

START_TEST(split_pieces_cover_each_step_once)
{
    struct coll__plan plan = {0};

    plan_send(&plan, 1, (struct coll__span){BUF_OUT, 8, 1000});
    ck_assert_int_eq(coll__pass_split(&plan, &(struct coll__flow){0}, 100, 0),
                     COLL_OK);
    ck_assert_int_eq(plan.n_steps, 8); /* 100 is rounded up to 128 */
    for (int i = 0; i < plan.n_steps; i++) {
        ck_assert_uint_eq(plan.steps[i].src.off, 8 + 128 * (size_t)i);
        ck_assert_uint_eq(plan.steps[i].src.len, i < 7 ? 128 : 104);
    }
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(link_finds_each_kind_of_hazard)
{
    struct coll__plan plan = {0};
    struct coll__span a = {BUF_OUT, 0, 8}, b = {BUF_OUT, 4, 8},
                      c = {BUF_OUT, 16, 8};

    plan_recv(&plan, 1, a);    /* 0 */
    plan_send(&plan, 2, b);    /* 1 reads what 0 wrote */
    plan_recv(&plan, 1, b);    /* 2 writes what 1 reads and 0 wrote */
    plan_recv(&plan, 3, c);    /* 3 has nothing to do with the others */
    ck_assert_int_eq(coll__plan_link(&plan), COLL_OK);
    ck_assert_int_eq(plan.n_deps[0], 0);
    ck_assert_int_eq(plan.n_deps[1], 1);
    ck_assert_int_eq(plan.n_deps[2], 2);
    ck_assert_int_eq(plan.n_deps[3], 0);
    coll__plan_fini(&plan);
}
END_TEST

START_TEST(dump_names_every_step)
{
    struct group g = {.pb = allreduce(4, 4)};
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);

    build(&g, algo_of(COLL_ALLREDUCE, "recursive_doubling"), 0);
    coll__plan_dump(&g.plans[0], to);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(text, "plan recursive_doubling steps 5"));
    ck_assert_ptr_nonnull(strstr(text, "0 send peer 1 in[0,16)\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "1 recv_reduce peer 1 out[0,16) with in[0,16)\n"));
    ck_assert_ptr_nonnull(strstr(text, "3 recv peer 2 tmp[0,16)\n"));
    ck_assert_ptr_nonnull(strstr(text, "4 reduce out[0,16) from tmp[0,16)"));
    free(text);
    end(&g);
}
END_TEST

/* ---- choice -------------------------------------------------------------- */

static const struct coll__level prices = {.alpha = 1e-6,
                                          .beta = 0.2e-9,
                                          .gap = 0.5e-6};

static const char *choice(enum coll_collective collective, size_t bytes,
                          const char *forced)
{
    struct coll__problem pb = {.collective = collective,
                               .type = COLL_U8,
                               .nranks = 8,
                               .count = bytes};
    struct coll__view view;
    struct coll__candidate first;

    coll__view_flat(&view, 8, &prices, 0.1e-9, 131072);
    pb.view = &view;
    ck_assert_int_eq(coll__algo_candidates(&pb, forced, &first, 1), 1);
    return first.algo->name;
}

START_TEST(small_and_large_messages_get_different_algorithms)
{
    static const char *const two = "ring,recursive_doubling,binomial,chain,"
                                   "bruck";

    ck_assert_str_eq(choice(COLL_ALLREDUCE, 8, two), "recursive_doubling");
    ck_assert_str_eq(choice(COLL_ALLREDUCE, 1 << 26, two), "ring");
    ck_assert_str_eq(choice(COLL_BROADCAST, 8, two), "binomial");
    ck_assert_str_eq(choice(COLL_BROADCAST, 1 << 26, two), "chain");
    ck_assert_str_eq(choice(COLL_ALLGATHER, 8, "ring,bruck"), "bruck");
    ck_assert_str_eq(choice(COLL_ALLGATHER, 1 << 26, "ring,bruck"), "ring");
    ck_assert_str_eq(choice(COLL_ALLTOALL, 8, "bruck,direct"), "bruck");
    ck_assert_str_eq(choice(COLL_ALLTOALL, 1 << 26, "bruck,direct"), "direct");
    ck_assert_str_ne(choice(COLL_ALLREDUCE, 8, ""),
                     choice(COLL_ALLREDUCE, 1 << 26, ""));
}
END_TEST

START_TEST(a_forced_name_wins_where_the_collective_has_it)
{
    ck_assert_str_eq(choice(COLL_ALLREDUCE, 8, "ring"), "ring");
    ck_assert_str_eq(choice(COLL_ALLREDUCE, 8, "dissemination"),
                     choice(COLL_ALLREDUCE, 8, ""));
    ck_assert_str_eq(choice(COLL_BROADCAST, 8, "ring,broadcast:chain"),
                     "chain");
    ck_assert_str_eq(choice(COLL_ALLGATHER, 8, "allreduce:ring"),
                     choice(COLL_ALLGATHER, 8, ""));
}
END_TEST

START_TEST(candidates_are_sorted_and_the_refused_come_last)
{
    struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                               .type = COLL_F32,
                               .nranks = 8,
                               .order = ORDER_CANONICAL,
                               .count = 1000};
    struct coll__candidate list[16], one;
    struct coll__view view;
    int n, n_used = 0;

    coll__view_flat(&view, 8, &prices, 0.1e-9, 131072);
    pb.view = &view;
    n = coll__algo_candidates(&pb, "", list, 16);
    while (n_used < n && !list[n_used].refusal)
        n_used++;
    ck_assert_int_gt(n_used, 1);
    for (int i = 1; i < n_used; i++)
        ck_assert_double_ge(list[i].seconds, list[i - 1].seconds);
    for (int i = n_used; i < n; i++)
        ck_assert_str_eq(list[i].refusal, "is not reproducible");
    ck_assert_int_eq(coll__algo_candidates(&pb, "", &one, 1), 1);
    ck_assert_ptr_eq(one.algo, list[0].algo);
    pb.order = ORDER_FREE;
    coll__algo_candidates(&pb, "binomial", list, 16);
    ck_assert_str_eq(list[0].algo->name, "binomial");
    ck_assert_str_eq(list[1].refusal, "is not allowed by COLL_ALGO");
}
END_TEST

START_TEST(an_unknown_name_lists_the_known_ones)
{
    ck_assert_int_eq(coll__algo_check("ring,allreduce:binomial"), COLL_OK);
    ck_assert_int_eq(coll__algo_check("rign"), COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "'rign'"));
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "recursive_doubling"));
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "dissemination"));
    ck_assert_int_eq(coll__algo_check("allgather:chain"), COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "bruck"));
    ck_assert_int_eq(coll__algo_check("reduec:ring"), COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "allreduce:NAME"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *proof = tcase_create("proof"), *rest = tcase_create("rest");
    int most = getenv("TEST_QUICK") ? 12 : MAX_RANKS;

    tcase_set_timeout(proof, 120);
    tcase_add_loop_test(proof,
                        every_algorithm_is_right_for_any_ranks_and_counts, 1,
                        most + 1);
    tcase_add_loop_test(proof, every_algorithm_is_right_on_any_ring, 1, 18);
    tcase_add_loop_test(proof, a_reduce_scatter_may_spoil_its_input, 1, 18);
    tcase_add_loop_test(proof, a_spoilt_plan_is_refused, 0, 11);
    tcase_add_test(proof, a_missing_edge_is_found_in_some_order);
    tcase_add_test(proof, everyone_receiving_first_gets_stuck);
    tcase_add_test(rest, fuse_leaves_the_ring_without_scratch);
    tcase_add_test(rest, fuse_keeps_a_receive_that_two_steps_read);
    tcase_add_test(rest, fuse_keeps_the_order_of_messages);
    tcase_add_test(rest, fuse_keeps_an_exchange_apart);
    tcase_add_test(rest, split_pieces_cover_each_step_once);
    tcase_add_test(rest, link_finds_each_kind_of_hazard);
    tcase_add_test(rest, dump_names_every_step);
    tcase_add_test(rest, small_and_large_messages_get_different_algorithms);
    tcase_add_test(rest, a_forced_name_wins_where_the_collective_has_it);
    tcase_add_test(rest, candidates_are_sorted_and_the_refused_come_last);
    tcase_add_test(rest, an_unknown_name_lists_the_known_ones);
    suite_add_tcase(suite, proof);
    suite_add_tcase(suite, rest);
    return suite_run(suite);
}
