/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_job.c - ranks on this machine: start, watch, end.
 *
 * The ranks stay in collrun's process group, as under mpirun and srun.  So they share
 * collrun's terminal, and its ^C and ^Z reach all of them.  All processes of a job
 * inherit a mark, by which they are found and ended (collrun_tree.h); those that have
 * dropped it are found as collrun's descendants.  A guard process sleeps on a pipe from
 * collrun; when collrun exits or is killed, the guard kills every process that has the
 * mark.  Signals that collrun gets go to all processes of the job, except SIGUSR2, which
 * goes only to the ranks.
 *
 * A signal that collrun's parent ignores stays ignored, by collrun and by the ranks.  The
 * signals that collrun handles itself (SIGCHLD, SIGPIPE) are restored for the ranks.
 *
 * Rank 0 inherits a socket that already listens on a free loopback port (COLL_ROOT_FD),
 * so that no other program can take the port of COLL_ROOT before rank 0 uses it.
 */
#include "tools/collrun.h"
#include "tools/collrun_job.h"
#include "tools/collrun_nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE 2.0      /* s, to report an error before TERM, then before KILL */
#define PATIENCE 10.0 /* s, from a TERM to collrun until KILL: ranks may save */
#define LAST_WORDS 0.1 /* s, for output after the last rank has ended */
#define NODES_TIME 30.0 /* s, for the other nodes to end their ranks */

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- ending ------------------------------------------------------------- */

static void signal_job(const struct job *job, int signal)
{
    tree_signal(job->mark, signal);
}

/* Send SIGUSR2 only to the ranks: it would end the programs that they have started. */
static void signal_ranks(const struct job *job, int signal)
{
    for (int r = 0; r < job->n; r++)
        if (job->ranks[r].pid > 0)
            kill(job->ranks[r].pid, signal);
}

static void tell_nodes(struct job *job, int signal)
{
    if (!job->nodes)
        return;
    if (job->nodes->is_told)
        return;
    nodes_fail(job->nodes, job->status, signal, job->restarts.has_failed);
    job->nodes->is_told = 1;
    if (job->restarts.min_np && job->nodes->order.node) { /* they go on alone */
        job->nodes->decision = NODES_END;
        job->nodes->status = job->status;
    }
}

/* Begin to end the job: TERM after `grace` seconds, KILL still later. */
static void begin_end(struct job *job, int status, double grace)
{
    if (job->end)
        return;
    job->end = ENDING;
    job->status = status;
    job->next = now() + grace;
    tell_nodes(job, 0);
}

/* The user or the batch system ends the job; the ranks have got this signal. */
static void end_by(struct job *job, int signal)
{
    job->end = TERMINATED;
    job->restarts.has_failed = 0; /* whatever was before: it is to end */
    job->status = 128 + signal;
    job->next = now() + (signal == SIGTERM ? PATIENCE : GRACE);
    tell_nodes(job, signal);
}

/* Take the next step of ending the job, which is due now. */
static void go_on_ending(struct job *job)
{
    if (job->end == ENDING) {
        signal_job(job, SIGTERM);
        job->end = TERMINATED;
        job->next = now() + GRACE;
    } else {
        signal_ranks(job, SIGKILL);
        job->next = now() + GRACE;
    }
}

/* Stop as the ranks have stopped, so that the shell sees it and can continue the job.
 * If no shell watches our process group, the kernel ignores the signal and the job
 * continues. */
static void stop_too(const struct job *job)
{
    sigset_t set, blocked;

    sigemptyset(&set);
    sigaddset(&set, SIGTSTP);
    raise(SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &set, &blocked); /* and here we stand */
    sigprocmask(SIG_SETMASK, &blocked, NULL);
    signal_job(job, SIGCONT);
}

static void take_signal(struct job *job, const struct signalfd_siginfo *info)
{
    int signal = (int)info->ssi_signo;

    if (signal == SIGCHLD)
        return;
    if (signal == SIGUSR2) { /* they write their history */
        signal_ranks(job, signal);
        return;
    }
    if (info->ssi_code != SI_KERNEL) /* the terminal tells the ranks itself */
        signal_job(job, signal);
    if (signal == SIGTSTP) {
        stop_too(job);
        return;
    }
    if (signal == SIGUSR1) { /* the ranks decide what to do about it */
        job->restarts.most = 0;
        return;
    }
    if (job->end == TERMINATED) { /* asked twice: do not wait */
        job->next = now();
        return;
    }
    end_by(job, signal);
}

/* Another node is gone, or ends its ranks; the job may do without them. */
static void lose_node(struct job *job, int node)
{
    const struct seat *seat = &job->nodes->seats[node];

    complain("the %d rank%s of node %d (%s) %s done without", seat->n,
             seat->n == 1 ? "" : "s", node, seat->where,
             seat->n == 1 ? "is" : "are");
    ended_write(job, seat->first, seat->n, SIGKILL);
    elastic_lose(job->elastic, node);
}

/* Another node ends its ranks: end ours. */
static void follow(struct job *job, const struct nodes_news *news)
{
    if (news->status)
        complain("the job ends by node %d (%s), with status %d", news->node,
                 news->where, news->status);
    job->nodes->is_told = job->nodes->order.node != 0;
    job->restarts.has_failed = news->may_restart;
    if (news->signal) {
        signal_job(job, news->signal);
        end_by(job, news->signal);
    } else
        begin_end(job, news->status, news->status ? GRACE : 0);
}

static void take_news(struct job *job, const struct nodes_news *news)
{
    if (news->what == NEWS_ENDED)
        ended_write(job, news->first, news->n, news->how);
    if (job->end)
        return;
    if (news->what == NEWS_LEFT && job->elastic)
        elastic_left(job->elastic, news->first, news->how);
    if (news->what == NEWS_START && news->first >= job->first &&
        news->first < job->first + job->n)
        job->ranks[news->first - job->first].due = news->due;
    if (news->what == NEWS_JOIN && job->elastic &&
        elastic_add(job->elastic, news->node, news->first, news->n))
        begin_end(job, EXIT_FAILURE, GRACE);
    if (news->what == NEWS_FAIL && job->elastic)
        lose_node(job, news->node);
    else if (news->what == NEWS_FAIL)
        follow(job, news);
}

/* ---- ranks that end ----------------------------------------------------- */

static int exit_status(int how)
{
    return WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
}

void job_report(const struct job *job, int rank)
{
    const struct rank *r = &job->ranks[rank];
    const char *what = r->newcomer ? "the newcomer in place of rank" : "rank";

    rank += job->first;
    if (WIFSIGNALED(r->how))
        complain("%s %d (pid %d) was killed by signal %d (%s)%s", what, rank,
                 (int)r->pid, WTERMSIG(r->how), strsignal(WTERMSIG(r->how)),
                 WTERMSIG(r->how) == SIGKILL
                     ? "; if nobody did it, see dmesg: memory may have run out"
                     : "");
    else
        complain("%s %d (pid %d) exited with status %d", what, rank,
                 (int)r->pid, WEXITSTATUS(r->how));
}

/* A rank has failed, and none can be done without. */
static void end_by_rank(struct job *job, int culprit)
{
    job_report(job, culprit);
    job->restarts.has_failed = 1;
    begin_end(job, exit_status(job->ranks[culprit].how), GRACE);
}

/* Wait for all children that have ended: ranks, and processes that were adopted. */
static void await_ended(struct job *job)
{
    pid_t pid;
    int how;

    while ((pid = tree_reap(-1, &how, WNOHANG)) > 0) {
        if (pid == job->guard.pid)
            job->guard.pid = -1;
        if (job->nodes)
            nodes_take_end(job->nodes, pid, how);
        for (int r = 0; r < job->n; r++)
            if (job->ranks[r].pid == pid) {
                job->ranks[r].how = how;
                job->ranks[r].has_ended = 1;
            }
    }
}

/* Reap the ended ranks.  If several have ended, one killed by a signal is the cause: the
 * others failed because it died. */
static void reap(struct job *job)
{
    int culprit = -1;

    await_ended(job);
    for (int r = 0; r < job->n; r++) {
        struct rank *rank = &job->ranks[r];

        if (!rank->has_ended || rank->pid < 0)
            continue;
        ended_notice(job);
        job->n_alive--;
        if (rank->how &&
            (culprit < 0 ||
             (WIFSIGNALED(rank->how) && !WIFSIGNALED(job->ranks[culprit].how))))
            culprit = r;
    }
    if (job->restarts.min_np && !job->end)
        elastic_reap(job);
    else if (culprit >= 0 && !job->end)
        end_by_rank(job, culprit);
    for (int r = 0; r < job->n; r++)
        if (job->ranks[r].has_ended)
            job->ranks[r].pid = -1; /* the number may be another's now */
}

/* ---- the loop ----------------------------------------------------------- */

/* The earlier of two times; 0 is none. */
static double sooner(double a, double b)
{
    return a <= 0 || (b > 0 && b < a) ? b : a;
}

static int time_left(const struct job *job)
{
    double next = job->end ? job->next : job->deadline, left;

    if (job->is_over)
        next = job->next;
    else
        next = sooner(next, job->ended.look);
    if (job->nodes)
        next = sooner(next, nodes_next(job->nodes));
    if (next <= 0)
        return -1;
    left = next - now();
    if (left <= 0)
        return 0;
    return left > 3600 ? 3600000 : (int)(left * 1000) + 1;
}

static void act_on_time(struct job *job)
{
    double t = now();

    if (job->ended.look > 0 && t >= job->ended.look)
        ended_look(job);
    if (job->end && t >= job->next)
        go_on_ending(job);
    if (!job->end && job->deadline > 0 && t >= job->deadline) {
        complain("the job did not end within %g s (--timeout)",
                 job->options->timeout);
        begin_end(job, EXIT_LATE, 0);
    }
}

/* Have a place for each descriptor that may be waited for. */
static int have_fds(struct job *job)
{
    int most = 2 * job->n + 2 + (job->nodes ? nodes_most_fds(job->nodes) : 0);
    struct pollfd *fds = job->polled.fds;

    if (most <= job->polled.most)
        return 0;
    fds = realloc(fds, (size_t)most * sizeof(*fds));
    if (!fds)
        return -1;
    job->polled = (struct polled){fds, most};
    return 0;
}

/* Wait until something comes; polled.fds[i + 1] tells of stream i. */
static void await_event(struct job *job)
{
    struct pollfd *fds;
    int n = 1;

    if (have_fds(job))
        return;
    fds = job->polled.fds;
    fds[0] = (struct pollfd){.fd = job->signals.fd, .events = POLLIN};
    for (int i = 0; i < job->n_streams; i++)
        fds[n++] = (struct pollfd){.fd = job->streams[i].fd, .events = POLLIN};
    if (job->nodes)
        n += nodes_fds(job->nodes, fds + n);
    if (job->elastic)
        fds[n++] =
            (struct pollfd){.fd = elastic_fd(job->elastic), .events = POLLIN};
    n = poll(fds, (nfds_t)n, time_left(job));
    job->is_idle = n == 0 || (n < 0 && errno != EINTR);
    if (n < 0 && job->is_idle)
        complain("poll: %s", strerror(errno));
}

/* Wait for an event and act on it; returns the number of open streams. */
static int turn(struct job *job)
{
    struct signalfd_siginfo info;
    struct nodes_news news;
    int n_open = 0;

    await_event(job);
    for (int i = 0; i < job->n_streams; i++) {
        if (job->polled.fds[i + 1].revents && stream_pump(&job->streams[i]))
            begin_end(job, 128 + SIGPIPE, 0); /* nobody reads us any more */
        n_open += job->streams[i].fd >= 0;
    }
    while (read(job->signals.fd, &info, sizeof(info)) == sizeof(info))
        take_signal(job, &info);
    while (job->nodes && nodes_hear(job->nodes, &news))
        take_news(job, &news);
    if (output_is_lost()) /* also of other hosts' ranks */
        begin_end(job, 128 + SIGPIPE, 0);
    if (job->elastic)
        elastic_hear(job->elastic);
    return n_open;
}

/* Does a rank live, or may one still come? */
static int goes_on(const struct job *job)
{
    return job->n_alive || (job->restarts.min_np && !job->end);
}

/* Do without dead ranks, or let newcomers take their places, or end the job. */
static void replace(struct job *job)
{
    int status;

    if (job->elastic && elastic_judge(job, &status))
        begin_end(job, status, status ? GRACE : 0);
    else
        elastic_start(job);
}

static void watch(struct job *job)
{
    while (goes_on(job)) {
        turn(job);
        reap(job);
        if (goes_on(job))
            act_on_time(job);
        if (job->restarts.min_np && !job->end)
            replace(job);
    }
    job->is_over = 1;
    /* The ranks' last output is in the pipes.  Do not wait for their end: a process that
     * escaped may hold a pipe open for ever. */
    tree_kill(job->mark);
    do
        job->next = now() + LAST_WORDS;
    while (turn(job) && !job->is_idle);
    for (int i = 0; i < job->n_streams; i++)
        stream_end(&job->streams[i]);
    ended_all(job);
}

static int allocate(struct job *job)
{
    size_t n = (size_t)job->n;

    job->ranks = calloc(n, sizeof(*job->ranks));
    job->streams = calloc(2 * n, sizeof(*job->streams));
    if (job->ranks && job->streams && !have_fds(job))
        return 0;
    complain("out of memory");
    return -1;
}

/* Return the exit status: the job's own, unless the job was ended because collrun could
 * not write. */
static int end_status(const struct job *job)
{
    int failed = output_status();

    return failed && (!job->status || job->status == 128 + SIGPIPE)
               ? failed
               : job->status;
}

/* ---- several nodes -------------------------------------------------------- */

static int is_settled(const struct job *job)
{
    return job->nodes->order.node ? job->nodes->decision != NODES_UNDECIDED
                                  : nodes_all_done(job->nodes);
}

/* Our ranks have ended: wait for the other nodes' ranks, which may still compute.
 * Returns the job's status, which node 0 decides. */
static int settle(struct job *job, int status)
{
    struct nodes *nodes = job->nodes;
    double deadline = 0;

    if (status && !job->end)
        begin_end(job, status, 0);
    nodes_done(nodes, status);
    job->is_over = 1;
    while (!is_settled(job)) {
        if (job->end && deadline <= 0)
            deadline = now() + NODES_TIME;
        job->next = deadline;
        turn(job);
        if (job->next > 0 && now() >= job->next)
            break; /* asked twice, or nothing more will come */
    }
    if (!nodes->order.node)
        return job->status ? job->status : status;
    if (nodes->decision != NODES_UNDECIDED)
        return nodes->decision == NODES_END ? nodes->status : EXIT_FAILURE;
    return status ? status : EXIT_FAILURE;
}

/* ---- a run, and runs after it ---------------------------------------------- */

/* Start the ranks and see them to their end; the job's status. */
static int run_once(struct job *job, const struct options *options)
{
    int status = EXIT_FAILURE;

    files_init(options->output_folder, job->size);
    output_init(options, job->first, job->n);
    if (!allocate(job))
        status = job_start(job, options);
    if (!status) {
        watch(job);
        status = end_status(job);
    }
    job_clean(job);
    if (job->nodes && job->polled.fds)
        status = settle(job, status);
    ended_close(job);
    elastic_close(job);
    free(job->ranks);
    free(job->streams);
    free(job->polled.fds);
    return status;
}

/* Reset the job for a restart: keep its settings, drop the state of the last run. */
static struct job again(const struct job *job)
{
    return (struct job){
        .options = job->options,
        .setting = job->setting,
        .n = job->n,
        .first = job->first,
        .size = job->size,
        .nodes = job->nodes,
        .deadline = job->deadline,
        .signals = job->signals,
        .ended.fd = -1,
        .restarts = {.n = job->restarts.n + 1, .most = job->restarts.most},
    };
}

/* May the job start again?  Not after wrong usage, a signal to collrun or the loss of a
 * node.  With several nodes, node 0 decides. */
static int may_restart(const struct job *job, int status)
{
    if (job->nodes && job->nodes->order.node)
        return job->nodes->decision == NODES_AGAIN;
    return status && status != EXIT_USAGE && job->restarts.has_failed &&
           !(job->nodes && job->nodes->decision == NODES_END) &&
           job->restarts.n < job->restarts.most;
}

static void run_often(struct job *job, const struct options *options,
                      int *status)
{
    for (;;) {
        *status = run_once(job, options);
        if (!may_restart(job, *status))
            break;
        *job = again(job);
        if (job->nodes) {
            job->nodes->decision = NODES_UNDECIDED;
            job->nodes->is_told = 0;
        }
        complain("starting all %d ranks again (restart %d of %d)", job->size,
                 job->restarts.n, job->restarts.most);
    }
    if (job->nodes && !job->nodes->order.node)
        nodes_end(job->nodes, *status);
}

/* Check that poll(), by which collrun waits, works here. */
static int can_wait(void)
{
    if (poll(NULL, 0, 0) == 0)
        return 1;
    complain("cannot wait for ranks: poll: %s; a seccomp profile forbids it",
             strerror(errno));
    return 0;
}

int job_run(const struct options *options)
{
    struct job job = {.options = options,
                      .n = options->n,
                      .ended.fd = -1,
                      .restarts.most = options->max_restarts};
    int status;

    if (!can_wait())
        return EXIT_FAILURE;
    place_name_run(options, job.setting.run_id);
    tree_adopt();
    status = place_find(&job, options);
    if (status)
        return status;
    if (options->timeout > 0)
        job.deadline = now() + options->timeout;
    signals_take(&job.signals);
    run_often(&job, job.options, &status);
    if (job.signals.fd >= 0)
        close(job.signals.fd);
    nodes_close(job.nodes);
    return status ? status : files_status();
}
