/* SPDX-License-Identifier: BSD-3-Clause */
/* text.c - the table. */
#include "benchmarks/rivals/compare.h"

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

static void print_columns(const struct result *r)
{
    printf("\n%5s %-14s %6s", "ranks", "collective", "bytes");
    for (int f = 0; f < N_FORMS; f++)
        if (is_shown(r, f))
            printf(" %8s", heads[f].time);
    printf("  %-11s %7s %7s", "best rival", "ratio", "spread");
    for (int f = 0; f < N_FORMS; f++)
        if (forms[f].is_own && is_shown(r, f))
            printf(" %7s", heads[f].limit);
    printf(" %9s\n", "p99[us]");
}

static void print_gpu_limits(const struct result *r)
{
    const struct limits *limits = &r->limits;

    printf("# limits of %s, %d GPU%s: a copy of 8 bytes %.2f us\n", r->gpu,
           limits->n_gpus, limits->n_gpus == 1 ? "" : "s",
           limits->gpu_small * 1e6);
    printf("# GB/s read and written by cuMemcpyAsync, inside of a GPU\n");
    for (int a = 0; a < limits->n_areas; a++) {
        char bytes[16];

        text_bytes(limits->areas[a].bytes, bytes);
        printf("# %22s %8.1f\n", bytes, limits->areas[a].copy[1][0] * 1e-9);
    }
}

static void print_host_limits(const struct limits *limits)
{
    printf("# limits: flag exchange %.0f ns, round trip %.0f ns, yield round "
           "trip %.0f ns\n",
           limits->exchange * 1e9, limits->round_trip * 1e9,
           limits->yield * 1e9);
    printf("# GB/s read and written: %8s %8s %8s %8s %8s %8s %8s %8s\n",
           "copy/1", "nt/1", "sum/1", "nt/1", "copy/all", "nt/all", "sum/all",
           "nt/all");
    for (int a = 0; a < limits->n_areas; a++) {
        const struct area *area = &limits->areas[a];
        char bytes[16];

        text_bytes(area->bytes, bytes);
        printf("# %22s", bytes);
        for (int all = 0; all < 2; all++)
            printf(" %8.1f %8.1f %8.1f %8.1f", area->copy[all][0] * 1e-9,
                   area->copy[all][1] * 1e-9, area->sum[all][0] * 1e-9,
                   area->sum[all][1] * 1e-9);
        putchar('\n');
    }
}

void text_limits(const struct result *r)
{
    if (r->limits.n_gpus)
        print_gpu_limits(r);
    else if (!r->args->hosts.n)
        print_host_limits(&r->limits);
    print_columns(r);
    fflush(stdout);
}

static void print_outcome(const struct outcome *o)
{
    char text[32];

    if (o->status != MEASURED)
        snprintf(text, sizeof(text), "%s",
                 o->status == FAILED     ? "failed"
                 : o->status == TOO_SLOW ? "too slow"
                                         : "n/a");
    else if (o->wrong)
        snprintf(text, sizeof(text), "WRONG");
    else
        snprintf(text, sizeof(text), o->median < 1e-3 ? "%.2f" : "%.0f",
                 o->median * 1e6);
    printf(" %8s", text);
}

static void print_shares(const struct result *r, const struct cell *cell)
{
    for (int f = 0; f < N_FORMS; f++) {
        double seconds = cell->outcomes[f].median;

        if (!is_shown(r, f))
            continue;
        if (forms[f].variable && seconds > 0)
            printf(" %7.2f", seconds / cell->outcomes[0].median);
        else if (forms[f].is_own && seconds > 0)
            printf(" %6.0f%%", cell->limit / seconds * 100);
        else if (forms[f].is_own)
            printf(" %7s", "n/a");
    }
}

void text_cell(const struct result *r, const struct cell *cell)
{
    const struct outcome *ours = &cell->outcomes[0];
    char bytes[16];

    text_bytes(cell->bytes, bytes);
    printf("%5d %-14s %6s", cell->ranks, op_names[cell->op],
           cell->op == PEER_BARRIER ? "-" : bytes);
    for (int f = 0; f < N_FORMS; f++)
        if (is_shown(r, f))
            print_outcome(&cell->outcomes[f]);
    printf("  %-11s", cell->best ? forms[cell->best].name : "none");
    if (cell->ratio > 0)
        printf(" %7.2f", cell->ratio);
    else
        printf(" %7s", "n/a");
    if (ours->n_rounds > 1)
        printf(" %6.0f%%", cell->spread * 100);
    else
        printf(" %7s", "-"); /* one round has no spread */
    print_shares(r, cell);
    if (ours->p99 > 0)
        printf(" %9.1f", ours->p99 * 1e6);
    putchar('\n');
    fflush(stdout);
}

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
