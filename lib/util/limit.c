/* SPDX-License-Identifier: BSD-3-Clause */
/* limit.c - the limits that are in force in this process. */
#include "lib/util/limit.h"

#include <stdatomic.h>

/* Communicators are made by any thread, and each reads the tuning file. */
static struct {
    atomic_size_t standard, said;
} values[N_LIMITS] = {
#define X(id, name, standard, most) {(standard), COLL__NOT_SAID},
    COLL_LIMIT_MAP(X)
#undef X
};

static const struct {
    const char *name, *variable;
    size_t most;
} table[N_LIMITS] = {
#define X(id, name, standard, most) {name, "COLL_" #id, most},
    COLL_LIMIT_MAP(X)
#undef X
};

size_t coll__limit(enum coll__limit id)
{
    size_t said = atomic_load(&values[id].said);

    return said == COLL__NOT_SAID ? atomic_load(&values[id].standard) : said;
}

const char *coll__limit_name(enum coll__limit id) { return table[id].name; }

size_t coll__limit_most(enum coll__limit id) { return table[id].most; }

const char *coll__limit_variable(enum coll__limit id)
{
    return table[id].variable;
}

void coll__limits_use(const struct coll__limits *limits)
{
    for (int i = 0; i < N_LIMITS; i++)
        atomic_store(&values[i].said,
                     limits ? limits->values[i] : COLL__NOT_SAID);
}

void coll__limit_assume(enum coll__limit id, size_t value)
{
    atomic_store(&values[id].standard, value);
}
