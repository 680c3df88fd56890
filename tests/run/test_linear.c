/* SPDX-License-Identifier: BSD-3-Clause */
/* test_linear.c - work that grows with the number of ranks, and not with its
 * square: counted in looks, at thousands of ranks; and that what is found is
 * what a search through all would find.
 */
#include "lib/comm/comm.h"
#include "lib/comm/comm_view.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/run/run.h"
#include "lib/topo/topo.h"
#include "lib/util/map.h"
#include "lib/util/util.h"
#include "lib/algo/algo.h"
#include "lib/exec/exec.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 60

static int log2_of(size_t n)
{
    int k = 0;

    while ((size_t)1 << k < n)
        k++;
    return k;
}

/* ---- finding by key ------------------------------------------------------ */

/* Keys as they come: in a row, with steps, in the high half, all over. */
static uint64_t key_of(int kind, uint64_t i)
{
    switch (kind) {
    case 0:
        return i;
    case 1:
        return i * 4096;
    case 2:
        return i << 32;
    case 3:
        return i << 32 | (i * 7 & 0xff);
    default:
        return i * i * 0x9e3779b97f4a7c15u;
    }
}

/* _i: the kind of keys */
START_TEST(a_map_finds_what_was_put_in)
{
    for (size_t n = 1; n <= 100000; n = 3 * n + 1) {
        struct coll__map map;

        ck_assert_int_eq(coll__map_init(&map, n), 0);
        for (size_t i = 0; i < n; i++) {
            int *at = coll__map_at(&map, key_of(_i, i));

            ck_assert_int_lt(*at, 0);
            *at = (int)i;
        }
        for (size_t i = n; i--;)
            ck_assert_int_eq(*coll__map_at(&map, key_of(_i, i)), (int)i);
        ck_assert_int_lt(*coll__map_at(&map, key_of(_i, n + 12345)), 0);
        ck_assert_uint_le(map.n_looks, 4 * n + 20);
        coll__map_fini(&map);
    }
}
END_TEST

/* ---- lanes --------------------------------------------------------------- */

static size_t looks_for_lanes(int p, const char *name)
{
    struct coll__problem pb = {
        .collective = COLL_ALLTOALL, .nranks = p, .rank = p / 3, .count = 1};
    struct coll__tp tp = {0}, **to = malloc((size_t)p * sizeof(*to));
    struct coll__routes routes = {.to = to, .n_local = 1};
    struct coll__op op;
    struct coll__binding binding = {
        .op = &op, .routes = &routes, .device = &coll__device_host};
    struct coll__plan plan = {0};
    struct coll__prog *prog;
    size_t before = coll__map_looks;

    for (int r = 0; r < p; r++)
        to[r] = &tp;
    coll__op_get(COLL_SUM, &op);
    ck_assert_int_eq(
        coll__plan_build(coll__algo_find(COLL_ALLTOALL, name), &pb, 0, &plan),
        0);
    ck_assert_int_eq(coll__prog_create(&pb, &plan, &binding, &prog), 0);
    ck_assert(!coll__prog_is_listed(prog));
    coll__prog_destroy(prog);
    free(to);
    return coll__map_looks - before;
}

START_TEST(finding_a_lane_is_no_search)
{
    for (int p = 64; p <= 16384; p *= 4) {
        size_t n = 2 * (size_t)p; /* messages */

        ck_assert_uint_ge(looks_for_lanes(p, "pairwise"), n - 2);
        ck_assert_uint_le(looks_for_lanes(p, "pairwise"), 2 * n);
        ck_assert_uint_le(looks_for_lanes(p, "direct"), 2 * n);
    }
}
END_TEST

/* ---- grouping ranks ------------------------------------------------------ */

/* Ranks placed round robin, or at random: n_hosts, 4 parts of each kind. */
static void place(struct coll__peer *peers, int size, int n_hosts, int is_even)
{
    for (int r = 0; r < size; r++) {
        int host = is_even ? r % n_hosts : rand() % n_hosts;
        int seat = is_even ? r / n_hosts : rand() % 64;

        peers[r] = (struct coll__peer){.n_cores = 2,
                                       .cpuset = (uint32_t)seat / 2 * 77u};
        snprintf(peers[r].host_id, sizeof(peers[r].host_id), "host %d",
                 host * 7919);
        for (int k = 0; k < COLL__WITHIN; k++)
            peers[r].within[k] = seat >> (k + 1);
    }
}

/* What is found without thinking: does rank q share what makes the level? */
static int shares(const struct coll__peer *a, const struct coll__peer *b,
                  const char *name)
{
    int kind = !strcmp(name, "cache")  ? WITHIN_CACHE
               : !strcmp(name, "numa") ? WITHIN_NUMA
                                       : WITHIN_PACKAGE;

    return a->host == b->host &&
           (!strcmp(name, "host") || a->within[kind] == b->within[kind]);
}

/* Groups of the whole are as those of pairs. */
static void compare(const struct coll_comm *comm)
{
    for (int l = 0; l < comm->view.n_levels - 1; l++)
        for (int r = 0; r < comm->size; r++)
            for (int q = 0; q < comm->size; q++) {
                const struct coll__level *level = &comm->view.levels[l];

                ck_assert_int_eq(
                    level->group[r] == level->group[q],
                    shares(&comm->peers[r], &comm->peers[q], level->name));
            }
    for (int r = 0; r < comm->size; r++) {
        const struct coll__peer *me = &comm->peers[r];
        int n = 0, n_cores = 0;

        for (int q = 0; q < comm->size; q++) {
            const struct coll__peer *it = &comm->peers[q];
            int is_first = 1;

            if (strcmp(it->host_id, me->host_id))
                continue;
            ck_assert_int_eq(it->host, me->host);
            for (int s = 0; s < q; s++)
                is_first &= comm->peers[s].host != it->host ||
                            comm->peers[s].cpuset != it->cpuset;
            n_cores += is_first ? it->n_cores : 0;
            n++;
        }
        ck_assert_int_eq(me->local_size, n);
        ck_assert_int_eq(me->local_cores, n_cores);
    }
}

static size_t group(int size, int n_hosts, int is_even, int is_compared)
{
    struct coll_comm *comm = calloc(1, sizeof(*comm));
    size_t before = coll__map_looks;

    comm->size = size;
    comm->links.dearest[0].alpha = comm->links.dearest[1].alpha = 1e-6;
    comm->peers = calloc((size_t)size, sizeof(*comm->peers));
    place(comm->peers, size, n_hosts, is_even);
    comm->n_hosts = coll__topo_group(comm->peers, size);
    ck_assert_int_gt(comm->n_hosts, 0);
    ck_assert_int_eq(coll__comm_view_init(comm), 0);
    if (is_compared)
        compare(comm);
    else
        ck_assert_int_eq(comm->view.n_levels, 5);
    coll__view_fini(&comm->view);
    free(comm->peers);
    free(comm);
    return coll__map_looks - before;
}

START_TEST(ranks_are_grouped_as_pairs_of_them_say)
{
    srand(5);
    for (int size = 1; size < 150; size += 7)
        for (int n_hosts = 1; n_hosts < 12; n_hosts += 3)
            group(size, n_hosts, size % 2, 1);
}
END_TEST

/* Five looks for each: its set of cores, three kinds of parts, its host. */
START_TEST(ranks_placed_round_robin_are_grouped_in_a_few_looks_each)
{
    for (int size = 1024; size <= 65536; size *= 4)
        for (int n_hosts = 16; n_hosts <= size / 16; n_hosts *= 4) {
            size_t looks = group(size, n_hosts, 1, 0);

            ck_assert_uint_ge(looks, 5 * (size_t)size);
            ck_assert_uint_le(looks, 10 * (size_t)size);
        }
}
END_TEST

/* ---- parts --------------------------------------------------------------- */

#define MANY 1024

static size_t counts[MANY], displs[MANY], room[3 * MANY];

static int overlap_by_pairs(const struct coll__parts *a,
                            const struct coll__parts *b)
{
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            uintptr_t x = a->base + a->displs[i] * a->size;
            uintptr_t y = b->base + b->displs[j] * b->size;

            if ((a != b || i != j) && a->counts[i] && b->counts[j] &&
                x < y + b->counts[j] * b->size &&
                y < x + a->counts[i] * a->size)
                return 1;
        }
    return 0;
}

START_TEST(parts_overlap_as_pairs_of_them_do)
{
    int n_seen[2] = {0};

    srand(3);
    for (int k = 0; k < 20000; k++) {
        struct coll__sorter sorter = {room, 0};
        struct coll__parts a = {0, 4, counts, displs, rand() % 9};
        struct coll__parts b = {(uintptr_t)(4 * (rand() % 40)), 4, counts + 9,
                                displs + 9, rand() % 9};

        for (int i = 0; i < 18; i++) {
            counts[i] = (size_t)(rand() % 4);
            displs[i] = (size_t)(rand() % 60);
        }
        ck_assert_int_eq(coll__parts_overlap(&a, &sorter),
                         overlap_by_pairs(&a, &a));
        ck_assert_int_eq(coll__parts_meet(&a, &b, &sorter),
                         overlap_by_pairs(&a, &b));
        n_seen[overlap_by_pairs(&a, &b)]++;
    }
    ck_assert_int_gt(n_seen[0], 1000);
    ck_assert_int_gt(n_seen[1], 1000);
}
END_TEST

/* In order, backwards, from the middle on, even before odd, any order. */
static size_t place_of(int kind, size_t i, size_t n)
{
    switch (kind) {
    case 0:
        return i;
    case 1:
        return n - 1 - i;
    case 2:
        return (i + n / 2) % n;
    case 3:
        return i % 2 ? n / 2 + i / 2 : i / 2;
    default:
        return i * 269 % n; /* a prime */
    }
}

/* _i: the kind of order */
START_TEST(parts_in_any_order_are_judged_in_n_log_n_looks)
{
    for (size_t n = 4; n <= MANY; n *= 4) {
        struct coll__sorter sorter = {room, 0};
        struct coll__parts a = {0, 8, counts, displs, (int)n};

        for (size_t i = 0; i < n; i++) {
            counts[i] = 3;
            displs[i] = 6 * place_of(_i, i, n);
        }
        ck_assert(!coll__parts_overlap(&a, &sorter));
        ck_assert_uint_ge(sorter.n_looks, n);
        ck_assert_uint_le(sorter.n_looks,
                          n * (size_t)(_i ? log2_of(n) + 2 : 2));
        displs[n / 3] = displs[n / 3] ? displs[n / 3] - 4 : 4;
        ck_assert(coll__parts_overlap(&a, &sorter));
    }
}
END_TEST

START_TEST(parts_of_two_buffers_are_judged_in_n_log_n_looks)
{
    for (size_t n = 4; n <= MANY; n *= 4) {
        struct coll__sorter sorter = {room, 0};
        struct coll__parts a = {0, 8, counts, displs, (int)n}, b = a;

        b.base = 24; /* in the gaps */
        for (size_t i = 0; i < n; i++) {
            counts[i] = 3;
            displs[i] = 6 * place_of(_i, i, n);
        }
        ck_assert(!coll__parts_meet(&a, &b, &sorter));
        ck_assert_uint_ge(sorter.n_looks, 2 * n);
        ck_assert_uint_le(sorter.n_looks, 2 * n * (size_t)(log2_of(n) + 2));
        b.base = 16;
        ck_assert(coll__parts_meet(&a, &b, &sorter));
    }
}
END_TEST

/* ---- calls --------------------------------------------------------------- */

/* Gather `n` elements of each rank, the parts backwards, `gap` between them;
 * whether all came. */
static int gather(struct world_rank *me, struct coll_comm *comm, size_t n,
                  size_t gap)
{
    int in[64], out[1000];
    size_t lens[8] = {0}, at[8] = {0};
    int p = me->size;

    for (size_t i = 0; i < n; i++)
        in[i] = 10 * me->rank + (int)i;
    for (int r = 0; r < p; r++) {
        lens[r] = n;
        at[r] = (size_t)(p - 1 - r) * (n + gap);
    }
    WORLD_CHECK(me, !coll_allgatherv(in, out, lens, at, COLL_I32, comm, NULL));
    for (int r = 0; r < p; r++)
        for (size_t i = 0; i < n; i++)
            WORLD_CHECK(me, out[at[r] + i] == 10 * r + (int)i);
    return 0;
}

static int call_again(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int x[64] = {0}, y[64];
    size_t n[8] = {2, 2, 2, 2, 2, 2, 2, 2}, at[8] = {1, 0, 3, 4, 5, 6, 7, 8};
    size_t looks, judged;

    WORLD_CHECK(me, comm);
    for (size_t k = 1; k < 5; k++)
        WORLD_CHECK(me, !gather(me, comm, k, k));
    looks = comm->run->sorter.n_looks;
    judged = comm->run->cache.n_judged;
    WORLD_CHECK(me, looks > 0 && judged > 0);
    for (int i = 0; i < 20; i++)
        for (size_t k = 1; k < 5; k++)
            WORLD_CHECK(me, !gather(me, comm, k, k));
    WORLD_CHECK(me, comm->run->sorter.n_looks == looks);
    WORLD_CHECK(me, comm->run->cache.n_judged == judged);
    WORLD_CHECK(me, !gather(me, comm, 2, 3)); /* something is new */
    WORLD_CHECK(me, !gather(me, comm, 3, 2));
    WORLD_CHECK(me, comm->run->cache.n_judged == judged + 2);
    WORLD_CHECK(me, coll_allgatherv(x, y, n, at, COLL_I32, comm, NULL) ==
                        COLL_ERR_INVALID);
    WORLD_CHECK(me, strstr(coll_last_error(), "parts of out overlap"));
    WORLD_CHECK(me, coll_allgatherv(x, y, NULL, at, COLL_I32, comm, NULL) ==
                        COLL_ERR_INVALID);
    WORLD_CHECK(me, !gather(me, comm, 3, 2));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_call_with_counts_is_judged_once)
{
    ck_assert_int_eq(world_fork(_i, call_again, NULL, DEADLINE), 0);
}
END_TEST

/* One buffer for both, as where one of the two is not read or not written. */
static int call_in_one_buffer(struct world_rank *me, struct coll_comm *comm,
                              int root)
{
    int x[64] = {0};
    int *own = x + (me->rank == root ? 4 * me->rank : 0);

    WORLD_CHECK(me, !coll_broadcast(x, x, 4, COLL_I32, root, comm, NULL));
    WORLD_CHECK(me,
                !coll_reduce(x, x, 4, COLL_I32, COLL_SUM, root, comm, NULL));
    WORLD_CHECK(me, !coll_gather(own, x, 4, COLL_I32, root, comm, NULL));
    WORLD_CHECK(me, !coll_scatter(x, own, 4, COLL_I32, root, comm, NULL));
    return 0;
}

static int call_in_place(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    uint64_t judged;

    WORLD_CHECK(me, comm);
    for (int root = 0; root < me->size; root++)
        WORLD_CHECK(me, !call_in_one_buffer(me, comm, root));
    judged = comm->run->cache.n_judged;
    WORLD_CHECK(me, judged == 4 * (uint64_t)me->size);
    for (int i = 0; i < 5 * me->size; i++)
        WORLD_CHECK(me, !call_in_one_buffer(me, comm, i % me->size));
    WORLD_CHECK(me, comm->run->cache.n_judged == judged);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_call_with_a_root_in_one_buffer_is_judged_once)
{
    ck_assert_int_eq(world_fork(_i, call_in_place, NULL, DEADLINE), 0);
}
END_TEST

/* Displacements left out are those of parts side by side. */
static int left_out(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    size_t n[8], side_by_side[8], other[8], sum = 0;
    int p = me->size, in[64], out[200];

    WORLD_CHECK(me, comm);
    for (int r = 0; r < p; r++) {
        n[r] = (size_t)(r % 3 + 1);
        side_by_side[r] = sum;
        other[r] = sum + (r == p - 1);
        sum += n[r];
    }
    for (int k = 0; k < 30; k++) {
        const size_t *at = k % 3 == 0   ? NULL
                           : k % 3 == 1 ? side_by_side
                                        : other;
        const size_t *really = at ? at : side_by_side;

        for (size_t i = 0; i < n[me->rank]; i++)
            in[i] = 100 * k + 10 * me->rank + (int)i;
        WORLD_CHECK(me, !coll_allgatherv(in, out, n, at, COLL_I32, comm, NULL));
        for (int r = 0; r < p; r++)
            for (size_t i = 0; i < n[r]; i++)
                WORLD_CHECK(me,
                            out[really[r] + i] == 100 * k + 10 * r + (int)i);
    }
    WORLD_CHECK(me,
                comm->run->cache.n == 2); /* of the first two there is one */
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(displacements_left_out_are_found_again)
{
    ck_assert_int_eq(world_fork(_i, left_out, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linear");
    TCase *c = tcase_create("linear");

    setenv("COLL_TRANSPORTS", "self,shm", 1);
    patient_timeout(60);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, a_map_finds_what_was_put_in, 0, 5);
    tcase_add_test(c, finding_a_lane_is_no_search);
    tcase_add_test(c, ranks_are_grouped_as_pairs_of_them_say);
    tcase_add_test(c, ranks_placed_round_robin_are_grouped_in_a_few_looks_each);
    tcase_add_test(c, parts_overlap_as_pairs_of_them_do);
    tcase_add_loop_test(c, parts_in_any_order_are_judged_in_n_log_n_looks, 0,
                        5);
    tcase_add_loop_test(c, parts_of_two_buffers_are_judged_in_n_log_n_looks, 0,
                        5);
    tcase_add_loop_test(c, a_call_with_counts_is_judged_once, 2, 6);
    tcase_add_loop_test(c, a_call_with_a_root_in_one_buffer_is_judged_once, 2,
                        6);
    tcase_add_loop_test(c, displacements_left_out_are_found_again, 2, 6);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
