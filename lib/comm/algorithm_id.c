/* SPDX-License-Identifier: BSD-3-Clause */
/* algorithm_id.c - see algorithm_id.h.  Algorithms are numbered among those of their
 * collective. */
#include "lib/comm/algorithm_id.h"
#include "lib/algo/algo.h"

#include <stdio.h>
#include <string.h>

/* Return the collective's algorithm with this number; NULL: there is none. */
static const struct coll__algo *algo_of(enum coll_collective collective,
                                        unsigned id)
{
    unsigned n = 0;

    for (int i = 0; coll__algos[i]; i++)
        if (coll__algos[i]->serves & 1u << collective && ++n == id)
            return coll__algos[i];
    return NULL;
}

unsigned coll__algorithm_id(enum coll_collective collective, const char *name)
{
    const struct coll__algo *algo;

    if (coll__is_p2p(collective) || coll__has_own_counts(collective))
        return 0;
    for (unsigned id = 1; (algo = algo_of(collective, id)); id++)
        if (!strcmp(algo->name, name))
            return id;
    return COLL__ALGORITHM_OF_FILE;
}

int coll__algorithm_ids_differ(const struct coll__signature *a,
                               const struct coll__signature *b)
{
    struct coll__signature as_b = *a;

    as_b.algo_id = b->algo_id;
    return a->algo_id != b->algo_id && !memcmp(&as_b, b, sizeof(as_b));
}

void coll__algorithm_id_describe(const struct coll__signature *sig, char *text,
                                 size_t len)
{
    const struct coll__algo *algo =
        algo_of((enum coll_collective)sig->collective, sig->algo_id);
    size_t n;

    coll__signature_describe(sig, text, len);
    n = strlen(text);
    snprintf(text + n, len - n, " by %s",
             algo ? algo->name : "a plan of COLL_PLAN_FILE");
}
