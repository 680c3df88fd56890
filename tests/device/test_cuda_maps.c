/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_maps.c - other ranks' GPU memory as it is mapped and stays so, over the
 * fake CUDA driver: each allocation once, the ones used last, and none that is not the
 * same any more; what others have mapped is not given back to the driver. */
#include "tests/support/side_by_side.h"
#include "tests/support/device_world.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 2 << 20, COUNT = 3000, LEN = 8 * COUNT * (int)sizeof(int32_t) };

/* Mappings of these ranks' processes by which their inboxes are reached. */
static size_t opened(const struct world_rank *me)
{
    return (size_t)me->size - 1;
}

/* From now on, no memory is mapped: `more` times each other rank's, and no more. */
static void forbid(const struct world_rank *me, int more)
{
    char text[64];

    snprintf(text, sizeof(text), "cuIpcOpenMemHandle:%zu+:1",
             opened(me) * (size_t)(1 + more) + 1);
    setenv("FAKE_CUDA_FAULT", text, 1);
}

static size_t mapped(const struct device_rank *r)
{
    struct coll_mem_stats stats = {.size = sizeof(stats)};

    return coll_comm_mem_stats(r->comm, &stats) ? 0 : stats.mapped;
}

static size_t free_memory(void)
{
    size_t left = 0, all;

    OK(cu.MemGetInfo(&left, &all));
    return left;
}

static char *buffer(void)
{
    void *at = NULL;

    return coll_mem_alloc_device(&at, LEN, -1) ? NULL : at;
}

/* What is free when all ranks have left a communicator.  If one let go late, as on a busy
 * machine, the others have kept its memory; to free something takes that back. */
static size_t free_memory_at_rest(void)
{
    coll_mem_free(buffer());
    return free_memory();
}

static int32_t value(int rank, int round, int i)
{
    return 1000 * round + 7 * rank + i;
}

/* An allgather from the first part of the buffer, which is registered, to the second;
 * `round` makes its numbers others than before. */
static int gather(const struct device_rank *r, char *at, int round)
{
    char *out = at + COUNT * sizeof(int32_t);
    int32_t host[COUNT], *all;
    int is_right = 1;

    for (int i = 0; i < COUNT; i++)
        host[i] = value(r->me->rank, round, i);
    OK(cu.StreamSynchronize(r->stream));
    fake_put((CUdeviceptr)at, host, sizeof(host));
    WORLD_CHECK(r->me,
                !coll_allgather(at, out, COUNT, COLL_I32, r->comm, r->stream));
    OK(cu.StreamSynchronize(r->stream));
    all = device_get(out, (size_t)r->me->size * sizeof(host));
    for (int i = 0; i < r->me->size * COUNT; i++)
        is_right &= all[i] == value(i / COUNT, round, i % COUNT);
    free(all);
    WORLD_CHECK(r->me, is_right);
    return 0;
}

/* Register it, use it, give it up. */
static int pass(const struct device_rank *r, char *at, int round)
{
    WORLD_CHECK(r->me, !coll_mem_register(r->comm, at, LEN));
    WORLD_CHECK(r->me, !gather(r, at, round));
    WORLD_CHECK(r->me, !coll_mem_deregister(r->comm, at));
    return 0;
}

/* ---- the ones used last ------------------------------------------------------- */

/* Two stay: the third one's coming closes the first, as the numbers of bytes say; and
 * that no more can be mapped shows which they are. */
static int evict(struct world_rank *me)
{
    size_t unit = opened(me) * UNIT, before;
    struct device_rank r;
    char *at[3];

    forbid(me, 3);
    WORLD_CHECK(me, !device_join(&r, me));
    before = mapped(&r);
    for (int i = 0; i < 3; i++) {
        at[i] = buffer();
        WORLD_CHECK(me, at[i] && !pass(&r, at[i], i));
        WORLD_CHECK(me, mapped(&r) == before + unit * (i ? 2 : 1));
    }
    for (int round = 3; round < 7; round++) /* without mapping them again */
        WORLD_CHECK(me, !pass(&r, at[round % 2 ? 1 : 2], round));
    WORLD_CHECK(me, mapped(&r) == before + 2 * unit);
    EXPECT(me, coll_mem_register(r.comm, at[0], LEN), COLL_ERR_INVALID,
           "registered memory: cuIpcOpenMemHandle");
    WORLD_CHECK(me, mapped(&r) == before + 2 * unit); /* as it was */
    WORLD_CHECK(me, !pass(&r, at[1], 7) && !pass(&r, at[2], 8));
    WORLD_CHECK(me, !device_leave(&r));
    for (int i = 0; i < 3; i++)
        WORLD_CHECK(me, !coll_mem_free(at[i]));
    return 0;
}

/* _i: ranks */
START_TEST(the_one_used_longest_ago_goes)
{
    coll__limit_assume(LIMIT_CUDA_MAPS, 2);
    ck_assert_int_eq(device_fork(_i, evict, NULL), 0);
}
END_TEST

/* As many as are registered stay, more than may be idle, and streams are at it while
 * others go. */
static int use(struct world_rank *me)
{
    size_t unit = opened(me) * UNIT, before;
    struct device_rank r;
    char *at[4];

    forbid(me, 4);
    WORLD_CHECK(me, !device_join(&r, me));
    before = mapped(&r);
    for (int i = 0; i < 4; i++)
        WORLD_CHECK(me, (at[i] = buffer()) &&
                            !coll_mem_register(r.comm, at[i], LEN));
    WORLD_CHECK(me, mapped(&r) == before + 4 * unit);
    for (int i = 0; i < 20; i++)
        WORLD_CHECK(me, !coll_allgather(at[0], at[0] + LEN / 2, 500, COLL_I32,
                                        r.comm, r.stream));
    for (int i = 3; i > 0; i--) {
        WORLD_CHECK(me, !coll_mem_deregister(r.comm, at[i]));
        WORLD_CHECK(me, !gather(&r, at[0], i));
    }
    WORLD_CHECK(me, mapped(&r) == before + 2 * unit);
    WORLD_CHECK(me, !coll_mem_deregister(r.comm, at[0]));
    WORLD_CHECK(me, mapped(&r) == before + unit && !pass(&r, at[0], 9));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(what_is_used_is_not_closed)
{
    coll__limit_assume(LIMIT_CUDA_MAPS, 1);
    ck_assert_int_eq(device_fork(_i, use, NULL), 0);
}
END_TEST

/* Ranks that want different numbers keep the least. */
static int keep_none(struct world_rank *me)
{
    struct device_rank r;
    size_t before, had;
    char *at;

    if (me->rank == me->size - 1)
        coll__limit_assume(LIMIT_CUDA_MAPS, 0);
    WORLD_CHECK(me, !device_join(&r, me));
    before = mapped(&r);
    world_meet(me);
    had = free_memory();
    world_meet(me);
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 1));
    WORLD_CHECK(me, mapped(&r) == before && !coll_mem_free(at));
    world_meet(me);
    WORLD_CHECK(me, free_memory() == had); /* all have given it back at once */
    world_meet(me);
    return device_leave(&r);
}

START_TEST(the_least_number_of_all_ranks_counts)
{
    ck_assert_int_eq(device_fork(3, keep_none, NULL), 0);
}
END_TEST

/* Parts of an allocation are in one mapping, which goes with the last of them. */
static int share(struct world_rank *me)
{
    size_t unit = opened(me) * UNIT, before;
    struct device_rank r;
    CUdeviceptr at;

    forbid(me, 1);
    WORLD_CHECK(me, !device_join(&r, me));
    before = mapped(&r);
    at = fake_memory(UNIT);
    for (int i = 0; i < 4; i++)
        WORLD_CHECK(
            me, !coll_mem_register(r.comm, (char *)at + i * (UNIT / 4), LEN));
    WORLD_CHECK(me, mapped(&r) == before + unit);
    for (int i = 3; i >= 0; i--) {
        WORLD_CHECK(me, !gather(&r, (char *)at + i * (UNIT / 4), i));
        WORLD_CHECK(me, mapped(&r) == before + unit);
        WORLD_CHECK(me,
                    !coll_mem_deregister(r.comm, (char *)at + i * (UNIT / 4)));
    }
    WORLD_CHECK(me, mapped(&r) == before); /* it may be freed at any time */
    OK(cu.MemFree(at));
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(an_allocation_is_mapped_once)
{
    ck_assert_int_eq(device_fork(_i, share, NULL), 0);
}
END_TEST

/* ---- what has changed ----------------------------------------------------------- */

/* Memory of the caller's own, freed and allocated again where it was, on all ranks or
 * some: it is never read by the mapping of what was there. */
static int reuse(struct world_rank *me)
{
    struct device_rank r;
    CUdeviceptr at, again;
    int n_same = 0;
    size_t before;

    WORLD_CHECK(me, !device_join(&r, me));
    before = mapped(&r);
    at = fake_memory(LEN);
    for (int round = 0; round < 12; round++) {
        WORLD_CHECK(me, !pass(&r, (char *)at, round));
        WORLD_CHECK(me, mapped(&r) == before);
        if ((round + me->rank) % 3 == 0)
            continue;
        OK(cu.MemFree(at));
        again = fake_memory(LEN);
        n_same += again == at;
        at = again;
    }
    WORLD_CHECK(me, n_same > 0);
    return device_leave(&r);
}

/* _i: ranks */
START_TEST(freed_and_allocated_again_is_other_memory)
{
    ck_assert_int_eq(device_fork(_i, reuse, NULL), 0);
}
END_TEST

/* The library's own, freed while the others have it mapped: it is kept until the next
 * exchange, and who allocates meanwhile and finds no room is told. */
static int lend(struct world_rank *me)
{
    struct device_rank r;
    char *at, *other;
    size_t had;

    forbid(me, 2);
    WORLD_CHECK(me, !device_join(&r, me));
    world_meet(me);
    had = free_memory();
    world_meet(me);
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 1) && !coll_mem_free(at));
    EXPECT(me, coll_mem_free(at), COLL_ERR_INVALID, "not the start");
    EXPECT(me, coll_mem_register(r.comm, at, LEN + UNIT), COLL_ERR_INVALID,
           "its allocation ends before it does");
    world_meet(me);
    WORLD_CHECK(me, free_memory() == had - UNIT);
    world_meet(me);
    EXPECT(me, coll_mem_alloc_device((void **)&other, had, -1), COLL_ERR_NOMEM,
           "2097152 bytes were freed while other ranks had them mapped");
    WORLD_CHECK(me, !coll_mem_alloc_device((void **)&other, UNIT + 1, -1));
    WORLD_CHECK(me, other != at && !pass(&r, other, 2)); /* the exchange */
    world_meet(me);
    WORLD_CHECK(me, free_memory() == had - 2 * UNIT);
    world_meet(me);
    WORLD_CHECK(me, !coll_mem_free(other) && !device_leave(&r));
    world_meet(me);
    WORLD_CHECK(me, free_memory_at_rest() >= had); /* and the end */
    world_meet(me);
    return 0;
}

/* _i: ranks */
START_TEST(what_is_lent_is_kept_until_it_comes_back)
{
    ck_assert_int_eq(device_fork(_i, lend, NULL), 0);
}
END_TEST

/* What the caller's streams still do there when it is freed is done there, and not to
 * what is allocated next. */
static int write_late(struct world_rank *me)
{
    _Atomic uint32_t *gate;
    struct device_rank r;
    unsigned char *bytes;
    CUstream late;
    char *at, *next;

    WORLD_CHECK(me, !device_join(&r, me));
    late = fake_stream();
    gate = fake_words(1);
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 1));
    fake_hold(late, gate);
    OK(cu.MemsetD8Async((CUdeviceptr)at, 0xee, LEN, late));
    WORLD_CHECK(me, !coll_mem_free(at) && (next = buffer()));
    OK(cu.MemsetD8Async((CUdeviceptr)next, 1, LEN, r.stream));
    OK(cu.StreamSynchronize(r.stream));
    atomic_store(gate, 1);
    OK(cu.StreamSynchronize(late));
    bytes = device_get(next, LEN);
    for (int i = 0; i < LEN; i++)
        WORLD_CHECK(me, bytes[i] == 1);
    free(bytes);
    WORLD_CHECK(me, !device_leave(&r) && !coll_mem_free(next));
    return 0;
}

START_TEST(what_was_freed_is_not_handed_out_while_it_is_used)
{
    ck_assert_int_eq(device_fork(2, write_late, NULL), 0);
}
END_TEST

/* The communicator fails, and rank 0 leaves it long before the others, who have its
 * memory mapped: it comes back when they have let go. */
static int leave_early(struct world_rank *me)
{
    struct device_rank r;
    size_t had;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me) && !device_leave(&r));
    world_meet(me);
    had = free_memory_at_rest();
    world_meet(me);
    WORLD_CHECK(me, !device_join(&r, me));
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 1));
    world_meet(me);
    if (!me->rank) {
        coll_comm_abort(r.comm, "enough");
        coll_comm_destroy(r.comm);
    }
    world_meet(me);
    WORLD_CHECK(me, free_memory() < had);
    world_meet(me);
    if (me->rank)
        coll_comm_destroy(r.comm);
    world_meet(me);
    WORLD_CHECK(me, !coll_mem_free(at));
    world_meet(me);
    WORLD_CHECK(me, free_memory() == had);
    world_meet(me);
    return 0;
}

/* _i: ranks */
START_TEST(what_others_let_go_of_late_comes_back)
{
    ck_assert_int_eq(device_fork(_i, leave_early, NULL), 0);
}
END_TEST

/* To take memory back may wait for streams: so it is done where there is none left,
 * and not before.  Rank 0 has something to be taken back. */
static int take_back(struct world_rank *me, size_t had)
{
    size_t left = free_memory();
    void *rest = NULL;
    char *at;

    WORLD_CHECK(me, left <= had - UNIT && (at = buffer()));
    WORLD_CHECK(me, free_memory() == left - UNIT);
    WORLD_CHECK(me, !coll_mem_alloc_device(&rest, left, -1));
    WORLD_CHECK(me, !coll_mem_free(rest) && !coll_mem_free(at));
    WORLD_CHECK(me, free_memory() == had);
    return 0;
}

static int allocate_late(struct world_rank *me)
{
    struct device_rank r;
    size_t had;

    WORLD_CHECK(me, !device_join(&r, me) && !device_leave(&r));
    world_meet(me);
    had = free_memory_at_rest();
    world_meet(me);
    WORLD_CHECK(me, !device_join(&r, me));
    world_meet(me);
    if (!me->rank) {
        coll_comm_abort(r.comm, "enough");
        coll_comm_destroy(r.comm);
    }
    world_meet(me);
    if (me->rank)
        coll_comm_destroy(r.comm);
    world_meet(me);
    WORLD_CHECK(me, me->rank || !take_back(me, had));
    world_meet(me);
    return 0;
}

/* _i: ranks */
START_TEST(memory_is_taken_back_where_there_is_none_left)
{
    ck_assert_int_eq(device_fork(_i, allocate_late, NULL), 0);
}
END_TEST

/* Two communicators have it mapped: the second one to let go gives it back. */
static int lend_twice(struct world_rank *me)
{
    struct coll_comm *first;
    struct device_rank r;
    size_t had;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    first = r.comm;
    WORLD_CHECK(me, !coll_comm_dup(first, &r.comm));
    world_meet(me);
    had = free_memory();
    world_meet(me);
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 1));
    WORLD_CHECK(me, !coll_mem_register(first, at, LEN));
    WORLD_CHECK(me, !coll_mem_deregister(first, at) && !coll_mem_free(at));
    WORLD_CHECK(me, !coll_comm_destroy(first));
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 2) && !coll_mem_free(at));
    WORLD_CHECK(me, !device_leave(&r));
    world_meet(me);
    WORLD_CHECK(me, free_memory_at_rest() >= had);
    world_meet(me);
    return 0;
}

START_TEST(two_communicators_may_have_it)
{
    ck_assert_int_eq(device_fork(3, lend_twice, NULL), 0);
}
END_TEST

/* Ranks that are threads map nothing, and lend nothing. */
static int hold(struct world_rank *me)
{
    struct device_rank r;
    size_t had;
    char *at;

    WORLD_CHECK(me, !device_join(&r, me));
    world_meet(me);
    had = free_memory();
    world_meet(me);
    WORLD_CHECK(me, (at = buffer()) && !pass(&r, at, 1) && !mapped(&r));
    WORLD_CHECK(me, !coll_mem_free(at));
    world_meet(me);
    WORLD_CHECK(me, free_memory() == had);
    world_meet(me);
    return device_leave(&r);
}

START_TEST(threads_lend_nothing)
{
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, 0);
    ck_assert_int_eq(device_threads(3, hold, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_maps");
    TCase *tc = tcase_create("cuda_maps");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, the_one_used_longest_ago_goes, 2, 5);
    tcase_add_loop_test(tc, what_is_used_is_not_closed, 2, 5);
    tcase_add_test(tc, the_least_number_of_all_ranks_counts);
    tcase_add_loop_test(tc, an_allocation_is_mapped_once, 2, 5);
    tcase_add_loop_test(tc, freed_and_allocated_again_is_other_memory, 2, 5);
    tcase_add_loop_test(tc, what_is_lent_is_kept_until_it_comes_back, 2, 5);
    tcase_add_test(tc, what_was_freed_is_not_handed_out_while_it_is_used);
    tcase_add_loop_test(tc, what_others_let_go_of_late_comes_back, 2, 4);
    tcase_add_loop_test(tc, memory_is_taken_back_where_there_is_none_left, 2,
                        4);
    tcase_add_test(tc, two_communicators_may_have_it);
    tcase_add_test(tc, threads_lend_nothing);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
