/* SPDX-License-Identifier: BSD-3-Clause */
/* elastic_loop.c - for elastic.test: ranks that go on when some of them die, as an elastic
 * trainer does.
 *
 * elastic_loop STEPS SIZE [RANK:STEP]...: take so many steps at least, until there are so
 * many ranks at the end.  A step is a sum over all ranks, and then newcomers may join.
 * The process that collrun started first as this rank kills itself in this step.
 *
 * If GATE is set, newcomers join once that file exists; newcomer 1 kills itself while it
 * waits, and newcomer 2 makes the file.  If ALL is set, newcomers join once there are enough
 * of them for SIZE ranks.  If END is set, the loop goes on until that file exists.
 *
 * If MEETING is "dies" or "stops", that is what newcomer 1 does when it has been let in and
 * is about to meet the ranks.
 */
#include "include/coll/coll.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Is this newcomer 1? */
static int is_first_newcomer(void)
{
    const char *newcomer = getenv("COLLRUN_NEWCOMER");

    return newcomer && !strcmp(newcomer, "1");
}

/* Is this an address where ranks listen, and not that of the lobby? */
static int is_of_ranks(const struct sockaddr *addr)
{
    const char *lobby = getenv("COLLRUN_LOBBY");
    int port = addr->sa_family == AF_INET
                   ? ntohs(((const struct sockaddr_in *)addr)->sin_port)
               : addr->sa_family == AF_INET6
                   ? ntohs(((const struct sockaddr_in6 *)addr)->sin6_port)
                   : 0;

    return port && lobby && atoi(strrchr(lobby, ':') + 1) != port;
}

/* Instead of libc's. */
int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    const char *meeting = getenv("MEETING");
    static atomic_int has_met;

    if (meeting && is_first_newcomer() && is_of_ranks(addr) &&
        !atomic_exchange(&has_met, 1)) {
        fprintf(stderr, "process %d meets the ranks\n", (int)getpid());
        raise(strcmp(meeting, "stops") ? SIGKILL : SIGSTOP);
    }
    return (int)syscall(SYS_connect, fd, addr, len);
}

struct loop {
    struct coll_comm *comm;
    int64_t step; /* the state that newcomers get */
    int n_steps, want;
    int dies_in; /* the step in which this process kills itself, or -1 */
};

static void end(const struct loop *loop, const char *what, int status)
{
    fprintf(stderr, "rank %d: %s failed in step %d: %s\n",
            loop->comm ? coll_comm_rank(loop->comm) : -1, what, (int)loop->step,
            status ? coll_last_error() : "a wrong result");
    exit(EXIT_FAILURE);
}

/* One communicator takes the place of another one, which may have failed. */
static void replace(struct loop *loop, struct coll_comm *with)
{
    coll_comm_destroy(loop->comm);
    loop->comm = with;
}

static int is_root(const struct loop *loop)
{
    return !coll_comm_rank(loop->comm);
}

/* Ranks may have seen the failure one step apart: go on with the earlier one. */
static int mend(struct loop *loop)
{
    struct coll_comm *rest;
    int status =
        coll_comm_shrink(loop->comm, NULL, 0, COLL_SHRINK_ABORT, &rest);

    if (status)
        end(loop, "shrink", status);
    replace(loop, rest);
    return coll_allreduce(&loop->step, &loop->step, 1, COLL_I64, COLL_MIN,
                          loop->comm, NULL);
}

/* Give everybody rank 0's state. */
static int share(struct loop *loop)
{
    return coll_broadcast(&loop->step, &loop->step, 1, COLL_I64, 0, loop->comm,
                          NULL);
}

/* A grow that fails has left the old communicator good, unless a rank died. */
static int grow(struct loop *loop, int n)
{
    struct coll_comm *grown;
    int status = coll_comm_grow(loop->comm, n, NULL, &grown);

    if (status) {
        fprintf(stderr, "rank %d: no growth: %s\n", coll_comm_rank(loop->comm),
                coll_last_error());
        return coll_comm_async_error(loop->comm);
    }
    replace(loop, grown);
    return share(loop);
}

/* What rank 0 tells the others after each step: newcomers to let in, or -1 to end. */
static int ask(const struct loop *loop, int32_t *n)
{
    const char *gate = getenv("GATE"), *end_file = getenv("END");
    int n_waiting = 0, status = COLL_OK;

    *n = 0;
    if (is_root(loop) && (!gate || !access(gate, F_OK)))
        status = coll_comm_waiting(loop->comm, &n_waiting);
    if (status)
        end(loop, "waiting", status);
    if (!getenv("ALL") || coll_comm_size(loop->comm) + n_waiting >= loop->want)
        *n = n_waiting;
    if (loop->step >= loop->n_steps &&
        coll_comm_size(loop->comm) == loop->want &&
        (!end_file || !access(end_file, F_OK)))
        *n = -1;
    return coll_broadcast(n, n, 1, COLL_I32, 0, loop->comm, NULL);
}

static int take_step(struct loop *loop, int32_t *n)
{
    int64_t sum = coll_comm_rank(loop->comm) + 1, size;
    int status;

    if (loop->step == loop->dies_in)
        raise(SIGKILL);
    status =
        coll_allreduce(&sum, &sum, 1, COLL_I64, COLL_SUM, loop->comm, NULL);
    if (status)
        return status;
    size = coll_comm_size(loop->comm);
    if (sum != size * (size + 1) / 2)
        end(loop, "the sum", 0);
    if (++loop->step == 1 && is_root(loop)) {
        puts("all have begun");
        fflush(stdout);
    }
    return ask(loop, n);
}

static void run(struct loop *loop, int status)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    int32_t n = 0;

    while (n >= 0) {
        status = status ? mend(loop) : take_step(loop, &n);
        if (!status && n > 0)
            status = grow(loop, n);
        if (status)
            n = 0;
        nanosleep(&moment, NULL);
    }
}

/* Join as a rank or as a newcomer, to whom the state is given.  Returns the status of the
 * communicator. */
static int join(struct loop *loop)
{
    const char *newcomer = getenv("COLLRUN_NEWCOMER"), *gate = getenv("GATE");
    int status;

    if (gate && is_first_newcomer())
        alarm(1);
    else if (gate && newcomer)
        close(open(gate, O_CREAT | O_WRONLY, 0600));
    do /* a rank may die while it lets this one in */
        status = coll_comm_create_env(&loop->comm, NULL);
    while (newcomer &&
           (status == COLL_ERR_PEER || status == COLL_ERR_BOOTSTRAP));
    if (status)
        end(loop, "create", status);
    if (!newcomer)
        return COLL_OK;
    printf("newcomer %s is in\n", newcomer);
    fflush(stdout);
    loop->dies_in = -1;
    return share(loop);
}

int main(int argc, char **argv)
{
    struct loop loop = {
        .n_steps = atoi(argv[1]), .want = atoi(argv[2]), .dies_in = -1};
    const char *place = getenv("LOCAL_RANK"), *rank = getenv("RANK");

    for (int i = 3; rank && i < argc; i++)
        if (atoi(argv[i]) == atoi(rank))
            loop.dies_in = atoi(strchr(argv[i], ':') + 1);
    run(&loop, join(&loop));
    printf("rank %d of %d in place %s has ended, %s\n",
           coll_comm_rank(loop.comm), coll_comm_size(loop.comm), place,
           getenv("COLLRUN_NEWCOMER") ? "a newcomer" : "from the beginning");
    return coll_comm_destroy(loop.comm) ? EXIT_FAILURE : EXIT_SUCCESS;
}
