/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_share.c - bytes that several ranks get, or that go on to the next
 * one; and messages that need nobody's help.
 */
#include "tests/transports/conform.h"
#include "tests/support/patience.h"
#include "lib/util/util.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SHARED 18 /* messages to everybody; more than a transport may keep */
#define ROUNDS 4
#define LANES 4 /* messages of a round that go on */
#define MOST_PUTS 1024
#define PUTS 10000 /* names below it are of other messages */

/* ---- to everybody ------------------------------------------------------- */

struct exchange {
    struct coll__xfer sends[SHARED], recvs[SHARED];
};

/* Message k is the same for all receivers when it has a number. */
static size_t shared_len(unsigned k)
{
    static const size_t lens[] = {20000, 700, 9001, 4096};

    return lens[k % ARRAY_LEN(lens)] - k;
}

static void send_shared(struct rank *rank, struct coll__xfer *xfer, int peer,
                        unsigned k, void *payload, uint64_t number)
{
    *xfer = (struct coll__xfer){.peer = peer,
                                .channel = rank->channel,
                                .len = shared_len(k),
                                .buf = payload,
                                .bytes = {.name = number, .is_exchange = 1},
                                .sig = conform_sig_of(k, shared_len(k))};
    rank->tp->ops->send(rank->tp, xfer);
}

static void send_to_all(struct rank *rank, struct exchange *with,
                        void **payloads)
{
    for (unsigned k = 0; k < SHARED; k++) {
        payloads[k] = conform_new_payload(shared_len(k), rank->me, 0, k);
        for (int i = 0; i < rank->n_peers; i++) /* the last few are private */
            send_shared(rank, &with[i].sends[k], rank->peers[i], k, payloads[k],
                        k < SHARED - 4 ? k + 1 : 0);
    }
}

static void receive_all(struct rank *rank, struct exchange *with, int sender)
{
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; rank->peers[i] != sender && k < SHARED; k++)
            conform_post_recv(rank, &with[i].recvs[k], rank->peers[i], k,
                              shared_len(k));
}

static void expect_all(struct rank *rank, struct exchange *with, int sender)
{
    for (int i = 0; i < rank->n_peers; i++) {
        if (rank->peers[i] == sender)
            continue;
        conform_wait(rank, with[i].recvs, SHARED);
        for (unsigned k = 0; k < SHARED; k++) {
            struct coll__xfer *recv = &with[i].recvs[k];
            void *want = conform_new_payload(recv->len, recv->peer, 0, k);

            EXPECT(rank, recv->status == COLL_OK, "%s",
                   coll_strerror(recv->status));
            EXPECT(rank, !memcmp(recv->buf, want, recv->len),
                   "message %u from %d", k, recv->peer);
            conform_free(want);
            conform_free(recv->buf);
        }
    }
}

/* The last rank sends nothing, and takes nothing, does not even poll, until all
 * others have what they sent each other. */
void conform_share(struct rank *rank)
{
    struct exchange *with = calloc(MAX_RANKS, sizeof(*with));
    void *payloads[SHARED] = {NULL};
    int late = rank->size - 1;

    ck_assert_ptr_nonnull(with);
    if (rank->n_peers < 2) {
        free(with);
        return;
    }
    if (rank->me != late) {
        send_to_all(rank, with, payloads);
        receive_all(rank, with, late);
        expect_all(rank, with, late);
        for (int i = 0; i < rank->n_peers; i++)
            if (rank->peers[i] != late)
                conform_wait(rank, with[i].sends, SHARED);
    }
    conform_barrier(rank);
    if (rank->me == late) {
        receive_all(rank, with, late);
        expect_all(rank, with, late);
    }
    for (int i = 0; rank->me != late && i < rank->n_peers; i++)
        conform_wait(rank, with[i].sends, SHARED);
    for (unsigned k = 0; k < SHARED; k++)
        conform_free(payloads[k]);
    free(with);
}

/* ---- onward --------------------------------------------------------------- */

/* A chain: each rank takes messages from the one below, combines them with its
 * own or not, and passes them on to all that are above. */
struct lane {
    struct coll__xfer recv, sends[MAX_RANKS];
    int32_t *values;
    size_t count;
    int is_sum;
};

static int32_t value_of(int rank, size_t i, int round)
{
    return (int32_t)(i % 1009) * 3 + rank * 7 + round * 11;
}

/* What rank r has when it has combined. */
static int32_t wanted(const struct lane *lane, int r, size_t i, int round)
{
    int32_t sum = value_of(0, i, round);

    for (int from = 1; lane->is_sum && from <= r; from++)
        sum += value_of(from, i, round);
    return sum;
}

static void start_lane(struct rank *rank, struct lane *lane, int l, int round)
{
    static const size_t counts[LANES] = {4000, 1300, 18001, 14};

    lane->count = counts[(l + round) % LANES];
    lane->is_sum = (l + round) % 2;
    for (size_t i = 0; i < lane->count; i++)
        lane->values[i] = value_of(rank->me, i, round);
    lane->recv =
        (struct coll__xfer){.peer = rank->me - 1,
                            .channel = rank->channel,
                            .len = lane->count * sizeof(int32_t),
                            .buf = lane->values,
                            .with = lane->values,
                            .reduce = lane->is_sum ? conform_sum_i32 : NULL,
                            .bytes = {.name = (uint64_t)(1000 + round * LANES +
                                                         l), /* not share()'s */
                                      .beside = SIZE_MAX,
                                      .is_final = l % 3 == 0},
                            .sig = conform_sig_of((unsigned)l, lane->count)};
    if (rank->me)
        rank->tp->ops->recv(rank->tp, &lane->recv);
}

/* To the next rank first, then to those behind it, who only look. */
static void pass_on(struct rank *rank, struct lane *lane, int round)
{
    EXPECT(rank, lane->recv.status == COLL_OK, "%s",
           coll_strerror(lane->recv.status));
    for (size_t i = 0; i < lane->count; i++)
        EXPECT(rank, lane->values[i] == wanted(lane, rank->me, i, round),
               "element %zu of %zu in round %d", i, lane->count, round);
    for (int to = rank->me + 1; to < rank->size; to++) {
        lane->sends[to] = (struct coll__xfer){
            .peer = to,
            .channel = rank->channel,
            .len = lane->recv.len,
            .buf = lane->values,
            .bytes = {.name = lane->recv.bytes.name, .is_exchange = 1},
            .sig = lane->recv.sig};
        rank->tp->ops->send(rank->tp, &lane->sends[to]);
    }
}

/* From each rank below the one just below: the same bytes as those went to the
 * rank behind it. */
static void look(struct rank *rank, struct lane *lane, int l, int round)
{
    int32_t *copy = conform_alloc(lane->count * sizeof(*copy));

    for (int from = 0; from + 1 < rank->me; from++) {
        struct coll__xfer recv = {
            .peer = from,
            .channel = rank->channel,
            .len = lane->recv.len,
            .buf = copy,
            .bytes = {.beside = SIZE_MAX, .is_final = (unsigned)l % 2},
            .sig = lane->recv.sig};

        rank->tp->ops->recv(rank->tp, &recv);
        conform_wait(rank, &recv, 1);
        EXPECT(rank, recv.status == COLL_OK, "%s", coll_strerror(recv.status));
        for (size_t i = 0; i < lane->count; i++)
            EXPECT(rank, copy[i] == wanted(lane, from, i, round),
                   "element %zu from %d in round %d", i, from, round);
    }
    conform_free(copy);
}

static void finish_lanes(struct rank *rank, struct lane *lanes, int round)
{
    for (int l = 0; l < LANES; l++)
        look(rank, &lanes[l], l, round);
    for (int l = 0; l < LANES; l++)
        if (rank->me + 1 < rank->size)
            conform_wait(rank, &lanes[l].sends[rank->me + 1],
                         rank->size - rank->me - 1);
}

void conform_onward(struct rank *rank)
{
    struct lane lanes[LANES];
    int n_others = 0;

    for (int i = 0; i < rank->n_peers; i++)
        n_others += rank->peers[i] != rank->me;
    if (n_others + 1 < rank->size)
        return; /* no chain */
    for (int l = 0; l < LANES; l++)
        lanes[l].values = conform_alloc(18001 * sizeof(int32_t));
    for (int round = 0; round < ROUNDS; round++) {
        for (int l = 0; l < LANES; l++)
            start_lane(rank, &lanes[l], l, round);
        for (int l = 0; l < LANES; l++) { /* in the order of their receives */
            conform_wait(rank, &lanes[l].recv, 1);
            pass_on(rank, &lanes[l], round);
        }
        finish_lanes(rank, lanes, round);
    }
    for (int l = 0; l < LANES; l++)
        conform_free(lanes[l].values);
}

/* ---- put and take --------------------------------------------------------- */

/* As a program has it that runs once more: the last run has left `done`. */
static struct coll__xfer small(struct rank *rank, int peer, unsigned k,
                               void *buf)
{
    const size_t most = rank->tp->eager;
    const size_t lens[] = {0, 1, 24, min_size(89, most), most - 1, most};
    size_t len = lens[k % ARRAY_LEN(lens)];

    return (struct coll__xfer){
        .peer = peer,
        .channel = rank->channel,
        .len = len,
        .buf = buf,
        .bytes = {.name = PUTS + (uint64_t)peer * PUTS + k},
        .sig = conform_sig_of(k, len),
        .done = len};
}

/* 1 when the message could be put. */
static int put(struct rank *rank, int peer, unsigned k)
{
    struct coll__xfer xfer = small(rank, peer, k, NULL);
    int rc;

    xfer.buf = conform_new_payload(xfer.len, rank->me, peer, k);
    rc = rank->tp->ops->put(rank->tp, &xfer);
    conform_free(xfer.buf); /* it is on its way, or nothing happened */
    return rc;
}

static void take(struct rank *rank, int peer, unsigned k)
{
    struct coll__xfer xfer = small(rank, peer, k, NULL);
    double deadline = coll__now() + patient(WAIT_SECONDS);

    xfer.buf = conform_alloc(xfer.len);
    while (rank->tp->ops->take(rank->tp, &xfer) == COLL_IN_PROGRESS) {
        EXPECT(rank, coll__now() < deadline, "message %u did not come", k);
        conform_poll(rank);
    }
    conform_expect_payload(rank, &xfer, k);
    conform_free(xfer.buf);
}

/* Without room ahead nothing ever happens. */
static void expect_neither(struct rank *rank)
{
    for (int i = 0; i < rank->n_peers; i++) {
        struct coll__xfer xfer = {.peer = rank->peers[i],
                                  .channel = rank->channel};

        EXPECT(rank, !rank->tp->ops->put(rank->tp, &xfer));
        EXPECT(rank, rank->tp->ops->take(rank->tp, &xfer) == COLL_IN_PROGRESS);
    }
}

/* The message that comes is not the one that is to be taken; it stays. */
static void take_another(struct rank *rank, unsigned k)
{
    for (int i = 0; i < rank->n_peers; i++) {
        struct coll__xfer xfer = small(rank, rank->peers[i], k + 1, NULL);
        double deadline = coll__now() + patient(WAIT_SECONDS);
        int rc;

        xfer.buf = conform_alloc(xfer.len);
        while ((rc = rank->tp->ops->take(rank->tp, &xfer)) ==
               COLL_IN_PROGRESS) {
            EXPECT(rank, coll__now() < deadline, "nothing came");
            conform_poll(rank);
        }
        EXPECT(rank, rc == COLL_ERR_MISMATCH && xfer.got.seq == k, "%s",
               coll_strerror(rc));
        conform_free(xfer.buf);
    }
}

void conform_put(struct rank *rank)
{
    struct coll__tp *tp = rank->tp;
    unsigned n = (unsigned)tp->ahead, n_put[MAX_RANKS] = {0};

    if (!n) {
        expect_neither(rank);
        return;
    }
    for (int round = 0; round < 5; round++) { /* so that it goes round */
        for (int i = 0; i < rank->n_peers; i++)
            for (unsigned k = 0; k < n; k++)
                EXPECT(rank, put(rank, rank->peers[i], k), "message %u", k);
        conform_barrier(rank); /* nobody helped */
        for (int i = 0; i < rank->n_peers; i++)
            for (unsigned k = 0; k < n; k++)
                take(rank, rank->peers[i], k);
        conform_barrier(rank);
    }
    for (int i = 0; i < rank->n_peers; i++)
        while (n_put[i] < MOST_PUTS && put(rank, rank->peers[i], n_put[i]))
            n_put[i]++;
    for (int i = 0; i < rank->n_peers; i++) /* all have as much room */
        EXPECT(rank, n_put[i] >= n && n_put[i] < MOST_PUTS, "%u", n_put[i]);
    conform_barrier(rank);
    take_another(rank, 0);
    for (int i = 0; i < rank->n_peers; i++)
        for (unsigned k = 0; k < n_put[i]; k++)
            take(rank, rank->peers[i], k);
}
