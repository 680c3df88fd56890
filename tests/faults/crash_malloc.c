/* SPDX-License-Identifier: BSD-3-Clause */
/* crash_malloc.c - allocations as points at which a rank may crash: they are in
 * the midst of code that enters no kernel.  A sanitizer has malloc for itself. */
#include "tests/faults/crash.h"

#include <stdlib.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);

void *malloc(size_t len)
{
    crash_tick();
    return __libc_malloc(len);
}

void *calloc(size_t n, size_t len)
{
    crash_tick();
    return __libc_calloc(n, len);
}
#endif
