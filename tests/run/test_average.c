/* SPDX-License-Identifier: BSD-3-Clause */
/* test_average.c - averages of f16 and bf16 whose sum is too large for the type. */
#include "lib/algo/algo.h"
#include "lib/type/half.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 40, MOST = 8, COUNT = PART * MOST };

static const struct kind {
    enum coll_type type;
    float most, large;
    float error; /* of a rounding, relative */
} kinds[] = {{COLL_F16, 65504, 60000, 0x1p-11f},
             {COLL_BF16, 0x1.fep127f, 3e38f, 0x1p-8f}};

/* Element i of a rank: numbers near the end of the range, alike or of different
 * signs and sizes, and small whole ones. */
static float number(const struct kind *k, int rank, size_t i)
{
    float values[] = {k->large,
                      -k->most,
                      k->most,
                      rank % 2 ? k->most : 1,
                      rank % 3 ? -k->large : k->large,
                      (float)(i % 7)};

    return values[i % ARRAY_LEN(values)];
}

static uint16_t narrow(const struct kind *k, float x)
{
    return k->type == COLL_F16 ? f16_narrow(x) : bf16_narrow(x);
}

static float widen(const struct kind *k, uint16_t x)
{
    return k->type == COLL_F16 ? f16_widen(x) : bf16_widen(x);
}

/* Compare n elements from `first` on with the exact averages: each of the sums
 * may be rounded, as a part of the largest number.  An average of equal whole
 * numbers is exact. */
static int are_right(const struct kind *k, int p, size_t first, size_t n,
                     const uint16_t *out)
{
    for (size_t i = first; i < first + n; i++) {
        double sum = 0, most = 0, got = (double)widen(k, out[i - first]);

        for (int r = 0; r < p; r++) {
            double x = (double)widen(k, narrow(k, number(k, r, i)));

            sum += x;
            most = fmax(most, fabs(x));
        }
        if (!(fabs(got - sum / p) <= (p + 1) * (double)k->error * most) ||
            (most < 7 && got != sum / p)) {
            fprintf(stderr, "element %zu of %s is %g, not %g\n", i,
                    coll_type_name(k->type), got, sum / p);
            return 0;
        }
    }
    return 1;
}

/* The call, if the algorithm (NULL: any) serves it; *n_served counts those. */
static int call(struct world_rank *me, struct coll_comm *comm, const char *algo,
                const struct kind *k, enum coll_collective collective,
                int in_place, int *n_served)
{
    static uint16_t in[COUNT], out[COUNT];
    size_t n = PART * (size_t)me->size, first = 0;
    struct coll_args args = {.size = sizeof(args),
                             .collective = collective,
                             .type = k->type,
                             .op = COLL_AVG,
                             .root = me->size - 1,
                             .in = in,
                             .out = in_place ? in : out,
                             .count = n,
                             .algo = algo};
    struct coll_request *request;
    int rc;

    for (size_t i = 0; i < n; i++)
        in[i] = narrow(k, number(k, me->rank, i));
    memset(out, 0, sizeof(out));
    if (collective == COLL_REDUCE && me->rank != args.root)
        args.out = NULL;
    if (collective == COLL_REDUCE_SCATTER) {
        args.count = n = PART;
        first = PART * (size_t)me->rank;
        args.out = in_place ? in + first : out;
    }
    rc = coll_request_create(&args, comm, &request);
    if (rc == COLL_ERR_INVALID || rc == COLL_ERR_UNSUPPORTED)
        return 0;
    ++*n_served;
    if (!rc)
        rc = coll_start(request);
    if (!rc)
        rc = coll_wait(request, 0);
    coll_request_destroy(request);
    if (!rc && (!args.out || are_right(k, me->size, first, n, args.out)))
        return 0;
    fprintf(stderr, "rank %d of %d: %s by %s%s: %s\n", me->rank, me->size,
            coll_collective_name(collective), algo ? algo : "any",
            in_place ? " in place" : "", coll_strerror(rc));
    return 1;
}

static int each_algorithm(struct world_rank *me)
{
    static const enum coll_collective collectives[] = {
        COLL_ALLREDUCE, COLL_REDUCE, COLL_REDUCE_SCATTER};
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = *(int *)me->arg};
    const struct coll__algo *algo;
    struct coll_comm *comm;
    int wrong = 0, n_served = 0;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    for (int a = 0; (algo = coll__algos[a]); a++)
        for (size_t c = 0; c < ARRAY_LEN(collectives); c++)
            for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
                for (int at = 0; at < 2; at++)
                    if (algo->serves & 1u << collectives[c])
                        wrong += call(me, comm, algo->name, &kinds[k],
                                      collectives[c], at, &n_served);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, n_served >= 30);
    return wrong != 0;
}

/* _i: the number of ranks. */
START_TEST(an_average_that_fits_is_right_by_every_algorithm)
{
    int reproducible = 0;

    ck_assert_int_eq(world_fork(_i, each_algorithm, &reproducible, patient(60)),
                     0);
}
END_TEST

START_TEST(and_in_reproducible_mode_with_all_calls_compared)
{
    int reproducible = 1;

    setenv("COLL_CHECK", "1", 1);
    ck_assert_int_eq(world_fork(_i, each_algorithm, &reproducible, patient(60)),
                     0);
}
END_TEST

/* The file has a plan that is not in place; the calls are, or are not. */
static int by_file(struct world_rank *me)
{
    struct coll_comm *comm;
    int wrong = 0, n_served = 0;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (int at = 0; at < 2; at++)
            wrong +=
                call(me, comm, NULL, &kinds[k], COLL_ALLREDUCE, at, &n_served);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return wrong || n_served != 4;
}

START_TEST(and_by_a_plan_of_a_file)
{
    static const char plan[] =
        "coll_plan 1\n"
        "collective allreduce\ntype f16\nop avg\nranks 2\ncount 80\n"
        "edges listed\n"
        "rank 0 tmp 0\n"
        "0 send peer 1 in[0,160)\n"
        "1 recv_reduce peer 1 out[0,160) with in[0,160)\n"
        "2 scale out[0,160) waits for 1\n"
        "rank 1 tmp 0\n"
        "0 send peer 0 in[0,160)\n"
        "1 recv_reduce peer 0 out[0,160) with in[0,160) left\n"
        "2 scale out[0,160) waits for 1\n";

    ck_assert_int_eq(world_fork_planned(2, by_file, plan, patient(60)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("average");
    TCase *c = suite_case(suite, "average", 120);

    patient_timeout(60);
    tcase_add_loop_test(c, an_average_that_fits_is_right_by_every_algorithm, 2,
                        6);
    tcase_add_loop_test(c, and_in_reproducible_mode_with_all_calls_compared, 2,
                        6);
    tcase_add_test(c, and_by_a_plan_of_a_file);
    return suite_run(suite);
}
