/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ucx_share.c - the communicators of a process over its one worker of UCX:
 * each gets its own messages, whoever lets UCX work and whenever it comes; what
 * happens to one is nothing to the others, unless a process is lost to both.
 */
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"
#include "transports/transport.h"

#include <check.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE 120
#define N_TPS 8
#define N_RANKS 4

extern const struct coll__transport coll__transport_ucx;

static struct coll__peer peers[N_RANKS];

/* What open() calls; `between` is polled after each exchange. */
struct meeting {
    struct world_rank *me;
    struct coll__tp *between;
};

static int gather(void *arg, const void *in, size_t len, void *out)
{
    struct meeting *meeting = arg;
    struct world_rank *me = meeting->me;
    double end = coll__now() + 0.05;
    int rc = me->oob.allgather(me->oob.arg, in, out, len);

    while (meeting->between && coll__now() < end)
        coll__transport_ucx.poll(meeting->between);
    return rc;
}

static struct coll__tp *open_while(struct world_rank *me,
                                   struct coll__tp *between)
{
    struct meeting meeting = {me, between};
    struct coll__tp_env env = {.rank = me->rank,
                               .size = me->size,
                               .peers = peers,
                               .allgather = gather,
                               .arg = &meeting,
                               .timeout = DEADLINE};
    struct coll__tp *tp = NULL;

    if (coll__transport_ucx.open(&env, &tp))
        fprintf(stderr, "rank %d: %s\n", me->rank, coll_last_error());
    return tp;
}

/* Ranks that are processes tell each other their pids. */
static struct coll__tp *first_tp(struct world_rank *me)
{
    struct coll__peer mine = {.pid = getpid(),
                              .local_size = me->size,
                              .n_cores = 2,
                              .local_cores = 2};

    me->oob.allgather(me->oob.arg, &mine, peers, sizeof(mine));
    return open_while(me, NULL);
}

/* Poll this one alone until the transfer is done. */
static int finish(struct coll__tp *tp, const struct coll__xfer *xfer)
{
    double end = coll__now() + DEADLINE / 2;

    while (xfer->status == COLL_IN_PROGRESS) {
        if (coll__now() > end)
            return COLL_ERR_TIMEOUT;
        tp->ops->poll(tp);
        sched_yield();
    }
    return xfer->status;
}

static const size_t lens[] = {0, 8, 5000, 70000, 300000, 2100000};
#define N_LENS ARRAY_LEN(lens)

/* The bytes of message k of communicator t. */
static unsigned char *new_message(unsigned t, unsigned k)
{
    size_t len = lens[k];
    unsigned char *bytes = malloc(len + 1);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(31 * t + 7 * k + i + (i >> 8));
    return bytes;
}

static int is_message(const unsigned char *bytes, unsigned t, unsigned k)
{
    unsigned char *want = new_message(t, k);
    int is_same = !lens[k] || !memcmp(bytes, want, lens[k]);

    free(want);
    return is_same;
}

static struct coll__xfer transfer(int peer, void *buf, size_t len)
{
    return (struct coll__xfer){.peer = peer, .buf = buf, .len = len};
}

/* ---- one thread, several communicators ----------------------------------- */

static int n_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int open_many(struct world_rank *me)
{
    struct coll__tp *tps[40];
    int n_first = 0;

    for (int i = 0; i < (int)ARRAY_LEN(tps); i++) {
        tps[i] = i ? open_while(me, NULL) : first_tp(me);
        WORLD_CHECK(me, tps[i]);
        if (!i)
            n_first = n_descriptors();
    }
    /* of the first one's, some may be taken late; each opens none */
    WORLD_CHECK(me, n_descriptors() <= n_first + 2 * N_RANKS);
    for (int i = 0; i < (int)ARRAY_LEN(tps); i++)
        tps[i]->ops->close(tps[i], 1);
    return 0;
}

START_TEST(further_communicators_open_no_descriptors)
{
    ck_assert_int_eq(world_fork(N_RANKS, open_many, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 0 sends in one order of the communicators, rank 1 polls in another. */
static int mix(struct world_rank *me)
{
    struct coll__tp *tps[N_TPS];
    struct coll__xfer xfers[N_TPS][N_LENS];

    for (int t = 0; t < N_TPS; t++)
        tps[t] = t ? open_while(me, NULL) : first_tp(me);
    for (unsigned k = 0; k < N_LENS; k++)
        for (unsigned t = 0; t < N_TPS; t++) {
            struct coll__xfer *xfer = &xfers[t][k];

            *xfer = transfer(!me->rank,
                             me->rank ? malloc(lens[k] + 1) : new_message(t, k),
                             lens[k]);
            if (me->rank)
                tps[t]->ops->recv(tps[t], xfer);
            else
                tps[t]->ops->send(tps[t], xfer);
        }
    for (unsigned i = 0; i < N_TPS; i++)
        for (unsigned k = 0; k < N_LENS; k++) {
            unsigned t = me->rank ? 5 * i % N_TPS : i;

            WORLD_CHECK(me, !finish(tps[t], &xfers[t][k]));
            WORLD_CHECK(me, is_message(xfers[t][k].buf, t, k));
            free(xfers[t][k].buf);
        }
    world_meet(me);
    for (int t = 0; t < N_TPS; t++)
        tps[t]->ops->close(tps[t], 1);
    return 0;
}

START_TEST(each_communicator_gets_its_own_messages)
{
    ck_assert_int_eq(world_fork(2, mix, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 0 has opened the second one, and sends, while rank 1 has not. */
static int send_early(struct world_rank *me)
{
    struct coll__tp *first = first_tp(me), *second;
    struct coll__xfer xfers[N_LENS];

    second = open_while(me, me->rank ? first : NULL);
    WORLD_CHECK(me, first && second);
    for (unsigned k = 0; k < N_LENS; k++) {
        xfers[k] = transfer(!me->rank,
                            me->rank ? malloc(lens[k] + 1) : new_message(1, k),
                            lens[k]);
        if (me->rank)
            second->ops->recv(second, &xfers[k]);
        else
            second->ops->send(second, &xfers[k]);
    }
    for (unsigned k = 0; k < N_LENS; k++) {
        WORLD_CHECK(me, !finish(second, &xfers[k]));
        WORLD_CHECK(me, is_message(xfers[k].buf, 1, k));
        free(xfers[k].buf);
    }
    world_meet(me);
    first->ops->close(first, 1);
    second->ops->close(second, 1);
    return 0;
}

START_TEST(a_message_that_comes_early_is_kept)
{
    ck_assert_int_eq(world_fork(2, send_early, NULL, DEADLINE), 0);
}
END_TEST

/* ---- a thread for each communicator -------------------------------------- */

struct talker {
    struct coll__tp *tp;
    unsigned t;
    int rank, is_well;
    pthread_t thread;
};

static void sum_bytes(void *out, const void *a, const void *b, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((unsigned char *)out)[i] =
            (unsigned char)(((const unsigned char *)a)[i] +
                            ((const unsigned char *)b)[i]);
}

/* All lengths in both directions at once; the second receive adds to zeros. */
static int talk_once(struct talker *talker, unsigned k)
{
    struct coll__tp *tp = talker->tp;
    unsigned char *mine =
        new_message(talker->t + 50u * (unsigned)talker->rank, k);
    unsigned char *theirs = calloc(1, lens[k] + 1);
    struct coll__xfer out = transfer(!talker->rank, mine, lens[k]);
    struct coll__xfer in = transfer(!talker->rank, theirs, lens[k]);
    int is_well;

    if (k % 2) {
        in.reduce = sum_bytes;
        in.with = theirs;
    }
    tp->ops->recv(tp, &in);
    tp->ops->send(tp, &out);
    is_well = !finish(tp, &in) && !finish(tp, &out) &&
              is_message(theirs, talker->t + 50u * (unsigned)!talker->rank, k);
    free(mine);
    free(theirs);
    return is_well;
}

static void *talk(void *arg)
{
    struct talker *talker = arg;

    talker->is_well = 1;
    for (int i = 0; i < 10 + part_of(50) && talker->is_well; i++)
        talker->is_well = talk_once(talker, (i + talker->t) % N_LENS);
    return NULL;
}

static int talk_in_threads(struct world_rank *me)
{
    struct talker talkers[4];

    for (unsigned t = 0; t < ARRAY_LEN(talkers); t++) {
        talkers[t] =
            (struct talker){.tp = t ? open_while(me, NULL) : first_tp(me),
                            .t = t,
                            .rank = me->rank};
        WORLD_CHECK(me, talkers[t].tp);
    }
    for (unsigned t = 0; t < ARRAY_LEN(talkers); t++)
        pthread_create(&talkers[t].thread, NULL, talk, &talkers[t]);
    for (unsigned t = 0; t < ARRAY_LEN(talkers); t++) {
        pthread_join(talkers[t].thread, NULL);
        WORLD_CHECK(me, talkers[t].is_well);
    }
    world_meet(me);
    for (unsigned t = 0; t < ARRAY_LEN(talkers); t++)
        talkers[t].tp->ops->close(talkers[t].tp, 1);
    return 0;
}

START_TEST(each_communicator_may_have_its_thread)
{
    ck_assert_int_eq(world_fork(2, talk_in_threads, NULL, DEADLINE), 0);
}
END_TEST

/* ---- what happens to one ------------------------------------------------- */

/* The first is left amid transfers that nobody takes; the second goes on. */
static int abandon_one(struct world_rank *me)
{
    struct coll__tp *first = first_tp(me), *second = open_while(me, NULL);
    struct coll__xfer lost[2 * N_LENS], xfer;
    unsigned char *in = malloc(lens[5]), *out = new_message(1, 5);

    WORLD_CHECK(me, first && second);
    for (unsigned k = 0; k < N_LENS; k++) {
        lost[k] = transfer(!me->rank, new_message(0, k), lens[k]);
        first->ops->send(first, &lost[k]);
    }
    first->ops->close(first, 0);
    for (unsigned k = 0; k < N_LENS; k++)
        free(lost[k].buf);
    for (int i = 0; i < 20; i++) {
        struct coll__xfer back = transfer(!me->rank, in, lens[5]);

        xfer = transfer(!me->rank, out, lens[5]);
        second->ops->send(second, &xfer);
        second->ops->recv(second, &back);
        WORLD_CHECK(me, !finish(second, &xfer) && !finish(second, &back));
        WORLD_CHECK(me, is_message(in, 1, 5));
    }
    free(in);
    free(out);
    world_meet(me);
    second->ops->close(second, 1);
    return 0;
}

START_TEST(one_that_is_abandoned_leaves_the_others_whole)
{
    ck_assert_int_eq(world_fork(2, abandon_one, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 1 lets UCX do nothing while rank 0 abandons a transfer to it: rank 0 has
 * its buffer back all the same; what they open next works. */
static int abandon_to_a_sleeper(struct world_rank *me)
{
    struct coll__tp *first = first_tp(me), *second = open_while(me, NULL), *tp;
    struct coll__xfer xfer;
    unsigned char *bytes = new_message(0, 5);

    WORLD_CHECK(me, first && second);
    xfer = transfer(!me->rank, bytes, lens[5]);
    if (!me->rank)
        first->ops->send(first, &xfer);
    else
        sleep(4);
    first->ops->close(first, 0);
    memset(bytes, 0, lens[5]);
    free(bytes);
    world_meet(me);
    tp = open_while(me, NULL);
    WORLD_CHECK(me, tp);
    bytes = me->rank ? malloc(lens[5]) : new_message(2, 5);
    xfer = transfer(!me->rank, bytes, lens[5]);
    if (me->rank)
        tp->ops->recv(tp, &xfer);
    else
        tp->ops->send(tp, &xfer);
    WORLD_CHECK(me, !finish(tp, &xfer));
    WORLD_CHECK(me, is_message(bytes, 2, 5));
    free(bytes);
    world_meet(me);
    tp->ops->close(tp, 1);
    second->ops->close(second, 0);
    return 0;
}

START_TEST(a_link_that_had_to_be_broken_is_made_anew)
{
    ck_assert_int_eq(world_fork(2, abandon_to_a_sleeper, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 2 dies: the communicator of all fails, that of the others goes on. */
static int outlive(struct world_rank *me)
{
    struct coll_comm *all, *some;

    WORLD_CHECK(me, !world_divide(me, me->rank == 2, &all, &some));
    if (me->rank == 2)
        kill(getpid(), SIGKILL);
    WORLD_CHECK(me, world_sum_until_failure(all) == COLL_ERR_PEER);
    WORLD_CHECK(me, !world_sum(some, 100));
    WORLD_CHECK(me, coll_comm_destroy(all) == COLL_ERR_PEER);
    WORLD_CHECK(me, !coll_barrier(some, NULL));
    WORLD_CHECK(me, !coll_comm_destroy(some));
    return 0;
}

START_TEST(a_death_is_of_those_that_held_the_dead)
{
    setenv("COLL_TRANSPORTS", "self,ucx", 1);
    ck_assert_int_eq(world_fork(4, outlive, NULL, DEADLINE), 1);
}
END_TEST

static char many[5 << 20], more[5 << 20];

/* Rank 2 dies while rank 1 computes and rank 0 sends it much, which then nobody
 * takes: rank 0 must not lose what it shares with rank 1. */
static int be_late(struct world_rank *me)
{
    struct coll_comm *all, *some;
    int rc;

    WORLD_CHECK(me, !world_divide(me, me->rank == 2, &all, &some));
    if (me->rank == 2) {
        usleep(300000);
        kill(getpid(), SIGKILL);
    }
    if (me->rank == 1)
        sleep(1); /* and never looks at `all` before its end */
    if (me->rank == 0) {
        rc = coll_broadcast(many, more, sizeof(many), COLL_I8, 0, all, NULL);
        if (rc == COLL_OK)
            rc = coll_barrier(all, NULL);
        WORLD_CHECK(me, rc == COLL_ERR_PEER);
    }
    WORLD_CHECK(me, !world_sum(some, 10));
    WORLD_CHECK(me, coll_comm_destroy(all) == COLL_ERR_PEER);
    WORLD_CHECK(me, !coll_comm_destroy(some));
    return 0;
}

START_TEST(who_is_late_to_what_failed_is_not_lost)
{
    setenv("COLL_TRANSPORTS", "self,ucx", 1);
    setenv("COLL_ALGO", "broadcast:direct", 1);
    ck_assert_int_eq(world_fork(3, be_late, NULL, DEADLINE), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ucx_share");
    TCase *tcase = suite_case(suite, "sharing", DEADLINE + 20);

    tcase_add_test(tcase, further_communicators_open_no_descriptors);
    tcase_add_test(tcase, each_communicator_gets_its_own_messages);
    tcase_add_test(tcase, a_message_that_comes_early_is_kept);
    tcase_add_test(tcase, each_communicator_may_have_its_thread);
    tcase_add_test(tcase, one_that_is_abandoned_leaves_the_others_whole);
    tcase_add_test(tcase, a_link_that_had_to_be_broken_is_made_anew);
    tcase_add_test(tcase, who_is_late_to_what_failed_is_not_lost);
    tcase_add_test(tcase, a_death_is_of_those_that_held_the_dead);
    return suite_run(suite);
}
