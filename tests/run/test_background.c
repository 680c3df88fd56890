/* SPDX-License-Identifier: BSD-3-Clause */
/* test_background.c - the progress thread: what is started goes on while its
 * caller calls nothing, and the thread is there as long as somebody wants it. */
#include "include/coll/coll.h"
#include "lib/comm/comm.h"
#include "lib/run/request.h"
#include "lib/run/run.h"
#include "lib/topo/peer.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60
#define N_REQUESTS 12
#define MOST 300000 /* elements: more than fits a slot, or a cell */
#define ROUNDS 20

/* How many threads of this process have that name? */
static int count_threads(const char *name)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    int n = 0;

    while (dir && (entry = readdir(dir))) {
        char path[300], line[64] = "";
        FILE *file;

        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        if (fgets(line, sizeof(line), file))
            line[strcspn(line, "\n")] = 0;
        fclose(file);
        n += !strcmp(line, name);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Has this process so many progress threads, at once or soon?  One that has been
 * joined is listed for a moment more. */
static int has_threads(int n)
{
    double end = coll__now() + patient(10);

    while (count_threads("coll-progress") != n && coll__now() < end)
        usleep(1000);
    return count_threads("coll-progress") == n;
}

/* Wait without calling the library; the status then. */
static int watch(struct coll_request *request, double seconds)
{
    double end = coll__now() + patient(seconds);

    while (coll__request_status(request) == COLL_IN_PROGRESS &&
           coll__now() < end)
        usleep(100);
    return coll__request_status(request);
}

static struct coll_args sum_of(const int *in, int *out, size_t count)
{
    return (struct coll_args){.size = sizeof(struct coll_args),
                              .collective = COLL_ALLREDUCE,
                              .type = COLL_I32,
                              .op = COLL_SUM,
                              .in = in,
                              .out = out,
                              .count = count};
}

static void fill(int *in, int *out, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        in[i] = value + (int)i;
    memset(out, 0, count * sizeof(*out));
}

/* Of values rank + number. */
static int is_sum(const int *out, size_t count, int size, int number)
{
    for (size_t i = 0; i < count; i++)
        if (out[i] != size * ((int)i + number) + size * (size - 1) / 2)
            return 0;
    return 1;
}

/* ---- it moves what nobody else does ---------------------------------------- */

struct way {
    const char *mode; /* COLL_PROGRESS */
    int config, background, has_thread;
};

static const struct way ways[] = {
    {"auto", 0, 1, 1}, {"auto", 1, 0, 1}, {"thread", 0, 0, 1},
    {"auto", 0, 0, 0}, {"off", 1, 1, 0},  {"", 0, 1, 1},
};

#define N_WAYS (int)ARRAY_LEN(ways)

static int compute_beside(struct world_rank *me)
{
    static int in[MOST], out[MOST];
    const struct way *way = me->arg;
    struct coll_config config = {.size = sizeof(config),
                                 .progress_thread = way->config};
    struct coll_args args = sum_of(in, out, MOST);
    struct coll_request *request;
    struct coll_comm *comm;

    args.background = way->background;
    WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
    WORLD_CHECK(me, !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, has_threads(way->has_thread));
    for (int i = 0; i < 3; i++) {
        fill(in, out, MOST, me->rank + i);
        WORLD_CHECK(me, !coll_start(request));
        WORLD_CHECK(me, watch(request, way->has_thread ? 20 : 0.05) ==
                            (way->has_thread ? COLL_OK : COLL_IN_PROGRESS));
        world_meet(me);
        WORLD_CHECK(me, !coll_wait(request, 0));
        WORLD_CHECK(me, is_sum(out, MOST, me->size, i));
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, has_threads(0));
    return 0;
}

/* _i: transports, ways. */
START_TEST(what_is_started_ends_while_its_caller_computes)
{
    struct way way = ways[_i / 2];

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    setenv("COLL_PROGRESS", way.mode, 1);
    ck_assert_int_eq(world_fork(3, compute_beside, &way, DEADLINE), 0);
}
END_TEST

/* ---- a thread with a core of its own --------------------------------------- */

/* Have the communicator's host cores for a thread beside each rank, as far as the
 * library can tell. */
static void pretend_cores(struct coll_comm *comm)
{
    struct coll__peer *me = &comm->peers[comm->rank];

    me->local_cores = 2 * me->n_sharers;
    me->quota = 0;
}

static atomic_int is_in, may_go;

/* The sum, on rank 0 for as long as its caller likes. */
static void sum_slowly(const void *left, const void *right, void *out,
                       size_t count, enum coll_type type, void *arg)
{
    const struct world_rank *me = arg;

    (void)type;
    atomic_store(&is_in, 1);
    while (!me->rank && !atomic_load(&may_go))
        usleep(100);
    for (size_t i = 0; i < count; i++)
        ((int *)out)[i] = ((const int *)left)[i] + ((const int *)right)[i];
}

/* A sum on rank 0 keeps the thread at work: rank 1 starts it later, so that its
 * message is not there as it begins. */
static int start_slow(struct world_rank *me, struct coll_request *slow)
{
    double end = coll__now() + patient(20);

    if (me->rank)
        world_meet(me);
    WORLD_CHECK(me, !coll_start(slow));
    if (me->rank)
        return 0;
    world_meet(me);
    while (!atomic_load(&is_in) && coll__now() < end)
        usleep(100);
    WORLD_CHECK(me, atomic_load(&is_in));
    return 0;
}

static int leave_large_ones(struct world_rank *me)
{
    static int in[MOST], out[MOST];
    int one = me->rank, sum = 0;
    struct coll_comm *busy = world_join(me), *comm;
    struct coll_args args = sum_of(&one, &sum, 1);
    struct coll_request *slow, *large;
    enum coll_op slowly;

    WORLD_CHECK(me, busy && !coll_comm_dup(busy, &comm));
    pretend_cores(busy);
    args.background = 1;
    args.collective = COLL_REDUCE;
    WORLD_CHECK(me, !coll_op_create_user(sum_slowly, me, 1, &slowly));
    args.op = slowly;
    WORLD_CHECK(me, !coll_request_create(&args, busy, &slow));
    args = sum_of(in, out, MOST);
    args.background = 1;
    WORLD_CHECK(me, !coll_request_create(&args, comm, &large));
    fill(in, out, MOST, me->rank);
    WORLD_CHECK(me, !start_slow(me, slow) && !coll_start(large));
    WORLD_CHECK(me,
                me->rank || (comm->run->submitted && !comm->run->n_running));
    atomic_store(&may_go, 1);
    WORLD_CHECK(me, watch(large, 20) == COLL_OK && is_sum(out, MOST, 2, 0));
    WORLD_CHECK(me, !coll_wait(slow, 0) && sum == !me->rank);
    WORLD_CHECK(me, !coll_start(large) && !coll_wait(large, 0));
    WORLD_CHECK(me, !coll_request_destroy(large));
    WORLD_CHECK(me, !coll_request_destroy(slow));
    WORLD_CHECK(me, !coll_op_destroy(slowly));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    WORLD_CHECK(me, !coll_comm_destroy(busy));
    return 0;
}

/* The caller has something better to do than to copy. */
START_TEST(large_ones_are_left_to_a_thread_that_has_a_core)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(2, leave_large_ones, NULL, DEADLINE), 0);
}
END_TEST

/* ---- it takes what is started while it is at work ---------------------------- */

struct work {
    struct coll_request *request;
    int *in, *out, number;
    size_t count;
};

static int start_one(struct world_rank *me, struct work *w,
                     struct coll_comm *comm, unsigned random)
{
    static const size_t counts[] = {0, 1, 2, 1000, 9000, MOST};
    size_t count = counts[random % ARRAY_LEN(counts)];
    struct coll_args args = sum_of(w->in, w->out, count);

    w->count = count;
    w->number = (int)(random % 1000);
    args.background = 1;
    fill(w->in, w->out, count, me->rank + w->number);
    WORLD_CHECK(me, !coll_request_create(&args, comm, &w->request));
    WORLD_CHECK(me, !coll_start(w->request));
    return 0;
}

static int end_one(struct world_rank *me, struct work *w, int is_tested)
{
    int rc;

    while (is_tested && (rc = coll_test(w->request)) == COLL_IN_PROGRESS)
        ;
    WORLD_CHECK(me, !coll_wait(w->request, 0));
    WORLD_CHECK(me, is_sum(w->out, w->count, me->size, w->number));
    WORLD_CHECK(me, !coll_request_destroy(w->request));
    return 0;
}

/* To the next rank from the one before, beside all else. */
static int pass_on(struct world_rank *me, struct coll_comm *comm)
{
    int to = me->rank, from = -1;

    WORLD_CHECK(me, !coll_group_start());
    WORLD_CHECK(me, !coll_send(&to, 1, COLL_I32, (me->rank + 1) % me->size,
                               comm, NULL));
    WORLD_CHECK(me,
                !coll_recv(&from, 1, COLL_I32,
                           (me->rank + me->size - 1) % me->size, comm, NULL));
    WORLD_CHECK(me, !coll_group_end());
    WORLD_CHECK(me, from == (me->rank + me->size - 1) % me->size);
    return 0;
}

static int start_many(struct world_rank *me)
{
    struct work work[N_REQUESTS];
    struct coll_comm *comms[2];
    unsigned alike = 3, own = 1 + (unsigned)me->rank;

    comms[0] = world_join(me);
    WORLD_CHECK(me, comms[0] && !coll_comm_dup(comms[0], &comms[1]));
    if (me->arg)
        pretend_cores(comms[0]), pretend_cores(comms[1]);
    for (int i = 0; i < N_REQUESTS; i++) {
        work[i].in = malloc(MOST * sizeof(int));
        work[i].out = malloc(MOST * sizeof(int));
        WORLD_CHECK(me, work[i].in && work[i].out);
    }
    for (int round = 0; round < part_of(ROUNDS); round++) {
        for (int i = 0; i < N_REQUESTS; i++) {
            unsigned random = (unsigned)rand_r(&alike);

            WORLD_CHECK(me, !start_one(me, &work[i], comms[i % 2], random));
            if (random % 5 == 0)
                WORLD_CHECK(me, !pass_on(me, comms[i % 2]));
            if (rand_r(&own) % 3 == 0)
                usleep((useconds_t)(rand_r(&own) % 200));
        }
        for (int i = 0; i < N_REQUESTS; i++)
            WORLD_CHECK(me, !end_one(me, &work[i], rand_r(&own) % 2));
    }
    for (int i = 0; i < N_REQUESTS; i++) {
        free(work[i].in);
        free(work[i].out);
    }
    WORLD_CHECK(me, !coll_comm_destroy(comms[1]));
    WORLD_CHECK(me, !coll_comm_destroy(comms[0]));
    return 0;
}

/* _i: transports, ranks, whether it has a core. */
START_TEST(many_are_started_while_it_is_at_work)
{
    int has_core = _i / 4;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(2 + 3 * (_i / 2 % 2), start_many,
                                has_core ? &has_core : NULL, DEADLINE),
                     0);
}
END_TEST

START_TEST(ranks_that_are_threads_share_it)
{
    int has_core = _i / 2;

    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(
        world_threads(3, start_many, has_core ? &has_core : NULL, DEADLINE), 0);
}
END_TEST

/* ---- its life ---------------------------------------------------------------- */

static int come_and_go(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .progress_thread = 1};
    struct coll_comm *comm, *dup, *other;

    other = world_join(me);
    WORLD_CHECK(me, other && has_threads(0));
    for (int i = 0; i < 5; i++) {
        WORLD_CHECK(me, !coll_comm_create_oob(&comm, &me->oob, &config));
        WORLD_CHECK(me, has_threads(1));
        WORLD_CHECK(me, !coll_comm_dup(comm, &dup));
        WORLD_CHECK(me, !coll_comm_destroy(comm));
        WORLD_CHECK(me, has_threads(1)); /* the dup keeps it */
        WORLD_CHECK(me, !coll_comm_destroy(dup));
        /* ranks that come late are waited for in the next call, or the last */
        WORLD_CHECK(me, world_sum(other, 1) == COLL_OK);
    }
    WORLD_CHECK(me, !coll_comm_destroy(other));
    WORLD_CHECK(me, has_threads(0));
    return 0;
}

START_TEST(it_lives_as_long_as_one_that_wants_it)
{
    ck_assert_int_eq(world_fork(2, come_and_go, NULL, DEADLINE), 0);
}
END_TEST

/* A program ends with everything still under way. */
static int leave_all(struct world_rank *me)
{
    static int in[MOST], out[MOST];
    struct coll_args args = sum_of(in, out, MOST);
    struct coll_comm *comm = world_join(me);
    struct coll_request *request;

    args.background = 1;
    WORLD_CHECK(me, comm && !coll_request_create(&args, comm, &request));
    if (me->rank)
        WORLD_CHECK(me, !coll_start(request));
    world_meet(me);
    exit(has_threads(1) ? 0 : 1);
}

START_TEST(a_program_exits_beside_it)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, leave_all, NULL, DEADLINE), 0);
}
END_TEST

/* Children are made while it is at work: they have no such thread. */
static int fork_beside(struct world_rank *me)
{
    static int in[MOST], out[MOST];
    struct coll_args args = sum_of(in, out, MOST);
    struct coll_config config = {.size = sizeof(config), .progress_thread = 1};
    struct coll_comm *comm = world_join(me), *own;
    struct coll_request *request;
    struct coll_unique_id id;

    args.background = 1;
    WORLD_CHECK(me, comm && !coll_request_create(&args, comm, &request));
    for (int i = 0; i < 10; i++) {
        int status;
        pid_t pid;

        fill(in, out, MOST, me->rank + i);
        WORLD_CHECK(me, !coll_start(request));
        pid = fork();
        if (!pid) {
            WORLD_CHECK(me, has_threads(0));
            WORLD_CHECK(me, !coll_get_unique_id(&id));
            WORLD_CHECK(me, !coll_comm_create(&own, 1, &id, 0, &config));
            WORLD_CHECK(me, has_threads(0)); /* one rank waits for nobody */
            _exit(coll_comm_destroy(own));
        }
        WORLD_CHECK(me, waitpid(pid, &status, 0) == pid && !status);
        WORLD_CHECK(me, !coll_wait(request, 0));
        WORLD_CHECK(me, is_sum(out, MOST, me->size, i));
    }
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(children_are_made_beside_it)
{
    setenv("COLL_TRANSPORTS", world_transports(0), 1);
    ck_assert_int_eq(world_fork(2, fork_beside, NULL, DEADLINE), 0);
}
END_TEST

/* ---- faults ------------------------------------------------------------------ */

/* It is the thread that finds a rank dead; the caller is told by its own call. */
static int lose_a_rank(struct world_rank *me)
{
    static int in[MOST], out[MOST];
    struct coll_args args = sum_of(in, out, MOST);
    struct coll_comm *comm = world_join(me);
    struct coll_request *request;
    int rc;

    args.background = 1;
    WORLD_CHECK(me, comm && !coll_request_create(&args, comm, &request));
    WORLD_CHECK(me, !world_barrier(me, comm));
    if (me->rank == 1)
        kill(getpid(), SIGKILL);
    rc = coll_start(request); /* unless it is known already */
    WORLD_CHECK(me, rc == COLL_OK || rc == COLL_ERR_PEER);
    WORLD_CHECK(me, watch(request, 20) == COLL_ERR_PEER);
    if (me->rank)
        EXPECT(me, coll_wait(request, 0), COLL_ERR_PEER, "rank 1 ");
    else
        EXPECT(me, coll_test(request), COLL_ERR_PEER, "rank 1 ");
    WORLD_CHECK(me, !coll_request_destroy(request));
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    WORLD_CHECK(me, has_threads(0));
    return 0;
}

START_TEST(its_failures_are_told_by_the_next_call)
{
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, lose_a_rank, NULL, DEADLINE), 1);
}
END_TEST

static int ask_wrongly(struct world_rank *me)
{
    struct coll_config config = {.size = sizeof(config), .progress_thread = 2};
    struct coll_args args = sum_of(NULL, NULL, 0);
    struct coll_comm *comm;
    struct coll_request *request;

    EXPECT(me, coll_comm_create_oob(&comm, &me->oob, &config), COLL_ERR_INVALID,
           "config.progress_thread must be 0 or 1");
    comm = world_join(me);
    args.background = -1;
    EXPECT(me, comm ? coll_request_create(&args, comm, &request) : 0,
           COLL_ERR_INVALID, "background must be 0 or 1");
    WORLD_CHECK(me, !coll_comm_destroy(comm));
    return 0;
}

START_TEST(wrong_wishes_are_refused)
{
    ck_assert_int_eq(world_fork(1, ask_wrongly, NULL, DEADLINE), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("background");
    TCase *c = suite_case(suite, "background", DEADLINE + 30);

    patient_timeout(DEADLINE / 2);
    setenv("COLL_PROGRESS", "auto", 1);
    tcase_add_loop_test(c, what_is_started_ends_while_its_caller_computes, 0,
                        2 * N_WAYS);
    tcase_add_loop_test(c, many_are_started_while_it_is_at_work, 0, 8);
    tcase_add_loop_test(c, large_ones_are_left_to_a_thread_that_has_a_core, 0,
                        2);
    tcase_add_loop_test(c, ranks_that_are_threads_share_it, 0, 4);
    tcase_add_test(c, it_lives_as_long_as_one_that_wants_it);
    tcase_add_loop_test(c, a_program_exits_beside_it, 0, 2);
    tcase_add_test(c, children_are_made_beside_it);
    tcase_add_loop_test(c, its_failures_are_told_by_the_next_call, 0, 2);
    tcase_add_test(c, wrong_wishes_are_refused);
    return suite_run(suite);
}
