/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_elastic.c - a job that outlives its ranks (--min-np).
 *
 * A rank that dies does not end the job while enough others live.  Newcomers take the
 * places of dead ranks, --max-restarts in all.  A newcomer has its place's number for
 * its output and LOCAL_RANK, but it is no rank yet: it waits in the lobby until the ranks
 * let it in.  No newcomer is started once a rank has ended with success, as the job is
 * about to end then.
 */
#include "tools/collrun_job.h"
#include "tools/collrun_lobby.h"

#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>

/* How many processes of each kind there are. */
struct census {
    int n_members; /* ranks that live */
    int n_waiting; /* newcomers that live and are no ranks yet */
    int n_vacant;  /* places of dead ranks */
    int n_done;    /* ranks that have ended with success */
};

/* A newcomer whose group could not be made may have come back to the lobby. */
static int is_waiting(const struct job *job, const struct rank *rank)
{
    return rank->is_waiting ||
           (rank->newcomer && lobby_has(job->lobby, rank->newcomer));
}

static struct census count(const struct job *job)
{
    struct census c = {0};

    for (int r = 0; r < job->n; r++) {
        const struct rank *rank = &job->ranks[r];

        if (!rank->has_ended)
            *(is_waiting(job, rank) ? &c.n_waiting : &c.n_members) += 1;
        else if (rank->how)
            c.n_vacant++;
        else
            c.n_done += !rank->is_waiting;
    }
    return c;
}

/* Return how many newcomers may still be started. */
static int n_to_come(const struct job *job, const struct census *c)
{
    int n_left = job->restarts.most - job->restarts.n,
        n_free = job->options->max_np - c->n_members - c->n_waiting,
        n = c->n_vacant < n_left ? c->n_vacant : n_left;

    if (n > n_free)
        n = n_free;
    return c->n_done || n < 0 ? 0 : n;
}

/* What a dead rank has started would hold its GPU or its ports. */
static void kill_left(const struct job *job, int r)
{
    const struct rank *rank = &job->ranks[r];

    if (rank->newcomer)
        tree_kill_where(job->mark, "COLLRUN_NEWCOMER", rank->newcomer);
    else
        tree_kill_where(job->mark, "COLL_RANK", job->first + r);
}

int elastic_goes_on(struct job *job)
{
    struct census c = count(job);
    int n_to = n_to_come(job, &c), n_living = c.n_members + c.n_waiting;

    for (int r = 0; r < job->n; r++)
        if (job->ranks[r].has_ended && job->ranks[r].pid > 0 &&
            job->ranks[r].how)
            kill_left(job, r);
    if (!c.n_members && !c.n_done)
        complain("the job ends: no rank is left%s",
                 n_living ? ", only newcomers" : "");
    else if (n_living + n_to + c.n_done < job->options->min_np)
        complain("the job ends: the ranks left are %d, fewer than --min-np %d "
                 "(%d of %d restarts used)",
                 n_living + c.n_done, job->options->min_np, job->restarts.n,
                 job->restarts.most);
    else
        return 1;
    return 0;
}

int elastic_is_over(const struct job *job)
{
    struct census c = count(job);

    return !c.n_members && c.n_waiting;
}

/* Has all that a dead rank has printed been passed on? */
static int is_quiet(const struct job *job, int r)
{
    struct pollfd fds[2] = {{.fd = -1}, {.fd = -1}};

    for (int i = 0; i < 2 && 2 * r + i < job->n_streams; i++)
        fds[i] =
            (struct pollfd){.fd = job->streams[2 * r + i].fd, .events = POLLIN};
    return poll(fds, 2, 0) <= 0;
}

int elastic_start(struct job *job)
{
    struct census c = count(job);
    int n = n_to_come(job, &c);

    for (int r = 0; r < job->n && n > 0; r++) {
        const struct rank *rank = &job->ranks[r];

        if (!rank->has_ended || !rank->how || !rank->is_told ||
            !is_quiet(job, r))
            continue;
        job->restarts.n++;
        n--;
        if (job_start_newcomer(job, r))
            return -1;
        complain("a newcomer (pid %d) takes the place of rank %d (restart %d "
                 "of %d)",
                 (int)rank->pid, job->first + r, job->restarts.n,
                 job->restarts.most);
    }
    return 0;
}

void elastic_hear(struct job *job)
{
    int newcomer;

    while (lobby_hear(job->lobby, &newcomer))
        for (int r = 0; r < job->n; r++)
            if (job->ranks[r].newcomer == newcomer)
                job->ranks[r].is_waiting = 0;
}
