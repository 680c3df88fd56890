/* SPDX-License-Identifier: BSD-3-Clause */
/* area.h - memory that other processes of the host can read in place.
 *
 * An area is a memfd that its owner has mapped: a page for the library, and
 * then the user's bytes.  Who gets to know where a span of it lies maps the
 * whole area, once, and reads there.  Areas have names that are never used
 * again, so that nobody takes a new one for one that was.
 *
 *   area.c       what this process has allocated, and where a span lies in it
 *   area_map.c   other processes' areas (and this one's) that it reads
 */
#ifndef COLL_LIB_DEVICE_AREA_H
#define COLL_LIB_DEVICE_AREA_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define AREA_HEAD 4096 /* bytes before the user's */
#define AREA_NAME_BYTES 16

/* The first bytes of an area.  The name is written before anybody can know of
 * the area; is_gone is set by its owner, once, when it frees the area. */
struct coll__area_head {
    unsigned char name[AREA_NAME_BYTES];
    _Atomic uint32_t is_gone;
};

/* Where a span lies, for another process; plain bytes. */
struct coll__area_place {
    unsigned char name[AREA_NAME_BYTES];
    uint64_t off;  /* from the beginning of the file */
    int32_t fd;    /* in the owner */
    uint32_t zero; /* so that no byte is unset */
};

/* ---- area.c ---------------------------------------------------------------- */

/* Allocate `len` bytes for the user; as coll_mem_alloc(). */
int coll__area_alloc(void **ptr, size_t len);

/* Free them; as coll_mem_free(), but ptr is not NULL. */
int coll__area_free(void *ptr);

/* Say whether len bytes at ptr lie in an area of this process, and where.
 *
 * Result:    1 and *place, or 0.  No area that is being freed or allocated
 *            meanwhile is the user's to name here, so that either will do.
 * Threads:   any.
 * Cost:      some 10 ns where there are no areas or few; no lock.
 */
int coll__area_find(const void *ptr, size_t len,
                    struct coll__area_place *place);

/* ---- area_map.c ------------------------------------------------------------ */

/* An area that this process reads; all who read it have the same mapping. */
struct coll__area_map;

/* Map the area of `place`, which is process pid's.
 *
 * Result:    *map is one more use of the mapping.
 * Ownership: the caller ends it by coll__area_unmap().
 * Errors:    COLL_ERR_PEER: the process has ended, or is being killed;
 *            COLL_ERR_NOMEM; COLL_ERR_SYSTEM, also when the area was freed.
 *            Logged; *map is as it was.
 * Threads:   any.
 * Cost:      a lock; some system calls the first time.
 */
int coll__area_map(int pid, const struct coll__area_place *place,
                   struct coll__area_map **map);

/* End a use; the last one unmaps. */
void coll__area_unmap(struct coll__area_map *map);

/* Is this the area of that name? */
int coll__area_is(const struct coll__area_map *map, const unsigned char *name);

/* Has its owner freed it? */
int coll__area_is_gone(const struct coll__area_map *map);

/* Return the address of len bytes at `off` of the file; NULL, and logged, when
 * they do not lie within it. */
const unsigned char *coll__area_at(const struct coll__area_map *map,
                                   uint64_t off, size_t len);

#endif
