/* SPDX-License-Identifier: BSD-3-Clause */
/* test_grow.c - newcomers join, and ranks die while they do. */
#include "tests/comm/scene.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
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

/* The last two ranks come later, or (arg) one of them does not. */
static int grow(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *all = world_join(me), *comm = NULL, *grown = NULL;
    int n_old = me->size - 2, is_new = me->rank >= n_old;
    struct coll_unique_id id;
    int rc;

    WORLD_CHECK(me, all);
    WORLD_CHECK(me, !coll_comm_split(all, is_new, 0, &comm));
    if (!me->rank)
        WORLD_CHECK(me, !coll_get_unique_id(&id));
    WORLD_CHECK(me,
                !coll_broadcast(&id, &id, sizeof(id), COLL_U8, 0, all, NULL));
    world_hurry(comm, scene->victims ? 1 : DEADLINE);
    if (!is_new)
        rc = coll_comm_grow(comm, 2, me->rank ? NULL : &id, &grown);
    else if (scene->victims && me->rank == n_old)
        rc = COLL_ERR_BOOTSTRAP;
    else
        rc = coll_comm_create(
            &grown, me->size, &id, me->rank,
            &(struct coll_config){.size = sizeof(struct coll_config),
                                  .timeout = scene->victims ? 1 : 0});
    world_hurry(comm, DEADLINE);
    WORLD_CHECK(me, rc == (scene->victims ? COLL_ERR_BOOTSTRAP : COLL_OK));
    if (rc == COLL_OK)
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

START_TEST(who_does_not_come_leaves_the_old_one_good)
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

int main(void)
{
    Suite *suite = suite_create("grow");
    TCase *cases = suite_case(suite, "grow", 60);

    tcase_add_test(cases, newcomers_join);
    tcase_add_test(cases, who_does_not_come_leaves_the_old_one_good);
    tcase_add_loop_test(cases, a_death_among_the_old_ranks_ends_a_growth, 0, 7);
    return suite_run(suite);
}
