/* SPDX-License-Identifier: BSD-3-Clause */
/* test_split.c - communicators made of a communicator's ranks: who is in which,
 * that they are independent, and what a failure reaches. */
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/comm/comm.h"
#include "lib/util/util.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEADLINE 60
#define MOST 9

/* The sum over comm of what each rank brings; -1 when that failed. */
static int sum(struct coll_comm *comm, int mine)
{
    int all;

    if (coll_allreduce(&mine, &all, 1, COLL_I32, COLL_SUM, comm, NULL))
        return -1;
    return all;
}

/* That comm has these ranks of the parent, in this order. */
static int is_group(struct coll_comm *comm, int me, const int *ranks, int n)
{
    int got[MOST];

    if (coll_comm_size(comm) != n || ranks[coll_comm_rank(comm)] != me ||
        coll_allgather(&me, got, 1, COLL_I32, comm, NULL))
        return 0;
    return !memcmp(got, ranks, (size_t)n * sizeof(int));
}

/* ---- who is in which ----------------------------------------------------- */

static int by_color(struct world_rank *me)
{
    struct coll_comm *comm, *split;
    int mine[MOST], n = 0;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    for (int r = me->rank % 3; r < me->size; r += 3)
        mine[n++] = r;
    WORLD_CHECK(me, !coll_comm_split(comm, me->rank % 3 * 1000, 7, &split));
    WORLD_CHECK(me, is_group(split, me->rank, mine, n));
    WORLD_CHECK(me, sum(comm, 1) == me->size);
    WORLD_CHECK(me, is_group(split, me->rank, mine, n));
    WORLD_CHECK(me, !coll_comm_destroy(split));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_color_gathers_its_ranks_in_order)
{
    ck_assert_int_eq(world_fork(_i, by_color, NULL, DEADLINE), 0);
}
END_TEST

START_TEST(ranks_may_be_threads)
{
    ck_assert_int_eq(world_threads(_i, by_color, NULL, DEADLINE), 0);
}
END_TEST

/* Keys may be negative, and equal ones leave the order. */
static int by_key(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_comm *split;
    int order[MOST], n = 0;

    for (int r = 0; r < me->size; r++)
        order[r] = me->size - 1 - r;
    WORLD_CHECK(me, !coll_comm_split(comm, 0, -me->rank, &split));
    WORLD_CHECK(me, is_group(split, me->rank, order, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(split));
    for (int r = 1; r < me->size; r += 2)
        order[n++] = r;
    for (int r = 0; r < me->size; r += 2)
        order[n++] = r;
    WORLD_CHECK(me, !coll_comm_split(comm, 5, me->rank % 2 ? INT32_MIN
                                                           : INT32_MAX,
                                     &split));
    WORLD_CHECK(me, is_group(split, me->rank, order, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(split));
    return 0;
}

START_TEST(keys_decide_the_order)
{
    ck_assert_int_eq(world_fork_joined(_i, by_key, NULL, DEADLINE), 0);
}
END_TEST

static int without_color(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_comm *split;
    int mine[MOST], n = 0, is_in = me->rank % 2;

    for (int r = 1; r < me->size; r += 2)
        mine[n++] = r;
    split = comm;
    WORLD_CHECK(me, !coll_comm_split(comm, is_in ? 3 : COLL_NO_COLOR, 0,
                                     &split));
    WORLD_CHECK(me, is_in ? is_group(split, me->rank, mine, n) : !split);
    WORLD_CHECK(me, !coll_comm_destroy(split));
    split = comm;
    WORLD_CHECK(me, !coll_comm_split(comm, COLL_NO_COLOR, 0, &split));
    WORLD_CHECK(me, !split);
    return 0;
}

START_TEST(a_rank_without_a_color_is_in_none)
{
    ck_assert_int_eq(world_fork_joined(_i, without_color, NULL, DEADLINE), 0);
}
END_TEST

/* Halve until each is alone; all of them live at once, the last made ends
 * first or last. */
static int nested(struct world_rank *me)
{
    struct coll_comm *comms[8];
    int n = 1, first = *(int *)me->arg;

    WORLD_CHECK(me, !coll_comm_create_oob(&comms[0], &me->oob, NULL));
    for (; coll_comm_size(comms[n - 1]) > 1; n++) {
        int rank = coll_comm_rank(comms[n - 1]);
        int size = coll_comm_size(comms[n - 1]);
        int is_low = rank < size / 2;

        WORLD_CHECK(me, !coll_comm_split(comms[n - 1], is_low, 0, &comms[n]));
        WORLD_CHECK(me, coll_comm_size(comms[n]) ==
                            (is_low ? size / 2 : size - size / 2));
    }
    for (int k = 0; k < n; k++)
        WORLD_CHECK(me, sum(comms[k], 1) == coll_comm_size(comms[k]));
    for (int k = 0; k < n; k++)
        WORLD_CHECK(me, !coll_comm_destroy(comms[first ? k : n - 1 - k]));
    return 0;
}

START_TEST(splits_of_splits_end_in_any_order)
{
    for (int first = 0; first < 2; first++)
        ck_assert_int_eq(world_fork(_i, nested, &first, DEADLINE), 0);
}
END_TEST

/* ---- a duplicate --------------------------------------------------------- */

static int dup_in_turn(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config),
                                 .timeout = 41,
                                 .reproducible = 1};
    struct coll_comm *comm, *dup;
    int all[MOST];

    for (int r = 0; r < me->size; r++)
        all[r] = r;
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
    WORLD_CHECK(me, dup->timeout == 41 && dup->settings.is_reproducible);
    for (int i = 0; i < 30; i++)
        WORLD_CHECK(me, is_group(i % 2 ? comm : dup, me->rank, all, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, sum(dup, 2) == 2 * me->size);
    WORLD_CHECK(me, !coll_comm_destroy(dup));
    return 0;
}

START_TEST(a_duplicate_works_beside_its_parent_and_after_it)
{
    ck_assert_int_eq(world_fork(_i, dup_in_turn, NULL, DEADLINE), 0);
}
END_TEST

/* Many at once, then one after the other: none leaves anything behind. */
static int dup_often(struct world_rank *me, struct coll_comm *comm)
{
    enum { AT_ONCE = 20, IN_TURN = 80 };
    struct coll_comm *dups[AT_ONCE], *dup;

    for (int i = 0; i < AT_ONCE; i++)
        WORLD_CHECK(me, !coll_comm_dup(comm, &dups[i]));
    for (int i = 0; i < AT_ONCE; i++)
        WORLD_CHECK(me, !coll_comm_destroy(dups[i]));
    for (int i = 0; i < IN_TURN; i++) {
        WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
        WORLD_CHECK(me, !coll_comm_destroy(dup));
    }
    WORLD_CHECK(me, sum(comm, 1) == me->size);
    return 0;
}

START_TEST(a_communicator_is_duplicated_any_number_of_times)
{
    ck_assert_int_eq(world_fork_joined(_i, dup_often, NULL, DEADLINE), 0);
}
END_TEST

/* What the environment said when the parent was made holds for the child. */
static int settings_stay(struct world_rank *me)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args = {.size = sizeof(args), .type = COLL_F32};
    struct coll_comm *comm, *dup;
    char x[64], y[64];

    args.in = x, args.out = y, args.count = 1;
    setenv("COLL_ALGO", "ring", 1);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    setenv("COLL_ALGO", "no_such_algorithm", 1);
    WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
    WORLD_CHECK(me, !coll_plan_query(&args, dup, &info));
    WORLD_CHECK(me, !strcmp(info.algorithm, "ring"));
    WORLD_CHECK(me, !coll_comm_destroy(dup));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_duplicate_is_set_like_its_parent)
{
    ck_assert_int_eq(world_fork(3, settings_stay, NULL, DEADLINE), 0);
}
END_TEST

/* ---- bad input ----------------------------------------------------------- */

/* One rank is wrong: all are told, nobody waits, and comm lives on. */
static int bad_split(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_comm *split = NULL;
    int last = me->rank == me->size - 1;

    EXPECT(me, coll_comm_split(NULL, 0, 0, &split), COLL_ERR_INVALID,
           "coll_comm_split: comm is NULL");
    EXPECT(me, coll_comm_dup(NULL, &split), COLL_ERR_INVALID,
           "coll_comm_dup: comm is NULL");
    EXPECT(me, coll_comm_split(comm, last ? -2 : 0, 0, &split),
           COLL_ERR_INVALID, "has a color below 0");
    EXPECT(me, coll_comm_split(comm, 0, 0, last ? NULL : &split),
           COLL_ERR_INVALID, "passed NULL");
    EXPECT(me, coll_comm_dup(comm, last ? NULL : &split), COLL_ERR_INVALID,
           "coll_comm_dup: rank");
    WORLD_CHECK(me, split == NULL);
    WORLD_CHECK(me, sum(comm, 1) == me->size);
    return 0;
}

START_TEST(a_wrong_wish_of_one_rank_is_told_to_all)
{
    ck_assert_int_eq(world_fork_joined(_i, bad_split, NULL, DEADLINE), 0);
}
END_TEST

static int while_running(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_request *request;
    struct coll_comm *split = NULL;

    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    EXPECT(me, coll_comm_split(comm, 0, 0, &split), COLL_ERR_INVALID,
           "wait for them first");
    WORLD_CHECK(me, !coll_wait(request, 0));
    WORLD_CHECK(me, !coll_comm_split(comm, 0, 0, &split));
    WORLD_CHECK(me, !coll_comm_destroy(split));
    WORLD_CHECK(me, !coll_request_destroy(request));
    return 0;
}

START_TEST(a_parent_with_running_operations_is_refused)
{
    ck_assert_int_eq(world_fork_joined(3, while_running, NULL, DEADLINE), 0);
}
END_TEST

/* ---- failures ------------------------------------------------------------ */

static int after_failure(struct world_rank *me)
{
    struct coll_comm *comm, *split = NULL;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    world_meet(me); /* who still joins would fail to */
    if (me->rank == 1)
        coll_comm_abort(comm, "enough of it");
    EXPECT(me, coll_comm_split(comm, 0, 0, &split), COLL_ERR_ABORTED,
           "enough of it");
    EXPECT(me, coll_comm_dup(comm, &split), COLL_ERR_ABORTED, "enough of it");
    WORLD_CHECK(me, split == NULL);
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(a_failed_parent_cannot_be_split)
{
    ck_assert_int_eq(world_fork(3, after_failure, NULL, DEADLINE), 0);
}
END_TEST

/* Let this process open no more files, or as many as before. */
static void limit_files(struct rlimit *before, int is_limited)
{
    struct rlimit limit = *before;

    if (is_limited) {
        getrlimit(RLIMIT_NOFILE, before);
        limit = *before;
        limit.rlim_cur = (rlim_t)dup(0); /* the first that is free */
        close((int)limit.rlim_cur);
    }
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Rank 1, which leads the odd ones, can open no file. */
static int one_group_fails(struct world_rank *me, struct coll_comm *comm)
{
    int is_odd = me->rank % 2, rc;
    struct coll_comm *split = NULL;
    struct rlimit before = {0};

    if (me->rank == 1)
        limit_files(&before, 1);
    rc = coll_comm_split(comm, is_odd, 0, &split);
    if (me->rank == 1)
        limit_files(&before, 0);
    WORLD_CHECK(me, rc == (is_odd ? COLL_ERR_SYSTEM : COLL_OK));
    WORLD_CHECK(me, !is_odd == !!split);
    if (split)
        WORLD_CHECK(me, sum(split, 1) == (me->size + 1) / 2);
    WORLD_CHECK(me, sum(comm, 1) == me->size);
    WORLD_CHECK(me, !coll_comm_destroy(split));
    return 0;
}

START_TEST(a_group_that_cannot_form_leaves_the_others)
{
    ck_assert_int_eq(world_fork_joined(5, one_group_fails, NULL, DEADLINE), 0);
}
END_TEST

/* Look at this process's listening sockets: how many there are, and whether one
 * can be reached from other hosts. */
static int look_around(int *is_wide)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in6 at = {0};
        socklen_t len = sizeof(at), int_len = sizeof(int);
        struct sockaddr_in *four = (struct sockaddr_in *)&at;
        int is_listening = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening,
                       &int_len) ||
            !is_listening || getsockname(fd, (struct sockaddr *)&at, &len))
            continue;
        if (at.sin6_family == AF_INET6)
            *is_wide |= !IN6_IS_ADDR_LOOPBACK(&at.sin6_addr);
        else if (at.sin6_family == AF_INET)
            *is_wide |= ntohl(four->sin_addr.s_addr) >> 24 != 127;
        else
            continue; /* a Unix socket */
        n++;
    }
    return n;
}

struct lookout {
    atomic_int is_over;
    int is_wide;
};

static void *look_out(void *arg)
{
    struct lookout *lookout = arg;

    while (!atomic_load(&lookout->is_over))
        look_around(&lookout->is_wide);
    return NULL;
}

static int listens_little(struct world_rank *me)
{
    struct lookout lookout = {0};
    struct coll_comm *comm, *dup;
    pthread_t thread;
    int ignored = 0, before = look_around(&ignored), within;

    setenv("COLL_TRANSPORTS", "self,shm", 1);
    WORLD_CHECK(me, !pthread_create(&thread, NULL, look_out, &lookout));
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    within = look_around(&ignored);
    for (int i = 0; i < 10; i++) {
        WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
        WORLD_CHECK(me, sum(dup, 1) == me->size);
        WORLD_CHECK(me, look_around(&ignored) == within);
        WORLD_CHECK(me, !coll_comm_destroy(dup));
    }
    atomic_store(&lookout.is_over, 1);
    pthread_join(thread, NULL);
    WORLD_CHECK(me, !lookout.is_wide);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, look_around(&ignored) == before);
    return 0;
}

START_TEST(a_host_alone_is_not_to_be_reached_from_others)
{
    ck_assert_int_eq(world_fork(4, listens_little, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 2 dies: its group notices, and so does the parent; the other group goes
 * on, and ends well. */
static int one_dies(struct world_rank *me)
{
    struct coll_comm *comm, *split;
    int is_odd = me->rank % 2, rc = COLL_OK;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_split(comm, is_odd, 0, &split));
    world_meet(me); /* all came this far */
    if (me->rank == 2)
        raise(SIGKILL);
    if (!is_odd) {
        while (rc == COLL_OK)
            rc = coll_barrier(split, NULL);
        EXPECT(me, rc, COLL_ERR_PEER,
               "in the group of ranks 0 2 4 of 6: rank 1");
    }
    EXPECT(me, world_await_failure(comm, 20), COLL_ERR_PEER, "rank 2");
    if (is_odd)
        WORLD_CHECK(me, sum(split, 1) == me->size / 2);
    WORLD_CHECK(me, coll_comm_destroy(split) ==
                        (is_odd ? COLL_OK : COLL_ERR_PEER));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

START_TEST(a_death_fails_its_groups_and_no_other)
{
    ck_assert_int_eq(world_fork(6, one_dies, NULL, DEADLINE), 1);
}
END_TEST

/* Its first rank aborts: how does each begin the sentence? */
static int aborts_as(struct world_rank *me, struct coll_comm *comm,
                     const char *sentence)
{

    if (coll_comm_rank(comm) == 0)
        coll_comm_abort(comm, "test");
    EXPECT(me, world_await_failure(comm, 20), COLL_ERR_ABORTED, sentence);
    WORLD_CHECK(me, !strncmp(coll_last_error(), sentence, strlen(sentence)));
    world_meet(me);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_ABORTED);
    return 0;
}

/* Groups within groups, of rising and falling numbers. */
static int groups_have_names(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_comm *same, *half, *again, *pair;
    int is_odd = me->rank % 2, bad;

    WORLD_CHECK(me, !coll_comm_dup(comm, &same));
    WORLD_CHECK(me, !coll_comm_split(comm, is_odd, -me->rank, &half));
    WORLD_CHECK(me, !coll_comm_dup(half, &again));
    WORLD_CHECK(me, !coll_comm_split(half, coll_comm_rank(half) == 3,
                                     coll_comm_rank(half), &pair));
    bad = aborts_as(me, same, "rank 0 aborted") ||
          aborts_as(me, again,
                    is_odd ? "in the group of ranks 7 5 ... 1 of 8: "
                           : "in the group of ranks 6 4 ... 0 of 8: "
                             "rank 0 aborted") ||
          aborts_as(me, pair,
                    me->rank == 0   ? "in the group of rank 0 of 8: "
                    : me->rank == 1 ? "in the group of rank 1 of 8: "
                    : is_odd        ? "in the group of ranks 7 5 3 of 8: "
                                    : "in the group of ranks 6 4 2 of 8: ");
    WORLD_CHECK(me, !bad);
    WORLD_CHECK(me, !coll_comm_destroy(half));
    return 0;
}

START_TEST(a_sentence_names_the_group_whose_ranks_it_counts)
{
    ck_assert_int_eq(world_fork_joined(8, groups_have_names, NULL, DEADLINE),
                     0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *c = tcase_create("split");
    int end = getenv("TEST_QUICK") ? 6 : MOST + 1;

    patient_timeout(40);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, a_color_gathers_its_ranks_in_order, 1, end);
    tcase_add_loop_test(c, ranks_may_be_threads, 1, end);
    tcase_add_loop_test(c, keys_decide_the_order, 1, end);
    tcase_add_loop_test(c, a_rank_without_a_color_is_in_none, 1, end);
    tcase_add_loop_test(c, splits_of_splits_end_in_any_order, 1, end);
    tcase_add_loop_test(c, a_duplicate_works_beside_its_parent_and_after_it, 1,
                        end);
    tcase_add_loop_test(c, a_communicator_is_duplicated_any_number_of_times, 1,
                        4);
    tcase_add_test(c, a_duplicate_is_set_like_its_parent);
    tcase_add_loop_test(c, a_wrong_wish_of_one_rank_is_told_to_all, 1, 4);
    tcase_add_test(c, a_parent_with_running_operations_is_refused);
    tcase_add_test(c, a_failed_parent_cannot_be_split);
    tcase_add_test(c, a_group_that_cannot_form_leaves_the_others);
    tcase_add_test(c, a_host_alone_is_not_to_be_reached_from_others);
    tcase_add_test(c, a_death_fails_its_groups_and_no_other);
    tcase_add_test(c, a_sentence_names_the_group_whose_ranks_it_counts);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
