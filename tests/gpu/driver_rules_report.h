/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_rules_report.h - what was seen of each rule, as a table and as JSON. */
#ifndef TESTS_GPU_DRIVER_RULES_REPORT_H
#define TESTS_GPU_DRIVER_RULES_REPORT_H

#include "tests/gpu/driver_rules.h"

enum outcome { HOLDS, DIFFERS, CANNOT };

/* One line that a rule's process wrote: kind is W (want), S (seen), N (cannot). */
struct check {
    char kind;
    int holds;
    char what[200], want[96], got[200];
};

struct result {
    const struct rule *rule;
    enum outcome outcome;
    struct check *checks;
    size_t n_checks;
    double seconds;
};

/* Take apart what a rule's process wrote; status as of waitpid, -1 when it was ended
 * for its time.  The checks are the caller's. */
void result_read(struct result *r, char *text, int status);

void report_table(const struct result *r, int is_long);
int report_json(const char *path, const struct gpu_found *m,
                const struct result *results, size_t n);

/* The process' own side: one line to the process that gathers. */
void report_line(char kind, int holds, const char *what, const char *want,
                 const char *got);
void report_end(void);
void report_to(int fd);

#endif
