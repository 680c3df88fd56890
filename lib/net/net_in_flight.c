/* SPDX-License-Identifier: BSD-3-Clause */
/* net_in_flight.c - limit the data in flight on a connection.
 *
 * The kernel lets a socket's buffer grow to megabytes, for links that hold as much.  A
 * short link holds less: the excess waits in queues, leaves every cache, and is sent when
 * a timer or an acknowledgement triggers it, on whichever core that happens.  With BBR
 * over a link between two network namespaces, messages took twice as long, and packets
 * were reordered.
 */
#include "lib/net/net.h"
#include "lib/util/read.h"

#include <linux/in.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#define FASTEST 25000u /* bytes a us: 200 Gbit/s, more than one connection reaches */
#define SHORT 100u         /* us; on longer links the kernel's own limit is better */
#define LEAST (384u << 10) /* bytes, as the kernel counts them */
#define GRANTED 212992     /* wmem_max, if the namespace does not show it */

int coll__net_limit_flight(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    unsigned bytes;
    int half;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
        len < offsetof(struct tcp_info, tcpi_min_rtt) + 4 ||
        !info.tcpi_min_rtt || info.tcpi_min_rtt > SHORT)
        return 0;
    bytes = info.tcpi_min_rtt * FASTEST;
    half = (int)(bytes > LEAST ? bytes : LEAST) / 2; /* the kernel doubles it */
    if (half > coll__read_number("/proc/sys/net/core", "wmem_max", GRANTED))
        return 0;
    return !setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half));
}
