/* SPDX-License-Identifier: BSD-3-Clause */
/* test_factors.c - prescale and postscale of a reduction.
 *
 * Each element is zero but on one rank, its owner.  So every order of combination gives the
 * same bits: the owner's product, rounded, times the factor of the result, rounded.
 */
#include "lib/algo/algo.h"
#include "lib/type/op.h"
#include "lib/type/signature.h"
#include "lib/util/util.h"
#include "tests/support/element.h"
#include "tests/support/patience.h"
#include "tests/support/suite.h"
#include "tests/support/world.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 37, MOST = 5, COUNT = PART * MOST };

/* ---- what a call's factors become ------------------------------------------- */

/* Look a call's operation up, as one of n ranks. */
static struct coll__op op_for(enum coll_op op, enum coll_type type, int n,
                              double prescale, double postscale)
{
    struct coll_args args = {
        .op = op, .type = type, .prescale = prescale, .postscale = postscale};
    struct coll__op out;

    ck_assert(!coll__op_for(&args, n, &out));
    return out;
}

/* Return a factor that is an f32; 0: it is none. */
static float f32_factor(const struct coll__factor *factor)
{
    float number;

    memcpy(&number, factor->number, sizeof(number));
    return factor->is_set ? number : 0;
}

/* 1 / m for the least power of two m that is not less than the number of ranks. */
START_TEST(averages_of_narrow_floats_scale_their_input)
{
    static const struct {
        enum coll_type type;
        int n;
        float factor;
    } cases[] = {
        {COLL_F16, 1, 0},         {COLL_F16, 2, 0.5f},
        {COLL_F16, 3, 0.25f},     {COLL_F16, 4, 0.25f},
        {COLL_BF16, 5, 0.125f},   {COLL_BF16, 16, 0.0625f},
        {COLL_F16, 17, 0.03125f}, {COLL_BF16, 65, 0.0078125f},
        {COLL_F8E4M3, 5, 0.125f}, {COLL_F8E4M3, 5000, 1 / 512.f},
        {COLL_F32, 5, 0},         {COLL_F8E5M2, 5000, 1 / 8192.f},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct coll__op op = op_for(COLL_AVG, cases[i].type, cases[i].n, 0, 0);

        ck_assert(f32_factor(&op.pre) == cases[i].factor && !op.post.is_set);
        ck_assert(!op.is_premul && op.base == COLL_AVG);
        ck_assert_uint_eq(coll__op_code(&op), COLL_AVG);
        op = op_for(COLL_SUM, cases[i].type, cases[i].n, 1, 1);
        ck_assert(!op.pre.is_set && !op.post.is_set);
    }
}
END_TEST

START_TEST(factors_of_a_call_are_in_the_precision_of_its_arithmetic)
{
    struct coll__op op = op_for(COLL_SUM, COLL_BF16, 3, 0.1, 1 / 3.);
    double wide;

    ck_assert(f32_factor(&op.pre) == 0.1f && f32_factor(&op.post) == 1 / 3.f);
    ck_assert(op.pre.type == COLL_BF16 && op.postscale == 1 / 3.f);
    ck_assert_uint_eq(coll__op_code(&op), COLL_SUM | COLL__SIGNATURE_SCALED);
    op = op_for(COLL_SUM, COLL_F64, 3, 0.1, 0);
    memcpy(&wide, op.pre.number, sizeof(wide));
    ck_assert(wide == 0.1 && !op.post.is_set);
    ck_assert_uint_eq(coll__op_code(&op), COLL_SUM);
    op = op_for(COLL_SUM, COLL_C64, 3, 0.1, 0);
    ck_assert(op.pre.type == COLL_F32 && f32_factor(&op.pre) == 0.1f);
    op = op_for(COLL_AVG, COLL_F32, 5, 0, 3);
    ck_assert(!op.pre.is_set && f32_factor(&op.post) == (float)(3 / 5.));
    op = op_for(COLL_AVG, COLL_F16, 5, 3, 7);
    ck_assert(f32_factor(&op.pre) == 0.375f);
    ck_assert(f32_factor(&op.post) == (float)(8 / 5. * 7));
}
END_TEST

/* ---- results ---------------------------------------------------------------- */

/* One call: how it is made, on which buffers. */
struct scaled {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    double postscale;
    const char *algo; /* NULL: any */
    size_t count;     /* of all ranks together, for a reduce_scatter */
    int in_place;
};

/* Each rank has another one, and none of them is a number of a narrow type. */
static double prescale_of(int rank) { return rank ? 0.7 + rank : -0.3; }

/* Write element i: a small number on its owner, zero elsewhere. */
static void put(enum coll_type type, char *at, size_t i, int is_owner)
{
    enum coll_type part = part_of_type(type);
    double wide = is_owner ? 1 + (double)(i % 7) / 8 : 0;
    float narrow = (float)wide;
    unsigned bits = part == COLL_F16      ? encode(f16, wide)
                    : part == COLL_BF16   ? encode(bf16, wide)
                    : part == COLL_F8E4M3 ? encode(f8e4m3, wide)
                                          : encode(f8e5m2, wide);

    for (size_t n = 0; n < coll_type_size(type); n += coll_type_size(part))
        memcpy(at + n,
               part == COLL_F64   ? (void *)&wide
               : part == COLL_F32 ? (void *)&narrow
                                  : (void *)&bits,
               coll_type_size(part));
}

/* Multiply an element as the documentation of coll_args says. */
static void multiply(enum coll_type type, char *at, double factor)
{
    enum coll_type part = part_of_type(type);
    float narrow = (float)factor;

    for (size_t n = 0; n < coll_type_size(type); n += coll_type_size(part))
        multiply_element(part, at + n,
                         part == COLL_F64 ? (void *)&factor : (void *)&narrow);
}

/* Write the result for element i.  An average of a narrow type divides by the power of two
 * first, which is exact here. */
static void put_expected(const struct scaled *c, int size, size_t i, char *at)
{
    int owner = (int)(i % (size_t)size);
    double m = 1;

    while (c->op == COLL_AVG && m < size &&
           coll__factor_type(c->type) != c->type)
        m *= 2;
    put(c->type, at, i, 1);
    multiply(c->type, at, prescale_of(owner) / m);
    multiply(c->type, at,
             c->op == COLL_AVG ? m / size * c->postscale : c->postscale);
}

/* Compare n elements from `first` on with the expected ones. */
static int are_right(const struct scaled *c, int size, size_t first, size_t n,
                     const char *out)
{
    size_t len = coll_type_size(c->type);
    char want[16];

    for (size_t i = first; i < first + n; i++, out += len) {
        put_expected(c, size, i, want);
        if (memcmp(out, want, len)) {
            fprintf(stderr, "element %zu of %s is wrong\n", i,
                    coll_type_name(c->type));
            return 0;
        }
    }
    return 1;
}

static char in[COUNT * 16], out[COUNT * 16];
static size_t counts[MOST];

static struct coll_args args_of(const struct world_rank *me,
                                const struct scaled *c)
{
    size_t size = coll_type_size(c->type);
    struct coll_args args = {.size = sizeof(args),
                             .collective = c->collective,
                             .type = c->type,
                             .op = c->op,
                             .root = me->size - 1,
                             .in = in,
                             .out = c->in_place ? in : out,
                             .count = c->count,
                             .algo = c->algo,
                             .prescale = prescale_of(me->rank),
                             .postscale = c->postscale};
    size_t part = c->count / (size_t)me->size;

    if (c->collective == COLL_REDUCE && me->rank != args.root)
        args.out = NULL;
    if (c->collective == COLL_REDUCE_SCATTER ||
        c->collective == COLL_REDUCE_SCATTERV) {
        args.count = part;
        args.in_counts = counts;
        if (c->in_place)
            args.out = in + part * size * (size_t)me->rank;
    }
    for (int r = 0; r < me->size; r++)
        counts[r] = part;
    for (size_t i = 0; i < c->count; i++)
        put(c->type, in + i * size, i, (int)(i % (size_t)me->size) == me->rank);
    return args;
}

static int run(const struct coll_args *args, struct coll_comm *comm)
{
    struct coll_request *request;
    int rc = coll_request_create(args, comm, &request);

    if (rc)
        return rc;
    rc = coll_start(request);
    if (!rc)
        rc = coll_wait(request, 0);
    coll_request_destroy(request);
    return rc;
}

/* The call, if the algorithm serves it; *n_served counts those. */
static int call(const struct world_rank *me, struct coll_comm *comm,
                const struct scaled *c, int *n_served)
{
    struct coll_args args = args_of(me, c);
    int is_scatter = args.in_counts != NULL;
    size_t n = is_scatter ? counts[0] : c->count;
    int rc = run(&args, comm);

    if (c->algo && (rc == COLL_ERR_INVALID || rc == COLL_ERR_UNSUPPORTED))
        return 0;
    ++*n_served;
    if (!rc && (!args.out ||
                are_right(c, me->size, is_scatter ? n * (size_t)me->rank : 0, n,
                          args.out)))
        return 0;
    fprintf(stderr, "rank %d of %d: %s of %zu, %s by %s%s: %s (%s)\n", me->rank,
            me->size, coll_collective_name(c->collective), c->count,
            coll_op_name(c->op), c->algo ? c->algo : "any",
            c->in_place ? " in place" : "", coll_strerror(rc),
            coll_last_error());
    return 1;
}

static const enum coll_type types[] = {COLL_F16,    COLL_BF16, COLL_F8E4M3,
                                       COLL_F8E5M2, COLL_F32,  COLL_F64,
                                       COLL_C64,    COLL_C128};

/* Run a collective with each type, both operations, in place and not; each shape with two
 * factors in turn. */
static int each_type(const struct world_rank *me, struct coll_comm *comm,
                     struct scaled c, int *n_served)
{
    int wrong = 0;

    for (size_t k = 0; k < 8 * ARRAY_LEN(types); k++) {
        c.type = types[k / 8];
        c.op = k % 2 ? COLL_AVG : COLL_SUM;
        c.in_place = k / 2 % 2;
        c.postscale = k / 4 % 2 ? 1 / 3. : -1.9;
        wrong += call(me, comm, &c, n_served);
    }
    return wrong;
}

static int each_algorithm(struct world_rank *me)
{
    static const enum coll_collective collectives[] = {
        COLL_ALLREDUCE, COLL_REDUCE, COLL_REDUCE_SCATTER, COLL_REDUCE_SCATTERV};
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = *(int *)me->arg};
    const struct coll__algo *algo;
    struct coll_comm *comm;
    int wrong = 0, n_served = 0;

    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    for (size_t c = 0; c < ARRAY_LEN(collectives); c++) {
        struct scaled scaled = {.collective = collectives[c],
                                .count = PART * (size_t)me->size};

        for (int a = 0; (algo = coll__algos[a]); a++) {
            scaled.algo = algo->name;
            if (algo->serves & 1u << collectives[c])
                wrong += each_type(me, comm, scaled, &n_served);
        }
        scaled.algo = NULL;
        for (size_t n = 0; n < 3; n++) {
            scaled.count = n * (size_t)me->size;
            wrong += each_type(me, comm, scaled, &n_served);
        }
    }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, n_served >= 100);
    return wrong != 0;
}

static const int sizes[] = {1, 2, 3, 5};

/* _i: the number of ranks, and reproducible mode with all calls compared. */
START_TEST(inputs_and_results_are_multiplied_by_every_algorithm)
{
    int reproducible = _i % 2;

    if (reproducible)
        setenv("COLL_CHECK", "1", 1);
    ck_assert_int_eq(
        world_fork(sizes[_i / 2], each_algorithm, &reproducible, patient(60)),
        0);
}
END_TEST

/* Small whole numbers by powers of two: exact. */
static int prefixes_and_premul(struct world_rank *me, struct coll_comm *comm)
{
    double factor = me->rank + 1, x = 3, y = 0, all, before = 0;
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_SCAN,
                             .type = COLL_F64,
                             .in = &x,
                             .out = &y,
                             .count = 1,
                             .prescale = factor};

    for (int r = 1; r <= me->rank; r++)
        before += r;
    WORLD_CHECK(me, !run(&args, comm) && y == 3 * (before + factor));
    args.collective = COLL_EXSCAN;
    WORLD_CHECK(me, !run(&args, comm) && (!me->rank || y == 3 * before));
    args.collective = COLL_ALLREDUCE;
    args.prescale = 1;
    args.postscale = -0.5;
    all = me->size * (me->size + 1) / 2.;
    WORLD_CHECK(me, !coll_op_create_premul(&factor, COLL_F64, &args.op));
    WORLD_CHECK(me, !run(&args, comm) && y == -1.5 * all);
    args.prescale = 2;
    EXPECT(me, run(&args, comm), COLL_ERR_INVALID,
           "premul has a factor for the input; make prescale 0");
    return coll_op_destroy(args.op) != COLL_OK;
}

/* _i: ranks */
START_TEST(scans_take_prescale_and_premul_takes_postscale)
{
    ck_assert_int_eq(
        world_fork_joined(_i, prefixes_and_premul, NULL, patient(60)), 0);
}
END_TEST

/* A sum with a postscale runs by a plan of an average. */
static int by_file(struct world_rank *me)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct scaled c = {.collective = COLL_ALLREDUCE,
                       .type = COLL_F32,
                       .op = COLL_SUM,
                       .postscale = 1 / 3.,
                       .count = 80};
    struct coll_comm *comm = world_join(me);
    struct coll_args args;
    int n_served = 0;

    WORLD_CHECK(me, comm);
    args = args_of(me, &c);
    WORLD_CHECK(me, !coll_plan_query(&args, comm, &info));
    WORLD_CHECK(me, !strcmp(info.algorithm, "mine"));
    WORLD_CHECK(me, !call(me, comm, &c, &n_served));
    args.postscale = 1;
    WORLD_CHECK(me, !coll_plan_query(&args, comm, &info));
    WORLD_CHECK(me, strcmp(info.algorithm, "mine"));
    return coll_comm_destroy(comm) != COLL_OK;
}

START_TEST(a_plan_file_for_averages_serves_a_postscale)
{
    static const char plan[] =
        "coll_plan 1\n"
        "collective allreduce\ntype f32\nop avg\nranks 2\ncount 80\n"
        "algorithm mine\nedges listed\n"
        "rank 0 tmp 0\n"
        "0 send peer 1 in[0,320)\n"
        "1 recv_reduce peer 1 out[0,320) with in[0,320)\n"
        "2 scale out[0,320) waits for 1\n"
        "rank 1 tmp 0\n"
        "0 send peer 0 in[0,320)\n"
        "1 recv_reduce peer 0 out[0,320) with in[0,320) left\n"
        "2 scale out[0,320) waits for 1\n";

    ck_assert_int_eq(world_fork_planned(2, by_file, plan, patient(60)), 0);
}
END_TEST

/* ---- errors ----------------------------------------------------------------- */

/* One rank passes another postscale, or none. */
static int disagree(struct world_rank *me)
{
    int by_none = *(int *)me->arg;
    struct scaled c = {.collective =
                           by_none ? COLL_REDUCE_SCATTERV : COLL_ALLREDUCE,
                       .type = COLL_F32,
                       .count = PART * (size_t)me->size};
    struct coll_comm *comm = world_join(me);
    struct coll_args args;
    int rc;

    WORLD_CHECK(me, comm);
    args = args_of(me, &c);
    args.postscale = me->rank != 1 ? 0.5 : by_none ? 0 : 0.25;
    rc = run(&args, comm);
    EXPECT(me, rc, COLL_ERR_MISMATCH, "f32, sum, postscale 0.5");
    WORLD_CHECK(me, strstr(coll_last_error(),
                           "all ranks must pass the same postscale"));
    WORLD_CHECK(me, strstr(coll_last_error(),
                           by_none ? "f32, sum, counts" : "postscale 0.25"));
    coll_comm_destroy(comm);
    return 0;
}

START_TEST(another_postscale_is_a_mismatch_in_words)
{
    ck_assert_int_eq(world_fork(2, disagree, &_i, patient(60)), 0);
}
END_TEST

/* Arguments that are wrong: what they change in a right call, and what is said. */
static const struct {
    enum coll_collective collective;
    enum coll_type type;
    enum coll_op op;
    double prescale, postscale;
    const char *words;
} wrong[] = {
    {COLL_ALLREDUCE, COLL_I32, COLL_SUM, 2, 0,
     "allreduce: prescale and postscale are for floating-point and complex "
     "numbers, not for i32; make them 0"},
    {COLL_ALLREDUCE, COLL_U8, COLL_AVG, 0, 2, "numbers, not for u8"},
    {COLL_REDUCE, COLL_F32, COLL_MAX, 2, 0,
     "reduce: prescale and postscale are for sum and avg; make them 0"},
    {COLL_REDUCE, COLL_F32, COLL_PROD, 0, 2, "for sum and avg"},
    {COLL_BROADCAST, COLL_F32, COLL_SUM, 2, 0,
     "broadcast: prescale and postscale are for reductions; make them 0"},
    {COLL_BARRIER, COLL_F32, COLL_SUM, 0, 2, "are for reductions"},
    {COLL_SCAN, COLL_F32, COLL_SUM, 2, 2,
     "scan: postscale is for reductions over all ranks; take prescale"},
    {COLL_EXSCAN, COLL_F32, COLL_SUM, 0, 2, "take prescale"},
    {COLL_ALLREDUCE, COLL_F32, COLL_SUM, 1e39, 0,
     "allreduce: prescale 1e+39 and postscale 0 must be finite numbers that "
     "f32 can hold"},
    {COLL_ALLREDUCE, COLL_F16, COLL_SUM, 0, NAN, "that f32 can hold"},
    {COLL_ALLREDUCE, COLL_F64, COLL_SUM, INFINITY, 0, "that f64 can hold"}};

/* 0 and 1 are no factors, whatever the operation. */
static int mistakes(struct world_rank *me, struct coll_comm *comm)
{
    struct coll_request *request;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct coll_args args = {.size = sizeof(args),
                                 .collective = wrong[i].collective,
                                 .type = wrong[i].type,
                                 .op = wrong[i].op,
                                 .in = in,
                                 .out = out,
                                 .count = 1,
                                 .prescale = wrong[i].prescale,
                                 .postscale = wrong[i].postscale};

        EXPECT(me, coll_request_create(&args, comm, &request), COLL_ERR_INVALID,
               wrong[i].words);
        args.prescale = 1;
        args.postscale = i % 2;
        WORLD_CHECK(me, !run(&args, comm));
    }
    return 0;
}

START_TEST(factors_that_mean_nothing_are_refused_in_words)
{
    ck_assert_int_eq(world_fork_joined(1, mistakes, NULL, patient(60)), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("factors");
    TCase *c = suite_case(suite, "factors", 120);

    patient_timeout(60);
    tcase_add_test(c, averages_of_narrow_floats_scale_their_input);
    tcase_add_test(c, factors_of_a_call_are_in_the_precision_of_its_arithmetic);
    tcase_add_loop_test(c, inputs_and_results_are_multiplied_by_every_algorithm,
                        0, 2 * (int)ARRAY_LEN(sizes));
    tcase_add_loop_test(c, scans_take_prescale_and_premul_takes_postscale, 1,
                        4);
    tcase_add_test(c, a_plan_file_for_averages_serves_a_postscale);
    tcase_add_loop_test(c, another_postscale_is_a_mismatch_in_words, 0, 2);
    tcase_add_test(c, factors_that_mean_nothing_are_refused_in_words);
    return suite_run(suite);
}
