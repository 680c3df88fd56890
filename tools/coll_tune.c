/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_tune.c - measure the algorithms on this machine or allocation, show the
 * times beside the predicted ones, and write the file for COLL_TUNE_FILE.
 *
 * Uses the public API only.  All ranks measure; rank 0 speaks and writes.
 */
#include "tools/coll_tune.h"
#include "tools/common/program.h"
#include "tools/common/table.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STANDARD                                                               \
    (1u << COLL_ALLREDUCE | 1u << COLL_BROADCAST | 1u << COLL_REDUCE |         \
     1u << COLL_ALLGATHER | 1u << COLL_REDUCE_SCATTER | 1u << COLL_ALLTOALL |  \
     1u << COLL_GATHER | 1u << COLL_SCATTER | 1u << COLL_BARRIER |             \
     1u << COLL_SCAN | 1u << COLL_EXSCAN)

/* Report a failed operation with the library's error message. */
static int explain(int rc)
{
    fprintf(stderr, "coll_tune: %s\n",
            *coll_last_error() ? coll_last_error() : coll_strerror(rc));
    return 1;
}

/* ---- what is shown ------------------------------------------------------------ */

/* Print a time, or a dash if it is within the noise. */
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

/* Fill in a candidate's table cells, which point into `text`. */
static void fill_row(struct table_row *out, const struct tune_row *row,
                     const struct tune_candidate *candidate, char text[2][24])
{
    int is_best = row->n && candidate - row->candidates == row->best;

    *out = (struct table_row){.n = 0};
    measured_text(candidate, text);
    row_text(out, "collective", "collective", -15,
             coll_collective_name(row->collective));
    row_count(out, "bytes", "size[B]", 11, row->bytes);
    row_text(out, "algorithm", "algorithm", -22, candidate->algorithm);
    row_real(out, "predicted_us", "predicted[us]", 13, 2,
             candidate->predicted * 1e6);
    row_text(out, "measured_us", "measured[us]", 12, text[0]);
    row_text(out, "ratio", "ratio", 7, text[1]);
    if (row->is_noise || is_best)
        row_text(out, "verdict", "", -1, row->is_noise ? "noise" : "best");
}

static void print_row(const struct tune_row *row)
{
    for (int c = 0; c < row->n; c++) {
        struct table_row out;
        char text[2][24];

        fill_row(&out, row, &row->candidates[c], text);
        table_print_row(stdout, &out, TABLE_TEXT);
    }
}

static void print_heads(void)
{
    static const struct tune_row no_row;
    static const struct tune_candidate no_candidate;
    struct table_row heads;
    char text[2][24];

    fill_row(&heads, &no_row, &no_candidate, text);
    table_print_heads(stdout, &heads, TABLE_TEXT);
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
    print_heads();
    for (int i = 0; i < table->n_rows; i++)
        print_row(&table->rows[i]);
}

/* ---- the work ------------------------------------------------------------------ */

/* Send rank 0's status to every rank. */
static int share(struct coll_comm *comm, int *status)
{
    int32_t shared = *status;
    int rc = coll_broadcast(&shared, &shared, 1, COLL_I32, 0, comm, NULL);

    *status = shared;
    return rc;
}

/* Report the problems without a clear result.  Returns 0 if there are none or --noisy
 * allows them, else 1. */
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
    fprintf(stderr,
            "coll_tune: %s%d of %d results (each a size or a link) are noise",
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

/* Measure and write the file.  Returns an operation's error; *status is 1 if the file
 * could not be written, the same on every rank. */
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
    if (coll_comm_size(comm) == 1) {
        fprintf(stderr, "coll_tune: with one rank there is nothing to choose; "
                        "start it as collrun -n 2 coll_tune\n");
        coll_comm_destroy(comm);
        return 2;
    }
    rc = tune(options, comm, &status);
    if (rc)
        status = explain(rc);
    ended = coll_comm_destroy(comm);
    return status ? status : ended ? explain(ended) : 0;
}

/* ---- command line --------------------------------------------------------------- */

/* Return the collective named by the first len characters, if it can be tuned. */
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

static int take_collectives(const struct program *p, const char *text,
                            void *into)
{
    unsigned *collectives = &((struct tune_options *)into)->collectives;
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
            return program_refuse(p, "'%.*s' cannot be tuned; there are: %s",
                                  (int)len, text, known);
        *collectives |= 1u << k;
        if (!text[len])
            return 0;
        text += len + 1;
    }
}

static int take_tolerance(const struct program *p, const char *text, void *into)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !(value > 0 && value <= 1000))
        return program_refuse_value(p, "tolerance", text,
                                    "a number of percent above 0, at most "
                                    "1000");
    ((struct tune_options *)into)->tolerance = value / 100;
    return 0;
}

static int take_quick(const struct program *p, const char *text, void *into)
{
    struct tune_options *o = into;

    (void)p, (void)text;
    o->last = 64 << 10;
    o->rounds = 3;
    o->seconds = 0.5e-3;
    return 0;
}

#define AT(field) offsetof(struct tune_options, field)

static const struct program_option options[] = {
    {"output", 'o', OPTION_TEXT, AT(path), "FILE", "coll_tune.json",
     .help = "write this file"},
    {"force", 0, OPTION_SWITCH, AT(is_forced), NULL, NULL,
     .help = "overwrite the file if it is there"},
    {"collectives", 'c', OPTION_CALL, 0, "LIST", NULL,
     .help = "measure these, as allreduce,broadcast (default: all but those "
             "whose ranks "
             "have parts of different sizes)",
     .take = take_collectives},
    {"begin", 'b', OPTION_SIZE, AT(first), "SIZE", "8",
     .help = "the smallest size: bytes of the whole vector"},
    {"end", 'e', OPTION_SIZE, AT(last), "SIZE", "64M",
     .help = "the largest size"},
    {"factor", 'f', OPTION_REAL, AT(factor), "F", "4",
     .help = "each size is F times the size before", .least = 1.001,
     .most = 1e6},
    {"rounds", 'n', OPTION_INT, AT(rounds), "N", "9",
     .help = "measure each algorithm N times, the algorithms taking turns; up "
             "to 8 N "
             "times while the times scatter too much",
     .least = 1, .most = 10000},
    {"tolerance", 0, OPTION_CALL, 0, "PERCENT", "25",
     .help =
         "a time that is known less well is noise, and then no file is written",
     .take = take_tolerance},
    {"noisy", 0, OPTION_SWITCH, AT(is_noisy), NULL, NULL,
     .help = "write the file without the times that are noise, and print a "
             "warning"},
    {"quick", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "sizes up to 64K and 3 short rounds, to try it out",
     .take = take_quick},
    {.name = NULL},
};

static const struct program program = {
    .name = "coll_tune",
    .usage = "[OPTION]...",
    .about = "Measure libcoll's algorithms over the ranks of a job (collrun, "
             "mpirun, srun), and\nwrite the fastest ones to a file for "
             "COLL_TUNE_FILE.",
    .options = options,
    .is_of_job = 1,
};

int main(int argc, char **argv)
{
    struct tune_options o = {.collectives = STANDARD, .seconds = 5e-3};
    int status;

    program_defaults(&program, &o);
    if (program_read(&program, argc, argv, &o, &status) < 0)
        return status;
    if (!o.first || o.first > o.last)
        return program_refuse(&program,
                              "the sizes go from %zu to %zu bytes; give -b and "
                              "-e so that the first is above 0 and not above "
                              "the last",
                              o.first, o.last);
    return program_finish(&program, run(&o));
}
