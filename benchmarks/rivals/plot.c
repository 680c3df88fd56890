/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.c - the ratios as a picture: a row for each number of ranks, a column
 * for each collective, and in it a line for each rival.  Above 1 libcoll is
 * faster. */
#include "benchmarks/rivals/compare.h"
#include "tools/common/gnuplot.h"

#include <string.h>

/* Return rival f's time divided by libcoll's; 0 if one of them has none. */
static double ratio_of(const struct cell *cell, int f)
{
    const struct outcome *ours = &cell->outcomes[0];
    const struct outcome *rival = &cell->outcomes[f];

    return ours->status == MEASURED && rival->status == MEASURED &&
                   ours->median > 0
               ? rival->median / ours->median
               : 0;
}

static int is_in(const struct cell *cell, int ranks, int op)
{
    return cell->ranks == ranks && (int)cell->op == op;
}

/* Return 1 if it is drawn in this panel: gnuplot complains of a line without
 * points. */
static int has_rival(const struct result *r, int ranks, int op, int f)
{
    for (int i = 0; i < r->n_cells; i++)
        if (is_in(&r->cells[i], ranks, op) && ratio_of(&r->cells[i], f) > 0)
            return 1;
    return 0;
}

static void write_points(const struct result *r, int ranks, int op, int f,
                         FILE *to)
{
    for (int i = 0; i < r->n_cells; i++) {
        const struct cell *cell = &r->cells[i];

        if (is_in(cell, ranks, op) && ratio_of(cell, f) > 0)
            fprintf(to, "%g %.6g\n",
                    op == PEER_BARRIER ? (double)f : (double)cell->bytes,
                    ratio_of(cell, f));
    }
    fputs("e\n", to);
}

/* Draw one panel; the first of a row has the labels. */
static void write_panel(const struct result *r, int ranks, int op,
                        int is_labelled, FILE *to)
{
    static const char *const colors[N_FORMS] = {"black",   "black",   "#1f77b4",
                                                "#2ca02c", "#9467bd", "#d62728",
                                                "#8c8c8c", "#ff7f0e"};

    fprintf(to, "set title \"%s, %d ranks\" noenhanced\n", op_names[op], ranks);
    fprintf(to, "set ylabel '%s'\nset key %s\n",
            is_labelled ? "rival / libcoll" : "", is_labelled ? "on" : "off");
    if (op == PEER_BARRIER)
        fprintf(to, "unset logscale x\nset xrange [0:%d]\nset format x ''\n",
                N_FORMS);
    else
        fputs("set logscale x 2\nset xrange [4:*]\nset format x '%.0b%B'\n",
              to);
    fputs("plot 1 with lines lc rgb 'black' lw 2 notitle", to);
    for (int f = 0; f < N_FORMS; f++)
        if (!forms[f].is_own && has_rival(r, ranks, op, f))
            fprintf(to,
                    ", '-' with linespoints lw 1.5 lc rgb '%s' pt 7 ps 0.5 "
                    "title \"%s\"",
                    colors[f], forms[f].name);
    fputc('\n', to);
    for (int f = 0; f < N_FORMS; f++)
        if (!forms[f].is_own && has_rival(r, ranks, op, f))
            write_points(r, ranks, op, f, to);
}

static void write_script(const struct result *r, const char *path, FILE *to)
{
    const struct args *args = r->args;
    int n_ops = 0;

    for (int op = 0; op < PEER_N_OPS; op++)
        n_ops += args->has_op[op];
    fprintf(to, "set terminal %s size %d,%d background rgb 'white'\n",
            gnuplot_terminal(path), n_ops * 330 + 40, args->n_ranks * 300 + 80);
    fprintf(to,
            "set multiplot layout %d,%d title \"time of a rival / time of "
            "libcoll; above 1 libcoll is faster, "
            "above 32 not shown (%s, %d cores)\" "
            "noenhanced\n",
            args->n_ranks, n_ops, r->machine.cpu, r->machine.cores);
    fputs("set logscale y 2\nset grid\nset yrange [0.125:32]\n"
          "set key top right opaque noenhanced font ',8'\nset xtics rotate by "
          "-45\n",
          to);
    for (int i = 0; i < args->n_ranks; i++)
        for (int op = 0, n = 0; op < PEER_N_OPS; op++)
            if (args->has_op[op])
                write_panel(r, args->ranks[i], op, !n++, to);
    fputs("unset multiplot\n", to);
}

int plot_write(const struct result *r, const char *path)
{
    struct gnuplot gnuplot;
    int err = gnuplot_start(&gnuplot, path);

    if (err == ENOENT)
        return say("gnuplot was not found; install it (Debian: apt-get install "
                   "gnuplot-nox)");
    if (err)
        return say("cannot start gnuplot: %s", strerror(err));
    write_script(r, path, gnuplot.script);
    return gnuplot_finish(&gnuplot)
               ? say("gnuplot could not draw %s; its own words are above", path)
               : 0;
}
