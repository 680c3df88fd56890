/* SPDX-License-Identifier: BSD-3-Clause */
/* test_many.c - hundreds of communicators: what one costs in descriptors,
 * threads, memory and time, and that nothing is left of it.  Times are printed,
 * not judged. */
#include "tests/support/files.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 300
#define ALIVE 50
#define ROUNDS 250 /* of a dup and a split */
#define PERIOD 15 /* rounds, until the splits are the same again */
#define SETTLE patient(10) /* s; connections without a use rest for a second */

struct cost {
    int n_fds, n_threads;
    long kib; /* VmRSS */
};

static long resident(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    long kib = 0;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

static struct cost look(void)
{
    return (struct cost){folder_count("/proc/self/fd"),
                         folder_count("/proc/self/task"), resident()};
}

static int gather_alone(void *arg, const void *in, void *out, size_t len)
{
    (void)arg;
    memcpy(out, in, len);
    return 0;
}

/* What is destroyed while other ranks are late ends in later calls, of which
 * this is one that needs nobody. */
static void call_something(void)
{
    struct coll_oob oob = {
        .size = sizeof(oob), .nranks = 1, .allgather = gather_alone};
    struct coll_comm *alone;

    if (!coll_comm_create_oob(&alone, &oob, NULL))
        coll_comm_destroy(alone);
}

/* Wait until no more is open than was; what is open in the end. */
static struct cost settled(const struct cost *was)
{
    double end = coll__now() + SETTLE;
    struct cost is = look();

    while ((is.n_fds > was->n_fds || is.n_threads > was->n_threads) &&
           coll__now() < end) {
        usleep(10000);
        call_something();
        is = look();
    }
    return is;
}

/* ---- many at a time ------------------------------------------------------- */

static int keeps_many(struct world_rank *me)
{
    struct coll_comm *comm, *dups[ALIVE];
    struct cost before, after;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_dup(comm, &dups[0]));
    before = look();
    for (int i = 1; i < ALIVE; i++)
        WORLD_CHECK(me, !coll_comm_dup(comm, &dups[i]));
    WORLD_CHECK(me, !world_sum(dups[ALIVE / 2], 1));
    after = look();
    if (!me->rank)
        printf("%d ranks: each of %d dups: %.2f descriptors, %.2f threads, "
               "%.0f KiB\n", me->size, ALIVE - 1,
               (after.n_fds - before.n_fds) / (ALIVE - 1.0),
               (after.n_threads - before.n_threads) / (ALIVE - 1.0),
               (double)(after.kib - before.kib) / (ALIVE - 1));
    WORLD_CHECK(me, after.n_fds <= before.n_fds);
    WORLD_CHECK(me, after.n_threads <= before.n_threads);
    WORLD_CHECK(me, after.kib - before.kib < (ALIVE - 1) * 4096L);
    for (int i = 0; i < ALIVE; i++)
        WORLD_CHECK(me, !coll_comm_destroy(dups[i]));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_dup_that_lives_holds_no_descriptor)
{
    ck_assert_int_eq(world_fork(4, keeps_many, NULL, DEADLINE), 0);
    ck_assert_int_eq(world_fork(8, keeps_many, NULL, DEADLINE), 0);
}
END_TEST

/* ---- one after the other -------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *what, double *times, int n)
{
    qsort(times, (size_t)n, sizeof(*times), compare);
    printf("  %s: median %.2f ms, 9 of 10 below %.2f ms, most %.2f ms\n", what,
           times[n / 2] * 1e3, times[n * 9 / 10] * 1e3, times[n - 1] * 1e3);
}

static int one_round(struct world_rank *me, struct coll_comm *comm, int round,
                     double *dup, double *split)
{
    struct coll_comm *a, *b;
    double start = coll__now();

    WORLD_CHECK(me, !coll_comm_dup(comm, &a));
    *dup = coll__now() - start;
    WORLD_CHECK(me, !world_sum(a, 1));
    start = coll__now();
    WORLD_CHECK(me, !coll_comm_split(comm, (me->rank + round) % 3,
                                     me->rank * round % 5, &b));
    *split = coll__now() - start;
    WORLD_CHECK(me, !world_sum(b, 1));
    WORLD_CHECK(me, !coll_comm_destroy(round % 2 ? a : b));
    WORLD_CHECK(me, !coll_comm_destroy(round % 2 ? b : a));
    return 0;
}

static int comes_and_goes(struct world_rank *me)
{
    double dup[ROUNDS], split[ROUNDS], first[2];
    struct cost before, after;
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    for (int i = 0; i < PERIOD; i++) /* each listens that ever will */
        WORLD_CHECK(me, !one_round(me, comm, i, &first[0], &first[1]));
    sleep(2); /* until the splits' connections are gone */
    before = look();
    for (int i = 0; i < ROUNDS; i++)
        WORLD_CHECK(me, !one_round(me, comm, i, &dup[i], &split[i]));
    after = settled(&before);
    if (!me->rank) {
        printf("%d ranks: after %d dups and splits: %+d descriptors, %+d "
               "threads, %+ld KiB\n", me->size, 2 * ROUNDS,
               after.n_fds - before.n_fds, after.n_threads - before.n_threads,
               after.kib - before.kib);
        print_times("dup", dup, ROUNDS);
        print_times("split", split, ROUNDS);
    }
    WORLD_CHECK(me, after.n_fds <= before.n_fds);
    WORLD_CHECK(me, after.n_threads <= before.n_threads);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(nothing_is_left_of_500_dups_and_splits)
{
    ck_assert_int_eq(world_fork(8, comes_and_goes, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("many");
    TCase *c = tcase_create("many");

    setenv("COLL_TIMEOUT", "200", 1);
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_test(c, a_dup_that_lives_holds_no_descriptor);
    tcase_add_test(c, nothing_is_left_of_500_dups_and_splits);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
