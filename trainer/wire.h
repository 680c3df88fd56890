/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h - gradients in 16 bits, while they are sent between ranks. */
#ifndef COLL_TRAINER_WIRE_H
#define COLL_TRAINER_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum wire { WIRE_F32, WIRE_F16, WIRE_BF16 };

/* Round n floats to the nearest number of this type (not WIRE_F32), ties to
 * even.  What is too large becomes infinite, and NaN stays NaN. */
void wire_pack(enum wire wire, const float *from, uint16_t *to, size_t n);

/* Convert back, which is exact. */
void wire_unpack(enum wire wire, const uint16_t *from, float *to, size_t n);

#endif
