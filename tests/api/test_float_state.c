/* SPDX-License-Identifier: BSD-3-Clause */
/* test_float_state.c - every rank gets the same bits, though the program of one has
 * set its arithmetic otherwise: subnormal numbers flushed to zero, or another rounding.
 */
#include "tests/support/oracle.h"
#include "tests/support/parts.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"
#include "lib/algo/algo.h"
#include "lib/util/float_state.h"
#include "lib/util/util.h"

#include <check.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE 100
#define COUNT 300
#define RANKS 4

static const enum coll_type types[] = {COLL_F32,  COLL_F64, COLL_F16,
                                       COLL_BF16, COLL_C64, COLL_F32_I32};
static const enum coll_op ops[] = {COLL_SUM, COLL_AVG,  COLL_PROD,  COLL_MIN,
                                   COLL_LOR, COLL_LXOR, COLL_MAXLOC};

/* Rank 0 has the default, each other one a state of its own. */
static void set_state(int rank)
{
#if defined(__x86_64__)
    static const unsigned long states[RANKS] = {
        FLOAT_STATE_DEFAULT, FLOAT_STATE_DEFAULT | 0x8040, /* FTZ, DAZ */
        FLOAT_STATE_DEFAULT | 0x4000,                      /* upwards */
        FLOAT_STATE_DEFAULT | 0xe040}; /* to zero, FTZ, DAZ */

    float_state_set(states[rank]);
#elif defined(__aarch64__)
    static const unsigned long states[RANKS] = {0, 1ul << 24, 1ul << 22,
                                                7ul << 22};

    float_state_set(states[rank]);
#else
    fesetround(rank % 2 ? FE_UPWARD : FE_TONEAREST);
#endif
}

/* Numbers next to the least normal one, and such whose sums round. */
static void put_number(enum coll_type type, void *to, uint64_t *random)
{
    static const int fraction[] = {
        [COLL_F16] = 10, [COLL_BF16] = 7, [COLL_F32] = 23, [COLL_F64] = 52};
    static const int one[] = {[COLL_F16] = 15,
                              [COLL_BF16] = 127,
                              [COLL_F32] = 127,
                              [COLL_F64] = 1023};
    uint64_t high = oracle_random(random, 1u << 30) << 30;
    uint64_t low = (high ^ oracle_random(random, 1u << 30)) &
                   ((1ul << fraction[type]) - 1);
    uint64_t power = oracle_random(random, 3);

    if (power == 2)
        power = (uint64_t)one[type] + oracle_random(random, 3);
    low |= power << fraction[type];
    memcpy(to, &low, coll_type_size(type));
}

static void put(enum coll_type type, unsigned char *to, uint64_t *random)
{
    enum coll_type part = part_of_type(type);
    int32_t index = (int32_t)oracle_random(random, 4);

    put_number(part, to, random);
    if (is_pair(type))
        memcpy(to + coll_type_size(part), &index, sizeof(index));
    else if (is_complex(type))
        put_number(part, to + coll_type_size(part), random);
}

/* What rank 0 got lies in `first` of the others. */
static int differs(const struct world_rank *me, struct coll_comm *comm,
                   enum coll_type type, enum coll_op op)
{
    unsigned char in[COUNT * 8], out[COUNT * 8], first[COUNT * 8];
    size_t size = coll_type_size(type);
    uint64_t random = (uint64_t)me->rank + 7;
    struct coll__op kind = {.base = op};
    int rc;

    if (!coll__op_takes(&kind, type))
        return 0;
    for (size_t i = 0; i < COUNT; i++)
        put(type, in + i * size, &random);
    rc = coll_allreduce(in, out, COUNT, type, op, comm, NULL);
    memcpy(first, out, COUNT * size);
    if (!rc)
        rc = coll_broadcast(first, first, COUNT * size, COLL_U8, 0, comm, NULL);
    if (rc || !memcmp(first, out, COUNT * size))
        return rc;
    fprintf(stderr, "rank %d: %s of %s has other bits by COLL_ALGO=%s\n",
            me->rank, coll_op_name(op), coll_type_name(type),
            getenv("COLL_ALGO"));
    return 1;
}

static int by_one(struct world_rank *me, const char *algo, int is_reproducible)
{
    struct coll_config config = {.size = sizeof(config),
                                 .reproducible = is_reproducible};
    struct coll_comm *comm;
    int wrong = 0;

    setenv("COLL_ALGO", algo, 1);
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (size_t k = 0; k < ARRAY_LEN(ops); k++)
            wrong += differs(me, comm, types[t], ops[k]) != 0;
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return wrong;
}

/* By each algorithm, and in reproducible mode. */
static int each_algorithm(struct world_rank *me)
{
    const struct coll__algo *algo;
    unsigned long state;
    int wrong = 0;

    set_state(me->rank);
    state = float_state_get();
    for (int i = 0; (algo = coll__algos[i]); i++)
        if (algo->serves & 1u << COLL_ALLREDUCE)
            wrong += by_one(me, algo->name, 0);
    wrong += by_one(me, "", 0) + by_one(me, "", 1);
    WORLD_CHECK(me, ((float_state_get() ^ state) & ~FLOAT_STATE_FLAGS) == 0);
    return wrong != 0;
}

START_TEST(every_rank_has_the_same_bits_whatever_its_state)
{
    setenv("COLL_CMA", _i ? "auto" : "off", 1);
    ck_assert_int_eq(world_fork(RANKS, each_algorithm, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("float_state");
    TCase *tcase = suite_case(suite, "states", DEADLINE + 20);

    tcase_add_loop_test(tcase, every_rank_has_the_same_bits_whatever_its_state,
                        0, 2);
    return suite_run(suite);
}
