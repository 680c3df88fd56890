/* SPDX-License-Identifier: BSD-3-Clause */
/* softmax.cuh - softmax and cross-entropy, as layers_softmax.c has them; a thread a row. */
#ifndef COLL_TRAINER_CUDA_SOFTMAX_CUH
#define COLL_TRAINER_CUDA_SOFTMAX_CUH

#include "trainer/cuda/span.cuh"

#include <math.h>

namespace train
{
struct loss_rule {
    uint32_t classes;
    float scale;
    double smoothing;
};

/* A row of scores. */
template <typename T> struct scores_of {
    const T *row;
    uint32_t classes, best; /* the largest one's place */
    double sum;             /* of exp(score - largest) */

    METHOD double score(uint32_t c) const { return (double)widen(row[c]); }
    METHOD double power(uint32_t c) const
    {
        return exp(score(c) - score(best));
    }
};

template <typename T>
DEVICE scores_of<T> look_at(const T *row, uint32_t classes)
{
    scores_of<T> s = {row, classes, 0, 0};

    for (uint32_t c = 1; c < classes; c++)
        if (widen(row[c]) > widen(row[s.best]))
            s.best = c;
    for (uint32_t c = 0; c < classes; c++)
        s.sum += s.power(c);
    return s;
}

template <typename T>
DEVICE double row_loss(const scores_of<T> &s, uint32_t label, double smoothing)
{
    double loss = log(s.sum) - (s.score(label) - s.score(s.best)), below = 0;

    if (!(smoothing > 0))
        return loss;
    for (uint32_t c = 0; c < s.classes; c++)
        below += s.score(s.best) - s.score(c);
    return (1 - smoothing) * loss +
           smoothing * (log(s.sum) + below / (int)s.classes);
}

/* dscores may be the scores: each is written after it was read for the last time. */
template <typename T>
DEVICE void row_gradient(const scores_of<T> &s, uint32_t label,
                         const loss_rule &rule, T *dscores)
{
    double largest = s.score(s.best);

    for (uint32_t c = 0; c < s.classes; c++) {
        double p = exp(s.score(c) - largest) / s.sum;
        double weight = (c == label ? 1 - rule.smoothing : 0) +
                        rule.smoothing / (int)s.classes;

        narrow(rule.scale * (float)(p - weight), dscores[c]);
    }
}

template <typename T>
DEVICE void softmax(span<const T> scores, span<const uint8_t> labels,
                    span<T> dscores, span<double> sums, loss_rule rule)
{
    uint32_t n = (uint32_t)labels.count();

    for (size_t i = thread(); i < n; i += n_threads()) {
        scores_of<T> s =
            look_at(scores.items() + i * rule.classes, rule.classes);
        uint32_t label = labels.items()[i];

        sums.items()[2 * i] = row_loss(s, label, rule.smoothing);
        sums.items()[2 * i + 1] = s.best == label;
        if (dscores.len)
            row_gradient(s, label, rule, dscores.items() + i * rule.classes);
    }
}
} // namespace train

#endif
