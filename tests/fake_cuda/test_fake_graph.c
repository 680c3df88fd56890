/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_graph.c - the fake CUDA driver's captures and graphs: PG, "CUDA Graphs". */
#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define GLOBAL CU_STREAM_CAPTURE_MODE_GLOBAL
#define RELAXED CU_STREAM_CAPTURE_MODE_RELAXED
#define EQ CU_STREAM_WAIT_VALUE_EQ

static CUstream capturing(CUstreamCaptureMode mode)
{
    CUstream s = fake_stream();

    OK(cu.StreamBeginCapture(s, mode));
    return s;
}

static CUgraphExec finish(CUstream s)
{
    CUgraphExec exec = NULL;
    CUgraph graph = NULL;

    OK(cu.StreamEndCapture(s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphDestroy(graph));
    return exec;
}

static void add_one(CUdeviceptr at, CUstream s)
{
    OK(gpu_launch(gpu_kernel("add_one"), 1, 1, s, (void *[]){&at}));
}

static uint32_t word_at(CUdeviceptr at)
{
    uint32_t word = 0;

    OK(cu.MemcpyDtoH(&word, at, 4));
    return word;
}

/* Take another stream along, and back. */
static void lead(CUstream to, CUstream from)
{
    CUevent e = fake_event();

    OK(cu.EventRecord(e, from));
    OK(cu.StreamWaitEvent(to, e, 0));
    OK(cu.EventDestroy(e));
}

/* ---- replay -------------------------------------------------------------- */

START_TEST(what_is_captured_runs_at_each_launch_and_never_before)
{
    CUgraphExec exec;
    CUdeviceptr at;
    CUstream s;

    fake_start();
    at = fake_memory(64);
    OK(cu.MemsetD8(at, 0, 64));
    OK(gpu_kernel("add_one") ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
    s = capturing(GLOBAL);
    add_one(at, s);
    add_one(at, s);
    exec = finish(s);
    OK(cu.CtxSynchronize());
    ck_assert_uint_eq(word_at(at), 0);
    for (int i = 0; i < 1000; i++)
        OK(cu.GraphLaunch(exec, s));
    OK(cu.GraphExecDestroy(exec)); /* what runs goes on */
    OK(cu.StreamSynchronize(s));
    ck_assert_uint_eq(word_at(at), 2000);
}
END_TEST

/* The side branch is captured last and lets the main one go: branches run side by
 * side. */
START_TEST(branches_of_a_graph_wait_for_each_other_by_flags)
{
    _Atomic uint32_t *words;
    CUgraphExec exec;
    CUstream s, side;

    fake_start();
    words = fake_words(2);
    side = fake_stream();
    s = capturing(GLOBAL);
    lead(side, s);
    OK(cu.StreamWaitValue32(s, AT(words), 1, EQ));
    OK(cu.StreamWriteValue32(s, AT(words), 0, 0));
    OK(cu.StreamWriteValue32(side, AT(words), 1, 0));
    lead(s, side);
    OK(cu.StreamWriteValue32(s, AT(words + 1), 1, 0));
    exec = finish(s);
    for (int i = 0; i < 100; i++) {
        OK(cu.GraphLaunch(exec, s));
        OK(cu.StreamSynchronize(s));
        ck_assert_uint_eq(atomic_exchange(words + 1, 0), 1);
        ck_assert_uint_eq(atomic_load(words), 0);
    }
}
END_TEST

/* Two branches write one word: how often was the second one's the last? */
START_TEST(only_dependencies_order_a_graph)
{
    _Atomic uint32_t *word;
    CUgraphExec exec;
    CUstream s, side;
    int n = 0;

    fake_start();
    word = fake_words(2);
    side = fake_stream();
    s = capturing(GLOBAL);
    OK(cu.StreamWriteValue32(s, AT(word), 9, 0));
    lead(side, s);
    OK(cu.StreamWriteValue32(s, AT(word), 1, 0));
    OK(cu.StreamWriteValue32(side, AT(word), 2, 0));
    lead(s, side);
    OK(cu.MemcpyDtoDAsync(AT(word + 1), AT(word), 4, s));
    exec = finish(s);
    for (int i = 0; i < 200; i++) {
        OK(cu.GraphLaunch(exec, s));
        OK(cu.StreamSynchronize(s));
        ck_assert_uint_ne(atomic_load(word), 9);
        ck_assert_uint_eq(atomic_load(word + 1), atomic_load(word));
        n += atomic_load(word) == 2;
    }
    ck_assert_int_gt(n, 0);
    ck_assert_int_lt(n, 200);
}
END_TEST

START_TEST(launches_of_one_graph_follow_each_other)
{
    _Atomic uint32_t *words;
    CUgraphExec exec;
    CUstream s, other;

    fake_start();
    words = fake_words(2);
    other = fake_stream();
    s = capturing(GLOBAL);
    OK(cu.StreamWaitValue32(s, AT(words), 1, EQ));
    OK(cu.StreamWriteValue32(s, AT(words), 0, 0));
    exec = finish(s);
    OK(cu.GraphLaunch(exec, s));
    OK(cu.GraphLaunch(exec, other));
    atomic_store(words, 1);
    OK(cu.StreamSynchronize(s));
    IS(NOT_READY, cu.StreamQuery(other));
    atomic_store(words, 1);
    OK(cu.StreamSynchronize(other));
}
END_TEST

START_TEST(an_event_from_outside_is_waited_for_at_each_launch)
{
    _Atomic uint32_t *words;
    CUgraphExec exec;
    CUstream s, other;
    CUevent e;

    fake_start();
    words = fake_words(2);
    other = fake_stream();
    e = fake_event();
    s = capturing(GLOBAL);
    OK(cu.StreamWaitEvent(s, e, CU_EVENT_WAIT_EXTERNAL));
    OK(cu.StreamWriteValue32(s, AT(words), 1, 0));
    exec = finish(s);
    OK(cu.GraphLaunch(exec, s)); /* never recorded: nothing to wait for */
    OK(cu.StreamSynchronize(s));
    for (int i = 0; i < 3; i++) {
        atomic_store(words, 0);
        atomic_store(words + 1, 0);
        fake_hold(other, words + 1);
        OK(cu.EventRecord(e, other));
        OK(cu.GraphLaunch(exec, s));
        ck_assert(fake_stays(words, 0));
        atomic_store(words + 1, 1);
        ck_assert(fake_becomes(words, 1));
    }
}
END_TEST

START_TEST(an_external_event_is_recorded_at_each_launch)
{
    const unsigned external = CU_EVENT_RECORD_EXTERNAL;
    _Atomic uint32_t *words;
    CUgraphExec exec;
    CUevent e[2], inside;
    CUstream s;
    float ms = -1;

    fake_start();
    words = fake_words(1);
    for (int i = 0; i < 2; i++)
        OK(cu.EventCreate(&e[i], 0));
    OK(cu.EventCreate(&inside, 0));
    s = fake_stream();
    OK(cu.EventRecord(inside, s));
    IS(ILLEGAL_STATE, cu.EventRecordWithFlags(e[0], s, external));
    IS(INVALID_VALUE, cu.EventRecordWithFlags(e[0], s, 2));
    OK(cu.StreamBeginCapture(s, GLOBAL));
    OK(cu.EventRecord(inside, s));
    OK(cu.EventRecordWithFlags(e[0], s, external));
    OK(cu.StreamWaitValue32(s, AT(words), 1, EQ));
    OK(cu.EventRecordWithFlags(e[1], s, external));
    exec = finish(s);
    IS(INVALID_HANDLE, cu.EventElapsedTime(&ms, e[0], e[1]));
    for (int i = 0; i < 3; i++) {
        atomic_store(words, 0);
        OK(cu.GraphLaunch(exec, s));
        OK(cu.EventSynchronize(e[0]));
        IS(NOT_READY, cu.EventQuery(e[1]));
        IS(NOT_READY, cu.EventElapsedTime(&ms, e[0], e[1]));
        atomic_store(words, 1);
        OK(cu.StreamSynchronize(s));
        OK(cu.EventElapsedTime(&ms, e[0], e[1]));
        ck_assert(ms >= 0);
    }
    IS(INVALID_VALUE, cu.EventElapsedTime(&ms, inside, e[1]));
}
END_TEST

/* ---- what a capture forbids ---------------------------------------------- */

static void spoilt(CUstream s)
{
    CUgraph graph = (CUgraph)1;

    IS(STREAM_CAPTURE_INVALIDATED, cu.StreamEndCapture(s, &graph));
    ck_assert_ptr_null(graph);
    OK(cu.StreamSynchronize(s));
}

START_TEST(unsafe_calls_end_a_capture)
{
    CUdeviceptr at;
    CUstream s;

    fake_start();
    s = capturing(GLOBAL);
    IS(STREAM_CAPTURE_UNSUPPORTED, cu.MemAlloc(&at, 64));
    spoilt(s);
    s = capturing(GLOBAL);
    IS(STREAM_CAPTURE_UNSUPPORTED, cu.StreamSynchronize(s));
    spoilt(s);
    s = capturing(RELAXED);
    OK(cu.MemAlloc(&at, 64));
    IS(STREAM_CAPTURE_UNSUPPORTED, cu.CtxSynchronize());
    spoilt(s);
}
END_TEST

static void *alloc(void *ctx)
{
    CUdeviceptr at;

    cu.CtxSetCurrent(ctx);
    return (void *)(uintptr_t)cu.MemAlloc(&at, 64);
}

/* What another thread gets for cuMemAlloc. */
static int alloc_elsewhere(CUcontext ctx)
{
    void *rc = NULL;
    pthread_t thread;

    ck_assert(!pthread_create(&thread, NULL, alloc, ctx));
    ck_assert(!pthread_join(thread, &rc));
    return (int)(uintptr_t)rc;
}

START_TEST(other_threads_are_free_of_a_capture_that_is_not_global)
{
    CUgraph graph;
    CUcontext ctx;
    CUstream s;

    ctx = fake_start();
    s = capturing(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    ck_assert_int_eq(alloc_elsewhere(ctx), CUDA_SUCCESS);
    OK(cu.StreamEndCapture(s, &graph));
    s = capturing(GLOBAL);
    ck_assert_int_eq(alloc_elsewhere(ctx),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    spoilt(s);
}
END_TEST

START_TEST(the_legacy_stream_is_forbidden_beside_a_blocking_one)
{
    CUstreamCaptureStatus status;
    CUstream s;

    fake_start();
    OK(cu.StreamCreate(&s, CU_STREAM_DEFAULT));
    OK(cu.StreamBeginCapture(s, RELAXED));
    IS(STREAM_CAPTURE_IMPLICIT, cu.StreamIsCapturing(NULL, &status));
    IS(STREAM_CAPTURE_IMPLICIT, cu.MemsetD8(fake_memory(64), 0, 64));
    spoilt(s);
}
END_TEST

START_TEST(what_was_forked_must_be_joined)
{
    CUgraph graph;
    CUstream s, side;
    CUdeviceptr at;

    fake_start();
    at = fake_memory(64);
    side = fake_stream();
    s = capturing(GLOBAL);
    lead(side, s);
    OK(cu.MemsetD8Async(at, 0, 8, side));
    IS(STREAM_CAPTURE_UNJOINED, cu.StreamEndCapture(s, &graph));
    OK(cu.StreamSynchronize(side));
}
END_TEST

/* A stream that is destroyed takes its capture with it. */
START_TEST(a_destroyed_stream_captures_no_more)
{
    fake_start();
    OK(cu.StreamDestroy(capturing(GLOBAL)));
    OK(cu.CtxSynchronize());
    fake_memory(64);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_graph");
    TCase *tc = tcase_create("graphs");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, what_is_captured_runs_at_each_launch_and_never_before);
    tcase_add_test(tc, branches_of_a_graph_wait_for_each_other_by_flags);
    tcase_add_test(tc, only_dependencies_order_a_graph);
    tcase_add_test(tc, launches_of_one_graph_follow_each_other);
    tcase_add_test(tc, an_event_from_outside_is_waited_for_at_each_launch);
    tcase_add_test(tc, an_external_event_is_recorded_at_each_launch);
    tcase_add_test(tc, unsafe_calls_end_a_capture);
    tcase_add_test(tc, other_threads_are_free_of_a_capture_that_is_not_global);
    tcase_add_test(tc, the_legacy_stream_is_forbidden_beside_a_blocking_one);
    tcase_add_test(tc, what_was_forked_must_be_joined);
    tcase_add_test(tc, a_destroyed_stream_captures_no_more);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
