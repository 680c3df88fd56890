/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_orders.c - two communicators and several streams, over the fake CUDA driver
 * and its delays: calls in other orders on other ranks, where that is allowed; where it
 * is not, nobody waits for ever. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <stdlib.h>
#include <unistd.h>
#include <string.h>

enum { COUNT = 3000, LEN = COUNT * (int)sizeof(int32_t), ROUNDS = 30 };

/* Of a rank: two communicators, a stream and buffers for each. */
struct rank {
    struct device_rank r;
    struct coll_comm *comms[2];
    CUstream streams[2];
    int32_t *in[2], *out[2];
};

static int join(struct rank *k, struct world_rank *me)
{
    int32_t numbers[COUNT];

    if (device_join(&k->r, me))
        return 1;
    k->comms[0] = k->r.comm;
    k->streams[0] = k->r.stream;
    k->streams[1] = fake_stream();
    WORLD_CHECK(me, !coll_comm_dup(k->r.comm, &k->comms[1]));
    for (int c = 0; c < 2; c++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (c + 1) * (i + me->rank);
        k->in[c] = device_put(numbers, LEN);
        k->out[c] = device_put(numbers, LEN);
    }
    return 0;
}

static int sum(const struct rank *k, int c, CUstream stream)
{
    return coll_allreduce(k->in[c], k->out[c], COUNT, COLL_I32, COLL_SUM,
                          k->comms[c], stream);
}

static int is_sum(const struct rank *k, int c)
{
    int p = k->r.me->size, is_so = 1;
    int32_t *at = device_get(k->out[c], LEN);

    for (int i = 0; i < COUNT; i++)
        is_so &= at[i] == (c + 1) * (p * i + p * (p - 1) / 2);
    free(at);
    return is_so;
}

static int leave(struct rank *k)
{
    WORLD_CHECK(k->r.me, !coll_comm_destroy(k->comms[1]));
    return device_leave(&k->r);
}

/* Streams of their own: odd ranks call the second communicator first, and each waits
 * for one of the streams, or the other. */
static int cross(struct world_rank *me)
{
    int odd = me->rank % 2;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (int n = 0; n < ROUNDS; n++) {
        int first = (odd + n / 3) % 2;

        WORLD_CHECK(me, !sum(&k, first, k.streams[first]));
        WORLD_CHECK(me, !sum(&k, !first, k.streams[!first]));
        if (n % 4 == me->rank)
            OK(cu.StreamSynchronize(k.streams[n % 2]));
    }
    for (int c = 0; c < 2; c++) {
        OK(cu.StreamSynchronize(k.streams[c]));
        WORLD_CHECK(me, is_sum(&k, c));
    }
    return leave(&k);
}

/* _i: ranks, by processes that share three GPUs unevenly. */
START_TEST(communicators_of_their_own_streams_go_in_any_order)
{
    setenv("FAKE_CUDA_DEVICES", _i % 2 ? "3" : "1", 1);
    ck_assert_int_eq(device_fork(_i, cross, NULL), 0);
}
END_TEST

/* One communicator by turns on both streams, and from one to the next by an event of
 * the caller's, whose work lies between. */
static int hop(struct world_rank *me)
{
    CUevent event;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    OK(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int n = 0; n < ROUNDS; n++) {
        CUstream on = k.streams[(n + me->rank) % 2];
        CUstream next = k.streams[(n + me->rank + 1) % 2];

        WORLD_CHECK(me, !sum(&k, 0, on));
        WORLD_CHECK(me, !coll_allgather(k.in[1], k.out[1], 1, COLL_I32,
                                        k.comms[0], next));
        OK(cu.EventRecord(event, on));
        OK(cu.StreamWaitEvent(next, event, 0));
        OK(cu.MemcpyDtoDAsync((CUdeviceptr)k.out[1], (CUdeviceptr)k.out[0], LEN,
                              next));
    }
    OK(cu.StreamSynchronize(k.streams[0]));
    OK(cu.StreamSynchronize(k.streams[1]));
    WORLD_CHECK(me, is_sum(&k, 0));
    return leave(&k);
}

/* _i: ranks */
START_TEST(a_communicator_changes_streams_at_each_call)
{
    ck_assert_int_eq(device_fork(_i, hop, NULL), 0);
}
END_TEST

/* One stream for both, in opposite orders: that cannot end, and is told.  When one has
 * failed the other one may go on. */
static int block(struct world_rank *me)
{
    double until = gpu_now() + patient(20);
    int rc[2] = {COLL_OK, COLL_OK};
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (int c = 0; c < 2; c++)
        WORLD_CHECK(me, !sum(&k, me->rank % 2 ? !c : c, k.streams[0]));
    while (!rc[0] && !rc[1] && gpu_now() < until)
        for (int c = 0; c < 2; c++)
            rc[c] = coll_comm_async_error(k.comms[c]);
    WORLD_CHECK(me, rc[0] == COLL_ERR_TIMEOUT || rc[1] == COLL_ERR_TIMEOUT);
    OK(cu.StreamSynchronize(k.streams[0]));
    world_meet(me);
    coll_comm_destroy(k.comms[1]);
    coll_comm_destroy(k.comms[0]);
    return 0;
}

START_TEST(opposite_orders_in_one_stream_are_told)
{
    patient_timeout(1);
    ck_assert_int_eq(world_fork(2, block, NULL, patient(60)), 0);
}
END_TEST

/* Buffers of the host are pinned no more, and memory of the device is freed, while they
 * are on their way: the driver waits, so the results are there. */
static int let_go(struct world_rank *me)
{
    struct device_rank r;
    void *pages;

    WORLD_CHECK(me, !device_join(&r, me));
    pages = aligned_alloc(4096, 5 * 4096);
    WORLD_CHECK(me, pages);
    for (int n = 0; n < ROUNDS; n++) {
        int32_t *at = pages;

        for (int i = 0; i < COUNT; i++)
            at[i] = n + i;
        OK(cu.MemHostRegister(pages, (size_t)5 * 4096, 0));
        WORLD_CHECK(me, !coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM,
                                        r.comm, r.stream));
        OK(cu.MemHostUnregister(pages));
        OK(cu.StreamSynchronize(r.stream));
        for (int i = 0; i < COUNT; i++)
            WORLD_CHECK(me, at[i] == me->size * (n + i));
    }
    free(pages);
    return device_leave(&r);
}

/* _i: ranks, processes: each has a context of its own. */
START_TEST(buffers_are_let_go_while_they_are_on_their_way)
{
    ck_assert_int_eq(device_fork(_i, let_go, NULL), 0);
}
END_TEST

/* Rank 0 has destroyed one of its communicators, and captures into a graph by the other,
 * as the other rank comes to that end. */
static int capture_meanwhile(struct world_rank *me)
{
    CUgraph graph;
    struct rank k;

    WORLD_CHECK(me, !join(&k, me));
    for (int c = 0; c < 2; c++)
        WORLD_CHECK(me, !sum(&k, c, k.streams[c]));
    for (int c = 0; c < 2; c++)
        OK(cu.StreamSynchronize(k.streams[c]));
    world_meet(me);
    if (!me->rank) {
        WORLD_CHECK(me, !coll_comm_destroy(k.comms[0]));
        OK(cu.StreamBeginCapture(k.streams[1], CU_STREAM_CAPTURE_MODE_GLOBAL));
    }
    world_meet(me);
    if (me->rank)
        WORLD_CHECK(me, !coll_comm_destroy(k.comms[0]));
    world_meet(me);
    if (!me->rank) {
        usleep(50000); /* for what might be done behind its back */
        OK(cu.StreamEndCapture(k.streams[1], &graph));
    }
    WORLD_CHECK(me, !coll_comm_destroy(k.comms[1]));
    return 0;
}

START_TEST(who_ends_elsewhere_does_not_end_a_capture)
{
    ck_assert_int_eq(device_fork(2, capture_meanwhile, NULL), 0);
}
END_TEST

/* Sum up one group of calls on the legacy streams of two GPUs, each call while its own
 * is current. */
static int group_legacy(struct rank *k)
{
    int status = coll_group_start(), rc;

    for (int c = 0; c < 2 && !status; c++) {
        fake_device(c);
        status = sum(k, c, NULL);
    }
    fake_device(0);
    rc = coll_group_end();
    return status ? status : rc;
}

static int take_legacy(struct world_rank *me)
{
    int32_t numbers[COUNT];
    struct rank k = {.r = {.me = me}};

    fake_open();
    OK(cu.Init(0));
    for (int c = 0; c < 2; c++) {
        fake_device(c);
        if (c)
            WORLD_CHECK(me, !coll_comm_dup(k.comms[0], &k.comms[1]));
        else
            WORLD_CHECK(me, (k.comms[0] = world_join(me)) != NULL);
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (c + 1) * (i + me->rank);
        k.in[c] = device_put(numbers, LEN);
        k.out[c] = device_put(numbers, LEN);
    }
    for (int n = 0; n < 3; n++)
        WORLD_CHECK(me, !group_legacy(&k));
    for (int c = 0; c < 2; c++) {
        fake_device(c);
        OK(cu.StreamSynchronize(NULL));
        WORLD_CHECK(me, is_sum(&k, c));
    }
    WORLD_CHECK(me, !coll_comm_destroy(k.comms[1]));
    return coll_comm_destroy(k.comms[0]) != COLL_OK;
}

/* _i: COLL_CHECK */
START_TEST(a_group_takes_the_legacy_stream_that_was_current_at_each_call)
{
    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("COLL_CHECK", _i ? "1" : "0", 1);
    ck_assert_int_eq(device_fork(2, take_legacy, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_orders");
    TCase *tc = tcase_create("cuda_orders");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, communicators_of_their_own_streams_go_in_any_order,
                        1, 6);
    tcase_add_loop_test(tc, a_communicator_changes_streams_at_each_call, 2, 5);
    tcase_add_test(tc, opposite_orders_in_one_stream_are_told);
    tcase_add_loop_test(tc, buffers_are_let_go_while_they_are_on_their_way, 1,
                        4);
    tcase_add_test(tc, who_ends_elsewhere_does_not_end_a_capture);
    tcase_add_loop_test(
        tc, a_group_takes_the_legacy_stream_that_was_current_at_each_call, 0,
        2);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
