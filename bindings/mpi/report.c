/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - how many calls were carried, and how many left to MPI. */
#include "bindings/mpi/preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic unsigned long carried[COLL_N_COLLECTIVES];
static _Atomic unsigned long left[COLL_N_COLLECTIVES];

/* Threads may count at once; a count that is lost now and then is no harm, and an atomic
 * addition would cost more than the rest of a small call's preparation. */
static void count(_Atomic unsigned long *n)
{
    unsigned long now = atomic_load_explicit(n, memory_order_relaxed);

    atomic_store_explicit(n, now + 1, memory_order_relaxed);
}

void report_carried(enum coll_collective collective)
{
    count(&carried[collective]);
}

void report_left(enum coll_collective collective) { count(&left[collective]); }

static void list(const char *title, _Atomic unsigned long n[], char *text,
                 size_t len)
{
    size_t at = (size_t)snprintf(text, len, "%s", title);
    int any = 0;

    for (int c = 0; c < COLL_N_COLLECTIVES && at < len; c++)
        if (n[c]) {
            at +=
                (size_t)snprintf(text + at, len - at, "%s %lu %s",
                                 any ? "," : "", n[c], coll_collective_name(c));
            any = 1;
        }
    if (!any && at < len)
        snprintf(text + at, len - at, " nothing");
}

void report_say(void)
{
    const char *wanted = getenv("COLL_MPI_REPORT");
    char ours[700], theirs[700];
    int rank;

    if (!wanted || strcmp(wanted, "1"))
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    list("libcoll carried", carried, ours, sizeof(ours));
    list("left to MPI", left, theirs, sizeof(theirs));
    fprintf(stderr, "libcoll: rank %d: %s; %s\n", rank, ours, theirs);
}
