/* SPDX-License-Identifier: BSD-3-Clause */
/* test_log.c - what the library says stops nobody: handlers may call it, and
 * nobody need read stderr. */
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "tests/support/patience.h"
#include "tests/support/side_by_side.h"
#include "tests/support/world.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE 60

/* ---- handlers that call the library -------------------------------------------- */

static struct {
    struct coll_comm *comm;
    pthread_t thread; /* that calls the library */
    int n_lines, n_sums, n_aborts, n_strangers, is_busy;
} heard;

/* Sum once, over all ranks, when the first plan is made. */
static void sum_within(enum coll_log_level level, const char *part,
                       const char *text, void *arg)
{
    int one = 1, all = 0;

    (void)level;
    (void)text;
    (void)arg;
    if (!heard.comm || strcmp(part, "plan"))
        return;
    heard.n_lines++;
    if (heard.n_sums)
        return;
    heard.n_sums = 1;
    if (coll_allreduce(&one, &all, 1, COLL_I32, COLL_SUM, heard.comm, NULL) ||
        all != coll_comm_size(heard.comm) || coll_barrier(heard.comm, NULL))
        heard.n_sums = -1;
}

static int sum_from_handler(struct world_rank *me)
{
    float x = (float)me->rank, y;

    coll_set_log_handler(sum_within, NULL);
    heard.comm = world_join(me);
    WORLD_CHECK(me, heard.comm);
    WORLD_CHECK(
        me, !coll_allreduce(&x, &y, 1, COLL_F32, COLL_MAX, heard.comm, NULL));
    WORLD_CHECK(me, y == (float)(me->size - 1));
    WORLD_CHECK(me, heard.n_sums == 1);
    /* what is said within a handler comes later */
    WORLD_CHECK(me, !coll_barrier(heard.comm, NULL));
    coll_comm_async_error(heard.comm);
    coll_set_log_handler(NULL, NULL);
    WORLD_CHECK(me, heard.n_lines == 3);
    WORLD_CHECK(me, !coll_comm_destroy(heard.comm));
    return 0;
}

START_TEST(a_handler_may_call_operations)
{
    setenv("COLL_LOG", "plan:debug", 1);
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, sum_from_handler, NULL, DEADLINE), 0);
}
END_TEST

/* Everything that takes the locks under which lines are said. */
static void abort_within(enum coll_log_level level, const char *part,
                         const char *text, void *arg)
{
    struct coll_unique_id id;
    struct coll_comm *own;

    (void)level;
    (void)part;
    (void)arg;
    if (!heard.comm || heard.is_busy || !strstr(text, "rank 1"))
        return; /* else this would be what ends the job */
    heard.is_busy = 1;
    heard.n_strangers += !pthread_equal(pthread_self(), heard.thread);
    if (coll_comm_abort(heard.comm, "the handler says so") == COLL_OK &&
        coll_comm_async_error(heard.comm) && *coll_last_error() &&
        !coll_get_unique_id(&id) && !coll_comm_create(&own, 1, &id, 0, NULL) &&
        !coll_barrier(own, NULL) && !coll_comm_destroy(own) &&
        coll_comm_dup(heard.comm, &own))
        heard.n_aborts++;
    heard.is_busy = 0;
}

static int abort_from_handler(struct world_rank *me)
{
    struct coll_comm *comm = world_join(me), *other;

    WORLD_CHECK(me, comm && !world_barrier(me, comm));
    if (me->rank == 1)
        _exit(0);
    heard.thread = pthread_self();
    heard.comm = comm;
    coll_set_log_handler(abort_within, NULL);
    EXPECT(me, coll_comm_dup(comm, &other), COLL_ERR_PEER, "rank 1");
    EXPECT(me, coll_barrier(comm, NULL), COLL_ERR_PEER, "rank 1");
    WORLD_CHECK(me, heard.n_aborts > 0);
    WORLD_CHECK(me, !heard.n_strangers);
    coll_set_log_handler(NULL, NULL);
    WORLD_CHECK(me, coll_comm_destroy(comm) == COLL_ERR_PEER);
    return 0;
}

START_TEST(a_handler_may_abort_and_make_communicators)
{
    setenv("COLL_LOG", "debug", 1);
    setenv("COLL_TRANSPORTS", world_transports(_i), 1);
    ck_assert_int_eq(world_fork(3, abort_from_handler, NULL, DEADLINE), 0);
}
END_TEST

/* NCCL_DEBUG=INFO is what many hands type. */
START_TEST(levels_and_parts_may_be_in_capitals)
{
    setenv("COLL_LOG", "INFO,Plan:DEBUG", 1);
    ck_assert_int_eq(coll__log_check(), COLL_OK);
    ck_assert(coll__log_wants(COLL_LOG_INFO, "comm"));
    ck_assert(coll__log_wants(COLL_LOG_DEBUG, "plan"));
    ck_assert(!coll__log_wants(COLL_LOG_DEBUG, "comm"));
}
END_TEST

/* ---- a stderr that nobody reads -------------------------------------------------- */

/* Make stderr a pipe (or a socket) and fill it; the end to read from. */
static int fill_stderr(int is_socket)
{
    static const char dots[4096] = {'.'};
    int ends[2], flags;

    if (is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends))
        return -1;
    dup2(ends[1], STDERR_FILENO);
    flags = fcntl(ends[1], F_GETFL);
    fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
    while (write(ends[1], dots, sizeof(dots)) > 0)
        ;
    fcntl(ends[1], F_SETFL, flags);
    close(ends[1]);
    return ends[0];
}

/* Read what is there and what comes within a while, as text. */
static char *drain(int fd, double seconds)
{
    static char text[1 << 20];
    double end = coll__now() + seconds;
    size_t n = 0;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (n < sizeof(text) - 1) {
        int is_late = coll__now() >= end;
        ssize_t got = read(fd, text + n, sizeof(text) - 1 - n);

        if (got > 0)
            n += (size_t)got;
        else if (!got || is_late)
            break;
        else
            usleep(1000);
    }
    for (size_t i = 0; i < n; i++)
        if (!text[i])
            text[i] = '.';
    text[n] = '\0';
    return text;
}

static int say_into_full_pipe(struct world_rank *me)
{
    int saved = dup(STDERR_FILENO), in, rc, x = 1, y;
    struct coll_comm *comm = NULL;

    in = fill_stderr(*(int *)me->arg);
    rc = coll_comm_create_oob(&comm, &me->oob, NULL);
    world_meet(me); /* who still joins would fail to */
    if (!rc && me->rank == 1)
        kill(getpid(), SIGKILL);
    while (!rc)
        rc = coll_allreduce(&x, &y, 1, COLL_I32, COLL_SUM, comm, NULL);
    coll_comm_destroy(comm);
    dup2(saved, STDERR_FILENO);
    WORLD_CHECK(me, in >= 0 && rc == COLL_ERR_PEER);
    return 0;
}

/* _i: transports, and what stderr is. */
START_TEST(a_death_is_noticed_though_nobody_reads_stderr)
{
    int is_socket = _i / 2;

    setenv("COLL_LOG", "trace", 1);
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(3, say_into_full_pipe, &is_socket, DEADLINE),
                     1);
}
END_TEST

/* ---- no stderr at all ------------------------------------------------------------ */

/* Is it closed, or what may be written to: no socket and no memory of ours? */
static int is_harmless(int fd)
{
    struct stat st;

    return fstat(fd, &st) || S_ISCHR(st.st_mode);
}

/* With what comes by itself, and by what makes descriptors first. */
static int say_without_stderr(struct world_rank *me)
{
    int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100), rc, is_clean = 1;
    struct coll_comm *comm = NULL;
    struct coll_unique_id id;
    void *memory = NULL;

    for (int fd = 0; fd < 3; fd++)
        close(fd);
    rc = *(int *)me->arg ? coll_mem_alloc(&memory, 4096)
                         : coll_get_unique_id(&id);
    for (int fd = 0; fd < 3; fd++)
        is_clean &= is_harmless(fd);
    rc = rc ? rc : coll_comm_create_oob(&comm, &me->oob, NULL);
    rc = rc ? rc : world_sum(comm, 10);
    for (int fd = 0; fd < 3; fd++)
        is_clean &= is_harmless(fd);
    rc = rc ? rc : coll_comm_destroy(comm);
    coll_mem_free(memory);
    dup2(saved, STDERR_FILENO);
    if (rc)
        fprintf(stderr, "rank %d: %s\n", me->rank, coll_last_error());
    WORLD_CHECK(me, !rc && is_clean);
    return 0;
}

/* _i: transports, and what is made first. */
START_TEST(nothing_of_the_library_becomes_stderr)
{
    int is_memory = _i / 2;

    setenv("COLL_LOG", "trace", 1);
    setenv("COLL_TRANSPORTS", world_transports(_i % 2), 1);
    ck_assert_int_eq(world_fork(3, say_without_stderr, &is_memory, DEADLINE),
                     0);
}
END_TEST

/* Lines that begin so. */
static int count(const char *text, const char *what)
{
    int n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

START_TEST(lines_come_out_when_somebody_reads_again)
{
    int in = fill_stderr(_i), n_lost = 0;
    const char *text, *lost;

    for (int i = 0; i < 1000; i++)
        coll__log_write(COLL_LOG_WARN, "test", "<line %d>", i);
    usleep(60000); /* stderr is not tried all the time */
    text = drain(in, 0.2);
    ck_assert(!strstr(text, "<line"));
    usleep(60000);
    coll__log_write(COLL_LOG_WARN, "test", "<line 1000>");
    text = drain(in, 0.5);
    lost = strstr(text, " lines before this one were dropped");
    ck_assert(lost && strstr(text, "coll test: <line 0>\n"));
    while (lost > text && lost[-1] != ' ')
        lost--;
    n_lost = atoi(lost);
    ck_assert_int_eq(n_lost + count(text, "<line "), 1001);
    coll__log_write(COLL_LOG_WARN, "test", "<again>");
    ck_assert(strstr(drain(in, 0.2), "<again>"));
}
END_TEST

START_TEST(what_waits_at_the_end_is_not_lost)
{
    int in = fill_stderr(0), status;
    pid_t pid = fork();
    char *text;

    if (!pid) {
        coll_set_log_handler(abort_within, NULL); /* who takes nothing */
        coll__log_enqueue(COLL_LOG_WARN, "test", "<last>");
        drain(in, 0.2);
        exit(0);
    }
    ck_assert(waitpid(pid, &status, 0) == pid && !status);
    text = drain(in, 0.2);
    ck_assert_int_eq(count(text, "coll test: <last>\n"), 1);
}
END_TEST

START_TEST(a_child_does_not_repeat_its_parent)
{
    int in = fill_stderr(0), status;
    pid_t pid;

    coll__log_enqueue(COLL_LOG_WARN, "test", "<mine>");
    pid = fork();
    if (!pid) {
        drain(in, 0.1);
        coll__log_write(COLL_LOG_WARN, "test", "<child's>");
        exit(0);
    }
    ck_assert(waitpid(pid, &status, 0) == pid && !status);
    coll__log_flush();
    ck_assert(strstr(drain(in, 0.2), "<child's>\ncoll test: <mine>"));
}
END_TEST

/* ---- handlers and their lines ------------------------------------------------------ */

static void speak_again(enum coll_log_level level, const char *part,
                        const char *text, void *arg)
{
    (void)level;
    (void)part;
    (void)text;
    ++*(int *)arg;
    coll_comm_create_env(NULL, NULL); /* an error is a line, too */
}

static void count_lines(enum coll_log_level level, const char *part,
                        const char *text, void *arg)
{
    (void)level;
    (void)part;
    (void)text;
    ++*(int *)arg;
}

/* Who writes to stderr while this is set is slow. */
static atomic_int is_slow, n_writing;

ssize_t write(int fd, const void *bytes, size_t len)
{
    if (atomic_load(&is_slow) && fd >= 0) {
        atomic_fetch_add(&n_writing, 1);
        usleep(80000);
    }
    return syscall(SYS_write, fd, bytes, len);
}

static void *say_before(void *arg)
{
    coll__log_write(COLL_LOG_WARN, "test", "<before>");
    return arg;
}

/* Another thread may be writing to stderr then, and hold up the next lines. */
START_TEST(what_is_said_once_a_handler_is_set_goes_there)
{
    pthread_t thread;
    int ends[2], n = 0;
    const char *text;

    ck_assert(!pipe(ends) && dup2(ends[1], STDERR_FILENO) >= 0);
    atomic_store(&is_slow, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, say_before, NULL), 0);
    while (!atomic_load(&n_writing))
        usleep(1000);
    atomic_store(&is_slow, 0);
    coll_set_log_handler(count_lines, &n);
    coll__log_write(COLL_LOG_WARN, "test", "<after>");
    coll__log_done(COLL_OK);
    ck_assert_int_eq(n, 1);
    pthread_join(thread, NULL);
    coll_set_log_handler(NULL, NULL);
    text = drain(ends[0], 0.2);
    ck_assert(strstr(text, "<before>") && !strstr(text, "<after>"));
}
END_TEST

/* A handler that makes the library speak is called once a call. */
START_TEST(a_handler_that_makes_lines_comes_to_an_end)
{
    int n = 0;

    setenv("COLL_LOG", "error", 1);
    coll_set_log_handler(speak_again, &n);
    for (int i = 1; i <= 10; i++) {
        ck_assert_int_eq(coll_comm_create_env(NULL, NULL), COLL_ERR_INVALID);
        ck_assert_int_ge(n, i);
        ck_assert_int_lt(n, 1 << i);
    }
    ck_assert(strstr(coll_last_error(), "comm is NULL"));
    coll_set_log_handler(NULL, NULL);
}
END_TEST

/* Within a group a handler's own calls would be of the group. */
START_TEST(each_wrong_call_is_heard_of_at_once)
{
    struct coll_comm *comm = NULL;
    int n = 0, one = 1, all, status;
    struct coll_unique_id id;
    pid_t pid;

    setenv("COLL_LOG", "error", 1);
    ck_assert_int_eq(coll_get_unique_id(&id), COLL_OK);
    ck_assert_int_eq(coll_comm_create(&comm, 1, &id, 0, NULL), COLL_OK);
    coll_set_log_handler(count_lines, &n);
    ck_assert_int_eq(coll_group_end(), COLL_ERR_INVALID);
    ck_assert_int_eq(n, 1);
    coll_group_start();
    ck_assert_int_eq(
        coll_allreduce(&one, NULL, 1, COLL_I32, COLL_SUM, comm, NULL),
        COLL_ERR_INVALID);
    ck_assert_int_eq(n, 1);
    ck_assert_int_eq(coll_group_end(), COLL_ERR_INVALID);
    ck_assert_int_ge(n, 2);
    pid = fork();
    if (!pid) {
        n = 0;
        _exit(coll_allreduce(&one, &all, 1, COLL_I32, COLL_SUM, comm, NULL) !=
                  COLL_ERR_INVALID ||
              n != 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    coll_set_log_handler(NULL, NULL);
    ck_assert_int_eq(coll_comm_destroy(comm), COLL_OK);
}
END_TEST

static void spoil_error(enum coll_log_level level, const char *part,
                        const char *text, void *arg)
{
    void *memory;

    (void)level;
    (void)part;
    (void)text;
    (void)arg;
    errno = 0;
    if (coll_mem_alloc(&memory, 1) == COLL_OK) /* and another error */
        coll_mem_free((char *)memory + 1);
    coll_mem_free(memory);
}

START_TEST(a_handler_does_not_change_the_last_error)
{
    coll_set_log_handler(spoil_error, NULL);
    setenv("COLL_LOG", "error", 1);
    ck_assert_int_eq(coll_comm_create_env(NULL, NULL), COLL_ERR_INVALID);
    ck_assert(strstr(coll_last_error(), "coll_comm_create_env: comm is NULL"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *c = tcase_create("log");

    tcase_set_timeout(c, DEADLINE + 30);
    tcase_add_loop_test(c, a_handler_may_call_operations, 0, 2);
    tcase_add_test(c, levels_and_parts_may_be_in_capitals);
    tcase_add_loop_test(c, a_handler_may_abort_and_make_communicators, 0, 2);
    tcase_add_loop_test(c, a_death_is_noticed_though_nobody_reads_stderr, 0, 4);
    tcase_add_loop_test(c, nothing_of_the_library_becomes_stderr, 0, 4);
    tcase_add_loop_test(c, lines_come_out_when_somebody_reads_again, 0, 2);
    tcase_add_test(c, what_waits_at_the_end_is_not_lost);
    tcase_add_test(c, a_child_does_not_repeat_its_parent);
    tcase_add_test(c, what_is_said_once_a_handler_is_set_goes_there);
    tcase_add_test(c, a_handler_that_makes_lines_comes_to_an_end);
    tcase_add_test(c, each_wrong_call_is_heard_of_at_once);
    tcase_add_test(c, a_handler_does_not_change_the_last_error);
    suite_add_tcase(suite, c);
    return suite_run(suite);
}
