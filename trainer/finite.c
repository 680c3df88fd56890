/* SPDX-License-Identifier: BSD-3-Clause */
/* finite.c - look at the layers in the order of a forward pass. */
#include "trainer/finite.h"
#include "trainer/model.h"
#include "trainer/smaller.h"

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

/* Numbers to look at: floats of the device, or the input of a layer. */
struct source {
    const struct device *device;
    const float *floats;
    const struct model *model; /* NULL: of the floats */
    int layer;
};

static int read_piece(const struct source *s, size_t at, size_t n, float *to)
{
    if (s->model)
        return model_read(s->model, s->layer, at, n, to);
    return s->device->read(to, s->floats + at, n * sizeof(*to));
}

static int find(const struct source *s, size_t n, size_t *len)
{
    float piece[DEVICE_PIECE];

    for (size_t at = 0; at < n; at += DEVICE_PIECE) {
        size_t count = smaller(n - at, DEVICE_PIECE), good;

        if (read_piece(s, at, count, piece))
            return -1;
        good = finite_len(piece, count);
        if (good < count) {
            *len = at + good;
            return 0;
        }
    }
    *len = n;
    return 0;
}

int finite_on_device(const struct device *device, const float *values, size_t n,
                     size_t *len)
{
    const struct source floats = {.device = device, .floats = values};

    return find(&floats, n, len);
}

/* Set *place to `here` if a number is not finite, and *place is not set. */
static int look(const struct source *s, size_t n, int here, int *place)
{
    size_t len = n;

    if (!*place && find(s, n, &len))
        return -1;
    if (len < n)
        *place = here;
    return 0;
}

static int look_at_layer(struct model *m, int i, size_t images, int *place)
{
    const struct layer *l = model_layer(m, i);
    const struct source params = {.device = model_device(m),
                                  .floats = l->weights};
    const struct source out = {.model = m, .layer = i + 1};

    return look(&params, model_layer_params(m, i), place_of(i, PARAMS),
                place) ||
                   look(&out, images * shape_len(&l->out), place_of(i, OUT),
                        place)
               ? -1
               : 0;
}

int finite_in_pass(struct model *m, int n, int *place)
{
    const struct source in = {.model = m, .layer = 0};
    size_t images = (size_t)n;

    *place = 0;
    if (look(&in, images * shape_len(&model_layer(m, 0)->in), IMAGES, place))
        return -1;
    for (int i = 0; i < model_n_layers(m); i++)
        if (look_at_layer(m, i, images, place))
            return -1;
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

int finite_in_params(struct model *m, int *place)
{
    size_t n = model_n_params(m), at;

    if (finite_on_device(model_device(m), model_params(m), n, &at))
        return -1;
    *place = at < n ? place_of(layer_of(m, at), PARAMS) : 0;
    return 0;
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
