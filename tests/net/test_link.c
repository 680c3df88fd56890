/* SPDX-License-Identifier: BSD-3-Clause */
/* test_link.c - links that are asked for before anybody expects them, as when
 * groups are made and one rank is slower than the other. */
#include "lib/ctrl/ctrl.h"
#include "lib/net/link.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60
#define ROUNDS 40
#define MOST 6

/* ---- both ends in one process --------------------------------------------- */

struct end {
    struct coll__link link; /* first */
    int n_got, n_answered, n_broken;
};

static unsigned char secret[COLL__SECRET_BYTES] = "the group's";
static unsigned char other_secret[COLL__SECRET_BYTES] = "a stranger's";

static int got(struct coll__link *link, const struct coll__frame *frame,
               unsigned char *body)
{
    ((struct end *)link)->n_got += frame->type == 7;
    free(body);
    return 0;
}

static void answered(struct coll__link *link)
{
    ((struct end *)link)->n_answered++;
}

static void broken(struct coll__link *link)
{
    ((struct end *)link)->n_broken++;
}

static void drained(struct coll__link *link) { (void)link; }

static struct end end_of(int self, int peer, const unsigned char *proof)
{
    return (struct end){.link = {.self = self,
                                 .peer = peer,
                                 .secret = proof,
                                 .got = got,
                                 .answered = answered,
                                 .broken = broken,
                                 .drained = drained}};
}

/* Ask over the wire to this process itself; lock held. */
static void ask(struct end *end)
{
    unsigned char self[COLL__PROCESS_BYTES];

    coll__wire_self(self);
    ck_assert_int_eq(coll__link_ask(&end->link, coll__wire_find(self)), 0);
}

/* Let the reactor go on until a link is in that state, or a while has passed;
 * lock held. */
static int becomes(const struct end *end, enum coll__link_state state,
                   double seconds)
{
    double until = coll__now() + seconds;

    while (end->link.state != state && coll__now() < until) {
        coll__reactor_unlock();
        usleep(1000);
        coll__reactor_lock();
    }
    return end->link.state == state;
}

static int is_handed_on;

static void note(struct coll__task *task)
{
    (void)task;
    is_handed_on = 1;
}

/* Let all that was sent over the wire to this process itself come to its ends; lock
 * held.  The reactor does that in one task, of which this one comes behind. */
static void hand_on(void)
{
    struct coll__task behind = {.run = note};

    is_handed_on = 0;
    coll__reactor_defer(&behind);
    while (!is_handed_on) {
        coll__reactor_unlock();
        usleep(100);
        coll__reactor_lock();
    }
}

static void set_up(void)
{
    ck_assert_int_eq(coll__reactor_get(), 0);
    coll__reactor_lock();
}

static void tear_down(struct end *a, struct end *b)
{
    coll__link_close(&a->link);
    coll__link_close(&b->link);
    coll__reactor_unlock();
    coll__reactor_put();
}

/* ---- a socket ------------------------------------------------------------- */

static int send_error; /* what send() of a wire is to fail with, or 0 */

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    static __typeof__(send) *real;

    if (!real)
        real = (__typeof__(real))dlsym(RTLD_NEXT, "send");
    if (!send_error)
        return real(fd, bytes, len, flags);
    errno = send_error;
    return -1;
}

/* The kernel tells of it once: to who writes, if that is the first to come, and
 * who reads finds the end and no more. */
START_TEST(silence_that_a_write_has_found_is_not_forgotten)
{
    struct end a = end_of(1, 0, secret), b = end_of(0, 1, secret);
    unsigned char process[COLL__PROCESS_BYTES] = "elsewhere";
    struct coll__frame frame = {.type = 7};
    struct coll__wire *wire;
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends),
                     0);
    set_up();
    wire = coll__wire_new(ends[0], process, NULL, "");
    ck_assert_ptr_nonnull(wire);
    ck_assert_int_eq(coll__link_ask(&a.link, wire), 0);
    send_error = _i ? EPIPE : ETIMEDOUT;
    coll__link_send(&a.link, &frame, NULL);
    send_error = 0;
    close(ends[1]);
    ck_assert(becomes(&a, LINK_DOWN, patient(10)));
    ck_assert_int_eq(a.link.is_silent, !_i);
    tear_down(&a, &b);
}
END_TEST

/* ---- asking ---------------------------------------------------------------- */

START_TEST(who_is_not_expected_is_refused)
{
    struct end a = end_of(1, 0, secret), b = end_of(0, 1, secret);

    set_up();
    ask(&a);
    ck_assert(becomes(&a, LINK_REFUSED, patient(10)));
    ck_assert_int_eq(a.n_answered, 1);
    coll__link_expect(&b.link);
    ck_assert(b.link.state == LINK_EXPECTED);
    tear_down(&a, &b);
}
END_TEST

/* What is sent before the answer follows it. */
START_TEST(who_comes_early_waits_while_it_may_be_expected)
{
    struct coll__frame frame = {.type = 7};
    struct end a = end_of(1, 0, secret), b = end_of(0, 1, secret);

    set_up();
    coll__link_hold();
    ask(&a);
    hand_on();
    ck_assert(a.link.state != LINK_REFUSED);
    ck_assert(a.link.state == LINK_ASKING);
    coll__link_expect(&b.link);
    ck_assert(coll__link_is_up(&b.link));
    ck_assert_int_eq(b.n_answered, 1);
    ck_assert(becomes(&a, LINK_UP, patient(10)));
    ck_assert_int_eq(coll__link_send(&a.link, &frame, NULL), 0);
    ck_assert_int_eq(coll__link_send(&b.link, &frame, NULL), 0);
    coll__link_unhold();
    hand_on();
    ck_assert(a.link.state != LINK_DOWN);
    ck_assert_int_eq(a.n_got, 1);
    ck_assert_int_eq(b.n_got, 1);
    tear_down(&a, &b);
}
END_TEST

START_TEST(who_waits_is_refused_when_nobody_expects_it_any_more)
{
    struct end a = end_of(1, 0, secret), b = end_of(0, 2, secret);

    set_up();
    coll__link_hold();
    coll__link_hold();
    ask(&a);
    coll__link_expect(&b.link); /* another one */
    coll__link_unhold();
    hand_on();
    ck_assert(a.link.state != LINK_REFUSED);
    coll__link_unhold();
    ck_assert(becomes(&a, LINK_REFUSED, patient(10)));
    ck_assert(b.link.state == LINK_EXPECTED);
    coll__link_unhold(); /* one too many does no harm */
    tear_down(&a, &b);
}
END_TEST

START_TEST(who_waits_has_to_prove_the_secret)
{
    struct end a = end_of(1, 0, other_secret), b = end_of(0, 1, secret);
    struct end c = end_of(1, 0, secret);

    set_up();
    coll__link_hold();
    ask(&a);
    hand_on();
    ck_assert(a.link.state != LINK_REFUSED);
    coll__link_expect(&b.link);
    ck_assert(b.link.state == LINK_EXPECTED);
    ask(&c);
    ck_assert(becomes(&c, LINK_UP, patient(10)));
    coll__link_unhold();
    ck_assert(becomes(&a, LINK_REFUSED, patient(10)));
    coll__link_close(&c.link);
    tear_down(&a, &b);
}
END_TEST

START_TEST(who_came_early_and_went_is_forgotten)
{
    struct end a = end_of(1, 0, secret), b = end_of(0, 1, secret);
    struct end c = end_of(2, 0, secret);

    set_up();
    coll__link_hold();
    ask(&a);
    ask(&c);
    hand_on();
    ck_assert(a.link.state != LINK_REFUSED);
    coll__link_close(&a.link);
    hand_on(); /* the end arrives */
    ck_assert(b.link.state != LINK_UP);
    coll__link_expect(&b.link);
    ck_assert(b.link.state == LINK_EXPECTED);
    ck_assert(c.link.state == LINK_ASKING);
    coll__link_unhold();
    ck_assert(becomes(&c, LINK_REFUSED, patient(10)));
    tear_down(&a, &b);
}
END_TEST

START_TEST(who_comes_early_may_say_nothing_more)
{
    struct coll__frame frame = {.type = 7};
    struct end a = end_of(1, 0, secret), b = end_of(0, 1, secret);

    set_up();
    coll__link_hold();
    ask(&a);
    ck_assert_int_eq(coll__link_send(&a.link, &frame, NULL), 0);
    ck_assert(becomes(&a, LINK_REFUSED, patient(10)));
    coll__link_expect(&b.link);
    ck_assert(b.link.state == LINK_EXPECTED);
    coll__link_unhold();
    tear_down(&a, &b);
}
END_TEST

/* ---- ranks that stall while groups are made --------------------------------- */

/* Stop and continue the ranks in turn until the other end of the pipe closes. */
static void disturb(const struct world_rank *me, int is_over)
{
    struct pollfd end = {.fd = is_over};
    unsigned seed = 1;

    while (!poll(&end, 1, rand_r(&seed) % 3)) {
        pid_t pid = me->pids[rand_r(&seed) % me->size];

        kill(pid, SIGSTOP);
        usleep((useconds_t)(rand_r(&seed) % 3000));
        kill(pid, SIGCONT);
    }
    _exit(0);
}

static int make_groups(struct world_rank *me, struct coll_comm *comm)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct coll_comm *dup, *split;
        int one = 1, all = 0;

        WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
        WORLD_CHECK(me, !coll_comm_split(dup, me->rank / 2 + i % 2,
                                         i * me->rank, &split));
        WORLD_CHECK(me, !coll_allreduce(&one, &all, 1, COLL_I32, COLL_SUM,
                                        split, NULL));
        WORLD_CHECK(me, all == coll_comm_size(split));
        WORLD_CHECK(me, !coll_comm_destroy(split));
        WORLD_CHECK(me, !coll_comm_destroy(dup));
    }
    return 0;
}

static int stall(struct world_rank *me)
{
    struct coll_comm *comm;
    char all[MOST];
    int ends[2];
    pid_t helper = 0;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !pipe(ends));
    if (!me->rank) {
        helper = fork();
        if (!helper) {
            close(ends[1]);
            disturb(me, ends[0]);
        }
    }
    WORLD_CHECK(me, helper >= 0 && !make_groups(me, comm));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    close(ends[0]);
    close(ends[1]);
    WORLD_CHECK(me, !helper || waitpid(helper, NULL, 0) == helper);
    /* who is stopped at its end would disturb the leak sanitizer */
    WORLD_CHECK(me, !me->oob.allgather(me->oob.arg, "", all, 1));
    return 0;
}

START_TEST(ranks_may_stall_while_groups_are_made)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork(_i, stall, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("link");
    TCase *tc = tcase_create("link");

    tcase_set_timeout(tc, DEADLINE + 20);
    tcase_add_loop_test(tc, silence_that_a_write_has_found_is_not_forgotten, 0,
                        2);
    tcase_add_test(tc, who_is_not_expected_is_refused);
    tcase_add_test(tc, who_comes_early_waits_while_it_may_be_expected);
    tcase_add_test(tc, who_waits_is_refused_when_nobody_expects_it_any_more);
    tcase_add_test(tc, who_waits_has_to_prove_the_secret);
    tcase_add_test(tc, who_came_early_and_went_is_forgotten);
    tcase_add_test(tc, who_comes_early_may_say_nothing_more);
    tcase_add_loop_test(tc, ranks_may_stall_while_groups_are_made, 2, MOST + 1);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
