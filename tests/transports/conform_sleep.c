/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_sleep.c - bells that are files, of transports that the kernel tells. */
#include "lib/util/util.h"
#include "tests/transports/conform.h"

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
static void begin_to_hear(struct rank *rank, struct coll__xfer *xfers,
                          size_t len)
{
    for (int i = 0; i < rank->n_peers && !rank->me; i++)
        conform_post_recv(rank, &xfers[i], rank->peers[i], 3, len);
    if (rank->me)
        conform_post_send(rank, &xfers[0], 0, 3, len);
}

static void end_hearing(struct rank *rank, struct coll__xfer *xfers)
{
    int n = rank->me ? 1 : rank->n_peers;

    conform_wait(rank, xfers, n);
    for (int i = 0; i < n; i++) {
        EXPECT(rank, xfers[i].status == COLL_OK, "%s",
               coll_strerror(xfers[i].status));
        if (!rank->me)
            conform_expect_payload(rank, &xfers[i], 3);
        conform_free(xfers[i].buf);
    }
}

/* A transport may tell the kernel something for these. */
static void hear_long_ones(struct rank *rank)
{
    struct coll__xfer xfers[MAX_RANKS];

    for (int i = 0; i < 3; i++) {
        begin_to_hear(rank, xfers, 32 << 10);
        end_hearing(rank, xfers);
    }
}

static void expect_to_ring(struct rank *rank, const struct coll__bell *bell)
{
    struct pollfd file = {.fd = bell->fd, .events = POLLIN};

    EXPECT(rank, poll(&file, 1, 20 * 1000) > 0, "it does not ring");
}

/* rank->index: rank 0 posts its receives before it arms and polls, or after that, as
 * another thread may; of 48 bytes or 32 KiB. */
void conform_wake_behind(struct rank *rank)
{
    struct coll__xfer xfers[MAX_RANKS];
    struct coll__bell bell = {.fd = -1};
    size_t len = rank->index & 2 ? 32 << 10 : 48;

    if (!rank->n_peers || !rank->tp->ops->arm(rank->tp, &bell) || bell.fd < 0)
        return;
    conform_poll_for(rank, 0.1); /* whoever might sleep by that is awake */
    hear_long_ones(rank);
    if (rank->me) {
        conform_barrier(rank); /* rank 0 is as good as asleep */
        begin_to_hear(rank, xfers, len);
    } else {
        if (!(rank->index & 1))
            begin_to_hear(rank, xfers, len);
        EXPECT(rank, rank->tp->ops->arm(rank->tp, &bell), "no bell");
        rank->tp->ops->poll(rank->tp);
        if (rank->index & 1) {
            begin_to_hear(rank, xfers, len);
            rank->tp->ops->poll(rank->tp);
        }
        conform_barrier(rank);
        expect_to_ring(rank, &bell);
    }
    end_hearing(rank, xfers);
}

/* Rank 0 waits for short messages behind long ones, and then for more than it looks at
 * one by one: the kernel tells which of them can go on. */
void conform_many_behind(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS], xfers[MAX_RANKS];
    const size_t much = 8 << 20;
    int n = rank->me ? 1 : rank->n_peers;

    hear_long_ones(rank);
    if (!rank->me) {
        begin_to_hear(rank, xfers, 48);
        conform_poll_for(rank, 0.02);
        for (int i = 0; i < n; i++)
            conform_post_send(rank, &sends[i], rank->peers[i], 4, much);
        conform_poll_for(rank, 0.02);
    }
    conform_barrier(rank);
    if (rank->me)
        begin_to_hear(rank, xfers, 48);
    end_hearing(rank, xfers);
    conform_barrier(rank); /* until then nobody makes room for more */
    if (rank->me)
        conform_post_recv(rank, &recvs[0], 0, 4, much);
    conform_wait(rank, rank->me ? recvs : sends, n);
    for (int i = 0; i < n; i++)
        conform_free(rank->me ? recvs[i].buf : sends[i].buf);
}
