/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_history_read.c - read the ranks' files, and sort what they hold by communicator. */
#include "tools/coll_history.h"
#include "tools/common/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST                                                                   \
    ((json_int_t)1 << 53) /* the most calls that a rank can have counted */

void history_die(const char *format, ...)
{
    va_list args;

    fputs("coll_history: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(PROGRAM_USAGE);
}

void *history_must(void *memory)
{
    if (!memory)
        history_die("out of memory");
    return memory;
}

/* ---- reading ------------------------------------------------------------------ */

json_int_t history_whole(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

const char *history_word(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

json_t *history_series(const json_t *comm, const char *name)
{
    json_t *series;
    size_t i;

    json_array_foreach(json_object_get(comm, "calls"), i, series)
    {
        if (!strcmp(history_word(series, "series"), name))
            return series;
    }
    return NULL;
}

json_t *history_call(const json_t *comm, const char *name, json_int_t seq)
{
    json_t *last = json_object_get(history_series(comm, name), "last"), *first;
    json_int_t at;

    first = json_array_get(last, 0);
    at = seq - history_whole(first, "seq");
    if (at >= (json_int_t)json_array_size(last))
        at = (json_int_t)json_array_size(last) - 1;
    for (json_t *call; first && at >= 0; at--) { /* some may be left out */
        call = json_array_get(last, (size_t)at);
        if (call && history_whole(call, "seq") == seq)
            return call;
        if (call && history_whole(call, "seq") < seq)
            return NULL;
    }
    return NULL;
}

static struct history_group *group_of(struct histories *all, const json_t *comm)
{
    int size = (int)history_whole(comm, "size");
    struct history_group *g;

    for (int i = 0; i < all->n_groups; i++)
        if (!strcmp(all->groups[i].id, history_word(comm, "id")))
            return all->groups[i].size == size ? &all->groups[i] : NULL;
    all->groups = history_must(
        realloc(all->groups, (size_t)(all->n_groups + 1) * sizeof(*g)));
    g = &all->groups[all->n_groups++];
    *g = (struct history_group){
        .id = history_word(comm, "id"),
        .size = size,
        .ranks = json_object_get(comm, "ranks"),
        .parts = history_must(calloc((size_t)size, sizeof(*g->parts)))};
    return g;
}

static int is_count(json_int_t n) { return n >= 0 && n <= MOST; }

static int is_series(const json_t *series)
{
    const json_t *call;
    size_t i;

    json_array_foreach(json_object_get(series, "last"), i, call)
    {
        if (!is_count(history_whole(call, "seq")))
            return 0;
    }
    return is_count(history_whole(series, "started")) &&
           is_count(history_whole(series, "ended"));
}

static int has_series(const json_t *comm)
{
    const json_t *calls = json_object_get(comm, "calls"), *series;
    size_t i;

    json_array_foreach(calls, i, series)
    {
        if (!is_series(series))
            return 0;
    }
    return json_is_array(calls);
}

static int is_comm(const json_t *comm)
{
    json_int_t size = history_whole(comm, "size"),
               rank = history_whole(comm, "rank");

    return *history_word(comm, "id") && size > 0 && size <= 1 << 24 &&
           rank >= 0 && rank < size &&
           json_array_size(json_object_get(comm, "ranks")) == (size_t)size &&
           has_series(comm);
}

static void take(struct histories *all, const char *path, json_t *file,
                 json_t *comm)
{
    struct history_group *g = is_comm(comm) ? group_of(all, comm) : NULL;
    struct history_part *part =
        g ? &g->parts[history_whole(comm, "rank")] : NULL;

    if (!part)
        history_die("%s: one of its communicators is none", path);
    if (part->comm)
        history_die(
            "%s: another file is of that rank, too; give those of one moment "
            "alone",
            path);
    *part = (struct history_part){
        file, comm, json_number_value(json_object_get(file, "clock"))};
    g->n_parts++;
}

void histories_read(struct histories *all, const char *path)
{
    json_error_t error;
    json_t *file = json_load_file(path, 0, &error), *comm;
    size_t i;

    if (!file)
        history_die("cannot read %s: %s", path, error.text);
    if (history_whole(file, "libcoll_history") != 1)
        history_die("%s is not what COLL_HISTORY writes", path);
    json_array_append_new(all->files, file);
    all->size_of_job = (int)history_whole(file, "size");
    json_array_foreach(json_object_get(file, "communicators"), i, comm)
        take(all, path, file, comm);
}

void histories_fini(struct histories *all)
{
    for (int i = 0; i < all->n_groups; i++)
        free(all->groups[i].parts);
    free(all->groups);
    json_decref(all->files);
}

int history_rank(const struct history_group *g, int rank)
{
    return (int)json_integer_value(json_array_get(g->ranks, (size_t)rank));
}
