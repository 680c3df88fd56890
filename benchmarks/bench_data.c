/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_data.c - what the ranks contribute, and what must come out.
 *
 * All values are whole numbers.  No partial result of any subset of the ranks
 * leaves the range in which the type is exact, so that results are equal bit
 * for bit in any order.
 *
 * The content repeats every PERIOD elements, a prime, so that blocks and chunks
 * (powers of two, or parts of the count) in wrong places are noticed.  One
 * period is computed; the rest is memcpy and memcmp, so that the check of every
 * element costs little.
 */
#include "benchmarks/bench.h"
#include "lib/type/half.h"

#include <stdlib.h>
#include <string.h>

#define PERIOD 8191

/* ---- numbers ----------------------------------------------------------- */

/* X(type, C type): the types that a cast converts to. */
#define CAST_MAP(X)                                                            \
    X(I8, int8_t)                                                              \
    X(U8, uint8_t)                                                             \
    X(I16, int16_t) X(U16, uint16_t) X(I32, int32_t) X(U32, uint32_t)          \
        X(I64, int64_t) X(U64, uint64_t) X(F32, float) X(F64, double)

/* A number stands for a complex number with the opposite as its imaginary part; for
 * products it is the exponent of 1 + 2i, whose powers have no part that is 0. */
static void store_complex(enum coll_type type, enum coll_op op, long value,
                          void *to)
{
    int is_power = op == COLL_PROD;
    double wide[2] = {is_power ? 1 : (double)value,
                      is_power ? 0 : (double)-value};
    float narrow[2];

    for (long n = 0; is_power && n < value; n++) {
        double last = wide[0];

        wide[0] -= 2 * wide[1];
        wide[1] += 2 * last;
    }
    narrow[0] = (float)wide[0];
    narrow[1] = (float)wide[1];
    memcpy(to, type == COLL_C64 ? (void *)narrow : (void *)wide,
           coll_type_size(type));
}

#define INDICES 8

/* A number's last bits stand for an index, the others for a value.  The least number is
 * then the result of a minloc; the greatest is that of a maxloc, if the indices are
 * stored backwards. */
static void store_pair(enum coll_type type, enum coll_op op, long value,
                       void *to)
{
    int32_t index = (int32_t)(value % INDICES);
    int32_t whole = (int32_t)(value / INDICES);
    float narrow = (float)whole;
    double wide = (double)whole;
    size_t size = type == COLL_F64_I32 ? sizeof(wide) : sizeof(whole);

    if (op == COLL_MAXLOC)
        index = INDICES - 1 - index;
    memset(to, 0, coll_type_size(type)); /* and the padding */
    memcpy(to,
           type == COLL_F64_I32   ? (void *)&wide
           : type == COLL_F32_I32 ? (void *)&narrow
                                  : (void *)&whole,
           size);
    memcpy((char *)to + size, &index, sizeof(index));
}

/* Store what the number stands for in an operation's input and result. */
static void store(enum coll_type type, enum coll_op op, long value, void *to)
{
    uint16_t half;
    uint8_t byte;

    switch (type) {
    case COLL_C64:
    case COLL_C128:
        store_complex(type, op, value, to);
        return;
    case COLL_F32_I32:
    case COLL_F64_I32:
    case COLL_I32_I32:
        store_pair(type, op, value, to);
        return;
#define X(id, T)                                                               \
    case COLL_##id: {                                                          \
        T number = (T)value;                                                   \
        memcpy(to, &number, sizeof(T));                                        \
        return;                                                                \
    }
        CAST_MAP(X)
#undef X
    case COLL_F16:
    case COLL_BF16:
        half = type == COLL_F16 ? f16_narrow((float)value)
                                : bf16_narrow((float)value);
        memcpy(to, &half, sizeof(half));
        return;
    case COLL_BOOL:
    case COLL_F8E4M3:
    case COLL_F8E5M2:
        byte = type == COLL_BOOL     ? value != 0
               : type == COLL_F8E4M3 ? f8e4m3_narrow((float)value)
                                     : f8e5m2_narrow((float)value);
        memcpy(to, &byte, sizeof(byte));
        return;
    case COLL_N_TYPES:
        return;
    }
}

static int is_pair(enum coll_type type)
{
    return type == COLL_F32_I32 || type == COLL_F64_I32 || type == COLL_I32_I32;
}

static int is_complex(enum coll_type type)
{
    return type == COLL_C64 || type == COLL_C128;
}

static int is_unsigned(enum coll_type type)
{
    return type == COLL_U8 || type == COLL_U16 || type == COLL_U32 ||
           type == COLL_U64 || type == COLL_BOOL || is_pair(type);
}

/* Whole numbers up to this one, and sums up to it, are exact. */
static long exact_limit(enum coll_type type)
{
    switch (type) {
    case COLL_BOOL:
        return 1;
    case COLL_F8E5M2:
        return 8;
    case COLL_F8E4M3:
        return 16;
    case COLL_I8:
        return 127;
    case COLL_U8:
        return 255;
    case COLL_BF16:
        return 256;
    case COLL_F16:
        return 2048;
    case COLL_I16:
        return 32767;
    default:
        return 65535;
    }
}

/* ---- content ----------------------------------------------------------- */

static uint32_t mix(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t x = a * 0x9e3779b1u ^ b * 0x85ebca77u ^ c * 0xc2b2ae3du;

    x = (x ^ x >> 15) * 0x2c1b3c6du;
    x = (x ^ x >> 12) * 0x297a2d39u;
    return x ^ x >> 15;
}

/* Return a value in [-limit, limit], or in [0, limit] for unsigned types. */
static long within(const struct bench_case *c, uint32_t random, long limit)
{
    if (is_unsigned(c->type))
        return random % (limit + 1);
    return (long)(random % (2 * limit + 1)) - limit;
}

/* If there are more ranks than the type can count, the later ranks contribute 0. */
static long sum_value(const struct bench_case *c, int rank, uint32_t at)
{
    long limit = exact_limit(c->type) / c->ranks;

    if (!limit && rank >= exact_limit(c->type))
        return 0;
    return within(c, mix(at, (uint32_t)rank, c->salt), limit ? limit : 1);
}

/* 1 and -1; the first six ranks also have a 2. */
static long prod_value(const struct bench_case *c, int rank, uint32_t at)
{
    uint32_t random = mix(at, (uint32_t)rank, c->salt);

    if (is_complex(c->type)) /* exponents, see store_complex() */
        return rank < 6 && random & 1;
    if (rank < 6 && random & 1)
        return 2;
    return random & 2 && !is_unsigned(c->type) ? -1 : 1;
}

/* All ranks contribute the same value, except that in some pairs of ranks one
 * contributes 1 more and the other 1 less.  So the average is a whole number. */
static long avg_value(const struct bench_case *c, int rank, uint32_t at)
{
    long limit = exact_limit(c->type) / c->ranks - 2;
    long common = limit > 0 ? within(c, mix(at, ~0u, c->salt), limit) + 1 : 1;

    if (limit < 0)
        return 0;
    if ((rank | 1) == c->ranks) /* the last rank of an odd number has no
                                 * partner */
        return common;
    return mix(at, 1u << 31, c->salt) & 1 ? common + 1 - 2 * (rank & 1)
                                          : common;
}

/* Do all ranks have to be true? */
static int is_and(const struct bench_case *c)
{
    return c->op == COLL_LAND || c->op == COLL_PROD || c->op == COLL_MIN ||
           c->op == COLL_BAND;
}

/* Return 0 for false, and any other number for true.  A single rank contributes 0 or 1,
 * since its result is its input. */
static long truth(const struct bench_case *c, int rank, uint32_t at)
{
    uint32_t random = mix(at, (uint32_t)rank, c->salt);
    uint32_t rare = random % ((uint32_t)c->ranks + 1);
    int is_true = is_and(c) ? rare > 0 : rare == 0;
    int is_one = c->ranks == 1 || c->type == COLL_BOOL;

    return is_one || !is_true ? is_true : 1 + (long)(random >> 8 & 63);
}

long bench_value(const struct bench_case *c, int rank, size_t index)
{
    uint32_t at = (uint32_t)(index % PERIOD);

    if (c->type == COLL_BOOL)
        return truth(c, rank, at);
    if (c->op == COLL_SUM)
        return sum_value(c, rank, at);
    if (c->op == COLL_PROD)
        return prod_value(c, rank, at);
    if (c->op == COLL_AVG)
        return avg_value(c, rank, at);
    if (c->op == COLL_LAND || c->op == COLL_LOR || c->op == COLL_LXOR)
        return truth(c, rank, at);
    return within(c, mix(at, (uint32_t)rank, c->salt), exact_limit(c->type));
}

static long combine(const struct bench_case *c, long a, long b)
{
    switch (c->op) {
    case COLL_PROD:
        return is_complex(c->type) ? a + b : a * b;
    case COLL_MIN:
    case COLL_MINLOC:
        return a < b ? a : b;
    case COLL_MAX:
    case COLL_MAXLOC:
        return a > b ? a : b;
    case COLL_BAND:
        return a & b;
    case COLL_BOR:
        return a | b;
    case COLL_BXOR:
        return a ^ b;
    case COLL_LAND:
        return a && b;
    case COLL_LOR:
        return a || b;
    case COLL_LXOR:
        return !a != !b;
    default:
        return a + b;
    }
}

long bench_reduced_first(const struct bench_case *c, int n, size_t index)
{
    long value = bench_value(c, 0, index);

    for (int r = 1; r < n; r++)
        value = combine(c, value, bench_value(c, r, index));
    return value;
}

long bench_reduced(const struct bench_case *c, size_t index)
{
    long value = bench_reduced_first(c, c->ranks, index);

    return c->op == COLL_AVG ? value / c->ranks : value;
}

struct bench_case bench_block(const struct bench_case *c, int b, size_t count)
{
    struct bench_case block = *c;

    block.salt = c->salt + (unsigned)b * 0x9e3779b1u;
    block.count = count;
    return block;
}

size_t bench_uneven(const struct bench_case *c, int from, int to)
{
    return (from + to) % 2 ? c->count - c->count / 2 : c->count + c->count / 2;
}

/* ---- buffers ----------------------------------------------------------- */

/* Return one period of values (or `count`, if that is less); *n elements. */
static char *make_period(const struct bench_case *c, bench_value_fn *value,
                         int rank, size_t *n)
{
    static _Thread_local char period[PERIOD * 16];
    size_t size = coll_type_size(c->type);

    *n = c->count < PERIOD ? c->count : PERIOD;
    for (size_t i = 0; i < *n; i++)
        store(c->type, c->op, value(c, rank, i), period + i * size);
    return period;
}

void bench_put(const struct bench_case *c, bench_value_fn *value, int rank,
               void *buf)
{
    size_t size = coll_type_size(c->type), n;
    const char *period = make_period(c, value, rank, &n);
    char *to = buf;

    for (size_t left = c->count; left; left -= n, to += n * size) {
        n = left < n ? left : n;
        memcpy(to, period, n * size);
    }
}

void bench_put_own(const struct bench_case *c, void *in)
{
    bench_put(c, bench_value, c->rank, in);
}

static size_t count_differing(const char *a, const char *b, size_t n,
                              size_t size)
{
    size_t differing = 0;

    if (!memcmp(a, b, n * size))
        return 0;
    for (size_t i = 0; i < n; i++)
        differing += memcmp(a + i * size, b + i * size, size) != 0;
    return differing;
}

size_t bench_differing(const struct bench_case *c, bench_value_fn *value,
                       int rank, const void *buf)
{
    size_t size = coll_type_size(c->type), differing = 0, n;
    const char *period = make_period(c, value, rank, &n);
    const char *from = buf;

    for (size_t left = c->count; left; left -= n, from += n * size) {
        n = left < n ? left : n;
        differing += count_differing(from, period, n, size);
    }
    return differing;
}

/* ---- parts: one of each rank ------------------------------------------- */

size_t bench_count(const struct bench_case *c, const size_t *counts, int r)
{
    return counts ? counts[r] : c->count;
}

static struct bench_case part_of(const struct bench_case *c,
                                 const size_t *counts, int r)
{
    return bench_block(c, 0, bench_count(c, counts, r));
}

void bench_put_part(const struct bench_case *c, const size_t *counts, void *buf)
{
    struct bench_case part = part_of(c, counts, c->rank);

    bench_put(&part, bench_value, c->rank, buf);
}

void bench_put_parts(const struct bench_case *c, const size_t *counts,
                     void *buf)
{
    size_t size = coll_type_size(c->type);
    char *at = buf;

    for (int r = 0; r < c->ranks; r++) {
        struct bench_case part = part_of(c, counts, r);

        bench_put(&part, bench_value, r, at);
        at += part.count * size;
    }
}

size_t bench_differing_part(const struct bench_case *c, const size_t *counts,
                            const void *buf)
{
    struct bench_case part = part_of(c, counts, c->rank);

    return bench_differing(&part, bench_value, c->rank, buf);
}

size_t bench_differing_parts(const struct bench_case *c, const size_t *counts,
                             const void *buf)
{
    size_t size = coll_type_size(c->type), differing = 0;
    const char *at = buf;

    for (int r = 0; r < c->ranks; r++) {
        struct bench_case part = part_of(c, counts, r);

        differing += bench_differing(&part, bench_value, r, at);
        at += part.count * size;
    }
    return differing;
}
