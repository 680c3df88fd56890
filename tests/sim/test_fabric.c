/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fabric.c - machines that need not exist: fixtures against what a person
 * expects of them, routes, levels, and rings under any placement. */
#include "tests/sim/fabric_fixture.h"
#include "tests/support/suite.h"
#include "include/coll/coll.h"
#include "lib/plan/view_cost.h"
#include "tools/sim/fabric.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void shuffle(int *items, int n, unsigned seed)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(next_random(&seed) % (unsigned)(i + 1)), item = items[i];

        items[i] = items[j];
        items[j] = item;
    }
}

/* ---- what a person expects ----------------------------------------------- */

static void put_levels(FILE *out, const struct coll__fabric_levels *levels,
                       int n)
{
    for (int l = 0; l < levels->n_levels; l++) {
        const struct coll__fabric_price *price = &levels->prices[l];
        int n_groups = levels->color[l] ? 0 : 1;

        for (int r = 0; r < n && levels->color[l]; r++)
            n_groups += levels->color[l][r] == r;
        fprintf(out, "level %s: %d\n", price->name, n_groups);
        fprintf(out, "price %s: %.4g us, %.4g GB/s, %.4g GB/s\n", price->name,
                price->alpha * 1e6, 1e-9 / price->beta, 1e-9 / price->share);
    }
}

/* All seats taken in order: what the files of expect/ hold, and more. */
static char *describe(const struct coll__fabric *fabric)
{
    int n = coll__fabric_n_seats(fabric);
    int *seat = calloc((size_t)n, sizeof(int));
    int *ring = calloc((size_t)n, sizeof(int));
    struct coll__fabric_levels levels;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    ck_assert(seat && ring && out);
    ck_assert(!coll__fabric_seats(fabric, n, PLACE_BLOCK, seat));
    ck_assert(!coll__fabric_ring(fabric, n, seat, ring));
    ck_assert(!coll__fabric_levels_init(fabric, n, seat, &levels));
    fputs("\nnics", out);
    for (int r = 0; r < n; r++) {
        const char *name;

        coll__fabric_nic(fabric, r, &name);
        fprintf(out, " %s", *name ? name : "-");
    }
    fputs("\nring", out);
    for (int i = 0; i < n; i++)
        fprintf(out, " %d", ring[i]);
    fprintf(out, "\nroot %d\n", coll__fabric_root(fabric, seat, seat, n));
    put_levels(out, &levels, n);
    fclose(out);
    coll__fabric_levels_fini(&levels);
    free(seat);
    free(ring);
    return text;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, word)); at++)
        n++;
    return n;
}

START_TEST(fixture_is_as_the_file_beside_it_says)
{
    struct coll__fabric *fabric = load(fixtures[_i]);
    char name[64], want[4096], line[4096 + 2], *save = NULL, *got;

    snprintf(name, sizeof(name), "expect/%.*s.expect",
             (int)strcspn(fixtures[_i], "."), fixtures[_i]);
    got = describe(fabric);
    ck_assert_uint_lt(read_file(name, want), sizeof(want));
    ck_assert_int_eq(count_of(got, "\nlevel "), count_of(want, "\nlevel "));
    for (char *l = strtok_r(want, "\n", &save); l;
         l = strtok_r(NULL, "\n", &save)) {
        snprintf(line, sizeof(line), "\n%s\n", l);
        ck_assert_msg(*l == '#' || strstr(got, line), "%s: no line '%s' in:%s",
                      name, l, got);
    }
    free(got);
    coll__fabric_destroy(fabric);
}
END_TEST

/* ---- routes -------------------------------------------------------------- */

START_TEST(routes_begin_and_end_at_their_seats)
{
    struct coll__fabric *fabric = load(fixtures[_i]);
    unsigned n = (unsigned)coll__fabric_n_seats(fabric), seed = 7;

    for (int i = 0; i < 3000; i++)
        check_route(fabric, (int)(next_random(&seed) % n),
                    (int)(next_random(&seed) % n));
    coll__fabric_destroy(fabric);
}
END_TEST

/* Hops between two places of a ring of that size. */
static int around(int a, int b, int size)
{
    int ahead = (b - a + size) % size;

    return ahead < size - ahead ? ahead : size - ahead;
}

START_TEST(torus_routes_take_the_shorter_way_in_each_dimension)
{
    struct coll__fabric *fabric = load("torus.topo");
    int links[COLL__ROUTE_MAX];

    for (int a = 0; a < 1024; a += 5)
        for (int b = 0; b < 1024; b += 3)
            if (a != b)
                ck_assert_int_eq(coll__fabric_route(fabric, a, b, links),
                                 6 + around(a % 16, b % 16, 16) +
                                     around(a / 16 % 8, b / 16 % 8, 8) +
                                     around(a / 128, b / 128, 8));
    coll__fabric_destroy(fabric);
}
END_TEST

/* Every global cable is some router's, and both sides agree on it: over all
 * pairs of groups each is used alike. */
START_TEST(dragonfly_uses_each_global_cable_for_one_pair_of_groups)
{
    struct coll__fabric *fabric = load("dragonfly.topo");
    int n_links = coll__fabric_n_links(fabric), first = n_links - 33 * 32;
    int *used = calloc((size_t)n_links, sizeof(int)), links[COLL__ROUTE_MAX];

    ck_assert_ptr_nonnull(used);
    for (int a = 0; a < 33; a++)
        for (int b = 0; b < 33; b++) {
            int n = coll__fabric_route(fabric, a * 32 + b % 32, b * 32 + a % 32,
                                       links);

            ck_assert_int_le(n, 9);
            for (int i = 0; i < n; i++)
                used[links[i]]++;
        }
    for (int l = first; l < n_links; l++)
        ck_assert_int_eq(used[l], 1);
    free(used);
    coll__fabric_destroy(fabric);
}
END_TEST

/* ---- levels -------------------------------------------------------------- */

/* Any seats: groups lie within those above, and differ from them. */
START_TEST(levels_are_groups_within_groups)
{
    struct coll__fabric *fabric = load(fixtures[_i]);
    int n_seats = coll__fabric_n_seats(fabric);
    int *seat = malloc((size_t)n_seats * sizeof(int));

    ck_assert_ptr_nonnull(seat);
    for (unsigned seed = 0; seed < 6; seed++) {
        int n = 1 + (int)(seed * 7919u % (unsigned)n_seats);
        struct coll__fabric_levels levels;

        ck_assert(!coll__fabric_seats(fabric, n_seats, PLACE_BLOCK, seat));
        shuffle(seat, n_seats, seed);
        ck_assert(!coll__fabric_levels_init(fabric, n, seat, &levels));
        ck_assert_int_ge(levels.n_levels, 1);
        ck_assert_ptr_null(levels.color[levels.n_levels - 1]);
        for (int l = 0; l < levels.n_levels - 1; l++) {
            const int *in = levels.color[l], *out = levels.color[l + 1];

            for (int r = 0; r < n; r++) {
                ck_assert_int_eq(in[in[r]], in[r]);
                if (out)
                    ck_assert_int_eq(out[in[r]], out[r]);
            }
        }
        for (int l = 0; l < levels.n_levels && n > 1; l++) {
            ck_assert(levels.prices[l].alpha > 0 && levels.prices[l].beta > 0);
            ck_assert(levels.prices[l].share > 0);
        }
        coll__fabric_levels_fini(&levels);
    }
    free(seat);
    coll__fabric_destroy(fabric);
}
END_TEST

START_TEST(seats_that_are_taken_are_refused)
{
    struct coll__fabric *fabric = load("dgx.topo");
    struct coll__fabric_levels levels;
    int twice[] = {3, 4, 3}, beyond[] = {0, 16}, ring[16];

    ck_assert_int_eq(coll__fabric_levels_init(fabric, 3, twice, &levels),
                     COLL_ERR_INVALID);
    ck_assert_int_eq(coll__fabric_ring(fabric, 2, beyond, ring),
                     COLL_ERR_INVALID);
    ck_assert_int_eq(coll__fabric_seats(fabric, 17, PLACE_BLOCK, ring),
                     COLL_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "ask for 1 to 16"));
    coll__fabric_destroy(fabric);
}
END_TEST

START_TEST(cyclic_placement_fills_hosts_in_turns)
{
    static const int want[] = {0, 4, 1, 5, 2, 3}; /* 4 and 2 seats */
    struct coll__fabric *fabric = load("mixed.topo");
    int seat[6];

    ck_assert(!coll__fabric_seats(fabric, 6, PLACE_CYCLIC, seat));
    ck_assert_int_eq(memcmp(seat, want, sizeof(want)), 0);
    coll__fabric_destroy(fabric);
}
END_TEST

/* ---- rings --------------------------------------------------------------- */

/* A host's cards on each way carry one message of the ring, at most. */
static void check_crossings(const struct coll__fabric *fabric, const int *seat,
                            const struct coll__view *view)
{
    int n_hosts = coll__fabric_n_hosts(fabric);
    int *in = calloc((size_t)n_hosts, sizeof(int));
    int *out = calloc((size_t)n_hosts, sizeof(int));

    ck_assert(in && out);
    for (int i = 0; i < view->nranks; i++) {
        int rank = coll__ring_at(view, view->nranks, i);
        int next = coll__ring_at(view, view->nranks, i + 1);
        int from = coll__fabric_host(fabric, seat[rank]);
        int to = coll__fabric_host(fabric, seat[next]);

        ck_assert_int_eq(coll__ring_place(view, rank), i);
        out[from] += from != to;
        in[to] += from != to;
    }
    for (int h = 0; h < n_hosts; h++) {
        ck_assert_int_le(in[h], 1);
        ck_assert_int_le(out[h], 1);
    }
    free(in);
    free(out);
}

static void check_rings(const struct coll__fabric *fabric, const int *seat,
                        int n)
{
    struct coll__fabric_levels levels;
    struct coll__view view;
    int *ring = malloc((size_t)n * sizeof(int));

    ck_assert_ptr_nonnull(ring);
    ck_assert(!coll__fabric_levels_init(fabric, n, seat, &levels));
    ck_assert(!coll__view_init(&view, n, levels.n_levels,
                               (const int *const *)levels.color));
    check_crossings(fabric, seat, &view);
    ck_assert(!coll__fabric_ring(fabric, n, seat, ring));
    ck_assert(!coll__view_set_ring(&view, ring));
    check_crossings(fabric, seat, &view);
    coll__view_fini(&view);
    coll__fabric_levels_fini(&levels);
    free(ring);
}

/* _i: the number of hosts. */
START_TEST(scattered_ranks_cost_one_crossing_of_a_host_each_way)
{
    char text[512];
    struct coll__fabric *fabric;
    int n = 4 * _i, seat[256];

    snprintf(text, sizeof(text),
             "host node\n socket cpu 2\n link cpu0 cpu1 bandwidth 20GB/s\n"
             " seat core 4 in cpu* port 10GB/s\n nic eth in cpu1 speed 10Gb/s\n"
             "end\nhosts %d node\nnetwork switch latency 1us\n",
             _i);
    fabric = load_text(text, strlen(text));
    ck_assert_msg(fabric != NULL, "%s", coll_last_error());
    ck_assert(!coll__fabric_seats(fabric, n, PLACE_CYCLIC, seat));
    check_rings(fabric, seat, n);
    for (unsigned seed = 0; seed < 5; seed++) {
        shuffle(seat, n, seed);
        check_rings(fabric, seat, n - (int)seed % n);
    }
    coll__fabric_destroy(fabric);
}
END_TEST

/* What n ranks need when each sends a byte to the one `distance` places on. */
static double shift_time(const struct coll__fabric *fabric, const int *seat,
                         const int *order, int n, int distance)
{
    int *load = calloc((size_t)coll__fabric_n_links(fabric), sizeof(int));
    int links[COLL__ROUTE_MAX];
    double time = 0;

    ck_assert_ptr_nonnull(load);
    for (int i = 0; i < n; i++) {
        int n_links =
            coll__fabric_route(fabric, seat[order[i]],
                               seat[order[(i + distance) % n]], links);

        for (int j = 0; j < n_links; j++) {
            struct coll__fabric_link link = coll__fabric_link(fabric, links[j]);
            double here = ++load[links[j]] * link.share;

            time = here > time ? here : time;
            time = link.beta > time ? link.beta : time;
        }
    }
    free(load);
    return time;
}

START_TEST(no_random_ring_is_faster)
{
    struct coll__fabric *fabric = load(fixtures[_i]);
    int n = coll__fabric_n_seats(fabric), seat[64], ring[64], other[64];
    double best;

    n = n < 64 ? n : 64;
    ck_assert(!coll__fabric_seats(fabric, n, PLACE_BLOCK, seat));
    ck_assert(!coll__fabric_ring(fabric, n, seat, ring));
    best = shift_time(fabric, seat, ring, n, 1);
    memcpy(other, ring, sizeof(other));
    for (unsigned seed = 0; seed < 500; seed++) {
        shuffle(other, n, seed);
        ck_assert(shift_time(fabric, seat, other, n, 1) >= best * (1 - 1e-9));
    }
    coll__fabric_destroy(fabric);
}
END_TEST

/* 16 GPUs in an unlucky order on NVLinks that form one ring: a ring in order of
 * numbers would use PCIe. */
START_TEST(more_seats_than_can_be_tried_still_follow_the_links)
{
    char text[4096] = "host box\n switch pcie\n"
                      " seat gpu 16 in pcie bandwidth 10GB/s port 100GB/s\n";
    int seat[16], ring[16];
    struct coll__fabric *fabric;

    for (int i = 0; i < 16; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text),
                 " link gpu%d gpu%d bandwidth 50GB/s\n", i * 5 % 16,
                 (i + 1) * 5 % 16);
    strcat(text, "end\nhosts 1 box\n");
    fabric = load_text(text, strlen(text));
    ck_assert_msg(fabric != NULL, "%s", coll_last_error());
    ck_assert(!coll__fabric_seats(fabric, 16, PLACE_BLOCK, seat));
    ck_assert(!coll__fabric_ring(fabric, 16, seat, ring));
    ck_assert(shift_time(fabric, seat, ring, 16, 1) * 50e9 < 1.001);
    coll__fabric_destroy(fabric);
}
END_TEST

START_TEST(a_ring_that_leaves_out_a_rank_is_refused)
{
    static const int colors[] = {0, 0, 1, 1};
    const int *const color[] = {colors};
    int twice[] = {0, 1, 1, 3}, good[] = {1, 0, 2, 3};
    struct coll__view view;

    ck_assert(!coll__view_init(&view, 4, 2, color));
    ck_assert_int_eq(coll__view_set_ring(&view, twice), COLL_ERR_INVALID);
    ck_assert_int_eq(coll__ring_at(&view, 4, 0), 0);
    ck_assert_int_eq(coll__view_set_ring(&view, good), COLL_OK);
    ck_assert_int_eq(coll__ring_at(&view, 4, 0), 1);
    ck_assert_int_eq(coll__ring_place(&view, 0), 1);
    coll__view_fini(&view);
}
END_TEST

/* ---- prices -------------------------------------------------------------- */

static void make_view(const struct coll__fabric *fabric, const int *seat, int n,
                      struct coll__view *view)
{
    struct coll__fabric_levels levels;
    int *ring = malloc((size_t)n * sizeof(int));

    ck_assert_ptr_nonnull(ring);
    ck_assert(!coll__fabric_levels_init(fabric, n, seat, &levels));
    ck_assert(!coll__view_init(view, n, levels.n_levels,
                               (const int *const *)levels.color));
    for (int l = 0; l < levels.n_levels; l++) {
        view->levels[l].alpha = levels.prices[l].alpha;
        view->levels[l].beta = levels.prices[l].beta;
        view->levels[l].share = levels.prices[l].share;
        view->levels[l].gap = levels.prices[l].gap;
        view->levels[l].spread = levels.prices[l].spread;
    }
    ck_assert(!coll__fabric_ring(fabric, n, seat, ring));
    ck_assert(!coll__view_set_ring(view, ring));
    coll__fabric_levels_fini(&levels);
    free(ring);
}

/* Where the groups of a level are no equals, distances cannot be priced: ranks
 * numbered across groups, two kinds of hosts, and NVLinks to some GPUs only. */
static int is_even(const char *name)
{
    return !coll__word_in(
        name, "numa4.topo|pcie4.topo|mixed.topo|cube_mesh.topo", '|');
}

static void check_near(double got, double want, const char *name, int distance)
{
    ck_assert_msg(got > 0.9 * want && got < 1.1 * want,
                  "%s, distance %d: %g s, the links say %g s", name, distance,
                  got, want);
}

/* Long messages round the ring, and from every rank to one some way off. */
START_TEST(closed_forms_agree_with_the_load_on_the_links)
{
    struct coll__fabric *fabric = load(fixtures[_i]);
    int n = coll__fabric_n_seats(fabric);
    int *seat = malloc((size_t)n * sizeof(int));
    struct coll__view view;
    double bytes = 1e9;

    ck_assert_ptr_nonnull(seat);
    ck_assert(!coll__fabric_seats(fabric, n, PLACE_BLOCK, seat));
    make_view(fabric, seat, n, &view);
    check_near(coll__cost_ring(&view, bytes),
               bytes * shift_time(fabric, seat, view.ring, n, 1), fixtures[_i],
               0);
    for (int distance = 1; distance < n && is_even(fixtures[_i]); distance *= 2)
        check_near(coll__cost_shift(&view, distance, bytes),
                   bytes * shift_time(fabric, seat, seat, n, distance),
                   fixtures[_i], distance);
    coll__view_fini(&view);
    coll__fabric_destroy(fabric);
    free(seat);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("fabric");
    TCase *plain = suite_case(suite, "fabric", 60);

    tcase_add_loop_test(plain, fixture_is_as_the_file_beside_it_says, 0,
                        N_FIXTURES);
    tcase_add_loop_test(plain, routes_begin_and_end_at_their_seats, 0,
                        N_FIXTURES);
    tcase_add_test(plain, torus_routes_take_the_shorter_way_in_each_dimension);
    tcase_add_test(plain,
                   dragonfly_uses_each_global_cable_for_one_pair_of_groups);
    tcase_add_loop_test(plain, levels_are_groups_within_groups, 0, N_FIXTURES);
    tcase_add_test(plain, seats_that_are_taken_are_refused);
    tcase_add_test(plain, cyclic_placement_fills_hosts_in_turns);
    tcase_add_loop_test(
        plain, scattered_ranks_cost_one_crossing_of_a_host_each_way, 1, 65);
    tcase_add_loop_test(plain, closed_forms_agree_with_the_load_on_the_links,
                        0, N_FIXTURES);
    tcase_add_loop_test(plain, no_random_ring_is_faster, 0, N_FIXTURES);
    tcase_add_test(plain,
                   more_seats_than_can_be_tried_still_follow_the_links);
    tcase_add_test(plain, a_ring_that_leaves_out_a_rank_is_refused);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
