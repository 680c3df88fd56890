/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_history.h - the files of COLL_HISTORY as coll_history has read them. */
#ifndef COLL_TOOLS_COLL_HISTORY_H
#define COLL_TOOLS_COLL_HISTORY_H

#include <jansson.h>

/* One rank's records of one communicator. */
struct history_part {
    json_t *file, *comm;
    double clock; /* as the file was written, s */
};

/* A communicator, with the ranks whose files were read. */
struct history_group {
    const char *id;
    int size, n_parts;
    json_t *ranks;
    struct history_part
        *parts; /* [size]; comm is NULL for a rank without a file */
};

/* All that was read. */
struct histories {
    json_t *files;
    struct history_group *groups;
    int n_groups, size_of_job;
};

/* Say why the program ends, and exit. */
void history_die(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/* Return the memory, or exit if there is none. */
void *history_must(void *memory);

/* Read a file into *all, or exit with a sentence. */
void histories_read(struct histories *all, const char *path);
void histories_fini(struct histories *all);

/* Return a member of an object: 0 or "" if there is none. */
json_int_t history_whole(const json_t *object, const char *name);
const char *history_word(const json_t *object, const char *name);

/* Return a rank's number in the first communicator. */
int history_rank(const struct history_group *g, int rank);

/* Return a series of a rank's calls, or NULL. */
json_t *history_series(const json_t *comm, const char *name);

/* Return the call with this number, or NULL if the rank has forgotten it or not begun
 * it. */
json_t *history_call(const json_t *comm, const char *series, json_int_t seq);

/* ---- coll_history_slow.c ------------------------------------------------------ */

/* Print which ranks come last to the calls of a communicator; or return a list of all
 * ranks, the latest first. */
void history_print_slow(const struct history_group *g);
json_t *history_slow_json(const struct history_group *g);

/* Does a collective of this name end on no rank before all have begun it? */
int history_is_joint(const char *collective);

/* ---- coll_history_metrics.c ---------------------------------------------------- */

/* Is this a file of COLL_METRICS? */
int history_is_metrics(const char *path);

/* Print which ranks come late, by the files of COLL_METRICS; or exit with a sentence. */
void history_slow_metrics(char **paths, int n_paths, int is_json);

#endif
