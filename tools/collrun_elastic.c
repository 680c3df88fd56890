/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_elastic.c - a job that outlives its ranks (--min-np).
 *
 * A rank that dies does not end the job while enough others live.  Newcomers take the
 * places of dead ranks, --max-restarts in all.  A newcomer has its place's number for
 * its output and LOCAL_RANK, but it is no rank yet: it waits in the lobby until the ranks
 * let it in.  No newcomer is started once a rank has ended with success, as the job is
 * about to end then.
 *
 * Node 0 keeps a table of all places of the job, and decides.
 */
#include "tools/collrun_job.h"
#include "tools/collrun_lobby.h"
#include "tools/collrun_nodes.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A place for one process at a time. */
struct place {
    int node;
    int newcomer; /* its process's number among the newcomers; 0: it is none */
    enum {
        MEMBER,  /* a rank lives here */
        WAITING, /* a newcomer, which is no rank yet */
        FRESH,   /* nobody was here yet */
        VACANT,  /* a process has failed; another one may be started */
        DONE,    /* a rank has ended with success */
        CLOSED   /* nobody is here, and nobody will be */
    } state;
};

struct elastic {
    struct lobby *lobby;
    int n, n_newcomers;
    struct place *places; /* [n] */
    int how;              /* of the failure that counts for the exit status */
    int is_new;           /* a process has ended since the last judgement */
};

int elastic_open(struct job *job, int listen_fd)
{
    struct elastic *e = calloc(1, sizeof(*e));

    job->elastic = e;
    if (e)
        e->places = calloc((size_t)job->size, sizeof(*e->places));
    if (!e || !e->places) {
        complain("out of memory");
        close(listen_fd);
        return -1;
    }
    e->n = job->size;
    for (int i = 0; job->nodes && i < job->nodes->n_nodes; i++)
        for (int p = 0; p < job->nodes->seats[i].n; p++)
            e->places[job->nodes->seats[i].first + p].node = i;
    e->lobby = lobby_open(listen_fd, job->setting.secret);
    return e->lobby ? 0 : -1;
}

void elastic_close(struct job *job)
{
    if (!job->elastic)
        return;
    lobby_close(job->elastic->lobby);
    free(job->elastic->places);
    free(job->elastic);
    job->elastic = NULL;
}

int elastic_fd(const struct elastic *e) { return lobby_fd(e->lobby); }

int elastic_add(struct elastic *e, int node, int first, int n)
{
    int end = first + n > e->n ? first + n : e->n;
    struct place *places = realloc(e->places, (size_t)end * sizeof(*places));

    if (!places) {
        complain("out of memory");
        return -1;
    }
    e->places = places;
    for (int i = e->n; i < end; i++) /* another new node's, if not this one's */
        places[i] = (struct place){.state = CLOSED};
    for (int i = first; i < first + n; i++)
        places[i] = (struct place){.node = node, .state = FRESH};
    e->n = end;
    return 0;
}

/* ---- what has happened ----------------------------------------------------- */

void elastic_hear(struct elastic *e)
{
    int newcomer;

    while (lobby_hear(e->lobby, &newcomer))
        for (int p = 0; p < e->n; p++)
            if (e->places[p].newcomer == newcomer &&
                e->places[p].state == WAITING)
                e->places[p].state = MEMBER;
}

/* Of failures at one time, one by a signal counts: the others failed because of it. */
static void note_failure(struct elastic *e, int how)
{
    if (!e->is_new || !WIFSIGNALED(e->how) || WIFSIGNALED(how))
        e->how = how;
    e->is_new = 1;
}

void elastic_left(struct elastic *e, int place, int how)
{
    struct place *p = e->places + place;

    if (place < 0 || place >= e->n)
        return;
    if (p->state != MEMBER && p->state != WAITING)
        return; /* its node is done without already */
    if (how)
        note_failure(e, how);
    p->state = how ? VACANT : p->state == MEMBER ? DONE : CLOSED;
}

void elastic_lose(struct elastic *e, int node)
{
    for (int i = 0; i < e->n; i++) {
        struct place *p = &e->places[i];

        if (p->node != node || p->state == DONE)
            continue;
        if (p->state == MEMBER || p->state == WAITING)
            note_failure(e, W_EXITCODE(EXIT_FAILURE, 0));
        if (p->newcomer)
            lobby_forget(e->lobby, p->newcomer);
        p->state = CLOSED;
    }
}

/* ---- what to do about it --------------------------------------------------- */

/* How many places of each kind there are. */
struct census {
    int n_members; /* ranks that live */
    int n_waiting; /* newcomers that live and are no ranks yet */
    int n_vacant;  /* places of dead ranks */
    int n_fresh;   /* places where nobody was yet */
    int n_done;    /* ranks that have ended with success */
};

/* A newcomer whose group could not be made may have come back to the lobby. */
static int is_waiting(const struct elastic *e, const struct place *p)
{
    return p->state == WAITING || (p->state == MEMBER && p->newcomer &&
                                   lobby_has(e->lobby, p->newcomer));
}

/* May something be started on this place's host? */
static int is_open(const struct job *job, const struct place *p)
{
    return !job->nodes || !job->nodes->seats[p->node].is_unlisted;
}

static struct census count(const struct job *job)
{
    const struct elastic *e = job->elastic;
    struct census c = {0};

    for (int i = 0; i < e->n; i++) {
        const struct place *p = &e->places[i];

        c.n_waiting += is_waiting(e, p);
        c.n_members += p->state == MEMBER && !is_waiting(e, p);
        c.n_vacant += p->state == VACANT && is_open(job, p);
        c.n_fresh += p->state == FRESH && is_open(job, p);
        c.n_done += p->state == DONE;
    }
    return c;
}

/* Return how many newcomers may still be started. */
static int n_to_come(const struct job *job, const struct census *c)
{
    int n_left = job->restarts.most - job->restarts.n,
        n_free = job->restarts.max_np - c->n_members - c->n_waiting,
        n = c->n_fresh + (c->n_vacant < n_left ? c->n_vacant : n_left);

    if (n > n_free)
        n = n_free;
    return c->n_done || n < 0 ? 0 : n;
}

/* Are the ranks that are left enough?  If not, that is said. */
static int are_enough(const struct job *job, const struct census *c)
{
    int n_living = c->n_members + c->n_waiting;

    if (!c->n_members && !c->n_done)
        complain("the job ends: no rank is left%s",
                 n_living ? ", only newcomers" : "");
    else if (n_living + n_to_come(job, c) + c->n_done < job->restarts.min_np)
        complain("the job ends: the ranks left are %d, fewer than --min-np %d "
                 "(%d of %d restarts used)",
                 n_living + c->n_done, job->restarts.min_np, job->restarts.n,
                 job->restarts.most);
    else
        return 1;
    return 0;
}

/* Have a newcomer started in this place. */
static void fill(struct job *job, int place)
{
    struct elastic *e = job->elastic;
    struct place *p = &e->places[place];
    struct due due = {.newcomer = ++e->n_newcomers};

    if (p->state == VACANT)
        due.restart = ++job->restarts.n;
    p->newcomer = due.newcomer;
    p->state = WAITING;
    if (p->node)
        nodes_start(job->nodes, p->node, place, &due);
    else
        job->ranks[place - job->first].due = due;
}

/* Have up to *n newcomers started in places of this kind. */
static void fill_some(struct job *job, int state, int *n)
{
    struct elastic *e = job->elastic;

    for (int i = 0; i<e->n && * n> 0; i++) {
        const struct place *p = &e->places[i];

        if ((int)p->state != state || !is_open(job, p) ||
            (state == VACANT && job->restarts.n >= job->restarts.most))
            continue;
        fill(job, i);
        --*n;
    }
}

int elastic_judge(struct job *job, int *status)
{
    struct elastic *e = job->elastic;
    struct census c = count(job);
    int is_new = e->is_new, n = n_to_come(job, &c);

    e->is_new = 0;
    if (is_new && !are_enough(job, &c)) {
        *status =
            WIFSIGNALED(e->how) ? 128 + WTERMSIG(e->how) : WEXITSTATUS(e->how);
        return 1;
    }
    *status = EXIT_SUCCESS;
    if (!c.n_members) /* newcomers that still wait end with the last rank */
        return 1;
    fill_some(job, VACANT, &n); /* a rank is started again on its host */
    fill_some(job, FRESH, &n);
    return 0;
}

/* ---- on each node ---------------------------------------------------------- */

/* What a dead rank has started would hold its GPU or its ports. */
static void kill_left(const struct job *job, int r)
{
    const struct rank *rank = &job->ranks[r];

    if (rank->newcomer)
        tree_kill_where(job->mark, "COLLRUN_NEWCOMER", rank->newcomer);
    else
        tree_kill_where(job->mark, "COLL_RANK", job->first + r);
}

/* Tell node 0 that a process has ended. */
static void tell(struct job *job, int r)
{
    int place = job->first + r, how = job->ranks[r].how;

    if (job->elastic)
        elastic_left(job->elastic, place, how);
    else
        nodes_left(job->nodes, place, how);
}

void elastic_reap(struct job *job)
{
    for (int r = 0; r < job->n; r++) {
        const struct rank *rank = &job->ranks[r];

        if (!rank->has_ended || rank->pid < 0)
            continue;
        if (rank->how) {
            job_report(job, r);
            kill_left(job, r);
        }
        tell(job, r);
    }
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

void elastic_start(struct job *job)
{
    for (int r = 0; r < job->n; r++) {
        struct rank *rank = &job->ranks[r];
        int restart = rank->due.restart;

        if (!rank->due.newcomer || !rank->is_told || !is_quiet(job, r))
            continue;
        if (job_start_newcomer(job, r))
            tell(job, r);
        else if (!restart)
            complain("a newcomer (pid %d) takes the new place %d",
                     (int)rank->pid, job->first + r);
        else
            complain("a newcomer (pid %d) takes the place of rank %d (restart "
                     "%d of %d)",
                     (int)rank->pid, job->first + r, restart,
                     job->restarts.most);
    }
}
