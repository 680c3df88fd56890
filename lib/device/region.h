/* SPDX-License-Identifier: BSD-3-Clause */
/* region.h - memory that other processes of the host can read in place.
 *
 * A region is a memfd that its owner has mapped: a page for the library, and then the
 * caller's bytes.  A process that is told the place of a span maps the whole region,
 * once, and reads there.  A region's name is never used again, so no process takes a
 * new region for an old one.
 *
 *   region.c       the regions of this process, and the place of a span in them
 *   region_map.c   the regions that this process reads, its own ones too
 */
#ifndef COLL_LIB_DEVICE_REGION_H
#define COLL_LIB_DEVICE_REGION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_HEAD 4096 /* bytes before the user's */
#define REGION_NAME_BYTES 16

/* The first bytes of a region.  The owner writes the name before it tells anyone of the
 * region, and sets is_gone, once, when it frees the region. */
struct coll__region_head {
    unsigned char name[REGION_NAME_BYTES];
    _Atomic uint32_t is_gone;
};

/* The place of a span, sent to another process as plain bytes. */
struct coll__region_place {
    unsigned char name[REGION_NAME_BYTES];
    uint64_t off;  /* from the beginning of the file */
    int32_t fd;    /* in the owner */
    uint32_t zero; /* so that no byte is unset */
};

/* ---- region.c ---------------------------------------------------------------- */

/* Allocate `len` bytes for the user; as coll_mem_alloc(). */
int coll__region_alloc(void **ptr, size_t len);

/* Free them; as coll_mem_free(), but ptr is not NULL. */
int coll__region_free(void *ptr);

/* Say whether len bytes at ptr are in a region of this process, and at which place.
 *
 * Result:    1 and *place, or 0.  For a region that another thread is freeing or
 *            allocating either may be returned; a correct caller does not use it yet.
 * Threads:   any.
 * Cost:      some 10 ns if there are few regions or none; no lock.
 */
int coll__region_find(const void *ptr, size_t len,
                      struct coll__region_place *place);

/* ---- region_map.c ------------------------------------------------------------ */

/* A region that this process reads; all its readers share one mapping. */
struct coll__region_map;

/* Map the region of `place`, which belongs to process pid.
 *
 * Result:    *map, whose use count is one higher.
 * Ownership: the caller ends it by coll__region_unmap().
 * Errors:    COLL_ERR_PEER: the process has ended, or is being killed;
 *            COLL_ERR_NOMEM; COLL_ERR_SYSTEM, also when the region was freed.
 *            Logged; *map is as it was.
 * Threads:   any.
 * Cost:      a lock; some system calls the first time.
 */
int coll__region_map(int pid, const struct coll__region_place *place,
                     struct coll__region_map **map);

/* End a use; the last one unmaps. */
void coll__region_unmap(struct coll__region_map *map);

/* Is this the region of that name? */
int coll__region_is(const struct coll__region_map *map,
                    const unsigned char *name);

/* Has its owner freed it? */
int coll__region_is_gone(const struct coll__region_map *map);

/* Return the address of len bytes at `off` of the file; NULL, logged, if they are not
 * within it. */
const unsigned char *coll__region_at(const struct coll__region_map *map,
                                     uint64_t off, size_t len);

#endif
