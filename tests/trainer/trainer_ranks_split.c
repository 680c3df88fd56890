/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_ranks_split.c - a step's images and gradients may be split among ranks,
 * parts and buckets in any way: training goes the same way. */
#include "tests/support/patience.h"
#include "tests/trainer/trainer_ranks.h"

#include <math.h>
#include <stdlib.h>

/* Two runs with other flags, to be changed before they go. */
struct pair {
    struct job *a, *b;
};

/* An epoch of SGD each, because Adam magnifies the rounding of small gradients. */
static struct pair pair_new(void)
{
    struct pair p = {job_new(), job_new()};

    p.a->args.opt = p.b->args.opt = OPTIM_SGD;
    p.a->args.epochs = p.b->args.epochs = 1;
    return p;
}

static void pair_free(const struct pair *p)
{
    job_free(p->a);
    job_free(p->b);
}

/* Return the part of the parameters that two runs left further from each other than a
 * thousandth of the way that one goes by a mean parameter. */
static double part_apart(const struct job *a, const struct job *b)
{
    double way = job_distance(a->params, a->began) / sqrt(N_PARAMS);
    size_t n = 0;

    for (size_t i = 0; i < N_PARAMS; i++)
        n += fabs((double)a->params[i] - (double)b->params[i]) > 1e-3 * way;
    return (double)n / N_PARAMS;
}

/* Both runs, so many steps each, should differ by rounding alone, seen against the way
 * that one of them goes: by 2e-6 of it.  Rounding may tip a relu or the winner of a
 * pool, on one processor's kernels if not on another's.  That moves the weights of
 * one channel and what lies before it: seen were 0.2 % of the parameters, and
 * 1e-3 of the way.  A batch that is cut wrongly, or a wrong average, moves nearly all
 * of them: one image of 94 too many 62 %, and 0.09 of the way. */
static void go_the_same_way(const struct pair *p, int a_ranks, int b_ranks,
                            uint64_t steps)
{
    const struct job *a = p->a, *b = p->b;
    double way;

    job_run(p->a, a_ranks);
    job_run(p->b, b_ranks);
    ck_assert_uint_eq(a->step, steps);
    ck_assert_uint_eq(b->step, steps);
    way = job_distance(a->params, a->began);
    ck_assert_double_eq(job_distance(a->began, b->began), 0);
    ck_assert_double_gt(way, 0.001);
    ck_assert_double_lt(job_distance(a->params, b->params), 1e-2 * way);
    ck_assert_double_lt(part_apart(a, b), 0.01);
    ck_assert_double_eq_tol(a->stats.loss, b->stats.loss, 1e-3);
    ck_assert_double_eq_tol(a->stats.test_loss, b->stats.test_loss, 1e-3);
}

/* _i: the number of ranks.  Dropout is on, and images are cut and mirrored: these
 * too follow the global batch. */
START_TEST(row07_one_rank_with_the_whole_batch_equals_many)
{
    struct pair p = pair_new();

    p.a->args.limit_train = p.b->args.limit_train = 24 * (uint64_t)_i;
    p.a->args.batch_size = 8 * (uint64_t)_i;
    p.a->args.augment = p.b->args.augment = AUGMENT_FLIP_CROP;
    go_the_same_way(&p, 1, _i, 3);
    pair_free(&p);
}
END_TEST

START_TEST(row07_small_buckets_change_nothing_but_rounding)
{
    struct pair p = pair_new();

    p.b->args.bucket_mb = 1e-6;
    go_the_same_way(&p, 2, 2, 6);
    pair_free(&p);
}
END_TEST

/* _i: the number of ranks.  A bucket that sets out early, or is moved by
 * another thread, sums the same. */
START_TEST(row07_overlap_changes_no_bit)
{
    struct job *on = job_new(), *off = job_new();

    on->args.bucket_mb = off->args.bucket_mb = 0.001;
    off->args.overlap_off = 1;
    job_run(on, _i);
    job_run(off, _i);
    ck_assert_mem_eq(on->params, off->params, sizeof(on->params));
    ck_assert_uint_eq(on->bytes, off->bytes);
    job_free(on);
    job_free(off);
}
END_TEST

/* _i: the number of ranks */
START_TEST(row07_deterministic_runs_do_not_depend_on_buckets)
{
    static const double sizes[] = {1e-6, 0.5, 25};
    struct job *jobs[3];

    for (int i = 0; i < 3; i++) {
        jobs[i] = job_new();
        jobs[i]->args.deterministic = 1;
        jobs[i]->args.bucket_mb = sizes[i];
        jobs[i]->args.overlap_off = i == 1;
        job_run(jobs[i], _i);
        ck_assert_mem_eq(jobs[i]->params, jobs[0]->params,
                         sizeof(jobs[0]->params));
    }
    for (int i = 0; i < 3; i++)
        job_free(jobs[i]);
}
END_TEST

/* The same images an epoch, 93 of them, with a last step of 7 or 8 a rank: three
 * ranks go one rank's way.  Two images are there twice where they do not come
 * out even. */
START_TEST(row10_a_last_step_is_shorter)
{
    struct pair p = pair_new();

    p.a->args.drop_last_off = p.b->args.drop_last_off = 1;
    p.a->args.limit_train = p.b->args.limit_train = 93;
    p.a->args.batch_size = 24;
    go_the_same_way(&p, 1, 3, 4);
    ck_assert_uint_eq(p.a->stats.n_images, 93);
    ck_assert_uint_eq(p.b->stats.n_images, 31);
    p.b->args.limit_train = 94;
    job_run(p.b, 3);
    ck_assert_uint_eq(p.b->stats.n_images, 32);
    ck_assert_double_gt(part_apart(p.a, p.b), 0.1); /* an image is too many */
    pair_free(&p);
}
END_TEST

/* Row 16: 8 ranks, three epochs of warm-up; the rate of each step. */
START_TEST(row16_warm_up_follows_horovods_rule)
{
    struct job *job = job_new();

    job->args.opt = OPTIM_SGD;
    job->args.lr = 0.01;
    job->args.lr_scale = LR_LINEAR;
    job->args.batch_size = 4;
    job->args.warmup_epochs = 3;
    for (uint64_t e = 1; e <= 4; e++) {
        static const double rates[] = {0.0333333, 0.0566667, 0.08, 0.08};

        job->args.epochs = e;
        job_run(job, 8);
        ck_assert_double_eq_tol(job->stats.lr, rates[e - 1], 1e-6);
    }
    job_free(job);
}
END_TEST

/* Batches in parts make the same steps as whole ones. */
START_TEST(row21_accumulated_batches_equal_a_larger_one)
{
    struct pair p = pair_new();

    p.b->args.batch_size = 2;
    p.b->args.accum = 4;
    go_the_same_way(&p, 2, 2, 6);
    pair_free(&p);
}
END_TEST

/* Without momentum the first step's way is the rate times the gradient. */
START_TEST(row21_clipped_gradients_go_no_further_than_the_norm)
{
    struct job *job = job_new();

    job->args.opt = OPTIM_SGD;
    job->args.momentum = 0;
    job->args.lr = 0.5;
    job->args.clip_norm = 0.01;
    job->args.epochs = 1;
    job->args.limit_train = 16;
    job_run(job, 2);
    ck_assert_uint_eq(job->step, 1);
    ck_assert_double_eq_tol(job_distance(job->params, job->began), 0.005, 1e-5);
    job_free(job);
}
END_TEST

/* _i: f16 or bf16; half the bytes, and about the same way. */
START_TEST(row22_gradients_travel_in_16_bits)
{
    struct job *wide = job_new(), *narrow = job_new();
    double way;

    wide->args.opt = narrow->args.opt = OPTIM_SGD;
    narrow->args.fp16_allreduce = !_i;
    narrow->args.bf16_allreduce = _i;
    job_run(wide, 3);
    job_run(narrow, 3);
    ck_assert_uint_eq(wide->bytes, 2 * narrow->bytes);
    ck_assert_uint_eq(wide->bytes, wide->step * N_PARAMS * 4);
    way = job_distance(wide->params, wide->began);
    ck_assert_double_gt(job_distance(wide->params, narrow->params), 0);
    ck_assert_double_lt(job_distance(wide->params, narrow->params), 0.05 * way);
    ck_assert_double_eq_tol(wide->stats.test_loss, narrow->stats.test_loss,
                            0.02);
    job_free(wide);
    job_free(narrow);
}
END_TEST

/* What training does by the same threads that move the buckets. */
static void add_others(TCase *split, int is_quick)
{
    tcase_add_loop_test(split, row07_one_rank_with_the_whole_batch_equals_many,
                        is_quick ? 3 : 2, is_quick ? 4 : 5);
    tcase_add_test(split, row07_small_buckets_change_nothing_but_rounding);
    tcase_add_loop_test(split,
                        row07_deterministic_runs_do_not_depend_on_buckets, 2,
                        is_quick ? 2 : 4);
    tcase_add_test(split, row10_a_last_step_is_shorter);
    if (!is_quick)
        tcase_add_test(split, row16_warm_up_follows_horovods_rule);
    tcase_add_test(split, row21_accumulated_batches_equal_a_larger_one);
    tcase_add_test(split, row21_clipped_gradients_go_no_further_than_the_norm);
    tcase_add_loop_test(split, row22_gradients_travel_in_16_bits, 0,
                        is_quick ? 1 : 2);
}

TCase *split_case(void)
{
    TCase *split = tcase_create("split");
    int is_quick = getenv("TEST_QUICK") != NULL;

    tcase_set_timeout(split, 4 * DEADLINE);
    tcase_add_loop_test(split, row07_overlap_changes_no_bit, 2,
                        is_quick ? 3 : 4);
    if (!is_quick || !IS_THREAD_SANITIZED)
        add_others(split, is_quick);
    return split;
}
