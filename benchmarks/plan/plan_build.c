/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_build.c - how long it takes to build one rank's plan, and its memory.
 *
 * No rank needs the others to build its plan, so one process can measure what a rank of
 * a job of any size would see.  Each row builds the plans of several ranks (the first,
 * the last and others between them), each once untimed and once timed.  Building a plan
 * means the algorithm's own steps, fusing, splitting and linking.  The machine has
 * hosts of 8 ranks.  Sizes are those of the whole vector; of an allgather, those of the
 * result.
 */
#include "lib/algo/algo.h"
#include "lib/util/util.h"
#include "tools/common/program.h"
#include "tools/common/table.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_HOST 8
#define MAX_SHAPES 32      /* numbers of ranks in -r */
#define MAX_SAMPLES 1000   /* plans in a row */
#define MOST_STEPS 4000000 /* longer plans only say so */

struct options {
    int ranks[MAX_SHAPES], n_ranks;
    const char *collective, *algo; /* NULL: all */
    size_t bytes, chunk;
    int n_samples, is_json;
};

/* The problem of one job for any rank, and what it points to. */
struct shape {
    struct coll__problem pb;
    struct coll__view view;
    size_t *counts, *displs;
};

struct row {
    int steps;                 /* of the longest plan */
    double median, max;        /* s */
    double bytes_a_step, most; /* memory of plans; steps before any pass if
                                * they are too many */
};

__attribute__((format(printf, 1, 2))) static int bad(const char *format, ...)
{
    va_list list;

    fputs("plan_build: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return 2;
}

/* ---- one shape ----------------------------------------------------------- */

/* Return 1 if each rank has one part of the whole vector. */
static int has_parts(const struct coll__problem *pb)
{
    struct coll__problem root = *pb;

    root.rank = root.root;
    return coll__problem_shape(&root, BUF_IN) == SHAPE_PARTS ||
           coll__problem_shape(&root, BUF_OUT) == SHAPE_PARTS;
}

static void set_count(struct shape *s, size_t bytes)
{
    struct coll__problem *pb = &s->pb;
    size_t count = bytes / coll_type_size(pb->type), p = (size_t)pb->nranks;

    pb->count = has_parts(pb) ? max_size(count / p, 1) : count;
    for (size_t r = 0; r < p; r++) {
        s->counts[r] = pb->count;
        s->displs[r] = r * pb->count;
    }
    pb->in_counts = pb->out_counts = NULL;
    switch (pb->collective) {
    case COLL_ALLTOALLV:
        pb->in_counts = pb->out_counts = s->counts;
        break;
    case COLL_ALLGATHERV:
    case COLL_GATHERV:
        pb->out_counts = s->counts;
        break;
    case COLL_REDUCE_SCATTERV:
    case COLL_SCATTERV:
        pb->in_counts = s->counts;
        break;
    case COLL_BARRIER:
        pb->count = 0;
        break;
    default:
        break;
    }
    pb->in_displs = pb->in_counts ? s->displs : NULL;
    pb->out_displs = pb->out_counts ? s->displs : NULL;
}

static int shape_init(struct shape *s, int nranks)
{
    size_t n = (size_t)nranks;
    int *hosts = malloc(n * sizeof(int));
    int rc = COLL_ERR_NOMEM;

    *s = (struct shape){.pb = {.type = COLL_F32,
                               .op = COLL_SUM,
                               .nranks = nranks,
                               .view = &s->view}};
    s->counts = malloc(n * sizeof(size_t));
    s->displs = malloc(n * sizeof(size_t));
    for (int r = 0; r < nranks && hosts; r++)
        hosts[r] = r / PER_HOST;
    if (hosts && s->counts && s->displs)
        rc = coll__view_init(&s->view, nranks, nranks > PER_HOST ? 2 : 1,
                             (const int *const[]){hosts});
    free(hosts);
    return rc;
}

static void shape_fini(struct shape *s)
{
    coll__view_fini(&s->view);
    free(s->counts);
    free(s->displs);
}

/* ---- one algorithm -------------------------------------------------------- */

static double plan_bytes(const struct coll__plan *plan)
{
    double n = plan->n_steps;

    return plan->cap_steps * (double)sizeof(*plan->steps) +
           (2 * n + 3 + plan->first_after[plan->n_steps]) * sizeof(int);
}

/* Estimate how many steps the split pass would make of the algorithm's steps. */
static double guess_steps(const struct coll__algo *algo,
                          const struct coll__problem *pb, size_t chunk)
{
    struct coll__plan plan = {0};
    double n = algo->build(pb, &plan) ? 1e30 : 0;

    for (int i = 0; i < plan.n_steps; i++) {
        size_t len = max_size(plan.steps[i].src.len, plan.steps[i].dst.len);

        n += 1 + (chunk ? (double)min_size(len / chunk, 256) : 0);
    }
    coll__plan_fini(&plan);
    return n;
}

static int build(const struct coll__algo *algo, const struct coll__problem *pb,
                 size_t chunk, double *seconds, struct row *row)
{
    struct coll__plan plan;
    double start = coll__now();
    int rc = coll__plan_build(algo, pb, chunk, &plan);

    *seconds = coll__now() - start;
    if (rc)
        return rc;
    if (plan.n_steps > row->steps) {
        row->steps = plan.n_steps;
        row->bytes_a_step = plan_bytes(&plan) / plan.n_steps;
    }
    coll__plan_fini(&plan);
    return COLL_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int measure(const struct coll__algo *algo, struct coll__problem *pb,
                   const struct options *o, struct row *row)
{
    double seconds[MAX_SAMPLES];
    int n = o->n_samples < pb->nranks ? o->n_samples : pb->nranks, rc;

    *row = (struct row){0};
    pb->rank = 0;
    row->most = guess_steps(algo, pb, o->chunk);
    if (row->most > MOST_STEPS)
        return COLL_OK;
    rc = build(algo, pb, o->chunk, &seconds[0], row);
    for (int i = 0; i < n && !rc; i++) {
        pb->rank = n > 1 ? (int)((long)i * (pb->nranks - 1) / (n - 1)) : 0;
        rc = build(algo, pb, o->chunk, &seconds[i], row);
    }
    if (rc)
        return rc;
    qsort(seconds, (size_t)n, sizeof(double), by_value);
    row->median = seconds[n / 2];
    row->max = seconds[n - 1];
    return COLL_OK;
}

/* ---- what is printed ------------------------------------------------------ */

static enum table_form form_of(const struct options *o)
{
    return o->is_json ? TABLE_JSON : TABLE_TEXT;
}

/* A plan that is too long has no times. */
static void fill_row(struct table_row *out, const struct coll__problem *pb,
                     const char *algo, const struct row *row)
{
    *out = (struct table_row){.n = 0};
    row_count(out, "ranks", "ranks", 7, (unsigned)pb->nranks);
    row_text(out, "collective", "collective", -15,
             coll_collective_name(pb->collective));
    row_text(out, "algorithm", "algorithm", -22, algo);
    if (row->most > MOST_STEPS) {
        row_real(out, "too_long", NULL, 0, 0, row->most);
        row_text(out, NULL, "steps", -9, "too many steps: not built");
        return;
    }
    row_count(out, "steps", "steps", 9, (unsigned)row->steps);
    row_real(out, "median_ms", "median[ms]", 10, 4, row->median * 1e3);
    row_real(out, "max_ms", "max[ms]", 10, 4, row->max * 1e3);
    row_real(out, "bytes_per_step", "B/step", 8, 1, row->bytes_a_step);
}

static void print_start(const struct options *o)
{
    static const struct coll__problem no_problem;
    static const struct row no_row;
    struct table_row heads;

    if (!o->is_json)
        printf("# plan_build, libcoll %s: %zu bytes of f32, chunk %zu, hosts "
               "of %d ranks, plans of %d ranks a row\n",
               coll_version(), o->bytes, o->chunk, PER_HOST, o->n_samples);
    fill_row(&heads, &no_problem, "", &no_row);
    table_print_heads(stdout, &heads, form_of(o));
}

static void print_row(const struct options *o, const struct coll__problem *pb,
                      const char *algo, const struct row *row)
{
    struct table_row out;

    fill_row(&out, pb, algo, row);
    table_print_row(stdout, &out, form_of(o));
}

/* ---- all ------------------------------------------------------------------ */

static int is_wanted(const struct options *o, const struct coll__algo *algo,
                     const struct coll__problem *pb)
{
    return (!o->algo || !strcmp(o->algo, algo->name)) &&
           (!o->collective ||
            !strcmp(o->collective, coll_collective_name(pb->collective))) &&
           !coll__algo_refuses(algo, pb);
}

/* Measure all rows of one number of ranks. */
static int run_shape(const struct options *o, int nranks, int *n_rows)
{
    struct shape s;
    struct row row;
    int rc = shape_init(&s, nranks);

    for (int k = 0; k < COLL_N_COLLECTIVES && !rc; k++) {
        s.pb.collective = (enum coll_collective)k;
        s.pb.root = k == COLL_SEND || k == COLL_RECV ? nranks - 1 : 0;
        set_count(&s, o->bytes);
        for (int a = 0; coll__algos[a] && !rc; a++) {
            s.pb.rank = 0;
            if (!is_wanted(o, coll__algos[a], &s.pb))
                continue;
            rc = measure(coll__algos[a], &s.pb, o, &row);
            if (!rc)
                print_row(o, &s.pb, coll__algos[a]->name, &row);
            ++*n_rows;
        }
    }
    shape_fini(&s);
    return rc;
}

static int run(const struct options *o)
{
    int n_rows = 0;

    print_start(o);
    for (int i = 0; i < o->n_ranks; i++) {
        int rc = run_shape(o, o->ranks[i], &n_rows);

        if (rc) {
            bad("%s; lower -r or -b", coll_strerror(rc));
            return 1;
        }
    }
    return n_rows ? 0
                  : bad("no algorithm %s of %s serves these ranks; coll_plan "
                        "--explain lists those that there are",
                        o->algo ? o->algo : "at all",
                        o->collective ? o->collective : "any collective");
}

/* ---- command line --------------------------------------------------------- */

/* "64,1024" */
static int take_ranks(const struct program *p, const char *text, void *into)
{
    struct options *o = into;
    char *end = NULL;

    for (o->n_ranks = 0; o->n_ranks < MAX_SHAPES; text = end + 1) {
        long n = strtol(text, &end, 10);

        if (end == text || n < 1 || n > 1 << 20)
            return program_refuse(p, "'%s' is no number of ranks; it must be 1 "
                                     "to %d",
                                  text, 1 << 20);
        o->ranks[o->n_ranks++] = (int)n;
        if (!*end)
            return 0;
        if (*end != ',')
            return program_refuse(p, "'%s' is no list of ranks; write 64,1024",
                                  text);
    }
    return program_refuse(p, "more than %d numbers of ranks; start plan_build "
                             "twice",
                          MAX_SHAPES);
}

static int take_collective(const struct program *p, const char *text,
                           void *into)
{
    ((struct options *)into)->collective = text;
    for (int k = 0; k < COLL_N_COLLECTIVES; k++)
        if (!strcmp(text, coll_collective_name((enum coll_collective)k)))
            return 0;
    return program_refuse(p, "there is no collective '%s'; allreduce is one",
                          text);
}

#define AT(field) offsetof(struct options, field)

static const struct program_option options[] = {
    {"ranks", 'r', OPTION_CALL, 0, "N[,N]...", "64,256,1024,4096,16384,65536",
     .help = "numbers of ranks of the jobs", .take = take_ranks},
    {"collective", 'c', OPTION_CALL, 0, "NAME", NULL,
     .help = "only this one (default: all)", .take = take_collective},
    {"algo", 'a', OPTION_TEXT, AT(algo), "NAME", NULL,
     .help = "only this algorithm (default: all)"},
    {"bytes", 'b', OPTION_SIZE, AT(bytes), "SIZE", "64M",
     .help = "size of the whole vector"},
    {"chunk", 'k', OPTION_SIZE, AT(chunk), "SIZE", "128K",
     .help = "size of the pipeline's chunks; 0: messages stay whole"},
    {"samples", 'n', OPTION_INT, AT(n_samples), "N", "7",
     .help = "number of ranks whose plans are built", .least = 1,
     .most = MAX_SAMPLES},
    {"json", 0, OPTION_SWITCH, AT(is_json), NULL, NULL,
     .help = "print one JSON object for each row"},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "plan_build",
        .usage = "[OPTION]...",
        .about = "Measure how long it takes to build one rank's plan, and how "
                 "much memory it takes.",
        .options = options,
    };
    struct options o = {.n_ranks = 0};
    int status;

    program_defaults(&program, &o);
    if (program_read(&program, argc, argv, &o, &status) < 0)
        return status;
    return program_finish(&program, run(&o));
}
