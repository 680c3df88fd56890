/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_augment.c - training images that are cut and mirrored. */
#include "tests/support/suite.h"
#include "trainer/synthetic.h"

#include <check.h>
#include <stdlib.h>

enum { EDGE = 12, COLOURS = 2, EDGE_LEN = EDGE * EDGE * COLOURS };

/* Is this the image of which all pixels differ, moved so? */
static int is_moved(const float *out, int down, int right, int is_mirrored)
{
    for (int y = 0; y < EDGE; y++)
        for (int x = 0; x < EDGE; x++)
            for (int c = 0; c < COLOURS; c++) {
                int row = y + down - AUGMENT_PAD;
                int column =
                    (is_mirrored ? EDGE - 1 - x : x) + right - AUGMENT_PAD;
                int is_black =
                    row < 0 || row >= EDGE || column < 0 || column >= EDGE;
                int want = is_black ? -1 : c * 100 + (row * EDGE + column) / 2;

                if (out[(y * EDGE + x) * COLOURS + c] != (float)want)
                    return 0;
            }
    return 1;
}

/* In which of 9 * 9 * 2 ways it was moved; -1: in none. */
static int way_of(const float *out)
{
    for (int way = 0; way < 162; way++)
        if (is_moved(out, way / 18, way / 2 % 9, way % 2))
            return way;
    return -1;
}

/* Each way there is comes, about as often as any other. */
START_TEST(row30_images_are_cut_and_mirrored_in_every_way)
{
    enum { DRAWS = 162 * 40 };
    unsigned char pixels[EDGE_LEN], label = 3, seen;
    struct images images = {.pixels = pixels,
                            .labels = &label,
                            .n = 1,
                            .channels = COLOURS,
                            .height = EDGE,
                            .width = EDGE};
    static int count[162];
    uint32_t index = 0;
    struct pixel_scale scale;
    struct images_pick pick = {&images,           &index, 1, &scale,
                               AUGMENT_FLIP_CROP, 7,      0};
    float out[EDGE_LEN];

    for (int v = 0; v < 256; v++)
        scale.value[v] = (float)(v - 1); /* black is not 0 */
    for (int i = 0; i < EDGE_LEN; i++)
        pixels[i] = (unsigned char)(1 + i / (EDGE * EDGE) * 100 +
                                    i % (EDGE * EDGE) / 2);
    for (; pick.first < DRAWS; pick.first++) {
        images_gather(&pick, out, &seen);
        ck_assert_int_ge(way_of(out), 0);
        count[way_of(out)]++;
    }
    for (int way = 0; way < 162; way++) {
        ck_assert_int_gt(count[way], 10);
        ck_assert_int_lt(count[way], 90);
    }
}
END_TEST

/* However they are cut into pieces, and in each step otherwise. */
START_TEST(row30_moves_belong_to_a_place_in_the_batch)
{
    enum { MANY = 30 };
    static float whole[MANY * 784], part[MANY * 784], other[MANY * 784];
    struct images images = {.channels = 1, .height = 28, .width = 28};
    unsigned char labels[MANY];
    uint32_t index[MANY];
    struct pixel_scale scale;
    struct images_pick pick = {&images,           index, MANY, &scale,
                               AUGMENT_FLIP_CROP, 7,     0};

    ck_assert_int_eq(synthetic_make(&images, MANY, 1, 0), 0);
    pixel_scale_unit(&scale);
    for (uint32_t i = 0; i < MANY; i++)
        index[i] = MANY - 1 - i;
    images_gather(&pick, whole, labels);
    pick.key = 8;
    images_gather(&pick, other, labels);
    ck_assert_mem_ne(whole, other, sizeof(whole));
    pick = (struct images_pick){&images,           index, 11, &scale,
                                AUGMENT_FLIP_CROP, 7,     0};
    images_gather(&pick, part, labels);
    pick = (struct images_pick){
        &images, index + 11, MANY - 11, &scale, AUGMENT_FLIP_CROP, 7, 11};
    images_gather(&pick, part + 11 * 784, labels);
    ck_assert_mem_eq(whole, part, sizeof(whole));
    images_fini(&images);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_augment");
    TCase *augment = suite_case(suite, "augment", 60);

    tcase_add_test(augment, row30_images_are_cut_and_mirrored_in_every_way);
    tcase_add_test(augment, row30_moves_belong_to_a_place_in_the_batch);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
