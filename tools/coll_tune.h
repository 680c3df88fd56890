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
    double seconds; /* that one candidate may take in a round, about */
    const char *path;
    int is_forced; /* --force: the file may be there */
};

/* One algorithm for one problem; times in seconds. */
struct tune_candidate {
    char algorithm[32];
    double predicted, measured;
};

/* One problem; candidates in the order of their prediction. */
struct tune_row {
    enum coll_collective collective;
    size_t bytes; /* of the call's count */
    int n, best;
    struct tune_candidate candidates[TUNE_MOST];
};

/* What a message between two ranks takes: alpha + n beta. */
struct tune_link {
    int is_there;
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
 * Ownership: table->rows is the caller's, to free, also after an error.
 * Errors:    of the operations; explained by coll_last_error().
 */
int tune_measure(const struct tune_options *options, struct coll_comm *comm,
                 struct tune_table *table);

/* Has each rank one part of the whole vector? */
int tune_has_parts(enum coll_collective collective);

/* ---- coll_tune_file.c: on rank 0 alone -------------------------------------- */

/* Open a new file beside the one that is asked for, and give it that name when
 * it is complete.  Messages go to stderr; 0 or -1. */
struct tune_file {
    char *path, *temporary;
    int fd, is_forced;
};
int tune_file_open(struct tune_file *file, const struct tune_options *options);
int tune_file_write(struct tune_file *file, const struct coll_comm *comm,
                    const struct tune_table *table);
void tune_file_close(struct tune_file *file);

#endif
