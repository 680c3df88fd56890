/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - numbers by keys. */
#include "lib/util/map.h"
#include "include/coll/coll.h"

#include <stdlib.h>
#include <string.h>

_Thread_local size_t coll__map_looks;

int coll__map_init(struct coll__map *map, size_t n)
{
    size_t capacity = 4;

    while (capacity < 2 * n)
        capacity *= 2;
    *map = (struct coll__map){.mask = capacity - 1};
    map->keys = malloc(capacity * sizeof(*map->keys));
    map->values = malloc(capacity * sizeof(*map->values));
    if (!map->keys || !map->values)
        return COLL_ERR_NOMEM;
    memset(map->values, -1, capacity * sizeof(*map->values));
    return COLL_OK;
}

/* Each bit of the key changes half of the result's bits (the end of MurmurHash3, by
 * Austin Appleby, public domain). */
static size_t spread(uint64_t key)
{
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdu;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53u;
    return (size_t)(key ^ key >> 33);
}

int *coll__map_at(struct coll__map *map, uint64_t key)
{
    size_t at = spread(key) & map->mask;

    map->n_looks++;
    while (map->values[at] >= 0 && map->keys[at] != key) {
        at = (at + 1) & map->mask;
        map->n_looks++;
    }
    map->keys[at] = key;
    return &map->values[at];
}

void coll__map_fini(struct coll__map *map)
{
    coll__map_looks += map->n_looks;
    free(map->keys);
    free(map->values);
    *map = (struct coll__map){0};
}
