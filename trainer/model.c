/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - build the layers, lay out parameters and activations, run them.
 *
 * values[0] is the images, values[i + 1] the output of layer i.  Gradients of
 * values share buffers by the plan of gradient_plan.c; of the large maps of cnn only
 * that of the first convolution needs one.
 */
#include "trainer/model.h"
#include "trainer/ddp.h"
#include "trainer/error.h"
#include "trainer/rng.h"
#include "trainer/gradient_plan.h"
#include "trainer/smaller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct model {
    struct model_config config;
    const struct device *device;
    struct layer *layers;
    int n_layers; /* layers whose init() has succeeded */
    int is_view;
    /* of the device: */
    void **values;  /* [n_specs + 1] */
    void **buffers; /* [plan.n_buffers] */
    struct gradient_plan plan;
    float *params, *gradients, *running; /* of the device */
    size_t n_params, n_running;
};

/* ---- building ---- */

static int n_specs(const struct model *m) { return m->config.desc->n_specs; }

static const struct shape *value_shape(const struct model *m, int v)
{
    return v > 0 ? &m->layers[v - 1].out : &m->layers[0].in;
}

static size_t value_len(const struct model *m, int v)
{
    return (size_t)m->config.chunk * shape_len(value_shape(m, v));
}

static int bad_source(const struct layer *l)
{
    return train_fail("layer %d: its sources %d and %d are no earlier layers "
                      "of fitting shape",
                      l->index, l->spec.from, l->spec.plus);
}

/* Fill in layer i from its spec and its input. */
static int build_layer(struct model *m, int i, int block)
{
    struct layer *l = &m->layers[i];

    l->spec = m->config.desc->specs[i];
    l->index = i;
    l->chunk = m->config.chunk;
    l->is_stale = 1;
    l->out.block = block;
    if (l->spec.units == UNITS_CLASSES)
        l->spec.units = m->config.classes;
    if (input_value(l) < 0 || input_value(l) > i || added_value(l) < 0 ||
        added_value(l) > i)
        return bad_source(l);
    if (i > 0)
        l->in = *value_shape(m, input_value(l));
    l->ops = m->device->layer(&l->spec, &l->in);
    if (l->ops->shape(l))
        return -1;
    if (added_value(l) &&
        memcmp(value_shape(m, added_value(l)), &l->out, sizeof(l->out)))
        return bad_source(l);
    m->n_params += l->n_weights + l->n_biases;
    m->n_running += l->n_running;
    return 0;
}

static int build_shapes(struct model *m)
{
    const struct model_config *c = &m->config;
    int block = m->device->values.block();

    m->layers[0].in =
        (struct shape){c->channels, c->height, c->width, c->channels};
    for (int i = 0; i < n_specs(m); i++)
        if (build_layer(m, i, block))
            return -1;
    return 0;
}

/* Point every layer at its part of the flat arrays. */
static void share_params(struct model *m)
{
    size_t at = 0, running = 0;

    for (int i = 0; i < n_specs(m); i++) {
        struct layer *l = &m->layers[i];

        l->running = m->running + running;
        running += l->n_running;
        l->weights = m->params + at;
        l->biases = l->weights + l->n_weights;
        if (!m->is_view) {
            l->dweights = m->gradients + at;
            l->dbiases = l->dweights + l->n_weights;
        }
        at += l->n_weights + l->n_biases;
    }
}

static float *alloc_floats(const struct model *m, size_t n)
{
    return m->device->alloc(n * sizeof(float));
}

/* Allocate n values. */
static void *alloc_value(const struct model *m, size_t n)
{
    return m->device->alloc(n * m->device->values.size());
}

static int alloc_values(struct model *m)
{
    for (int v = 0; v <= n_specs(m); v++) {
        m->values[v] = alloc_value(m, value_len(m, v));
        if (!m->values[v])
            return -1;
    }
    return 0;
}

static int alloc_gradients(struct model *m)
{
    size_t chunk = (size_t)m->config.chunk;

    if (gradient_plan_init(&m->plan, m->layers, n_specs(m)))
        return -1;
    m->buffers = calloc((size_t)m->plan.n_buffers, sizeof(*m->buffers));
    for (int b = 0; m->buffers && b < m->plan.n_buffers; b++) {
        m->buffers[b] = alloc_value(m, chunk * m->plan.len[b]);
        if (!m->buffers[b])
            return -1;
    }
    return m->buffers ? 0 : -1;
}

static int alloc_all(struct model *m, struct model *of)
{
    if (alloc_values(m))
        return -1;
    if (of) {
        m->params = of->params;
        m->running = of->running;
        return 0;
    }
    m->params = alloc_floats(m, m->n_params);
    m->gradients = ddp_alloc(m->device, m->n_params * sizeof(float));
    m->running = alloc_floats(m, m->n_running);
    return m->params && m->gradients && m->running ? alloc_gradients(m) : -1;
}

static int init_layers(struct model *m)
{
    for (; m->n_layers < n_specs(m); m->n_layers++) {
        struct layer *l = &m->layers[m->n_layers];

        if (l->ops->init(l))
            return -1;
    }
    return 0;
}

static struct model *alloc_model(const struct model_config *config)
{
    size_t n = (size_t)config->desc->n_specs;
    struct model *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->config = *config;
    m->device = config->device ? config->device : &device_cpu;
    if (m->config.classes == 0)
        m->config.classes = DATA_CLASSES;
    m->layers = calloc(n, sizeof(*m->layers));
    m->values = calloc(n + 1, sizeof(*m->values));
    if (m->layers && m->values)
        return m;
    model_destroy(m);
    return NULL;
}

static int out_of_memory(const struct model_config *config)
{
    return train_fail("out of memory for model %s at %d images a pass; lower "
                      "--batch-size, or use fewer ranks on this machine",
                      config->desc->name, config->chunk);
}

static int build(struct model **model, const struct model_config *config,
                 struct model *of)
{
    struct model *m = alloc_model(config);

    if (!m)
        return out_of_memory(config);
    m->is_view = of != NULL;
    if (build_shapes(m))
        goto fail;
    if (alloc_all(m, of)) {
        out_of_memory(config);
        goto fail;
    }
    share_params(m);
    if (init_layers(m))
        goto fail;
    *model = m;
    return 0;

fail:
    model_destroy(m);
    return -1;
}

int model_create(struct model **model, const struct model_config *config)
{
    return build(model, config, NULL);
}

int model_create_view(struct model **model, struct model *of, int chunk)
{
    struct model_config config = of->config;

    config.chunk = chunk;
    return build(model, &config, of);
}

static void release_all(const struct model *m, void **list, int n)
{
    for (int i = 0; list && i < n; i++)
        m->device->release(list[i]);
    free(list);
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    while (m->n_layers-- > 0)
        m->layers[m->n_layers].ops->fini(&m->layers[m->n_layers]);
    release_all(m, m->values, n_specs(m) + 1);
    release_all(m, m->buffers, m->plan.n_buffers);
    gradient_plan_fini(&m->plan);
    if (!m->is_view) {
        m->device->release(m->params);
        m->device->release(m->running);
    }
    ddp_release(m->device, m->gradients);
    free(m->layers);
    free(m);
}

/* ---- parameters ---- */

const struct device *model_device(const struct model *m) { return m->device; }

float *model_params(struct model *m) { return m->params; }

float *model_gradients(struct model *m) { return m->gradients; }

void model_clear_gradients(struct model *m)
{
    for (int i = 0; i < m->n_layers; i++) {
        struct layer *l = &m->layers[i];

        if (!l->ops->writes_over)
            m->device->zero(l->dweights, l->n_weights * sizeof(float));
        m->device->zero(l->dbiases, l->n_biases * sizeof(float));
    }
}

size_t model_n_params(const struct model *m) { return m->n_params; }

float *model_running(struct model *m) { return m->running; }

size_t model_n_running(const struct model *m) { return m->n_running; }

int model_n_layers(const struct model *m) { return m->n_layers; }

const struct layer *model_layer(const struct model *m, int i)
{
    return &m->layers[i];
}

size_t model_layer_params(const struct model *m, int i)
{
    return m->layers[i].n_weights + m->layers[i].n_biases;
}

void model_changed(struct model *m)
{
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].is_stale = 1;
}

/* Draw n numbers on the host, and write them to the device piece by piece. */
static void draw(const struct model *m, float *to, size_t n, float limit,
                 uint64_t key)
{
    float piece[DEVICE_PIECE];

    for (size_t at = 0; at < n; at += DEVICE_PIECE) {
        size_t len = smaller(n - at, DEVICE_PIECE);

        for (size_t i = 0; i < len; i++)
            piece[i] = limit * (2 * rng_unit(key, at + i) - 1);
        m->device->write(to + at, piece, len * sizeof(*piece));
    }
}

static void fill(const struct model *m, float *to, size_t n, float value)
{
    float piece[DEVICE_PIECE];

    for (size_t i = 0; i < smaller(n, DEVICE_PIECE); i++)
        piece[i] = value;
    for (size_t at = 0; at < n; at += DEVICE_PIECE)
        m->device->write(to + at, piece,
                         smaller(n - at, DEVICE_PIECE) * sizeof(*piece));
}

/* Batch normalization begins without effect: weight 1, bias 0, mean 0, variance
 * 1. */
static void init_norm(const struct model *m, const struct layer *l)
{
    size_t n = l->n_running / 2;

    fill(m, l->weights, l->n_weights, 1);
    fill(m, l->biases, l->n_biases, 0);
    fill(m, l->running, n, 0);
    fill(m, l->running + n, n, 1);
}

/* Glorot: weights within sqrt(6 / (fan_in + fan_out)), biases 0, as Keras.
 * Torch: both within 1 / sqrt(fan_in), as PyTorch's Linear and Conv2d. */
void model_init_params(struct model *m, enum model_init_kind kind,
                       uint64_t seed)
{
    uint64_t key = rng_key(seed, RNG_INIT);

    for (int i = 0; i < m->n_layers; i++) {
        const struct layer *l = &m->layers[i];
        float limit;

        if (l->n_weights == 0)
            continue;
        if (l->fan_in == 0) {
            init_norm(m, l);
            continue;
        }
        limit = kind == INIT_TORCH
                    ? 1 / sqrtf((float)l->fan_in)
                    : sqrtf(6 / ((float)l->fan_in + (float)l->fan_out));
        draw(m, l->weights, l->n_weights, limit, rng_key(key, 2 * (uint64_t)i));
        draw(m, l->biases, l->n_biases, kind == INIT_TORCH ? limit : 0,
             rng_key(key, 2 * (uint64_t)i + 1));
    }
    model_changed(m);
}

/* ---- running ---- */

float *model_input(struct model *m) { return m->values[0]; }

float *model_change_input(struct model *m, float *input)
{
    float *was = m->values[0];

    m->values[0] = input;
    return was;
}

int model_chunk(const struct model *m) { return m->config.chunk; }

int model_n_classes(const struct model *m)
{
    return m->layers[m->n_layers - 1].out.channels;
}

int model_read(const struct model *m, int i, size_t at, size_t n, float *to)
{
    const char *from = m->values[i];

    return m->device->values.read(to, from + at * m->device->values.size(), n);
}

/* Return the buffer of a value's gradient, or NULL if it has none. */
static void *gradient_of(const struct model *m, int v)
{
    int b = m->plan.buffer ? m->plan.buffer[v] : GRADIENT_NONE;

    return b == GRADIENT_OVER   ? m->values[v]
           : b == GRADIENT_NONE ? NULL
                             : m->buffers[b];
}

int model_forward(struct model *m, const struct pass *pass)
{
    for (int i = 0; i < m->n_layers; i++) {
        struct layer *l = &m->layers[i];
        struct layer_io io = {.in = m->values[input_value(l)],
                              .out = m->values[i + 1]};

        if (added_value(l))
            io.plus = m->values[added_value(l)];
        if (pass->needs && pass->needs(pass->arg, i))
            return -1;
        if (l->ops->forward(l, &io, pass))
            return -1;
    }
    return 0;
}

void model_loss(struct model *m, const unsigned char *labels, int n,
                float scale, struct model_score *score)
{
    size_t row = (size_t)model_n_classes(m) * m->device->values.size();
    char *gradient = gradient_of(m, m->n_layers);
    struct loss_job job = {
        .scores = m->values[m->n_layers],
        .labels = labels,
        .n = n,
        .classes = model_n_classes(m),
        .scale = scale,
        .dscores = gradient_of(m, m->n_layers),
        .smoothing = gradient ? m->config.smoothing : 0,
    };

    m->device->loss(&job, score);
    if (gradient)
        m->device->zero(gradient + (size_t)n * row,
                        (size_t)(m->config.chunk - n) * row);
}

/* Return where layer i writes the gradient of value v. */
static void *written(const struct model *m, int v, int added)
{
    return added == GRADIENT_NONE ? gradient_of(m, v) : m->buffers[added];
}

static int backward_layer(struct model *m, int i, const struct pass *pass)
{
    struct layer *l = &m->layers[i];
    int v[2] = {input_value(l), added_value(l)};
    const int *added = m->plan.added + 2 * i;
    struct layer_io io = {
        .in = m->values[v[0]],
        .plus = v[1] ? m->values[v[1]] : NULL,
        .out = m->values[i + 1],
        .dout = gradient_of(m, i + 1),
        .din = v[0] ? written(m, v[0], added[0]) : NULL,
        .dplus = v[1] ? written(m, v[1], added[1]) : NULL,
    };

    if (l->ops->backward(l, &io, pass))
        return -1;
    for (int k = 0; k < 2; k++)
        if (v[k] && added[k] != GRADIENT_NONE)
            m->device->values.add(gradient_of(m, v[k]), m->buffers[added[k]],
                                  value_len(m, v[k]));
    return 0;
}

int model_backward(struct model *m, const struct pass *pass,
                   int (*done)(void *arg, int layer), void *arg)
{
    for (int i = m->n_layers; i-- > 0;)
        if (backward_layer(m, i, pass) || (done && done(arg, i)))
            return -1;
    return 0;
}
