/* SPDX-License-Identifier: BSD-3-Clause */
/* optim.c - the update rules, over flat arrays. */
#include "trainer/optim.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/simd.h"

#include <math.h>
#include <stdlib.h>

const char *optim_name(enum optim_kind kind)
{
    static const char *const names[] = {"sgd", "adam", "adagrad"};

    return names[kind];
}

int optim_init(struct optim *o, size_t n)
{
    o->n = n;
    o->n_state = o->kind == OPTIM_ADAM ? 2 * n : n;
    o->step = 0;
    o->state = calloc(o->n_state, sizeof(float));
    if (!o->state)
        return train_fail("out of memory for the state of %s; use fewer ranks "
                          "on this machine", optim_name(o->kind));
    return 0;
}

void optim_fini(struct optim *o)
{
    free(o->state);
    o->state = NULL;
}

static void sgd_step(struct optim *o, float *params, const float *gradients)
{
    float lr = (float)o->lr;

    for (size_t i = 0; i < o->n; i++) {
        float slope = gradients[i] + o->weight_decay * params[i];

        o->state[i] = o->momentum * o->state[i] + slope;
        params[i] -= lr * o->state[i];
    }
}

static void adagrad_step(struct optim *o, float *params, const float *gradients)
{
    float lr = (float)o->lr;

    for (size_t i = 0; i < o->n; i++) {
        float slope = gradients[i] + o->weight_decay * params[i];

        o->state[i] += slope * slope;
        params[i] -= lr * slope / (sqrtf(o->state[i]) + o->epsilon);
    }
}

struct adam {
    float rate, beta1, beta2, epsilon, decay;
};

/* One vector of parameters: loops of fixed length that compilers unroll. */
SIMD_BODY void adam_vector(float *p, const float *g, float *mean,
                           float *square, const struct adam *a)
{
    vec8f slope = *(const vec8f *)g + a->decay * *(const vec8f *)p;
    vec8f m = a->beta1 * *(vec8f *)mean + (1 - a->beta1) * slope;
    vec8f s = a->beta2 * *(vec8f *)square + (1 - a->beta2) * slope * slope;
    vec8f root;

    for (int k = 0; k < SIMD_WIDTH; k++)
        root[k] = sqrtf(s[k]);
    *(vec8f *)mean = m;
    *(vec8f *)square = s;
    *(vec8f *)p -= a->rate * m / (root + a->epsilon);
}

SIMD_BODY void adam_body(float *p, const float *g, float *mean, float *square,
                         size_t n, const struct adam *a)
{
    size_t i = 0;

    for (; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)
        adam_vector(p + i, g + i, mean + i, square + i, a);
    for (; i < n; i++) {
        float slope = g[i] + a->decay * p[i];

        mean[i] = a->beta1 * mean[i] + (1 - a->beta1) * slope;
        square[i] = a->beta2 * square[i] + (1 - a->beta2) * slope * slope;
        p[i] -= a->rate * mean[i] / (sqrtf(square[i]) + a->epsilon);
    }
}

SIMD_KERNEL(adam,
            (float *p, const float *g, float *mean, float *square, size_t n,
             const struct adam *a),
            (p, g, mean, square, n, a))

/* The bias corrections of mean and square go into rate and epsilon, so that
 * m^ / (sqrt(v^) + eps) costs one division an element. */
static void adam_step(struct optim *o, float *params, const float *gradients)
{
    double t = (double)o->step;
    double of_mean = 1 - pow((double)o->beta1, t);
    double of_square = sqrt(1 - pow((double)o->beta2, t));
    struct adam a = {
        .rate = (float)(o->lr * of_square / of_mean),
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = (float)((double)o->epsilon * of_square),
        .decay = o->weight_decay,
    };

    adam(params, gradients, o->state, o->state + o->n, o->n, &a);
}

void optim_move(struct optim *o, float *params, const float *gradients)
{
    if (o->kind == OPTIM_SGD)
        sgd_step(o, params, gradients);
    else if (o->kind == OPTIM_ADAGRAD)
        adagrad_step(o, params, gradients);
    else
        adam_step(o, params, gradients);
}

void optim_step(struct optim *o, const struct device *device, float *params,
                const float *gradients)
{
    o->step++;
    device->step(o, params, gradients);
}
