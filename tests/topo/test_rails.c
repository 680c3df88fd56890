/* SPDX-License-Identifier: BSD-3-Clause */
/* test_rails.c - which ports of RDMA devices a process takes: networks by folders
 * like /sys/class/infiniband, the one that ranks have in common, its ports.
 */
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "lib/topo/rails.h"
#include "lib/util/util.h"
#include "transports/price.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a folder like that of a device --------------------------------------- */

static char device[] = "/tmp/coll-rails-XXXXXX";

static void make_device(void) { folder_make(device); }

static void remove_device(void) { folder_remove(device); }

static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", device, path);
    for (char *c = full + strlen(device) + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        mkdir(full, 0700);
        *c = '/';
    }
    file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void put_gid(int index, const char *gid, const char *type)
{
    char path[64];

    snprintf(path, sizeof(path), "ports/1/gids/%d", index);
    put(path, gid);
    snprintf(path, sizeof(path), "ports/1/gid_attrs/types/%d", index);
    if (type)
        put(path, type);
}

#define NONE "0000:0000:0000:0000:0000:0000:0000:0000"
#define LINK "fe80:0000:0000:0000:5054:00ff:fec0:1100"
#define IP4 "0000:0000:0000:0000:0000:ffff:0a01:6342" /* 10.1.99.66 */
#define IP6 "2001:0db8:0000:0007:0000:0000:0000:0001"
#define V1 "IB/RoCE v1"
#define V2 "RoCE v2"

/* What is in the folder, as real cards and soft-RoCE show it, and the network. */
static const struct {
    const char *node, *layer;
    const char *gids[4][2];
    const char *fabric;
} ports[] = {
    {"1: CA", "InfiniBand", {{LINK, V1}}, "ib fe80:0:0:0"},
    {"1: CA", "InfiniBand", {{IP6, V1}}, "ib 2001:db8:0:7"},
    {"1: CA",
     "Ethernet",
     {{LINK, V1}, {LINK, V2}, {IP4, V1}, {IP4, V2}},
     "roce 10.1.96.0/20"},
    {"1: CA",
     "Ethernet",
     {{LINK, V2}, {IP4, V2}, {NONE, NULL}},
     "roce 10.1.96.0/20"},
    {"1: CA", "Ethernet", {{LINK, V2}, {IP6, V2}}, "roce 2001:db8:0:7::/64"},
    {"1: CA", "Ethernet", {{LINK, V2}, {NONE, NULL}}, "roce fe80::/64"},
    {"1: CA", "Ethernet", {{LINK, V1}, {IP4, V1}}, "roce of version 1"},
    {"1: CA", "Ethernet", {{NONE, NULL}}, ""},
    {"1: CA", "Ethernet", {{"nonsense", V2}}, ""},
    {"4: RNIC", "Ethernet", {{IP4, V2}}, ""},          /* iWARP */
    {"7: <unknown>", "Unspecified", {{LINK, V1}}, ""}, /* EFA */
    {NULL, NULL, {{NULL, NULL}}, ""},
};

/* The host has 10.1.99.66/20. */
static const struct ifaddrs *addresses(void)
{
    static struct sockaddr_in addr = {.sin_family = AF_INET};
    static struct sockaddr_in mask = {.sin_family = AF_INET};
    static struct sockaddr other = {.sa_family = AF_UNIX};
    static struct ifaddrs ours = {.ifa_addr = (void *)&addr,
                                  .ifa_netmask = (void *)&mask};
    static struct ifaddrs none = {.ifa_next = &ours};
    static struct ifaddrs first = {
        .ifa_next = &none, .ifa_addr = &other, .ifa_netmask = &other};

    inet_pton(AF_INET, "10.1.99.66", &addr.sin_addr);
    inet_pton(AF_INET, "255.255.240.0", &mask.sin_addr);
    return &first;
}

START_TEST(a_port_is_on_the_network_that_its_addresses_say)
{
    char fabric[COLL__FABRIC] = "untouched";

    if (ports[_i].node)
        put("node_type", ports[_i].node);
    if (ports[_i].layer)
        put("ports/1/link_layer", ports[_i].layer);
    for (int g = 0; g < 4 && ports[_i].gids[g][0]; g++)
        put_gid(g, ports[_i].gids[g][0], ports[_i].gids[g][1]);
    coll__port_fabric(device, 1, addresses(), fabric);
    ck_assert_str_eq(fabric, ports[_i].fabric);
}
END_TEST

START_TEST(an_address_that_cannot_be_seen_has_the_usual_mask)
{
    char fabric[COLL__FABRIC];

    put("ports/2/link_layer", "Ethernet");
    put("ports/2/gids/0", IP4);
    put("ports/2/gid_attrs/types/0", V2);
    coll__port_fabric(device, 2, NULL, fabric);
    ck_assert_str_eq(fabric, "roce 10.1.99.0/24");
    coll__port_fabric(device, 3, NULL, fabric);
    ck_assert_str_eq(fabric, "");
}
END_TEST

/* ---- ports ---------------------------------------------------------------- */

#define IB "ib fe80:0:0:0"
#define STORAGE "ib fe80:0:0:1"
#define ROCE "roce 10.1.0.0/16"

/* A host with two sockets: four ports for jobs, one of them pulled out, one of
 * storage, two of RoCE. */
static const struct coll__nic host[] = {
    {"mlx5_0", "active", 1, 1, 0, 200, "0000:11:00.0", IB},
    {"mlx5_1", "active", 1, 1, 1, 200, "0000:91:00.0", IB},
    {"mlx5_2", "active", 1, 1, 1, 200, "0000:a1:00.0", IB},
    {"mlx5_3", "down", 1, 1, 0, 200, "0000:21:00.0", IB},
    {"mlx5_4", "active", 1, 1, 0, 400, "0000:31:00.0", STORAGE},
    {"irdma0", "active", 1, 1, 0, 100, "0000:41:00.0", ROCE},
    {"irdma1", "active", 1, 1, 0, 25, "0000:41:00.1", ROCE},
    {"efa_0", "active", 1, 1, 0, 800, "0000:51:00.0", ""},
    {"rxe0", "active", 1, 1, -1, 2.5, "", "roce 10.9.0.0/24"},
    {"eth0", "up", 0, 0, 0, 100, "0000:41:00.0", ""},
};

static void of_host(const struct coll__carrier_wish *wish, uint32_t *fabrics)
{
    coll__rails_fabrics(host, (int)ARRAY_LEN(host), wish, fabrics);
}

/* The number of a network that this wish has. */
static uint32_t number_of(const char *fabric)
{
    struct coll__carrier_wish wish = {.may_rdma = 1, .numa_node = -1};
    struct coll__nic nic = host[0];
    uint32_t fabrics[COLL__FABRICS];

    snprintf(nic.fabric, sizeof(nic.fabric), "%s", fabric);
    coll__rails_fabrics(&nic, 1, &wish, fabrics);
    return fabrics[0];
}

START_TEST(networks_are_listed_the_fastest_first)
{
    struct coll__carrier_wish wish = {.may_rdma = 1, .numa_node = 1};
    uint32_t fabrics[COLL__FABRICS];

    of_host(&wish, fabrics);
    ck_assert_uint_eq(fabrics[0], number_of(STORAGE));
    ck_assert_uint_eq(fabrics[1], number_of(IB));
    ck_assert_uint_eq(fabrics[2], number_of(ROCE));
    ck_assert_uint_eq(fabrics[3], number_of("roce 10.9.0.0/24"));
    ck_assert_uint_ne(number_of(IB), number_of(STORAGE));
    wish.may_rdma = 0;
    of_host(&wish, fabrics);
    ck_assert_uint_eq(fabrics[0], 0);
}
END_TEST

/* Who names devices says that they reach each other. */
START_TEST(devices_that_are_named_are_of_one_network_of_their_kind)
{
    struct coll__carrier_wish wish = {
        .may_rdma = 1, .numa_node = -1, .devices = "irdma1,rxe0:1"};
    struct coll__rails rails;
    uint32_t fabrics[COLL__FABRICS];

    of_host(&wish, fabrics);
    ck_assert_uint_ne(fabrics[0], 0);
    ck_assert_uint_eq(fabrics[1], 0);
    coll__rails_choose(host, (int)ARRAY_LEN(host), &wish, fabrics[0], &rails);
    ck_assert_str_eq(rails.devices, "irdma1:1,rxe0:1"); /* all of them */
    wish.devices = "eth0";
    of_host(&wish, fabrics);
    ck_assert_uint_eq(fabrics[0], 0);
}
END_TEST

/* What is chosen on a network, by which node, and words of why. */
static const struct {
    const char *fabric, *devices;
    int numa_node, n, is_soft, is_others;
    const char *why[4];
} choices[] = {
    {IB,
     "mlx5_0:1",
     0,
     1,
     0,
     0,
     {"by mlx5_0:1 (mlx5_0 port 1, 200 Gbit/s by libibverbs) on " IB "; not ",
      "; not mlx5_1:1: farther away", "; not mlx5_3:1: down",
      "; not mlx5_4:1: " STORAGE}},
    {IB,
     "mlx5_1:1,mlx5_2:1",
     1,
     2,
     0,
     0,
     {"by mlx5_1:1,mlx5_2:1 (", "; not mlx5_0:1: farther away",
      "; not efa_0:1: of a kind that UCX does not use", "; not rxe0:1: roce"}},
    {IB, "mlx5_0:1,mlx5_1:1,mlx5_2:1", -1, 3, 0, 0, {"by mlx5_0:1,"}},
    {ROCE, "irdma0:1", 1, 1, 0, 1, {"; not irdma1:1: slower"}},
    {"roce 10.9.0.0/24", "rxe0:1", 0, 1, 1, 1, {"2.5 Gbit/s"}},
    {"roce 10.8.0.0/24",
     "",
     0,
     0,
     0,
     0,
     {"by no RDMA port", "; not mlx5_0:1: " IB}},
};

START_TEST(ports_are_the_fastest_then_the_nearest_of_the_network)
{
    struct coll__carrier_wish wish = {.may_rdma = 1,
                                      .numa_node = choices[_i].numa_node};
    struct coll__rails rails;

    coll__rails_choose(host, (int)ARRAY_LEN(host), &wish,
                       number_of(choices[_i].fabric), &rails);
    ck_assert_str_eq(rails.devices, choices[_i].devices);
    ck_assert_int_eq(rails.n, choices[_i].n);
    ck_assert_int_eq(rails.is_soft, choices[_i].is_soft);
    ck_assert_int_eq(rails.is_others, choices[_i].is_others);
    for (int w = 0; w < 4 && choices[_i].why[w]; w++)
        ck_assert_msg(strstr(rails.why, choices[_i].why[w]) != NULL,
                      "nothing of '%s' in '%s'", choices[_i].why[w], rails.why);
    ck_assert_ptr_null(strstr(rails.why, "eth0"));
}
END_TEST

/* More devices than there is room for, with the longest names. */
START_TEST(there_are_no_more_rails_than_ucx_has_use_for)
{
    struct coll__carrier_wish wish = {.may_rdma = 1, .numa_node = 0};
    struct coll__nic many[40];
    struct coll__rails rails;

    for (int i = 0; i < (int)ARRAY_LEN(many); i++) {
        many[i] = host[0];
        snprintf(many[i].name, sizeof(many[i].name),
                 "mlx5_with_a_name_of_31_bytes_%02u", (unsigned)i % 100);
    }
    coll__rails_choose(many, (int)ARRAY_LEN(many), &wish, number_of(IB),
                       &rails);
    ck_assert_int_eq(rails.n, COLL__RAILS);
    ck_assert_ptr_nonnull(strstr(rails.devices, "_00:1,"));
    ck_assert_ptr_nonnull(strstr(rails.devices, "_03:1"));
    ck_assert_ptr_null(strstr(rails.devices, "_04:1"));
}
END_TEST

/* Two cards carry a byte in half the time, and a message in the same. */
START_TEST(what_is_large_costs_a_share_on_each_rail)
{
    const struct coll__link one = {
        .alpha = 2e-6, .beta = 4e-9, .share = 3e-9, .via = "rxe0 port 1"};
    struct coll__link link = one;

    for (int n = 0; n < 2; n++) {
        coll__price_rails(n, &link);
        ck_assert_mem_eq(&link, &one, sizeof(link));
    }
    coll__price_rails(2, &link);
    ck_assert_double_eq_tol(link.alpha, 2e-6, 1e-12);
    ck_assert_double_eq_tol(link.beta, 2e-9, 1e-15);
    ck_assert_double_eq_tol(link.share, 1.5e-9, 1e-15);
    ck_assert_str_eq(link.via, "2 x rxe0 port 1");
    link = one;
    memset(link.via, 'x', sizeof(link.via) - 1); /* no room for words */
    coll__price_rails(4, &link);
    ck_assert_double_eq_tol(link.beta, 1e-9, 1e-15);
    ck_assert_uint_eq(strlen(link.via), sizeof(link.via) - 1);
}
END_TEST

/* By the price of one interface: that of two.  One core drives both. */
static const struct {
    double beta, share, both;
} ways[] = {
    {8e-9, 8e-9, 4e-9},         /* slow ones */
    {0.4e-9, 0.4e-9, 1 / 3e9},  /* more than the core sends */
    {1 / 3e9, 0.1e-9, 1 / 3e9}, /* one is more than that */
};

START_TEST(a_core_limits_what_several_interfaces_carry)
{
    struct coll__link link = {.alpha = 15e-6,
                              .beta = ways[_i].beta,
                              .share = ways[_i].share,
                              .via = "eth0"};

    coll__price_ways(1, &link);
    ck_assert_double_eq_tol(link.beta, ways[_i].beta, 1e-15);
    ck_assert_str_eq(link.via, "eth0");
    coll__price_ways(2, &link);
    ck_assert_double_eq_tol(link.alpha, 15e-6, 1e-12);
    ck_assert_double_eq_tol(link.beta, ways[_i].both, 1e-15);
    ck_assert_double_eq_tol(link.share, ways[_i].share / 2, 1e-15);
    ck_assert_str_eq(link.via, "2 x eth0");
}
END_TEST

/* ---- what ranks have in common -------------------------------------------- */

/* By rank: host, networks; and which is taken. */
static const struct {
    int size;
    struct {
        int host;
        uint32_t fabrics[COLL__FABRICS];
    } ranks[5];
    uint32_t common;
    int n_hosts;
} jobs[] = {
    {1, {{0, {0}}}, 0, 0},
    {1, {{0, {7}}}, 7, 1},
    {2, {{0, {7}}, {0, {7}}}, 7, 1},
    {2, {{0, {7}}, {1, {7}}}, 7, 2},
    {2, {{0, {7}}, {1, {8}}}, 7, 1},
    {2, {{0, {7, 8}}, {1, {8, 9}}}, 8, 2},
    {2, {{0, {7, 8}}, {1, {8, 7}}}, 7, 2},
    {2, {{0, {8, 7}}, {1, {9, 7, 8}}}, 8, 2}, /* as good as 7: met first */
    {3, {{0, {9, 7, 8}}, {1, {7, 8}}, {2, {8}}}, 8, 3},
    {4, {{0, {7}}, {1, {7}}, {2, {0}}, {3, {0}}}, 7, 2},
    {5, {{0, {7}}, {0, {7}}, {0, {7}}, {1, {7, 8}}, {2, {8}}}, 7, 2},
};

START_TEST(the_network_is_the_one_that_joins_the_most_hosts)
{
    struct coll__peer peers[5] = {{.host = 0}};
    int n_hosts = -1;

    for (int r = 0; r < jobs[_i].size; r++) {
        peers[r].host = jobs[_i].ranks[r].host;
        memcpy(peers[r].fabrics, jobs[_i].ranks[r].fabrics,
               sizeof(peers[r].fabrics));
    }
    ck_assert_uint_eq(coll__rails_common(peers, jobs[_i].size, &n_hosts),
                      jobs[_i].common);
    ck_assert_int_eq(n_hosts, jobs[_i].n_hosts);
    ck_assert(!coll__rails_has(&peers[0], 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rails");
    TCase *tc = suite_case(suite, "rails", 20);

    tcase_add_checked_fixture(tc, make_device, remove_device);
    tcase_add_loop_test(tc, a_port_is_on_the_network_that_its_addresses_say, 0,
                        (int)ARRAY_LEN(ports));
    tcase_add_test(tc, an_address_that_cannot_be_seen_has_the_usual_mask);
    tcase_add_test(tc, networks_are_listed_the_fastest_first);
    tcase_add_test(tc, devices_that_are_named_are_of_one_network_of_their_kind);
    tcase_add_loop_test(tc,
                        ports_are_the_fastest_then_the_nearest_of_the_network,
                        0, (int)ARRAY_LEN(choices));
    tcase_add_test(tc, there_are_no_more_rails_than_ucx_has_use_for);
    tcase_add_test(tc, what_is_large_costs_a_share_on_each_rail);
    tcase_add_loop_test(tc, a_core_limits_what_several_interfaces_carry, 0,
                        (int)ARRAY_LEN(ways));
    tcase_add_loop_test(tc, the_network_is_the_one_that_joins_the_most_hosts, 0,
                        (int)ARRAY_LEN(jobs));
    return suite_run(suite);
}
