/* SPDX-License-Identifier: BSD-3-Clause */
/* onednn.h - the kernels that the trainer takes from oneDNN.
 *
 * Only onednn.c includes dnnl.h, so that a change to oneDNN's next interface
 * (3.x has no *_desc_init) concerns one file.  There is one engine and one
 * stream in a process.
 */
#ifndef COLL_TRAINER_ONEDNN_H
#define COLL_TRAINER_ONEDNN_H

#include "trainer/layers.h"

struct onednn_conv; /* one 2-D convolution */

struct onednn_conv_config {
    int chunk; /* images in one pass */
    struct shape in, out;
    int kernel, stride, pad; /* in both directions */
    int has_biases;
    int is_training; /* 0: the forward pass alone */
};

/* Start oneDNN with this many threads.
 *
 * Result:    0, or -1 with train_error() set.
 * Threads:   one.
 */
int onednn_init(int threads);
void onednn_fini(void);

/* Return oneDNN's version as text, "2.6.3". */
const char *onednn_version(void);

/* Return the channel block that this processor's fast convolutions want.
 *
 * Result:    16, 8, or 0 for plain height, width, channel order.
 */
int onednn_block(void);

/* Prepare a convolution.
 *
 * Result:    0, or -1 with train_error() set: also if oneDNN has only its
 *            reference kernel, which is a thousand times slower.
 * Ownership: the caller ends *conv by onednn_conv_destroy().
 */
int onednn_conv_create(struct onednn_conv **conv,
                       const struct onednn_conv_config *config);
void onednn_conv_destroy(struct onednn_conv *conv);

/* Take new weights, [out][in][kernel][kernel]: they are brought into the order
 * of each pass once, not at each pass. */
int onednn_conv_load(struct onednn_conv *conv, const float *weights);

/* Run one of the three passes.  weights_add adds to dweights, in the order of load, and
 * to dbiases.  Without biases these may be NULL.
 *
 * Result:    0, or -1 with train_error() set.
 */
int onednn_conv_forward(struct onednn_conv *conv, const float *in,
                        const float *biases, float *out);
int onednn_conv_backward_in(struct onednn_conv *conv, const float *dout,
                            float *din);
int onednn_conv_backward_weights(struct onednn_conv *conv, const float *in,
                                 const float *dout, float *dweights,
                                 float *dbiases);

/* Return the names of the kernels in use, "jit:avx2 jit:avx2 jit:avx2". */
const char *onednn_conv_kernels(const struct onednn_conv *conv);

/* A matrix product, c = a b + beta c, all row by row.
 *
 * Shapes:    c is rows x columns, the inner length is `inner`; a_turned: a is
 *            stored inner x rows; b_turned: b is stored columns x inner.
 */
struct onednn_product {
    int rows, columns, inner;
    int a_turned, b_turned;
    float beta;
};

int onednn_multiply(const struct onednn_product *p, const float *a,
                    const float *b, float *c);

#endif
