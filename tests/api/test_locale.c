/* SPDX-License-Identifier: BSD-3-Clause */
/* test_locale.c - a program that writes 0,5 for a half changes nothing of what
 * the library reads and says. */
#include "lib/comm/comm.h"
#include "lib/topo/carrier.h"
#include "lib/topo/gpus.h"
#include "lib/trace/trace.h"
#include "lib/util/param.h"
#include "lib/util/util.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "transports/price.h"

#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/coll-locale-XXXXXX";

/* Make a locale with a comma, and be in it; 0 where that cannot be. */
static int go_to_germany(void)
{
    char command[256];
    double half = 0.5;
    char text[16];

    if (!mkdtemp(dir))
        return 0;
    snprintf(command, sizeof(command),
             "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", dir);
    if (system(command) < 0 || setenv("LOCPATH", dir, 1) ||
        !setlocale(LC_ALL, "de_DE.UTF-8"))
        return 0;
    snprintf(text, sizeof(text), "%g", half);
    return !strcmp(text, "0,5");
}

static void clean_up(void)
{
    char command[256];

    snprintf(command, sizeof(command), "rm -rf %s", dir);
    if (system(command))
        perror(command);
}

START_TEST(variables_have_points)
{
    size_t bytes;

    setenv("COLL_TIMEOUT", "0.5", 1);
    ck_assert(!coll__param_fault(PARAM_TIMEOUT));
    ck_assert(coll__param_seconds(PARAM_TIMEOUT) == 0.5);
    ck_assert_int_eq(coll__parse_bytes("1.5K", &bytes), 0);
    ck_assert_uint_eq(bytes, 1536);
    setenv("COLL_TIMEOUT", "0,5", 1);
    ck_assert(coll__param_fault(PARAM_TIMEOUT) != NULL);
}
END_TEST

static int wait_for_nobody(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    world_hurry(comm, 0.5);
    if (!me->rank)
        EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_TIMEOUT, "within 0.5 s");
    world_meet(me);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(sentences_have_points)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork(2, wait_for_nobody, NULL, 40), 0);
}
END_TEST

/* The machine of a fixture, with caches of a size that has a fraction. */
static void write_machine(const char *to)
{
    static const char size[] = "cache_size=\"1048576\"";
    static char text[1 << 20];
    FILE *file = fopen(fixture_file("topo", "two_sockets.xml"), "r");
    size_t len;

    ck_assert(file != NULL);
    len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    for (char *at = text; (at = strstr(at, size)); at++)
        memcpy(at, "cache_size=\"1310720\"", sizeof(size) - 1);
    file = fopen(to, "w");
    ck_assert(file && fwrite(text, 1, len, file) == len && !fclose(file));
}

START_TEST(machines_have_points)
{
    char path[64], *text;

    snprintf(path, sizeof(path), "%s/machine.xml", dir);
    write_machine(path);
    setenv("COLL_TOPO_FILE", path, 1);
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, &text), COLL_OK);
    ck_assert_msg(strstr(text, "L2 (1.25 MiB)") != NULL, "%s", text);
    free(text);
}
END_TEST

static void write_file(const char *name, const char *text)
{
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && !fclose(file));
}

/* A lane of 2.5 GT/s carries 2 Gbit/s, and of that a part is payload. */
START_TEST(slots_of_cards_have_points)
{
    struct coll__gpu_place place;

    write_file("max_link_speed", "2.5 GT/s PCIe\n");
    write_file("max_link_width", "1\n");
    coll__gpu_read(dir, ".", &place);
    ck_assert_double_eq_tol(place.pcie, 2.5 / 8 * 1e9 * 0.8 * 0.85, 1e3);
}
END_TEST

START_TEST(carriers_have_points)
{
    struct coll__nic nic = {.name = "eth0", .gbits = 2.5};
    char text[64];

    coll__carrier_text(&nic, text, sizeof(text));
    ck_assert_str_eq(text, "eth0, 2.5 Gbit/s by /sys");
}
END_TEST

START_TEST(prices_have_points)
{
    struct coll__link link = {.alpha = 2.5e-6, .beta = 0.25e-9, .is_known = 1};
    char text[128];

    coll__price_note(&link, text, sizeof(text));
    ck_assert_msg(strstr(text, "takes 2.5 us and 0.25 ns a byte") != NULL, "%s",
                  text);
}
END_TEST

START_TEST(profiles_have_points)
{
    static char text[1 << 16];
    char path[64];
    FILE *file;

    snprintf(path, sizeof(path), "%s/profile", dir);
    ck_assert_int_eq(coll__profile_open(path, 0, 1), 0);
    ck_assert_int_eq(coll__profile_write(), 0);
    file = fopen(path, "r");
    ck_assert(file && fread(text, 1, sizeof(text) - 1, file) && !fclose(file));
    ck_assert_msg(strstr(text, "communication time = 0.000000") != NULL, "%s",
                  text);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *c;
    int status;

    if (!go_to_germany()) {
        puts("skipped: no localedef, or no locale de_DE to make (Debian: "
             "apt-get install locales)");
        clean_up();
        return 77;
    }
    suite = suite_create("locale");
    c = suite_case(suite, "locale", 60);
    tcase_add_test(c, variables_have_points);
    tcase_add_test(c, sentences_have_points);
    tcase_add_test(c, machines_have_points);
    tcase_add_test(c, slots_of_cards_have_points);
    tcase_add_test(c, carriers_have_points);
    tcase_add_test(c, prices_have_points);
    tcase_add_test(c, profiles_have_points);
    status = suite_run(suite);
    clean_up();
    return status;
}
