/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - a hash map from handles of MPI, which are pointers or ints. */
#include "bindings/mpi/preload.h"

#include <stdlib.h>

static struct map_entry **bucket_of(struct map *map, uintptr_t key)
{
    uint64_t mixed = (uint64_t)key * 0x9e3779b97f4a7c15u;

    return &map->buckets[mixed >> 56];
}

static struct map_entry **find(struct map *map, uintptr_t key)
{
    struct map_entry **at = bucket_of(map, key);

    while (*at && (*at)->key != key)
        at = &(*at)->next;
    return at;
}

int map_put(struct map *map, uintptr_t key, void *value)
{
    struct map_entry *entry = malloc(sizeof(*entry)), **at;

    if (!entry)
        return -1;
    pthread_mutex_lock(&map->lock);
    at = bucket_of(map, key);
    *entry = (struct map_entry){key, value, *at};
    *at = entry;
    pthread_mutex_unlock(&map->lock);
    return 0;
}

void *map_get(struct map *map, uintptr_t key)
{
    struct map_entry *entry;
    void *value;

    pthread_mutex_lock(&map->lock);
    entry = *find(map, key);
    value = entry ? entry->value : NULL;
    pthread_mutex_unlock(&map->lock);
    return value;
}

void *map_take(struct map *map, uintptr_t key)
{
    struct map_entry **at, *entry;
    void *value = NULL;

    pthread_mutex_lock(&map->lock);
    at = find(map, key);
    entry = *at;
    if (entry) {
        value = entry->value;
        *at = entry->next;
    }
    pthread_mutex_unlock(&map->lock);
    free(entry);
    return value;
}

void *map_other(struct map *map, const void *value)
{
    void *other = NULL;

    pthread_mutex_lock(&map->lock);
    for (int b = 0; b < 256 && !other; b++)
        for (struct map_entry *e = map->buckets[b]; e && !other; e = e->next)
            if (e->value != value)
                other = e->value;
    pthread_mutex_unlock(&map->lock);
    return other;
}
