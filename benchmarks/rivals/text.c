/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - the table. */
#include "benchmarks/rivals/compare.h"
#include "tools/common/table.h"

#include <math.h>
#include <string.h>

/* The title of each library's column of times, and for libcoll also that of its share
 * of the limit. */
static const struct {
    const char *time, *limit;
} heads[N_FORMS] = {{"libcoll", "limit"}, {"coll-mem", "mem-lim"},
                    {"openmpi", ""},      {"ompi-sm", ""},
                    {"ompi-ucx", ""},     {"mpich", ""},
                    {"gloo", ""},         {"nccl", ""},
                    {"encrypt", "cost"},  {"sockets", ""}};

/* Has it a column? */
static int is_shown(const struct result *r, int f)
{
    return form_is_for(&forms[f], r->args);
}

void text_bytes(size_t bytes, char text[16])
{
    const char *units = "\0KMGT";

    while (bytes >= 1024 && bytes % 1024 == 0 && units[1]) {
        bytes /= 1024;
        units++;
    }
    snprintf(text, 16, "%zu%.1s", bytes, units);
}

/* Print a line such as "2 hosts (3+1 ranks), ...".  The line names the kernel's TCP
 * congestion control, since it matters as much as the link: bbr sometimes sends next to
 * nothing for 0.2 s. */
static void print_hosts(const struct hosts *hosts, const char *control)
{
    printf("# %d hosts", hosts->n);
    for (int h = 0; h < hosts->n && hosts->placed[0]; h++)
        printf("%s%d%s", h ? "+" : " (", hosts->placed[h],
               h == hosts->n - 1 ? " ranks)" : "");
    printf(", network namespaces of this one; each one's link %s, TCP by %s\n",
           hosts->rate ? hosts->rate : "as fast as it goes", control);
}

void text_head(const struct result *r)
{
    const struct machine *m = &r->machine;

    printf("# compare: %s, %d core%s, %s, %s, huge pages %s, %s\n", m->cpu,
           m->cores, m->cores == 1 ? "" : "s", m->memory, m->kernel, m->pages,
           m->date);
    for (int f = 0; f < N_FORMS; f++)
        if (r->args->has_form[f] && r->places[f].why[0])
            printf("# %s is absent: %s\n", forms[f].name, r->places[f].why);
    if (r->args->hosts.n)
        print_hosts(&r->args->hosts, m->control);
    printf("# times in us: the median over rounds of each round's median, for "
           "one operation\n");
}

/* ---- limits --------------------------------------------------------------- */

static void print_gpu_limits(const struct result *r)
{
    const struct limits *limits = &r->limits;

    printf("# limits of %s, %d GPU%s: a copy of 8 bytes %.2f us\n", r->gpu,
           limits->n_gpus, limits->n_gpus == 1 ? "" : "s",
           limits->gpu_small * 1e6);
    printf("# GB/s read and written by cuMemcpyAsync, inside of a GPU\n");
    for (int a = 0; a < limits->n_areas; a++) {
        struct table_row row = {.n = 0};
        char bytes[16];

        text_bytes(limits->areas[a].bytes, bytes);
        row_text(&row, NULL, "bytes", 22, bytes);
        row_real(&row, NULL, "copy", 8, 1, limits->areas[a].copy[1][0] * 1e-9);
        table_print_row(stdout, &row, TABLE_REMARK);
    }
}

/* The row borrows `bytes`. */
static void fill_area(struct table_row *row, const struct area *area,
                      char bytes[16])
{
    static const char *const copy[] = {"copy/1", "copy/all"};
    static const char *const sum[] = {"sum/1", "sum/all"};
    static const char *const past[] = {"nt/1", "nt/all"};

    text_bytes(area->bytes, bytes);
    *row = (struct table_row){.n = 0};
    row_text(row, NULL, "GB/s read and written:", 22, bytes);
    for (int all = 0; all < 2; all++) {
        row_real(row, NULL, copy[all], 8, 1, area->copy[all][0] * 1e-9);
        row_real(row, NULL, past[all], 8, 1, area->copy[all][1] * 1e-9);
        row_real(row, NULL, sum[all], 8, 1, area->sum[all][0] * 1e-9);
        row_real(row, NULL, past[all], 8, 1, area->sum[all][1] * 1e-9);
    }
}

static void print_host_limits(const struct limits *limits)
{
    static const struct area none;
    struct table_row row;
    char bytes[16];

    printf("# limits: flag exchange %.0f ns, round trip %.0f ns, yield round "
           "trip %.0f ns\n",
           limits->exchange * 1e9, limits->round_trip * 1e9,
           limits->yield * 1e9);
    fill_area(&row, &none, bytes);
    table_print_heads(stdout, &row, TABLE_REMARK);
    for (int a = 0; a < limits->n_areas; a++) {
        fill_area(&row, &limits->areas[a], bytes);
        table_print_row(stdout, &row, TABLE_REMARK);
    }
}

/* ---- cells ---------------------------------------------------------------- */

static void add_outcome(struct table_row *row, const char *head,
                        const struct outcome *o)
{
    static const char *const words[] = {[NO_JOB] = "n/a",
                                        [NO_OPERATION] = "n/a",
                                        [FAILED] = "failed",
                                        [TOO_SLOW] = "too slow",
                                        [MEASURED] = "WRONG"};

    if (o->status == MEASURED && !o->wrong)
        row_real(row, NULL, head, 8, o->median < 1e-3 ? 2 : 0, o->median * 1e6);
    else
        row_text(row, NULL, head, 8, words[o->status]);
}

/* Add libcoll's share of the limit, or how many times slower it is if it encrypts. */
static void add_share(struct table_row *row, const struct cell *cell, int f)
{
    double seconds = cell->outcomes[f].median;

    if (!(seconds > 0))
        row_text(row, NULL, heads[f].limit, 7, "n/a");
    else if (forms[f].variable)
        row_real(row, NULL, heads[f].limit, 7, 2,
                 seconds / cell->outcomes[0].median);
    else
        row_share(row, heads[f].limit, 7, 0, cell->limit / seconds);
}

static void add_verdict(struct table_row *row, const struct cell *cell)
{
    row_text(row, NULL, "best rival", -11,
             cell->best ? forms[cell->best].name : "none");
    if (cell->ratio > 0)
        row_real(row, NULL, "ratio", 7, 2, cell->ratio);
    else
        row_text(row, NULL, "ratio", 7, "n/a");
    if (cell->outcomes[0].n_rounds > 1)
        row_share(row, "spread", 7, 0, cell->spread);
    else
        row_text(row, NULL, "spread", 7, "-"); /* one round has no spread */
}

/* The row borrows `bytes`. */
static void fill_row(struct table_row *row, const struct result *r,
                     const struct cell *cell, char bytes[16])
{
    double p99 = cell->outcomes[0].p99;

    text_bytes(cell->bytes, bytes);
    *row = (struct table_row){.n = 0};
    row_count(row, NULL, "ranks", 5, (unsigned)cell->ranks);
    row_text(row, NULL, "collective", -14, op_names[cell->op]);
    row_text(row, NULL, "bytes", 6, cell->op == PEER_BARRIER ? "-" : bytes);
    for (int f = 0; f < N_FORMS; f++)
        if (is_shown(r, f))
            add_outcome(row, heads[f].time, &cell->outcomes[f]);
    add_verdict(row, cell);
    for (int f = 0; f < N_FORMS; f++)
        if (forms[f].is_own && is_shown(r, f))
            add_share(row, cell, f);
    if (p99 > 0)
        row_real(row, NULL, "p99[us]", 9, 1, p99 * 1e6);
}

static void print_columns(const struct result *r)
{
    static const struct cell none = {.outcomes = {{.p99 = 1}}};
    struct table_row row;
    char bytes[16];

    fill_row(&row, r, &none, bytes);
    putchar('\n');
    table_print_heads(stdout, &row, TABLE_PLAIN);
}

void text_limits(const struct result *r)
{
    if (r->limits.n_gpus)
        print_gpu_limits(r);
    else if (!r->args->hosts.n)
        print_host_limits(&r->limits);
    print_columns(r);
}

void text_cell(const struct result *r, const struct cell *cell)
{
    struct table_row row;
    char bytes[16];

    fill_row(&row, r, cell, bytes);
    table_print_row(stdout, &row, TABLE_PLAIN);
}

/* ---- the end -------------------------------------------------------------- */

static void print_below(const struct result *r, double gate)
{
    int n = 0;

    for (int i = 0; i < r->n_cells; i++) {
        const struct cell *cell = &r->cells[i];
        char bytes[16];

        if (!(cell->ratio > 0) || cell->ratio >= gate)
            continue;
        if (!n++)
            printf("\n# below %g:\n", gate);
        text_bytes(cell->bytes, bytes);
        printf("#   %d ranks, %s, %s: %.2f by %s\n", cell->ranks,
               op_names[cell->op], bytes, cell->ratio, forms[cell->best].name);
    }
}

struct score text_score(const struct result *r)
{
    struct score score = {.mean = 0};

    for (int i = 0; i < r->n_cells; i++)
        if (r->cells[i].ratio > 0) {
            score.mean += log(r->cells[i].ratio);
            score.wins += r->cells[i].ratio >= 1;
            score.n++;
        }
    score.mean = score.n ? exp(score.mean / score.n) : 0;
    return score;
}

void text_end(const struct result *r)
{
    struct score score = text_score(r);

    print_below(r, r->args->gate > 0 ? r->args->gate : 1);
    putchar('\n');
    for (int f = 0; f < N_FORMS; f++)
        if (r->versions[f][0])
            printf("# %s: %s\n", forms[f].title, r->versions[f]);
    for (int f = 0; f < N_FORMS; f++)
        if (r->troubles[f][0])
            printf("# %s: %s\n", forms[f].name, r->troubles[f]);
    if (score.n)
        printf("# libcoll wins %d of %d cells; geometric mean of best rival / "
               "libcoll %.3f; %.0f s\n",
               score.wins, score.n, score.mean, r->seconds);
    else
        printf("# no rival to compare with; %.0f s\n", r->seconds);
}
