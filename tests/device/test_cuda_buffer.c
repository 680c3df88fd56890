/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_buffer.c - GPU memory of coll_mem_alloc_device(), over the fake CUDA
 * driver: where it lies, what it is good for, who may free it and when. */
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNIT = 2 << 20, COUNT = 3000 };

static void ck_fails(int rc, int code, const char *words)
{
    ck_assert_int_eq(rc, code);
    ck_assert_msg(strstr(coll_last_error(), words), "%s", coll_last_error());
}

static size_t free_memory(void)
{
    size_t left = 0, all;

    OK(cu.MemGetInfo(&left, &all));
    return left;
}

static unsigned attribute(const void *ptr, CUpointer_attribute name)
{
    unsigned value = 77;

    OK(cu.PointerGetAttribute(&value, name, (CUdeviceptr)ptr));
    return value;
}

static CUcontext context_of(const void *ptr)
{
    CUcontext ctx = NULL;

    OK(cu.PointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT,
                              (CUdeviceptr)ptr));
    return ctx;
}

/* ---- where it lies ------------------------------------------------------------ */

START_TEST(it_is_memory_of_the_device_that_is_named)
{
    CUcontext ctx, current;
    void *ptr[3];

    setenv("FAKE_CUDA_DEVICES", "3", 1);
    ctx = fake_start();
    for (int d = 0; d < 3; d++) {
        ck_assert_int_eq(coll_mem_alloc_device(&ptr[d], 1000, d), COLL_OK);
        ck_assert_int_eq(attribute(ptr[d], CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
                         (unsigned)d);
        ck_assert_int_eq(attribute(ptr[d], CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
                         CU_MEMORYTYPE_DEVICE);
    }
    OK(cu.CtxGetCurrent(&current));
    ck_assert_ptr_eq(current, ctx);
    for (int d = 0; d < 3; d++)
        ck_assert_int_eq(coll_mem_free(ptr[d]), COLL_OK);
}
END_TEST

/* The program's own context is as good as the primary one. */
START_TEST(the_current_context_goes_first)
{
    void *ptr, *other;
    CUcontext own;

    fake_start();
    OK(cu.CtxCreate(&own, NULL, 0, 0));
    for (int number = -1; number < 1; number++) {
        ck_assert_int_eq(coll_mem_alloc_device(&ptr, 1, number), COLL_OK);
        ck_assert_ptr_eq(context_of(ptr), own);
        ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
    }
    OK(cu.CtxSetCurrent(NULL));
    ck_assert_int_eq(coll_mem_alloc_device(&other, 1, 0), COLL_OK);
    ck_assert_ptr_ne(context_of(other), own);
    ck_assert_int_eq(coll_mem_free(other), COLL_OK);
}
END_TEST

/* The primary context is kept as long as there is memory in it, and no longer. */
START_TEST(a_context_is_kept_for_it)
{
    unsigned flags;
    int is_active;
    void *ptr[2];

    fake_open();
    OK(cu.Init(0));
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(coll_mem_alloc_device(&ptr[i], UNIT, 0), COLL_OK);
    for (int i = 0; i < 2; i++) {
        OK(cu.DevicePrimaryCtxGetState(0, &flags, &is_active));
        ck_assert_int_eq(is_active, 1);
        ck_assert_int_eq(coll_mem_free(ptr[i]), COLL_OK);
    }
    OK(cu.DevicePrimaryCtxGetState(0, &flags, &is_active));
    ck_assert_int_eq(is_active, 0);
}
END_TEST

/* Handles give away whole units: each holds one buffer, or a part of one. */
START_TEST(nothing_else_lies_in_its_units)
{
    static const size_t lens[] = {0, 1, UNIT - 1, UNIT, UNIT + 1, 5 * UNIT};
    size_t before;
    char *at[6];

    fake_start();
    before = free_memory();
    for (int i = 0; i < 6; i++) {
        CUdeviceptr base;
        size_t len;

        ck_assert_int_eq(coll_mem_alloc_device((void **)&at[i], lens[i], -1),
                         COLL_OK);
        OK(cu.MemGetAddressRange(&base, &len, (CUdeviceptr)at[i]));
        ck_assert_ptr_eq((char *)base, at[i]);
        ck_assert_uint_ge(len, lens[i]);
        ck_assert_uint_eq(len % UNIT, 0);
        for (int j = 0; j < i; j++)
            ck_assert(at[i] != at[j]);
    }
    ck_assert_uint_eq(before - free_memory(), 11 * (size_t)UNIT);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(coll_mem_free(at[i]), COLL_OK);
    ck_assert_uint_eq(free_memory(), before);
}
END_TEST

/* Nothing of it is a node of the graph. */
START_TEST(a_capture_does_not_notice)
{
    CUstream s;
    CUgraph graph;
    size_t n = 7;
    void *ptr;

    fake_start();
    s = fake_stream();
    OK(cu.StreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ck_assert_int_eq(coll_mem_alloc_device(&ptr, 1, -1), COLL_OK);
    ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
    OK(cu.StreamEndCapture(s, &graph));
    OK(cu.GraphGetNodes(graph, NULL, &n));
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* ---- what is wrong ------------------------------------------------------------- */

START_TEST(what_is_wrong_is_said)
{
    void *ptr, *untouched = &ptr;
    CUdeviceptr other;

    setenv("FAKE_CUDA_DEVICES", "2", 1);
    setenv("FAKE_CUDA_MEMORY", "64", 1);
    fake_start();
    other = fake_memory(100);
    ck_fails(coll_mem_alloc_device(NULL, 1, 0), COLL_ERR_INVALID,
             "coll_mem_alloc_device: ptr is NULL");
    ck_fails(coll_mem_alloc_device(&untouched, 1, 2), COLL_ERR_INVALID,
             "there is no GPU 2, this process sees 2");
    ck_fails(coll_mem_alloc_device(&untouched, 1, -2), COLL_ERR_INVALID,
             "there is no GPU -2");
    ck_fails(coll_mem_alloc_device(&untouched, 65 << 20, 1), COLL_ERR_NOMEM,
             "on GPU 1: cuMemAlloc: ");
    ck_fails(coll_mem_alloc_device(&untouched, SIZE_MAX, 0), COLL_ERR_NOMEM,
             "see nvidia-smi");
    ck_assert_ptr_eq(untouched, &ptr);
    ck_fails(coll_mem_free((void *)other), COLL_ERR_INVALID, "not the start");
    ck_assert_int_eq(coll_mem_alloc_device(&ptr, 100, 0), COLL_OK);
    ck_fails(coll_mem_free((char *)ptr + 1), COLL_ERR_INVALID, "not the start");
    ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
    ck_fails(coll_mem_free(ptr), COLL_ERR_INVALID, "not the start");
    OK(cu.CtxSetCurrent(NULL));
    ck_fails(coll_mem_alloc_device(&untouched, 1, -1), COLL_ERR_INVALID,
             "call cudaSetDevice() before");
    ck_assert_ptr_eq(untouched, &ptr);
}
END_TEST

/* A driver that is there, and does not start. */
START_TEST(without_a_driver_there_is_none)
{
    void *ptr, *untouched = &ptr;

    setenv("FAKE_CUDA_FAULT", "cuInit:1+:100", 1);
    fake_open();
    ck_fails(coll_mem_alloc_device(&untouched, 1, 0), COLL_ERR_UNSUPPORTED,
             "finds no GPU");
    ck_assert_ptr_eq(untouched, &ptr);
}
END_TEST

/* What fails half way leaves nothing: the primary context goes, too. */
START_TEST(what_fails_leaves_nothing)
{
    void *ptr, *untouched = &ptr;
    unsigned flags;
    int is_active;

    setenv("FAKE_CUDA_FAULT", "cuMemAlloc:1:2,cuMemAlloc:2:2", 1);
    fake_open();
    OK(cu.Init(0));
    ck_fails(coll_mem_alloc_device(&untouched, 1, 0), COLL_ERR_NOMEM,
             "cannot allocate 1 bytes");
    OK(cu.DevicePrimaryCtxGetState(0, &flags, &is_active));
    ck_assert_int_eq(is_active, 0);
    ck_assert_ptr_eq(untouched, &ptr);
    ck_assert_int_eq(coll_mem_alloc_device(&ptr, 1, 0), COLL_OK);
    ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
}
END_TEST

/* A child has no driver: it forgets its copy, and the memory is its parent's. */
START_TEST(a_child_of_fork_forgets_it)
{
    int status = -1;
    void *ptr;
    pid_t pid;

    fake_start();
    ck_assert_int_eq(coll_mem_alloc_device(&ptr, 1, -1), COLL_OK);
    pid = fork();
    if (!pid) {
        void *other = NULL;
        int wrong = coll_mem_alloc_device(&other, 1, -1) == COLL_OK || other;

        wrong += coll_mem_free(ptr) != COLL_OK;
        _exit(wrong + (coll_mem_free(ptr) != COLL_ERR_INVALID));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    OK(cu.MemsetD8((CUdeviceptr)ptr, 1, 1));
    ck_assert_int_eq(coll_mem_free(ptr), COLL_OK);
}
END_TEST

/* ---- with other ranks ---------------------------------------------------------- */

static int is_sum(const int32_t *at, int size)
{
    int32_t *host = device_get(at, COUNT * sizeof(*host));
    int is_right = 1;

    for (int i = 0; i < COUNT; i++)
        is_right &= host[i] == size * i + size * (size - 1) / 2;
    free(host);
    return is_right;
}

static int add(const struct device_rank *r, int32_t *at)
{
    int32_t host[COUNT];

    for (int i = 0; i < COUNT; i++)
        host[i] = i + r->me->rank;
    fake_put((CUdeviceptr)at, host, sizeof(host));
    WORLD_CHECK(r->me, !coll_allreduce(at, at, COUNT, COLL_I32, COLL_SUM,
                                       r->comm, r->stream));
    OK(cu.StreamSynchronize(r->stream));
    WORLD_CHECK(r->me, is_sum(at, r->me->size));
    return 0;
}

static int gather_alone(void *arg, const void *in, void *out, size_t len)
{
    (void)arg;
    memcpy(out, in, len);
    return 0;
}

/* What leaves goes on whenever another communicator is destroyed. */
static int have_them_go_on(void)
{
    struct coll_oob alone = {
        .size = sizeof(alone), .nranks = 1, .allgather = gather_alone};
    struct coll_comm *comm;
    int rc = coll_comm_create_oob(&comm, &alone, NULL);

    return rc ? rc : coll_comm_destroy(comm);
}

/* It is registered with a communicator that has been destroyed, which may be under way
 * for a while.  What freeing it returns when that has come to its end. */
static int free_at_last(void *ptr)
{
    double until = coll__now() + patient(30);
    int rc;

    while ((rc = coll_mem_free(ptr)) != COLL_OK && coll__now() < until &&
           have_them_go_on() == COLL_OK)
        usleep(1000);
    return rc;
}

/* As what it is, registered, and by two communicators; who has it registered keeps it
 * from being freed. */
static int share(struct world_rank *me)
{
    size_t len = COUNT * sizeof(int32_t);
    struct coll_comm *second;
    struct device_rank r;
    void *ptr;

    WORLD_CHECK(me, !device_join(&r, me));
    WORLD_CHECK(me, !coll_comm_dup(r.comm, &second));
    WORLD_CHECK(me, !coll_mem_alloc_device(&ptr, len + 512, -1));
    WORLD_CHECK(me, !add(&r, ptr));
    WORLD_CHECK(me, !coll_mem_register(r.comm, ptr, len));
    WORLD_CHECK(me, !coll_mem_register(second, (char *)ptr + 512, len));
    WORLD_CHECK(me, !add(&r, ptr));
    EXPECT(me, coll_mem_free(ptr), COLL_ERR_INVALID,
           "call coll_mem_deregister() or coll_comm_destroy() before");
    WORLD_CHECK(me, !coll_mem_deregister(r.comm, ptr));
    EXPECT(me, coll_mem_free(ptr), COLL_ERR_INVALID, "is registered");
    WORLD_CHECK(me, !add(&r, ptr));
    WORLD_CHECK(me, !coll_comm_destroy(second)); /* that ends it as well */
    WORLD_CHECK(me, !free_at_last(ptr));
    EXPECT(me, coll_mem_free(ptr), COLL_ERR_INVALID, "not the start");
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(what_is_registered_is_not_freed)
{
    ck_assert_int_eq(device_fork(_i, share, NULL), 0);
}
END_TEST

/* A child frees its copies in any order: first the buffer, then the communicator that
 * has it registered. */
static int part(struct world_rank *me)
{
    size_t len = COUNT * sizeof(int32_t);
    int status = -1;
    struct device_rank r;
    void *ptr;
    pid_t pid;

    WORLD_CHECK(me, !device_join(&r, me));
    WORLD_CHECK(me, !coll_mem_alloc_device(&ptr, len, -1));
    WORLD_CHECK(me, !coll_mem_register(r.comm, ptr, len));
    pid = fork();
    if (!pid) {
        int wrong = coll_mem_free(ptr) != COLL_OK;

        wrong += coll_mem_free(ptr) != COLL_ERR_INVALID;
        _exit(wrong + (coll_comm_destroy(r.comm) != COLL_OK));
    }
    WORLD_CHECK(me, waitpid(pid, &status, 0) == pid && !status);
    WORLD_CHECK(me, !add(&r, ptr));
    EXPECT(me, coll_mem_free(ptr), COLL_ERR_INVALID, "is registered");
    WORLD_CHECK(me, !coll_mem_deregister(r.comm, ptr) && !coll_mem_free(ptr));
    return device_leave(&r);
}

START_TEST(a_child_of_fork_frees_what_is_registered)
{
    ck_assert_int_eq(device_fork(2, part, NULL), 0);
}
END_TEST

/* Over two devices, and one; and many that allocate and free at once. */
static int churn(struct world_rank *me)
{
    void *at[8] = {NULL};
    unsigned seed = (unsigned)me->rank + 1;

    WORLD_CHECK(me, !share(me));
    for (int i = 0; i < part_of(400); i++) {
        void **one = &at[(seed = seed * 1103515245u + 12345u) >> 16 & 7];

        if (*one)
            WORLD_CHECK(me, !coll_mem_free(*one));
        *one = NULL;
        WORLD_CHECK(me, i % 3 || !coll_mem_alloc_device(one, seed >> 12, -1));
    }
    for (int i = 0; i < 8; i++)
        WORLD_CHECK(me, !coll_mem_free(at[i]));
    return 0;
}

/* _i + 1: devices */
START_TEST(ranks_may_be_threads)
{
    setenv("FAKE_CUDA_DEVICES", _i ? "2" : "1", 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    ck_assert_int_eq(device_threads(3, churn, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_buffer");
    TCase *tc = tcase_create("cuda_buffer");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, it_is_memory_of_the_device_that_is_named);
    tcase_add_test(tc, the_current_context_goes_first);
    tcase_add_test(tc, a_context_is_kept_for_it);
    tcase_add_test(tc, nothing_else_lies_in_its_units);
    tcase_add_test(tc, a_capture_does_not_notice);
    tcase_add_test(tc, what_is_wrong_is_said);
    tcase_add_test(tc, without_a_driver_there_is_none);
    tcase_add_test(tc, what_fails_leaves_nothing);
    tcase_add_test(tc, a_child_of_fork_forgets_it);
    tcase_add_loop_test(tc, what_is_registered_is_not_freed, 1, 5);
    tcase_add_test(tc, a_child_of_fork_frees_what_is_registered);
    tcase_add_loop_test(tc, ranks_may_be_threads, 0, 2);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
