/* SPDX-License-Identifier: BSD-3-Clause */
/* test_coll.c - the public operations among real processes and threads: random
 * shapes, blocking and not, every transport, and bad input. */
#include "tests/oracle.h"
#include "tests/world.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 100
#define GUARD 64 /* bytes behind each result that nobody may touch */

/* One operation's buffers on one rank. */
struct work {
    struct oracle_op op;
    unsigned char *in, *out;
    int is_in_place;
};

static void *alloc(size_t len) { return malloc(len + GUARD); }

/* Make and fill the buffers.  In place and root's side are this rank's own. */
static void work_init(struct work *w, const struct oracle_op *op, int rank,
                      int is_in_place)
{
    size_t size = coll_type_size(op->type), in_len = op->count * size;
    size_t out_len = oracle_out_count(op) * size;

    w->op = *op;
    w->out = alloc(out_len);
    memset(w->out, 0xa5, out_len + GUARD);
    w->is_in_place = is_in_place && op->collective != COLL_BARRIER;
    if (w->is_in_place)
        w->in = w->out +
                (op->collective == COLL_ALLGATHER ? (size_t)rank * in_len : 0);
    else
        w->in = alloc(in_len);
    oracle_fill(op, rank, w->in);
}

static int work_check(const struct work *w, const struct world_rank *me)
{
    size_t len = oracle_out_count(&w->op) * coll_type_size(w->op.type);
    long bad = oracle_verify(&w->op, w->out);

    if (bad >= 0) {
        fprintf(stderr, "rank %d of %d: %s of %zu %s %s root %d in place %d: "
                "element %ld is wrong\n", me->rank, me->size,
                coll_collective_name(w->op.collective), w->op.count,
                coll_type_name(w->op.type), coll_op_name(w->op.op), w->op.root,
                w->is_in_place, bad);
        return 1;
    }
    for (size_t i = 0; i < GUARD; i++)
        WORLD_CHECK(me, w->out[len + i] == 0xa5);
    return 0;
}

static void work_fini(struct work *w)
{
    if (!w->is_in_place)
        free(w->in);
    free(w->out);
}

static int call(const struct work *w, struct coll_comm *comm)
{
    const struct oracle_op *op = &w->op;

    switch (op->collective) {
    case COLL_ALLREDUCE:
        return coll_allreduce(w->in, w->out, op->count, op->type, op->op, comm,
                              NULL);
    case COLL_BROADCAST:
        return coll_broadcast(w->in, w->out, op->count, op->type, op->root,
                              comm, NULL);
    case COLL_ALLGATHER:
        return coll_allgather(w->in, w->out, op->count, op->type, comm, NULL);
    default:
        return coll_barrier(comm, NULL);
    }
}

static struct coll_args args_of(const struct work *w)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = w->op.collective,
                              .type = w->op.type,
                              .op = w->op.op,
                              .root = w->op.root,
                              .in = w->in,
                              .out = w->out,
                              .count = w->op.count};
}

/* ---- random runs --------------------------------------------------------- */

static int random_blocking(struct world_rank *me)
{
    uint64_t state = (uint64_t)me->size * 77 + *(int *)me->arg;
    uint64_t own = state + 1000u * (unsigned)me->rank;
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, coll_comm_rank(comm) == me->rank);
    WORLD_CHECK(me, coll_comm_size(comm) == me->size);
    WORLD_CHECK(me, coll_comm_local_size(comm) == me->size);
    WORLD_CHECK(me, coll_comm_n_hosts(comm) == 1);
    for (int i = 0; i < 120; i++) {
        struct oracle_op op = oracle_draw(&state, me->size);
        struct work w;

        work_init(&w, &op, me->rank, oracle_random(&own, 2) == 0);
        WORLD_CHECK(me, call(&w, comm) == COLL_OK);
        if (work_check(&w, me))
            return 1;
        work_fini(&w);
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

#define N_FLYING 5

/* Several operations under way at once, finished by wait and by test. */
static int random_requests(struct world_rank *me)
{
    uint64_t state = (uint64_t)me->size * 99 + *(int *)me->arg;
    uint64_t own = state + 1000u * (unsigned)me->rank;
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    for (int i = 0; i < 20; i++) {
        struct coll_request *requests[N_FLYING];
        struct work works[N_FLYING];

        for (int k = 0; k < N_FLYING; k++) {
            struct oracle_op op = oracle_draw(&state, me->size);
            struct coll_args args;

            work_init(&works[k], &op, me->rank, oracle_random(&own, 2) == 0);
            args = args_of(&works[k]);
            WORLD_CHECK(me, !coll_request_create(&args, comm, &requests[k]));
            WORLD_CHECK(me, !coll_start(requests[k]));
        }
        for (int k = N_FLYING - 1; k >= 0; k--) {
            int rc = COLL_IN_PROGRESS;

            while (k % 2 && rc == COLL_IN_PROGRESS)
                rc = coll_test(requests[k]);
            WORLD_CHECK(me, k % 2 ? rc == COLL_OK
                                  : coll_wait(requests[k], 0) == COLL_OK);
            if (work_check(&works[k], me))
                return 1;
            WORLD_CHECK(me, coll_request_destroy(requests[k]) == COLL_OK);
            work_fini(&works[k]);
        }
    }
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

/* One request started again and again, with new contents. */
static int persistent(struct world_rank *me)
{
    uint64_t state = 5;
    struct coll_request *request;
    struct coll_comm *comm;
    struct coll_args args;
    struct oracle_op op;
    struct work w;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    do
        op = oracle_draw(&state, me->size);
    while (op.collective != COLL_ALLREDUCE || op.count < 1000);
    work_init(&w, &op, me->rank, 0);
    args = args_of(&w);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, coll_test(request) == COLL_OK); /* never started */
    for (int i = 0; i < 30; i++) {
        w.op.seed = (unsigned)i;
        oracle_fill(&w.op, me->rank, w.in);
        WORLD_CHECK(me, coll_start(request) == COLL_OK);
        WORLD_CHECK(me, coll_wait(request, 20) == COLL_OK);
        if (work_check(&w, me))
            return 1;
    }
    WORLD_CHECK(me, coll_request_destroy(request) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    work_fini(&w);
    return 0;
}

static const char *const transports[] = {"self,shm,ucx", "ucx"};

static void run(world_fn *fn, int size, int which)
{
    int seed = 11 * size + which;

    setenv("COLL_TRANSPORTS", transports[which], 1);
    ck_assert_int_eq(world_fork(size, fn, &seed, DEADLINE), 0);
}

START_TEST(random_operations_are_right_by_shared_memory)
{
    run(random_blocking, _i, 0);
    run(random_requests, _i, 0);
}
END_TEST

START_TEST(random_operations_are_right_by_ucx)
{
    run(random_blocking, _i, 1);
    run(random_requests, _i, 1);
}
END_TEST

START_TEST(each_algorithm_is_right_when_it_is_forced)
{
    static const char *const names[] = {"ring",  "recursive_doubling",
                                        "binomial", "chain",
                                        "bruck", "dissemination"};

    setenv("COLL_ALGO", names[_i], 1);
    setenv("COLL_CHUNK", "512", 1);
    run(random_blocking, 5, 0);
    run(random_blocking, 4, 1);
}
END_TEST

START_TEST(a_request_can_be_started_many_times)
{
    run(persistent, 3, 0);
    run(persistent, 3, 1);
}
END_TEST

START_TEST(ranks_can_be_threads)
{
    int seed = _i;

    ck_assert_int_eq(world_threads(_i, random_blocking, &seed, DEADLINE), 0);
    ck_assert_int_eq(world_threads(_i, random_requests, &seed, DEADLINE), 0);
}
END_TEST

/* Two communicators of one process, used in turn. */
static int two_at_once(struct world_rank *me)
{
    struct coll_comm *a, *b;
    int x = me->rank, y;

    WORLD_CHECK(me, !coll_comm_create_oob(&a, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_create_oob(&b, &me->oob, NULL));
    for (int i = 0; i < 50; i++) {
        WORLD_CHECK(me, !coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM,
                                        i % 2 ? a : b, NULL));
        WORLD_CHECK(me, y == me->size * (me->size - 1) / 2);
    }
    WORLD_CHECK(me, coll_comm_destroy(a) == COLL_OK);
    WORLD_CHECK(me, !coll_barrier(b, NULL));
    WORLD_CHECK(me, coll_comm_destroy(b) == COLL_OK);
    return 0;
}

START_TEST(two_communicators_do_not_mix) { run(two_at_once, 4, _i); }
END_TEST

/* ---- more than 2^31 elements --------------------------------------------- */

#define MANY (((size_t)1 << 31) + 12345)

static unsigned char many_of(int rank, size_t i)
{
    return (unsigned char)(i * 2654435761u >> 24) % 100 + (unsigned char)rank;
}

/* One byte each, in place, by the largest rank's value. */
static int many(struct world_rank *me)
{
    struct coll_comm *comm;
    unsigned char *x = malloc(MANY);

    WORLD_CHECK(me, x && !coll_comm_create_oob(&comm, &me->oob, NULL));
    for (size_t i = 0; i < MANY; i++)
        x[i] = many_of(me->rank, i);
    WORLD_CHECK(me,
                !coll_allreduce(x, x, MANY, COLL_U8, COLL_MAX, comm, NULL));
    for (size_t i = 0; i < MANY; i++)
        if (x[i] != many_of(me->size - 1, i))
            WORLD_CHECK(me, !"an element is wrong");
    WORLD_CHECK(me, !coll_broadcast(x, x, MANY, COLL_U8, 1, comm, NULL));
    WORLD_CHECK(me, x[MANY - 1] == many_of(me->size - 1, MANY - 1));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    free(x);
    return 0;
}

static int has_memory(size_t bytes)
{
    FILE *file = fopen("/proc/meminfo", "r");
    unsigned long kib = 0;
    char line[128];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib > bytes >> 10;
}

START_TEST(counts_may_pass_2_31)
{
    if (!has_memory((size_t)6 << 30)) {
        printf("counts_may_pass_2_31: skipped, needs 6 GiB of memory\n");
        return;
    }
    ck_assert_int_eq(world_fork(2, many, NULL, DEADLINE), 0);
}
END_TEST

/* A request that was forgotten is told of. */
static int forget_request(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .collective = COLL_BARRIER};
    struct coll_request *request;
    struct coll_comm *comm;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_INVALID);
    WORLD_CHECK(me, strstr(coll_last_error(), "still has requests"));
    return 0;
}

START_TEST(a_forgotten_request_is_told_of)
{
    ck_assert_int_eq(world_fork(2, forget_request, NULL, DEADLINE), 0);
}
END_TEST

/* ---- bad input ----------------------------------------------------------- */

static int bad_arguments(struct world_rank *me)
{
    struct coll_args args = {.size = sizeof(args), .count = 1};
    struct coll_request *request;
    struct coll_comm *comm;
    int x[8] = {0}, y[8];

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
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
    EXPECT(me, coll_allreduce(x, y, 2, COLL_I32, COLL_SUM, comm, x),
           COLL_ERR_INVALID, "stream must be NULL");
    EXPECT(me, coll_broadcast(x, y, 2, COLL_I32, me->size, comm, NULL),
           COLL_ERR_INVALID, "root");
    EXPECT(me, coll_broadcast(x, y, 2, COLL_I32, -1, comm, NULL),
           COLL_ERR_INVALID, "root -1");
    EXPECT(me, coll_allgather(x, x + 1, 2, COLL_I32, comm, NULL),
           COLL_ERR_INVALID, "in == out + rank * count");
    args.in = x, args.out = y, args.size = 3;
    EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
           "args.size is 3");
    EXPECT(me, coll_start(NULL), COLL_ERR_INVALID, "request is NULL");
    WORLD_CHECK(me, coll_request_destroy(NULL) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(NULL) == COLL_OK);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(bad_arguments_get_a_sentence_and_send_nothing)
{
    ck_assert_int_eq(world_fork(1, bad_arguments, NULL, DEADLINE), 0);
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
        {"COLL_WAIT", "sleep", "auto|spin"},
        {"COLL_TRANSPORTS", "self,rdma", "there are: self, shm"},
    };

    ck_assert_int_lt(_i, (int)ARRAY_LEN(cases));
    setenv(cases[_i][0], cases[_i][1], 1);
    ck_assert_int_eq(world_fork(2, expect_create_fails, (void *)cases[_i][2],
                                DEADLINE), 0);
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

static int query(struct world_rank *me)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args = {.size = sizeof(args), .type = COLL_F32};
    struct coll_comm *comm;
    char x[64], y[64];

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    args.in = x, args.out = y, args.count = 2;
    WORLD_CHECK(me, !coll_plan_query(&args, comm, &info));
    WORLD_CHECK(me, info.seconds > 0 && info.n_steps > 0);
    WORLD_CHECK(me, !strcmp(info.algorithm, "ring"));
    WORLD_CHECK(me, strstr(coll_comm_transports(comm), "self"));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_OK);
    return 0;
}

START_TEST(a_plan_can_be_asked_for)
{
    setenv("COLL_ALGO", "ring", 1);
    ck_assert_int_eq(world_fork(3, query, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coll");
    TCase *c = tcase_create("coll");
    SRunner *runner = srunner_create(suite);
    int most = getenv("TEST_QUICK") ? 5 : 9, failed;

    setenv("COLL_TIMEOUT", "60", 1);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, random_operations_are_right_by_shared_memory, 1,
                        most + 1);
    tcase_add_loop_test(c, random_operations_are_right_by_ucx, 1, most + 1);
    tcase_add_loop_test(c, each_algorithm_is_right_when_it_is_forced, 0, 6);
    tcase_add_test(c, a_request_can_be_started_many_times);
    tcase_add_loop_test(c, ranks_can_be_threads, 1, most);
    tcase_add_loop_test(c, two_communicators_do_not_mix, 0, 2);
    tcase_add_test(c, a_forgotten_request_is_told_of);
    if (!getenv("TEST_QUICK"))
        tcase_add_test(c, counts_may_pass_2_31);
    tcase_add_test(c, bad_arguments_get_a_sentence_and_send_nothing);
    tcase_add_test(c, a_struct_with_an_unknown_tail_is_refused);
    tcase_add_loop_test(c, bad_parameters_are_named, 0, 6);
    tcase_add_test(c, a_bad_parameter_on_one_rank_is_told_to_all);
    tcase_add_test(c, ranks_that_are_set_differently_are_told_so);
    tcase_add_test(c, ranks_without_a_transport_between_them_are_told_so);
    tcase_add_test(c, a_plan_can_be_asked_for);
    suite_add_tcase(suite, c);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
