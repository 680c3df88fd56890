/* SPDX-License-Identifier: BSD-3-Clause */
/* param.c - the table of COLL_* variables: read, check and list them. */
#include "lib/util/param.h"
#include "include/coll/coll.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *standard, *words, *what;
    enum coll__param_kind kind;
} table[N_PARAMS] = {
#define X(id, kind, standard, words, what) \
    [PARAM_##id] = {"COLL_" #id, standard, words, what, kind},
    COLL_PARAM_MAP(X)
#undef X
};

const char *coll__param_name(enum coll__param id) { return table[id].name; }

int coll__param_is_set(enum coll__param id)
{
    const char *value = getenv(table[id].name);

    return value && *value;
}

const char *coll__param_text(enum coll__param id)
{
    return coll__param_is_set(id) ? getenv(table[id].name) : table[id].standard;
}

int coll__parse_bytes(const char *text, size_t *bytes)
{
    static const char units[] = "KMGT";
    const char *unit;
    char *end;
    double value = coll__strtod(text, &end);

    if (end == text || !isfinite(value) || value < 0)
        return -1;
    if (*end) {
        unit = strchr(units, *end & ~0x20);
        if (!unit || !*unit || end[1])
            return -1;
        for (int i = 0; i <= unit - units; i++)
            value *= 1024;
    }
    if (value >= 9e18)
        return -1;
    *bytes = (size_t)value;
    return 0;
}

static int parse_int(const char *text, long *value)
{
    char *end;

    errno = 0;
    *value = strtol(text, &end, 10);
    return end == text || *end || errno || *value < 0 ? -1 : 0;
}

static int parse_seconds(const char *text, double *value)
{
    char *end;

    *value = coll__strtod(text, &end);
    return end == text || *end || !(*value > 0 && *value <= 1e9) ? -1 : 0;
}

long coll__param_int(enum coll__param id)
{
    long value;

    if (parse_int(coll__param_text(id), &value) &&
        parse_int(table[id].standard, &value))
        return -1;
    return value;
}

double coll__param_seconds(enum coll__param id)
{
    double value;

    if (parse_seconds(coll__param_text(id), &value))
        parse_seconds(table[id].standard, &value);
    return value;
}

size_t coll__param_bytes(enum coll__param id)
{
    size_t value = 0;

    if (coll__parse_bytes(coll__param_text(id), &value))
        coll__parse_bytes(table[id].standard, &value);
    return value;
}

const char *coll__param_fault(enum coll__param id)
{
    const char *text = coll__param_text(id);
    double seconds;
    size_t bytes;
    long whole;

    if (!coll__param_is_set(id))
        return NULL;
    switch (table[id].kind) {
    case PARAM_INT:
        return parse_int(text, &whole) ? "a whole number, 0 or more" : NULL;
    case PARAM_SECONDS:
        return parse_seconds(text, &seconds)
                   ? "a number of seconds above 0, at most 1e9"
                   : NULL;
    case PARAM_BYTES:
        return coll__parse_bytes(text, &bytes) ? "a size such as 64K or 1M"
                                               : NULL;
    case PARAM_CHOICE:
        return coll__word_in(text, table[id].words, '|') ? NULL
                                                         : table[id].words;
    case PARAM_TEXT:
        break;
    }
    return NULL;
}

int coll_param_list(size_t index, struct coll_param *param)
{
    if (index >= N_PARAMS || !param)
        return COLL_ERR_INVALID;
    *param = (struct coll_param){
        .name = table[index].name,
        .what = table[index].what,
        .standard = table[index].standard,
        .value = coll__param_text((enum coll__param)index),
        .is_set = coll__param_is_set((enum coll__param)index),
    };
    return COLL_OK;
}
