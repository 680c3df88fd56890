/* SPDX-License-Identifier: BSD-3-Clause */
/* layers_cuda.h - the layers of a GPU, one file a kind.  Maps are in plain order. */
#ifndef COLL_TRAINER_CUDA_LAYERS_CUDA_H
#define COLL_TRAINER_CUDA_LAYERS_CUDA_H

#include "trainer/layers.h"

extern const struct layer_ops layer_cuda_conv;
extern const struct layer_ops layer_cuda_dense;
extern const struct layer_ops layer_cuda_pool;
extern const struct layer_ops layer_cuda_mean;
extern const struct layer_ops layer_cuda_norm;
extern const struct layer_ops layer_cuda_dropout;

/* Return the values of a chunk of a layer's input, and of its output. */
static inline size_t layer_cuda_n_in(const struct layer *l)
{
    return (size_t)l->chunk * shape_len(&l->in);
}

static inline size_t layer_cuda_n_out(const struct layer *l)
{
    return (size_t)l->chunk * shape_len(&l->out);
}

/* If the layer has a relu: clear the gradients of the values that it set to 0. */
int layer_cuda_relu_back(const struct layer *l, const struct layer_io *io);

#endif
