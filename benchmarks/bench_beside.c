/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_beside.c - a large allreduce that runs at the same time as what is
 * measured. */
#include "benchmarks/bench.h"

#include <stdlib.h>
#include <string.h>

struct bench_beside {
    void *in, *out;
    struct coll_request *request;
};

int bench_beside_make(struct coll_comm *comm, size_t bytes,
                      struct bench_beside **out)
{
    struct bench_beside *beside = calloc(1, sizeof(*beside));
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_F32,
                             .op = COLL_SUM,
                             .count = bytes / sizeof(float)};

    if (!beside)
        return COLL_ERR_NOMEM;
    *out = beside;
    args.in = beside->in = calloc(1, bytes);
    args.out = beside->out = malloc(bytes);
    if (!args.in || !args.out)
        return COLL_ERR_NOMEM;
    memset(args.out, 0, bytes); /* have its pages now */
    return coll_request_create(&args, comm, &beside->request);
}

int bench_beside_start(struct bench_beside *beside)
{
    return beside ? coll_start(beside->request) : COLL_OK;
}

int bench_beside_end(struct bench_beside *beside)
{
    return beside ? coll_wait(beside->request, 0) : COLL_OK;
}

void bench_beside_free(struct bench_beside *beside)
{
    if (!beside)
        return;
    coll_request_destroy(beside->request);
    free(beside->in);
    free(beside->out);
    free(beside);
}
