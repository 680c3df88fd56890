/* SPDX-License-Identifier: BSD-3-Clause */
/* test_any_order.c - requests that ranks start in different orders (coll_args.any_order). */
#include "include/coll/coll.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 60
#define N 10
#define MOST 30000 /* elements: more than what is small in all */
#define ROUNDS 120

/* One request, and what it computes. */
struct work {
    struct coll_request *request;
    enum coll_collective collective;
    int root, number, *in, *out;
    size_t count;
};

static const int sizes[] = {1, 2, 3, 5, 8};

static void shuffle(int *list, int n, unsigned *seed)
{
    for (int i = 0; i < n; i++)
        list[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)((unsigned)rand_r(seed) % (unsigned)(i + 1)), at = list[i];

        list[i] = list[j];
        list[j] = at;
    }
}

static struct coll_args args_of(const struct work *w)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = w->collective,
                              .type = COLL_I32,
                              .op = COLL_SUM,
                              .root = w->root,
                              .in = w->in,
                              .out = w->out,
                              .count = w->count,
                              .any_order = 1};
}

static int create(struct world_rank *me, struct coll_comm *comm, int i,
                  int background, struct work *w)
{
    static const enum coll_collective all[] = {COLL_ALLREDUCE, COLL_BROADCAST,
                                               COLL_ALLGATHER, COLL_BARRIER};
    static const size_t counts[] = {3, MOST, 200};
    struct coll_args args;

    w->collective = all[i % (int)ARRAY_LEN(all)];
    w->count = counts[i % (int)ARRAY_LEN(counts)];
    w->root = i % me->size;
    w->in = malloc(w->count * sizeof(int));
    w->out = malloc(w->count * (size_t)me->size * sizeof(int));
    WORLD_CHECK(me, w->in && w->out);
    args = args_of(w);
    if (w->collective != COLL_BROADCAST)
        args.root = 0;
    args.background = background;
    WORLD_CHECK(me, !coll_request_create(&args, comm, &w->request));
    return 0;
}

static int discard(struct world_rank *me, struct work *w)
{
    WORLD_CHECK(me, !coll_request_destroy(w->request));
    free(w->in);
    free(w->out);
    return 0;
}

static int start(struct world_rank *me, struct work *w)
{
    w->number++;
    for (size_t i = 0; i < w->count; i++)
        w->in[i] = me->rank + (int)i + w->number;
    memset(w->out, 0, w->count * sizeof(int));
    WORLD_CHECK(me, !coll_start(w->request));
    return 0;
}

/* Element i of the sum over all ranks, or what rank r has there. */
static int element(const struct work *w, int size, int r, size_t i)
{
    int one = r + (int)i + w->number;

    return w->collective == COLL_ALLREDUCE
               ? size * (one - r) + size * (size - 1) / 2
               : one;
}

static int end(struct world_rank *me, struct work *w)
{
    int n = w->collective == COLL_ALLGATHER ? me->size
            : w->collective == COLL_BARRIER ? 0
                                            : 1;

    WORLD_CHECK(me, !coll_wait(w->request, 0));
    for (int r = 0; r < n; r++)
        for (size_t i = 0; i < w->count; i++)
            WORLD_CHECK(me, w->out[(size_t)r * w->count + i] ==
                                element(w, me->size, n > 1 ? r : w->root, i));
    return 0;
}

static int create_all(struct world_rank *me, struct coll_comm *comm,
                      int background, struct work work[N])
{
    memset(work, 0, N * sizeof(*work));
    for (int i = 0; i < N; i++)
        WORLD_CHECK(me, !create(me, comm, i, background, &work[i]));
    return 0;
}

static int discard_all(struct world_rank *me, struct work work[N])
{
    for (int i = 0; i < N; i++)
        WORLD_CHECK(me, !discard(me, &work[i]));
    return 0;
}

/* ---- orders ------------------------------------------------------------------- */

/* Rank 0: start A, start B, wait B, wait A.  The others: start B, wait B, start A, wait A.
 * A is what rank 0 starts first, so its order is not that of the beginning. */
static int cross(struct world_rank *me, struct coll_comm *comm)
{
    struct work work[N];

    WORLD_CHECK(me, !create_all(me, comm, 0, work));
    for (int i = 0; i < part_of(ROUNDS); i++) {
        struct work *a = &work[i % N], *b = &work[(i + 3) % N];

        if (me->rank == 0)
            WORLD_CHECK(me, !start(me, a));
        WORLD_CHECK(me, !start(me, b) && !end(me, b));
        if (me->rank)
            WORLD_CHECK(me, !start(me, a));
        WORLD_CHECK(me, !end(me, a));
    }
    return discard_all(me, work);
}

static int sum_in_order(struct world_rank *me, struct coll_comm *comm)
{
    int one = 1, sum = 0;

    WORLD_CHECK(me,
                !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL));
    WORLD_CHECK(me, sum == me->size);
    return 0;
}

/* Start all in an order of this rank's own, and call others in between. */
static int start_all(struct world_rank *me, struct coll_comm *comm,
                     struct work work[N], unsigned *own)
{
    int list[N], n_called = 0;

    shuffle(list, N, own);
    for (int i = 0; i < N; i++) {
        if (n_called < 3 && rand_r(own) % 3 == 0)
            WORLD_CHECK(me, ++n_called && !sum_in_order(me, comm));
        WORLD_CHECK(me, !start(me, &work[list[i]]));
        if (rand_r(own) % 4 == 0)
            WORLD_CHECK(me, coll_test(work[list[0]].request) >= 0);
    }
    for (; n_called < 3; n_called++)
        WORLD_CHECK(me, !sum_in_order(me, comm));
    return 0;
}

/* One rank starts and waits for one request after another; the others have started all
 * of them. */
static int one_by_one(struct world_rank *me, struct work work[N], unsigned *own)
{
    int list[N];

    shuffle(list, N, own);
    for (int i = 0; i < N; i++)
        WORLD_CHECK(me, !start(me, &work[list[i]]) && !end(me, &work[list[i]]));
    return 0;
}

static int one_round(struct world_rank *me, struct coll_comm *comm, int round,
                     struct work work[N], unsigned *own)
{
    int list[N], is_mixed = round % 2;

    if (!is_mixed && me->rank == round / 2 % me->size)
        return one_by_one(me, work, own);
    if (is_mixed)
        WORLD_CHECK(me, !start_all(me, comm, work, own));
    shuffle(list, N, own);
    for (int i = 0; !is_mixed && i < N; i++)
        WORLD_CHECK(me, !start(me, &work[list[i]]));
    shuffle(list, N, own);
    for (int i = 0; i < N; i++)
        WORLD_CHECK(me, !end(me, &work[list[i]]));
    return 0;
}

static int random_orders(struct world_rank *me, struct coll_comm *comm)
{
    struct work work[N];
    unsigned own = 1 + (unsigned)me->rank;

    WORLD_CHECK(me, !create_all(me, comm, 0, work));
    for (int i = 0; i < part_of(ROUNDS); i++)
        WORLD_CHECK(me, !one_round(me, comm, i, work, &own));
    return discard_all(me, work);
}

/* A thread of the library moves them, and ranks compute; a rank may restart one while
 * others have not left it. */
static int in_background(struct world_rank *me, struct coll_comm *comm)
{
    struct work work[N];
    unsigned own = 1 + (unsigned)me->rank;

    WORLD_CHECK(me, !create_all(me, comm, 1, work));
    for (int i = 0; i < part_of(ROUNDS) / 4; i++) {
        WORLD_CHECK(me, !one_round(me, comm, i, work, &own));
        if (rand_r(&own) % 4 == 0)
            usleep(300);
    }
    return discard_all(me, work);
}

/* The same numbers on two communicators. */
static int two_communicators(struct world_rank *me, struct coll_comm *comm)
{
    struct work first[N], second[N];
    unsigned own = 1 + (unsigned)me->rank;
    struct coll_comm *other;

    WORLD_CHECK(me, !coll_comm_dup(comm, &other));
    WORLD_CHECK(me, !create_all(me, comm, 0, first));
    WORLD_CHECK(me, !create_all(me, other, 0, second));
    for (int i = 0; i < part_of(ROUNDS) / 4; i++) {
        int list[N];

        shuffle(list, N, &own);
        for (int k = 0; k < N; k++) {
            WORLD_CHECK(me, !start(me, &first[list[k]]));
            WORLD_CHECK(me, !start(me, &second[list[N - 1 - k]]));
        }
        shuffle(list, N, &own);
        for (int k = 0; k < N; k++) {
            WORLD_CHECK(me, !end(me, &second[list[k]]));
            WORLD_CHECK(me, !end(me, &first[list[N - 1 - k]]));
        }
    }
    WORLD_CHECK(me, !discard_all(me, first) && !discard_all(me, second));
    WORLD_CHECK(me, !coll_comm_destroy(other));
    return 0;
}

/* Ranks start requests that others have not made, and destroy them in orders of their
 * own. */
static int make_and_destroy(struct world_rank *me, struct coll_comm *comm)
{
    unsigned own = 1 + (unsigned)me->rank;

    for (int i = 0; i < part_of(ROUNDS) / 4; i++) {
        struct work work[N] = {{0}};
        int list[N];

        for (int k = 0; k < N; k++) {
            WORLD_CHECK(me, !create(me, comm, k, 0, &work[k]));
            WORLD_CHECK(me, !start(me, &work[k]));
        }
        shuffle(list, N, &own);
        for (int k = 0; k < N; k++)
            WORLD_CHECK(me, !end(me, &work[list[k]]) &&
                                !discard(me, &work[list[k]]));
    }
    return 0;
}

/* A call that fails counts, so that the numbers stay equal. */
static int wrong_on_one(struct world_rank *me, struct coll_comm *comm)
{
    struct work work[N];
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .count = 1,
                             .any_order = 1};
    struct coll_request *request = NULL;
    int number;

    if (me->rank) {
        args.in = args.out = &number;
        WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    } else {
        EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
               "in is NULL");
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !create_all(me, comm, 0, work));
    for (int i = 0; i < N; i++)
        WORLD_CHECK(me, !start(me, &work[(i + me->rank) % N]));
    for (int i = 0; i < N; i++)
        WORLD_CHECK(me, !end(me, &work[i]));
    return discard_all(me, work);
}

static world_comm_fn *const ways[] = {cross,
                                      random_orders,
                                      in_background,
                                      two_communicators,
                                      make_and_destroy,
                                      wrong_on_one};

START_TEST(ranks_start_in_orders_of_their_own)
{
    int size = sizes[_i / 2 % (int)ARRAY_LEN(sizes)];

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork_joined(size,
                                       ways[_i / (2 * (int)ARRAY_LEN(sizes))],
                                       NULL, 2 * DEADLINE),
                     0);
}
END_TEST

/* ---- what is wrong -------------------------------------------------------------- */

static int refusals(struct world_rank *me, struct coll_comm *comm)
{
    int x = 0, y = 0;
    struct coll_request *request;
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .in = &x,
                             .out = &y,
                             .count = 1,
                             .any_order = 2};

    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "any_order must be 0 or 1");
    args.any_order = 1;
    args.collective = COLL_SEND;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "any_order is for operations of all ranks");
    args.collective = COLL_RECV_TAGGED;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "any_order is for operations of all ranks");
    return 0;
}

START_TEST(what_cannot_have_any_order_is_refused)
{
    ck_assert_int_eq(world_fork_joined(2, refusals, NULL, DEADLINE), 0);
}
END_TEST

/* The last rank starts the first request, and all others the second one, too. */
static int one_never_starts(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int is_late = me->rank == me->size - 1;
    struct work work[N];
    char names[64];

    WORLD_CHECK(me, comm && !create_all(me, comm, 0, work));
    WORLD_CHECK(me, !start(me, &work[0]));
    if (!is_late)
        WORLD_CHECK(me, !start(me, &work[1]));
    WORLD_CHECK(me, !end(me, &work[0]));
    world_meet(me);
    world_hurry(comm, 1);
    if (is_late)
        WORLD_CHECK(me, world_await_failure(comm, 20) == COLL_ERR_TIMEOUT);
    snprintf(names, sizeof(names), "not started by rank %d (rank %d is ",
             me->size - 1, me->size - 1);
    EXPECT(me,
           is_late ? coll_comm_async_error(comm)
                   : coll_wait(work[1].request, 0),
           COLL_ERR_TIMEOUT,
           "broadcast of request number 2 (30000 i32, root 1) did not end "
           "within 1 s");
    EXPECT(me, coll_comm_async_error(comm), COLL_ERR_TIMEOUT, names);
    EXPECT(me, coll_start(work[0].request), COLL_ERR_TIMEOUT, "");
    WORLD_CHECK(me, !discard_all(me, work));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(the_deadline_names_who_has_not_started)
{
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(
        world_fork(3 + 3 * (_i / 2), one_never_starts, NULL, DEADLINE), 0);
}
END_TEST

/* Each rank waits for what the other has not started. */
static int wait_crosswise(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct work work[N];

    WORLD_CHECK(me, comm && !create_all(me, comm, 0, work));
    WORLD_CHECK(me, !start(me, &work[me->rank]));
    world_meet(me);
    world_hurry(comm, patient(0.5));
    EXPECT(me, coll_wait(work[me->rank].request, 0), COLL_ERR_TIMEOUT,
           "of request number ");
    WORLD_CHECK(me, strstr(coll_last_error(), "not started by rank "));
    WORLD_CHECK(me, strstr(coll_last_error(), " is in "));
    WORLD_CHECK(me, !discard_all(me, work));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    return 0;
}

START_TEST(the_deadline_says_what_the_other_rank_waits_for)
{
    ck_assert_int_eq(world_fork(2, wait_crosswise, NULL, DEADLINE), 0);
}
END_TEST

/* The requests of one number differ. */
static int differ(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct work w = {.collective = COLL_ALLREDUCE};
    struct coll_args args;
    int in[4] = {0}, out[4];

    WORLD_CHECK(me, comm);
    w.in = in;
    w.out = out;
    w.count = me->rank ? 4 : 3;
    args = args_of(&w);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &w.request));
    WORLD_CHECK(me, !coll_start(w.request));
    EXPECT(me, coll_wait(w.request, 0), COLL_ERR_MISMATCH,
           "all ranks must pass the same count");
    WORLD_CHECK(me, strstr(coll_last_error(), "in any order"));
    WORLD_CHECK(me, !coll_request_destroy(w.request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(requests_of_one_number_that_differ_are_a_mismatch)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, differ, NULL, DEADLINE), 0);
}
END_TEST

/* A rank leaves while another waits for its start. */
static int leave_early(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct work work[N];

    WORLD_CHECK(me, comm && !create_all(me, comm, 0, work));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (me->rank == 0) {
        WORLD_CHECK(me, !start(me, &work[4]));
        EXPECT(me, coll_wait(work[4].request, 0), COLL_ERR_MISMATCH,
               "coll_comm_destroy");
    }
    WORLD_CHECK(me, !discard_all(me, work));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_MISMATCH);
    return 0;
}

START_TEST(a_rank_that_leaves_instead_is_a_mismatch)
{
    ck_assert_int_eq(world_fork(3, leave_early, NULL, DEADLINE), 0);
}
END_TEST

/* One dies, or aborts, while others wait for its start; it may be a parent in the tree. */
static int lose_one(struct world_rank *me)
{
    int is_abort = *(int *)me->arg;
    struct coll_comm *comm = world_join(me);
    struct work work[N];
    int rc = COLL_OK;

    WORLD_CHECK(me, comm && !create_all(me, comm, me->rank % 2, work));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (me->rank == 1 && !is_abort)
        _exit(0);
    for (int i = 0; i < 4 && !rc; i++)
        rc = coll_start(work[(i + me->rank) % 4].request);
    if (me->rank == 1)
        WORLD_CHECK(me, !coll_comm_abort(comm, "enough"));
    if (!rc) /* else it has failed already */
        rc = coll_wait(work[2].request, 0);
    WORLD_CHECK(me, rc == (is_abort ? COLL_ERR_ABORTED : COLL_ERR_PEER) ||
                        (is_abort && rc == COLL_OK));
    world_await_failure(comm, 20);
    WORLD_CHECK(me, coll_request_status(work[1].request) != COLL_IN_PROGRESS ||
                        coll_wait(work[1].request, 0) < 0);
    WORLD_CHECK(me, !discard_all(me, work));
    WORLD_CHECK(me, coll_comm_destroy(comm) < 0);
    return 0;
}

START_TEST(a_lost_rank_ends_them)
{
    int is_abort = _i / 2;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(7, lose_one, &is_abort, DEADLINE), 0);
}
END_TEST

/* A communicator that is destroyed beside such requests says so. */
static int destroy_beside(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct work work[N];

    WORLD_CHECK(me, comm && !create_all(me, comm, 0, work));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_INVALID);
    WORLD_CHECK(me, strstr(coll_last_error(), "still has requests"));
    for (int i = 0; i < N; i++) {
        free(work[i].in);
        free(work[i].out);
    }
    return 0;
}

START_TEST(a_communicator_with_requests_says_so)
{
    ck_assert_int_eq(world_fork(3, destroy_beside, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("any_order");
    TCase *c = tcase_create("any_order");

    tcase_set_timeout(c, 2 * DEADLINE + 10);
    tcase_add_loop_test(c, ranks_start_in_orders_of_their_own, 0,
                        2 * (int)ARRAY_LEN(sizes) * (int)ARRAY_LEN(ways));
    tcase_add_test(c, what_cannot_have_any_order_is_refused);
    tcase_add_loop_test(c, the_deadline_names_who_has_not_started, 0, 4);
    tcase_add_test(c, the_deadline_says_what_the_other_rank_waits_for);
    tcase_add_loop_test(c, requests_of_one_number_that_differ_are_a_mismatch, 0,
                        2);
    tcase_add_test(c, a_rank_that_leaves_instead_is_a_mismatch);
    tcase_add_loop_test(c, a_lost_rank_ends_them, 0, 4);
    tcase_add_test(c, a_communicator_with_requests_says_so);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
