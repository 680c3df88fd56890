/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune_measure.c - the time of each algorithm for each problem.
 *
 * The candidates of a problem take turns: in each round each candidate runs some
 * iterations, so that a disturbance of the machine hits all of them.  A turn's time
 * is that of its slowest rank; the result is the median over the rounds.  If ranks may
 * run ahead of each other, a barrier ends each iteration; barriers alone take a turn
 * too, and their time is subtracted.  While the result is noise (coll_tune_judge.c),
 * as many rounds are added again, up to MOST_TIMES the number asked for.
 *
 * A rank that waits for a message polls, so it uses all of its core.  A rank that gets
 * less than LEAST_CPU of a core shares it with another program.  Then the times measure
 * the other program's time slices, even if they agree with each other.
 */
#include "tools/coll_tune.h"
#include "tools/common/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TYPE COLL_F32
#define SMALL 8
#define LARGE (4 << 20)
#define PINGS 200
#define LARGE_PINGS 20
#define MOST_TIMES 8
#define LEAST_CPU 0.6

struct meter {
    const struct tune_options *options;
    struct coll_comm *comm;
    void *in, *out;
    size_t in_len, out_len;
    int has_cores;    /* every rank has a core, and polls */
    double wall, cpu; /* s, in the problem's turns so far */
};

static double read_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double now(void) { return read_clock(CLOCK_MONOTONIC); }

/* Return the largest over the ranks. */
static int slowest(const struct meter *m, double *times, size_t n)
{
    return coll_allreduce(times, times, n, COLL_F64, COLL_MAX, m->comm, NULL);
}

/* ---- cores ------------------------------------------------------------------ */

/* Has every rank a core, and does it poll for messages? */
static int count_cores(struct meter *m)
{
    const char *wait = getenv("COLL_WAIT");
    int p = coll_comm_size(m->comm), n_here = 0, rc;
    int32_t mine = coll_comm_host(m->comm), has_core;
    int32_t *hosts = malloc((size_t)p * sizeof(*hosts));

    if (hosts) {
        for (int r = 0; r < p; r++)
            hosts[r] = 0;
        rc = coll_allgather(&mine, hosts, 1, COLL_I32, m->comm, NULL);
    } else {
        rc = COLL_ERR_NOMEM;
    }
    for (int r = 0; r < p && !rc; r++)
        n_here += hosts[r] == mine;
    free(hosts);
    has_core = cores_count() >= n_here;
    if (wait && !strcmp(wait, "block"))
        has_core = 0;
    if (!rc)
        rc = coll_allreduce(&has_core, &has_core, 1, COLL_I32, COLL_MIN,
                            m->comm, NULL);
    m->has_cores = has_core;
    return rc;
}

/* Did no rank share its core in the turns so far? */
static int share_cores(const struct meter *m, int *is_shared)
{
    double part = m->wall > 0 ? m->cpu / m->wall : 1;
    int rc = coll_allreduce(&part, &part, 1, COLL_F64, COLL_MIN, m->comm, NULL);

    *is_shared = m->has_cores && part < LEAST_CPU;
    return rc;
}

/* ---- links ------------------------------------------------------------------ */

/* Send a message there and back n times, from rank 0; *spread: of half a round trip. */
static int ping(const struct meter *m, int peer, size_t len, int n,
                struct tune_spread *spread)
{
    double times[PINGS];
    int rc = COLL_OK, is_first = coll_comm_rank(m->comm) == 0;

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
    *spread = tune_spread_of(times, n);
    return rc;
}

/* Find the first other rank on rank 0's host, or on another host; or -1. */
static int find_peer(const struct meter *m, int is_far, int *peer)
{
    int rank = coll_comm_rank(m->comm), is_host0 = !coll_comm_host(m->comm);
    int32_t mine = rank && is_host0 == !is_far ? rank : INT32_MAX, least;
    int rc = coll_allreduce(&mine, &least, 1, COLL_I32, COLL_MIN, m->comm,
                            NULL);

    *peer = least == INT32_MAX ? -1 : least;
    return rc;
}

/* Compute the price of a link from its short and long messages. */
static void judge_link(const struct tune_spread spread[2], double tolerance,
                       struct tune_link *link)
{
    double more = spread[1].median - spread[0].median;

    link->alpha = spread[0].median;
    link->beta = more / LARGE;
    link->is_noise = spread[0].error > tolerance * spread[0].median ||
                     spread[1].error > tolerance * spread[1].median ||
                     more <= spread[0].error + spread[1].error;
}

static int measure_link(const struct meter *m, int is_far,
                        struct tune_link *link)
{
    struct tune_spread spread[2] = {{0, 0}, {0, 0}}; /* small, large */
    int rank = coll_comm_rank(m->comm), peer, rc = find_peer(m, is_far, &peer);

    link->is_there = peer >= 0;
    link->is_noise = 1;
    for (int i = 0; i < MOST_TIMES && !rc && peer >= 0 && link->is_noise; i++) {
        int other = rank ? 0 : peer;

        if (!rank || rank == peer)
            rc = ping(m, other, SMALL, PINGS, &spread[0]);
        if (!rc && (!rank || rank == peer))
            rc = ping(m, other, LARGE, LARGE_PINGS, &spread[1]);
        if (!rc)
            rc = coll_broadcast(spread, spread, 4, COLL_F64, 0, m->comm, NULL);
        judge_link(spread, m->options->tolerance, link);
    }
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
           collective == COLL_GATHER || collective == COLL_SCATTER ||
           collective == COLL_SCAN || collective == COLL_EXSCAN;
}

/* The times of a problem's turns so far. */
struct rounds {
    double *times, *fresh; /* [turn * stride + round]; new ones */
    int n, stride;
    long iterations[TUNE_MOST + 1];
};

/* Run one turn; without a request it has only barriers. */
static int run_turn(struct meter *m, struct coll_request *request, int is_ahead,
                    long n, double *seconds)
{
    double start, cpu;
    int rc = coll_barrier(m->comm, NULL);

    cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    start = now();
    for (long i = 0; i < n && !rc; i++) {
        if (request)
            rc = coll_start(request);
        if (!rc && request)
            rc = coll_wait(request, 0);
        if (!rc && is_ahead)
            rc = coll_barrier(m->comm, NULL);
    }
    *seconds = now() - start;
    m->wall += *seconds;
    m->cpu += read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    *seconds /= (double)n;
    return rc;
}

/* Find how many iterations fill a turn: the same number on every rank. */
static int fit_turn(struct meter *m, struct coll_request *request, int is_ahead,
                    long *n)
{
    double each = 0, wanted;
    int rc = run_turn(m, request, is_ahead, 2, &each);

    if (!rc)
        rc = slowest(m, &each, 1);
    wanted = m->options->seconds / (each > 1e-9 ? each : 1e-9);
    *n = wanted < 1 ? 1 : wanted > 1000 ? 1000 : (long)wanted;
    return rc;
}

/* Measure all candidates in turn, in the rounds from first to end - 1; then the barrier,
 * if ranks may run ahead. */
static int run_rounds(struct meter *m, const struct tune_row *row,
                      struct coll_request **requests, struct rounds *all,
                      int end)
{
    int n_turns = row->n + row->runs_ahead, rc = COLL_OK;
    int n_new = end - all->n;
    double *fresh = all->fresh;

    for (int i = 0; i < n_new && !rc; i++)
        for (int c = 0; c < n_turns && !rc; c++)
            rc = run_turn(m, requests[c], row->runs_ahead, all->iterations[c],
                          &fresh[c * n_new + i]);
    if (!rc)
        rc = slowest(m, fresh, (size_t)(n_turns * n_new));
    for (int c = 0; c < n_turns && !rc; c++)
        memcpy(&all->times[c * all->stride + all->n], &fresh[c * n_new],
               (size_t)n_new * sizeof(*fresh));
    all->n = rc ? all->n : end;
    return rc;
}

/* Measure until the result is clear.  All ranks see the same times, so they agree. */
static int run_until_known(struct meter *m, struct tune_row *row,
                           struct coll_request **requests, struct rounds *all)
{
    int n_turns = row->n + row->runs_ahead, end = m->options->rounds;
    int rc = COLL_OK, is_shared = 0;

    requests[row->n] = NULL;
    m->wall = m->cpu = 0;
    for (int c = 0; c < n_turns && !rc; c++)
        rc = fit_turn(m, requests[c], row->runs_ahead, &all->iterations[c]);
    row->is_noise = 1;
    while (!rc && row->is_noise && end <= all->stride) {
        rc = run_rounds(m, row, requests, all, end);
        if (!rc)
            rc = share_cores(m, &is_shared);
        if (!rc)
            tune_judge(row, all->times, all->n, all->stride,
                       m->options->tolerance);
        row->is_noise |= is_shared;
        end *= 2;
    }
    return rc;
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

/* Query the candidates and make a request for each. */
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

static int measure_row(struct meter *m, struct tune_row *row)
{
    struct coll_request *requests[TUNE_MOST + 1];
    struct rounds all = {.stride = m->options->rounds * MOST_TIMES};
    size_t n = (size_t)((TUNE_MOST + 1) * all.stride);
    int rc;

    all.times = calloc(2 * n, sizeof(*all.times));
    all.fresh = all.times + n;
    rc = all.times ? make_requests(m, row, requests) : COLL_ERR_NOMEM;
    row->runs_ahead = runs_ahead(row->collective);
    if (!rc && row->n)
        rc = run_until_known(m, row, requests, &all);
    for (int c = 0; c < row->n; c++) /* after an error the last may still run */
        coll_request_destroy(requests[c]);
    free(all.times);
    return rc;
}

/* ---- all ---------------------------------------------------------------------- */

/* Return bytes of the call's count, if the whole vector has `bytes`. */
static size_t part_bytes(const struct meter *m, enum coll_collective collective,
                         double bytes)
{
    size_t size = coll_type_size(TYPE);
    double parts = tune_has_parts(collective) ? coll_comm_size(m->comm) : 1;

    return collective == COLL_BARRIER ? 0
                                      : (size_t)(bytes / parts) / size * size;
}

/* List the problems that the options ask for, in order; returns their number. */
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

/* Allocate buffers for the whole vector; if a rank cannot, all ranks stop. */
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
        rc = count_cores(&m);
    if (!rc)
        rc = measure_all(&m, table);
    free(m.in);
    free(m.out);
    return rc;
}
