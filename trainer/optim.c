/* SPDX-License-Identifier: BSD-3-Clause */
/* optim.c - the update rules, over flat arrays. */
#include "trainer/optim.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/simd.h"

#include <math.h>
#include <string.h>

const char *optim_name(enum optim_kind kind)
{
    static const char *const names[] = {"sgd", "adam", "adagrad"};

    return names[kind];
}

void optim_set(struct optim *o, const struct args *args)
{
    *o = (struct optim){
        .kind = (enum optim_kind)args->opt,
        .momentum = (float)args->momentum,
        .nesterov = args->nesterov,
        .beta1 = (float)args->beta1,
        .beta2 = (float)args->beta2,
        /* of adam, as in Keras; PyTorch has 1e-8 */
        .epsilon = (float)(args->epsilon > 0         ? args->epsilon
                           : args->opt == OPTIM_ADAM ? 1e-7
                                                     : 1e-10),
        .weight_decay = (float)args->weight_decay,
    };
}

size_t optim_arrays(enum optim_kind kind) { return kind == OPTIM_ADAM ? 2 : 1; }

int optim_init(struct optim *o, const struct device *device, size_t n)
{
    o->device = device;
    o->n = n;
    o->n_state = optim_arrays(o->kind) * n;
    o->step = 0;
    o->state = device->alloc(o->n_state * sizeof(float));
    if (!o->state)
        return train_fail("out of memory for the state of %s; use fewer ranks "
                          "on this machine", optim_name(o->kind));
    return 0;
}

void optim_fini(struct optim *o)
{
    if (o->state)
        o->device->release(o->state);
    o->state = NULL;
}

struct sgd {
    float rate, momentum, decay;
    int nesterov;
};

/* One vector of parameters.  It is compiled for the base instruction set only,
 * since memory limits its speed.  So no multiplication and addition are fused
 * (on x86-64 without -march), and the bits do not depend on the machine. */
SIMD_BODY void sgd_vector(float *p, const float *g, float *velocity,
                          const struct sgd *s)
{
    vec8f gradient = *(const vec8f *)g + s->decay * *(const vec8f *)p;
    vec8f way = s->momentum * *(const vec8f *)velocity + gradient;

    *(vec8f *)velocity = way;
    if (s->nesterov)
        way = gradient + s->momentum * way;
    *(vec8f *)p -= s->rate * way;
}

/* The last parameters are copied to vectors of their own, so that the end of a
 * part does not change any bit. */
static void sgd_rest(float *p, const float *g, float *velocity, size_t n,
                     const struct sgd *s)
{
    float rest[3][SIMD_WIDTH] = {{0}};
    size_t len = n * sizeof(float);

    memcpy(rest[0], p, len);
    memcpy(rest[1], g, len);
    memcpy(rest[2], velocity, len);
    sgd_vector(rest[0], rest[1], rest[2], s);
    memcpy(p, rest[0], len);
    memcpy(velocity, rest[2], len);
}

static void sgd_step(struct optim *o, const struct optim_part *part)
{
    const float *g = part->gradients;
    float *p = part->params, *velocity = o->state + part->at;
    struct sgd s = {
        .rate = (float)o->lr,
        .momentum = o->momentum,
        .decay = o->weight_decay,
        .nesterov = o->nesterov,
    };
    size_t i = 0;

    for (; i + SIMD_WIDTH <= part->n; i += SIMD_WIDTH)
        sgd_vector(p + i, g + i, velocity + i, &s);
    if (i < part->n)
        sgd_rest(p + i, g + i, velocity + i, part->n - i, &s);
}

static void adagrad_step(struct optim *o, const struct optim_part *part)
{
    float lr = (float)o->lr, *sum = o->state + part->at;

    for (size_t i = 0; i < part->n; i++) {
        float gradient = part->gradients[i] + o->weight_decay * part->params[i];

        sum[i] += gradient * gradient;
        part->params[i] -= lr * gradient / (sqrtf(sum[i]) + o->epsilon);
    }
}

struct adam {
    size_t n; /* parameters */
    float rate, beta1, beta2, epsilon, decay;
};

/* One vector of parameters: loops of fixed length, which compilers unroll. */
SIMD_BODY void adam_vector(float *p, const float *g, float *mean,
                           float *square, const struct adam *a)
{
    vec8f gradient = *(const vec8f *)g + a->decay * *(const vec8f *)p;
    vec8f m = a->beta1 * *(vec8f *)mean + (1 - a->beta1) * gradient;
    vec8f s = a->beta2 * *(vec8f *)square + (1 - a->beta2) * gradient * gradient;
    vec8f root;

    for (int k = 0; k < SIMD_WIDTH; k++)
        root[k] = sqrtf(s[k]);
    *(vec8f *)mean = m;
    *(vec8f *)square = s;
    *(vec8f *)p -= a->rate * m / (root + a->epsilon);
}

/* The last parameters, fewer than a vector, are copied to vectors of their own, so that
 * the end of a part does not change any bit. */
SIMD_BODY void adam_rest(float *p, const float *g, float *mean, float *square,
                         const struct adam *a)
{
    vec8f rest[4] = {{0}};
    size_t n = a->n % SIMD_WIDTH, len = n * sizeof(float), at = a->n - n;

    p += at;
    mean += at;
    square += at;
    memcpy(&rest[0], p, len);
    memcpy(&rest[1], g + at, len);
    memcpy(&rest[2], mean, len);
    memcpy(&rest[3], square, len);
    adam_vector((float *)&rest[0], (const float *)&rest[1], (float *)&rest[2],
                (float *)&rest[3], a);
    memcpy(p, &rest[0], len);
    memcpy(mean, &rest[2], len);
    memcpy(square, &rest[3], len);
}

SIMD_BODY void adam_body(float *p, const float *g, float *mean, float *square,
                         const struct adam *a)
{
    size_t n = a->n;

    for (size_t i = 0; i + SIMD_WIDTH <= n; i += SIMD_WIDTH)
        adam_vector(p + i, g + i, mean + i, square + i, a);
    if (n % SIMD_WIDTH)
        adam_rest(p, g, mean, square, a);
}

SIMD_KERNEL(adam,
            (float *p, const float *g, float *mean, float *square,
             const struct adam *a),
            (p, g, mean, square, a))

/* The bias corrections are part of rate and epsilon, so that m^ / (sqrt(v^) +
 * eps) costs one division for each parameter. */
struct adam_rates optim_adam_rates(const struct optim *o)
{
    double t = (double)o->step;
    double of_mean = 1 - pow((double)o->beta1, t);
    double of_square = sqrt(1 - pow((double)o->beta2, t));

    return (struct adam_rates){
        .rate = (float)(o->lr * of_square / of_mean),
        .epsilon = (float)((double)o->epsilon * of_square),
    };
}

static void adam_step(struct optim *o, const struct optim_part *part)
{
    struct adam_rates rates = optim_adam_rates(o);
    float *mean = o->state + part->at;
    struct adam a = {
        .n = part->n,
        .rate = rates.rate,
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = rates.epsilon,
        .decay = o->weight_decay,
    };

    adam(part->params, part->gradients, mean, mean + o->n, &a);
}

void optim_move(struct optim *o, const struct optim_part *part)
{
    if (part->canary && !isfinite(*part->canary))
        return;
    if (o->kind == OPTIM_SGD)
        sgd_step(o, part);
    else if (o->kind == OPTIM_ADAGRAD)
        adagrad_step(o, part);
    else
        adam_step(o, part);
}
