/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_channel.c - channels keep their own order and do not hold each other
 * up, be it by what nobody takes or by what takes long; and what they cost in
 * connections. */
#include "lib/util/util.h"
#include "tests/transports/conform.h"
#include "tests/support/patience.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ORDERED 12    /* messages of a channel */
#define LEFT_LYING 10 /* more bytes than a transport takes unasked */
#define LYING_BYTES ((size_t)640 << 10)
#define PASSING 20

/* ---- each in an order of its own ------------------------------------------ */

struct pair {
    struct coll__xfer sends[COLL__CHANNELS][ORDERED];
    struct coll__xfer recvs[COLL__CHANNELS][ORDERED];
};

static size_t ordered_len(int channel, unsigned k)
{
    static const size_t lens[] = {0, 8, 48, 3000, 70000, 150000};

    return lens[(k + (unsigned)channel) % 6];
}

/* Message k of a channel differs from all others. */
static unsigned number_of(int channel, unsigned k)
{
    return (unsigned)channel * 100 + k;
}

static void post_ordered(struct rank *rank, struct pair *pair, int peer,
                         int channel, int is_recv)
{
    rank->channel = channel;
    for (unsigned k = 0; k < ORDERED; k++)
        (is_recv ? conform_post_recv : conform_post_send)(
            rank, is_recv ? &pair->recvs[channel][k] : &pair->sends[channel][k],
            peer, number_of(channel, k), ordered_len(channel, k));
}

/* Receives are posted a channel at a time, in another order than the sends. */
void conform_channels(struct rank *rank)
{
    struct pair *pairs = calloc(MAX_RANKS, sizeof(*pairs));

    for (int c = 0; c < COLL__CHANNELS; c++)
        for (int i = 0; i < rank->n_peers; i++)
            post_ordered(rank, &pairs[i], rank->peers[i], c, 0);
    for (int n = 0; n < COLL__CHANNELS; n++) {
        int c = (rank->index + COLL__CHANNELS - 1 - n) % COLL__CHANNELS;

        for (int i = 0; i < rank->n_peers; i++)
            post_ordered(rank, &pairs[i], rank->peers[i], c, 1);
        for (int i = 0; i < rank->n_peers; i++)
            conform_finish(rank, pairs[i].sends[c], pairs[i].recvs[c], ORDERED,
                           number_of(c, 0));
    }
    free(pairs);
}

/* ---- receives that are posted when their message shows --------------------- */

#define SHOWN 60

/* Message k's length: with data of any length, and without. */
static size_t shown_len(unsigned k)
{
    static const size_t lens[] = {0, 8, 0, 4000, 100, 0, 200000};

    return lens[k % 7];
}

/* Post the receive of the next message of a peer if the message has come. */
static int take_shown(struct rank *rank, struct coll__xfer *recvs, int peer,
                      unsigned *next)
{
    struct coll__signature sig, want;

    if (*next == SHOWN ||
        !rank->tp->ops->peek(rank->tp, peer, rank->channel, &sig))
        return 0;
    want = conform_sig_of(*next, shown_len(*next));
    EXPECT(rank, !memcmp(&sig, &want, sizeof(sig)));
    conform_post_recv(rank, &recvs[*next], peer, *next, shown_len(*next));
    ++*next;
    return 1;
}

void conform_show(struct rank *rank)
{
    struct coll__xfer(*sends)[SHOWN] = calloc(MAX_RANKS, sizeof(*sends));
    struct coll__xfer(*recvs)[SHOWN] = calloc(MAX_RANKS, sizeof(*recvs));
    double deadline = coll__now() + patient(WAIT_SECONDS);
    unsigned next[MAX_RANKS] = {0};
    int n_left = rank->n_peers * SHOWN;

    for (unsigned k = 0; k < SHOWN; k++)
        for (int i = 0; i < rank->n_peers; i++)
            conform_post_send(rank, &sends[i][k], rank->peers[i], k,
                              shown_len(k));
    while (n_left) {
        EXPECT(rank, coll__now() < deadline, "%d do not show", n_left);
        conform_poll(rank);
        for (int i = 0; i < rank->n_peers; i++)
            while (take_shown(rank, recvs[i], rank->peers[i], &next[i]))
                n_left--;
    }
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, sends[i], recvs[i], SHOWN, 0);
    free(sends);
    free(recvs);
}

/* ---- past one that nobody takes ------------------------------------------- */

struct traffic {
    struct coll__xfer lying[LEFT_LYING], taken[LEFT_LYING];
    struct coll__xfer sends[PASSING], recvs[PASSING];
};

static void leave_lying(struct rank *rank, struct traffic *traffic)
{
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < LEFT_LYING; k++)
            conform_post_send(rank, &traffic[i].lying[k], rank->peers[i], k,
                              LYING_BYTES);
}

/* The first of what nobody takes shows, as soon as it has come: its connection may be
 * made last. */
static void expect_lying(struct rank *rank, int peer, int lying)
{
    struct coll__signature sig, want = conform_sig_of(0, LYING_BYTES);
    double deadline = coll__now() + patient(WAIT_SECONDS);

    while (!rank->tp->ops->peek(rank->tp, peer, lying, &sig)) {
        EXPECT(rank, coll__now() < deadline, "what lies there does not show");
        conform_poll(rank);
    }
    EXPECT(rank, !memcmp(&sig, &want, sizeof(sig)));
}

/* Small and large ones, one way and the other, are through in the end. */
static void pass_by(struct rank *rank, struct traffic *traffic, int lying)
{
    struct coll__signature sig;

    for (unsigned k = 0; k < PASSING; k++)
        for (int i = 0; i < rank->n_peers; i++) {
            size_t len = k % 2 ? 8 : 300000;

            conform_post_send(rank, &traffic[i].sends[k], rank->peers[i], k,
                              len);
            conform_post_recv(rank, &traffic[i].recvs[k], rank->peers[i], k,
                              len);
        }
    for (int i = 0; i < rank->n_peers; i++) {
        conform_finish(rank, traffic[i].sends, traffic[i].recvs, PASSING, 0);
        EXPECT(rank, !rank->tp->ops->peek(rank->tp, rank->peers[i],
                                          rank->channel, &sig));
        expect_lying(rank, rank->peers[i], lying);
    }
}

/* Of each number of ranks it is another channel whose messages nobody takes for
 * long. */
void conform_pass_by(struct rank *rank)
{
    struct traffic *traffic = calloc(MAX_RANKS, sizeof(*traffic));
    int lying = rank->channel;

    leave_lying(rank, traffic);
    for (int n = 1; n < COLL__CHANNELS; n++) {
        rank->channel = (lying + n) % COLL__CHANNELS;
        pass_by(rank, traffic, lying);
        conform_meet(rank);
    }
    rank->channel = lying;
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < LEFT_LYING; k++)
            conform_post_recv(rank, &traffic[i].taken[k], rank->peers[i], k,
                              LYING_BYTES);
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, traffic[i].lying, traffic[i].taken, LEFT_LYING, 0);
    free(traffic);
}

/* ---- past one that takes long ---------------------------------------------- */

#define LONG_BYTES ((size_t)24 << 20)

struct race {
    struct coll__xfer sends[2], recvs[2]; /* the short one, the long one */
    int is_passed;
};

static void post_race(struct rank *rank, struct race *race, int peer,
                      int channel)
{
    *race = (struct race){0};
    rank->channel = channel;
    conform_post_recv(rank, &race->recvs[1], peer, 1, LONG_BYTES);
    conform_post_send(rank, &race->sends[1], peer, 1, LONG_BYTES);
    rank->channel = 0;
    conform_post_send(rank, &race->sends[0], peer, 0, 8);
}

/* Poll until the short ones are there, each before its long one. */
static void watch_races(struct rank *rank, struct race *races)
{
    int n_left = rank->n_peers;

    while (n_left) {
        conform_check(rank);
        conform_poll(rank);
        for (int i = 0; i < rank->n_peers; i++) {
            if (races[i].is_passed ||
                races[i].recvs[0].status == COLL_IN_PROGRESS)
                continue;
            EXPECT(rank, races[i].recvs[1].status == COLL_IN_PROGRESS);
            races[i].is_passed = 1;
            n_left--;
        }
    }
}

/* Long messages have been started to and from all on some channel: a short one on
 * the first channel has to wait for no more of them than is on its way. */
void conform_overtake(struct rank *rank)
{
    struct race races[MAX_RANKS];
    int is_here = !strcmp(rank->tp->ops->name, "self");

    if (is_here ||
        rank->size > 3) /* it would take 1 GB, and show nothing new */
        return;
    for (int i = 0; i < rank->n_peers; i++)
        post_race(rank, &races[i], rank->peers[i],
                  1 + rank->index % (COLL__CHANNELS - 1));
    conform_barrier(rank);
    for (int i = 0; i < rank->n_peers; i++)
        conform_post_recv(rank, &races[i].recvs[0], rank->peers[i], 0, 8);
    watch_races(rank, races);
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, races[i].sends, races[i].recvs, 2, 0);
}

/* ---- connections ----------------------------------------------------------- */

/* Sockets of this process that are connected by IP. */
static int n_connected(void)
{
    struct sockaddr_storage peer;
    int n = 0;

    for (int fd = 0; fd < 1024; fd++) {
        socklen_t len = sizeof(peer);

        n += !getpeername(fd, (struct sockaddr *)&peer, &len) &&
             (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
    }
    return n;
}

/* Which of two begins: 0, both at once; 1, the lower; 2, the higher. */
static int begins(const struct rank *rank, int peer)
{
    return rank->index == 0 || (rank->index == 1) == (rank->me < peer);
}

void conform_call(struct rank *rank)
{
    struct coll__xfer sends[MAX_RANKS], recvs[MAX_RANKS];
    double deadline = coll__now() + patient(WAIT_SECONDS);
    int want = (rank->is_process ? 1 : rank->size) * (rank->size - 1);

    conform_barrier(rank);
    for (int i = 0; i < rank->n_peers; i++) {
        conform_post_recv(rank, &recvs[i], rank->peers[i], 0, 48);
        if (begins(rank, rank->peers[i]))
            conform_post_send(rank, &sends[i], rank->peers[i], 0, 48);
    }
    for (int i = 0; i < rank->n_peers; i++)
        if (!begins(rank, rank->peers[i])) {
            conform_wait(rank, &recvs[i], 1);
            conform_post_send(rank, &sends[i], rank->peers[i], 0, 48);
        }
    for (int i = 0; i < rank->n_peers; i++)
        conform_finish(rank, &sends[i], &recvs[i], 1, 0);
    conform_meet(rank);
    while (n_connected() != want) { /* until those not let in have gone */
        EXPECT(rank, coll__now() < deadline, "%d sockets, not %d",
               n_connected(), want);
        conform_poll(rank);
    }
    conform_barrier(rank);
}
