/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_job.h - the ranks on this machine, for collrun_job.c and _start.c. */
#ifndef COLL_TOOLS_COLLRUN_JOB_H
#define COLL_TOOLS_COLLRUN_JOB_H

#include "tools/collrun.h"
#include "tools/collrun_tree.h"

#include <poll.h>
#include <signal.h>

struct rank {
    pid_t pid; /* -1 once it has been reaped */
    int how;   /* waitpid()'s status */
    int has_ended;
    int is_told; /* the other ranks know that it has ended */
};

struct nodes;

/* The signal state that collrun was started with, and restores for the ranks. */
struct inherited {
    sigset_t mask;
    struct sigaction child, pipe; /* of SIGCHLD, SIGPIPE */
};

/* The ranks that have ended, for the ranks that wait for them. */
struct ended {
    int fd;        /* a file of them, or -1 */
    char name[64]; /* by which the ranks find it; "" if there is none */
    double look;   /* when to look for processes of theirs again, or 0 */
    double pause;  /* and how long after that */
};

/* The process that ends the ranks when collrun is killed. */
struct guard {
    pid_t pid; /* 0 for none; -1: it was killed */
    int fd;    /* closes when we end */
};

struct restarts {
    int n, most;
    int has_failed; /* a rank has failed, so the job may be restarted */
};

struct job {
    int n, n_alive, n_streams; /* ranks on this machine, and their streams */
    int first, size;           /* the first rank here, and the number of all ranks */
    struct nodes *nodes;       /* other machines' collruns, or NULL */
    struct rank *ranks;     /* [n] */
    struct stream *streams; /* [2 n], none for a single rank */
    struct pollfd *fds;     /* [2 n + 1 + nodes], scratch */
    char mark[TREE_MARK]; /* marks the job's processes */
    struct guard guard;
    int signals;          /* signalfd */
    int is_idle;          /* nothing came in the last turn */
    const struct inherited *inherited;

    enum { RUNNING, ENDING, TERMINATED } end;
    int status;      /* to exit with */
    double next;     /* when to take the next step of ending */
    double deadline; /* of --timeout, or 0 */
    double timeout;
    const char *run_id; /* the run's name, the same after a restart */
    struct restarts restarts;
    int is_told;    /* the other nodes know that it ends */
    struct ended ended;
};

/* Start every rank; 0, or the exit status (nothing runs then). */
int job_start(struct job *job, const struct options *options);

/* End whatever is left of the job. */
void job_clean(struct job *job);

/* ---- ranks that have ended, for the ranks that wait for them --------------- */

void ended_open(struct job *job);
void ended_close(struct job *job);

/* The process of a rank has ended: look soon whether it has left others. */
void ended_notice(struct job *job);

/* Look for processes of ranks that have ended, and tell of the ranks without one. */
void ended_look(struct job *job);

/* No process of the job is left: tell other nodes of all ranks that they do not know. */
void ended_all(struct job *job);

/* Tell the ranks here of n ranks, from `first` on; how: waitpid()'s status. */
void ended_write(const struct job *job, int first, int n, int how);

#endif
