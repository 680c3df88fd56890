/* SPDX-License-Identifier: BSD-3-Clause */
/* dnn_product.h - a matrix product by cublasLt, of values (device.h) in row order. */
#ifndef COLL_TRAINER_CUDA_DNN_PRODUCT_H
#define COLL_TRAINER_CUDA_DNN_PRODUCT_H

#include <stdint.h>

struct dnn_product;

/* out[rows][columns] = a[rows][inner] b[inner][columns].  A turned matrix lies in memory the
 * other way round: a as [inner][rows], b as [columns][inner]. */
struct dnn_product_config {
    int rows, columns, inner;
    int a_turned, b_turned;
    uint32_t alignment_a, alignment_b,
        alignment_out; /* bytes, DNN_ALIGNED at most */
    int out_is_f32;    /* and not values */
};

#define DNN_ALIGNED 256 /* as what the GPU's driver allocates */

/* Return how far an address is aligned. */
static inline uint32_t dnn_alignment(const void *at)
{
    uintptr_t place = (uintptr_t)at | DNN_ALIGNED;

    return (uint32_t)(place & -place);
}

/* Choose cublasLt's algorithm, and make sure that the memory that it works in is there.
 *
 * Result:    0, or -1 with train_error() set, as from dnn_multiply().
 * Ownership: *product is the caller's, to end by dnn_product_destroy().
 */
int dnn_product_create(struct dnn_product **product,
                       const struct dnn_product_config *config);
void dnn_product_destroy(struct dnn_product *product); /* NULL is allowed */

/* What one product reads and writes, of the GPU. */
struct dnn_product_io {
    const void *a, *b;
    void *out;
    int adds; /* 1: the product is added to out */
};

int dnn_multiply(struct dnn_product *product, const struct dnn_product_io *io);

#endif
