/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_batches.c - pixels as numbers, and synthetic images. */
#include "tests/support/suite.h"
#include "trainer/data.h"
#include "trainer/error.h"
#include "trainer/synthetic.h"

#include <string.h>
#include <sys/resource.h>

START_TEST(pixels_become_numbers_as_asked)
{
    unsigned char pixels[2 * 784] = {0}, seen[2], real[2] = {4, 9};
    struct images images = {.pixels = pixels,
                            .labels = real,
                            .n = 2,
                            .channels = 1,
                            .height = 28,
                            .width = 28};
    uint32_t index[2] = {1, 0};
    float out[2 * 784];
    struct pixel_scale scale;
    struct images_pick pick = {
        .images = &images, .index = index, .n = 2, .scale = &scale};
    double sum = 0, squares = 0;

    for (int i = 784; i < 2 * 784; i++)
        pixels[i] = 255;
    pixel_scale_unit(&scale);
    images_gather(&pick, out, seen);
    ck_assert_float_eq(out[0], 1);
    ck_assert_float_eq(out[784], 0);
    ck_assert_uint_eq(seen[0], 9);
    ck_assert_uint_eq(seen[1], 4);

    pixels[3] = 100;
    pixel_scale_meanstd(&scale, &images);
    images_gather(&pick, out, seen);
    for (int i = 0; i < 2 * 784; i++) {
        sum += (double)out[i];
        squares += (double)out[i] * (double)out[i];
    }
    ck_assert_double_eq_tol(sum / 1568, 0, 1e-6);
    ck_assert_double_eq_tol(squares / 1568, 1, 1e-5);
}
END_TEST

START_TEST(an_image_of_one_colour_has_no_deviation_to_divide_by)
{
    unsigned char pixels[784], label = 0;
    struct images images = {.pixels = pixels,
                            .labels = &label,
                            .n = 1,
                            .channels = 1,
                            .height = 28,
                            .width = 28};
    struct pixel_scale scale;

    memset(pixels, 17, sizeof(pixels));
    pixel_scale_meanstd(&scale, &images);
    ck_assert_float_eq(scale.value[17], 0);
}
END_TEST

START_TEST(synthetic_images_are_seeded_and_of_all_classes)
{
    const struct images shape = {.channels = 1, .height = 28, .width = 28};
    struct images a = shape, b = shape, c = shape;
    int seen[10] = {0};

    ck_assert_int_eq(synthetic_make(&a, 50, 1, 0), 0);
    ck_assert_int_eq(synthetic_make(&b, 50, 1, 0), 0);
    ck_assert_int_eq(synthetic_make(&c, 50, 2, 0), 0);
    ck_assert_mem_eq(a.pixels, b.pixels, 50 * 784);
    ck_assert_mem_ne(a.pixels, c.pixels, 50 * 784);
    for (int i = 0; i < 50; i++)
        seen[a.labels[i]]++;
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(seen[i], 5);
    images_fini(&a);
    a = shape;
    ck_assert_int_eq(synthetic_make(&a, 50, 1, 50), 0); /* as a test set */
    ck_assert_mem_ne(a.pixels, b.pixels, 50 * 784);
    images_fini(&a);
    images_fini(&b);
    images_fini(&c);
}
END_TEST

/* _i: enum augment.  A rank that draws its third image by itself has it as one that
 * holds them all, and on its own: whatever else is drawn, and in any order. */
START_TEST(row34_drawn_images_are_those_that_are_held)
{
    enum { LEN = 3 * 20 * 24, RANKS = 3, MANY = 30 };
    static float held_out[MANY * LEN], drawn_out[LEN];
    const struct images shape = {.channels = 3, .height = 20, .width = 24};
    struct images held = shape, drawn = shape;
    unsigned char labels[MANY], label;
    struct pixel_scale scale;
    struct images_pick pick = {
        .scale = &scale, .augment = (enum augment)_i, .key = 5};
    uint32_t index[MANY];

    for (uint32_t i = 0; i < MANY; i++)
        index[i] = (7 * i + 3) % MANY;
    ck_assert_int_eq(synthetic_make(&held, MANY, 9, 4), 0);
    ck_assert_int_eq(synthetic_promise(&drawn, MANY, 9, 4), 0);
    ck_assert(!drawn.pixels && !drawn.labels);
    pixel_scale_meanstd(&scale, &held);
    pick.images = &held;
    pick.index = index;
    pick.n = MANY;
    images_gather(&pick, held_out, labels);
    pixel_scale_meanstd(&scale, &drawn);
    pick.images = &drawn;
    pick.n = 1;
    for (int r = RANKS; r-- > 0;)
        for (size_t i = (size_t)r; i < MANY; i += RANKS) {
            pick.index = index + i;
            pick.first = i;
            images_gather(&pick, drawn_out, &label);
            ck_assert_mem_eq(drawn_out, held_out + i * LEN, sizeof(drawn_out));
            ck_assert_uint_eq(label, labels[i]);
        }
    images_fini(&held);
    images_fini(&drawn);
}
END_TEST

static size_t most_memory(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* resnet50's 70,000 images would be 10 GB. */
START_TEST(row34_images_that_do_not_fit_are_drawn_when_wanted)
{
    struct data_config config = {.name = "synthetic",
                                 .dir = "",
                                 .seed = 1,
                                 .channels = 3,
                                 .height = 224,
                                 .width = 224};
    static float out[3 * 224 * 224];
    size_t before = most_memory();
    struct pixel_scale scale;
    unsigned char label;
    uint32_t index = 59999;
    struct dataset d;
    struct images_pick pick = {
        .images = &d.train, .index = &index, .n = 1, .scale = &scale};

    ck_assert_msg(!dataset_load(&d, &config), "%s", train_error());
    ck_assert(d.train.n == 60000 && d.test.n == 10000);
    pixel_scale_meanstd(&scale, &d.train);
    images_gather(&pick, out, &label);
    ck_assert_uint_eq(label, 9);
    ck_assert_uint_lt(most_memory() - before, (size_t)100 << 20);
    dataset_fini(&d);
    config.limit_train = config.limit_test = 8;
    ck_assert_msg(!dataset_load(&d, &config), "%s", train_error());
    ck_assert(d.train.pixels && d.test.pixels);
    dataset_fini(&d);
}
END_TEST

static Suite *batches_suite(void)
{
    Suite *suite = suite_create("trainer_batches");
    TCase *tc = suite_case(suite, "batches", 60);

    tcase_add_test(tc, pixels_become_numbers_as_asked);
    tcase_add_test(tc, an_image_of_one_colour_has_no_deviation_to_divide_by);
    tcase_add_test(tc, synthetic_images_are_seeded_and_of_all_classes);
    tcase_add_loop_test(tc, row34_drawn_images_are_those_that_are_held, 0, 2);
    tcase_add_test(tc, row34_images_that_do_not_fit_are_drawn_when_wanted);
    return suite;
}

int main(void) { return suite_run(batches_suite()); }
