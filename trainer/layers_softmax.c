/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_softmax.c - the end of the net: softmax, cross-entropy, and what
 * layers without a state share. */
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

/* exp(score - largest) cannot overflow, and its sum is 1 at least.  A row with
 * a NaN has a NaN for its loss and its gradients. */
void softmax_loss(const float *scores, const unsigned char *labels, int n,
                  int classes, float scale, float *dscores, double *loss,
                  int *n_right)
{
    *loss = 0;
    *n_right = 0;
    for (int i = 0; i < n; i++) {
        const float *row = scores + i * classes;
        int best = largest(row, classes), label = labels[i];
        double sum = 0;

        for (int c = 0; c < classes; c++)
            sum += exp((double)row[c] - (double)row[best]);
        *loss += log(sum) - ((double)row[label] - (double)row[best]);
        *n_right += best == label;
        for (int c = 0; dscores && c < classes; c++) {
            double p = exp((double)row[c] - (double)row[best]) / sum;

            dscores[i * classes + c] = scale * (float)(p - (c == label));
        }
    }
}
