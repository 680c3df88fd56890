/* SPDX-License-Identifier: BSD-3-Clause */
/* trainer_layer.c - a layer against finite differences. */
#include "tests/trainer/trainer_layer.h"
#include "trainer/device.h"
#include "trainer/error.h"
#include "trainer/onednn.h"
#include "trainer/rng.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void layer_fill(float *values, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        values[i] = 2 * rng_unit(seed, i) - 1;
}

float *layer_floats(size_t n)
{
    float *p = aligned_alloc(64, (n * sizeof(float) + 127) / 64 * 64);

    ck_assert_ptr_nonnull(p);
    memset(p, 0, n * sizeof(float));
    return p;
}

void bench_init(struct bench *b, const struct layer_spec *spec, struct shape in)
{
    struct layer *l = &b->layer;

    *b = (struct bench){.layer = {.spec = *spec,
                                  .index = 1,
                                  .chunk = CHUNK,
                                  .in = in,
                                  .out.block = onednn_block(),
                                  .is_stale = 1},
                        .pass = {.is_training = 1, .key = 99, .first = 5}};
    l->ops = device_cpu.layer(spec, &in);
    ck_assert_msg(!l->ops->shape(l), "%s", train_error());
    b->n_in = CHUNK * shape_len(&l->in);
    b->n_out = CHUNK * shape_len(&l->out);
    b->in = layer_floats(b->n_in);
    b->din = layer_floats(b->n_in);
    b->out = layer_floats(b->n_out);
    b->plus = layer_floats(b->n_out);
    b->dplus = layer_floats(b->n_out);
    b->dout = layer_floats(b->n_out);
    l->weights = layer_floats(l->n_weights + l->n_biases);
    l->biases = l->weights + l->n_weights;
    l->dweights = layer_floats(l->n_weights + l->n_biases);
    l->dbiases = l->dweights + l->n_weights;
    layer_fill(b->in, b->n_in, 1);
    layer_fill(b->dout, b->n_out, 2);
    layer_fill(b->plus, b->n_out, 4);
    l->running = layer_floats(l->n_running);
    for (size_t i = 0; i < l->n_running; i++) /* variances are positive */
        l->running[i] = 0.5f + rng_unit(5, i);
    layer_fill(l->weights, l->n_weights + l->n_biases, 3);
    ck_assert_msg(!l->ops->init(l), "%s", train_error());
}

void bench_fini(struct bench *b)
{
    b->layer.ops->fini(&b->layer);
    free(b->in);
    free(b->din);
    free(b->plus);
    free(b->dplus);
    free(b->layer.running);
    free(b->out);
    free(b->dout);
    free(b->layer.weights);
    free(b->layer.dweights);
}

double bench_value(struct bench *b)
{
    struct layer_io io = {.in = b->in, .out = b->out};
    int has_plus = b->layer.spec.plus != 0;
    double sum = 0;

    b->layer.is_stale = 1;
    io.plus = has_plus ? b->plus : NULL;
    ck_assert_int_eq(b->layer.ops->forward(&b->layer, &io, &b->pass), 0);
    for (size_t i = 0; i < b->n_out; i++)
        sum += (double)b->out[i] * (double)b->dout[i];
    return sum;
}

/* Vary values[i] for some i and compare gradients with grads[i].  Where the two
 * one-sided gradients differ there is a kink (relu, pool): not comparable. */
static void probe(struct bench *b, float *values, const float *grads, size_t n,
                  const char *what)
{
    size_t step = n / PROBES + 1;
    int compared = 0, tried = 0;
    const float h = 0.004f;

    for (size_t i = 0; i < n; i += step) {
        float was = values[i];
        double mid = bench_value(b), left, right;

        values[i] = was + h;
        right = (bench_value(b) - mid) / (double)(values[i] - was);
        values[i] = was - h;
        left = (bench_value(b) - mid) / (double)(values[i] - was);
        values[i] = was;
        tried++;
        if (fabs(left - right) > 0.02 * (1 + fabs(left)))
            continue;
        compared++;
        ck_assert_msg(fabs((left + right) / 2 - (double)grads[i]) <
                          0.01 * (1 + fabs(left)),
                      "%s (training %d) %s[%zu]: %g by backward, %g by "
                      "difference",
                      b->layer.ops->name, b->pass.is_training, what, i,
                      (double)grads[i], (left + right) / 2);
    }
    ck_assert_int_ge(compared * 10, tried * 6);
}

void bench_backward(struct bench *b, int want_din)
{
    const struct layer_ops *ops = b->layer.ops;
    float *dout = layer_floats(b->n_out), *in = layer_floats(b->n_in);
    struct layer_io io = {.in = b->in,
                          .out = b->out,
                          .plus = b->layer.spec.plus ? b->plus : NULL,
                          .dout = dout,
                          .dplus = b->layer.spec.plus ? b->dplus : NULL,
                          .din = want_din ? b->din : NULL};
    int in_place = want_din && ops->may_overwrite;

    bench_value(b);
    memcpy(dout, b->dout, b->n_out * sizeof(float));
    memcpy(in, b->in, b->n_in * sizeof(float));
    if (in_place)
        io.din = b->in;
    ck_assert_int_eq(ops->backward(&b->layer, &io, &b->pass), 0);
    if (in_place) {
        memcpy(b->din, b->in, b->n_in * sizeof(float));
        memcpy(b->in, in, b->n_in * sizeof(float));
    }
    free(dout);
    free(in);
}

void bench_check(struct bench *b, int want_din)
{
    struct layer *l = &b->layer;

    for (b->pass.is_training = 0; b->pass.is_training < 2;
         b->pass.is_training++) {
        memset(l->dweights, 0, (l->n_weights + l->n_biases) * sizeof(float));
        bench_backward(b, want_din);
        probe(b, l->weights, l->dweights, l->n_weights, "weights");
        probe(b, l->biases, l->dbiases, l->n_biases, "biases");
        if (want_din)
            probe(b, b->in, b->din, b->n_in, "in");
        if (l->spec.plus)
            probe(b, b->plus, b->dplus, b->n_out, "plus");
    }
    b->pass.is_training = 1;
}

size_t layer_place(const struct shape *s, int image, int c, int y, int x)
{
    int block = s->block;
    size_t at = (size_t)(image * (s->channels / block) + c / block);

    return ((at * (size_t)s->height + (size_t)y) * (size_t)s->width +
            (size_t)x) *
               (size_t)block +
           (size_t)(c % block);
}

int layer_block(int channels)
{
    return onednn_block() ? onednn_block() : channels;
}
