/* SPDX-License-Identifier: BSD-3-Clause */
/* types.c - MPI's types and operations, and libcoll's for them.
 *
 * A row of the table below makes a type known.  A type without one is still moved, as
 * bytes, but its reductions are left to MPI.
 */
#include "bindings/mpi/preload.h"

#include <stddef.h>
#include <wchar.h>

#define N_SLOTS 256u /* a power of two, several times the rows */

static struct type_info slots[N_SLOTS];

static size_t slot_of(MPI_Datatype type)
{
    return (size_t)(((uint64_t)(uintptr_t)type * 0x9e3779b97f4a7c15u) >> 56) %
           N_SLOTS;
}

/* The slot of the type, or the free one where it belongs. */
static struct type_info *slot_find(MPI_Datatype type)
{
    size_t at = slot_of(type);

    while (slots[at].is_named && slots[at].handle != type)
        at = (at + 1) % N_SLOTS;
    return &slots[at];
}

static enum coll_type integer_of(size_t size, int is_signed)
{
    static const enum coll_type types[2][4] = {
        {COLL_U8, COLL_U16, COLL_U32, COLL_U64},
        {COLL_I8, COLL_I16, COLL_I32, COLL_I64}};

    return types[is_signed][size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

static enum coll_type type_of(enum type_class class, size_t size, int is_signed)
{
    switch (class) {
    case CLASS_FLOAT:
        return size == 4 ? COLL_F32 : COLL_F64;
    case CLASS_COMPLEX:
        return size == 8 ? COLL_C64 : COLL_C128;
    case CLASS_FLOAT_INT:
        return size == 8 ? COLL_F32_I32 : COLL_F64_I32;
    case CLASS_TWO_INTS:
        return COLL_I32_I32;
    case CLASS_LOGICAL:
        return COLL_BOOL;
    default:
        return integer_of(size, is_signed);
    }
}

/* The alignment of the numbers of an element. */
static size_t align_of(enum coll_type type, size_t size)
{
    switch (type) {
    case COLL_C64:
    case COLL_F32_I32:
    case COLL_I32_I32:
        return 4;
    case COLL_C128:
    case COLL_F64_I32:
        return 8;
    default:
        return size;
    }
}

/* Fill in what libcoll has for elements of this class and size.  libcoll's type must have
 * the same extent: a double and an int have 4 bytes behind them in both. */
static void choose(struct type_info *info, enum type_class class, int is_signed)
{
    info->coll = type_of(class, info->size, is_signed);
    info->class =
        coll_type_size(info->coll) == info->extent ? class : CLASS_OTHER;
    info->align = align_of(info->coll, info->size);
}

static void add(MPI_Datatype type, enum type_class class, int is_signed)
{
    struct type_info info = {.handle = type, .is_named = 1};
    MPI_Aint lb, extent;
    int size;

    if (type == MPI_DATATYPE_NULL || slot_find(type)->is_named ||
        PMPI_Type_size(type, &size) || size <= 0 ||
        PMPI_Type_get_extent(type, &lb, &extent))
        return;
    info.size = (size_t)size;
    info.staged = info.size;
    info.extent = (size_t)extent;
    info.is_plain = lb == 0 && extent == size;
    choose(&info, class, is_signed);
    *slot_find(type) = info;
}

#define ADD_ALL(class, is_signed, ...)                                         \
    do {                                                                       \
        const MPI_Datatype types[] = {__VA_ARGS__};                            \
                                                                               \
        for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)            \
            add(types[i], class, is_signed);                                   \
    } while (0)

static void add_numbers(void)
{
    ADD_ALL(CLASS_INTEGER, 1, MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG,
            MPI_LONG_LONG, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T,
            MPI_AINT, MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_INTEGER1,
            MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8);
    ADD_ALL(CLASS_INTEGER, 0, MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,
            MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG,
            MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T);
    ADD_ALL(CLASS_FLOAT, 1, MPI_FLOAT, MPI_DOUBLE, MPI_REAL,
            MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8);
    ADD_ALL(CLASS_COMPLEX, 1, MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX,
            MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_COMPLEX,
            MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16);
}

/* Fortran's logical numbers are OTHER: what is true depends on the compiler. */
void types_init(void)
{
    add_numbers();
    ADD_ALL(CLASS_FLOAT_INT, 1, MPI_FLOAT_INT, MPI_DOUBLE_INT);
    ADD_ALL(CLASS_TWO_INTS, 1, MPI_2INT, MPI_2INTEGER);
    ADD_ALL(CLASS_LOGICAL, 0, MPI_C_BOOL, MPI_CXX_BOOL);
    add(MPI_BYTE, CLASS_BYTE, 0);
    ADD_ALL(CLASS_OTHER, 0, MPI_CHAR, MPI_WCHAR, MPI_LONG_DOUBLE, MPI_LONG_INT,
            MPI_SHORT_INT, MPI_LONG_DOUBLE_INT, MPI_PACKED,
            MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX,
            MPI_CHARACTER, MPI_LOGICAL, MPI_2REAL, MPI_2DOUBLE_PRECISION);
}

/* ---- derived types -------------------------------------------------------- */

/* Is the type one of MPI's own without gaps, or repeats of one? */
static int is_plain(MPI_Datatype type)
{
    int n_ints, n_addresses, n_types, combiner, ints[1], plain;
    MPI_Aint addresses[1];
    MPI_Datatype inner;
    const struct type_info *known = slot_find(type);

    if (known->is_named)
        return known->is_plain;
    if (PMPI_Type_get_envelope(type, &n_ints, &n_addresses, &n_types,
                               &combiner) ||
        (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS))
        return 0;
    if (PMPI_Type_get_contents(type, n_ints, n_addresses, n_types, ints,
                               addresses, &inner))
        return 0;
    plain = is_plain(inner);
    if (!slot_find(inner)->is_named &&
        (PMPI_Type_get_envelope(inner, &n_ints, &n_addresses, &n_types,
                                &combiner) ||
         combiner != MPI_COMBINER_NAMED))
        PMPI_Type_free(&inner);
    return plain;
}

int type_describe(MPI_Datatype type, struct type_info *info)
{
    const struct type_info *known = slot_find(type);
    MPI_Aint lb, extent;
    MPI_Count size;

    if (__builtin_expect(known->is_named, 1)) {
        *info = *known;
        return 1;
    }
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &size) ||
        size < 0 || PMPI_Type_get_extent(type, &lb, &extent))
        return 0;
    *info = (struct type_info){
        .handle = type, .size = (size_t)size, .extent = (size_t)extent};
    info->staged = info->size;
    info->is_plain = extent == size && is_plain(type);
    return 1;
}

/* ---- operations ----------------------------------------------------------- */

/* The classes that MPI has an operation for, as bits. */
#define BIT(class) (1u << CLASS_##class)
#define REALS (BIT(INTEGER) | BIT(FLOAT))
#define NUMBERS (REALS | BIT(COMPLEX))
#define PAIRS (BIT(FLOAT_INT) | BIT(TWO_INTS))
#define LOGICALS (BIT(INTEGER) | BIT(LOGICAL))
#define BITWISE (BIT(INTEGER) | BIT(BYTE))

int type_reduces(const struct type_info *info, MPI_Op op, enum coll_type *as,
                 enum coll_op *by)
{
    const struct {
        MPI_Op op;
        enum coll_op by;
        unsigned classes;
    } rows[] = {
        {MPI_SUM, COLL_SUM, NUMBERS},     {MPI_MAX, COLL_MAX, REALS},
        {MPI_MIN, COLL_MIN, REALS},       {MPI_PROD, COLL_PROD, NUMBERS},
        {MPI_LAND, COLL_LAND, LOGICALS},  {MPI_LOR, COLL_LOR, LOGICALS},
        {MPI_LXOR, COLL_LXOR, LOGICALS},  {MPI_BAND, COLL_BAND, BITWISE},
        {MPI_BOR, COLL_BOR, BITWISE},     {MPI_BXOR, COLL_BXOR, BITWISE},
        {MPI_MINLOC, COLL_MINLOC, PAIRS}, {MPI_MAXLOC, COLL_MAXLOC, PAIRS},
    };

    *as = info->coll;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].op == op) {
            *by = rows[i].by;
            return (rows[i].classes >> info->class) & 1;
        }
    if (!info->is_named || !info->is_plain)
        return 0;
    if (info->class == CLASS_OTHER) {
        if ((info->size & (info->size - 1)) || info->size > 8)
            return 0;
        *as = integer_of(info->size, 0);
    }
    return user_op_find(op, info, by);
}
