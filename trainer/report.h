/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - what rank 0 prints, and the JSON object.
 *
 * On other ranks functions print nothing, but --verbose makes each rank
 * print its epochs with its own figures.
 */
#ifndef COLL_TRAINER_REPORT_H
#define COLL_TRAINER_REPORT_H

#include "trainer/epoch.h"

#include <stdio.h>

struct json_t;
struct trainer;

/* What all ranks know of the run so far, whoever is rank 0 in the end. */
struct past {
    size_t n_epochs, n_steps;
    struct epoch_stats tested; /* the last test's figures */
    uint64_t target_epoch;     /* the epoch that reached --target-acc, or 0; */
    double target_seconds;     /* so long after the start */
    double start, first_end;   /* on the monotonic clock, s */
};

struct report {
    const struct trainer *t; /* borrowed */
    int is_speaker;          /* rank 0 */
    int mode;                /* enum progress; AUTO has been decided */
    int is_drawn;            /* a bar stands on the line */
    FILE *json;              /* NULL: none wanted */
    struct past past;
    struct epoch_stats *epochs; /* [past.n_epochs] */
    double last_draw;           /* on the monotonic clock, s */
};

/* Open the JSON file, so that a file which cannot be written is noticed before
 * the training.  Its old content stays until the end.  t needs its args and ddp
 * now, and the rest from report_start() on.
 *
 * Result:    0, or -1 with train_error() set.
 */
int report_init(struct report *r, const struct trainer *t);
void report_fini(struct report *r);

/* Print the head lines; --dry-run: also the plan. */
void report_start(struct report *r);
void report_plan(struct report *r);

/* Print "Epoch e/n"; after a step redraw the bar, and print the line of
 * --log-interval when it is due (arg is the report); at the end print the
 * figures and keep them for the JSON object.
 *
 * Result:    of report_epoch: 0, or -1.
 */
void report_epoch_start(struct report *r);
void report_progress(void *arg, const struct progress_stats *now);
int report_epoch(struct report *r, const struct epoch_stats *stats);

/* With --verbose: print this rank's own figures of an epoch; every rank does.
 */
void report_own(struct report *r, const struct epoch_stats *own);

/* On a rank that has become rank 0: print from now on.
 *
 * Result:    as of report_init().
 */
int report_take_over(struct report *r);

/* Say that the ranks were `before` and are others now, and that they needed so many
 * seconds to go on. */
void report_ranks(struct report *r, int before, double seconds);

/* After the ranks have changed: give all of them the figures of the rank that has most,
 * since any may become rank 0.  All ranks call it.
 *
 * Result:    0, or -1 with train_error() set.
 */
int report_share(struct report *r);

/* Say that a signal ended the run. */
void report_stopped(struct report *r);

/* End the line of the bar, for an epoch that ends with a sentence. */
void report_epoch_cut(struct report *r);

/* Print only the line of the test, for a resumed run that begins with it. */
void report_test(struct report *r, const struct epoch_stats *stats);

/* Print the closing line and write the JSON object.
 *
 * Shapes:    max_rss: of the largest rank, MiB.
 * Result:    0, or -1 with train_error() set: the disk is full, or standard
 *            output is closed.
 */
int report_end(struct report *r, double max_rss);

/* Write the object for --json; NULL: there was no memory for it.
 *
 * Result:    0, or -1 with train_error() set.
 */
int report_json(struct report *r, const struct json_t *object);

/* Return the most memory that this process ever had, MiB. */
double report_max_rss(void);

#endif
