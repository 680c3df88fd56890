/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - copy past the caches. */
#ifndef COLL_LIB_DEVICE_COPY_H
#define COLL_LIB_DEVICE_COPY_H

#include <stddef.h>

/* Copy by stores that leave the caches alone.
 *
 * Shapes:    len bytes; dst and src lie anywhere and do not overlap.
 * Result:    dst = src, for this thread.  coll__copy_fence() must come before a
 *            store with release that publishes it.
 * Errors:    none.
 * Threads:   any.
 * Cost:      dst is neither read before it is written nor left in a cache: a
 *            third less traffic than memcpy() where the caches cannot hold the
 *            result until it is read, and a miss a line more where they can.
 *            So it is for results that exceed the caches.
 */
void coll__copy_stream(void *dst, const void *src, size_t len);

/* Order what was streamed before all stores that follow. */
static inline void coll__copy_fence(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_sfence();
#endif
}

#endif
