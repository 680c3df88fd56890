/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.c - inputs and results in plain 64-bit arithmetic. */
#include "tests/oracle.h"

#include <string.h>

unsigned oracle_random(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % n;
}

struct oracle_op oracle_draw(uint64_t *state, int size)
{
    static const unsigned limits[] = {1, 2, 10, 100, 3000, 100000};
    struct oracle_op op = {.size = size};

    op.collective = (enum coll_collective)oracle_random(state,
                                                        COLL_N_COLLECTIVES);
    op.type = (enum coll_type)oracle_random(state, COLL_N_TYPES);
    op.op = (enum coll_op)oracle_random(state, COLL_N_OPS);
    op.root = (int)oracle_random(state, (unsigned)size);
    op.count = oracle_random(state, limits[oracle_random(state, 6)]);
    op.seed = oracle_random(state, 1u << 30);
    return op;
}

/* Sign, exponent and fraction of a small whole number, for 16-bit floats. */
static uint16_t small_float(int64_t value, int fraction_bits, int bias)
{
    uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
    uint64_t fraction;
    int exponent = 0;

    if (!magnitude)
        return 0;
    while (magnitude >> (exponent + 1))
        exponent++;
    fraction = (magnitude << fraction_bits) >> exponent;
    return (uint16_t)((value < 0 ? 0x8000u : 0u) |
                      (uint64_t)(exponent + bias) << fraction_bits |
                      (fraction & ((1u << fraction_bits) - 1)));
}

static void put(enum coll_type type, void *to, size_t i, int64_t value)
{
    switch (type) {
    case COLL_I8:
    case COLL_U8:
        ((uint8_t *)to)[i] = (uint8_t)value;
        break;
    case COLL_I16:
    case COLL_U16:
        ((uint16_t *)to)[i] = (uint16_t)value;
        break;
    case COLL_I32:
    case COLL_U32:
        ((uint32_t *)to)[i] = (uint32_t)value;
        break;
    case COLL_I64:
    case COLL_U64:
        ((uint64_t *)to)[i] = (uint64_t)value;
        break;
    case COLL_F16:
        ((uint16_t *)to)[i] = small_float(value, 10, 15);
        break;
    case COLL_BF16:
        ((uint16_t *)to)[i] = small_float(value, 7, 127);
        break;
    case COLL_F32:
        ((float *)to)[i] = (float)value;
        break;
    case COLL_F64:
        ((double *)to)[i] = (double)value;
        break;
    case COLL_N_TYPES:
        break;
    }
}

/* Element i of rank's input: 0 to 7, or 1 to 2 for products, or, for averages,
 * numbers whose sum is a multiple of the number of ranks. */
static int64_t input(const struct oracle_op *op, int rank, size_t i)
{
    uint64_t h = op->seed + i * 0x9e3779b97f4a7c15u;
    int64_t common;

    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    common = (int64_t)(h >> 40) % 4;
    if (op->collective != COLL_ALLREDUCE)
        return (common + rank) % 8;
    if (op->op == COLL_AVG)
        return 1 + common +
               (rank == op->size - 1 && op->size % 2 ? 0 : rank % 2 ? 1 : -1);
    if (op->op == COLL_PROD)
        return 1 + (common + rank) % 2;
    return (common + 3 * rank) % 8;
}

void oracle_fill(const struct oracle_op *op, int rank, void *in)
{
    for (size_t i = 0; i < op->count; i++)
        put(op->type, in, i, input(op, rank, i));
}

static int64_t reduced(const struct oracle_op *op, size_t i)
{
    int64_t all = input(op, 0, i);

    for (int r = 1; r < op->size; r++) {
        int64_t next = input(op, r, i);

        if (op->op == COLL_SUM || op->op == COLL_AVG)
            all += next;
        else if (op->op == COLL_PROD)
            all *= next;
        else if ((op->op == COLL_MIN) == (next < all))
            all = next;
    }
    return op->op == COLL_AVG ? all / op->size : all;
}

static int64_t expected(const struct oracle_op *op, size_t i)
{
    if (op->collective == COLL_ALLREDUCE)
        return reduced(op, i);
    if (op->collective == COLL_BROADCAST)
        return input(op, op->root, i);
    return input(op, (int)(i / op->count), i % op->count);
}

size_t oracle_out_count(const struct oracle_op *op)
{
    if (op->collective == COLL_BARRIER)
        return 0;
    return op->collective == COLL_ALLGATHER ? op->count * (size_t)op->size
                                            : op->count;
}

long oracle_verify(const struct oracle_op *op, const void *out)
{
    size_t size = coll_type_size(op->type);
    uint64_t element;

    for (size_t i = 0; i < oracle_out_count(op); i++) {
        put(op->type, &element, 0, expected(op, i));
        if (memcmp((const char *)out + i * size, &element, size))
            return (long)i;
    }
    return -1;
}
