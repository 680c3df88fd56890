/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cache.c - what a communicator keeps of its calls: how many plans it
 * builds for shapes in turn and for groups, how much memory they take, and what
 * goes when there is too much.
 *
 * Plans are counted by what the library says of each (COLL_LOG=plan:debug),
 * scratch by the memory that this process maps.
 */
#include "lib/comm/comm.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/run/run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEADLINE 60
#define MIB ((size_t)1 << 20)

static int n_plans;
static char last_plan[200];

static void count(enum coll_log_level level, const char *topic,
                  const char *text, void *arg)
{
    (void)level;
    (void)arg;
    if (strcmp(topic, "plan") || !strstr(text, "predicted"))
        return;
    n_plans++;
    snprintf(last_plan, sizeof(last_plan), "%s", text);
}

/* How many plans were built since this was asked last. */
static int plans_since(void)
{
    int n = n_plans;

    n_plans = 0;
    return n;
}

/* ---- what is mapped ------------------------------------------------------ */

static _Thread_local size_t n_mapped; /* bytes that are, */
static _Thread_local size_t n_calls;  /* and calls that did it */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
    n_mapped += len;
    n_calls++;
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

int munmap(void *addr, size_t len)
{
    n_mapped -= len;
    n_calls++;
    return (int)syscall(SYS_munmap, addr, len);
}
#endif

/* ---- shapes in turn ------------------------------------------------------ */

static int sum_of(struct world_rank *me, struct coll_comm *comm, size_t n)
{
    static int in[2000], out[2000];

    for (size_t i = 0; i < n; i++)
        in[i] = me->rank + (int)i;
    WORLD_CHECK(me,
                !coll_allreduce(in, out, n, COLL_I32, COLL_SUM, comm, NULL));
    for (size_t i = 0; i < n; i++)
        WORLD_CHECK(me, out[i] ==
                            me->size * (me->size - 1) / 2 + me->size * (int)i);
    return 0;
}

static int in_turn(struct world_rank *me)
{
    int n = *(int *)me->arg;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    plans_since();
    for (int i = 0; i < n; i++)
        WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 1));
    WORLD_CHECK(me, plans_since() == n);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n; i++)
            WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 1));
    WORLD_CHECK(me, plans_since() == 0);
    WORLD_CHECK(me, comm->run->cache.n == (size_t)n);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(shapes_in_turn_are_built_once_each)
{
    static int n[] = {10, 63, 66, 100, 1000};

    ck_assert_int_eq(world_fork(2 + _i % 3, in_turn, &n[_i], DEADLINE), 0);
}
END_TEST

/* Each rank sends and receives n messages of its own lengths round the ring. */
static int exchange(struct world_rank *me, struct coll_comm *comm, int n)
{
    static unsigned char in[70000], out[70000];
    int p = me->size, right = (me->rank + 1) % p, left = (me->rank + p - 1) % p;
    size_t at = 0;

    memset(in, me->rank + 1, sizeof(in));
    memset(out, 0, sizeof(out));
    WORLD_CHECK(me, !coll_group_start());
    for (int i = 0; i < n; at += (size_t)(i++ % 250))
        WORLD_CHECK(me, !coll_send(in + at, (size_t)(i % 250), COLL_U8, right,
                                   comm, NULL) &&
                            !coll_recv(out + at, (size_t)(i % 250), COLL_U8,
                                       left, comm, NULL));
    WORLD_CHECK(me, !coll_group_end());
    for (size_t i = 0; i < at; i++)
        WORLD_CHECK(me, out[i] == left + 1);
    return 0;
}

static int groups(struct world_rank *me)
{
    int n = *(int *)me->arg;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !exchange(me, comm, n));
    plans_since();
    for (int k = 0; k < 5; k++)
        WORLD_CHECK(me, !exchange(me, comm, n));
    WORLD_CHECK(me, plans_since() == 0);
    WORLD_CHECK(me, comm->run->cache.n == 2 * (size_t)n);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(groups_of_any_size_are_built_once)
{
    static int n[] = {16, 64, 256, 500};

    ck_assert_int_eq(world_fork(2 + _i % 2, groups, &n[_i], DEADLINE), 0);
}
END_TEST

/* ---- requests of the caller ---------------------------------------------- */

static int run_once(struct world_rank *me, struct coll_request *request)
{
    WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, !coll_wait(request, 0));
    return 0;
}

static int requests(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int in[10], out[10], any_order = *(int *)me->arg;
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = in,
                             .out = out,
                             .count = 10,
                             .any_order = any_order};
    struct coll_request *first, *second;

    WORLD_CHECK(me, comm);
    for (int i = 0; i < 10; i++)
        in[i] = i;
    WORLD_CHECK(me, !sum_of(me, comm, 10));
    plans_since();
    for (int k = 0; k < 5; k++) {
        if (any_order && k == 1) /* their channels differ from those of calls */
            WORLD_CHECK(me, plans_since() == 1);
        WORLD_CHECK(me, !coll_request_create(&args, comm, &first));
        WORLD_CHECK(me, !run_once(me, first) && out[9] == 9 * me->size);
        WORLD_CHECK(me, !run_once(me, first));
        WORLD_CHECK(me, !coll_request_destroy(first));
    }
    WORLD_CHECK(me, plans_since() == 0);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &first));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &second));
    WORLD_CHECK(me, plans_since() == 1);
    WORLD_CHECK(me, !coll_start(first) && !coll_start(second));
    WORLD_CHECK(me, !coll_wait(second, 0) && !coll_wait(first, 0));
    WORLD_CHECK(me, !coll_request_destroy(first));
    WORLD_CHECK(me, !coll_request_destroy(second));
    WORLD_CHECK(me, !sum_of(me, comm, 10));
    WORLD_CHECK(me, plans_since() == 0);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_request_of_a_known_shape_builds_nothing)
{
    int any_order = _i % 2;

    ck_assert_int_eq(world_fork(1 + _i / 2, requests, &any_order, DEADLINE), 0);
}
END_TEST

/* ---- bounds -------------------------------------------------------------- */

static int in_bounds(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 500; i++) {
            WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 1));
            WORLD_CHECK(me, comm->run->cache.bytes <= 64 << 10);
            WORLD_CHECK(me, comm->run->cache.n < 200);
            WORLD_CHECK(me, !k || comm->run->cache.n > 10);
        }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(what_is_kept_is_bounded_in_bytes)
{
    setenv("COLL_CACHE", "64K", 1);
    ck_assert_int_eq(world_fork(2 + _i, in_bounds, NULL, DEADLINE), 0);
}
END_TEST

/* Nothing is kept but the latest. */
static int by_itself(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    plans_since();
    for (int i = 0; i < 10; i++) {
        WORLD_CHECK(me, !sum_of(me, comm, 5) && !sum_of(me, comm, 5));
        WORLD_CHECK(me, plans_since() == 1);
        WORLD_CHECK(me, !exchange(me, comm, 20));
        WORLD_CHECK(me, plans_since() == 40);
        WORLD_CHECK(me, comm->run->cache.n == 1);
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_bound_of_nothing_keeps_the_latest)
{
    setenv("COLL_CACHE", "0", 1);
    ck_assert_int_eq(world_fork(2, by_itself, NULL, DEADLINE), 0);
}
END_TEST

/* Somewhat more shapes than there is room for: most are found, rather than
 * none. */
static int beyond(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int most, n, built;

    WORLD_CHECK(me, comm);
    for (int i = 0; i < 1000; i++)
        WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 1));
    most = (int)comm->run->cache.n;
    WORLD_CHECK(me, most > 50 && most < 500);
    n = most + most / 10;
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < n; i++)
            WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 1));
    plans_since();
    for (int k = 0; k < 10; k++)
        for (int i = 0; i < n; i++)
            WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 1));
    built = plans_since();
    WORLD_CHECK(me, built > 0 && built < 10 * n / 2);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(there_is_no_cliff_where_room_ends)
{
    setenv("COLL_CACHE", "400K", 1);
    ck_assert_int_eq(world_fork(2, beyond, NULL, DEADLINE), 0);
}
END_TEST

/* Ten that are used by turns all the time, among any number of others. */
static int among_others(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int n_again = 0;

    WORLD_CHECK(me, comm);
    for (int i = 0; i < 400 + part_of(1500); i++) {
        WORLD_CHECK(me, !sum_of(me, comm, (size_t)i + 21));
        plans_since();
        for (size_t k = 0; k < 10; k++)
            WORLD_CHECK(me, !sum_of(me, comm, k + 1));
        n_again += plans_since();
    }
    WORLD_CHECK(me, n_again == 10);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(what_is_used_all_the_time_stays)
{
    setenv("COLL_CACHE", "100K", 1);
    ck_assert_int_eq(world_fork(2, among_others, NULL, DEADLINE), 0);
}
END_TEST

/* ---- what is asked for changes ------------------------------------------- */

static int settings(struct world_rank *me)
{
    struct coll_comm *a, *b;

    setenv("COLL_ALGO", "allreduce:ring", 1);
    a = world_join(me);
    setenv("COLL_ALGO", "allreduce:recursive_doubling", 1);
    b = world_join(me);
    WORLD_CHECK(me, a && b);
    setenv("COLL_ALGO", "allreduce:binomial", 1);
    for (int k = 0; k < 3; k++)
        for (size_t n = 1; n < 100; n++) {
            plans_since();
            WORLD_CHECK(me, !sum_of(me, a, n));
            WORLD_CHECK(me, plans_since() == !k);
            WORLD_CHECK(me, k || strstr(last_plan, ": ring,"));
            WORLD_CHECK(me, !sum_of(me, b, n));
            WORLD_CHECK(me, plans_since() == !k);
            WORLD_CHECK(me, k || strstr(last_plan, ": recursive_doubling,"));
        }
    WORLD_CHECK(me, !coll_comm_destroy(a));
    WORLD_CHECK(me, !coll_comm_destroy(b));
    return 0;
}

START_TEST(each_communicator_keeps_plans_of_its_own_settings)
{
    ck_assert_int_eq(world_fork(3, settings, NULL, DEADLINE), 0);
}
END_TEST

/* One call of each pair that differ in one thing, one after the other: a plan
 * that is taken for the other one's gives wrong results. */
static int one_thing_differs(struct world_rank *me, struct coll_comm *comm,
                             size_t n, int root)
{
    int p = me->size, x[6] = {me->rank + 1, 2, 3, 4, 5, 6}, y[6] = {0};
    int all = p * (p + 1) / 2, next = (root + 1) % p;
    float f[6] = {(float)(me->rank + 1)}, g[6] = {0};

    WORLD_CHECK(me, !coll_allreduce(x, y, n, COLL_I32, COLL_MAX, comm, NULL));
    WORLD_CHECK(me, y[0] == p && y[n] == 0);
    WORLD_CHECK(me, !coll_allreduce(x, y, n, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, y[0] == all && y[n] == 0);
    WORLD_CHECK(me, !coll_allreduce(f, g, n, COLL_F32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, g[0] == (float)all);
    WORLD_CHECK(me, !coll_allreduce(x, y, n, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me,
                !coll_allreduce(x, y, n + 1, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, y[0] == all && y[n] == p * x[n]);
    y[0] = 0; /* an allreduce's root is 0, for what it matters */
    WORLD_CHECK(me,
                !coll_reduce(x, y, n + 1, COLL_I32, COLL_SUM, 0, comm, NULL));
    WORLD_CHECK(me, y[0] == (me->rank == 0 ? all : 0));
    WORLD_CHECK(
        me, !coll_reduce(x, y, n + 1, COLL_I32, COLL_MAX, root, comm, NULL));
    WORLD_CHECK(me, me->rank != root || y[0] == p);
    y[0] = 0;
    WORLD_CHECK(
        me, !coll_reduce(x, y, n + 1, COLL_I32, COLL_MAX, next, comm, NULL));
    WORLD_CHECK(me, y[0] == (me->rank == next ? p : 0));
    WORLD_CHECK(me, !coll_allreduce(x, x, n, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, x[0] == all);
    return 0;
}

static int parts_of_a_shape(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int k = 0; k < 200; k++)
        WORLD_CHECK(me, !one_thing_differs(me, comm, 1 + (size_t)(k * 7 % 5),
                                           k % me->size));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(no_plan_is_taken_for_another_one)
{
    setenv("COLL_CACHE", _i % 2 ? "32K" : "32M", 1);
    ck_assert_int_eq(world_fork(2 + _i, parts_of_a_shape, NULL, DEADLINE), 0);
}
END_TEST

/* ---- scratch ------------------------------------------------------------- */

#define LARGE ((size_t)1 << 20) /* elements: 4 MiB */

static int share_scratch(struct world_rank *me)
{
    static int x[LARGE], y[LARGE];
    struct coll_comm *comm = world_join(me);
    enum coll_op premul;
    size_t before;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_op_create_premul(&me->size, COLL_I32, &premul));
    before = n_mapped;
    for (size_t i = 0; i < 40; i++) { /* 4 MiB for what comes, or 8 with it */
        enum coll_op op = i % 2 ? premul : COLL_SUM;

        x[0] = 1;
        WORLD_CHECK(me,
                    !coll_allreduce(x, y, LARGE - i, COLL_I32, op, comm, NULL));
        WORLD_CHECK(me, y[0] == me->size * (i % 2 ? me->size : 1));
        WORLD_CHECK(me, comm->run->cache.pool.bytes >= 4 * MIB &&
                            comm->run->cache.pool.bytes <= 8 * MIB);
    }
    WORLD_CHECK(me, !before || n_mapped - before <= 9 * MIB);
    WORLD_CHECK(me, comm->run->cache.n == 40);
    n_calls = 0;
    for (size_t i = 0; i < 40; i += 2)
        WORLD_CHECK(me, !coll_allreduce(x, y, LARGE - i, COLL_I32, COLL_SUM,
                                        comm, NULL));
    WORLD_CHECK(me, n_calls == 0);
    WORLD_CHECK(me, !coll_op_destroy(premul));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, !before || n_calls > 0); /* or it counts nothing */
    return 0;
}

START_TEST(shapes_share_the_scratch_of_the_longest)
{
    setenv("COLL_ALGO", "recursive_doubling", 1);
    ck_assert_int_eq(world_fork(4, share_scratch, NULL, DEADLINE), 0);
}
END_TEST

/* Several of a group at once, and one that the caller keeps running beside
 * calls: none writes into another's scratch. */
static int scratch_at_once(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    static int x[6][3000], y[6][3000];
    struct coll_args args = {.size = sizeof(args),
                             .type = COLL_I32,
                             .collective = COLL_ALLREDUCE,
                             .op = COLL_SUM,
                             .in = x[5],
                             .out = y[5],
                             .count = 3000};
    struct coll_request *own;
    int p = me->size, sum = p * (p - 1) / 2;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &own));
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 3000; j++)
                x[i][j] = me->rank + i + j;
        WORLD_CHECK(me, !coll_start(own) && !coll_group_start());
        for (int i = 0; i < 5; i++)
            WORLD_CHECK(me, !coll_allreduce(x[i], y[i], 2000 + (size_t)i,
                                            COLL_I32, COLL_SUM, comm, NULL));
        WORLD_CHECK(me, !coll_group_end() && !coll_wait(own, 0));
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 2000; j++)
                WORLD_CHECK(me, y[i][j] == sum + p * (i + j));
        n_calls = k < 2 ? 0 : n_calls;
        WORLD_CHECK(me, n_calls == 0);
    }
    WORLD_CHECK(me, !coll_request_destroy(own));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(operations_at_once_have_scratch_of_their_own)
{
    setenv("COLL_ALGO", "recursive_doubling", 1);
    setenv("COLL_FUSE", "0", 1);
    ck_assert_int_eq(world_fork(4, scratch_at_once, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *c = tcase_create("cache");

    setenv("COLL_TRANSPORTS", "self,shm", 1);
    setenv("COLL_LOG", "plan:debug", 1);
    coll_set_log_handler(count, NULL);
    patient_timeout(60);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, shapes_in_turn_are_built_once_each, 0,
                        getenv("TEST_QUICK") ? 4 : 5);
    tcase_add_loop_test(c, groups_of_any_size_are_built_once, 0, 4);
    tcase_add_loop_test(c, a_request_of_a_known_shape_builds_nothing, 0, 8);
    tcase_add_loop_test(c, what_is_kept_is_bounded_in_bytes, 0, 3);
    tcase_add_test(c, a_bound_of_nothing_keeps_the_latest);
    tcase_add_test(c, there_is_no_cliff_where_room_ends);
    tcase_add_test(c, what_is_used_all_the_time_stays);
    tcase_add_test(c, each_communicator_keeps_plans_of_its_own_settings);
    tcase_add_loop_test(c, no_plan_is_taken_for_another_one, 0, 4);
    tcase_add_test(c, shapes_share_the_scratch_of_the_longest);
    tcase_add_test(c, operations_at_once_have_scratch_of_their_own);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
