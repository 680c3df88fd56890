/* SPDX-License-Identifier: BSD-3-Clause */
/* net_in_flight.c - how much a connection has under way.
 *
 * The kernel lets a socket's buffer grow to megabytes, for links that hold so much.  A
 * short link does not: what exceeds it waits in queues, out of every cache, and comes out
 * when a timer or an acknowledgement says so, on whichever core that happens.  BBR over
 * a link between two network namespaces took twice as long for it, and packets came in
 * another order than they were sent.
 */
#include "lib/net/net.h"
#include "lib/util/read.h"

#include <linux/in.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#define FASTEST 25000u /* bytes a us; 200 Gbit/s, more than a connection has */
#define SHORT 100u         /* us; beyond that the kernel knows better */
#define LEAST (384u << 10) /* bytes, as the kernel counts them */
#define GRANTED 212992     /* of wmem_max, where a namespace does not show it */

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
