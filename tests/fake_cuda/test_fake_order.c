/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_order.c - the fake CUDA driver's streams and errors: what waits for what,
 * and that nothing else does; faults on demand, and those that stay. */
#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- order --------------------------------------------------------------- */

START_TEST(what_is_enqueued_happens_late_and_in_order)
{
    _Atomic uint32_t *gate, *words;
    CUdeviceptr dev;
    CUstream s;

    fake_start();
    s = fake_stream();
    gate = fake_words(1);
    words = fake_words(1024);
    dev = fake_memory(4096);
    for (uint32_t i = 0; i < 1024; i++)
        atomic_store(words + i, 1);
    fake_hold(s, gate);
    OK(cu.MemcpyHtoDAsync(dev, (void *)words, 4096, s));
    OK(cu.MemsetD32Async(dev, 7, 512, s));
    OK(cu.MemcpyDtoHAsync((void *)words, dev, 4096, s));
    ck_assert(fake_stays(words, 1));
    IS(NOT_READY, cu.StreamQuery(s));
    for (uint32_t i = 0; i < 1024; i++)
        atomic_store(words + i, 2); /* read when its turn comes */
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(s));
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert_uint_eq(atomic_load(words + i), i < 512 ? 7 : 2);
}
END_TEST

/* Two streams write one word, 200 times: how often was b's the last write? */
static int b_was_last(int is_ordered)
{
    CUstream a = fake_stream(), b = fake_stream();
    _Atomic uint32_t *word = fake_words(2);
    CUevent e = fake_event();
    int n = 0;

    for (int i = 0; i < 200; i++) {
        atomic_store(word + 1, 0);
        fake_hold(a, word + 1);
        OK(cu.StreamWriteValue32(a, AT(word), 1, 0));
        OK(cu.EventRecord(e, a));
        if (is_ordered)
            OK(cu.StreamWaitEvent(b, e, 0));
        else
            fake_hold(b, word + 1);
        OK(cu.StreamWriteValue32(b, AT(word), 2, 0));
        atomic_store(word + 1, 1);
        OK(cu.StreamSynchronize(a));
        OK(cu.StreamSynchronize(b));
        n += atomic_load(word) == 2;
    }
    return n;
}

START_TEST(only_an_event_orders_two_streams)
{
    int n;

    fake_start();
    ck_assert_int_eq(b_was_last(1), 200);
    n = b_was_last(0);
    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, 200);
}
END_TEST

START_TEST(blocking_streams_and_the_legacy_one_wait_for_each_other)
{
    _Atomic uint32_t *gate, *words;
    CUstream blocking;

    fake_start();
    gate = fake_words(1);
    words = fake_words(3);
    OK(cu.StreamCreate(&blocking, CU_STREAM_DEFAULT));
    fake_hold(blocking, gate);
    OK(cu.StreamWriteValue32(NULL, AT(words), 1, 0));
    OK(cu.StreamWriteValue32(CU_STREAM_PER_THREAD, AT(words + 1), 1, 0));
    OK(cu.StreamWriteValue32(fake_stream(), AT(words + 2), 1, 0));
    ck_assert(fake_becomes(words + 2, 1));
    ck_assert(fake_stays(words, 0));
    ck_assert(fake_stays(words + 1, 0)); /* behind the legacy one */
    IS(NOT_READY, cu.StreamQuery(NULL));
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(NULL));
    ck_assert(fake_becomes(words + 1, 1));
}
END_TEST

/* _i: CUDA_DEVICE_MAX_CONNECTIONS. */
START_TEST(a_stream_that_waits_holds_those_of_its_connection)
{
    CUstream streams[9] = {NULL};
    _Atomic uint32_t *words;
    char text[8];

    snprintf(text, sizeof(text), "%d", _i);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", text, 1);
    fake_start();
    words = fake_words(10);
    for (int i = 0; i <= _i; i++)
        streams[i] = fake_stream();
    fake_hold(streams[0], words + 9);
    for (int i = 1; i <= _i; i++)
        OK(cu.StreamWriteValue32(streams[i], AT(words + i), 1, 0));
    for (int i = 1; i < _i; i++)
        ck_assert(fake_becomes(words + i, 1));
    ck_assert(fake_stays(words + _i, 0));
    atomic_store(words + 9, 1);
    ck_assert(fake_becomes(words + _i, 1));
}
END_TEST

static atomic_int n_put;
static CUstream full;

static void *put_many(void *arg)
{
    CUdeviceptr at = AT(arg);

    for (int i = 0; i < 1100; i++) {
        OK(cu.StreamWriteValue32(full, at, 1, 0));
        atomic_fetch_add(&n_put, 1);
    }
    return NULL;
}

START_TEST(a_caller_waits_when_a_queue_is_full)
{
    _Atomic uint32_t *words;
    pthread_t thread;

    fake_start();
    full = fake_stream();
    words = fake_words(2);
    fake_hold(full, words);
    ck_assert(!pthread_create(&thread, NULL, put_many, (void *)(words + 1)));
    while (atomic_load(&n_put) < 1020)
        usleep(1000);
    for (int i = 0; i < 20; i++, usleep(1000))
        ck_assert_int_eq(atomic_load(&n_put), 1020);
    atomic_store(words, 1);
    ck_assert(!pthread_join(thread, NULL));
    OK(cu.StreamSynchronize(full));
}
END_TEST

/* ---- errors -------------------------------------------------------------- */

START_TEST(faults_come_when_they_are_asked_for)
{
    CUdeviceptr at;
    CUstream s;

    setenv("FAKE_CUDA_FAULT", "cuMemAlloc:2:2,cuStreamCreate:2+:801", 1);
    fake_start();
    OK(cu.MemAlloc(&at, 64));
    IS(OUT_OF_MEMORY, cu.MemAlloc(&at, 64));
    OK(cu.MemAlloc(&at, 64));
    OK(cu.StreamCreate(&s, 0));
    IS(NOT_SUPPORTED, cu.StreamCreate(&s, 0));
    IS(NOT_SUPPORTED, cu.StreamCreate(&s, 0));
    OK(cu.CtxSynchronize());
}
END_TEST

/* Whatever waits ends, nothing is done any more, every call says so. */
static void all_is_lost(CUstream s, int code)
{
    _Atomic uint32_t *word = NULL;
    CUdeviceptr at;
    CUcontext ctx;

    ck_assert_int_eq((int)cu.StreamSynchronize(s), code);
    ck_assert_int_eq((int)cu.CtxSynchronize(), code);
    ck_assert_int_eq((int)cu.MemAlloc(&at, 64), code);
    ck_assert_int_eq((int)cu.MemHostAlloc((void **)&word, 64, 0), code);
    OK(cu.CtxGetCurrent(&ctx));
}

START_TEST(a_fault_of_the_device_stays)
{
    setenv("FAKE_CUDA_FAULT", "cuEventCreate:1:719", 1);
    fake_start();
    IS(LAUNCH_FAILED, cu.EventCreate(&(CUevent){NULL}, 0));
    all_is_lost(NULL, CUDA_ERROR_LAUNCH_FAILED);
}
END_TEST

static void *synchronize(void *stream)
{
    return (void *)(uintptr_t)cu.StreamSynchronize(stream);
}

static atomic_int may_return;

static void until_told(void *arg)
{
    (void)arg;
    while (!atomic_load(&may_return))
        usleep(1000);
}

/* The first stream is held by a function, which asks for no error meanwhile. */
START_TEST(a_fault_lets_go_whoever_waits)
{
    CUstream gated, behind;
    pthread_t thread;
    CUevent e;
    void *rc;

    setenv("FAKE_CUDA_FAULT", "cuMemAlloc:1:700", 1);
    fake_start();
    gated = fake_stream();
    behind = fake_stream();
    e = fake_event();
    OK(cu.LaunchHostFunc(gated, until_told, NULL));
    OK(cu.EventRecord(e, gated));
    OK(cu.StreamWaitEvent(behind, e, 0));
    ck_assert(!pthread_create(&thread, NULL, synchronize, behind));
    usleep(20000);
    IS(ILLEGAL_ADDRESS, cu.MemAlloc(&(CUdeviceptr){0}, 64));
    ck_assert(!pthread_join(thread, &rc));
    ck_assert_int_eq((int)(uintptr_t)rc, CUDA_ERROR_ILLEGAL_ADDRESS);
    atomic_store(&may_return, 1);
}
END_TEST

static void store_to(CUdeviceptr at, CUstream s)
{
    uint32_t value = 1;

    OK(gpu_launch(gpu_kernel("store"), 1, 1, s, (void *[]){&at, &value}));
}

START_TEST(a_kernel_that_leaves_its_memory_is_a_fault)
{
    uint32_t plain = 0;
    CUstream s, waiting;
    _Atomic uint32_t *word;

    fake_start();
    s = fake_stream();
    waiting = fake_stream();
    word = fake_words(2);
    store_to(fake_memory(64) + 60, s);
    store_to(AT(word), s);
    OK(cu.StreamSynchronize(s));
    fake_hold(waiting, word + 1);
    store_to(AT(&plain), s); /* nobody registered it */
    ck_assert_int_eq((int)cu.StreamSynchronize(waiting),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    all_is_lost(s, CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_uint_eq(plain, 0);
}
END_TEST

static void child_has_no_driver(void)
{
    CUdeviceptr at;

    if (cu.MemAlloc(&at, 64) != CUDA_ERROR_NOT_INITIALIZED ||
        cu.Init(0) != CUDA_ERROR_NOT_INITIALIZED)
        _exit(1);
}

START_TEST(a_forked_child_has_no_driver)
{
    fake_start();
    ck_assert_int_eq(fake_child(child_has_no_driver), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_order");
    TCase *tc = tcase_create("order");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_is_enqueued_happens_late_and_in_order);
    tcase_add_test(tc, only_an_event_orders_two_streams);
    tcase_add_test(tc, blocking_streams_and_the_legacy_one_wait_for_each_other);
    tcase_add_loop_test(tc, a_stream_that_waits_holds_those_of_its_connection,
                        1, 4);
    tcase_add_test(tc, a_caller_waits_when_a_queue_is_full);
    tcase_add_test(tc, faults_come_when_they_are_asked_for);
    tcase_add_test(tc, a_fault_of_the_device_stays);
    tcase_add_test(tc, a_fault_lets_go_whoever_waits);
    tcase_add_test(tc, a_kernel_that_leaves_its_memory_is_a_fault);
    tcase_add_test(tc, a_forked_child_has_no_driver);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
