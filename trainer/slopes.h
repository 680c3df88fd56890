/* SPDX-License-Identifier: BSD-3-Clause */
/* slopes.h - where the gradients of activations are in a backward pass.
 *
 * The backward pass goes through the layers once.  The gradient of a value is
 * needed from the first layer that writes it to the layer that has computed the
 * value.  In a deep network only a few are needed at a time, so they share a
 * few buffers.  If only one layer reads a value, the gradient may be written
 * over the value.
 */
#ifndef COLL_TRAINER_SLOPES_H
#define COLL_TRAINER_SLOPES_H

#include "trainer/layers.h"

#define SLOPE_NONE (-1)
#define SLOPE_OVER (-2) /* it is written over the value */

/* Value 0 is the images, value i + 1 the output of layer i. */
struct slopes {
    int n_values;
    int *buffer; /* [n_values]: its index, or one of the above */
    int *added;  /* [2 * layers]: where a second gradient of a value is written
                   * before it is added: layer i's `in`, then its `plus` */
    size_t *len; /* [n_buffers] of floats for one image */
    int n_buffers;
    char *is_free; /* [n_buffers], while planning */
};

/* Return the value that is the input of layer i, or that is added to its result
 * (0: none). */
int slopes_in(const struct layer *layer);
int slopes_plus(const struct layer *layer);

/* Plan the gradients of n layers.
 *
 * Result:    0, or -1 when there is no memory.
 * Ownership: end *s by slopes_fini() either way.
 */
int slopes_init(struct slopes *s, const struct layer *layers, int n);
void slopes_fini(struct slopes *s);

#endif
