/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_mixed.c - ranks of which two have GPUs that do not reach each other, over
 * the fake CUDA driver: these use memory of the host, by streams and by kernels, and
 * rings go round them. */
#include "tests/stream/registered.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 3000 };

static char said[1024]; /* by the log */

static void hear(enum coll_log_level level, const char *part, const char *line,
                 void *arg)
{
    size_t n = strlen(said);

    (void)level, (void)part, (void)arg;
    if (strstr(line, "GPU buffers") || strstr(line, "through host memory") ||
        strstr(line, "GPUs: ring"))
        snprintf(said + n, sizeof(said) - n, "%s\n", line);
}

/* The GPUs of ranks 0 and 1 are apart; all others are one hop from each other. */
static void set_scene(int by_kernel)
{
    setenv("FAKE_CUDA_DEVICES", "4", 1);
    setenv("FAKE_CUDA_APART", "0-1", 1);
    setenv("FAKE_CUDA_NVLINK", "1", 1);
    setenv("FAKE_CUDA_DELAY", "10", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, by_kernel ? 1 << 30 : 0);
    registered_count = COUNT;
    patient_timeout(60);
}

static int leave(struct registered *k)
{
    struct world_rank *me = k->r.me;

    WORLD_CHECK(me, !registered_leave(k));
    free(k);
    return 0;
}

/* By streams; what the ranks log is in `said`. */
static void run_heard(int (*body)(struct world_rank *))
{
    set_scene(0);
    setenv("COLL_LOG", "info", 1);
    ck_assert_int_eq(world_fork(RANKS, body, NULL, patient(60)), 0);
}

/* ---- results ------------------------------------------------------------------ */

static int use(struct world_rank *me)
{
    struct registered *k = registered_new();
    uint64_t moved;

    WORLD_CHECK(me, k && !registered_join(k, me));
    for (int i = 0; i < 4 * REGISTERED_KINDS; i++)
        WORLD_CHECK(me,
                    !registered_call(k, registered_kinds[i % REGISTERED_KINDS],
                                     k->in, k->out, i, &moved));
    return leave(k);
}

/* _i: by streams or kernels, and of processes or threads; by algorithms whose messages
 * go between any two ranks, and the library's choice */
START_TEST(all_ranks_get_what_they_should)
{
    static const char *const algos[] = {"", "direct", "ring"};

    for (int a = 0; a < 3; a++) {
        set_scene(_i % 2);
        setenv("COLL_ALGO", algos[a], 1);
        if (_i / 2)
            setenv("COLL_CUDA_ENGINE", _i % 2 ? "kernel" : "stream", 1);
        if (!*algos[a])
            unsetenv("COLL_ALGO");
        ck_assert_int_eq(world_fork(RANKS, use, NULL, patient(60)), 0);
    }
}
END_TEST

START_TEST(ranks_may_be_threads)
{
    set_scene(_i);
    ck_assert_int_eq(world_threads(RANKS, use, NULL, patient(60)), 0);
}
END_TEST

/* ---- how it is done --------------------------------------------------------------- */

/* No host takes part; only who is apart goes by its memory, and no ring between them. */
static int listen(struct world_rank *me)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};
    struct registered *k = registered_new();
    int is_apart = me->rank < 2;
    const char *ring;

    coll_set_log_handler(hear, NULL);
    WORLD_CHECK(me, k && !registered_join(k, me));
    WORLD_CHECK(me, strstr(said, "go from GPU to GPU"));
    WORLD_CHECK(me, is_apart == !!strstr(said, me->rank ? "rank 0 is reached"
                                                        : "rank 1 is reached"));
    ring = strstr(said, "GPUs: ring");
    WORLD_CHECK(me, !me->rank == !!ring);
    if (ring) {
        WORLD_CHECK(me, !strstr(ring, " 0 1") && !strstr(ring, " 1 0"));
        WORLD_CHECK(me, strncmp(ring, "GPUs: ring 0 2 3 1", 18) &&
                            strncmp(ring, "GPUs: ring 0 3 2 1", 18));
    }
    WORLD_CHECK(me, !coll_comm_mem_stats(k->r.comm, &stats));
    WORLD_CHECK(me, stats.device > 0);
    EXPECT(me, coll_mem_register(k->r.comm, k->in, 4096), COLL_ERR_UNSUPPORTED,
           "'s GPU cannot read there: GPU ");
    return leave(k);
}

START_TEST(who_is_apart_is_told_and_no_ring_joins_them) { run_heard(listen); }
END_TEST

/* From rank 0 to rank 1 and back, and in a graph, which takes no detour by the host. */
static int replay(struct world_rank *me)
{
    struct registered *k = registered_new();
    int other = 1 - me->rank;
    struct coll_args sum;
    CUgraphExec exec;
    CUgraph graph;

    WORLD_CHECK(me, k && !registered_join(k, me));
    sum = registered_args(k, COLL_ALLREDUCE, COUNT, k->in, k->out);
    OK(cu.StreamBeginCapture(k->r.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    WORLD_CHECK(me, !device_do(&sum, k->r.comm));
    if (me->rank < 2) {
        WORLD_CHECK(me, !coll_group_start());
        WORLD_CHECK(me, !coll_send(k->in, COUNT, COLL_I32, other, k->r.comm,
                                   k->r.stream));
        WORLD_CHECK(me, !coll_recv(k->out_2, COUNT, COLL_I32, other, k->r.comm,
                                   k->r.stream));
        WORLD_CHECK(me, !coll_group_end());
    }
    OK(cu.StreamEndCapture(k->r.stream, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 0; round < 30; round++) {
        registered_fill(k, k->in, round);
        OK(cu.GraphLaunch(exec, k->r.stream));
        WORLD_CHECK(me, registered_is_right(k, COLL_ALLREDUCE, k->out, round));
        OK(cu.MemcpyDtoH(k->host, (CUdeviceptr)k->out_2, 4 * COUNT));
        for (int i = 0; i < COUNT && me->rank < 2; i++)
            WORLD_CHECK(me, k->host[i] == registered_value(other, round, i));
    }
    OK(cu.GraphExecDestroy(exec));
    return leave(k);
}

START_TEST(graphs_and_messages_go_that_way)
{
    set_scene(_i);
    ck_assert_int_eq(world_fork(RANKS, replay, NULL, patient(60)), 0);
}
END_TEST

/* Rank 1, which is apart, has called once less, and is killed, or aborts. */
static int fall_out(struct world_rank *me)
{
    int is_killed = me->arg != NULL;
    struct registered *k = registered_new();
    struct coll_args args;

    WORLD_CHECK(me, k && !registered_join(k, me));
    args = registered_args(k, COLL_ALLTOALL, COUNT, k->in, k->out);
    for (int i = 0; i < 3 + (me->rank != 1); i++)
        WORLD_CHECK(me, !device_do(&args, k->r.comm));
    if (me->rank == 1)
        OK(cu.StreamSynchronize(k->r.stream));
    world_meet(me);
    if (me->rank == 1 && is_killed)
        raise(SIGKILL);
    if (me->rank == 1)
        coll_comm_abort(k->r.comm, "enough");
    OK(cu.StreamSynchronize(k->r.stream));
    WORLD_CHECK(me, world_await_failure(k->r.comm, patient(20)) ==
                        (is_killed ? COLL_ERR_PEER : COLL_ERR_ABORTED));
    coll_comm_destroy(k->r.comm);
    free(k);
    return 0;
}

/* _i: killed or not; by streams and kernels */
START_TEST(streams_go_on_when_a_rank_fails)
{
    int is_killed = _i % 2;

    set_scene(_i / 2);
    ck_assert_int_eq(
        world_fork(RANKS, fall_out, is_killed ? "" : NULL, patient(60)),
        is_killed);
}
END_TEST

/* Which memory cannot be pinned: behind that of the flags comes that of the kernels, and
 * then what ranks share. */
static const char *fault;

/* Rank 1 cannot have it: the host carries what is between it and others, as the log
 * says. */
static int do_without(struct world_rank *me)
{
    struct registered *k = registered_new();
    uint64_t moved;

    if (me->rank == 1)
        setenv("FAKE_CUDA_FAULT", fault, 1);
    coll_set_log_handler(hear, NULL);
    WORLD_CHECK(me, k && !registered_join(k, me));
    WORLD_CHECK(me, strstr(said, "through the hosts where these do not reach"));
    WORLD_CHECK(me, !strstr(said, "is reached through host memory"));
    WORLD_CHECK(me,
                !registered_call(k, COLL_ALLREDUCE, k->in, k->out, 1, &moved));
    return leave(k);
}

START_TEST(without_such_memory_the_host_carries)
{
    fault = _i ? "cuMemHostRegister:3:1" : "cuMemHostRegister:2:1";
    run_heard(do_without);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_mixed");
    TCase *tc = tcase_create("cuda_mixed");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, all_ranks_get_what_they_should, 0, 4);
    tcase_add_loop_test(tc, ranks_may_be_threads, 0, 2);
    tcase_add_test(tc, who_is_apart_is_told_and_no_ring_joins_them);
    tcase_add_loop_test(tc, graphs_and_messages_go_that_way, 0, 2);
    tcase_add_loop_test(tc, streams_go_on_when_a_rank_fails, 0, 4);
    tcase_add_loop_test(tc, without_such_memory_the_host_carries, 0, 2);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
