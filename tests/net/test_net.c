/* SPDX-License-Identifier: BSD-3-Clause */
/* test_net.c - addresses as they are written, sockets that listen, and deadlines. */
#include "lib/net/net.h"
#include "lib/net/presence.h"
#include "lib/util/util.h"
#include "tests/support/boot_world.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_up(void)
{
    unsetenv("COLL_NET_PORTS");
    unsetenv("COLL_NET_INTERFACE");
}

static void says(const char *text)
{
    ck_assert_msg(strstr(coll_last_error(), text) != NULL, "no '%s' in: %s",
                  text, coll_last_error());
}

START_TEST(host_and_port_are_split)
{
    char host[32];
    uint16_t port;

    ck_assert_int_eq(coll__net_split("h:1", host, 32, &port), 0);
    ck_assert_str_eq(host, "h");
    ck_assert_int_eq(port, 1);
    ck_assert_int_eq(coll__net_split("[::1]:65535", host, 32, &port), 0);
    ck_assert_str_eq(host, "::1");
    ck_assert_int_eq(port, 65535);
    ck_assert_int_eq(coll__net_split("h:0", host, 32, &port), -1);
    ck_assert_int_eq(coll__net_split(":1", host, 32, &port), -1);
    ck_assert_int_eq(coll__net_split("[]:1", host, 32, &port), -1);
    ck_assert_int_eq(coll__net_split("h:1x", host, 32, &port), -1);
    ck_assert_int_eq(coll__net_split("hhhhh:1", host, 5, &port), -1);
}
END_TEST

START_TEST(ports_are_taken_from_the_range)
{
    struct coll__addr addr;
    char range[32];
    int fd, other, port;

    fd = world_listen(&addr);
    port = coll__net_port(&addr);
    snprintf(range, sizeof(range), "%d-%d", port, port);
    setenv("COLL_NET_PORTS", range, 1);
    ck_assert_int_eq(coll__net_listen(REACH_HOST, &other), COLL_ERR_SYSTEM);
    says("no port is free within COLL_NET_PORTS");
    close(fd);
    fd = world_listen(&addr);
    ck_assert_int_eq(coll__net_port(&addr), port);
    close(fd);
    setenv("COLL_NET_PORTS", "9-3", 1);
    ck_assert_int_eq(coll__net_listen(REACH_HOST, &other), COLL_ERR_INVALID);
    says("FIRST-LAST");
}
END_TEST

START_TEST(a_port_that_is_taken_is_passed_over)
{
    struct coll__addr addr, next;
    char range[32];
    int fd = world_listen(&addr), other;

    snprintf(range, sizeof(range), "%d-%d", coll__net_port(&addr),
             coll__net_port(&addr) + 20);
    setenv("COLL_NET_PORTS", range, 1);
    other = world_listen(&next);
    ck_assert_int_gt(coll__net_port(&next), coll__net_port(&addr));
    ck_assert_int_le(coll__net_port(&next), coll__net_port(&addr) + 20);
    close(fd);
    close(other);
}
END_TEST

START_TEST(localhost_is_both_loopback_addresses)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];

    ck_assert_int_eq(coll__net_resolve("localhost", 7, addrs), 2);
    for (int i = 0; i < 2; i++) {
        ck_assert(coll__net_is_loopback(&addrs[i]));
        ck_assert_int_eq(coll__net_port(&addrs[i]), 7);
    }
    ck_assert_int_ne(addrs[0].family, addrs[1].family);
}
END_TEST

/* _i: 0 as it is written in a shell, 1 as in a URL. */
START_TEST(an_address_may_stand_in_brackets)
{
    static const char *const ways[] = {"fd00::1", "[fd00::1]"};
    struct coll__addr addrs[COLL__MAX_ADDRS];
    char text[COLL__ADDR_TEXT];

    ck_assert_int_eq(coll__net_resolve(ways[_i], 7, addrs), 1);
    coll__net_text(&addrs[0], text);
    ck_assert_str_eq(text, "[fd00::1]:7");
}
END_TEST

START_TEST(a_link_local_address_keeps_its_interface)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];
    char text[COLL__ADDR_TEXT];

    ck_assert_int_eq(coll__net_resolve("fe80::1%lo", 7, addrs), 1);
    coll__net_text(&addrs[0], text);
    ck_assert_str_eq(text, "[fe80::1%lo]:7");
}
END_TEST

START_TEST(a_link_local_address_wants_its_interface)
{
    struct coll__addr addrs[COLL__MAX_ADDRS];

    ck_assert_int_eq(coll__net_resolve("fe80::1", 7, addrs),
                     COLL_ERR_BOOTSTRAP);
    says("name the interface behind it, such as fe80::1%eth0");
}
END_TEST

START_TEST(a_process_shows_that_it_is_here)
{
    unsigned char token[COLL__PRESENCE_BYTES], zero[COLL__PRESENCE_BYTES] = {0};
    int fd = coll__presence_open(token);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(coll__presence_is_missing(token), 0);
    close(fd);
    ck_assert_int_eq(coll__presence_is_missing(token), 1);
    ck_assert_int_eq(coll__presence_is_missing(zero), 0);
}
END_TEST

START_TEST(an_unknown_interface_lists_the_known)
{
    int fd;

    setenv("COLL_NET_INTERFACE", "ib77", 1);
    ck_assert_int_eq(coll__net_listen(REACH_NET, &fd), COLL_ERR_INVALID);
    says("there are lo");
}
END_TEST

/* Of the descriptors that it takes, _i can be had. */
START_TEST(a_want_of_descriptors_is_told_from_one_of_interfaces)
{
    int fd = dup(STDERR_FILENO);
    struct rlimit before, limit;

    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)(fd + _i);
    close(fd);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(coll__net_listen(REACH_NET, &fd), COLL_ERR_SYSTEM);
    setrlimit(RLIMIT_NOFILE, &before);
    says("ulimit -n");
}
END_TEST

START_TEST(reads_and_writes_have_deadlines)
{
    double end = coll__now() + 0.1;
    char byte;
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds),
                     0);
    ck_assert_int_eq(coll__net_read(fds[0], &byte, 1, end), COLL_ERR_TIMEOUT);
    ck_assert(coll__now() >= end);
    close(fds[1]);
    ck_assert_int_eq(coll__net_read(fds[0], &byte, 1, end + 9), COLL_ERR_PEER);
    ck_assert_int_eq(coll__net_write(fds[0], &byte, 1, end), COLL_ERR_PEER);
    close(fds[0]);
}
END_TEST

static Suite *net_suite(void)
{
    Suite *suite = suite_create("net");
    TCase *tc = suite_case(suite, "net", 60);

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, host_and_port_are_split);
    tcase_add_test(tc, ports_are_taken_from_the_range);
    tcase_add_test(tc, a_port_that_is_taken_is_passed_over);
    tcase_add_test(tc, localhost_is_both_loopback_addresses);
    tcase_add_loop_test(tc, an_address_may_stand_in_brackets, 0, 2);
    tcase_add_test(tc, a_link_local_address_keeps_its_interface);
    tcase_add_test(tc, a_link_local_address_wants_its_interface);
    tcase_add_test(tc, a_process_shows_that_it_is_here);
    tcase_add_test(tc, an_unknown_interface_lists_the_known);
    tcase_add_loop_test(
        tc, a_want_of_descriptors_is_told_from_one_of_interfaces, 0, 2);
    tcase_add_test(tc, reads_and_writes_have_deadlines);
    return suite;
}

int main(void) { return suite_run(net_suite()); }
