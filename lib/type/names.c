/* SPDX-License-Identifier: BSD-3-Clause */
/* names.c - the names of codes, types, operations and collectives. */
#include "include/coll/coll.h"
#include "lib/type/op.h"

const char *coll_version(void) { return PACKAGE_VERSION; }

const char *coll_strerror(int status)
{
    switch (status) {
#define X(name, value, text) \
    case value:              \
        return text;
        COLL_STATUS_MAP(X)
#undef X
    default:
        return "unknown status";
    }
}

static const struct {
    const char *name;
    size_t size;
} types[COLL_N_TYPES] = {
#define X(name, text, bytes) {text, bytes},
    COLL_TYPE_MAP(X)
#undef X
};

const char *coll_type_name(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES ? types[type].name : "?";
}

size_t coll_type_size(enum coll_type type)
{
    return (unsigned)type < COLL_N_TYPES ? types[type].size : 0;
}

const char *coll_op_name(enum coll_op op)
{
    static const char *const names[COLL_N_OPS] = {
#define X(name, text) text,
        COLL_OP_MAP(X)
#undef X
    };

    struct coll__op own;

    if ((unsigned)op < COLL_N_OPS)
        return names[op];
    if (coll__op_get(op, &own))
        return "?";
    return own.is_premul ? "premul" : "user";
}

const char *coll_collective_name(enum coll_collective collective)
{
    static const char *const names[COLL_N_COLLECTIVES] = {
#define X(name, text) text,
        COLL_COLLECTIVE_MAP(X)
#undef X
    };

    return (unsigned)collective < COLL_N_COLLECTIVES ? names[collective] : "?";
}
