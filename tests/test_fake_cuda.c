/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cuda.c - the fake CUDA driver (tests/fake_cuda), rule by rule: orders and
 * delays, memory, errors, devices, kernels.  What an H100 was asked too is in
 * tests/gpu/driver_rules; here is what it would not show. */
#include "tests/fake_fixture.h"
#include "lib/device/cuda_driver.h"
#include "tests/fake_cuda/counts.h"
#include "tests/gpu/kernels_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EQ CU_STREAM_WAIT_VALUE_EQ

/* ---- entries ------------------------------------------------------------- */

START_TEST(the_product_finds_each_entry_and_it_works)
{
    char why[512] = "";

    fake_open();
    ck_assert_msg(kernels_driver(why, sizeof(why)) != NULL, "%s", why);
}
END_TEST

START_TEST(each_status_has_a_name_and_a_sentence_of_its_own)
{
    const char *names[1000] = {NULL}, *words[1000] = {NULL};
    CUresult (*string)(CUresult, const char **);
    void *entry = NULL;
    int n = 0;

    fake_open();
    OK(cu.GetProcAddress("cuGetErrorString", &entry, 12000, 0, NULL));
    string = (__typeof__(string))entry;
    for (int i = 0; i < 1000; i++) {
        if (cu.GetErrorName((CUresult)i, &names[n]))
            continue;
        OK(string((CUresult)i, &words[n]));
        for (int j = 0; j < n; j++) {
            ck_assert_str_ne(names[j], names[n]);
            ck_assert_str_ne(words[j], words[n]);
        }
        n++;
    }
    ck_assert_int_gt(n, 90);
}
END_TEST

START_TEST(an_older_driver_has_fewer_entries)
{
    CUdriverProcAddressQueryResult result;
    __typeof__(&cuGetProcAddress) ask;
    void *entry;

    setenv("FAKE_CUDA_VERSION", "11080", 1);
    ask = (__typeof__(ask))dlsym(dlopen(FAKE_CUDA, RTLD_NOW | RTLD_LOCAL),
                                 "cuGetProcAddress_v2");
    ck_assert_ptr_nonnull(ask);
    IS(INVALID_VALUE, ask("cuInit", &entry, 12000, 0, &result));
    OK(ask("cuInit", &entry, 11080, 0, &result));
    ck_assert_ptr_nonnull(entry);
    OK(ask("cuCtxCreate", &entry, 11040, 0, &result));
    ck_assert_ptr_null(entry);
    ck_assert_int_eq(result, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}
END_TEST

/* ---- memory -------------------------------------------------------------- */

/* UCX and the sanitizers have handlers of their own for it. */
static void start_to_crash(void)
{
    fake_start();
    signal(SIGSEGV, SIG_DFL);
}

static void touch(void)
{
    start_to_crash();
    *(volatile char *)fake_memory(64) = 1;
}

static void read_it(void)
{
    char byte;

    start_to_crash();
    memcpy(&byte, (void *)fake_memory(64), 1);
    _exit(byte != 0);
}

START_TEST(host_code_that_touches_device_memory_crashes)
{
    int written = fake_child(touch), was_read = fake_child(read_it);

    ck_assert(WIFSIGNALED(written) && WTERMSIG(written) == SIGSEGV);
    ck_assert(WIFSIGNALED(was_read) && WTERMSIG(was_read) == SIGSEGV);
}
END_TEST

static void destroyed_twice(void)
{
    CUstream s;

    fake_start();
    s = fake_stream();
    OK(cu.StreamDestroy(s));
    cu.StreamDestroy(s);
}

static void no_handle(void)
{
    long junk[64] = {0};

    fake_start();
    cu.EventQuery((CUevent)junk);
}

START_TEST(a_handle_that_was_destroyed_ends_the_process)
{
    int twice = fake_child(destroyed_twice), none = fake_child(no_handle);

    ck_assert(WIFSIGNALED(twice) && WTERMSIG(twice) == SIGABRT);
    ck_assert(WIFSIGNALED(none) && WTERMSIG(none) == SIGABRT);
}
END_TEST

START_TEST(small_allocations_lie_side_by_side_and_are_bounded)
{
    CUdeviceptr a, b;
    uint32_t x = 0;

    fake_start();
    a = fake_memory(1000);
    b = fake_memory(1000);
    ck_assert_uint_eq(b - a, 1024);
    IS(INVALID_VALUE, cu.MemsetD8Async(a, 0, 1001, NULL));
    IS(INVALID_VALUE, cu.MemcpyHtoD(a + 997, &x, 4));
    OK(cu.MemFree(a));
    ck_assert_uint_eq(fake_memory(500), a); /* used again at once */
    OK(cu.MemcpyHtoD(b, &x, 4));
}
END_TEST

START_TEST(memory_ends_and_comes_back)
{
    size_t before, left, all;
    CUdeviceptr at;

    setenv("FAKE_CUDA_MEMORY", "64", 1);
    fake_start();
    OK(cu.MemGetInfo(&before, &all));
    ck_assert_uint_eq(all, 64 << 20);
    IS(OUT_OF_MEMORY, cu.MemAlloc(&at, 65 << 20));
    at = fake_memory(48 << 20);
    IS(OUT_OF_MEMORY, cu.MemAlloc(&at, 48 << 20));
    OK(cu.MemFree(at));
    OK(cu.MemGetInfo(&left, &all));
    ck_assert_uint_eq(left, before);
}
END_TEST

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
    int last = -1;

    fake_start();
    full = fake_stream();
    words = fake_words(2);
    fake_hold(full, words);
    ck_assert(!pthread_create(&thread, NULL, put_many, (void *)(words + 1)));
    while (last < 1000 || atomic_load(&n_put) != last) {
        last = atomic_load(&n_put);
        usleep(20000);
    }
    ck_assert_int_eq(last, 1020);
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

/* ---- devices ------------------------------------------------------------- */

START_TEST(devices_have_names_and_memory_of_their_own)
{
    char name[64] = "";
    CUuuid ids[3];
    int n = 0, where = -1;
    CUdeviceptr at;

    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", "3,0,1", 1);
    fake_start();
    OK(cu.DeviceGetCount(&n));
    ck_assert_int_eq(n, 3);
    OK(cu.DeviceGetName(name, sizeof(name), 0));
    ck_assert_str_eq(name, "fake_cuda 3");
    for (int i = 0; i < 3; i++)
        OK(cu.DeviceGetUuid(&ids[i], i));
    ck_assert(memcmp(&ids[0], &ids[1], sizeof(ids[0])) != 0);
    ck_assert(memcmp(&ids[1], &ids[2], sizeof(ids[0])) != 0);
    fake_device(2);
    at = fake_memory(64);
    OK(cu.PointerGetAttribute(&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at));
    ck_assert_int_eq(where, 2);
}
END_TEST

START_TEST(a_peers_memory_needs_access_but_for_copies)
{
    CUdeviceptr mine, theirs;
    CUcontext first, second;
    uint32_t word = 3, back = 0;
    CUstream s;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    first = fake_start();
    mine = fake_memory(64);
    s = fake_stream();
    second = fake_device(1);
    theirs = fake_memory(64);
    OK(cu.CtxSetCurrent(first));
    OK(cu.MemcpyHtoD(mine, &word, 4));
    OK(cu.MemcpyDtoDAsync(theirs, mine, 4, s));
    OK(cu.StreamSynchronize(s));
    OK(cu.MemcpyDtoH(&back, theirs, 4));
    ck_assert_uint_eq(back, 3);
    IS(INVALID_VALUE, cu.StreamWriteValue32(s, theirs, 4, 0));
    OK(cu.CtxEnablePeerAccess(second, 0));
    IS(PEER_ACCESS_ALREADY_ENABLED, cu.CtxEnablePeerAccess(second, 0));
    OK(cu.StreamWriteValue32(s, theirs, 4, 0));
    store_to(theirs + 4, s);
    OK(cu.StreamSynchronize(s));
    OK(cu.CtxSetCurrent(second)); /* one way alone */
    IS(INVALID_VALUE, cu.StreamWriteValue32(NULL, mine, 4, 0));
}
END_TEST

START_TEST(peer_access_can_be_denied)
{
    CUcontext second;
    int can = 1;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("FAKE_CUDA_PEERS", "0", 1);
    fake_start();
    second = fake_device(1);
    fake_device(0);
    OK(cu.DeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 0);
    IS(PEER_ACCESS_UNSUPPORTED, cu.CtxEnablePeerAccess(second, 0));
}
END_TEST

START_TEST(attributes_can_be_overruled)
{
    int value = 1;

    setenv("FAKE_CUDA_ATTRIBUTES", "125=0,122=0", 1);
    fake_start();
    OK(cu.DeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
                             0));
    ck_assert_int_eq(value, 0);
    IS(NOT_SUPPORTED, cu.StreamWriteValue64(NULL, fake_memory(64), 1, 0));
}
END_TEST

/* ---- kernels ------------------------------------------------------------- */

/* A fat binary as far as the fake driver looks at it. */
static const uint32_t fat_binary[4] = {0xba55ed50};

START_TEST(the_products_kernels_run_on_device_memory)
{
    enum { N = 1000 };
    CUdeviceptr a, b, next = 0;
    float x[N], y[N];
    size_t len = sizeof(x);
    CUmodule module;
    CUfunction sum;

    fake_start();
    a = fake_memory(len);
    b = fake_memory(len);
    for (int i = 0; i < N; i++)
        x[i] = (float)i, y[i] = (float)(2 * i);
    OK(cu.MemcpyHtoD(a, x, len));
    OK(cu.MemcpyHtoD(b, y, len));
    OK(cu.ModuleLoadData(&module, fat_binary));
    IS(NOT_FOUND, cu.ModuleGetFunction(&sum, module, "coll_no_such"));
    OK(cu.ModuleGetFunction(&sum, module, "coll_sum_f32"));
    OK(gpu_launch(sum, 2, 64, NULL, (void *[]){&a, &next, &a, &b, &len}));
    len = 4; /* was copied at the call */
    OK(cu.MemcpyDtoH(x, a, sizeof(x)));
    for (int i = 0; i < N; i++)
        ck_assert(x[i] == (float)(3 * i));
    IS(LAUNCH_OUT_OF_RESOURCES,
       gpu_launch(sum, 1, 1024, NULL, (void *[]){&a, &next, &a, &b, &len}));
    len = sizeof(x) + 4;
    OK(gpu_launch(sum, 1, 1, NULL, (void *[]){&a, &next, &a, &b, &len}));
    IS(ILLEGAL_ADDRESS, cu.CtxSynchronize());
}
END_TEST

START_TEST(a_kernel_wants_its_elements_aligned)
{
    CUdeviceptr at, next = 0;
    size_t len = 8;
    CUmodule module;
    CUfunction sum;

    fake_start();
    at = fake_memory(64) + 2;
    OK(cu.ModuleLoadData(&module, fat_binary));
    OK(cu.ModuleGetFunction(&sum, module, "coll_sum_bf16"));
    OK(gpu_launch(sum, 1, 1, NULL, (void *[]){&at, &next, &at, &at, &len}));
    OK(cu.CtxSynchronize());
    OK(cu.ModuleGetFunction(&sum, module, "coll_sum_f32"));
    OK(gpu_launch(sum, 1, 1, NULL, (void *[]){&at, &next, &at, &at, &len}));
    IS(MISALIGNED_ADDRESS, cu.CtxSynchronize());
}
END_TEST

START_TEST(what_is_put_into_streams_is_counted)
{
    void (*ask)(struct fake_counts *);
    struct fake_counts before, after;
    CUdeviceptr at;

    fake_start();
    ask = (__typeof__(ask))gpu_symbol("fake_cuda_counts");
    at = fake_memory(4096);
    ask(&before);
    OK(cu.MemcpyDtoDAsync(at, at + 2048, 1000, NULL));
    OK(cu.StreamWriteValue32(NULL, at, 1, 0));
    OK(cu.StreamWaitValue32(NULL, at, 1, EQ));
    OK(cu.EventRecord(fake_event(), NULL));
    OK(cu.CtxSynchronize());
    ask(&after);
    ck_assert_uint_eq(after.copies - before.copies, 1);
    ck_assert_uint_eq(after.copied - before.copied, 1000);
    ck_assert_uint_eq(after.writes - before.writes, 1);
    ck_assert_uint_eq(after.waits - before.waits, 1);
    ck_assert_uint_eq(after.records - before.records, 1);
    ck_assert_uint_eq(after.kernels, before.kernels);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_cuda");
    TCase *tc = tcase_create("driver");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_product_finds_each_entry_and_it_works);
    tcase_add_test(tc, each_status_has_a_name_and_a_sentence_of_its_own);
    tcase_add_test(tc, an_older_driver_has_fewer_entries);
    tcase_add_test(tc, host_code_that_touches_device_memory_crashes);
    tcase_add_test(tc, a_handle_that_was_destroyed_ends_the_process);
    tcase_add_test(tc, small_allocations_lie_side_by_side_and_are_bounded);
    tcase_add_test(tc, memory_ends_and_comes_back);
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
    tcase_add_test(tc, devices_have_names_and_memory_of_their_own);
    tcase_add_test(tc, a_peers_memory_needs_access_but_for_copies);
    tcase_add_test(tc, peer_access_can_be_denied);
    tcase_add_test(tc, attributes_can_be_overruled);
    tcase_add_test(tc, the_products_kernels_run_on_device_memory);
    tcase_add_test(tc, a_kernel_wants_its_elements_aligned);
    tcase_add_test(tc, what_is_put_into_streams_is_counted);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
