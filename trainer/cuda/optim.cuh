/* SPDX-License-Identifier: BSD-3-Clause */
/* optim.cuh - the update rules of optim.c, in its order of operations. */
#ifndef COLL_TRAINER_CUDA_OPTIM_CUH
#define COLL_TRAINER_CUDA_OPTIM_CUH

#include "trainer/cuda/span.cuh"

#include <math.h>

namespace train
{
DEVICE bool is_spoilt(span<const float> canary)
{
    return canary.len && !isfinite(canary.items()[0]);
}

struct sgd_rule {
    float rate, momentum, decay;
    uint32_t nesterov;
};

DEVICE void sgd(span<float> params, span<const float> gradients,
                span<float> velocity, span<const float> canary, sgd_rule rule)
{
    bool is_wide = are_wide(params, gradients, velocity);

    if (is_spoilt(canary))
        return;
    each<wide<float>>(params.count(), is_wide, [=](size_t at, auto w) {
        auto p = load<w.n>(params.items() + at);
        auto g = load<w.n>(gradients.items() + at);
        auto v = load<w.n>(velocity.items() + at);

        change(
            g, [=](float y, float x) { return y + rule.decay * x; }, p);
        change(
            v, [=](float was, float y) { return rule.momentum * was + y; }, g);
        store(velocity.items() + at, v);
        if (rule.nesterov)
            change(
                v, [=](float way, float y) { return y + rule.momentum * way; },
                g);
        change(
            p, [=](float x, float way) { return x - rule.rate * way; }, v);
        store(params.items() + at, p);
    });
}

struct adam_rule {
    float rate, beta1, beta2, epsilon, decay;
};

DEVICE void adam(span<float> params, span<const float> gradients,
                 span<float> mean, span<float> square, span<const float> canary,
                 adam_rule rule)
{
    bool is_wide = are_wide(params, gradients, mean, square);

    if (is_spoilt(canary))
        return;
    each<wide<float>>(params.count(), is_wide, [=](size_t at, auto w) {
        auto p = load<w.n>(params.items() + at);
        auto g = load<w.n>(gradients.items() + at);
        auto m = load<w.n>(mean.items() + at);
        auto s = load<w.n>(square.items() + at);

        change(
            g, [=](float y, float x) { return y + rule.decay * x; }, p);
        change(
            m,
            [=](float was, float y) {
                return rule.beta1 * was + (1 - rule.beta1) * y;
            },
            g);
        change(
            s,
            [=](float was, float y) {
                return rule.beta2 * was + (1 - rule.beta2) * y * y;
            },
            g);
        change(
            p,
            [=](float x, float way, float of) {
                return x - rule.rate * way / (sqrtf(of) + rule.epsilon);
            },
            m, s);
        store(mean.items() + at, m);
        store(square.items() + at, s);
        store(params.items() + at, p);
    });
}

struct adagrad_rule {
    float rate, epsilon, decay;
};

DEVICE void adagrad(span<float> params, span<const float> gradients,
                    span<float> sum, span<const float> canary,
                    adagrad_rule rule)
{
    bool is_wide = are_wide(params, gradients, sum);

    if (is_spoilt(canary))
        return;
    each<wide<float>>(params.count(), is_wide, [=](size_t at, auto w) {
        auto p = load<w.n>(params.items() + at);
        auto g = load<w.n>(gradients.items() + at);
        auto s = load<w.n>(sum.items() + at);

        change(
            g, [=](float y, float x) { return y + rule.decay * x; }, p);
        change(
            s, [](float was, float y) { return was + y * y; }, g);
        change(
            p,
            [=](float x, float y, float of) {
                return x - rule.rate * y / (sqrtf(of) + rule.epsilon);
            },
            g, s);
        store(sum.items() + at, s);
        store(params.items() + at, p);
    });
}
} // namespace train

#endif
