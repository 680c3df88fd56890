/* SPDX-License-Identifier: BSD-3-Clause */
/* test_grow.c - newcomers join, and ranks die while they do. */
#include "tests/comm/scene.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEADLINE patient(60)

/* ---- death at a rendezvous --------------------------------------------------- */

static atomic_int is_doomed; /* this rank dies when it meets the others */

/* Instead of libc's. */
int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    if (atomic_load(&is_doomed))
        raise(SIGKILL);
    return (int)syscall(SYS_connect, fd, addr, len);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    if (atomic_load(&is_doomed))
        raise(SIGKILL);
    return (int)syscall(SYS_accept4, fd, addr, len, flags);
}

/* ---- growing -------------------------------------------------------------- */

/* Grow by the last two ranks, or by the last one alone, which waits shortly then. */
static int attempt(struct world_rank *me, struct coll_comm *all,
                   struct coll_comm *comm, int is_one_absent,
                   struct coll_comm **grown)
{
    struct coll_config config = {.size = sizeof(config),
                                 .timeout =
                                     is_one_absent ? patient(1) : DEADLINE};
    int n_old = me->size - 2, rc = COLL_OK;
    struct coll_unique_id id;

    if (!me->rank)
        rc = coll_get_unique_id(&id);
    if (!rc)
        rc = coll_broadcast(&id, &id, sizeof(id), COLL_U8, 0, all, NULL);
    world_hurry(comm, config.timeout);
    if (!rc && me->rank < n_old)
        rc = coll_comm_grow(comm, 2, me->rank ? NULL : &id, grown);
    else if (!rc && me->rank == n_old && is_one_absent)
        rc = COLL_ERR_BOOTSTRAP;
    else if (!rc)
        rc = coll_comm_create(grown, me->size, &id, me->rank, &config);
    world_hurry(comm, DEADLINE);
    return rc;
}

/* The last two ranks come later; before that (arg) one of them does not come. */
static int grow(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *all = world_join(me), *comm = NULL, *grown = NULL;
    int n_old = me->size - 2, is_new = me->rank >= n_old;

    WORLD_CHECK(me, all);
    WORLD_CHECK(me, !coll_comm_split(all, is_new, 0, &comm));
    if (scene->victims)
        WORLD_CHECK(me,
                    attempt(me, all, comm, 1, &grown) == COLL_ERR_BOOTSTRAP &&
                        !grown && world_sum_is(comm, is_new ? 2 : n_old));
    WORLD_CHECK(me, !attempt(me, all, comm, 0, &grown));
    WORLD_CHECK(me, coll_comm_rank(grown) == me->rank &&
                        world_sum_is(grown, me->size) &&
                        !coll_comm_destroy(grown));
    WORLD_CHECK(me, world_sum_is(comm, is_new ? 2 : n_old));
    WORLD_CHECK(me, !coll_comm_destroy(comm) && !coll_comm_destroy(all));
    return 0;
}

START_TEST(newcomers_join)
{
    ck_assert_int_eq(world_fork(5, grow, new_scene(0), DEADLINE), 0);
}
END_TEST

START_TEST(who_did_not_come_can_come_to_the_next_growth)
{
    ck_assert_int_eq(world_fork(5, grow, new_scene(1), DEADLINE), 0);
}
END_TEST

/* Make the communicator of the first n_old ranks, or of the others, and give the old ones'
 * id to all. */
static int part(const struct world_rank *me, int n_old, struct coll_comm **comm,
                struct coll_unique_id *id)
{
    struct coll_comm *all = world_join(me);

    WORLD_CHECK(me, all);
    WORLD_CHECK(me, !coll_comm_split(all, me->rank >= n_old, 0, comm));
    if (!me->rank)
        WORLD_CHECK(me, !coll_get_unique_id(id));
    WORLD_CHECK(me,
                !coll_broadcast(id, id, sizeof(*id), COLL_U8, 0, all, NULL));
    WORLD_CHECK(me, !coll_comm_destroy(all));
    return 0;
}

/* A newcomer is told why the others do not wait for it any more.  The last one comes when
 * an old rank knows already. */
static int come(struct world_rank *me, struct coll_comm *comm,
                const struct coll_unique_id *id)
{
    struct scene *scene = me->arg;
    struct coll_comm *grown;

    while (me->rank == me->size - 1 && !atomic_load(&scene->n_ready))
        usleep(200);
    EXPECT(me, coll_comm_create(&grown, me->size, id, me->rank, NULL),
           COLL_ERR_PEER, "died");
    atomic_fetch_add(&scene->n_told, 1);
    WORLD_CHECK(me, world_sum_is(comm, 2) && !coll_comm_destroy(comm));
    return 0;
}

/* An old rank dies when the others meet, or (EARLY) before that.  Nobody waits for it, and
 * the others agree and shrink.  They live until the newcomers know. */
enum { EARLY = 1 << 8 };

static int grow_without(struct world_rank *me)
{
    struct scene *scene = me->arg;
    int n_old = me->size - 2, is_victim = (int)(scene->victims >> me->rank & 1);
    struct coll_comm *comm, *grown, *rest;
    struct coll_unique_id id;
    uint64_t flags = 7;

    if (part(me, n_old, &comm, &id))
        return 1;
    world_meet(me);
    if (is_victim && scene->victims & EARLY)
        raise(SIGKILL);
    if (me->rank >= n_old)
        return come(me, comm, &id);
    atomic_store(&is_doomed, is_victim);
    EXPECT(me, coll_comm_grow(comm, 2, me->rank ? NULL : &id, &grown),
           COLL_ERR_PEER, "died");
    atomic_fetch_add(&scene->n_ready, 1);
    WORLD_CHECK(me, !coll_comm_agree(comm, &flags) && flags == 7);
    WORLD_CHECK(me, !coll_comm_shrink(comm, NULL, 0, 0, &rest));
    coll_comm_destroy(comm);
    WORLD_CHECK(me, coll_comm_size(rest) == n_old - 1);
    while (atomic_load(&scene->n_told) < 2)
        usleep(200);
    WORLD_CHECK(me, world_sum_is(rest, n_old - 1) && !coll_comm_destroy(rest));
    return 0;
}

START_TEST(a_death_among_the_old_ranks_ends_a_growth)
{
    static const unsigned victims[] = {1,         2,         4,        8,
                                       EARLY | 1, EARLY | 2, EARLY | 8};

    setenv("COLL_TIMEOUT", "1000", 1); /* nobody waits for a deadline */
    ck_assert_int_eq(
        world_fork(6, grow_without, new_scene(victims[_i]), DEADLINE), 1);
}
END_TEST

/* ---- other calls beside a growth ------------------------------------------------ */

/* Rank 1 shrinks while the others grow: without an abort (arg) both wait until the deadline. */
static int shrink_beside(struct world_rank *me)
{
    int is_late = ((struct scene *)me->arg)->victims != 0, is_first = 1, rc;
    struct coll_comm *comm = world_join(me), *other;
    struct coll_unique_id id;

    WORLD_CHECK(me, comm && (me->rank || !coll_get_unique_id(&id)));
    world_meet(me);
    world_hurry(comm, is_late ? patient(0.5) : DEADLINE);
    if (me->rank != 1)
        EXPECT(me, coll_comm_grow(comm, 1, me->rank ? NULL : &id, &other),
               is_late ? COLL_ERR_TIMEOUT : COLL_ERR_ABORTED,
               is_late ? "rank 1" : "is shrunk");
    do {
        rc = coll_comm_shrink(comm, NULL, 0, is_late ? 0 : COLL_SHRINK_ABORT,
                              &other);
        world_hurry(comm, DEADLINE);
    } while (rc == COLL_ERR_TIMEOUT && is_first--);
    WORLD_CHECK(me, !rc && world_sum_is(other, me->size));
    coll_comm_destroy(comm);
    WORLD_CHECK(me, !coll_comm_destroy(other));
    return 0;
}

START_TEST(a_shrink_of_one_rank_fails_the_growth_of_the_others)
{
    ck_assert_int_eq(
        world_fork(4, shrink_beside, new_scene((unsigned)_i), DEADLINE), 0);
}
END_TEST

/* ---- death at any moment of a growth ------------------------------------------- */

static atomic_int n_left; /* sends, up to this rank's death; 0: it lives */

/* Instead of libc's. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    if (atomic_load(&n_left) && atomic_fetch_sub(&n_left, 1) == 1)
        raise(SIGKILL);
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

/* A rank dies at its n-th send of a growth, or, if there are fewer, after the growth. */
struct death {
    int victim, n;
    atomic_int n_sent; /* by the victim, if it lived to the end */
    atomic_int
        outcome; /* of the first rank that returned: GROWN, FAILED or 0 */
};

enum { GROWN = 1, FAILED = 2 };

static int is_as_elsewhere(struct death *death, int rc)
{
    int mine = rc ? FAILED : GROWN, first = 0;

    return atomic_compare_exchange_strong(&death->outcome, &first, mine) ||
           first == mine;
}

/* The survivors of a communicator go on. */
static int go_on(struct world_rank *me, struct coll_comm *comm, int n_dead)
{
    int size = coll_comm_size(comm);
    struct coll_comm *rest = comm;

    if (n_dead) {
        WORLD_CHECK(me,
                    !coll_comm_shrink(comm, NULL, 0, COLL_SHRINK_ABORT, &rest));
        coll_comm_destroy(comm);
    }
    WORLD_CHECK(me, world_sum_is(rest, size - n_dead));
    WORLD_CHECK(me, !coll_comm_destroy(rest));
    return 0;
}

static int grow_and_die(struct world_rank *me)
{
    struct death *death = me->arg;
    int n_old = me->size - 2, is_new = me->rank >= n_old, rc;
    struct coll_comm *comm, *grown;
    struct coll_unique_id id;

    if (part(me, n_old, &comm, &id))
        return 1;
    world_meet(me);
    if (me->rank == death->victim)
        atomic_store(&n_left, death->n);
    rc = is_new ? coll_comm_create(&grown, me->size, &id, me->rank, NULL)
                : coll_comm_grow(comm, 2, me->rank ? NULL : &id, &grown);
    if (me->rank == death->victim) {
        atomic_store(&death->n_sent, death->n - atomic_load(&n_left));
        raise(SIGKILL);
    }
    WORLD_CHECK(me, is_as_elsewhere(death, rc));
    if (rc)
        return go_on(me, comm, is_new == (death->victim >= n_old));
    coll_comm_destroy(comm);
    return go_on(me, grown, 1);
}

/* Returns the victim's number of sends, if it lived to the end. */
static int die_at(int victim, int n)
{
    struct death *death = mmap(NULL, sizeof(*death), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int n_sent;

    ck_assert_ptr_ne(death, MAP_FAILED);
    death->victim = victim;
    death->n = n;
    ck_assert_int_eq(world_fork(5, grow_and_die, death, DEADLINE), 1);
    n_sent = atomic_load(&death->n_sent);
    munmap(death, sizeof(*death));
    return n_sent;
}

/* _i: the victim.  A newcomer has come to the rendezvous: before that nobody knows it. */
START_TEST(all_ranks_have_a_grown_communicator_or_none)
{
    int first = _i < 3 ? 1 : 4, n_sends;

    setenv("COLL_TIMEOUT", "1000", 1); /* nobody waits for a deadline */
    n_sends = die_at(_i, INT_MAX);
    for (int n = first; n <= n_sends; n++)
        die_at(_i, n);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grow");
    TCase *cases = suite_case(suite, "grow", 60);

    tcase_add_test(cases, newcomers_join);
    tcase_add_test(cases, who_did_not_come_can_come_to_the_next_growth);
    tcase_add_loop_test(cases, a_death_among_the_old_ranks_ends_a_growth, 0, 7);
    tcase_add_loop_test(
        cases, a_shrink_of_one_rank_fails_the_growth_of_the_others, 0, 2);
    tcase_add_loop_test(cases, all_ranks_have_a_grown_communicator_or_none, 0,
                        5);
    return suite_run(suite);
}
