/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.h - finds what is NaN or infinite, and names the place.
 *
 * Whether a loss is finite costs one comparison a step; where it began to be
 * otherwise is looked for once it is not.  A place is a number that grows in
 * the order in which a forward pass comes by, so that ranks can exchange it
 * and take the first.
 */
#ifndef COLL_TRAINER_FINITE_H
#define COLL_TRAINER_FINITE_H

#include <stddef.h>

#define FINITE_NAME 96

struct model;

/* Return how many values come before the first that is not finite; n when all
 * are. */
size_t finite_len(const float *values, size_t n);

/* Return the first place in the last forward pass that is not finite, among the
 * images, parameters and results of its first n images; 0 when there is none.
 * Shapes: before the backward pass, which writes slopes over results. */
int finite_in_pass(struct model *model, int n);

/* As finite_in_pass(), among the parameters. */
int finite_in_params(struct model *model);

/* Return the place of an optimizer's state of parameter `at`. */
int finite_place_of_state(const struct model *model, size_t at);

/* Write "layer 1 (conv), its output". */
void finite_name(char name[FINITE_NAME], const struct model *model, int place);

#endif
