/* SPDX-License-Identifier: BSD-3-Clause */
/* test_spare.c - which cores are left to a thread in the background, on machines
 * that hwloc makes up. */
#include "lib/topo/machine.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST 4 /* ranks */

/* Two packages of four cores, of two processors each: 0 to 7 and 8 to 15. */
#define MACHINE "package:2 core:4 pu:2"

/* Sets as bits. */
struct scene {
    uint64_t ranks[MOST]; /* 0: no more */
    int me, n_left;
    uint64_t spare;
};

static const struct scene scenes[] = {
    {{0x0003, 0x0300}, 0, 12, 0x00fc}, /* near me */
    {{0x0003, 0x0300}, 1, 12, 0xfc00},
    {{0x0001, 0x0300}, 0, 13, 0x00fc}, /* not beside me on my core */
    {{0x5555}, 0, 8, 0xaaaa},          /* but there, where it has to be */
    {{0x0055, 0x5500}, 0, 8, 0x00aa},
    {{0x00ff}, 0, 8, 0xff00}, /* in the other package */
    {{0x000f, 0x00f0}, 1, 8, 0xff00},
    {{0x00ff, 0x7f00}, 0, 1, 0x8000},
    {{0xffff}, 0, 0, 0}, /* not bound */
    {{0xffff, 0xffff, 0xffff, 0xffff}, 2, 0, 0},
    {{0x00ff, 0xff00}, 0, 0, 0},
};

static struct coll__cores cores_of(uint64_t bits)
{
    struct coll__cores cores = {CPU_ALLOC(64), CPU_ALLOC_SIZE(64)};

    ck_assert_ptr_nonnull(cores.set);
    CPU_ZERO_S(cores.len, cores.set);
    for (size_t cpu = 0; cpu < 64; cpu++)
        if (bits >> cpu & 1)
            CPU_SET_S(cpu, cores.len, cores.set);
    return cores;
}

static uint64_t bits_of(const struct coll__cores *cores)
{
    uint64_t bits = 0;

    for (size_t cpu = 0; cpu < 64; cpu++)
        if (CPU_ISSET_S(cpu, cores->len, cores->set))
            bits |= (uint64_t)1 << cpu;
    return bits;
}

START_TEST(what_nobody_is_bound_to_is_found)
{
    const struct scene *scene = &scenes[_i];
    struct coll__cores ranks[MOST], spare = cores_of(0);
    int n = 0;

    unsetenv("HWLOC_COMPONENTS"); /* which would overrule it */
    setenv("HWLOC_SYNTHETIC", MACHINE, 1);
    while (n < MOST && scene->ranks[n]) {
        ranks[n] = cores_of(scene->ranks[n]);
        n++;
    }
    ck_assert_int_eq(coll__hwloc_spare(ranks, n, scene->me, &spare),
                     scene->n_left);
    ck_assert_uint_eq(bits_of(&spare), scene->spare);
    while (n--)
        CPU_FREE(ranks[n].set);
    CPU_FREE(spare.set);
}
END_TEST

/* Ranks of this host, which are all this process, on a machine that has more
 * processors than it may use: there a thread has room. */
START_TEST(a_seat_is_where_there_is_room)
{
    struct coll__peer peers[2] = {
        {.local_size = 2, .n_sharers = 2, .local_cores = 2},
        {.local_size = 2, .n_sharers = 2, .local_cores = 2}};
    struct coll__seat seat;
    char machine[32];
    int n = 2 * (int)sysconf(_SC_NPROCESSORS_CONF);

    for (int r = 0; r < 2; r++)
        peers[r].pid = (int32_t)getpid();
    snprintf(machine, sizeof(machine), "core:%d pu:1", n);
    unsetenv("HWLOC_COMPONENTS");
    setenv("HWLOC_SYNTHETIC", machine, 1);
    coll__topo_seat(peers, 2, 0, &seat);
    ck_assert_ptr_nonnull(seat.spare);
    ck_assert_int_ge(CPU_COUNT_S(seat.len, seat.spare), n / 2);
    ck_assert(seat.has_core || n < 4);
    CPU_FREE(seat.spare);
    setenv("HWLOC_SYNTHETIC", "core:1 pu:1", 1);
    sched_setaffinity(0, sizeof(cpu_set_t), &(cpu_set_t){.__bits = {1}});
    coll__topo_seat(peers, 2, 0, &seat);
    ck_assert_ptr_null(seat.spare);
    ck_assert(!seat.has_core);
    for (int r = 0; r < 2; r++)
        peers[r].local_cores = 4; /* they share more than they need */
    coll__topo_seat(peers, 2, 0, &seat);
    ck_assert_ptr_null(seat.spare);
    ck_assert(seat.has_core);
}
END_TEST

/* Two ranks, of one control group or of one each, with so many cores' time. */
static const struct {
    double quota;
    uint32_t groups[2];
    int has_core;
} shares[] = {
    {0, {0, 0}, 1}, /* no limit */
    {4, {7, 7}, 1}, {3.9, {7, 7}, 0}, {2, {7, 7}, 0},
    {2, {7, 9}, 1}, {1.5, {7, 9}, 0}, {0.5, {7, 9}, 0},
};

/* Cores that nobody is bound to, or that ranks of other groups may use as well, are
 * of no use without the time to run there. */
START_TEST(no_core_is_to_spare_beyond_the_quota)
{
    struct coll__peer peers[3] = {{.local_size = 2, .local_cores = 2},
                                  {.local_size = 2, .local_cores = 2},
                                  {.host = 1, .local_size = 1}};
    struct coll__seat seat;
    char machine[32];

    for (int r = 0; r < 3; r++) {
        peers[r].pid = (int32_t)getpid();
        peers[r].quota = shares[_i].quota;
        peers[r].quota_group = shares[_i].groups[r % 2];
    }
    snprintf(machine, sizeof(machine), "core:%d pu:1",
             4 * (int)sysconf(_SC_NPROCESSORS_CONF));
    unsetenv("HWLOC_COMPONENTS");
    setenv("HWLOC_SYNTHETIC", machine, 1);
    for (int r = 0; r < 2; r++) {
        peers[r].local_cores = r ? 64 : 2;
        coll__topo_seat(peers, 3, r, &seat);
        ck_assert_int_eq(seat.has_core, shares[_i].has_core);
        ck_assert_ptr_nonnull(seat.spare); /* where it does least harm */
        CPU_FREE(seat.spare);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("spare");
    TCase *c = tcase_create("spare");

    tcase_add_loop_test(c, what_nobody_is_bound_to_is_found, 0,
                        (int)ARRAY_LEN(scenes));
    tcase_add_test(c, a_seat_is_where_there_is_room);
    tcase_add_loop_test(c, no_core_is_to_spare_beyond_the_quota, 0,
                        (int)ARRAY_LEN(shares));
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
