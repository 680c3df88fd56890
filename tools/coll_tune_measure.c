/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune_measure.c - the time of each algorithm for each problem.
 *
 * The candidates of a problem take turns: round after round each one runs some
 * iterations, so that what disturbs the machine for a while disturbs them all.
 * The time of a turn is that of its slowest rank; the median of the rounds
 * counts.  Where ranks may run ahead of each other a barrier ends each
 * iteration; barriers alone take their turn too, and are subtracted.
 */
#include "tools/coll_tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TYPE COLL_F32
#define SMALL 8
#define LARGE (4 << 20)
#define PINGS 200

struct meter {
    const struct tune_options *options;
    struct coll_comm *comm;
    void *in, *out;
    size_t in_len, out_len;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *times, int n)
{
    qsort(times, (size_t)n, sizeof(*times), by_value);
    return times[n / 2];
}

/* The largest over the ranks. */
static int slowest(const struct meter *m, double *times, size_t n)
{
    return coll_allreduce(times, times, n, COLL_F64, COLL_MAX, m->comm, NULL);
}

/* ---- links ------------------------------------------------------------------ */

/* One message there and one back, n times; the median of half of it. */
static int ping(const struct meter *m, int peer, int is_first, size_t len,
                int n, double *seconds)
{
    double times[PINGS];
    int rc = COLL_OK;

    for (int i = 0; i < n && !rc; i++) {
        double start = now();

        if (is_first)
            rc = coll_send(m->in, len, COLL_U8, peer, m->comm, NULL);
        if (!rc)
            rc = coll_recv(m->out, len, COLL_U8, peer, m->comm, NULL);
        if (!rc && !is_first)
            rc = coll_send(m->in, len, COLL_U8, peer, m->comm, NULL);
        times[i] = (now() - start) / 2;
    }
    *seconds = n ? median(times, n) : 0;
    return rc;
}

/* The first rank that is on rank 0's host, or on another one; or -1. */
static int find_peer(const struct meter *m, int is_far, int *peer)
{
    int rank = coll_comm_rank(m->comm), is_host0 = !coll_comm_host(m->comm);
    int32_t mine = rank && is_host0 == !is_far ? rank : INT32_MAX, least;
    int rc = coll_allreduce(&mine, &least, 1, COLL_I32, COLL_MIN, m->comm,
                            NULL);

    *peer = least == INT32_MAX ? -1 : least;
    return rc;
}

static int measure_link(const struct meter *m, int is_far,
                        struct tune_link *link)
{
    double times[2] = {0, 0}; /* small, large */
    int rank = coll_comm_rank(m->comm), peer, rc = find_peer(m, is_far, &peer);

    link->is_there = peer >= 0;
    if (rc || peer < 0)
        return rc;
    if (!rank || rank == peer) {
        int other = rank ? 0 : peer;

        rc = ping(m, other, !rank, SMALL, PINGS, &times[0]);
        if (!rc)
            rc = ping(m, other, !rank, LARGE, PINGS / 10, &times[1]);
    }
    if (!rc)
        rc = coll_broadcast(times, times, 2, COLL_F64, 0, m->comm, NULL);
    link->alpha = times[0];
    link->beta = times[1] > times[0] ? (times[1] - times[0]) / LARGE : 0;
    return rc;
}

/* ---- turns ------------------------------------------------------------------ */

int tune_has_parts(enum coll_collective collective)
{
    return collective == COLL_ALLGATHER || collective == COLL_GATHER ||
           collective == COLL_SCATTER || collective == COLL_ALLTOALL ||
           collective == COLL_REDUCE_SCATTER;
}

static int runs_ahead(enum coll_collective collective)
{
    return collective == COLL_BROADCAST || collective == COLL_REDUCE ||
           collective == COLL_GATHER || collective == COLL_SCATTER;
}

/* Without a request there are barriers alone. */
static int run_turn(const struct meter *m, struct coll_request *request,
                    int is_ahead, long n, double *seconds)
{
    double start;
    int rc = coll_barrier(m->comm, NULL);

    start = now();
    for (long i = 0; i < n && !rc; i++) {
        if (request)
            rc = coll_start(request);
        if (!rc && request)
            rc = coll_wait(request, 0);
        if (!rc && is_ahead)
            rc = coll_barrier(m->comm, NULL);
    }
    *seconds = (now() - start) / (double)n;
    return rc;
}

/* How many iterations fill a turn: the same number on every rank. */
static int fit_turn(const struct meter *m, struct coll_request *request,
                    int is_ahead, long *n)
{
    double each = 0, wanted;
    int rc = run_turn(m, request, is_ahead, 2, &each);

    if (!rc)
        rc = slowest(m, &each, 1);
    wanted = m->options->seconds / (each > 1e-9 ? each : 1e-9);
    *n = wanted < 1 ? 1 : wanted > 1000 ? 1000 : (long)wanted;
    return rc;
}

/* Measure all candidates, and the barrier after them where ranks may run ahead,
 * in turn; times[candidate * rounds + round]. */
static int run_rounds(const struct meter *m, const struct tune_row *row,
                      struct coll_request **requests, double *times)
{
    int rounds = m->options->rounds, rc = COLL_OK;
    int is_ahead = runs_ahead(row->collective), n_turns = row->n + is_ahead;
    long n[TUNE_MOST + 1];

    requests[row->n] = NULL;
    for (int c = 0; c < n_turns && !rc; c++)
        rc = fit_turn(m, requests[c], is_ahead, &n[c]);
    for (int i = 0; i < rounds && !rc; i++)
        for (int c = 0; c < n_turns && !rc; c++)
            rc = run_turn(m, requests[c], is_ahead, n[c],
                          &times[c * rounds + i]);
    return rc ? rc : slowest(m, times, (size_t)(n_turns * rounds));
}

static void judge(const struct meter *m, struct tune_row *row, double *times)
{
    int rounds = m->options->rounds;
    double ahead = runs_ahead(row->collective)
                       ? median(times + row->n * rounds, rounds)
                       : 0;

    for (int c = 0; c < row->n; c++) {
        double time = median(times + c * rounds, rounds);

        row->candidates[c].measured = time > ahead ? time - ahead : 0;
        if (row->candidates[c].measured < row->candidates[row->best].measured)
            row->best = c;
    }
}

/* ---- one problem ------------------------------------------------------------- */

static struct coll_args args_of(const struct meter *m,
                                const struct tune_row *row)
{
    return (struct coll_args){
        .size = sizeof(struct coll_args),
        .collective = row->collective,
        .type = TYPE,
        .op = COLL_SUM,
        .in = m->in,
        .out = m->out,
        .count = row->bytes / coll_type_size(TYPE),
    };
}

/* Ask for the candidates and make a request of each. */
static int make_requests(const struct meter *m, struct tune_row *row,
                         struct coll_request **requests)
{
    struct coll_args args = args_of(m, row);
    struct coll_plan_info info = {.size = sizeof(info)};
    int rc = COLL_OK;

    while (row->n < TUNE_MOST && !rc) {
        struct tune_candidate *candidate = &row->candidates[row->n];

        if (coll_plan_candidate(&args, m->comm, (size_t)row->n, &info))
            break;
        snprintf(candidate->algorithm, sizeof(candidate->algorithm), "%s",
                 info.algorithm);
        candidate->predicted = info.seconds;
        args.algo = candidate->algorithm;
        rc = coll_request_create(&args, m->comm, &requests[row->n]);
        args.algo = NULL;
        row->n += !rc;
    }
    return rc;
}

static int measure_row(const struct meter *m, struct tune_row *row)
{
    struct coll_request *requests[TUNE_MOST + 1];
    double *times = calloc((size_t)((TUNE_MOST + 1) * m->options->rounds),
                           sizeof(*times));
    int rc = times ? make_requests(m, row, requests) : COLL_ERR_NOMEM;

    if (!rc && row->n)
        rc = run_rounds(m, row, requests, times);
    if (!rc)
        judge(m, row, times);
    for (int c = 0; c < row->n; c++) /* after an error the last may still run */
        coll_request_destroy(requests[c]);
    free(times);
    return rc;
}

/* ---- all ---------------------------------------------------------------------- */

/* Bytes of the call's count when the whole vector has so many. */
static size_t part_bytes(const struct meter *m, enum coll_collective collective,
                         double bytes)
{
    size_t size = coll_type_size(TYPE);
    double parts = tune_has_parts(collective) ? coll_comm_size(m->comm) : 1;

    return collective == COLL_BARRIER ? 0
                                      : (size_t)(bytes / parts) / size * size;
}

/* The problems that the options ask for, in order; their number. */
static int list_rows(const struct meter *m, struct tune_row *rows)
{
    const struct tune_options *o = m->options;
    int n = 0;

    for (int k = 0; k < COLL_N_COLLECTIVES; k++) {
        size_t last = (size_t)-1;

        for (double bytes = (double)o->first;
             o->collectives >> k & 1 && bytes <= (double)o->last;
             bytes *= o->factor) {
            enum coll_collective collective = (enum coll_collective)k;
            size_t mine = part_bytes(m, collective, bytes);

            if (mine == last || (!mine && collective != COLL_BARRIER))
                continue;
            if (rows)
                rows[n] = (struct tune_row){.collective = collective,
                                            .bytes = mine};
            n++;
            last = mine;
        }
    }
    return n;
}

/* Buffers for the whole vector; all ranks have them, or none goes on. */
static int get_buffers(struct meter *m)
{
    size_t len = m->options->last > LARGE ? m->options->last : LARGE;
    int32_t is_there;
    int rc;

    m->in = calloc(1, len);
    m->out = calloc(1, len);
    is_there = m->in && m->out;
    rc = coll_allreduce(&is_there, &is_there, 1, COLL_I32, COLL_MIN, m->comm,
                        NULL);
    return rc ? rc : is_there ? COLL_OK : COLL_ERR_NOMEM;
}

static int measure_all(struct meter *m, struct tune_table *table)
{
    int rc = COLL_OK;

    for (int far = 0; far < 2 && !rc; far++)
        rc = measure_link(m, far, &table->links[far]);
    table->n_rows = list_rows(m, NULL);
    table->rows = calloc((size_t)table->n_rows + 1, sizeof(*table->rows));
    if (!table->rows)
        return COLL_ERR_NOMEM;
    list_rows(m, table->rows);
    for (int i = 0; i < table->n_rows && !rc; i++)
        rc = measure_row(m, &table->rows[i]);
    return rc;
}

int tune_measure(const struct tune_options *options, struct coll_comm *comm,
                 struct tune_table *table)
{
    struct meter m = {.options = options, .comm = comm};
    int rc = get_buffers(&m);

    if (!rc)
        rc = measure_all(&m, table);
    free(m.in);
    free(m.out);
    return rc;
}
