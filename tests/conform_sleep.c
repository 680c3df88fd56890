/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sleep.c - bells that are files, of transports that the kernel tells. */
#include "lib/util/util.h"
#include "tests/conform.h"

#include <poll.h>

/* Who waits for something else would never sleep. */
void conform_sleep_beside(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];
    struct coll__bell bell = {.fd = -1};
    struct pollfd file = {.events = POLLIN};

    if (!rank->tp->ops->arm(rank->tp, &bell) || bell.fd < 0)
        return;
    rank->tp->ops->poll(rank->tp);
    for (int i = 0; i < rank->n_peers; i++)
        conform_post_send(rank, &sends[i], rank->peers[i], 3, 48);
    conform_wait(rank, sends, rank->n_peers);
    conform_barrier(rank);
    conform_poll_for(rank, 0.02);
    EXPECT(rank, rank->tp->ops->arm(rank->tp, &bell),
           "it has no bell any more");
    rank->tp->ops->poll(rank->tp);
    file.fd = bell.fd;
    EXPECT(rank, poll(&file, 1, 20) == 0, "it rings");
    conform_barrier(rank);
    for (int i = 0; i < rank->n_peers; i++)
        conform_post_recv(rank, &recvs[i], rank->peers[i], 3, 48);
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, &sends[i], &recvs[i], 1, 3);
}

/* Rank 0 hears of all the others' messages of that length, without a part in them. */
static void hear_all(struct rank *rank, struct coll__xfer *xfers, unsigned k,
                     size_t len)
{
    int n = rank->me ? 1 : rank->n_peers;

    for (int i = 0; i < n && !rank->me; i++)
        conform_post_recv(rank, &xfers[i], rank->peers[i], k, len);
    if (rank->me)
        conform_post_send(rank, &xfers[0], 0, k, len);
}

/* A transport may have told the kernel something for the long ones. */
void conform_wake_behind(struct rank *rank)
{
    struct coll__xfer xfers[MAX_RANKS];
    struct coll__bell bell = {.fd = -1};
    struct pollfd file = {.events = POLLIN};
    int n = rank->me ? 1 : rank->n_peers;

    if (!rank->n_peers || !rank->tp->ops->arm(rank->tp, &bell) || bell.fd < 0)
        return;
    for (int round = 0; round < 4; round++) {
        size_t len = round < 3 ? 32 << 10 : 48;

        if (rank->me && round == 3)
            conform_barrier(rank); /* rank 0 is about to sleep */
        hear_all(rank, xfers, 3, len);
        if (!rank->me && round == 3) {
            EXPECT(rank, rank->tp->ops->arm(rank->tp, &bell), "no bell");
            rank->tp->ops->poll(rank->tp);
            conform_barrier(rank);
            file.fd = bell.fd;
            EXPECT(rank, poll(&file, 1, 20 * 1000) > 0, "it does not ring");
        }
        conform_wait(rank, xfers, n);
        for (int i = 0; i < n; i++) {
            EXPECT(rank, xfers[i].status == COLL_OK, "%s",
                   coll_strerror(xfers[i].status));
            conform_free(xfers[i].buf);
        }
    }
}
