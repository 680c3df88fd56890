/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stall.c - COLL_STALL_WARN: a wait says once who is missing, and goes on. */
#include "lib/comm/comm.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 60

/* What a rank's library has said; this rank, if it tells others of a warning. */
static char said[4096];
static const struct world_rank *teller;

static void hear(enum coll_log_level level, const char *part, const char *text,
                 void *arg)
{
    size_t at = strlen(said);

    (void)arg;
    if (level == COLL_LOG_WARN && !strcmp(part, "comm"))
        snprintf(said + at, sizeof(said) - at, "%s\n", text);
    if (teller && strstr(said + at, " has waited for "))
        world_through(teller);
}

/* Come when n ranks have warned, and late enough for each to warn again. */
static int be_late(const struct world_rank *me, int n)
{
    int is_well = world_await_through(me, n, DEADLINE / 2);

    usleep(1500000);
    return is_well;
}

/* The lines that match the pattern of a shell.  How long a wait has lasted, and whether
 * another rank is late too, is up to the machine: "*" stands for it. */
static int n_said(const char *pattern)
{
    static char lines[sizeof(said)];
    int n = 0;

    strcpy(lines, said);
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"))
        n += !fnmatch(pattern, line, 0);
    return n;
}

enum how { BLOCKED, TESTED, RECEIVED };

static int wait_in(struct world_rank *me, struct coll_comm *comm, enum how how)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_request *request;
    int x = 0, rc;

    if (how == RECEIVED && me->rank == me->size - 1)
        for (int r = 0; r < me->rank; r++)
            WORLD_CHECK(me, !coll_send(&x, 1, COLL_I32, r, comm, NULL));
    if (how == RECEIVED && me->rank < me->size - 1)
        WORLD_CHECK(me, !coll_recv(&x, 1, COLL_I32, me->size - 1, comm, NULL));
    if (how == BLOCKED)
        WORLD_CHECK(me, !coll_barrier(comm, NULL));
    if (how != TESTED)
        return 0;
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    while ((rc = coll_test(request)) == COLL_IN_PROGRESS)
        ;
    WORLD_CHECK(me, rc == COLL_OK && !coll_request_destroy(request));
    return 0;
}

/* The last of them comes when the others have warned, which they do once. */
static int come_late(struct world_rank *me)
{
    static const char *const missing[] = {
        [BLOCKED] = "barrier #2 has waited for * s on rank 0; not arrived: "
                    "*2* (rank [12] is after barrier #1); it fails after *",
        [TESTED] = "barrier #2 has waited for * s on rank 0; not arrived: "
                   "*2* (rank [12] is after barrier #1); it fails after *",
        [RECEIVED] = "recv #1 from 2 (1 i32) has waited for * s on rank 0; "
                     "rank 2 is after barrier #1; it fails after *",
    };
    enum how how = *(enum how *)me->arg;
    struct coll_comm *comm = world_join(me);
    int is_late = me->rank == me->size - 1;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    teller = me;
    coll_set_log_handler(hear, NULL);
    if (is_late)
        WORLD_CHECK(me, be_late(me, me->size - 1));
    WORLD_CHECK(me, !wait_in(me, comm, how));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    if (n_said("* has waited for *") != !is_late ||
        n_said("* continued after *") != !is_late ||
        (!me->rank && n_said(missing[how]) != 1)) {
        fprintf(stderr, "rank %d said:\n%s", me->rank, said);
        return 1;
    }
    return 0;
}

START_TEST(who_is_missing_is_said_once_and_that_it_went_on)
{
    enum how how = (enum how)(_i / 2);

    setenv("COLL_STALL_WARN", "1", 1);
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(3, come_late, &how, DEADLINE), 0);
}
END_TEST

/* ---- hosts and groups ------------------------------------------------------- */

/* Ranks 0 and 2 are a group, and rank 2, its rank 1, comes late, from what is
 * another host as far as the sentence knows. */
static int come_late_to_part(struct world_rank *me)
{
    struct coll_comm *all, *part;
    char host[64], words[256];

    gethostname(host, sizeof(host));
    WORLD_CHECK(me, !world_divide(me, me->rank % 2, &all, &part));
    teller = me->rank ? NULL : me;
    coll_set_log_handler(hear, NULL);
    if (!(me->rank % 2)) {
        part->n_hosts = 2;
        part->peers[1].host = 1;
        if (me->rank == 2)
            WORLD_CHECK(me, be_late(me, 1));
        WORLD_CHECK(me, !coll_barrier(part, NULL));
    }
    WORLD_CHECK(me, !coll_comm_destroy(part) && !coll_comm_destroy(all));
    snprintf(words, sizeof(words),
             "in the group of ranks 0 2 of 3: barrier #1 has waited for * s on "
             "rank 0; not arrived: rank 1 on %s (rank 1 is *",
             host);
    if (!me->rank && (n_said(words) != 1 || n_said("* continued *") != 1)) {
        fprintf(stderr, "rank %d said:\n%s", me->rank, said);
        return 1;
    }
    return 0;
}

START_TEST(a_group_and_a_host_are_named)
{
    setenv("COLL_STALL_WARN", "1", 1);
    ck_assert_int_eq(world_fork(3, come_late_to_part, NULL, DEADLINE), 0);
}
END_TEST

/* ---- nothing is said --------------------------------------------------------- */

/* The deadline is shorter, or it is off. */
static int never_come(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int rc;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    coll_set_log_handler(hear, NULL);
    world_hurry(comm, 2.5);
    rc = me->rank ? coll_barrier(comm, NULL) : world_await_failure(comm, 30);
    EXPECT(me, rc, COLL_ERR_TIMEOUT, "not arrived: rank 0");
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_TIMEOUT);
    if (*said)
        fprintf(stderr, "rank %d said:\n%s", me->rank, said);
    return *said != '\0';
}

START_TEST(an_earlier_deadline_is_all_that_is_said)
{
    setenv("COLL_STALL_WARN", _i ? "0" : "3", 1);
    ck_assert_int_eq(world_fork(3, never_come, NULL, DEADLINE), 0);
}
END_TEST

/* Both are there, and the one computes before it waits. */
static int compute(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_comm *comm = world_join(me);
    struct coll_request *request;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    coll_set_log_handler(hear, NULL);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    world_meet(me);
    if (me->rank)
        sleep(3);
    WORLD_CHECK(me, !coll_wait(request, 0));
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    if (*said)
        fprintf(stderr, "rank %d said:\n%s", me->rank, said);
    return *said != '\0';
}

START_TEST(nobody_is_missing_where_all_have_started)
{
    setenv("COLL_STALL_WARN", "1", 1);
    setenv("COLL_ALGO", "dissemination", 1);
    ck_assert_int_eq(world_fork(2, compute, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stall");
    TCase *c = tcase_create("stall");

    patient_timeout(DEADLINE / 2);
    tcase_set_timeout(c, DEADLINE + 30);
    tcase_add_loop_test(c, who_is_missing_is_said_once_and_that_it_went_on, 0,
                        6);
    tcase_add_test(c, a_group_and_a_host_are_named);
    tcase_add_loop_test(c, an_earlier_deadline_is_all_that_is_said, 0, 2);
    tcase_add_test(c, nobody_is_missing_where_all_have_started);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
