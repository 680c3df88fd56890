/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_ipc.c - transports/cuda_ipc over the fake CUDA driver: what
 * transports/stream.h promises, for ranks as threads and as processes, on one device
 * and on several. */
#include "tests/support/element.h"
#include "tests/fake_cuda/counts.h"
#include "tests/support/patience.h"
#include "tests/support/stream_fixture.h"
#include "tests/support/suite.h"
#include "lib/device/cuda.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/reduce.h"
#include "lib/util/util.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the fake driver takes for a fat binary: nvcc need not be there. */
const unsigned char coll__cuda_image[] = {0x50, 0xed, 0x55, 0xba};

enum { SLOT = 2048, MESSAGES = 14, RUNS = 3 };

/* ---- many messages ------------------------------------------------------- */

/* Message i from one rank to another: its bytes, of whole elements of any type. */
static size_t len_of(int i, int from, int to)
{
    static const size_t lens[] = {16, 0, SLOT, 64, SLOT - 16, 96, 32, SLOT / 2};

    return lens[(size_t)(i + 3 * from + 5 * to) % ARRAY_LEN(lens)];
}

static enum coll_type type_of(int i) /* all but pairs */
{
    return (enum coll_type)(i % COLL_F32_I32);
}

/* An operation that the type has; even messages are stored. */
static enum coll_op op_of(int i)
{
    int op = i / 2 % COLL_N_OPS;

    while (!coll__cuda_reduce(type_of(i), (enum coll_op)op))
        op = (op + 1) % COLL_N_OPS;
    return (enum coll_op)op;
}

static void payload(char *at, int i, int from, int to)
{
    enum coll_type type = type_of(i);

    fill(type, at, SLOT / coll_type_size(type),
         (unsigned)(1 + i + 100 * from + 10000 * to));
}

/* Where message i of a peer lies in a buffer. */
static size_t place_of(int i, int peer)
{
    return ((size_t)peer * MESSAGES + (size_t)i) * SLOT;
}

struct buffers {
    CUdeviceptr out, in, with; /* [size][MESSAGES][SLOT] */
};

static void make_buffers(const struct world_rank *me, struct buffers *b)
{
    size_t len = (size_t)me->size * MESSAGES * SLOT;

    b->out = fake_memory(len);
    b->in = fake_memory(len);
    b->with = fake_memory(len);
}

/* Freeing waits for all streams of the context, those of other ranks too. */
static void free_buffers(const struct world_rank *me, const struct buffers *b)
{
    world_meet(me);
    OK(cu.MemFree(b->out));
    OK(cu.MemFree(b->in));
    OK(cu.MemFree(b->with));
}

static void fill_buffers(const struct world_rank *me, const struct buffers *b)
{
    static _Thread_local char bytes[SLOT];

    for (int r = 0; r < me->size; r++)
        for (int i = 0; i < MESSAGES; i++) {
            size_t at = place_of(i, r);

            payload(bytes, i, me->rank, r);
            fake_put(b->out + at, bytes, SLOT);
            payload(bytes, i, r, me->rank + 50);
            fake_put(b->in + at, bytes, SLOT);
            fake_put(b->with + at, bytes, SLOT);
        }
}

static int send_to(struct stream_rank *r, int peer, int n, CUdeviceptr src,
                   size_t len)
{
    struct coll__message to = {.peer = peer, .n = n};
    struct coll__work work = {.src = (void *)src, .len = len, .stream = r->s};

    return coll__stream_send(r->tp, &to, &work);
}

static int recv_from(struct stream_rank *rank, int peer, int n,
                     const struct coll__work *work)
{
    struct coll__message from = {.peer = peer, .n = n};

    return coll__stream_recv(rank->tp, &from, work);
}

static int recv_message(struct stream_rank *rank, const struct buffers *b,
                        int i, int peer)
{
    size_t at = place_of(i, peer);
    struct coll__work work = {.kind = i % 2 ? WORK_REDUCE : WORK_COPY,
                              .dst = (void *)(b->in + at),
                              .len = len_of(i, peer, rank->me->rank),
                              .type = type_of(i),
                              .op = op_of(i),
                              .stream = rank->s};

    if (i % 4 == 3)
        work.with = (void *)(b->with + at);
    return recv_from(rank, peer, i, &work);
}

/* Sends before receives, and these n_slots - 1 behind. */
static int put_all(struct stream_rank *rank, const struct buffers *b, int n)
{
    int p = rank->me->size, r = rank->me->rank, lag = rank->tp->n_slots - 1;
    int rc = COLL_OK;

    for (int i = 0; i < n + lag; i++) {
        for (int s = 1; s < p && i < n && rc == COLL_OK; s++) {
            int to = (r + s) % p;

            rc = send_to(rank, to, i, b->out + place_of(i, to),
                         len_of(i, r, to));
        }
        for (int s = 1; s < p && i >= lag && rc == COLL_OK; s++)
            rc = recv_message(rank, b, i - lag, (r - s + p) % p);
    }
    return rc;
}

/* Is what came what was sent, on top of what was there; and no byte behind it? */
static int is_right(const struct world_rank *me, const struct buffers *b, int i,
                    int peer)
{
    static _Thread_local char got[SLOT], sent[SLOT], wanted[SLOT];
    enum coll_type type = type_of(i);
    size_t len = len_of(i, peer, me->rank);

    OK(cu.MemcpyDtoH(got, b->in + place_of(i, peer), SLOT));
    payload(sent, i, peer, me->rank);
    payload(wanted, i, peer, me->rank + 50);
    if (i % 2 && len)
        coll__host_reduce(type, op_of(i))(wanted, wanted, sent, len);
    else
        memcpy(wanted, sent, len);
    return first_difference(type, got, wanted, SLOT / coll_type_size(type)) ==
           SLOT / coll_type_size(type);
}

static int exchange(struct world_rank *me)
{
    static const int n_messages[RUNS] = {1, MESSAGES, 5};
    struct stream_rank *rank = me->arg;
    struct buffers b;
    char why[256];

    for (int r = 0; r < me->size; r++)
        WORLD_CHECK(me,
                    (rank->tp->ops->reaches(rank->tp, r, why, sizeof(why)) ==
                     COLL_OK) == (r != me->rank));
    make_buffers(me, &b);
    for (int run = 0; run < RUNS; run++) {
        fill_buffers(me, &b);
        WORLD_CHECK(me, put_all(rank, &b, n_messages[run]) == COLL_OK);
        OK(cu.StreamSynchronize(rank->s));
        for (int r = 0; r < me->size; r++)
            for (int i = 0; i < n_messages[run] && r != me->rank; i++)
                WORLD_CHECK(me, is_right(me, &b, i, r));
    }
    free_buffers(me, &b);
    WORLD_CHECK(me, rank->tp->ops->state(rank->tp) == COLL_OK);
    return 0;
}

/* size, devices, processes, slots */
static const int scenes[][4] = {
    {2, 1, 0, 1}, {2, 1, 1, 1}, {2, 2, 0, 2}, {2, 2, 1, 2},
    {3, 1, 1, 2}, {3, 2, 0, 3}, {4, 4, 1, 2}, {5, 3, 0, 2},
    {8, 1, 0, 2}, {8, 2, 1, 1}, {8, 4, 0, 3}, {1, 1, 0, 2},
};

/* _i: the scene. */
START_TEST(messages_come_as_they_were_sent)
{
    struct stream_scene scene = {.size = scenes[_i][0],
                                 .n_devices = scenes[_i][1],
                                 .are_processes = scenes[_i][2],
                                 .n_slots = scenes[_i][3],
                                 .seed = (unsigned)_i + 1,
                                 .slot = SLOT,
                                 .body = exchange};

    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- what it costs ------------------------------------------------------- */

static int count(struct world_rank *me)
{
    void (*ask)(struct fake_counts *) =
        (__typeof__(ask))gpu_symbol("fake_cuda_counts");
    struct stream_rank *rank = me->arg;
    struct fake_counts before, after;
    struct coll__work work = {.kind = WORK_REDUCE, .len = 8, .type = COLL_I32};
    int peer = 1 - me->rank;
    CUdeviceptr at = fake_memory(64);
    struct coll_mem_stats held = {.size = sizeof(held)};

    work.dst = (void *)at;
    work.stream = rank->s;
    ask(&before);
    WORLD_CHECK(me, !send_to(rank, peer, 0, at + 32, 24));
    WORLD_CHECK(me, !recv_from(rank, peer, 0, &work));
    OK(cu.StreamSynchronize(rank->s));
    ask(&after);
    WORLD_CHECK(me, after.copies - before.copies == 1);
    WORLD_CHECK(me, after.copied - before.copied == 24);
    WORLD_CHECK(me, after.kernels - before.kernels == 1);
    WORLD_CHECK(me, after.kernel_len - before.kernel_len == 8);
    WORLD_CHECK(me, after.waits - before.waits == 2);
    WORLD_CHECK(me, after.writes - before.writes == 2);
    rank->tp->ops->bytes(rank->tp, &held);
    WORLD_CHECK(me, held.device == 4 * SLOT && held.mapped == 4 * SLOT);
    WORLD_CHECK(me, held.shared == 4096);
    return 0;
}

START_TEST(a_message_is_a_wait_a_copy_and_a_flag_at_each_end)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = 1,
                                 .seed = 1,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = count};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

static size_t free_memory(void)
{
    size_t left = 0, all;

    OK(cu.MemGetInfo(&left, &all));
    return left;
}

static int close_it(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;
    struct coll_mem_stats held = {.size = sizeof(held)};
    size_t before = free_memory();

    rank->tp->ops->bytes(rank->tp, &held);
    world_meet(me);
    stream_close(rank, 1);
    world_meet(me);
    coll__stream_cuda_ipc.reclaim(); /* what was let go of late */
    WORLD_CHECK(me, (held.device - 1) >> 20 == 63); /* 63 to 64 MiB */
    WORLD_CHECK(me, free_memory() >= before + held.device);
    return 0;
}

START_TEST(memory_is_bounded_and_given_back)
{
    struct stream_scene scene = {.size = 8,
                                 .n_devices = 8,
                                 .are_processes = 1,
                                 .n_slots = 2,
                                 .body = close_it};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- captured ------------------------------------------------------------ */

/* Each adds the other's number to its own, again and again; what is in the graph is
 * run outside of it, too, and has another number of messages. */
static int replay(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;
    int peer = 1 - me->rank, value = me->rank + 1, sum = 0, got = -1;
    struct coll__work work = {.kind = WORK_REDUCE,
                              .len = 4,
                              .type = COLL_U32,
                              .op = COLL_SUM,
                              .stream = rank->s};
    CUdeviceptr at = fake_memory(64);
    CUgraphExec exec;
    CUgraph graph;

    fake_put(at, &value, 4);
    fake_put(at + 32, &sum, 4);
    work.dst = (void *)(at + 32);
    OK(cu.StreamBeginCapture(rank->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int n = 0; n < 3; n++) {
        WORLD_CHECK(me, !send_to(rank, peer, n, at, 4));
        WORLD_CHECK(me, !recv_from(rank, peer, n, &work));
    }
    OK(cu.StreamEndCapture(rank->s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 100; i++) {
        OK(cu.GraphLaunch(exec, rank->s));
        WORLD_CHECK(me, !send_to(rank, peer, 0, at, 4));
        WORLD_CHECK(me, !recv_from(rank, peer, 0, &work));
    }
    OK(cu.StreamSynchronize(rank->s));
    OK(cu.MemcpyDtoH(&got, at + 32, 4));
    WORLD_CHECK(me, got == 400 * (peer + 1));
    OK(cu.GraphExecDestroy(exec));
    OK(cu.GraphDestroy(graph));
    return 0;
}

/* _i: threads, processes. */
START_TEST(what_is_captured_runs_again)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = _i,
                                 .seed = 3,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = replay};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- failures ------------------------------------------------------------ */

/* Rank 0 waits for what nobody sends, many times; and sends more than is taken. */
static int wait_for_nobody(struct stream_rank *rank, CUdeviceptr at)
{
    struct coll__work work = {
        .kind = WORK_COPY, .dst = (void *)at, .len = 8, .stream = rank->s};
    int rc = COLL_OK;

    for (int n = 0; n < 20 && rc == COLL_OK; n++) {
        rc = recv_from(rank, 1, n, &work);
        if (rc == COLL_OK)
            rc = send_to(rank, 1, n, at, 8);
    }
    return rc;
}

static int released(struct stream_rank *rank)
{
    const struct world_rank *me = rank->me;
    CUdeviceptr at = fake_memory(64);
    CUgraphExec exec;
    CUgraph graph;

    OK(cu.StreamBeginCapture(rank->s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    WORLD_CHECK(me, wait_for_nobody(rank, at) == COLL_OK);
    OK(cu.StreamEndCapture(rank->s, &graph));
    OK(cu.GraphInstantiateWithFlags(&exec, graph, 0));
    WORLD_CHECK(me, wait_for_nobody(rank, at) == COLL_OK);
    usleep(20000);
    IS(NOT_READY, cu.StreamQuery(rank->s));
    rank->tp->ops->release(rank->tp, COLL_ERR_PEER);
    OK(cu.StreamSynchronize(rank->s));
    WORLD_CHECK(me, rank->tp->ops->state(rank->tp) == COLL_ERR_PEER);
    WORLD_CHECK(me, wait_for_nobody(rank, at) == COLL_ERR_PEER);
    OK(cu.GraphLaunch(exec,
                      rank->s)); /* whoever launches it now is released, too */
    stream_close(rank, 0);
    OK(cu.StreamSynchronize(rank->s));
    return 0;
}

/* The other one has failed, is gone, or does not care. */
static int leave_alone(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;
    double until = coll__now() + patient(10);

    if (me->rank == 0)
        return released(rank);
    if (rank->scene->arg) {
        fflush(NULL);
        kill(getpid(), SIGKILL);
    }
    while (rank->tp->ops->state(rank->tp) == COLL_OK && coll__now() < until)
        usleep(1000);
    WORLD_CHECK(me, rank->tp->ops->state(rank->tp) == COLL_ERR_PEER);
    stream_close(rank, 0);
    return 0;
}

/* _i: threads, processes, a process that is killed. */
START_TEST(streams_that_wait_for_nobody_are_released)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = _i > 0,
                                 .seed = 3,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = leave_alone,
                                 .arg = _i > 1 ? "killed" : NULL};

    ck_assert_int_eq(stream_run(&scene), _i > 1);
}
END_TEST

static int close_while_waiting(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;

    if (me->rank == 0)
        WORLD_CHECK(me, wait_for_nobody(rank, fake_memory(64)) == COLL_OK);
    world_meet(me);
    stream_close(rank, 0);
    OK(cu.StreamSynchronize(rank->s));
    return 0;
}

START_TEST(what_still_waits_does_not_keep_a_rank_from_leaving)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 1,
                                 .are_processes = _i,
                                 .seed = 3,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = close_while_waiting};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* ---- out of reach -------------------------------------------------------- */

/* Do the ranks reach each other, and what do they say else? */
static int look(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;
    const char *words = rank->scene->arg;
    char why[256] = "";
    int rc = rank->tp->ops->reaches(rank->tp, !me->rank, why, sizeof(why));

    WORLD_CHECK(me, rc == (words ? COLL_ERR_PEER : COLL_OK));
    if (words && !strstr(why, words))
        fprintf(stderr, "why: %s\n", why);
    WORLD_CHECK(me, !words || strstr(why, words));
    return words ? 0 : exchange(me);
}

/* setting, devices, processes, words of the reason or NULL */
static const struct {
    const char *name, *value;
    int n_devices, are_processes;
    const char *words;
} reaches[] = {
    {"FAKE_CUDA_IPC", "0", 1, 1, "no CUDA IPC"},
    {"FAKE_CUDA_IPC", "0", 1, 0, NULL},
    {"FAKE_CUDA_PEERS", "0", 2, 1, "cannot use the memory of GPU"},
    {"FAKE_CUDA_PEERS", "0", 2, 0, "cannot use the memory of GPU"},
    {"FAKE_CUDA_PEERS", "0", 1, 1, NULL},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "1", 1, 0,
     "CUDA_DEVICE_MAX_CONNECTIONS=32"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "1", 1, 1, NULL},
    {"FAKE_CUDA_FAULT", "cuMemAlloc:1:2", 1, 1, "cuMemAlloc: out of memory"},
    {"FAKE_CUDA_FAULT", "cuMemHostRegister:1:304", 1, 1, "see ulimit -l"},
    {"FAKE_CUDA_FAULT", "cuStreamWriteValue32:1:801", 1, 1,
     "cuStreamWriteValue32: this driver"},
    {"FAKE_CUDA_FAULT", "cuStreamWaitValue32:1:801", 1, 1,
     "cuStreamWaitValue32: this driver"},
    {"FAKE_CUDA_FAULT", "cuStreamBatchMemOp:1:801", 1, 1,
     "cuStreamBatchMemOp: this driver"},
    {"FAKE_CUDA_FAULT", "cuIpcOpenMemHandle:1:1", 1, 1, "cuIpcOpenMemHandle"},
};

START_TEST(who_is_out_of_reach_and_why)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = reaches[_i].n_devices,
                                 .are_processes = reaches[_i].are_processes,
                                 .seed = 3,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = look,
                                 .arg = (void *)reaches[_i].words};

    setenv(reaches[_i].name, reaches[_i].value, 1);
    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

static int give_wrong_stream(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;
    CUstream own, others;

    own = fake_stream();
    fake_device(!me->rank);
    others = fake_stream();
    WORLD_CHECK(me, stream_takes(rank, own) == COLL_OK);
    EXPECT(me, stream_takes(rank, others), COLL_ERR_INVALID,
           "give it a stream of the GPU");
    OK(cu.CtxSetCurrent(rank->ctx));
    return 0;
}

START_TEST(a_stream_of_another_device_is_refused)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = 2,
                                 .are_processes = 1,
                                 .seed = 3,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = give_wrong_stream};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

/* It is one for all ranks of a context, so that one waits for the other there. */
static int give_legacy_stream(struct world_rank *me)
{
    struct stream_rank *rank = me->arg;
    void *legacy[] = {NULL, CU_STREAM_LEGACY};

    for (int i = 0; i < 2; i++)
        if (rank->scene->are_processes || rank->scene->n_devices > 1)
            WORLD_CHECK(me, !stream_takes(rank, legacy[i]));
        else
            EXPECT(me, stream_takes(rank, legacy[i]), COLL_ERR_INVALID,
                   "give each rank a stream of its own");
    return 0;
}

/* _i: threads of one context; of two; processes. */
START_TEST(ranks_of_a_context_do_not_share_the_legacy_stream)
{
    struct stream_scene scene = {.size = 2,
                                 .n_devices = _i == 1 ? 2 : 1,
                                 .are_processes = _i == 2,
                                 .seed = 3,
                                 .n_slots = 2,
                                 .slot = SLOT,
                                 .body = give_legacy_stream};

    ck_assert_int_eq(stream_run(&scene), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_ipc");
    TCase *tc = tcase_create("cuda_ipc");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, messages_come_as_they_were_sent, 0,
                        (int)ARRAY_LEN(scenes));
    tcase_add_test(tc, a_message_is_a_wait_a_copy_and_a_flag_at_each_end);
    tcase_add_test(tc, memory_is_bounded_and_given_back);
    tcase_add_loop_test(tc, what_is_captured_runs_again, 0, 2);
    tcase_add_loop_test(tc, streams_that_wait_for_nobody_are_released, 0, 3);
    tcase_add_loop_test(tc, what_still_waits_does_not_keep_a_rank_from_leaving,
                        0, 2);
    tcase_add_loop_test(tc, who_is_out_of_reach_and_why, 0,
                        (int)ARRAY_LEN(reaches));
    tcase_add_test(tc, a_stream_of_another_device_is_refused);
    tcase_add_loop_test(tc, ranks_of_a_context_do_not_share_the_legacy_stream,
                        0, 3);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
