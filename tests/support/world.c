/* SPDX-License-Identifier: BSD-3-Clause */
/* world.c - ranks by fork or as threads, with one shared board to meet at. */
#include "tests/support/world.h"
#include "lib/ctrl/ctrl.h"
#include "tests/support/patience.h"
#include "lib/comm/comm.h"
#include "lib/util/util.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOARD_BYTES (1 << 20)

/* Shared by all ranks: a barrier, and room to lay blocks down. */
struct board {
    pthread_barrier_t barrier;
    atomic_int n_through;
    unsigned char room[BOARD_BYTES];
};

struct seat { /* one rank's access to it */
    struct board *board;
    struct world_rank me;
    world_fn *fn;
    int result;
};

const char *world_net(const char *prefix)
{
    static _Thread_local char names[64];
    const char *net = getenv("TEST_NET");

    snprintf(names, sizeof(names), "%s%s", prefix, net ? net : "tcp");
    return names;
}

const char *world_transports(int which)
{
    return which ? world_net("self,") : "self,shm";
}

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

int world_on_host(int number)
{
    char name[] = "/tmp/world_host.XXXXXX";
    int fd = mkstemp(name), rc;

    if (fd < 0)
        return -1;
    dprintf(fd, "00000000-0000-4000-8000-%012d\n", number);
    close(fd);
    rc = unshare(CLONE_NEWNS) ||
         mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
         mount(name, BOOT_ID, NULL, MS_BIND, NULL);
    unlink(name);
    return rc ? -1 : 0;
}

static int board_allgather(void *arg, const void *in, void *out, size_t len)
{
    struct seat *seat = arg;
    size_t all = len * (size_t)seat->me.size;

    if (all > BOARD_BYTES)
        return -1;
    memcpy(seat->board->room + len * (size_t)seat->me.rank, in, len);
    pthread_barrier_wait(&seat->board->barrier);
    memcpy(out, seat->board->room, all);
    pthread_barrier_wait(&seat->board->barrier);
    return 0;
}

static struct board *board_new(int size, int shared)
{
    pthread_barrierattr_t attr;
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (board == MAP_FAILED)
        return NULL;
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, shared);
    pthread_barrier_init(&board->barrier, &attr, (unsigned)size);
    pthread_barrierattr_destroy(&attr);
    return board;
}

static void seat_init(struct seat *seat, struct board *board, int rank,
                      int size, world_fn *fn, void *arg)
{
    *seat = (struct seat){.board = board, .fn = fn, .result = 1};
    seat->me = (struct world_rank){.rank = rank, .size = size, .arg = arg};
    seat->me.oob = (struct coll_oob){.size = sizeof(struct coll_oob),
                                     .rank = rank,
                                     .nranks = size,
                                     .allgather = board_allgather,
                                     .arg = seat};
}

/* ---- what ranks do together ---------------------------------------------- */

/* Tests of the trainer have the library's exported functions alone. */
#pragma weak coll__ctrl_answer_within

/* A rank that answers late, since the machine is busy, is not yet silent. */
static void be_patient(struct coll_comm *comm)
{
    if (coll__ctrl_answer_within && comm && comm->ctrl)
        coll__ctrl_answer_within(comm->ctrl, patient(0.2));
}

struct coll_comm *world_join(const struct world_rank *me)
{
    struct coll_comm *comm = NULL;

    if (coll_comm_create_oob(&comm, &me->oob, NULL))
        fprintf(stderr, "rank %d: %s\n", me->rank, coll_last_error());
    be_patient(comm);
    return comm;
}

void world_meet(const struct world_rank *me)
{
    struct seat *seat = me->oob.arg;

    pthread_barrier_wait(&seat->board->barrier);
}

int world_barrier(const struct world_rank *me, struct coll_comm *comm)
{
    int rc = coll_barrier(comm, NULL);

    world_meet(me);
    return rc;
}

int world_divide(const struct world_rank *me, int color, struct coll_comm **all,
                 struct coll_comm **part)
{
    int rc;

    *all = world_join(me);
    rc = *all ? coll_comm_split(*all, color, 0, part) : COLL_ERR_BOOTSTRAP;
    if (!rc)
        be_patient(*part);
    return rc ? rc : world_barrier(me, *all);
}

int world_sum(struct coll_comm *comm, int n)
{
    int one = 1, rc = COLL_OK;

    for (int i = 0; i < n && rc == COLL_OK; i++) {
        int sum = -1;

        rc = coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL);
        if (rc == COLL_OK && sum != coll_comm_size(comm))
            rc = COLL_ERR_INTERNAL;
    }
    return rc;
}

int world_sum_until_failure(struct coll_comm *comm)
{
    int rc;

    while ((rc = world_sum(comm, 1)) == COLL_OK)
        ;
    return rc;
}

void world_through(const struct world_rank *me)
{
    struct seat *seat = me->oob.arg;

    atomic_fetch_add(&seat->board->n_through, 1);
}

int world_await_through(const struct world_rank *me, int n, double deadline)
{
    const struct seat *seat = me->oob.arg;
    double end = coll__now() + patient(deadline);

    while (atomic_load(&seat->board->n_through) < n && coll__now() < end)
        usleep(1000);
    return atomic_load(&seat->board->n_through) >= n;
}

/* A thread of the library may read it meanwhile: one or the other deadline, both good. */
__attribute__((no_sanitize("thread"))) void
world_hurry(struct coll_comm *comm, double timeout)
{
    comm->timeout = timeout;
}

int world_sum_is(struct coll_comm *comm, int want)
{
    int one = 1, sum = 0;

    return !coll_allreduce(&one, &sum, 1, COLL_I32, COLL_SUM, comm, NULL) &&
           sum == want;
}

struct coll__ctrl *world_ctrl(const struct coll_comm *comm)
{
    return comm->ctrl;
}

int world_await_failure(struct coll_comm *comm, double deadline)
{
    double end = coll__now() + patient(deadline);

    while (coll_comm_async_error(comm) == COLL_OK && coll__now() < end)
        usleep(1000);
    return coll_comm_async_error(comm);
}

/* ---- processes ----------------------------------------------------------- */

static int is_rank; /* this process is one */

/* Where Check forks no process for a test (CK_FORK=no), it goes on with the next test after
 * a failure, in a rank as well: that would be ranks of ranks without end. */
static void end_rank(void)
{
    if (!is_rank)
        return;
    fprintf(stderr, "world: an assertion failed in a rank\n");
    _exit(1);
}

static pid_t start_process(struct board *board, int rank, int size,
                           world_fn *fn, void *arg, pid_t *pids)
{
    pid_t pid = fork();
    struct seat seat;

    if (pid)
        return pid;
    is_rank = 1;
    signal(SIGALRM, SIG_DFL);
    seat_init(&seat, board, rank, size, fn, arg);
    seat.me.pids = pids;
    while (!__atomic_load_n(&pids[size - 1], __ATOMIC_ACQUIRE))
        usleep(100); /* until all have been started */
    exit(fn(&seat.me));
}

/* Wait for one process until `end`; 1 when it failed. */
static int reap(pid_t pid, double end)
{
    int status = 1;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
        if (coll__now() > end) {
            fprintf(stderr, "world: process %d is late, killed\n", (int)pid);
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return 1;
        }
        usleep(500);
    }
    return got < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
}

/* fork() failed after n ranks: end those, who wait for the others. */
static int give_up(const pid_t *pids, int n)
{
    perror("world: fork");
    for (int r = 0; r < n; r++) {
        kill(pids[r], SIGKILL);
        waitpid(pids[r], NULL, 0);
    }
    return n + 1;
}

int world_fork(int size, world_fn *fn, void *arg, double deadline)
{
    double end = coll__now() + patient(deadline);
    struct board *board = board_new(size, PTHREAD_PROCESS_SHARED);
    size_t len = (size_t)size * sizeof(pid_t);
    pid_t *pids = mmap(NULL, len, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = 0;

    end_rank();
    if (!board || pids == MAP_FAILED)
        return size;
    fflush(NULL);
    for (int r = 0; r < size; r++) {
        pid_t pid = start_process(board, r, size, fn, arg, pids);

        if (pid < 0)
            return give_up(pids, r);
        __atomic_store_n(&pids[r], pid, __ATOMIC_RELEASE);
    }
    for (int r = 0; r < size; r++)
        failed += reap(pids[r], end);
    munmap(board, sizeof(*board));
    munmap(pids, len);
    return failed;
}

struct joined {
    world_comm_fn *fn;
    void *arg;
};

static int run_joined(struct world_rank *me)
{
    const struct joined *joined = me->arg;
    struct coll_comm *comm;

    me->arg = joined->arg;
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, NULL));
    if (joined->fn(me, comm))
        return 1;
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

int world_fork_by(int size, world_fn *fn, int by, double deadline)
{
    setenv("COLL_TRANSPORTS", world_net(by ? "self," : "self,shm,"), 1);
    return world_fork(size, fn, NULL, deadline);
}

int world_fork_planned(int size, world_fn *fn, const char *plan,
                       double deadline)
{
    char path[] = "/tmp/world_plan.XXXXXX";
    int fd = mkstemp(path), n_wrong = size;

    if (fd < 0)
        return size;
    if (write(fd, plan, strlen(plan)) == (ssize_t)strlen(plan)) {
        setenv("COLL_PLAN_FILE", path, 1);
        n_wrong = world_fork(size, fn, NULL, deadline);
    }
    unlink(path);
    close(fd);
    return n_wrong;
}

int world_fork_joined(int size, world_comm_fn *fn, void *arg, double deadline)
{
    struct joined joined = {fn, arg};

    return world_fork(size, run_joined, &joined, deadline);
}

int world_expects(const struct world_rank *me, const char *where, int rc,
                  int code, const char *words)
{
    if (rc == code && strstr(coll_last_error(), words))
        return 1;
    fprintf(stderr,
            "rank %d of %d, %s: %d (%s), which should be %d (%s) with "
            "\"%s\" in: %s\n",
            me->rank, me->size, where, rc, coll_strerror(rc), code,
            coll_strerror(code), words, coll_last_error());
    return 0;
}

/* ---- threads ------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    struct seat *seat = arg;

    seat->result = seat->fn(&seat->me);
    return NULL;
}

int world_threads(int size, world_fn *fn, void *arg, double deadline)
{
    struct board *board = board_new(size, PTHREAD_PROCESS_PRIVATE);
    struct seat *seats = calloc((size_t)size, sizeof(*seats));
    pthread_t *threads = calloc((size_t)size, sizeof(*threads));
    int failed = 0;

    if (!board || !seats || !threads)
        return size;
    alarm((unsigned)patient(deadline) + 1); /* ends the process: SIGALRM's default */
    for (int r = 0; r < size; r++) {
        seat_init(&seats[r], board, r, size, fn, arg);
        pthread_create(&threads[r], NULL, thread_main, &seats[r]);
    }
    for (int r = 0; r < size; r++) {
        pthread_join(threads[r], NULL);
        failed += seats[r].result != 0;
    }
    alarm(0);
    pthread_barrier_destroy(&board->barrier);
    munmap(board, sizeof(*board));
    free(seats);
    free(threads);
    return failed;
}
