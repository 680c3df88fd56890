/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hosts.c - ranks grouped by host. */
#include "lib/topo/topo.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* Place ranks by the letters of a word, a host a letter. */
static int group(const char *word, struct coll__peer *peers)
{
    int size = (int)strlen(word);

    memset(peers, 0x7f, (size_t)size * sizeof(*peers));
    for (int r = 0; r < size; r++)
        snprintf(peers[r].host_id, sizeof(peers[r].host_id), "boot/%c",
                 word[r]);
    return coll__topo_group(peers, size);
}

START_TEST(hosts_are_numbered_by_their_lowest_rank)
{
    static const int hosts[] = {0, 1, 0, 2, 1, 0, 2};
    static const int ranks[] = {0, 0, 1, 0, 1, 2, 1};
    static const int sizes[] = {3, 2, 3, 2, 2, 3, 2};
    struct coll__peer peers[7];

    ck_assert_int_eq(group("zazmazm", peers), 3);
    for (int r = 0; r < 7; r++) {
        ck_assert_int_eq(peers[r].host, hosts[r]);
        ck_assert_int_eq(peers[r].local_rank, ranks[r]);
        ck_assert_int_eq(peers[r].local_size, sizes[r]);
    }
}
END_TEST

START_TEST(one_host_and_all_hosts_are_ordinary)
{
    struct coll__peer peers[5];

    ck_assert_int_eq(group("q", peers), 1);
    ck_assert_int_eq(peers[0].local_size, 1);
    ck_assert_int_eq(group("qqqqq", peers), 1);
    ck_assert_int_eq(peers[4].local_rank, 4);
    ck_assert_int_eq(group("edcba", peers), 5);
    for (int r = 0; r < 5; r++) {
        ck_assert_int_eq(peers[r].host, r);
        ck_assert_int_eq(peers[r].local_rank, 0);
        ck_assert_int_eq(peers[r].local_size, 1);
    }
}
END_TEST

/* Bound ranks have a core each, unbound ones share all; a host apart. */
START_TEST(cores_of_a_host_are_counted_once_a_set)
{
    static const int n_cores[] = {1, 2, 1, 4, 2, 4};
    struct coll__peer peers[6];
    char ids[] = "aabaab";

    memset(peers, 0, sizeof(peers));
    for (int r = 0; r < 6; r++) {
        peers[r].host_id[0] = ids[r];
        peers[r].n_cores = n_cores[r];
        peers[r].cpuset = 100 + (uint32_t)n_cores[r];
    }
    ck_assert_int_eq(coll__topo_group(peers, 6), 2);
    for (int r = 0; r < 6; r++)
        ck_assert_int_eq(peers[r].local_cores, ids[r] == 'a' ? 7 : 5);
}
END_TEST

/* Four ranks in two containers of a machine that has two cores for all; one bound to
 * a third core; and another machine's. */
START_TEST(containers_of_a_machine_share_its_cores)
{
    static const char *const ids[] = {"m/1",  "m/2", "m/2",
                                      "mm/1", "m/1", "m/3"};
    struct coll__peer peers[6];

    memset(peers, 0, sizeof(peers));
    for (int r = 0; r < 6; r++) {
        memcpy(peers[r].host_id, ids[r], strlen(ids[r]));
        peers[r].n_cores = r < 5 ? 2 : 1;
        peers[r].cpuset = r < 5 ? 7 : 8;
    }
    ck_assert_int_eq(coll__topo_group(peers, 6), 4);
    for (int r = 0; r < 6; r++) {
        ck_assert_int_eq(peers[r].n_sharers, r == 3 ? 1 : 5);
        ck_assert_int_eq(peers[r].local_cores, r == 3 ? 2 : 3);
    }
    ck_assert_int_eq(peers[0].local_size, 2);
}
END_TEST

/* Each container's control group is "/" to it, with a quota of its own. */
START_TEST(containers_have_quotas_of_their_own)
{
    struct coll__peer peers[4];

    memset(peers, 0, sizeof(peers));
    for (int r = 0; r < 4; r++) {
        memcpy(peers[r].host_id, r % 2 ? "m/1" : "m/2", 3);
        peers[r].n_cores = 8;
        peers[r].cpuset = 7;
        peers[r].quota = 2;
        peers[r].quota_group = 1;
    }
    ck_assert_int_eq(coll__topo_group(peers, 4), 2);
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(peers[r].local_cores, 4);
}
END_TEST

/* An id may fill its field to the last byte. */
START_TEST(longest_ids_are_told_apart)
{
    struct coll__peer peers[3];

    memset(peers, 0, sizeof(peers));
    for (int r = 0; r < 3; r++)
        memset(peers[r].host_id, 'x', sizeof(peers[r].host_id));
    peers[1].host_id[sizeof(peers[1].host_id) - 1] = 'y';
    ck_assert_int_eq(coll__topo_group(peers, 3), 2);
    ck_assert_int_eq(peers[2].host, 0);
    ck_assert_int_eq(peers[1].host, 1);
}
END_TEST

/* _i: the number of ranks; against the definition, rank by rank. */
START_TEST(random_placements_agree_with_the_definition)
{
    struct coll__peer peers[64];
    char word[65] = "";
    uint32_t state = (uint32_t)_i;
    int n_hosts = 0, n;

    for (int r = 0; r < _i; r++)
        word[r] = (char)('a' + ((state = state * 1664525 + 1013904223) >> 16) %
                                   (1 + (uint32_t)_i / 2));
    n = group(word, peers);
    for (int r = 0; r < _i; r++) {
        int before = 0, all = 0, first = (int)(strchr(word, word[r]) - word);

        for (int s = 0; s < _i; s++) {
            all += word[s] == word[r];
            before += word[s] == word[r] && s < r;
        }
        n_hosts += first == r;
        ck_assert_int_eq(peers[r].host,
                         first == r ? n_hosts - 1 : peers[first].host);
        ck_assert_int_eq(peers[r].local_rank, before);
        ck_assert_int_eq(peers[r].local_size, all);
    }
    ck_assert_int_eq(n, n_hosts);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hosts");
    TCase *cases = tcase_create("hosts");

    tcase_add_test(cases, hosts_are_numbered_by_their_lowest_rank);
    tcase_add_test(cases, one_host_and_all_hosts_are_ordinary);
    tcase_add_test(cases, cores_of_a_host_are_counted_once_a_set);
    tcase_add_test(cases, containers_of_a_machine_share_its_cores);
    tcase_add_test(cases, containers_have_quotas_of_their_own);
    tcase_add_test(cases, longest_ids_are_told_apart);
    tcase_add_loop_test(cases, random_placements_agree_with_the_definition, 1,
                        65);
    suite_add_tcase(suite, cases);
    return suite_run(suite);
}
