/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_sampler.c - which images a rank trains on. */
#include "tests/support/suite.h"
#include "trainer/error.h"
#include "trainer/sampler.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES 103

static struct sampler sampler_of(int rank, int n_ranks, size_t batch)
{
    struct sampler s = {.seed = 3,
                        .n_images = IMAGES,
                        .batch = batch,
                        .rank = rank,
                        .n_ranks = n_ranks,
                        .drops_rest = 1};

    ck_assert_msg(!sampler_init(&s), "%s", train_error());
    return s;
}

/* _i: the number of ranks */
START_TEST(the_ranks_parts_of_an_epoch_are_disjoint_and_fill_its_steps)
{
    int seen[IMAGES] = {0};
    size_t batch = 4, n = 0;

    for (int r = 0; r < _i; r++) {
        struct sampler s = sampler_of(r, _i, batch);

        ck_assert_uint_eq(s.n_steps, IMAGES / ((size_t)_i * batch));
        sampler_start_epoch(&s, 2);
        for (size_t step = 0; step < s.n_steps; step++)
            for (size_t i = 0; i < batch; i++, n++)
                ck_assert_int_eq(seen[sampler_step(&s, step)[i]]++, 0);
        sampler_fini(&s);
    }
    ck_assert_uint_eq(n, IMAGES / ((size_t)_i * batch) * (size_t)_i * batch);
}
END_TEST

START_TEST(a_step_of_many_ranks_is_a_step_of_one_with_the_whole_batch)
{
    struct sampler one = sampler_of(0, 1, (size_t)_i * 3);

    sampler_start_epoch(&one, 5);
    for (int r = 0; r < _i; r++) {
        struct sampler s = sampler_of(r, _i, 3);

        sampler_start_epoch(&s, 5);
        ck_assert_uint_eq(s.n_steps, one.n_steps);
        for (size_t step = 0; step < s.n_steps; step++)
            ck_assert_mem_eq(sampler_step(&s, step),
                             sampler_step(&one, step) + sampler_first(&s, step),
                             3 * sizeof(uint32_t));
        sampler_fini(&s);
    }
    sampler_fini(&one);
}
END_TEST

START_TEST(each_epoch_has_an_order_of_its_own)
{
    struct sampler a = sampler_of(0, 1, 1), b = sampler_of(0, 1, 1);
    size_t len = IMAGES * sizeof(uint32_t);
    int seen[IMAGES] = {0};

    sampler_start_epoch(&a, 0);
    sampler_start_epoch(&b, 1);
    ck_assert_mem_ne(a.order, b.order, len);
    sampler_start_epoch(&b, 0);
    ck_assert_mem_eq(a.order, b.order, len);
    b.seed++;
    sampler_start_epoch(&b, 0);
    ck_assert_mem_ne(a.order, b.order, len);
    for (int i = 0; i < IMAGES; i++)
        ck_assert_int_eq(seen[a.order[i]]++, 0);
    sampler_fini(&a);
    sampler_fini(&b);
}
END_TEST

/* What a shard of an epoch is: how often each image is in it, by rank. */
struct shards {
    int seen[9][IMAGES];
    int all[IMAGES];
    size_t n_mine; /* of each rank */
};

static void look_at_epoch(struct shards *look, int n_ranks, enum shard shard,
                          int drops_rest, uint64_t epoch)
{
    *look = (struct shards){0};
    for (int r = 0; r < n_ranks; r++) {
        struct sampler s = {.seed = 3,
                            .n_images = IMAGES,
                            .batch = 4,
                            .rank = r,
                            .n_ranks = n_ranks,
                            .shard = shard,
                            .drops_rest = drops_rest};
        size_t n = 0;

        ck_assert_int_eq(sampler_init(&s), 0);
        sampler_start_epoch(&s, epoch);
        for (size_t step = 0; step < s.n_steps; step++) {
            size_t count = sampler_count(&s, step);

            ck_assert_uint_ge(count, 1);
            ck_assert(count == 4 || (step + 1 == s.n_steps && !drops_rest));
            for (size_t i = 0; i < count; i++, n++) {
                look->seen[r][sampler_step(&s, step)[i]]++;
                look->all[sampler_step(&s, step)[i]]++;
            }
        }
        ck_assert(r == 0 || n == look->n_mine);
        look->n_mine = n;
        sampler_fini(&s);
    }
}

/* Row 10, _i: the number of ranks.  All images are there, each once but for what
 * the ranks need to come out even, which is less than one for each. */
START_TEST(row10_an_epoch_has_all_images_and_little_twice)
{
    static const enum shard shards[] = {SHARD_SAMPLER, SHARD_STRIDE};
    int again = (_i - IMAGES % _i) % _i;
    struct shards look;

    for (int k = 0; k < 2; k++) {
        look_at_epoch(&look, _i, shards[k], 0, 1);
        ck_assert_uint_eq(look.n_mine, (IMAGES + (size_t)again) / (size_t)_i);
        for (int i = 0, n = 0; i < IMAGES; i++) {
            ck_assert_int_ge(look.all[i], 1);
            ck_assert_int_le(look.all[i], 2);
            n += look.all[i] - 1;
            ck_assert(i + 1 < IMAGES || n == again);
        }
        look_at_epoch(&look, _i, shards[k], 1, 1);
        ck_assert_uint_eq(look.n_mine, IMAGES / (size_t)_i / 4 * 4);
        for (int i = 0; i < IMAGES; i++)
            ck_assert_int_le(look.all[i], 1);
    }
}
END_TEST

/* Row 10: a rank's images are the same in all epochs, or others. */
START_TEST(row10_strides_stay_and_samples_change)
{
    struct shards a, b;

    look_at_epoch(&a, _i, SHARD_STRIDE, 0, 1);
    look_at_epoch(&b, _i, SHARD_STRIDE, 0, 2);
    ck_assert_mem_eq(&a, &b, sizeof(a));
    for (int r = 0; r < _i; r++)
        ck_assert_int_eq(a.seen[r][r], 1);
    look_at_epoch(&a, _i, SHARD_SAMPLER, 0, 1);
    look_at_epoch(&b, _i, SHARD_SAMPLER, 0, 2);
    ck_assert_mem_ne(a.seen[0], b.seen[0], sizeof(a.seen[0]));
}
END_TEST

/* Row 10: each rank draws by itself, none of its own twice. */
START_TEST(row10_random_ranks_do_not_know_of_each_other)
{
    struct shards look;
    int n_missing = 0;

    look_at_epoch(&look, _i, SHARD_RANDOM, 0, 1);
    ck_assert_mem_ne(look.seen[0], look.seen[1], sizeof(look.seen[0]));
    for (int i = 0; i < IMAGES; i++) {
        n_missing += !look.all[i];
        for (int r = 0; r < _i; r++)
            ck_assert_int_le(look.seen[r][i], 1);
    }
    ck_assert_int_gt(n_missing, 0);
}
END_TEST

/* More ranks than images: the order is repeated as often as it takes. */
START_TEST(row10_few_images_are_repeated_for_many_ranks)
{
    for (int r = 0; r < 7; r++) {
        struct sampler s = {.n_images = 3,
                            .batch = 4,
                            .rank = r,
                            .n_ranks = 7,
                            .shard = _i ? SHARD_STRIDE : SHARD_SAMPLER};

        ck_assert_int_eq(sampler_init(&s), 0);
        sampler_start_epoch(&s, 0);
        ck_assert_uint_eq(s.n_steps, 1);
        ck_assert_uint_eq(sampler_count(&s, 0), 1);
        ck_assert_uint_lt(sampler_step(&s, 0)[0], 3);
        ck_assert(_i == 0 || sampler_step(&s, 0)[0] == (uint32_t)r % 3);
        sampler_fini(&s);
    }
}
END_TEST

/* Row 11: steps of an epoch of 60,000 images. */
START_TEST(row11_steps_of_an_epoch)
{
    static const size_t wanted[][3] = {
        {1, 117, 118}, {2, 58, 59}, {4, 29, 30}, {8, 14, 15}};

    for (int k = 0; k < 4; k++)
        for (int drops = 0; drops < 2; drops++) {
            struct sampler s = {.n_images = 60000,
                                .batch = 512,
                                .n_ranks = (int)wanted[k][0],
                                .drops_rest = drops};

            ck_assert_int_eq(sampler_init(&s), 0);
            ck_assert_uint_eq(s.n_steps, wanted[k][drops ? 1 : 2]);
            sampler_fini(&s);
        }
}
END_TEST

START_TEST(images_that_do_not_fill_a_step_are_refused)
{
    struct sampler s = {
        .n_images = 7, .batch = 4, .n_ranks = 2, .drops_rest = 1};

    ck_assert_int_eq(sampler_init(&s), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "lower --batch-size"));
}
END_TEST

/* Count the images of the steps from `step` until one that begins at `end` or later, of all
 * ranks.  Returns where that one begins. */
static size_t count_elastic(int *seen, int n_ranks, size_t from, size_t end,
                            size_t all, size_t unit)
{
    size_t at = from;

    for (int r = 0; r < n_ranks; r++) {
        struct sampler s = {.seed = 3,
                            .n_images = IMAGES,
                            .batch = all,
                            .rank = r,
                            .n_ranks = n_ranks,
                            .is_elastic = 1,
                            .all = all,
                            .unit = unit,
                            .from = from};

        ck_assert_msg(!sampler_init(&s), "%s", train_error());
        sampler_start_epoch(&s, 2);
        at = from;
        for (size_t step = from / all; step < s.n_steps && at < end; step++) {
            for (size_t i = 0; i < sampler_count(&s, step); i++)
                seen[sampler_step(&s, step)[i]]++;
            at += sampler_count_all(&s, step);
        }
        sampler_fini(&s);
    }
    return at;
}

/* _i: the number of ranks at first; then some die, and the size of a step changes. */
START_TEST(an_epoch_has_each_image_once_though_ranks_die_in_it)
{
    for (size_t all = 5; all < 20; all += 7)
        for (size_t unit = 1; unit < 5; unit += 3) {
            int seen[IMAGES] = {0};
            size_t at = count_elastic(seen, _i, 0, 40, all, unit);

            at = count_elastic(seen, (_i + 1) / 2, at, 70, all - 1, unit);
            at = count_elastic(seen, 1, at, IMAGES, all - 2, unit);
            ck_assert_uint_eq(at, IMAGES);
            for (int i = 0; i < IMAGES; i++)
                ck_assert_int_eq(seen[i], 1);
        }
}
END_TEST

/* _i: the number of ranks */
START_TEST(an_elastic_step_is_that_of_other_samplers_if_it_divides_evenly)
{
    for (int r = 0; r < _i; r++) {
        struct sampler plain = sampler_of(r, _i, 4), s = plain;

        s.is_elastic = s.unit = 1;
        s.all = 4 * (size_t)_i;
        ck_assert_int_eq(sampler_init(&s), 0);
        ck_assert_uint_eq(s.n_steps, plain.n_steps);
        sampler_start_epoch(&s, 1);
        sampler_start_epoch(&plain, 1);
        for (size_t step = 0; step < s.n_steps; step++) {
            ck_assert_uint_eq(sampler_count(&s, step), 4);
            ck_assert_uint_eq(sampler_first(&s, step),
                              sampler_first(&plain, step));
            ck_assert_mem_eq(sampler_step(&s, step), sampler_step(&plain, step),
                             4 * sizeof(uint32_t));
        }
        sampler_fini(&s);
        sampler_fini(&plain);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_sampler");
    TCase *sampler = suite_case(suite, "sampler", 60);

    tcase_add_loop_test(
        sampler, the_ranks_parts_of_an_epoch_are_disjoint_and_fill_its_steps, 1,
        9);
    tcase_add_loop_test(
        sampler, a_step_of_many_ranks_is_a_step_of_one_with_the_whole_batch, 1,
        9);
    tcase_add_test(sampler, each_epoch_has_an_order_of_its_own);
    tcase_add_loop_test(sampler, row10_an_epoch_has_all_images_and_little_twice,
                        1, 9);
    tcase_add_loop_test(sampler, row10_strides_stay_and_samples_change, 2, 9);
    tcase_add_loop_test(sampler, row10_random_ranks_do_not_know_of_each_other,
                        2, 5);
    tcase_add_loop_test(sampler, row10_few_images_are_repeated_for_many_ranks,
                        0, 2);
    tcase_add_test(sampler, row11_steps_of_an_epoch);
    tcase_add_loop_test(
        sampler, an_epoch_has_each_image_once_though_ranks_die_in_it, 1, 9);
    tcase_add_loop_test(
        sampler, an_elastic_step_is_that_of_other_samplers_if_it_divides_evenly,
        1, 9);
    tcase_add_test(sampler, images_that_do_not_fill_a_step_are_refused);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
