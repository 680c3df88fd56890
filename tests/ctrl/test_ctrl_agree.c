/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ctrl_agree.c - agreements of processes, of which some are killed. */
#include "lib/ctrl/agree.h"
#include "lib/ctrl/ctrl.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT patient(20)
#define ROUNDS 4

struct result {
    atomic_int is_known;
    uint64_t flags, dead[1];
};

/* What the ranks of a test share. */
struct scene {
    unsigned seed;
    int n_victims;
    atomic_int n_ready, n_gone;
    int is_victim[WORLD_MAX];
    struct world_notice notices[WORLD_MAX];
    struct result results[WORLD_MAX][ROUNDS];
};

static uint64_t flags_of(int rank, int round)
{
    return ~((uint64_t)1 << (rank + 7 * round) % 64);
}

/* Die at some moment of the agreements. */
static void *fall(void *arg)
{
    struct world_rank *w = arg;
    struct scene *scene = w->arg;

    usleep((scene->seed * 7919 + (unsigned)w->rank * 104729) % 3000);
    atomic_fetch_add(&scene->n_gone, 1);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void await_all(atomic_int *n, int size)
{
    double end = coll__now() + TIMEOUT;

    while (atomic_load(n) < size && coll__now() < end)
        usleep(200);
}

static int agree_often(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct coll__ctrl_events events = world_events(&scene->notices[w->rank]);
    struct coll__ctrl *ctrl;
    pthread_t thread;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    atomic_fetch_add(&scene->n_ready, 1);
    await_all(&scene->n_ready, w->size);
    if (scene->is_victim[w->rank] && pthread_create(&thread, NULL, fall, w))
        return 1;
    for (int n = 0; n < ROUNDS; n++) {
        struct result *result = &scene->results[w->rank][n];

        result->flags = flags_of(w->rank, n);
        if (coll__ctrl_agree(ctrl, &result->flags, result->dead, TIMEOUT))
            return 1;
        atomic_store(&result->is_known, 1);
    }
    if (scene->is_victim[w->rank])
        pthread_join(thread, NULL);
    atomic_fetch_add(&scene->n_gone, 1);
    await_all(&scene->n_gone, w->size);
    coll__ctrl_close(ctrl, 1, TIMEOUT);
    return 0;
}

/* Flags of the living are in the result, those of nobody are not; the dead are victims. */
static void check_result(const struct scene *scene, int size, int n,
                         const struct result *result)
{
    uint64_t least = UINT64_MAX, most = UINT64_MAX;

    for (int r = 0; r < size; r++) {
        least &= flags_of(r, n);
        if (!coll__set_has(result->dead, r))
            most &= flags_of(r, n);
        else
            ck_assert(scene->is_victim[r]);
    }
    ck_assert(!(result->flags & ~most) && !(least & ~result->flags));
}

static void check_scene(struct scene *scene, int size)
{
    for (int n = 0; n < ROUNDS; n++) {
        const struct result *first = NULL;

        for (int r = 0; r < size; r++) {
            struct result *result = &scene->results[r][n];

            if (!atomic_load(&result->is_known)) {
                ck_assert(scene->is_victim[r]);
                continue;
            }
            if (!first)
                check_result(scene, size, n, first = result);
            ck_assert_uint_eq(result->flags, first->flags);
            ck_assert_uint_eq(result->dead[0], first->dead[0]);
        }
    }
}

static void play(int size, int n_victims, unsigned seed)
{
    struct scene *scene = world_shared(sizeof(*scene));

    scene->seed = seed;
    scene->n_victims = n_victims;
    for (int i = 0; i < n_victims; i++)
        scene->is_victim[(seed + (unsigned)i) % (unsigned)size] = 1;
    ck_assert_int_eq(world_forks(size, agree_often, scene), n_victims);
    check_scene(scene, size);
}

START_TEST(the_living_agree)
{
    for (int size = 1; size <= 9; size++)
        play(size, 0, 0);
}
END_TEST

/* One to all but one die, at any moment, the root among them. */
START_TEST(the_survivors_agree)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        int size = 2 + (int)(seed + (unsigned)_i * 3) % 8;

        play(size, 1 + (int)(seed * 5 + (unsigned)_i) % (size - 1), seed);
    }
}
END_TEST

/* Rank 0 is too early, and comes again when the others have their result. */
static int come_early(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct coll__ctrl_events events = world_events(&scene->notices[w->rank]);
    uint64_t flags = flags_of(w->rank, 0), dead[1];
    struct coll__ctrl *ctrl;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    if (w->rank) {
        await_all(&scene->n_ready, 1);
    } else if (coll__ctrl_agree(ctrl, &flags, dead, 0.01) != COLL_ERR_TIMEOUT) {
        return 1;
    } else {
        atomic_store(&scene->n_ready, 1);
        await_all(&scene->n_gone, w->size - 1);
    }
    for (int n = 0; n < 2; n++) {
        struct result *result = &scene->results[w->rank][n];

        result->flags = flags_of(w->rank, n);
        if (coll__ctrl_agree(ctrl, &result->flags, result->dead, TIMEOUT))
            return 1;
        atomic_fetch_add(&scene->n_gone, n == 0);
    }
    coll__ctrl_close(ctrl, 1, TIMEOUT);
    return 0;
}

START_TEST(who_was_too_early_gets_the_same_later)
{
    for (int size = 2; size <= 5; size++) {
        struct scene *scene = world_shared(sizeof(*scene));

        ck_assert_int_eq(world_forks(size, come_early, scene), 0);
        for (int n = 0; n < 2; n++)
            for (int r = 0; r < size; r++)
                check_result(scene, size, n, &scene->results[r][n]);
    }
}
END_TEST

/* ---- confirming a group ----------------------------------------------------- */

static int confirm(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct coll__ctrl_events events = world_events(&scene->notices[w->rank]);
    struct result *result = &scene->results[w->rank][0];
    struct coll__ctrl *ctrl;
    pthread_t thread;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    atomic_fetch_add(&scene->n_ready, 1);
    await_all(&scene->n_ready, w->size);
    if (scene->is_victim[w->rank] && pthread_create(&thread, NULL, fall, w))
        return 1;
    result->flags = coll__ctrl_confirm(ctrl, TIMEOUT) == COLL_OK;
    atomic_store(&result->is_known, 1);
    if (scene->is_victim[w->rank])
        pthread_join(thread, NULL);
    coll__ctrl_close(ctrl, 0, TIMEOUT);
    return 0;
}

START_TEST(all_confirm_a_group_or_none)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        struct scene *scene = world_shared(sizeof(*scene));
        int size = 1 + (int)seed % 9, n_known = 0, n_confirmed = 0;

        scene->seed = seed;
        scene->is_victim[seed % (unsigned)size] = size > 1;
        ck_assert_int_eq(world_forks(size, confirm, scene), size > 1);
        for (int r = 0; r < size; r++) {
            int is_known = atomic_load(&scene->results[r][0].is_known);

            n_known += is_known;
            n_confirmed += is_known && scene->results[r][0].flags;
        }
        ck_assert(n_confirmed == 0 || n_confirmed == n_known);
        ck_assert(n_confirmed == 1 || size > 1);
    }
}
END_TEST

/* The last rank comes when the others have waited for it in vain. */
static int confirm_late(struct world_rank *w)
{
    struct scene *scene = w->arg;
    struct coll__ctrl_events events = world_events(&scene->notices[w->rank]);
    int is_last = w->rank == w->size - 1, rc;
    struct coll__ctrl *ctrl;

    if (world_open(w, &events, TIMEOUT, &ctrl))
        return 1;
    atomic_fetch_add(&scene->n_ready, 1);
    await_all(&scene->n_ready, w->size);
    if (is_last)
        await_all(&scene->n_gone, w->size - 1);
    rc = coll__ctrl_confirm(ctrl, is_last ? TIMEOUT : 0.01);
    coll__ctrl_close(ctrl, 0, TIMEOUT);
    atomic_fetch_add(&scene->n_gone, 1);
    return is_last ? rc != COLL_ERR_PEER : rc == COLL_OK;
}

START_TEST(who_confirms_too_late_finds_the_others_gone)
{
    for (int size = 2; size <= 6; size++)
        ck_assert_int_eq(
            world_forks(size, confirm_late, world_shared(sizeof(struct scene))),
            0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ctrl_agree");
    TCase *cases = suite_case(suite, "agree", 60);

    tcase_add_test(cases, the_living_agree);
    tcase_add_loop_test(cases, the_survivors_agree, 0, 4);
    tcase_add_test(cases, who_was_too_early_gets_the_same_later);
    tcase_add_test(cases, all_confirm_a_group_or_none);
    tcase_add_test(cases, who_confirms_too_late_finds_the_others_gone);
    return suite_run(suite);
}
