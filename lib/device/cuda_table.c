/* SPDX-License-Identifier: BSD-3-Clause */
/* cuda_table.c - the kernel of cuda_kernels.cu for each type and operation. */
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_plan.h"
#include "lib/util/util.h"

#include <string.h>

#define VECTOR 16 /* bytes that a thread handles at a time */

/* own: the type; plain: the unsigned type of its width, whose kernels it can share. */
#define NUMBER_OPS(own, plain)                                                 \
    [COLL_SUM] = "coll_sum_" #plain, [COLL_PROD] = "coll_prod_" #plain,        \
    [COLL_MIN] = "coll_min_" #own, [COLL_MAX] = "coll_max_" #own,              \
    [COLL_AVG] = "coll_sum_" #plain, [COLL_LAND] = "coll_land_" #plain,        \
    [COLL_LOR] = "coll_lor_" #plain, [COLL_LXOR] = "coll_lxor_" #plain

#define BITWISE_OPS                                                            \
    [COLL_BAND] = "coll_band_u8", [COLL_BOR] = "coll_bor_u8",                  \
    [COLL_BXOR] = "coll_bxor_u8"

#define BOOL_OPS                                                               \
    [COLL_SUM] = "coll_lor_u8", [COLL_PROD] = "coll_land_u8",                  \
    [COLL_MIN] = "coll_land_u8", [COLL_MAX] = "coll_lor_u8",                   \
    [COLL_BAND] = "coll_land_u8", [COLL_BOR] = "coll_lor_u8",                  \
    [COLL_BXOR] = "coll_lxor_u8", [COLL_LAND] = "coll_land_u8",                \
    [COLL_LOR] = "coll_lor_u8", [COLL_LXOR] = "coll_lxor_u8"

#define INTEGER_ROW(id, own, plain)                                            \
    [COLL_##id] = {{NUMBER_OPS(own, plain), BITWISE_OPS},                      \
                   "coll_scale_" #own,                                         \
                   "coll_multiply_" #plain}
/* Complex numbers have the kernels of their parts, and none for products. */
#define COMPLEX_ROW(id, part)                                                  \
    [COLL_##id] = {                                                            \
        {[COLL_SUM] = "coll_sum_" #part, [COLL_AVG] = "coll_sum_" #part},      \
        "coll_scale_" #part,                                                   \
        NULL}
#define FLOAT_ROW(id, own)                                                     \
    [COLL_##id] = {                                                            \
        {NUMBER_OPS(own, own)}, "coll_scale_" #own, "coll_multiply_" #own}

static const struct {
    const char *reduce[COLL_N_OPS], *scale, *multiply;
} rows[COLL_N_TYPES] = {
    INTEGER_ROW(I8, i8, u8),
    INTEGER_ROW(U8, u8, u8),
    INTEGER_ROW(I16, i16, u16),
    INTEGER_ROW(U16, u16, u16),
    INTEGER_ROW(I32, i32, u32),
    INTEGER_ROW(U32, u32, u32),
    INTEGER_ROW(I64, i64, u64),
    INTEGER_ROW(U64, u64, u64),
    FLOAT_ROW(F16, f16),
    FLOAT_ROW(BF16, bf16),
    FLOAT_ROW(F32, f32),
    FLOAT_ROW(F64, f64),
    FLOAT_ROW(F8E4M3, f8e4m3),
    FLOAT_ROW(F8E5M2, f8e5m2),
    COMPLEX_ROW(C64, f32),
    COMPLEX_ROW(C128, f64),
    [COLL_BOOL] = {{BOOL_OPS}, NULL, NULL},
    [COLL_I32_I32] = {{NULL}, NULL, NULL}, /* and the other pairs */
};

const char *coll__cuda_reduce(enum coll_type type, enum coll_op op)
{
    if ((unsigned)type >= COLL_N_TYPES || (unsigned)op >= COLL_N_OPS)
        return NULL;
    return rows[type].reduce[op];
}

const char *coll__cuda_scale(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES ? rows[type].scale : NULL;
}

const char *coll__cuda_multiply(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES ? rows[type].multiply : NULL;
}

int coll__cuda_doing(const char *name)
{
    static const char *const names[] = {"coll_copy",
#define X(op, kind) "coll_" #op "_" #kind,
                                        COLL__CUDA_DOING_MAP(X)
#undef X
    };
    size_t i = 0;

    while (i < ARRAY_LEN(names) && strcmp(names[i], name))
        i++;
    return i < ARRAY_LEN(names) ? (int)i : -1;
}

/* Compute (2^l - n) 2^64 / n in two steps of 32 bits, since 2^l - n < n < 2^31. */
uint64_t coll__cuda_magic(int n_ranks)
{
    uint64_t n = (uint64_t)n_ranks, power = 1, rest, high;

    while (power < n)
        power *= 2;
    rest = (power - n) << 32;
    high = rest / n;
    return high << 32 | (rest % n << 32) / n;
}

unsigned coll__cuda_blocks(size_t len, unsigned most)
{
    size_t blocks = len / (COLL__CUDA_THREADS * VECTOR);

    return (unsigned)max_size(1, min_size(blocks, most));
}
