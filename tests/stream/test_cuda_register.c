/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cuda_register.c - registered GPU buffers, over the fake CUDA driver: they give
 * what others give, with fewer copies; what is wrong on one rank all are told; and what
 * happens where one rank passes others. */
#include "tests/stream/registered.h"
#include "tests/support/suite.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { AT = 256 };

/* What was not read in place was copied twice: by as much as this rank sends from there
 * is less moved.  Several rounds, since what is read too late has changed by then. */
static int use(struct world_rank *me)
{
    struct registered *k = registered_new();
    int is_counted = !me->arg;
    uint64_t part = registered_count * sizeof(int32_t), p = (uint64_t)me->size;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    for (int i = 0; i < 4 * REGISTERED_KINDS; i++) {
        enum coll_collective c = registered_kinds[i % REGISTERED_KINDS];
        uint64_t moved, less;

        WORLD_CHECK(me, !registered_call(k, c, k->in_2, k->out_2, i, &moved));
        WORLD_CHECK(me,
                    !registered_call(k, c, k->in + AT, k->out + AT, i, &less));
        if (is_counted && c == COLL_ALLTOALL)
            WORLD_CHECK(me, less == p * part && moved == less + (p - 1) * part);
        else if (is_counted && c == COLL_BROADCAST)
            WORLD_CHECK(me, less == (p > 1 || !me->rank) * part);
        else if (is_counted && p > 1)
            WORLD_CHECK(me, less < moved);
        else if (is_counted)
            WORLD_CHECK(me, less == moved);
    }
    WORLD_CHECK(me, !registered_dismiss(k));
    WORLD_CHECK(me, !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(registered_buffers_save_copies)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, use, NULL, patient(60)), 0);
}
END_TEST

/* Over two devices, and one. */
START_TEST(ranks_may_be_threads)
{
    setenv("FAKE_CUDA_DEVICES", _i ? "2" : "1", 1);
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    patient_timeout(30);
    ck_assert_int_eq(world_threads(3, use, "", patient(60)), 0);
}
END_TEST

/* Bytes that a broadcast from rank `root` moved on this rank; its result is right. */
static int cast(struct registered *k, const char *in, char *out, int root,
                int round, uint64_t *moved)
{
    struct device_rank *r = &k->r;
    uint64_t before;

    registered_fill(k, r->me->rank == root ? (char *)in : k->in_2, round);
    OK(cu.StreamSynchronize(r->stream));
    world_meet(r->me);
    before = registered_copied();
    WORLD_CHECK(r->me, !coll_broadcast(r->me->rank == root ? in : NULL, out,
                                       registered_count, COLL_I32, root,
                                       r->comm, r->stream));
    OK(cu.StreamSynchronize(r->stream));
    *moved = registered_copied() - before;
    OK(cu.MemcpyDtoH(k->host, (CUdeviceptr)out, REGISTERED_MOST));
    for (int i = 0; i < registered_count; i++)
        WORLD_CHECK(r->me, k->host[i] == registered_value(root, round, i));
    return 0;
}

/* Each rank gets it by one copy, and no other one is made: not even on the root, if it
 * has it in place, which the others do not know. */
static int cast_all(struct world_rank *me)
{
    struct registered *k = registered_new();
    uint64_t part = registered_count * sizeof(int32_t), moved;
    int round = 0;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    for (int root = 0; root < me->size; root++) {
        uint64_t own = me->rank == root ? 0 : part;

        WORLD_CHECK(me, !cast(k, k->out, k->out, root, round++, &moved));
        WORLD_CHECK(me, moved == own);
        WORLD_CHECK(me, !cast(k, k->in, k->out + AT, root, round++, &moved));
        WORLD_CHECK(me, moved == part);
        WORLD_CHECK(me, !cast(k, k->in_2, k->out, root, round++, &moved));
        WORLD_CHECK(me, moved == part);
        WORLD_CHECK(me, !cast(k, k->in, k->out_2, root, round++, &moved));
    }
    WORLD_CHECK(me, !registered_dismiss(k) && !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks; by each algorithm that the library would choose from */
START_TEST(a_broadcast_is_copied_once)
{
    static const char *const algos[] = {
        "",        "binomial",         "chain", "direct", "double_tree",
        "knomial", "scatter_allgather"};

    patient_timeout(30);
    for (int a = 0; a < (int)ARRAY_LEN(algos); a++) {
        if (*algos[a])
            setenv("COLL_ALGO", algos[a], 1);
        ck_assert_int_eq(world_fork(_i, cast_all, NULL, patient(60)), 0);
    }
}
END_TEST

/* The root's copy cannot be made: all are told, and nobody waits. */
static int cast_badly(struct world_rank *me)
{
    struct registered *k = registered_new();
    char text[32];

    /* behind those by which each pair of ranks has tried its slots */
    snprintf(text, sizeof(text), "cuMemcpyAsync:%d:700", 2 * me->size - 1);
    if (!me->rank)
        setenv("FAKE_CUDA_FAULT", text, 1);
    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    coll_broadcast(me->rank ? NULL : k->in, k->out, registered_count, COLL_I32,
                   0, k->r.comm, k->r.stream);
    if (me->rank)
        OK(cu.StreamSynchronize(k->r.stream));
    WORLD_CHECK(me,
                world_await_failure(k->r.comm, patient(10)) == COLL_ERR_SYSTEM);
    WORLD_CHECK(me, me->rank || strstr(coll_last_error(), "illegal"));
    coll_comm_destroy(k->r.comm);
    free(k);
    return 0;
}

START_TEST(a_copy_that_fails_on_the_root_is_told)
{
    patient_timeout(60);
    ck_assert_int_eq(world_fork(3, cast_badly, NULL, patient(60)), 0);
}
END_TEST

/* Parts of other lengths, which each rank has elsewhere.  In place on ranks of odd
 * numbers in odd rounds, and so on. */
static int gather_parts(struct registered *k, int round)
{
    struct device_rank *r = &k->r;
    size_t counts[8], displs[8], at = 0, gap = (size_t)(r->me->rank * round);
    int in_place = (round + r->me->rank) % 2;
    char *in;

    for (int q = 0; q < r->me->size; q++) {
        counts[q] = q == 1 ? 0 : registered_count - 100 * (size_t)q;
        displs[q] = at;
        at += counts[q] + gap;
    }
    in = (in_place ? k->out : k->in_2) + 4 * displs[r->me->rank];
    for (size_t i = 0; i < counts[r->me->rank]; i++)
        k->host[i] = registered_value(r->me->rank, round, (int)i);
    fake_put((CUdeviceptr)in, k->host, 4 * counts[r->me->rank]);
    WORLD_CHECK(r->me, !coll_allgatherv(in, k->out, counts, displs, COLL_I32,
                                        r->comm, r->stream));
    OK(cu.StreamSynchronize(r->stream));
    OK(cu.MemcpyDtoH(k->host, (CUdeviceptr)k->out, REGISTERED_MOST));
    for (int q = 0; q < r->me->size; q++)
        for (size_t i = 0; i < counts[q]; i++)
            WORLD_CHECK(r->me, k->host[displs[q] + i] ==
                                   registered_value(q, round, (int)i));
    return 0;
}

/* Ranks may pass other displacements: what lies by them is registered, and not read in
 * place. */
static int use_parts(struct world_rank *me)
{
    struct registered *k = registered_new();

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    for (int round = 0; round < 6; round++)
        WORLD_CHECK(me, !gather_parts(k, round));
    WORLD_CHECK(me, !registered_dismiss(k) && !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(each_rank_has_its_parts_elsewhere)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, use_parts, NULL, patient(60)), 0);
}
END_TEST

/* In place, and in a graph that is launched again and again. */
static int replay(struct world_rank *me)
{
    struct registered *k = registered_new();

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    WORLD_CHECK(me, !registered_replay(k, 50));
    WORLD_CHECK(me, !registered_dismiss(k));
    WORLD_CHECK(me, !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(graphs_have_registered_buffers)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, replay, NULL, patient(60)), 0);
}
END_TEST

/* What the last rank has is wrong: all hear the same, and nothing is registered; what
 * is right may be, then. */
static int wrong(struct world_rank *me)
{
    static int32_t host[64];
    int is_last = me->rank == me->size - 1;
    struct registered *k = registered_new();
    struct coll_comm *comm;
    uint64_t moved;

    WORLD_CHECK(me, k && !registered_join(k, me));
    comm = k->r.comm;
    EXPECT(me, coll_mem_register(comm, is_last ? (char *)host : k->in, 64),
           COLL_ERR_INVALID, "it is no memory of GPU 0");
    EXPECT(me, coll_mem_register(comm, is_last ? NULL : k->in, 64),
           COLL_ERR_INVALID, "it is no memory of GPU 0");
    EXPECT(me, coll_mem_register(comm, k->in, 64 - 64 * (size_t)is_last),
           COLL_ERR_INVALID, "it is no memory of GPU 0");
    EXPECT(me, coll_mem_register(comm, k->in, REGISTERED_MOST + 4096),
           COLL_ERR_INVALID, "its allocation ends before it does");
    EXPECT(me, coll_mem_register(comm, k->in, 64 + (size_t)is_last),
           COLL_ERR_MISMATCH, "the ranks disagree: rank");
    EXPECT(me, coll_mem_deregister(comm, k->in), COLL_ERR_INVALID,
           "nothing that begins there is registered");
    WORLD_CHECK(me, !registered_enroll(k));
    EXPECT(me, coll_mem_register(comm, k->in + 512, REGISTERED_MOST),
           COLL_ERR_INVALID, "a part of it is registered already");
    EXPECT(me, coll_mem_deregister(comm, is_last ? k->in : k->out),
           COLL_ERR_MISMATCH, "the ranks disagree: rank");
    EXPECT(me, coll_mem_register(NULL, k->in, 64), COLL_ERR_INVALID,
           "comm is NULL");
    WORLD_CHECK(me,
                !registered_call(k, COLL_ALLGATHER, k->in, k->out, 1, &moved));
    WORLD_CHECK(me, !registered_dismiss(k) && !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(what_is_wrong_on_one_rank_all_are_told)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, wrong, NULL, patient(60)), 0);
}
END_TEST

/* Other ranks' memory is mapped, and counted, until it is given back; a communicator
 * that ends gives back what is left. */
static int hold(struct world_rank *me)
{
    struct coll_mem_stats before = {.size = sizeof(before)}, with = before,
                          after = before;
    size_t others = (size_t)me->size - 1;
    struct registered *k = registered_new();

    WORLD_CHECK(me, k && !registered_join(k, me));
    WORLD_CHECK(me, !coll_comm_mem_stats(k->r.comm, &before) &&
                        !registered_enroll(k));
    WORLD_CHECK(me, !coll_comm_mem_stats(k->r.comm, &with));
    WORLD_CHECK(me, with.mapped ==
                        before.mapped + 2 * others * (REGISTERED_MOST + 1024));
    WORLD_CHECK(me, with.device == before.device);
    WORLD_CHECK(me, !registered_dismiss(k));
    WORLD_CHECK(me, !coll_comm_mem_stats(k->r.comm, &after));
    WORLD_CHECK(me, after.mapped == before.mapped);
    WORLD_CHECK(me, !registered_enroll(k) && !registered_leave(k));
    free(k);
    return 0;
}

/* _i: ranks */
START_TEST(mapped_memory_is_counted_and_given_back)
{
    patient_timeout(30);
    ck_assert_int_eq(world_fork(_i, hold, NULL, patient(60)), 0);
}
END_TEST

/* Freed, and allocated again at the same address: that is other memory.  Ranks are
 * threads, who map nothing. */
static int go_stale(struct world_rank *me)
{
    struct registered *k = registered_new();
    struct coll_args args;
    uint64_t moved;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    world_meet(me);
    OK(cu.MemFree((CUdeviceptr)k->in));
    world_meet(me);
    if (!me->rank)
        for (int i = 0; i < 2; i++)
            fake_memory(REGISTERED_MOST + 1024);
    world_meet(me);
    args = registered_args(k, COLL_ALLGATHER, registered_count, k->in, k->out);
    WORLD_CHECK(me, device_do(&args, k->r.comm) == COLL_ERR_INVALID);
    WORLD_CHECK(me, strstr(coll_last_error(), "freed"));
    WORLD_CHECK(me, !registered_dismiss(k));
    k->in = (char *)fake_memory(REGISTERED_MOST + 1024);
    WORLD_CHECK(me, !registered_enroll(k));
    WORLD_CHECK(me,
                !registered_call(k, COLL_ALLGATHER, k->in, k->out, 1, &moved));
    WORLD_CHECK(me, !registered_dismiss(k));
    coll_comm_destroy(k->r.comm);
    free(k);
    return 0;
}

START_TEST(freed_memory_is_not_taken_for_what_was_registered)
{
    coll__limit_assume(LIMIT_CUDA_KERNEL_MAX, 0);
    patient_timeout(30);
    ck_assert_int_eq(world_threads(2, go_stale, NULL, patient(60)), 0);
}
END_TEST

/* What the last rank does where the others have a broadcast from rank 0, or an
 * allgather, of what is registered. */
enum other { MEMORY, PLACE, ROOT, ROOT_AND_PLACE, N_OTHER };

static const char *const words[N_OTHER] = {
    [MEMORY] = "(3000 i32, registered buffers with digest",
    [PLACE] = "(3000 i32, registered buffers with digest",
    [ROOT] = "root 0, registered buffers with digest",
    [ROOT_AND_PLACE] = "root 2, registered buffers with digest",
};

static const char *const advice[N_OTHER] = {
    [MEMORY] = "must pass the same place of a registered buffer",
    [PLACE] = "must pass the same place of a registered buffer",
    [ROOT] = "must pass the same root",
    [ROOT_AND_PLACE] = "must pass the same root",
};

/* What this rank passes; of others there are digests. */
static const char *own_places(enum other other, int is_last)
{
    if (other >= ROOT)
        return other == ROOT_AND_PLACE && is_last
                   ? "passes out at byte 256 of registered registration 2"
                   : "passes out at byte 0 of registered registration 2";
    if (is_last && other == MEMORY)
        return "passes out at byte 0 of registered registration 2";
    return is_last ? "passes in at byte 256 of registered registration 1, out "
                     "at byte 0"
                   : "passes in at byte 0 of registered registration 1, out at "
                     "byte 0";
}

/* All are told before anything is in a stream. */
static int differ(struct world_rank *me)
{
    enum other other = *(const enum other *)me->arg;
    int is_last = me->rank == me->size - 1;
    struct registered *k = registered_new();
    struct coll_args args;

    WORLD_CHECK(me, k && !registered_join(k, me) && !registered_enroll(k));
    args = registered_args(k, other < ROOT ? COLL_ALLGATHER : COLL_BROADCAST,
                           registered_count, k->in, k->out);
    WORLD_CHECK(me, !device_do(&args, k->r.comm));
    world_meet(me);
    if (is_last && other == MEMORY)
        args.in = k->in_2;
    if (is_last && other == PLACE)
        args.in = k->in + AT;
    if (is_last && other == ROOT_AND_PLACE)
        args.out = k->out + AT;
    if (is_last && other >= ROOT)
        args.root = me->rank;
    EXPECT(me, device_do(&args, k->r.comm), COLL_ERR_MISMATCH,
           own_places(other, is_last));
    OK(cu.StreamSynchronize(k->r.stream));
    WORLD_CHECK(me, world_await_failure(k->r.comm, patient(20)) ==
                        COLL_ERR_MISMATCH);
    WORLD_CHECK(me, device_do(&args, k->r.comm) == COLL_ERR_MISMATCH);
    WORLD_CHECK(me, strstr(coll_last_error(), words[other]));
    WORLD_CHECK(me, strstr(coll_last_error(), advice[other]));
    coll_comm_destroy(k->r.comm);
    free(k);
    return 0;
}

/* _i: what is other */
START_TEST(where_one_rank_passes_others_it_is_told_if_compared)
{
    enum other other = (enum other)_i;

    setenv("COLL_CHECK", "1", 1);
    patient_timeout(30);
    ck_assert_int_eq(world_fork(3, differ, &other, patient(60)), 0);
}
END_TEST

START_TEST(streams_go_on_when_a_rank_fails)
{
    patient_timeout(30);
    ck_assert_int_eq(
        world_fork(3, registered_fall_out, _i ? "" : NULL, patient(60)), _i);
}
END_TEST

/* Where the host carries messages there is nothing to do. */
START_TEST(where_buffers_pass_through_the_host_nothing_changes)
{
    setenv("FAKE_CUDA_IPC", "0", 1);
    patient_timeout(30);
    ck_assert_int_eq(world_fork(2, use, "", patient(60)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_register");
    TCase *tc = tcase_create("cuda_register");

    coll__limit_assume(LIMIT_CUDA_SLOT, 4 << 10);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, registered_buffers_save_copies, 1, 6);
    tcase_add_loop_test(tc, a_broadcast_is_copied_once, 2, 6);
    tcase_add_test(tc, a_copy_that_fails_on_the_root_is_told);
    tcase_add_loop_test(tc, each_rank_has_its_parts_elsewhere, 2, 6);
    tcase_add_loop_test(tc, ranks_may_be_threads, 0, 2);
    tcase_add_loop_test(tc, graphs_have_registered_buffers, 2, 5);
    tcase_add_loop_test(tc, what_is_wrong_on_one_rank_all_are_told, 2, 5);
    tcase_add_loop_test(tc, mapped_memory_is_counted_and_given_back, 1, 5);
    tcase_add_test(tc, freed_memory_is_not_taken_for_what_was_registered);
    tcase_add_loop_test(tc, where_one_rank_passes_others_it_is_told_if_compared,
                        0, N_OTHER);
    tcase_add_loop_test(tc, streams_go_on_when_a_rank_fails, 0, 2);
    tcase_add_test(tc, where_buffers_pass_through_the_host_nothing_changes);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
