/* SPDX-License-Identifier: BSD-3-Clause */
/* PAT reduce-scatter: each part has its own binomial tree, a rotated copy of the
 * same one, and sums go up all trees together, in log2(p) rounds.
 *
 * Part r - x (modulo p) passes rank r on its way to rank r - lowbit(x), where
 * lowbit is the lowest bit of x.  So in round k every rank r sends to rank
 * r - 2^k the sums with lowbit(x) = 2^k: half of its sums, and most bytes go to the
 * nearest rank.  Scratch holds the sums in the order of x with its bits reversed.
 * Then the sums to send are contiguous, and so are the sums that are added to, except
 * for one gap unless p is a power of two.
 *
 * With n bytes a part,
 * T = ceil(log2 p) alpha + (p-1) n (beta + gamma) + (p+1) n gamma to pack, or
 * n gamma for up to 3 ranks, whose messages are single parts of IN.  Best for
 * small and medium n, if far links are expensive.
 *
 *   p = 4, rank 3's sums x: part    0: 3   2: 1   1: 2   3: 0
 *     round 0: sends x = 1 3 to rank 2, adds rank 0's message to 0 2
 *     round 1: sends x = 2 to rank 1, adds rank 1's message to 0
 *
 * Source: Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter
 * operations at scale", arXiv 2506.20252, 2025 (its fully aggregated form).
 */
#include "lib/algo/combine.h"
#include "lib/plan/view_rounds.h"
#include "lib/util/util.h"

#define MAX_ROUNDS 31

struct layout {
    int n_rounds;
    size_t end[MAX_ROUNDS + 1]; /* where the first 2^i places in scratch end */
    /* The sums that a round adds to may have a gap: for one sum, near the largest x,
     * nothing arrives. */
    struct coll__span gap[MAX_ROUNDS];
};

static int reversed(int place, int n_bits)
{
    int x = 0;

    for (int b = 0; b < n_bits; b++)
        x |= (place >> b & 1) << (n_bits - 1 - b);
    return x;
}

/* Is x one of the sums that round k adds to, and does nothing arrive for it? */
static int is_gap(int x, int k, int p)
{
    return !(x & ((2 << k) - 1)) && x + (1 << k) >= p;
}

static struct coll__span own_part(const struct coll__problem *pb, int x)
{
    return x ? coll__part(pb, BUF_IN, pb->rank - x) : coll__own_in(pb);
}

/* Copy this rank's operands into scratch and note the places. */
static struct layout pack(const struct coll__problem *pb,
                          struct coll__plan *plan)
{
    struct layout l = {.n_rounds = log2_up(pb->nranks)};
    size_t at = 0;

    for (int place = 0; place < 1 << l.n_rounds; place++) {
        int x = reversed(place, l.n_rounds);
        struct coll__span own, sum;

        if (!(place & (place - 1)))
            l.end[place ? log2_up(place) : 0] = at;
        if (x >= pb->nranks)
            continue;
        own = own_part(pb, x);
        sum = coll__scratch(own, at);
        plan_copy(plan, sum, own);
        for (int k = 0; k < l.n_rounds; k++)
            if (is_gap(x, k, pb->nranks))
                l.gap[k] = sum;
        at += own.len;
    }
    l.end[l.n_rounds] = at;
    return l;
}

/* Receive what is added to the first `len` bytes of the sums, except for a gap. */
static void absorb(struct coll__plan *plan, int peer, size_t len,
                   const struct coll__span *gap, size_t tmp)
{
    size_t before = gap->len ? gap->off : len;
    size_t behind = len - before - gap->len;

    plan_recv(plan, peer, (struct coll__span){BUF_TMP, tmp, before + behind});
    plan_reduce(plan, (struct coll__span){BUF_TMP, 0, before},
                (struct coll__span){BUF_TMP, tmp, before});
    if (behind)
        plan_reduce(
            plan, (struct coll__span){BUF_TMP, before + gap->len, behind},
            (struct coll__span){BUF_TMP, tmp + before, behind});
}

static int build(const struct coll__problem *pb, struct coll__plan *plan)
{
    int p = pb->nranks, r = pb->rank;
    struct coll__span out = coll__whole(pb, BUF_OUT);
    struct layout l = pack(pb, plan);
    size_t tmp = l.end[l.n_rounds];

    for (int k = 0; k < l.n_rounds; k++) {
        size_t from = l.end[l.n_rounds - k - 1], to = l.end[l.n_rounds - k];

        plan_send(plan, (r - (1 << k) + p) % p,
                  (struct coll__span){BUF_TMP, from, to - from});
        absorb(plan, (r + (1 << k)) % p, from, &l.gap[k], tmp);
    }
    plan_copy(plan, out, coll__scratch(out, 0));
    plan_finish(pb, plan, out);
    return plan_status(plan);
}

/* Sums are in the order of x with its bits reversed. */
static int send_in(const struct coll__problem *pb, int round, int rank,
                   struct coll__round_message *message)
{
    int p = pb->nranks, d = 1 << round;

    message->to = (rank - d + p) % p;
    message->at = (p + 2 * d - 1) / (2 * d);
    message->n_blocks = (p + d - 1) / (2 * d);
    message->n = coll__mean_part(pb, BUF_IN) * message->n_blocks;
    message->n_works = 1;
    return 1;
}

/* All operands are packed before the first message, except single parts of IN.  The
 * last round sends one sum; if it is short, it leaves once all of its operands have
 * been added.  These come in the rounds whose distance is below the number of later
 * sums. */
static double cost(const struct coll__problem *pb)
{
    const struct coll__view *view = pb->view;
    double n = coll__mean_part(pb, BUF_IN), time, ready;
    int p = pb->nranks, last = 1 << log2_up(p) >> 1;
    struct coll__rounds rounds = {.pb = pb,
                                  .n = log2_up(p),
                                  .n_blocks = p,
                                  .block = n,
                                  .packed = p > 3 ? n * p : 0,
                                  .send = send_in};

    if (p < 2)
        return 0;
    ready = time = coll__cost_work(view, p > 3 ? (p + 1) * n : n);
    if (coll__rounds_are_followed(&rounds))
        return coll__rounds_cost(&rounds) + coll__cost_work(view, n);
    for (int d = 1; d < p; d *= 2) {
        double len = n * ((p + d - 1) / (2 * d));
        double work = coll__cost_work(view, len);
        double all = coll__cost_absorb(coll__pieces(view, len),
                                       coll__cost_shift(view, d, len), work);

        if (d == last && len <= COLL__EAGER)
            time = max_double(ready + all,
                              time + coll__cost_ring_next(view, len) + work);
        else
            time += all;
        if (d < p - last)
            ready = time;
    }
    return time;
}

const struct coll__algo coll__algo_reduce_scatter_pat = {
    .name = "pat",
    .what = "a binomial tree for each part, all in log2(p) rounds",
    .serves = COLL_FOR(REDUCE_SCATTER) | COLL_FOR(REDUCE_SCATTERV),
    .build = build,
    .cost = cost,
};
