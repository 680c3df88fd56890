/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_softmax.c - the end of the network: softmax and cross-entropy; and
 * what layers without a state share. */
#include "trainer/device.h"
#include "trainer/layers.h"

#include <math.h>

int layer__no_init(struct layer *layer)
{
    (void)layer;
    return 0;
}

void layer__no_fini(struct layer *layer) { (void)layer; }

static int largest(const float *row, int n)
{
    int best = 0;

    for (int c = 1; c < n; c++)
        if (row[c] > row[best])
            best = c;
    return best;
}

/* Return the weight of a class in the loss of a row. */
static double weight_of(const struct loss_job *job, int c, int label)
{
    double e = job->smoothing;

    return (c == label ? 1 - e : 0) + e / job->classes;
}

/* Return the mean of largest - score over a row. */
static double mean_below(const float *row, int classes, int best)
{
    double sum = 0;

    for (int c = 0; c < classes; c++)
        sum += (double)row[best] - (double)row[c];
    return sum / classes;
}

/* Compute the loss of row i, whose exp(score - largest) add up to `sum`. */
static double row_loss(const struct loss_job *job, int i, int best, double sum)
{
    const float *row = job->scores + i * job->classes;
    int label = job->labels[i];
    double loss = log(sum) - ((double)row[label] - (double)row[best]);

    if (job->smoothing > 0)
        loss =
            (1 - job->smoothing) * loss +
            job->smoothing * (log(sum) + mean_below(row, job->classes, best));
    return loss;
}

/* exp(score - largest) cannot overflow, and its sum is at least 1.  A row with
 * a NaN has NaN as its loss and gradients. */
void softmax_loss(const struct loss_job *job, struct model_score *score)
{
    int classes = job->classes;
    struct model_score more = {0};

    for (int i = 0; i < job->n; i++) {
        const float *row = job->scores + i * classes;
        int best = largest(row, classes), label = job->labels[i];
        double sum = 0;

        for (int c = 0; c < classes; c++)
            sum += exp((double)row[c] - (double)row[best]);
        more.loss += row_loss(job, i, best, sum);
        more.n_right += best == label;
        for (int c = 0; job->dscores && c < classes; c++) {
            double p = exp((double)row[c] - (double)row[best]) / sum;

            job->dscores[i * classes + c] =
                job->scale * (float)(p - weight_of(job, c, label));
        }
    }
    score->loss += more.loss;
    score->n_right += more.n_right;
}
