/* SPDX-License-Identifier: BSD-3-Clause */
/* op_p2p.c - messages between the ranks of a pair, 2k and 2k + 1: there and back again,
 * many one way, many both ways, like OSU's latency, bw and bibw.
 *
 * All pairs are busy at once; bandwidth is that of one pair.  The last of an
 * odd number of ranks is its own partner.
 */
#include "benchmarks/bench.h"

static int partner(const struct bench_case *c)
{
    int other = c->rank ^ 1;

    return other < c->ranks ? other : c->rank;
}

static size_t verify(const struct bench_case *c, const void *out)
{
    return bench_differing(c, bench_value, partner(c), out);
}

static size_t verify_window(const struct bench_case *c, const void *out)
{
    size_t len = c->count * coll_type_size(c->type), n = 0;

    for (size_t i = 0; i < BENCH_WINDOW; i++)
        n += verify(c, (const char *)out + i * len);
    return n;
}

/* Only the second rank of a pair receives, and a rank that is its own partner. */
static size_t verify_one(const struct bench_case *c, const void *out)
{
    return partner(c) > c->rank ? 0 : verify_window(c, out);
}

static int send(const struct bench_case *c, const void *in,
                struct coll_comm *comm)
{
    return coll_send(in, c->count, c->type, partner(c), comm, c->stream);
}

static int receive(const struct bench_case *c, void *out,
                   struct coll_comm *comm)
{
    return coll_recv(out, c->count, c->type, partner(c), comm, c->stream);
}

/* Carry out a group of n messages: to the partner if `in` is set, from the partner if
 * `out` is set. */
static int window(const struct bench_case *c, const void *in, void *out, int n,
                  struct coll_comm *comm)
{
    size_t len = c->count * coll_type_size(c->type);
    int rc = coll_group_start(), end;

    for (int i = 0; i < n && in && !rc; i++)
        rc = send(c, in, comm);
    for (int i = 0; i < n && out && !rc; i++)
        rc = receive(c, (char *)out + (size_t)i * len, comm);
    end = coll_group_end();
    return rc ? rc : end;
}

static int ping(const struct bench_case *c, const void *in, void *out,
                struct coll_comm *comm)
{
    int rc;

    if (partner(c) == c->rank)
        return window(c, in, out, 1, comm);
    if (c->rank % 2) {
        rc = receive(c, out, comm);
        return rc ? rc : send(c, in, comm);
    }
    rc = send(c, in, comm);
    return rc ? rc : receive(c, out, comm);
}

/* Send one byte back from the second rank to the first.  It uses the buffers that are
 * free: the sender's `in` and the receiver's `out`. */
static int answer(const struct bench_case *c, const void *in, void *out,
                  struct coll_comm *comm)
{
    if (partner(c) > c->rank)
        return coll_recv(out, 1, COLL_U8, partner(c), comm, c->stream);
    return coll_send(in, 1, COLL_U8, partner(c), comm, c->stream);
}

/* Send a window of messages one way; one byte comes back when all of them have
 * arrived. */
static int one_way(const struct bench_case *c, const void *in, void *out,
                   struct coll_comm *comm)
{
    int is_sender = partner(c) >= c->rank, is_alone = partner(c) == c->rank;
    int rc = window(c, is_sender ? in : NULL,
                    is_sender && !is_alone ? NULL : out, BENCH_WINDOW, comm);

    return rc || is_alone ? rc : answer(c, in, out, comm);
}

static int both_ways(const struct bench_case *c, const void *in, void *out,
                     struct coll_comm *comm)
{
    return window(c, in, out, BENCH_WINDOW, comm);
}

const struct bench_op bench_p2p_ping = {
    .name = "p2p",
    .collective = COLL_SEND,
    .note = "Times are half of the way there and back",
    .has_data = 1,
    .trips = 2,
    .moved = bench_one,
    .traffic = bench_one,
    .fill = bench_put_own,
    .verify = verify,
    .run = ping,
};

const struct bench_op bench_p2p_one = {
    .name = "p2p",
    .collective = COLL_SEND,
    .note = "An iteration is 16 messages one way, and an answer",
    .has_data = 1,
    .out = BLOCKS_WINDOW,
    .moved = bench_window,
    .traffic = bench_window,
    .fill = bench_put_own,
    .verify = verify_one,
    .run = one_way,
};

const struct bench_op bench_p2p_both = {
    .name = "p2p",
    .collective = COLL_SEND,
    .note = "An iteration is 16 messages each way; bandwidth is their sum",
    .has_data = 1,
    .out = BLOCKS_WINDOW,
    .moved = bench_windows,
    .traffic = bench_windows,
    .fill = bench_put_own,
    .verify = verify_window,
    .run = both_ways,
};
