/* SPDX-License-Identifier: BSD-3-Clause */
/* doubling.c - when the ranks of a block of 2^k operands finish round k.
 *
 * The first operands are those of folded pairs.  In a block of pairs only, or of
 * single ranks only, all end at the same time.  At most one block has both; it has two
 * times, of its last pair and of its last single rank.
 */
#include "lib/plan/doubling.h"
#include "lib/plan/fold.h"
#include "lib/util/util.h"

struct block {
    double pairs, singles; /* s; -1: there are none */
};

static double last_of(struct block b)
{
    return max_double(b.pairs, b.singles);
}

/* Return the end of a round for a rank that begins at `mine` and whose partner begins
 * at `other`. */
static double get(const struct coll__doubling *c, int k, double mine,
                  double other)
{
    return mine < 0 ? mine
                    : max_double(mine + c->held, other + c->round[k]) +
                          c->work;
}

static struct block join(const struct coll__doubling *c, int k, struct block a,
                         struct block b)
{
    double last_a = last_of(a), last_b = last_of(b);

    return (struct block){max_double(get(c, k, a.pairs, last_b),
                                     get(c, k, b.pairs, last_a)),
                          max_double(get(c, k, a.singles, last_b),
                                     get(c, k, b.singles, last_a))};
}

double coll__doubling_cost(int p, const struct coll__doubling *doubling)
{
    int m = power2_below(p), e = p - m;
    struct block pairs = {doubling->fold, -1}, singles = {-1, 0}, both = pairs;

    for (int d = 1, k = 0; d < m; d *= 2, k++) {
        int is_odd = e / d % 2;

        if (e % d)
            both = join(doubling, k, both, is_odd ? pairs : singles);
        else if (is_odd)
            both = join(doubling, k, pairs, singles);
        pairs = join(doubling, k, pairs, pairs);
        singles = join(doubling, k, singles, singles);
    }
    return e ? max_double(both.singles, both.pairs + doubling->unfold)
             : singles.singles;
}
