/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c - connect, read and write with deadlines; names and addresses. */
#include "lib/net/net.h"
#include "lib/trace/log.h"
#include "lib/util/files.h"
#include "lib/util/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/net_addr.h"

#define RTO_MAX_MS 44 /* TCP_RTO_MAX_MS of Linux 6.15; no libc defines it yet */

uint16_t coll__net_port(const struct coll__addr *addr)
{
    return (uint16_t)(addr->port[0] << 8 | addr->port[1]);
}

void coll__net_set_port(struct coll__addr *addr, uint16_t port)
{
    addr->port[0] = (uint8_t)(port >> 8);
    addr->port[1] = (uint8_t)port;
}

int coll__net_is_loopback(const struct coll__addr *addr)
{
    static const uint8_t one[16] = {[15] = 1};

    return addr->family == 4 ? addr->ip[0] == 127
                             : !memcmp(addr->ip, one, sizeof(one));
}

/* The 54 bits behind the prefix fe80::/10 are zero by definition, so the interface's
 * index is kept in bytes 4 to 7. */
#define SCOPE_AT 4

int coll__addr_is_link_local(const struct coll__addr *addr)
{
    return addr->family == 6 && addr->ip[0] == 0xfe &&
           (addr->ip[1] & 0xc0) == 0x80;
}

uint32_t coll__addr_scope(const struct coll__addr *addr)
{
    uint32_t scope;

    memcpy(&scope, addr->ip + SCOPE_AT, sizeof(scope));
    return coll__addr_is_link_local(addr) ? ntohl(scope) : 0;
}

void coll__addr_set_scope(struct coll__addr *addr, uint32_t scope)
{
    uint32_t bytes = htonl(scope);

    if (coll__addr_is_link_local(addr))
        memcpy(addr->ip + SCOPE_AT, &bytes, sizeof(bytes));
}

socklen_t coll__addr_to_sock(const struct coll__addr *addr,
                             struct sockaddr_storage *out)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

    memset(out, 0, sizeof(*out));
    if (addr->family == 4) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(coll__net_port(addr));
        memcpy(&v4->sin_addr, addr->ip, 4);
        return sizeof(*v4);
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(coll__net_port(addr));
    memcpy(&v6->sin6_addr, addr->ip, 16);
    if (coll__addr_is_link_local(addr))
        memset(v6->sin6_addr.s6_addr + SCOPE_AT, 0, sizeof(uint32_t));
    v6->sin6_scope_id = coll__addr_scope(addr);
    return sizeof(*v6);
}

int coll__addr_from_sock(const struct sockaddr *in, struct coll__addr *addr)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)in;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)in;

    memset(addr, 0, sizeof(*addr));
    if (in->sa_family == AF_INET) {
        addr->family = 4;
        memcpy(addr->ip, &v4->sin_addr, 4);
        coll__net_set_port(addr, ntohs(v4->sin_port));
    } else if (in->sa_family == AF_INET6) {
        int is_mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);

        addr->family = is_mapped ? 4 : 6;
        memcpy(addr->ip, v6->sin6_addr.s6_addr + (is_mapped ? 12 : 0),
               is_mapped ? 4 : 16);
        coll__addr_set_scope(addr, v6->sin6_scope_id);
        coll__net_set_port(addr, ntohs(v6->sin6_port));
    }
    return addr->family ? 0 : -1;
}

void coll__net_text(const struct coll__addr *addr, char text[COLL__ADDR_TEXT])
{
    char ip[INET6_ADDRSTRLEN + IF_NAMESIZE] = "?";
    struct sockaddr_storage sock;
    socklen_t len = coll__addr_to_sock(addr, &sock);

    getnameinfo((struct sockaddr *)&sock, len, ip, sizeof(ip), NULL, 0,
                NI_NUMERICHOST);
    snprintf(text, COLL__ADDR_TEXT, addr->family == 4 ? "%s:%d" : "[%s]:%d", ip,
             coll__net_port(addr));
}

int coll__net_peer(int fd, struct coll__addr *addr)
{
    struct sockaddr_storage sock = {0};
    socklen_t len = sizeof(sock);

    *addr = (struct coll__addr){0};
    return getpeername(fd, (struct sockaddr *)&sock, &len) ||
                   coll__addr_from_sock((struct sockaddr *)&sock, addr)
               ? -1
               : 0;
}

void coll__net_peer_text(int fd, char text[COLL__ADDR_TEXT])
{
    struct coll__addr addr;

    if (coll__net_peer(fd, &addr))
        snprintf(text, COLL__ADDR_TEXT, "an unknown address");
    else
        coll__net_text(&addr, text);
}

int coll__net_split(const char *text, char *host, size_t len, uint16_t *port)
{
    const char *colon = strrchr(text, ':'), *from = text, *to = colon;
    char *end;
    long value;

    if (!colon || colon == text)
        return -1;
    if (*from == '[' && to[-1] == ']')
        from++, to--;
    else if (memchr(text, ':', (size_t)(colon - text)))
        return -1; /* an IPv6 address needs its brackets */
    value = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end || value < 1 || value > 65535 || to <= from ||
        (size_t)(to - from) >= len)
        return -1;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    *port = (uint16_t)value;
    return 0;
}

/* Copy the addresses of the list that COLL_NET_FAMILY allows; with is_any, all. */
static int take_addrs(const struct addrinfo *list, int is_any, uint16_t port,
                      struct coll__addr addrs[COLL__MAX_ADDRS])
{
    int n = 0;

    for (const struct addrinfo *a = list; a && n < COLL__MAX_ADDRS;
         a = a->ai_next)
        if (!coll__addr_from_sock(a->ai_addr, &addrs[n]) &&
            (is_any || coll__net_wants(addrs[n].family)))
            coll__net_set_port(&addrs[n++], port);
    return n;
}

/* Give localhost both its addresses, whatever /etc/hosts has. */
static int local_addrs(uint16_t port, struct coll__addr addrs[COLL__MAX_ADDRS])
{
    static const struct coll__addr both[] = {
        {.ip = {127, 0, 0, 1}, .family = 4}, {.ip = {[15] = 1}, .family = 6}};
    int n = 0;

    for (int i = 0; i < 2; i++)
        if (coll__net_wants(both[i].family)) {
            addrs[n] = both[i];
            coll__net_set_port(&addrs[n++], port);
        }
    return n;
}

/* Copy the host without the brackets that URLs put around an IPv6 address. */
static void strip_brackets(const char *host, char bare[NI_MAXHOST])
{
    size_t len = strlen(host);
    int has_brackets = len > 2 && *host == '[' && host[len - 1] == ']';

    snprintf(bare, NI_MAXHOST, "%.*s", (int)(len - (has_brackets ? 2 : 0)),
             host + has_brackets);
}

/* If COLL_NET_FAMILY allows none of the host's addresses, return them all: connecting to
 * them fails with a reason. */
int coll__net_resolve(const char *name, uint16_t port,
                      struct coll__addr addrs[COLL__MAX_ADDRS])
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    char host[NI_MAXHOST];
    int n, rc;

    strip_brackets(name, host);
    if (!strcmp(host, "localhost"))
        return local_addrs(port, addrs);
    rc = getaddrinfo(host, NULL, &hints, &list);
    if (rc) {
        log_error("boot",
                  "cannot find the address of host %s: %s; "
                  "is the name right on this machine?",
                  host, gai_strerror(rc));
        return COLL_ERR_BOOTSTRAP;
    }
    n = take_addrs(list, 0, port, addrs);
    if (!n)
        n = take_addrs(list, 1, port, addrs);
    freeaddrinfo(list);
    if (!n || !coll__addr_is_link_local(&addrs[0]) ||
        coll__addr_scope(&addrs[0]))
        return n;
    log_error("boot",
              "%s is a link-local address, which every interface has: name the "
              "interface behind it, such as %s%%eth0",
              host, host);
    return COLL_ERR_BOOTSTRAP;
}

/* Keep-alive probes go out only on an idle connection, so the kernel has to watch
 * unacknowledged data too. */
static void watch_silence(int fd, unsigned ms)
{
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

int coll__net_adopt(int fd)
{
    int on = 1, interval = COLL__SILENCE_PROBE, ms = 1000 * interval;
    int count = COLL__SILENCE / interval - 1; /* the first comes when idle */

    if (fcntl(fd, F_SETFD, FD_CLOEXEC) ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
        return -errno;
    /* Best effort: without them things are slower, not wrong. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
    setsockopt(fd, IPPROTO_TCP, RTO_MAX_MS, &ms, sizeof(ms));
    watch_silence(fd, COLL__SILENCE * 1000);
    return 0;
}

void coll__net_allow_stalls(int fd) { watch_silence(fd, 0); }

int coll__net_is_silence(int err)
{
    return err == ETIMEDOUT || err == EHOSTUNREACH || err == ENETUNREACH;
}

int coll__net_is_unheard(int fd, double *silence)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    int n_waiting;
    unsigned ms;

    if (ioctl(fd, SIOCOUTQ, &n_waiting) || !n_waiting ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
        return 0;
    ms = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
             ? info.tcpi_last_ack_recv
             : info.tcpi_last_data_recv;
    *silence = ms / 1e3;
    return 1;
}

/* Wait until fd is ready; 0, or COLL_ERR_TIMEOUT. */
static int wait_ready(int fd, short events, double deadline)
{
    struct pollfd pfd = {.fd = fd, .events = events};

    for (;;) {
        double left = deadline - coll__now();
        int ms = left > 3600 ? 3600000 : (int)(left * 1000) + 1;
        int n;

        if (left <= 0)
            return COLL_ERR_TIMEOUT;
        n = poll(&pfd, 1, ms);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return COLL_ERR_PEER;
    }
}

/* Is the loopback interface down?  Then the host's processes cannot reach each other, and
 * no error says so: packets vanish. */
int coll__net_is_loopback_down(int fd)
{
    struct ifreq request = {.ifr_name = "lo"};

    return !ioctl(fd, SIOCGIFFLAGS, &request) && !(request.ifr_flags & IFF_UP);
}

const char *coll__net_error(int err)
{
    if (err == ENETDOWN)
        return "the loopback interface of this host is down; bring it up: ip "
               "link set lo up";
    if (err == EADDRNOTAVAIL)
        return "this host has no port left, or no address, to connect from; "
               "widen net.ipv4.ip_local_port_range";
    return coll__files_error(err);
}

int coll__net_end_connect(int fd)
{
    int err = 0;
    socklen_t len = sizeof(err);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
        return -errno;
    return err ? -err : coll__net_adopt(fd);
}

int coll__net_begin_connect(const struct coll__addr *to)
{
    struct coll__addr addr = *to;
    struct sockaddr_storage sock;
    socklen_t len;
    int fd, rc = 0;

    coll__net_find_scope(&addr);
    len = coll__addr_to_sock(&addr, &sock);
    fd = socket(sock.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (coll__net_is_loopback_down(fd) && coll__net_is_own(&addr))
        rc = -ENETDOWN;
    else if (connect(fd, (struct sockaddr *)&sock, len) &&
             errno != EINPROGRESS && errno != EINTR)
        rc = -errno;
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

int coll__net_connect(const struct coll__addr *addr, double deadline)
{
    int rc, fd = coll__net_begin_connect(addr);

    if (fd < 0)
        return fd;
    rc = wait_ready(fd, POLLOUT, deadline) ? -ETIMEDOUT
                                           : coll__net_end_connect(fd);
    if (!rc)
        return fd;
    close(fd);
    return rc;
}

int coll__net_read(int fd, void *bytes, size_t len, double deadline)
{
    char *at = bytes;

    while (len) {
        ssize_t n = recv(fd, at, len, 0);

        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            int status = wait_ready(fd, POLLIN, deadline);

            if (status)
                return status;
        } else if (!n || errno != EINTR) {
            return COLL_ERR_PEER;
        }
    }
    return COLL_OK;
}

int coll__net_write(int fd, const void *bytes, size_t len, double deadline)
{
    const char *at = bytes;

    while (len) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n > 0) {
            at += n;
            len -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            int status = wait_ready(fd, POLLOUT, deadline);

            if (status)
                return status;
        } else if (n < 0 && errno != EINTR) {
            return COLL_ERR_PEER;
        }
    }
    return COLL_OK;
}
