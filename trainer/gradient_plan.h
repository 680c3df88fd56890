/* SPDX-License-Identifier: BSD-3-Clause */
/* gradient_plan.h - where the gradients of activations are in a backward pass.
 *
 * The backward pass goes through the layers once.  The gradient of a value is
 * needed from the first layer that writes it to the layer that has computed the
 * value.  In a deep network only a few are needed at a time, so they share a
 * few buffers.  If only one layer reads a value, the gradient may be written
 * over the value.
 */
#ifndef COLL_TRAINER_GRADIENT_PLAN_H
#define COLL_TRAINER_GRADIENT_PLAN_H

#include "trainer/layers.h"

#define GRADIENT_NONE (-1)
#define GRADIENT_OVER (-2) /* it is written over the value */

/* Value 0 is the images, value i + 1 the output of layer i. */
struct gradient_plan {
    int n_values;
    int *buffer; /* [n_values]: its index, or one of the above */
    int *added;  /* [2 * layers]: where a second gradient of a value is written
                   * before it is added: layer i's `in`, then its `plus` */
    size_t *len; /* [n_buffers] of floats for one image */
    int n_buffers;
    char *is_free; /* [n_buffers], while planning */
};

/* input_value: return the number of the value that is the layer's input.  added_value:
 * return that of the value that is added to its result; 0: none. */
int input_value(const struct layer *layer);
int added_value(const struct layer *layer);

/* Plan the gradients of n layers.
 *
 * Result:    0, or -1 when there is no memory.
 * Ownership: end *s by gradient_plan_fini() either way.
 */
int gradient_plan_init(struct gradient_plan *s, const struct layer *layers,
                       int n);
void gradient_plan_fini(struct gradient_plan *s);

#endif
