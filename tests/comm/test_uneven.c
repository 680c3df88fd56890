/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uneven.c - a host whose ranks may different things: one cannot map what
 * the others share, or cannot read their memory.  Each rank finds out for
 * itself, and all go by what all have found. */
#include "include/coll/coll.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEADLINE 60
#define COUNT 100003 /* elements, of which some are fetched */
#define ROOM ((rlim_t)256 << 20)

static int in[COUNT], out[COUNT];

static int sums_well(struct world_rank *me, struct coll_comm *comm)
{
    int size = me->size;

    for (int i = 0; i < COUNT; i++)
        in[i] = me->rank + i;
    memset(out, 0, sizeof(out));
    WORLD_CHECK(
        me, !coll_allreduce(in, out, COUNT, COLL_I32, COLL_SUM, comm, NULL));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me, out[i] == size * i + size * (size - 1) / 2);
    return 0;
}

/* Join, sum, divide, sum and leave; the routes are as the words say. */
static int works(struct world_rank *me, const char *words)
{
    struct coll_comm *comm, *dup;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !strcmp(coll_comm_transports(comm), words));
    WORLD_CHECK(me, !sums_well(me, comm));
    WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
    WORLD_CHECK(me, !strcmp(coll_comm_transports(dup), words));
    WORLD_CHECK(me, !sums_well(me, dup));
    WORLD_CHECK(me, !coll_comm_destroy(dup));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

/* Bytes of this process's address space. */
static rlim_t size_now(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%llu", &pages) != 1)
        pages = 0;
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* The last rank has no room for what the others share, so all others reach it
 * in another way. */
static int without_room(struct world_rank *me)
{
    int is_last = me->rank == me->size - 1;
    struct rlimit limit;

    WORLD_CHECK(me, size_now() > 0);
    if (is_last) {
        WORLD_CHECK(me, !getrlimit(RLIMIT_AS, &limit));
        limit.rlim_cur = size_now() + ROOM;
        WORLD_CHECK(me, !setrlimit(RLIMIT_AS, &limit));
    }
    return works(me, is_last || me->size == 2 ? "self,ucx" : "self,shm,ucx");
}

START_TEST(one_has_no_room_to_share)
{
    setenv("COLL_TRANSPORTS", "self,shm,ucx", 1);
    coll__limit_assume(LIMIT_SHM_CELL, 16 << 20);
    coll__limit_assume(LIMIT_SHM_CELLS, 16);
    ck_assert_int_eq(world_fork(_i, without_room, NULL, DEADLINE), 0);
}
END_TEST

/* What one rank may not do, none does. */
static int without_fetching(struct world_rank *me)
{
    setenv("COLL_CMA", me->rank == 1 ? "off" : "auto", 1);
    return works(me, "self,shm");
}

START_TEST(one_fetches_nothing)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    coll__limit_assume(LIMIT_CMA_MIN, 4096);
    ck_assert_int_eq(world_fork(_i, without_fetching, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("uneven");
    TCase *tc = suite_case(suite, "uneven", DEADLINE + 20);

    tcase_add_loop_test(tc, one_has_no_room_to_share, 2, 5);
    tcase_add_loop_test(tc, one_fetches_nothing, 2, 4);
    return suite_run(suite);
}
