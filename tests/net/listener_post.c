/* SPDX-License-Identifier: BSD-3-Clause */
/* listener_post.c - groups that this process lets in, and who connects to it. */
#include "tests/net/listener_post.h"
#include "lib/net/reactor.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"

#include <check.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void post_seclude(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd;

    if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
        return;
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback))
        perror("the loopback interface");
    close(fd);
}

static void arrived(struct coll__gate *gate, int fd,
                    const struct coll__hello *hello,
                    const unsigned char *session)
{
    struct post *post = (struct post *)gate;

    (void)hello, (void)session;
    close(fd);
    atomic_fetch_add(&post->n_arrived, 1);
}

void post_open(struct post *post, int secret)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];

    memset(post, 0, sizeof(*post));
    memset(post->gate.secret, secret, sizeof(post->gate.secret));
    post->gate.kind = GATE_BOOT;
    post->gate.arrived = arrived;
    ck_assert_int_eq(coll__reactor_get(), COLL_OK);
    coll__reactor_lock();
    coll__gate_add(&post->gate);
    coll__reactor_unlock();
    ck_assert_int_eq(coll__listener_open(REACH_HOST, addrs), 1);
    post->at = addrs[0];
}

void post_close(struct post *post)
{
    coll__reactor_lock();
    coll__gate_remove(&post->gate);
    coll__reactor_unlock();
    coll__reactor_put();
}

static char why[COLL__CONNECTOR_TEXT];

const unsigned char *post_secret(void)
{
    static unsigned char secret[COLL__SECRET_BYTES];

    memset(secret, 5, sizeof(secret));
    return secret;
}

int post_call(const struct coll__addr *addrs, int n, double timeout)
{
    struct coll__connector connector = {
        .addrs = addrs,
        .n_addrs = n,
        .n_ports = 1,
        .secret = post_secret(),
        .hello = {.kind = GATE_BOOT, .from = 1, .size = 2},
        .is_patient = 1,
    };
    int fd;

    fd = coll__connector(&connector, coll__now() + timeout);
    memcpy(why, connector.why, sizeof(why));
    if (fd < 0)
        return fd;
    close(fd);
    return COLL_OK;
}

void post_call_until(const struct coll__addr *addrs, int n,
                     const char *const *texts)
{
    const char *const *missing;
    double wait = 1;

    do {
        ck_assert_int_eq(post_call(addrs, n, wait), COLL_ERR_TIMEOUT);
        wait *= 2;
        missing = texts;
        while (*missing && strstr(why, *missing))
            missing++;
    } while (*missing);
}

void post_says(const char *text)
{
    ck_assert_msg(strstr(why, text) != NULL, "no '%s' in: %s", text, why);
}

void post_await(struct post *post, int n)
{
    double end = coll__now() + TIMEOUT;

    while (atomic_load(&post->n_arrived) < n && coll__now() < end)
        world_nap(0.001);
    ck_assert_int_eq(atomic_load(&post->n_arrived), n);
}

void post_allow_files(rlim_t n)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void post_drop_line(enum coll_log_level level, const char *part,
                    const char *text, void *arg)
{
    (void)level, (void)part, (void)text, (void)arg;
}

pid_t post_other_job(struct coll__addr *at)
{
    int ends[2];
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (!pid) {
        struct post post;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        coll_set_log_handler(post_drop_line, NULL);
        post_open(&post, 6);
        if (write(ends[1], &post.at, sizeof(post.at)) == sizeof(post.at))
            pause();
        _exit(1);
    }
    ck_assert_int_eq(read(ends[0], at, sizeof(*at)), sizeof(*at));
    return pid;
}

void post_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
