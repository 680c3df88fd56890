/* SPDX-License-Identifier: BSD-3-Clause */
/* test_door.c - who comes in, strangers at the door, and finding the right one
 * of several. */
#include "lib/net/dial.h"
#include "lib/net/reactor.h"
#include "lib/trace/log.h"
#include "lib/util/util.h"
#include "tests/boot_world.h"
#include "tests/patience.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT patient(30)
#define SOON 8.0   /* s; a visitor's patience is 10 */
#define LATER 25.0 /* s, where each has to be waited for a little */
#define N_STRANGERS 2000

/* ---- who awaits, and who calls ------------------------------------------ */

struct post {
    struct coll__gate gate; /* first */
    atomic_int n_arrived;
    struct coll__addr at;
};

static void arrived(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello,
                    const unsigned char *session)
{
    struct post *post = (struct post *)gate;

    (void)hello, (void)session;
    close(fd);
    atomic_fetch_add(&post->n_arrived, 1);
}

/* Await the group whose secret is made of this byte, at a loopback address. */
static void open_post(struct post *post, int secret)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];

    memset(post, 0, sizeof(*post));
    memset(post->gate.secret, secret, sizeof(post->gate.secret));
    post->gate.kind = DOOR_BOOT;
    post->gate.arrived = arrived;
    ck_assert_int_eq(coll__reactor_get(), COLL_OK);
    coll__reactor_lock();
    coll__gate_add(&post->gate);
    coll__reactor_unlock();
    ck_assert_int_eq(coll__door_open(REACH_HOST, addrs), 1);
    post->at = addrs[0];
}

static void close_post(struct post *post)
{
    coll__reactor_lock();
    coll__gate_remove(&post->gate);
    coll__reactor_unlock();
    coll__reactor_put();
}

static unsigned char secret_5[COLL__SECRET_BYTES];
static char why[COLL__DIAL_TEXT];

/* Look for the group of secret 5; COLL_OK, or the status of coll__dial(). */
static int call(const struct coll__addr *addrs, int n, double timeout)
{
    struct coll__dial dial = {
        .addrs = addrs,
        .n_addrs = n,
        .n_ports = 1,
        .secret = secret_5,
        .hello = {.kind = DOOR_BOOT, .from = 1, .size = 2},
        .is_patient = 1,
    };
    int fd;

    memset(secret_5, 5, sizeof(secret_5));
    fd = coll__dial(&dial, coll__now() + timeout);
    memcpy(why, dial.why, sizeof(why));
    if (fd < 0)
        return fd;
    close(fd);
    return COLL_OK;
}

static void says(const char *text)
{
    ck_assert_msg(strstr(why, text) != NULL, "no '%s' in: %s", text, why);
}

/* Wait until so many have come in. */
static void await(struct post *post, int n)
{
    double end = coll__now() + TIMEOUT;

    while (atomic_load(&post->n_arrived) < n && coll__now() < end)
        world_nap(0.001);
    ck_assert_int_eq(atomic_load(&post->n_arrived), n);
}

/* ---- strangers ---------------------------------------------------------- */

/* What a stranger says: nothing, a byte, or a hello to the group of secret 5
 * that it never proves. */
enum words { SILENT, A_BYTE, A_HELLO };

static void allow_files(rlim_t n)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void be_strangers(const struct coll__addr *at, enum words words, int fd)
{
    struct coll__hello hello = {.magic = "COLLv001"};
    size_t len = words == SILENT ? 0 : words == A_BYTE ? 1 : sizeof(hello);
    int n = 0;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    allow_files(N_STRANGERS + 100);
    memset(secret_5, 5, sizeof(secret_5));
    coll__auth_group(secret_5, hello.group);
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

static void end_strangers(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void drop_line(enum coll_log_level level, const char *part,
                      const char *text, void *arg)
{
    (void)level, (void)part, (void)text, (void)arg;
}

/* _i: what they say */
START_TEST(thousands_of_strangers_delay_nobody)
{
    struct post post;
    double begin;
    pid_t pid;

    coll_set_log_handler(drop_line, NULL);
    allow_files(1024);
    open_post(&post, 5);
    pid = send_strangers(&post.at, (enum words)_i);
    begin = coll__now();
    ck_assert_int_eq(call(&post.at, 1, TIMEOUT), COLL_OK);
    await(&post, 1);
    ck_assert_double_lt(coll__now() - begin,
                        patient(_i == A_HELLO ? LATER : SOON));
    end_strangers(pid);
    close_post(&post);
}
END_TEST

START_TEST(strangers_leave_descriptors_to_others)
{
    struct post post;
    int fds[128];
    pid_t pid;

    coll_set_log_handler(drop_line, NULL);
    allow_files(256);
    open_post(&post, 5);
    pid = send_strangers(&post.at, A_BYTE);
    world_nap(0.2);
    for (int i = 0; i < 128; i++)
        ck_assert_int_ge(fds[i] = dup(2), 0);
    for (int i = 0; i < 128; i++)
        close(fds[i]);
    end_strangers(pid);
    close_post(&post);
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
    open_post(&post, 5);
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
    close_post(&post);
}
END_TEST

/* Somebody else may have all descriptors, for a while. */
START_TEST(who_comes_without_a_descriptor_left_waits)
{
    struct post post;
    int fds[256], ends[2], n = 0;
    pid_t pid;

    coll_set_log_handler(drop_line, NULL);
    allow_files(256);
    open_post(&post, 5);
    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(read(ends[0], &n, sizeof(n)) != sizeof(n) ||
              call(&post.at, 1, TIMEOUT) != COLL_OK);
    }
    while ((fds[n] = dup(2)) >= 0)
        n++;
    ck_assert_int_eq(write(ends[1], &n, sizeof(n)), sizeof(n));
    world_nap(0.6);
    ck_assert_int_eq(atomic_load(&post.n_arrived), 0);
    while (n)
        close(fds[--n]);
    await(&post, 1);
    ck_assert_int_eq(waitpid(pid, &n, 0), pid);
    ck_assert_int_eq(n, 0);
    close_post(&post);
}
END_TEST

/* ---- finding the right one ---------------------------------------------- */

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

/* A process of another job, at an address of its own. */
static pid_t start_other_job(struct coll__addr *at)
{
    int ends[2];
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        struct post post;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        coll_set_log_handler(drop_line, NULL);
        open_post(&post, 6);
        if (write(ends[1], &post.at, sizeof(post.at)) == sizeof(post.at))
            pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ends[0], at, sizeof(*at)), sizeof(*at));
    return pid;
}

START_TEST(another_jobs_process_is_passed_over)
{
    struct coll__addr at[2];
    pid_t pid = start_other_job(&at[0]);
    struct post post;

    open_post(&post, 5);
    at[1] = post.at;
    ck_assert_int_eq(call(at, 2, TIMEOUT), COLL_OK);
    await(&post, 1);
    close_post(&post);
    end_strangers(pid);
}
END_TEST

START_TEST(other_jobs_alone_are_no_hope)
{
    struct coll__addr at[2];
    pid_t pid = start_other_job(&at[0]), pid_2 = start_other_job(&at[1]);

    ck_assert_int_eq(call(at, 2, TIMEOUT), COLL_ERR_PEER);
    says("it knows no such job; 127.");
    at[1] = nobody(); /* but who awaits us may still come here */
    ck_assert_int_eq(call(at, 2, 1.5), COLL_ERR_TIMEOUT);
    says("it knows no such job; 127.");
    says("connection refused");
    end_strangers(pid);
    end_strangers(pid_2);
}
END_TEST

START_TEST(an_address_that_does_not_answer_holds_up_nobody)
{
    struct coll__addr at[4] = {void_of_answers(), mute(), nobody()};
    double begin = coll__now();
    struct post post;

    open_post(&post, 5);
    at[3] = post.at;
    ck_assert_int_eq(call(at, 4, TIMEOUT), COLL_OK);
    ck_assert_double_lt(coll__now() - begin, 4); /* an attempt's time is 5 s */
    close_post(&post);
}
END_TEST

START_TEST(the_deadline_does_not_hide_the_reason)
{
    struct coll__addr at[3] = {nobody(), void_of_answers(), mute()};

    ck_assert_int_eq(call(at, 1, 1), COLL_ERR_TIMEOUT);
    says(": connection refused");
    ck_assert_int_eq(call(at, 3, 2), COLL_ERR_TIMEOUT);
    says(": connection refused; 127.");
    says(": no answer; 127.");
    says(": it takes the connection and says nothing");
}
END_TEST

/* At an address that is not this host's, so that a route may come up. */
START_TEST(a_want_of_descriptors_is_said_at_once)
{
    struct coll__addr at = {.ip = {192, 0, 2, 1}, .family = 4};
    double begin = coll__now();

    coll__net_set_port(&at, 5000);
    allow_files(3); /* which are open */
    ck_assert_int_eq(call(&at, 1, TIMEOUT), COLL_ERR_SYSTEM);
    allow_files(100);
    ck_assert_double_lt(coll__now() - begin, TIMEOUT / 2);
    says("ulimit -n");
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
        open_post(&post, 5);
        pause();
    }
    ck_assert_int_eq(call(&at, 1, TIMEOUT), COLL_OK);
    end_strangers(pid);
}
END_TEST

/* The next one who calls at a socket that does not wait, and has not left. */
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
static int take_unseen(struct coll__dial *dial, struct coll__call **call,
                       int fd)
{
    int other, before[4], at_once = 0;

    *call = coll__dial_begin(dial);
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &at_once,
                                sizeof(at_once)),
                     0);
    for (int i = 0; i < (int)ARRAY_LEN(before); i++)
        before[i] = coll__net_begin_connect(dial->addrs);
    ck_assert_int_eq(coll__dial_step(*call, &other), COLL_IN_PROGRESS);
    for (int i = 0; i < (int)ARRAY_LEN(before); i++)
        close(before[i]);
    return take_caller(fd); /* once it has asked again, after 1 s */
}

static struct coll__dial dial_to(const struct coll__addr *at)
{
    return (struct coll__dial){.addrs = at,
                               .n_addrs = 1,
                               .n_ports = 1,
                               .secret = secret_5,
                               .hello = {.kind = DOOR_DATA, .from = 1}};
}

/* Who hangs up says who called, and a child nothing, whose socket it is not. */
START_TEST(who_hangs_up_says_who_called_and_a_child_nothing)
{
    struct coll__hello hello;
    struct coll__addr at;
    struct coll__call *call;
    int fd = world_listen(&at), other, status;
    struct coll__dial dial = dial_to(&at);
    pid_t pid;

    other = take_unseen(&dial, &call, fd);
    pid = fork();
    if (!pid) {
        coll__dial_end(call);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(recv(other, &hello, sizeof(hello), MSG_DONTWAIT), -1);
    coll__dial_end(call);
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
    struct coll__dial dial = dial_to(&at);

    other = take_unseen(&dial, &call, fd);
    ck_assert_int_eq(
        setsockopt(other, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(other);
    ck_assert_int_eq(coll__dial_step(call, &other), COLL_IN_PROGRESS);
    coll__dial_end(call);
    ck_assert_msg(strstr(dial.why, "it closed the connection") != NULL, "%s",
                  dial.why);
    close(fd);
}
END_TEST

/* Several ports: others live on the first, nobody on the second. */
START_TEST(candidate_ports_are_all_tried)
{
    struct coll__addr at;
    pid_t pid = start_other_job(&at);
    struct post post;
    char range[32];
    struct coll__dial dial = {.addrs = &at,
                              .n_addrs = 1,
                              .n_ports = 3,
                              .secret = secret_5,
                              .hello = {.kind = DOOR_BOOT, .from = 1},
                              .is_patient = 1};

    memset(secret_5, 5, sizeof(secret_5));
    ck_assert_int_eq(coll__dial(&dial, coll__now() + 1), COLL_ERR_TIMEOUT);
    ck_assert(strstr(dial.why, "it knows no such job"));
    snprintf(range, sizeof(range), "%d", coll__net_port(&at) + 2);
    setenv("COLL_NET_PORTS", range, 1);
    open_post(&post, 5);
    ck_assert_int_eq(coll__net_port(&post.at), coll__net_port(&at) + 2);
    ck_assert_int_ge(coll__dial(&dial, coll__now() + TIMEOUT), 0);
    close_post(&post);
    end_strangers(pid);
}
END_TEST

/* ---- the door's own ----------------------------------------------------- */

START_TEST(the_door_is_closed_when_nobody_is_awaited)
{
    struct post post, other;
    int fd;

    open_post(&post, 5);
    open_post(&other, 7);
    ck_assert_int_eq(coll__net_port(&post.at), coll__net_port(&other.at));
    coll__reactor_get(); /* other sockets live on */
    close_post(&post);
    fd = coll__net_connect(&other.at, coll__now() + TIMEOUT);
    ck_assert_int_ge(fd, 0);
    close(fd);
    close_post(&other);
    ck_assert_int_eq(coll__net_connect(&other.at, coll__now() + TIMEOUT),
                     -ECONNREFUSED);
    coll__reactor_put();
}
END_TEST

static TCase *new_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    return tc;
}

static Suite *door_suite(void)
{
    Suite *suite = suite_create("door");
    TCase *tc = new_case(suite, "strangers");

    tcase_add_loop_test(tc, thousands_of_strangers_delay_nobody, SILENT,
                        A_HELLO + 1);
    tcase_add_test(tc, strangers_leave_descriptors_to_others);
    tcase_add_test(tc, who_comes_without_a_descriptor_left_waits);
    tcase_add_test(tc, lines_about_strangers_are_few_and_count_them);
    tc = new_case(suite, "dial");
    tcase_add_test(tc, another_jobs_process_is_passed_over);
    tcase_add_test(tc, other_jobs_alone_are_no_hope);
    tcase_add_test(tc, an_address_that_does_not_answer_holds_up_nobody);
    tcase_add_test(tc, the_deadline_does_not_hide_the_reason);
    tcase_add_test(tc, a_want_of_descriptors_is_said_at_once);
    tcase_add_test(tc, who_comes_late_is_found);
    tcase_add_test(tc, who_hangs_up_says_who_called_and_a_child_nothing);
    tcase_add_test(tc,
                   a_connection_reset_before_its_caller_looks_is_no_refusal);
    tcase_add_test(tc, candidate_ports_are_all_tried);
    tc = new_case(suite, "listeners");
    tcase_add_test(tc, the_door_is_closed_when_nobody_is_awaited);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(door_suite());
    int n_failed;

    srunner_run_all(runner, CK_NORMAL);
    n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
