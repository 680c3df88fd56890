/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - how many calls were carried, and how many left to MPI, and why. */
#include "bindings/mpi/preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic unsigned long carried[COLL_N_COLLECTIVES];
static _Atomic unsigned long left[N_LEFT][COLL_N_COLLECTIVES];

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

void report_left(enum coll_collective collective, enum left_why why)
{
    count(&left[why][collective]);
}

/* Write " 3 allreduce, 2 gather" behind the title, and nothing without any.  Returns
 * whether there was one. */
static int list(FILE *out, const char *title, _Atomic unsigned long n[])
{
    int any = 0;

    for (int c = 0; c < COLL_N_COLLECTIVES; c++)
        if (n[c]) {
            fprintf(out, "%s %lu %s", any ? "," : title, n[c],
                    coll_collective_name(c));
            any = 1;
        }
    return any;
}

static void write_line(FILE *out)
{
#define LEFT_TEXT(name, text) "; left to MPI for the " text ":",
    static const char *const titles[] = {LEFT_MAP(LEFT_TEXT)};
#undef LEFT_TEXT
    int rank, any = 0;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(out, "libcoll: rank %d: libcoll carried", rank);
    if (!list(out, "", carried))
        fprintf(out, " nothing");
    for (int why = 0; why < N_LEFT; why++)
        any |= list(out, titles[why], left[why]);
    fprintf(out, "%s\n", any ? "" : "; left to MPI: nothing");
}

void report_say(void)
{
    const char *wanted = getenv("COLL_MPI_REPORT");
    char *line = NULL;
    size_t len;
    FILE *out;

    if (!wanted || strcmp(wanted, "1"))
        return;
    out = open_memstream(&line, &len);
    if (!out)
        return;
    write_line(out);
    fclose(out);
    fputs(line, stderr); /* at once: lines of several ranks must not mix */
    free(line);
}
