/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - copy past the caches. */
#ifndef COLL_LIB_DEVICE_COPY_H
#define COLL_LIB_DEVICE_COPY_H

#include <stddef.h>

/* Copy by non-temporal stores, which bypass the caches.
 *
 * Shapes:    len bytes; dst and src have any alignment and do not overlap.
 * Result:    dst = src, for this thread.  coll__copy_fence() must come before a
 *            store with release that publishes it.
 * Errors:    none.
 * Threads:   any.
 * Cost:      dst is not read before it is written, and not left in a cache.  This
 *            saves a third of memcpy()'s traffic if the result exceeds the caches;
 *            else it costs a cache miss for each line when the result is read.
 */
void coll__copy_stream(void *dst, const void *src, size_t len);

/* Order the streamed stores before all later stores. */
static inline void coll__copy_fence(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_sfence();
#endif
}

#endif
