/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune.c - measure the algorithms on this machine or allocation, show the
 * times beside the predicted ones, and write the file for COLL_TUNE_FILE.
 *
 * Uses the public API only.  All ranks measure; rank 0 speaks and writes.
 */
#include "tools/coll_tune.h"
#include "tools/common/size.h"
#include "tools/common/speaks.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STANDARD                                                              \
    (1u << COLL_ALLREDUCE | 1u << COLL_BROADCAST | 1u << COLL_REDUCE |        \
     1u << COLL_ALLGATHER | 1u << COLL_REDUCE_SCATTER | 1u << COLL_ALLTOALL | \
     1u << COLL_GATHER | 1u << COLL_SCATTER | 1u << COLL_BARRIER)

__attribute__((format(printf, 1, 2))) static int bad(const char *format, ...)
{
    va_list list;

    if (!speaks_for_job())
        return 2;
    fputs("coll_tune: ", stderr);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    return 2;
}

/* A failed operation is explained by the library. */
static int explain(int rc)
{
    fprintf(stderr, "coll_tune: %s\n",
            *coll_last_error() ? coll_last_error() : coll_strerror(rc));
    return 1;
}

/* ---- what is shown ------------------------------------------------------------ */

/* A time that is known, or a dash: never a number that says nothing. */
static const char *measured_text(const struct tune_candidate *candidate,
                                 char text[2][24])
{
    if (candidate->measured <= candidate->error) {
        strcpy(text[0], "-");
        strcpy(text[1], "-");
        return text[0];
    }
    snprintf(text[0], 24, "%.2f", candidate->measured * 1e6);
    snprintf(text[1], 24, "%.2f",
             candidate->predicted > 0
                 ? candidate->measured / candidate->predicted
                 : 0);
    return text[0];
}

static void print_row(const struct tune_row *row)
{
    for (int c = 0; c < row->n; c++) {
        const struct tune_candidate *candidate = &row->candidates[c];
        char text[2][24];

        measured_text(candidate, text);
        printf(" %-15s %11zu  %-22s %13.2f %12s %7s%s\n",
               coll_collective_name(row->collective), row->bytes,
               candidate->algorithm, candidate->predicted * 1e6, text[0],
               text[1],
               row->is_noise    ? "  noise"
               : c == row->best ? "  best"
                                : "");
    }
}

static void print_table(const struct coll_comm *comm,
                        const struct tune_table *table)
{
    static const char *const where[] = {"within a host", "between hosts"};

    int ranks = coll_comm_size(comm), hosts = coll_comm_n_hosts(comm);

    printf("# coll_tune, libcoll %s: %d rank%s on %d host%s, transports %s\n",
           coll_version(), ranks, ranks == 1 ? "" : "s", hosts,
           hosts == 1 ? "" : "s", coll_comm_transports(comm));
    for (int l = 0; l < 2; l++)
        if (table->links[l].is_there && table->links[l].is_noise)
            printf("# %s: noise\n", where[l]);
        else if (table->links[l].is_there)
            printf("# %s: alpha %.2f us, beta %.4f ns a byte\n", where[l],
                   table->links[l].alpha * 1e6, table->links[l].beta * 1e9);
    printf("#%-15s %11s  %-22s %13s %12s %7s\n", "collective", "size[B]",
           "algorithm", "predicted[us]", "measured[us]", "ratio");
    for (int i = 0; i < table->n_rows; i++)
        print_row(&table->rows[i]);
}

/* ---- the work ------------------------------------------------------------------ */

/* Every rank learns whether rank 0 is well. */
static int share(struct coll_comm *comm, int *status)
{
    int32_t shared = *status;
    int rc = coll_broadcast(&shared, &shared, 1, COLL_I32, 0, comm, NULL);

    *status = shared;
    return rc;
}

/* Say what could not be told; 0 when there was nothing, or it may be left out,
 * else 1. */
static int warn_of_noise(const struct tune_options *options,
                         const struct tune_table *table)
{
    const struct tune_row *first = NULL;
    int n = 0;

    for (int i = table->n_rows - 1; i >= 0; i--)
        if (table->rows[i].n && table->rows[i].is_noise) {
            first = &table->rows[i];
            n++;
        }
    for (int l = 0; l < 2; l++)
        n += table->links[l].is_there && table->links[l].is_noise;
    if (!n)
        return 0;
    fprintf(stderr, "coll_tune: %s%d of %d measurements are noise",
            options->is_noisy ? "warning: " : "", n,
            table->n_rows + table->links[0].is_there +
                table->links[1].is_there);
    if (first)
        fprintf(stderr, " (%s of %zu bytes after %d rounds)",
                coll_collective_name(first->collective), first->bytes,
                first->rounds);
    fprintf(stderr, "; %s\n",
            options->is_noisy
                ? "the file leaves them to the predictions"
                : "nothing is written: end what else runs on the machine, take "
                  "more --rounds, or leave them out by --noisy");
    return !options->is_noisy;
}

static void report(const struct tune_options *options, struct coll_comm *comm,
                   const struct tune_table *table, struct tune_file *file,
                   int *status)
{
    print_table(comm, table);
    fflush(stdout);
    *status =
        warn_of_noise(options, table) || tune_file_write(file, comm, table);
    if (!*status)
        printf("# written: %s; to use it set COLL_TUNE_FILE to its path\n",
               options->path);
}

/* Errors of operations; *status: of the file, the same on every rank. */
static int tune(const struct tune_options *options, struct coll_comm *comm,
                int *status)
{
    struct tune_file file = {.fd = -1};
    struct tune_table table = {0};
    int is_first = !coll_comm_rank(comm), rc;

    *status = is_first && tune_file_open(&file, options) ? 1 : 0;
    rc = share(comm, status);
    if (!rc && !*status)
        rc = tune_measure(options, comm, &table);
    if (!rc && !*status && is_first)
        report(options, comm, &table, &file, status);
    if (!rc)
        rc = share(comm, status);
    if (is_first)
        tune_file_close(&file);
    free(table.rows);
    return rc;
}

static int run(const struct tune_options *options)
{
    struct coll_comm *comm;
    int status, rc, ended;

    unsetenv("COLL_ALGO"); /* every algorithm is a candidate */
    unsetenv("COLL_TUNE_FILE");
    rc = coll_comm_create_env(&comm, NULL);
    if (rc)
        return explain(rc);
    rc = tune(options, comm, &status);
    if (rc)
        status = explain(rc);
    ended = coll_comm_destroy(comm);
    return status ? status : ended ? explain(ended) : 0;
}

/* ---- command line --------------------------------------------------------------- */

static const char usage[] =
    "Usage: coll_tune [OPTION]...\n"
    "Measure the algorithms over the ranks of a job (collrun, mpirun, srun),\n"
    "and write the fastest ones to a file for COLL_TUNE_FILE.\n\n"
    "  -o, --output FILE       the file (default coll_tune.json)\n"
    "      --force             write over it\n"
    "  -c, --collectives LIST  allreduce,broadcast,... (default: all whose\n"
    "                          parts are even)\n"
    "  -b, --begin SIZE        bytes of the whole vector, first (default 8)\n"
    "  -e, --end SIZE          and last (default 64M)\n"
    "  -f, --factor F          from one size to the next (default 4)\n"
    "  -n, --rounds N          turns of each algorithm (default 9); up to 8\n"
    "                          times as many while times are noise\n"
    "      --tolerance PERCENT of a time (default 25): what is known less "
    "well\n"
    "                          is noise, and then no file is written\n"
    "      --noisy             write one with what is known, and a warning\n"
    "      --quick             up to 64K, 3 short rounds: to try it out\n"
    "  -h, --help\n"
    "  -V, --version\n";

static int take_bytes(const char *text, size_t *bytes)
{
    if (size_parse(text, bytes) || !*bytes)
        return bad("'%s' is no size; write 8, 4K or 64M", text);
    return 0;
}

static int take_factor(const char *text, double *factor)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 1 && value <= 1e6))
        return bad("'%s' is no factor between sizes; it must be above 1, such "
                   "as 4",
                   text);
    *factor = value;
    return 0;
}

static int take_rounds(const char *text, int *rounds)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < 1 || value > 10000)
        return bad("'%s' is no number of rounds; it must be 1 to 10000", text);
    *rounds = (int)value;
    return 0;
}

static int take_tolerance(const char *text, double *tolerance)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 0 && value <= 1000))
        return bad("'%s' is no tolerance; it must be above 0 and at most 1000 "
                   "percent",
                   text);
    *tolerance = value / 100;
    return 0;
}

/* The collective that the first len characters name, if it can be tuned. */
static int find_collective(const char *text, size_t len)
{
    for (int k = 0; k < COLL_N_COLLECTIVES; k++) {
        const char *name = coll_collective_name((enum coll_collective)k);

        if (STANDARD >> k & 1 && strlen(name) == len &&
            !memcmp(name, text, len))
            return k;
    }
    return -1;
}

static int take_collectives(const char *text, unsigned *collectives)
{
    char known[256] = "";

    *collectives = 0;
    for (int k = 0; k < COLL_N_COLLECTIVES; k++)
        if (STANDARD >> k & 1)
            snprintf(known + strlen(known), sizeof(known) - strlen(known),
                     "%s%s", *known ? ", " : "",
                     coll_collective_name((enum coll_collective)k));
    for (;;) {
        size_t len = strcspn(text, ",");
        int k = find_collective(text, len);

        if (k < 0)
            return bad("'%.*s' cannot be tuned; there are: %s", (int)len, text,
                       known);
        *collectives |= 1u << k;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

enum { OPT_FORCE = 256, OPT_QUICK, OPT_TOLERANCE, OPT_NOISY };

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"force", no_argument, NULL, OPT_FORCE},
    {"collectives", required_argument, NULL, 'c'},
    {"begin", required_argument, NULL, 'b'},
    {"end", required_argument, NULL, 'e'},
    {"factor", required_argument, NULL, 'f'},
    {"rounds", required_argument, NULL, 'n'},
    {"quick", no_argument, NULL, OPT_QUICK},
    {"tolerance", required_argument, NULL, OPT_TOLERANCE},
    {"noisy", no_argument, NULL, OPT_NOISY},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static int bad_option(int letter, char **argv)
{
    char short_one[] = {'-', (char)optopt, '\0'};
    const char *word =
        optopt > ' ' && optopt < 127 ? short_one : argv[optind - 1];

    return letter == ':' ? bad("option %s needs a value; see --help", word)
                         : bad("unknown option %s; see --help", word);
}

static int take(int letter, char **argv, struct tune_options *o)
{
    switch (letter) {
    case 'o':
        o->path = optarg;
        return *optarg ? 0 : bad("--output needs a name");
    case OPT_FORCE:
        o->is_forced = 1;
        return 0;
    case 'c':
        return take_collectives(optarg, &o->collectives);
    case 'b':
        return take_bytes(optarg, &o->first);
    case 'e':
        return take_bytes(optarg, &o->last);
    case 'f':
        return take_factor(optarg, &o->factor);
    case 'n':
        return take_rounds(optarg, &o->rounds);
    case OPT_TOLERANCE:
        return take_tolerance(optarg, &o->tolerance);
    case OPT_NOISY:
        o->is_noisy = 1;
        return 0;
    case OPT_QUICK:
        o->last = 64 << 10;
        o->rounds = 3;
        o->seconds = 0.5e-3;
        return 0;
    default:
        return bad_option(letter, argv);
    }
}

/* Lines may be lost only now, on a full disk. */
static int finish(int status)
{
    if (!ferror(stdout) && !fclose(stdout))
        return status;
    fprintf(stderr,
            "coll_tune: cannot write the output: %s; make room or write "
            "elsewhere\n",
            strerror(errno ? errno : EIO));
    return 1;
}

static int print_and_finish(int letter)
{
    if (speaks_for_job() && letter == 'h')
        fputs(usage, stdout);
    else if (speaks_for_job())
        printf("coll_tune (libcoll) %s\n", coll_version());
    return finish(0);
}

int main(int argc, char **argv)
{
    struct tune_options o = {
        .collectives = STANDARD,
        .first = 8,
        .last = 64 << 20,
        .factor = 4,
        .rounds = 9,
        .seconds = 5e-3,
        .tolerance = 0.25,
        .path = "coll_tune.json",
    };
    int letter, rc = 0;

    opterr = 0;
    while (!rc && (letter = getopt_long(argc, argv, ":o:c:b:e:f:n:hV",
                                        long_options, NULL)) != -1) {
        if (letter == 'h' || letter == 'V')
            return print_and_finish(letter);
        rc = take(letter, argv, &o);
    }
    if (!rc && optind < argc)
        rc = bad("unexpected argument %s; see --help", argv[optind]);
    if (!rc && o.first > o.last)
        rc = bad("the first size, %zu, is above the last, %zu; set both -b "
                 "and -e",
                 o.first, o.last);
    return rc ? rc : finish(run(&o));
}
