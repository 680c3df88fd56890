/* SPDX-License-Identifier: BSD-3-Clause */
/* test_repro.c - the reproducible mode: float sums have the bits of the
 * canonical tree (algo.h), computed here one element at a time, whatever the
 * algorithm, the size, the cut into calls, the chunk and the placement.
 */
#include "tests/support/oracle.h"
#include "tests/support/parts.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/device/device.h"
#include "lib/proof/prove.h"
#include "lib/type/op.h"
#include "lib/util/util.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 100
#define COUNT 5000 /* elements of the longest vector */
#define MOST 17

static const enum coll_type types[] = {COLL_F32, COLL_BF16, COLL_F16,
                                       COLL_F64, COLL_C64,  COLL_C128};

/* One vector of each rank, and what it must come to. */
struct data {
    enum coll_type type;
    size_t size;
    enum coll_op op; /* sum, prod or avg */
    unsigned char *in[MOST], *want;
};

/* ---- inputs and the oracle ----------------------------------------------- */

/* Random bits with an exponent around 1, so that nearly every addition rounds
 * and nothing overflows. */
static void put_number(enum coll_type type, void *to, uint64_t *state)
{
    uint64_t sign = oracle_random(state, 2), power = oracle_random(state, 8);
    uint64_t low = oracle_random(state, 1u << 31);
    uint64_t fraction = low << 21 ^ oracle_random(state, 1u << 31);
    uint64_t bits;

    switch (type) {
    case COLL_F64:
        bits = sign << 63 | (1019 + power) << 52 | fraction;
        break;
    case COLL_F32:
        bits = sign << 31 | (123 + power) << 23 | (fraction & 0x7fffff);
        break;
    case COLL_BF16:
        bits = sign << 15 | (123 + power) << 7 | (fraction & 0x7f);
        break;
    default:
        bits = sign << 15 | (11 + power) << 10 | (fraction & 0x3ff);
    }
    memcpy(to, &bits, coll_type_size(type));
}

static void put_random(enum coll_type type, unsigned char *to, uint64_t *state)
{
    enum coll_type part = part_of_type(type);

    for (size_t at = 0; at < coll_type_size(type); at += coll_type_size(part))
        put_number(part, to + at, state);
}

/* Combine n operands (a power of two) into the first; they are used up. */
static void perfect_tree(coll__reduce_fn *combine, unsigned char **operand,
                         int n, size_t len)
{
    if (n == 1)
        return;
    perfect_tree(combine, operand, n / 2, len);
    perfect_tree(combine, operand + n / 2, n / 2, len);
    combine(operand[0], operand[0], operand[n / 2], len);
}

/* An average of f16 or bf16 multiplies first: coll__op_for(). */
static void scale_operand(const struct data *d, int p, unsigned char *operand,
                          size_t len)
{
    struct coll_args args = {.op = d->op, .type = d->type};
    struct coll__op op;

    if (d->op == COLL_AVG && !coll__op_for(&args, p, &op) && op.pre.is_set)
        coll__device_host.multiply(d->type)(operand, operand, len,
                                            op.pre.number);
}

/* want = the canonical tree over in[0 .. p). */
static void oracle_reduce(struct data *d, int p)
{
    size_t len = COUNT * d->size;
    unsigned char *operands[MOST], *room = malloc((size_t)p * len);
    coll__reduce_fn *combine = coll__device_host.reduce(d->type, d->op);
    int m = 1, n = 0;

    for (int r = 0; r < p; r++) {
        memcpy(room + (size_t)r * len, d->in[r], len);
        scale_operand(d, p, room + (size_t)r * len, len);
    }
    while (m <= p / 2)
        m *= 2;
    for (int r = 0; r < p; r++, n++) {
        operands[n] = room + (size_t)r * len;
        if (n < p - m) /* a pair of ranks */
            combine(operands[n], operands[n], room + (size_t)++r * len, len);
    }
    perfect_tree(combine, operands, m, len);
    if (d->op == COLL_AVG)
        coll__device_host.scale(d->type)(operands[0], len, p);
    memcpy(d->want, operands[0], len);
    free(room);
}

static void data_init(struct data *d, enum coll_type type, enum coll_op op,
                      int p)
{
    *d = (struct data){.type = type, .op = op, .size = coll_type_size(type)};
    for (int r = 0; r < p; r++) {
        uint64_t state = (uint64_t)type * 100 + (uint64_t)r;

        d->in[r] = malloc(COUNT * d->size);
        for (size_t i = 0; i < COUNT; i++)
            put_random(type, d->in[r] + i * d->size, &state);
    }
    d->want = malloc(COUNT * d->size);
    oracle_reduce(d, p);
}

static void data_fini(struct data *d, int p)
{
    for (int r = 0; r < p; r++)
        free(d->in[r]);
    free(d->want);
}

/* ---- calls --------------------------------------------------------------- */

static int run(const struct coll_args *args, struct coll_comm *comm)
{
    struct coll_request *request;
    int rc = coll_request_create(args, comm, &request);

    if (rc == COLL_OK)
        rc = coll_start(request);
    if (rc == COLL_OK)
        rc = coll_wait(request, 0);
    coll_request_destroy(request);
    return rc;
}

/* Elements [from, from + n) by a call of their own; 0 when they are right. */
static int part_is_wrong(const struct world_rank *me, struct coll_comm *comm,
                         enum coll_collective collective, const struct data *d,
                         size_t from, size_t n, int in_place)
{
    size_t off = from * d->size, len = n * d->size, own = 0;
    unsigned char *out = malloc(len + 1);
    struct coll_args args = {.size = sizeof(args),
                             .collective = collective,
                             .type = d->type,
                             .op = d->op,
                             .in = d->in[me->rank] + off,
                             .out = out,
                             .count = n};
    int rc, is_wrong = 0;

    if (collective == COLL_REDUCE_SCATTER) {
        args.count = n / (size_t)me->size;
        own = args.count * (size_t)me->rank * d->size;
        len = args.count * d->size;
    } else if (in_place) {
        memcpy(out, args.in, len);
        args.in = out;
    }
    if (collective == COLL_REDUCE)
        args.root = (int)(from + n) % me->size;
    rc = run(&args, comm);
    if (collective != COLL_REDUCE || me->rank == args.root)
        is_wrong = memcmp(out, d->want + off + own, len) != 0;
    free(out);
    if (rc || is_wrong)
        fprintf(stderr, "rank %d of %d: %s %s of %s, %zu from %zu: %s\n",
                me->rank, me->size, coll_collective_name(collective),
                coll_op_name(d->op), coll_type_name(d->type), n, from,
                rc ? coll_last_error() : "other bits");
    return rc || is_wrong;
}

/* The whole vector at once (twice), in two pieces, in pieces of any size, and
 * single elements. */
static int parts_are_wrong(const struct world_rank *me, struct coll_comm *comm,
                           enum coll_collective collective,
                           const struct data *d)
{
    uint64_t state = 3;
    int wrong = 0;

    for (int turn = 0; turn < 2; turn++)
        wrong += part_is_wrong(me, comm, collective, d, 0, COUNT, turn);
    wrong += part_is_wrong(me, comm, collective, d, 0, COUNT / 3, 0);
    wrong += part_is_wrong(me, comm, collective, d, COUNT / 3,
                           COUNT - COUNT / 3, 1);
    for (size_t at = 0, n; at < COUNT; at += n) {
        n = 1 + oracle_random(&state, 1000);
        n = min_size(n, COUNT - at);
        wrong += part_is_wrong(me, comm, collective, d, at, n, n % 2);
    }
    for (int i = 0; i < 10; i++)
        wrong += part_is_wrong(me, comm, collective, d,
                               oracle_random(&state, COUNT), 1, 0);
    return wrong;
}

static int make_comm(struct world_rank *me, const char *algo,
                     struct coll_comm **comm)
{
    struct coll_config config = {.size = sizeof(config), .reproducible = 1};

    setenv("COLL_ALGO", algo, 1);
    return coll_comm_create_oob(comm, &me->oob, &config);
}

/* ---- every algorithm ----------------------------------------------------- */

static int serves(const struct coll__algo *algo,
                  enum coll_collective collective)
{
    return algo->is_canonical && (algo->serves & 1u << collective) &&
           coll__reduces(collective);
}

/* Every canonical algorithm of every collective that has one. */
static int each_algorithm(struct world_rank *me)
{
    const struct coll__algo *algo;
    struct coll_comm *comm;
    struct data d[ARRAY_LEN(types)];

    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        data_init(&d[t], types[t], COLL_SUM, me->size);
    for (int i = 0; (algo = coll__algos[i]); i++) {
        if (!algo->is_canonical)
            continue;
        WORLD_CHECK(me, !make_comm(me, algo->name, &comm));
        for (int c = 0; c <= COLL_ALLREDUCE; c++)
            for (size_t t = 0; t < ARRAY_LEN(types); t++)
                if (serves(algo, (enum coll_collective)c))
                    WORLD_CHECK(me, !parts_are_wrong(me, comm,
                                                     (enum coll_collective)c,
                                                     &d[t]));
        WORLD_CHECK(me, !coll_comm_destroy(comm));
    }
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        data_fini(&d[t], me->size);
    return 0;
}

/* _i: the number of ranks. */
START_TEST(sums_have_the_canonical_bits_by_every_algorithm)
{
    setenv("COLL_CHUNK", _i % 2 ? "128K" : "512", 1);
    ck_assert_int_eq(world_fork(_i, each_algorithm, NULL, DEADLINE), 0);
}
END_TEST

/* Whatever is chosen freely or asked for in vain; products and averages. */
static int other_operations(struct world_rank *me)
{
    static const enum coll_op ops[] = {COLL_AVG, COLL_PROD, COLL_SUM};
    struct coll_comm *comm;
    struct data d;

    WORLD_CHECK(me, !make_comm(me, me->arg, &comm));
    for (size_t k = 0; k < ARRAY_LEN(ops); k++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++) {
            data_init(&d, types[t], ops[k], me->size);
            WORLD_CHECK(me, !parts_are_wrong(me, comm, COLL_ALLREDUCE, &d));
            data_fini(&d, me->size);
        }
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(products_and_averages_have_them_by_any_choice)
{
    ck_assert_int_eq(world_fork(_i, other_operations, "", DEADLINE), 0);
    ck_assert_int_eq(world_fork(_i, other_operations, "ring", DEADLINE), 0);
}
END_TEST

/* ---- the caller's own operations ----------------------------------------- */

static void add_f32(const void *left, const void *right, void *out,
                    size_t count, enum coll_type type, void *arg)
{
    const float *a = left, *b = right;
    float *c = out;

    (void)type;
    (void)arg;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] + b[i];
}

static int own_operations(struct world_rank *me)
{
    float factor = 1 / (3 + (float)me->rank);
    float scaled[COUNT];
    struct coll_comm *comm;
    enum coll_op sum, premul;
    struct data d;

    WORLD_CHECK(me, !make_comm(me, "", &comm));
    WORLD_CHECK(me, !coll_op_create_user(add_f32, NULL, 1, &sum));
    WORLD_CHECK(me, !coll_op_create_premul(&factor, COLL_F32, &premul));
    data_init(&d, COLL_F32, COLL_SUM, me->size);
    d.op = sum;
    WORLD_CHECK(me, !parts_are_wrong(me, comm, COLL_ALLREDUCE, &d));
    data_fini(&d, me->size);

    data_init(&d, COLL_F32, COLL_SUM, me->size);
    for (int r = 0; r < me->size; r++) { /* the oracle sums what is scaled */
        memcpy(scaled, d.in[r], sizeof(scaled));
        for (int i = 0; i < COUNT; i++)
            scaled[i] *= 1 / (3 + (float)r);
        memcpy(d.in[r], scaled, sizeof(scaled));
    }
    oracle_reduce(&d, me->size);
    memcpy(scaled, d.want, sizeof(scaled));
    data_fini(&d, me->size);
    data_init(&d, COLL_F32, COLL_SUM, me->size);
    memcpy(d.want, scaled, sizeof(scaled));
    d.op = premul;
    WORLD_CHECK(me, !parts_are_wrong(me, comm, COLL_ALLREDUCE, &d));
    data_fini(&d, me->size);
    WORLD_CHECK(me, !coll_op_destroy(sum) && !coll_op_destroy(premul));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(premul_and_functions_that_commute_have_them_too)
{
    ck_assert_int_eq(world_fork(_i, own_operations, NULL, DEADLINE), 0);
}
END_TEST

/* ---- placement ----------------------------------------------------------- */

/* A machine whose hosts, and pairs of hosts, hold ranks drawn at random. */
static void scatter_ranks(struct coll__view *view, int p, uint64_t *state)
{
    int hosts[MOST], pairs[MOST], n = 1 + (int)oracle_random(state, 6);

    for (int r = 0; r < p; r++) {
        hosts[r] = (int)oracle_random(state, (unsigned)n);
        pairs[r] = hosts[r] / 2;
    }
    ck_assert(!coll__view_init(view, p, 3, (const int *const[]){hosts, pairs}));
}

/* All ranks' plans for other placements combine in the canonical tree. */
START_TEST(no_placement_changes_the_order_of_combination)
{
    const struct coll__algo *algo;
    uint64_t state = (uint64_t)_i;
    int n_proven = 0;
    char why[256];

    for (int v = 0; v < 8; v++) {
        struct coll__view view;

        scatter_ranks(&view, _i, &state);
        for (int i = 0; (algo = coll__algos[i]); i++)
            for (int c = 0; c < COLL_N_COLLECTIVES; c++) {
                struct coll__trial trial = {
                    .collective = (enum coll_collective)c,
                    .type = COLL_F32,
                    .order = ORDER_CANONICAL,
                    .nranks = _i,
                    .root = v % _i,
                    .count = (size_t)(v % 2 ? 1 : 2 * _i + 3),
                    .chunk = v % 3 ? 0 : 8,
                    .seed = (unsigned)v,
                    .view = &view};
                int rc;

                if (!serves(algo, trial.collective))
                    continue;
                rc = coll__prove(algo, &trial, why, sizeof(why));
                ck_assert_msg(rc == COLL_OK || rc == COLL_ERR_UNSUPPORTED,
                              "%s of %d: %s", algo->name, _i, why);
                n_proven += rc == COLL_OK;
            }
        coll__view_fini(&view);
    }
    ck_assert_int_ge(n_proven, 8);
}
END_TEST

/* ---- the mode itself ------------------------------------------------------ */

/* Without it a ring gives other bits: so the tests above can fail. */
static int ring_differs(struct world_rank *me)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    int is_on = *(const int *)me->arg;
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = is_on};
    struct coll_args args = {.size = sizeof(args), .type = COLL_F32};
    struct coll_comm *comm;
    float out[COUNT];
    struct data d;
    int is_same;

    setenv("COLL_ALGO", "ring", 1);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    data_init(&d, COLL_F32, COLL_SUM, me->size);
    args.in = d.in[me->rank], args.out = out, args.count = COUNT;
    WORLD_CHECK(me, !coll_plan_query(&args, comm, &info));
    WORLD_CHECK(me, !strcmp(info.algorithm, "ring") == !is_on);
    WORLD_CHECK(me, !run(&args, comm));
    is_same = memcmp(out, d.want, sizeof(out)) == 0;
    WORLD_CHECK(me, is_same == is_on);
    data_fini(&d, me->size);
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(a_ring_has_other_bits_and_so_is_not_allowed)
{
    for (int is_on = 0; is_on < 2; is_on++)
        ck_assert_int_eq(world_fork(5, ring_differs, &is_on, DEADLINE), 0);
}
END_TEST

static int by_environment(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config)};
    struct coll_comm *comm;
    struct data d;

    setenv("COLL_REPRODUCIBLE", "yes", 1);
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, NULL), COLL_ERR_INVALID,
           "COLL_REPRODUCIBLE=yes");
    setenv("COLL_REPRODUCIBLE", "1", 1);
    setenv("COLL_ALGO", "ring", 1);
    data_init(&d, COLL_BF16, COLL_SUM, me->size);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    WORLD_CHECK(me, !parts_are_wrong(me, comm, COLL_ALLREDUCE, &d));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    data_fini(&d, me->size);
    setenv("COLL_REPRODUCIBLE", "0", 1);
    config.reproducible = me->rank == 1;
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, &config),
           COLL_ERR_MISMATCH, "reproducible (COLL_REPRODUCIBLE) is '0' on rank "
                              "0 and '1' on rank 1");
    config.reproducible = 2;
    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, &config),
           COLL_ERR_INVALID, "must be 0 or 1");
    return 0;
}

START_TEST(the_environment_asks_for_it_too_and_ranks_must_agree)
{
    ck_assert_int_eq(world_fork(3, by_environment, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("repro");
    TCase *c = tcase_create("repro");
    int is_quick = getenv("TEST_QUICK") != NULL, end = is_quick ? 6 : MOST + 1;

    patient_timeout(60);
    tcase_set_timeout(c, 3 * DEADLINE);
    tcase_add_loop_test(c, sums_have_the_canonical_bits_by_every_algorithm, 2,
                        end);
    tcase_add_loop_test(c, products_and_averages_have_them_by_any_choice, 2,
                        is_quick ? 4 : 10);
    tcase_add_loop_test(c, premul_and_functions_that_commute_have_them_too, 2,
                        is_quick ? 4 : 10);
    tcase_add_loop_test(c, no_placement_changes_the_order_of_combination, 2,
                        end);
    tcase_add_test(c, a_ring_has_other_bits_and_so_is_not_allowed);
    tcase_add_test(c, the_environment_asks_for_it_too_and_ranks_must_agree);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
