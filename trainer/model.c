/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - builds the layers, lays out parameters and activations, runs them.
 *
 * values[i] is what goes into layer i, values[n] the scores; slopes[i] is the
 * gradient of values[i].  Where layer i may write its input's gradient over
 * its input, and the layer before does not look back at it, the two share one
 * buffer: of the cnn's large maps, only the first convolution's needs both.
 */
#include "trainer/model.h"
#include "trainer/error.h"
#include "trainer/onednn.h"
#include "trainer/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

struct model {
    struct model_config config;
    struct layer *layers;
    int n_layers; /* of which init() succeeded */
    int is_view;
    float **values, **slopes; /* [n_specs + 1] */
    float *params, *gradients;
    size_t n_params;
};

static const struct layer_spec cnn[] = {
    {.ops = &layer_conv_image, .units = 32, .relu = 1},
    {.ops = &layer_conv, .units = 64},
    {.ops = &layer_pool, .relu = 1}, /* = relu, then pool */
    {.ops = &layer_dropout, .rate = 0.25f},
    {.ops = &layer_dense, .units = 128, .relu = 1},
    {.ops = &layer_dropout, .rate = 0.5f},
    {.ops = &layer_dense, .units = 10},
};

const struct model_config model_cnn = {
    .name = "cnn",
    .specs = cnn,
    .n_specs = sizeof(cnn) / sizeof(cnn[0]),
    .rows = 28,
    .columns = 28,
};

static float *alloc_floats(size_t n)
{
    void *p;

    if (posix_memalign(&p, ALIGNMENT, n * sizeof(float)))
        return NULL;
    return memset(p, 0, n * sizeof(float));
}

/* ---- building ---- */

static int build_shapes(struct model *m)
{
    struct shape in = {1, m->config.rows, m->config.columns, 1};
    int block = onednn_block();

    for (int i = 0; i < m->config.n_specs; i++) {
        struct layer *l = &m->layers[i];

        l->spec = m->config.specs[i];
        l->index = i;
        l->chunk = m->config.chunk;
        l->in = in;
        l->out.block = block;
        l->is_stale = 1;
        if (l->spec.ops->shape(l))
            return -1;
        in = l->out;
        m->n_params += l->n_weights + l->n_biases;
    }
    return 0;
}

/* Point every layer at its part of the flat arrays. */
static void share_params(struct model *m)
{
    size_t at = 0;

    for (int i = 0; i < m->config.n_specs; i++) {
        struct layer *l = &m->layers[i];

        l->weights = m->params + at;
        l->biases = l->weights + l->n_weights;
        if (!m->is_view) {
            l->dweights = m->gradients + at;
            l->dbiases = l->dweights + l->n_weights;
        }
        at += l->n_weights + l->n_biases;
    }
}

/* Say whether layer i writes its input's gradient over its input. */
static int overwrites(const struct model *m, int i)
{
    return i > 0 && m->config.specs[i].ops->may_overwrite &&
           !m->config.specs[i - 1].ops->reads_out;
}

static int alloc_values(struct model *m)
{
    int n = m->config.n_specs;
    size_t chunk = (size_t)m->config.chunk;

    for (int i = 0; i <= n; i++) {
        const struct shape *s = i < n ? &m->layers[i].in
                                      : &m->layers[n - 1].out;

        m->values[i] = alloc_floats(chunk * shape_len(s));
        if (!m->values[i])
            return -1;
        if (i == 0 || m->is_view)
            continue;
        m->slopes[i] = i < n && overwrites(m, i)
                           ? m->values[i]
                           : alloc_floats(chunk * shape_len(s));
        if (!m->slopes[i])
            return -1;
    }
    return 0;
}

static int alloc_params(struct model *m)
{
    m->params = alloc_floats(m->n_params);
    m->gradients = alloc_floats(m->n_params);
    return m->params && m->gradients ? 0 : -1;
}

static int init_layers(struct model *m)
{
    for (; m->n_layers < m->config.n_specs; m->n_layers++) {
        struct layer *l = &m->layers[m->n_layers];

        if (l->spec.ops->init(l))
            return -1;
    }
    return 0;
}

static struct model *alloc_model(const struct model_config *config)
{
    size_t n = (size_t)config->n_specs;
    struct model *m = calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->config = *config;
    m->layers = calloc(n, sizeof(*m->layers));
    m->values = calloc(n + 1, sizeof(*m->values));
    m->slopes = calloc(n + 1, sizeof(*m->slopes));
    if (m->layers && m->values && m->slopes)
        return m;
    model_destroy(m);
    return NULL;
}

static int out_of_memory(const struct model_config *config)
{
    return train_fail("out of memory for model %s at %d images a pass; use "
                      "fewer ranks on this machine", config->name,
                      config->chunk);
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
    if (of)
        m->params = of->params;
    if ((!of && alloc_params(m)) || alloc_values(m)) {
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

static void free_values(struct model *m)
{
    for (int i = 0; i <= m->config.n_specs; i++) {
        if (m->slopes[i] != m->values[i])
            free(m->slopes[i]);
        free(m->values[i]);
    }
}

void model_destroy(struct model *m)
{
    if (!m)
        return;
    while (m->n_layers-- > 0)
        m->layers[m->n_layers].spec.ops->fini(&m->layers[m->n_layers]);
    if (m->values && m->slopes)
        free_values(m);
    if (!m->is_view)
        free(m->params);
    free(m->gradients);
    free(m->slopes);
    free(m->values);
    free(m->layers);
    free(m);
}

/* ---- parameters ---- */

float *model_params(struct model *m) { return m->params; }

float *model_gradients(struct model *m) { return m->gradients; }

size_t model_n_params(const struct model *m) { return m->n_params; }

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

static void draw(float *values, size_t n, float limit, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        values[i] = limit * (2 * rng_unit(key, i) - 1);
}

/* Glorot: weights within sqrt(6 / (fan_in + fan_out)), biases 0, as Keras.
 * Torch: both within 1 / sqrt(fan_in), as PyTorch's Linear and Conv2d. */
void model_init_params(struct model *m, enum model_init_kind kind,
                       uint64_t seed)
{
    uint64_t key = rng_key(seed, RNG_INIT);

    for (int i = 0; i < m->n_layers; i++) {
        struct layer *l = &m->layers[i];
        float limit;

        if (l->n_weights == 0)
            continue;
        limit = kind == INIT_TORCH
                    ? 1 / sqrtf((float)l->fan_in)
                    : sqrtf(6 / ((float)l->fan_in + (float)l->fan_out));
        draw(l->weights, l->n_weights, limit, rng_key(key, 2 * (uint64_t)i));
        draw(l->biases, l->n_biases, kind == INIT_TORCH ? limit : 0,
             rng_key(key, 2 * (uint64_t)i + 1));
    }
    model_changed(m);
}

/* ---- running ---- */

float *model_input(struct model *m) { return m->values[0]; }

int model_chunk(const struct model *m) { return m->config.chunk; }

int model_n_classes(const struct model *m)
{
    return m->layers[m->n_layers - 1].out.channels;
}

const float *model_values(const struct model *m, int i) { return m->values[i]; }

int model_forward(struct model *m, const struct pass *pass)
{
    for (int i = 0; i < m->n_layers; i++) {
        struct layer *l = &m->layers[i];

        if (l->spec.ops->forward(l, m->values[i], m->values[i + 1], pass))
            return -1;
    }
    return 0;
}

void model_loss(struct model *m, const unsigned char *labels, int n,
                float scale, struct model_score *score)
{
    int classes = model_n_classes(m), chunk = m->config.chunk;
    float *slopes = m->slopes[m->n_layers];

    softmax_loss(m->values[m->n_layers], labels, n, classes, scale, slopes,
                 &score->loss, &score->n_right);
    if (slopes)
        memset(slopes + n * classes, 0,
               (size_t)(chunk - n) * (size_t)classes * sizeof(float));
}

int model_backward(struct model *m, const struct pass *pass)
{
    for (int i = m->n_layers; i-- > 0;) {
        struct layer *l = &m->layers[i];
        struct layer_io io = {m->values[i], m->values[i + 1], m->slopes[i + 1],
                              m->slopes[i]};

        if (l->spec.ops->backward(l, &io, pass))
            return -1;
    }
    return 0;
}
