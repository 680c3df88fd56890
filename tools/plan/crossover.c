/* SPDX-License-Identifier: BSD-3-Clause */
/* crossover.c - each algorithm's time from 8 B to 1 GiB, as a picture.
 *
 * gnuplot draws, as a child process: it reads its script and the numbers from a
 * pipe and writes the SVG to its standard output, which is a memory file.  This is
 * copied to the file at the end, since gnuplot does not report a full disk.
 */
#include "tools/plan/tool.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_SIZES = 28 }; /* 8 B << 27 = 1 GiB */
#define MAX_STEPS 1e5 /* messages of a simulation that is still quick */
#define MAX_SECONDS 5 /* for all simulations */

struct curve {
    const struct coll__algo *algo;
    double predicted[N_SIZES], simulated[N_SIZES]; /* s; 0: none */
    int has_simulated;
};

struct plot {
    const struct job *job;
    struct machine machine;
    struct curve curves[MAX_ALGOS];
    int n_curves;
    double begin;
};

/* ---- the numbers ---------------------------------------------------------- */

static struct curve *curve_of(struct plot *plot, const struct coll__algo *algo)
{
    for (int i = 0; i < plot->n_curves; i++)
        if (plot->curves[i].algo == algo)
            return &plot->curves[i];
    plot->curves[plot->n_curves].algo = algo;
    return &plot->curves[plot->n_curves++];
}

/* Is a simulation cheap?  With about log p messages a rank, or with few ranks. */
static void simulate_point(struct plot *plot, struct curve *curve, int s,
                           const struct coll__problem *pb)
{
    double p = pb->nranks, pieces = 1 + (double)coll__problem_bytes(pb) /
                                            (double)max_size(plot->job->chunk,
                                                             4096);
    struct coll__sim_result result;

    if (!plot->machine.fabric || pb->in_counts || pb->out_counts ||
        p * (p + pieces) > MAX_STEPS ||
        coll__now() - plot->begin > MAX_SECONDS ||
        coll__sim_run(curve->algo, pb, plot->machine.fabric,
                      plot->job->placement, &result))
        return;
    curve->simulated[s] = result.seconds;
    curve->has_simulated = 1;
}

static int compute_size(struct plot *plot, int s)
{
    struct coll__candidate list[MAX_ALGOS];
    struct job job = *plot->job;
    struct cast cast;
    int rc, n;

    job.bytes = (size_t)8 << s;
    rc = cast_init(&cast, &job, &plot->machine);
    if (rc)
        return rc;
    n = candidates(&job, &cast.pbs[0], list);
    for (int i = 0; i < n && !list[i].refusal; i++) {
        struct curve *curve = curve_of(plot, list[i].algo);

        curve->predicted[s] = list[i].seconds;
        simulate_point(plot, curve, s, &cast.pbs[0]);
    }
    cast_fini(&cast);
    return 0;
}

/* ---- the picture ---------------------------------------------------------- */

/* Escape underscores, with which gnuplot makes subscripts. */
static void write_name(const char *name, FILE *to)
{
    for (; *name; name++)
        if ((unsigned char)*name >= ' ' && !strchr("\"\\`", *name))
            fputc(*name == '_' ? ' ' : *name, to);
}

static void write_points(const double *seconds, FILE *to)
{
    for (int s = 0; s < N_SIZES; s++)
        if (seconds[s] > 0)
            fprintf(to, "%.0f %.9g\n", (double)((size_t)8 << s),
                    seconds[s] * 1e6);
    fputs("e\n", to);
}

static void write_script(const struct plot *plot, FILE *to)
{
    const char *separator = "plot ";

    fputs("set terminal svg size 960,640 dynamic background 'white'\n"
          "set logscale xy\nset logscale x 2\nset key outside right noenhanced\n"
          "set xlabel 'bytes'\nset ylabel 'time, us'\nset grid\n"
          "set format x '%.0b %B'\nset title noenhanced \"", to);
    fprintf(to, "%s over %d ranks, ",
            coll_collective_name(plot->job->collective), plot->job->ranks);
    write_name(plot->machine.what, to);
    fputs("\"\n", to);
    for (int i = 0; i < plot->n_curves; i++) {
        fprintf(to, "%s'-' with lines lc %d title \"", separator, i + 1);
        write_name(plot->curves[i].algo->name, to);
        fputc('"', to);
        separator = ", ";
        if (plot->curves[i].has_simulated)
            fprintf(to, ", '-' with points lc %d pt 7 ps 0.4 notitle", i + 1);
    }
    fputc('\n', to);
    for (int i = 0; i < plot->n_curves; i++) {
        write_points(plot->curves[i].predicted, to);
        if (plot->curves[i].has_simulated)
            write_points(plot->curves[i].simulated, to);
    }
}

/* Start gnuplot with its output to svg; *to is the writing end of its input pipe. */
static int start_gnuplot(int svg, pid_t *pid, FILE **to)
{
    static char name[] = "gnuplot";
    char *argv[] = {name, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], err;

    if (pipe2(ends, O_CLOEXEC))
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, svg, STDOUT_FILENO);
    err = posix_spawnp(pid, name, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    *to = err ? NULL : fdopen(ends[1], "w");
    if (!*to)
        close(ends[1]);
    return err;
}

static int draw_with_gnuplot(const struct plot *plot, int svg)
{
    int err, status;
    FILE *to = NULL;
    pid_t pid;

    signal(SIGPIPE, SIG_IGN); /* gnuplot may give up early */
    err = start_gnuplot(svg, &pid, &to);
    if (err == ENOENT)
        return say(1, "gnuplot was not found; install it (Debian: apt-get "
                   "install gnuplot-nox)");
    if (err)
        return say(1, "cannot start gnuplot: %s", strerror(err));
    if (to) {
        write_script(plot, to);
        fclose(to);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return to && WIFEXITED(status) && !WEXITSTATUS(status)
               ? 0
               : say(1, "gnuplot failed; its own words are above");
}

/* Copy everything that `from` holds; 0 or an errno. */
static int copy_file(int from, int to)
{
    char piece[65536];
    off_t offset = 0;
    ssize_t n;

    while ((n = pread(from, piece, sizeof(piece), offset)) > 0) {
        n = write(to, piece, (size_t)n);
        if (n < 0)
            break;
        offset += n;
    }
    return n ? errno : 0;
}

/* Write the picture; after an error, remove a regular file. */
static int save(const char *path, int picture)
{
    int svg = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), err;
    struct stat st;

    err = svg < 0 ? errno : copy_file(picture, svg);
    if (svg >= 0 && close(svg) && !err)
        err = errno;
    if (!err)
        return 0;
    if (svg >= 0 && !stat(path, &st) && S_ISREG(st.st_mode))
        unlink(path);
    return say(1, "cannot write %s: %s", path, strerror(err));
}

static int draw_plot(const struct plot *plot)
{
    int picture = memfd_create("svg", MFD_CLOEXEC), rc;

    if (picture < 0)
        return say(1, "no memory for the picture: %s", strerror(errno));
    rc = draw_with_gnuplot(plot, picture);
    if (!rc)
        rc = save(plot->job->svg, picture);
    close(picture);
    return rc;
}

/* List the sizes at which another algorithm becomes the best. */
static void print_crossovers(const struct plot *plot)
{
    const struct curve *last = NULL;
    char size[24];

    for (int s = 0; s < N_SIZES; s++) {
        const struct curve *best = NULL;

        for (int i = 0; i < plot->n_curves; i++)
            if (plot->curves[i].predicted[s] > 0 &&
                (!best ||
                 plot->curves[i].predicted[s] < best->predicted[s]))
                best = &plot->curves[i];
        if (best && best != last)
            printf("from %-8s %s\n", bytes_text((size_t)8 << s, size),
                   best->algo->name);
        last = best ? best : last;
    }
}

int crossover(const struct job *job)
{
    static struct plot plot; /* too large for the stack */
    int rc;

    plot.job = job;
    plot.begin = coll__now();
    rc = machine_init(&plot.machine, job, job->ranks);
    if (rc)
        return rc;
    for (int s = 0; s < N_SIZES && !rc; s++)
        rc = compute_size(&plot, s);
    if (!rc && !plot.n_curves)
        rc = say_none(job);
    if (!rc)
        rc = draw_plot(&plot);
    if (!rc)
        print_crossovers(&plot);
    machine_fini(&plot.machine);
    return rc;
}
