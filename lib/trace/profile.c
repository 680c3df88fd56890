/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.c - COLL_PROFILE: a table of a rank's operations, as mpitrace lays it
 * out: each collective, then each of them by size.
 *
 * The time of an operation goes from its start to its end.  For operations that run
 * while their caller computes, the exposed time is the time that the caller waited.
 */
#include "lib/trace/trace.h"
#include "lib/util/text.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CLASSES 65 /* of sizes: 0, 1, 2 to 3, 4 to 7, ... bytes */
#define WORD 32

struct cell {
    unsigned long long calls, bytes;
    double seconds;
    char algorithm[WORD]; /* of the last call; or "several" */
};

/* Under trace.c's lock. */
static struct {
    int fd, rank, n_ranks;
    double start, exposed, late; /* s; late: to all n_joint calls together */
    uint64_t n_joint;
    char transports[64];
    struct cell cells[COLL_N_COLLECTIVES][CLASSES];
} profile;

int coll__profile_open(const char *path, int rank, int n_ranks)
{
    profile.fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    profile.rank = rank;
    profile.n_ranks = n_ranks;
    profile.start = coll__now();
    return profile.fd < 0 ? -1 : 0;
}

static int class_of(size_t bytes)
{
    return bytes ? 64 - __builtin_clzll(bytes) : 0;
}

void coll__profile_note(const struct coll__traced *op)
{
    struct cell *cell = &profile.cells[op->collective][class_of(op->bytes)];

    if (!cell->calls)
        snprintf(cell->algorithm, WORD, "%.31s", op->algorithm);
    else if (strncmp(cell->algorithm, op->algorithm, WORD - 1))
        snprintf(cell->algorithm, WORD, "several");
    cell->calls++;
    cell->bytes += op->bytes;
    cell->seconds += op->ended - op->called;
    if (!profile.transports[0])
        snprintf(profile.transports, sizeof(profile.transports), "%s",
                 op->transports);
}

void coll__profile_waited(double seconds) { profile.exposed += seconds; }

void coll__profile_late(double seconds, uint64_t n)
{
    profile.late += seconds;
    profile.n_joint += n;
}

/* ---- the table ---------------------------------------------------------------- */

/* Return how many bytes cross the links for each byte of the call, as nccl-tests count
 * (bus bandwidth); this makes collectives comparable. */
static double bus_factor(enum coll_collective collective)
{
    double p = profile.n_ranks;

    switch (collective) {
    case COLL_ALLREDUCE:
        return 2 * (p - 1) / p;
    case COLL_REDUCE_SCATTER:
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
    case COLL_GATHER:
    case COLL_SCATTER:
        return p - 1;
    default:
        return 1;
    }
}

static struct cell sum_of(int collective)
{
    struct cell all = {.calls = 0};

    for (int i = 0; i < CLASSES; i++) {
        all.calls += profile.cells[collective][i].calls;
        all.bytes += profile.cells[collective][i].bytes;
        all.seconds += profile.cells[collective][i].seconds;
    }
    return all;
}

static double average(const struct cell *cell)
{
    return cell->calls ? (double)cell->bytes / (double)cell->calls : 0;
}

static void print_name(FILE *to, int collective)
{
    char name[WORD];

    snprintf(name, sizeof(name), "coll_%s",
             coll_collective_name((enum coll_collective)collective));
    fprintf(to, "%-26s", name);
}

static const char rule[] =
    "-----------------------------------------------------------------------";

static void print_summary(FILE *to)
{
    double total = 0;

    fprintf(to,
            "libcoll %s, rank %d of %d\n%s\n"
            "Collective                         #calls     avg. bytes      "
            "time(sec)\n%s\n",
            coll_version(), profile.rank, profile.n_ranks, rule, rule);
    for (int c = 0; c < COLL_N_COLLECTIVES; c++) {
        struct cell all = sum_of(c);

        total += all.seconds;
        if (!all.calls)
            continue;
        print_name(to, c);
        fprintf(to, "%15llu%15.1f%15.6f\n", all.calls, average(&all),
                all.seconds);
    }
    fprintf(to,
            "%s\ntotal communication time = %.6f seconds.   (exposed = %.6f)\n"
            "total elapsed time       = %.6f seconds.\n",
            rule, total, profile.exposed, coll__now() - profile.start);
    if (profile.n_joint)
        fprintf(to, "average lateness         = %.6f seconds.\n",
                profile.late / (double)profile.n_joint);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void print_usage(FILE *to)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    fprintf(to,
            "user cpu time            = %.6f seconds.\n"
            "system time              = %.6f seconds.\n"
            "max resident set size    = %.3f MiB.\n",
            seconds(usage.ru_utime), seconds(usage.ru_stime),
            (double)usage.ru_maxrss / 1024);
}

static void print_sizes(FILE *to, int collective)
{
    double factor = bus_factor((enum coll_collective)collective);

    putc('\n', to);
    print_name(to, collective);
    fputs("         #calls     avg. bytes      time(sec)   busbw(GB/s)   "
          "algorithm   transport\n",
          to);
    for (int i = 0; i < CLASSES; i++) {
        const struct cell *cell = &profile.cells[collective][i];
        double moved = factor * (double)cell->bytes;

        if (cell->calls)
            fprintf(to, "%26s%15llu%15.1f%15.6f%14.3f   %-11s %s\n", "",
                    cell->calls, average(cell), cell->seconds,
                    cell->seconds > 0 ? moved / cell->seconds / 1e9 : 0,
                    cell->algorithm, profile.transports);
    }
}

static void print_tables(FILE *to)
{
    locale_t before = coll__points();

    print_summary(to);
    print_usage(to);
    for (int c = 0; c < COLL_N_COLLECTIVES; c++)
        if (sum_of(c).calls)
            print_sizes(to, c);
    coll__points_end(before);
}

int coll__profile_write(void)
{
    FILE *to = fdopen(dup(profile.fd), "w");
    int err = errno;

    if (!to)
        return -1;
    rewind(to);
    if (ftruncate(profile.fd, 0) && errno != EINVAL) { /* EINVAL: no file */
        err = errno;
        fclose(to);
        errno = err;
        return -1;
    }
    print_tables(to);
    errno = 0;
    if (fflush(to) || ferror(to))
        err = errno ? errno : EIO;
    else
        err = 0;
    fclose(to);
    errno = err;
    return err ? -1 : 0;
}
