/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - numbers by 64-bit keys: what a search through a list would find, at
 * once.
 *
 * Open addressing in a table of a power of two, at most half full; keys are
 * spread over it, so that regular ones do not meet.
 */
#ifndef COLL_LIB_UTIL_MAP_H
#define COLL_LIB_UTIL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct coll__map {
    uint64_t *keys;
    int *values; /* below 0: the slot is free */
    size_t mask, n_looks;
};

/* Looks into slots of all maps of this thread that have ended: what finding has
 * cost, for tests. */
extern _Thread_local size_t coll__map_looks
    __attribute__((visibility("hidden")));

/* Make a map for at most n keys.
 *
 * Ownership: *map is the caller's, to end by coll__map_fini(), on failure, too.
 * Errors:    COLL_ERR_NOMEM, not logged.
 */
int coll__map_init(struct coll__map *map, size_t n);

/* The key's number: below 0 when it has none, and then the caller's to set to
 * one of 0 or more before the next call. */
int *coll__map_at(struct coll__map *map, uint64_t key);

void coll__map_fini(struct coll__map *map);

#endif
