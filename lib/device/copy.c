/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.c - the streaming copy of the chosen instruction set. */
#include "lib/device/copy.h"
#include "lib/device/reduce.h"

void coll__copy_stream(void *dst, const void *src, size_t len)
{
    coll__kernels_in_force()->copy_stream(dst, src, len);
}
