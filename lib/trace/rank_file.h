/* SPDX-License-Identifier: BSD-3-Clause */
/* rank_file.h - a file that each rank writes again and again: those of COLL_HISTORY and
 * COLL_METRICS.
 *
 * The file is written under another name and renamed, so readers see all of it.
 */
#ifndef COLL_LIB_TRACE_RANK_FILE_H
#define COLL_LIB_TRACE_RANK_FILE_H

#include "lib/util/param.h"

#include <limits.h>
#include <stdio.h>

struct coll__rank_file {
    const char *variable;    /* "COLL_HISTORY" */
    char path[PATH_MAX - 8]; /* absolute; "": there is no file */
};

/* Name a rank's file by the variable's text, in which the rank's number replaces "%r"; if
 * there is no "%r", ".RANK" is added.  Check that it can be written, without touching it.
 *
 * Errors:    COLL_ERR_INVALID, logged; *file is not changed.
 */
int coll__rank_file_open(enum coll__param variable, int rank,
                         struct coll__rank_file *file);

/* Replace the file by what put() writes; numbers in it have decimal points.  Returns
 * whether it was written; if not, that is logged as a warning. */
int coll__rank_file_write(const struct coll__rank_file *file,
                          void (*put)(FILE *to, const void *arg),
                          const void *arg);

#endif
