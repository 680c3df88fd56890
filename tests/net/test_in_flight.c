/* SPDX-License-Identifier: BSD-3-Clause */
/* test_in_flight.c - how much a connection may have under way, by how long it is. */
#include "tests/support/suite.h"
#include "lib/net/net.h"

#include <arpa/inet.h>
#include <check.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS                                                                 \
    50 /* the shortest one counts: a busy machine makes some longer */

/* Two ends of a connection within this machine, whose buffers are the kernel's. */
static void connect_pair(int ends[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t len = sizeof(at);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, len), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(ends[0], (struct sockaddr *)&at, len), 0);
    ends[1] = accept(listener, NULL, NULL);
    ck_assert_int_ge(ends[1], 0);
    close(listener);
}

static void there_and_back(const int ends[2])
{
    char byte = 0;

    for (int i = 0; i < 2 * ROUNDS; i++) {
        ck_assert_int_eq(send(ends[i % 2], &byte, 1, 0), 1);
        ck_assert_int_eq(recv(ends[1 - i % 2], &byte, 1, 0), 1);
    }
}

static int buffer_of(int fd)
{
    int bytes = 0;
    socklen_t len = sizeof(bytes);

    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len), 0);
    return bytes;
}

static int least_rtt(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return (int)info.tcpi_min_rtt;
}

/* 25,000 bytes a microsecond, and 384 KiB at least; the kernel may grant less. */
START_TEST(a_short_link_holds_little)
{
    int ends[2], before, bytes;

    connect_pair(ends);
    there_and_back(ends);
    before = buffer_of(ends[0]);
    bytes = least_rtt(ends[0]) * 25000 / 2 * 2;
    bytes = bytes > 384 << 10 ? bytes : 384 << 10;
    if (coll__net_limit_flight(ends[0]))
        ck_assert_int_eq(buffer_of(ends[0]), bytes);
    else {
        ck_assert_int_eq(buffer_of(ends[0]), before);
        ck_assert(least_rtt(ends[0]) > 100 || bytes > 2 * 196608);
    }
    there_and_back(ends);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* Of others there is no telling. */
START_TEST(what_is_no_connection_stays_as_it_is)
{
    int pair[2], alone = socket(AF_INET, SOCK_STREAM, 0), before;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    before = buffer_of(pair[0]);
    ck_assert(!coll__net_limit_flight(pair[0]));
    ck_assert_int_eq(buffer_of(pair[0]), before);
    before = buffer_of(alone);
    ck_assert(!coll__net_limit_flight(alone));
    ck_assert_int_eq(buffer_of(alone), before);
    ck_assert(!coll__net_limit_flight(-1));
    close(alone);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

static Suite *in_flight_suite(void)
{
    Suite *suite = suite_create("in_flight");
    TCase *tc = suite_case(suite, "in_flight", 20);

    tcase_add_test(tc, a_short_link_holds_little);
    tcase_add_test(tc, what_is_no_connection_stays_as_it_is);
    return suite;
}

int main(void) { return suite_run(in_flight_suite()); }
