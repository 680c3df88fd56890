/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle_draw.c - operations at random. */
#include "tests/support/oracle.h"
#include "lib/plan/plan.h"
#include "lib/type/signature.h"

unsigned oracle_random(uint64_t *state, unsigned n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % n;
}

struct oracle_op oracle_draw(uint64_t *state, int size)
{
    static const unsigned limits[] = {1, 2, 10, 100, 3000, 100000};
    struct oracle_op op = {.size = size};

    op.collective = coll__of_all((int)oracle_random(state, COLL__N_OF_ALL));
    op.type = (enum coll_type)oracle_random(state, COLL_N_TYPES);
    do {
        op.op = (enum coll_op)oracle_random(state, COLL_N_OPS);
        if (coll__reduces(op.collective) && oracle_random(state, 3) == 0)
            op.own = (enum oracle_own)oracle_random(state, N_OWNS);
    } while (!oracle_is_exact(&op));
    op.root = (int)oracle_random(state, (unsigned)size);
    op.count = oracle_random(state, limits[oracle_random(state, 6)]);
    op.seed = oracle_random(state, 1u << 30);
    if (op.collective == COLL_BARRIER)
        op.count = 0;
    return op;
}

struct oracle_op oracle_draw_request(uint64_t *state, int size)
{
    struct oracle_op op = oracle_draw(state, size), scaled = op;

    scaled.own = OWN_SCALED;
    scaled.op = COLL_SUM;
    return coll__reduces(op.collective) && oracle_is_exact(&scaled) &&
                   oracle_random(state, 2)
               ? scaled
               : op;
}
