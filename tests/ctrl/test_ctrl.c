/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ctrl.c - the control tree: its shape, exchange, leaving. */
#include "lib/ctrl/ctrl.h"
#include "lib/net/tree.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT patient(20)

/* ---- the tree's shape --------------------------------------------------- */

/* _i: the size */
START_TEST(every_rank_is_below_its_parent_once)
{
    int n_below = 0;

    for (int r = 0; r < _i; r++) {
        int span = coll__tree_span(r, _i), covered = 1;

        ck_assert_int_ge(span, 1);
        for (int j = 0; j < coll__tree_n_children(r, _i); j++) {
            int child = coll__tree_child(r, _i, j);

            ck_assert_int_eq(coll__tree_parent(child, _i), r);
            ck_assert_int_eq(coll__tree_depth(child, _i),
                             coll__tree_depth(r, _i) + 1);
            ck_assert_int_lt(coll__tree_height(child, _i),
                             coll__tree_height(r, _i));
            ck_assert_int_eq(child, r + covered);
            covered += coll__tree_span(child, _i);
            n_below++;
        }
        ck_assert_int_eq(covered, span);
    }
    ck_assert_int_eq(n_below, _i - 1);
}
END_TEST

START_TEST(every_route_ends_where_it_should)
{
    for (int from = 0; from < _i; from++)
        for (int to = 0; to < _i; to++) {
            int at = from, n_hops = 0;

            while (at != to) {
                int j = coll__tree_route(at, _i, to);

                at = j < 0 ? coll__tree_parent(at, _i)
                           : coll__tree_child(at, _i, j);
                ck_assert_int_lt(++n_hops, 64);
            }
        }
}
END_TEST

/* ---- exchange ----------------------------------------------------------- */

static int rank_exchanges(struct world_rank *w)
{
    static const size_t lens[] = {0, 1, 7, 100, 0, 4096, 60000};
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    int bad = 0;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    for (int i = 0; i < (int)ARRAY_LEN(lens); i++)
        bad |= world_exchange(ctrl, w->rank, w->size, lens[i], i);
    if (coll__ctrl_close(ctrl, 1, TIMEOUT))
        bad = 1;
    return bad || world_n_calls(&notice);
}

static const int sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 33};

START_TEST(threads_get_the_block_of_every_rank)
{
    ck_assert_int_eq(world_threads(sizes[_i], rank_exchanges, NULL), 0);
}
END_TEST

START_TEST(processes_get_the_block_of_every_rank)
{
    ck_assert_int_eq(world_forks(_i, rank_exchanges, NULL), 0);
}
END_TEST

/* Ranks say with which length they come: rank 1 another than the others. */
static int rank_differs(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    char in[8] = "", out[8 * 4];
    int status, bad;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    bad = world_exchange(ctrl, w->rank, w->size, 1, 0); /* all are in */
    status = coll__ctrl_allgather(ctrl, in, w->rank == 1 ? 4 : 8, out, TIMEOUT);
    if (status == COLL_ERR_MISMATCH &&
        !strstr(coll_last_error(), "rank 1 exchanges 4 bytes"))
        status = COLL_OK;
    coll__ctrl_close(ctrl, 0, TIMEOUT);
    return bad || status != COLL_ERR_MISMATCH;
}

START_TEST(another_length_is_an_error_on_every_rank)
{
    ck_assert_int_eq(world_threads(4, rank_differs, NULL), 0);
}
END_TEST

/* The same in a part that is being made, whose ranks are 3, 2, 1: its caller
 * knows them by these numbers. */
static int part_differs(struct world_rank *w)
{
    static const int ranks[] = {3, 2, 1};
    struct world_notice notices[2] = {{0}};
    struct coll__ctrl_events events = world_events(&notices[0]);
    struct coll__ctrl_events part_events = world_events(&notices[1]);
    struct coll__ctrl_part part = {.rank = 3 - w->rank,
                                   .size = 3,
                                   .ranks = ranks,
                                   .tag = "differs",
                                   .events = &part_events};
    struct coll__ctrl *ctrl, *below = NULL;
    char in[8] = "", out[8 * 3];
    int status;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    coll__ctrl_divide_begin(ctrl);
    status = coll__ctrl_allgather(ctrl, in, 1, out, TIMEOUT);
    if (!status && w->rank)
        status = coll__ctrl_divide(ctrl, &part, TIMEOUT, &below);
    coll__ctrl_divide_end(ctrl);
    if (!status && below)
        status =
            coll__ctrl_allgather(below, in, w->rank == 2 ? 4 : 8, out, TIMEOUT);
    if (status == COLL_ERR_MISMATCH &&
        !strstr(coll_last_error(), "rank 2 exchanges 4 bytes while rank 3"))
        status = COLL_ERR_INTERNAL;
    if (below)
        coll__ctrl_close(below, 0, TIMEOUT);
    coll__ctrl_close(ctrl, 1, TIMEOUT);
    return status != (w->rank ? COLL_ERR_MISMATCH : COLL_OK);
}

START_TEST(a_part_that_is_made_differs_in_the_numbers_that_are_known)
{
    ck_assert_int_eq(world_threads(4, part_differs, NULL), 0);
}
END_TEST

/* Rank 1 gives up a part that it has joined, and rank 0 leaves it for that,
 * before rank 2 comes to join it: which hears why all the same. */
static int part_is_given_up(struct world_rank *w)
{
    static const int ranks[] = {0, 1, 2};
    struct world_notice notices[2] = {{0}};
    struct coll__ctrl_events events = world_events(&notices[0]);
    struct coll__ctrl_events part_events = world_events(&notices[1]);
    struct coll__ctrl_part part = {.rank = w->rank,
                                   .size = 3,
                                   .ranks = ranks,
                                   .tag = "given up",
                                   .events = &part_events};
    struct coll__ctrl *ctrl, *below = NULL;
    atomic_int *n_through = w->arg;
    char in = 0, out[3];
    int status;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    coll__ctrl_divide_begin(ctrl);
    status = coll__ctrl_allgather(ctrl, &in, 1, out, TIMEOUT);
    while (!status && w->rank == 2 && atomic_load(n_through) < 2)
        world_nap(0.001);
    if (!status)
        status = coll__ctrl_divide(ctrl, &part, TIMEOUT, &below);
    if (below) {
        coll__ctrl_abort(below, COLL_ERR_INVALID, "a file has changed");
        coll__ctrl_close(below, 0, TIMEOUT);
        status = w->rank == 1 ? COLL_ERR_INVALID : COLL_ERR_INTERNAL;
    } else if (!strstr(coll_last_error(), "a file has changed")) {
        status = COLL_ERR_INTERNAL;
    }
    atomic_fetch_add(n_through, 1);
    coll__ctrl_divide_end(ctrl);
    coll__ctrl_close(ctrl, 1, TIMEOUT);
    return status != COLL_ERR_INVALID;
}

START_TEST(a_part_that_is_given_up_says_why_to_those_that_come_later)
{
    atomic_int n_through = 0;

    ck_assert_int_eq(world_threads(3, part_is_given_up, &n_through), 0);
}
END_TEST

/* Wait until all are in the group; who answers late, on a busy machine, is not silent. */
static int all_answer(struct coll__ctrl *ctrl, const struct world_rank *w)
{
    coll__ctrl_answer_within(ctrl, patient(5));
    return world_exchange(ctrl, w->rank, w->size, 1, 0);
}

/* The last rank does not come; it waits until the others have failed. */
static int rank_is_late(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    char in = 0, out[8];
    int status, bad;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    bad = all_answer(ctrl, w);
    if (w->rank == w->size - 1) {
        bad |= !world_await(&notice, TIMEOUT) ||
               notice.status != COLL_ERR_TIMEOUT ||
               !strstr(notice.text, "rank 4 did not join");
    } else {
        bad |= coll__ctrl_exchange_start(ctrl, &in, 1);
        world_gather(w->size - 1);
        status = coll__ctrl_exchange_end(ctrl, out, coll__now() + 0.3, 0.3);
        bad |= status != COLL_ERR_TIMEOUT ||
               !strstr(coll_last_error(), "rank 4 did not join");
    }
    coll__ctrl_close(ctrl, 0, TIMEOUT);
    return bad;
}

START_TEST(a_rank_that_does_not_join_is_named)
{
    ck_assert_int_eq(world_threads(5, rank_is_late, NULL), 0);
}
END_TEST

/* ---- leaving ------------------------------------------------------------ */

/* _i: the number of ranks.  Processes end as soon as they have left. */
static int rank_comes_and_goes(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    if (coll__ctrl_close(ctrl, 1, TIMEOUT))
        return 2;
    return world_n_calls(&notice);
}

START_TEST(leaving_in_order_alarms_nobody)
{
    for (int i = 0; i < 25; i++)
        ck_assert_int_eq(world_forks(_i, rank_comes_and_goes, NULL), 0);
}
END_TEST

START_TEST(threads_leave_in_order_many_times)
{
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(world_threads(2 + i % 6, rank_comes_and_goes, NULL),
                         0);
}
END_TEST

START_TEST(nothing_is_left_of_a_group)
{
    int n_fds, n_threads;

    world_threads(3, rank_comes_and_goes, NULL);
    n_fds = world_n_fds();
    n_threads = world_n_threads();
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(world_threads(5, rank_exchanges, NULL), 0);
    ck_assert_int_eq(world_threads(4, rank_differs, NULL), 0);
    ck_assert_int_eq(world_n_fds(), n_fds);
    ck_assert_int_le(world_settled_threads(n_threads), n_threads);
}
END_TEST

static int rank_goes_early(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    int bad;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    bad = world_exchange(ctrl, w->rank, w->size, 1, 0); /* all are in */
    if (w->rank != 1)
        bad |= !world_await(&notice, TIMEOUT) ||
               notice.status != COLL_ERR_PEER ||
               !strstr(notice.text, "rank 1 (pid ") ||
               !strstr(notice.text, "left the group before the others");
    coll__ctrl_close(ctrl, 0, TIMEOUT);
    return bad || (w->rank == 1 && world_n_calls(&notice));
}

START_TEST(an_early_end_is_told_to_the_others)
{
    ck_assert_int_eq(world_threads(4, rank_goes_early, NULL), 0);
}
END_TEST

/* Rank 2 stays; the others want to leave. */
static int rank_stays(struct world_rank *w)
{
    struct world_notice notice = {0};
    struct coll__ctrl_events events = world_events(&notice);
    struct coll__ctrl *ctrl;
    int status, bad;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    bad = all_answer(ctrl, w);
    if (w->rank == 2) {
        bad |= !world_await(&notice, TIMEOUT);
        coll__ctrl_close(ctrl, 0, TIMEOUT);
        return bad;
    }
    coll__ctrl_close_start(ctrl);
    world_gather(w->size - 1);
    status = coll__ctrl_close_end(ctrl, coll__now() + 0.3, 0.3, 1);
    return bad || status != COLL_ERR_TIMEOUT ||
           !strstr(coll_last_error(), "rank 2 did not leave the group");
}

START_TEST(a_rank_that_stays_is_named)
{
    ck_assert_int_eq(world_threads(4, rank_stays, NULL), 0);
}
END_TEST

static Suite *ctrl_suite(void)
{
    Suite *suite = suite_create("ctrl");
    TCase *tc = suite_case(suite, "tree", 120);

    tcase_add_loop_test(tc, every_rank_is_below_its_parent_once, 1, 70);
    tcase_add_loop_test(tc, every_route_ends_where_it_should, 1, 40);
    tc = suite_case(suite, "exchange", 120);
    tcase_add_loop_test(tc, threads_get_the_block_of_every_rank, 0,
                        (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(tc, processes_get_the_block_of_every_rank, 1, 10);
    tcase_add_test(tc, another_length_is_an_error_on_every_rank);
    tcase_add_test(tc,
                   a_part_that_is_made_differs_in_the_numbers_that_are_known);
    tcase_add_test(tc,
                   a_part_that_is_given_up_says_why_to_those_that_come_later);
    tcase_add_test(tc, a_rank_that_does_not_join_is_named);
    tc = suite_case(suite, "leave", 120);
    tcase_add_loop_test(tc, leaving_in_order_alarms_nobody, 2, 9);
    tcase_add_test(tc, threads_leave_in_order_many_times);
    tcase_add_test(tc, nothing_is_left_of_a_group);
    tcase_add_test(tc, an_early_end_is_told_to_the_others);
    tcase_add_test(tc, a_rank_that_stays_is_named);
    return suite;
}

int main(void)
{
    return suite_run(ctrl_suite());
}
