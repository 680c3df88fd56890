/* SPDX-License-Identifier: BSD-3-Clause */
/* intern.c - the hash table: open addressing, at most half full. */
#include "lib/plan/intern.h"
#include "include/coll/coll.h"

#include <stdlib.h>

#define FIRST_BITS 6

static struct coll__slot *make_slots(int bits)
{
    struct coll__slot *slots = malloc(sizeof(*slots) << bits);

    for (size_t i = 0; slots && i < (size_t)1 << bits; i++)
        slots[i].number = -1;
    return slots;
}

int coll__numbers_init(struct coll__numbers *numbers, int n_expected)
{
    int bits = FIRST_BITS;

    while (n_expected > 1 << (bits - 1))
        bits++;
    *numbers = (struct coll__numbers){make_slots(bits), bits, 0};
    return numbers->slots ? COLL_OK : COLL_ERR_NOMEM;
}

void coll__numbers_fini(struct coll__numbers *numbers)
{
    free(numbers->slots);
    numbers->slots = NULL;
}

/* Return the slot of a key, or the free slot where it belongs. */
static struct coll__slot *find(const struct coll__numbers *numbers,
                               uint64_t key)
{
    size_t mask = ((size_t)1 << numbers->bits) - 1;
    size_t i = (size_t)((key ^ key >> 32) * 0x9e3779b97f4a7c15u >>
                        (64 - numbers->bits));

    while (numbers->slots[i].number >= 0 && numbers->slots[i].key != key)
        i = (i + 1) & mask;
    return &numbers->slots[i];
}

static int grow(struct coll__numbers *numbers)
{
    struct coll__numbers more = {make_slots(numbers->bits + 1),
                                 numbers->bits + 1, numbers->n};

    if (!more.slots)
        return COLL_ERR_NOMEM;
    for (size_t i = 0; i < (size_t)1 << numbers->bits; i++)
        if (numbers->slots[i].number >= 0)
            *find(&more, numbers->slots[i].key) = numbers->slots[i];
    free(numbers->slots);
    *numbers = more;
    return COLL_OK;
}

int coll__number(struct coll__numbers *numbers, uint64_t key)
{
    struct coll__slot *slot = find(numbers, key);

    if (slot->number >= 0)
        return slot->number;
    if (2 * numbers->n >= 1 << numbers->bits) {
        if (grow(numbers))
            return -1;
        slot = find(numbers, key);
    }
    *slot = (struct coll__slot){key, numbers->n};
    return numbers->n++;
}
