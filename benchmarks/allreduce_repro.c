/* SPDX-License-Identifier: BSD-3-Clause */
/* allreduce_repro.c - the price of an allreduce that gives the same bits for
 * any size, algorithm and placement.
 *
 * One process has two communicators of the same ranks: one chooses freely, the
 * other is reproducible.  They take turns, A B A B, so that a disturbance of
 * the machine disturbs both.  The time of a turn is that of its slowest rank;
 * the medians of the turns are compared.
 */
#include "benchmarks/bench.h"
#include "tools/common/speaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 11 /* of each */
#define PROGRAM "allreduce_repro"

enum { FREE, REPRODUCIBLE, N_SIDES };

struct duel {
    struct bench_args args;
    struct coll_comm *comms[N_SIDES];
    void *in, *out;
    uint64_t errors;
};

/* What one size gave. */
struct result {
    size_t count;
    long iters;
    double seconds[N_SIDES];
    struct coll_plan_info info[N_SIDES];
    uint64_t errors;
};

static const struct bench_mode mode = {
    .name = "repro",
    .first = 8,
    .last = 16 << 20,
    .warmup = 5,
    .min_iters = 2,
    .max_iters = 1000,
    .seconds = 0.02,
    .about = "Both communicators take turns, 11 each; a turn's time is that of "
             "its slowest rank,\nof the turns the median is compared.",
};

static int explain(int rc)
{
    fprintf(stderr, PROGRAM ": %s\n",
            *coll_last_error() ? coll_last_error() : coll_strerror(rc));
    return rc;
}

/* ---- one size ----------------------------------------------------------- */

static int turn(const struct duel *d, const struct bench_case *c, int side,
                long n, double *seconds)
{
    int rc = coll_barrier(d->comms[FREE], NULL);
    double start = bench_clock(CLOCK_MONOTONIC);

    for (long i = 0; i < n && !rc; i++)
        rc = bench_allreduce.run(c, d->in, d->out, d->comms[side]);
    *seconds = (bench_clock(CLOCK_MONOTONIC) - start) / (double)n;
    return rc;
}

/* Warm up both; the slower one decides how many iterations a turn has. */
static int warm_up(const struct duel *d, const struct bench_case *c, long *n)
{
    double each[N_SIDES], most, wanted;
    long warmup = d->args.warmup ? d->args.warmup : 1;
    int rc = COLL_OK;

    for (int side = 0; side < N_SIDES && !rc; side++)
        rc = turn(d, c, side, warmup, &each[side]);
    if (!rc)
        rc = bench_slowest(d->comms[FREE], each, N_SIDES);
    if (rc)
        return rc;
    most = each[FREE] > each[REPRODUCIBLE] ? each[FREE] : each[REPRODUCIBLE];
    wanted = mode.seconds / (most > 1e-9 ? most : 1e-9);
    *n = d->args.iters                     ? d->args.iters
         : wanted < (double)mode.min_iters ? mode.min_iters
         : wanted > (double)mode.max_iters ? mode.max_iters
                                           : (long)wanted;
    return COLL_OK;
}

/* A B A B; the medians. */
static int fight(const struct duel *d, const struct bench_case *c, long n,
                 double seconds[N_SIDES])
{
    double times[N_SIDES][TURNS];
    int rc = COLL_OK;

    for (int t = 0; t < TURNS && !rc; t++)
        for (int side = 0; side < N_SIDES && !rc; side++)
            rc = turn(d, c, side, n, &times[side][t]);
    if (!rc)
        rc = bench_slowest(d->comms[FREE], times[0], N_SIDES * TURNS);
    for (int side = 0; side < N_SIDES && !rc; side++)
        seconds[side] = bench_median(times[side], TURNS);
    return rc;
}

/* Run once more with other content for each side, and compare every element. */
static int check(const struct duel *d, struct bench_case *c, uint64_t *errors)
{
    int rc = COLL_OK;

    for (int side = 0; side < N_SIDES && !rc && d->args.checks; side++) {
        c->salt++;
        bench_allreduce.fill(c, d->in);
        memset(d->out, 0xa5, c->count * coll_type_size(c->type));
        rc = bench_allreduce.run(c, d->in, d->out, d->comms[side]);
        if (!rc)
            *errors += bench_allreduce.verify(c, d->out);
    }
    return rc ? rc
              : coll_allreduce(errors, errors, 1, COLL_U64, COLL_SUM,
                               d->comms[FREE], NULL);
}

static int query(const struct duel *d, const struct bench_case *c,
                 struct coll_plan_info info[N_SIDES])
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = c->type,
                             .op = c->op,
                             .in = d->in,
                             .out = d->out,
                             .count = c->count};
    int rc = COLL_OK;

    for (int side = 0; side < N_SIDES && !rc; side++) {
        info[side].size = sizeof(info[side]);
        rc = coll_plan_query(&args, d->comms[side], &info[side]);
    }
    return rc;
}

static int measure(const struct duel *d, struct result *result)
{
    struct bench_case c = {.type = d->args.type,
                           .op = d->args.op,
                           .rank = coll_comm_rank(d->comms[FREE]),
                           .ranks = coll_comm_size(d->comms[FREE]),
                           .count = result->count,
                           .salt = (unsigned)result->count};
    int rc;

    bench_allreduce.fill(&c, d->in);
    rc = warm_up(d, &c, &result->iters);
    if (!rc)
        rc = fight(d, &c, result->iters, result->seconds);
    if (!rc)
        rc = check(d, &c, &result->errors);
    return rc ? rc : query(d, &c, result->info);
}

/* ---- what is printed ------------------------------------------------------ */

static void fill_row(struct table_row *row, const struct duel *d,
                     const struct result *r)
{
    const struct coll_comm *comm = d->comms[FREE];
    double a = r->seconds[FREE] * 1e6, b = r->seconds[REPRODUCIBLE] * 1e6;
    size_t bytes = r->count * coll_type_size(d->args.type);

    *row = (struct table_row){.n = 0};
    row_text(row, "collective", NULL, 0, "allreduce");
    row_count(row, "ranks", NULL, 0, (unsigned)coll_comm_size(comm));
    row_count(row, "hosts", NULL, 0, (unsigned)coll_comm_n_hosts(comm));
    row_count(row, "bytes", "size[B]", 11, bytes);
    row_count(row, "count", "count", 11, r->count);
    row_text(row, "type", NULL, 0, coll_type_name(d->args.type));
    row_text(row, "op", NULL, 0, coll_op_name(d->args.op));
    row_count(row, "iters", NULL, 0, (unsigned long)r->iters);
    row_real(row, "free_us", "free[us]", 11, 2, a);
    row_real(row, "reproducible_us", "repro[us]", 11, 2, b);
    row_real(row, "ratio", "ratio", 6, 3, a > 0 ? b / a : 0);
    row_text(row, "free_algorithm", "free algorithm", -18,
             r->info[FREE].algorithm);
    row_text(row, "reproducible_algorithm", "repro algorithm", -18,
             r->info[REPRODUCIBLE].algorithm);
    row_count(row, "errors", "errors", 6, r->errors);
}

static void print_start(const struct duel *d)
{
    static const struct result none = {.count = 0};
    struct table_row row;
    const struct coll_comm *comm = d->comms[FREE];
    int ranks = coll_comm_size(comm), hosts = coll_comm_n_hosts(comm);

    fill_row(&row, d, &none);
    if (d->args.form != TABLE_TEXT) {
        table_print_heads(stdout, &row, d->args.form);
        return;
    }
    printf("# " PROGRAM ", libcoll %s: %d rank%s on %d host%s, transports %s\n",
           coll_version(), ranks, ranks == 1 ? "" : "s", hosts,
           hosts == 1 ? "" : "s", coll_comm_transports(comm));
    printf("# type %s, op %s, %d turns each, verification %s\n",
           coll_type_name(d->args.type), coll_op_name(d->args.op), TURNS,
           d->args.checks ? "of every element" : "off");
    table_print_heads(stdout, &row, d->args.form);
}

static void print_result(const struct duel *d, const struct result *r)
{
    struct table_row row;

    fill_row(&row, d, r);
    table_print_row(stdout, &row, d->args.form);
}

/* ---- all ------------------------------------------------------------------- */

static int all_sizes(struct duel *d)
{
    size_t size = coll_type_size(d->args.type), last = 0;
    int rc = COLL_OK;

    if (!coll_comm_rank(d->comms[FREE]))
        print_start(d);
    for (double bytes = (double)d->args.first;
         bytes <= (double)d->args.last && !rc;
         bytes = bytes < 1 ? 1 : bytes * d->args.factor) {
        size_t count = (size_t)bytes / size;
        struct result result = {.count = count ? count : 1};

        if (result.count == last)
            continue;
        last = result.count;
        rc = measure(d, &result);
        if (!rc && !coll_comm_rank(d->comms[FREE]))
            print_result(d, &result);
        d->errors += result.errors;
    }
    return rc;
}

/* The second communicator is created from an id that the first one sends. */
static int join(struct duel *d)
{
    struct coll_config config = {.size = sizeof(config), .reproducible = 1};
    struct coll_comm **comms = d->comms;
    struct coll_unique_id id = {{0}};
    int rc = coll_comm_create_env(&comms[FREE], NULL), rank;

    if (rc)
        return rc;
    rank = coll_comm_rank(comms[FREE]);
    if (!rank)
        rc = coll_get_unique_id(&id);
    if (!rc)
        rc = coll_broadcast(&id, &id, sizeof(id), COLL_U8, 0, comms[FREE],
                            NULL);
    return rc ? rc
              : coll_comm_create(&comms[REPRODUCIBLE],
                                 coll_comm_size(comms[FREE]), &id, rank,
                                 &config);
}

static int leave(struct duel *d, int rc)
{
    for (int side = N_SIDES - 1; side >= 0; side--) {
        int ended = coll_comm_destroy(d->comms[side]);

        rc = rc ? rc : ended;
    }
    free(d->in);
    free(d->out);
    return rc;
}

static int run(struct duel *d)
{
    int rc = join(d), is_bad_setting = rc == COLL_ERR_INVALID;

    if (rc && (!is_bad_setting || speaks_for_job()))
        explain(rc);
    if (!rc)
        rc = bench_get_buffers(d->comms[FREE], &d->args, &d->in, &d->out);
    if (!rc)
        rc = all_sizes(d);
    if (rc && d->comms[REPRODUCIBLE])
        explain(rc);
    if (d->errors && !coll_comm_rank(d->comms[FREE]))
        fprintf(stderr, PROGRAM ": %llu elements were wrong; please report "
                                "this with the output of coll_info\n",
                (unsigned long long)d->errors);
    rc = leave(d, rc);
    return is_bad_setting ? 2 : rc || d->errors;
}

/* Refuse options that make no sense in a comparison. */
static int refuse(const struct bench_args *args)
{
    const char *what = args->algo                     ? "--algo"
                       : args->varies                 ? "--vary-buffers"
                       : strcmp(args->device, "host") ? "--device cuda"
                                                      : NULL;

    if (what && speaks_for_job())
        fprintf(stderr, PROGRAM " has no use for %s; see --help\n", what);
    return what ? 2 : 0;
}

int main(int argc, char **argv)
{
    struct duel d = {.errors = 0};
    int status = bench_args_read(argc, argv, &bench_allreduce, &mode, &d.args);

    if (status != BENCH_GOES_ON)
        return bench_finish(PROGRAM, status);
    status = refuse(&d.args);
    if (!status)
        unsetenv("COLL_REPRODUCIBLE"); /* one of them must be free */
    return bench_finish(PROGRAM, status ? status : run(&d));
}
