/* SPDX-License-Identifier: BSD-3-Clause */
/* report_json.h - what report.c and report_json.c share. */
#ifndef COLL_TRAINER_REPORT_JSON_H
#define COLL_TRAINER_REPORT_JSON_H

#include "trainer/report.h"

#include <jansson.h>

/* Open what --json names.  Result: 0, or -1 with train_error() set. */
int report__json_open(struct report *r);

/* Return the object of a run that is over, or NULL; times in seconds. */
json_t *report__result(const struct report *r, double total, double but_first,
                       double max_rss);

/* Return the bytes of optimizer state on the rank that has most of it. */
size_t report__most_state(const struct trainer *t);

/* Refuse a file that cannot be written, with errno's reason; returns -1. */
int report__cannot_write(const char *what);

#endif
