/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.h - find a number that is NaN or infinite, and name its place.
 *
 * A step only compares its loss, once.  The place is searched for when the loss
 * is not finite.  Places are numbered in the order of a forward pass, so that
 * ranks can exchange them and take the first.
 */
#ifndef COLL_TRAINER_FINITE_H
#define COLL_TRAINER_FINITE_H

#include <stddef.h>

#define FINITE_NAME 96

struct device;
struct model;

/* Return how many values come before the first that is not finite; n if all are
 * finite. */
size_t finite_len(const float *values, size_t n);

/* The same for values of the device, not activations: 0 and *len, or -1 with
 * train_error() set. */
int finite_on_device(const struct device *device, const float *values, size_t n,
                     size_t *len);

/* Find the first place in the last forward pass that is not finite, among the
 * images, parameters and results of its first n images.
 *
 * Shapes:    before the backward pass, which writes gradients over results.
 * Result:    0 and *place, 0 when there is none; or -1 with train_error() set.
 */
int finite_in_pass(struct model *model, int n, int *place);

/* As finite_in_pass(), among the parameters. */
int finite_in_params(struct model *model, int *place);

/* Return the place of an optimizer's state of parameter `at`. */
int finite_place_of_state(const struct model *model, size_t at);

/* Write "layer 1 (conv), its output". */
void finite_name(char name[FINITE_NAME], const struct model *model, int place);

#endif
