/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_plain.c - operations on GPU buffers where there are no kernels, over the fake
 * CUDA driver: the host carries all messages and does all steps but copies.  Every
 * collective against what the host's buffers give, in pieces and whole; groups, requests,
 * streams. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/device/cuda_kernels.h"
#include "lib/util/limit.h"
#include "lib/type/signature.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- every collective against the host's ------------------------------------ */

static const enum coll_op ops[] = {COLL_SUM, COLL_MIN, COLL_AVG, COLL_PROD};

/* One call: on the host, and on the device; equal bytes. */
static int compare(const struct device_rank *r, struct device_call *call)
{
    WORLD_CHECK(r->me, !device_fill(r, call));
    WORLD_CHECK(r->me, !device_do(&call->host, r->comm));
    WORLD_CHECK(r->me, !device_do(&call->device, r->comm));
    OK(cu.StreamSynchronize(call->device.stream));
    WORLD_CHECK(r->me, device_same(call));
    device_free(r, call);
    return 0;
}

static int all_of_a_count(const struct device_rank *r, size_t count,
                          int in_place)
{
    for (int c = 0; c < COLL__N_OF_ALL; c++) {
        struct device_call call = {.count = count, .in_place = in_place};

        call.host.collective = coll__of_all(c);
        call.host.type = (enum coll_type)((size_t)(c + 5) % COLL_N_TYPES);
        call.host.op = ops[(count + (size_t)c) % 4];
        device_fit_op(&call.host);
        call.host.root = (int)(count % (size_t)r->me->size);
        if (compare(r, &call))
            return 1;
    }
    return 0;
}

static int every_collective(struct world_rank *me)
{
    static const size_t counts[] = {0, 1, 37, 3000};
    struct device_rank r;

    WORLD_CHECK(me, !device_join(&r, me));
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        for (int in_place = 0; in_place < 2; in_place++)
            if (all_of_a_count(&r, counts[i], in_place))
                return 1;
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(every_collective_gives_what_the_host_gives)
{
    ck_assert_msg(!coll__cuda_image[0], "there are kernels");
    ck_assert_int_eq(device_fork(_i, every_collective, NULL), 0);
}
END_TEST

/* Slots of 8 KiB: most of them take many pieces. */
START_TEST(what_exceeds_a_slot_goes_in_pieces)
{
    coll__limit_assume(LIMIT_CUDA_SLOT, 8 << 10);
    ck_assert_int_eq(device_fork(_i, every_collective, NULL), 0);
}
END_TEST

START_TEST(ranks_may_be_threads_and_share_devices)
{
    setenv("FAKE_CUDA_DEVICES", _i % 2 ? "2" : "4", 1);
    coll__limit_assume(LIMIT_CUDA_SLOT, 16 << 10);
    ck_assert_int_eq(device_threads(_i, every_collective, NULL), 0);
}
END_TEST

/* ---- messages, groups, requests, streams ------------------------------------ */

/* A vector of this rank's, on the device: COUNT numbers from `first` on. */
enum { COUNT = 5000 };

static int32_t *numbers_from(int first) { return device_numbers(first, COUNT); }

static int holds(const int32_t *device, int first, int step)
{
    return device_holds(device, first, step, COUNT);
}

/* Each to each, itself as well, and a sum in the same group. */
static int all_to_all(struct world_rank *me)
{
    int32_t *from[8], *to[8], *sum;
    struct device_rank r;
    int p = me->size;

    WORLD_CHECK(me, !device_join(&r, me));
    for (int q = 0; q < p; q++) {
        from[q] = numbers_from(100 * me->rank + q);
        to[q] = numbers_from(0);
    }
    sum = numbers_from(me->rank);
    for (int n = 0; n < 3; n++) {
        WORLD_CHECK(me, !coll_group_start());
        for (int q = 0; q < p; q++) {
            WORLD_CHECK(
                me, !coll_send(from[q], COUNT, COLL_I32, q, r.comm, r.stream));
            WORLD_CHECK(
                me, !coll_recv(to[q], COUNT, COLL_I32, q, r.comm, r.stream));
        }
        if (!n)
            WORLD_CHECK(me, !coll_allreduce(sum, sum, COUNT, COLL_I32, COLL_SUM,
                                            r.comm, r.stream));
        WORLD_CHECK(me, !coll_group_end());
    }
    OK(cu.StreamSynchronize(r.stream));
    for (int q = 0; q < p; q++)
        WORLD_CHECK(me, holds(to[q], 100 * q + me->rank, 1));
    WORLD_CHECK(me, holds(sum, p * (p - 1) / 2, p));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(a_group_exchanges_messages_side_by_side)
{
    coll__limit_assume(LIMIT_CUDA_SLOT, _i % 2 ? 4 << 10 : 1 << 20);
    ck_assert_int_eq(device_fork(_i, all_to_all, NULL), 0);
}
END_TEST

/* A message from rank to rank, and back by requests that are started again. */
static int ping_pong(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .type = COLL_I32};
    struct coll_request *request;
    struct device_rank r;
    int32_t *at;
    int rc;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(me->rank);
    args.collective = me->rank ? COLL_SEND : COLL_RECV;
    args.root = !me->rank;
    args.count = COUNT;
    args.stream = r.stream;
    args.in = me->rank ? at : NULL;
    args.out = me->rank ? NULL : at;
    WORLD_CHECK(me, !coll_request_create(&args, r.comm, &request));
    for (int i = 0; i < 5; i++) {
        WORLD_CHECK(me, !coll_start(request));
        if (i % 2)
            WORLD_CHECK(me, !coll_wait(request, 0));
        else
            while ((rc = coll_test(request)))
                WORLD_CHECK(me, rc == COLL_IN_PROGRESS);
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, holds(at, 1, 1));
    return device_leave(&r);
}

START_TEST(requests_are_started_on_streams_again_and_again)
{
    ck_assert_int_eq(device_fork(2, ping_pong, NULL), 0);
}
END_TEST

/* Ahead of a stream that stands still: calls return, a request has not ended, and
 * what is the host's goes on; and calls by turns of two streams keep their order. */
static int standing_still(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .type = COLL_I32};
    struct coll_request *request;
    _Atomic uint32_t *gate;
    struct device_rank r;
    CUstream other;
    int32_t *at;
    int p = me->size, n = 1;

    WORLD_CHECK(me, !device_join(&r, me));
    gate = fake_words(1);
    other = fake_stream();
    at = numbers_from(0);
    fake_hold(r.stream, gate);
    for (int i = 0; i < 6; i++, n *= p)
        WORLD_CHECK(me, !coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM,
                                        r.comm, i % 2 ? other : r.stream));
    args.collective = COLL_BARRIER;
    args.stream = other;
    args.any_order = 1;
    EXPECT(me, coll_request_create(&args, r.comm, &request), COLL_ERR_INVALID,
           "only an operation on host buffers has any_order");
    args.any_order = 0;
    WORLD_CHECK(me, !coll_request_create(&args, r.comm, &request));
    WORLD_CHECK(me, !coll_start(request));
    WORLD_CHECK(me, world_sum(r.comm, 50) == COLL_OK);
    WORLD_CHECK(me, coll_test(request) == COLL_IN_PROGRESS);
    EXPECT(me, coll_start(request), COLL_ERR_INVALID, "already runs");
    EXPECT(me, coll_request_destroy(request), COLL_ERR_INVALID, "still runs");
    atomic_store(gate, 1);
    WORLD_CHECK(me, coll_wait(request, 0) == COLL_OK);
    OK(cu.StreamSynchronize(r.stream));
    OK(cu.StreamSynchronize(other));
    WORLD_CHECK(me, holds(at, 0, n));
    WORLD_CHECK(me, !coll_request_destroy(request));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(a_call_waits_for_nothing_and_streams_keep_its_order)
{
    coll__limit_assume(LIMIT_CUDA_SLOT, 8 << 10);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", _i % 2 ? "1" : "8", 1);
    ck_assert_int_eq(device_fork(_i, standing_still, NULL), 0);
}
END_TEST

/* Of the host, with the number in its series that one on the device had: each sends its
 * own bytes, which shared memory holds once for all receivers. */
static int of_both(struct world_rank *me)
{
    int32_t mine[COUNT], all[COUNT], *at;
    _Atomic uint32_t *gate;
    struct device_rank r;
    int p = me->size;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(me->rank);
    gate = fake_words(1);
    for (int n = 0; n < 2; n++) {
        OK(cu.StreamSynchronize(r.stream));
        if (n) /* under way, and not begun */
            fake_hold(r.stream, gate);
        WORLD_CHECK(me, !coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM,
                                        r.comm, r.stream));
    }
    for (int i = 0; i < COUNT; i++)
        mine[i] = 7 * i + me->rank;
    WORLD_CHECK(me, !coll_allreduce(mine, all, COUNT, COLL_I32, COLL_SUM,
                                    r.comm, NULL));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me, all[i] == p * 7 * i + p * (p - 1) / 2);
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(r.stream));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(host_and_device_send_their_own_bytes)
{
    setenv("COLL_ALGO", "direct", 1);
    ck_assert_int_eq(device_fork(_i, of_both, NULL), 0);
}
END_TEST

/* More than the driver takes at once, and nobody there to take it from the stream
 * but the library's own thread. */
static int far_ahead(struct world_rank *me)
{
    struct device_rank r;
    int32_t *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(0);
    for (int i = 0; i < 500; i++)
        WORLD_CHECK(me, !coll_allreduce(at, at, 1 + (size_t)i % 2, COLL_I32,
                                        COLL_MAX, r.comm, r.stream));
    WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_OK);
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, holds(at, 0, 1));
    return 0;
}

START_TEST(a_communicator_ends_when_its_streams_have_come_to_all)
{
    ck_assert_int_eq(device_fork(3, far_ahead, NULL), 0);
}
END_TEST

/* From pinned memory to the device's and back, with an operation of one's own that
 * is ended before the stream has come to it; the legacy stream. */
static void keep_last(const void *left, const void *right, void *out,
                      size_t count, enum coll_type type, void *arg)
{
    (void)left, (void)arg;
    memmove(out, right, count * coll_type_size(type));
}

static int other_kinds(struct world_rank *me)
{
    struct device_rank r;
    int32_t *at, *pinned, *third;
    int32_t three = 3;
    enum coll_op last, triple;
    int p = me->size;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(0);
    third = numbers_from(1);
    pinned = (int32_t *)fake_words(COUNT);
    for (int i = 0; i < COUNT; i++)
        pinned[i] = 10 * me->rank + i;
    WORLD_CHECK(me, !coll_op_create_user(keep_last, NULL, 0, &last));
    WORLD_CHECK(me, !coll_op_create_premul(&three, COLL_I32, &triple));
    WORLD_CHECK(
        me, !coll_allreduce(pinned, at, COUNT, COLL_I32, last, r.comm, NULL));
    WORLD_CHECK(me, !coll_allreduce(third, third, COUNT, COLL_I32, triple,
                                    r.comm, NULL));
    WORLD_CHECK(me, !coll_op_destroy(last));
    WORLD_CHECK(me, !coll_op_destroy(triple));
    WORLD_CHECK(me, !coll_broadcast(at, pinned, COUNT, COLL_I32, p - 1, r.comm,
                                    CU_STREAM_LEGACY));
    OK(cu.StreamSynchronize(NULL));
    for (int i = 0; i < COUNT; i++)
        WORLD_CHECK(me, pinned[i] == 10 * (p - 1) + i);
    WORLD_CHECK(me, holds(at, 10 * (p - 1), 1));
    WORLD_CHECK(me, p == 1 || holds(third, 3 * p, 3 * p));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(pinned_memory_goes_where_device_memory_does)
{
    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    ck_assert_int_eq(device_fork(_i, other_kinds, NULL), 0);
}
END_TEST

/* Registered memory is nothing to it; and a graph that outlives the communicator passes. */
static int end_early(struct world_rank *me)
{
    struct device_rank r;
    CUgraphExec exec;
    CUgraph graph;
    int32_t *at, *pinned;
    void *buf;

    WORLD_CHECK(me, !device_join(&r, me));
    at = numbers_from(1);
    pinned = (int32_t *)fake_words(COUNT);
    WORLD_CHECK(me, !coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM, r.comm,
                                    r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, !coll_mem_alloc_device(&buf, 4 * COUNT, -1));
    WORLD_CHECK(me, !coll_mem_register(r.comm, buf, 4 * COUNT));
    WORLD_CHECK(me, !coll_mem_deregister(r.comm, buf));
    WORLD_CHECK(me, !coll_mem_free(buf));
    OK(cu.StreamBeginCapture(r.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORLD_CHECK(me, !coll_allreduce(pinned, pinned + COUNT / 2, COUNT / 2,
                                    COLL_I32, COLL_SUM, r.comm, r.stream));
    OK(cu.StreamEndCapture(r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, coll_comm_destroy(r.comm) == COLL_OK);
    OK(cu.GraphLaunch(exec, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    OK(cu.GraphExecDestroy(exec));
    OK(cu.GraphDestroy(graph));
    return 0;
}

/* _i: ranks */
START_TEST(what_ends_early_harms_nothing)
{
    ck_assert_int_eq(device_fork(_i, end_early, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_plain");
    TCase *tc = tcase_create("cuda_plain");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_collective_gives_what_the_host_gives, 1, 5);
    tcase_add_loop_test(tc, what_exceeds_a_slot_goes_in_pieces, 1, 5);
    tcase_add_loop_test(tc, ranks_may_be_threads_and_share_devices, 2, 4);
    tcase_add_loop_test(tc, a_group_exchanges_messages_side_by_side, 1, 6);
    tcase_add_test(tc, requests_are_started_on_streams_again_and_again);
    tcase_add_loop_test(tc, a_call_waits_for_nothing_and_streams_keep_its_order,
                        1, 4);
    tcase_add_loop_test(tc, host_and_device_send_their_own_bytes, 2, 5);
    tcase_add_test(tc, a_communicator_ends_when_its_streams_have_come_to_all);
    tcase_add_loop_test(tc, what_ends_early_harms_nothing, 1, 4);
    tcase_add_loop_test(tc, pinned_memory_goes_where_device_memory_does, 1, 4);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
