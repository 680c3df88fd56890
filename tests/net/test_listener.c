/* SPDX-License-Identifier: BSD-3-Clause */
/* test_listener.c - who may connect to this process, and strangers that try. */
#include "lib/net/listener_int.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/suite.h"
#include "tests/net/listener_post.h"
#include "tests/support/side_by_side.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_STRANGERS 2000

/* ---- strangers ---------------------------------------------------------- */

/* What a stranger says: nothing, a byte, or a hello to the group of secret 5
 * that it never proves. */
enum words { SILENT, A_BYTE, A_HELLO };

static void be_strangers(const struct coll__addr *at, enum words words, int fd)
{
    struct coll__hello hello = {.magic = "COLLv001"};
    size_t len = words == SILENT ? 0 : words == A_BYTE ? 1 : sizeof(hello);
    int n = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    post_allow_files(N_STRANGERS + 100);
    coll__auth_group(post_secret(), hello.group);
    while (n < N_STRANGERS) { /* or as many as descriptors allow */
        int socket = coll__net_connect(at, coll__now() + TIMEOUT);

        if (socket < 0)
            break;
        coll__net_write(socket, &hello, len, coll__now() + TIMEOUT);
        n++;
    }
    if (write(fd, &n, sizeof(n)) == sizeof(n))
        pause();
    _exit(1);
}

/* Start a process of strangers, who are all there on return. */
static pid_t send_strangers(const struct coll__addr *at, enum words words)
{
    int ends[2], n = 0;
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid)
        be_strangers(at, words, ends[1]);
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &n, sizeof(n)), sizeof(n));
    ck_assert_int_gt(n, 900);
    close(ends[0]);
    return pid;
}

/* _i: what they say.  The listener would wait for each of them for ever. */
START_TEST(thousands_of_strangers_are_waited_for_by_nobody)
{
    struct post post;
    pid_t pid;

    coll__listener_patience = 1e9;
    coll_set_log_handler(post_drop_line, NULL);
    post_allow_files(1024);
    post_open(&post, 5);
    pid = send_strangers(&post.at, (enum words)_i);
    ck_assert_int_eq(post_call(&post.at, 1, TIMEOUT), COLL_OK);
    post_await(&post, 1);
    post_end(pid);
    post_close(&post);
}
END_TEST

START_TEST(strangers_leave_descriptors_to_others)
{
    struct post post;
    int fds[128];
    pid_t pid;

    coll_set_log_handler(post_drop_line, NULL);
    post_allow_files(256);
    post_open(&post, 5);
    pid = send_strangers(&post.at, A_BYTE);
    world_nap(0.2);
    for (int i = 0; i < 128; i++)
        ck_assert_int_ge(fds[i] = dup(2), 0);
    for (int i = 0; i < 128; i++)
        close(fds[i]);
    post_end(pid);
    post_close(&post);
}
END_TEST

/* What the log said of them. */
static struct {
    atomic_int n_lines, n_strangers;
} heard;

static void count_line(enum coll_log_level level, const char *part,
                       const char *text, void *arg)
{
    int n;

    (void)level, (void)part, (void)arg;
    if (sscanf(text, "dropped %d connections, the last from 127.", &n) != 1)
        n = !strncmp(text, "dropped a connection from 127.", 30);
    if (n) {
        atomic_fetch_add(&heard.n_lines, 1);
        atomic_fetch_add(&heard.n_strangers, n);
    }
}

START_TEST(lines_about_strangers_are_few_and_count_them)
{
    double begin = coll__now(), end;
    struct coll__hello hello = {.magic = "COLLv001"}; /* of no group */
    struct post post;
    char answer[128];
    int n;

    coll_set_log_handler(count_line, NULL);
    post_open(&post, 5);
    for (n = 0; n < 300; n++) {
        int fd = coll__net_connect(&post.at, coll__now() + TIMEOUT);

        ck_assert_int_ge(fd, 0);
        coll__net_write(fd, &hello, sizeof(hello), coll__now() + TIMEOUT);
        coll__net_read(fd, answer, sizeof(answer), coll__now() + TIMEOUT);
        close(fd);
    }
    end = coll__now() + TIMEOUT;
    while (atomic_load(&heard.n_strangers) < n && coll__now() < end) {
        coll__log_deliver(); /* a handler is called by threads of the caller's */
        world_nap(0.01);
    }
    ck_assert_int_eq(atomic_load(&heard.n_strangers), n);
    ck_assert_double_le(atomic_load(&heard.n_lines), coll__now() - begin + 1);
    post_close(&post);
}
END_TEST

/* Somebody else may have all descriptors, for a while. */
START_TEST(who_comes_without_a_descriptor_left_waits)
{
    struct post post;
    int fds[256], ends[2], n = 0;
    pid_t pid;

    coll_set_log_handler(post_drop_line, NULL);
    post_allow_files(256);
    post_open(&post, 5);
    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(read(ends[0], &n, sizeof(n)) != sizeof(n) ||
              post_call(&post.at, 1, TIMEOUT) != COLL_OK);
    }
    while ((fds[n] = dup(2)) >= 0)
        n++;
    ck_assert_int_eq(write(ends[1], &n, sizeof(n)), sizeof(n));
    world_nap(0.6);
    ck_assert_int_eq(atomic_load(&post.n_arrived), 0);
    while (n)
        close(fds[--n]);
    post_await(&post, 1);
    ck_assert_int_eq(waitpid(pid, &n, 0), pid);
    ck_assert_int_eq(n, 0);
    post_close(&post);
}
END_TEST

/* ---- the listening socket ------------------------------------------------ */

START_TEST(the_socket_is_closed_when_nobody_is_awaited)
{
    struct post post, other;
    int fd;

    post_open(&post, 5);
    post_open(&other, 7);
    ck_assert_int_eq(coll__net_port(&post.at), coll__net_port(&other.at));
    coll__reactor_get(); /* other sockets live on */
    post_close(&post);
    fd = coll__net_connect(&other.at, coll__now() + TIMEOUT);
    ck_assert_int_ge(fd, 0);
    close(fd);
    post_close(&other);
    ck_assert_int_eq(coll__net_connect(&other.at, coll__now() + TIMEOUT),
                     -ECONNREFUSED);
    coll__reactor_put();
}
END_TEST

static Suite *listener_suite(void)
{
    Suite *suite = suite_create("listener");
    TCase *tc = suite_case(suite, "strangers", 120);

    tcase_add_loop_test(tc, thousands_of_strangers_are_waited_for_by_nobody,
                        SILENT, A_HELLO + 1);
    tcase_add_test(tc, strangers_leave_descriptors_to_others);
    tcase_add_test(tc, who_comes_without_a_descriptor_left_waits);
    tcase_add_test(tc, lines_about_strangers_are_few_and_count_them);
    tc = suite_case(suite, "listeners", 120);
    tcase_add_test(tc, the_socket_is_closed_when_nobody_is_awaited);
    return suite;
}

int main(void)
{
    post_seclude();
    return suite_run(listener_suite());
}
