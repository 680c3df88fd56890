/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_device.c - lib/device/cuda.c over the fake CUDA driver: steps against the
 * host's kernels, memory of other processes, errors. */
#include "tests/support/element.h"
#include "tests/fake_cuda/counts.h"
#include "tests/fake_cuda/fake_fixture.h"
#include "tests/support/suite.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_stream.h"
#include "lib/device/reduce.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the fake driver takes for a fat binary: nvcc need not be there. */
const unsigned char coll__cuda_image[] = {0x50, 0xed, 0x55, 0xba};

static const struct coll__device *const dev = &coll__device_cuda;

enum { COUNT = 1001, LEN = 16 * COUNT };

static char host_a[LEN], host_b[LEN], got[LEN], wanted[LEN];

/* Put it into the stream, which comes to its end. */
static int run(struct coll__work *work, CUstream s)
{
    int status;

    work->stream = s;
    status = coll__cuda_enqueue(work);
    if (!status)
        OK(cu.StreamSynchronize(s));
    return status;
}

static void put(void *at, const char *from, size_t len)
{
    fake_put((CUdeviceptr)at, from, len);
}

static void get(char *to, const void *at, size_t len)
{
    OK(cu.MemcpyDtoH(to, (CUdeviceptr)at, len));
}

/* ---- steps -------------------------------------------------------------------- */

static void same(enum coll_type type, const void *at, size_t len)
{
    size_t n = len / coll_type_size(type);

    get(got, at, len);
    ck_assert_uint_eq(first_difference(type, got, wanted, n), n);
}

/* Two buffers of any bits of that type, on the host and on the device. */
static size_t fill_both(enum coll_type type, void *a, void *b)
{
    size_t len = COUNT * coll_type_size(type);

    fill(type, host_a, COUNT, 1);
    fill(type, host_b, COUNT, 2);
    put(a, host_a, len);
    put(b, host_b, len);
    return len;
}

/* _i: the type. */
START_TEST(steps_give_what_the_host_gives)
{
    enum coll_type type = (enum coll_type)_i;
    struct coll__work work = {.type = type};
    void *a, *b;
    CUstream s;

    fake_start();
    s = fake_stream();
    a = dev->alloc(LEN);
    b = dev->alloc(LEN);
    ck_assert(a && b);
    work.dst = a;
    work.src = b;
    for (int op = 0; op < COLL_N_OPS; op++) {
        work.len = fill_both(type, a, b);
        work.kind = WORK_REDUCE;
        work.op = (enum coll_op)op;
        if (!coll__cuda_reduce(type, work.op))
            continue;
        ck_assert_int_eq(run(&work, s), COLL_OK);
        coll__host_reduce(type, work.op)(wanted, host_a, host_b, work.len);
        same(type, a, work.len);
    }
    fill_both(type, a, b);
    if (coll__host_scale(type)) {
        work.kind = WORK_SCALE;
        work.nranks = 3;
        ck_assert_int_eq(run(&work, s), COLL_OK);
        memcpy(wanted, host_a, work.len);
        coll__host_scale(type)(wanted, work.len, 3);
        same(type, a, work.len);
    }
    if (coll__cuda_multiply(type)) {
        work.kind = WORK_MULTIPLY;
        work.scalar = host_a;
        ck_assert_int_eq(run(&work, s), COLL_OK);
        coll__host_multiply(type)(wanted, host_b, work.len, host_a);
        same(type, a, work.len);
    }
    work.kind = WORK_COPY;
    ck_assert_int_eq(run(&work, s), COLL_OK);
    memcpy(wanted, host_b, work.len);
    same(type, a, work.len);
    dev->free(a, LEN);
    dev->free(b, LEN);
}
END_TEST

START_TEST(what_has_no_kernel_is_unsupported_and_nothing_is_begun)
{
    struct coll__work work = {
        .kind = WORK_REDUCE, .type = COLL_F32, .op = COLL_BXOR, .len = 4};

    fake_start();
    work.dst = dev->alloc(64);
    work.src = work.dst;
    ck_assert_int_eq(run(&work, fake_stream()), COLL_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "no kernel"));
}
END_TEST

/* ---- failures ------------------------------------------------------------------- */

START_TEST(a_failed_device_says_so_when_it_is_asked)
{
    struct coll__work work = {.kind = WORK_REDUCE, .type = COLL_F32, .len = 4};

    fake_start();
    work.dst = dev->alloc(64);
    work.src = host_a; /* which no device knows */
    work.stream = fake_stream();
    ck_assert_int_eq(coll__cuda_enqueue(&work), COLL_OK);
    ck_assert_int_eq(coll__cuda_stream_wait(work.stream), COLL_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(coll_last_error(), "illegal memory access"));
}
END_TEST

/* _i: which call of the driver fails. */
static const struct {
    const char *fault;
    int status;
} faults[] = {
    {"cuModuleLoadData:1:209", COLL_ERR_UNSUPPORTED},
    {"cuModuleGetFunction:1:500", COLL_ERR_SYSTEM},
    {"cuLaunchKernel:1:1", COLL_ERR_INVALID},
};

START_TEST(a_step_that_cannot_begin_says_why_and_the_next_one_can)
{
    struct coll__work work = {.kind = WORK_REDUCE, .type = COLL_I32, .len = 8};
    CUstream s;

    setenv("FAKE_CUDA_FAULT", faults[_i].fault, 1);
    fake_start();
    s = fake_stream();
    work.dst = dev->alloc(64);
    work.src = (char *)work.dst + 32;
    ck_assert_int_eq(run(&work, s), faults[_i].status);
    ck_assert_int_eq(run(&work, s), COLL_OK);
}
END_TEST

START_TEST(a_step_costs_one_call_of_the_driver)
{
    struct coll__work work = {.kind = WORK_COPY, .len = 100};
    void (*ask)(struct fake_counts *);
    struct fake_counts before, after;
    CUstream s;

    fake_start();
    ask = (__typeof__(ask))gpu_symbol("fake_cuda_counts");
    s = fake_stream();
    work.dst = dev->alloc(4096);
    work.src = (char *)work.dst + 1024;
    ck_assert_int_eq(run(&work, s), COLL_OK);
    ask(&before);
    ck_assert_int_eq(run(&work, s), COLL_OK);
    work.kind = WORK_REDUCE;
    ck_assert_int_eq(run(&work, s), COLL_OK);
    ask(&after);
    ck_assert_uint_eq(after.copied - before.copied, 100);
    ck_assert_uint_eq(after.kernel_len - before.kernel_len, 100);
    ck_assert_uint_eq(after.copies - before.copies, 1);
    ck_assert_uint_eq(after.kernels - before.kernels, 1);
    ck_assert_uint_eq(after.records - before.records, 0);
}
END_TEST

/* Then none is loaded any more, which would wait for the context's streams. */
START_TEST(what_is_prepared_asks_for_no_kernel)
{
    struct coll__work work = {.kind = WORK_REDUCE, .len = 8};
    char fault[64];
    int n = 3; /* coll_plan, coll_copy, and the one that is too much */
    CUstream s;

    for (int type = 0; type < COLL_N_TYPES; type++) {
        n += coll__cuda_scale((enum coll_type)type) != NULL;
        n += coll__cuda_multiply((enum coll_type)type) != NULL;
        for (int op = 0; op < COLL_N_OPS; op++)
            n += coll__cuda_reduce((enum coll_type)type, (enum coll_op)op) !=
                 NULL;
    }
    snprintf(fault, sizeof(fault), "cuModuleGetFunction:%d+:500", n);
    setenv("FAKE_CUDA_FAULT", fault, 1);
    fake_start();
    s = fake_stream();
    ck_assert_int_eq(coll__cuda_prepare(s, NULL), COLL_OK);
    ck_assert_int_eq(coll__cuda_prepare(s, NULL), COLL_OK);
    work.dst = dev->alloc(64);
    work.src = (char *)work.dst + 32;
    for (int type = 0; type < COLL_N_TYPES; type++) {
        work.type = (enum coll_type)type;
        if (coll__cuda_reduce(work.type, work.op))
            ck_assert_int_eq(run(&work, s), COLL_OK);
    }
    work.kind = WORK_COPY;
    work.next = (char *)work.dst + 16;
    ck_assert_int_eq(run(&work, s), COLL_OK);
}
END_TEST

/* A result in two places; what it is made of and what lies beside it stay. */
START_TEST(a_result_goes_to_a_second_place)
{
    int32_t numbers[16];
    char *at;

    fake_start();
    at = dev->alloc(64);
    for (int kind = 0; kind < 2; kind++) {
        struct coll__work work = {.kind = kind ? WORK_REDUCE : WORK_COPY,
                                  .type = COLL_I32,
                                  .op = COLL_SUM,
                                  .src = at,
                                  .with = kind ? at + 8 : NULL,
                                  .dst = at + 32,
                                  .next = at + 48,
                                  .len = 8};

        for (int i = 0; i < 16; i++)
            numbers[i] = i;
        fake_put((CUdeviceptr)at, numbers, sizeof(numbers));
        ck_assert_int_eq(run(&work, fake_stream()), COLL_OK);
        OK(cu.MemcpyDtoH(numbers, (CUdeviceptr)at, sizeof(numbers)));
        for (int i = 0; i < 16; i++)
            ck_assert_int_eq(numbers[i], i / 2 != 4 && i / 2 != 6 ? i
                                         : kind ? 2 * (i % 2) + 2
                                                : i % 2);
    }
}
END_TEST

/* A captured step runs at each launch. */
START_TEST(steps_can_be_captured)
{
    struct coll__work work = {.kind = WORK_REDUCE, .type = COLL_U8, .len = 1};
    CUgraphExec exec;
    CUgraph graph;
    CUstream s;
    char *at;

    fake_start();
    s = fake_stream();
    at = dev->alloc(64);
    put(at, (char[]){1, 2}, 2);
    ck_assert_int_eq(coll__cuda_prepare(s, NULL), COLL_OK);
    OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    work.dst = at;
    work.src = at + 1;
    work.stream = s;
    ck_assert_int_eq(coll__cuda_enqueue(&work), COLL_OK);
    OK(cu.StreamEndCapture(s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 10; i++)
        OK(cu.GraphLaunch(exec, s));
    OK(cu.StreamSynchronize(s));
    get(got, at, 1);
    ck_assert_int_eq(got[0], 21);
}
END_TEST

/* ---- contexts and memory ------------------------------------------------------------ */

START_TEST(work_goes_to_the_device_of_its_stream)
{
    struct coll__work work = {.kind = WORK_REDUCE, .type = COLL_U8, .len = 1};
    CUstream s;
    char *at;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    fake_start();
    fake_device(1);
    s = fake_stream();
    at = dev->alloc(64);
    put(at, (char[]){1, 2}, 2);
    fake_device(0);
    work.dst = at;
    work.src = at + 1;
    ck_assert_int_eq(run(&work, s), COLL_OK);
    get(got, at, 1);
    ck_assert_int_eq(got[0], 3);
    OK(cu.CtxSetCurrent(NULL)); /* a progress thread has none */
    ck_assert_int_eq(run(&work, s), COLL_OK);
}
END_TEST

static int is_devices(const void *ptr)
{
    struct coll__cuda_owner owner = {.id = 0};

    return coll__cuda_whose(ptr, &owner) == WHOSE_DEVICES && owner.id;
}

START_TEST(device_memory_is_known_and_nothing_else)
{
    void *pinned, *at;

    fake_start();
    at = dev->alloc(0);
    ck_assert_ptr_nonnull(at);
    OK(cu.MemHostAlloc(&pinned, 64, 0));
    ck_assert(is_devices(at));
    ck_assert(!is_devices(pinned));
    ck_assert(!is_devices(host_a));
    ck_assert(!is_devices(NULL));
    OK(cu.CtxSetCurrent(NULL));
    ck_assert(is_devices(at));
    dev->free(at, 0);
    ck_assert(!is_devices(at));
    ck_assert_ptr_nonnull(at = dev->alloc(64)); /* on the first device */
    ck_assert(is_devices(at));
}
END_TEST

enum { ASKERS = 4, FIRST_TIMES = 100 };

static pthread_barrier_t all_are_here;

static void *ask_with_others(void *at)
{
    pthread_barrier_wait(&all_are_here);
    return is_devices(at) ? at : NULL;
}

/* Ask from threads at once, in a process that has not asked before; how many of them
 * did not know the memory. */
static int ask_first(void)
{
    pthread_t threads[ASKERS];
    CUdeviceptr at;
    void *known;
    int n = 0;

    fake_start();
    at = fake_memory(64);
    pthread_barrier_init(&all_are_here, NULL, ASKERS);
    for (int i = 0; i < ASKERS; i++)
        pthread_create(&threads[i], NULL, ask_with_others, (void *)at);
    for (int i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], &known);
        n += !known;
    }
    return n;
}

/* The first who asks looks for the driver, and others ask meanwhile. */
START_TEST(threads_may_ask_for_the_first_time_at_once)
{
    for (int i = 0; i < FIRST_TIMES; i++) {
        pid_t pid = fork();
        int status;

        if (!pid)
            _exit(ask_first());
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

/* Whoever asks whose a pointer is must not start CUDA by it. */
START_TEST(without_cuda_nothing_is_known_and_nothing_loaded)
{
    ck_assert(!is_devices(host_a));
    fake_open();
    ck_assert(!is_devices(host_a));
    IS(NOT_INITIALIZED, cu.CtxGetCurrent(&(CUcontext){NULL}));
}
END_TEST

START_TEST(no_device_is_a_sentence)
{
    char why[512] = "";

    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    fake_open();
    ck_assert_int_eq(dev->usable(why, sizeof(why)), COLL_ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(why, "no GPU"));
    ck_assert_ptr_null(dev->alloc(64));
}
END_TEST

/* ---- other processes ------------------------------------------------------------------ */

static void owner(int talk)
{
    struct coll__cuda_memory memory;
    char *at;

    fake_start();
    at = dev->alloc(4096);
    put(at + 512, "what is here", 13);
    ck_assert_int_eq(coll__cuda_export(at + 512, &memory), COLL_OK);
    gpu_tell(talk, &memory, sizeof(memory));
    fake_hear(talk);
    get(got, at + 512, 13);
    fake_tell(talk, !strcmp(got, "what is next"));
    fake_hear(talk);
}

START_TEST(memory_of_another_process_is_read_and_written)
{
    struct coll__cuda_memory memory, mine;
    int talk = fake_talk(owner);
    void *at, *again;

    ck_assert_int_eq(gpu_hear(talk, &memory, sizeof(memory)), 0);
    fake_start();
    ck_assert_uint_eq(memory.offset, 512);
    ck_assert_uint_eq(memory.len, 4096);
    ck_assert_int_eq(coll__cuda_import(&memory, &at), COLL_OK);
    ck_assert_int_eq(coll__cuda_import(&memory, &again), COLL_OK);
    ck_assert_ptr_eq(at, again);
    get(got, at, 13);
    ck_assert_str_eq(got, "what is here");
    put(at, "what is next", 13);
    fake_tell(talk, 1);
    ck_assert(fake_hear(talk));
    ck_assert_int_eq(coll__cuda_unimport(&memory, again), COLL_OK);
    ck_assert_int_eq(coll__cuda_unimport(&memory, at), COLL_OK);
    ck_assert_int_eq(coll__cuda_unimport(&memory, at), COLL_ERR_INVALID);
    ck_assert_int_eq(coll__cuda_export(dev->alloc(64), &mine), COLL_OK);
    ck_assert_int_eq(coll__cuda_import(&mine, &at), COLL_ERR_INVALID);
    mine.offset = mine.len;
    ck_assert_int_eq(coll__cuda_import(&mine, &at), COLL_ERR_INVALID);
    ck_assert_int_eq(coll__cuda_export(host_a, &mine), COLL_ERR_INVALID);
}
END_TEST

static char *mapped(int fd)
{
    char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

/* The child's stream waits for ours, reads what we have written, and answers. */
static void answers(int talk)
{
    struct coll__work work = {.kind = WORK_COPY, .len = 13};
    char *segment = mapped(gpu_hear_fd(talk));
    struct coll__cuda_memory memory;
    void *at, *source;
    CUstream s;

    ck_assert_int_eq(gpu_hear(talk, &memory, sizeof(memory)), 0);
    fake_start();
    s = fake_stream();
    ck_assert_int_eq(coll__cuda_register(segment, 4096, &at), COLL_OK);
    ck_assert_int_eq(coll__cuda_import(&memory, &source), COLL_OK);
    work.src = source;
    work.dst = (char *)at + 2048;
    work.stream = s;
    ck_assert_int_eq(coll__cuda_wait_flag(s, at, 1), COLL_OK);
    ck_assert_int_eq(coll__cuda_enqueue(&work), COLL_OK);
    ck_assert_int_eq(coll__cuda_write_flag(s, (char *)at + 64, 1), COLL_OK);
    fake_tell(talk, 1);
    OK(cu.StreamSynchronize(s));
    ck_assert_int_eq(coll__cuda_unregister(segment), COLL_OK);
    ck_assert_int_eq(coll__cuda_unimport(&memory, source), COLL_OK);
    fake_tell(talk, 1);
}

/* No host waits for the other: the streams do. */
START_TEST(streams_of_two_processes_hand_over_by_flags)
{
    int talk = fake_talk(answers), fd = memfd_create("segment", MFD_CLOEXEC);
    struct coll__cuda_memory memory;
    char *segment, *at;
    void *seen;
    CUstream s;

    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(gpu_tell_fd(talk, fd), 0);
    segment = mapped(fd);
    fake_start();
    s = fake_stream();
    at = dev->alloc(64);
    ck_assert_int_eq(coll__cuda_export(at, &memory), COLL_OK);
    ck_assert_int_eq(gpu_tell(talk, &memory, sizeof(memory)), 0);
    ck_assert_int_eq(coll__cuda_register(segment, 4096, &seen), COLL_OK);
    ck_assert_int_eq(fake_hear(talk), 1); /* its stream waits */
    OK(cu.MemcpyHtoDAsync((CUdeviceptr)at, "what is here", 13, s));
    ck_assert_int_eq(coll__cuda_write_flag(s, seen, 1), COLL_OK);
    ck_assert_int_eq(coll__cuda_wait_flag(s, (char *)seen + 64, 1), COLL_OK);
    OK(cu.StreamSynchronize(s));
    ck_assert_str_eq(segment + 2048, "what is here");
    ck_assert_int_eq(fake_hear(talk), 1);
    ck_assert_int_eq(coll__cuda_unregister(segment), COLL_OK);
    ck_assert_int_eq(coll__cuda_unregister(segment), COLL_ERR_SYSTEM);
    ck_assert_int_eq(coll__cuda_wait_flag(s, seen, 1), COLL_ERR_INVALID);
    ck_assert_int_eq(coll__cuda_register(at, 64, &seen), COLL_ERR_INVALID);
}
END_TEST

START_TEST(where_ipc_is_forbidden_it_is_unsupported)
{
    struct coll__cuda_memory mine;

    setenv("FAKE_CUDA_IPC", "0", 1);
    fake_start();
    ck_assert_int_eq(coll__cuda_export(dev->alloc(64), &mine),
                     COLL_ERR_UNSUPPORTED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_device");
    TCase *tc = tcase_create("cuda");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, steps_give_what_the_host_gives, 0, COLL_N_TYPES);
    tcase_add_test(tc, what_has_no_kernel_is_unsupported_and_nothing_is_begun);
    tcase_add_test(tc, a_failed_device_says_so_when_it_is_asked);
    tcase_add_loop_test(tc,
                        a_step_that_cannot_begin_says_why_and_the_next_one_can,
                        0, (int)(sizeof(faults) / sizeof(*faults)));
    tcase_add_test(tc, a_step_costs_one_call_of_the_driver);
    tcase_add_test(tc, what_is_prepared_asks_for_no_kernel);
    tcase_add_test(tc, a_result_goes_to_a_second_place);
    tcase_add_test(tc, steps_can_be_captured);
    tcase_add_test(tc, work_goes_to_the_device_of_its_stream);
    tcase_add_test(tc, device_memory_is_known_and_nothing_else);
    tcase_add_test(tc, threads_may_ask_for_the_first_time_at_once);
    tcase_add_test(tc, without_cuda_nothing_is_known_and_nothing_loaded);
    tcase_add_test(tc, no_device_is_a_sentence);
    tcase_add_test(tc, memory_of_another_process_is_read_and_written);
    tcase_add_test(tc, streams_of_two_processes_hand_over_by_flags);
    tcase_add_test(tc, where_ipc_is_forbidden_it_is_unsupported);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
