/* SPDX-License-Identifier: BSD-3-Clause */
/* test_carrier.c - what the machine says of its links: speeds of cards by what
 * verbs and /sys tell, which card carries a job, how far it is inside a host.
 */
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "lib/topo/carrier.h"
#include "lib/topo/machine.h"
#include "lib/util/util.h"
#include "transports/ucx_price.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void is_about(const char *what, double a, double b)
{
    ck_assert_msg(fabs(a - b) <= 1e-3 * fabs(b), "%s is %g, not %g", what, a,
                  b);
}

#define near_to(a, b) is_about(#a, a, b)

/* ---- a folder like /sys -------------------------------------------------- */

static char root[] = "/tmp/coll-carrier-XXXXXX";

static void make_root(void) { folder_make(root); }

static void remove_root(void) { folder_remove(root); }

/* Put text into root/PATH; a path that ends in '/' is a folder. */
static void put(const char *path, const char *text)
{
    char full[256];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *c = full + strlen(root) + 1; (c = strchr(c, '/')); c++) {
        *c = '\0';
        mkdir(full, 0700);
        *c = '/';
    }
    if (full[strlen(full) - 1] == '/')
        return;
    file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static const char *in_root(const char *path)
{
    static char full[2][256];
    static int i;

    i = !i;
    snprintf(full[i], sizeof(full[i]), "%s/%s", root, path);
    return full[i];
}

/* ---- speeds -------------------------------------------------------------- */

/* What ibv_query_port() of recorded cards says: active_speed, active_width. */
static const struct {
    unsigned speed, width;
    int is_ethernet;
    double gbits;
} ports[] = {{1, 2, 0, 8},       {4, 2, 0, 32},     {16, 2, 0, 54.56},
             {32, 2, 0, 100},    {64, 2, 0, 200},   {64, 16, 0, 100},
             {128, 2, 0, 400},   {128, 1, 0, 100},  {256, 2, 0, 800},
             {4, 1, 1, 10},      {4, 2, 1, 40},     {32, 1, 1, 25},
             {64, 2, 1, 200},    {0, 2, 0, 0},      {64, 0, 0, 0},
             {1 << 12, 2, 0, 0}, {64, 1 << 9, 0, 0}};

START_TEST(a_ports_speed_is_its_data_rate)
{
    near_to(coll__verbs_gbits(ports[_i].speed, ports[_i].width,
                              ports[_i].is_ethernet),
            ports[_i].gbits);
}
END_TEST

static void make_interfaces(void)
{
    static const char *const names[] = {"eth0",  "eth1", "old", "veth",
                                        "bond0", "vlan", "br0", "deep"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[64];

        snprintf(path, sizeof(path), "net/%s/type", names[i]);
        put(path, "1\n");
        snprintf(path, sizeof(path), "net/%s/operstate", names[i]);
        put(path, "up\n");
    }
    put("net/lo/type", "772\n");
    put("net/eth0/speed", "200000\n");
    put("net/eth0/device/numa_node", "1\n");
    put("net/eth1/speed", "-1\n");
    put("net/eth1/device/", "");
    put("net/old/speed", "4294967295\n");
    put("net/old/device/", "");
    put("net/veth/speed", "10000\n");
    put("net/bond0/speed", "50000\n");
    put("net/bond0/bonding/mode", "802.3ad 4\n");
    put("net/vlan/speed", "10000\n");
    put("net/vlan/lower_eth0/", "");
    put("net/deep/lower_vlan/", "");
    put("net/br0/lower_eth0/", "");
    put("net/br0/lower_veth/", "");
}

START_TEST(an_interface_has_the_speed_of_its_cards)
{
    const char *net;

    make_interfaces();
    net = in_root("net");
    near_to(coll__net_gbits(net, "eth0"), 200);
    near_to(coll__net_gbits(net, "bond0"), 50);
    near_to(coll__net_gbits(net, "vlan"), 200);
    near_to(coll__net_gbits(net, "deep"), 200);
    ck_assert(coll__net_gbits(net, "eth1") <= 0);
    ck_assert(coll__net_gbits(net, "old") <= 0);
    ck_assert(coll__net_gbits(net, "veth") <= 0); /* nobody's cable */
    ck_assert(coll__net_gbits(net, "br0") <= 0);
    ck_assert(coll__net_gbits(net, "missing") <= 0);
}
END_TEST

START_TEST(interfaces_are_listed_without_the_loopback)
{
    struct coll__part machine = {.kind = PART_MACHINE, .index = -1};
    struct coll__topo topo = {.machine = &machine};
    int n = 0;

    make_interfaces();
    ck_assert_int_eq(coll__net_load_from(&topo, in_root("net")), COLL_OK);
    for (struct coll__part *p = machine.first; p; p = p->next, n++) {
        ck_assert_str_ne(p->nic.name, "lo");
        if (!strcmp(p->nic.name, "eth0"))
            ck_assert_int_eq(p->nic.numa_node, 1);
    }
    ck_assert_int_eq(n, 8);
    coll__part_free(machine.first);
}
END_TEST

START_TEST(an_interface_hangs_below_the_switch_of_its_card)
{
    struct coll__topo topo = {NULL, NULL};
    struct coll__part *gpu;
    char names[64];

    ck_assert_int_eq(
        coll__hwloc_load(&topo, fixture_file("topo", "gpus_pcie.xml")),
        COLL_OK);
    put("net/eth7/type", "1\n");
    put("net/eth7/operstate", "up\n");
    ck_assert_int_eq(
        symlink("../../../0000:33:00.0", in_root("net/eth7/device")), 0);
    ck_assert_int_eq(coll__net_load_from(&topo, in_root("net")), COLL_OK);
    gpu = coll__part_gpu(topo.machine, "0000:34:00.0");
    ck_assert_ptr_nonnull(gpu);
    /* its switch has an interface now, but those of RDMA are nearest for messages */
    coll__part_near(topo.machine, gpu, names, sizeof(names));
    ck_assert_str_eq(names, "mlx5_0");
    ck_assert_ptr_nonnull(gpu->next);
    ck_assert_str_eq(gpu->next->nic.name, "eth7");
    ck_assert_str_eq(gpu->next->nic.bus, "0000:33:00.0");
    coll__part_free(topo.machine);
    coll__hwloc_free(topo.hwloc);
}
END_TEST

START_TEST(the_default_route_names_an_interface)
{
    char name[32];

    put("route", "Iface\tDestination\tGateway\n"
                 "eth1\t0000FEA9\t00000000\neth0\t00000000\t0100000A\n");
    put("none", "Iface\tDestination\tGateway\neth1\t0000FEA9\t00000000\n");
    coll__carrier_route_in(in_root("route"), name, sizeof(name));
    ck_assert_str_eq(name, "eth0");
    coll__carrier_route_in(in_root("none"), name, sizeof(name));
    ck_assert_str_eq(name, "");
    coll__carrier_route_in(in_root("missing"), name, sizeof(name));
    ck_assert_str_eq(name, "");
}
END_TEST

/* ---- which card ---------------------------------------------------------- */

static const struct coll__nic cards[] = {
    {"mlx5_0", "active", 1, 1, 0, 200, "", ""},
    {"mlx5_0", "down", 2, 1, 0, 0, "", ""},
    {"mlx5_1", "active", 1, 1, 1, 200, "", ""},
    {"mlx5_2", "active", 1, 1, 1, 25, "", ""},
    {"eth0", "up", 0, 0, 0, 25, "", ""},
    {"eth1", "up", 0, 0, 1, 100, "", ""},
    {"eth2", "down", 0, 0, 1, 400, "", ""}};

static const struct {
    const char *devices, *interface;
    int may_rdma, numa_node;
    const char *name;
    int port;
} wishes[] = {
    {NULL, "", 1, -1, "mlx5_0", 1},    {"all", "eth0", 1, 0, "mlx5_0", 1},
    {NULL, "", 1, 1, "mlx5_1", 1},     {"mlx5_2:1", "", 1, 0, "mlx5_2", 1},
    {"mlx5_2", "", 1, 0, "mlx5_2", 1}, {NULL, "", 0, 0, "eth1", 0},
    {NULL, "eth0", 0, 0, "eth0", 0},   {"eth0,eth1", "", 1, 0, "eth1", 0},
    {"mlx5_0:2", "", 1, 0, NULL, 0},   {"eth2", "", 1, 0, NULL, 0},
    {"eth", "", 1, 0, NULL, 0}};

START_TEST(the_card_is_the_one_that_ucx_would_take)
{
    struct coll__carrier_wish wish = {wishes[_i].devices, wishes[_i].interface,
                                      wishes[_i].may_rdma,
                                      wishes[_i].numa_node};
    enum coll__wire wire;
    const struct coll__nic *nic =
        coll__carrier_guess(cards, (int)ARRAY_LEN(cards), &wish, &wire);

    if (!wishes[_i].name) {
        ck_assert_ptr_null(nic);
        return;
    }
    ck_assert_ptr_nonnull(nic);
    ck_assert_str_eq(nic->name, wishes[_i].name);
    ck_assert_int_eq(nic->port, wishes[_i].port);
    ck_assert_int_eq(wire == WIRE_RDMA, nic->is_rdma);
}
END_TEST

START_TEST(a_card_is_found_by_the_name_that_ucx_gives_it)
{
    int n = (int)ARRAY_LEN(cards);

    ck_assert_ptr_eq(coll__carrier_named(cards, n, "mlx5_1:1"), &cards[2]);
    ck_assert_ptr_eq(coll__carrier_named(cards, n, "mlx5_0:2"), &cards[1]);
    ck_assert_ptr_eq(coll__carrier_named(cards, n, "eth1"), &cards[5]);
    ck_assert_ptr_null(coll__carrier_named(cards, n, "eth10"));
    ck_assert_ptr_null(coll__carrier_named(cards, n, "mlx5_1:2"));
}
END_TEST

/* As UCX 1.13 and 1.18 print an endpoint. */
static const struct {
    const char *text, *device;
    int is_rdma;
} lanes[] = {
    {"#\n# UCP endpoint \n#\n#               peer: <no debug data>\n"
     "#                 lane[0]:  2:tcp/wire.0 md[1]              -> "
     "md[1]/tcp/sysdev[255] am am_bw#0 keepalive wireup\n#\n",
     "wire", 0},
    {"#                 lane[0]:  0:self/memory0.0 md[0]\n"
     "#                 lane[1]: 12:rc_mlx5/mlx5_0:1.0 md[4] -> addr[0] am\n"
     "#                 lane[2]: 13:rc_mlx5/mlx5_1:1.0 md[5] -> rma_bw\n",
     "mlx5_0:1", 1},
    {"#                 lane[0]:  5:tcp/eth0.100.1 md[1] -> am\n", "eth0.100",
     0},
    {"#                 lane[0]:  7:ud_verbs/rxe0:1.0 md[2] -> am\n", "rxe0:1",
     1},
    {"#                 lane[0]:  3:posix/memory.0 md[2] -> am\n", NULL, 0},
    {"", NULL, 0},
    {"lane[\nlane[0]: x\nlane[0]: 1:tcp\nlane[0]: 1:/\n", NULL, 0}};

START_TEST(the_device_of_an_endpoint_is_read_from_its_lanes)
{
    char device[32] = "untouched";
    int is_rdma = -1, found;

    found = coll__ucx_lane(lanes[_i].text, device, &is_rdma);
    ck_assert_int_eq(found, lanes[_i].device != NULL);
    if (!found)
        return;
    ck_assert_str_eq(device, lanes[_i].device);
    ck_assert_int_eq(is_rdma, lanes[_i].is_rdma);
}
END_TEST

START_TEST(a_message_costs_what_its_card_can_do)
{
    struct coll__rate fast = coll__carrier_rate(&cards[0], WIRE_RDMA);
    struct coll__rate slow = coll__carrier_rate(&cards[4], WIRE_TCP);
    struct coll__rate wide = coll__carrier_rate(&cards[5], WIRE_TCP);
    struct coll__rate none = coll__carrier_rate(NULL, WIRE_TCP);
    struct coll__rate down = coll__carrier_rate(&cards[1], WIRE_RDMA);

    ck_assert(fast.is_known && slow.is_known && wide.is_known);
    ck_assert(!none.is_known && !down.is_known);
    ck_assert(fast.alpha < slow.alpha && fast.beta < slow.beta);
    near_to(fast.beta, 8 / (200e9 * 0.97));
    near_to(slow.share, 8 / (25e9 * 0.94));
    ck_assert(slow.beta >= slow.share);
    ck_assert(wide.beta > 2 * wide.share); /* one connection alone */
    ck_assert(down.beta > fast.beta && down.alpha <= fast.alpha);
}
END_TEST

/* ---- inside a host ------------------------------------------------------- */

static void put_node(int node, const char *cpus, const char *distances)
{
    char path[64];

    snprintf(path, sizeof(path), "node/node%d/cpulist", node);
    put(path, cpus);
    snprintf(path, sizeof(path), "node/node%d/distance", node);
    put(path, distances);
}

static struct coll__inside read_inside(void)
{
    struct coll__inside inside = {9, 9};

    for (int cpu = 0; cpu < 16; cpu++) {
        char path[64];

        snprintf(path, sizeof(path), "cpu/cpu%d/topology/physical_package_id",
                 cpu);
        put(path, cpu < 8 ? "0\n" : "1\n");
    }
    coll__inside_read(in_root("node"), in_root("cpu"), &inside);
    return inside;
}

START_TEST(distances_are_those_of_the_firmware)
{
    struct coll__inside inside;

    put_node(0, "0-3\n", "10 12 32 32\n");
    put_node(1, "4-7\n", "12 10 32 34\n");
    put_node(2, "8-11\n", "32 32 10 11\n");
    put_node(10, "12-15\n", "32 34 11 10\n");
    inside = read_inside();
    near_to(inside.numa, 1.2);
    near_to(inside.package, 3.4);
}
END_TEST

START_TEST(memory_without_processors_is_no_place_for_a_rank)
{
    struct coll__inside inside;

    put_node(0, "0-7\n", "10 21 14\n");
    put_node(1, "8-15\n", "21 10 24\n");
    put_node(2, "\n", "14 24 10\n");
    inside = read_inside();
    ck_assert(inside.numa <= 0);
    near_to(inside.package, 2.1);
}
END_TEST

START_TEST(a_host_of_one_node_or_of_none_says_nothing)
{
    struct coll__inside inside = read_inside();

    ck_assert(inside.numa <= 0 && inside.package <= 0);
    put_node(0, "0-15\n", "10\n");
    inside = read_inside();
    ck_assert(inside.numa <= 0 && inside.package <= 0);
    put_node(0, "0-7\n", "nonsense\n");
    put_node(1, "8-15\n", "21\n");
    inside = read_inside();
    ck_assert(inside.numa <= 0 && inside.package <= 0);
}
END_TEST

#define MATRIX                                                                 \
    "<distances2 type=\"NUMANode\" nbobjs=\"4\" kind=\"5\" indexing=\"os\" "   \
    "name=\"NUMALatency\">"                                                    \
    "<indexes length=\"8\">0 1 2 3 </indexes>"                                 \
    "<u64values length=\"48\">10 15 28 28 15 10 28 28 28 28 10 15 28 28 "      \
    "15 10 </u64values></distances2>"

START_TEST(a_file_in_place_of_the_host_gives_its_distances)
{
    static char xml[65536];
    const char *path = fixture_file("topo", "four_numa.xml");
    struct coll__inside inside;
    size_t len;
    char *end;
    FILE *file = fopen(path, "r");

    ck_assert_ptr_nonnull(file);
    len = fread(xml, 1, sizeof(xml) - sizeof(MATRIX) - 1, file);
    fclose(file);
    xml[len] = '\0';
    setenv("COLL_TOPO_FILE", path, 1);
    coll__inside_load(&inside);
    ck_assert(inside.numa <= 0 && inside.package <= 0);
    end = strstr(xml, "</topology>");
    ck_assert_ptr_nonnull(end);
    memcpy(end, MATRIX "</topology>", sizeof(MATRIX "</topology>"));
    put("machine.xml", xml);
    setenv("COLL_TOPO_FILE", in_root("machine.xml"), 1);
    coll__inside_load(&inside);
    ck_assert(inside.numa > 1 || inside.package > 1);
    near_to(max_double(inside.numa, inside.package), 2.8);
}
END_TEST

START_TEST(the_farther_the_dearer)
{
    static const struct coll__inside hosts[] = {
        {0, 0}, {1.2, 3.2}, {1.2, 2.1}, {0, 1.1}, {3, 2}};
    struct coll__farther before = {0, 1, 0};

    for (size_t h = 0; h < ARRAY_LEN(hosts); h++)
        for (int l = LEAVES_NONE; l < COLL__N_LEAVES; l++) {
            struct coll__farther here =
                coll__inside_price(&hosts[h], (enum coll__leaves)l);

            ck_assert(l || (here.alpha <= 0 && here.share <= 0));
            ck_assert(l || (here.copy >= 1 && here.copy <= 1));
            ck_assert(!l || here.alpha > 0);
            ck_assert(!l || (here.alpha >= before.alpha &&
                             here.copy >= before.copy && here.share > 0));
            before = here;
        }
}
END_TEST

/* ---- all ----------------------------------------------------------------- */

static TCase *card_cases(void)
{
    TCase *tc = tcase_create("cards");

    tcase_add_checked_fixture(tc, make_root, remove_root);
    tcase_add_loop_test(tc, a_ports_speed_is_its_data_rate, 0,
                        (int)ARRAY_LEN(ports));
    tcase_add_test(tc, an_interface_has_the_speed_of_its_cards);
    tcase_add_test(tc, interfaces_are_listed_without_the_loopback);
    tcase_add_test(tc, an_interface_hangs_below_the_switch_of_its_card);
    tcase_add_test(tc, the_default_route_names_an_interface);
    tcase_add_loop_test(tc, the_card_is_the_one_that_ucx_would_take, 0,
                        (int)ARRAY_LEN(wishes));
    tcase_add_test(tc, a_card_is_found_by_the_name_that_ucx_gives_it);
    tcase_add_loop_test(tc, the_device_of_an_endpoint_is_read_from_its_lanes, 0,
                        (int)ARRAY_LEN(lanes));
    tcase_add_test(tc, a_message_costs_what_its_card_can_do);
    return tc;
}

static TCase *inside_cases(void)
{
    TCase *tc = tcase_create("inside");

    tcase_add_checked_fixture(tc, make_root, remove_root);
    tcase_add_test(tc, distances_are_those_of_the_firmware);
    tcase_add_test(tc, memory_without_processors_is_no_place_for_a_rank);
    tcase_add_test(tc, a_host_of_one_node_or_of_none_says_nothing);
    tcase_add_test(tc, a_file_in_place_of_the_host_gives_its_distances);
    tcase_add_test(tc, the_farther_the_dearer);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("carrier");

    suite_add_tcase(suite, card_cases());
    suite_add_tcase(suite, inside_cases());
    return suite_run(suite);
}
