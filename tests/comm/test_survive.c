/* SPDX-License-Identifier: BSD-3-Clause */
/* test_survive.c - what ULFM, NCCL and PyTorch promise to survivors, and libcoll too. */
#include "lib/util/util.h"
#include "tests/support/files.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEADLINE patient(60)

/* What the ranks of a test share. */
struct scene {
    atomic_int n_ready, pid;
    _Atomic uint64_t flags; /* of the first that has agreed, or 0 */
};

static struct scene *new_scene(void)
{
    struct scene *scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(scene, MAP_FAILED);
    return scene;
}

/* Wait until this many ranks have come here, in all. */
static void gather(struct scene *scene, int n)
{
    atomic_fetch_add(&scene->n_ready, 1);
    while (atomic_load(&scene->n_ready) < n)
        usleep(200);
}

static int is_last(const struct world_rank *me)
{
    return me->rank == me->size - 1;
}

/* Replace *comm by the communicator of its living ranks; whether it works. */
static int shrinks_to(struct coll_comm **comm, int size)
{
    struct coll_comm *rest;

    if (coll_comm_shrink(*comm, NULL, 0, 0, &rest))
        return 0;
    coll_comm_destroy(*comm);
    *comm = rest;
    return coll_comm_size(rest) == size && world_sum_is(rest, size);
}

/* ---- deaths ---------------------------------------------------------------- */

/* The victim dies while it agrees, or before. */
static int agree(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me);
    uint64_t flags = ~((uint64_t)1 << me->rank), first = 0;

    WORLD_CHECK(me, comm);
    gather(scene, me->size);
    if (me->rank == me->size / 2) {
        if (fork() == 0) {
            usleep(500);
            kill(getppid(), SIGKILL);
            _exit(0);
        }
        coll_comm_agree(comm, &flags);
        pause();
    }
    WORLD_CHECK(me, !coll_comm_agree(comm, &flags));
    WORLD_CHECK(me, flags & (uint64_t)1 << 63 && !(flags >> me->rank & 1));
    if (!atomic_compare_exchange_strong(&scene->flags, &first, flags))
        WORLD_CHECK(me, flags == first);
    WORLD_CHECK(me, shrinks_to(&comm, me->size - 1));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(an_agreement_is_the_same_on_all_survivors)
{
    for (int size = 2; size <= 6; size += 2)
        ck_assert_int_eq(world_fork(size, agree, new_scene(), DEADLINE), 1);
}
END_TEST

/* Rank arg dies when all have joined, and no operation has run. */
static int die_first(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    world_meet(me);
    if (me->rank == *(int *)me->arg)
        raise(SIGKILL);
    WORLD_CHECK(me, world_await_failure(comm, DEADLINE) == COLL_ERR_PEER);
    WORLD_CHECK(me, shrinks_to(&comm, me->size - 1));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_death_before_the_first_operation_is_survived)
{
    for (int victim = 0; victim < 4; victim++)
        ck_assert_int_eq(world_fork(4, die_first, &victim, DEADLINE), 1);
}
END_TEST

/* The highest rank, or the lowest, dies, until one is left. */
static int last_one(struct world_rank *me)
{
    struct scene *scene = me->arg;
    int from_low = (int)scene->flags, n_ready = 0;
    struct coll_comm *comm = world_join(me);

    WORLD_CHECK(me, comm);
    for (int size = me->size; size > 1; size--) {
        gather(scene, n_ready += size);
        if (coll_comm_rank(comm) == (from_low ? 0 : size - 1))
            raise(SIGKILL);
        while (world_sum_is(comm, size))
            ;
        WORLD_CHECK(me, shrinks_to(&comm, size - 1));
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(the_last_one_goes_on_alone)
{
    struct scene *scene = new_scene();

    scene->flags = (uint64_t)_i;
    ck_assert_int_eq(world_fork(6, last_one, scene, DEADLINE), 5);
}
END_TEST

/* Shrink what was shrunk, the older ones being there still. */
static int nest(struct world_rank *me)
{
    struct coll_comm *comms[5] = {world_join(me)};

    WORLD_CHECK(me, comms[0]);
    for (int i = 0; i < 4; i++)
        WORLD_CHECK(me, !coll_comm_shrink(comms[i], NULL, 0, 0, &comms[i + 1]));
    world_meet(me);
    if (is_last(me))
        raise(SIGKILL);
    for (int i = 0; i < 5; i++) {
        WORLD_CHECK(me,
                    world_await_failure(comms[i], DEADLINE) == COLL_ERR_PEER);
        WORLD_CHECK(me, shrinks_to(&comms[i], me->size - 1));
    }
    for (int i = 0; i < 5; i++)
        WORLD_CHECK(me, !coll_comm_destroy(comms[i]));
    return 0;
}

START_TEST(what_was_shrunk_is_shrunk_again)
{
    ck_assert_int_eq(world_fork(4, nest, NULL, DEADLINE), 1);
}
END_TEST

/* All communicators learn of a death, each is shrunk by itself. */
static int several(struct world_rank *me)
{
    struct coll_comm *all = world_join(me), *dup, *half;
    int half_size = me->size / 2, is_hurt = me->rank >= half_size;

    WORLD_CHECK(me, all && !coll_comm_dup(all, &dup));
    WORLD_CHECK(me, !coll_comm_split(all, is_hurt, me->rank, &half));
    world_meet(me);
    if (is_last(me))
        raise(SIGKILL);
    WORLD_CHECK(me, world_await_failure(all, DEADLINE) == COLL_ERR_PEER);
    WORLD_CHECK(me, world_await_failure(dup, DEADLINE) == COLL_ERR_PEER);
    if (is_hurt) {
        WORLD_CHECK(me, world_await_failure(half, DEADLINE) == COLL_ERR_PEER);
        WORLD_CHECK(me, shrinks_to(&half, half_size - 1));
    }
    WORLD_CHECK(me, world_sum_is(half, half_size - is_hurt));
    WORLD_CHECK(me, shrinks_to(&dup, me->size - 1));
    WORLD_CHECK(me, coll_comm_async_error(all) == COLL_ERR_PEER);
    WORLD_CHECK(me, shrinks_to(&all, me->size - 1));
    WORLD_CHECK(me, world_sum_is(dup, me->size - 1));
    WORLD_CHECK(me, !coll_comm_destroy(half) && !coll_comm_destroy(all) &&
                        !coll_comm_destroy(dup));
    return 0;
}

START_TEST(each_communicator_is_shrunk_by_itself)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(6, several, NULL, DEADLINE), 1);
}
END_TEST

/* ---- buffers ---------------------------------------------------------------- */

enum { BIG = 4 << 20 };

static void *pages(size_t len)
{
    return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                -1, 0);
}

/* After the failure nobody may write into the buffers: a process that does is killed, and
 * what another writes is seen. */
static int keep_buffers(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .count = BIG / 4,
                             .in = pages(BIG),
                             .out = pages(BIG)};
    struct coll_request *request;
    void *copy = malloc(BIG);
    int rc;

    WORLD_CHECK(me, comm && copy);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_start(request) && !coll_wait(request, 0));
    world_meet(me);
    rc = coll_start(request); /* the last rank may have died already */
    if (is_last(me)) {
        coll_test(request);
        raise(SIGKILL);
    }
    while (rc == COLL_OK)
        rc = (rc = coll_wait(request, 0)) ? rc : coll_start(request);
    WORLD_CHECK(me, rc == COLL_ERR_PEER);
    memcpy(copy, args.out, BIG);
    mprotect(args.out, BIG, PROT_READ);
    WORLD_CHECK(me, !coll_request_destroy(request));
    for (int i = 0; i < 20; i++)
        WORLD_CHECK(me, i ? world_sum_is(comm, me->size - 1)
                          : shrinks_to(&comm, me->size - 1));
    WORLD_CHECK(me, !memcmp(copy, args.out, BIG));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, !memcmp(copy, args.out, BIG));
    free(copy);
    return munmap((void *)args.in, BIG) || munmap(args.out, BIG);
}

START_TEST(buffers_are_the_callers_again_after_a_failure)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    for (int size = 2; size <= 5; size++)
        ck_assert_int_eq(world_fork(size, keep_buffers, NULL, DEADLINE), 1);
}
END_TEST

/* ---- abort, destroy, exclude ---------------------------------------------------- */

/* A second thread aborts, when the others wait for this rank. */
static void *abort_it(void *comm)
{
    usleep(1000);
    coll_comm_abort(comm, "enough");
    return NULL;
}

static int abort_one(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *part;
    uint64_t flags = 5;
    pthread_t thread;
    int n = 0, in = 0;

    WORLD_CHECK(me, comm && world_sum_is(comm, me->size));
    world_meet(me); /* all have their sum */
    if (is_last(me))
        WORLD_CHECK(me, !pthread_create(&thread, NULL, abort_it, comm));
    EXPECT(me,
           coll_recv(&in, 1, COLL_I32, (me->rank + 1) % me->size, comm, NULL),
           COLL_ERR_ABORTED, "enough");
    if (is_last(me))
        pthread_join(thread, NULL);
    EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_ABORTED, "enough");
    EXPECT(me, coll_comm_split(comm, 0, 0, &part), COLL_ERR_ABORTED, "enough");
    WORLD_CHECK(me, !coll_comm_agree(comm, &flags) && flags == 5);
    WORLD_CHECK(me, !coll_comm_failed(comm, NULL, &n) && n == 0);
    WORLD_CHECK(me, shrinks_to(&comm, me->size));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(an_abort_ends_all_operations_and_no_shrink)
{
    for (int size = 2; size <= 5; size++)
        ck_assert_int_eq(world_fork(size, abort_one, NULL, DEADLINE), 0);
}
END_TEST

/* One rank is stopped: the others abort, exclude it, and destroy without it. */
static int exclude_stopped(struct world_rank *me)
{
    struct scene *scene = me->arg;
    struct coll_comm *comm = world_join(me), *rest;
    int last = me->size - 1;

    WORLD_CHECK(me, comm && world_sum_is(comm, me->size));
    if (is_last(me))
        atomic_store(&scene->pid, getpid());
    gather(scene, me->size);
    if (is_last(me)) {
        raise(SIGSTOP);
        return 0;
    }
    patient_stop(atomic_load(&scene->pid));
    if (!me->rank)
        coll_comm_abort(comm, "a rank is stopped");
    WORLD_CHECK(me, world_await_failure(comm, DEADLINE) == COLL_ERR_ABORTED);
    WORLD_CHECK(me, !coll_comm_shrink(comm, &last, 1, 0, &rest));
    coll_comm_destroy(comm);
    WORLD_CHECK(me, world_sum_is(rest, last));
    WORLD_CHECK(me, !coll_comm_destroy(rest));
    if (!me->rank)
        kill(atomic_load(&scene->pid), SIGKILL);
    return 0;
}

START_TEST(who_is_stopped_is_excluded)
{
    setenv("COLL_TIMEOUT", "1000", 1); /* nobody waits for a deadline */
    ck_assert_int_eq(world_fork(4, exclude_stopped, new_scene(), DEADLINE), 1);
}
END_TEST

/* ---- growing, and resources -------------------------------------------------------- */

/* Two ranks grow by two, of whom one dies with one of the old. */
static int grow_and_shrink(struct world_rank *me)
{
    struct coll_comm *all = world_join(me), *half, *comm;
    struct coll_unique_id id;

    WORLD_CHECK(me, all && !coll_comm_split(all, me->rank / 2, 0, &half));
    if (!me->rank)
        WORLD_CHECK(me, !coll_get_unique_id(&id));
    WORLD_CHECK(me,
                !coll_broadcast(&id, &id, sizeof(id), COLL_U8, 0, all, NULL));
    if (me->rank < 2)
        WORLD_CHECK(me, !coll_comm_grow(half, 2, &id, &comm));
    else
        WORLD_CHECK(me, !coll_comm_create(&comm, 4, &id, me->rank, NULL));
    WORLD_CHECK(me, world_sum_is(comm, 4));
    world_meet(me);
    if (me->rank % 2 == 0)
        raise(SIGKILL);
    WORLD_CHECK(me, world_await_failure(comm, DEADLINE) == COLL_ERR_PEER);
    while (coll_comm_size(comm) > 2 ||
           !world_sum_is(comm, 2)) /* one may die later */
        shrinks_to(&comm, 2);
    coll_comm_destroy(half);
    coll_comm_destroy(all);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(what_has_grown_is_shrunk)
{
    ck_assert_int_eq(world_fork(4, grow_and_shrink, NULL, DEADLINE), 2);
}
END_TEST

/* Nothing of the old communicators stays. */
static int count(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me);
    int n_files = 0, n_maps = 0;

    WORLD_CHECK(me, comm);
    for (int i = 0; i < 50; i++) {
        WORLD_CHECK(me, shrinks_to(&comm, me->size));
        if (i == 5) {
            n_files = folder_count("/proc/self/fd");
            n_maps = folder_count("/proc/self/map_files");
        }
    }
    WORLD_CHECK(me, folder_count("/proc/self/fd") <= n_files + 3);
    WORLD_CHECK(me, folder_count("/proc/self/map_files") <= n_maps + 10);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(nothing_stays_of_fifty_shrinks)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, count, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("survive");
    TCase *cases = suite_case(suite, "survive", 60);

    tcase_add_test(cases, an_agreement_is_the_same_on_all_survivors);
    tcase_add_test(cases, a_death_before_the_first_operation_is_survived);
    tcase_add_loop_test(cases, the_last_one_goes_on_alone, 0, 2);
    tcase_add_test(cases, what_was_shrunk_is_shrunk_again);
    tcase_add_loop_test(cases, each_communicator_is_shrunk_by_itself, 0, 2);
    tcase_add_loop_test(cases, buffers_are_the_callers_again_after_a_failure, 0,
                        2);
    tcase_add_test(cases, an_abort_ends_all_operations_and_no_shrink);
    tcase_add_test(cases, who_is_stopped_is_excluded);
    tcase_add_test(cases, what_has_grown_is_shrunk);
    tcase_add_loop_test(cases, nothing_stays_of_fifty_shrinks, 0, 2);
    return suite_run(suite);
}
