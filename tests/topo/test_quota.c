/* SPDX-License-Identifier: BSD-3-Clause */
/* test_quota.c - limits of the processors' time, from recorded /proc and /sys, and
 * what they make of the cores of a host's ranks.
 */
#include "lib/topo/machine.h"
#include "lib/topo/quota.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FS "/sys/fs/cgroup"
#define V2 "31 23 0:28 / " FS " rw,relatime - cgroup2 cgroup2 rw\n"
#define V1_CPU                                                                 \
    "32 31 0:29 / " FS "/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"              \
    "33 31 0:30 / " FS "/memory rw - cgroup cgroup rw,memory\n"

/* What a machine says, and the cores that come of it; 0: no limit. */
static const struct machine {
    const char *what, *cgroup, *mounts;
    double cores;
    const char *files[8][2]; /* below FS: path, content */
} machines[] = {
    {"no control groups", NULL, NULL, 0, {{0}}},
    {"version 2 without a limit",
     "0::/a\n",
     V2,
     0,
     {{"/a/cpu.max", "max 100000\n"}}},
    {"version 2, its own limit",
     "0::/a/b\n",
     V2,
     1.5,
     {{"/a/b/cpu.max", "150000 100000\n"}, {"/a/cpu.max", "max 100000\n"}}},
    {"version 2, a limit far above it",
     "0::/a/b/c/d\n",
     V2,
     2,
     {{"/a/b/c/d/cpu.max", "max 100000\n"}, {"/a/cpu.max", "20000 10000\n"}}},
    {"version 2, the tightest of several",
     "0::/a/b/c\n",
     V2,
     3,
     {{"/a/b/c/cpu.max", "800000 100000\n"},
      {"/a/b/cpu.max", "300000 100000\n"},
      {"/a/cpu.max", "400000 100000\n"}}},
    {"not that of a neighbour",
     "0::/a\n",
     V2,
     0,
     {{"/ab/cpu.max", "100000 100000\n"},
      {"/a/cpu.max", "max 100000\n"},
      {"/a/b/cpu.max", "100000 100000\n"}}},
    {"a container with a namespace of its own",
     "0::/\n",
     V2,
     0.5,
     {{"/cpu.max", "50000 100000\n"}}},
    {"a container that sees the host's names",
     "0::/pod\\x2d1/c\n",
     "31 23 0:28 /pod\\134x2d1 " FS " rw shared:3 - cgroup2 cgroup2 rw\n",
     4,
     {{"/c/cpu.max", "max 100000\n"}, {"/cpu.max", "400000 100000\n"}}},
    {"a group beside the one that is mounted",
     "0::/other\n",
     "31 23 0:28 /pod " FS " rw - cgroup2 cgroup2 rw\n",
     2,
     {{"/cpu.max", "200000 100000\n"}, {"/other/cpu.max", "1000 100000\n"}}},
    {"a group outside of the namespace",
     "0::/../../x\n",
     V2,
     2,
     {{"/cpu.max", "200000 100000\n"}}},
    {"version 1 without a limit",
     "4:cpu,cpuacct:/a\n0::/a\n",
     V1_CPU,
     0,
     {{"/cpu/a/cpu.cfs_quota_us", "-1\n"},
      {"/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    {"version 1, the tightest",
     "9:memory:/m\n4:cpu,cpuacct:/a/b\n",
     V1_CPU,
     2.5,
     {{"/cpu/a/b/cpu.cfs_quota_us", "700000\n"},
      {"/cpu/a/b/cpu.cfs_period_us", "100000\n"},
      {"/cpu/a/cpu.cfs_quota_us", "250000\n"},
      {"/cpu/a/cpu.cfs_period_us", "100000\n"}}},
    {"version 1 in a container that sees the host's names",
     "4:cpuacct,cpu:/docker/5f\n",
     "32 31 0:29 /docker/5f " FS "/cpu rw - cgroup cgroup rw,cpuacct,cpu\n",
     1,
     {{"/cpu/cpu.cfs_quota_us", "100000\n"},
      {"/cpu/cpu.cfs_period_us", "100000\n"}}},
    {"version 1 beside a version 2 that has no processors",
     "4:cpu:/a\n0::/u\n",
     V1_CPU "41 31 0:38 / " FS "/unified rw - cgroup2 cgroup2 rw\n",
     3,
     {{"/cpu/a/cpu.cfs_quota_us", "300000\n"},
      {"/cpu/a/cpu.cfs_period_us", "100000\n"},
      {"/unified/u/cgroup.procs", "1\n"}}},
    {"no word of sense",
     "0::/a\nx\n:::\n",
     "\n - \n1 2 - cgroup2\n" V2,
     0,
     {{"/a/cpu.max", "many some\n"}}},
    {"a limit of nothing", "0::/a\n", V2, 0, {{"/a/cpu.max", "0 100000\n"}}},
    {"a period of nothing", "0::/a\n", V2, 0, {{"/a/cpu.max", "100000 0\n"}}},
};

/* ---- a machine below a folder ------------------------------------------------ */

static char root[] = "/tmp/test_quota_XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void put_file(const char *path, const char *content)
{
    char full[512];
    FILE *file;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

static void make_machine(const struct machine *m)
{
    char path[256];

    folder_make(root);
    if (m->cgroup)
        put_file("/proc/self/cgroup", m->cgroup);
    if (m->mounts)
        put_file("/proc/self/mountinfo", m->mounts);
    for (int f = 0; f < (int)ARRAY_LEN(m->files) && m->files[f][0]; f++) {
        snprintf(path, sizeof(path), FS "%s", m->files[f][0]);
        put_file(path, m->files[f][1]);
    }
}

static void unmake_machine(void)
{
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

START_TEST(the_tightest_limit_above_a_process_holds)
{
    const struct machine *m = &machines[_i];
    struct coll__quota quota = {-1, 0};

    make_machine(m);
    coll__quota_load_from(root, &quota);
    unmake_machine();
    ck_assert_msg(quota.cores > m->cores - 1e-9 &&
                      quota.cores < m->cores + 1e-9,
                  "%s: %g cores, not %g", m->what, quota.cores, m->cores);
    ck_assert_int_eq(quota.group != 0, m->cores > 0);
}
END_TEST

/* Below one limit all are of one group, below limits of their own they are not. */
START_TEST(who_shares_a_limit_is_of_one_group)
{
    static struct machine m = {"",
                               NULL,
                               V2,
                               0,
                               {{"/a/cpu.max", "200000 100000\n"},
                                {"/a/x/cpu.max", "max 100000\n"},
                                {"/a/y/cpu.max", "max 100000\n"},
                                {"/a/z/cpu.max", "100000 100000\n"}}};
    static const char *const groups[] = {"0::/a/x\n", "0::/a/y\n", "0::/a/z\n"};
    struct coll__quota quotas[3];

    make_machine(&m);
    for (int g = 0; g < 3; g++) {
        put_file("/proc/self/cgroup", groups[g]);
        coll__quota_load_from(root, &quotas[g]);
    }
    unmake_machine();
    ck_assert_uint_eq(quotas[0].group, quotas[1].group);
    ck_assert_uint_ne(quotas[0].group, quotas[2].group);
}
END_TEST

START_TEST(this_process_has_no_negative_limit)
{
    struct coll__quota quota;
    struct coll__peer self;

    coll__quota_load(&quota);
    ck_assert(quota.cores >= 0);
    ck_assert_int_eq(coll__topo_self(&self), 0);
    ck_assert(self.quota == quota.cores && self.quota_group == quota.group);
}
END_TEST

/* ---- the cores of a host's ranks ----------------------------------------------- */

/* Ranks of one host: the cores that each may run on, the set they are, its group
 * and that group's quota. */
static const struct placement {
    int n;
    struct {
        int n_cores;
        uint32_t cpuset, group;
        double quota;
    } ranks[4];
    int local_cores;
} placements[] = {
    {2, {{8, 1, 0, 0}, {8, 1, 0, 0}}, 8},
    {2, {{8, 1, 7, 1}, {8, 1, 7, 1}}, 1}, /* a container with one core's time */
    {2, {{8, 1, 7, 1.5}, {8, 1, 7, 1.5}}, 1},
    {2, {{8, 1, 7, 2}, {8, 1, 7, 2}}, 2},
    {2, {{8, 1, 7, 0.2}, {8, 1, 7, 0.2}}, 1}, /* never none */
    {2, {{8, 1, 7, 99}, {8, 1, 7, 99}}, 8},
    {2, {{1, 1, 7, 1}, {1, 2, 7, 1}}, 1}, /* bound to a core each */
    {2, {{8, 1, 7, 1}, {8, 1, 9, 1}}, 2}, /* a container each */
    {2, {{1, 1, 7, 1}, {1, 1, 9, 1}}, 1}, /* of one core */
    {2, {{8, 1, 7, 0.5}, {8, 1, 9, 0.5}}, 1},
    {3, {{8, 1, 7, 1}, {8, 1, 7, 1}, {8, 1, 0, 0}}, 8},
    {4, {{1, 1, 7, 1}, {1, 2, 7, 1}, {1, 3, 9, 8}, {1, 4, 9, 8}}, 3},
};

START_TEST(a_quota_is_of_its_group)
{
    const struct placement *p = &placements[_i];
    struct coll__peer peers[4];

    memset(peers, 0, sizeof(peers));
    for (int r = 0; r < p->n; r++) {
        peers[r].n_cores = p->ranks[r].n_cores;
        peers[r].cpuset = p->ranks[r].cpuset;
        peers[r].quota_group = p->ranks[r].group;
        peers[r].quota = p->ranks[r].quota;
    }
    ck_assert_int_eq(coll__topo_group(peers, p->n), 1);
    for (int r = 0; r < p->n; r++)
        ck_assert_int_eq(peers[r].local_cores, p->local_cores);
}
END_TEST

/* ---- what is shown ------------------------------------------------------------- */

START_TEST(a_limit_is_shown)
{
    struct coll__part machine = {.kind = PART_MACHINE, .index = -1};
    char *text;

    ck_assert_int_eq(coll__part_text(&machine, &text), 0);
    ck_assert_str_eq(text, "machine\n");
    free(text);
    machine.quota = 1.5;
    ck_assert_int_eq(coll__part_text(&machine, &text), 0);
    ck_assert_str_eq(text, "machine, 1.5 cores by quota\n");
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quota");
    TCase *c = tcase_create("quota");

    tcase_add_loop_test(c, the_tightest_limit_above_a_process_holds, 0,
                        (int)ARRAY_LEN(machines));
    tcase_add_test(c, who_shares_a_limit_is_of_one_group);
    tcase_add_test(c, this_process_has_no_negative_limit);
    tcase_add_loop_test(c, a_quota_is_of_its_group, 0,
                        (int)ARRAY_LEN(placements));
    tcase_add_test(c, a_limit_is_shown);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
