/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_ranks.c - training among ranks that are forked processes.
 *
 * What the ranks find goes back through one page that they share.
 */
#include "tests/support/patience.h"
#include "tests/trainer/trainer_ranks.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "trainer/alike.h"
#include "trainer/checkpoint.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/model.h"
#include "trainer/synthetic.h"

#include <check.h>
#include <dirent.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

START_TEST(the_same_seed_and_ranks_give_the_same_bits)
{
    struct job *a = job_new(), *b = job_new(), *c = job_new();

    c->args.seed = 43;
    job_run(a, _i);
    job_run(b, _i);
    job_run(c, _i);
    ck_assert_mem_eq(a->params, b->params, sizeof(a->params));
    ck_assert_double_eq(a->stats.loss, b->stats.loss);
    ck_assert_double_eq(a->stats.test_loss, b->stats.test_loss);
    ck_assert_mem_ne(a->params, c->params, sizeof(a->params));
    job_free(a);
    job_free(b);
    job_free(c);
}
END_TEST

/* _i: sgd, adam or adagrad */
START_TEST(a_resumed_run_equals_one_without_interruption)
{
    struct job *whole = job_new(), *parts = job_new();
    char dir[] = "/tmp/coll-resume-XXXXXX";

    folder_make(dir);
    whole->args.opt = parts->args.opt = _i;
    whole->args.epochs = 3;
    job_run(whole, 2);
    parts->args.checkpoint = dir;
    parts->args.epochs = 1;
    job_run(parts, 2);
    parts->args.resume = "auto";
    parts->args.epochs = 3;
    job_run(parts, 2);
    folder_remove(dir);
    ck_assert_uint_eq(whole->step, parts->step);
    ck_assert_mem_eq(whole->params, parts->params, sizeof(whole->params));
    ck_assert_double_eq(whole->stats.loss, parts->stats.loss);
    job_free(whole);
    job_free(parts);
}
END_TEST

/* _i: the ranks that go on.  Two had the first epoch of three, of 6 steps each for
 * them: the warm-up's.  Then come so many of cosine's, whatever the ranks. */
START_TEST(a_resumed_run_goes_on_along_the_curve_of_its_rate)
{
    struct job *whole = job_new(), *parts = job_new();
    char dir[] = "/tmp/coll-resume-XXXXXX", path[64];
    int last = 2 * 96 / 8 / _i;

    folder_make(dir);
    snprintf(path, sizeof(path), "%s/epoch-0001.ckpt", dir);
    whole->args.lr_scale = parts->args.lr_scale = LR_LINEAR;
    whole->args.lr = parts->args.lr = 0.001;
    whole->args.epochs = parts->args.epochs = 3;
    whole->args.warmup_epochs = parts->args.warmup_epochs = 1;
    whole->args.schedule.kind = parts->args.schedule.kind = SCHEDULE_COSINE;
    whole->args.checkpoint = dir;
    parts->args.resume = path;
    job_run(whole, 2);
    job_run(parts, _i);
    folder_remove(dir);
    ck_assert_double_eq_tol(parts->stats.lr,
                            0.0005 * _i * (1 + cos(M_PI * (last - 1) / last)),
                            1e-12);
    if (_i == 2)
        ck_assert_mem_eq(whole->params, parts->params, sizeof(whole->params));
    job_free(whole);
    job_free(parts);
}
END_TEST

/* What each rank has of an epoch, before it is put together. */
static int train_and_keep_own(struct world_rank *me)
{
    struct job *job = me->arg;
    struct epoch_stats stats;
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    WORLD_CHECK(me, !trainer_share(&t));
    WORLD_CHECK(me, !trainer_epoch(&t, &stats, job_no_progress, NULL));
    job->own[me->rank] = stats;
    WORLD_CHECK(me, !trainer_test(&t, &stats));
    if (me->rank == 0)
        job->stats = stats;
    return job_end(me, &t, &d);
}

START_TEST(row12_metrics_are_the_mean_over_the_ranks)
{
    struct job *job = job_new();
    double loss = 0, right = 0;

    ck_assert_int_eq(world_fork(3, train_and_keep_own, job, DEADLINE), 0);
    for (int r = 0; r < 3; r++) {
        ck_assert_uint_eq(job->own[r].n_images, 32);
        loss += job->own[r].loss / 32 / 3;
        right += job->own[r].accuracy / 32 / 3;
    }
    ck_assert_double_ne(job->own[0].loss, job->own[1].loss);
    ck_assert_double_eq_tol(job->stats.loss, loss, 1e-12);
    ck_assert_double_eq_tol(job->stats.accuracy, right, 1e-12);
    job_free(job);
}
END_TEST

/* _i: the number of ranks.  65 images are two pieces, and the last step is
 * shorter than the first of them. */
START_TEST(row30_images_gathered_ahead_change_no_bit)
{
    struct job *on = job_new(), *off = job_new();

    on->args.batch_size = off->args.batch_size = 65;
    on->args.limit_train = off->args.limit_train = 150 * (uint64_t)_i;
    on->args.drop_last_off = off->args.drop_last_off = 1;
    on->args.augment = off->args.augment = AUGMENT_FLIP_CROP;
    on->args.prefetch = PREFETCH_ON;
    off->args.prefetch = PREFETCH_OFF;
    job_run(on, _i);
    job_run(off, _i);
    ck_assert_uint_eq(on->step, 6);
    ck_assert_mem_eq(on->params, off->params, sizeof(on->params));
    ck_assert_double_eq(on->stats.loss, off->stats.loss);
    job_free(on);
    job_free(off);
}
END_TEST

/* Return whether this process has a thread of that name. */
static int has_thread(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    int found = 0;

    while (tasks && (task = readdir(tasks))) {
        char path[300], comm[32] = "";
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        f = fopen(path, "r");
        if (f && fgets(comm, sizeof(comm), f))
            found |= !strcmp(comm, name);
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* On one core, or on as many as there are. */
static int look_for_the_loader(struct world_rank *me)
{
    struct job *job = me->arg;
    int kind = job->args.prefetch, has_core;
    cpu_set_t cores, one;
    struct trainer t;
    struct ddp d;

    CPU_ZERO(&one);
    WORLD_CHECK(me, !sched_getaffinity(0, sizeof(cores), &cores));
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &cores))
            CPU_SET(i, &one);
    if (job->one_core)
        WORLD_CHECK(me, !sched_setaffinity(0, sizeof(one), &one));
    if (job_begin(me, &t, &d))
        return 1;
    has_core = !job->one_core && ddp_has_spare_core(&d);
    WORLD_CHECK(
        me, has_thread("coll-loader\n") ==
                (kind == PREFETCH_ON || (kind == PREFETCH_AUTO && has_core)));
    return job_end(me, &t, &d);
}

/* _i: the number of ranks.  Where they fill the cores no thread takes one. */
START_TEST(row30_the_loader_gives_way_to_ranks)
{
    struct job *job = job_new();

    for (job->one_core = 0; job->one_core < 2; job->one_core++)
        for (int kind = PREFETCH_OFF; kind <= PREFETCH_ON; kind++) {
            job->args.prefetch = kind;
            ck_assert_int_eq(world_fork(_i, look_for_the_loader, job, DEADLINE),
                             0);
        }
    job_free(job);
}
END_TEST

/* Find the images' file among this process's mappings. */
static int maps_the_images(const struct dataset *d)
{
    char line[512], start[32];
    FILE *f = fopen("/proc/self/maps", "r");
    int found = 0;

    snprintf(start, sizeof(start), "%lx-", (unsigned long)(uintptr_t)d->map);
    while (f && fgets(line, sizeof(line), f))
        found |= !strncmp(line, start, strlen(start)) &&
                 strstr(line, "coll_train images");
    if (f)
        fclose(f);
    return found;
}

/* One file is mapped, by nobody for writing. */
static int look_at_images(struct world_rank *me)
{
    struct images want = {.channels = 1, .height = 28, .width = 28}, *images;
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    images = &t.data.train;
    WORLD_CHECK(me, maps_the_images(&t.data));
    WORLD_CHECK(me, images->n == 96 && t.data.test.n == 50);
    WORLD_CHECK(me, !synthetic_make(&want, 96, 42, 0));
    WORLD_CHECK(me, !memcmp(want.pixels, images->pixels, 96 * 784));
    WORLD_CHECK(me, !memcmp(want.labels, images->labels, 96));
    images->pixels[0] = (unsigned char)(want.pixels[0] + 1 + me->rank);
    WORLD_CHECK(me, coll_barrier(d.comm, NULL) == COLL_OK);
    WORLD_CHECK(me, images->pixels[0] ==
                        (unsigned char)(want.pixels[0] + 1 + me->rank));
    images_fini(&want);
    return job_end(me, &t, &d);
}

START_TEST(row10_ranks_of_a_host_have_one_copy_of_the_images)
{
    struct job *job = job_new();

    ck_assert_int_eq(world_fork(3, look_at_images, job, DEADLINE), 0);
    job_free(job);
}
END_TEST

/* A test needs no more memory than training, unless more is asked for. */
static int look_at_passes(struct world_rank *me)
{
    struct job *job = me->arg;
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    WORLD_CHECK(me, model_chunk(t.model) == 8);
    WORLD_CHECK(me,
                model_chunk(t.eval) == (job->args.test_batch_size ? 16 : 8));
    return job_end(me, &t, &d);
}

START_TEST(tests_take_as_many_images_at_a_time_as_training)
{
    struct job *job = job_new();

    job->args.test_batch_size = _i ? 16 : 0;
    ck_assert_int_eq(world_fork(2, look_at_passes, job, DEADLINE), 0);
    job_free(job);
}
END_TEST

/* Rank 1 was started with another network. */
static int share_another_model(struct world_rank *me)
{
    struct job *job = me->arg;
    struct args args = job->args; /* job's are all ranks' */
    struct trainer t;
    struct ddp d;

    if (me->rank == 1)
        args.model = "net";
    if (job_start(me, &args, &t, &d))
        return 1;
    WORLD_CHECK(me, trainer_share(&t) == -1);
    snprintf(job->error[me->rank], sizeof(job->error[0]), "%.255s",
             train_error());
    return job_end(me, &t, &d);
}

static int share_another_layer(struct world_rank *me)
{
    struct job *job = me->arg;
    struct layer *layer;
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    layer = (struct layer *)(uintptr_t)model_layer(t.model, 4);
    layer->out.channels += me->rank == 2;
    WORLD_CHECK(me, model_check_alike(t.model, &d) == -1);
    snprintf(job->error[me->rank], sizeof(job->error[0]), "%.255s",
             train_error());
    return job_end(me, &t, &d);
}

START_TEST(the_first_layer_that_differs_is_named_on_all_ranks)
{
    struct job *job = job_new();

    ck_assert_int_eq(world_fork(2, share_another_model, job, DEADLINE), 0);
    ck_assert_ptr_nonnull(strstr(job->error[0], "numbers of layers"));
    ck_assert_int_eq(world_fork(3, share_another_layer, job, DEADLINE), 0);
    for (int r = 0; r < 3; r++)
        ck_assert_ptr_nonnull(strstr(job->error[r], "layer 4 (dense)"));
    job_free(job);
}
END_TEST

/* Ranks that begin with other parameters take rank 0's. */
static int share_after_drawing_apart(struct world_rank *me)
{
    struct job *job = me->arg;
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    model_init_params(t.model, INIT_TORCH, (uint64_t)me->rank);
    t.epoch = t.optim.step = (uint64_t)me->rank + 5;
    for (size_t i = 0; i < t.optim.n_state; i++)
        t.optim.state[i] = (float)me->rank;
    WORLD_CHECK(me, !trainer_share(&t));
    WORLD_CHECK(me, t.epoch == 5 && t.optim.step == 5);
    for (size_t i = 0; i < t.optim.n_state; i++)
        WORLD_CHECK(me, t.optim.state[i] == 0);
    if (me->rank == 0)
        memcpy(job->params, model_params(t.model), sizeof(job->params));
    WORLD_CHECK(me, coll_barrier(d.comm, NULL) == COLL_OK);
    WORLD_CHECK(me, !memcmp(job->params, model_params(t.model),
                            sizeof(job->params)));
    return job_end(me, &t, &d);
}

START_TEST(row08_every_rank_begins_as_rank_0)
{
    struct job *job = job_new();

    ck_assert_int_eq(world_fork(3, share_after_drawing_apart, job, DEADLINE),
                     0);
    job_free(job);
}
END_TEST

/* One parameter of rank 1 changes behind everybody's back. */
static int train_with_a_flipped_bit(struct world_rank *me)
{
    struct epoch_stats stats = {0};
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    WORLD_CHECK(me, !trainer_share(&t));
    WORLD_CHECK(me, !trainer_epoch(&t, &stats, job_no_progress, NULL));
    if (me->rank == 1)
        model_params(t.model)[777] += 1e-3f;
    WORLD_CHECK(me, trainer_test(&t, &stats) == -1);
    WORLD_CHECK(me, strstr(train_error(), "different parameters") != NULL);
    return job_end(me, &t, &d);
}

START_TEST(ranks_that_drift_apart_are_told)
{
    struct job *job = job_new();

    ck_assert_int_eq(world_fork(2, train_with_a_flipped_bit, job, DEADLINE),
                     0);
    job_free(job);
}
END_TEST

/* Ranks 1 and 2 are unwell: everybody learns of 1. */
static int agree_on_the_lowest(struct world_rank *me)
{
    struct coll_comm *comm;
    struct ddp d;
    int failed;

    WORLD_CHECK(me, coll_comm_create_oob(&comm, &me->oob, NULL) == COLL_OK);
    ddp_adopt(&d, comm);
    WORLD_CHECK(me, !ddp_agree(&d, 0, &failed) && failed == -1);
    WORLD_CHECK(me, !ddp_agree(&d, me->rank > 0, &failed) && failed == 1);
    WORLD_CHECK(me, !ddp_fini(&d));
    return 0;
}

START_TEST(all_ranks_learn_which_one_is_unwell)
{
    ck_assert_int_eq(world_fork(3, agree_on_the_lowest, NULL, DEADLINE), 0);
}
END_TEST

/* Rank 1 alone is told to stop. */
static void ask_at_step_2(void *arg, const struct progress_stats *p)
{
    struct world_rank *me = arg;

    if (me->rank == 1 && p->step == 2)
        kill(getpid(), SIGUSR1); /* which is the thread's that waits for it */
}

/* With steps that are so short that the ranks do not agree after each. */
static int train_until_told(struct world_rank *me)
{
    struct job *job = me->arg;
    struct epoch_stats stats;
    struct trainer t;
    struct ddp d;

    WORLD_CHECK(me, !stop_init());
    if (job_begin(me, &t, &d))
        return 1;
    WORLD_CHECK(me, !trainer_share(&t));
    stop_catch();
    while (!t.stop)
        WORLD_CHECK(me, trainer_epoch(&t, &stats, ask_at_step_2, me) >= 0);
    WORLD_CHECK(me, t.stop == SIGUSR1);
    job->stopped[me->rank] = t.epoch * t.sampler.n_steps + t.skip;
    stop_release();
    return job_end(me, &t, &d);
}

START_TEST(row26_all_ranks_stop_after_the_same_step)
{
    struct job *job = job_new();

    job->args.model = "net";
    ck_assert_int_eq(world_fork(3, train_until_told, job, DEADLINE), 0);
    ck_assert_uint_ge(job->stopped[0], 2);
    ck_assert_uint_eq(job->stopped[0], job->stopped[1]);
    ck_assert_uint_eq(job->stopped[0], job->stopped[2]);
    job_free(job);
}
END_TEST

START_TEST(row26_ranks_agree_ten_times_a_second)
{
    ck_assert_uint_eq(stop_every(1, 1e-6), 2);
    ck_assert_uint_eq(stop_every(512, 1e-6), 1024);
    ck_assert_uint_eq(stop_every(512, 1e-3), 100);
    ck_assert_uint_eq(stop_every(100, 0.03), 3);
    ck_assert_uint_eq(stop_every(3, 7), 1);
}
END_TEST

/* Rank 1 dies in mid-epoch: rank 0 says so and does not hang. */
static void die_at_step_3(void *arg, const struct progress_stats *p)
{
    struct world_rank *me = arg;

    if (me->rank == 1 && p->step == 3)
        _exit(7);
}

static int train_beside_a_dying_rank(struct world_rank *me)
{
    struct job *job = me->arg;
    struct epoch_stats stats;
    struct trainer t;
    struct ddp d;

    if (job_begin(me, &t, &d))
        return 1;
    WORLD_CHECK(me, !trainer_share(&t));
    WORLD_CHECK(me, trainer_epoch(&t, &stats, die_at_step_3, me) == -1);
    WORLD_CHECK(me, d.has_failed);
    snprintf(job->error[me->rank], sizeof(job->error[0]), "%.255s",
             train_error());
    trainer_fini(&t);
    WORLD_CHECK(me, ddp_fini(&d) == -1);
    return 0;
}

/* _i: without images that are on their way, or with */
START_TEST(a_rank_that_dies_is_named)
{
    struct job *job = job_new();

    job->args.prefetch = _i ? PREFETCH_ON : PREFETCH_OFF;
    ck_assert_int_eq(world_fork(2, train_beside_a_dying_rank, job, DEADLINE),
                     1); /* rank 1 itself */
    ck_assert_msg(strstr(job->error[0], "rank 1"), "'%s'", job->error[0]);
    job_free(job);
}
END_TEST

START_TEST(synthetic_images_are_learnt)
{
    struct job *job = job_new();

    job->args.limit_train = 1280;
    job->args.limit_test = 200;
    job->args.batch_size = 16;
    job_run(job, 2);
    ck_assert_double_gt(job->stats.test_accuracy, 0.95);
    ck_assert_double_lt(job->stats.test_loss, 0.5);
    job_free(job);
}
END_TEST

/* Where threads besides the rank's own have a part: the one that gathers images, those
 * of the library. */
static void add_threaded(TCase *ranks, int is_quick)
{
    tcase_add_loop_test(ranks, a_rank_that_dies_is_named, 0, 2);
    tcase_add_loop_test(ranks, row30_images_gathered_ahead_change_no_bit, 1,
                        is_quick ? 2 : 3);
    tcase_add_loop_test(ranks, row30_the_loader_gives_way_to_ranks, 1, 3);
    tcase_add_test(ranks, row08_every_rank_begins_as_rank_0);
    tcase_add_test(ranks, ranks_that_drift_apart_are_told);
    tcase_add_test(ranks, all_ranks_learn_which_one_is_unwell);
    tcase_add_test(ranks, row26_all_ranks_stop_after_the_same_step);
    tcase_add_test(ranks, row10_ranks_of_a_host_have_one_copy_of_the_images);
}

/* What training does, by the same threads. */
static void add_others(TCase *ranks, int is_quick)
{
    tcase_add_loop_test(ranks, the_same_seed_and_ranks_give_the_same_bits, 1,
                        is_quick ? 1 : 4);
    tcase_add_loop_test(ranks, a_resumed_run_equals_one_without_interruption, 0,
                        is_quick ? 1 : 3);
    tcase_add_loop_test(ranks,
                        a_resumed_run_goes_on_along_the_curve_of_its_rate, 2,
                        is_quick ? 3 : 5);
    tcase_add_test(ranks, row12_metrics_are_the_mean_over_the_ranks);
    tcase_add_test(ranks, the_first_layer_that_differs_is_named_on_all_ranks);
    tcase_add_loop_test(ranks, tests_take_as_many_images_at_a_time_as_training,
                        0, 2);
    tcase_add_test(ranks, row26_ranks_agree_ten_times_a_second);
    if (!is_quick)
        tcase_add_test(ranks, synthetic_images_are_learnt);
}

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_ranks");
    TCase *ranks = suite_case(suite, "ranks", 4 * DEADLINE);
    int is_quick = getenv("TEST_QUICK") != NULL;

    add_threaded(ranks, is_quick);
    if (!is_quick || !IS_THREAD_SANITIZED)
        add_others(ranks, is_quick);
    suite_add_tcase(suite, split_case());
    return suite;
}

int main(void) { return suite_run(make_suite()); }
