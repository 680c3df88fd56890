/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_history_metrics.c - which rank comes late to its calls, by the files of COLL_METRICS.
 *
 * These hold how long each rank was in the calls of a routine, in all.  A call that needs
 * all ranks ends on them at about the same time, so a rank is as late, on the average, as its
 * calls are shorter than the median rank's.  Files may be of different moments: times of
 * one call are compared.
 */
#include "tools/coll_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 16 /* ranks in a table */
#define WORD 32

/* What one rank's file says of a routine of a communicator. */
struct sample {
    char communicator[WORD], routine[WORD];
    int rank;
    double calls, seconds;
    double late; /* s, on the average; below 0: early */
};

struct samples {
    struct sample *all;
    int n;
    const char *path; /* of the file that is being read */
    int first;        /* its first sample */
};

/* ---- reading ------------------------------------------------------------------ */

int history_is_metrics(const char *path)
{
    static const char begin[] = "# HELP coll_";
    char line[sizeof(begin)] = "";
    FILE *file = fopen(path, "re");
    int is = file && fgets(line, sizeof(line), file) && !strcmp(line, begin);

    if (file)
        fclose(file);
    return is;
}

/* Return the sample that the values belong to; a new one is 0. */
static struct sample *sample_of(struct samples *samples,
                                const struct sample *named)
{
    struct sample *s;

    for (int i = 0; i < samples->n; i++) {
        s = &samples->all[i];
        if (s->rank != named->rank || strcmp(s->routine, named->routine) ||
            strcmp(s->communicator, named->communicator))
            continue;
        if (i < samples->first)
            history_die("%s: another file is of that rank, too; give those of "
                        "one moment alone",
                        samples->path);
        return s;
    }
    samples->all = history_must(realloc(
        samples->all, (size_t)(samples->n + 1) * sizeof(*samples->all)));
    s = &samples->all[samples->n++];
    *s = *named;
    return s;
}

static void take(struct samples *samples, const char *line)
{
    struct sample named = {.calls = 0};
    char metric[WORD];
    double value;

    if (sscanf(line,
               "coll_%31[a-z_]{routine=\"%31[a-z_]\",rank=\"%d\","
               "communicator=\"%31[a-z0-9]\"} %lf",
               metric, named.routine, &named.rank, named.communicator,
               &value) != 5 ||
        !history_is_joint(named.routine) ||
        !strcmp(named.communicator, "other"))
        return;
    if (!strcmp(metric, "calls_total"))
        sample_of(samples, &named)->calls = value;
    else if (!strcmp(metric, "seconds_total"))
        sample_of(samples, &named)->seconds = value;
}

static void read_metrics(struct samples *samples, const char *path)
{
    char line[1024];
    FILE *file;

    if (!history_is_metrics(path))
        history_die("%s is not what COLL_METRICS writes, as the first file is",
                    path);
    samples->path = path;
    samples->first = samples->n;
    file = fopen(path, "re");
    if (!file)
        history_die("cannot read %s", path);
    while (fgets(line, sizeof(line), file))
        take(samples, line);
    fclose(file);
}

/* ---- judging ------------------------------------------------------------------- */

static int compare_groups(const struct sample *x, const struct sample *y)
{
    int rc = strcmp(x->communicator, y->communicator);

    return rc ? rc : strcmp(x->routine, y->routine);
}

/* The groups one after another, and in each the latest rank first. */
static int compare(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int rc = compare_groups(x, y);

    if (rc)
        return rc;
    if (x->late != y->late)
        return x->late < y->late ? 1 : -1;
    return x->rank - y->rank;
}

static double average(const struct sample *s)
{
    return s->calls > 0 ? s->seconds / s->calls : 0;
}

/* Return the number of samples of the group that begins at `s`. */
static int size_of(const struct samples *samples, const struct sample *s)
{
    const struct sample *next = s;

    while (next < samples->all + samples->n && !compare_groups(s, next))
        next++;
    return (int)(next - s);
}

/* Sort, and set `late`: first a rank's own average counts, and then how far it is below the
 * median. */
static void judge(struct samples *samples)
{
    for (int i = 0; i < samples->n; i++)
        samples->all[i].late = -average(&samples->all[i]);
    if (samples->n)
        qsort(samples->all, (size_t)samples->n, sizeof(*samples->all), compare);
    for (int i = 0, n; i < samples->n; i += n) {
        struct sample *group = &samples->all[i];
        double median;

        n = size_of(samples, group);
        median = average(&group[n / 2]);
        for (int k = 0; k < n; k++)
            group[k].late += median;
    }
}

/* ---- saying -------------------------------------------------------------------- */

static void print_samples(const struct sample *s, int n)
{
    printf("communicator %s, %s\n", s->communicator, s->routine);
    if (n == 1) {
        printf("  there is no other rank's file to compare with\n");
        return;
    }
    printf("    rank     calls  average lateness\n");
    for (int i = 0; i < n && i < SHOWN; i++)
        printf("  %6d  %8.0f  %13.3f ms\n", s[i].rank, s[i].calls,
               s[i].late > 0 ? s[i].late * 1e3 : 0.0);
    if (n > SHOWN)
        printf("  ... (%d ranks in all; --json has them)\n", n);
    if (s->late > 0)
        printf("  the latest is rank %d: %.3f ms after the median\n", s->rank,
               s->late * 1e3);
    else
        printf("  no rank is late\n");
}

static void append_samples(json_t *out, const struct sample *s, int n)
{
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("{s:i, s:I, s:f}", "rank", s[i].rank, "calls",
                            (json_int_t)s[i].calls, "lateness",
                            s[i].late > 0 ? s[i].late : 0.0));
    json_array_append_new(out, json_pack("{s:s, s:s, s:o}", "id",
                                         s->communicator, "routine", s->routine,
                                         "latest_first", list));
}

void history_slow_metrics(char **paths, int n_paths, int is_json)
{
    struct samples samples = {0};
    json_t *out = json_array();

    for (int i = 0; i < n_paths; i++)
        read_metrics(&samples, paths[i]);
    judge(&samples);
    for (int i = 0, n; i < samples.n; i += n) {
        n = size_of(&samples, &samples.all[i]);
        if (is_json)
            append_samples(out, &samples.all[i], n);
        else
            print_samples(&samples.all[i], n);
    }
    if (!samples.n)
        history_die("no file counts a call that needs all ranks");
    if (is_json) {
        json_dumpf(out, stdout, JSON_INDENT(1));
        putchar('\n');
    }
    json_decref(out);
    free(samples.all);
}
