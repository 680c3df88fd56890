/* SPDX-License-Identifier: BSD-3-Clause */
/* test_order.c - operations of several communicators, which ranks start alike
 * and wait for in orders of their own: whoever waits moves all of them. */
#include "include/coll/coll.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 60
#define N_COMMS 8
#define MOST 60000 /* elements: some wait for their receiver, some do not */
#define ROUNDS 12

/* What a rank has under way on one of its communicators. */
struct work {
    struct coll_comm *comm;
    struct coll_request *request;
    int *in, *out;
    size_t count;
    int number; /* how many operations the communicator has had */
};

static size_t count_of(unsigned random)
{
    static const size_t counts[] = {1, 2, 1000, 9000, MOST};

    return counts[random % (sizeof(counts) / sizeof(*counts))];
}

static int fill(struct work *w, int rank)
{
    for (size_t i = 0; i < w->count; i++)
        w->in[i] = rank + (int)i + w->number;
    memset(w->out, 0, w->count * sizeof(int));
    return 0;
}

static int is_right(const struct work *w)
{
    int n = coll_comm_size(w->comm);

    for (size_t i = 0; i < w->count; i++)
        if (w->out[i] != n * ((int)i + w->number) + n * (n - 1) / 2)
            return 0;
    return 1;
}

static int begin(struct world_rank *me, struct work *w, size_t count)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = w->in,
                             .out = w->out,
                             .count = count};

    w->count = count;
    w->number++;
    fill(w, me->rank);
    WORLD_CHECK(me, !coll_request_create(&args, w->comm, &w->request));
    WORLD_CHECK(me, !coll_start(w->request));
    return 0;
}

static int end(struct world_rank *me, struct work *w)
{
    WORLD_CHECK(me, !coll_wait(w->request, 0));
    WORLD_CHECK(me, is_right(w));
    WORLD_CHECK(me, !coll_request_destroy(w->request));
    w->request = NULL;
    return 0;
}

static int call(struct world_rank *me, struct work *w, size_t count)
{
    w->count = count;
    w->number++;
    fill(w, me->rank);
    WORLD_CHECK(me, !coll_allreduce(w->in, w->out, count, COLL_I32, COLL_SUM,
                                    w->comm, NULL));
    WORLD_CHECK(me, is_right(w));
    return 0;
}

static int set_up(struct world_rank *me, struct work *work, int n)
{
    WORLD_CHECK(me, !coll_comm_create_oob(&work[0].comm, &me->oob, NULL));
    for (int i = 1; i < n; i++)
        WORLD_CHECK(me, !coll_comm_dup(work[0].comm, &work[i].comm));
    for (int i = 0; i < n; i++) {
        work[i].in = malloc(MOST * sizeof(int));
        work[i].out = malloc(MOST * sizeof(int));
        WORLD_CHECK(me, work[i].in && work[i].out);
    }
    return 0;
}

static int tear_down(struct world_rank *me, struct work *work, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        WORLD_CHECK(me, !coll_comm_destroy(work[i].comm));
        free(work[i].in);
        free(work[i].out);
    }
    return 0;
}

/* ---- the orders that two ranks can have -------------------------------------- */

static int cross_waits(struct world_rank *me)
{
    struct work work[2] = {{0}};
    int other = me->rank % 2;

    WORLD_CHECK(me, !set_up(me, work, 2));
    for (int i = 0; i < part_of(ROUNDS); i++) {
        size_t count = count_of((unsigned)i);

        WORLD_CHECK(me, !begin(me, &work[0], count));
        WORLD_CHECK(me, !begin(me, &work[1], count));
        WORLD_CHECK(me, !end(me, &work[other]));
        WORLD_CHECK(me, !end(me, &work[!other]));
    }
    return tear_down(me, work, 2);
}

static int call_between(struct world_rank *me)
{
    struct work work[2] = {{0}};

    WORLD_CHECK(me, !set_up(me, work, 2));
    for (int i = 0; i < part_of(ROUNDS); i++) {
        size_t count = count_of((unsigned)i);

        WORLD_CHECK(me, !begin(me, &work[0], count));
        if (me->rank % 2) {
            WORLD_CHECK(me, !call(me, &work[1], count));
            WORLD_CHECK(me, !end(me, &work[0]));
        } else {
            WORLD_CHECK(me, !end(me, &work[0]));
            WORLD_CHECK(me, !call(me, &work[1], count));
        }
    }
    return tear_down(me, work, 2);
}

/* A rank that only tests, and of another communicator, moves this one. */
static int test_the_other(struct world_rank *me)
{
    struct work work[2] = {{0}};

    WORLD_CHECK(me, !set_up(me, work, 2));
    for (int i = 0; i < part_of(ROUNDS); i++) {
        WORLD_CHECK(me, !begin(me, &work[0], MOST));
        WORLD_CHECK(me, !begin(me, &work[1], MOST));
        if (me->rank % 2) {
            WORLD_CHECK(me, !end(me, &work[0]));
        } else {
            int rc;

            while ((rc = coll_test(work[1].request)) == COLL_IN_PROGRESS)
                ;
            WORLD_CHECK(me, !rc && !end(me, &work[0]));
        }
        WORLD_CHECK(me, !end(me, &work[1]));
    }
    return tear_down(me, work, 2);
}

static int create(struct world_rank *me, struct coll_comm *comm,
                  struct coll_comm **made)
{
    struct coll_unique_id id;

    WORLD_CHECK(me, me->rank || !coll_get_unique_id(&id));
    WORLD_CHECK(me,
                !coll_broadcast(&id, &id, sizeof(id), COLL_U8, 0, comm, NULL));
    return coll_comm_create(made, me->size, &id, me->rank, NULL);
}

/* What all ranks have to come to, beside something that runs. */
static int make_between(struct world_rank *me)
{
    struct work work[2] = {{0}};

    WORLD_CHECK(me, !set_up(me, work, 2));
    for (int i = 0; i < part_of(ROUNDS); i++) {
        struct coll_comm *made = NULL;

        WORLD_CHECK(me, !begin(me, &work[0], MOST));
        if (me->rank % 2)
            WORLD_CHECK(me, !end(me, &work[0]));
        if (i % 3)
            WORLD_CHECK(me, !coll_comm_dup(work[1].comm, &made));
        else
            WORLD_CHECK(me, !create(me, work[1].comm, &made));
        WORLD_CHECK(me, !coll_comm_destroy(made));
        if (!(me->rank % 2))
            WORLD_CHECK(me, !end(me, &work[0]));
    }
    return tear_down(me, work, 2);
}

static world_fn *const orders[] = {cross_waits, call_between, test_the_other,
                                   make_between};

#define N_ORDERS (int)(sizeof(orders) / sizeof(*orders))

START_TEST(two_orders_end)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    for (int size = 2; size <= 9; size += size < 4 ? 1 : 5)
        ck_assert_int_eq(world_fork(size, orders[_i / 2], NULL, DEADLINE), 0);
}
END_TEST

START_TEST(two_orders_of_threads_end)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_threads(3, orders[_i / 2], NULL, DEADLINE), 0);
}
END_TEST

/* ---- random orders ------------------------------------------------------------ */

static void shuffle(int *list, int n, unsigned *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)((unsigned)rand_r(seed) % (unsigned)(i + 1)), at = list[i];

        list[i] = list[j];
        list[j] = at;
    }
}

/* Some of the communicators have a request under way, the others are called in
 * between; which ones and how much is alike on all ranks, the order is not. */
static int one_round(struct world_rank *me, struct work *work, unsigned *alike,
                     unsigned *own)
{
    size_t counts[N_COMMS];
    int list[N_COMMS], is_call[N_COMMS];

    for (int i = 0; i < N_COMMS; i++) {
        list[i] = i;
        counts[i] = count_of((unsigned)rand_r(alike));
        is_call[i] = rand_r(alike) % 4 == 0;
    }
    shuffle(list, N_COMMS, own);
    for (int i = 0; i < N_COMMS; i++)
        if (!is_call[list[i]])
            WORLD_CHECK(me, !begin(me, &work[list[i]], counts[list[i]]));
    for (int i = 0; i < N_COMMS; i++) /* not crossed: each of them blocks */
        if (is_call[i])
            WORLD_CHECK(me, !call(me, &work[i], counts[i]));
    shuffle(list, N_COMMS, own);
    for (int i = 0; i < N_COMMS; i++)
        if (!is_call[list[i]])
            WORLD_CHECK(me, !end(me, &work[list[i]]));
    return 0;
}

static int any_order(struct world_rank *me)
{
    struct work work[N_COMMS] = {{0}};
    unsigned alike = 7, own = 1 + (unsigned)me->rank;

    WORLD_CHECK(me, !set_up(me, work, N_COMMS));
    for (int i = 0; i < part_of(ROUNDS); i++)
        WORLD_CHECK(me, !one_round(me, work, &alike, &own));
    return tear_down(me, work, N_COMMS);
}

START_TEST(random_orders_end)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(2 + _i / 2, any_order, NULL, 2 * DEADLINE), 0);
}
END_TEST

/* ---- the end ------------------------------------------------------------------ */

static int end_in_any_order(struct world_rank *me)
{
    struct work work[N_COMMS] = {{0}};
    unsigned own = 1 + (unsigned)me->rank;
    int list[N_COMMS];

    for (int i = 0; i < N_COMMS; i++)
        list[i] = i;
    for (int round = 0; round < 2; round++) {
        WORLD_CHECK(me, !set_up(me, work, N_COMMS));
        for (int i = 0; i < N_COMMS; i++)
            WORLD_CHECK(me, !call(me, &work[i], 1000));
        shuffle(list, N_COMMS, &own);
        for (int i = 0; i < N_COMMS; i++) {
            WORLD_CHECK(me, !coll_comm_destroy(work[list[i]].comm));
            free(work[list[i]].in);
            free(work[list[i]].out);
        }
    }
    return 0;
}

START_TEST(communicators_end_in_any_order)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(2 + _i / 2, end_in_any_order, NULL, DEADLINE),
                     0);
}
END_TEST

/* A rank goes on, and even exits, before another has come to the end of one. */
static int end_late(struct world_rank *me)
{
    struct coll_comm *first, *second;
    char all[16];

    WORLD_CHECK(me, !coll_comm_create_oob(&first, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_dup(first, &second));
    if (!me->rank) {
        WORLD_CHECK(me, !coll_comm_destroy(first));
        WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, "", all, 1));
    } else {
        WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, "", all, 1));
        WORLD_CHECK(me, !coll_comm_destroy(first));
    }
    WORLD_CHECK(me, !coll_comm_destroy(second));
    return 0;
}

START_TEST(a_rank_that_leaves_need_not_wait)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(4, end_late, NULL, DEADLINE), 0);
}
END_TEST

/* The last two ranks come to the end of their only communicator when the first two have
 * long left it, and do other work, in which they call nothing of the library, until the
 * last two are through. */
static int end_and_compute(struct world_rank *me)
{
    struct coll_comm *all, *some;

    WORLD_CHECK(
        me, !world_divide(me, me->rank < 2 ? 0 : COLL_NO_COLOR, &all, &some));
    if (me->rank >= 2)
        usleep(100000);
    WORLD_CHECK(me, !coll_comm_destroy(all));
    if (me->rank >= 2) {
        world_through(me);
        return 0;
    }
    WORLD_CHECK(me, world_await_through(me, me->size - 2, DEADLINE / 2));
    WORLD_CHECK(me, !world_sum(some, 10));
    WORLD_CHECK(me, !coll_comm_destroy(some));
    return 0;
}

START_TEST(who_computes_delays_nobody_who_ends)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(4, end_and_compute, NULL, DEADLINE), 0);
}
END_TEST

/* The timeout counts from when a rank waits for the others, not from when it left. */
static int end_later_still(struct world_rank *me)
{
    struct coll_comm *first, *second;

    WORLD_CHECK(me, !coll_comm_create_oob(&first, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_dup(first, &second));
    if (!me->rank)
        WORLD_CHECK(me, !coll_comm_destroy(first));
    usleep((useconds_t)(patient(1) * 1e6 * 1.2)); /* longer than the timeout */
    world_meet(me);
    if (me->rank)
        WORLD_CHECK(me, !coll_comm_destroy(first));
    WORLD_CHECK(me, !coll_comm_destroy(second));
    return 0;
}

START_TEST(who_left_long_ago_has_not_waited_since)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(2, end_later_still, NULL, DEADLINE), 0);
}
END_TEST

/* What is wrong with one that was left behind is told with the last one.  The rank that
 * leaves it second may find it out at once, and is told then. */
static int end_wrong(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .deferred = 1};
    struct coll_comm *first, *second;
    char all[16];
    int one = 1, rc;

    WORLD_CHECK(me, !coll_comm_create_oob(&first, &me->oob, &config));
    WORLD_CHECK(me, !coll_comm_dup(first, &second));
    if (!me->rank) /* nobody receives it */
        WORLD_CHECK(me, !coll_send(&one, 1, COLL_I32, 1, second, NULL));
    if (me->rank)
        WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, "", all, 1));
    rc = coll_comm_destroy(second);
    WORLD_CHECK(me, rc == COLL_OK || (me->rank && rc == COLL_ERR_MISMATCH));
    if (!me->rank)
        WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, "", all, 1));
    if (rc == COLL_OK)
        rc = coll_comm_destroy(first);
    else
        WORLD_CHECK(me, !coll_comm_destroy(first));
    WORLD_CHECK(me, rc == COLL_ERR_MISMATCH);
    WORLD_CHECK(me, strstr(coll_last_error(), "coll_recv()"));
    return 0;
}

START_TEST(what_is_wrong_is_told_with_the_last_one)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork(2, end_wrong, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("order");
    TCase *tc = tcase_create("order");
    int sizes = getenv("TEST_QUICK") ? 4 : 8;

    tcase_set_timeout(tc, 3 * DEADLINE);
    tcase_add_loop_test(tc, two_orders_end, 0, 2 * N_ORDERS);
    tcase_add_loop_test(tc, two_orders_of_threads_end, 0, 2 * N_ORDERS);
    tcase_add_loop_test(tc, random_orders_end, 0, 2 * sizes);
    tcase_add_loop_test(tc, communicators_end_in_any_order, 0, 2 * sizes);
    tcase_add_loop_test(tc, a_rank_that_leaves_need_not_wait, 0, 2);
    tcase_add_loop_test(tc, who_computes_delays_nobody_who_ends, 0, 2);
    tcase_add_test(tc, who_left_long_ago_has_not_waited_since);
    tcase_add_test(tc, what_is_wrong_is_told_with_the_last_one);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
