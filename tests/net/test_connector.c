/* SPDX-License-Identifier: BSD-3-Clause */
/* test_connector.c - find the right one of several processes that listen. */
#include "lib/net/connector.h"
#include "lib/net/listener_int.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "tests/support/suite.h"
#include "tests/support/boot_world.h"
#include "tests/net/listener_post.h"
#include "tests/support/side_by_side.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* An address that nobody listens at. */
static struct coll__addr nobody(void)
{
    struct coll__addr addr;

    close(world_listen(&addr));
    return addr;
}

/* An address that takes connections, and says nothing. */
static struct coll__addr mute(void)
{
    struct coll__addr addr;

    world_listen(&addr);
    return addr;
}

/* An address that does not answer at all: its queue is full. */
static struct coll__addr void_of_answers(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct coll__addr addr = {.ip = {127, 0, 0, 1}, .family = 4};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = sizeof(at);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    coll__net_set_port(&addr, ntohs(at.sin_port));
    for (int i = 0; i < 4; i++) /* what fits, and a little more */
        coll__net_begin_connect(&addr);
    return addr;
}

START_TEST(another_jobs_process_is_passed_over)
{
    struct coll__addr at[2];
    pid_t pid = post_other_job(&at[0]);
    struct post post;

    post_open(&post, 5);
    at[1] = post.at;
    ck_assert_int_eq(post_call(at, 2, TIMEOUT), COLL_OK);
    post_await(&post, 1);
    post_close(&post);
    post_end(pid);
}
END_TEST

START_TEST(other_jobs_alone_are_no_hope)
{
    static const char *const both[] = {"it knows no such job; 127.",
                                       "connection refused", NULL};
    struct coll__addr at[2];
    pid_t pid = post_other_job(&at[0]), pid_2 = post_other_job(&at[1]);

    ck_assert_int_eq(post_call(at, 2, TIMEOUT), COLL_ERR_PEER);
    post_says("it knows no such job; 127.");
    at[1] = nobody(); /* but who awaits us may still come here */
    post_call_until(at, 2, both);
    post_end(pid);
    post_end(pid_2);
}
END_TEST

START_TEST(an_address_that_does_not_answer_holds_up_nobody)
{
    struct coll__addr at[4] = {void_of_answers(), mute(), nobody()};
    struct post post;

    post_open(&post, 5);
    at[3] = post.at;
    /* who waited for what is mute would wait until the deadline */
    ck_assert_int_eq(post_call(at, 4, TIMEOUT), COLL_OK);
    post_close(&post);
}
END_TEST

START_TEST(the_deadline_does_not_hide_the_reason)
{
    static const char *const one[] = {": connection refused", NULL};
    static const char *const three[] = {
        ": connection refused; 127.", ": no answer; 127.",
        ": it takes the connection and says nothing", NULL};
    struct coll__addr at[3] = {nobody(), void_of_answers(), mute()};

    post_call_until(at, 1, one);
    post_call_until(at, 3, three);
}
END_TEST

/* At an address that is not this host's, so that a route may come up. */
START_TEST(a_want_of_descriptors_is_not_tried_until_the_deadline)
{
    struct coll__addr at = {.ip = {192, 0, 2, 1}, .family = 4};

    coll__net_set_port(&at, 5000);
    post_allow_files(3); /* which are open */
    ck_assert_int_eq(post_call(&at, 1, TIMEOUT), COLL_ERR_SYSTEM);
    post_allow_files(100);
    post_says("ulimit -n");
}
END_TEST

START_TEST(who_comes_late_is_found)
{
    struct coll__addr at = nobody();
    char range[32];
    struct post post;
    pid_t pid = fork();

    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        world_nap(0.3);
        snprintf(range, sizeof(range), "%d", coll__net_port(&at));
        setenv("COLL_NET_PORTS", range, 1);
        post_open(&post, 5);
        pause();
    }
    ck_assert_int_eq(post_call(&at, 1, TIMEOUT), COLL_OK);
    post_end(pid);
}
END_TEST

/* Accept the next connection whose other end has not closed it. */
static int take_caller(int fd)
{
    struct pollfd file = {.fd = fd, .events = POLLIN};
    int caller;
    char byte;

    for (;;) {
        ck_assert_int_eq(poll(&file, 1, (int)(1000 * TIMEOUT)), 1);
        caller = accept(fd, NULL, NULL);
        ck_assert_int_ge(caller, 0);
        if (recv(caller, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0)
            return caller;
        close(caller);
    }
}

/* Call that place; the other end of the connection, which stands before its caller
 * has looked: the queue was full at first. */
static int take_unseen(struct coll__connector *connector,
                       struct coll__call **call, int fd)
{
    int other, before[4], at_once = 0;

    *call = coll__connector_begin(connector);
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &at_once,
                                sizeof(at_once)),
                     0);
    for (int i = 0; i < (int)ARRAY_LEN(before); i++)
        before[i] = coll__net_begin_connect(connector->addrs);
    ck_assert_int_eq(coll__connector_step(*call, &other), COLL_IN_PROGRESS);
    for (int i = 0; i < (int)ARRAY_LEN(before); i++)
        close(before[i]);
    return take_caller(fd); /* once it has asked again, after 1 s */
}

static struct coll__connector connector_to(const struct coll__addr *at)
{
    return (struct coll__connector){.addrs = at,
                                    .n_addrs = 1,
                                    .n_ports = 1,
                                    .secret = post_secret(),
                                    .hello = {.kind = GATE_DATA, .from = 1}};
}

/* Who hangs up says who called, and a child nothing, whose socket it is not. */
START_TEST(who_hangs_up_says_who_called_and_a_child_nothing)
{
    struct coll__hello hello;
    struct coll__addr at;
    struct coll__call *call;
    int fd = world_listen(&at), other, status;
    struct coll__connector connector = connector_to(&at);
    pid_t pid;

    other = take_unseen(&connector, &call, fd);
    pid = fork();
    if (!pid) {
        coll__connector_end(call);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(recv(other, &hello, sizeof(hello), MSG_DONTWAIT), -1);
    coll__connector_end(call);
    ck_assert_int_eq(recv(other, &hello, sizeof(hello), MSG_WAITALL),
                     sizeof(hello));
    ck_assert_int_eq(memcmp(hello.magic, "COLL", 4), 0);
    ck_assert_int_eq(recv(other, &hello, 1, 0), 0);
    close(other);
    close(fd);
}
END_TEST

/* Whoever resets a connection was there, and may take the next. */
START_TEST(a_connection_reset_before_its_caller_looks_is_no_refusal)
{
    struct linger at_once = {.l_onoff = 1};
    struct coll__addr at;
    struct coll__call *call;
    int fd = world_listen(&at), other;
    struct coll__connector connector = connector_to(&at);

    other = take_unseen(&connector, &call, fd);
    ck_assert_int_eq(
        setsockopt(other, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(other);
    ck_assert_int_eq(coll__connector_step(call, &other), COLL_IN_PROGRESS);
    coll__connector_end(call);
    ck_assert_msg(strstr(connector.why, "it closed the connection") != NULL,
                  "%s", connector.why);
    close(fd);
}
END_TEST

static atomic_int n_dropped;

static void count_dropped(enum coll_log_level level, const char *part,
                          const char *text, void *arg)
{
    (void)level, (void)part, (void)arg;
    if (strstr(text, "it took too long to prove itself"))
        atomic_fetch_add(&n_dropped, 1);
}

/* A rank may compute while the listener awaits its proof, and is dropped then. */
START_TEST(who_was_away_too_long_calls_again)
{
    double end = coll__now() + TIMEOUT;
    int fd = -1, rc = COLL_IN_PROGRESS;
    struct coll__connector connector;
    struct coll__call *call;
    struct post post;

    coll_set_log_handler(count_dropped, NULL);
    coll__listener_patience = 0.5;
    post_open(&post, 5);
    connector = connector_to(&post.at);
    connector.hello.kind = GATE_BOOT;
    call = coll__connector_begin(&connector);
    ck_assert_int_eq(coll__connector_step(call, &fd), COLL_IN_PROGRESS);
    while (!atomic_load(&n_dropped) && coll__now() < end) {
        coll__log_deliver();
        world_nap(0.01);
    }
    while (rc == COLL_IN_PROGRESS && coll__now() < end)
        rc = coll__connector_step(call, &fd);
    ck_assert_int_eq(rc, COLL_OK);
    coll__connector_end(call);
    post_await(&post, 1);
    close(fd);
    post_close(&post);
}
END_TEST

/* Several ports: others live on the first, nobody on the second. */
START_TEST(candidate_ports_are_all_tried)
{
    struct coll__addr at;
    pid_t pid = post_other_job(&at);
    struct post post;
    char range[32];
    struct coll__connector connector = {.addrs = &at,
                                        .n_addrs = 1,
                                        .n_ports = 3,
                                        .secret = post_secret(),
                                        .hello = {.kind = GATE_BOOT, .from = 1},
                                        .is_patient = 1};

    for (double wait = 1; !strstr(connector.why, "it knows no such job");
         wait *= 2)
        ck_assert_int_eq(coll__connector(&connector, coll__now() + wait),
                         COLL_ERR_TIMEOUT);
    snprintf(range, sizeof(range), "%d", coll__net_port(&at) + 2);
    setenv("COLL_NET_PORTS", range, 1);
    post_open(&post, 5);
    ck_assert_int_eq(coll__net_port(&post.at), coll__net_port(&at) + 2);
    ck_assert_int_ge(coll__connector(&connector, coll__now() + TIMEOUT), 0);
    post_close(&post);
    post_end(pid);
}
END_TEST

static Suite *connector_suite(void)
{
    Suite *suite = suite_create("connector");
    TCase *tc = tcase_create("connector");

    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, another_jobs_process_is_passed_over);
    tcase_add_test(tc, other_jobs_alone_are_no_hope);
    tcase_add_test(tc, an_address_that_does_not_answer_holds_up_nobody);
    tcase_add_test(tc, the_deadline_does_not_hide_the_reason);
    tcase_add_test(tc, a_want_of_descriptors_is_not_tried_until_the_deadline);
    tcase_add_test(tc, who_comes_late_is_found);
    tcase_add_test(tc, who_hangs_up_says_who_called_and_a_child_nothing);
    tcase_add_test(tc,
                   a_connection_reset_before_its_caller_looks_is_no_refusal);
    tcase_add_test(tc, who_was_away_too_long_calls_again);
    tcase_add_test(tc, candidate_ports_are_all_tried);
    return suite;
}

int main(void)
{
    post_seclude();
    return suite_run(connector_suite());
}
