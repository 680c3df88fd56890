/* SPDX-License-Identifier: BSD-3-Clause */
/* bench.c - images per second.  Rank 0's rate is that of every rank: no rank
 * ends a step before the others. */
#include "trainer/bench.h"
#include "trainer/args.h"
#include "trainer/clock.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/report.h"
#include "trainer/stop.h"
#include "trainer/train.h"

#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIGMAS 1.96 /* of a normal distribution: 95 % lie within */

/* Images per second of one rank: their mean, and how far single rates are from
 * it. */
struct rate {
    double mean, spread;
};

static struct rate rate_of(const double *rates, size_t n)
{
    struct rate all = {0};
    double squares = 0;

    for (size_t i = 0; i < n; i++)
        all.mean += rates[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (rates[i] - all.mean) * (rates[i] - all.mean);
    all.spread = SIGMAS * sqrt(squares / (double)n);
    return all;
}

static void print_head(const struct trainer *t)
{
    printf("Model: %s\nBatch size: %llu\nNumber of CPUs: %d\n"
           "Running warmup...\n",
           t->args->model, (unsigned long long)t->args->batch_size,
           t->ddp->size);
}

static void print_rate(const struct trainer *t, const struct rate *one)
{
    int n = t->ddp->size;

    printf("Img/sec per CPU: %.1f +-%.1f\n"
           "Total img/sec on %d CPU(s): %.1f +-%.1f\n",
           one->mean, one->spread, n, n * one->mean, n * one->spread);
}

/* Measure all rates, or until a signal comes; *n counts them. */
static int measure(struct trainer *t, int is_spoken, double *rates, size_t *n)
{
    const struct args *a = t->args;
    double images =
        (double)(a->batch_size * a->accum * a->num_batches_per_iter);

    *n = 0;
    if (trainer_repeat(t, a->num_warmup_batches))
        return -1;
    if (is_spoken && !t->stop)
        printf("Running benchmark...\n");
    for (; *n < a->num_iters && !t->stop; ++*n) {
        double begin = now();

        if (trainer_repeat(t, a->num_batches_per_iter))
            return -1;
        if (t->stop)
            break;
        rates[*n] = images / (now() - begin);
        if (is_spoken)
            printf("Iter #%zu: %.1f img/sec per CPU\n", *n, rates[*n]);
    }
    return 0;
}

static int write_result(const struct trainer *t, struct report *r,
                        const struct rate *one)
{
    int n = t->ddp->size, st;
    json_t *object = json_pack(
        "{s:i, s:s, s:i, s:i, s:I, s:I, s:f, s:f, s:f}", "version", 1, "model",
        t->args->model, "procs", n, "nodes", t->ddp->n_hosts, "batch_per_proc",
        (json_int_t)t->args->batch_size, "iters",
        (json_int_t)t->args->num_iters, "images_per_s_per_proc", one->mean,
        "images_per_s", n * one->mean, "images_per_s_spread", n * one->spread);

    st = report_json(r, object);
    json_decref(object);
    return st;
}

int bench_run(struct trainer *t, struct report *r)
{
    int is_spoken = r->is_speaker && r->mode != PROGRESS_OFF, st;
    double *rates = calloc(t->args->num_iters, sizeof(*rates));
    struct rate one;
    size_t n;

    if (!rates)
        return train_fail("out of memory for %llu rates; lower --num-iters",
                          (unsigned long long)t->args->num_iters);
    if (is_spoken)
        print_head(t);
    st = measure(t, is_spoken, rates, &n);
    if (!st && !t->stop) {
        one = rate_of(rates, n);
        if (is_spoken)
            print_rate(t, &one);
        if (r->json)
            st = write_result(t, r, &one);
    }
    if (!st && t->stop && r->is_speaker)
        printf("stopped by %s after %zu of %llu rates\n", stop_name(t->stop), n,
               (unsigned long long)t->args->num_iters);
    free(rates);
    return st;
}
