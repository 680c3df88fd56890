/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_shown.c - registered GPU buffers where an operation is one kernel, over the
 * fake CUDA driver: long ones move fewer bytes, short ones go by slots, and memory that
 * is registered elsewhere is found there. */
#include "tests/stream/registered.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 3000, LONG = 70000, AT = 256 };

/* Each rank has a GPU, and all that it calls is one kernel. */
static void set_scene(int size, int count)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", size);
    setenv("FAKE_CUDA_DEVICES", text, 1);
    setenv("FAKE_CUDA_DELAY", "10", 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, 1 << 30);
    registered_count = count;
    patient_timeout(60);
}

/* The first round of each kind takes its steps to the device, which counts. */
static int use(struct world_rank *me)
{
    struct registered *k = registered_new();
    int is_short = registered_count == SHORT;
    uint64_t part = (uint64_t)registered_count * sizeof(int32_t),
             p = (uint64_t)me->size;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    for (int i = 0; i < 3 * REGISTERED_KINDS; i++) {
        enum coll_collective c = registered_kinds[i % REGISTERED_KINDS];
        uint64_t moved, less;

        WORLD_CHECK(me, !registered_call(k, c, k->in_2, k->out_2, i, &moved));
        WORLD_CHECK(me,
                    !registered_call(k, c, k->in + AT, k->out + AT, i, &less));
        if (i < REGISTERED_KINDS)
            continue;
        if (is_short)
            WORLD_CHECK(me, less == moved);
        else if (c == COLL_ALLTOALL)
            WORLD_CHECK(me, less == p * part && moved == less + (p - 1) * part);
        else if (c == COLL_BROADCAST)
            WORLD_CHECK(me, less == part);
        else
            WORLD_CHECK(me, less < moved);
    }
    WORLD_CHECK(me, !registered_dismiss(k) && !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(long_kernels_read_in_place)
{
    set_scene(_i, LONG);
    ck_assert_int_eq(world_fork(_i, use, NULL, patient(60)), 0);
}
END_TEST

START_TEST(short_kernels_do_not)
{
    set_scene(2, SHORT);
    ck_assert_int_eq(world_fork(2, use, NULL, patient(60)), 0);
}
END_TEST

/* The same shape of call, of memory that is registered anew in between, somewhere else
 * on each rank: a kernel that was made for the old place is not taken for the new. */
static int move(struct world_rank *me)
{
    struct registered *k = registered_new();
    uint64_t moved;
    char *was;

    WORLD_CHECK(me, k && !registered_join(k, me));
    for (int round = 0; round < 4; round++) {
        WORLD_CHECK(me, !registered_enroll(k));
        for (int i = 0; i < REGISTERED_KINDS; i++)
            WORLD_CHECK(me, !registered_call(
                                k, registered_kinds[i], k->in + AT * (i % 2),
                                k->out + AT * (round % 2), i, &moved));
        WORLD_CHECK(me, !registered_dismiss(k));
        was = k->in;
        if ((me->rank + round) % 2) {
            k->in = k->in_2;
            k->in_2 = was;
        } else {
            k->in = k->out;
            k->out = was;
        }
    }
    WORLD_CHECK(me, !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(memory_may_be_registered_elsewhere)
{
    set_scene(_i, LONG);
    ck_assert_int_eq(world_fork(_i, move, NULL, patient(60)), 0);
}
END_TEST

/* In place, and in a graph that is launched again and again. */
static int replay(struct world_rank *me)
{
    struct registered *k = registered_new();
    struct coll_args sum, gather;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    sum = registered_args(k, COLL_ALLREDUCE, LONG, k->in, k->in);
    gather = registered_args(k, COLL_ALLTOALL, LONG, k->in, k->out);
    WORLD_CHECK(me, !device_do(&gather, k->r.comm));
    WORLD_CHECK(me, !device_do(&sum, k->r.comm));
    OK(cu.StreamSynchronize(k->r.stream));
    WORLD_CHECK(me, !registered_replay(k, 10));
    WORLD_CHECK(me, !registered_dismiss(k) && !registered_leave(k));
    free(k);
    return 0;
}

START_TEST(graphs_have_them)
{
    set_scene(3, LONG);
    ck_assert_int_eq(world_fork(3, replay, NULL, patient(60)), 0);
}
END_TEST

START_TEST(kernels_end_when_a_rank_fails)
{
    set_scene(3, LONG);
    ck_assert_int_eq(
        world_fork(3, registered_fall_out, _i ? "" : NULL, patient(60)), _i);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_shown");
    TCase *tc = tcase_create("cuda_shown");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, long_kernels_read_in_place, 2, 5);
    tcase_add_test(tc, short_kernels_do_not);
    tcase_add_loop_test(tc, memory_may_be_registered_elsewhere, 2, 4);
    tcase_add_test(tc, graphs_have_them);
    tcase_add_loop_test(tc, kernels_end_when_a_rank_fails, 0, 2);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
