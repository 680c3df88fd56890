/* SPDX-License-Identifier: BSD-3-Clause */
/* test_coll.c - the public operations among real processes and threads: random
 * shapes, blocking, not, and grouped, every algorithm and transport. */
#include "tests/support/patience.h"
#include "tests/support/work.h"
#include "tests/support/suite.h"
#include "lib/comm/comm.h"
#include "lib/util/limit.h"
#include "lib/util/util.h"
#include "lib/type/signature.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 100

/* ---- random runs --------------------------------------------------------- */

/* A rank of a random run. */
struct player {
    struct world_rank *me;
    struct coll_comm *comm;
    struct oracle_handles handles;
    uint64_t state, own; /* what all ranks draw alike; what this one draws */
};

static int player_init(struct player *p, struct world_rank *me, unsigned salt)
{
    p->me = me;
    p->state = (uint64_t)me->size * salt + *(unsigned *)me->arg;
    p->own = p->state + 1000u * (unsigned)me->rank;
    WORLD_CHECK(me, !oracle_handles_init(&p->handles, me->rank));
    WORLD_CHECK(me, !coll_comm_create_oob(&p->comm, &me->oob, NULL));
    return 0;
}

static int player_fini(struct player *p)
{
    WORLD_CHECK(p->me, coll_comm_destroy(p->comm) == COLL_OK);
    WORLD_CHECK(p->me, !oracle_handles_fini(&p->handles));
    return 0;
}

static void draw(struct player *p, struct work *w)
{
    struct oracle_op op = oracle_draw(&p->state, p->me->size);

    work_init(w, &op, p->me->rank, &p->handles, oracle_random(&p->own, 2) == 0);
}

static int random_blocking(struct world_rank *me)
{
    struct player p;

    if (player_init(&p, me, 77))
        return 1;
    WORLD_CHECK(me, coll_comm_rank(p.comm) == me->rank);
    WORLD_CHECK(me, coll_comm_size(p.comm) == me->size);
    WORLD_CHECK(me, coll_comm_local_size(p.comm) == me->size);
    WORLD_CHECK(me, coll_comm_n_hosts(p.comm) == 1);
    for (int i = 0; i < part_of(150); i++) {
        struct work w;

        draw(&p, &w);
        WORLD_CHECK(me, work_call(&w, p.comm) == COLL_OK);
        if (work_check(&w, me))
            return 1;
        work_fini(&w);
    }
    return player_fini(&p);
}

#define N_FLYING 5

/* Take any of the algorithms that could do it; all ranks the same. */
static int draw_algorithm(struct player *p, struct coll_args *args,
                          struct coll_plan_info *info)
{
    size_t n = 0;

    while (coll_plan_candidate(args, p->comm, n, info) == COLL_OK)
        n++;
    WORLD_CHECK(p->me, n > 0);
    if (oracle_random(&p->state, 3) == 0) /* the library's own choice */
        return 0;
    WORLD_CHECK(p->me,
                !coll_plan_candidate(args, p->comm,
                                     oracle_random(&p->state, (unsigned)n),
                                     info));
    args->algo = info->algorithm;
    return 0;
}

static int start_one(struct player *p, struct work *w,
                     struct coll_request **request)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct oracle_op op = oracle_draw_request(&p->state, p->me->size);
    struct coll_args args;

    work_init(w, &op, p->me->rank, &p->handles, oracle_random(&p->own, 2) == 0);
    args = work_args(w);
    if (draw_algorithm(p, &args, &info))
        return 1;
    WORLD_CHECK(p->me, !coll_request_create(&args, p->comm, request));
    memset(&info, 'x', sizeof(info)); /* the name was copied */
    WORLD_CHECK(p->me, !coll_start(*request));
    return 0;
}

static int finish_one(struct player *p, struct work *w,
                      struct coll_request *request, int by_test)
{
    int rc = COLL_IN_PROGRESS;

    while (by_test && rc == COLL_IN_PROGRESS)
        rc = coll_test(request);
    if (!by_test)
        rc = coll_wait(request, 0);
    WORLD_CHECK(p->me, rc == COLL_OK);
    if (work_check(w, p->me))
        return 1;
    WORLD_CHECK(p->me, coll_request_destroy(request) == COLL_OK);
    work_fini(w);
    return 0;
}

/* Several operations under way at once, by any algorithm, finished by wait and
 * by test. */
static int random_requests(struct world_rank *me)
{
    struct player p;

    if (player_init(&p, me, 99))
        return 1;
    for (int i = 0; i < part_of(25); i++) {
        struct coll_request *requests[N_FLYING];
        struct work works[N_FLYING];

        for (int k = 0; k < N_FLYING; k++)
            if (start_one(&p, &works[k], &requests[k]))
                return 1;
        for (int k = N_FLYING - 1; k >= 0; k--)
            if (finish_one(&p, &works[k], requests[k], k % 2))
                return 1;
    }
    return player_fini(&p);
}

#define N_GROUPED 7

/* Groups of operations; small allreduces among them travel as one. */
static int random_groups(struct world_rank *me)
{
    struct player p;

    if (player_init(&p, me, 55))
        return 1;
    for (int i = 0; i < part_of(25); i++) {
        int n = (int)oracle_random(&p.state, N_GROUPED + 1);
        struct work works[N_GROUPED];

        WORLD_CHECK(me, coll_group_start() == COLL_OK);
        for (int k = 0; k < n; k++) {
            draw(&p, &works[k]);
            WORLD_CHECK(me, work_call(&works[k], p.comm) == COLL_OK);
        }
        WORLD_CHECK(me, coll_group_end() == COLL_OK);
        for (int k = 0; k < n; k++) {
            if (work_check(&works[k], me))
                return 1;
            work_fini(&works[k]);
        }
    }
    return player_fini(&p);
}

/* One request started again and again, with new contents. */
static int start_again(struct player *p, enum coll_collective collective)
{
    struct world_rank *me = p->me;
    struct coll_request *request;
    struct coll_args args;
    struct oracle_op op;
    struct work w;

    do
        op = oracle_draw(&p->state, me->size);
    while (op.collective != collective || op.count > 5000);
    work_init(&w, &op, me->rank, &p->handles, 0);
    args = work_args(&w);
    WORLD_CHECK(me, !coll_request_create(&args, p->comm, &request));
    WORLD_CHECK(me, coll_test(request) == COLL_OK); /* never started */
    for (int i = 0; i < part_of(10); i++) {
        if (!args.in_counts && !args.out_counts) /* a seed of other counts */
            w.op.seed++;
        oracle_fill(&w.op, me->rank, &w.in_at, w.in);
        WORLD_CHECK(me, coll_start(request) == COLL_OK);
        WORLD_CHECK(me, coll_wait(request, 20) == COLL_OK);
        if (work_check(&w, me))
            return 1;
    }
    WORLD_CHECK(me, coll_request_destroy(request) == COLL_OK);
    work_fini(&w);
    return 0;
}

static int persistent(struct world_rank *me)
{
    struct player p;

    if (player_init(&p, me, 5))
        return 1;
    for (int k = 0; k < COLL__N_OF_ALL; k++)
        if (start_again(&p, coll__of_all(k)))
            return 1;
    return player_fini(&p);
}

static void run(world_fn *fn, int size, int which)
{
    int seed = 11 * size + which;

    setenv("COLL_TRANSPORTS", world_net(which ? "" : "self,shm,"), 1);
    ck_assert_int_eq(world_fork(size, fn, &seed, DEADLINE), 0);
}

START_TEST(random_operations_are_right_by_shared_memory)
{
    run(random_blocking, _i, 0);
    run(random_requests, _i, 0);
    run(random_groups, _i, 0);
}
END_TEST

/* A rank's own transport may be named last: it reaches nobody else. */
START_TEST(transports_may_be_named_in_any_order)
{
    int seed = 7;

    setenv("COLL_TRANSPORTS", "shm,tcp,self", 1);
    ck_assert_int_eq(world_fork(3, random_blocking, &seed, DEADLINE), 0);
}
END_TEST

START_TEST(random_operations_are_right_by_ucx)
{
    run(random_blocking, _i, 1);
    run(random_requests, _i, 1);
    run(random_groups, _i, 1);
}
END_TEST

/* Inputs, results or both in memory that is read in place, whatever the length
 * of what is beyond a slot. */
START_TEST(random_operations_are_right_in_regions)
{
    work_in_regions = _i % 4;
    coll__limit_assume(LIMIT_MEM_MIN, 0);
    coll__limit_assume(LIMIT_SHM_SLOT, 64);
    run(random_blocking, 2 + _i / 4, 0);
    run(random_requests, 2 + _i / 4, 0);
    run(random_groups, 2 + _i / 4, 0);
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
    coll__limit_assume(LIMIT_MEM_MIN, 0);
    work_in_regions = WORK_IN | WORK_OUT;
    run(random_blocking, 5, 0);
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
    ck_assert_int_eq(world_threads(_i, random_groups, &seed, DEADLINE), 0);
}
END_TEST

/* Two communicators of one process, used in turn. */
static int two_at_once(struct world_rank *me)
{
    struct coll_comm *a, *b;
    int x = me->rank, y;

    WORLD_CHECK(me, !coll_comm_create_oob(&a, &me->oob, NULL));
    WORLD_CHECK(me, !coll_comm_create_oob(&b, &me->oob, NULL));
    for (int i = 0; i < part_of(50); i++) {
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

/* ---- requests ------------------------------------------------------------ */

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

int main(void)
{
    Suite *suite = suite_create("coll");
    TCase *c = tcase_create("coll");
    int most = getenv("TEST_QUICK") ? 5 : 9;

    patient_timeout(60);
    tcase_set_timeout(c, 2 * DEADLINE);
    tcase_add_loop_test(c, random_operations_are_right_by_shared_memory, 1,
                        most + 1);
    tcase_add_loop_test(c, random_operations_are_right_by_ucx, 1, most + 1);
    for (int size = 2; size <= (most > 5 ? 4 : 3); size++) /* not 4k: in none */
        tcase_add_loop_test(c, random_operations_are_right_in_regions,
                            4 * (size - 2) + 1, 4 * (size - 2) + 4);
    tcase_add_loop_test(c, each_algorithm_is_right_when_it_is_forced, 0, 6);
    tcase_add_test(c, transports_may_be_named_in_any_order);
    tcase_add_test(c, a_request_can_be_started_many_times);
    tcase_add_loop_test(c, ranks_can_be_threads, 1, most);
    tcase_add_loop_test(c, two_communicators_do_not_mix, 0, 2);
    tcase_add_test(c, a_forgotten_request_is_told_of);
    if (!getenv("TEST_QUICK"))
        tcase_add_test(c, counts_may_pass_2_31);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
