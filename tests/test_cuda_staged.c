/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_staged.c - operations on GPU buffers by way of the host, over the fake
 * CUDA driver: every collective against what the host's buffers give, in pieces and
 * whole; groups, requests, streams. */
#include "tests/staged_world.h"

#include <stdlib.h>
#include <string.h>

/* ---- every collective against the host's ------------------------------------ */

static const enum coll_op ops[] = {COLL_SUM, COLL_MIN, COLL_AVG, COLL_PROD};

/* One call: on the host, and on the device; equal bytes. */
static int compare(const struct staged_rank *r, struct staged_call *call)
{
    WORLD_CHECK(r->me, !staged_fill(r, call));
    WORLD_CHECK(r->me, !staged_do(&call->host, r->comm));
    WORLD_CHECK(r->me, !staged_do(&call->device, r->comm));
    OK(cu.StreamSynchronize(call->device.stream));
    WORLD_CHECK(r->me, staged_same(call));
    staged_free(r, call);
    return 0;
}

static int all_of_a_count(const struct staged_rank *r, size_t count,
                          int in_place)
{
    for (int c = 0; c < COLL_SEND; c++) {
        struct staged_call call = {.count = count, .in_place = in_place};

        call.host.collective = (enum coll_collective)c;
        call.host.type = (enum coll_type)((size_t)(c + 5) % COLL_N_TYPES);
        call.host.op = ops[(count + (size_t)c) % 4];
        call.host.root = (int)(count % (size_t)r->me->size);
        if (compare(r, &call))
            return 1;
    }
    return 0;
}

static int every_collective(struct world_rank *me)
{
    static const size_t counts[] = {0, 1, 37, 3000};
    struct staged_rank r;

    WORLD_CHECK(me, !staged_join(&r, me));
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        for (int in_place = 0; in_place < 2; in_place++)
            if (all_of_a_count(&r, counts[i], in_place))
                return 1;
    return staged_leave(&r);
}

/* _i: ranks */
START_TEST(every_collective_gives_what_the_host_gives)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, every_collective, NULL, patient(60)), 0);
}
END_TEST

/* 64 KiB are two slots of 32, so that most of them take many pieces. */
START_TEST(what_exceeds_the_stage_goes_in_pieces)
{
    setenv("COLL_CUDA_STAGE", "16K", 1);
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, every_collective, NULL, patient(60)), 0);
}
END_TEST

START_TEST(ranks_may_be_threads_and_share_devices)
{
    setenv("FAKE_CUDA_DEVICES", _i % 2 ? "2" : "4", 1);
    setenv("COLL_CUDA_STAGE", "32K", 1);
    patient_timeout(30);
    ck_assert_int_eq(world_threads(_i, every_collective, NULL, patient(60)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_staged");
    TCase *tc = tcase_create("cuda_staged");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_collective_gives_what_the_host_gives, 1, 5);
    tcase_add_loop_test(tc, what_exceeds_the_stage_goes_in_pieces, 1, 5);
    tcase_add_loop_test(tc, ranks_may_be_threads_and_share_devices, 2, 4);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
