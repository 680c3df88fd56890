/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.c - the program: in which order everything happens.
 *
 * For each number of ranks one job of every library is started.  All are up at
 * once, but sleep unless they are being measured.  The machine's limits are
 * measured before each of these stages and after the last.  A library that does
 * not start, dies or hangs is started again, twice in a stage; the cell in
 * which it failed is left out.
 */
#include "benchmarks/rivals/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESTARTS = 2 };

struct run {
    struct args args;
    struct result result;
    char folder[128]; /* of sockets and logs; "" when there is none */
    struct job jobs[N_FORMS];
    int n_restarts[N_FORMS];
    struct limits limits[MAX_LIST + 1];
    int n_limits, failed; /* libcoll failed, or a result was wrong */
    double begin;
};

/* ---- signals and the folder --------------------------------------------- */

static void catch (int number) { caught = number; }

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = catch};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int make_folder(struct run *run)
{
    const char *base = getenv("TMPDIR");

    snprintf(run->folder, sizeof(run->folder), "%s/compare.XXXXXX",
             base && *base ? base : "/tmp");
    if (mkdtemp(run->folder))
        return 0;
    say("cannot make a folder %s: %s; set TMPDIR to one that can be written",
        run->folder, strerror(errno));
    run->folder[0] = '\0';
    return -1;
}

static int remove_one(const char *path, const struct stat *status, int type,
                      struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    remove(path);
    return 0;
}

static void remove_folder(const struct run *run)
{
    if (run->folder[0])
        nftw(run->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- jobs --------------------------------------------------------------- */

static void note_trouble(struct run *run, int f)
{
    struct job *job = &run->jobs[f];

    if (!job->why[0] || caught)
        return;
    memcpy(run->result.troubles[f], job->why, sizeof(job->why));
    say("%s with %d ranks: %s", forms[f].name, job->ranks, job->why);
    job->why[0] = '\0';
    run->failed |= forms[f].is_own;
}

static void meet(struct run *run, int f)
{
    struct job *job = &run->jobs[f];

    if (job->launcher && !job_meet(job, run->args.patience))
        memcpy(run->result.versions[f], job->version, sizeof(job->version));
}

/* Return 1 if form f can be started with `ranks` ranks; if not, note why. */
static int may_start(struct run *run, int f, int ranks)
{
    char *trouble = run->result.troubles[f];
    int n = run->result.n_gpus;

    if (!run->args.has_form[f] || run->result.places[f].why[0] || caught)
        return 0;
    if (!forms[f].is_alone || ranks <= n)
        return 1;
    snprintf(trouble, sizeof(run->result.troubles[f]),
             "left out with %d ranks: it takes no two ranks on a GPU, and this "
             "machine has %d",
             ranks, n);
    return 0;
}

/* Start failed libraries again, if they start. */
static void restart(struct run *run)
{
    for (int f = 0; f < N_FORMS; f++) {
        struct job *job = &run->jobs[f];

        while (job->why[0] && !job->is_up && !caught) {
            note_trouble(run, f);
            if (run->n_restarts[f]++ < RESTARTS && !job_start(job))
                meet(run, f);
        }
    }
}

static void start_all(struct run *run, int ranks)
{
    for (int f = 0; f < N_FORMS; f++) {
        struct job *job = &run->jobs[f];

        *job = (struct job){.form = &forms[f],
                            .place = &run->result.places[f],
                            .folder = run->folder,
                            .ranks = ranks,
                            .listener = -1,
                            .shared = -1};
        run->n_restarts[f] = 0;
        for (int r = 0; r < PEER_MAX_RANKS; r++)
            job->sockets[r] = -1;
        if (may_start(run, f, ranks))
            job_start(job);
    }
    for (int f = 0; f < N_FORMS; f++)
        if (may_start(run, f, ranks))
            meet(run, f);
    restart(run);
}

static void end_all(struct run *run)
{
    for (int f = 0; f < N_FORMS; f++)
        job_end(&run->jobs[f]);
}

/* ---- cells -------------------------------------------------------------- */

/* Estimate the cost of a cell: a fixed part, and its bytes. */
static double weight(const struct cell *cell)
{
    return 1 + (double)cell->bytes * cell->ranks / (double)(24 << 20);
}

/* Return 1 if all ranks' buffers fit, and as much again for the library. */
static int fits(const struct cell *cell)
{
    double need = 2 * model_bytes(cell->op, cell->bytes, cell->ranks);
    char bytes[16];

    if (need < machine_memory())
        return 1;
    text_bytes(cell->bytes, bytes);
    say("%s of %s over %d ranks needs %.0f GB of memory and is left out",
        op_names[cell->op], bytes, cell->ranks, need * 1e-9);
    return 0;
}

static void list_cells(struct run *run)
{
    const struct args *args = &run->args;
    struct cell *cells = calloc(
        (size_t)(args->n_ranks * args->n_sizes * PEER_N_OPS), sizeof(*cells));
    int n = 0;

    for (int i = 0; i < args->n_ranks && cells; i++)
        for (int op = 0; op < PEER_N_OPS; op++)
            for (int s = 0; s < args->n_sizes; s++)
                if (args->has_op[op] && (op != PEER_BARRIER || !s)) {
                    cells[n] = (struct cell){
                        .op = (enum peer_op)op,
                        .bytes = op == PEER_BARRIER ? 0 : args->sizes[s],
                        .ranks = args->ranks[i]};
                    n += fits(&cells[n]);
                }
    run->result.cells = cells;
    run->result.n_cells = cells ? n : 0;
}

/* Return the part of the remaining time that this cell may take. */
static double allowance(const struct run *run, int i)
{
    const struct result *r = &run->result;
    double left = run->args.within - (now_seconds() - run->begin), all = 0;

    for (int k = i; k < r->n_cells; k++)
        all += weight(&r->cells[k]);
    return left > 0 ? left * weight(&r->cells[i]) / all : 0;
}

static double limit_of(const struct run *run, const struct cell *cell)
{
    return run->args.hosts.n ? model_link(cell, &run->args.hosts)
                             : model_limit(cell, &run->result.limits);
}

static void measure_cell(struct run *run, int i)
{
    struct cell *cell = &run->result.cells[i];
    int is_next = i && cell[-1].op == cell->op && cell[-1].ranks == cell->ranks;

    cell_measure(cell, is_next ? cell - 1 : NULL, run->jobs, &run->args,
                 allowance(run, i));
    if (caught)
        return;
    cell->limit = limit_of(run, cell);
    text_cell(&run->result, cell);
    for (int f = 0; f < N_FORMS; f++)
        if (cell->outcomes[f].wrong) {
            say("%s of %zu bytes over %d ranks: %s has %llu wrong elements",
                op_names[cell->op], cell->bytes, cell->ranks, forms[f].name,
                (unsigned long long)cell->outcomes[f].wrong);
            run->failed = 1;
        }
    restart(run);
}

static void measure_limits(struct run *run)
{
    const struct result *r = &run->result;
    double most = 0;

    if (run->args.hosts.n)
        return; /* the link is the limit */
    for (int i = 0; i < r->n_cells; i++) {
        double bytes = run->args.on_gpu
                           ? model_bytes(r->cells[i].op, r->cells[i].bytes,
                                         r->cells[i].ranks) /
                                 2
                           : model_buffers(&r->cells[i], r->machine.cores);

        most = bytes > most ? bytes : most;
    }
    if (caught || (run->args.on_gpu
                       ? limits_measure_gpu(most, &run->limits[run->n_limits])
                       : limits_measure(most, run->args.seconds,
                                        &run->limits[run->n_limits])))
        return;
    run->n_limits++;
    limits_median(run->limits, run->n_limits, &run->result.limits);
}

static void measure_all(struct run *run)
{
    struct result *r = &run->result;

    for (int i = 0; i < r->n_cells && !caught; i++) {
        int is_first = !i || r->cells[i].ranks != r->cells[i - 1].ranks;

        if (is_first) {
            end_all(run);
            start_all(run, r->cells[i].ranks);
            measure_limits(run);
            if (!i && (run->n_limits || run->args.hosts.n))
                text_limits(r);
        }
        if (!run->jobs[0].is_up && run->failed)
            break;
        measure_cell(run, i);
    }
    end_all(run);
    measure_limits(run);
    for (int i = 0; i < r->n_cells; i++)
        r->cells[i].limit = limit_of(run, &r->cells[i]);
    r->seconds = now_seconds() - run->begin;
}

/* ---- the end ------------------------------------------------------------ */

static int is_below_gate(const struct run *run)
{
    int n = 0;

    for (int i = 0; i < run->result.n_cells; i++)
        n += run->result.cells[i].ratio > 0 &&
             run->result.cells[i].ratio < run->args.gate;
    if (n)
        say("%d cell%s below the gate of %g", n, n == 1 ? " is" : "s are",
            run->args.gate);
    return n > 0;
}

static int report(struct run *run)
{
    int rc = run->failed;

    text_end(&run->result);
    if (run->args.json)
        rc |= json_write(&run->result, run->args.json);
    if (run->args.plot)
        rc |= plot_write(&run->result, run->args.plot);
    return rc | is_below_gate(run);
}

/* Flush stdout, since a full disk may only be noticed now. */
static int finish(int status)
{
    if (!ferror(stdout) && !fclose(stdout))
        return status;
    say("cannot write the output: %s; make room or write elsewhere",
        strerror(errno ? errno : EIO));
    return 1;
}

/* Return 1 if the file can be written at the end of the run.  The file is not changed
 * now. */
static int try_place(const char *path, const char *option)
{
    int is_new, fd;

    if (!path)
        return 0;
    is_new = access(path, F_OK) != 0;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return say("cannot write %s: %s; choose another %s", path,
                   strerror(errno), option);
    close(fd);
    if (is_new)
        unlink(path);
    return 0;
}

static int find_all(struct run *run)
{
    if (try_place(run->args.json, "--json") ||
        try_place(run->args.plot, "--plot"))
        return 1;
    for (int f = 0; f < N_FORMS; f++)
        form_find(&forms[f], &run->args, &run->result.places[f]);
    if (run->result.places[0].why[0])
        return say("%s", run->result.places[0].why);
    list_cells(run);
    return run->result.cells ? 0 : say("not enough memory");
}

int main(int argc, char **argv)
{
    static struct run run;
    int status;

    if (args_read(argc, argv, &run.args, &status))
        return finish(status);
    run.begin = now_seconds();
    run.result.args = &run.args;
    machine_read(&run.result.machine);
    if (run.args.on_gpu && limits_find_gpu(&run.result.n_gpus, run.result.gpu))
        return 1;
    if (find_all(&run) || make_folder(&run))
        return 1;
    catch_signals();
    if (run.args.hosts.n && hosts_up(&run.args.hosts)) {
        remove_folder(&run);
        return 1;
    }
    text_head(&run.result);
    measure_all(&run);
    hosts_down(&run.args.hosts);
    remove_folder(&run);
    if (!caught)
        status = report(&run);
    free(run.result.cells);
    if (caught) {
        signal(caught, SIG_DFL);
        raise(caught);
    }
    return finish(status);
}
