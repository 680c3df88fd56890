/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_hot.c - what a repeated call for a stream costs its caller: the calls of the
 * driver that driver-calls.md tells, over the fake one, and nothing else. */
#include "tests/fake_cuda/counts.h"
#include "tests/support/files.h"
#include "tests/support/hot.h"
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/run/run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, MOST = 1 << 20, ROUNDS = 20 };

/* How the GPUs of the ranks reach each other: by kernels or streams, or not. */
enum way { KERNEL, STREAM, HOST };

struct cell {
    const char *what;
    enum coll_collective collective;
    const char *algo;
    enum way way;
    size_t len;
    int messages; /* that a rank sends and receives; of a kernel none */
    int is_apart; /* in and out are two buffers */
};

static const struct cell cells[] = {
    {"allreduce", COLL_ALLREDUCE, "recursive_doubling", KERNEL, 8, 0, 0},
    {"allreduce", COLL_ALLREDUCE, "recursive_doubling", KERNEL, 8, 0, 1},
    {"barrier", COLL_BARRIER, NULL, KERNEL, 0, 0, 0},
    {"allreduce", COLL_ALLREDUCE, "ring", STREAM, 64 << 10, 12, 0},
    {"allgather", COLL_ALLGATHER, "ring", STREAM, 16 << 10, 6, 1},
    {"alltoall", COLL_ALLTOALL, "direct", STREAM, 16 << 10, 6, 1},
    {"allreduce", COLL_ALLREDUCE, "ring", HOST, 64 << 10, 12, 0},
    {"alltoall", COLL_ALLTOALL, "direct", HOST, 16 << 10, 6, 1},
};

/* What a call costs whatever it does, in calls of the driver: the stream's context
 * and its capture, two buffers, the context entered and left, the number of the run; and
 * where the host carries, that it begins. */
#define CALL_MOST 8
#define BEGIN_MOST 2

struct cost {
    struct hot hot;
    struct fake_calls calls;
};

static struct cost cost_now(void)
{
    static void (*ask)(struct fake_calls *);
    struct cost cost = {.hot = hot_now()};

    if (!ask)
        ask = (__typeof__(ask))gpu_symbol("fake_cuda_calls");
    ask(&cost.calls);
    return cost;
}

/* Call it; what that was. */
static int call(const struct device_rank *r, const struct cell *cell, char *at,
                struct cost *cost)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = cell->collective,
                             .type = COLL_I32,
                             .op = COLL_SUM,
                             .in = cell->len ? at : NULL,
                             .out =
                                 cell->len ? at + cell->is_apart * MOST : NULL,
                             .count = cell->len / 4,
                             .algo = cell->algo,
                             .stream = r->stream};
    struct cost before = cost_now(), after;
    int rc = coll__run_call(r->comm, &args);

    after = cost_now();
    cost->hot.allocations = after.hot.allocations - before.hot.allocations;
    cost->hot.locks = after.hot.locks - before.hot.locks;
    cost->hot.system_calls = after.hot.system_calls - before.hot.system_calls;
    cost->calls.all = after.calls.all - before.calls.all;
    cost->calls.pointers = after.calls.pointers - before.calls.pointers;
    return rc;
}

/* A call that comes after its stream has ended all earlier ones has to wake the thread
 * that carries: that is one lock and a system call or two. */
static int costs_little(struct world_rank *me, const struct cell *cell,
                        const struct cost *cost)
{
    int n = (cell->way == HOST ? 4 : 3) * cell->messages;
    int least = cell->len ? 1 + cell->is_apart : 2;

    if (cell->way == KERNEL)
        n = 1;
    n += CALL_MOST + (cell->way == HOST ? BEGIN_MOST : 0);
    WORLD_CHECK(me, cost->calls.all <= (uint64_t)n);
    WORLD_CHECK(me, cost->calls.pointers == (uint64_t)least);
    WORLD_CHECK(me, !cost->hot.allocations);
    WORLD_CHECK(me, cost->hot.locks <= (cell->way == HOST));
    return 0;
}

/* The cell's line of the table. */
static void describe(const struct cell *cell, const struct cost *cost,
                     char line[128])
{
    static const char *const ways[] = {"one kernel", "streams", "the host"};

    snprintf(line, 128, "| %s%s | %zu | %s | %d | %d | %d |", cell->what,
             cell->is_apart || !cell->len ? "" : ", in place", cell->len,
             ways[cell->way], cell->messages, (int)cost->calls.all,
             (int)cost->calls.pointers);
}

static int repeat(struct world_rank *me)
{
    const struct cell *cell = me->arg;
    struct cost cost = {.calls.all = 0};
    long system_calls =
        LONG_MAX; /* the least: a call in whose way a thread is yields */
    struct device_rank r;
    char line[128], *at;

    WORLD_CHECK(me, !device_join(&r, me));
    hot_leave_out("libcuda.so");
    at = (char *)fake_memory(2 * MOST);
    for (int i = 0; i < ROUNDS; i++) {
        world_meet(me);
        WORLD_CHECK(me, !call(&r, cell, at, &cost));
        if (i > 1 && costs_little(me, cell, &cost))
            return 1;
        if (i > 1 && cost.hot.system_calls < system_calls)
            system_calls = cost.hot.system_calls;
        OK(cu.StreamSynchronize(r.stream));
    }
    WORLD_CHECK(me, system_calls <= 2 * (cell->way == HOST));
    describe(cell, &cost, line);
    if (!me->rank && !fixture_has_line("stream", "driver-calls.md", line)) {
        fprintf(stderr, "not in driver-calls.md:\n%s\n", line);
        return 1;
    }
    return device_leave(&r);
}

static void take(enum way way)
{
    setenv("COLL_CUDA_ENGINE", way == KERNEL ? "kernel" : "stream", 1);
    setenv("FAKE_CUDA_DEVICES", "4", 1); /* as many as ranks */
    setenv("FAKE_CUDA_IPC", way == HOST ? "0" : "1", 1);
}

/* _i: the cell */
START_TEST(a_repeated_call_costs_its_driver_calls)
{
    struct cell cell = cells[_i];

    take(cell.way);
    ck_assert_int_eq(device_fork(RANKS, repeat, &cell), 0);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (!HOT_COUNTS) {
        puts("skipped: a sanitizer has malloc for itself");
        return 77;
    }
    suite = suite_create("cuda_hot");
    tc = tcase_create("cuda_hot");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_repeated_call_costs_its_driver_calls, 0,
                        sizeof(cells) / sizeof(*cells));
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
