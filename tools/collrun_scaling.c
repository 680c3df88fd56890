/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_scaling.c - collrun --scaling 1,2,4: run a program with several numbers of
 * ranks, and print a table of its speedup.
 *
 * The program writes coll_train's JSON object to the file that --json names.
 * Each round runs all numbers of ranks, so that a machine that becomes slower affects all
 * of them; the table has the medians.
 */
#include "tools/collrun.h"
#include "tools/common/table.h"

#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_SIZES 32
#define MAX_ROUNDS 99

enum figure { TOTAL, EPOCH, RATE, EXPOSED, ACCURACY, N_FIGURES };

struct size {
    int n;
    double figures[N_FIGURES][MAX_ROUNDS];
    double median[N_FIGURES];
};

/* As long as the program. */
static struct {
    int n_sizes, n_rounds;
    char model[64]; /* that --model is to say, or "" */
    struct size sizes[MAX_SIZES];
} table;

/* ---- reading ---------------------------------------------------------------- */

static int read_sizes(const char *text)
{
    char *end;

    for (;;) {
        long n = strtol(text, &end, 10);

        if (end == text || n < 1 || n > 4096 || (*end && *end != ',') ||
            table.n_sizes == MAX_SIZES)
            break;
        table.sizes[table.n_sizes++].n = (int)n;
        if (!*end)
            return 0;
        text = end + 1;
    }
    complain("--scaling %s: it must be numbers of ranks, such as 1,2,4; %d at "
             "most",
             text, MAX_SIZES);
    return -1;
}

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Take the figures of a run from coll_train's JSON object. */
static void take(const json_t *result, struct size *size, int round)
{
    const json_t *epochs = json_object_get(result, "epochs"), *epoch;
    double seconds = 0, exposed = 0, accuracy = 0;
    size_t i, n = json_array_size(epochs);

    json_array_foreach(epochs, i, epoch)
    {
        seconds += real(epoch, "seconds");
        exposed += real(epoch, "comm_exposed_s");
        accuracy = real(epoch, "test_acc");
    }
    size->figures[TOTAL][round] = real(result, "total_s");
    size->figures[EPOCH][round] = n ? seconds / (double)n : 0;
    size->figures[RATE][round] = real(result, "images_per_s");
    size->figures[EXPOSED][round] = seconds > 0 ? exposed / seconds : 0;
    size->figures[ACCURACY][round] = accuracy;
}

static int read_result(const char *path, struct size *size, int round)
{
    json_error_t error;
    json_t *result = json_load_file(path, 0, &error);

    if (!result || !json_object_get(result, "images_per_s")) {
        complain("--scaling: the program wrote no result; it must take --json "
                 "FILE, as coll_train does");
        json_decref(result);
        return -1;
    }
    take(result, size, round);
    json_decref(result);
    return 0;
}

/* ---- running ---------------------------------------------------------------- */

/* collrun -n N PROGRAM ARGUMENTS --json PATH; what it prints goes to stderr,
 * since stdout is the table's. */
static int start(const struct options *o, int n, char *path, int *how)
{
    static char self[] = "/proc/self/exe", bind[] = "--bind", core[] = "core",
                end[] = "--", ranks[] = "-n", json[] = "--json",
                model[] = "--model";
    posix_spawn_file_actions_t actions;
    char number[16], *argv[1024] = {self, ranks, number};
    int at = 3, err;
    pid_t pid;

    snprintf(number, sizeof(number), "%d", n);
    if (o->is_bound) {
        argv[at++] = bind;
        argv[at++] = core;
    }
    argv[at++] = end;
    for (char **word = o->command; *word && at < 1018; word++)
        argv[at++] = *word;
    if (*table.model) {
        argv[at++] = model;
        argv[at++] = table.model;
    }
    argv[at++] = json;
    argv[at++] = path;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    err = posix_spawn(&pid, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (!err && waitpid(pid, how, 0) < 0)
        err = errno == EINTR ? 0 : errno;
    if (err)
        complain("cannot start a run: %s", strerror(err));
    return err ? -1 : 0;
}

/* Measure one number of ranks in one round.  Returns 0, or the exit status. */
static int measure(const struct options *o, struct size *size, int round)
{
    char path[] = "/tmp/collrun-XXXXXX";
    int fd = mkstemp(path), how = 0, status = EXIT_FAILURE;

    if (fd < 0) {
        complain("cannot write to /tmp: %s", strerror(errno));
        return EXIT_FAILURE;
    }
    close(fd);
    if (!start(o, size->n, path, &how))
        status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    if (status)
        complain("--scaling: the run of %d ranks ended with status %d", size->n,
                 status);
    else if (read_result(path, size, round))
        status = EXIT_FAILURE;
    unlink(path);
    return status;
}

/* ---- the table --------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_of(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static double speed_up(const struct size *size)
{
    double first = table.sizes[0].median[RATE];

    return first > 0 ? size->median[RATE] / first : 0;
}

/* Speedup over the first number of ranks, which need not be 1. */
static double efficiency(const struct size *size)
{
    return speed_up(size) * table.sizes[0].n / size->n;
}

/* Add a figure: the table has `digits` digits of it, and the CSV has six. */
static void add_real(struct table_row *row, const char *key, const char *head,
                     int width, int digits, double value)
{
    row_real(row, NULL, head, width, digits, value);
    row_real(row, key, NULL, 0, 6, value);
}

static void add_share(struct table_row *row, const char *key, const char *head,
                      int width, double value)
{
    row_share(row, head, width, 1, value);
    row_real(row, key, NULL, 0, 6, value);
}

static void fill_row(struct table_row *row, const struct size *size)
{
    *row = (struct table_row){.n = 0};
    row_count(row, "procs", "procs", 5, (unsigned)size->n);
    add_real(row, "total_s", "total [s]", 11, 1, size->median[TOTAL]);
    add_real(row, "s_per_epoch", "s/epoch", 9, 1, size->median[EPOCH]);
    add_real(row, "images_per_s", "images/s", 10, 0, size->median[RATE]);
    add_real(row, "speed_up", "speed-up", 10, 2, speed_up(size));
    add_share(row, "efficiency", "efficiency", 12, efficiency(size));
    add_share(row, "comm_exposed", "comm exposed", 14, size->median[EXPOSED]);
    add_real(row, "accuracy", "accuracy", 10, 4, size->median[ACCURACY]);
}

static void print_table(FILE *to, enum table_form form)
{
    struct table_row row;

    fill_row(&row, &table.sizes[0]);
    table_print_heads(to, &row, form);
    for (int i = 0; i < table.n_sizes; i++) {
        fill_row(&row, &table.sizes[i]);
        table_print_row(to, &row, form);
    }
}

/* Write the name of one model's file: "scaling.cnn.csv" for "scaling.csv". */
static void name_csv(const char *given, char *path, size_t len)
{
    const char *slash = strrchr(given, '/'), *dot = strrchr(given, '.');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - given)
                                              : (int)strlen(given);

    if (*table.model)
        snprintf(path, len, "%.*s.%s%s", stem, given, table.model,
                 given + stem);
    else
        snprintf(path, len, "%s", given);
}

static int cannot_write(const char *path)
{
    complain("cannot write %s: %s; name another file by --csv", path,
             strerror(errno));
    return EXIT_FAILURE;
}

/* Find out before the first run whether the file can be written. */
static int probe_csv(const char *given)
{
    char path[4096];
    int fd;

    name_csv(given, path, sizeof(path));
    if (!access(path, F_OK))
        return access(path, W_OK) ? cannot_write(path) : EXIT_SUCCESS;
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return cannot_write(path);
    close(fd);
    unlink(path);
    return EXIT_SUCCESS;
}

static int write_csv(const char *given)
{
    char path[4096];
    FILE *to;
    int is_bad;

    name_csv(given, path, sizeof(path));
    to = fopen(path, "we");
    is_bad = !to;

    if (to) {
        print_table(to, TABLE_CSV);
        is_bad = ferror(to);
        is_bad |= fclose(to);
    }
    return is_bad ? cannot_write(path) : EXIT_SUCCESS;
}

/* Run all rounds of all numbers of ranks, and print the table. */
static int make_table(const struct options *options)
{
    int status = options->csv ? probe_csv(options->csv) : 0;

    for (int round = 0; round < table.n_rounds && !status; round++)
        for (int i = 0; i < table.n_sizes && !status; i++)
            status = measure(options, &table.sizes[i], round);
    if (status)
        return status;
    for (int i = 0; i < table.n_sizes; i++)
        for (int f = 0; f < N_FIGURES; f++)
            table.sizes[i].median[f] =
                median_of(table.sizes[i].figures[f], table.n_rounds);
    if (*table.model)
        printf("model %s\n", table.model);
    print_table(stdout, TABLE_PLAIN);
    return options->csv ? write_csv(options->csv) : EXIT_SUCCESS;
}

/* Take the first model's name; returns the rest of the list. */
static const char *take_model(const char *models)
{
    size_t len = strcspn(models, ",");

    snprintf(table.model, sizeof(table.model), "%.*s", (int)len, models);
    return models + len + (models[len] == ',');
}

int scaling_run(const struct options *options)
{
    const char *models = options->models ? options->models : "";
    int status;

    table.n_rounds = options->n_rounds ? options->n_rounds : 1;
    if (read_sizes(options->scaling))
        return EXIT_USAGE;
    do {
        models = take_model(models);
        status = make_table(options);
    } while (!status && *models);
    return status;
}
