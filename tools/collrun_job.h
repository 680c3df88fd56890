/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_job.h - the ranks on this machine, for collrun_job.c and _start.c. */
#ifndef COLL_TOOLS_COLLRUN_JOB_H
#define COLL_TOOLS_COLLRUN_JOB_H

#include "tools/collrun.h"
#include "tools/collrun_tree.h"

#include <poll.h>
#include <signal.h>

#define PLACE_RUN_ID 33 /* bytes of a run's name, with the 0 at its end */

struct rank {
    pid_t pid; /* -1 once it has been reaped */
    int how;   /* waitpid()'s status */
    int has_ended;
    int is_told; /* the other ranks know that it has ended */
    int newcomer; /* its number among the newcomers, from 1 on; 0: it is none */
    struct due {  /* a newcomer that is to take its place */
        int newcomer, restart; /* newcomer 0: none */
    } due;
};

struct nodes;
struct elastic;

/* collrun's signals, and what it was started with and restores for the ranks. */
struct signals {
    int fd; /* signalfd */
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
    int n, most;    /* of all ranks; or, with --min-np, of single ones */
    int has_failed; /* a rank has failed, so the job may be restarted */
    /* How many ranks may be left, and may live at a time; min_np 0: none may fail.
     * Nodes other than 0 know min_np only. */
    int min_np, max_np;
};

/* Scratch for what is waited for. */
struct polled {
    struct pollfd *fds; /* [most] */
    int most;
};

/* What every rank is told. */
struct setting {
    pid_t parent;  /* of the ranks: this process */
    int root_fd;   /* listens at root; for rank 0 */
    int report_fd; /* where a new process says why it cannot run, or -1 */
    int port;      /* a port that was free, for programs that use MASTER_PORT */
    char host[256], root[300], secret[65];
    char run_id[PLACE_RUN_ID]; /* the run's name, the same after a restart */
    char lobby[300];           /* the lobby's address; "" if there is none */
};

struct job {
    const struct options *options;
    struct setting setting;
    int n, n_alive, n_streams; /* ranks on this machine, and their streams */
    int first, size;           /* the first rank here, and the number of all ranks */
    struct nodes *nodes;       /* other machines' collruns, or NULL */
    struct rank *ranks;     /* [n] */
    struct stream *streams; /* [2 n], none for a single rank */
    struct polled polled;
    char mark[TREE_MARK]; /* marks the job's processes */
    struct guard guard;
    struct signals signals;
    int is_idle;          /* nothing came in the last turn */
    int is_over;          /* no rank lives here, and none will */

    enum { RUNNING, ENDING, TERMINATED } end;
    int status;      /* to exit with */
    double next;     /* when to take the next step of ending */
    double deadline; /* of --timeout, or 0 */
    struct restarts restarts;
    struct elastic *elastic; /* with --min-np, where it is decided; else NULL */
    struct ended ended;
};

/* Find the name of the run: the user's, or a new unique one.  All nodes need the same
 * name. */
void place_name_run(const struct options *options, char name[PLACE_RUN_ID]);

/* Take the signals of a job.  The batch system sends SIGUSR1 when time runs out, so that
 * ranks save and exit. */
void signals_take(struct signals *signals);

/* In a new rank: set its signals.  A SIGUSR2 that comes before libcoll handles it must not
 * end the rank. */
void signals_give_back(const struct signals *signals);

/* Meet the other nodes, if any, and learn which ranks to start here; 0, or the exit
 * status. */
int place_find(struct job *job, const struct options *options);

/* Start every rank; 0, or the exit status (nothing runs then). */
int job_start(struct job *job, const struct options *options);

/* Start the newcomer that is due in the place of a rank that has ended; 0, or the exit
 * status. */
int job_start_newcomer(struct job *job, int rank);

/* Say how a rank has ended. */
void job_report(const struct job *job, int rank);

/* End whatever is left of the job. */
void job_clean(struct job *job);

/* ---- --min-np: ranks may die, and newcomers take their places ---------------
 *
 * Every node ends what a dead rank has left, tells node 0 of the death, and starts the
 * newcomers that node 0 asks for.  Node 0 decides.  A lone collrun is node 0. */

/* Ranks have ended here and are not reaped yet. */
void elastic_reap(struct job *job);

/* Start the newcomers that are due here. */
void elastic_start(struct job *job);

/* Node 0: begin, with a lobby at this listening socket; 0, or -1 after an error message.
 * The socket is closed in either case. */
int elastic_open(struct job *job, int listen_fd);
void elastic_close(struct job *job);

/* Return a descriptor that is readable when elastic_hear() has something to do. */
int elastic_fd(const struct elastic *elastic);

/* Serve the lobby. */
void elastic_hear(struct elastic *elastic);

/* The process in this place of the job has ended; how: waitpid()'s status. */
void elastic_left(struct elastic *elastic, int place, int how);

/* A node has come, with n places for newcomers from `first` on; 0, or -1 after an error
 * message. */
int elastic_add(struct elastic *elastic, int node, int first, int n);

/* A node is gone, or ends its ranks: they count as dead, and nobody takes their
 * places. */
void elastic_lose(struct elastic *elastic, int node);

/* Act on what has happened: 1: the job ends, with this status; else 0. */
int elastic_judge(struct job *job, int *status);

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
