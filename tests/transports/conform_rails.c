/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_rails.c - one long message goes by several connections. */
#include "tests/transports/conform.h"
#include "tests/support/patience.h"
#include "lib/util/util.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#define LONG_BYTES ((size_t)1 << 20)
#define MUCH ((unsigned long long)64 << 10) /* less than a piece has */

/* Count this process's connections by IP that have received much. */
static int n_busy(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++) {
        struct tcp_info info = {0};
        socklen_t len = sizeof(info);

        n += !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
             len > offsetof(struct tcp_info, tcpi_bytes_received) &&
             info.tcpi_bytes_received > MUCH;
    }
    return n;
}

/* A message of any length below some limit has one connection, one above it as many as
 * there are rails; the announcement is small. */
void conform_rails(struct rank *rank)
{
    int n_mine = (rank->is_process ? 1 : rank->size) * (rank->size - 1);
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];

    for (unsigned k = 0; k < 2; k++) {
        int want = k ? n_mine * N_RAILS : 0;

        for (int i = 0; i < rank->n_peers; i++) {
            size_t len = k ? LONG_BYTES : 8000;

            conform_post_send(rank, &sends[i], rank->peers[i], k, len);
            conform_post_recv(rank, &recvs[i], rank->peers[i], k, len);
        }
        for (int i = 0; i < rank->n_peers; i++)
            conform_finish(rank, &sends[i], &recvs[i], 1, k);
        conform_meet(rank);
        EXPECT(rank, n_busy() == want,
               "%d connections have carried much, not %d", n_busy(), want);
        conform_barrier(rank);
    }
}
