/* SPDX-License-Identifier: BSD-3-Clause */
/* test_far.c - GPU buffers of several hosts, over the fake CUDA driver: from GPU to GPU
 * within each, and carried by the hosts between them.  Results are compared at random by
 * tests/gpu/ranks --hosts; here is what that cannot see. */
#include "tests/fake_cuda/counts.h"
#include "lib/util/util.h"
#include "tests/stream/far.h"
#include "tests/support/side_by_side.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what passes through a host --------------------------------------------------- */

static uint64_t crossed(void)
{
    void (*ask)(struct fake_counts *) =
        (__typeof__(ask))gpu_symbol("fake_cuda_counts");
    struct fake_counts counts;

    ask(&counts);
    return counts.crossed;
}

/* Bytes of this rank, there and back, in one call of so many bytes in all. */
static uint64_t cost(const struct device_rank *r, enum coll_collective what,
                     size_t bytes)
{
    struct device_call call = {
        .host = {
            .collective = what, .type = COLL_I32, .op = COLL_SUM, .root = 1}};
    int is_of_blocks = what == COLL_ALLGATHER || what == COLL_REDUCE_SCATTER;
    uint64_t before;

    call.count = bytes / 4 / (is_of_blocks ? (size_t)r->me->size : 1);
    ck_assert(!device_fill(r, &call));
    ck_assert(!device_do(&call.host, r->comm));
    before = crossed();
    ck_assert(!device_do(&call.device, r->comm));
    OK(cu.StreamSynchronize(r->stream));
    before = crossed() - before;
    ck_assert(device_same(&call));
    device_free(r, &call);
    return before;
}

static size_t pinned(const struct device_rank *r)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};

    ck_assert(!coll_comm_mem_stats(r->comm, &stats));
    return stats.pinned;
}

/* 2 hosts of 3: of an alltoall the blocks for the other host pass through the hosts'
 * memory, and no others.  Memory is pinned for that by the first call. */
static int pass(struct world_rank *me)
{
    struct device_rank r;

    WORLD_CHECK(me, !far_join(&r, me));
    WORLD_CHECK(me,
                strstr(device_said(), "GPU buffers go from GPU to GPU, "
                                      "through the hosts where these do not "
                                      "reach each other: rank 0's GPU does "
                                      "not reach rank 3's"));
    WORLD_CHECK(me, !pinned(&r));
    WORLD_CHECK(me, cost(&r, COLL_ALLTOALL, FAR_LEN) == 2 * 3 * FAR_LEN);
    WORLD_CHECK(me, pinned(&r));
    return device_leave(&r);
}

START_TEST(what_stays_on_a_host_does_not_pass_its_memory)
{
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    setenv("COLL_ALGO", "alltoall:direct", 1);
    ck_assert_int_eq(far_fork(6, 3, pass), 0);
}
END_TEST

/* 3 ranks on one host and 2 on the other; or as many, of which no host's GPUs reach each
 * other. */
static int pass_oddly(struct world_rank *me)
{
    struct device_rank r;

    WORLD_CHECK(me, !far_join(&r, me));
    for (int what = COLL_ALLREDUCE; what <= COLL_ALLTOALL; what++)
        if (what != COLL_BARRIER)
            cost(&r, (enum coll_collective)what, FAR_LEN);
    return device_leave(&r);
}

START_TEST(hosts_need_not_be_alike)
{
    if (_i)
        setenv("FAKE_CUDA_IPC", "0", 1);
    ck_assert_int_eq(far_fork(_i ? 4 : 5, _i ? 2 : 3, pass_oddly), 0);
}
END_TEST

/* ---- averages --------------------------------------------------------------------- */

#define F16_60000                                                              \
    0x7b53 /* of 4 ranks the average is exact, the sum too large */

/* Are all n numbers what went in? */
static int averaged(const void *at, size_t n)
{
    uint16_t *got = device_get(at, 2 * n);
    size_t right = 0;

    while (right < n && got[right] == F16_60000)
        right++;
    free(got);
    return right == n;
}

/* In place, and not; to a root on the other host. */
static int average_halves(struct world_rank *me)
{
    static uint16_t numbers[4 * FAR_COUNT];
    struct device_rank r;
    void *in, *out;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        numbers[i] = F16_60000;
    WORLD_CHECK(me, !far_join(&r, me));
    in = device_put(numbers, sizeof(numbers));
    out = (void *)fake_memory(sizeof(numbers));
    for (int root = 0; root < 4; root++) {
        WORLD_CHECK(me, !coll_reduce(in, out, FAR_COUNT, COLL_F16, COLL_AVG,
                                     root, r.comm, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        WORLD_CHECK(me, me->rank != root || averaged(out, FAR_COUNT));
    }
    WORLD_CHECK(me, !coll_reduce_scatter(in, out, FAR_COUNT, COLL_F16, COLL_AVG,
                                         r.comm, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me, averaged(out, FAR_COUNT) && averaged(in, 4 * FAR_COUNT));
    WORLD_CHECK(me, !coll_allreduce(in, out, 4 * FAR_COUNT, COLL_F16, COLL_AVG,
                                    r.comm, r.stream));
    WORLD_CHECK(me, !coll_allreduce(in, in, 4 * FAR_COUNT, COLL_F16, COLL_AVG,
                                    r.comm, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    WORLD_CHECK(me,
                averaged(out, 4 * FAR_COUNT) && averaged(in, 4 * FAR_COUNT));
    return device_leave(&r);
}

START_TEST(averages_of_16_bits_do_not_overflow)
{
    ck_assert_int_eq(far_fork(4, 2, average_halves), 0);
}
END_TEST

/* ---- side by side ------------------------------------------------------------------- */

/* Messages to oneself are nothing that the host carries. */
static int send_to_myself(const struct device_rank *r, void *at)
{
    WORLD_CHECK(r->me, !coll_group_start());
    WORLD_CHECK(r->me, !coll_send(at, FAR_COUNT, COLL_I32, r->me->rank, r->comm,
                                  r->stream));
    WORLD_CHECK(r->me, !coll_recv((char *)at + FAR_LEN, FAR_COUNT, COLL_I32,
                                  r->me->rank, r->comm, r->stream));
    WORLD_CHECK(r->me, !coll_group_end());
    return 0;
}

/* The stream of the rank that has a gate stands until then. */
static void open_gate(_Atomic uint32_t *gate)
{
    if (gate)
        atomic_store(gate, 1);
}

/* While rank 1's stream stands, messages of the others wait there, and host operations go
 * on.  What a stream has left to be carried is no operation that runs. */
static int go_on_beside(struct world_rank *me)
{
    _Atomic uint32_t *gate = NULL;
    struct device_rank r;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(2 * FAR_LEN);
    if (me->rank == 1) {
        gate = fake_words(1);
        fake_hold(r.stream, gate);
        WORLD_CHECK(me, !send_to_myself(&r, at));
    }
    WORLD_CHECK(me, !far_call(&r, at, 0));
    for (int i = 0; i < 1000; i++)
        WORLD_CHECK(me, !coll_barrier(r.comm, NULL));
    open_gate(gate);
    WORLD_CHECK(me, !far_call(&r, at, 1));
    OK(cu.StreamSynchronize(r.stream));
    return device_leave(&r);
}

START_TEST(host_operations_go_on_beside)
{
    ck_assert_int_eq(far_fork(4, 2, go_on_beside), 0);
}
END_TEST

/* On pinned memory of the host, too, calls return while the stream stands: no copy between
 * two such places is left to the driver, which would wait for it. */
static int stay_on_hosts(struct world_rank *me)
{
    _Atomic uint32_t *gate;
    struct device_rank r;
    uint32_t *in, *out;
    int p = me->size, to = (me->rank + 1) % p, from = (me->rank + p - 1) % p;

    WORLD_CHECK(me, !far_join(&r, me));
    gate = fake_words(1);
    in = (uint32_t *)fake_words(FAR_COUNT);
    out = (uint32_t *)fake_words(FAR_COUNT);
    for (int i = 0; i < FAR_COUNT; i++)
        in[i] = (uint32_t)(i + me->rank);
    fake_hold(r.stream, gate);
    WORLD_CHECK(me, !coll_allreduce(in, out, FAR_COUNT, COLL_U32, COLL_SUM,
                                    r.comm, r.stream));
    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me,
                !coll_send(out, 10, COLL_U32, me->rank, r.comm, r.stream) &&
                    !coll_recv(in, 10, COLL_U32, me->rank, r.comm, r.stream) &&
                    !coll_send(out, 10, COLL_U32, to, r.comm, r.stream) &&
                    !coll_recv(in + 10, 10, COLL_U32, from, r.comm, r.stream));
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, !coll_barrier(r.comm, NULL));
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(r.stream));
    for (int i = 0; i < FAR_COUNT; i++)
        WORLD_CHECK(me, out[i] == (uint32_t)(p * i + p * (p - 1) / 2) &&
                            (i >= 20 || in[i] == out[i % 10]));
    return device_leave(&r);
}

/* _i: on a host each, two of them on one, or all; these read each other's GPUs, or not. */
START_TEST(calls_on_pinned_memory_return)
{
    if (_i == 3)
        setenv("FAKE_CUDA_IPC", "0", 1);
    ck_assert_int_eq(
        far_fork(_i < 2 ? 2 + _i : 4, _i < 2 ? 1 + _i : 4, stay_on_hosts), 0);
}
END_TEST

/* The others divide the communicator while what their streams have sent waits for rank 1,
 * which comes when that has ended. */
static int divide_beside(struct world_rank *me)
{
    _Atomic uint32_t *gate = NULL;
    struct device_rank r;
    struct coll_comm *dup;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(FAR_LEN);
    if (me->rank == 1) {
        gate = fake_words(1);
        fake_hold(r.stream, gate);
    }
    WORLD_CHECK(me, !far_call(&r, at, 0));
    if (me->rank == 1) {
        WORLD_CHECK(me, world_await_through(me, me->size - 1, patient(20)));
        open_gate(gate);
        OK(cu.StreamSynchronize(r.stream));
    }
    world_through(me);
    WORLD_CHECK(me, !coll_comm_dup(r.comm, &dup));
    WORLD_CHECK(me, !coll_comm_destroy(dup));
    return device_leave(&r);
}

START_TEST(who_divides_a_communicator_carries_on)
{
    ck_assert_int_eq(far_fork(4, 2, divide_beside), 0);
}
END_TEST

/* Each graph is destroyed as soon as its launch has passed: what it sent still comes. */
static int forget_graphs(struct world_rank *me)
{
    struct device_rank r;
    uint32_t number = 0, *got;
    void *at;

    WORLD_CHECK(me, !far_join(&r, me));
    at = (void *)fake_memory(4);
    for (uint32_t i = 1; i <= 50; i++) {
        CUgraphExec exec;
        CUgraph graph;

        fake_put((CUdeviceptr)at, &i, me->rank ? 0 : 4);
        OK(cu.StreamBeginCapture(r.stream,
                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        WORLD_CHECK(me, me->rank
                            ? !coll_recv(at, 1, COLL_U32, 0, r.comm, r.stream)
                            : !coll_send(at, 1, COLL_U32, 1, r.comm, r.stream));
        OK(cu.StreamEndCapture(r.stream, &graph));
        OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
        OK(cu.GraphLaunch(exec, r.stream));
        OK(cu.StreamSynchronize(r.stream));
        OK(cu.GraphExecDestroy(exec));
        OK(cu.GraphDestroy(graph));
        got = device_get(at, 4);
        number = *got;
        free(got);
        WORLD_CHECK(me, number == i);
    }
    return device_leave(&r);
}

START_TEST(what_graphs_sent_comes_when_they_are_gone)
{
    ck_assert_int_eq(far_fork(2, 1, forget_graphs), 0);
}
END_TEST

/* ---- lives --------------------------------------------------------------------------- */

static int n_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += lseek(fd, 0, SEEK_CUR) >= 0 || fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Communicators of it have their own ways; none leaves anything behind, also where the
 * ranks end them in other orders. */
static int come_and_go(struct world_rank *me)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct device_rank r;
    struct coll_comm *half, *dup;
    int before = 0;

    WORLD_CHECK(me, !far_join(&r, me));
    for (int i = 0; i < 3; i++) {
        WORLD_CHECK(me, !coll_comm_dup(r.comm, &dup));
        WORLD_CHECK(me, !coll_comm_split(r.comm, me->rank % 2, 0, &half));
        cost(&(struct device_rank){me, dup, r.stream}, COLL_ALLREDUCE, FAR_LEN);
        WORLD_CHECK(me, !coll_comm_mem_stats(dup, &stats));
        WORLD_CHECK(me, stats.device > 0 && stats.pinned > 0);
        world_meet(me);
        WORLD_CHECK(me, !coll_comm_destroy(me->rank % 3 ? half : dup));
        WORLD_CHECK(me, !coll_comm_destroy(me->rank % 3 ? dup : half));
        WORLD_CHECK(me, !world_barrier(me, r.comm));
        WORLD_CHECK(me, i < 2 || n_fds() <= before + 8);
        before = n_fds();
    }
    return device_leave(&r);
}

/* In a ring each rank's messages pass through its host's memory, in a tree of hosts only
 * the leaders'; a busy machine measures prices that choose such a tree. */
START_TEST(communicators_come_and_go)
{
    setenv("COLL_ALGO", "allreduce:ring", 1);
    ck_assert_int_eq(far_fork(4, 2, come_and_go), 0);
}
END_TEST

/* A child frees its copy, and its parent goes on. */
static int have_a_child(struct world_rank *me)
{
    struct device_rank r;
    int status;
    pid_t pid;

    WORLD_CHECK(me, !far_join(&r, me));
    cost(&r, COLL_ALLREDUCE, FAR_LEN);
    pid = fork();
    if (!pid)
        _exit(coll_comm_destroy(r.comm) != COLL_OK);
    WORLD_CHECK(me, waitpid(pid, &status, 0) == pid && !status);
    cost(&r, COLL_ALLREDUCE, FAR_LEN);
    return device_leave(&r);
}

START_TEST(a_child_frees_its_copy)
{
    ck_assert_int_eq(far_fork(4, 2, have_a_child), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("far");
    TCase *tc = tcase_create("far");

    if (far_lacks_hosts())
        return 77;
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, what_stays_on_a_host_does_not_pass_its_memory);
    tcase_add_test(tc, averages_of_16_bits_do_not_overflow);
    tcase_add_loop_test(tc, hosts_need_not_be_alike, 0, 2);
    tcase_add_test(tc, host_operations_go_on_beside);
    tcase_add_loop_test(tc, calls_on_pinned_memory_return, 0, 4);
    tcase_add_test(tc, who_divides_a_communicator_carries_on);
    tcase_add_test(tc, what_graphs_sent_comes_when_they_are_gone);
    tcase_add_test(tc, communicators_come_and_go);
    tcase_add_test(tc, a_child_frees_its_copy);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
