/* SPDX-License-Identifier: BSD-3-Clause */
/* test_group.c - groups: what travels as one, several communicators at once,
 * nesting, and errors within. */
#include "tests/support/patience.h"
#include "tests/support/work.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 40
#define N 40 /* allreduces in a group */

/* Sizes from 0 on; floats, whose sums depend on the order. */
static void fill(float *x, int k, int rank)
{
    for (int i = 0; i < 3 * k; i++)
        x[i] = (float)(rank + 1) / (float)(7 + i + k);
}

/* Fused and one by one, in the canonical order: the same bits. */
static int same_bits(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .reproducible = 1};
    static float x[N][3 * N], one[N][3 * N], all[N][3 * N];
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    for (int k = 0; k < N; k++) {
        fill(x[k], k, me->rank);
        WORLD_CHECK(me, !coll_allreduce(x[k], one[k], (size_t)(3 * k),
                                        COLL_F32, COLL_SUM, comm, NULL));
    }
    WORLD_CHECK(me, !coll_group_start());
    for (int k = 0; k < N; k++) {
        float *in = k % 2 ? x[k] : all[k]; /* some in place */

        memcpy(all[k], x[k], sizeof(x[k]));
        WORLD_CHECK(me, !coll_allreduce(in, all[k], (size_t)(3 * k), COLL_F32,
                                        COLL_SUM, comm, NULL));
    }
    WORLD_CHECK(me, !coll_group_end());
    for (int k = 0; k < N; k++)
        WORLD_CHECK(me,
                    !memcmp(one[k], all[k], (size_t)(3 * k) * sizeof(float)));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(fused_allreduces_give_the_bits_of_single_ones)
{
    setenv("COLL_FUSE", _i % 2 ? "1K" : "64K", 1);
    ck_assert_int_eq(world_fork(2 + _i / 2, same_bits, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 0 says in a mismatch what number its operation has: that tells how many
 * there were before. */
static int count_operations(struct world_rank *me)
{
    static int x[N][100], y[N][100];
    struct coll_comm *comm = world_join(me);
    char words[64];

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_group_start());
    for (int k = 0; k < N; k++)
        WORLD_CHECK(me, !coll_allreduce(x[k], y[k], 100, COLL_I32, COLL_SUM,
                                        comm, NULL));
    WORLD_CHECK(me, !coll_group_end());
    snprintf(words, sizeof(words), "allreduce #%d (%d i32",
             *(int *)me->arg + 1, 5 + me->size - 1);
    EXPECT(me, coll_allreduce(x, y, 5 + (size_t)me->rank, COLL_I32, COLL_SUM,
                              comm, NULL), COLL_ERR_MISMATCH, words);
    coll_comm_destroy(comm);
    return 0;
}

/* 400 bytes each: 40 at once, 10 at a time, or each alone. */
START_TEST(as_many_travel_as_one_as_coll_fuse_allows)
{
    static const char *const fuse[] = {"64K", "4000", "400", "0"};
    static const int expected[] = {1, 4, 40, 40};
    int n = expected[_i];

    setenv("COLL_FUSE", fuse[_i], 1);
    ck_assert_int_eq(world_fork(2, count_operations, &n, DEADLINE), 0);
}
END_TEST

/* Types and operations that change, another collective between. */
static int mixed(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int x[4] = {me->rank, 1, 2, 3}, sum[4], more[4], root[4] = {0};
    int p = me->size, most[4];
    double d = 0.5, all = 0;

    WORLD_CHECK(me, comm);
    for (int n = 0; n < 10; n++) {
        WORLD_CHECK(me, !coll_group_start());
        coll_allreduce(x, sum, 4, COLL_I32, COLL_SUM, comm, NULL);
        coll_allreduce(x, more, 4, COLL_I32, COLL_SUM, comm, NULL);
        coll_allreduce(x, most, 4, COLL_I32, COLL_MAX, comm, NULL);
        coll_broadcast(x, root, 4, COLL_I32, p - 1, comm, NULL);
        coll_allreduce(&d, &all, 1, COLL_F64, COLL_SUM, comm, NULL);
        WORLD_CHECK(me, all == (n ? 0.5 * p : 0)); /* not yet */
        WORLD_CHECK(me, !coll_group_end());
        WORLD_CHECK(me, sum[0] == p * (p - 1) / 2 && sum[3] == 3 * p);
        WORLD_CHECK(me, !memcmp(sum, more, sizeof(sum)));
        WORLD_CHECK(me, most[0] == p - 1 && root[0] == p - 1);
        WORLD_CHECK(me, all == 0.5 * p);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(other_types_and_collectives_stay_apart)
{
    ck_assert_int_eq(world_fork(_i, mixed, NULL, DEADLINE), 0);
}
END_TEST

/* Two communicators, in another order on every second rank; large and small. */
static int two_orders(struct world_rank *me)
{
    static int x[200000], y[2][200000], z[2];
    struct coll_comm *comms[2] = {world_join(me), world_join(me)};

    WORLD_CHECK(me, comms[0] && comms[1]);
    for (int i = 0; i < 200000; i++)
        x[i] = me->rank + i;
    for (int n = 0; n < 10; n++) {
        WORLD_CHECK(me, !coll_group_start());
        for (int k = 0; k < 2; k++) {
            int c = (k + me->rank) % 2;

            coll_allreduce(x, y[c], 200000, COLL_I32, COLL_MAX, comms[c], NULL);
            coll_allreduce(x, &z[c], 1, COLL_I32, COLL_SUM, comms[c], NULL);
        }
        WORLD_CHECK(me, !coll_group_end());
        for (int c = 0; c < 2; c++) {
            WORLD_CHECK(me, y[c][199999] == me->size - 1 + 199999);
            WORLD_CHECK(me, z[c] == me->size * (me->size - 1) / 2);
        }
    }
    for (int c = 0; c < 2; c++)
        WORLD_CHECK(me, coll_comm_destroy(comms[c]) == COLL_OK);
    return 0;
}

START_TEST(two_communicators_may_be_listed_in_any_order)
{
    setenv("COLL_TRANSPORTS", world_net(_i ? "" : "self,shm,"), 1);
    ck_assert_int_eq(world_fork(4, two_orders, NULL, DEADLINE), 0);
}
END_TEST

/* Groups within groups; a request within one is not part of it. */
static int nested(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_comm *comm = world_join(me);
    struct coll_request *request;
    int x = 1, a = 0, b = 0;

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(&x, &a, 1, COLL_I32, COLL_SUM, comm, NULL);
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(&x, &b, 1, COLL_I32, COLL_SUM, comm, NULL);
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, a == 0 && b == 0);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_start(request) && !coll_wait(request, 0));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, a == 0 && b == 0);
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, a == me->size && b == me->size);
    WORLD_CHECK(me, !coll_group_start() && !coll_group_end()); /* empty */
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(the_outermost_end_counts)
{
    ck_assert_int_eq(world_fork(3, nested, NULL, DEADLINE), 0);
}
END_TEST

/* The counts of a v collective are read at the call. */
static int arrays_copied(struct world_rank *me)
{
    size_t counts[] = {1, 2, 3}, displs[] = {0, 1, 3};
    struct coll_comm *comm = world_join(me);
    int in[3] = {me->rank, me->rank, me->rank}, out[6];

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me, !coll_allgatherv(in, out, counts, displs, COLL_I32, comm,
                                     NULL));
    memset(counts, 0xff, sizeof(counts));
    memset(displs, 0xff, sizeof(displs));
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, out[0] == 0 && out[2] == 1 && out[5] == 2);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_group_keeps_its_own_counts)
{
    ck_assert_int_eq(world_fork(3, arrays_copied, NULL, DEADLINE), 0);
}
END_TEST

/* A wrong call: the group does nothing, and works again afterwards. */
static int wrong_call(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *gone = world_join(me);
    int x = 1, y = 0;

    WORLD_CHECK(me, comm && gone);
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me,
                !coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM, comm, NULL));
    EXPECT(me, coll_broadcast(&x, &y, 1, COLL_I32, 99, comm, NULL),
           COLL_ERR_INVALID, "root 99");
    coll_allreduce(&x, NULL, 1, COLL_I32, COLL_SUM, comm, NULL);
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "root 99");
    WORLD_CHECK(me, y == 0);
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM, comm, NULL);
    EXPECT(me, coll_barrier(NULL, NULL), COLL_ERR_INVALID, "comm is NULL");
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "barrier: comm is NULL");
    WORLD_CHECK(me, y == 0);
    WORLD_CHECK(me, !coll_group_start());
    EXPECT(me, coll_send_tagged(&x, 1, COLL_I32, 1, 7, NULL, NULL),
           COLL_ERR_INVALID, "comm is NULL");
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "comm is NULL");
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM, gone, NULL);
    EXPECT(me, coll_comm_destroy(gone), COLL_ERR_INVALID, "end the group");
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "was destroyed within");
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM, comm, NULL);
    WORLD_CHECK(me, coll_group_end() == COLL_OK && y == me->size);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_wrong_call_ends_the_group_with_its_sentence)
{
    ck_assert_int_eq(world_fork(2, wrong_call, NULL, DEADLINE), 0);
}
END_TEST

/* One communicator of two fails: the other's operations are done, even on a
 * rank that hears of it before it begins. */
static int one_fails(struct world_rank *me)
{
    struct coll_comm *bad = world_join(me), *good = world_join(me);
    int x[9] = {1}, y[9], z = 0;
    size_t n = 8 + (me->rank == 1);

    WORLD_CHECK(me, bad && good);
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(x, y, n, COLL_I32, COLL_SUM, bad, NULL);
    coll_allreduce(x, &z, 1, COLL_I32, COLL_SUM, good, NULL);
    if (me->rank == *(int *)me->arg)
        usleep(500000);
    EXPECT(me, coll_group_end(), COLL_ERR_MISMATCH, "allreduce #1 (9 i32");
    WORLD_CHECK(me, z == me->size);
    WORLD_CHECK(me, coll_comm_destroy(bad) == COLL_ERR_MISMATCH);
    WORLD_CHECK(me, coll_comm_destroy(good) == COLL_OK);
    return 0;
}

START_TEST(a_failed_communicator_does_not_stop_the_others)
{
    int late = _i; /* 3: none */

    ck_assert_int_eq(world_fork(3, one_fails, &late, DEADLINE), 0);
}
END_TEST

/* Fused ones disagree as single ones do. */
static int fused_mismatch(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int x[8] = {0}, y[8];

    WORLD_CHECK(me, comm);
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(x, y, 4, COLL_I32, COLL_SUM, comm, NULL);
    if (me->rank)
        coll_allreduce(x + 4, y + 4, 4, COLL_I32, COLL_SUM, comm, NULL);
    EXPECT(me, coll_group_end(), COLL_ERR_MISMATCH, "(8 i32, sum, parts");
    WORLD_CHECK(me, strstr(coll_last_error(), "(4 i32, sum)"));
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(a_call_that_one_rank_lacks_is_noticed)
{
    ck_assert_int_eq(world_fork(3, fused_mismatch, NULL, DEADLINE), 0);
}
END_TEST

/* The same number of elements, cut in another way, is another group. */
static int fused_otherwise(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int x[10] = {0}, y[10];
    size_t n = me->rank == 1 ? 6 : 4;

    WORLD_CHECK(me, comm);
    for (int turn = 0; turn < 2; turn++) { /* of one shape, in a call and not */
        WORLD_CHECK(me, !coll_group_start());
        coll_allreduce(x, y, 5, COLL_I32, COLL_SUM, comm, NULL);
        coll_allreduce(x + 5, y + 5, 5, COLL_I32, COLL_SUM, comm, NULL);
        WORLD_CHECK(me, !coll_group_end());
        WORLD_CHECK(me, !coll_allreduce(x, y, 10, COLL_I32, COLL_SUM, comm,
                                        NULL));
    }
    world_meet(me); /* all came this far */
    WORLD_CHECK(me, !coll_group_start());
    coll_allreduce(x, y, n, COLL_I32, COLL_SUM, comm, NULL);
    coll_allreduce(x + n, y + n, 10 - n, COLL_I32, COLL_SUM, comm, NULL);
    EXPECT(me, coll_group_end(), COLL_ERR_MISMATCH,
           "(10 i32, sum, parts with digest");
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(parts_of_other_lengths_are_noticed)
{
    ck_assert_int_eq(world_fork(3, fused_otherwise, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group");
    TCase *c = tcase_create("group");

    patient_timeout(30);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, fused_allreduces_give_the_bits_of_single_ones, 0,
                        8);
    tcase_add_loop_test(c, as_many_travel_as_one_as_coll_fuse_allows, 0, 4);
    tcase_add_loop_test(c, other_types_and_collectives_stay_apart, 1, 6);
    tcase_add_loop_test(c, two_communicators_may_be_listed_in_any_order, 0, 2);
    tcase_add_test(c, the_outermost_end_counts);
    tcase_add_test(c, a_group_keeps_its_own_counts);
    tcase_add_test(c, a_wrong_call_ends_the_group_with_its_sentence);
    tcase_add_loop_test(c, a_failed_communicator_does_not_stop_the_others, 0,
                        4);
    tcase_add_test(c, a_call_that_one_rank_lacks_is_noticed);
    tcase_add_test(c, parts_of_other_lengths_are_noticed);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
