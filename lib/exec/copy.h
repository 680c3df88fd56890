/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - copy past the caches. */
#ifndef COLL_LIB_EXEC_COPY_H
#define COLL_LIB_EXEC_COPY_H

#include <stddef.h>

/* Copy by stores that leave the caches alone.
 *
 * Shapes:    len bytes; dst and src lie anywhere and do not overlap.
 * Result:    dst = src.  A store with release that follows publishes it, as
 *            it would a memcpy(): what is streamed is fenced.
 * Errors:    none.
 * Threads:   any.
 * Cost:      dst is neither read before it is written nor left in a cache: a
 *            third less traffic than memcpy() where the caches cannot hold the
 *            result until it is read, and a miss a line more where they can.
 *            So it is for results that exceed the caches.
 */
void coll__copy_stream(void *dst, const void *src, size_t len);

#endif
