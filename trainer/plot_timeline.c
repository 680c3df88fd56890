/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_timeline.c - COLL_TIMELINE's file as a picture: a line of boxes for each
 * row, time to the right. */
#include "trainer/plot.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 40 /* that can be told apart */
#define SPAN 2.0    /* seconds of a picture without --to */

struct row {
    const char *name; /* the JSON value's */
    double begin;     /* of the outermost span that is open, s */
    int depth, pid;
    int y; /* its line, from 1 at the top; 0 while it has no box */
};

static struct {
    struct row rows[MAX_ROWS];
    int n_rows, n_drawn;
    double from, to, last; /* s */
} line;

static struct row *find(json_int_t pid)
{
    for (int i = 0; i < line.n_rows; i++)
        if (line.rows[i].pid == pid)
            return &line.rows[i];
    return NULL;
}

static void name_row(const json_t *event)
{
    json_int_t pid = json_integer_value(json_object_get(event, "pid"));
    const char *name = json_string_value(
        json_object_get(json_object_get(event, "args"), "name"));

    if (name && line.n_rows < MAX_ROWS)
        line.rows[line.n_rows++] = (struct row){.name = name, .pid = (int)pid};
}

/* Draw a box of the outermost span, from its begin to now. */
static void close_span(struct row *row, double t, FILE *to)
{
    if (row->begin >= line.to || t < line.from)
        return;
    if (!row->y)
        row->y = ++line.n_drawn;
    fprintf(to, "%.6f %.6f %d %d\n",
            row->begin > line.from ? row->begin : line.from,
            t < line.to ? t : line.to, row->y, row->y % 8 + 1);
}

static void take(const json_t *event, FILE *to)
{
    const char *ph = json_string_value(json_object_get(event, "ph"));
    double t = json_number_value(json_object_get(event, "ts")) * 1e-6;
    struct row *row = find(json_integer_value(json_object_get(event, "pid")));

    if (!ph || !row || (*ph != 'B' && *ph != 'E'))
        return;
    if (*ph == 'B' && !row->depth++)
        row->begin = t;
    if (*ph == 'E' && row->depth && !--row->depth)
        close_span(row, t, to);
}

static void write_boxes(const json_t *all, FILE *to)
{
    const json_t *event;
    size_t i;

    json_array_foreach(all, i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));

        if (name && !strcmp(name, "process_name"))
            name_row(event);
    }
    fputs("$boxes << END\n", to);
    for (i = 0; i < json_array_size(all); i++)
        take(json_array_get(all, i), to);
    fputs("END\n", to);
}

static double end_of(const json_t *all)
{
    const json_t *event;
    double last = 0;
    size_t i;

    json_array_foreach(all, i, event)
    {
        double t = json_number_value(json_object_get(event, "ts")) * 1e-6;

        last = t > last ? t : last;
    }
    return last;
}

static void write_plot(FILE *to)
{
    fprintf(to,
            "set xlabel 'seconds'\nset xrange [%g:%g]\nset yrange [%g:0.3]\n"
            "set style fill solid 0.8 noborder\nset ytics (",
            line.from, line.to, line.n_drawn + 0.7);
    for (int i = 0, n = 0; i < line.n_rows; i++)
        if (line.rows[i].y)
            fprintf(to, "%s\"%s\" %d", n++ ? ", " : "", line.rows[i].name,
                    line.rows[i].y);
    fputs(") noenhanced\nunset key\n"
          "plot $boxes using 1:3:1:2:($3-0.38):($3+0.38):4 with boxxyerror "
          "lc variable\n",
          to);
}

int plot_timeline(const struct plot *p, FILE *to)
{
    json_t *all;
    double end;

    if (p->n_files != 1)
        return plot_fail("a timeline is drawn by itself: name one file");
    all = plot_read(p->files[0]);
    if (!all)
        return -1;
    end = end_of(all);
    line.from = p->from;
    line.to = p->to ? p->to : end < p->from + SPAN ? end : p->from + SPAN;
    write_boxes(all, to);
    write_plot(to);
    json_decref(all);
    return line.n_drawn ? 0
                        : plot_fail("%s holds no span from %g to %g s",
                                    p->files[0], line.from, line.to);
}
