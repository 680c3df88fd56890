/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.c - look at the layers in the order of a forward pass. */
#include "trainer/finite.h"
#include "trainer/model.h"

#include <math.h>
#include <stdio.h>

/* Place 1 is the images; layer i has N_PARTS places, from 2 + i * N_PARTS on.
 */
enum part { PARAMS, STATE, OUT, N_PARTS };

#define IMAGES 1

static const char *const part_names[N_PARTS] = {
    [PARAMS] = "parameters", [STATE] = "optimizer state", [OUT] = "output"};

static int place_of(int layer, enum part part)
{
    return IMAGES + 1 + layer * N_PARTS + (int)part;
}

size_t finite_len(const float *values, size_t n)
{
    size_t i = 0;

    while (i < n && isfinite(values[i]))
        i++;
    return i;
}

static int is_finite(const float *values, size_t n)
{
    return finite_len(values, n) == n;
}

int finite_in_pass(struct model *m, int n)
{
    size_t images = (size_t)n;

    if (!is_finite(model_values(m, 0),
                   images * shape_len(&model_layer(m, 0)->in)))
        return IMAGES;
    for (int i = 0; i < model_n_layers(m); i++) {
        const struct layer *l = model_layer(m, i);

        if (!is_finite(l->weights, l->n_weights) ||
            !is_finite(l->biases, l->n_biases))
            return place_of(i, PARAMS);
        if (!is_finite(model_values(m, i + 1), images * shape_len(&l->out)))
            return place_of(i, OUT);
    }
    return 0;
}

/* Return the layer of parameter `at`, which is below model_n_params(). */
static int layer_of(const struct model *m, size_t at)
{
    int i = 0;

    while (at >= model_layer_params(m, i))
        at -= model_layer_params(m, i++);
    return i;
}

int finite_in_params(struct model *m)
{
    size_t n = model_n_params(m), at = finite_len(model_params(m), n);

    return at < n ? place_of(layer_of(m, at), PARAMS) : 0;
}

int finite_place_of_state(const struct model *m, size_t at)
{
    return place_of(layer_of(m, at), STATE);
}

void finite_name(char name[FINITE_NAME], const struct model *m, int place)
{
    int layer = (place - IMAGES - 1) / N_PARTS;

    if (place <= IMAGES)
        snprintf(name, FINITE_NAME, "%s", place ? "the images" : "the gradients");
    else
        snprintf(name, FINITE_NAME, "layer %d (%s), its %s", layer,
                 model_layer(m, layer)->ops->name,
                 part_names[(place - IMAGES - 1) % N_PARTS]);
}
