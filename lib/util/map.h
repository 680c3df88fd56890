/* SPDX-License-Identifier: BSD-3-Clause */
/* map.h - a hash map from 64-bit keys to numbers.
 *
 * Open addressing in a table whose size is a power of two, half full at most.  A hash
 * spreads the keys, so that regular keys do not collide.
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

/* How many slots this thread's finished maps have looked at: the cost of finding, for
 * tests. */
extern _Thread_local size_t coll__map_looks
    __attribute__((visibility("hidden")));

/* Make a map for at most n keys.
 *
 * Ownership: *map is the caller's, to end by coll__map_fini(), on failure, too.
 * Errors:    COLL_ERR_NOMEM, not logged.
 */
int coll__map_init(struct coll__map *map, size_t n);

/* Return the address of the key's number.  The number is below 0 if the key is new; then
 * the caller sets it to 0 or more before the next call. */
int *coll__map_at(struct coll__map *map, uint64_t key);

void coll__map_fini(struct coll__map *map);

#endif
