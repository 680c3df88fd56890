/* SPDX-License-Identifier: BSD-3-Clause */
/* test_join.c - deaths while a communicator is being made: at every message
 * that the victim would send, in creation, split and dup. */
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEADLINE 60
#define MOST 9

/* ---- dying at the n-th message -------------------------------------------- */

static atomic_int n_left; /* messages until this process dies; 0: it does not */

/* One of nothing is none: the library asks whether it may send. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    int n = len ? atomic_load(&n_left) : 0;

    while (n > 0 && !atomic_compare_exchange_weak(&n_left, &n, n - 1))
        ;
    if (n == 1)
        raise(SIGKILL);
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

/* ---- split and dup -------------------------------------------------------- */

struct plan {
    int victim, n_sent, is_dup, is_by_id;
};

/* Does the sentence name the victim as the parent numbers it? */
static int names(int victim)
{
    char want[32];

    snprintf(want, sizeof(want), "rank %d ", victim);
    return strstr(coll_last_error(), want) &&
           strstr(coll_last_error(), " died");
}

/* Nobody ends before all survivors have heard: its end would be another. */
static void await_others(const struct world_rank *me)
{
    world_through(me);
    world_await_through(me, me->size - 1, DEADLINE);
}

/* Go on until the group fails, too. */
static int await_failure(struct coll_comm *comm)
{
    int rc = COLL_OK;

    while (rc == COLL_OK)
        rc = coll_barrier(comm, NULL);
    return rc;
}

static int divides(struct world_rank *me, const struct plan *plan,
                   struct coll_comm *comm, struct coll_comm **part)
{
    return plan->is_dup ? coll_comm_dup(comm, part)
                        : coll_comm_split(comm, me->rank % 2, -me->rank, part);
}

static int one_dies(struct world_rank *me)
{
    const struct plan *plan = me->arg;
    struct coll_comm *comm, *part = NULL;
    int is_with = plan->is_dup || me->rank % 2 == plan->victim % 2, rc;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    world_meet(me); /* all came this far */
    if (me->rank == plan->victim)
        atomic_store(&n_left, plan->n_sent);
    rc = divides(me, plan, comm, &part);
    if (me->rank == plan->victim) /* it had less to say */
        raise(SIGKILL);
    if (rc) {
        WORLD_CHECK(me, rc == COLL_ERR_PEER);
        WORLD_CHECK(me, names(plan->victim));
        WORLD_CHECK(me, !part);
    } else if (is_with) {
        WORLD_CHECK(me, await_failure(part) == COLL_ERR_PEER);
    }
    WORLD_CHECK(me, await_failure(comm) == COLL_ERR_PEER);
    WORLD_CHECK(me, names(plan->victim));
    await_others(me);
    if (part)
        coll_comm_destroy(part);
    coll_comm_destroy(comm);
    return 0;
}

/* ---- creation ------------------------------------------------------------- */

static int create(struct world_rank *me, const struct plan *plan,
                  struct coll_comm **comm)
{
    struct coll_unique_id id = {0}, ids[MOST];

    if (!plan->is_by_id) {
        atomic_store(&n_left, me->rank == plan->victim ? plan->n_sent : 0);
        return coll_comm_create_oob(comm, &me->oob, NULL);
    }
    if (!me->rank && coll_get_unique_id(&id))
        return COLL_ERR_INTERNAL;
    me->oob.allgather(me->oob.arg, &id, ids, sizeof(id));
    world_meet(me);
    if (me->rank == plan->victim)
        atomic_store(&n_left, plan->n_sent);
    return coll_comm_create(comm, me->size, &ids[0], me->rank, NULL);
}

/* Who comes late finds nobody where the victim listened, or a rank that has failed by that
 * death.  It cannot know more. */
static int found_nobody(int rc)
{
    return (rc == COLL_ERR_BOOTSTRAP &&
            strstr(coll_last_error(), "cannot connect to rank ")) ||
           (rc == COLL_ERR_PEER &&
            strstr(coll_last_error(), "does not wait for it any more"));
}

static int one_dies_early(struct world_rank *me)
{
    const struct plan *plan = me->arg;
    struct coll_comm *comm = NULL;
    int rc = create(me, plan, &comm);

    if (me->rank == plan->victim)
        raise(SIGKILL);
    if (rc == COLL_OK)
        rc = await_failure(comm);
    WORLD_CHECK(me, (rc == COLL_ERR_PEER && names(plan->victim)) ||
                        found_nobody(rc));
    await_others(me);
    coll_comm_destroy(comm);
    return 0;
}

static void kill_at(world_fn *fn, struct plan plan, int size, int n_sent)
{
    int n_bad;

    plan.n_sent = n_sent;
    ck_assert_msg((n_bad = world_fork(size, fn, &plan, DEADLINE)) == 1,
                  "%d ranks failed where rank %d of %d died at message %d",
                  n_bad - 1, plan.victim, size, plan.n_sent);
}

START_TEST(a_death_in_a_split_is_told_by_the_parents_number)
{
    kill_at(one_dies, (struct plan){.victim = 5}, 7, _i + 1);
    kill_at(one_dies, (struct plan){.victim = 2}, 7, _i + 1);
}
END_TEST

START_TEST(a_death_in_a_dup_is_told_to_all)
{
    kill_at(one_dies, (struct plan){.victim = 0, .is_dup = 1}, 4, _i + 1);
    kill_at(one_dies, (struct plan){.victim = 3, .is_dup = 1}, 4, _i + 1);
}
END_TEST

START_TEST(a_death_in_the_rendezvous_is_told_to_all)
{
    kill_at(one_dies_early, (struct plan){.victim = 0, .is_by_id = 1}, 5,
            _i + 1);
    /* of one that has not proved itself nobody knows anything */
    kill_at(one_dies_early, (struct plan){.victim = 2, .is_by_id = 1}, 5,
            _i + 3);
}
END_TEST

START_TEST(a_death_in_the_callers_rendezvous_is_told_to_all)
{
    kill_at(one_dies_early, (struct plan){.victim = 0}, 5, _i + 1);
    kill_at(one_dies_early, (struct plan){.victim = 3}, 5, _i + 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("join");
    TCase *c = tcase_create("join");

    patient_timeout(
        30); /* whoever waited until then would be told of no death */
    setenv("COLL_TRANSPORTS", "self,shm", 0);
    tcase_set_timeout(c, 4 * DEADLINE);
    tcase_add_loop_test(c, a_death_in_a_split_is_told_by_the_parents_number, 0,
                        16);
    tcase_add_loop_test(c, a_death_in_a_dup_is_told_to_all, 0, 16);
    tcase_add_loop_test(c, a_death_in_the_rendezvous_is_told_to_all, 0, 20);
    tcase_add_loop_test(c, a_death_in_the_callers_rendezvous_is_told_to_all, 0,
                        8);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
