/* SPDX-License-Identifier: BSD-3-Clause */
/* models.h - the networks that the program knows, by name. */
#ifndef COLL_TRAINER_MODELS_H
#define COLL_TRAINER_MODELS_H

#include "trainer/layers.h"

struct model_desc {
    const char *name; /* as --model has it */
    const char *what;
    const struct layer_spec *specs;
    int n_specs;
    struct shape in; /* of made-up images */
};

/* The classic MNIST network of Keras and PyTorch: 1,199,882 parameters. */
extern const struct model_desc model_cnn;

/* Return 1 if its layers must see all images of a step at once. */
int model_needs_batch(const struct model_desc *desc);

/* model_find: return the network of this name, or NULL.  model_at: return network i, or
 * NULL after the last one. */
const struct model_desc *model_find(const char *name);
const struct model_desc *model_at(int i);

#endif
