/* SPDX-License-Identifier: BSD-3-Clause */
/* test_args.c - what callers can get wrong, what the environment can, and
 * questions about plans. */
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "tests/support/files.h"
#include "lib/comm/comm.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 40

/* ---- arguments ----------------------------------------------------------- */

static int bad_buffers(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_args args = {.size = sizeof(args), .count = 1};
    struct coll_request *request;
    int x[8] = {0}, y[8];

    EXPECT(me, coll_allreduce(x, x + 1, 2, COLL_I32, COLL_SUM, comm, NULL),
           COLL_ERR_INVALID, "overlap");
    EXPECT(me, coll_allreduce(NULL, y, 2, COLL_I32, COLL_SUM, comm, NULL),
           COLL_ERR_INVALID, "in is NULL");
    EXPECT(me, coll_allreduce(x, NULL, 2, COLL_I32, COLL_SUM, comm, NULL),
           COLL_ERR_INVALID, "out is NULL");
    EXPECT(me, coll_allreduce(x, y, 2, (enum coll_type)99, COLL_SUM, comm,
                              NULL), COLL_ERR_INVALID, "99 is no element type");
    EXPECT(me, coll_allreduce(x, y, 2, COLL_I32, (enum coll_op)-1, comm, NULL),
           COLL_ERR_INVALID, "-1 is no operation");
    EXPECT(me, coll_allreduce(x, y, SIZE_MAX / 2, COLL_I32, COLL_SUM, comm,
                              NULL), COLL_ERR_INVALID, "address space");
    EXPECT(me, coll_allreduce(x, y, 2, COLL_I32, COLL_SUM, NULL, NULL),
           COLL_ERR_INVALID, "comm is NULL");
    WORLD_CHECK(me, coll_allreduce(x, y, 2, COLL_I32, COLL_SUM, comm,
                                   (void *)2) < 0);
    WORLD_CHECK(me, strstr(coll_last_error(), "CUDA")); /* none, or no context */
    EXPECT(me, coll_broadcast(x, y, 2, COLL_I32, me->size, comm, NULL),
           COLL_ERR_INVALID, "root");
    EXPECT(me, coll_broadcast(x, y, 2, COLL_I32, -1, comm, NULL),
           COLL_ERR_INVALID, "root -1");
    args.in = x, args.out = y, args.size = 3;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "args.size is 3");
    EXPECT(me, coll_start(NULL), COLL_ERR_INVALID, "request is NULL");
    WORLD_CHECK(me, coll_request_destroy(NULL) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(NULL) == COLL_OK);
    EXPECT(me, coll_comm_async_error(NULL), COLL_ERR_INVALID, "comm is NULL");
    EXPECT(me, coll_comm_abort(NULL, "why"), COLL_ERR_INVALID, "comm is NULL");
    return 0;
}

/* One rank; size_t arrays of one. */
static int bad_counts(struct world_rank *me, struct coll_comm *comm)
{
    size_t one[] = {1}, two[] = {2}, huge[] = {SIZE_MAX / 2};
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_REDUCE_SCATTERV,
                             .type = COLL_I32,
                             .in_counts = one,
                             .in_displs = one};
    struct coll_request *request;
    int x[8] = {0}, y[8];

    EXPECT(me, coll_allgatherv(x, y, NULL, NULL, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "allgatherv: counts is NULL");
    EXPECT(me, coll_alltoallv(x, NULL, NULL, y, one, NULL, COLL_I32, comm,
                              NULL), COLL_ERR_INVALID, "in_counts is NULL");
    EXPECT(me, coll_alltoallv(x, one, NULL, y, NULL, NULL, COLL_I32, comm,
                              NULL), COLL_ERR_INVALID, "out_counts is NULL");
    EXPECT(me, coll_alltoallv(x, one, NULL, y, two, NULL, COLL_I32, comm,
                              NULL), COLL_ERR_INVALID, "make them equal");
    EXPECT(me, coll_gatherv(x, 1, y, two, NULL, COLL_I32, 0, comm, NULL),
           COLL_ERR_INVALID, "counts[root] is not the root's count");
    EXPECT(me, coll_scatterv(x, two, NULL, y, 1, COLL_I32, 0, comm, NULL),
           COLL_ERR_INVALID, "counts[root] is not the root's count");
    EXPECT(me, coll_allgatherv(x, y, huge, NULL, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "address space");
    EXPECT(me, coll_allgatherv(x, y, one, huge, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "displs reaches beyond");
    EXPECT(me, coll_gather(x, y, SIZE_MAX / 2, COLL_I32, 0, comm, NULL),
           COLL_ERR_INVALID, "address space");
    args.in = x, args.out = y;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "in_displs must be NULL");
    EXPECT(me, coll_alltoallv(x, one, NULL, x, one, NULL, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "never in place");
    return 0;
}

static void ignore(const void *left, const void *right, void *out,
                   size_t count, enum coll_type type, void *arg)
{
    (void)left, (void)right, (void)out, (void)count, (void)type, (void)arg;
}

static int bad_kinds(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_args args = {.size = sizeof(args), .count = 1};
    struct coll_request *request;
    enum coll_op premul, gone;
    int x[8] = {0}, y[8];

    WORLD_CHECK(me, !coll_op_create_premul(x, COLL_I32, &premul));
    WORLD_CHECK(me, !coll_op_create_user(ignore, NULL, 1, &gone));
    WORLD_CHECK(me, !coll_op_destroy(gone));
    EXPECT(me, coll_reduce(x, y, 2, COLL_F32, COLL_BAND, 0, comm, NULL),
           COLL_ERR_INVALID,
           "reduce: band is for integers and bool, not for f32");
    EXPECT(me, coll_reduce(x, y, 2, COLL_C64, COLL_MAX, 0, comm, NULL),
           COLL_ERR_INVALID, "reduce: max is for real numbers, not for c64");
    EXPECT(me, coll_scan(x, y, 2, COLL_F32_I32, COLL_SUM, comm, NULL),
           COLL_ERR_INVALID, "scan: sum is for numbers, not for f32_i32");
    EXPECT(me, coll_allreduce(x, y, 2, COLL_I32, COLL_MINLOC, comm, NULL),
           COLL_ERR_INVALID,
           "minloc is for pairs of a value and an index, not for i32");
    EXPECT(me, coll_scan(x, y, 2, COLL_F32, COLL_AVG, comm, NULL),
           COLL_ERR_INVALID, "scan: avg is for reductions over all ranks");
    EXPECT(me, coll_exscan(x, y, 2, COLL_F16, COLL_AVG, comm, NULL),
           COLL_ERR_INVALID, "exscan: avg is for reductions over all ranks");
    EXPECT(me, coll_allreduce(x, y, 2, COLL_F32, premul, comm, NULL),
           COLL_ERR_INVALID, "premul was made for i32, not for f32");
    EXPECT(me, coll_allreduce(x, y, 2, COLL_F32, gone, comm, NULL),
           COLL_ERR_INVALID, "is no operation");
    EXPECT(me, coll_reduce(x, y, 2, COLL_F32, COLL_SUM, 1, comm, NULL),
           COLL_ERR_INVALID, "reduce: root 1 is not within 0 to 0");
    EXPECT(me, coll_send(x, 2, COLL_F32, 1, comm, NULL), COLL_ERR_INVALID,
           "send: peer 1 is not within 0 to 0");
    EXPECT(me, coll_recv(x, 2, COLL_F32, -1, comm, NULL), COLL_ERR_INVALID,
           "recv: peer -1 is not within 0 to 0");
    EXPECT(me, coll_recv(NULL, 2, COLL_F32, 0, comm, NULL), COLL_ERR_INVALID,
           "recv: out is NULL");
    args.in = x, args.out = y, args.algo = "rign";
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "allreduce: there is no algorithm 'rign'");
    EXPECT(me, coll_group_end(), COLL_ERR_INVALID, "coll_group_start() first");
    WORLD_CHECK(me, !coll_op_destroy(premul));
    return 0;
}

/* Two ranks: buffers over each other, in place in the wrong place. */
static int bad_places(struct world_rank *me, struct coll_comm *comm)
{
    size_t counts[] = {2, 2}, apart[] = {0, 3};
    size_t over[] = {0, 1}, back[] = {3, 2};
    int x[16] = {0}, y[16], *elsewhere = x + 2 * (1 - me->rank);

    EXPECT(me, coll_allgather(x + 1, x, 2, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "in == out + rank * count");
    EXPECT(me, coll_allgather(elsewhere, x, 2, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "in == out + rank * count");
    EXPECT(me, coll_reduce_scatter(x, elsewhere, 2, COLL_I32, COLL_SUM, comm,
                                   NULL),
           COLL_ERR_INVALID, "out == in + rank * count");
    EXPECT(me, coll_alltoall(x, x + 1, 2, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "overlap");
    EXPECT(me, coll_allgatherv(y, x, counts, over, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "displs makes parts of out overlap");
    EXPECT(me, coll_allgatherv(y, x, counts, back, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "displs makes parts of out overlap");
    EXPECT(me, coll_allgatherv(x + 1, x, counts, apart, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "in == out + displs[rank]");
    EXPECT(
        me,
        coll_reduce_scatterv(x, x + 1, counts, COLL_I32, COLL_SUM, comm, NULL),
        COLL_ERR_INVALID, "this rank's block");
    return 0;
}

/* An algorithm that cannot do it is told from one that there is not. */
static int refused_algorithm(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_args args = {.size = sizeof(args), .count = 1000,
                             .type = COLL_I32, .algo = "ring"};
    struct coll_request *request;
    static int x[1000], y[1000];

    WORLD_CHECK(me, !coll_op_create_user(ignore, NULL, 0, &args.op));
    args.in = x, args.out = y;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "ring does not combine in the order of the ranks");
    args.algo = "binomial";
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_request_destroy(request));
    args.collective = COLL_SCAN, args.algo = "chain";
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "chain is not reproducible");
    WORLD_CHECK(me, !coll_op_destroy(args.op));
    return 0;
}

START_TEST(an_algorithm_that_refuses_says_why)
{
    ck_assert_int_eq(world_fork_joined(3, refused_algorithm, NULL, DEADLINE),
                     0);
}
END_TEST

START_TEST(bad_arguments_get_a_sentence_and_send_nothing)
{
    ck_assert_int_eq(world_fork_joined(1, bad_buffers, NULL, DEADLINE), 0);
    ck_assert_int_eq(world_fork_joined(1, bad_counts, NULL, DEADLINE), 0);
    ck_assert_int_eq(world_fork_joined(1, bad_kinds, NULL, DEADLINE), 0);
    ck_assert_int_eq(world_fork_joined(2, bad_places, NULL, DEADLINE), 0);
}
END_TEST

/* A struct of a later version is taken while its new fields are zero. */
static int later_structs(struct world_rank *me)
{
    struct {
        struct coll_config config;
        double later;
    } ours = {.config = {.size = sizeof(ours), .timeout = 5}};
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &ours.config));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    ours.later = 1;
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, &ours.config),
           COLL_ERR_INVALID, "does not know");
    return 0;
}

START_TEST(a_struct_with_an_unknown_tail_is_refused)
{
    ck_assert_int_eq(world_fork(2, later_structs, NULL, DEADLINE), 0);
}
END_TEST

/* The environment is judged when a communicator is made. */
static int expect_create_fails(struct world_rank *me)
{
    struct coll_comm *comm = NULL;

    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_INVALID,
           (const char *)me->arg);
    WORLD_CHECK(me, comm == NULL);
    return 0;
}

START_TEST(bad_parameters_are_named)
{
    static const char *const cases[][3] = {
        {"COLL_ALGO", "rign", "recursive_doubling"},
        {"COLL_TIMEOUT", "soon", "COLL_TIMEOUT=soon"},
        {"COLL_TIMEOUT", "-1", "seconds"},
        {"COLL_CHUNK", "12Q", "64K"},
        {"COLL_CHUNK", "8 ", "64K"},
        {"COLL_FUSE", "some", "64K"},
        {"COLL_WAIT", "sleep", "auto|spin"},
        {"COLL_TRANSPORTS", "self,rdma", "there are: self, shm"},
        {"COLL_LOG", "loud", "'loud' is no level"},
        {"COLL_LOG", "info,foo:bar", "'foo:bar' is no level"},
        {"COLL_LOG", "tpo:debug", "'tpo:debug'"},
        {"COLL_LOG", "topo:", "'topo:'"},
        {"COLL_TOPO_FILE", "/nonexistent", "/nonexistent does not exist"},
        {"COLL_TOPO_FILE", "/etc/passwd", "no hwloc XML file"},
    };

    ck_assert_int_lt(_i, (int)ARRAY_LEN(cases));
    setenv(cases[_i][0], cases[_i][1], 1);
    ck_assert_int_eq(world_fork(2, expect_create_fails, (void *)cases[_i][2],
                                DEADLINE), 0);
}
END_TEST

/* What was said about parameters. */
static char said[1024];

static void keep_words(enum coll_log_level level, const char *part,
                       const char *text, void *arg)
{
    (void)level, (void)arg;
    if (!strcmp(part, "param"))
        snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n",
                 text);
}

static int hear_of_names(struct world_rank *me)
{
    struct coll_comm *comm;

    coll_set_log_handler(keep_words, NULL);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, !strncmp(said, "COLL_TIMEOUTS is no parameter; did you "
                                   "mean COLL_TIMEOUT?", 54));
    WORLD_CHECK(me, strchr(said, '\n') == strrchr(said, '\n'));
    return 0;
}

START_TEST(a_name_like_a_parameters_is_warned_of_but_not_our_own_programs)
{
    setenv("COLL_TIMEOUTS", "3", 1);
    setenv("COLL_COMPARE_SOCKET", "/tmp/x", 1);
    setenv("COLL_COMPARE_FOLDER", "/tmp", 1);
    ck_assert_int_eq(world_fork(1, hear_of_names, NULL, DEADLINE), 0);
}
END_TEST

static int hear_of_a_limit(struct world_rank *me)
{
    struct coll_comm *comm;

    coll_set_log_handler(keep_words, NULL);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !strcmp(said, "COLL_SHM_CELL is not read any more; set "
                                  "'shm_cell' in the 'limits' of a tuning "
                                  "file (COLL_TUNE_FILE)\n"));
    WORLD_CHECK(me, coll__limit(LIMIT_SHM_CELL) == 128 << 10);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_variable_that_has_become_a_limit_is_warned_of)
{
    setenv("COLL_SHM_CELL", "1M", 1);
    ck_assert_int_eq(world_fork(1, hear_of_a_limit, NULL, DEADLINE), 0);
}
END_TEST

/* Four ranks, two on each package that the file has: its jobs see that. */
static int join_bound(struct world_rank *me)
{
    struct coll_comm *comm, *dup;
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET((size_t)me->rank % 2, &one);
    if (sched_setaffinity(0, sizeof(one), &one))
        return 0;
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, comm->view.n_levels == 2);
    WORLD_CHECK(me, comm->peers[1].within[WITHIN_PACKAGE] == 1);
    WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
    WORLD_CHECK(me, dup->view.n_levels == 2);
    WORLD_CHECK(me, !coll_comm_destroy(dup) && !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_job_is_on_the_machine_of_the_file)
{
    cpu_set_t all;

    if (sched_getaffinity(0, sizeof(all), &all) || !CPU_ISSET(0, &all) ||
        !CPU_ISSET(1, &all))
        return;
    setenv("COLL_TOPO_FILE", fixture_file("topo", "two_sockets.xml"), 1);
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork(4, join_bound, NULL, 60), 0);
}
END_TEST

/* One rank alone has a bad parameter: nobody waits for it. */
static int one_is_badly_set(struct world_rank *me)
{
    struct coll_comm *comm;

    if (me->rank == 1)
        setenv("COLL_ALGO", "rign", 1);
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_INVALID,
           "no algorithm 'rign'");
    return 0;
}

START_TEST(a_bad_parameter_on_one_rank_is_told_to_all)
{
    ck_assert_int_eq(world_fork(3, one_is_badly_set, NULL, 20), 0);
}
END_TEST

/* Ranks that are set differently must not run. */
static int differently_set(struct world_rank *me)
{
    struct coll_comm *comm;

    setenv("COLL_CHUNK", me->rank == 1 ? "64K" : "128K", 1);
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_MISMATCH,
           "COLL_CHUNK is '131072' on rank 0 and '65536' on rank 1");
    return 0;
}

START_TEST(ranks_that_are_set_differently_are_told_so)
{
    ck_assert_int_eq(world_fork(3, differently_set, NULL, DEADLINE), 0);
}
END_TEST

static int unreachable(struct world_rank *me)
{
    struct coll_comm *comm;

    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_TRANSPORT,
           "cannot reach rank");
    return 0;
}

START_TEST(ranks_without_a_transport_between_them_are_told_so)
{
    setenv("COLL_TRANSPORTS", "self", 1);
    ck_assert_int_eq(world_fork(2, unreachable, NULL, DEADLINE), 0);
}
END_TEST

static int candidates(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args = {.size = sizeof(args), .type = COLL_F32};
    double before = 0;
    size_t n = 0;
    char x[64], y[64];

    args.in = x, args.out = y, args.count = 2;
    while (!coll_plan_candidate(&args, comm, n, &info)) {
        WORLD_CHECK(me, info.seconds >= before && *info.algorithm);
        WORLD_CHECK(me, info.n_steps == 0 && info.size == sizeof(info));
        before = info.seconds;
        n++;
    }
    WORLD_CHECK(me, n > 2);
    args.algo = "ring";
    WORLD_CHECK(me, !coll_plan_query(&args, comm, &info));
    WORLD_CHECK(me, !strcmp(info.algorithm, "ring"));
    return 0;
}

/* Of a communicator that has done nothing, and one that has. */
static int memory(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_mem_stats old = {.size =
                                     offsetof(struct coll_mem_stats, pinned),
                                 .pinned = 77},
                          stats = {.size = sizeof(stats)}, wrong = {.size = 1};
    struct coll_request *request;
    size_t plans;
    float x[1000] = {0};
    struct coll_args args = {.size = sizeof(args),
                             .type = COLL_F32,
                             .in = x,
                             .out = x,
                             .count = 1000};

    WORLD_CHECK(me, !coll_comm_mem_stats(comm, &stats));
    WORLD_CHECK(me, !stats.plans && !stats.scratch && !stats.pinned);
    WORLD_CHECK(me, !stats.device && !stats.mapped);
    WORLD_CHECK(me, (stats.shared > 0) == (me->size > 1));
    WORLD_CHECK(me, stats.shared < (size_t)64 << 20);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_comm_mem_stats(comm, &stats));
    WORLD_CHECK(me, stats.plans > 0 && stats.plans < 100000);
    WORLD_CHECK(me, stats.scratch < 10 * sizeof(x));
    WORLD_CHECK(me, !coll_request_destroy(request));
    plans = stats.plans; /* which are kept for the next call of the shape */
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !coll_comm_mem_stats(comm, &stats) &&
                        stats.plans == plans);
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_mem_stats(comm, &stats) &&
                        stats.plans == plans);
    WORLD_CHECK(me, !coll_comm_mem_stats(comm, &old));
    WORLD_CHECK(me, old.shared == stats.shared && old.pinned == 77);
    EXPECT(me, coll_comm_mem_stats(comm, &wrong), COLL_ERR_INVALID,
           "sizeof(struct coll_mem_stats)");
    EXPECT(me, coll_comm_mem_stats(comm, NULL), COLL_ERR_INVALID,
           "stats is NULL");
    EXPECT(me, coll_comm_mem_stats(NULL, &stats), COLL_ERR_INVALID,
           "comm is NULL");
    return 0;
}

/* _i: ranks */
START_TEST(a_communicator_tells_what_it_holds)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork_joined(_i, memory, NULL, DEADLINE), 0);
}
END_TEST

/* COLL_ALGO says one thing and the caller another: the caller wins. */
START_TEST(candidates_come_cheapest_first)
{
    setenv("COLL_ALGO", "binomial", 1);
    ck_assert_int_eq(world_fork_joined(3, candidates, NULL, DEADLINE), 0);
}
END_TEST

static int query(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args = {.size = sizeof(args), .type = COLL_F32};
    char x[64], y[64];

    args.in = x, args.out = y, args.count = 2;
    WORLD_CHECK(me, !coll_plan_query(&args, comm, &info));
    WORLD_CHECK(me, info.seconds > 0 && info.n_steps > 0);
    WORLD_CHECK(me, !strcmp(info.algorithm, "ring"));
    WORLD_CHECK(me, strstr(coll_comm_transports(comm), "self"));
    return 0;
}

START_TEST(a_plan_can_be_asked_for)
{
    setenv("COLL_ALGO", "ring", 1);
    ck_assert_int_eq(world_fork_joined(3, query, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("args");
    TCase *c = tcase_create("args");

    patient_timeout(30);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_test(c, bad_arguments_get_a_sentence_and_send_nothing);
    tcase_add_test(c, an_algorithm_that_refuses_says_why);
    tcase_add_test(c, a_struct_with_an_unknown_tail_is_refused);
    tcase_add_loop_test(c, a_communicator_tells_what_it_holds, 1, 4);
    tcase_add_loop_test(c, bad_parameters_are_named, 0, 14);
    tcase_add_test(
        c, a_name_like_a_parameters_is_warned_of_but_not_our_own_programs);
    tcase_add_test(c, a_variable_that_has_become_a_limit_is_warned_of);
    tcase_add_test(c, a_job_is_on_the_machine_of_the_file);
    tcase_add_test(c, a_bad_parameter_on_one_rank_is_told_to_all);
    tcase_add_test(c, ranks_that_are_set_differently_are_told_so);
    tcase_add_test(c, ranks_without_a_transport_between_them_are_told_so);
    tcase_add_test(c, a_plan_can_be_asked_for);
    tcase_add_test(c, candidates_come_cheapest_first);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
