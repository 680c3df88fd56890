/* SPDX-License-Identifier: BSD-3-Clause */
/* smaller.h - the smaller of two lengths. */
#ifndef COLL_TRAINER_SMALLER_H
#define COLL_TRAINER_SMALLER_H

#include <stddef.h>

static inline size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

#endif
