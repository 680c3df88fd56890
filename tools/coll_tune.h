/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune.h - the parts of coll_tune: measure, and write the file. */
#ifndef COLL_TOOLS_COLL_TUNE_H
#define COLL_TOOLS_COLL_TUNE_H

#include <coll/coll.h>

#define TUNE_MOST 32 /* candidates of one problem */

struct tune_options {
    unsigned collectives; /* a bit each */
    size_t first, last;   /* bytes of the whole vector */
    double factor;
    int rounds;
    double seconds; /* about how long a candidate may take in a round */
    double tolerance; /* of a time, as a part of it */
    const char *path;
    int is_forced; /* --force: the file may be there */
    int is_noisy;  /* --noisy: write clear results, leave out the rest */
};

/* One algorithm for one problem; times in seconds.  A measured time below its error is
 * noise, and may be negative. */
struct tune_candidate {
    char algorithm[32];
    double predicted, measured, error;
};

/* One problem; candidates in the order of their prediction. */
struct tune_row {
    enum coll_collective collective;
    size_t bytes; /* of the call's count */
    int runs_ahead; /* ranks may run ahead: barrier times are subtracted */
    int n, best, rounds;
    int is_noise; /* the best one is not known */
    struct tune_candidate candidates[TUNE_MOST];
};

/* The time of a message of n bytes between two ranks: alpha + n beta. */
struct tune_link {
    int is_there, is_noise;
    double alpha, beta; /* s, s a byte */
};

struct tune_table {
    struct tune_row *rows;
    int n_rows;
    struct tune_link links[2]; /* within a host, between hosts */
};

/* ---- coll_tune_measure.c: collective over comm ------------------------------ */

/* Measure every candidate of every problem that the options ask for.
 *
 * Ownership: the caller frees table->rows, also after an error.
 * Errors:    those of the operations; coll_last_error() explains them.
 */
int tune_measure(const struct tune_options *options, struct coll_comm *comm,
                 struct tune_table *table);

/* Has each rank one part of the whole vector? */
int tune_has_parts(enum coll_collective collective);

/* ---- coll_tune_judge.c: pure ------------------------------------------------ */

/* Sort n times; return their median and its error. */
struct tune_spread {
    double median, error; /* s */
};
struct tune_spread tune_spread_of(double *times, int n);

/* Set the row's results from n rounds: measured, error, best, is_noise.
 *
 * Shapes:    times[c * stride + i] is the time of candidate c in round i (c =
 *            row->n: of the barriers, if ranks run ahead); sorted by the call.
 */
void tune_judge(struct tune_row *row, double *times, int n, int stride,
                double tolerance);

/* ---- coll_tune_file.c: on rank 0 alone -------------------------------------- */

/* Open a new file beside the file asked for; rename it to that name when it is complete.
 * Messages go to stderr; 0 or -1. */
struct tune_file {
    char *path, *temporary;
    int fd, is_forced;
};
int tune_file_open(struct tune_file *file, const struct tune_options *options);
int tune_file_write(struct tune_file *file, const struct coll_comm *comm,
                    const struct tune_table *table);
void tune_file_close(struct tune_file *file);

#endif
