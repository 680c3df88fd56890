/* SPDX-License-Identifier: BSD-3-Clause */
/* plot_curves.c - curves over epochs, and over the number of ranks. */
#include "trainer/plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* up to this many epochs, each one has its number below the axis */
#define MARKS 15

/* ---- over epochs ------------------------------------------------------------------ */

/* Write the two curves of a file as gnuplot's data block $dN.  Returns the
 * number of epochs, or -1 after a sentence. */
static int write_epochs(const char *path, int n, const char *first,
                        const char *second, FILE *to)
{
    json_t *result = plot_read(path), *epochs, *epoch;
    size_t i, n_epochs;

    if (!result)
        return -1;
    epochs = json_object_get(result, "epochs");
    n_epochs = json_array_size(epochs);
    fprintf(to, "$d%d << END\n", n);
    for (i = 0; i < n_epochs; i++) {
        epoch = json_array_get(epochs, i);
        fprintf(to, "%g %g %g\n",
                json_number_value(json_object_get(epoch, "epoch")),
                json_number_value(json_object_get(epoch, first)),
                json_number_value(json_object_get(epoch, second)));
    }
    fputs("END\n", to);
    json_decref(result);
    if (n_epochs)
        return (int)n_epochs;
    return plot_fail("%s holds no epochs; it must come from coll_train --json",
                     path);
}

/* Return the file's name without its folder and its ending. */
static void print_title(const char *path, FILE *to)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    for (size_t i = 0;
         name[i] && strcmp(name + i, ".json") && strcmp(name + i, ".csv"); i++)
        fputc(name[i] == '"' || name[i] == '\\' ? '_' : name[i], to);
}

static int plot_epochs(const struct plot *p, const char *first,
                       const char *second, const char *what, FILE *to)
{
    int most = 0;

    for (int i = 0; i < p->n_files; i++) {
        int n = write_epochs(p->files[i], i, first, second, to);

        if (n < 0)
            return -1;
        most = n > most ? n : most;
    }
    fprintf(to,
            "set xlabel 'epoch'\nset ylabel '%s'\nset autoscale xfix\n"
            "set xtics %d\nset offsets 0.3, 0.3, 0, 0\nplot ",
            what, (most + MARKS - 1) / MARKS);
    for (int i = 0; i < p->n_files; i++) {
        fprintf(to,
                "%s$d%d using 1:2 with linespoints lt %d dt 2 pt 6 title "
                "\"",
                i ? ", " : "", i, i + 1);
        print_title(p->files[i], to);
        fprintf(to,
                ", training\", $d%d using 1:3 with linespoints lt %d pt 7 "
                "lw 2 title \"",
                i, i + 1);
        print_title(p->files[i], to);
        fputs(", test\"", to);
    }
    fputc('\n', to);
    return 0;
}

int plot_loss(const struct plot *p, FILE *to)
{
    fputs("set yrange [0:*]\n", to);
    return plot_epochs(p, "loss", "test_loss", "loss", to);
}

int plot_accuracy(const struct plot *p, FILE *to)
{
    fputs("set key bottom right\nset yrange [0:1]\n", to);
    return plot_epochs(p, "acc", "test_acc", "accuracy", to);
}

/* ---- over ranks ------------------------------------------------------------------- */

#define COLUMNS 8

/* Write "procs images/s efficiency ideal" of each line as a data block. */
static int write_table(const char *path, int n, FILE *to)
{
    FILE *from = fopen(path, "re");
    char line[512];
    int n_lines = 0;

    if (!from)
        return plot_fail("cannot read %s: %s", path, strerror(errno));
    fprintf(to, "$d%d << END\n", n);
    while (fgets(line, sizeof(line), from)) {
        double v[COLUMNS];

        if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &v[0], &v[1], &v[2],
                   &v[3], &v[4], &v[5], &v[6], &v[7]) != COLUMNS)
            continue; /* the heads */
        fprintf(to, "%g %g %g %g\n", v[0], v[3], v[5],
                v[5] > 0 ? v[3] / v[5] : 0); /* what all ranks could do */
        n_lines++;
    }
    fputs("END\n", to);
    fclose(from);
    return n_lines ? 0
                   : plot_fail("%s holds no table; it must come from collrun "
                               "--scaling --csv",
                               path);
}

int plot_scaling(const struct plot *p, FILE *to)
{
    for (int i = 0; i < p->n_files; i++)
        if (write_table(p->files[i], i, to))
            return -1;
    fputs("set xlabel 'ranks'\nset logscale x 2\nset xtics nomirror\n"
          "set ylabel 'images/s'\nset ytics nomirror\nset yrange [0:*]\n"
          "set y2label 'efficiency'\nset y2range [0:1.2]\nset y2tics 0.2\n"
          "set key top left\nset offsets graph 0.05, graph 0.05, 0, 0\nplot ",
          to);
    for (int i = 0; i < p->n_files; i++) {
        fprintf(to,
                "%s$d%d using 1:2 with linespoints lt %d pt 7 lw 2 title "
                "\"",
                i ? ", " : "", i, i + 1);
        print_title(p->files[i], to);
        fprintf(to,
                ", images/s\", $d%d using 1:3 axes x1y2 with linespoints "
                "lt %d dt 2 pt 6 title \"",
                i, i + 1);
        print_title(p->files[i], to);
        fprintf(
            to,
            ", efficiency\", $d%d using 1:4 with lines lt 0 title \"ideal\"",
            i);
    }
    fputc('\n', to);
    return 0;
}
