/* SPDX-License-Identifier: BSD-3-Clause */
/* test_prices.c - all ranks of unlike hosts come to the same prices of links, by
 * the speed of their cards and the parts of their hosts, and by them to other
 * choices.
 */
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "lib/comm/comm.h"
#include "lib/comm/comm_view.h"
#include "lib/comm/prices.h"
#include "lib/plan/all_ranks.h"
#include "lib/price/select.h"
#include "tools/sim/fabric.h"
#include "tools/sim/sim.h"
#include "lib/topo/carrier.h"
#include "lib/util/util.h"
#include "lib/price/tune.h"
#include "lib/type/signature.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void is_about(const char *what, double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-3 * fabs(b), "%s is %g, not %g", what, a,
                  b);
}

#define near_to(a, b) is_about(#a, a, b)

static const struct coll__nic cards[] = {
    {"mlx5_0", "active", 1, 1, 0, 200, "", ""},
    {"mlx5_2", "active", 1, 1, 1, 25, "", ""}};

/* ---- a job --------------------------------------------------------------- */

#define N_HOSTS 8
#define N_RANKS 64
#define PER_HOST (N_RANKS / N_HOSTS)

static struct coll__peer peers[N_RANKS];
static const struct coll__link shared_memory = {
    .alpha = 0.2e-6, .beta = 0.2e-9, .gap = 50e-9, .once = 0.1e-9};

/* A communicator of ranks on hosts of 8, as far as prices go; hosts have so many
 * parts of each kind. */
static void make_comm(struct coll_comm *comm, int n, const int *n_parts)
{
    *comm = (struct coll_comm){.size = n,
                               .peers = peers,
                               .n_hosts = n / PER_HOST,
                               .settings.chunk = 128 << 10};
    for (int r = 0; r < n; r++) {
        peers[r] = (struct coll__peer){.host = r / PER_HOST,
                                       .local_rank = r % PER_HOST,
                                       .local_size = PER_HOST};
        for (int k = 0; k < COLL__WITHIN; k++)
            peers[r].within[k] =
                n_parts[k] ? r % PER_HOST * n_parts[k] / PER_HOST : -1;
    }
}

/* Rank r says what its host has. */
static void say(const struct coll__nic *nic, double numa,
                struct coll__offer *offer)
{
    struct coll__rate rate =
        coll__carrier_rate(nic, nic && nic->is_rdma ? WIRE_RDMA : WIRE_TCP);
    struct coll_comm own = {.links = {.dearest = {shared_memory,
                                                  {.alpha = rate.alpha,
                                                   .beta = rate.beta,
                                                   .gap = rate.gap,
                                                   .share = rate.share,
                                                   .is_known = rate.is_known}},
                                      .inside = {numa, 2 * numa}}};

    if (nic)
        coll__carrier_text(nic, own.links.dearest[1].via,
                           sizeof(own.links.dearest[1].via));
    coll__comm_offer(&own, offer);
}

static const int one_part[COLL__WITHIN] = {0, 0, 0};

START_TEST(the_speed_of_the_card_is_the_price_of_the_network)
{
    struct coll__offer offers[N_RANKS];
    struct coll_comm comm;
    const struct coll__level *level;

    make_comm(&comm, N_RANKS, one_part);
    for (int r = 0; r < N_RANKS; r++)
        say(&cards[0], 0, &offers[r]);
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), -1);
    ck_assert_int_eq(coll__comm_view_init(&comm), COLL_OK);
    ck_assert_int_eq(comm.view.n_levels, 2);
    level = &comm.view.levels[1];
    ck_assert_str_eq(level->name, "network");
    near_to(level->alpha, 2e-6);
    near_to(level->beta, 8 / (200e9 * 0.97));
    near_to(level->share, level->beta); /* one card for 8 ranks */
    coll__view_fini(&comm.view);
}
END_TEST

START_TEST(ranks_of_unlike_hosts_take_the_dearest)
{
    struct coll__offer offers[N_RANKS];
    struct coll_comm comm;

    make_comm(&comm, N_RANKS, one_part);
    for (int r = 0; r < N_RANKS; r++)
        say(&cards[r / PER_HOST == 5], r == 17 ? 1.4 : 1.1, &offers[r]);
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), -1);
    near_to(comm.links.dearest[1].beta, 8 / (25e9 * 0.97));
    near_to(comm.links.dearest[1].share, 8 / (25e9 * 0.97));
    near_to(comm.links.inside.numa, 1.4);
    near_to(comm.links.inside.package, 2.8);
    near_to(comm.links.dearest[0].alpha, shared_memory.alpha);
}
END_TEST

START_TEST(several_cards_of_a_host_are_its_way_out)
{
    struct coll__nic four[4];
    struct coll__offer offers[N_RANKS];
    struct coll_comm comm;

    for (int i = 0; i < 4; i++) {
        four[i] = cards[0];
        four[i].name[5] = (char)('0' + i);
    }
    make_comm(&comm, N_RANKS, one_part);
    for (int r = 0; r < N_RANKS; r++)
        say(&four[r % 4], 0, &offers[r]);
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), -1);
    near_to(comm.links.dearest[1].beta, 8 / (200e9 * 0.97));
    near_to(comm.links.dearest[1].share, comm.links.dearest[1].beta / 4);
    for (int r = 0; r < PER_HOST; r++) /* one host has but one of them */
        say(&four[0], 0, &offers[r]);
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), -1);
    near_to(comm.links.dearest[1].share, comm.links.dearest[1].beta);
}
END_TEST

START_TEST(an_unknown_speed_has_to_be_measured)
{
    struct coll__offer offers[N_RANKS];
    struct coll_comm comm;

    make_comm(&comm, N_RANKS, one_part);
    for (int r = 0; r < N_RANKS; r++)
        say(r / PER_HOST == 3 ? NULL : &cards[0], 0, &offers[r]);
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), 3 * PER_HOST);
    make_comm(&comm, PER_HOST, one_part); /* one host: no such link */
    for (int r = 0; r < PER_HOST; r++)
        offers[r] = (struct coll__offer){.near = {1e-6, 1e-9, 0, 0}};
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), -1);
}
END_TEST

/* ---- levels inside ------------------------------------------------------- */

static void check_outward(const struct coll__view *view)
{
    for (int l = 1; l < view->n_levels; l++) {
        const struct coll__level *in = &view->levels[l - 1];
        const struct coll__level *out = &view->levels[l];

        ck_assert_msg(out->alpha > in->alpha, "%s %g, %s %g", in->name,
                      in->alpha, out->name, out->alpha);
        ck_assert_msg(out->beta > in->beta || out->share > in->share,
                      "%s is as wide as %s", out->name, in->name);
    }
}

START_TEST(each_level_of_a_host_has_its_own_price)
{
    static const int parts[COLL__WITHIN] = {8, 4, 2}, fewer[] = {4, 2, 1};
    struct coll_comm comm;

    make_comm(&comm, PER_HOST, fewer);
    comm.links.dearest[0] = shared_memory;
    ck_assert_int_eq(coll__comm_view_init(&comm), COLL_OK);
    ck_assert_int_eq(comm.view.n_levels, 3); /* cache, numa, host */
    check_outward(&comm.view);
    ck_assert(comm.view.levels[0].alpha <= shared_memory.alpha);
    ck_assert_str_eq(comm.links.sources[1], "to another cache");
    ck_assert_str_eq(comm.links.sources[2], "to another NUMA node");
    coll__view_fini(&comm.view);

    make_comm(&comm, N_RANKS, parts); /* a cache for each rank: no level */
    comm.links.dearest[0] = shared_memory;
    comm.links.dearest[1] = (struct coll__link){2e-6, 1e-9, .share = 1e-9};
    comm.links.inside = (struct coll__inside){1.2, 3.2};
    ck_assert_int_eq(coll__comm_view_init(&comm), COLL_OK);
    ck_assert_int_eq(comm.view.n_levels, 4);
    check_outward(&comm.view);
    ck_assert_str_eq(comm.view.levels[0].name, "numa");
    ck_assert_str_eq(comm.links.sources[0], "to another cache");
    ck_assert_str_eq(comm.links.sources[2], "to another package");
    coll__view_fini(&comm.view);
}
END_TEST

/* As measured on machines of one level, to the last bit. */
START_TEST(a_host_of_one_level_keeps_the_transports_price)
{
    static const int all[][COLL__WITHIN] = {
        {0, 0, 0}, {1, 1, 1}, {0, 1, 0}, {0, 0, 1}};
    struct coll_comm comm;

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const struct coll__level *level = &comm.view.levels[0];

        make_comm(&comm, PER_HOST, all[i]);
        comm.links.dearest[0] = shared_memory;
        comm.links.inside = (struct coll__inside){1.2, 2.1};
        ck_assert_int_eq(coll__comm_view_init(&comm), COLL_OK);
        ck_assert_int_eq(comm.view.n_levels, 1);
        ck_assert(!memcmp(&level->alpha, &shared_memory.alpha, sizeof(double)));
        ck_assert(!memcmp(&level->beta, &shared_memory.beta, sizeof(double)));
        ck_assert(!memcmp(&level->gap, &shared_memory.gap, sizeof(double)));
        ck_assert(!memcmp(&level->once, &shared_memory.once, sizeof(double)));
        ck_assert(level->share <= 0);
        coll__view_fini(&comm.view);
    }
}
END_TEST

START_TEST(a_tuning_file_goes_before_all_that_is_known)
{
    static const char text[] =
        "{\"version\": 1, \"links\": [{\"level\": \"network\", "
        "\"alpha\": 5e-6, \"beta\": 2e-10}]}";
    struct coll__offer offers[N_RANKS];
    struct coll_comm comm;

    make_comm(&comm, N_RANKS, one_part);
    for (int r = 0; r < N_RANKS; r++)
        say(&cards[0], 0, &offers[r]);
    ck_assert_int_eq(coll__comm_take_offers(&comm, offers), -1);
    ck_assert_int_eq(coll__tune_parse("t", text, strlen(text), &comm.tune),
                     COLL_OK);
    ck_assert_int_eq(coll__comm_view_init(&comm), COLL_OK);
    near_to(comm.view.levels[1].alpha, 5e-6);
    near_to(comm.view.levels[1].beta, 2e-10);
    ck_assert_str_eq(comm.links.sources[1], "COLL_TUNE_FILE");
    ck_assert_str_ne(comm.links.sources[0], "COLL_TUNE_FILE");
    coll__view_fini(&comm.view);
    coll__tune_free(comm.tune);
}
END_TEST

/* ---- choices ------------------------------------------------------------- */

/* The cheapest algorithm by one view, and what it costs by another. */
struct pick {
    const struct coll__algo *algo;
    double seconds;
};

static struct coll__problem problem(enum coll_collective collective,
                                    size_t bytes, const struct coll__view *view)
{
    static size_t numbers[2 * N_RANKS];
    struct coll__problem pb = {.collective = collective,
                               .type = COLL_F32,
                               .op = COLL_SUM,
                               .nranks = N_RANKS,
                               .count = max_size(bytes / 4, 1),
                               .view = view};

    for (size_t r = 0; r < N_RANKS; r++) {
        numbers[r] = pb.count;
        numbers[N_RANKS + r] = r * pb.count;
    }
    if (coll__has_in_counts(collective)) {
        pb.in_counts = numbers;
        pb.in_displs = numbers + N_RANKS;
    }
    if (coll__has_out_counts(collective)) {
        pb.out_counts = numbers;
        pb.out_displs = numbers + N_RANKS;
    }
    return pb;
}

static struct pick pick(enum coll_collective collective, size_t bytes,
                        const struct coll__view *view)
{
    struct coll__problem pb = problem(collective, bytes, view);
    struct pick pick;

    pick.algo = coll__algo_cheapest(&pb, &pick.seconds);
    ck_assert_ptr_nonnull(pick.algo);
    return pick;
}

static double cost_of(const struct coll__algo *algo,
                      enum coll_collective collective, size_t bytes,
                      const struct coll__view *view)
{
    struct coll__problem pb = problem(collective, bytes, view);

    return algo->cost(&pb);
}

/* The view of 64 ranks on 8 hosts whose way out is this. */
static void make_view(struct coll_comm *comm, const struct coll__link *far)
{
    make_comm(comm, N_RANKS, one_part);
    comm->links.dearest[0] = shared_memory;
    comm->links.dearest[1] = *far;
    ck_assert_int_eq(coll__comm_view_init(comm), COLL_OK);
}

/* What a choice gains when both plans run on the links of such hosts, or 0
 * where that would take long or the counts are each rank's own. */
static double simulated_gain(const struct coll__algo *old,
                             const struct coll__algo *new,
                             enum coll_collective collective, size_t bytes,
                             const struct coll__view *view)
{
    struct coll__problem pb = problem(collective, bytes, view);
    struct coll__fabric *fabric;
    struct coll__sim_result before, after;

    if (pb.in_counts || pb.out_counts || bytes > 1 << 20)
        return 0;
    ck_assert_int_eq(
        coll__fabric_load(fixture_file("topo", "ib200.topo"), &fabric),
        COLL_OK);
    ck_assert_int_eq(coll__sim_run(old, &pb, fabric, PLACE_BLOCK, &before),
                     COLL_OK);
    ck_assert_int_eq(coll__sim_run(new, &pb, fabric, PLACE_BLOCK, &after),
                     COLL_OK);
    coll__fabric_destroy(fabric);
    return before.seconds / after.seconds;
}

/* Of p ranks that are alike: how many times as long the long operation takes where the
 * links are half-duplex. */
static double times_both(const char *name, enum coll_collective collective,
                         int p)
{
    struct coll__level price = {
        .alpha = 1e-6, .beta = 1e-9, .share = 1e-9, .gap = 1e-7, .both = 2};
    struct coll__problem pb = {.collective = collective,
                               .type = COLL_F32,
                               .op = COLL_SUM,
                               .nranks = p,
                               .count = 1 << 26};
    struct coll__view half, full;
    const struct coll__algo *algo = NULL;
    double seconds;

    for (int i = 0; coll__algos[i]; i++)
        if (!strcmp(coll__algos[i]->name, name) &&
            coll__algos[i]->serves & 1u << collective)
            algo = coll__algos[i];
    ck_assert_ptr_nonnull(algo);
    coll__view_flat(&half, p, &price, 0, 1 << 17);
    price.both = 0;
    coll__view_flat(&full, p, &price, 0, 1 << 17);
    pb.view = &half;
    seconds = algo->cost(&pb);
    pb.view = &full;
    return seconds / algo->cost(&pb);
}

static const struct {
    const char *name;
    enum coll_collective collective;
    int p;
    double least, most; /* times */
} longs[] = {{"ring", COLL_ALLREDUCE, 3, 1.9, 2.1},
             {"double_tree", COLL_ALLREDUCE, 3, 1.9, 2.1},
             {"double_tree", COLL_ALLREDUCE, 8, 1.9, 2.1},
             {"rabenseifner", COLL_ALLREDUCE, 3, 1.6, 2.1},
             {"rabenseifner", COLL_ALLREDUCE, 4, 1.9, 2.1},
             {"recursive_doubling", COLL_ALLREDUCE, 3, 1.6, 2.1},
             {"binomial", COLL_ALLREDUCE, 4, 0.9, 1.1},
             {"direct", COLL_BROADCAST, 2, 0.9, 1.1},
             {"double_tree", COLL_BROADCAST, 2, 0.9, 1.1},
             {"chain", COLL_BROADCAST, 2, 0.9, 1.1},
             {"chain", COLL_BROADCAST, 3, 1.9, 2.1},
             {"ring", COLL_ALLGATHER, 2, 1.9, 2.1}};

START_TEST(what_meets_others_takes_longer)
{
    double times =
        times_both(longs[_i].name, longs[_i].collective, longs[_i].p);

    ck_assert_msg(times >= longs[_i].least && times <= longs[_i].most,
                  "%s of %d: %g times", longs[_i].name, longs[_i].p, times);
}
END_TEST

/* A half-duplex link: what comes in meanwhile takes as long again. */
START_TEST(what_meets_nothing_costs_one_way)
{
    struct coll__level price = {
        .alpha = 1e-6, .beta = 1e-9, .share = 1e-9, .gap = 1e-7, .both = 2};
    const double n = 1e5, one = n * price.beta, two = 2 * one;
    struct coll__view pair, three;

    coll__view_flat(&pair, 2, &price, 0, 0);
    coll__view_flat(&three, 3, &price, 0, 0);
    near_to(coll__cost_message(&pair, 1, n), price.alpha + one);
    near_to(coll__cost_tree(&pair, 1, n), price.alpha + one);
    near_to(coll__cost_fan(&pair, 1, 1, n), price.alpha + one);
    near_to(coll__cost_chain_next(&pair, 0, n), one);
    near_to(coll__cost_next(&three, n), one);
    near_to(coll__cost_chain_next(&three, 0, n), two);
    near_to(coll__cost_ring_next(&pair, n), two);
    near_to(coll__cost_pair(&pair, 1, n), price.alpha + two);
    near_to(coll__cost_exchange(&pair, 1, n), price.alpha + two);
    near_to(coll__cost_shift(&pair, 1, n), price.alpha + two);
    near_to(coll__cost_all(&pair, n), price.alpha + two);
}
END_TEST

/* Two hosts of two: a chain that is cut between them goes one way, and has that edge
 * once; one that begins within a host comes back. */
START_TEST(a_chain_is_cut_before_its_root)
{
    static const int hosts[] = {0, 0, 2, 2};
    const int *color[] = {hosts};
    struct coll__view view;
    const double n = 1e5;

    ck_assert_int_eq(coll__view_init(&view, 4, 2, color), COLL_OK);
    view.levels[0].alpha = 1e-6;
    view.levels[1].alpha = 10e-6;
    view.levels[1].beta = view.levels[1].share = 1e-9;
    view.levels[1].both = 2;
    near_to(3 * coll__cost_chain(&view, 0, 0), 12e-6);
    near_to(3 * coll__cost_chain(&view, 1, 0), 21e-6);
    near_to(3 * coll__cost_chain(&view, 2, 0), 12e-6);
    near_to(3 * coll__cost_ring(&view, 0), 21e-6);
    near_to(coll__cost_chain_next(&view, 0, n), n * 1e-9);
    near_to(coll__cost_chain_next(&view, 1, n), 2 * n * 1e-9);
    coll__view_fini(&view);
}
END_TEST

/* Count the choices that the speed of a 200 Gbit/s card changes, and what they
 * gain where the network is such a one.  What every network counted as before:
 * 15 us and 1.1 GB/s. */
START_TEST(a_fast_network_changes_choices)
{
    static const struct coll__link guess = {15e-6, 1 / 1.1e9,
                                            .share = 1 / 1.1e9};
    struct coll__rate rate = coll__carrier_rate(&cards[0], WIRE_RDMA);
    struct coll__link known = {rate.alpha, rate.beta, rate.gap,
                               .share = rate.share};
    struct coll_comm before, after;
    int n = 0, n_changed = 0, n_simulated = 0;
    double most = 1, logs = 0, simulated = 0;

    make_view(&before, &guess);
    make_view(&after, &known);
    for (int k = 0; k < COLL__N_OF_ALL; k++)
        for (size_t bytes = 8;
             coll__of_all(k) != COLL_BARRIER && bytes <= 32 << 20; bytes *= 4) {
            enum coll_collective c = coll__of_all(k);
            struct pick old = pick(c, bytes, &before.view);
            struct pick new = pick(c, bytes, &after.view);
            double gain =
                cost_of(old.algo, c, bytes, &after.view) / new.seconds;

            ck_assert(gain >= 1 - 1e-6);
            n++;
            logs += log(gain);
            most = max_double(most, gain);
            if (old.algo == new.algo)
                continue;
            n_changed++;
            gain = simulated_gain(old.algo, new.algo, c, bytes, &after.view);
            n_simulated += gain > 0;
            simulated += gain > 0 ? log(gain) : 0;
        }
    ck_assert_int_gt(n_changed, 0);
    ck_assert_int_gt(n_simulated, 0);
    printf("of %d choices for 64 ranks on 8 hosts, the speed of a 200 Gbit/s "
           "card changes %d; by their prices these gain a factor of %.2f in "
           "the mean, %.2f at most; %d of them, simulated, %.2f in the mean\n",
           n, n_changed, exp(logs / n_changed), most, n_simulated,
           exp(simulated / n_simulated));
    coll__view_fini(&before.view);
    coll__view_fini(&after.view);
}
END_TEST

/* ---- all ----------------------------------------------------------------- */

static TCase *job_cases(void)
{
    TCase *tc = tcase_create("job");

    tcase_add_test(tc, the_speed_of_the_card_is_the_price_of_the_network);
    tcase_add_test(tc, ranks_of_unlike_hosts_take_the_dearest);
    tcase_add_test(tc, several_cards_of_a_host_are_its_way_out);
    tcase_add_test(tc, an_unknown_speed_has_to_be_measured);
    tcase_add_test(tc, each_level_of_a_host_has_its_own_price);
    tcase_add_test(tc, a_host_of_one_level_keeps_the_transports_price);
    tcase_add_test(tc, a_tuning_file_goes_before_all_that_is_known);
    tcase_add_test(tc, what_meets_nothing_costs_one_way);
    tcase_add_loop_test(tc, what_meets_others_takes_longer, 0,
                        (int)ARRAY_LEN(longs));
    tcase_add_test(tc, a_chain_is_cut_before_its_root);
    tcase_add_test(tc, a_fast_network_changes_choices);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("prices");

    suite_add_tcase(suite, job_cases());
    return suite_run(suite);
}
