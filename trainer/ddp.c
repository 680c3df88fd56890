/* SPDX-License-Identifier: BSD-3-Clause */
/* ddp.c - buckets of gradients, and the few words that ranks exchange. */
#include "trainer/ddp.h"
#include "coll/coll.h"
#include "trainer/error.h"
#include "trainer/model.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* After an error a communicator is of no use but to be destroyed. */
static int check(struct ddp *d, int status)
{
    const char *why = coll_last_error();

    if (status == COLL_OK)
        return 0;
    d->has_failed = 1;
    return train_fail("%s", *why ? why : coll_strerror(status));
}

void ddp_adopt(struct ddp *d, struct coll_comm *comm)
{
    *d = (struct ddp){
        .comm = comm,
        .rank = coll_comm_rank(comm),
        .size = coll_comm_size(comm),
        .n_hosts = coll_comm_n_hosts(comm),
    };
}

int ddp_init(struct ddp *d)
{
    struct coll_comm *comm;

    *d = (struct ddp){.size = 1, .n_hosts = 1};
    if (check(d, coll_comm_create_env(&comm, NULL)))
        return -1;
    ddp_adopt(d, comm);
    return 0;
}

int ddp_fini(struct ddp *d)
{
    int st = d->comm ? coll_comm_destroy(d->comm) : COLL_OK;

    d->comm = NULL;
    return d->has_failed ? -1 : check(d, st);
}

const char *ddp_transports(const struct ddp *d)
{
    return coll_comm_transports(d->comm);
}

/* ---- gradients ---- */

static struct coll_args average_args(float *gradients, size_t count)
{
    return (struct coll_args){
        .size = sizeof(struct coll_args),
        .collective = COLL_ALLREDUCE,
        .type = COLL_F32,
        .op = COLL_AVG,
        .in = gradients,
        .out = gradients,
        .count = count,
    };
}

/* A report's detail: not knowing it is no failure. */
static void name_algorithm(struct ddp *d)
{
    struct coll_plan_info info = {.size = sizeof(info)};
    struct coll_args args =
        average_args(d->buckets[0].gradients, d->buckets[0].count);

    if (coll_plan_query(&args, d->comm, &info) == COLL_OK)
        snprintf(d->algo, sizeof(d->algo), "%.31s", info.algorithm);
}

void ddp_make_buckets(struct ddp *d, struct model *m, size_t bucket_bytes)
{
    size_t at = model_n_params(m), end = at;

    d->n_buckets = 0;
    for (int i = model_n_layers(m); i-- > 0;) {
        int is_full, may_close = d->n_buckets < DDP_MAX_BUCKETS - 1;

        at -= model_layer_params(m, i);
        is_full = (end - at) * sizeof(float) >= bucket_bytes && may_close;
        if (at == end || (i > 0 && !is_full))
            continue;
        d->buckets[d->n_buckets].gradients = model_gradients(m) + at;
        d->buckets[d->n_buckets++].count = end - at;
        end = at;
    }
    name_algorithm(d);
}

int ddp_average(struct ddp *d)
{
    double start = now();

    for (int i = 0; i < d->n_buckets; i++) {
        float *g = d->buckets[i].gradients;
        size_t n = d->buckets[i].count;

        if (check(d, coll_allreduce(g, g, n, COLL_F32, COLL_AVG, d->comm,
                                    NULL)))
            return -1;
        d->bytes += n * sizeof(float);
    }
    d->seconds += now() - start;
    return 0;
}

/* ---- words ---- */

int ddp_share_floats(struct ddp *d, float *values, size_t n)
{
    return check(d, coll_broadcast(values, values, n, COLL_F32, 0, d->comm,
                                   NULL));
}

int ddp_share_words(struct ddp *d, uint64_t *words, size_t n)
{
    return check(d, coll_broadcast(words, words, n, COLL_U64, 0, d->comm,
                                   NULL));
}

int ddp_sum(struct ddp *d, double *values, size_t n)
{
    return check(d, coll_allreduce(values, values, n, COLL_F64, COLL_SUM,
                                   d->comm, NULL));
}

int ddp_max(struct ddp *d, double *values, size_t n)
{
    return check(d, coll_allreduce(values, values, n, COLL_F64, COLL_MAX,
                                   d->comm, NULL));
}

int ddp_agree(struct ddp *d, int status, int *failed)
{
    int32_t lowest = status ? d->rank : d->size;

    if (check(d, coll_allreduce(&lowest, &lowest, 1, COLL_I32, COLL_MIN,
                                d->comm, NULL)))
        return -1;
    *failed = lowest < d->size ? lowest : -1;
    return 0;
}
