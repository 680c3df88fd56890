/* SPDX-License-Identifier: BSD-3-Clause */
/* param.c - the table of COLL_* variables: read, judge and list them. */
#include "lib/util/param.h"
#include "include/coll/coll.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

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
    double value = strtod(text, &end);

    if (end == text || !isfinite(value) || value < 0)
        return -1;
    if (*end) {
        unit = strchr(units, *end & ~0x20);
        if (!unit || end[1])
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

    *value = strtod(text, &end);
    return end == text || *end || !isfinite(*value) || *value <= 0 ? -1 : 0;
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

/* Return what is wrong with the text of parameter id, or NULL. */
static const char *fault(int id, const char *text)
{
    double seconds;
    size_t bytes;
    long whole;

    switch (table[id].kind) {
    case PARAM_INT:
        return parse_int(text, &whole) ? "a whole number, 0 or more" : NULL;
    case PARAM_SECONDS:
        return parse_seconds(text, &seconds) ? "a number of seconds above 0"
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

static int find(const char *name, size_t len)
{
    for (int i = 0; i < N_PARAMS; i++)
        if (strlen(table[i].name) == len && !strncmp(table[i].name, name, len))
            return i;
    return -1;
}

static void warn_unknown(const char *name, size_t len)
{
    const char *names[N_PARAMS + 1] = {NULL};
    char text[64];

    if (len >= sizeof(text))
        return;
    memcpy(text, name, len);
    text[len] = '\0';
    for (int i = 0; i < N_PARAMS; i++)
        names[i] = table[i].name;
    log_warn("param", "%s is no parameter; did you mean %s? "
             "see coll_info --params", text, coll__nearest(text, names));
}

int coll__param_check(void)
{
    for (int i = 0; i < N_PARAMS; i++) {
        const char *wants;

        if (!coll__param_is_set((enum coll__param)i))
            continue;
        wants = fault(i, getenv(table[i].name));
        if (wants) {
            log_error("param", "%s=%s is not valid: it must be %s",
                      table[i].name, getenv(table[i].name), wants);
            return COLL_ERR_INVALID;
        }
    }
    for (char **e = environ; e && *e; e++) {
        size_t len = strcspn(*e, "=");

        if (!strncmp(*e, "COLL_", 5) && find(*e, len) < 0)
            warn_unknown(*e, len);
    }
    return COLL_OK;
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
