/* SPDX-License-Identifier: BSD-3-Clause */
/* sets.c - interned bit sets: equal sets have equal numbers. */
#include "lib/proof/sets.h"
#include "include/coll/coll.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *set_at(const struct coll__sets *sets, int i)
{
    return sets->bits + (size_t)i * (size_t)sets->n_words;
}

static size_t hash(const struct coll__sets *sets, const uint64_t *bits)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (int w = 0; w < sets->n_words; w++)
        h = (h ^ bits[w] ^ bits[w] >> 29) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32) & (size_t)(sets->table_len - 1);
}

/* Return the table's slot that holds these bits, or the free slot where they belong. */
static size_t slot_of(const struct coll__sets *sets, const uint64_t *bits)
{
    size_t slot = hash(sets, bits);

    while (sets->table[slot] >= 0 &&
           memcmp(set_at(sets, sets->table[slot]), bits,
                  (size_t)sets->n_words * sizeof(*bits)))
        slot = (slot + 1) & (size_t)(sets->table_len - 1);
    return slot;
}

static int rehash(struct coll__sets *sets, int len)
{
    int *table = malloc((size_t)len * sizeof(*table));

    if (!table)
        return COLL_ERR_NOMEM;
    free(sets->table);
    sets->table = table;
    sets->table_len = len;
    for (int i = 0; i < len; i++)
        table[i] = -1;
    for (int i = 0; i < sets->n; i++)
        table[slot_of(sets, set_at(sets, i))] = i;
    return COLL_OK;
}

/* Allocate space for one more set; the place after the last set is then scratch. */
static int reserve(struct coll__sets *sets)
{
    int cap = sets->cap ? 2 * sets->cap : 64;
    uint64_t *bits;

    if (sets->n + 2 <= sets->cap)
        return COLL_OK;
    bits = realloc(sets->bits, (size_t)cap * (size_t)sets->n_words *
                                   sizeof(*bits));
    if (!bits)
        return COLL_ERR_NOMEM;
    sets->bits = bits;
    sets->cap = cap;
    return rehash(sets, 2 * cap);
}

/* Return the number of the set in the scratch place; a new set is added. */
static int intern(struct coll__sets *sets)
{
    size_t slot = slot_of(sets, set_at(sets, sets->n));

    if (sets->table[slot] < 0)
        sets->table[slot] = sets->n++;
    return sets->table[slot];
}

static uint64_t *scratch(struct coll__sets *sets)
{
    if (reserve(sets))
        return NULL;
    return memset(set_at(sets, sets->n), 0,
                  (size_t)sets->n_words * sizeof(uint64_t));
}

int coll__sets_init(struct coll__sets *sets, int n_ranks)
{
    *sets = (struct coll__sets){.n_words = (n_ranks + 63) / 64};
    return reserve(sets);
}

int coll__sets_one(struct coll__sets *sets, int rank)
{
    uint64_t *bits = scratch(sets);

    if (!bits)
        return -1;
    bits[rank / 64] = (uint64_t)1 << rank % 64;
    return intern(sets);
}

int coll__sets_all(struct coll__sets *sets, int n_ranks)
{
    uint64_t *bits = scratch(sets);

    if (!bits)
        return -1;
    for (int r = 0; r < n_ranks; r++)
        bits[r / 64] |= (uint64_t)1 << r % 64;
    return intern(sets);
}

int coll__sets_union(struct coll__sets *sets, int a, int b)
{
    uint64_t *bits = scratch(sets);

    if (!bits)
        return -1;
    for (int w = 0; w < sets->n_words; w++)
        bits[w] = set_at(sets, a)[w] | set_at(sets, b)[w];
    return intern(sets);
}

int coll__sets_meet(const struct coll__sets *sets, int a, int b)
{
    for (int w = 0; w < sets->n_words; w++)
        if (set_at(sets, a)[w] & set_at(sets, b)[w])
            return 1;
    return 0;
}

void coll__sets_fini(struct coll__sets *sets)
{
    free(sets->bits);
    free(sets->table);
}
