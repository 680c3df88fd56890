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

/* Fill in what libcoll has for elements of this class and size. */
static void choose(struct type_info *info, enum type_class class, int is_signed)
{
    size_t size = info->size;

    info->class = class;
    info->coll = integer_of(size, is_signed);
    if (class == CLASS_FLOAT)
        info->coll = size == 4 ? COLL_F32 : COLL_F64;
    if (class == CLASS_LOGICAL)
        info->coll = COLL_BOOL;
    if ((class == CLASS_FLOAT && size != 4 && size != 8) ||
        (class == CLASS_LOGICAL && size != 1) || !info->is_plain ||
        coll_type_size(info->coll) != size)
        info->class = CLASS_OTHER;
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
    info.extent = (size_t)extent;
    info.is_plain = lb == 0 && extent == size;
    choose(&info, class, is_signed);
    *slot_find(type) = info;
}

static void add_integers(void)
{
    const MPI_Datatype with_sign[] = {
        MPI_SIGNED_CHAR, MPI_SHORT,   MPI_INT,     MPI_LONG,    MPI_LONG_LONG,
        MPI_INT8_T,      MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT,
        MPI_OFFSET,      MPI_COUNT,   MPI_INTEGER};
    const MPI_Datatype without[] = {
        MPI_UNSIGNED_CHAR,      MPI_UNSIGNED_SHORT, MPI_UNSIGNED,
        MPI_UNSIGNED_LONG,      MPI_UINT8_T,        MPI_UINT16_T,
        MPI_UNSIGNED_LONG_LONG, MPI_UINT32_T,       MPI_UINT64_T};

    for (size_t i = 0; i < sizeof(with_sign) / sizeof(*with_sign); i++)
        add(with_sign[i], CLASS_INTEGER, 1);
    for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
        add(without[i], CLASS_INTEGER, 0);
}

void types_init(void)
{
    const MPI_Datatype others[] = {MPI_CHAR,
                                   MPI_WCHAR,
                                   MPI_LONG_DOUBLE,
                                   MPI_C_COMPLEX,
                                   MPI_C_DOUBLE_COMPLEX,
                                   MPI_FLOAT_INT,
                                   MPI_DOUBLE_INT,
                                   MPI_LONG_INT,
                                   MPI_2INT,
                                   MPI_SHORT_INT,
                                   MPI_LONG_DOUBLE_INT,
                                   MPI_PACKED,
                                   MPI_C_LONG_DOUBLE_COMPLEX,
                                   MPI_CHARACTER,
                                   MPI_LOGICAL,
                                   MPI_COMPLEX,
                                   MPI_DOUBLE_COMPLEX};

    add_integers();
    add(MPI_FLOAT, CLASS_FLOAT, 1);
    add(MPI_DOUBLE, CLASS_FLOAT, 1);
    add(MPI_REAL, CLASS_FLOAT, 1);
    add(MPI_DOUBLE_PRECISION, CLASS_FLOAT, 1);
    add(MPI_C_BOOL, CLASS_LOGICAL, 0);
    add(MPI_BYTE, CLASS_BYTE, 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        add(others[i], CLASS_OTHER, 0);
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
    info->is_plain = extent == size && is_plain(type);
    return 1;
}

/* ---- operations ----------------------------------------------------------- */

/* The classes that MPI has an operation for, as bits. */
#define BIT(class) (1u << CLASS_##class)
#define NUMBERS (BIT(INTEGER) | BIT(FLOAT))
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
        {MPI_SUM, COLL_SUM, NUMBERS},    {MPI_MAX, COLL_MAX, NUMBERS},
        {MPI_MIN, COLL_MIN, NUMBERS},    {MPI_PROD, COLL_PROD, NUMBERS},
        {MPI_LAND, COLL_LAND, LOGICALS}, {MPI_LOR, COLL_LOR, LOGICALS},
        {MPI_LXOR, COLL_LXOR, LOGICALS}, {MPI_BAND, COLL_BAND, BITWISE},
        {MPI_BOR, COLL_BOR, BITWISE},    {MPI_BXOR, COLL_BXOR, BITWISE},
    };

    *as = info->coll;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].op == op) {
            *by = rows[i].by;
            return (rows[i].classes >> info->class) & 1;
        }
    if (!info->is_named || !info->is_plain || (info->size & (info->size - 1)) ||
        info->size > 8)
        return 0;
    if (info->class == CLASS_OTHER)
        *as = integer_of(info->size, 0);
    return user_op_find(op, info, by);
}
