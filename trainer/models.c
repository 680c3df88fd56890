/* SPDX-License-Identifier: BSD-3-Clause */
/* models.c - the networks, a line a layer. */
#include "trainer/models.h"

#include <string.h>

#define N_LAYERS(specs) ((int)(sizeof(specs) / sizeof((specs)[0])))

static const struct layer_spec cnn[] = {
    {.kind = LAYER_CONV, .units = 32, .kernel = 3, .relu = 1},
    {.kind = LAYER_CONV, .units = 64, .kernel = 3},
    {.kind = LAYER_MAX_POOL, .kernel = 2, .relu = 1}, /* = relu, then pool */
    {.kind = LAYER_DROPOUT, .rate = 0.25f},
    {.kind = LAYER_DENSE, .units = 128, .relu = 1},
    {.kind = LAYER_DROPOUT, .rate = 0.5f},
    {.kind = LAYER_DENSE, .units = UNITS_CLASSES},
};

const struct model_desc model_cnn = {
    .name = "cnn",
    .what = "two convolutions and two dense layers, as Keras's for MNIST",
    .specs = cnn,
    .n_specs = N_LAYERS(cnn),
    .in = {1, 28, 28, 1},
};

static const struct model_desc *const models[] = {&model_cnn};

const struct model_desc *model_at(int i)
{
    return i < N_LAYERS(models) ? models[i] : NULL;
}

const struct model_desc *model_find(const char *name)
{
    for (int i = 0; i < N_LAYERS(models); i++)
        if (!strcmp(models[i]->name, name))
            return models[i];
    return NULL;
}
