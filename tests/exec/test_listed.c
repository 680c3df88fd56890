/* SPDX-License-Identifier: BSD-3-Clause */
/* test_listed.c - ranks that share cores: when a plan that runs as listed looks on,
 * and when it leaves its core to others, by a transport that counts the looks. */
#include "tests/support/suite.h"
#include "lib/algo/algo.h"
#include "lib/device/device.h"
#include "lib/exec/exec.h"

#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 5 /* this one is rank 0 */
#define LOOKS 50

/* A transport of all ranks, whose messages are there when the test says so. */
struct fake {
    struct coll__tp base;
    atomic_int core[RANKS], *published[RANKS];
    int has_come[RANKS];
    int n_looks; /* at messages */
};

static int put(struct coll__tp *tp, struct coll__xfer *xfer)
{
    (void)tp;
    xfer->status = COLL_OK;
    return 1;
}

static int take(struct coll__tp *tp, struct coll__xfer *xfer)
{
    struct fake *fake = (struct fake *)tp;

    fake->n_looks++;
    return fake->has_come[xfer->peer] ? COLL_OK : COLL_IN_PROGRESS;
}

static int peek(struct coll__tp *tp, int peer, int channel,
                struct coll__signature *sig)
{
    (void)channel;
    (void)sig;
    return ((struct fake *)tp)->has_come[peer];
}

static const struct coll__transport ops = {
    .name = "fake", .put = put, .take = take, .peek = peek};

static struct fake fake;
static struct coll__tp *to[RANKS];
static struct coll__routes routes;
static struct coll__prog *prog;
static float in, out;

/* Be bound to a core: 1 + its number. */
static int stay(void)
{
    int cpu = sched_getcpu();
    cpu_set_t set;

    ck_assert_int_ge(cpu, 0);
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    return 1 + cpu;
}

static void make(const char *algo)
{
    struct coll__problem pb = {.collective = COLL_ALLREDUCE,
                               .nranks = RANKS,
                               .count = 1,
                               .type = COLL_F32,
                               .op = COLL_SUM};
    struct coll__op op;
    struct coll__binding binding = {
        .op = &op, .routes = &routes, .device = &coll__device_host};
    struct coll__plan plan;

    coll__op_get(COLL_SUM, &op);
    ck_assert_int_eq(
        coll__plan_build(coll__algo_find(COLL_ALLREDUCE, algo), &pb, 0, &plan),
        COLL_OK);
    ck_assert_int_eq(coll__prog_create(&pb, &plan, &binding, &prog), COLL_OK);
    ck_assert(coll__prog_is_listed(prog));
}

/* Ranks 2 and 4 wait on this core, the others on the next one. */
static void set_up(void)
{
    int core = stay();

    memset(&fake, 0, sizeof(fake));
    fake.base = (struct coll__tp){.ops = &ops,
                                  .size = RANKS,
                                  .eager = 64,
                                  .ahead = 16,
                                  .published = fake.published};
    for (int r = 0; r < RANKS; r++) {
        to[r] = &fake.base;
        fake.published[r] = &fake.core[r];
        fake.core[r] = r % 2 ? core + 1 : core;
    }
    fake.core[0] = 0;
    routes = (struct coll__routes){
        .to = to, .n_local = RANKS, .looks = LOOKS, .is_shared = 1};
    make("one_shot");
}

static void tear_down(void) { coll__prog_destroy(prog); }

/* A run to where it waits: looks at messages in one look of the program, which has
 * not come to its end. */
static int looks_in_vain(void)
{
    struct coll__signature sig = {.seq = 1, .collective = COLL_ALLREDUCE};
    int moved = 0;

    coll__prog_start(prog, &sig, &in, &out, NULL);
    fake.n_looks = 0;
    ck_assert_int_eq(coll__prog_look(prog, &moved), COLL_IN_PROGRESS);
    return fake.n_looks;
}

START_TEST(who_shares_the_core_comes_first)
{
    ck_assert_int_eq(looks_in_vain(), 1);
    fake.has_come[2] = 1; /* rank 4 has not sent yet */
    ck_assert_int_le(looks_in_vain(), RANKS);
    fake.has_come[1] = fake.has_come[3] = 1;
    ck_assert_int_le(looks_in_vain(), RANKS);
}
END_TEST

START_TEST(messages_from_other_cores_are_waited_for)
{
    fake.has_come[2] = fake.has_come[4] = 1;
    ck_assert_int_gt(looks_in_vain(), LOOKS);
    fake.has_come[1] = 1;
    ck_assert_int_gt(looks_in_vain(), LOOKS);
    ck_assert_int_le(looks_in_vain(), LOOKS + 2 * RANKS);
}
END_TEST

START_TEST(a_rank_says_where_it_waits)
{
    ck_assert_int_eq(fake.core[0], 0);
    looks_in_vain();
    ck_assert_int_eq(fake.core[0], 1 + sched_getcpu());
}
END_TEST

START_TEST(who_has_not_said_where_it_waits_may_share_the_core)
{
    fake.has_come[2] = fake.has_come[4] = fake.has_come[1] = 1;
    fake.core[3] = 0;
    ck_assert_int_le(looks_in_vain(), RANKS);
}
END_TEST

START_TEST(in_a_tree_others_may_have_something_to_do)
{
    tear_down();
    make("binomial");
    ck_assert_int_eq(looks_in_vain(), 1);
}
END_TEST

START_TEST(nobody_is_waited_for_whose_core_is_not_seen)
{
    tear_down();
    fake.base.published = NULL; /* as between hosts */
    make("one_shot");
    ck_assert_int_eq(looks_in_vain(), 1);
    fake.base.published = fake.published;
    fake.published[3] = NULL; /* one is on another host */
    tear_down();
    make("one_shot");
    ck_assert_int_eq(looks_in_vain(), 1);
}
END_TEST

START_TEST(with_a_core_for_each_rank_all_are_waited_for)
{
    routes.is_shared = 0;
    ck_assert_int_eq(looks_in_vain(), 1 + LOOKS);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("listed");
    TCase *cores = suite_case(suite, "cores", 20);

    tcase_add_checked_fixture(cores, set_up, tear_down);
    tcase_add_test(cores, who_shares_the_core_comes_first);
    tcase_add_test(cores, messages_from_other_cores_are_waited_for);
    tcase_add_test(cores, a_rank_says_where_it_waits);
    tcase_add_test(cores, who_has_not_said_where_it_waits_may_share_the_core);
    tcase_add_test(cores, in_a_tree_others_may_have_something_to_do);
    tcase_add_test(cores, nobody_is_waited_for_whose_core_is_not_seen);
    tcase_add_test(cores, with_a_core_for_each_rank_all_are_waited_for);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
