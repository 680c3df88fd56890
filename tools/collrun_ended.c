/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_ended.c - tell the ranks which of them have ended.
 *
 * If a rank ends before it joins, the others would wait for it until their deadline.  So
 * every rank inherits a memory file, to which collrun appends the ranks that have ended.
 * The rendezvous reads it (lib/boot/ended.c).
 *
 * A rank may have left its program in the background.  So a rank counts as ended once
 * none of its processes is left, which a search through /proc shows.  Most ranks of a job
 * end at the same time, so collrun waits a moment before it searches.  In this time, a
 * rank that has failed can also tell the others why.
 */
#include "tools/collrun_job.h"
#include "tools/collrun_nodes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PAUSE                                                            \
    0.5 /* s, from a rank's end to the search for its processes */
#define LAST_PAUSE 8.0 /* s, between two searches */

/* One entry of the file. */
struct record {
    int32_t rank, how; /* waitpid()'s status */
};

void ended_open(struct job *job)
{
    struct stat st;

    job->ended.name[0] = '\0';
    job->ended.fd = memfd_create("ended", MFD_CLOEXEC);
    if (job->ended.fd < 0 || fstat(job->ended.fd, &st))
        return; /* the ranks learn it at their deadline */
    snprintf(job->ended.name, sizeof(job->ended.name), "%d:%llu:%llu",
             job->ended.fd, (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
}

void ended_close(struct job *job)
{
    if (job->ended.fd >= 0)
        close(job->ended.fd);
    job->ended.fd = -1;
}

/* The ranks share the file's position: write at the end. */
void ended_write(const struct job *job, int first, int n, int how)
{
    for (int r = first; job->ended.fd >= 0 && r < first + n; r++) {
        struct record record = {r, how};
        struct stat st;

        if (fstat(job->ended.fd, &st) ||
            pwrite(job->ended.fd, &record, sizeof(record), st.st_size) < 0)
            return;
    }
}

/* Tell the ranks here, and the nodes that need to know, of n ranks in a row. */
static void tell(struct job *job, int first, int n)
{
    int how = job->ranks[first].how;

    for (int r = first; r < first + n; r++)
        job->ranks[r].is_told = 1;
    ended_write(job, job->first + first, n, how);
    if (job->nodes)
        nodes_ended(job->nodes, job->first + first, n, how);
}

/* Tell of the ranks that have ended, except those with is_left[rank]; NULL: none. */
static int tell_all(struct job *job, const char *is_left)
{
    int n_left = 0;

    for (int r = 0, n; r < job->n; r += n) {
        for (n = 0; r + n < job->n; n++) {
            const struct rank *rank = &job->ranks[r + n];

            if (!rank->has_ended || rank->is_told ||
                rank->how != job->ranks[r].how || (is_left && is_left[r + n]))
                break;
        }
        if (n)
            tell(job, r, n);
        else
            n_left += job->ranks[r].has_ended && !job->ranks[r].is_told;
        n += !n;
    }
    return n_left;
}

void ended_notice(struct job *job)
{
    double soon = now() + FIRST_PAUSE;

    job->ended.pause = FIRST_PAUSE;
    if (job->ended.look <= 0 || job->ended.look > soon)
        job->ended.look = soon;
}

void ended_look(struct job *job)
{
    char *is_left = calloc((size_t)job->n, 1);

    if (is_left)
        tree_find(job->mark, "COLL_RANK", job->first, job->n, is_left);
    job->ended.look =
        !is_left || tell_all(job, is_left) ? now() + job->ended.pause : 0;
    if (job->ended.pause < LAST_PAUSE)
        job->ended.pause *= 2;
    free(is_left);
}

void ended_all(struct job *job) { tell_all(job, NULL); }
