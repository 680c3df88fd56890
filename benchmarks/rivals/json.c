/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - everything that was measured, as one JSON object. */
#include "benchmarks/rivals/compare.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

static json_t *us(double seconds) { return json_real(seconds * 1e6); }

static json_t *of_gpu_limits(const struct limits *limits)
{
    json_t *areas = json_array();

    for (int a = 0; a < limits->n_areas; a++)
        json_array_append_new(
            areas,
            json_pack("{s:I, s:f}", "bytes", (json_int_t)limits->areas[a].bytes,
                      "copy_GBps", limits->areas[a].copy[1][0] * 1e-9));
    return json_pack("{s:i, s:f, s:o}", "gpus", limits->n_gpus, "small_copy_us",
                     limits->gpu_small * 1e6, "bandwidth", areas);
}

static json_t *of_limits(const struct limits *limits)
{
    json_t *areas;

    if (!limits->n_areas) /* the link is the limit */
        return json_null();
    if (limits->n_gpus)
        return of_gpu_limits(limits);
    areas = json_array();
    for (int a = 0; a < limits->n_areas; a++) {
        const struct area *area = &limits->areas[a];

        for (int all = 0; all < 2; all++)
            json_array_append_new(
                areas, json_pack("{s:I, s:i, s:f, s:f, s:f, s:f}", "bytes",
                                 (json_int_t)area->bytes, "cores",
                                 all ? limits->n_cores : 1, "copy_GBps",
                                 area->copy[all][0] * 1e-9, "copy_nt_GBps",
                                 area->copy[all][1] * 1e-9, "sum_GBps",
                                 area->sum[all][0] * 1e-9, "sum_nt_GBps",
                                 area->sum[all][1] * 1e-9));
    }
    return json_pack("{s:f, s:f, s:f, s:o}", "flag_exchange_ns",
                     limits->exchange * 1e9, "cache_line_round_trip_ns",
                     limits->round_trip * 1e9, "yield_round_trip_ns",
                     limits->yield * 1e9, "bandwidth", areas);
}

/* Return the command that started the ranks, for each number of ranks. */
static json_t *of_commands(const struct result *r, int f)
{
    json_t *all = json_array();
    const char *line[MAX_WORDS];
    struct texts texts;
    char text[2048];

    for (int i = 0; i < r->args->n_ranks && !r->places[f].why[0]; i++) {
        size_t len = 0;

        form_line(&forms[f], &r->places[f], r->args->ranks[i], &texts, line);
        for (int w = 0; line[w] && len < sizeof(text); w++) {
            const char *name = strrchr(line[w], '/');

            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
                                    w ? " " : "", name ? name + 1 : line[w]);
        }
        json_array_append_new(all, json_string(text));
    }
    return all;
}

static json_t *of_libraries(const struct result *r)
{
    json_t *all = json_array();

    for (int f = 0; f < N_FORMS; f++) {
        json_t *one = json_pack("{s:s, s:s, s:b}", "name", forms[f].name,
                                "title", forms[f].title, "is_rival",
                                !forms[f].is_own && !forms[f].is_measure);

        json_object_set_new(one, "version",
                            r->versions[f][0] ? json_string(r->versions[f])
                                              : json_null());
        if (!r->args->has_form[f])
            json_object_set_new(one, "absent", json_string("not asked for"));
        else if (r->places[f].why[0])
            json_object_set_new(one, "absent", json_string(r->places[f].why));
        if (r->troubles[f][0])
            json_object_set_new(
                one, "trouble",
                json_stringn_nocheck(r->troubles[f], strlen(r->troubles[f])));
        json_object_set_new(one, "commands", of_commands(r, f));
        json_array_append_new(all, one);
    }
    return all;
}

static json_t *of_outcome(const struct outcome *o)
{
    json_t *one = json_object(), *rounds = json_array();

    for (int i = 0; i < o->n_rounds; i++)
        json_array_append_new(rounds, us(o->rounds[i]));
    json_object_set_new(one, "us", us(o->median));
    json_object_set_new(one, "spread", json_real(o->spread));
    json_object_set_new(one, "batch", json_integer(o->batch));
    json_object_set_new(one, "wrong", json_integer((json_int_t)o->wrong));
    if (o->is_slow)
        json_object_set_new(one, "only_once", json_true());
    if (o->n_single)
        json_object_set_new(one, "single_p99_us", us(o->p99));
    json_object_set_new(one, "rounds_us", rounds);
    return one;
}

static json_t *of_cell(const struct cell *cell)
{
    const struct outcome *ours = &cell->outcomes[0];
    json_t *times = json_object();

    for (int f = 0; f < N_FORMS; f++)
        json_object_set_new(times, forms[f].name,
                            cell->outcomes[f].status == MEASURED
                                ? of_outcome(&cell->outcomes[f])
                                : json_null());
    return json_pack(
        "{s:i, s:s, s:I, s:o, s:o, s:f, s:f, s:o, s:o}", "ranks", cell->ranks,
        "collective", op_names[cell->op], "bytes", (json_int_t)cell->bytes,
        "best_rival",
        cell->best ? json_string(forms[cell->best].name) : json_null(), "ratio",
        cell->ratio > 0 ? json_real(cell->ratio) : json_null(), "spread",
        cell->spread, "limit_us", cell->limit * 1e6, "share_of_limit",
        ours->median > 0 ? json_real(cell->limit / ours->median) : json_null(),
        "libraries", times);
}

int json_write(const struct result *r, const char *path)
{
    const struct machine *m = &r->machine;
    struct score score = text_score(r);
    json_t *cells, *root;
    FILE *file = fopen(path, "we");
    int is_bad;

    if (!file)
        return say("cannot write %s: %s; choose another --json", path,
                   strerror(errno));
    cells = json_array();
    for (int i = 0; i < r->n_cells; i++)
        json_array_append_new(cells, of_cell(&r->cells[i]));
    root = json_pack("{s:{s:s, s:i, s:s, s:s, s:s}, s:i, s:s?, s:s, s:s, s:f, "
                     "s:b, s:i, s:f, s:f, s:i, "
                     "s:i, "
                     "s:o, s:o, s:o}",
                     "machine", "cpu", m->cpu, "cores", m->cores, "memory",
                     m->memory, "kernel", m->kernel, "transparent_huge_pages",
                     m->pages, "hosts", r->args->hosts.n ? r->args->hosts.n : 1,
                     "link_rate", r->args->hosts.rate, "date", m->date,
                     "device", r->args->on_gpu ? r->gpu : "host", "seconds",
                     r->seconds, "quick", r->args->is_quick, "rounds",
                     r->args->rounds, "seconds_a_round", r->args->seconds,
                     "geometric_mean", score.mean, "wins", score.wins,
                     "n_ratios", score.n, "libraries", of_libraries(r),
                     "limits", of_limits(&r->limits), "cells", cells);
    is_bad = !root ||
             json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) ||
             fputc('\n', file) == EOF;
    json_decref(root);
    if (fclose(file) || is_bad)
        return say("cannot write %s: %s; make room or write elsewhere", path,
                   strerror(errno ? errno : EIO));
    return 0;
}
