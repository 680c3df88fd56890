/* SPDX-License-Identifier: BSD-3-Clause */
/* tune.c - read a tuning file, and look problems up in it.
 *
 * Reading any file ends in a table or in one error: sizes are limited, and every value
 * is checked before it is used.
 */
#include "lib/price/tune.h"
#include "lib/price/select.h"
#include "lib/trace/log.h"
#include "lib/util/limit.h"
#include "lib/util/param.h"
#include "lib/util/util.h"

#include <jansson.h>

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1
#define MAX_FILE (16 << 20)
#define MAX_LINKS 16

struct range {
    uint64_t min, max;
};

struct entry {
    enum coll_collective collective;
    struct range ranks, hosts, bytes;
    int type; /* or -1: any */
    const struct coll__algo *algo;
};

struct link {
    char level[16];
    double alpha, beta;
};

struct coll__tune {
    atomic_int n_owners;
    uint64_t hash;
    size_t n_entries;
    struct entry *entries;
    int n_links;
    struct link links[MAX_LINKS];
    struct coll__limits limits;
};

/* The item of the file that is being read, for errors. */
struct place {
    const char *path, *list; /* "entries" */
    size_t index;
};

__attribute__((format(printf, 3, 4))) static int
bad(const struct place *at, const char *field, const char *format, ...)
{
    char what[256];
    va_list list;

    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    log_error("tune", "%s: %s[%zu]: field '%s' %s; correct it, or let "
              "coll_tune write the file anew",
              at->path, at->list, at->index, field, what);
    return COLL_ERR_INVALID;
}

/* ---- fields ---------------------------------------------------------------- */

/* Return the text of a field that must be there, or NULL after an error is logged. */
static const char *take_text(const struct place *at, const json_t *item,
                             const char *field)
{
    const char *text = json_string_value(json_object_get(item, field));

    if (!text)
        bad(at, field, "must be there and be a text");
    return text;
}

/* Read [min, max]; without the field, any number is in the range. */
static int take_range(const struct place *at, const json_t *item,
                      const char *field, struct range *range)
{
    const json_t *list = json_object_get(item, field);
    json_int_t ends[2] = {0, INT64_MAX};

    for (size_t i = 0; list && i < 2; i++) {
        const json_t *end = json_array_get(list, i);

        if (!json_is_integer(end) || json_array_size(list) != 2)
            return bad(at, field, "must be two whole numbers, [min, max]");
        ends[i] = json_integer_value(end);
    }
    if (ends[0] < 0 || ends[0] > ends[1])
        return bad(at, field, "must be [min, max] with 0 <= min <= max");
    *range = (struct range){(uint64_t)ends[0], (uint64_t)ends[1]};
    return COLL_OK;
}

static int take_price(const struct place *at, const json_t *item,
                      const char *field, double *price)
{
    const json_t *number = json_object_get(item, field);

    *price = json_number_value(number);
    if (!json_is_number(number) || !(*price >= 0 && *price <= 1))
        return bad(at, field, "must be a number of seconds from 0 to 1");
    return COLL_OK;
}

static int take_type(const struct place *at, const json_t *item, int *type)
{
    const char *text;

    *type = -1;
    if (!json_object_get(item, "type"))
        return COLL_OK;
    text = take_text(at, item, "type");
    if (!text)
        return COLL_ERR_INVALID;
    for (int t = 0; t < COLL_N_TYPES; t++)
        if (!strcmp(text, coll_type_name((enum coll_type)t)))
            *type = t;
    return *type < 0 ? bad(at, "type", "names no type; f32 is one") : COLL_OK;
}

static int take_collective(const struct place *at, const json_t *item,
                           enum coll_collective *collective)
{
    const char *text = take_text(at, item, "collective");

    for (int k = 0; text && k < COLL_N_COLLECTIVES; k++)
        if (!strcmp(text, coll_collective_name((enum coll_collective)k))) {
            *collective = (enum coll_collective)k;
            return COLL_OK;
        }
    return text ? bad(at, "collective", "names none; allreduce is one")
                : COLL_ERR_INVALID;
}

/* ---- items ----------------------------------------------------------------- */

static int take_entry(const struct place *at, const json_t *item,
                      struct coll__tune *tune)
{
    struct entry *entry = &tune->entries[at->index];
    const char *algorithm;
    int rc = take_collective(at, item, &entry->collective);

    if (!rc)
        rc = take_range(at, item, "ranks", &entry->ranks);
    if (!rc)
        rc = take_range(at, item, "hosts", &entry->hosts);
    if (!rc)
        rc = take_range(at, item, "bytes", &entry->bytes);
    if (!rc)
        rc = take_type(at, item, &entry->type);
    if (rc)
        return rc;
    algorithm = take_text(at, item, "algorithm");
    if (!algorithm)
        return COLL_ERR_INVALID;
    entry->algo = coll__algo_find(entry->collective, algorithm);
    if (!entry->algo)
        return bad(at, "algorithm", "names none that %s has",
                   coll_collective_name(entry->collective));
    tune->n_entries = at->index + 1;
    return COLL_OK;
}

static int take_link(const struct place *at, const json_t *item,
                     struct coll__tune *tune)
{
    const char *level = take_text(at, item, "level");
    struct link *link = &tune->links[at->index];
    int rc;

    if (!level)
        return COLL_ERR_INVALID;
    if (strlen(level) >= sizeof(link->level))
        return bad(at, "level", "must have %zu characters at most",
                   sizeof(link->level) - 1);
    strcpy(link->level, level);
    rc = take_price(at, item, "alpha", &link->alpha);
    if (!rc)
        rc = take_price(at, item, "beta", &link->beta);
    tune->n_links = (int)at->index + 1;
    return rc;
}

typedef int take_fn(const struct place *at, const json_t *item,
                    struct coll__tune *tune);

/* A list of the file. */
struct list {
    const char *name;
    size_t most; /* items */
    take_fn *take;
};

/* Read each item of a list; a missing list is empty. */
static int take_list(const char *path, const json_t *root,
                     const struct list *as, struct coll__tune *tune)
{
    const json_t *list = json_object_get(root, as->name);
    int rc = COLL_OK;

    if (list && !json_is_array(list)) {
        log_error("tune",
                  "%s: field '%s' must be a list; correct it, or let "
                  "coll_tune write the file anew",
                  path, as->name);
        return COLL_ERR_INVALID;
    }
    if (json_array_size(list) > as->most) {
        log_error("tune",
                  "%s: field '%s' must have %zu items at most; remove "
                  "some, or let coll_tune write the file anew",
                  path, as->name, as->most);
        return COLL_ERR_INVALID;
    }
    for (size_t i = 0; i < json_array_size(list) && !rc; i++) {
        struct place at = {path, as->name, i};

        rc = as->take(&at, json_array_get(list, i), tune);
    }
    return rc;
}

/* ---- limits ----------------------------------------------------------------- */

/* Read a limit: a whole number, or a text such as "64K". */
static int take_limit(const char *path, const char *name, const json_t *item,
                      struct coll__limits *limits)
{
    const char *names[N_LIMITS + 1] = {NULL}, *text = json_string_value(item);
    json_int_t number = json_is_integer(item) ? json_integer_value(item) : -1;
    size_t value = number < 0 ? COLL__NOT_SAID : (size_t)number;
    int id = 0;

    for (int i = 0; i < N_LIMITS; i++)
        names[i] = coll__limit_name((enum coll__limit)i);
    while (id < N_LIMITS && strcmp(name, names[id]))
        id++;
    if (id == N_LIMITS) { /* a later version's, or a slip */
        log_warn("tune", "%s: limits: '%s' is no limit; did you mean '%s'?",
                 path, name, coll__nearest(name, names));
        return COLL_OK;
    }
    if (text && coll__parse_bytes(text, &value))
        value = COLL__NOT_SAID;
    if (value > coll__limit_most((enum coll__limit)id)) {
        log_error("tune",
                  "%s: limits: field '%s' must be a whole number from 0 to "
                  "%zu, or a text such as \"64K\"; correct or remove it",
                  path, name, coll__limit_most((enum coll__limit)id));
        return COLL_ERR_INVALID;
    }
    limits->values[id] = value;
    return COLL_OK;
}

static int take_limits(const char *path, json_t *root,
                       struct coll__limits *limits)
{
    json_t *list = json_object_get(root, "limits"), *item;
    const char *name;
    int rc = COLL_OK;

    for (int i = 0; i < N_LIMITS; i++)
        limits->values[i] = COLL__NOT_SAID;
    if (list && !json_is_object(list)) {
        log_error("tune",
                  "%s: field 'limits' must be an object, such as "
                  "{\"cma_min\": \"64K\"}; correct or remove it",
                  path);
        return COLL_ERR_INVALID;
    }
    json_object_foreach(list, name, item)
    {
        rc = take_limit(path, name, item, limits);
        if (rc)
            break;
    }
    return rc;
}

/* ---- files ------------------------------------------------------------------ */

static uint64_t hash_of(const char *text, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash ? hash : 1;
}

static int take_all(const char *path, json_t *root, struct coll__tune *tune)
{
    const json_t *version = json_object_get(root, "version");
    size_t n = json_array_size(json_object_get(root, "entries"));
    const struct list entries = {"entries", n, take_entry};
    const struct list links = {"links", MAX_LINKS, take_link};
    int rc;

    if (json_integer_value(version) != FORMAT) {
        log_error("tune", "%s: field 'version' must be %d; this libcoll reads "
                  "no other, so let its coll_tune write the file anew",
                  path, FORMAT);
        return COLL_ERR_INVALID;
    }
    tune->entries = calloc(n + 1, sizeof(*tune->entries));
    if (!tune->entries) {
        log_error("tune", "%s: no memory for %zu entries", path, n);
        return COLL_ERR_NOMEM;
    }
    rc = take_list(path, root, &entries, tune);
    if (rc == COLL_OK)
        rc = take_list(path, root, &links, tune);
    return rc ? rc : take_limits(path, root, &tune->limits);
}

int coll__tune_parse(const char *path, const char *text, size_t len,
                     struct coll__tune **out)
{
    struct coll__tune *tune = calloc(1, sizeof(*tune));
    json_error_t error;
    json_t *root;
    int rc;

    if (!tune) {
        log_error("tune", "%s: no memory for it", path);
        return COLL_ERR_NOMEM;
    }
    atomic_init(&tune->n_owners, 1);
    root = json_loadb(text, len, 0, &error);
    if (root) {
        rc = take_all(path, root, tune);
    } else {
        log_error("tune", "%s: line %d: %s; correct it, or let coll_tune "
                  "write the file anew", path, error.line, error.text);
        rc = COLL_ERR_INVALID;
    }
    json_decref(root);
    if (rc) {
        coll__tune_free(tune);
        return rc;
    }
    tune->hash = hash_of(text, len);
    *out = tune;
    return COLL_OK;
}

int coll__tune_load(const char *path, struct coll__tune **tune)
{
    char *text = malloc(MAX_FILE + 1);
    FILE *file = text ? fopen(path, "re") : NULL;
    size_t len = 0;
    int rc = COLL_ERR_INVALID;

    if (!text) {
        log_error("tune", "%s: no memory for it", path);
        return COLL_ERR_NOMEM;
    }
    if (file)
        len = fread(text, 1, MAX_FILE + 1, file);
    if (!file || ferror(file))
        log_error("tune", "cannot read the tuning file %s: %s; correct "
                  "COLL_TUNE_FILE or unset it", path, strerror(errno));
    else if (len > MAX_FILE)
        log_error("tune", "the tuning file %s is longer than %d bytes; let "
                  "coll_tune write it anew", path, MAX_FILE);
    else
        rc = coll__tune_parse(path, text, len, tune);
    if (file)
        fclose(file);
    free(text);
    return rc;
}

int coll__tune_open(struct coll__tune **tune)
{
    int rc = COLL_OK;

    *tune = NULL;
    if (coll__param_is_set(PARAM_TUNE_FILE))
        rc = coll__tune_load(coll__param_text(PARAM_TUNE_FILE), tune);
    if (rc == COLL_OK)
        coll__limits_use(*tune ? &(*tune)->limits : NULL);
    return rc;
}

struct coll__tune *coll__tune_share(struct coll__tune *tune)
{
    if (tune)
        atomic_fetch_add(&tune->n_owners, 1);
    return tune;
}

void coll__tune_free(struct coll__tune *tune)
{
    if (!tune || atomic_fetch_sub(&tune->n_owners, 1) > 1)
        return;
    free(tune->entries);
    free(tune);
}

/* ---- questions --------------------------------------------------------------- */

uint64_t coll__tune_hash(const struct coll__tune *tune)
{
    return tune ? tune->hash : 0;
}

static int is_within(const struct range *range, uint64_t value)
{
    return value >= range->min && value <= range->max;
}

static uint64_t bytes_of(const struct coll__problem *pb)
{
    switch (pb->collective) {
    case COLL_ALLGATHERV:
        return (uint64_t)coll__mean_part(pb, BUF_OUT);
    case COLL_REDUCE_SCATTERV:
        return (uint64_t)coll__mean_part(pb, BUF_IN);
    case COLL_ALLTOALLV:
    case COLL_GATHERV:
    case COLL_SCATTERV:
        return 0;
    default:
        return coll__problem_bytes(pb);
    }
}

const struct coll__algo *coll__tune_find(const struct coll__tune *tune,
                                         const struct coll__problem *pb,
                                         int n_hosts)
{
    for (size_t i = 0; tune && i < tune->n_entries; i++) {
        const struct entry *entry = &tune->entries[i];

        if (entry->collective == pb->collective &&
            is_within(&entry->ranks, (uint64_t)pb->nranks) &&
            is_within(&entry->hosts, (uint64_t)n_hosts) &&
            is_within(&entry->bytes, bytes_of(pb)) &&
            (entry->type < 0 || entry->type == (int)pb->type) &&
            !coll__algo_refuses(entry->algo, pb))
            return entry->algo;
    }
    return NULL;
}

int coll__tune_level(const struct coll__tune *tune, struct coll__level *level)
{
    for (int i = 0; tune && i < tune->n_links; i++)
        if (!strcmp(tune->links[i].level, level->name)) {
            double before = level->beta, alpha = level->alpha;

            level->alpha = tune->links[i].alpha;
            level->beta = tune->links[i].beta;
            /* scale the other prices by the same factors */
            level->gap *= alpha > 0 ? level->alpha / alpha : 1;
            level->overhead = level->gap;
            if (before > 0) {
                level->share *= level->beta / before;
                level->once *= level->beta / before;
            }
            return 1;
        }
    return 0;
}
