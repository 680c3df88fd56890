/* SPDX-License-Identifier: BSD-3-Clause */
/* slopes.h - where the gradients of activations live in a backward pass.
 *
 * The backward pass runs through the layers once, so that the gradient of a
 * value is wanted from the first layer that writes it to the layer that made
 * the value: of a deep network only a few are alive at a time, and they share a
 * few buffers.  A value that one layer alone reads may get its gradient written
 * over it.
 */
#ifndef COLL_TRAINER_SLOPES_H
#define COLL_TRAINER_SLOPES_H

#include "trainer/layers.h"

#define SLOPE_NONE (-1)
#define SLOPE_OVER (-2) /* it is written over the value */

/* Value 0 is the images, value i + 1 what comes out of layer i. */
struct slopes {
    int n_values;
    int *buffer; /* [n_values]: its index, or one of the above */
    int *added;  /* [2 * layers]: where a second gradient of a value is written
                   * before it is added: layer i's `in`, then its `plus` */
    size_t *len; /* [n_buffers] of floats for one image */
    int n_buffers;
    char *is_free; /* [n_buffers], while planning */
};

/* Return the value that goes into layer i, or that is added (0: none). */
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
