/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gpus.c - how near GPUs are, by files and by folders like /sys; what that costs;
 * the groups and the rings that follow. */
#include "lib/topo/gpus.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 32 };

struct host {
    int n;
    struct coll__gpu_place places[MOST];
    unsigned char nvlink[MOST * MOST], near[MOST * MOST];
};

static void use_file(const char *name)
{
    setenv("COLL_TOPO_FILE", fixture_file("topo", name), 1);
}

/* The UUID of the files' GPU, from 0. */
static void name_gpu(struct coll__gpu_place *place, int gpu)
{
    memcpy(place->uuid, "fake_cuda------", 16);
    place->uuid[15] = (unsigned char)(gpu + 1);
}

/* Ranks of a file's host, rank r at GPU gpus[r]. */
static void seat(struct host *h, const char *file, const int *gpus, int n)
{
    memset(h, 0, sizeof(*h));
    h->n = n;
    use_file(file);
    for (int r = 0; r < n; r++) {
        name_gpu(&h->places[r], gpus[r]);
        h->places[r].pid = 100 + r;
        h->places[r].major = 9;
        coll__gpu_find("ffff:ff:ff.0", &h->places[r]);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            h->nvlink[i * n + j] =
                coll__gpu_file_nvlink(h->places[i].uuid, h->places[j].uuid) > 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            h->near[i * n + j] =
                (unsigned char)coll__gpu_near(h->places, n, h->nvlink, i, j);
}

static int n_edges(const struct host *h, const int *ring, enum coll__near near)
{
    int n = 0;

    for (int i = 0; i < h->n; i++)
        n += h->near[ring[i] * h->n + ring[(i + 1) % h->n]] == near;
    return n;
}

static void count_up(int *ring, int n)
{
    for (int i = 0; i < n; i++)
        ring[i] = i;
}

static int n_groups(const struct host *h, enum coll__near near)
{
    int color[MOST], n = 0;

    coll__gpu_color(near, h->near, h->n, color);
    for (int r = 0; r < h->n; r++)
        n += color[r] == r;
    return n;
}

/* ---- machines ------------------------------------------------------------ */

START_TEST(nvswitches_make_all_gpus_alike)
{
    static const int gpus[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct host h;
    int ring[MOST];

    seat(&h, "gpus_nvswitch.xml", gpus, 8);
    count_up(ring, 8);
    ck_assert_int_eq(coll__gpu_ring(h.near, 8, ring), 0);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_NVLINK), 8);
    ck_assert_int_eq(n_groups(&h, NEAR_GPU), 8);
    ck_assert_int_eq(n_groups(&h, NEAR_NVLINK), 1);
}
END_TEST

/* The sockets' GPUs have odd and even ranks: by number a ring would cross eight
 * times. */
START_TEST(a_ring_crosses_the_sockets_twice)
{
    static const int gpus[] = {0, 4, 2, 6, 1, 5, 3, 7};
    struct host h;
    int ring[MOST];

    seat(&h, "gpus_pcie.xml", gpus, 8);
    count_up(ring, 8);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_HOST), 8);
    ck_assert_int_eq(coll__gpu_ring(h.near, 8, ring), 1);
    ck_assert_int_eq(ring[0], 0);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_HOST), 2);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_SOCKET), 2);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_SWITCH), 4);
    ck_assert_int_eq(n_groups(&h, NEAR_SWITCH), 4);
    ck_assert_int_eq(n_groups(&h, NEAR_SOCKET), 2);
    ck_assert_int_eq(n_groups(&h, NEAR_HOST), 1);
}
END_TEST

/* Two ranks a GPU, 16 in all: too many to try all rings. */
START_TEST(a_long_ring_crosses_no_more_often)
{
    int gpus[16], ring[MOST];
    struct host h;

    for (int r = 0; r < 16; r++)
        gpus[r] = r * 5 % 8;
    seat(&h, "gpus_pcie.xml", gpus, 16);
    count_up(ring, 16);
    ck_assert_int_eq(coll__gpu_ring(h.near, 16, ring), 1);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_HOST), 2);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_SOCKET), 2);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_GPU), 8);
}
END_TEST

START_TEST(ranks_of_one_gpu_are_alike_and_take_turns)
{
    static const int gpus[] = {3, 3, 3, 3};
    struct coll__gpu_price turns, threads, link;
    struct host h;
    int ring[MOST];

    seat(&h, "gpus_nvswitch.xml", gpus, 4);
    count_up(ring, 4);
    ck_assert_int_eq(coll__gpu_ring(h.near, 4, ring), 0);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_GPU), 4);
    ck_assert_int_eq(n_groups(&h, NEAR_GPU), 1);
    turns = coll__gpu_price(NEAR_GPU, &h.places[0], &h.places[1]);
    h.places[1].pid = h.places[0].pid;
    threads = coll__gpu_price(NEAR_GPU, &h.places[0], &h.places[1]);
    link = coll__gpu_price(NEAR_NVLINK, &h.places[0], &h.places[1]);
    ck_assert(turns.alpha > 2 * threads.alpha);
    ck_assert(threads.alpha < link.alpha && threads.beta < link.beta);
}
END_TEST

/* NVLink as in a cube: 0-1-3-2 and 4-5-7-6, and 0-4, 1-5, 2-6, 3-7. */
START_TEST(a_ring_follows_nvlink_where_not_all_are_joined)
{
    static const int gpus[] = {0, 7, 1, 6, 2, 5, 3, 4};
    struct host h;
    int ring[MOST];

    seat(&h, "gpus_pcie.xml", gpus, 8);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            int differ = gpus[i] ^ gpus[j];

            if (differ == 1 || differ == 2 || differ == 4)
                h.near[i * 8 + j] = NEAR_NVLINK;
        }
    count_up(ring, 8);
    ck_assert_int_eq(coll__gpu_ring(h.near, 8, ring), 1);
    ck_assert_int_eq(n_edges(&h, ring, NEAR_NVLINK), 8);
}
END_TEST

START_TEST(the_farther_the_dearer)
{
    struct coll__gpu_place a = {.major = 9, .pid = 1},
                           b = {.major = 8, .pid = 2};

    for (int near = NEAR_NVLINK; near < NEAR_HOST; near++) {
        struct coll__gpu_price x =
            coll__gpu_price((enum coll__near)near, &a, &b);
        struct coll__gpu_price y =
            coll__gpu_price((enum coll__near)(near + 1), &a, &b);

        ck_assert(x.alpha < y.alpha && x.beta <= y.beta);
    }
    /* the slower one's link, the slower one's slot */
    ck_assert_double_eq_tol(coll__gpu_price(NEAR_NVLINK, &a, &b).beta,
                            1 / 300e9, 1e-15);
    a.pcie = 50e9;
    b.pcie = 12e9;
    ck_assert_double_eq_tol(coll__gpu_price(NEAR_SWITCH, &a, &b).beta, 1 / 12e9,
                            1e-15);
}
END_TEST

/* ---- where they are -------------------------------------------------------- */

START_TEST(a_file_that_does_not_know_a_gpu_says_nothing)
{
    struct coll__gpu_place place = {.numa = 5};

    use_file("gpus_pcie.xml");
    name_gpu(&place, 99);
    coll__gpu_find("ffff:ff:ff.0", &place);
    ck_assert_int_eq(place.numa, -1);
    ck_assert_int_eq(place.n_above, 0);
    ck_assert_int_eq(coll__gpu_file_nvlink(place.uuid, place.uuid), -1);
    coll__gpu_find("0000:94:00.0", &place); /* by its place */
    ck_assert_int_eq(place.numa, 1);
    ck_assert_int_eq(place.n_above, 1);
    ck_assert_uint_eq(place.above[0], 0x91 << 8);
}
END_TEST

static char root[] = "/tmp/coll-gpus-XXXXXX";

static void make(const char *path)
{
    char command[512];

    snprintf(command, sizeof(command), "mkdir -p %s/%s", root, path);
    ck_assert_int_eq(system(command), 0);
}

static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(the_kernels_tree_tells_bridges_node_and_speed)
{
    static const char way[] =
        "devices/pci0000:10/0000:10:01.0/0000:11:00.0/0000:13:00.0";
    struct coll__gpu_place place = {.n_above = 7};
    char path[128], to[160];

    folder_make(root);
    make(way);
    make("bus");
    snprintf(path, sizeof(path), "%s/numa_node", way);
    put(path, "1\n");
    snprintf(path, sizeof(path), "%s/max_link_speed", way);
    put(path, "16.0 GT/s PCIe\n");
    snprintf(path, sizeof(path), "%s/max_link_width", way);
    put(path, "16\n");
    snprintf(path, sizeof(path), "%s/bus/0000:13:00.0", root);
    snprintf(to, sizeof(to), "../%s", way);
    ck_assert_int_eq(symlink(to, path), 0);
    snprintf(path, sizeof(path), "%s/bus", root);
    coll__gpu_read(path, "0000:13:00.0", &place);
    ck_assert_int_eq(place.n_above, 2);
    ck_assert_uint_eq(place.above[0], 0x1008);
    ck_assert_uint_eq(place.above[1], 0x1100);
    ck_assert_int_eq(place.numa, 1);
    ck_assert_double_eq_tol(place.pcie, 27.2e9, 1e6);
    coll__gpu_read(path, "0000:99:00.0", &place); /* there is none */
    ck_assert_int_eq(place.n_above, 0);
    ck_assert_int_eq(place.numa, -1);
    ck_assert(place.pcie <= 0);
    folder_remove(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gpus");
    TCase *cases = tcase_create("gpus");

    suite_add_tcase(suite, cases);
    tcase_add_test(cases, nvswitches_make_all_gpus_alike);
    tcase_add_test(cases, a_ring_crosses_the_sockets_twice);
    tcase_add_test(cases, a_long_ring_crosses_no_more_often);
    tcase_add_test(cases, ranks_of_one_gpu_are_alike_and_take_turns);
    tcase_add_test(cases, a_ring_follows_nvlink_where_not_all_are_joined);
    tcase_add_test(cases, the_farther_the_dearer);
    tcase_add_test(cases, a_file_that_does_not_know_a_gpu_says_nothing);
    tcase_add_test(cases, the_kernels_tree_tells_bridges_node_and_speed);
    return suite_run(suite);
}
