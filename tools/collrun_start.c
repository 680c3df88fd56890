/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_start.c - make the processes of a job: the guard, then the ranks with
 * their variables, pipes and the root's socket. */
#include "tools/collrun_endpoint.h"
#include "tools/collrun_job.h"
#include "tools/collrun_nodes.h"

#include "lib/net/auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the guard ---------------------------------------------------------- */

static void guard(const char *mark, int fd)
{
    sigset_t all;
    char byte;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL); /* the job's signals are not for us */
    dup2(fd, 0);
    close_range(1, ~0U, 0); /* so that no output or socket stays open here */
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    tree_kill(mark);
    _exit(EXIT_FAILURE);
}

static int start_guard(struct job *job)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    pid = fork();
    if (!pid) {
        setsid(); /* no signals from the terminal, no hang-up */
        guard(job->mark, ends[0]);
    }
    close(ends[0]);
    job->guard.fd = ends[1];
    if (pid < 0)
        return -1;
    job->guard.pid = pid;
    tree_spare(pid);
    return 0;
}

/* ---- what the ranks are told -------------------------------------------- */

/* Listen at this address and port; for port 0 the kernel chooses.  The socket, or -1. */
static int listen_at(const struct sockaddr *at, socklen_t len)
{
    int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || (!bind(fd, at, len) && !listen(fd, 4096)))
        return fd;
    close(fd);
    return -1;
}

/* Listen at 127.0.0.1, or at [::1] where there is no IPv4; with COLL_NET_FAMILY=ip6 the
 * other way round, since ranks connect to rank 0 by this address as well.  The socket and
 * its address, or -1. */
static int listen_at_loopback(char where[300])
{
    const char *family = getenv("COLL_NET_FAMILY");
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    socklen_t len = sizeof(six);
    int fd = -1, is_four = !family || strcmp(family, "ip6") != 0;

    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    six.sin6_addr = in6addr_loopback;
    for (int tries = 0; fd < 0 && tries < 2; tries++, is_four = !is_four)
        fd = is_four ? listen_at((struct sockaddr *)&four, sizeof(four))
                     : listen_at((struct sockaddr *)&six, sizeof(six));
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&six, &len))
        return -1;
    /* the port is at the same place in both */
    snprintf(where, 300, "%s:%d",
             six.sin6_family == AF_INET6 ? "[::1]" : "127.0.0.1",
             ntohs(six.sin6_port));
    return fd;
}

/* Find a free port and close it again.  Another program may take it before it is used, as
 * with every launcher that sets MASTER_PORT. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&at, len) &&
        !getsockname(fd, (struct sockaddr *)&at, &len))
        port = ntohs(at.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static void draw_secret(struct setting *setting)
{
    unsigned char bytes[COLL__SECRET_BYTES];

    coll__auth_random(bytes, sizeof(bytes));
    coll__auth_hex(bytes, sizeof(bytes), setting->secret);
}

/* Write the address of this port of node 0, as its name was given to this node. */
static void write_address(char where[300], const struct nodes *nodes, int port)
{
    snprintf(where, 300, strchr(nodes->host, ':') ? "[%s]:%d" : "%s:%d",
             nodes->host, port);
}

/* Node 0: listen for processes of all hosts.  The socket, its port and its address, or
 * -1. */
static int listen_for_ranks(const struct job *job, int *port, char where[300])
{
    int fd;

    if (!job->nodes)
        return listen_at_loopback(where);
    fd = endpoint_listen(job->nodes->host, 0);
    if (fd < 0 || fcntl(fd, F_SETFL, 0))
        return -1;
    *port = endpoint_port(fd);
    write_address(where, job->nodes, *port);
    return fd;
}

/* Open what ranks need to meet: rank 0's socket and the lobby. */
static int open_sockets(struct job *job, struct order *order)
{
    struct setting *setting = &job->setting;
    int fd;

    setting->root_fd = listen_for_ranks(job, &order->root_port, setting->root);
    if (setting->root_fd < 0)
        return -1;
    draw_secret(setting);
    if (!job->restarts.min_np)
        return 0;
    fd = listen_for_ranks(job, &order->lobby_port, setting->lobby);
    return fd < 0 ? -1 : elastic_open(job, fd);
}

/* Node 0: tell the other nodes to start. */
static void give_order(const struct job *job, struct order *order)
{
    order->master_port = job->setting.port;
    order->n_restarts = job->restarts.n;
    order->max_restarts = job->restarts.most;
    order->min_np = job->restarts.min_np;
    snprintf(order->secret, sizeof(order->secret), "%s", job->setting.secret);
    order->n_nodes = job->nodes->n_nodes;
    for (int i = 1; i < job->nodes->n_nodes; i++)
        nodes_go(job->nodes, i);
}

/* Another node: start by node 0's order. */
static void take_order(struct setting *setting, const struct nodes *nodes)
{
    const struct order *order = &nodes->order;

    setting->port = order->master_port;
    snprintf(setting->secret, sizeof(setting->secret), "%s", order->secret);
    write_address(setting->root, nodes, order->root_port);
    if (order->lobby_port)
        write_address(setting->lobby, nodes, order->lobby_port);
}

static int make_setting(struct setting *setting, struct job *job)
{
    struct order alone, *order = job->nodes ? &job->nodes->order : &alone;

    snprintf(setting->host, sizeof(setting->host), "%s",
             job->nodes ? job->nodes->host : "127.0.0.1");
    if (job->nodes && order->node) {
        take_order(setting, job->nodes);
        return 0;
    }
    setting->port = free_port();
    if (open_sockets(job, order)) {
        complain("cannot prepare the job: %s", strerror(errno));
        return -1;
    }
    if (job->nodes)
        give_order(job, order);
    return 0;
}

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

/* Set the variables of torchrun and horovodrun too, so that programs made for them start
 * here unchanged. */
static void set_for_others(const struct setting *setting, const struct job *job,
                           int rank)
{
    const struct nodes *nodes = job->nodes;
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"RANK", job->first + rank},
        {"ROLE_RANK", job->first + rank},
        {"LOCAL_RANK", rank},
        {"WORLD_SIZE", job->size},
        {"ROLE_WORLD_SIZE", job->size},
        {"LOCAL_WORLD_SIZE", job->n},
        {"LOCAL_SIZE", job->n},
        {"GROUP_RANK", nodes ? nodes->order.node : 0},
        {"NODE_RANK", nodes ? nodes->order.node : 0},
        {"CROSS_RANK", nodes ? nodes->order.node : 0},
        {"GROUP_WORLD_SIZE", nodes ? nodes->order.n_nodes : 1},
        {"CROSS_SIZE", nodes ? nodes->order.n_nodes : 1},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        set_number(numbers[i].name, numbers[i].value);
    setenv("MASTER_ADDR", setting->host, 1);
    set_number("MASTER_PORT", setting->port);
    setenv("TORCHELASTIC_RUN_ID", setting->run_id, 1);
    set_number("TORCHELASTIC_RESTART_COUNT", job->restarts.n);
    set_number("TORCHELASTIC_MAX_RESTARTS", job->restarts.most);
}

static void set_variables(const struct setting *setting, const struct job *job,
                          int rank)
{
    set_for_others(setting, job, rank);
    set_number("COLL_RANK", job->first + rank);
    set_number("COLL_SIZE", job->size);
    setenv("COLL_ROOT", setting->root, 1);
    setenv("COLL_JOB_SECRET", setting->secret, 1);
    setenv("COLLRUN_LOBBY", setting->lobby, 1);
    unsetenv("COLLRUN_NEWCOMER");
    setenv("COLLRUN_ENDED", job->ended.name, 1);
    if (job->ended.fd >= 0)
        fcntl(job->ended.fd, F_SETFD, 0);
    unsetenv("COLL_ROOT_FD");
    if (setting->root_fd >= 0) { /* of rank 0 alone */
        set_number("COLL_ROOT_FD", setting->root_fd);
        fcntl(setting->root_fd, F_SETFD, 0);
    }
}

/* A newcomer learns its rank and the number of ranks when it joins. */
static void set_newcomer(int newcomer)
{
    static const char *const unknown[] = {
        "RANK",      "ROLE_RANK", "WORLD_SIZE", "ROLE_WORLD_SIZE",
        "COLL_RANK", "COLL_SIZE", "COLL_ROOT"};
    const char *forced = getenv("COLL_BOOTSTRAP");

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        unsetenv(unknown[i]);
    set_number("COLLRUN_NEWCOMER", newcomer);
    if (forced && !strcmp(forced, "collrun"))
        setenv("COLL_BOOTSTRAP", "lobby", 1);
}

/* ---- ranks -------------------------------------------------------------- */

/* stdin is rank 0's. */
static void set_stdin(int rank)
{
    int fd;

    if (!rank)
        return;
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        dup2(fd, STDIN_FILENO);
}

/* If our stdout is a terminal, rank 0 writes to it directly: it may draw there and ask
 * for the width.  The other ranks' lines pass through collrun. */
static int has_terminal(int rank)
{
    return !rank && !files_are_wanted() && isatty(STDOUT_FILENO);
}

/* In the new process; reports only when it cannot run. */
static void become_rank(const struct job *job, const struct options *options,
                        const struct setting *setting, int rank,
                        const int out[2])
{
    int err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != setting->parent)
        _exit(EXIT_FAILURE);
    /* Under Yama's ptrace scope 1, let descendants of collrun (this job) read this rank's
     * memory, and no other process.  Fails on a kernel without Yama. */
    prctl(PR_SET_PTRACER, setting->parent);
    set_stdin(job->first + rank);
    if (out[0] >= 0) {
        if (!has_terminal(rank))
            dup2(out[0], STDOUT_FILENO);
        dup2(out[1], STDERR_FILENO);
    }
    if (options->is_bound)
        bind_to_core(rank);
    if (!options->is_within) /* else srun or mpirun has set the rank's variables */
        set_variables(setting, job, rank);
    if (job->ranks[rank].newcomer)
        set_newcomer(job->ranks[rank].newcomer);
    setenv(TREE_VARIABLE, job->mark, 1);
    signals_give_back(&job->signals);
    execvp(options->command[0], options->command);
    err = errno;
    if (write(setting->report_fd, &err, sizeof(err)) < 0)
        _exit(EXIT_CANNOT_RUN);
    _exit(err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/* Make the pipes of a rank's two streams; out gets their writing ends.  A newcomer's take
 * the places of those of the rank before it. */
static int open_streams(struct job *job, int rank, int out[2])
{
    out[0] = out[1] = -1;
    if (job->n == 1 && !files_are_wanted() && !job->options->is_far)
        return 0; /* the one rank has our own */
    for (int i = 0; i < 2; i++) {
        struct stream *s = &job->streams[2 * rank + i];
        int ends[2];

        if (2 * rank + i < job->n_streams)
            stream_end(s);
        else
            s->fd = -1;
        s->rank = job->first + rank;
        s->target = i ? STDERR_FILENO : STDOUT_FILENO;
        if (files_open(s, job->restarts.n || job->ranks[rank].newcomer))
            return -1;
        if (pipe2(ends, O_CLOEXEC)) {
            complain("cannot make pipes for rank %d: %s; see ulimit -n",
                     s->rank, strerror(errno));
            return -1;
        }
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        s->fd = ends[0];
        if (job->n_streams <= 2 * rank + i)
            job->n_streams = 2 * rank + i + 1;
        out[i] = ends[1];
    }
    return 0;
}

/* Wait until all ranks have started the program, which closes their ends of the pipe.  0,
 * or the exit status for the first rank that could not. */
static int await_exec(int fd, const char *program)
{
    int err = 0;

    if (read(fd, &err, sizeof(err)) <= 0)
        return 0;
    complain("cannot run %s: %s", program,
             err == ENOENT ? "there is no such program" : strerror(err));
    return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Make one process. */
static int start_rank(struct job *job, const struct options *options,
                      const struct setting *setting, int rank)
{
    pid_t pid;
    int out[2];

    if (open_streams(job, rank, out))
        return EXIT_FAILURE;
    pid = fork();
    if (!pid)
        become_rank(job, options, setting, rank, out);
    for (int i = 0; i < 2; i++)
        if (out[i] >= 0)
            close(out[i]);
    if (pid < 0) {
        complain("cannot start rank %d: %s; see ulimit -u", job->first + rank,
                 strerror(errno));
        return EXIT_FAILURE;
    }
    job->ranks[rank].pid = pid;
    job->n_alive++;
    return 0;
}

/* Start the ranks side by side: each takes a while to load its libraries. */
static int start_ranks(struct job *job, const struct options *options,
                       struct setting *setting)
{
    int ends[2], status = 0;

    if (pipe2(ends, O_CLOEXEC)) {
        complain("cannot make a pipe: %s; see ulimit -n", strerror(errno));
        return EXIT_FAILURE;
    }
    setting->report_fd = ends[1];
    for (int r = 0; r < job->n && !status; r++) {
        status = start_rank(job, options, setting, r);
        if (setting->root_fd >= 0) { /* the socket is rank 0's alone */
            close(setting->root_fd);
            setting->root_fd = -1;
        }
    }
    close(ends[1]);
    setting->report_fd = -1;
    if (!status)
        status = await_exec(ends[0], options->command[0]);
    close(ends[0]);
    return status;
}

int job_start_newcomer(struct job *job, int r)
{
    struct rank *rank = &job->ranks[r];
    int status;

    if (job->restarts.n < rank->due.restart) /* on another node than 0 */
        job->restarts.n = rank->due.restart;
    *rank = (struct rank){.pid = -1,
                          .newcomer = rank->due.newcomer,
                          .is_told = 1}; /* it never was a rank by its number */
    status = start_rank(job, job->options, &job->setting, r);
    if (status) {
        rank->has_ended = 1;
        rank->how = W_EXITCODE(status, 0);
    }
    return status;
}

/* This node has come late: newcomers will take its places. */
static void leave_places_empty(struct job *job)
{
    for (int r = 0; r < job->n; r++)
        job->ranks[r] = (struct rank){.pid = -1, .has_ended = 1, .is_told = 1};
}

int job_start(struct job *job, const struct options *options)
{
    struct setting *setting = &job->setting;
    int status = 0;

    setting->parent = getpid();
    setting->root_fd = -1;
    if (job->signals.fd < 0 ||
        (!options->is_within && make_setting(setting, job)))
        return EXIT_FAILURE;
    tree_draw(job->mark);
    if (start_guard(job)) {
        complain("cannot start a process: %s", strerror(errno));
        close(setting->root_fd);
        return EXIT_FAILURE;
    }
    ended_open(job);
    if (job->first < job->size)
        status = start_ranks(job, options, setting);
    else
        leave_places_empty(job);
    if (setting->root_fd >= 0)
        close(setting->root_fd);
    setting->root_fd = -1;
    return status;
}

void job_clean(struct job *job)
{
    if (job->guard.pid) {
        tree_kill(job->mark); /* also processes that the ranks have left behind */
        if (job->guard.pid > 0) {
            kill(job->guard.pid, SIGKILL);
            tree_reap(job->guard.pid, NULL, 0);
        }
        close(job->guard.fd);
    }
    job->guard.pid = 0;
    for (int r = 0; job->ranks && r < job->n; r++)
        if (job->ranks[r].pid > 0) {
            kill(job->ranks[r].pid, SIGKILL);
            tree_reap(job->ranks[r].pid, NULL, 0);
            job->ranks[r].pid = -1;
        }
}
