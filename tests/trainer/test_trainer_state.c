/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_state.c - checkpoints and the folder that they are in. */
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/folder.h"
#include "trainer/optim.h"

#include <zlib.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_PARAMS 100
#define N_STATE 200
#define N_RUNNING 30

static char dir[] = "/tmp/coll-ckpt-XXXXXX";
#define HEADER 128    /* bytes before the parameters */
#define OLD_HEADER 96 /* the same in files of version 2, without the data set */

static float params[N_PARAMS], state[N_STATE], running[N_RUNNING];

static struct checkpoint sample(uint64_t epoch)
{
    for (int i = 0; i < N_PARAMS; i++)
        params[i] = (float)(i * 3) + (float)epoch;
    for (int i = 0; i < N_STATE; i++)
        state[i] = -(float)i;
    for (int i = 0; i < N_RUNNING; i++)
        running[i] = 0.5f + (float)i;
    return (struct checkpoint){.epoch = epoch,
                               .step = 70,
                               .seed = 9,
                               .steps = {2, 64, 1, 1},
                               .optim = OPTIM_ADAM,
                               .device = &device_cpu,
                               .dataset = "cifar10",
                               .params = params,
                               .state = state,
                               .n_params = N_PARAMS,
                               .n_state = N_STATE,
                               .running = running,
                               .n_running = N_RUNNING};
}

static void set_up(void) { folder_make(dir); }

static void tear_down(void) { folder_remove(dir); }

static void path_of(char path[CHECKPOINT_PATH], const char *name)
{
    snprintf(path, CHECKPOINT_PATH, "%s/%s", dir, name);
}

static void write_file(const char *path, const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static int exists(const char *name)
{
    char path[CHECKPOINT_PATH];

    path_of(path, name);
    return access(path, F_OK) == 0;
}

/* A folder has one writer; what an earlier run left goes out of a new one's way. */
START_TEST(two_runs_do_not_share_a_folder)
{
    struct checkpoint c = sample(3);
    struct folder mine = {0}, other = {0};
    char path[CHECKPOINT_PATH];

    ck_assert_int_eq(folder_init(&mine, dir), 0);
    ck_assert_int_eq(folder_init(&other, dir), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "a running job"));
    ck_assert_int_eq(folder_begin(&mine, 0), 0);
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    folder_fini(&mine);
    ck_assert_int_eq(folder_init(&other, dir), 0);
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    ck_assert_int_eq(folder_begin(&other, 0), 0);
    ck_assert_str_ne(other.moved, "");
    ck_assert_int_eq(checkpoint_newest(dir, path), 0);
    folder_fini(&other);
}
END_TEST

/* A rank 0 that is killed while it writes leaves these. */
START_TEST(drafts_of_a_killed_run_are_removed_by_the_next_writer)
{
    static const char *const left[] = {".draft-1", ".draft-4000000",
                                       ".probe-7"};
    struct folder mine = {0}, other = {0};
    char path[CHECKPOINT_PATH];

    for (int i = 0; i < 3; i++) {
        path_of(path, left[i]);
        write_file(path, (const unsigned char *)"half", 4);
    }
    path_of(path, "draft-of-mine");
    write_file(path, (const unsigned char *)"mine", 4);
    ck_assert_int_eq(folder_init(&mine, dir), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(!exists(left[i]), "%s is still there", left[i]);
    ck_assert(exists("draft-of-mine"));

    path_of(path, ".draft-1"); /* by the run that holds the folder */
    write_file(path, (const unsigned char *)"half", 4);
    ck_assert_int_eq(folder_init(&other, dir), -1);
    ck_assert(exists(".draft-1"));
    folder_fini(&mine);
}
END_TEST

START_TEST(what_is_saved_is_what_is_loaded)
{
    struct checkpoint c = sample(3), loaded = sample(0);
    float p[N_PARAMS], s[N_STATE], r[N_RUNNING];
    char path[CHECKPOINT_PATH];

    ck_assert_int_eq(checkpoint_newest(dir, path), 0);
    c = sample(3);
    ck_assert_msg(!checkpoint_save(&c, dir, 5), "%s", train_error());
    loaded.params = p;
    loaded.state = s;
    loaded.running = r;
    loaded.steps = (struct checkpoint_steps){0};
    strcpy(loaded.dataset, "mnist");
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    ck_assert_msg(!checkpoint_load(&loaded, path), "%s", train_error());
    ck_assert_uint_eq(loaded.epoch, 3);
    ck_assert_uint_eq(loaded.step, 70);
    ck_assert_uint_eq(loaded.seed, 9);
    ck_assert_str_eq(loaded.dataset, "cifar10");
    ck_assert_mem_eq(&loaded.steps, &c.steps, sizeof(c.steps));
    ck_assert_mem_eq(p, params, sizeof(p));
    ck_assert_mem_eq(s, state, sizeof(s));
    ck_assert_mem_eq(r, running, sizeof(r));
}
END_TEST

static size_t read_file(const char *path, unsigned char *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    ck_assert_ptr_nonnull(f);
    n = fread(bytes, 1, most, f);
    fclose(f);
    return n;
}

/* Loading must fail like that, name the file, and write nothing. */
static void assert_fails(const char *path, int status, const char *says)
{
    struct checkpoint c = sample(1);
    float p[N_PARAMS] = {7}, s[N_STATE] = {8};

    c.params = p;
    c.state = s;
    ck_assert_int_eq(checkpoint_load(&c, path), status);
    ck_assert_msg(strstr(train_error(), path) && strstr(train_error(), says),
                  "'%s' has no '%s'", train_error(), says);
    ck_assert_float_eq(p[0], 7);
    ck_assert_float_eq(s[0], 8);
    ck_assert_uint_eq(c.epoch, 1);
}

static void assert_refused(const char *path, const char *says)
{
    assert_fails(path, -1, says);
}

static void assert_damaged(const char *path, const char *says)
{
    assert_fails(path, CHECKPOINT_DAMAGED, says);
}

START_TEST(a_checkpoint_cut_anywhere_is_damaged)
{
    static unsigned char bytes[4096];
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];
    size_t n;

    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    path_of(path, "epoch-0001.ckpt");
    n = read_file(path, bytes, sizeof(bytes));
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path, bytes, cut);
        assert_damaged(path, cut < 8 ? "no checkpoint" : "cut off");
    }
    write_file(path, bytes, n + 1);
    assert_damaged(path, "cut off");
    memset(bytes, 0, n); /* of a file system that knew its length alone */
    write_file(path, bytes, n);
    assert_damaged(path, "damaged");
}
END_TEST

/* Wherever one bit of the file differs, it is known. */
static void assert_each_byte_checked(const char *path)
{
    static unsigned char bytes[4096];
    size_t n = read_file(path, bytes, sizeof(bytes));

    for (size_t at = 0; at < n; at++) {
        bytes[at] ^= 4;
        write_file(path, bytes, n);
        bytes[at] ^= 4;
        assert_damaged(path, "its check sum is wrong");
    }
    write_file(path, bytes, n);
}

START_TEST(a_checkpoint_damaged_anywhere_is_known)
{
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];

    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    path_of(path, "epoch-0001.ckpt");
    assert_each_byte_checked(path);
}
END_TEST

START_TEST(a_file_of_another_kind_model_or_optimizer_is_refused)
{
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-0001.ckpt");
    assert_refused(path, "No such file");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    assert_refused(path, "is a folder; say --resume auto --checkpoint");
    ck_assert_int_eq(rmdir(path), 0);
    write_file(path, (const unsigned char *)"hello", 5);
    assert_damaged(path, "no checkpoint of this coll_train");
    c.n_params--;
    strcpy(c.dataset, "mnist");
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    assert_refused(path, "another model (99 parameters, not 100) of mnist;");
    strcpy(c.dataset, "cifar10"); /* that of this run */
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    assert_refused(path, "another model (99 parameters, not 100); name");
    c = sample(1);
    c.optim = OPTIM_SGD;
    c.n_state = N_PARAMS;
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    assert_refused(path, "the same --opt");
}
END_TEST

/* Write some bytes into a good file, and its check sum. */
static void change_file(const char *path, size_t at, const void *with,
                        size_t len)
{
    static unsigned char bytes[4096];
    size_t n = read_file(path, bytes, sizeof(bytes));
    uint32_t crc;

    memcpy(bytes + at, with, len);
    crc = (uint32_t)crc32_z(0, bytes, n - sizeof(crc));
    memcpy(bytes + n - sizeof(crc), &crc, sizeof(crc));
    write_file(path, bytes, n);
}

/* Words of a file that is whole are believed: a later program's is no damage. */
START_TEST(a_checkpoint_of_another_version_is_refused)
{
    struct checkpoint c = sample(1);
    const uint64_t version = 99;
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-0001.ckpt");
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    change_file(path, sizeof(version), &version, sizeof(version));
    assert_refused(path, "another version");
}
END_TEST

/* Turn a file into one of version 2, which has no data set. */
static void make_old(const char *path)
{
    static unsigned char bytes[4096];
    const uint64_t version = 2;
    size_t n = read_file(path, bytes, sizeof(bytes));

    memmove(bytes + OLD_HEADER, bytes + HEADER, n - HEADER);
    write_file(path, bytes, n - HEADER + OLD_HEADER);
    change_file(path, sizeof(version), &version, sizeof(version));
}

START_TEST(a_checkpoint_without_a_data_set_is_read)
{
    struct checkpoint c = sample(3), loaded = sample(0);
    float p[N_PARAMS], s[N_STATE], r[N_RUNNING];
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-0003.ckpt");
    c = sample(3);
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    make_old(path);
    loaded.params = p;
    loaded.state = s;
    loaded.running = r;
    ck_assert_msg(!checkpoint_load(&loaded, path), "%s", train_error());
    ck_assert_uint_eq(loaded.epoch, 3);
    ck_assert_str_eq(loaded.dataset, "");
    ck_assert_mem_eq(p, params, sizeof(p));
    ck_assert_mem_eq(s, state, sizeof(s));
    ck_assert_mem_eq(r, running, sizeof(r));
}
END_TEST

/* Wherever one bit differs, and wherever the file ends. */
START_TEST(a_damaged_checkpoint_without_a_data_set_is_known)
{
    static unsigned char bytes[4096];
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];
    size_t n;

    path_of(path, "epoch-0001.ckpt");
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
    make_old(path);
    assert_each_byte_checked(path);
    n = read_file(path, bytes, sizeof(bytes));
    for (size_t at = 0; at < n; at++) {
        write_file(path, bytes, at);
        assert_damaged(path, at < 8 ? "no checkpoint" : "cut off");
    }
}
END_TEST

/* A name that this program would not write is not printed. */
START_TEST(a_data_set_of_foreign_bytes_is_not_known)
{
    static const char *const names[] = {"\033[2J", "a b", "\xff\xfe"};
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH], full[32];

    path_of(path, "epoch-0001.ckpt");
    for (int i = 0; i < 4; i++) {
        c = sample(1);
        ck_assert_int_eq(checkpoint_save(&c, dir, 5), 0);
        memset(full, 'x', sizeof(full)); /* has no end */
        change_file(path, OLD_HEADER, i < 3 ? names[i] : full,
                    i < 3 ? strlen(names[i]) + 1 : sizeof(full));
        ck_assert_msg(!checkpoint_load(&c, path), "%s", train_error());
        ck_assert_str_eq(c.dataset, "");
    }
}
END_TEST

/* Of the first and last parameter, and of the first and last of the state. */
START_TEST(what_is_not_finite_is_neither_saved_nor_loaded)
{
    static const size_t places[] = {0, N_PARAMS - 1, N_PARAMS,
                                    N_PARAMS + N_STATE - 1};
    static const float bad[] = {NAN, INFINITY, -INFINITY, NAN};
    char good[CHECKPOINT_PATH], path[CHECKPOINT_PATH];
    struct checkpoint c = sample(1);

    path_of(good, "epoch-0001.ckpt");
    path_of(path, "epoch-0002.ckpt");
    ck_assert_int_eq(checkpoint_save(&c, dir, 1), 0);
    for (int i = 0; i < 4; i++) {
        size_t at = places[i];

        c = sample(2);
        *(at < N_PARAMS ? &params[at] : &state[at - N_PARAMS]) = bad[i];
        ck_assert_int_eq(checkpoint_save(&c, dir, 1), -1);
        ck_assert_ptr_nonnull(strstr(train_error(), path));
        ck_assert_ptr_nonnull(strstr(train_error(), "not finite"));
        ck_assert_int_eq(access(path, F_OK), -1);
        ck_assert_int_eq(access(good, F_OK), 0); /* --keep 1 kept it */
        c = sample(2);
        ck_assert_int_eq(checkpoint_save(&c, dir, 0), 0);
        change_file(path, HEADER + at * sizeof(float), &bad[i], sizeof(float));
        assert_damaged(path, "numbers that are not finite");
        ck_assert_int_eq(unlink(path), 0);
    }
}
END_TEST

START_TEST(older_checkpoints_come_in_order)
{
    char path[CHECKPOINT_PATH];

    for (uint64_t epoch = 1; epoch <= 2; epoch++)
        for (uint64_t skip = 0; skip <= 30; skip += 15) {
            struct checkpoint c = sample(epoch);

            c.skip = skip;
            ck_assert_int_eq(checkpoint_save(&c, dir, 0), 0);
        }
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    for (int i = 5; i >= 0; i--) {
        struct checkpoint c = sample(1);

        ck_assert_int_eq(checkpoint_load(&c, path), 0);
        ck_assert_uint_eq(c.epoch, i / 3 + 1);
        ck_assert_uint_eq(c.skip, i % 3 * 15);
        ck_assert_int_eq(checkpoint_older(dir, path), i > 0);
    }
}
END_TEST

START_TEST(the_newest_checkpoints_are_kept_and_nothing_else_is_touched)
{
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-1.ckpt"); /* not a name that this program gives */
    write_file(path, (const unsigned char *)"mine", 4);
    for (uint64_t epoch = 1; epoch <= 12; epoch++) {
        struct checkpoint c = sample(epoch);

        ck_assert_int_eq(checkpoint_save(&c, dir, epoch < 10 ? 0 : 3), 0);
    }
    ck_assert(exists("epoch-0012.ckpt"));
    ck_assert(exists("epoch-0010.ckpt"));
    ck_assert(!exists("epoch-0009.ckpt"));
    ck_assert(!exists("epoch-0001.ckpt"));
    ck_assert(exists("epoch-1.ckpt"));
    ck_assert_int_eq(checkpoint_newest(dir, path), 1);
    ck_assert_ptr_nonnull(strstr(path, "/epoch-0012.ckpt"));
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_found_out_before)
{
    char path[CHECKPOINT_PATH], below[CHECKPOINT_PATH];

    path_of(path, "new");
    ck_assert_int_eq(checkpoint_probe(path), 0); /* is made */
    ck_assert(exists("new"));
    ck_assert_int_eq(rmdir(path), 0); /* and is empty */
    path_of(path, "file");
    write_file(path, (const unsigned char *)"x", 1);
    path_of(below, "file/below");
    ck_assert_int_eq(checkpoint_probe(path), -1);
    ck_assert_int_eq(checkpoint_probe(below), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), "--checkpoint"));
}
END_TEST

START_TEST(a_save_that_fails_leaves_the_folder_as_it_was)
{
    struct checkpoint c = sample(1);
    char path[CHECKPOINT_PATH];

    path_of(path, "epoch-0001.ckpt");
    ck_assert_int_eq(mkdir(path, 0700), 0); /* rename cannot replace it */
    ck_assert_int_eq(checkpoint_save(&c, dir, 5), -1);
    ck_assert_ptr_nonnull(strstr(train_error(), path));
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(dir), 0); /* no draft is left */
    ck_assert_int_eq(mkdir(dir, 0700), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_state");
    TCase *files = suite_case(suite, "files", 300);

    tcase_add_checked_fixture(files, set_up, tear_down);
    tcase_add_test(files, two_runs_do_not_share_a_folder);
    tcase_add_test(files,
                   drafts_of_a_killed_run_are_removed_by_the_next_writer);
    tcase_add_test(files, what_is_saved_is_what_is_loaded);
    tcase_add_test(files, a_checkpoint_cut_anywhere_is_damaged);
    tcase_add_test(files, a_checkpoint_damaged_anywhere_is_known);
    tcase_add_test(files, a_checkpoint_of_another_version_is_refused);
    tcase_add_test(files, a_checkpoint_without_a_data_set_is_read);
    tcase_add_test(files, a_damaged_checkpoint_without_a_data_set_is_known);
    tcase_add_test(files, a_data_set_of_foreign_bytes_is_not_known);
    tcase_add_test(files, older_checkpoints_come_in_order);
    tcase_add_test(files,
                   a_file_of_another_kind_model_or_optimizer_is_refused);
    tcase_add_test(files, what_is_not_finite_is_neither_saved_nor_loaded);
    tcase_add_test(files,
                   the_newest_checkpoints_are_kept_and_nothing_else_is_touched);
    tcase_add_test(files, a_folder_that_cannot_be_written_is_found_out_before);
    tcase_add_test(files, a_save_that_fails_leaves_the_folder_as_it_was);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
