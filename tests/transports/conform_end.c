/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_end.c - how it ends when it does not end well: closing amid
 * transfers, a rank that dies, a rank that cannot open.
 */
#include "tests/transports/conform.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* Small ones, and some that take several turns. */
static const size_t lens[] = {32, 33, 4095, 65549, 1048577, 5242880};

void conform_abandon(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS][6], recvs[MAX_RANKS][6];
    unsigned n = rank->index == ONE_POSTS_HALF && rank->me == 0 ? 3 : 6;

    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < n; k++) {
            conform_post_send(rank, &sends[i][k], rank->peers[i], k, lens[k]);
            conform_post_recv(rank, &recvs[i][k], rank->peers[i], k, lens[k]);
        }
    conform_poll_for(rank, rank->index == AT_ONCE ? 0 : 0.004);
    if (rank->index == ONE_LEAVES_FIRST && rank->me)
        conform_barrier(rank);
    rank->tp->ops->close(rank->tp, 0);
    if (rank->index == ONE_LEAVES_FIRST && !rank->me)
        conform_barrier(rank);
    conform_barrier(rank); /* a peer may read the buffers until its close */
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < n; k++) {
            conform_free(sends[i][k].buf);
            conform_free(recvs[i][k].buf);
        }
}

void conform_outlive(struct rank *rank)
{
    struct coll__xfer xfers[3], spare;

    if (rank->me == 0) {
        conform_post_send(rank, &spare, 1, 0, 8);
        conform_wait(rank, &spare, 1);
        conform_poll_for(rank, 0.1);
        kill(getpid(), SIGKILL);
    }
    if (rank->me == 1) {
        conform_post_recv(rank, &spare, 0, 0, 8);
        conform_wait(rank, &spare, 1);
        conform_expect_payload(rank, &spare, 0);
        conform_free(spare.buf);
    }
    conform_post_send(rank, &xfers[0], 0, 0, 5 << 20);
    conform_post_recv(rank, &xfers[1], 0, rank->me == 1, 8);
    conform_wait(rank, xfers, 2);
    conform_post_send(rank, &xfers[2], 0, 0, 8);
    conform_wait(rank, xfers, 3);
    for (int i = 0; i < 3; i++) {
        EXPECT(rank, xfers[i].status == COLL_ERR_PEER, "transfer %d: %s", i,
               coll_strerror(xfers[i].status));
        conform_free(xfers[i].buf);
    }
    rank->tp->ops->close(rank->tp, 0);
}

void conform_die_young(struct rank *rank)
{
    struct coll__xfer xfers[4];
    static const size_t big[] = {8000, 200000, 5 << 20};
    size_t len = big[rank->index % 3];

    conform_post_send(rank, &xfers[0], !rank->me, 0, 8);
    conform_post_send(rank, &xfers[1], !rank->me, 1, len);
    conform_post_recv(rank, &xfers[2], !rank->me, 0, 8);
    conform_post_recv(rank, &xfers[3], !rank->me, 1, len);
    if (rank->me == 0) {
        for (int i = 0; i < rank->index; i++)
            conform_poll(rank);
        kill(getpid(), SIGKILL);
    }
    conform_wait(rank, xfers, 4);
    for (int i = 0; i < 4; i++) {
        EXPECT(rank,
               xfers[i].status == COLL_OK || xfers[i].status == COLL_ERR_PEER,
               "transfer %d: %s", i, coll_strerror(xfers[i].status));
        conform_free(xfers[i].buf);
    }
    rank->tp->ops->close(rank->tp, 0);
}

void conform_fail_to_open(struct rank *rank)
{
    int rc;

    if (rank->me == 1)
        setenv("UCX_TLS", "no-such-transport", 1);
    rc = conform_open(rank);
    EXPECT(rank, rc < 0, "it opened");
    EXPECT(rank, coll_last_error()[0], "it did not say why");
}
