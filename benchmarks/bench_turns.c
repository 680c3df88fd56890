/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_turns.c - for programs that compare things which take turns. */
#include "benchmarks/bench.h"
#include "tools/common/program.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bench_slowest(struct coll_comm *comm, double *times, size_t n)
{
    return coll_allreduce(times, times, n, COLL_F64, COLL_MAX, comm, NULL);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return values[n / 2];
}

int bench_get_buffers(struct coll_comm *comm, const struct bench_args *args,
                      void **in, void **out)
{
    size_t len = args->last + coll_type_size(args->type);
    int32_t is_there;
    int rc;

    *in = malloc(len);
    *out = malloc(len);
    is_there = *in && *out;
    rc =
        coll_allreduce(&is_there, &is_there, 1, COLL_I32, COLL_MIN, comm, NULL);
    return rc ? rc : is_there ? COLL_OK : COLL_ERR_NOMEM;
}

int bench_finish(const char *program, int status)
{
    const struct program p = {.name = program};

    return program_finish(&p, status);
}
