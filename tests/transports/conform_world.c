/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_world.c - ranks as threads or as processes, with deadlines. */
#include "tests/transports/conform.h"
#include "tests/transports/conform_far.h"
#include "tests/support/patience.h"
#include "lib/util/util.h"
#include "transports/ucx_price.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOARD 4096 /* bytes of each rank that allgather() moves at once */

int conform_is_spread;

/* In a shared mapping; all but the failure is under lock. */
struct world {
    struct scenario scenario;
    pthread_mutex_t lock;
    pthread_cond_t all_came;
    int n_came;
    unsigned round;
    atomic_int has_failed; /* release: after failure was written */
    atomic_int n_met;      /* of all meetings */
    char failure[512];
    struct coll__peer peers[MAX_RANKS];
    unsigned char board[MAX_RANKS][BOARD];
};

static struct world *world_create(const struct scenario *scenario)
{
    struct world *world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;

    ck_assert_ptr_ne(world, MAP_FAILED);
    world->scenario = *scenario;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&world->lock, &mutex);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_cond_init(&world->all_came, &cond);
    return world;
}

static void world_destroy(struct world *world)
{
    munmap(world, sizeof(*world));
}

static void leave(struct rank *rank)
{
    if (rank->is_process)
        _exit(1);
    pthread_exit(NULL);
}

void conform_fail(struct rank *rank, const char *file, int line,
                  const char *format, ...)
{
    struct world *world = rank->world;
    va_list args;
    int n;

    pthread_mutex_lock(&world->lock);
    if (!atomic_load(&world->has_failed)) {
        n = snprintf(world->failure, sizeof(world->failure),
                     "%s:%d: rank %d of %d: ", file, line, rank->me,
                     rank->size);
        va_start(args, format);
        vsnprintf(world->failure + n, sizeof(world->failure) - (size_t)n,
                  format, args);
        va_end(args);
        atomic_store(&world->has_failed, 1);
    }
    pthread_cond_broadcast(&world->all_came);
    pthread_mutex_unlock(&world->lock);
    leave(rank);
    abort(); /* leave() does not return */
}

void conform_check(struct rank *rank)
{
    if (atomic_load(&rank->world->has_failed))
        leave(rank);
    if (conform_far.size)
        conform_far_check(rank);
}

int conform_victim(const struct rank *rank)
{
    return rank->world->scenario.victim;
}

static void barrier_here(struct rank *rank)
{
    struct world *world = rank->world;
    struct timespec until;
    unsigned round;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)patient(WAIT_SECONDS);
    pthread_mutex_lock(&world->lock);
    round = world->round;
    if (++world->n_came == rank->size) {
        world->n_came = 0;
        world->round++;
        pthread_cond_broadcast(&world->all_came);
    }
    while (!rc && world->round == round && !atomic_load(&world->has_failed))
        rc = pthread_cond_timedwait(&world->all_came, &world->lock, &until);
    pthread_mutex_unlock(&world->lock);
    EXPECT(rank, !rc, "the others did not come to the barrier");
    conform_check(rank);
}

void conform_barrier(struct rank *rank)
{
    char came = 1, all[MAX_RANKS];

    if (conform_far.size)
        conform_far_gather(rank, &came, 1, all);
    else
        barrier_here(rank);
}

static int gather(void *arg, const void *in, size_t len, void *out)
{
    struct rank *rank = arg;

    if (conform_far.size) {
        conform_far_gather(rank, in, len, out);
        return COLL_OK;
    }
    for (size_t at = 0; at < len; at += BOARD) {
        size_t n = min_size(len - at, BOARD);

        memcpy(rank->world->board[rank->me], (const char *)in + at, n);
        conform_barrier(rank);
        for (int r = 0; r < rank->size; r++)
            memcpy((char *)out + (size_t)r * len + at, rank->world->board[r],
                   n);
        conform_barrier(rank);
    }
    return COLL_OK;
}

int conform_open(struct rank *rank)
{
    static const unsigned char secret[32] = {1, 2, 3};
    const struct coll__transport *ops = rank->world->scenario.transport;
    struct coll__tp_env env = {.rank = rank->me,
                               .size = rank->size,
                               .peers = rank->world->peers,
                               .allgather = gather,
                               .arg = rank,
                               .timeout = NO_DEADLINE,
                               .is_rdma_alone = conform_far.size != 0,
                               .secret = secret};
    struct coll__link link;
    uint32_t found[MAX_RANKS];
    int rc = ops->open(&env, &rank->tp);

    if (rc == COLL_OK)
        rc = gather(rank, &rank->tp->found, sizeof(*found), found);
    if (rc == COLL_OK)
        rc = ops->settle(rank->tp, found);
    rank->n_peers = 0;
    for (int r = 0; rc == COLL_OK && r < rank->size; r++)
        if (ops->reaches(rank->tp, r, &link) == COLL_OK)
            rank->peers[rank->n_peers++] = r;
    return rc;
}

void conform_poll(struct rank *rank)
{
    conform_check(rank);
    EXPECT(rank, rank->tp->ops->poll(rank->tp) >= 0, "%s", coll_last_error());
    sched_yield();
}

void conform_poll_for(struct rank *rank, double seconds)
{
    double deadline = coll__now() + seconds;

    while (coll__now() < deadline)
        conform_poll(rank);
}

void conform_meet(struct rank *rank)
{
    double deadline = coll__now() + patient(WAIT_SECONDS);
    int all = ++rank->n_meetings * rank->size;

    if (conform_far.size) {
        conform_far_meet(rank);
        return;
    }
    atomic_fetch_add(&rank->world->n_met, 1);
    while (atomic_load(&rank->world->n_met) < all) {
        EXPECT(rank, coll__now() < deadline, "the others did not come");
        conform_poll(rank);
    }
}

static int n_in_progress(const struct coll__xfer *xfers, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += xfers[i].status == COLL_IN_PROGRESS;
    return count;
}

void conform_wait(struct rank *rank, const struct coll__xfer *xfers, int n)
{
    double deadline = coll__now() + patient(WAIT_SECONDS);

    while (n_in_progress(xfers, n)) {
        EXPECT(rank, coll__now() < deadline, "%d of %d transfers hang",
               n_in_progress(xfers, n), n);
        conform_poll(rank);
    }
}

/* ---- one rank ----------------------------------------------------------- */

static void describe_peer(struct rank *rank)
{
    const struct scenario *scenario = &rank->world->scenario;
    int spread = scenario->is_spread || conform_is_spread || conform_far.size;
    struct coll__peer *peer = &rank->world->peers[rank->me], mine;

    *peer = (struct coll__peer){.pid = getpid(),
                                .host = spread ? rank->me : 0,
                                .local_rank = spread ? 0 : rank->me,
                                .local_size = spread ? 1 : rank->size,
                                .n_cores = 2,
                                .local_cores = 2};
    snprintf(peer->host_id, sizeof(peer->host_id), "host-%d", peer->host);
    if (!conform_far.size) {
        conform_barrier(rank);
        return;
    }
    coll__ucx_fabrics(-1, peer->fabrics);
    mine = *peer;
    conform_far_gather(rank, &mine, sizeof(mine), rank->world->peers);
}

static void run_rank(struct rank *rank)
{
    const struct scenario *scenario = &rank->world->scenario;
    int rc;

    if (conform_far.size)
        conform_far_join(rank);
    describe_peer(rank);
    if (!scenario->is_opened_by_body) {
        rc = conform_open(rank);
        EXPECT(rank, rc == COLL_OK, "%s", coll_last_error());
        EXPECT(rank, !conform_far.size || rank->n_peers == rank->size - 1,
               "not by RDMA to all: %s", coll_last_error());
    }
    scenario->body(rank);
    if (!scenario->is_closed_by_body) {
        conform_barrier(rank);
        scenario->transport->close(rank->tp, !scenario->is_abrupt);
    }
}

static void *thread_main(void *arg)
{
    run_rank(arg);
    return NULL;
}

/* ---- all ranks ---------------------------------------------------------- */

static void run_threads(struct rank *ranks, int size)
{
    pthread_t threads[MAX_RANKS];

    for (int r = 0; r < size; r++)
        ck_assert_int_eq(
            pthread_create(&threads[r], NULL, thread_main, &ranks[r]), 0);
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
}

static pid_t fork_rank(struct rank *rank)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rank->is_process = 1;
    run_rank(rank);
    exit(0); /* by exit(), so that the leak checker looks */
}

/* Note how a child ended. */
static void judge(struct world *world, int rank, int status)
{
    if ((WIFEXITED(status) && !WEXITSTATUS(status)) ||
        rank == world->scenario.victim || atomic_load(&world->has_failed))
        return;
    snprintf(world->failure, sizeof(world->failure),
             "rank %d ended with wait status %#x", rank, (unsigned)status);
    atomic_store(&world->has_failed, 1);
}

/* Collect the children; those that outlive a failure or the deadline by five
 * seconds are killed. */
static void reap(struct world *world, pid_t *pids, int size)
{
    double deadline = coll__now() + patient(4 * WAIT_SECONDS);
    int n_left = 0, status;

    for (int r = 0; r < size; r++)
        n_left += pids[r] != 0;
    while (n_left) {
        if (atomic_load(&world->has_failed) && deadline > coll__now() + 5)
            deadline = coll__now() + 5;
        for (int r = 0; r < size; r++) {
            if (pids[r] && coll__now() > deadline)
                kill(pids[r], SIGKILL);
            if (!pids[r] || waitpid(pids[r], &status, WNOHANG) != pids[r])
                continue;
            pids[r] = 0;
            n_left--;
            judge(world, r, status);
        }
        usleep(1000);
    }
}

static void run_processes(struct world *world, struct rank *ranks, int size)
{
    pid_t pids[MAX_RANKS] = {0};

    for (int r = 0; r < size; r++)
        if (!conform_far.size || r == conform_far.rank)
            pids[r] = fork_rank(&ranks[r]);
    reap(world, pids, size);
}

void conform_run(const struct scenario *scenario)
{
    struct world *world = world_create(scenario);
    int has_failed, size = conform_far.size ? conform_far.size : scenario->size;
    struct rank ranks[MAX_RANKS];
    char failure[sizeof(world->failure)];

    for (int r = 0; r < size; r++)
        ranks[r] = (struct rank){.world = world,
                                 .me = r,
                                 .size = size,
                                 .index = scenario->index,
                                 .channel = size % COLL__CHANNELS};
    if (conform_far.size || scenario->are_processes)
        run_processes(world, ranks, size);
    else
        run_threads(ranks, size);
    has_failed = atomic_load(&world->has_failed);
    memcpy(failure, world->failure, sizeof(failure));
    world_destroy(world);
    if (has_failed)
        ck_abort_msg("%s", failure);
}
