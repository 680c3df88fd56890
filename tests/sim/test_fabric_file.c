/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fabric_file.c - topology files that are wrong, or become so. */
#include "tests/sim/fabric_fixture.h"
#include "tests/support/suite.h"
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define HOST                                                                   \
    "host n\n socket s\n seat c in s port 1GB/s\n nic e in s speed 1Gb/s\n"     \
    "end\n"

static const struct {
    const char *text, *says;
} wrong[] = {
    {"", "no hosts"},
    {"host n\n seat c port 25GBs\nend\n",
     ":2: port '25GBs' is not a number with a unit such as 25GB/s"},
    {"host n\n numa a\n seat c in a port 1GB/s port_latency 5\nend\n",
     ":3: port_latency '5' is not a time such as 1.5us"},
    {"host n\n seat c prot 1GB/s\nend\n", ":2: no field is called 'prot' here; "
                                          "did you mean 'port'?"},
    {"host n\n seat c port\nend\n", ":2: 'port' has no value"},
    {"host n\n seat c\nend\n", ":2: 'c' has no 'port'"},
    {"host n\n seat c in b port 1GB/s\nend\n", ":2: no part is called 'b'"},
    {"host n\n seat c port 1GB/s\n seat c port 1GB/s\nend\n",
     ":3: two parts are called 'c'"},
    {"host n\n seat 4096 port 1GB/s\nend\n", "no hosts"},
    {"host n\n seat c 99999 port 1GB/s\nend\n",
     ":2: the number of parts '99999'"},
    {"host n\n seat c port 1GB/s\n", "no 'end' to what line 1 began"},
    {"host n\nend\n", "has no seat"},
    {"host n\n sock c\nend\n", ":2: 'sock' is none of cache"},
    {"host n\n numa a\n socket b in a\n seat c port 1GB/s\nend\n",
     ":3: 'b' in 'a'"},
    {"host n\n seat c 2 port 1GB/s\nend\nhosts 1 n\n", "no path from 'c1'"},
    {"host n\n seat c port 1GB/s\n link c c bandwidth 1GB/s\n pair c c "
     "bandwidth 1GB/s\nend\n",
     ":4: a link from a part to itself"},
    {HOST "hosts 2 n\n", "no network between them"},
    {HOST "hosts 2 m\n", ":6: no host is called 'm'"},
    {HOST "hosts 2000000 n\n", ":6: the number of hosts '2000000'"},
    {HOST "hosts 1048576 n\nhosts 1048576 n\n", "describe fewer hosts"},
    {HOST "hosts 2 n\nnetwork star\n", ":7: network 'star' is none of"},
    {HOST "hosts 2 n\nnetwork fat_tree down 1 latency 1us\n",
     ":7: 'bandwidth' is missing"},
    {HOST "hosts 2 n\nnetwork fat_tree down 1,1 bandwidth 1Gb/s\n",
     ":7: 2 levels 'down' and 0 'up'"},
    {HOST "hosts 9 n\nnetwork fat_tree down 2,4 up 1 bandwidth 1Gb/s\n",
     "8 ports for network cards, the hosts need 9"},
    {HOST "hosts 9 n\nnetwork fat_tree ports 5 levels 2 bandwidth 1Gb/s\n",
     ":7: 5 ports"},
    {HOST "hosts 9 n\nnetwork torus x 2 y 2 z 2 bandwidth 1Gb/s\n",
     "8 places, there are 9 hosts"},
    {HOST "hosts 9 n\nnetwork torus x 200 bandwidth 1Gb/s\n", "100 hops"},
    {HOST "hosts 9 n\nnetwork dragonfly groups 5 routers 1 hosts 2 global 2 "
          "bandwidth 1Gb/s\n",
     "2 global cables of a group do not reach the 4 other groups"},
    {HOST "hosts 2 n\nnetwork links\n switch s 2\n attach 0-1 s0\n attach 1 "
          "s1\nend\n",
     "no path between the switches 's0' and 's1'"},
    {HOST "hosts 2 n\nnetwork links\n switch s\n attach 0 s\nend\n",
     "network card 1, counted over all hosts, is attached to no switch"},
    {HOST "hosts 2 n\nnetwork links\n switch s\n attach x s\nend\n",
     ":9: hosts 'x' are no number or range"},
    {HOST "hosts 2 n\nnetwork links\n switch s\n attach 16777216-16777217 "
          "s\nend\n",
     ":9: hosts '16777216-16777217' are no number or range"},
    {HOST "hosts 2 n\nnetwork links\n switch s\n attach -16777216 s\nend\n",
     ":9: hosts '-16777216' are no number or range"},
    {HOST "hosts 2 n\nnetwork links\n switch s\n attach 0- s\nend\n",
     ":9: hosts '0-' are no number or range"},
    {"host n\n socket s\n seat c in s port 1GB/s\n"
     " nic e in s speed 1Gb/s state down\nend\n"
     "hosts 2 n\nnetwork switch\n",
     "'c' reaches no active network card"},
    {HOST "hosts 1 n\nnetwork switch latency 1e9s\n", ":7: latency '1e9s'"},
    {"software gamma 0GB/s\n", ":1: gamma '0GB/s'"},
};

START_TEST(a_wrong_file_is_named_with_its_line_and_the_remedy)
{
    struct coll__fabric *fabric =
        load_text(wrong[_i].text, strlen(wrong[_i].text));

    ck_assert_ptr_null(fabric);
    ck_assert_msg(strstr(coll_last_error(), wrong[_i].says) != NULL,
                  "'%s' does not say '%s'", coll_last_error(), wrong[_i].says);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    struct coll__fabric *fabric = NULL;

    ck_assert(coll__fabric_load("/nonexistent.topo", &fabric));
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "/nonexistent.topo"));
    ck_assert(coll__fabric_load("/", &fabric));
    ck_assert(coll__fabric_load("/nonexistent.xml", &fabric));
    ck_assert_ptr_null(fabric);
}
END_TEST

/* Change a few bytes: any of them, a digit, a copied or missing piece. */
static size_t mutate(char *text, size_t len, unsigned *seed)
{
    unsigned n = 1 + next_random(seed) % 4;

    for (unsigned i = 0; i < n && len > 8; i++) {
        size_t at = next_random(seed) % (len - 8), size;

        switch (next_random(seed) % 4) {
        case 0:
            text[at] = (char)next_random(seed);
            break;
        case 1:
            at += strcspn(text + at, "0123456789");
            if (at < len)
                text[at] = (char)('0' + next_random(seed) % 10);
            break;
        case 2:
            size = 1 + next_random(seed) % 7;
            memmove(text + at, text + at + size, len - at - size + 1);
            len -= size;
            break;
        default:
            size = 1 + next_random(seed) % 40;
            size = size < len - at ? size : len - at;
            memmove(text + at + size, text + at, len - at + 1);
            len += size;
        }
    }
    return len;
}

/* Whatever loads can be used. */
static void use(const struct coll__fabric *fabric, unsigned seed)
{
    int n = coll__fabric_n_seats(fabric), seat[33], ring[33];
    char name[COLL__LINK_NAME];
    struct coll__fabric_levels levels;

    for (int i = 0; i < 20; i++)
        check_route(fabric, (int)(next_random(&seed) % (unsigned)n),
                    (int)(next_random(&seed) % (unsigned)n));
    for (int i = 0; i < 20; i++)
        coll__fabric_link_name(
            fabric,
            (int)(next_random(&seed) % (unsigned)coll__fabric_n_links(fabric)),
            name);
    n = n < 33 ? n : 33;
    ck_assert(!coll__fabric_seats(fabric, n, PLACE_CYCLIC, seat));
    ck_assert(!coll__fabric_ring(fabric, n, seat, ring));
    ck_assert(!coll__fabric_levels_init(fabric, n, seat, &levels));
    coll__fabric_levels_fini(&levels);
}

/* _i: a fixture that is text. */
START_TEST(mutilated_files_are_read_or_refused)
{
    static char original[MAX_TEXT], text[MAX_TEXT];
    size_t len = read_file(fixtures[_i], original);
    unsigned n = getenv("TEST_QUICK") ? 60 : 400, n_read = 0;

    for (unsigned seed = 1; seed <= n; seed++) {
        unsigned state = seed;
        struct coll__fabric *fabric;
        size_t changed;

        memcpy(text, original, len + 1);
        changed = mutate(text, len, &state);
        fabric = load_text(text, changed);
        if (fabric)
            use(fabric, seed);
        n_read += fabric != NULL;
        coll__fabric_destroy(fabric);
    }
    ck_assert_uint_gt(n_read, 0);
    ck_assert_uint_lt(n_read, n);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("fabric files");
    TCase *plain = suite_case(suite, "wrong", 20);
    TCase *fuzz = suite_case(suite, "fuzz", 120);

    tcase_add_loop_test(plain,
                        a_wrong_file_is_named_with_its_line_and_the_remedy, 0,
                        (int)ARRAY_LEN(wrong));
    tcase_add_test(plain, a_file_that_is_not_there_is_named);
    tcase_add_loop_test(fuzz, mutilated_files_are_read_or_refused, 0,
                        N_TEXT_FIXTURES);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
