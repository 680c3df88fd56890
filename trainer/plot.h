/* SPDX-License-Identifier: BSD-3-Clause */
/* plot.h - what coll_plot draws: each kind of picture writes a gnuplot script. */
#ifndef COLL_TRAINER_PLOT_H
#define COLL_TRAINER_PLOT_H

#include <jansson.h>
#include <stdio.h>

struct plot {
    const char *output;
    char **files; /* [n_files]; each kind of picture has its own kind of file */
    int n_files;
    double from, to; /* seconds of a timeline; to 0: not given */
};

/* Print "coll_plot: ..." on stderr; returns -1. */
int plot_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Read a file of JSON; NULL after a sentence. */
json_t *plot_read(const char *path);

/* Write the script.  Result: 0, or -1 after a sentence. */
int plot_loss(const struct plot *p, FILE *to);
int plot_accuracy(const struct plot *p, FILE *to);
int plot_scaling(const struct plot *p, FILE *to);
int plot_timeline(const struct plot *p, FILE *to);

#endif
