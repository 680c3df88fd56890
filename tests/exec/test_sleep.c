/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sleep.c - threads that sleep until something comes: other ranks' messages,
 * news of their own process, the deadline.
 *
 * Where a test sleeps without an end, a wake-up that does not come hangs until
 * Check's time is over.
 */
#include "lib/exec/sleep.h"
#include "lib/exec/wait.h"
#include "lib/util/futex.h"
#include "lib/util/util.h"
#include "tests/support/forbid.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FOR_EVER 1e6
#define DEADLINE 60

/* ---- bells of other makers ------------------------------------------------- */

/* A transport that has a bell and nothing else. */
struct ringer {
    struct coll__tp base;
    struct coll__bell bell;
    int is_sure;
};

static int ringer_arm(struct coll__tp *tp, struct coll__bell *bell)
{
    struct ringer *ringer = (struct ringer *)tp;

    *bell = ringer->bell;
    return ringer->is_sure;
}

static const struct coll__transport ringing = {.name = "ringer",
                                               .arm = ringer_arm};

static atomic_int words[2];
static struct ringer ringers[2];

static void use_words(void)
{
    for (int r = 0; r < 2; r++)
        ringers[r] = (struct ringer){
            {.ops = &ringing}, {.word = &words[r], .fd = -1}, .is_sure = 1};
}

static void ring_word(int r)
{
    atomic_store(&words[r], 1);
    coll__futex_wake(FUTEX_SHARED, &words[r]);
}

/* What a thread sleeps on, and whether it has been told to stop. */
struct sleeper {
    pthread_t thread;
    struct coll__tp *tps[2];
    int n;
    atomic_int n_armed, is_over;
    int is_sure;
};

static void *sleep_until_over(void *arg)
{
    struct sleeper *s = arg;

    for (;;) {
        struct coll__sleep sleep;

        coll__sleep_arm(&sleep, s->tps, s->n);
        s->is_sure = sleep.is_sure;
        atomic_fetch_add(&s->n_armed, 1);
        if (atomic_load(&s->is_over))
            return NULL;
        coll__sleep(&sleep, FOR_EVER);
    }
}

static void start_sleeper(struct sleeper *s, int n)
{
    *s = (struct sleeper){.tps = {&ringers[0].base, &ringers[1].base}, .n = n};
    ck_assert(!pthread_create(&s->thread, NULL, sleep_until_over, s));
    while (!atomic_load(&s->n_armed))
        usleep(100);
    usleep(2000); /* it is likely to sleep by now; if not, that is a case too */
}

static void end_sleeper(struct sleeper *s) { pthread_join(s->thread, NULL); }

START_TEST(either_word_wakes)
{
    struct sleeper s;

    use_words();
    start_sleeper(&s, 2);
    atomic_store(&s.is_over, 1);
    ring_word(_i);
    end_sleeper(&s);
    ck_assert(s.is_sure);
}
END_TEST

/* Where the kernel waits for one thing only, the other one is looked at. */
START_TEST(an_old_kernel_hears_one_and_looks_at_the_other)
{
    struct sleeper s;

    ck_assert(!forbid_waitv());
    use_words();
    start_sleeper(&s, 2);
    atomic_store(&s.is_over, 1);
    if (_i < 2)
        ring_word(_i);
    end_sleeper(&s);
}
END_TEST

START_TEST(a_file_wakes)
{
    uint64_t one = 1;
    struct sleeper s;
    int fd = eventfd(0, 0);

    ck_assert_int_ge(fd, 0);
    use_words();
    ringers[0].bell = (struct coll__bell){.fd = fd};
    start_sleeper(&s, 1);
    atomic_store(&s.is_over, 1);
    ck_assert_int_eq(write(fd, &one, sizeof(one)), sizeof(one));
    end_sleeper(&s);
    close(fd);
}
END_TEST

/* A word beside a file: whichever rings is noticed. */
START_TEST(a_word_beside_a_file_is_looked_at)
{
    uint64_t one = 1;
    struct sleeper s;
    int fd = eventfd(0, 0);

    ck_assert_int_ge(fd, 0);
    use_words();
    ringers[0].bell = (struct coll__bell){.fd = fd};
    start_sleeper(&s, 2);
    atomic_store(&s.is_over, 1);
    if (_i)
        ring_word(1);
    else
        ck_assert_int_eq(write(fd, &one, sizeof(one)), sizeof(one));
    end_sleeper(&s);
    close(fd);
}
END_TEST

START_TEST(one_that_is_not_sure_makes_all_unsure)
{
    struct sleeper s;

    use_words();
    ringers[_i].is_sure = 0;
    start_sleeper(&s, 2);
    atomic_store(&s.is_over, 1);
    ring_word(0);
    end_sleeper(&s);
    ck_assert(!s.is_sure);
}
END_TEST

/* ---- news of the own process ---------------------------------------------- */

START_TEST(news_wake_whoever_sleeps)
{
    struct sleeper s[3];

    if (_i == 1)
        ck_assert(!forbid_waitv()); /* nothing else is waited for: news are */
    use_words();
    for (int i = 0; i < 3; i++)
        start_sleeper(&s[i], _i == 1 ? 0 : i % 3);
    for (int i = 0; i < 3; i++)
        atomic_store(&s[i].is_over, 1);
    coll__sleep_news();
    for (int i = 0; i < 3; i++)
        end_sleeper(&s[i]);
}
END_TEST

/* Threads that sleep hear of an abort, and of an operation that they are to
 * move. */
static int bring_news(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_request *request;
    int one = 1, sum = 0;
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = &one,
                             .out = &sum,
                             .count = 1};
    struct sleeper s;

    WORLD_CHECK(me, comm && !coll_request_create(&args, comm, &request));
    start_sleeper(&s, 0);
    atomic_store(&s.is_over, 1);
    world_meet(me);
    if (!*(int *)me->arg) {
        WORLD_CHECK(me, !coll_start(request));
        pthread_join(s.thread, NULL);
        WORLD_CHECK(me, !coll_wait(request, 0) && sum == me->size);
    } else {
        if (me->rank == 0)
            coll_comm_abort(comm, "a test");
        pthread_join(s.thread, NULL);
        WORLD_CHECK(me,
                    world_await_failure(comm, patient(10)) == COLL_ERR_ABORTED);
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(a_start_and_an_abort_are_news)
{
    ck_assert_int_eq(world_fork(3, bring_news, &_i, patient(DEADLINE)), 0);
}
END_TEST

/* ---- ranks ---------------------------------------------------------------- */

static void doze(unsigned *state, unsigned most)
{
    *state = *state * 1664525u + 1013904223u;
    if ((*state >> 8) % 3 == 0)
        usleep((*state >> 10) % most);
}

#define MOST 50000

/* Whoever comes early sleeps; small and large ones, two of them under way. */
static int call_late(struct world_rank *me)
{
    static const size_t counts[] = {1, 500, MOST};
    int *in = calloc(2 * MOST, sizeof(int)), *out = in + MOST;
    struct coll_comm *comm = world_join(me);
    unsigned state = (unsigned)me->rank + 1;

    WORLD_CHECK(me, in && comm);
    for (int k = 0; k < 60; k++) {
        size_t n = counts[k % 3];

        for (size_t i = 0; i < n; i++)
            in[i] = me->rank + k + (int)i;
        doze(&state, 4000);
        WORLD_CHECK(
            me, !coll_allreduce(in, out, n, COLL_I32, COLL_SUM, comm, NULL));
        for (size_t i = 0; i < n; i++)
            WORLD_CHECK(me, out[i] == me->size * (k + (int)i) +
                                          me->size * (me->size - 1) / 2);
        doze(&state, 1000);
        WORLD_CHECK(me, !coll_broadcast(in, out, n, COLL_I32, k % me->size,
                                        comm, NULL));
        WORLD_CHECK(me, out[n - 1] == k % me->size + k + (int)n - 1);
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    free(in);
    return 0;
}

static const char *const ways[] = {"block", "auto"};
#define N_WAYS 2

/* 2 ranks, and more than there are cores. */
START_TEST(ranks_that_sleep_get_everything)
{
    setenv("COLL_WAIT", ways[_i % N_WAYS], 1);
    ck_assert_int_eq(
        world_fork(_i / N_WAYS ? 9 : 2, call_late, NULL, patient(DEADLINE)), 0);
}
END_TEST

START_TEST(threads_that_sleep_get_everything)
{
    setenv("COLL_WAIT", "block", 1);
    ck_assert_int_eq(world_threads(5, call_late, NULL, patient(DEADLINE)), 0);
}
END_TEST

static int begin_sum(struct coll_comm *comm, int *in, int *out,
                     struct coll_request **request)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = in,
                             .out = out,
                             .count = 1};
    int rc = coll_request_create(&args, comm, request);

    return rc ? rc : coll_start(*request);
}

/* Two communicators, waited for in orders of the ranks' own by ranks that
 * sleep. */
static int wait_crossed(struct world_rank *me)
{
    struct coll_comm *comms[2] = {world_join(me), world_join(me)};
    unsigned state = (unsigned)me->rank + 1;

    WORLD_CHECK(me, comms[0] && comms[1]);
    for (int k = 0; k < 40; k++) {
        struct coll_request *requests[2];
        int in[2] = {k, 2 * k}, out[2];

        doze(&state, 3000);
        for (int c = 0; c < 2; c++)
            WORLD_CHECK(me,
                        !begin_sum(comms[c], &in[c], &out[c], &requests[c]));
        for (int i = 0; i < 2; i++) {
            int c = (me->rank + i) % 2;

            doze(&state, 3000);
            WORLD_CHECK(me, !coll_wait(requests[c], 0));
            WORLD_CHECK(me, out[c] == me->size * in[c]);
            WORLD_CHECK(me, !coll_request_destroy(requests[c]));
        }
    }
    WORLD_CHECK(me, !coll_comm_destroy(comms[0]));
    WORLD_CHECK(me, !coll_comm_destroy(comms[1]));
    return 0;
}

START_TEST(two_that_are_waited_for_crosswise_end)
{
    setenv("COLL_WAIT", "block", 1);
    ck_assert_int_eq(
        world_fork(_i ? 9 : 2, wait_crossed, NULL, patient(DEADLINE)), 0);
}
END_TEST

/* ---- what ends a sleep in vain -------------------------------------------- */

/* All but rank 0 sleep in a barrier; it does something else. */
static int leave_alone(struct world_rank *me)
{
    static const int wanted[] = {COLL_ERR_PEER, COLL_ERR_ABORTED};
    int is_abort = *(int *)me->arg, rc;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == 0) {
        usleep(100000);
        if (!is_abort)
            raise(SIGKILL);
        coll_comm_abort(comm, "a test");
    }
    rc = coll_barrier(comm, NULL);
    WORLD_CHECK(me, rc == wanted[is_abort]);
    coll_comm_destroy(comm);
    return 0;
}

/* The one that was killed counts. */
START_TEST(a_death_and_an_abort_end_sleep)
{
    setenv("COLL_WAIT", "block", 1);
    ck_assert_int_eq(world_fork(6, leave_alone, &_i, patient(DEADLINE)), !_i);
}
END_TEST

/* Nobody comes but rank 0, which has a deadline. */
static int wait_in_vain(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_request *request;
    int one = 1, sum;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == 0) {
        WORLD_CHECK(me, !begin_sum(comm, &one, &sum, &request));
        EXPECT(me, coll_wait(request, 0.3), COLL_ERR_TIMEOUT, "not arrived");
        coll_request_destroy(request);
    }
    world_meet(me);
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(a_deadline_ends_sleep)
{
    setenv("COLL_WAIT", "block", 1);
    ck_assert_int_eq(world_fork(3, wait_in_vain, NULL, patient(DEADLINE)), 0);
}
END_TEST

/* ---- when not to spin ------------------------------------------------------ */

/* A wait that so many polls end; does it begin by yielding? */
static int wait_for(struct coll__wait *wait, unsigned n_polls)
{
    int is_shy;

    coll__wait_idle(wait, 0);
    is_shy = wait->n_idle > wait->n_spins;
    while (wait->n_idle < n_polls)
        coll__wait_idle(wait, 0);
    coll__wait_moved(wait);
    return is_shy;
}

/* Waits that a yield ends at once: the peer was on this core. */
START_TEST(who_shares_a_core_with_its_peer_does_not_spin)
{
    double end = coll__now() + patient(DEADLINE / 2);
    struct coll__wait wait;
    unsigned late, n = 0;

    coll__wait_init(&wait, 0, NULL);
    late = wait.n_spins + 2;
    ck_assert(!wait_for(&wait, late)); /* once may be chance */
    while (
        !wait_for(&wait, late)) /* on a busy machine a stranger had the core */
        ck_assert(coll__now() < end);
    while (wait_for(&wait, late))
        ck_assert_uint_lt(++n, 1000);
    ck_assert_uint_gt(n, 10); /* it was worth it, and then one tries again */
}
END_TEST

START_TEST(who_need_not_wait_long_spins_on)
{
    struct coll__wait wait;

    coll__wait_init(&wait, 0, NULL);
    for (int i = 0; i < 100; i++) {
        ck_assert(!wait_for(&wait, 10));
        ck_assert(!wait_for(&wait, wait.n_spins)); /* just so */
        ck_assert(!wait_for(&wait, i % 2 ? wait.n_spins + 2 : 1));
    }
}
END_TEST

/* ---- when to sleep --------------------------------------------------------- */

/* Wait until it sleeps, and then until `seconds` have passed since the first yield;
 * how long it yielded before. */
static double sleep_for(struct coll__wait *wait, double seconds)
{
    wait->has_slept = 0;
    while (!wait->has_slept || coll__now() - wait->idle_since < seconds)
        coll__wait_idle(wait, 0);
    coll__wait_idle(wait, 0); /* it had slept on then */
    coll__wait_moved(wait);
    return wait->patience;
}

/* Also when others between them end at the first yield. */
START_TEST(who_waited_for_long_does_not_yield_for_long)
{
    struct coll__wait wait;

    coll__wait_init(&wait, 0, NULL);
    ck_assert_double_eq(sleep_for(&wait, 0), wait.yield_s);
    for (int i = 0; i < 5; i++) {
        ck_assert_double_lt(sleep_for(&wait, wait.yield_s), wait.yield_s / 20);
        wait_for(&wait, wait.n_spins + 1);
    }
}
END_TEST

/* On a busy machine the short one lasts as well, now and then. */
START_TEST(who_would_have_been_served_awake_yields_on)
{
    double end = coll__now() + patient(DEADLINE / 2);
    struct coll__wait wait;

    coll__wait_init(&wait, 0, NULL);
    do {
        ck_assert_double_lt(coll__now(), end);
        sleep_for(&wait, wait.yield_s);
        sleep_for(&wait, 0);
    } while (wait.lasted >= wait.yield_s);
    ck_assert_double_eq(sleep_for(&wait, 0), wait.yield_s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sleep");
    TCase *c = tcase_create("sleep");

    patient_timeout(DEADLINE);
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, either_word_wakes, 0, 2);
    tcase_add_loop_test(c, an_old_kernel_hears_one_and_looks_at_the_other, 0,
                        3);
    tcase_add_test(c, a_file_wakes);
    tcase_add_loop_test(c, a_word_beside_a_file_is_looked_at, 0, 2);
    tcase_add_loop_test(c, one_that_is_not_sure_makes_all_unsure, 0, 2);
    tcase_add_loop_test(c, news_wake_whoever_sleeps, 0, 2);
    tcase_add_loop_test(c, a_start_and_an_abort_are_news, 0, 2);
    tcase_add_loop_test(c, ranks_that_sleep_get_everything, 0, 2 * N_WAYS);
    tcase_add_test(c, threads_that_sleep_get_everything);
    tcase_add_loop_test(c, two_that_are_waited_for_crosswise_end, 0, 2);
    tcase_add_loop_test(c, a_death_and_an_abort_end_sleep, 0, 2);
    tcase_add_test(c, a_deadline_ends_sleep);
    tcase_add_test(c, who_shares_a_core_with_its_peer_does_not_spin);
    tcase_add_test(c, who_need_not_wait_long_spins_on);
    tcase_add_test(c, who_waited_for_long_does_not_yield_for_long);
    tcase_add_test(c, who_would_have_been_served_awake_yields_on);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
