/* SPDX-License-Identifier: BSD-3-Clause */
/* collrun_endpoint.c - sockets between hosts. */
#include "tools/collrun_endpoint.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENCE 10 /* s, until a host that does not answer is gone */

int endpoint_is_loopback(const char *host)
{
    return !strncmp(host, "127.", 4) || !strcmp(host, "::1") ||
           !strcmp(host, "localhost");
}

static int listen_at(const struct sockaddr *at, socklen_t len)
{
    int fd =
        socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1, off = 0;

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (at->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (!bind(fd, at, len) && !listen(fd, 4096))
        return fd;
    off = errno;
    close(fd);
    errno = off;
    return -1;
}

/* A host's own name may resolve to 127.0.1.1, which other hosts cannot reach.  So listen
 * on every interface, unless the name is one of loopback. */
int endpoint_listen(const char *host, int port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = six.sin6_port};
    int is_six = !strcmp(host, "::1"), fd = -1;

    if (is_six)
        six.sin6_addr = in6addr_loopback;
    else if (endpoint_is_loopback(host))
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (is_six || !four.sin_addr.s_addr)
        fd = listen_at((struct sockaddr *)&six, sizeof(six));
    if (fd < 0 && !is_six && (four.sin_addr.s_addr || errno != EADDRINUSE))
        fd = listen_at((struct sockaddr *)&four, sizeof(four));
    return fd;
}

int endpoint_port(int fd)
{
    struct sockaddr_in6 six = {.sin6_port = 0};
    socklen_t len = sizeof(six);

    return getsockname(fd, (struct sockaddr *)&six, &len)
               ? -1
               : ntohs(six.sin6_port); /* at the same place in both families */
}

/* Look a name up; NULL: it cannot be resolved now. */
static struct addrinfo *look_up(const char *host, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char text[16];

    snprintf(text, sizeof(text), "%d", port);
    return getaddrinfo(host, text, &hints, &list) ? NULL : list;
}

/* Is the address on this host?  Only then can it be bound. */
static int is_mine(const struct addrinfo *a)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), can_bind;

    memcpy(&at, a->ai_addr, a->ai_addrlen);
    at.six.sin6_port = 0; /* at the same place in both */
    can_bind = fd >= 0 && !bind(fd, &at.any, a->ai_addrlen);
    if (fd >= 0)
        close(fd);
    return can_bind;
}

int endpoint_is_here(const char *host, int port)
{
    struct addrinfo *list = look_up(host, port);
    int is_here = 0;

    for (struct addrinfo *a = list; a && !is_here; a = a->ai_next)
        is_here = is_mine(a);
    if (list)
        freeaddrinfo(list);
    return is_here;
}

void endpoint_prepare(int fd)
{
    int on = 1, interval = SILENCE / 5, count = 4, ms = SILENCE * 1000;

    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void endpoint_say_where(int fd, char *where, size_t len)
{
    struct sockaddr_storage at;
    socklen_t at_len = sizeof(at);

    if (getpeername(fd, (struct sockaddr *)&at, &at_len) ||
        getnameinfo((struct sockaddr *)&at, at_len, where, (socklen_t)len, NULL,
                    0, NI_NUMERICHOST))
        snprintf(where, len, "unknown");
    if (!strncmp(where, "::ffff:", 7)) /* IPv4, at a socket of either */
        memmove(where, where + 7, len - 7);
}

static int connect_to(const struct addrinfo *a, double seconds)
{
    int fd =
        socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = 0;
    socklen_t len = sizeof(err);
    struct pollfd pfd = {.fd = fd, .events = POLLOUT};

    if (fd < 0)
        return -1;
    if (!connect(fd, a->ai_addr, a->ai_addrlen) ||
        (errno == EINPROGRESS && poll(&pfd, 1, (int)(seconds * 1000)) > 0 &&
         !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err))
        return fd;
    close(fd);
    return -1;
}

int endpoint_call(const char *host, int port, double seconds)
{
    struct addrinfo *list = look_up(host, port);
    int fd = -1;

    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = connect_to(a, seconds);
    if (list)
        freeaddrinfo(list);
    return fd;
}
