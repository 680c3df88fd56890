/* SPDX-License-Identifier: BSD-3-Clause */
/* test_book.c - COLL_PLAN_FILE among real ranks: a plan written by hand is
 * used and right; a spoilt one is refused, and so are ranks that differ. */
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define DEADLINE 60

/* A star of 3 ranks: rank 0 adds what the others send and sends it back. */
static const char star[] =
    "coll_plan 1\n"
    "collective allreduce\n"
    "type i32\n"
    "ranks 3\n"
    "count 4\n"
    "algorithm star\n"
    "rank 0 tmp 32\n"
    "0 copy out[0,16) from in[0,16)\n"
    "1 recv_reduce peer 1 out[0,16)\n"
    "2 recv_reduce peer 2 out[0,16)\n"
    "3 send peer 1 out[0,16)\n"
    "4 send peer 2 out[0,16)\n"
    "rank 1\n"
    "0 send peer 0 in[0,16)\n"
    "1 recv peer 0 out[0,16)\n"
    "rank 2 in_place\n"
    "0 send peer 0 out[0,16)\n"
    "1 recv peer 0 out[0,16)\n";

static char path[] = "/tmp/coll-set-XXXXXX"; /* made and removed by main() */

static void write_file(const char *text)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (int)strlen(text));
    close(fd);
    setenv("COLL_PLAN_FILE", path, 1);
}

/* Run fn in n ranks that have the text for a plan file. */
static void run_with(const char *text, int n, world_fn *fn, void *arg)
{
    write_file(text);
    ck_assert_int_eq(world_fork(n, fn, arg, DEADLINE), 0);
    unsetenv("COLL_PLAN_FILE");
}

static int which(struct coll_comm *comm, size_t count, char name[32])
{
    static int buffer[64];
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .in = buffer,
                             .out = buffer,
                             .count = count};
    int rc = coll_plan_query(&args, comm, &info);

    memcpy(name, info.algorithm, 32);
    return rc;
}

/* Every rank in place by turns, whatever the file says. */
static int uses_the_star(struct world_rank *me)
{
    struct coll_comm *comm;
    char name[32];

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !which(comm, 4, name) && !strcmp(name, "star"));
    WORLD_CHECK(me, !which(comm, 5, name) && strcmp(name, "star"));
    for (int turn = 0; turn < 8; turn++) {
        int in[4], out[4], in_place = turn >> me->rank & 1;

        for (int i = 0; i < 4; i++)
            in[i] = out[i] = (me->rank + 1) * (i + turn);
        WORLD_CHECK(me, !coll_allreduce(in_place ? out : in, out, 4, COLL_I32,
                                        COLL_SUM, comm, NULL));
        for (int i = 0; i < 4; i++) {
            WORLD_CHECK(me, out[i] == 6 * (i + turn));
            WORLD_CHECK(me, in[i] == (me->rank + 1) * (i + turn));
        }
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_plan_by_hand_is_used_and_right)
{
    run_with(star, 3, uses_the_star, NULL);
}
END_TEST

static int uses_another(struct world_rank *me)
{
    struct coll_comm *comm;
    char name[32];

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !which(comm, 4, name) && strcmp(name, "star"));
    WORLD_CHECK(me, !coll_barrier(comm, NULL));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_plan_for_other_ranks_is_left_alone)
{
    run_with(star, 2, uses_another, NULL);
}
END_TEST

static int is_refused(struct world_rank *me)
{
    struct coll_comm *comm;

    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_INVALID,
           (const char *)me->arg);
    return 0;
}

/* Replace the first `old` behind `after` by as many characters. */
static void expect_refused(const char *after, const char *old, const char *with,
                           char *words)
{
    char text[sizeof(star)], *at;

    memcpy(text, star, sizeof(star));
    at = strstr(strstr(text, after), old);
    memcpy(at, with, strlen(with));
    run_with(text, 3, is_refused, words);
}

START_TEST(a_spoilt_plan_is_refused)
{
    static char stuck[] = "gets stuck", peer[] = "peer 7 is not within 0 to 2",
                twice[] = "is refused: rank 0";

    expect_refused("rank 1", "send peer 0", "send peer 2", stuck);
    expect_refused("rank 0", "send peer 1", "send peer 7", peer);
    expect_refused("rank 0", "2 recv_reduce peer 2", "2 recv_reduce peer 1",
                   stuck);
    expect_refused("rank 0", "0 copy out[0,16) from in[0,16)",
                   "0 copy tmp[0,16) from in[0,16)", twice);
}
END_TEST

/* Rank 1 has no file. */
static int differs(struct world_rank *me)
{
    struct coll_comm *comm;

    if (me->rank == 1)
        setenv("COLL_PLAN_FILE", "", 1);
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_MISMATCH,
           "COLL_PLAN_FILE");
    return 0;
}

START_TEST(ranks_must_have_the_same_plans) { run_with(star, 3, differs, NULL); }
END_TEST

/* Rank 1 has none any more when a duplicate is made. */
static int loses_it(struct world_rank *me)
{
    struct coll_comm *comm, *dup;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    if (me->rank == 1)
        setenv("COLL_PLAN_FILE", "", 1);
    EXPECT(me, coll_comm_dup(comm, &dup), COLL_ERR_INVALID, "have changed");
    WORLD_CHECK(me, !coll_barrier(comm, NULL));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(plans_do_not_change_between_communicators)
{
    run_with(star, 3, loses_it, NULL);
}
END_TEST

/* How often any of the files has been opened since the last time. */
static int n_opened(int watch)
{
    struct inotify_event event;
    int n = 0;

    while (read(watch, &event, sizeof(event)) == (ssize_t)sizeof(event))
        n++;
    return n;
}

/* Communicators of one process: the first one reads, the others do not. */
static int makes_many(struct world_rank *me)
{
    struct coll_comm *comm, *dup;
    int watch = inotify_init1(IN_NONBLOCK);
    char name[32];

    WORLD_CHECK(me, inotify_add_watch(watch, path, IN_OPEN) >= 0);
    WORLD_CHECK(
        me, inotify_add_watch(watch, getenv("COLL_TOPO_FILE"), IN_OPEN) >= 0);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, n_opened(watch) > 0);
    world_meet(me);
    n_opened(watch);
    for (int i = 0; i < 5; i++) {
        WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
        WORLD_CHECK(me, !which(dup, 4, name) && !strcmp(name, "star"));
        WORLD_CHECK(me, !coll_comm_destroy(i % 2 ? comm : dup));
        comm = i % 2 ? dup : comm;
    }
    WORLD_CHECK(me, n_opened(watch) == 0);
    WORLD_CHECK(me, !which(comm, 4, name) && !strcmp(name, "star"));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_duplicate_reads_no_file_again)
{
    setenv("COLL_TOPO_FILE", fixture_file("topo", "two_sockets.xml"), 1);
    run_with(star, 3, makes_many, NULL);
}
END_TEST

/* The plan has another name, of the same length, when the second is made. */
static int reads_another(struct world_rank *me)
{
    struct coll_comm *comm, *other;
    char name[32], text[sizeof(star)];
    FILE *file;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    world_meet(me);
    if (!me->rank) {
        memcpy(text, star, sizeof(star));
        memcpy(strstr(text, "algorithm star"), "algorithm wars", 14);
        file = fopen(path, "w");
        WORLD_CHECK(me, file && fputs(text, file) >= 0 && !fclose(file));
    }
    world_meet(me);
    WORLD_CHECK(me, !coll_comm_create_oob(&other, &me->oob, NULL));
    WORLD_CHECK(me, !which(other, 4, name) && !strcmp(name, "wars"));
    WORLD_CHECK(me, !which(comm, 4, name) && !strcmp(name, "star"));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, !which(other, 4, name) && !strcmp(name, "wars"));
    WORLD_CHECK(me, !coll_comm_destroy(other));
    return 0;
}

START_TEST(a_plan_that_has_changed_is_read_again)
{
    run_with(star, 3, reads_another, NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("set");
    TCase *tcase = suite_case(suite, "set", 4 * DEADLINE);
    int status, fd = mkstemp(path);

    if (fd < 0) {
        perror(path);
        return EXIT_FAILURE;
    }
    close(fd);
    tcase_add_test(tcase, a_plan_by_hand_is_used_and_right);
    tcase_add_test(tcase, a_plan_for_other_ranks_is_left_alone);
    tcase_add_test(tcase, a_spoilt_plan_is_refused);
    tcase_add_test(tcase, ranks_must_have_the_same_plans);
    tcase_add_test(tcase, plans_do_not_change_between_communicators);
    tcase_add_test(tcase, a_duplicate_reads_no_file_again);
    tcase_add_test(tcase, a_plan_that_has_changed_is_read_again);
    status = suite_run(suite);
    unlink(path);
    return status;
}
