/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_data.c - IDX and CIFAR files good and bad, and where they are looked for. */
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "trainer/data.h"
#include "trainer/error.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define N 12      /* images in a test file */
#define TRAILER 8 /* bytes of a .gz: its check sum and length */

static char dir[] = "/tmp/coll-data-XXXXXX"; /* of the running test */
static char images_path[128], labels_path[128];

/* What a pair of files claims and holds. */
struct fake {
    uint32_t magic, n, rows, columns; /* of the images' header */
    size_t bytes;                     /* of images that follow */
    uint32_t label_magic, n_labels;
    size_t label_bytes;
    int bad_label; /* its index, or -1 */
    int is_gz;
};

static const struct fake good = {0x803, N, 28, 28, N * 784, 0x801,
                                 N,     N, -1, 0};

static void put_word(unsigned char **p, uint32_t w)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *(*p)++ = (unsigned char)(w >> shift);
}

/* gzopen in mode "T" writes plainly. */
static void write_bytes(const char *path, int is_gz, const unsigned char *bytes,
                        size_t len)
{
    gzFile f = gzopen(path, is_gz ? "wb" : "wbT");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, bytes, (unsigned)len), (int)len);
    ck_assert_int_eq(gzclose(f), Z_OK);
}

/* Pixel i of the file is 7 i mod 256, label i is i mod 10. */
static void write_fake(const struct fake *k)
{
    static unsigned char buffer[16 + (N + 1) * 784];
    unsigned char *p = buffer;

    put_word(&p, k->magic);
    put_word(&p, k->n);
    put_word(&p, k->rows);
    put_word(&p, k->columns);
    for (size_t i = 0; i < k->bytes; i++)
        *p++ = (unsigned char)(i * 7);
    write_bytes(images_path, k->is_gz, buffer, (size_t)(p - buffer));
    p = buffer;
    put_word(&p, k->label_magic);
    put_word(&p, k->n_labels);
    for (size_t i = 0; i < k->label_bytes; i++)
        *p++ = (unsigned char)((int)i == k->bad_label ? 10 : i % 10);
    write_bytes(labels_path, k->is_gz, buffer, (size_t)(p - buffer));
}

static void set_up(void)
{
    folder_make(dir);
    snprintf(images_path, sizeof(images_path), "%s/images", dir);
    snprintf(labels_path, sizeof(labels_path), "%s/labels", dir);
}

static void tear_down(void) { folder_remove(dir); }

static void assert_good(const struct images *images)
{
    ck_assert_uint_eq(images->n, N);
    for (size_t i = 0; i < N * 784; i++)
        ck_assert_uint_eq(images->pixels[i], (unsigned char)(i * 7));
    for (size_t i = 0; i < N; i++)
        ck_assert_uint_eq(images->labels[i], i % 10);
}

/* The files as they are must be refused, with these words and a file's name. */
static void assert_refused(const char *words, const char *path)
{
    struct images images = {.pixels = (unsigned char *)dir,
                            .labels = (unsigned char *)dir,
                            .n = 1,
                            .channels = 1,
                            .height = 28,
                            .width = 28};

    ck_assert_int_eq(idx_load(&images, images_path, labels_path), -1);
    ck_assert_msg(strstr(train_error(), words) && strstr(train_error(), path),
                  "'%s' has no '%s'", train_error(), words);
    ck_assert_ptr_null(images.pixels);
    ck_assert_ptr_null(images.labels);
}

/* _i: plain, gzipped */
START_TEST(good_files_are_read)
{
    struct fake k = good;
    struct images images;

    k.is_gz = _i;
    write_fake(&k);
    ck_assert_msg(!idx_load(&images, images_path, labels_path), "%s",
                  train_error());
    assert_good(&images);
    images_limit(&images, 0);
    ck_assert_uint_eq(images.n, N);
    images_limit(&images, 5);
    ck_assert_uint_eq(images.n, 5);
    images_limit(&images, 50);
    ck_assert_uint_eq(images.n, 5);
    images_fini(&images);
}
END_TEST

START_TEST(a_wrong_header_or_length_is_refused)
{
    static const struct {
        struct fake fake;
        const char *words;
        int in_labels;
    } cases[] = {
        {{0x802, N, 28, 28, N * 784, 0x801, N, N, -1, 0}, "0x00000802", 0},
        {{0x803, N, 0, 28, N * 784, 0x801, N, N, -1, 0}, "0 x 28", 0},
        {{0x803, N, 28, 1025, N * 784, 0x801, N, N, -1, 0}, "28 x 1025", 0},
        {{0x803, N, 27, 28, N * 784, 0x801, N, N, -1, 0}, "more than", 0},
        {{0x803, 0, 28, 28, 0, 0x801, 0, 0, -1, 0}, "no images", 0},
        {{0x803, N, 28, 28, N * 784 - 1, 0x801, N, N, -1, 0}, "cut off", 0},
        {{0x803, N, 28, 28, N * 784 + 1, 0x801, N, N, -1, 0}, "more than", 0},
        {{0x803, ~0u, 28, 28, N * 784, 0x801, N, N, -1, 0}, "cut off", 0},
        {{0x803, N, 28, 28, N * 784, 0x803, N, N, -1, 0}, "0x00000803", 1},
        {{0x803, N, 28, 28, N * 784, 0x801, 11, 11, -1, 0}, "11 labels", 1},
        {{0x803, N, 28, 28, N * 784, 0x801, N, 11, -1, 0}, "cut off", 1},
        {{0x803, N, 28, 28, N * 784, 0x801, N, N, 3, 0}, "label 3 is 10", 1},
    };

    for (int gz = 0; gz < 2; gz++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            struct fake k = cases[i].fake;

            k.is_gz = gz;
            write_fake(&k);
            assert_refused(cases[i].words,
                           cases[i].in_labels ? labels_path : images_path);
        }
}
END_TEST

static size_t read_bytes(const char *path, unsigned char *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t len;

    ck_assert_ptr_nonnull(f);
    len = fread(bytes, 1, most, f);
    fclose(f);
    ck_assert_uint_lt(len, most);
    return len;
}

static void put_bytes(const char *path, const unsigned char *bytes, size_t len)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

/* Write images whose pixels do not compress, so that a damaged byte of the .gz is
 * a damaged pixel, which nothing but the check sum shows. */
static void write_noise(void)
{
    static unsigned char buffer[16 + N * 784];
    unsigned char *p = buffer;
    unsigned noise = 1;

    put_word(&p, 0x803);
    put_word(&p, N);
    put_word(&p, 28);
    put_word(&p, 28);
    while (p < buffer + sizeof(buffer)) {
        noise = noise * 1103515245u + 12345u;
        *p++ = (unsigned char)(noise >> 16);
    }
    write_bytes(images_path, 1, buffer, sizeof(buffer));
}

/* Cut the .gz by one byte more at a time, from its end; then damage bytes.
 * _i: pixels that compress, and pixels that do not. */
START_TEST(a_gzipped_file_cut_or_damaged_anywhere_is_refused)
{
    static unsigned char whole[64 * 1024];
    struct fake k = good;
    size_t len;

    k.is_gz = 1;
    write_fake(&k);
    if (_i)
        write_noise();
    len = read_bytes(images_path, whole, sizeof(whole));
    for (size_t cut = 1; cut < len; cut += cut < 64 ? 1 : 61) {
        put_bytes(images_path, whole, len - cut);
        assert_refused("cut off or damaged", images_path);
    }
    for (size_t at = 20; at < len; at += at + 64 < len ? 61 : 1) {
        if (at == len - TRAILER - 1) /* it ends with bits that mean nothing */
            continue;
        whole[at] ^= 0x40;
        put_bytes(images_path, whole, len);
        whole[at] ^= 0x40;
        assert_refused("fetch it again", images_path);
    }
}
END_TEST

/* gzip packs files one behind the other, as `cat a.gz b.gz` does. */
START_TEST(what_follows_a_gzipped_part_is_read_or_refused)
{
    static unsigned char whole[64 * 1024];
    struct fake k = good;
    struct images images;
    size_t len, labels;

    k.is_gz = 1;
    write_fake(&k);
    labels = read_bytes(labels_path, whole, sizeof(whole));
    memset(whole + labels, 'x', 3);
    put_bytes(labels_path, whole, labels + 3);
    assert_refused("cut off or damaged", labels_path);

    write_fake(&k);
    len = read_bytes(images_path, whole, sizeof(whole));
    write_bytes(images_path, 1, (const unsigned char *)"", 0);
    len += read_bytes(images_path, whole + len, sizeof(whole) - len);
    put_bytes(images_path, whole, len);
    ck_assert_msg(!idx_load(&images, images_path, labels_path), "%s",
                  train_error());
    assert_good(&images);
    images_fini(&images);
}
END_TEST

/* ---- CIFAR-10 ---- */

#define RECORD 3073

/* Write n records, the first being image `first`: pixel p of image i is
 * i + 3 p mod 256, its label i mod 10. */
static void write_cifar(const char *name, int is_gz, int first, int n,
                        size_t cut)
{
    static unsigned char buffer[N * RECORD];
    unsigned char *p = buffer;
    char path[128];

    for (int i = first; i < first + n; i++) {
        *p++ = (unsigned char)(i % 10);
        for (int k = 0; k < RECORD - 1; k++)
            *p++ = (unsigned char)(i + 3 * k);
    }
    snprintf(path, sizeof(path), "%s/%s%s", dir, name, is_gz ? ".gz" : "");
    write_bytes(path, is_gz, buffer, (size_t)(p - buffer) - cut);
}

static void assert_cifar(const struct images *images, size_t n)
{
    ck_assert_uint_eq(images->n, n);
    ck_assert_uint_eq(images_len(images), RECORD - 1);
    for (size_t i = 0; i < n; i++) {
        ck_assert_uint_eq(images->labels[i], i % 10);
        for (size_t k = 0; k < RECORD - 1; k++)
            ck_assert_uint_eq(images->pixels[i * (RECORD - 1) + k],
                              (unsigned char)(i + 3 * k));
    }
}

/* _i: plain, gzipped; three of five batches are there */
START_TEST(row30_cifar_batches_follow_each_other)
{
    struct data_config config = {.name = "cifar10", .dir = dir};
    struct pixel_scale scale;
    unsigned char label;
    uint32_t index = 7;
    struct dataset d;
    struct images_pick pick = {
        .images = &d.train, .index = &index, .n = 1, .scale = &scale};
    float *out;

    write_cifar("data_batch_1.bin", _i, 0, 5, 0);
    write_cifar("data_batch_2.bin", !_i, 5, 4, 0);
    write_cifar("data_batch_3.bin", _i, 9, 1, 0);
    write_cifar("test_batch.bin", _i, 0, 3, 0);
    ck_assert_msg(!dataset_load(&d, &config), "%s", train_error());
    assert_cifar(&d.train, 10);
    assert_cifar(&d.test, 3);
    pixel_scale_unit(&scale);
    out = calloc(RECORD, sizeof(*out));
    images_gather(&pick, out, &label);
    ck_assert_uint_eq(label, 7);
    for (int p = 0; p < 1024; p++) /* channels lie side by side */
        for (int c = 0; c < 3; c++)
            ck_assert_float_eq(out[3 * p + c],
                               (float)(unsigned char)(7 + 3 * (1024 * c + p)) /
                                   255);
    free(out);
    dataset_fini(&d);
}
END_TEST

/* Records end where the file ends, so that only the check sum shows what lacks. */
START_TEST(a_gzipped_cifar_file_cut_or_damaged_is_refused)
{
    struct data_config config = {.name = "cifar10", .dir = dir};
    static unsigned char whole[64 * 1024];
    char path[128];
    size_t len;

    write_cifar("data_batch_1.bin", 0, 0, 5, 0);
    write_cifar("test_batch.bin", 1, 0, 2, 0);
    snprintf(path, sizeof(path), "%s/test_batch.bin.gz", dir);
    len = read_bytes(path, whole, sizeof(whole));
    for (size_t cut = 0; cut < len; cut++) {
        struct dataset d;

        whole[len - TRAILER] ^= !cut;
        put_bytes(path, whole, len - cut);
        whole[len - TRAILER] ^= !cut;
        ck_assert_int_eq(dataset_load(&d, &config), -1);
        ck_assert_ptr_nonnull(strstr(train_error(), "cut off or damaged"));
    }
}
END_TEST

START_TEST(a_bad_cifar_file_is_refused)
{
    struct data_config config = {.name = "cifar10", .dir = dir};
    char path[128];
    struct dataset d;

    write_cifar("data_batch_1.bin", 0, 0, 5, 0);
    ck_assert_int_eq(dataset_load(&d, &config), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "test_batch.bin is missing"));
    for (size_t cut = 1; cut < RECORD; cut += 1024) {
        write_cifar("test_batch.bin", 0, 0, 2, cut);
        ck_assert_int_eq(dataset_load(&d, &config), -1);
        ck_assert_ptr_nonnull(strstr(train_error(), "cut off"));
    }
    write_cifar("test_batch.bin", 0, 0, 0, 0);
    ck_assert_int_eq(dataset_load(&d, &config), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "no images"));
    snprintf(path, sizeof(path), "%s/test_batch.bin", dir);
    write_bytes(path, 0, (const unsigned char *)"\x0b", 1);
    ck_assert_int_eq(truncate(path, RECORD), 0);
    ck_assert_int_eq(dataset_load(&d, &config), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "label 0 is 11"));
}
END_TEST

START_TEST(a_missing_file_or_a_folder_is_named)
{
    assert_refused("No such file", images_path);
    write_fake(&good);
    ck_assert_int_eq(unlink(labels_path), 0);
    assert_refused("No such file", labels_path);
    ck_assert_int_eq(mkdir(labels_path, 0700), 0);
    assert_refused("is not a file", labels_path);
}
END_TEST

/* ---- where data sets lie ---- */

static void write_set(const char *where, int is_gz)
{
    static const char *const parts[] = {"train", "t10k"};
    struct fake k = good;

    k.is_gz = is_gz;
    for (int i = 0; i < 2; i++) {
        const char *gz = is_gz ? ".gz" : "";

        snprintf(images_path, sizeof(images_path),
                 "%s/%s-images-idx3-ubyte%s", where, parts[i], gz);
        snprintf(labels_path, sizeof(labels_path),
                 "%s/%s-labels-idx1-ubyte%s", where, parts[i], gz);
        write_fake(&k);
    }
}

static void assert_loads(const struct data_config *config, const char *where)
{
    struct dataset d;

    ck_assert_msg(!dataset_load(&d, config), "%s", train_error());
    assert_good(&d.train);
    assert_good(&d.test);
    ck_assert_str_eq(d.where, where);
    dataset_fini(&d);
}

START_TEST(data_is_found_where_the_flag_points)
{
    struct data_config config = {.name = "mnist", .dir = dir};
    char below[80];

    write_set(dir, 0);
    assert_loads(&config, dir);

    tear_down(); /* again, one folder further down and gzipped */
    snprintf(below, sizeof(below), "%s/mnist", dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(mkdir(below, 0700), 0);
    write_set(below, 1);
    assert_loads(&config, below);
}
END_TEST

START_TEST(a_set_that_lacks_a_file_is_refused_by_its_name)
{
    struct data_config config = {.name = "fashion-mnist", .dir = dir};
    char path[160];
    struct dataset d;

    write_set(dir, 1);
    snprintf(path, sizeof(path), "%s/t10k-labels-idx1-ubyte", dir);
    ck_assert_int_eq(unlink(labels_path), 0);
    ck_assert_int_eq(dataset_load(&d, &config), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), path));
    ck_assert_ptr_nonnull(strstr(train_error(), "dataset-fashion-mnist"));
    ck_assert_ptr_null(d.train.pixels);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_data");
    TCase *files = suite_case(suite, "files", 60);

    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_add_loop_test(files, good_files_are_read, 0, 2);
    tcase_add_test(files, a_wrong_header_or_length_is_refused);
    tcase_add_loop_test(
        files, a_gzipped_file_cut_or_damaged_anywhere_is_refused, 0, 2);
    tcase_add_test(files, what_follows_a_gzipped_part_is_read_or_refused);
    tcase_add_loop_test(files, row30_cifar_batches_follow_each_other, 0, 2);
    tcase_add_test(files, a_gzipped_cifar_file_cut_or_damaged_is_refused);
    tcase_add_test(files, a_bad_cifar_file_is_refused);
    tcase_add_test(files, a_missing_file_or_a_folder_is_named);
    tcase_add_test(files, data_is_found_where_the_flag_points);
    tcase_add_test(files, a_set_that_lacks_a_file_is_refused_by_its_name);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
