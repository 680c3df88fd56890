/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_layer.h - a layer alone, with arrays of its own, and whether its backward
 * pass is the derivative of its forward pass. */
#ifndef COLL_TESTS_TRAINER_LAYER_H
#define COLL_TESTS_TRAINER_LAYER_H

#include "trainer/layers.h"

#include <stddef.h>
#include <stdint.h>

#define CHUNK 3
#define PROBES 60 /* values varied in each array */

/* A layer alone, with all its arrays. */
struct bench {
    struct layer layer;
    float *in, *plus, *out, *dout, *din, *dplus;
    size_t n_in, n_out;
    struct pass pass;
};

/* Draw values from -1 to 1; the same seed gives the same ones. */
void layer_fill(float *values, size_t n, uint64_t seed);

/* Return zeros, the caller's to free. */
float *layer_floats(size_t n);

/* Make the layer that the processors have for these, and fill its arrays; end it by
 * bench_fini(). */
void bench_init(struct bench *b, const struct layer_spec *spec,
                struct shape in);
void bench_fini(struct bench *b);

/* Return the sum of out * dout: its derivatives are what backward yields. */
double bench_value(struct bench *b);

/* Forward and backward.  Backward may spoil dout and, where it says so, in: it gets
 * copies. */
void bench_backward(struct bench *b, int want_din);

/* In training and not, backward is the derivative of what forward did. */
void bench_check(struct bench *b, int want_din);

/* Return where a value of a map lies. */
size_t layer_place(const struct shape *s, int image, int c, int y, int x);

/* Return the block of maps of so many channels. */
int layer_block(int channels);

#endif
