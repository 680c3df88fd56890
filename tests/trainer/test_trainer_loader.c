/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trainer_loader.c - images that a thread gathers ahead: the same ones as
 * without it, whatever was asked for, and an end at any moment. */
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "trainer/error.h"
#include "trainer/loader.h"
#include "trainer/synthetic.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define IMAGES 64
#define CHUNK 4
#define LEN 784

static struct images images;
static struct pixel_scale scale;
static struct model *model;
static uint32_t order[IMAGES];
static pthread_t trains;
static int is_gathered_elsewhere; /* the loader's; read after loader_take() */
static int is_signalled;          /* its thread would get signals */

/* The processors, slowly, and with a look at who calls. */
static void slow_gather(const struct images_pick *pick, float *out,
                        unsigned char *labels)
{
    struct timespec nap = {.tv_nsec = 300000};
    sigset_t blocked;

    nanosleep(&nap, NULL);
    is_gathered_elsewhere = !pthread_equal(trains, pthread_self());
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    is_signalled = !sigismember(&blocked, SIGTERM);
    images_gather(pick, out, labels);
}

static struct device slow;

/* Time for a thread to come; where it is late, there is another round. */
static const struct timespec computes = {.tv_nsec = 20000000};

static void set_up(void)
{
    struct model_config config = {.desc = model_find("net"),
                                  .channels = 1,
                                  .height = 28,
                                  .width = 28,
                                  .chunk = CHUNK};

    images = (struct images){.channels = 1, .height = 28, .width = 28};
    trains = pthread_self();
    slow = device_cpu;
    slow.images.gather = slow_gather;
    ck_assert_int_eq(device_cpu.init(&(struct device_config){.threads = 1}), 0);
    ck_assert_int_eq(synthetic_make(&images, IMAGES, 1, 0), 0);
    pixel_scale_unit(&scale);
    for (uint32_t i = 0; i < IMAGES; i++)
        order[i] = (i * 37) % IMAGES;
    ck_assert_msg(!model_create(&model, &config), "%s", train_error());
}

static void tear_down(void)
{
    model_destroy(model);
    images_fini(&images);
    device_cpu.fini();
}

static struct loader *loader_of(int has_thread)
{
    struct loader *l;

    ck_assert_msg(!loader_create(&l, model, &slow, has_thread), "%s",
                  train_error());
    return l;
}

static struct images_pick pick_at(int at, int n)
{
    return (struct images_pick){
        .images = &images, .index = order + at, .n = n, .scale = &scale};
}

/* Are the model's input and these labels the images from there on? */
static void check(const unsigned char *labels, int at, int n)
{
    struct images_pick pick = pick_at(at, n);
    float want[CHUNK * LEN];
    unsigned char right[CHUNK];

    images_gather(&pick, want, right);
    ck_assert_mem_eq(labels, right, (size_t)n);
    ck_assert_mem_eq(model_input(model), want, (size_t)n * LEN * sizeof(float));
}

static void take(struct loader *l, int at, int n)
{
    struct images_pick pick = pick_at(at, n);

    check(loader_take(l, &pick), at, n);
}

static void ask(struct loader *l, int at, int n)
{
    struct images_pick pick = pick_at(at, n);

    loader_ask(l, &pick);
}

/* _i: with the thread, which gathers some of them in the end, or without.  The
 * last piece is shorter. */
START_TEST(images_come_in_the_order_they_are_taken)
{
    struct loader *l = loader_of(_i);
    int n_elsewhere = 0;

    for (int round = 0; round < 3 || (_i && !n_elsewhere); round++)
        for (int at = 0; at < IMAGES - 1; at += CHUNK) {
            struct images_pick pick =
                pick_at(at, CHUNK - (at + CHUNK == IMAGES));
            const unsigned char *labels = loader_take(l, &pick);

            ck_assert(_i || !is_gathered_elsewhere);
            n_elsewhere += is_gathered_elsewhere;
            ck_assert(!is_gathered_elsewhere || !is_signalled);
            if (at + CHUNK < IMAGES)
                ask(l, at + CHUNK, CHUNK - (at + 2 * CHUNK == IMAGES));
            check(labels, at, pick.n); /* while the next ones come */
            if (round > 0)
                nanosleep(&computes, NULL);
        }
    loader_destroy(l);
}
END_TEST

START_TEST(other_images_than_those_asked_for_are_gathered)
{
    struct loader *l = loader_of(1);

    ask(l, 8, CHUNK);
    take(l, 20, CHUNK);
    take(l, 24, 1); /* not asked for */
    ask(l, 28, CHUNK);
    take(l, 28, CHUNK - 1);
    ask(l, 32, CHUNK);
    take(l, 32, CHUNK);
    loader_destroy(l);
}
END_TEST

/* After an epoch that was cut short its order is drawn anew in place. */
START_TEST(what_was_dropped_is_read_no_more)
{
    struct loader *l = loader_of(1);

    for (int i = 0; i < part_of(100); i++) {
        ask(l, 4, CHUNK);
        loader_drop(l);
        for (uint32_t k = 0; k < IMAGES; k++)
            order[k] = (order[k] + 1) % IMAGES;
        take(l, 4, CHUNK);
    }
    loader_destroy(l);
}
END_TEST

/* Before it is asked, while it gathers, and when it has. */
START_TEST(it_ends_at_any_moment)
{
    struct timespec nap = {0};

    for (int i = 0; i < part_of(200); i++) {
        struct loader *l = loader_of(1);

        if (i % 4)
            ask(l, 4, CHUNK);
        nap.tv_nsec = 20000L * (i % 40);
        if (i % 3)
            nanosleep(&nap, NULL);
        loader_destroy(l);
    }
    loader_destroy(NULL);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("trainer_loader");
    TCase *loader = suite_case(suite, "loader", 60);

    tcase_add_checked_fixture(loader, set_up, tear_down);
    tcase_add_loop_test(loader, images_come_in_the_order_they_are_taken, 0, 2);
    tcase_add_test(loader, other_images_than_those_asked_for_are_gathered);
    tcase_add_test(loader, what_was_dropped_is_read_no_more);
    tcase_add_test(loader, it_ends_at_any_moment);
    return suite;
}

int main(void) { return suite_run(make_suite()); }
