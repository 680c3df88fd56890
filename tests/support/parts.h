/* SPDX-License-Identifier: BSD-3-Clause */
/* parts.h - which types are numbers, and of what elements of two parts are made. */
#ifndef COLL_TESTS_PARTS_H
#define COLL_TESTS_PARTS_H

#include "lib/type/op.h"

/* Can elements be multiplied by a scalar, and divided? */
static inline int is_number(enum coll_type type)
{
    return !(coll__type_kind(type) & (KIND_BOOL | KIND_PAIR));
}

static inline int is_complex(enum coll_type type)
{
    return coll__type_kind(type) == KIND_COMPLEX;
}

static inline int is_pair(enum coll_type type)
{
    return coll__type_kind(type) == KIND_PAIR;
}

/* The type of the parts of a complex number, and of the value of a pair; else the type. */
static inline enum coll_type part_of_type(enum coll_type type)
{
    switch (type) {
    case COLL_C64:
    case COLL_F32_I32:
        return COLL_F32;
    case COLL_C128:
    case COLL_F64_I32:
        return COLL_F64;
    case COLL_I32_I32:
        return COLL_I32;
    default:
        return type;
    }
}

#endif
