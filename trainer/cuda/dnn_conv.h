/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn_conv.h - a convolution by cuDNN: maps as [image][y][x][channel], weights as
 * [out][ky][kx][in], all of them values (device.h). */
#ifndef COLL_TRAINER_CUDA_DNN_CONV_H
#define COLL_TRAINER_CUDA_DNN_CONV_H

#include "trainer/layers.h"

struct dnn_conv;

struct dnn_conv_config {
    int chunk; /* images in one pass */
    struct shape in, out;
    int kernel, stride, pad;
    int is_training; /* the backward passes are needed too */
};

/* Choose cuDNN's algorithms, and make sure that the memory that they work in is there.
 * With gpu.is_deterministic only algorithms that give the same bits each time are taken.
 *
 * Result:    0, or -1 with train_error() set, as from the passes below.
 * Ownership: *conv is the caller's, to end by dnn_conv_destroy().
 */
int dnn_conv_create(struct dnn_conv **conv,
                    const struct dnn_conv_config *config);
void dnn_conv_destroy(struct dnn_conv *conv); /* NULL is allowed */

/* The passes: out = in * weights; din from dout; dweights from in and dout.  All of the
 * GPU, and overwritten. */
int dnn_conv_forward(struct dnn_conv *conv, const void *in, const void *weights,
                     void *out);
int dnn_conv_backward_in(struct dnn_conv *conv, const void *weights,
                         const void *dout, void *din);
int dnn_conv_backward_weights(struct dnn_conv *conv, const void *in,
                              const void *dout, void *dweights);

#endif
