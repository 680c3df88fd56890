/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fake_cuda.c - the fake CUDA driver (tests/fake_cuda), rule by rule: entries,
 * memory, devices, kernels.  What an H100 was asked too is in
 * tests/gpu/driver_rules; here is what it would not show. */
#include "tests/fake_cuda/fake_fixture.h"
#include "lib/device/cuda_driver.h"
#include "tests/fake_cuda/counts.h"
#include "tests/gpu/kernels_driver.h"
#include "tests/support/suite.h"
#include "trainer/cuda/kernels.h"

#include <dlfcn.h>
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

/* An entry that UCX asks for, by its name without "cu". */
#define ENTRY(name)                                                            \
    ({                                                                         \
        void *entry_ = NULL;                                                   \
        OK(cu.GetProcAddress("cu" #name, &entry_, 12000, 0, NULL));            \
        (__typeof__(&cu##name))entry_;                                         \
    })

START_TEST(a_context_has_a_number_of_its_own)
{
    __typeof__(&cuCtxGetId) number_of;
    unsigned long long first, again, other;
    CUcontext ctx;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    ctx = fake_start();
    number_of = ENTRY(CtxGetId);
    OK(number_of(NULL, &first));
    OK(number_of(ctx, &again));
    ck_assert_uint_eq(first, again);
    OK(number_of(fake_device(1), &other));
    ck_assert_uint_ne(first, other);
    OK(cu.CtxSetCurrent(NULL));
    IS(INVALID_CONTEXT, number_of(NULL, &again));
    IS(INVALID_VALUE, number_of(ctx, NULL));
    OK(cu.DevicePrimaryCtxReset(0));
    OK(cu.DevicePrimaryCtxRetain(&ctx, 0));
    OK(number_of(ctx, &again)); /* the old handle, another context */
    ck_assert_uint_ne(first, again);
}
END_TEST

static CUmemAllocationProp usual_memory(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}

START_TEST(what_is_mapped_at_an_address_can_be_asked)
{
    CUmemAllocationProp prop = usual_memory(), got;
    CUmemGenericAllocationHandle memory, found;
    size_t len = (size_t)2 << 20;
    CUdeviceptr at, plain;
    int words[4];

    fake_start();
    plain = fake_memory(64);
    OK(cu.MemCreate(&memory, len, &prop, 0));
    OK(cu.MemAddressReserve(&at, len, 0, 0, 0));
    IS(INVALID_VALUE, ENTRY(MemRetainAllocationHandle)(&found, (void *)at));
    OK(cu.MemMap(at, len, 0, memory, 0));
    OK(ENTRY(MemRetainAllocationHandle)(&found, (void *)(at + 100)));
    ck_assert(found == memory);
    OK(ENTRY(MemGetAllocationPropertiesFromHandle)(&got, found));
    ck_assert_int_eq(got.location.id, 0);
    ck_assert_int_eq(got.type, prop.type);
    OK(cu.MemRelease(found));
    OK(cu.MemUnmap(at, len));
    OK(cu.MemRelease(memory));
    IS(INVALID_VALUE, ENTRY(MemRetainAllocationHandle)(&found, (void *)plain));
    IS(INVALID_VALUE,
       ENTRY(MemRangeGetAttribute)(
           words, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, plain, 64));
}
END_TEST

START_TEST(a_pool_ends_but_for_the_devices_own)
{
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool usual, own;
    CUdeviceptr at;
    CUstream s;

    fake_start();
    s = fake_stream();
    OK(cu.DeviceGetDefaultMemPool(&usual, 0));
    IS(INVALID_VALUE, ENTRY(MemPoolDestroy)(usual));
    OK(cu.MemPoolCreate(&own, &props));
    OK(cu.MemAllocFromPoolAsync(&at, 4096, own, s));
    OK(ENTRY(MemPoolDestroy)(own));
    OK(cu.MemsetD8Async(at, 1, 4096, s)); /* there until it is freed */
    OK(cu.MemFreeAsync(at, s));
    OK(cu.StreamSynchronize(s));
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

static void store_to(CUdeviceptr at, CUstream s)
{
    uint32_t value = 1;

    OK(gpu_launch(gpu_kernel("store"), 1, 1, s, (void *[]){&at, &value}));
}

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
    fake_put(mine, &word, 4);
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

static CUfunction fat_kernel(const char *name)
{
    CUfunction kernel;
    CUmodule module;

    OK(cu.ModuleLoadData(&module, fat_binary));
    OK(cu.ModuleGetFunction(&kernel, module, name));
    return kernel;
}

/* Also when it was captured: at once, and at each launch. */
START_TEST(a_kernel_finds_the_bytes_of_a_span)
{
    float x[3] = {1, 2, 3}, got[3];
    CUdeviceptr memory;
    struct train_span to, from;
    CUfunction add;
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;

    fake_start();
    s = fake_stream();
    memory = fake_memory(2 * sizeof(x));
    fake_put(memory, x, sizeof(x));
    fake_put(memory + sizeof(x), x, sizeof(x));
    to = (struct train_span){memory, sizeof(x)};
    from = (struct train_span){memory + sizeof(x), sizeof(x)};
    add = fat_kernel("train_add_f32");
    OK(gpu_launch(add, 1, 2, s, (void *[]){&to, &from}));
    OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(gpu_launch(add, 1, 2, s, (void *[]){&to, &from}));
    to.at = from.at = 0; /* were copied at the call */
    OK(cu.StreamEndCapture(s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    OK(cu.GraphLaunch(exec, s));
    OK(cu.GraphLaunch(exec, s));
    OK(cu.StreamSynchronize(s));
    OK(cu.MemcpyDtoH(got, memory, sizeof(got)));
    for (int i = 0; i < 3; i++)
        ck_assert(got[i] == 4 * x[i]);
}
END_TEST

START_TEST(a_span_of_no_bytes_may_be_anywhere)
{
    struct train_span none = {1, 0}, out;
    float x = -1, got = 5;
    uint32_t relu = 1;

    fake_start();
    out = (struct train_span){fake_memory(sizeof(x)), sizeof(x)};
    fake_put(out.at, &x, sizeof(x));
    OK(gpu_launch(fat_kernel("train_bias_relu_f32"), 1, 1, NULL,
                  (void *[]){&out, &none, &relu}));
    OK(cu.MemcpyDtoH(&got, out.at, sizeof(got)));
    ck_assert(got == 0);
}
END_TEST

START_TEST(a_span_behind_the_memorys_end_is_a_fault)
{
    struct train_span to, from;

    fake_start();
    from = to = (struct train_span){fake_memory(1024), 1024};
    from.len += 4;
    OK(gpu_launch(fat_kernel("train_add_f32"), 1, 1, NULL,
                  (void *[]){&to, &from}));
    IS(ILLEGAL_ADDRESS, cu.CtxSynchronize());
}
END_TEST

/* Each by its own elements. */
START_TEST(a_span_wants_its_elements_aligned)
{
    struct train_span from, to;
    CUfunction pack;

    fake_start();
    from = (struct train_span){fake_memory(1024), 16};
    to = (struct train_span){fake_memory(1024) + 2, 8};
    pack = fat_kernel("train_pack_bf16");
    OK(gpu_launch(pack, 1, 1, NULL, (void *[]){&from, &to}));
    OK(cu.CtxSynchronize());
    from.at += 2;
    OK(gpu_launch(pack, 1, 1, NULL, (void *[]){&from, &to}));
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

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_product_finds_each_entry_and_it_works);
    tcase_add_test(tc, each_status_has_a_name_and_a_sentence_of_its_own);
    tcase_add_test(tc, an_older_driver_has_fewer_entries);
    tcase_add_test(tc, a_context_has_a_number_of_its_own);
    tcase_add_test(tc, what_is_mapped_at_an_address_can_be_asked);
    tcase_add_test(tc, a_pool_ends_but_for_the_devices_own);
    tcase_add_test(tc, host_code_that_touches_device_memory_crashes);
    tcase_add_test(tc, a_handle_that_was_destroyed_ends_the_process);
    tcase_add_test(tc, small_allocations_lie_side_by_side_and_are_bounded);
    tcase_add_test(tc, memory_ends_and_comes_back);
    tcase_add_test(tc, devices_have_names_and_memory_of_their_own);
    tcase_add_test(tc, a_peers_memory_needs_access_but_for_copies);
    tcase_add_test(tc, peer_access_can_be_denied);
    tcase_add_test(tc, attributes_can_be_overruled);
    tcase_add_test(tc, the_products_kernels_run_on_device_memory);
    tcase_add_test(tc, a_kernel_wants_its_elements_aligned);
    tcase_add_test(tc, a_kernel_finds_the_bytes_of_a_span);
    tcase_add_test(tc, a_span_of_no_bytes_may_be_anywhere);
    tcase_add_test(tc, a_span_behind_the_memorys_end_is_a_fault);
    tcase_add_test(tc, a_span_wants_its_elements_aligned);
    tcase_add_test(tc, what_is_put_into_streams_is_counted);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
