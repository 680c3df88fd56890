/* SPDX-License-Identifier: BSD-3-Clause */
/* many.h - many cases side by side, each drawn from a seed and a number: the command
 * line, and the processes that run them. */
#ifndef COLL_TESTS_MANY_H
#define COLL_TESTS_MANY_H

#include <stdint.h>

struct many {
    const char *program, *usage; /* usage: what --help prints */
    unsigned seed, first, n;     /* cases first to first + n - 1 */
    int jobs, is_verbose;
    double soon;     /* how long survivors may take, s */
    int is_secluded; /* a worker's: what lies in /dev/shm or /tmp is its ranks' */
};

/* Read the options of the command line; a wrong one ends the program.  The fields of
 * *o that they set hold the defaults. */
void many_parse(int argc, char **argv, struct many *o);

/* Call one(o, i, arg) for every i below o->n, in o->jobs processes.  Returns how many of
 * them failed. */
int many_run(const struct many *o,
             void (*one)(const struct many *o, unsigned i, void *arg),
             void *arg);

/* Memory that this process shares with its children; ends the program if there is none. */
void *many_share(const struct many *o, unsigned long len);

/* The state that a case's draws begin with. */
uint64_t many_state(unsigned seed, unsigned number);

/* Draw from low to high, each order of magnitude as likely as the others. */
double many_scale(uint64_t *state, double low, double high);

/* The first line of a report: versions and cores. */
void many_print_versions(void);

#endif
