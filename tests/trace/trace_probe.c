/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_probe.c - for trace.sh: a program whose operations are traced, and the
 * judge of the timeline that came of it.
 *
 *   trace_probe run N      N allreduces and what else there is, of any rank
 *   trace_probe endless    the same until it is killed; "." when it has begun
 *   trace_probe late FILE  three allreduces, and the last rank comes to a fourth when
 *                          there is a FILE; - for FILE: it comes at once
 *   trace_probe other FILE the same, and it calls a barrier instead
 *   trace_probe away FILE  the same, having gone to the root folder
 *   trace_probe slow FILE  the same as late, and before it the last rank comes to each of
 *                          17 more after all others
 *   trace_probe leave FILE as late, after 2,000, and all exit at the failure
 *   trace_probe hand-over  communicators of one thread end while another's begin:
 *                          SIGUSR2 is the library's all the while
 *   trace_probe child      a child makes a communicator and is asked for its calls
 *   trace_probe check FILE whole JSON, B and E in pairs, time forward; prints
 *                          the number of ALLREDUCE and their time
 */
#include "include/coll/coll.h"
#include "lib/util/util.h"

#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 1000
#define MAX_ROWS 300
#define MAX_DEPTH 8

#ifdef __SANITIZE_ADDRESS__ /* which has no threads after a fork */
#define NO_THREADS_AFTER_FORK 1
#else
#define NO_THREADS_AFTER_FORK 0
#endif

static float in[2][N], out[2][N];

static int must(int rc)
{
    if (rc >= 0)
        return rc;
    fprintf(stderr, "%s\n", coll_last_error());
    exit(EXIT_FAILURE);
}

/* Two of a shape at once. */
static void overlap(struct coll_comm *comm)
{
    struct coll_request *requests[2];

    for (int i = 0; i < 2; i++) {
        struct coll_args args = {.size = sizeof(args),
                                 .collective = COLL_ALLGATHER,
                                 .type = COLL_F32,
                                 .in = in[i],
                                 .out = out[i],
                                 .count = 10,
                                 .user_tag = 5 + (unsigned)i};

        must(coll_request_create(&args, comm, &requests[i]));
        must(coll_start(requests[i]));
    }
    for (int i = 0; i < 2; i++) {
        must(coll_wait(requests[i], 0));
        must(coll_request_destroy(requests[i]));
    }
}

static void messages(struct coll_comm *comm)
{
    int size = coll_comm_size(comm), rank = coll_comm_rank(comm);

    must(coll_group_start());
    must(coll_send(in[0], 5, COLL_F32, (rank + 1) % size, comm, NULL));
    must(coll_recv(out[0], 5, COLL_F32, (rank + size - 1) % size, comm, NULL));
    must(coll_group_end());
}

/* Spans of the past; the second begins before the first has ended, and the third ends
 * before it has begun. */
static void mark_past(double begin)
{
    coll_timeline_add("PAST", "one", begin, begin + 2e-6);
    coll_timeline_add("PAST", "two", begin + 1e-6, begin + 3e-6);
    coll_timeline_add("PAST", "never", begin + 4e-6, begin);
}

static void *mark(void *name)
{
    for (int i = 0; i < 20; i++) {
        double t = coll_timeline_begin();

        coll_timeline_end("SHARED \"row\"\n", name, t);
    }
    return NULL;
}

static void one_round(struct coll_comm *comm)
{
    double t = coll_timeline_begin();

    must(coll_allreduce(in[0], out[0], N, COLL_F32, COLL_SUM, comm, NULL));
    coll_timeline_end("FORWARD", "FORWARD", t);
}

/* A child's calls are its own affair: nothing of them comes into the file. */
static void fork_once(void)
{
    pid_t pid;

    fflush(stdout); /* the child would write it once more */
    pid = fork();
    if (!pid) {
        coll_timeline_end("CHILD", "CHILD", coll_timeline_begin());
        exit(EXIT_SUCCESS); /* with what the library does at the exit */
    }
    waitpid(pid, NULL, 0);
}

static void run(long n)
{
    struct coll_comm *comm;
    pthread_t threads[2];
    double start = 0;

    must(coll_comm_create_env(&comm, NULL));
    start = coll__now();
    one_round(comm);
    for (long i = 1; n < 0 || i < n; i++) {
        if (i == 1 && n < 0 && coll_comm_rank(comm) == 0 &&
            write(STDOUT_FILENO, ".\n", 2) < 0)
            exit(EXIT_FAILURE);
        one_round(comm);
    }
    if (coll_comm_rank(comm) == 0)
        printf("outside %.9f\n", coll__now() - start);
    mark_past(start);
    overlap(comm);
    messages(comm);
    must(coll_barrier(comm, NULL));
    for (size_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, mark, i ? "b" : "a");
    for (size_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    fork_once();
    must(coll_comm_destroy(comm));
}

/* ---- the judge ------------------------------------------------------------ */

static struct {
    int depth, n_allreduce;
    json_int_t ts[MAX_DEPTH], last;
    const char *name[MAX_DEPTH];
    int is_named;
} rows[MAX_ROWS];

static int n_allreduce, n_nested;
static double allreduce_us;

static void judge(int holds, const char *what, size_t i)
{
    if (holds)
        return;
    fprintf(stderr, "event %zu: %s\n", i, what);
    exit(EXIT_FAILURE);
}

static void take_begin(const json_t *event, json_int_t pid, json_int_t ts)
{
    int d = rows[pid].depth++;

    rows[pid].ts[d] = ts;
    rows[pid].name[d] = json_string_value(json_object_get(event, "name"));
    n_nested += d > 0;
}

static void take_end(json_int_t pid, json_int_t ts)
{
    int d = --rows[pid].depth;

    if (strcmp(rows[pid].name[d], "ALLREDUCE"))
        return;
    n_allreduce++;
    allreduce_us += (double)(ts - rows[pid].ts[d]);
}

static void take(const json_t *event, size_t i)
{
    const char *ph = json_string_value(json_object_get(event, "ph"));
    json_int_t pid = json_integer_value(json_object_get(event, "pid"));
    json_int_t ts = json_integer_value(json_object_get(event, "ts"));

    judge(ph && strlen(ph) == 1 && pid >= 0 && pid < MAX_ROWS, "no event", i);
    if (*ph == 'M') {
        rows[pid].is_named = 1;
        return;
    }
    judge(*ph == 'B' || *ph == 'E', "neither B nor E", i);
    judge(rows[pid].is_named, "a row without a name", i);
    judge(ts >= rows[pid].last, "time goes backward in a row", i);
    rows[pid].last = ts;
    judge(*ph == 'B' ? rows[pid].depth < MAX_DEPTH : rows[pid].depth > 0,
          "an E without its B", i);
    if (*ph == 'B')
        take_begin(event, pid, ts);
    else
        take_end(pid, ts);
}

static void check(const char *path)
{
    json_error_t error;
    json_t *all = json_load_file(path, 0, &error);
    size_t i;

    if (!all) {
        fprintf(stderr, "%s:%d: %s\n", path, error.line, error.text);
        exit(EXIT_FAILURE);
    }
    for (i = 0; i < json_array_size(all); i++)
        take(json_array_get(all, i), i);
    for (i = 0; i < MAX_ROWS; i++)
        judge(!rows[i].depth, "a B without its E", i);
    judge(n_nested > 0, "nothing lies within an operation", 0);
    printf("allreduces %d seconds %.6f\n", n_allreduce, allreduce_us * 1e-6);
    json_decref(all);
}

/* An allreduce or a barrier, which goes by a number of this rank's and may take
 * CALL_TIMEOUT seconds. */
static int call(struct coll_comm *comm, enum coll_collective collective)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = collective,
                             .type = COLL_F32,
                             .op = COLL_SUM,
                             .in = in[0],
                             .out = out[0],
                             .count = N,
                             .user_tag = 70 + (unsigned)coll_comm_rank(comm)};
    const char *patience = getenv("CALL_TIMEOUT");
    struct coll_request *request;
    int rc;

    if (collective == COLL_BARRIER)
        args.count = 0;
    rc = coll_request_create(&args, comm, &request);
    if (!rc)
        rc = coll_start(request);
    return rc ? rc : coll_wait(request, patience ? atof(patience) : 0);
}

/* The last rank starts each allreduce when the others have. */
static void come_last(struct coll_comm *comm, int is_last)
{
    struct coll_args args = {.size = sizeof(args),
                             .collective = COLL_ALLREDUCE,
                             .type = COLL_F32,
                             .op = COLL_SUM,
                             .in = in[0],
                             .out = out[0],
                             .count = N};
    struct coll_request *request;
    struct coll_comm *other;

    must(coll_comm_split(comm, 0, coll_comm_rank(comm), &other));
    must(coll_request_create(&args, comm, &request));
    for (int i = 0; i < 17; i++) {
        if (!is_last)
            must(coll_start(request));
        must(coll_barrier(other, NULL));
        if (is_last) {
            usleep(1000); /* more than the history's times are rounded to */
            must(coll_start(request));
        }
        must(coll_wait(request, 0));
    }
    must(coll_request_destroy(request));
    must(coll_comm_destroy(other));
}

/* What goes wrong is said, and is no failure of this program. */
static void go_wrong(const char *how, const char *file)
{
    struct coll_comm *comm;
    int is_last, rc, leaves = !strcmp(how, "leave");

    must(coll_comm_create_env(&comm, NULL));
    is_last = coll_comm_rank(comm) == coll_comm_size(comm) - 1;
    if (!strcmp(how, "slow"))
        come_last(comm, is_last);
    for (int i = 0; i < (leaves ? 2000 : 3); i++)
        one_round(comm);
    printf("begun\n");
    fflush(stdout);
    while (is_last && strcmp(file, "-") && access(file, F_OK))
        usleep(5000);
    if (!strcmp(how, "away") && chdir("/"))
        exit(EXIT_FAILURE);
    rc = is_last && (!strcmp(how, "other") || !strcmp(how, "away"))
             ? call(comm, COLL_BARRIER)
             : call(comm, COLL_ALLREDUCE);
    if (rc && leaves)
        exit(EXIT_SUCCESS);
    if (rc)
        fprintf(stderr, "%s\n", coll_last_error());
    coll_comm_destroy(comm);
}

/* ---- SIGUSR2 ---------------------------------------------------------------- */

static void *make(void *comm)
{
    struct coll_unique_id id;

    must(coll_get_unique_id(&id));
    must(coll_comm_create(comm, 1, &id, 0, NULL));
    return NULL;
}

static void hand_over(void)
{
    struct coll_comm *now, *next;
    struct sigaction action;
    pthread_t thread;

    make(&now);
    for (int i = 0; i < 300; i++) {
        pthread_create(&thread, NULL, make, &next);
        usleep((unsigned)(i % 30) * 20); /* it is at another place */
        must(coll_comm_destroy(now));
        pthread_join(thread, NULL);
        now = next;
        sigaction(SIGUSR2, NULL, &action);
        if (action.sa_handler == SIG_DFL) {
            fprintf(stderr, "SIGUSR2 would kill, after %d\n", i);
            exit(EXIT_FAILURE);
        }
    }
    raise(SIGUSR2);
    must(coll_comm_destroy(now));
}

static void be_child(void)
{
    struct coll_comm *comm;
    int status = 0;
    char file[256];
    pid_t pid;

    if (NO_THREADS_AFTER_FORK) {
        printf("left out\n");
        return;
    }
    make(&comm);
    pid = fork();
    if (!pid) {
        struct coll_comm *mine;

        make(&mine);
        raise(SIGUSR2);
        snprintf(file, sizeof(file), "%s.0", getenv("COLL_HISTORY"));
        while (access(file, F_OK))
            usleep(5000);
        must(coll_comm_destroy(mine));
        raise(SIGUSR2); /* is as it was before the parent's */
        exit(EXIT_SUCCESS);
    }
    waitpid(pid, &status, 0);
    must(coll_comm_destroy(comm));
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGUSR2)
        exit(EXIT_FAILURE);
}

static int is_wrong_way(const char *how)
{
    static const char *const ways[] = {"late", "other", "away", "leave",
                                       "slow"};
    size_t i = 0;

    while (i < sizeof(ways) / sizeof(ways[0]) && strcmp(how, ways[i]))
        i++;
    return i < sizeof(ways) / sizeof(ways[0]);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "check"))
        check(argv[2]);
    else if (argc == 2 && !strcmp(argv[1], "hand-over"))
        hand_over();
    else if (argc == 2 && !strcmp(argv[1], "child"))
        be_child();
    else if (argc > 1 && is_wrong_way(argv[1]))
        go_wrong(argv[1], argc > 2 ? argv[2] : "-");
    else
        run(argc == 3 ? atol(argv[2]) : -1);
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
