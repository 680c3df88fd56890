/* SPDX-License-Identifier: BSD-3-Clause */
/* mark.h - ck_assert() in a loop, at the price of a comparison.
 *
 * With each assertion that holds Check writes its line to a file, which its
 * parent reads back byte by byte: for loops over elements that takes longer than
 * the test.  Here a line is written the first time only.  Of a test that
 * crashes Check then tells the newest line it had come to, not the last.
 *
 * Included before each test program of Check, as config.h is.
 */
#ifndef COLL_TESTS_MARK_H
#define COLL_TESTS_MARK_H

#include <check.h>
#include <stdatomic.h>

static inline void mark(const char *file, int line)
{
    static atomic_char is_marked[1024]; /* a test begins in a fresh process */

    if (line < (int)sizeof(is_marked)) {
        /* of two threads that come first, both write it */
        if (atomic_load_explicit(&is_marked[line], memory_order_relaxed))
            return;
        atomic_store_explicit(&is_marked[line], 1, memory_order_relaxed);
    }
    _mark_point(file, line);
}

#define _mark_point(file, line) mark(file, line)

#endif
