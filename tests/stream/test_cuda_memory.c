/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_memory.c - what communicators hold of GPU memory and of pinned memory,
 * over the fake CUDA driver: as much as they say, and no more than they promise. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST = 8 << 20, SLOT = 1 << 18, SLOTS = 2 };
enum { UNIT = 2 << 20 }; /* in which the driver takes memory */

static size_t free_memory(void)
{
    size_t left = 0, all;

    OK(cu.MemGetInfo(&left, &all));
    return left;
}

/* Of every kind, thrice where it may take long. */
static int work(const struct device_rank *r, char *in, char *out, size_t len)
{
    size_t p = (size_t)r->me->size, n = len / 4 / p;
    struct coll_comm *comm = r->comm;
    int rc = 0;

    for (int i = 0; i < part_of(3); i++) {
        rc |=
            coll_allreduce(in, out, n * p, COLL_F32, COLL_SUM, comm, r->stream);
        rc |= coll_allgather(in, out, n, COLL_F32, comm, r->stream);
        rc |= coll_reduce_scatter(in, out, n, COLL_F32, COLL_MAX, comm,
                                  r->stream);
        rc |= coll_alltoall(in, out, n, COLL_F32, comm, r->stream);
        rc |= coll_broadcast(in, in, n * p, COLL_F32, 0, comm, r->stream);
        rc |=
            coll_reduce(in, out, n * p, COLL_F32, COLL_SUM, 0, comm, r->stream);
        rc |= coll_barrier(comm, r->stream);
    }
    OK(cu.StreamSynchronize(r->stream));
    return rc;
}

static int hold(struct world_rank *me)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    size_t others = (size_t)(me->size - 1), slots = 2 * others * SLOT * SLOTS;
    size_t had, used;
    struct device_rank r;
    char *in, *out;

    WORLD_CHECK(me, !device_join(&r, me));
    in = (char *)fake_memory(MOST);
    out = (char *)fake_memory(MOST);
    WORLD_CHECK(me, !coll_comm_mem_stats(r.comm, &stats));
    WORLD_CHECK(me, stats.device == slots && stats.mapped == others * slots);
    WORLD_CHECK(me, !stats.pinned);
    world_meet(me);
    had = free_memory();
    world_meet(me);
    WORLD_CHECK(me, !work(&r, in, out, 1000) && !work(&r, in, out, MOST));
    WORLD_CHECK(me, !coll_comm_mem_stats(r.comm, &stats));
    world_meet(me);
    used = had - free_memory();
    WORLD_CHECK(me, used + UNIT >= stats.device - slots);
    WORLD_CHECK(me, used <= stats.device - slots + 2 * UNIT);
    WORLD_CHECK(me, me->size > 1 || (!stats.device && !stats.mapped));
    WORLD_CHECK(me, stats.device <= slots + 4 * MOST);
    WORLD_CHECK(me, stats.mapped == others * slots);
    WORLD_CHECK(me, !stats.pinned);
    WORLD_CHECK(me, stats.plans > 0 && stats.plans < 10 << 20);
    world_meet(me);
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(a_communicator_holds_what_it_says)
{
    ck_assert_int_eq(device_fork(_i, hold, NULL), 0);
}
END_TEST

/* As it is without the environment's word. */
static int hold_by_default(struct world_rank *me)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct device_rank r;

    WORLD_CHECK(me, !device_join(&r, me));
    WORLD_CHECK(me, !coll_comm_mem_stats(r.comm, &stats));
    WORLD_CHECK(me, stats.device <= (size_t)64 << 20);
    WORLD_CHECK(me, (stats.device > 0) == (me->size > 1));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(slots_take_no_more_than_64_mib)
{
    coll__limit_assume(LIMIT_CUDA_SLOT, 0);
    ck_assert_int_eq(device_fork(_i, hold_by_default, NULL), 0);
}
END_TEST

static size_t on_device(const struct device_rank *r)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};

    return coll_comm_mem_stats(r->comm, &stats) ? 0 : stats.device;
}

/* Broadcasts need no scratch: what comes are steps, 4 KiB of them for each shape that
 * has few; the 128 used last stay. */
static int hold_steps(struct world_rank *me)
{
    size_t before, steps;
    struct device_rank r;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(MOST);
    before = on_device(&r);
    for (size_t n = 1; n <= 200; n++) {
        for (int twice = 0; twice < 2; twice++)
            WORLD_CHECK(
                me, !coll_broadcast(at, at, n, COLL_I8, 0, r.comm, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        steps = on_device(&r) - before;
        WORLD_CHECK(me, steps >= 4096 * (n < 128 ? n : 128));
        WORLD_CHECK(me, steps <= 4096 * (n < 129 ? n : 129));
    }
    before = on_device(&r);
    WORLD_CHECK(me, !coll_broadcast(at, at, (size_t)1 << 20, COLL_I8, 0, r.comm,
                                    r.stream));
    OK(cu.StreamSynchronize(r.stream));
    steps = on_device(&r) - before + 4096; /* another one has gone */
    WORLD_CHECK(me, steps >= 64 * 68 && !(steps & (steps - 1)));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(steps_on_the_gpu_are_counted)
{
    setenv("COLL_CUDA_ENGINE", "kernel", 1);
    coll__limit_assume(LIMIT_CUDA_SLOT, 16 << 10);
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    ck_assert_int_eq(device_fork(_i, hold_steps, NULL), 0);
}
END_TEST

/* What the host carries goes through slots in pinned memory, two each way. */
static int hold_pinned(struct world_rank *me)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct device_rank r;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(MOST);
    WORLD_CHECK(me, !work(&r, at, (char *)fake_memory(MOST), MOST));
    WORLD_CHECK(me, !coll_comm_mem_stats(r.comm, &stats));
    WORLD_CHECK(me, !stats.mapped && stats.pinned);
    WORLD_CHECK(me, stats.pinned % (4096 + 2 * (256 << 10)) == 0);
    WORLD_CHECK(me, stats.pinned <= 4 * (4096 + 2 * (256 << 10)));
    return device_leave(&r);
}

START_TEST(what_the_host_carries_takes_pinned_memory)
{
    setenv("FAKE_CUDA_IPC", "0", 1);
    ck_assert_int_eq(device_fork(3, hold_pinned, NULL), 0);
}
END_TEST

/* ---- shapes ---------------------------------------------------------------------- */

/* Call number i, of a shape that no other call has. */
static int call_once(const struct device_rank *r, char *at, int i)
{
    size_t n = (size_t)(1 + i * 7919 % 5000), p = (size_t)r->me->size;

    switch (i % 4) {
    case 0:
        return coll_allreduce(at, at, n, COLL_F32, COLL_SUM, r->comm,
                              r->stream);
    case 1:
        return coll_broadcast(at, at, n, COLL_I8, i % (int)p, r->comm,
                              r->stream);
    case 2:
        return coll_reduce_scatter(at, at + MOST / 2, n, COLL_U16, COLL_MAX,
                                   r->comm, r->stream);
    default:
        return coll_alltoall(at, at + MOST / 2, n, COLL_I64, r->comm,
                             r->stream);
    }
}

/* What the communicator says that it has, and what the process has taken of the heap. */
static size_t held_by(const struct device_rank *r)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};

    ck_assert_int_eq(coll_comm_mem_stats(r->comm, &stats), COLL_OK);
    return stats.device + stats.pinned + stats.plans + mallinfo2().uordblks;
}

/* The least of some looks in a row: programs differ in their sizes. */
static int change_shapes(struct world_rank *me)
{
    int n = part_of(getenv("TEST_LONG") ? 10000 : 2000);
    size_t least[2] = {SIZE_MAX, SIZE_MAX};
    struct device_rank r;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    at = (char *)fake_memory(MOST);
    for (int i = 0; i < n; i++) {
        int half = i / (n / 2);

        WORLD_CHECK(me, !call_once(&r, at, i));
        if (i % 50)
            continue;
        OK(cu.StreamSynchronize(r.stream));
        if (i % (n / 2) >= n / 4 && half < 2)
            least[half] = least[half] < held_by(&r) ? least[half] : held_by(&r);
    }
    WORLD_CHECK(me, least[1] < least[0] + least[0] / 20);
    return device_leave(&r);
}

/* _i: how the GPUs of the ranks reach each other */
START_TEST(memory_does_not_grow_with_shapes)
{
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("FAKE_CUDA_DELAY", "0", 1);
    setenv("FAKE_CUDA_IPC", _i ? "1" : "0", 1);
    setenv("COLL_CUDA_ENGINE", _i == 2 ? "kernel" : "stream", 1);
    patient_timeout(60);
    ck_assert_int_eq(world_fork(3, change_shapes, NULL, patient(300)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_memory");
    TCase *tc = tcase_create("cuda_memory");

    coll__limit_assume(LIMIT_CUDA_SLOT, 256 << 10);
    coll__limit_assume(LIMIT_CUDA_SLOTS, 2);
    tcase_set_timeout(tc, 400);
    tcase_add_loop_test(tc, a_communicator_holds_what_it_says, 1,
                        getenv("TEST_QUICK") ? 5 : 6);
    tcase_add_loop_test(tc, slots_take_no_more_than_64_mib, 1,
                        getenv("TEST_QUICK") ? 5 : 9);
    tcase_add_loop_test(tc, steps_on_the_gpu_are_counted, 2,
                        getenv("TEST_QUICK") ? 3 : 5);
    tcase_add_test(tc, what_the_host_carries_takes_pinned_memory);
    tcase_add_loop_test(tc, memory_does_not_grow_with_shapes, 0, 3);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
