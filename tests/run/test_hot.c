/* SPDX-License-Identifier: BSD-3-Clause */
/* test_hot.c - after the first call of a shape nothing is allocated. */
#include "lib/ctrl/ctrl.h"
#include "tests/support/hot.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/* Counts of each rank, about n; displacements are left out. */
static int run_v(struct coll_comm *comm, float *in, float *out, size_t n)
{
    int p = coll_comm_size(comm), me = coll_comm_rank(comm);
    size_t counts[8], even[8];

    for (int r = 0; r < p; r++) {
        counts[r] = n / 4 + (size_t)r;
        even[r] = n / 4;
    }
    return coll_allgatherv(in, out, counts, NULL, COLL_F32, comm, NULL) ||
           coll_reduce_scatterv(in, out, counts, COLL_F32, COLL_MAX, comm,
                                NULL) ||
           coll_alltoallv(in, even, NULL, out, even, NULL, COLL_F32, comm,
                          NULL) ||
           coll_gatherv(in, counts[me], out, counts, NULL, COLL_F32, 0, comm,
                        NULL) ||
           coll_scatterv(in, counts, NULL, out, counts[me], COLL_F32, 0, comm,
                         NULL);
}

/* Parts backwards, and those of in between those of out. */
static int run_mixed(struct coll_comm *comm, float *in, float *out, size_t n)
{
    int p = coll_comm_size(comm);
    size_t part = n / 16, counts[8], backwards[8], gaps[8];

    for (int r = 0; r < p; r++) {
        counts[r] = part;
        backwards[r] = (size_t)(p - 1 - r) * part;
        gaps[r] = 2 * backwards[r];
    }
    return coll_allgatherv(in, out, counts, backwards, COLL_F32, comm, NULL) ||
           coll_alltoallv(in, counts, gaps, in + part, counts, gaps, COLL_F32,
                          comm, NULL);
}

/* More shapes than a list would be gone through for. */
static int run_many(struct coll_comm *comm, float *in, float *out)
{
    for (size_t n = 1; n <= 300; n++)
        if (coll_allreduce(in, out, n, COLL_F32, COLL_SUM, comm, NULL))
            return 1;
    return 0;
}

static int pass_round(struct coll_comm *comm, float *in, float *out, size_t n)
{
    int p = coll_comm_size(comm), me = coll_comm_rank(comm);

    if (me && coll_recv(out, n, COLL_F32, me - 1, comm, NULL))
        return 1;
    return me + 1 < p && coll_send(in, n, COLL_F32, me + 1, comm, NULL);
}

static int run_request(struct coll_comm *comm, float *in, float *out, size_t n,
                       int any_order)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_F32,
                             .op = COLL_SUM,
                             .in = in,
                             .out = out,
                             .count = n,
                             .any_order = any_order};
    struct coll_request *request;

    return coll_request_create(&args, comm, &request) || coll_start(request) ||
           coll_wait(request, 0) || coll_request_destroy(request);
}

static int run_all(struct coll_comm *comm, float *in, float *out, size_t n)
{
    size_t part = n / (size_t)coll_comm_size(comm);

    return coll_allreduce(in, out, n, COLL_F32, COLL_AVG, comm, NULL) ||
           coll_broadcast(in, out, n, COLL_F32, 1, comm, NULL) ||
           coll_reduce(in, out, n, COLL_F32, COLL_SUM, 1, comm, NULL) ||
           coll_allgather(in, out, n, COLL_F32, comm, NULL) ||
           coll_reduce_scatter(in, out, part, COLL_F32, COLL_SUM, comm, NULL) ||
           coll_alltoall(in, out, part, COLL_F32, comm, NULL) ||
           coll_gather(in, out, n, COLL_F32, 1, comm, NULL) ||
           coll_scatter(in, out, part, COLL_F32, 1, comm, NULL) ||
           coll_scan(in, out, n, COLL_F32, COLL_SUM, comm, NULL) ||
           coll_exscan(in, out, n, COLL_F32, COLL_SUM, comm, NULL) ||
           run_v(comm, in, out, n) || run_mixed(comm, in, out, n) ||
           run_request(comm, in, out, n, 0) ||
           run_request(comm, in, out, n, 1) || pass_round(comm, in, out, n) ||
           coll_barrier(comm, NULL);
}

static int run_sizes(struct coll_comm *comm, int n_times)
{
    static float in[60000], out[200000];
    size_t sizes[] = {1, 1000, 50000};

    for (int k = 0; k < n_times; k++)
        for (int i = 0; i < 3; i++)
            if (run_all(comm, in, out, sizes[i]))
                return 1;
    return run_many(comm, in, out);
}

/* How often ranks have asked where another one is. */
static int count_questions(struct coll_comm *comm, uint64_t *n)
{
    uint64_t mine = coll__ctrl_n_questions(world_ctrl(comm));

    return coll_allreduce(&mine, n, 1, COLL_U64, COLL_SUM, comm, NULL);
}

/* On a busy machine ranks ask for one that comes a second late, which allocates; then it is
 * counted again. */
static int count_calls(struct world_rank *me)
{
    uint64_t asked, asked_before;
    struct coll_comm *comm;
    int n_tries = 0;
    long n;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !run_sizes(comm, 1));
    do {
        WORLD_CHECK(me, !count_questions(comm, &asked_before));
        n = hot_now().allocations;
        WORLD_CHECK(me, !run_sizes(comm, 50));
        n = hot_now().allocations - n;
        WORLD_CHECK(me, !count_questions(comm, &asked));
    } while (asked != asked_before && ++n_tries < 10);
    WORLD_CHECK(me, n == 0);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, hot_now().allocations > 0); /* or it counts nothing */
    return 0;
}

START_TEST(repeated_calls_allocate_nothing)
{
    setenv("COLL_TRANSPORTS", "self,shm", 1);
    ck_assert_int_eq(world_fork(_i, count_calls, NULL, 60), 0);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *c;

    if (!HOT_COUNTS) {
        puts("skipped: a sanitizer has malloc for itself");
        return 77;
    }
    suite = suite_create("hot");
    c = tcase_create("hot");
    tcase_set_timeout(c, 90);
    tcase_add_loop_test(c, repeated_calls_allocate_nothing, 2, 5);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
