/* SPDX-License-Identifier: BSD-3-Clause */
/* host_probe.c MODE - a rank for the tests among hosts.
 *
 *   idle   join, then wait until the communicator fails, without a word
 *   busy   join, then reduce until that fails
 *   late   join, wait for the file CUT, then as busy: its connections are made only
 *          then
 *          (all of them then end it, which a lost host must not hold up)
 *   work   join, then reduce this and that, with the sums looked at, until the file
 *          CUT.end is there; tells how many a second, before CUT was there and after
 *   split  join, reduce, dup, split, reduce in each
 *   meet   join, wait for the file CUT, then as split
 *
 * Says "up" when all have joined, then what came of it: for a failure its
 * status, the seconds since the file CUT was written, and the sentence.
 */
#include "include/coll/coll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int rank = -1;

static int report(const char *what, int status)
{
    const char *path = getenv("CUT");
    struct timespec now;
    struct stat st;
    double since = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    if (path && !stat(path, &st))
        since = (double)(now.tv_sec - st.st_mtim.tv_sec) +
                (double)(now.tv_nsec - st.st_mtim.tv_nsec) * 1e-9;
    printf("rank %d: %s: status %d after %.1f s: %s\n", rank, what, status,
           since, coll_last_error());
    fflush(stdout);
    return EXIT_FAILURE;
}

static int end(struct coll_comm *comm, const char *what, int status)
{
    report(what, status);
    coll_comm_destroy(comm);
    return report("end", status);
}

static int idle(struct coll_comm *comm)
{
    int status;

    while (!(status = coll_comm_async_error(comm)))
        usleep(10000);
    coll_barrier(comm, NULL); /* says why */
    return end(comm, "idle", status);
}

static int busy(struct coll_comm *comm, const char *what)
{
    int one = 1, sum, status;

    while (!(status =
                 coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL)))
        usleep(1000);
    return end(comm, what, status);
}

static void await_cut(void)
{
    while (access(getenv("CUT"), F_OK))
        usleep(10000);
}

static int late(struct coll_comm *comm)
{
    await_cut();
    return busy(comm, "late");
}

/* Rank 0 says in the first element how far the test is. */
static int phase_now(void)
{
    char end[512];

    snprintf(end, sizeof(end), "%s.end", getenv("CUT"));
    return rank ? 0 : !access(end, F_OK) ? 2 : !access(getenv("CUT"), F_OK);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define MOST (1 << 18) /* elements */

/* Reduce so many elements; the phase, or -1 and *status. */
static int reduce(struct coll_comm *comm, int n, int *status, unsigned *n_wrong)
{
    static int in[MOST], out[MOST];
    int size = coll_comm_size(comm);

    in[0] = phase_now();
    for (int i = 1; i < n; i++)
        in[i] = i + rank;
    *status =
        coll_allreduce(in, out, (size_t)n, COLL_I32, COLL_SUM, comm, NULL);
    if (*status)
        return -1;
    for (int i = 1; i < n; i++)
        *n_wrong += out[i] != i * size + size * (size - 1) / 2;
    return out[0];
}

static int work(struct coll_comm *comm)
{
    static const int counts[] = {2, 300, MOST, 2, 17, 20000};
    double began[3] = {seconds(), 0, 0};
    unsigned n[3] = {0}, n_wrong = 0;
    int status, phase = 0;

    for (int i = 0; phase < 2; i++) {
        int then = reduce(comm, counts[i % 6], &status, &n_wrong);

        if (then < 0)
            return end(comm, "work", status);
        if (then > phase)
            began[then] = seconds();
        phase = then;
        n[phase]++;
    }
    printf("rank %d: work: %.0f a second, then %.0f, %u wrong\n", rank,
           n[0] / (began[1] - began[0]), n[1] / (began[2] - began[1]), n_wrong);
    return n_wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int sum_is_right(struct coll_comm *comm)
{
    int one = 1, sum = 0;

    return !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL) &&
           sum == coll_comm_size(comm);
}

static int split(struct coll_comm *comm)
{
    struct coll_comm *dup, *half;

    if (!sum_is_right(comm) || coll_comm_dup(comm, &dup) ||
        !sum_is_right(dup) || coll_comm_split(dup, rank % 2, 0, &half) ||
        !sum_is_right(half) || coll_comm_destroy(half) ||
        coll_comm_destroy(dup))
        return report("split", -1);
    printf("rank %d: all is well\n", rank);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct coll_comm *comm;
    int status = coll_comm_create_env(&comm, NULL);

    if (status)
        return report("join", status);
    rank = coll_comm_rank(comm);
    printf("rank %d: up\n", rank);
    fflush(stdout);
    if (argc > 1 && !strcmp(argv[1], "idle"))
        return idle(comm);
    if (argc > 1 && !strcmp(argv[1], "busy"))
        return busy(comm, "busy");
    if (argc > 1 && !strcmp(argv[1], "late"))
        return late(comm);
    if (argc > 1 && !strcmp(argv[1], "meet"))
        await_cut();
    status = argc > 1 && !strcmp(argv[1], "work") ? work(comm) : split(comm);
    if (coll_comm_destroy(comm))
        return report("destroy", -1);
    return status;
}
