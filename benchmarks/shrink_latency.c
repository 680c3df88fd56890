/* SPDX-License-Identifier: BSD-3-Clause */
/* shrink_latency.c - how long it takes until the others go on when a rank dies.
 *
 * Each rank forks a child, and the children make a communicator.  One of them is killed
 * while the others sum; they notice, shrink, and sum without it.  The next turn has new
 * children.  The slowest rank counts in each turn.
 *
 * The times are from the kill, whose moment the victim's clock has.  Ranks on other hosts
 * compare their clock with that one before, by the shortest of several exchanges.
 */
#include "benchmarks/bench.h"
#include "tools/common/program.h"
#include "tools/common/speaks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "shrink_latency"
#define LOOKS 50 /* exchanges that compare two clocks */

enum phase { NOTICE, SHRINK, SUM, ALL, N_PHASES };

static const char *const phases[N_PHASES] = {"notice", "shrink", "sum", "all"};

struct options {
    long turns, warmup;
    int victim; /* -1: the last rank */
    enum table_form form;
};

/* What a child tells its parent: times of its clock, in s. */
struct report {
    double killed, noticed, shrunk, summed;
    char transports[64];
};

struct latency {
    struct options options;
    struct coll_comm *comm; /* of the parents */
    int rank, size;
    double ahead; /* s: this clock's time less the time of the victim's */
    struct report *report;
    char *transports; /* COLL_TRANSPORTS of the children; NULL: it is not set */
    double *times[N_PHASES]; /* [options.turns], in s */
    uint64_t errors;
};

static double now(void) { return bench_clock(CLOCK_MONOTONIC); }

static int explain(int rc)
{
    fprintf(stderr, PROGRAM ": %s\n",
            *coll_last_error() ? coll_last_error() : coll_strerror(rc));
    return rc;
}

/* ---- a child ----------------------------------------------------------------- */

/* Sum the numbers of the parents' ranks; a wrong sum is COLL_ERR_INTERNAL. */
static int sum(const struct latency *l, struct coll_comm *comm)
{
    int victim = coll_comm_size(comm) < l->size ? l->options.victim : 0;
    int mine = l->rank, all = -1;
    int rc = coll_allreduce(&mine, &all, 1, COLL_I32, COLL_SUM, comm, NULL);

    if (rc || all == l->size * (l->size - 1) / 2 - victim)
        return rc;
    fprintf(stderr, PROGRAM ": a wrong sum\n");
    return COLL_ERR_INTERNAL;
}

/* Go on without the victim. */
static int survive(const struct latency *l, struct coll_comm *comm)
{
    struct coll_comm *rest;
    int rc;

    l->report->noticed = now();
    rc = coll_comm_shrink(comm, NULL, 0, 0, &rest);
    if (rc)
        return rc;
    l->report->shrunk = now();
    rc = sum(l, rest);
    l->report->summed = now();
    coll_comm_destroy(comm);
    coll_comm_destroy(rest);
    return rc;
}

static int be_child(const struct latency *l, const struct coll_unique_id *id)
{
    struct coll_comm *comm;
    int rc;

    if (l->transports)
        setenv("COLL_TRANSPORTS", l->transports, 1);
    else
        unsetenv("COLL_TRANSPORTS");
    rc = coll_comm_create(&comm, l->size, id, l->rank, NULL);
    if (rc)
        return rc;
    snprintf(l->report->transports, sizeof(l->report->transports), "%s",
             coll_comm_transports(comm));
    for (int i = 0; i < 3 && !rc; i++)
        rc = sum(l, comm);
    if (!rc)
        rc = coll_barrier(comm, NULL);
    if (l->rank == l->options.victim && !rc) {
        l->report->killed = now();
        kill(getpid(), SIGKILL);
    }
    while (!rc)
        rc = sum(l, comm);
    return rc == COLL_ERR_PEER ? survive(l, comm) : rc;
}

/* ---- a parent ------------------------------------------------------------------ */

/* Fork a child and wait for its end; returns whether it ended as it should. */
static int have_child(const struct latency *l, const struct coll_unique_id *id)
{
    pid_t pid;
    int status, rc;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        rc = be_child(l, id);
        if (rc)
            explain(rc);
        _exit(rc != COLL_OK);
    }
    if (!l->rank)
        coll_unique_id_free(id); /* the child has it */
    if (pid < 0)
        perror(PROGRAM ": fork");
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 0;
    return l->rank == l->options.victim
               ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
               : WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Take the phases' times from the reports; the slowest rank counts. */
static int take_times(const struct latency *l, double times[N_PHASES])
{
    const struct report *r = l->report;
    double killed = r->killed;
    int rc = coll_broadcast(&killed, &killed, 1, COLL_F64, l->options.victim,
                            l->comm, NULL);

    killed += l->ahead;
    if (l->rank != l->options.victim) {
        times[NOTICE] = r->noticed - killed;
        times[SHRINK] = r->shrunk - r->noticed;
        times[SUM] = r->summed - r->shrunk;
        times[ALL] = r->summed - killed;
    }
    return rc ? rc : bench_slowest(l->comm, times, N_PHASES);
}

static int take_turn(struct latency *l, double times[N_PHASES])
{
    struct coll_unique_id id = {{0}};
    uint64_t errors;
    int rc = l->rank ? COLL_OK : coll_get_unique_id(&id);

    if (!rc)
        rc = coll_broadcast(&id, &id, sizeof(id), COLL_U8, 0, l->comm, NULL);
    if (rc)
        return rc;
    *l->report = (struct report){0};
    errors = !have_child(l, &id);
    rc = coll_allreduce(&errors, &errors, 1, COLL_U64, COLL_SUM, l->comm, NULL);
    l->errors += errors;
    return rc ? rc : take_times(l, times);
}

/* Compare this rank's clock with that of the victim's parent. */
static int compare_clocks(struct latency *l, int rank)
{
    double best = 1e9;
    int rc = COLL_OK;

    for (int i = 0; i < LOOKS && !rc; i++) {
        int peer = l->rank == rank ? l->options.victim : rank;
        double sent = now(), theirs = sent, back;

        if (l->rank == rank) {
            rc = coll_send(&sent, 1, COLL_F64, peer, l->comm, NULL);
            if (!rc)
                rc = coll_recv(&theirs, 1, COLL_F64, peer, l->comm, NULL);
            back = now();
            if (back - sent < best) {
                best = back - sent;
                l->ahead = (sent + back) / 2 - theirs;
            }
            continue;
        }
        rc = coll_recv(&theirs, 1, COLL_F64, peer, l->comm, NULL);
        theirs = now();
        if (!rc)
            rc = coll_send(&theirs, 1, COLL_F64, peer, l->comm, NULL);
    }
    return rc;
}

static int set_clocks(struct latency *l)
{
    int rc = COLL_OK;

    if (coll_comm_n_hosts(l->comm) == 1)
        return COLL_OK;
    for (int r = 0; r < l->size && !rc; r++)
        if (r != l->options.victim &&
            (l->rank == r || l->rank == l->options.victim))
            rc = compare_clocks(l, r);
    return rc;
}

/* ---- what is printed ------------------------------------------------------------ */

static void fill_row(struct table_row *row, const struct latency *l,
                     enum phase phase)
{
    size_t n = (size_t)l->options.turns;
    double *t = l->times[phase], p50 = bench_median(t, n); /* sorted now */

    *row = (struct table_row){.n = 0};
    row_count(row, "ranks", "ranks", 6, (unsigned)l->size);
    row_count(row, "hosts", "hosts", 6, (unsigned)coll_comm_n_hosts(l->comm));
    row_count(row, "victim", "victim", 6, (unsigned)l->options.victim);
    row_text(row, "phase", "phase", 8, phases[phase]);
    row_count(row, "turns", "turns", 6, n);
    row_real(row, "ms.min", "min[ms]", 10, 3, t[0] * 1e3);
    row_real(row, "ms.p50", "p50[ms]", 10, 3, p50 * 1e3);
    row_real(row, "ms.p90", "p90[ms]", 10, 3, t[(n - 1) * 9 / 10] * 1e3);
    row_real(row, "ms.max", "max[ms]", 10, 3, t[n - 1] * 1e3);
    row_count(row, "errors", "errors", 7, l->errors);
}

static void print(const struct latency *l)
{
    enum table_form form = l->options.form;
    struct table_row row;

    if (form == TABLE_TEXT) {
        printf("# " PROGRAM ", libcoll %s: %d ranks on %d host%s, transports "
               "%s; rank %d is killed\n",
               coll_version(), l->size, coll_comm_n_hosts(l->comm),
               coll_comm_n_hosts(l->comm) == 1 ? "" : "s",
               l->report->transports, l->options.victim);
        puts("# notice: from the kill to the error; shrink: "
             "coll_comm_shrink(); sum: the first verified\n"
             "# allreduce; all: from the kill to its end; the slowest rank of "
             "each turn");
    }
    for (int p = 0; p < N_PHASES; p++) {
        fill_row(&row, l, (enum phase)p);
        if (!p)
            table_print_heads(stdout, &row, form);
        table_print_row(stdout, &row, form);
    }
}

/* ---- all -------------------------------------------------------------------------- */

static int measure(struct latency *l)
{
    long warmup = l->options.warmup, n = warmup + l->options.turns;
    int rc = set_clocks(l);

    for (long i = 0; i < n && !rc && !l->errors; i++) {
        double times[N_PHASES] = {0};

        rc = take_turn(l, times);
        for (int p = 0; p < N_PHASES && i >= warmup; p++)
            l->times[p][i - warmup] = times[p];
    }
    return rc;
}

/* The memory of the times, and what parent and child share; 0: there is none. */
static int allocate(struct latency *l)
{
    int is_there = 1;

    l->report = mmap(NULL, sizeof(*l->report), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int p = 0; p < N_PHASES; p++) {
        l->times[p] = calloc((size_t)l->options.turns, sizeof(double));
        is_there &= l->times[p] != NULL;
    }
    return is_there && l->report != MAP_FAILED;
}

static void release(struct latency *l)
{
    if (l->report && l->report != MAP_FAILED)
        munmap(l->report, sizeof(*l->report));
    for (int p = 0; p < N_PHASES; p++)
        free(l->times[p]);
    free(l->transports);
}

/* Check what depends on the number of ranks; the exit status. */
static int check(struct latency *l)
{
    if (l->options.victim < 0)
        l->options.victim = l->size - 1;
    if (l->size >= 2 && l->options.victim < l->size)
        return 0;
    if (!l->rank && l->size < 2)
        fprintf(stderr, PROGRAM ": it takes 2 ranks at least; start it by "
                                "collrun -n 8\n");
    else if (!l->rank)
        fprintf(stderr, PROGRAM ": there is no rank %d of %d to be killed\n",
                l->options.victim, l->size);
    return PROGRAM_USAGE;
}

/* The parents do without UCX, which their children could not use then. */
static int meet(struct latency *l)
{
    const char *transports = getenv("COLL_TRANSPORTS");

    l->transports = transports ? strdup(transports) : NULL;
    setenv("COLL_TRANSPORTS", "self,shm,tcp", 1);
    return coll_comm_create_env(&l->comm, NULL);
}

static int run(struct latency *l)
{
    int rc = meet(l), status, ended;

    if (rc)
        return explain(rc) == COLL_ERR_INVALID ? PROGRAM_USAGE : 1;
    l->rank = coll_comm_rank(l->comm);
    l->size = coll_comm_size(l->comm);
    status = check(l);
    if (!status && !allocate(l))
        status = fprintf(stderr, PROGRAM ": not enough memory\n") > 0;
    if (!status)
        rc = measure(l);
    if (rc)
        explain(rc);
    else if (!status && !l->errors && !l->rank)
        print(l);
    ended = coll_comm_destroy(l->comm);
    return status ? status : rc || ended || l->errors;
}

static int take_json(const struct program *p, const char *text, void *into)
{
    (void)p, (void)text;
    ((struct options *)into)->form = TABLE_JSON;
    return 0;
}

static int take_csv(const struct program *p, const char *text, void *into)
{
    (void)p, (void)text;
    ((struct options *)into)->form = TABLE_CSV;
    return 0;
}

#define AT(field) offsetof(struct options, field)

static const struct program_option options[] = {
    {"turns", 'n', OPTION_LONG, AT(turns), "N", "20",
     .help = "kill a rank so many times", .least = 1, .most = 1e6},
    {"warmup", 'w', OPTION_LONG, AT(warmup), "N", "2",
     .help = "turns before, which do not count", .least = 0, .most = 1e6},
    {"victim", 'r', OPTION_INT, AT(victim), "RANK", NULL,
     .help = "the rank that is killed (default: the last)", .least = 0,
     .most = 1e6},
    {"json", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print one JSON object for each phase", .take = take_json},
    {"csv", 0, OPTION_CALL, 0, NULL, NULL,
     .help = "print comma-separated values", .take = take_csv},
    {.name = NULL},
};

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = PROGRAM,
        .usage = "[OPTION]...",
        .about = "Measure how long it takes from the kill of a rank until the "
                 "others have shrunk their communicator\nand their first "
                 "operation on the new one has ended.",
        .options = options,
        .is_of_job = 1,
    };
    struct latency l = {.options = {.victim = -1}};
    int status;

    program_defaults(&program, &l.options);
    if (program_read(&program, argc, argv, &l.options, &status) < 0)
        return status;
    status = run(&l);
    release(&l);
    return program_finish(&program, status);
}
