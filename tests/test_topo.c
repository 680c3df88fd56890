/* SPDX-License-Identifier: BSD-3-Clause */
/* test_topo.c - recorded machines replayed, files that are none, and ranks
 * grouped by host. */
#include "lib/topo/topo.h"
#include "lib/util/util.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_TEXT 65536

static const char *fixture(const char *name)
{
    static char path[1024];
    const char *dir = getenv("srcdir");

    snprintf(path, sizeof(path), "%s/tests/topo/%s", dir ? dir : ".", name);
    return path;
}

static size_t read_file(const char *path, char text[MAX_TEXT])
{
    FILE *file = fopen(path, "r");
    size_t len;

    ck_assert_msg(file != NULL, "no file %s", path);
    len = fread(text, 1, MAX_TEXT - 1, file);
    fclose(file);
    text[len] = '\0';
    return len;
}

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *file = fopen(path, "w");

    ck_assert(file && fwrite(text, 1, len, file) == len && !fclose(file));
}

static char *export_file(const char *path, enum coll_topo_format format)
{
    char *text = NULL;

    setenv("COLL_TOPO_FILE", path, 1);
    ck_assert_msg(!coll_topo_export(format, &text), "%s", coll_last_error());
    return text;
}

static const char *const machines[] = {"two_sockets", "four_numa"};

/* ---- recorded machines ------------------------------------------------- */

START_TEST(recorded_machine_prints_as_the_tree_beside_it)
{
    char name[64], want[MAX_TEXT], *got;

    snprintf(name, sizeof(name), "%s.txt", machines[_i]);
    read_file(fixture(name), want);
    snprintf(name, sizeof(name), "%s.xml", machines[_i]);
    got = export_file(fixture(name), COLL_TOPO_TEXT);
    ck_assert_str_eq(got, want);
    free(got);
}
END_TEST

START_TEST(exported_xml_describes_the_same_machine)
{
    char path[] = "test_topo_XXXXXX", name[64], *xml, *before, *after;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    snprintf(name, sizeof(name), "%s.xml", machines[_i]);
    before = export_file(fixture(name), COLL_TOPO_TEXT);
    xml = export_file(fixture(name), COLL_TOPO_XML);
    write_file(path, xml, strlen(xml));
    after = export_file(path, COLL_TOPO_TEXT);
    unlink(path);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
    free(xml);
}
END_TEST

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;

    while ((text = strstr(text, word))) {
        text += strlen(word);
        n++;
    }
    return n;
}

START_TEST(dot_is_a_tree_with_one_node_a_part)
{
    char *dot = export_file(fixture("two_sockets.xml"), COLL_TOPO_DOT);

    /* machine, 2 packages, numa and L3 each, 8 L2, 8 cores, 5 devices */
    ck_assert_uint_eq(count_of(dot, "[label="), 1 + 2 + 2 + 2 + 8 + 8 + 5);
    ck_assert_uint_eq(count_of(dot, " -- "), 27);
    ck_assert(!strncmp(dot, "graph machine {\n", 16));
    ck_assert_str_eq(dot + strlen(dot) - 2, "}\n");
    free(dot);
}
END_TEST

START_TEST(this_machine_has_at_least_a_core)
{
    char *text = NULL;

    unsetenv("COLL_TOPO_FILE");
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, &text), COLL_OK);
    ck_assert(!strncmp(text, "machine", 7));
    ck_assert_ptr_nonnull(strstr(text, "core "));
    free(text);
}
END_TEST

/* ---- files that are no machine ----------------------------------------- */

static void check_refused(const char *path, const char *why)
{
    char *text = (char *)"untouched";

    setenv("COLL_TOPO_FILE", path, 1);
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, &text), COLL_ERR_INVALID);
    ck_assert_str_eq(text, "untouched");
    ck_assert_ptr_nonnull(strstr(coll_last_error(), path));
    ck_assert_ptr_nonnull(strstr(coll_last_error(), why));
}

START_TEST(file_that_is_missing_or_foreign_is_named)
{
    check_refused("/nonexistent/machine.xml", "does not exist");
    check_refused("/", "is no hwloc XML file");
    check_refused("/dev/null", "is no hwloc XML file");
    check_refused(fixture("two_sockets.txt"), "is no hwloc XML file");
}
END_TEST

/* hwloc's parser gets every prefix of a file in steps of 97 bytes. */
START_TEST(truncated_file_is_refused)
{
    char path[] = "test_topo_XXXXXX", xml[MAX_TEXT];
    size_t len = read_file(fixture("two_sockets.xml"), xml);
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    for (size_t cut = 0; cut < len - 20; cut += 97) {
        write_file(path, xml, cut);
        check_refused(path, "is no hwloc XML file");
    }
    unlink(path);
}
END_TEST

/* Any byte of the file turned into any other: refused or read, and what comes
 * out is clean text. */
START_TEST(damaged_file_never_harms)
{
    char path[] = "test_topo_XXXXXX", xml[MAX_TEXT], *text;
    size_t len = read_file(fixture("two_sockets.xml"), xml);
    int fd = mkstemp(path);
    uint32_t state = 1;

    ck_assert_int_ge(fd, 0);
    close(fd);
    setenv("COLL_TOPO_FILE", path, 1);
    for (int i = 0; i < 300; i++) {
        size_t at = (state = state * 1664525 + 1013904223) % len;
        char kept = xml[at];

        xml[at] = (char)(state >> 24);
        write_file(path, xml, len);
        if (!coll_topo_export(COLL_TOPO_DOT, &text)) {
            for (const char *c = text; *c; c++)
                ck_assert(*c == '\n' || (unsigned char)*c >= ' ');
            free(text);
        }
        xml[at] = kept;
    }
    unlink(path);
}
END_TEST

START_TEST(unknown_format_and_missing_place_are_refused)
{
    char *text = NULL;

    unsetenv("COLL_TOPO_FILE");
    ck_assert_int_eq(coll_topo_export((enum coll_topo_format)9, &text),
                     COLL_ERR_INVALID);
    ck_assert_int_eq(coll_topo_export(COLL_TOPO_TEXT, NULL), COLL_ERR_INVALID);
    ck_assert_ptr_null(text);
}
END_TEST

/* ---- this process ------------------------------------------------------ */

START_TEST(processes_of_one_host_agree_on_its_id)
{
    struct coll__peer parent, child;
    int pipes[2], status;
    pid_t pid;

    ck_assert_int_eq(pipe(pipes), 0);
    coll__topo_self(&parent);
    pid = fork();
    if (pid == 0) {
        coll__topo_self(&child);
        status = write(pipes[1], &child, sizeof(child)) != sizeof(child);
        _exit(status);
    }
    ck_assert_int_eq((int)read(pipes[0], &child, sizeof(child)),
                     (int)sizeof(child));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_str_eq(parent.host_id, child.host_id);
    ck_assert_uint_eq(parent.pid_ns, child.pid_ns);
    ck_assert_int_eq(parent.pid, getpid());
    ck_assert_int_eq(child.pid, pid);
    ck_assert(strchr(parent.host_id, '/') && parent.host_id[0] != '/');
}
END_TEST

START_TEST(cores_are_those_that_affinity_allows)
{
    struct coll__peer self;
    cpu_set_t all, one;
    uint32_t cpuset;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    coll__topo_self(&self);
    ck_assert_int_eq(self.n_cores, CPU_COUNT(&all));
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    cpuset = self.cpuset;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    coll__topo_self(&self);
    ck_assert_int_eq(self.n_cores, 1);
    ck_assert_int_eq(self.cpuset == cpuset, CPU_COUNT(&all) == 1);
}
END_TEST

/* ---- groups ------------------------------------------------------------ */

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

static TCase *file_cases(void)
{
    TCase *cases = tcase_create("files");

    tcase_add_loop_test(cases, recorded_machine_prints_as_the_tree_beside_it, 0,
                        (int)ARRAY_LEN(machines));
    tcase_add_loop_test(cases, exported_xml_describes_the_same_machine, 0,
                        (int)ARRAY_LEN(machines));
    tcase_add_test(cases, dot_is_a_tree_with_one_node_a_part);
    tcase_add_test(cases, this_machine_has_at_least_a_core);
    tcase_add_test(cases, file_that_is_missing_or_foreign_is_named);
    tcase_add_test(cases, truncated_file_is_refused);
    tcase_add_test(cases, damaged_file_never_harms);
    tcase_add_test(cases, unknown_format_and_missing_place_are_refused);
    tcase_set_timeout(cases, 60);
    return cases;
}

static TCase *rank_cases(void)
{
    TCase *cases = tcase_create("ranks");

    tcase_add_test(cases, processes_of_one_host_agree_on_its_id);
    tcase_add_test(cases, cores_are_those_that_affinity_allows);
    tcase_add_test(cases, hosts_are_numbered_by_their_lowest_rank);
    tcase_add_test(cases, one_host_and_all_hosts_are_ordinary);
    tcase_add_test(cases, cores_of_a_host_are_counted_once_a_set);
    tcase_add_test(cases, longest_ids_are_told_apart);
    tcase_add_loop_test(cases, random_placements_agree_with_the_definition, 1,
                        65);
    return cases;
}

int main(void)
{
    Suite *suite = suite_create("topo");
    SRunner *runner;
    int n_failed;

    suite_add_tcase(suite, file_cases());
    suite_add_tcase(suite, rank_cases());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed != 0;
}
